"""Numbers as text, rounded to the side that keeps a claim true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal


def safe_text(value: float, *, toward: Literal["down", "up", "nearest"], digits: int = 3) -> str:
    """Write a number to a few significant digits, rounded to the side that keeps a claim true.

    Parameters
    ----------
    value
        The number.
    toward
        "down" for lower bounds, "up" for upper bounds, "nearest" for measurements.
    digits
        The number of significant digits.

    Returns
    -------
    str
        The number, with a real minus sign, in scientific notation if it is very large or small.
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    rounding = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}[toward]
    if len(Decimal(repr(float(value))).normalize().as_tuple().digits) <= digits:
        rounding = ROUND_HALF_EVEN  # 0.1 is the number that its three digits name, though its float lies above 0.1
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    magnitude = rounded.adjusted() if rounded else 0
    text = f"{rounded:f}" if -5 < magnitude < 7 else f"{rounded:e}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def text_above(value: float) -> str:
    """The value to six significant digits: unchanged if it has no more, else rounded up."""
    text = f"{value:g}"
    return text if float(text) >= value else safe_text(value, toward="up", digits=6)


def exact_text(value: float) -> str:
    """The value in the fewest digits that name it and no other float."""
    text = f"{value:g}"
    return text if float(text) == value else repr(float(value))


def chance_text(probability: float) -> str:
    """Words for the chance of being wrong, to three digits: unchanged if it has no more, else rounded up."""
    text = f"{probability:.3g}"
    # 1 − 0.99 is a unit in the last place above 0.01, and should not become 0.0101.
    if float(text) < probability * (1 - 1e-15):
        text = safe_text(probability, toward="up")
    return f"except with probability {text}"


def counted(count: int, word: str) -> str:
    """A number of things: "1 teacher", "2 queries"."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith(("ry", "ty")) else f"{count} {word}s"
