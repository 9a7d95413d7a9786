"""How far apart two releases lie, for noise given by its density or only by draws (docs/proofs/densities.md).

Everything rests on a *slope* L that the density's logarithm does not exceed: |log p(x − z) − log p(x)| ≤ L‖z‖. The
likelihood ratio of the two releases then lies between exp(−L‖z‖) and exp(L‖z‖).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, up
from .confidence import bounded_mean_upper

_Array = NDArray[np.float64]

_CELLS = 4096
_GRID = ((1e-3, 0.1, 93), (0.1, 0.5, 81), (0.5, 2.0, 139), (2.0, 4.0, 100), (4.0, 16.0, 240))
"""Intervals of the table, in units of 1/slope, and the steps in each: geometric up to 2, then equal."""

_NEAR, _NEARBY = 1e-3, 0.05
"""Shifts, in units of 1/slope, up to which powers of the shift bound the divergences."""

_LOG_ERROR, _MASS_ERROR = 1e-12, 1e-10
"""Errors granted to the log-density, per unit of 1 + |log p|, and to the distribution function, relative."""

_RATIO = "pass slope·‖z‖"


@at_most
def bounded_ratio_chi_square(log_ratio: ArrayLike) -> _Array:
    r"""The greatest chi-square divergence of two releases whose likelihood ratio is bounded.

    Parameters
    ----------
    log_ratio
        The largest absolute value v of the logarithm of the likelihood ratio r.

    Returns
    -------
    ndarray
        An upper bound on χ².

    Notes
    -----
    Statement. χ² ≤ (e^v − 1)(1 − e^(−v)) = 4 sinh²(v/2) if the ratio r lies in [e^(−v), e^v].

    Assumptions. |log r| ≤ log_ratio (caller); log_ratio ≥ 0 and finite (checked).

    Direction. An upper bound, rounded up; inf where it exceeds float64, and exactly 0 at 0.

    References
    ----------
    Bhatia and Davis 2000, doi:10.1080/00029890.2000.12005203; docs/proofs/densities.md.
    """
    v = validate.array("log_ratio", log_ratio, at_least=0, remedy=_RATIO)
    with np.errstate(over="ignore"):
        return np.where(v == 0, 0.0, up(up(2 * np.sinh(v / 2), relative=LIBRARY) ** 2, relative=LIBRARY))[()]


@at_most
def bounded_ratio_hellinger(log_ratio: ArrayLike) -> _Array:
    r"""The greatest squared Hellinger distance, 1 − E√r, of two releases whose likelihood ratio is bounded.

    Parameters
    ----------
    log_ratio
        The largest absolute value v of the logarithm of the likelihood ratio r.

    Returns
    -------
    ndarray
        An upper bound on 1 − E√r.

    Notes
    -----
    Statement. 1 − E√r ≤ 1 − 1/cosh(v/2) if the ratio r lies in [e^(−v), e^v].

    Assumptions. |log r| ≤ log_ratio (caller); log_ratio ≥ 0 and finite (checked).

    Direction. An upper bound, rounded up, at most 1, and exactly 0 at 0.

    References
    ----------
    docs/proofs/densities.md.
    """
    v = np.minimum(validate.array("log_ratio", log_ratio, at_least=0, remedy=_RATIO), 1e3)
    loss = 2 * np.sinh(v / 4) ** 2 / np.cosh(v / 2)
    return np.where(v == 0, 0.0, np.minimum(up(loss, relative=10 * LIBRARY), 1.0))[()]


@at_most
def bounded_ratio_total_variation(log_ratio: ArrayLike) -> _Array:
    r"""The greatest total variation of two releases whose likelihood ratio is bounded.

    Parameters
    ----------
    log_ratio
        The largest absolute value v of the logarithm of the likelihood ratio r.

    Returns
    -------
    ndarray
        An upper bound on TV.

    Notes
    -----
    Statement. TV ≤ tanh(v/2) if the ratio r lies in [e^(−v), e^v].

    Assumptions. |log r| ≤ log_ratio (caller); log_ratio ≥ 0 and finite (checked).

    Direction. An upper bound, rounded up, at most 1, and exactly 0 at 0.

    References
    ----------
    docs/proofs/densities.md.
    """
    v = validate.array("log_ratio", log_ratio, at_least=0, remedy=_RATIO)
    return np.where(v == 0, 0.0, np.minimum(up(np.tanh(v / 2), relative=LIBRARY), 1.0))[()]


@at_most
def density_chi_square(shift: ArrayLike, *, table: DensityTable, error: ArrayLike = 0.0) -> _Array:
    r"""The chi-square divergence for independent noise of a tabulated density; one row of feature shifts per release.

    Parameters
    ----------
    shift
        How far each feature moves: one row for each release.
    table
        The tabulated density, with its slope and curvature.
    error
        How far each true shift may lie from the one given.

    Returns
    -------
    ndarray
        An upper bound on χ² for each row.

    Notes
    -----
    Statement. 1 + χ² = Π (1 + χ²(z_j)) over the features j, χ²(z) = ∫ p(x)(exp Δ(x) − 1)² dx, Δ(x) = log p(x − z) − log
    p(x).

    Assumptions. Independent noise of density p in every feature (caller); |d/dx log p| ≤ slope, and |d²/dx² log p| ≤
    curvature away from the kinks (caller; checked on the table's nodes); p and its distribution function are computed
    to 1e-12 and 1e-10 (caller); each z_j lies within error (caller).

    Direction. An upper bound, rounded up, over all shifts within the error: from quadrature with a bound for every
    cell, a table in z with a bound between its points, and never above `bounded_ratio_chi_square`.

    References
    ----------
    docs/proofs/densities.md.
    """
    z, e = _opened(shift, error, table)
    length = up(np.abs(z) + e)
    factor = np.minimum(up(table.roots(z, e) ** 2, relative=1e-12), bounded_ratio_chi_square(up(table.slope * length)))
    with np.errstate(over="ignore"):
        total = up(np.sum(up(np.log1p(factor), relative=1e-12), axis=-1), relative=1e-12)
        return np.where(_still(z, e), 0.0, up(np.expm1(total), relative=1e-12))[()]


@at_most
def density_total_variation(shift: ArrayLike, *, table: DensityTable, error: ArrayLike = 0.0) -> _Array:
    r"""An upper bound on the total variation for independent noise of a tabulated density; one row per release.

    Parameters
    ----------
    shift
        How far each feature moves: one row for each release.
    table
        The tabulated density, with its slope and curvature.
    error
        How far each true shift may lie from the one given.

    Returns
    -------
    ndarray
        An upper bound on TV for each row.

    Notes
    -----
    Statement. TV ≤ min(1 − Π (1 − TV(z_j)), √(1 − A²)), A = Π ∫√(p(x)p(x − z_j)) dx over the features j.

    Assumptions. Those of `density_chi_square`.

    Direction. An upper bound, rounded up, at most 1, over all shifts within the error, from the same quadrature.

    References
    ----------
    docs/proofs/densities.md.
    """
    z, e = _opened(shift, error, table)
    most = up(table.slope * up(np.abs(z) + e))
    variation = np.minimum(table.variations(z, e), bounded_ratio_total_variation(most))
    hellinger = np.minimum(table.hellingers(z, e), bounded_ratio_hellinger(most))
    with np.errstate(divide="ignore"):
        coupled = up(-np.expm1(np.sum(np.log1p(-variation), axis=-1)), relative=1e-12)
        together = up(np.sqrt(-np.expm1(2 * np.sum(np.log1p(-hellinger), axis=-1))), relative=1e-12)
    return np.where(_still(z, e), 0.0, np.minimum(np.minimum(coupled, together), 1.0))[()]


@at_most
def sampled_chi_square(
    log_ratios: ArrayLike, *, most: float, failure_probability: float, error: ArrayLike = 0.0
) -> float:
    r"""An upper confidence limit for the chi-square divergence, from the log-likelihood ratios of draws.

    Parameters
    ----------
    log_ratios
        The values Δ, one for each draw.
    most
        The largest absolute value that a true log ratio can have.
    failure_probability
        The chance with which the limit may be too small.
    error
        How far each true log ratio may lie from the one given.

    Returns
    -------
    float
        The limit for χ².

    Notes
    -----
    Statement. P(limit < χ²) ≤ failure_probability, χ² = E(exp Δ − 1)², from independent values Δ of log p(X − z) − log
    p(X), X ~ p, all between −most and most.

    Assumptions. Independent draws of X (caller); the true log ratios lie within error of those given (caller) and
    within most (checked of those given).

    Direction. Rounded up; never above `bounded_ratio_chi_square`.

    References
    ----------
    docs/proofs/densities.md; `confidence.bounded_mean_upper`.
    """
    low, high, v = _log_ratios(log_ratios, most, error)
    closed = float(bounded_ratio_chi_square(v))
    scale = up(math.expm1(v), relative=LIBRARY)
    if scale == 0:
        return closed
    values = np.maximum(np.abs(np.expm1(low)), np.abs(np.expm1(high))) / scale
    mean = min(up(float(np.mean(values**2)), relative=1e-12), 1.0)
    limit = bounded_mean_upper(mean, count=values.size, failure_probability=failure_probability)
    return min(closed, up(limit * scale**2, relative=LIBRARY))


@at_most
def sampled_total_variation(
    log_ratios: ArrayLike, *, most: float, failure_probability: float, error: ArrayLike = 0.0
) -> float:
    r"""An upper confidence limit for the total variation, from the log-likelihood ratios of draws.

    Parameters
    ----------
    log_ratios
        The values Δ, one for each draw.
    most
        The largest absolute value that a true log ratio can have.
    failure_probability
        The chance with which the limit may be too small.
    error
        How far each true log ratio may lie from the one given.

    Returns
    -------
    float
        The limit for TV.

    Notes
    -----
    Statement. P(limit < TV) ≤ failure_probability, TV = E(1 − exp Δ)⁺, from the Δ of `sampled_chi_square`.

    Assumptions. Those of `sampled_chi_square`.

    Direction. Rounded up; never above `bounded_ratio_total_variation`.

    References
    ----------
    docs/proofs/densities.md; `confidence.bounded_mean_upper`.
    """
    low, _, v = _log_ratios(log_ratios, most, error)
    closed = float(bounded_ratio_total_variation(v))
    scale = up(-math.expm1(-v), relative=LIBRARY)
    if scale == 0:
        return closed
    values = np.maximum(-np.expm1(low), 0.0) / scale
    mean = min(up(float(np.mean(values)), relative=1e-12), 1.0)
    limit = bounded_mean_upper(mean, count=values.size, failure_probability=failure_probability)
    return min(closed, up(limit * scale, relative=LIBRARY))


@dataclass(frozen=True, kw_only=True, eq=False)
class DensityTable:
    """The divergences of a density from its shifts, rounded up: at the shifts ±`points`, and factors for small ones.

    The rows of `chi_roots`, which holds √χ², are for shifts to the right and to the left; the Hellinger distance and
    the total variation do not depend on the side. The rows of `small` hold for shifts up to 0.001 and 0.05 of 1/slope.
    Each row has the factors of the shift that bound √χ² (right, left), the Hellinger distance and the total variation.
    """

    slope: float
    points: _Array
    chi_roots: _Array
    hellinger_roots: _Array
    total_variations: _Array
    small: _Array

    @staticmethod
    def of(distribution: Any, *, slope: float, curvature: float, kinks: Sequence[float] = ()) -> DensityTable:
        """Tabulate a frozen SciPy distribution, or anything with its logpdf, cdf, sf and ppf, by quadrature."""
        return Cells.of(distribution, slope=slope, curvature=curvature, kinks=kinks).table()

    def roots(self, z: _Array, e: _Array) -> _Array:
        """√χ² for each shift within the range of the table or the factors; inf elsewhere."""
        side = (z < 0).astype(int)
        either = self.small[:, :2].max(axis=1)
        amplified = up(np.exp(self.slope * self.points / 2), relative=LIBRARY)
        # Where the error is longer than the shift, the true one may go to the other side.
        own = np.stack(
            [np.where(e > np.abs(z), both, sides[side]) for both, sides in zip(either, self.small, strict=True)]
        )
        return self._least(z, e, self.chi_roots.ravel(), own, amplified, either, len(self.points) * side)

    def hellingers(self, z: _Array, e: _Array) -> _Array:
        """1 − ∫√(p(x)p(x − z))dx for each shift, at most 1."""
        factors = self.small[:, 2]
        found = self._least(z, e, self.hellinger_roots, factors, np.ones_like(self.points), factors)
        return np.minimum(up(found**2, relative=1e-12), 1.0)

    def variations(self, z: _Array, e: _Array) -> _Array:
        """The total variation for each shift, at most 1."""
        factors = self.small[:, 3]
        return np.minimum(self._least(z, e, self.total_variations, factors, np.ones_like(self.points), factors), 1.0)

    def _least(
        self,
        z: _Array,
        e: _Array,
        tabled: _Array,
        factors: _Array,
        amplified: _Array,
        gap_factors: _Array,
        start: NDArray[np.int64] | int = 0,
    ) -> _Array:
        """The least of three bounds: the factor for a small shift, and the next points with their gaps."""
        length = np.abs(z)
        best = self._times(factors, up(length + e))
        above = np.clip(np.searchsorted(self.points, length), 1, len(self.points) - 1)
        for index in (above - 1, above):
            gap = up(np.abs(length - self.points[index]) + e, relative=1e-12)
            best = np.minimum(best, tabled[start + index] + amplified[index] * self._times(gap_factors, gap))
        return up(best, relative=1e-12)

    def _times(self, factors: _Array, length: _Array) -> _Array:
        """The length times the factor that holds up to this length; inf if none does."""
        near, nearby = length <= _NEAR / self.slope, length <= _NEARBY / self.slope
        return np.where(near, factors[0], np.where(nearby, factors[1], np.inf)) * length


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """A density cut into cells, with the chance of each; its stated slope and curvature were checked at their ends."""

    distribution: Any
    slope: float
    curvature: float
    kinks: _Array
    ends: _Array
    masses: _Array
    outside: float

    @staticmethod
    def of(distribution: Any, *, slope: float, curvature: float, kinks: Sequence[float] = ()) -> Cells:
        """Cut a density into cells; refused if it violates its stated slope or curvature at the nodes."""
        most = validate.number("slope", slope, above=0, remedy="give the greatest |d/dx log p|")
        bend = validate.number("curvature", curvature, at_least=0, remedy="give the greatest |d²/dx² log p|")
        none = isinstance(kinks, Sequence) and len(kinks) == 0
        sharp = np.zeros(0) if none else validate.array("kinks", kinks, dimensions=1, remedy="pass a list of numbers")
        share = np.sin(np.linspace(0, np.pi / 2, _CELLS + 1)[1:-1]) ** 2
        ends = _values(distribution, "ppf", share)
        ends = np.unique(np.concatenate([ends, sharp]))
        if len(ends) < _CELLS / 2:
            raise InputError(
                "ppf of the distribution",
                f"{len(ends)} different values",
                requirement=f"must give others for {_CELLS} shares",
                remedy="pass a continuous distribution",
            )
        below, above = _values(distribution, "cdf", ends), _values(distribution, "sf", ends)
        left = below[1:] < 0.5
        masses = np.where(left, np.diff(below), -np.diff(above))
        error = _MASS_ERROR * np.where(left, below[1:] + below[:-1], above[:-1] + above[1:])
        cells = Cells(
            distribution=distribution,
            slope=most,
            curvature=bend,
            kinks=sharp,
            ends=ends,
            masses=masses + error,
            outside=float(below[0] + above[-1]) * (1 + _MASS_ERROR),
        )
        cells._check(masses, error)
        return cells

    def _check(self, masses: _Array, error: _Array) -> None:
        """Check slope, curvature, and that density and distribution function agree, at the nodes."""
        logs = self._logs(self.ends)
        width = np.diff(self.ends)
        rounding = 2 * _LOG_ERROR * (1 + np.abs(logs[1:]) + np.abs(logs[:-1]))
        steepest = (np.abs(np.diff(logs)) - rounding) / width
        if steepest.max() > self.slope * (1 + 1e-6):
            raise self._broken("slope", float(steepest.max()), self.slope)
        secants = np.diff(logs) / width
        span = self.ends[2:] - self.ends[:-2]
        slack = rounding[1:] / width[1:] + rounding[:-1] / width[:-1]
        bends = (np.abs(np.diff(secants)) - slack) / (span / 2)
        kinked = ((self.ends[:-2, None] < self.kinks) & (self.kinks < self.ends[2:, None])).any(axis=1)
        bends = np.where(kinked, 0.0, bends)
        if bends.max() > self.curvature * (1 + 1e-6):
            raise self._broken("curvature", float(bends.max()), self.curvature)
        # A cell's chance is its width times a density between those of its ends times exp(±slope·width).
        expected = np.log(width) + (logs[1:] + logs[:-1]) / 2
        allowed = self.slope * width + 1e-9
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong = (np.log(masses + error) < expected - allowed) | (np.log(masses - error) > expected + allowed)
        if wrong.any():
            raise InputError(
                "cdf of the distribution",
                float(masses[wrong][0]),
                requirement=f"must agree with logpdf, which gives {float(np.exp(expected[wrong][0])):.3g} there",
                remedy="check the distribution",
            )

    def _broken(self, name: str, seen: float, stated: float) -> InputError:
        return InputError(
            name,
            stated,
            requirement=f"must be at least {seen:.6g}, seen of this density",
            remedy="raise it, or list kinks",
        )

    def _logs(self, x: _Array) -> _Array:
        return _values(self.distribution, "logpdf", x)

    def table(self) -> DensityTable:
        """The divergences at every point of the table."""
        unit = 1 / self.slope
        points = unit * np.unique(
            [x for low, high, n in _GRID for x in (np.geomspace if high <= 2 else np.linspace)(low, high, n + 1)]
        )
        right, left = (np.array([self._at(side * point) for point in points]) for side in (1.0, -1.0))
        small = np.array([self._factors(_NEAR * unit), self._factors(_NEARBY * unit)])
        small[1] = small.max(axis=0)
        even = np.minimum(right[:, 1:], left[:, 1:])
        return DensityTable(
            slope=self.slope,
            points=points,
            chi_roots=up(np.sqrt(np.stack([right[:, 0], left[:, 0]])), relative=1e-9),
            hellinger_roots=up(np.sqrt(even[:, 0]), relative=1e-9),
            total_variations=up(even[:, 1], relative=1e-9),
            small=up(small, relative=1e-9),
        )

    def _at(self, z: float) -> tuple[float, float, float]:
        """χ², squared Hellinger distance and total variation for the shift z."""
        change, error = self._change(z)
        steepness = np.where(self._kinked(z), 2 * self.slope, min(self.curvature * abs(z), 2 * self.slope))
        spread = steepness * self._half + error
        most = self.slope * abs(z)
        # exp(Δ/2) − 1 at both ends of what Δ may be in a cell, and outside: all three integrands grow away from Δ = 0.
        low, high = np.expm1(np.maximum(change - spread, -most) / 2), np.expm1(np.minimum(change + spread, most) / 2)
        root = np.append(np.maximum(np.abs(low), np.abs(high)), math.expm1(most / 2))
        full = np.append(np.maximum(np.abs(low * (2 + low)), np.abs(high * (2 + high))), math.expm1(most))
        chances = np.append(self.masses, self.outside)
        return float(chances @ full**2), float(chances @ root**2) / 2, float(chances @ full) / 2

    def _factors(self, longest: float) -> tuple[float, float, float, float]:
        """The greatest √χ²/z to the right and to the left, Hellinger distance/z and TV/z, for 0 < z ≤ longest."""
        found = []
        for z in (longest, -longest):
            change, error = self._change(z)
            spread = error / longest + self.curvature * (self._half + longest / 2)
            spread = np.where(self._kinked(z), np.inf, spread)
            rise = np.append(np.clip(change / longest + spread, 0.0, self.slope), self.slope)
            fall = np.append(np.clip(spread - change / longest, 0.0, self.slope), self.slope)
            full = np.maximum(np.expm1(longest * rise) / longest, fall)
            root = np.maximum(np.expm1(longest * rise / 2) / longest, fall / 2)
            chances = np.append(self.masses, self.outside)
            found.append((math.sqrt(chances @ full**2), math.sqrt(chances @ root**2 / 2), float(chances @ full) / 2))
        (right, *others), (left, *same) = found
        return right, left, min(others[0], same[0]), min(others[1], same[1])

    def _change(self, z: float) -> tuple[_Array, _Array]:
        """Δ at the centres of the cells, and a bound on its rounding error; refused if it exceeds slope·|z|."""
        here, there = self._log_centres, self._logs(self._centres - z)
        change, error = there - here, _LOG_ERROR * (2 + np.abs(here) + np.abs(there))
        with np.errstate(invalid="ignore"):
            steepest = float(np.max(np.abs(change) - 2 * error)) / abs(z)
        if not steepest <= self.slope * (1 + 1e-6):
            raise self._broken("slope", steepest, self.slope)
        return change, error

    def _kinked(self, z: float) -> NDArray[np.bool_]:
        """Whether a kink lies between some x − z and x, for x in the cell."""
        lowest = self.ends[:-1] - max(z, 0.0) * (1 + 1e-12) - (z > 0) * 1e-15 * np.abs(self.ends[:-1])
        highest = self.ends[1:] - min(z, 0.0) * (1 + 1e-12) + (z < 0) * 1e-15 * np.abs(self.ends[1:])
        inside: NDArray[np.bool_] = (lowest[:, None] < self.kinks) & (self.kinks < highest[:, None])
        return np.asarray(np.any(inside, axis=1))

    @cached_property
    def _centres(self) -> _Array:
        return (self.ends[:-1] + self.ends[1:]) / 2

    @cached_property
    def _log_centres(self) -> _Array:
        return self._logs(self._centres)

    @cached_property
    def _half(self) -> _Array:
        """How far the ends of a cell lie from its centre, rounded up."""
        return up(np.maximum(self.ends[1:] - self._centres, self._centres - self.ends[:-1]))


def _values(distribution: Any, name: str, x: _Array) -> _Array:
    remedy = "pass a frozen distribution such as scipy.stats.logistic(scale=0.5)"
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(getattr(distribution, name)(x), dtype=np.float64)
    except Exception as failure:  # a foreign object may raise what it likes
        raise InputError(
            f"{name} of the distribution",
            f"{type(failure).__name__}: {failure}",
            requirement="must work",
            remedy=remedy,
        ) from None
    if found.shape != x.shape or not np.isfinite(found).all():
        raise InputError(
            f"{name} of the distribution",
            found.shape if found.shape != x.shape else found[~np.isfinite(found)][0],
            requirement="must give a finite number for each: a density positive everywhere",
            remedy=remedy,
        )
    return found


def _opened(shift: ArrayLike, error: ArrayLike, table: object) -> tuple[_Array, _Array]:
    if not isinstance(table, DensityTable):
        raise InputError("table", table, requirement="must be a DensityTable", remedy="use DensityTable.of(…)")
    z = np.atleast_1d(validate.array("shift", shift, remedy="pass the features' shift, one row per release"))
    e = validate.array("error", error, at_least=0, remedy="pass 0, or a number for each row")
    try:
        e = np.broadcast_to(e[..., None], z.shape)
    except ValueError:
        raise InputError(
            "the shapes of shift and error",
            (z.shape, e.shape),
            requirement="must match",
            remedy="pass one error per row",
        ) from None
    return z, e


def _still(z: _Array, e: _Array) -> NDArray[np.bool_]:
    return np.asarray(np.all((z == 0) & (e == 0), axis=-1))


def _log_ratios(log_ratios: ArrayLike, most: object, error: ArrayLike) -> tuple[_Array, _Array, float]:
    """The least and the greatest value that each log ratio may have, and the limit on all of them."""
    v = validate.number("most", most, at_least=0, at_most=300, remedy="pass slope·‖z‖")
    e = validate.array("error", error, at_least=0, remedy="pass 0, or a number for each draw")
    ratios = validate.array("log_ratios", log_ratios, dimensions=1, remedy="pass log p(x − z) − log p(x) of the draws")
    if e.shape not in ((), ratios.shape):
        raise InputError("the shape of error", e.shape, requirement="must be that of log_ratios", remedy="or pass 0")
    farthest = float(np.max(np.abs(ratios) - e))
    if farthest > v * (1 + 1e-6):
        raise InputError(
            "the greatest of log_ratios",
            farthest,
            requirement=f"must be at most {v:.6g}, as the slope says",
            remedy="state a greater slope",
        )
    return np.clip(ratios - e, -v, v), np.clip(ratios + e, -v, v), v
