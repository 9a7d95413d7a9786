"""Rounding to the safe side, and the only root finder that guarantees may use."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from .errors import NoTheoremError, shown

LIBRARY = 1e-14
"""Relative error granted to one call of exp, expm1, log, sqrt and the like in float64."""

LOG_NDTR = 1e-12
"""Relative error granted to SciPy's log_ndtr."""

SPECIAL = 1e-10
"""Relative error granted to SciPy's erf, incomplete beta and incomplete gamma functions.

All three are far above the errors observed; tests/core/test_rounding.py measures them against 50 digits.
"""

_FIRST_STEP, _FASTER = 32, 64
"""Positions that a search with a guess goes first, and how much further every time."""

_Array = NDArray[np.float64]


@overload
def up(value: float, *, relative: float = 0.0) -> float: ...
@overload
def up(value: _Array, *, relative: float = 0.0) -> _Array: ...
def up(value: float | _Array, *, relative: float = 0.0) -> float | _Array:
    """A float no less than the real number that `value` approximates.

    Parameters
    ----------
    value
        The approximation.
    relative
        Its relative error. With 0, `value` must be the result of one correctly rounded operation (+ − × ÷ √).
    """
    if isinstance(value, np.ndarray):
        return np.nextafter(value * np.where(value > 0, 1 + relative, 1 - relative), np.inf)
    return math.nextafter(value * (1 + relative if value > 0 else 1 - relative), math.inf)


@overload
def down(value: float, *, relative: float = 0.0) -> float: ...
@overload
def down(value: _Array, *, relative: float = 0.0) -> _Array: ...
def down(value: float | _Array, *, relative: float = 0.0) -> float | _Array:
    """A float no greater than the real number that `value` approximates; the mirror image of `up`.

    An overflow to inf becomes the largest float, which is below the real number.

    Parameters
    ----------
    value
        The approximation.
    relative
        Its relative error, as for `up`.
    """
    return -up(-value, relative=relative)


def last_true(claim: Callable[[float], bool], *, holds: float, fails: float, near: float | None = None) -> float:
    """Find the point nearest to `fails` at which a search saw `claim` hold.

    The result was itself checked with `claim`, so a bound taken from it holds whatever the shape of the claim. If the
    claim changes once between the two ends, the result is the last float at which it holds. Bisection runs over the
    float64 numbers themselves, with at most 66 evaluations at any scale (or 80, after a bad guess), and needs no
    tolerance.

    Parameters
    ----------
    claim
        What is to hold.
    holds
        A point at which the claim holds.
    fails
        A point at which it need not hold; returned if it does.
    near
        Where the claim is thought to change, by a computation that need not be right: the search starts there, and
        takes a few evaluations where it is.

    Raises
    ------
    NoTheoremError
        If the claim fails at `holds`.
    """
    if not claim(holds):
        raise NoTheoremError(
            f"the search for a bound must start where its claim holds, got {shown(holds)}, where it fails; "
            "the parameters may be too extreme for float64: use less extreme ones"
        )
    if claim(fails):
        return fails
    good, bad = _ordinal(holds), _ordinal(fails)
    if near is not None:
        good, bad = _bracket(claim, good, bad, _ordinal(near))
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        if claim(_float(middle)):
            good = middle
        else:
            bad = middle
    return _float(good)


def _bracket(claim: Callable[[float], bool], good: int, bad: int, near: int) -> tuple[int, int]:
    """Two positions between `good` and `bad`, the claim seen to hold at the first and to fail at the second.

    They are looked for in growing steps from `near`.
    """
    step = _FIRST_STEP
    while min(good, bad) < near < max(good, bad):
        if claim(_float(near)):
            good = near
            near += step if bad > near else -step
        else:
            bad = near
            near += step if good > near else -step
        step *= _FASTER
    return good, bad


def _ordinal(value: float) -> int:
    """The position of a float among all floats, in order; the two zeros share position 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _float(ordinal: int) -> float:
    size: float = struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0]
    return -size if ordinal < 0 else size


_Function = TypeVar("_Function", bound=Callable[..., object])


def at_least(function: _Function) -> _Function:
    """Mark a theorem whose result is a lower bound: rounded down, and too optimistic if larger."""
    function.__dict__["side"] = "at_least"
    return function


def at_most(function: _Function) -> _Function:
    """Mark a theorem whose result is an upper bound: rounded up, and too optimistic if smaller."""
    function.__dict__["side"] = "at_most"
    return function
