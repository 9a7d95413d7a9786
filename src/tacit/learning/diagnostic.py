"""The data-dependent privacy loss, a number for the owner only.

PATE reports the ε that its own votes happened to cost. That figure is computed from private votes, so it is itself
private: publishing it, choosing by it or stopping on it would void the guarantee. Here it is an object that can be
looked at and refuses every other use.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..core import validate
from ..core.errors import NoTheoremError
from .votes import checked_counts, winners

_ORDERS = np.concatenate([np.arange(1.5, 12, 0.5), np.arange(12.0, 64), 2.0 ** np.arange(6, 12)])


class DataDependentEpsilon:
    """The data-dependent ε of GNMax's answers. It refuses to be compared, computed with, saved or sent.

    Parameters
    ----------
    loss
        The figure, computed from private votes.
    """

    __slots__ = ("__loss",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, loss: float) -> None:
        self.__loss = loss

    def seen_by_owner(self) -> str:
        """The figure in a sentence, for whoever may see the private votes."""
        return f"data-dependent ε ≈ {self.__loss:.3g}: computed from private votes, not for publication"

    def __repr__(self) -> str:
        return "<data-dependent ε: private; seen_by_owner() shows it>"

    def _refusal(self, *_: object) -> NoReturn:
        raise NoTheoremError(
            "a data-dependent ε must be looked at only, got a use of its value; it is computed from private votes: "
            "compare, publish or stop by the guarantee of the mechanism"
        )

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __float__ = __int__ = __index__ = _refusal
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refusal
    __neg__ = __abs__ = __round__ = _refusal
    __array__ = to_dict = to_json = _refusal

    def __eq__(self, other: object) -> bool:
        self._refusal(other)

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._refusal(protocol)


def data_dependent_epsilon(counts: ArrayLike, *, sigma: float, delta: float) -> DataDependentEpsilon:
    """The data-dependent cost of answering queries by GNMax.

    Computed by Theorem 6 and Proposition 7 of the reference, with the orders that it suggests, for continuous noise, in
    plain floating point.

    Parameters
    ----------
    counts
        Private counts of votes, a row for each query.
    sigma
        The standard deviation of the noise.
    delta
        The δ.

    Returns
    -------
    The figure, for the owner only.

    References
    ----------
    Papernot et al. 2018, arXiv:1802.08908v1.
    """
    found = checked_counts(counts)
    sigma = validate.number("sigma", sigma, above=0, remedy="give the standard deviation of the noise")
    delta = validate.probability("delta", delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    rows, best = np.arange(len(found)), winners(found)
    gaps = (found[rows, best][:, None] - found).astype(np.float64)
    wrong = special.erfc(gaps / (2 * sigma)) / 2
    wrong[rows, best] = 0
    total = np.zeros(len(_ORDERS))
    for q in wrong.sum(axis=1):
        total += _renyi(float(q), sigma)
    return DataDependentEpsilon(float(np.min(total + math.log(1 / delta) / (_ORDERS - 1))))


def _renyi(q: float, sigma: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The Rényi loss of one answer at each order: Theorem 6 where it applies, the data-independent one elsewhere."""
    plain = _ORDERS / sigma**2
    if not 0 < q < 0.5:
        return plain if q else np.zeros_like(plain)
    second = sigma * math.sqrt(math.log(1 / q))
    first = second + 1
    if second <= 1:
        return plain
    log_limit = (second - 1) * second / sigma**2 - second * math.log(first / (first - 1) * second / (second - 1))
    power = (math.log(q) + second / sigma**2) * (second - 1) / second
    if math.log(q) > log_limit or power >= 0:
        return plain
    log_a = math.log1p(-q) - math.log(-math.expm1(power))
    log_b = first / sigma**2 - math.log(q) / (first - 1)
    terms = np.logaddexp(math.log1p(-q) + (_ORDERS - 1) * log_a, math.log(q) + (_ORDERS - 1) * log_b)
    bound = terms / (_ORDERS - 1)
    return np.where(first >= _ORDERS, np.minimum(np.maximum(bound, 0), plain), plain)
