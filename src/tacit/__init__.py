"""Tacit proves what nobody can learn from a machine-learning model, and attacks it to show how tight the proof is.

- `bound` and `bound_files`: how well can anyone rebuild an input from its noisy features? `bound_texts_files`: which
  words can anyone restore from a noisy embedding?
- `PrivateClassifier`, `learn_files` and `plan`: learn from private records with (ε, δ)-differential privacy, and what a
  budget buys.
- `Ledger`: how much of a budget was spent, kept in SQLite or PostgreSQL.
- `audit.audit` and `audit_file`: what can nobody who sees an output learn about a secret?

The subpackages `reconstruction`, `learning` and `audit` hold the rest, and `report` makes pages of results; they are
imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.errors import (
    BudgetSpentError,
    IncomparableError,
    InputError,
    MissingExtraError,
    NoTheoremError,
    PrivacyWarning,
    TacitError,
)
from .core.guarantee import Adversary, Assumption, Attack, Comparison, Guarantee
from .core.wording import safe_text

if TYPE_CHECKING:
    from . import audit, learning, reconstruction, report
    from .audit import audit_file, certify
    from .learning import PrivateClassifier, learn_files, plan
    from .ledger import Ledger
    from .reconstruction import bound, bound_files, bound_texts_files

__version__ = "0.2.0"

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
    "PrivacyWarning",
    "PrivateClassifier",
    "TacitError",
    "__version__",
    "audit",
    "audit_file",
    "bound",
    "bound_files",
    "bound_texts_files",
    "certify",
    "learn_files",
    "learning",
    "plan",
    "reconstruction",
    "report",
    "safe_text",
]

_PARTS = {
    "audit_file": "audit",
    "certify": "audit",
    "bound": "reconstruction",
    "bound_files": "reconstruction",
    "bound_texts_files": "reconstruction",
    "PrivateClassifier": "learning",
    "learn_files": "learning",
    "plan": "learning",
    "Ledger": "ledger",
}


def __getattr__(name: str) -> Any:
    """Import what needs heavy packages on first use."""
    if name in ("audit", "learning", "reconstruction", "report"):
        return import_module(f".{name}", __name__)
    if name in _PARTS:
        return getattr(import_module(f".{_PARTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
