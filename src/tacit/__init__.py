"""Tacit: what nobody can learn from a machine-learning model, proven, and attacked to show how tight."""

from importlib.metadata import version

from .core.errors import BudgetSpentError, IncomparableError, InputError, MissingExtraError, NoTheoremError, TacitError
from .core.guarantee import Adversary, Assumption, Attack, Comparison, Guarantee

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
    "MissingExtraError",
    "NoTheoremError",
    "TacitError",
    "__version__",
]
