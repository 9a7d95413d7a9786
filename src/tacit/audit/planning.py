"""How many rows a certificate needs."""

from __future__ import annotations

from .. import checked
from ..errors import InputError
from ..theory import certificates

_MOST_ROWS = 2**48


def rows_needed(advantage: float, *, delta: float, leaked: float = 0.0, values: int = 2) -> int:
    """Rows, half of each class, from which a certificate for `advantage` can be expected; a plan, not a promise.

    `leaked` is the true v, 0 where the output tells nothing. An output with d values adds about (d − 1)/n to the
    plug-in by chance alone.
    """
    target = checked.number("advantage", advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
    delta = checked.probability("delta", delta, remedy="use a small probability such as 0.05")
    v = checked.number("leaked", leaked, at_least=0, at_most=1, remedy="use 0 where nothing leaks")
    d = checked.whole("values", values, at_least=1, remedy="count the output's values")
    if v >= target**2:
        raise InputError(
            "leaked",
            v,
            requirement=f"must be below advantage² = {target**2:g}, what the ceiling allows",
            remedy="no number of rows certifies less than what leaks",
        )

    def enough(half: int) -> bool:
        plug_in = min(1.0, v + (d - 1) / (2 * half))
        limit = certificates.squared_sharp(plug_in, positives=half, negatives=half, failure_probability=delta)
        return limit <= target**2

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            raise InputError(
                "advantage", target, requirement="must be within reach of 2**48 rows", remedy="allow a larger one"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return 2 * high
