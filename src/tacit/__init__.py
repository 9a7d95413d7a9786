"""Tacit: what nobody can learn from a machine-learning model, proven, and attacked to show how tight.

    bound, bound_files      how well can anyone rebuild an input from its noisy features?
    PrivateClassifier,
    learn_files, plan       learn from private records with (ε, δ)-differential privacy; what a budget buys
    Ledger                  the durable record of what was spent of a budget
    audit.audit, audit_file what can nobody who sees an output learn about a secret?

The parts `reconstruction`, `learning` and `audit` hold all the rest; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .core.errors import BudgetSpentError, IncomparableError, InputError, MissingExtraError, NoTheoremError, TacitError
from .core.guarantee import Adversary, Assumption, Attack, Comparison, Guarantee
from .core.wording import safe_text

if TYPE_CHECKING:
    from . import audit, learning, reconstruction
    from .audit import audit_file, certify
    from .learning import PrivateClassifier, learn_files, plan
    from .ledger import Ledger
    from .reconstruction import bound, bound_files

__version__ = version("tacit")

__all__ = [
    "Adversary",
    "Assumption",
    "Attack",
    "BudgetSpentError",
    "Comparison",
    "Guarantee",
    "IncomparableError",
    "InputError",
    "Ledger",
    "MissingExtraError",
    "NoTheoremError",
    "PrivateClassifier",
    "TacitError",
    "__version__",
    "audit",
    "audit_file",
    "bound",
    "bound_files",
    "certify",
    "learn_files",
    "learning",
    "plan",
    "reconstruction",
    "safe_text",
]

_PARTS = {
    "audit_file": "audit",
    "certify": "audit",
    "bound": "reconstruction",
    "bound_files": "reconstruction",
    "PrivateClassifier": "learning",
    "learn_files": "learning",
    "plan": "learning",
    "Ledger": "ledger",
}


def __getattr__(name: str) -> Any:
    """What takes heavy packages is imported when it is first asked for."""
    if name in ("audit", "learning", "reconstruction"):
        return import_module(f".{name}", __name__)
    if name in _PARTS:
        return getattr(import_module(f".{_PARTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
