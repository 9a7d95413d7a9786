"""Numbers that stay on the safe side: outward rounding, and the only root finder that guarantees may use."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from .errors import NoTheoremError, shown

LIBRARY = 1e-14
"""Relative error granted to one call of exp, expm1, log, sqrt and their like in float64."""

LOG_NDTR = 1e-12
"""Relative error granted to SciPy's log_ndtr."""

SPECIAL = 1e-10
"""Relative error granted to SciPy's erf and incomplete beta function.

All are far above what these functions show; tests/test_numerics.py measures them against 50 digits.
"""

_Array = NDArray[np.float64]


@overload
def up(value: float, *, relative: float = 0.0) -> float: ...
@overload
def up(value: _Array, *, relative: float = 0.0) -> _Array: ...
def up(value: float | _Array, *, relative: float = 0.0) -> float | _Array:
    """A float no less than the real number that `value` approximates within the relative error given.

    With `relative` = 0, `value` must be the result of one correctly rounded operation (+ − × ÷ √).
    """
    if isinstance(value, np.ndarray):
        return np.nextafter(value * np.where(value > 0, 1 + relative, 1 - relative), np.inf)
    return math.nextafter(value * (1 + relative if value > 0 else 1 - relative), math.inf)


@overload
def down(value: float, *, relative: float = 0.0) -> float: ...
@overload
def down(value: _Array, *, relative: float = 0.0) -> _Array: ...
def down(value: float | _Array, *, relative: float = 0.0) -> float | _Array:
    """A float no greater than the real number that `value` approximates; `up` mirrored.

    An overflow to inf comes down to the largest float, which the real number has passed.
    """
    return -up(-value, relative=relative)


def last_true(claim: Callable[[float], bool], *, holds: float, fails: float) -> float:
    """The point nearest to `fails` at which bisection saw `claim` hold.

    The result was itself put to `claim`, so a bound read off it holds whatever the shape of the claim; if
    the claim changes its value once, the result is the last float at which it holds. Bisection runs over
    the float64 numbers themselves, at most 66 evaluations at any scale, and needs no tolerance.
    """
    if not claim(holds):
        raise NoTheoremError(
            f"the search for a bound must start where its claim holds, got {shown(holds)}, where it fails; "
            "the parameters may be too extreme for float64: use less extreme ones"
        )
    if claim(fails):
        return fails
    good, bad = _ordinal(holds), _ordinal(fails)
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        if claim(_float(middle)):
            good = middle
        else:
            bad = middle
    return _float(good)


def _ordinal(value: float) -> int:
    """The position of a float among all floats, in order; the two zeros share position 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _float(ordinal: int) -> float:
    size: float = struct.unpack("<d", struct.pack("<q", abs(ordinal)))[0]
    return -size if ordinal < 0 else size


_Function = TypeVar("_Function", bound=Callable[..., object])


def at_least(function: _Function) -> _Function:
    """Marks a theorem whose result is a lower bound: rounded down, and too optimistic when larger."""
    function.__dict__["side"] = "at_least"
    return function


def at_most(function: _Function) -> _Function:
    """Marks a theorem whose result is an upper bound: rounded up, and too optimistic when smaller."""
    function.__dict__["side"] = "at_most"
    return function
