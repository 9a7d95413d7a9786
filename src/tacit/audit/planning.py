"""How many rows a certificate needs."""

from __future__ import annotations

import functools
import math

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from ..theory import certificates

_MOST_HALF = 10**9


@renamed(delta="failure_probability")
def rows_needed(
    advantage: float, *, failure_probability: float, loss: str = "squared", leaked: float = 0.0, values: int = 2
) -> int:
    """Plan how many rows, half of each class, certify a ceiling in about every second table.

    Parameters
    ----------
    advantage
        The ceiling.
    failure_probability
        The one that the certificate will have.
    loss
        "squared", or "zero-one" where only the advantage is to be certified, which takes fewer rows.
    leaked
        What the output truly leaks, as v; 0 where it tells nothing.
    values
        How many values the output has: d values add about (d − 1)/rows to what is measured, by chance. With 1 nothing
        is added, and the result is a lower limit: no table with fewer rows certifies the ceiling (with
        sampling="pairs", where the number may be odd, one row fewer may do; and more than three noisy columns may do
        with fewer rows, by a kernel).

    Raises
    ------
    InputError
        Where more leaks than the ceiling allows, or the ceiling takes more than 2·10⁹ rows.
    """
    target = validate.number("advantage", advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    validate.choice("loss", loss, ("squared", "zero-one"), remedy="use 'squared', which 'log' is close to")
    v = validate.number("leaked", leaked, at_least=0, at_most=1, remedy="use 0 where nothing leaks")
    d = validate.whole("values", values, at_least=1, remedy="count the output's values")
    if v >= target**2:
        raise InputError(
            "leaked",
            v,
            requirement=f"must be below advantage² = {target**2:g}, what the ceiling allows",
            remedy="raise the ceiling: no number of rows certifies less than what leaks",
        )
    return _searched(target, failure, loss, v, d)


@functools.lru_cache
def _searched(target: float, failure: float, loss: str, v: float, d: int) -> int:
    """`rows_needed`, which audits of one ceiling ask for again and again."""

    def enough(half: int) -> bool:
        plug_in = min(1.0, v + (d - 1) / (2 * half))
        if loss == "squared":
            limit = certificates.squared_sharp(plug_in, positives=half, negatives=half, failure_probability=failure)
            return limit <= target**2
        correct = min(2 * half, math.ceil(half * (1 + math.sqrt(plug_in))))
        # As pairs: by class the limit is no smaller, and larger where the failure probability is about ½.
        limit = certificates.variation_exact(
            correct, positives=half, negatives=half, failure_probability=failure, paired=True
        )
        return limit <= target

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_HALF:
            raise InputError(
                "advantage",
                target,
                requirement=f"must be within reach of {2 * _MOST_HALF:g} rows",
                remedy="allow a larger one",
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return 2 * high
