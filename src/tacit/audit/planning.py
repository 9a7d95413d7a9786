"""How many rows a certificate needs."""

from __future__ import annotations

import math

from ..core import validate
from ..core.errors import InputError
from ..theory import certificates

_MOST_HALF = 10**9


def rows_needed(advantage: float, *, delta: float, loss: str = "squared", leaked: float = 0.0, values: int = 2) -> int:
    """Rows, half of each class, with which about every second table certifies `advantage`; a plan, not a promise.

    `loss` is "squared", or "zero-one" where the advantage alone is to be certified, which takes fewer rows. `leaked`
    is the true v, 0 where the output tells nothing. An output with d values adds about (d − 1)/n to the plug-in by
    chance; with values=1 nothing is added, and fewer rows cannot do (in pairs, of which there may be an odd number,
    no more than one fewer).
    """
    target = validate.number("advantage", advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
    delta = validate.probability("delta", delta, remedy="use a small probability such as 0.05")
    validate.choice("loss", loss, ("squared", "zero-one"), remedy="use 'squared', which 'log' is close to")
    v = validate.number("leaked", leaked, at_least=0, at_most=1, remedy="use 0 where nothing leaks")
    d = validate.whole("values", values, at_least=1, remedy="count the output's values")
    if v >= target**2:
        raise InputError(
            "leaked",
            v,
            requirement=f"must be below advantage² = {target**2:g}, what the ceiling allows",
            remedy="no number of rows certifies less than what leaks",
        )

    def enough(half: int) -> bool:
        plug_in = min(1.0, v + (d - 1) / (2 * half))
        if loss == "squared":
            limit = certificates.squared_sharp(plug_in, positives=half, negatives=half, failure_probability=delta)
            return limit <= target**2
        correct = min(2 * half, math.ceil(half * (1 + math.sqrt(plug_in))))
        # As pairs: by class the limit is no smaller, and for δ of about ½ it is larger.
        limit = certificates.variation_exact(
            correct, positives=half, negatives=half, failure_probability=delta, paired=True
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
