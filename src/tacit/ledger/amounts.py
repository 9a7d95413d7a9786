"""Amounts of privacy: ε and δ as exact decimal numbers, to which costs are rounded up and budgets down."""

from __future__ import annotations

import math
import numbers
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from ..core.errors import InputError

PLACES = 60
"""Decimal places of an amount."""

_LARGEST = 10**9
_UNIT = Decimal(1).scaleb(-PLACES)
_EXACT = Context(prec=4 * PLACES)

STORED = rf"(0|[1-9][0-9]{{0,9}})(\.[0-9]{{0,{PLACES - 1}}}[1-9])?"
"""How a stored amount is written, as a regular expression: never with a sign."""

Number = int | float | Fraction | Decimal


class Amount(NamedTuple):
    """An amount of privacy, exactly.

    Attributes
    ----------
    epsilon, delta
        The two parts of a budget or of a cost.
    """

    epsilon: Decimal
    delta: Decimal

    def __add__(self, other: Amount) -> Amount:  # type: ignore[override]  # the sum of amounts, not of tuples
        return Amount(*(_plain(_EXACT.add(a, b)) for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*(_plain(_EXACT.subtract(a, b)) for a, b in zip(self, other, strict=True)))

    def covers(self, other: Amount) -> bool:
        """Whether both parts are at least those of `other`."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def __str__(self) -> str:
        return f"ε = {self.epsilon:f} and δ = {self.delta:f}"


NOTHING = Amount(Decimal(0), Decimal(0))


def cost(epsilon: object, delta: object) -> Amount:
    """What a release costs, rounded up."""
    return _amount(epsilon, delta, up=True)


def budget(epsilon: object, delta: object) -> Amount:
    """What may be spent, rounded down."""
    found = _amount(epsilon, delta, up=False)
    if found.delta == 1:
        raise InputError("delta", delta, requirement="must be below 1", remedy="a budget of 1 protects nobody")
    return found


def _amount(epsilon: object, delta: object, *, up: bool) -> Amount:
    return Amount(
        _rounded("epsilon", epsilon, up=up, at_most=_LARGEST, remedy="privacy is worth having below 10"),
        _rounded("delta", delta, up=up, at_most=1, remedy="use about 1/n², e.g. 1e-10 for 100000 records"),
    )


def _rounded(name: str, value: object, *, up: bool, at_most: int, remedy: str) -> Decimal:
    refusal = InputError(name, value, requirement=f"must be a number ≥ 0 and ≤ {at_most:g}", remedy=remedy)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise refusal
    if isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if not 0 <= exact <= at_most:
            raise refusal
        units = (math.ceil if up else math.floor)(exact * 10**PLACES)
        return _plain(_EXACT.scaleb(Decimal(units), -PLACES))
    decimal = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not decimal.is_finite() or not 0 <= decimal <= at_most:
        raise refusal
    return _plain(decimal.quantize(_UNIT, rounding=ROUND_CEILING if up else ROUND_FLOOR, context=_EXACT))


def _plain(value: Decimal) -> Decimal:
    """The same number, written without exponent, trailing zeros or a sign of zero."""
    return Decimal(f"{_EXACT.normalize(value):f}") if value else Decimal(0)


def stored(text: object) -> Decimal:
    """An amount as it is stored. None is below zero, as that would be a refund."""
    if not isinstance(text, str) or re.fullmatch(STORED, text) is None:
        raise ValueError("an amount that is no plain number ≥ 0")
    return Decimal(text)


def float_above(value: Decimal) -> float:
    """The nearest float that is not less."""
    near = float(value)
    return near if Decimal(near) >= value else math.nextafter(near, math.inf)
