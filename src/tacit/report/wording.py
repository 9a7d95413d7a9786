"""Numbers on a page: one unit for each quantity, rounded so that every sentence stays true."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Literal

from ..core.guarantee import Attack, Guarantee
from ..core.wording import chance_text, counted, safe_text

_SHARE = re.compile(r"^(probability|share|chance)\b|as a share of ")
_UNIT = re.compile(r"^advantage\b")


def is_share(quantity: str) -> bool:
    """Whether the quantity is a probability or a share, which pages write in percent."""
    return _SHARE.search(quantity) is not None


def ends_at_one(quantity: str) -> bool:
    """Whether the quantity lies between 0 and 1, so that its axis does, too."""
    return is_share(quantity) or _UNIT.search(quantity) is not None


def percent(share: float) -> str:
    """A measured share."""
    return _percent(share, "nearest")


def percent_up(share: float) -> str:
    """A share that nobody exceeds."""
    return _percent(share, "up")


def percent_down(share: float) -> str:
    """A share that nobody gets below."""
    return _percent(share, "down")


def _percent(share: float, toward: Literal["down", "up", "nearest"]) -> str:
    exact = 100 * Decimal(repr(float(share)))
    short = len(exact.normalize().as_tuple().digits) <= 2  # 0.07 is 7 %, though 100 * 0.07 is a float above 7
    return f"{safe_text(float(exact) if short else 100 * share, toward=toward, digits=2)} %"


def amount(quantity: str, value: float, *, toward: Literal["down", "up", "nearest"]) -> str:
    """A value of the quantity in its unit: percent for shares, else the plain number."""
    if not is_share(quantity) or math.isinf(value):
        return safe_text(value, toward=toward)
    return {"down": percent_down, "up": percent_up, "nearest": percent}[toward](value)


def bound_words(guarantee: Guarantee) -> str:
    """The side and the bound of a guarantee, in the unit of its quantity."""
    if math.isinf(guarantee.value) or not is_share(guarantee.quantity):
        return guarantee.bound_text
    toward: Literal["down", "up"] = "down" if guarantee.side == "at_least" else "up"
    return f"{guarantee.side.replace('_', ' ')} {amount(guarantee.quantity, guarantee.value, toward=toward)}"


def attack_words(attack: Attack) -> str:
    """The value of an attack with its interval, in the unit of its quantity."""
    if not is_share(attack.quantity) or attack.low == attack.high or not math.isfinite(attack.high):
        return attack.value_text
    chance = f", {chance_text(attack.failure_probability)}" if attack.failure_probability else ""
    return f"{percent(attack.value)} ({percent_down(attack.low)} to {percent_up(attack.high)}{chance})"


def duration(seconds: float) -> str:
    """A time in words: "45 seconds", "2 minutes", "3 hours"."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{round(seconds / size)} {name}"
    return counted(max(1, round(seconds)), "second")
