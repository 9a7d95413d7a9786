r"""An upper confidence limit for v from pairs of rows with the same output, without a bias by the number of outputs.

The secret S = ±1 is a fair coin, T the output, η = E[S|T], v = E η². The plug-in of v compares each row with itself,
too, and is too large by about the number of different outputs divided by the number of rows. Here only pairs of
different rows count. Proofs: docs/proofs/pairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, up

PRICES = ((0.8, 1.454), (1.5, 4.0))
"""(c, h): with μ√(nv) up to c, choosing μ by the outputs costs ln h. (1 + 0.43·0.8)/1.454 + 0.43·0.7/4 ≤ 1."""

CUTS = (1.5, 3.0, 6.0, 12.0)
"""The c that are tried: frequencies up to √(V/(cW)) say how the sum is spread near its lower end."""

LEAST_RATE, MOST_RATE = 1e-6, 4.0
"""Between which λ is looked for."""

_REACH = 12  # standard deviations of a sum of signs; beyond lies less than 2e-31 of it
_AT_ONCE = 2**20
_GRIDS, _POINTS = 4, 16
_STEPS = 64 * LIBRARY
_COUNTS = "count how often each output came with each secret"

_Floats = NDArray[np.float64]


@at_most
def squared_pairwise(
    positive: ArrayLike, negative: ArrayLike, *, failure_probability: float, rate: float | None = None
) -> float:
    r"""An upper confidence limit for v, from pairs of rows with the same output.

    Parameters
    ----------
    positive
        How often each output came with the first secret.
    negative
        How often it came with the second, in the same order.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    rate
        The λ of the limit; by default one that makes it small. It may be chosen after the table was seen.

    Returns
    -------
    float
        The limit for v.

    Notes
    -----
    Statement. n_t rows have output t and signs whose sum is s_t; Q = Σ (s_t² − n_t)/(n_t − 1) over outputs with two
    rows or more, or 0 if that is negative; N₁ outputs have one row. For λ > 0: Z_m = E exp(−λ(s² − m)/(m − 1)), where
    s is a sum of m fair signs, and μ is at most ½(1 − E[s² exp(−λ(s² − m)/(m − 1))]/(m Z_m)) for every size m = n_t ≥
    2. The limit is the least w for which some λ has −n ln(1 − w(1 − e^(−μ))) ≥ λQ + Σ ln Z_(n_t) + μN₁ + ln(h/α),
    where h is 1.454 if μ√(nw) ≤ 0.8, and 4 if it is at most 1.5; or for which it has this with μ − κ for μ and with
    ln k added to the sum of the first three terms on the right, which counts as 0 if it is negative. There V_m and U_m
    are the second and fourth central moments of (s² − m)/(m − 1) if s is weighted with exp(−λ(s² − m)/(m − 1)), V is
    the sum of all V_(n_t), V₁ the largest, d² the least V_m/(cW_m), W_m = U_m/12 + V_m²/4, c one of 1.5, 3, 6 and 12,
    k = (2π/d)/((1 − exp(−2πλ/d))√(2π(1 − 1/c)V)), which must be below 1, and κ = ln(1/k)V₁/(2V(1 − k²)).
    P(limit < v) ≤ α.

    Assumptions. Rows are independent pairs, and every secret is a fair coin (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/pairs.md, `squared_pairwise`.
    """
    pairs = Pairs.of(positive, negative)
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    if rate is not None:
        validate.number("rate", rate, above=0, at_most=100, remedy="leave it out for the best one")
    return float(pairs.limits(np.array([pairs.rate(failure) if rate is None else rate]), failure)[0])


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What the limit needs to know of a table.

    Attributes
    ----------
    rows
        How many there are.
    total
        The sum Q over pairs of rows with the same output.
    singles
        How many outputs have one row.
    sizes, counts
        The sizes of the other outputs, and how many outputs have each.
    """

    rows: int
    total: float
    singles: int
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, positive: ArrayLike, negative: ArrayLike) -> Pairs:
        """Sum up how often each output came with each secret."""
        signs, sizes = _signs(positive, negative)
        several = sizes > 1
        terms = (signs[several] ** 2 - sizes[several]) / (sizes[several] - 1)
        different, counts = np.unique(sizes[several].astype(np.int64), return_counts=True)
        return cls(
            rows=int(sizes.sum()),
            total=max(0.0, math.fsum(terms) + 1e-15 * math.fsum(np.abs(terms))),
            singles=int((sizes == 1).sum()),
            sizes=different,
            counts=counts,
        )

    def rate(self, failure_probability: float) -> float:
        """A λ that makes the limit small: the best of a grid, of a finer one around it, and so on."""
        low, high = LEAST_RATE, MOST_RATE
        for _ in range(_GRIDS):
            rates = np.geomspace(low, high, _POINTS)
            best = int(np.argmin(self.limits(rates, failure_probability)))
            low, high = float(rates[max(0, best - 1)]), float(rates[min(_POINTS - 1, best + 1)])
        return float(rates[best])

    def limits(self, rates: _Floats, failure_probability: float) -> _Floats:
        """The limit by each λ alone, rounded up."""
        limits = np.ones(len(rates))
        if not len(self.sizes):
            return limits
        tried = tuple(rates.tolist())
        of_sizes = [_tilted_once(size, tried) for size in self.sizes.tolist()]
        moments, slopes, spreads, widths = (np.array(values) for values in zip(*of_sizes, strict=True))
        moment, slope, width = self.counts @ moments, slopes.min(axis=0), widths.min(axis=0)
        # By moments alone, and by how the sum is spread near its lower end as well.
        log, bend = np.zeros((2, 1 + len(CUTS), len(rates)))
        log[1:], bend[1:] = _spread(
            rates, self.counts @ spreads, spreads.max(axis=0), width, cut=np.array(CUTS)[:, None]
        )
        able = slope > bend
        mu = np.where(able, slope - bend, 1.0)
        paid = np.maximum(0.0, rates * self.total + moment + log + mu * self.singles)
        for cap, price in PRICES:
            exponents = up((paid + math.log(price / failure_probability)) / self.rows, relative=_STEPS)
            found = up(np.expm1(-exponents) / np.expm1(-mu), relative=_STEPS)
            within = able & (up(mu * np.sqrt(self.rows * found), relative=_STEPS) <= cap)
            limits = np.minimum(limits, np.where(within, found, 1.0).min(axis=0))
        return limits


def _spread(
    rates: _Floats, whole: _Floats, most: _Floats, width: _Floats, *, cut: float | _Floats
) -> tuple[_Floats, _Floats]:
    """For each λ, ln k and κ, rounded up; 0 and 0 where k is not below 1. V₁, rounded down, is made larger again."""
    reach = np.sqrt(width / cut)
    log = np.log(2 * np.pi / (reach * -np.expm1(-2 * np.pi * rates / reach)))
    log -= np.log(2 * np.pi * (1 - 1 / cut) * whole) / 2
    log += 1e-12 * (64 + np.abs(log))
    below = (log < -1e-6) & (rates <= MOST_RATE)  # beyond, V is too small to be computed well
    log = np.where(below, log, -1.0)
    bend = -log * most / (2 * whole * -np.expm1(2 * log)) * (1 + 1e-6)
    return np.where(below, log, 0.0), np.where(below, bend, 0.0)


@lru_cache(maxsize=4096)
def _tilted_once(size: int, rates: tuple[float, ...]) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """The same as below; every search begins with the same λ, and sizes come again."""
    return _tilted(size, np.array(rates))


def _tilted(size: int, rates: _Floats) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """For each λ, of an output with so many rows: ln Z, rounded up; the largest μ, V and V/W, rounded down."""
    squares, values, chances = _sums(size)
    whole, at_once = chances.sum(), max(1, _AT_ONCE // len(squares))
    moments, seconds, spreads, widths = [], [], [], []
    for start in range(0, len(rates), at_once):
        weights = np.exp(-rates[start : start + at_once, None] * values) * chances
        totals = weights.sum(axis=1)
        moments.append(totals / whole)
        seconds.append(weights @ squares / totals / size)
        gaps = (values - (weights @ values / totals)[:, None]) ** 2
        second, fourth = (weights * gaps).sum(axis=1) / totals, (weights * gaps**2).sum(axis=1) / totals
        spreads.append(second)
        widths.append(second / (fourth / 12 + second**2 / 4))
    error = 8 * float(np.finfo(float).eps) * (len(squares) + 8) + 1e-12
    return (
        np.log(np.concatenate(moments)) + error,
        (1 - np.concatenate(seconds) * (1 + error)) / 2 - error,
        np.concatenate(spreads) * (1 - 32 * error),
        np.concatenate(widths) * (1 - 32 * error),
    )


@lru_cache(maxsize=256)
def _sums(size: int) -> tuple[_Floats, _Floats, _Floats]:
    """Of so many signs, s² and (s² − m)/(m − 1) of all sums s ≥ 0 that matter, and their chances up to a factor."""
    sums = np.arange(size % 2, min(size, int(_REACH * math.sqrt(size)) + 2) + 1, 2)
    more = (size + sums[:-1]) // 2  # positive signs
    chances = np.concatenate([[1.0], np.cumprod((size - more) / (more + 1))])
    chances[sums > 0] *= 2  # sums of either sign
    squares = sums.astype(np.float64) ** 2
    return squares, (squares - size) / (size - 1), chances


def _signs(positive: object, negative: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum of signs and the number of rows of each output that occurs."""
    counts = []
    for name, values in (("positive", positive), ("negative", negative)):
        found = np.asarray(validate.array(name, values, at_least=0, at_most=2**30, remedy=_COUNTS), dtype=np.float64)
        if found.ndim != 1 or (found != np.floor(found)).any():
            raise InputError(name, "something else", requirement="must be a list of whole numbers", remedy=_COUNTS)
        counts.append(found)
    one, zero = counts
    if len(one) != len(zero) or not (one.sum() + zero.sum()) > 0:
        raise InputError(
            "negative",
            f"{len(zero)} counts",
            requirement=f"must be {len(one)} counts, one row at least",
            remedy=_COUNTS,
        )
    there = one + zero > 0
    return (one - zero)[there], (one + zero)[there]
