"""How far apart two rounded releases lie: features plus noise, each rounded to the nearest multiple of a step.

The release is the index of a bin, whose chances are differences of distribution functions. All lengths inside are in
units of the noise's size. Proofs: docs/proofs/quantized.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import at_most, up
from . import divergences

_Array = NDArray[np.float64]

KINDS = ("gaussian", "laplace", "uniform")
_UNIT = 2.0**-53
_MOST_BINS = 128
"""With more bins than this a feature is treated as unrounded: rounding so fine hides next to nothing."""

_AT_ONCE = 2**20
"""Bins of all features that are held in memory together."""

_MASS = 1e-12
"""Error granted to a bin's chance, as a share of the erf or erfc values that it is made of."""


@at_most
def quantized_chi_square(
    features: ArrayLike, shift: ArrayLike, *, kind: str, size: float, step: float, error: ArrayLike = 0.0
) -> _Array:
    r"""The chi-square divergence between two rounded releases; one row of features and of shifts per release.

    Parameters
    ----------
    features
        The features, one row for each release.
    shift
        How far each feature moves: one row for each release.
    kind
        The noise: "gaussian", "laplace" or "uniform".
    size
        The size of the noise: its standard deviation σ, scale b or width w.
    step
        The step s to whose multiples releases are rounded.
    error
        How far each true feature and shift may lie from the one given.

    Returns
    -------
    ndarray
        An upper bound on χ² for each row.

    Notes
    -----
    Statement. 1 + χ² = Π Σ_k q_k²/p_k over the features, p_k and q_k the chances of bin k, [(k − ½)s, (k + ½)s], before
    and after the shift. No larger than without rounding.

    Assumptions. Independent noise of the kind and size (σ, b or w) in every feature, rounded to the nearest multiple of
    the step s (caller); features and shift each lie within error of the true ones, feature by feature (caller); finite
    numbers, size > 0, step > 0, error ≥ 0 (checked).

    Direction. An upper bound, rounded up, over all true features and shifts within the error; exact up to rounding
    where there is no error and a feature needs at most 128 bins. Otherwise the feature is treated as unrounded.

    References
    ----------
    docs/proofs/quantized.md.
    """
    task = _Task.opened(features, shift, kind, size, step, error)
    chi_square = np.minimum(_unrounded(task.kind, task.longest).chi_square, task.binned().chi_square)
    with np.errstate(over="ignore"):
        total = up(np.sum(up(np.log1p(chi_square), relative=1e-12), axis=-1), relative=1e-12)
        return np.where((task.longest == 0).all(axis=-1), 0.0, up(np.expm1(total), relative=1e-12))[()]


@at_most
def quantized_total_variation(
    features: ArrayLike, shift: ArrayLike, *, kind: str, size: float, step: float, error: ArrayLike = 0.0
) -> _Array:
    r"""An upper bound on the total variation between two rounded releases; one row per release.

    Parameters
    ----------
    features
        The features, one row for each release.
    shift
        How far each feature moves: one row for each release.
    kind
        The noise: "gaussian", "laplace" or "uniform".
    size
        The size of the noise: its standard deviation σ, scale b or width w.
    step
        The step s to whose multiples releases are rounded.
    error
        How far each true feature and shift may lie from the one given.

    Returns
    -------
    ndarray
        An upper bound on TV for each row.

    Notes
    -----
    Statement. TV ≤ min(1 − Π (1 − ½ Σ_k |q_k − p_k|), √(1 − A²)), A = Π Σ_k √(p_k q_k) over the features, with the
    chances of `quantized_chi_square`; the first is exact for one feature. No larger than without rounding.

    Assumptions. Those of `quantized_chi_square`.

    Direction. An upper bound, rounded up, over all true features and shifts within the error, at most 1; a feature that
    needs more than 128 bins is treated as unrounded.

    References
    ----------
    docs/proofs/quantized.md.
    """
    task = _Task.opened(features, shift, kind, size, step, error)
    unrounded, binned = _unrounded(task.kind, task.longest), task.binned()
    variation = np.minimum(np.minimum(unrounded.variation, binned.variation), 1.0)
    hellinger = np.minimum(np.minimum(unrounded.hellinger, binned.hellinger), 1.0)
    with np.errstate(divide="ignore"):
        coupled = up(-np.expm1(np.sum(np.log1p(-variation), axis=-1)), relative=1e-12)
        together = up(np.sqrt(-np.expm1(2 * np.sum(np.log1p(-hellinger), axis=-1))), relative=1e-12)
    z = np.minimum(task.longest, 1e3)  # beyond, all of them are 1
    whole = {
        "gaussian": lambda: divergences.gaussian_total_variation(up(np.linalg.norm(z, axis=-1), relative=1e-12)),
        "laplace": lambda: divergences.laplace_total_variation(z, scale=1.0),
        "uniform": lambda: divergences.uniform_total_variation(z, width=1.0),
    }[task.kind]()
    least = np.minimum(np.minimum(np.minimum(coupled, together), whole), 1.0)
    return np.where((task.longest == 0).all(axis=-1), 0.0, least)[()]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Divergences:
    """The divergences of each feature by itself, rounded up; `hellinger` is 1 − Σ √(pq)."""

    chi_square: _Array
    variation: _Array
    hellinger: _Array


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """Features modulo the step, and their shifts, in units of the noise's size; each may be off by `slack`."""

    kind: str
    step: float
    place: _Array
    shift: _Array
    slack: _Array

    @staticmethod
    def opened(
        features: ArrayLike, shift: ArrayLike, kind: object, size: object, step: object, error: ArrayLike
    ) -> _Task:
        kind = validate.choice("kind", kind, KINDS, remedy="use gaussian")
        b = validate.number("size", size, above=0, remedy="give the size of the noise: σ, b or w")
        s = validate.number("step", step, above=0, remedy="give the step to which the release is rounded")
        a = np.atleast_1d(validate.array("features", features, remedy="pass the features, one row per release"))
        z = np.atleast_1d(validate.array("shift", shift, remedy="pass the features' shift, one row per release"))
        e = validate.array("error", error, at_least=0, remedy="pass 0, or a number for each row")
        try:
            if a.shape[-1] != z.shape[-1]:
                raise ValueError
            a, z, e = np.broadcast_arrays(a, z, e[..., None])
        except ValueError:
            raise InputError(
                "the shapes of features, shift and error",
                (a.shape, z.shape, e.shape),
                requirement="must match",
                remedy="pass one row per release, and one error per row",
            ) from None
        with np.errstate(over="ignore"):
            place, shift_, slack, step_ = np.fmod(a, s) / b, z / b, up(e / b), s / b  # the remainder is exact
            # What rounding may have done to a bin's edges, seen from the features; windows reach no farther.
            reach = step_ * (_MOST_BINS + 2) + np.abs(shift_)
            slack = np.where((z == 0) & (e == 0), 0.0, slack + 16 * _UNIT * reach)
        if not np.isfinite([step_, *(np.max(np.abs(part), initial=0.0) for part in (shift_, slack))]).all():
            raise InputError("size", b, requirement="must not be that small beside the rest", remedy="scale them alike")
        return _Task(kind=kind, step=step_, place=place, shift=shift_, slack=slack)

    @property
    def longest(self) -> _Array:
        """The greatest shift of each feature that the slack allows."""
        return np.where(self.slack > 0, up(np.abs(self.shift) + self.slack), 0.0)

    def binned(self) -> _Divergences:
        """From the bins' chances; inf, 1 and 1 where there are too many."""
        shape = self.place.shape
        a, z, e = (part.ravel() for part in (self.place, self.shift, self.slack))
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = _window(self.kind, z, e)
            first = np.rint((a + low) / self.step)
            count = np.rint((a + high) / self.step) - first + 1
        found = np.stack([np.full(a.size, np.inf), np.ones(a.size), np.ones(a.size)])
        order = np.argsort(count)
        order = order[count[order] <= _MOST_BINS]
        while order.size:
            bins = int(count[order[0]])
            rows = order[: max(1, _AT_ONCE // bins)]
            rows = rows[count[rows] == bins]
            found[:, rows] = _of_bins(self.kind, self.step, a[rows], z[rows], e[rows], first[rows], bins)
            order = order[rows.size :]
        chi_square, variation, hellinger = found.reshape(3, *shape)
        return _Divergences(chi_square=chi_square, variation=variation, hellinger=hellinger)


def _unrounded(kind: str, z: _Array) -> _Divergences:
    """The divergences of the noise itself, for every feature."""
    short = np.minimum(z, 1e3)  # beyond, the Hellinger distance is 1
    if kind == "gaussian":
        return _Divergences(
            chi_square=divergences.gaussian_chi_square(z),
            variation=divergences.gaussian_total_variation(z),
            hellinger=up(-np.expm1(-up(short**2 / 8, relative=1e-12)), relative=1e-12),
        )
    if kind == "laplace":
        # 1 − (1 + z/2) exp(−z/2); the two nearly cancel for small z, where it is below z²/8.
        loss = np.where(z < 1e-3, short**2 / 8, short / 2 - np.log1p(short / 2) + 1e-12 * short)
        return _Divergences(
            chi_square=divergences.laplace_chi_square(z[..., None], scale=1.0),
            variation=up(-np.expm1(-z / 2), relative=1e-12),
            hellinger=up(-np.expm1(-up(loss, relative=1e-12)), relative=1e-12),
        )
    return _Divergences(chi_square=np.where(z > 0, np.inf, 0.0), variation=z, hellinger=z)


def _window(kind: str, z: _Array, e: _Array) -> tuple[_Array, _Array]:
    """The interval, relative to the features, in which bins are summed one by one."""
    if kind == "gaussian":
        # Beyond, exp(d²)Φ̄(T − 2z) and Φ̄(T) lie below 1e-24.
        far = np.sqrt(2 * (np.abs(z) + e) ** 2 + 112) + 3 * e
        return np.minimum(2 * z - far, -10.5 - e), np.maximum(2 * z + far, 10.5 + e)
    half = 0.0 if kind == "laplace" else 0.5
    return np.minimum(0.0, z) - half - 3 * e, np.maximum(0.0, z) + half + 3 * e


def _of_bins(
    kind: str, step: float, a: _Array, z: _Array, e: _Array, first: _Array, bins: int
) -> tuple[_Array, _Array, _Array]:
    centre = step * (first[:, None] + np.arange(bins))
    p_low, p_high = _chances(kind, np.abs(centre - a[:, None]), e[:, None], step)
    q_low, q_high = _chances(kind, np.abs(centre - (a + z)[:, None]), 2 * e[:, None], step)
    difference = np.maximum(np.maximum(q_high - p_low, p_high - q_low), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        certain = p_low > 1e-290
        chi_square = np.where(certain, difference**2 / p_low, np.where(q_high > 0, np.inf, p_high))
        roots = (difference / (np.sqrt(p_low) + np.sqrt(q_low))) ** 2
    greater = np.maximum(p_high, q_high)
    hellinger = np.fmin(np.where(greater > 1e-290, roots, greater), greater)
    tails = _tails(kind, (step * (first - 0.5) - a, step * (first + bins - 0.5) - a), z, e)
    sums = (chi_square.sum(axis=1), difference.sum(axis=1) / 2, hellinger.sum(axis=1) / 2)
    found = [up(part + tail, relative=1e-11) for part, tail in zip(sums, tails, strict=True)]
    return found[0], found[1], found[2]


def _chances(kind: str, distance: _Array, slack: _Array, step: float) -> tuple[_Array, _Array]:
    """The least and the greatest chance of a bin whose centre is `distance` away; both fall with the distance."""
    least, its_error = _chance(kind, distance + slack, step)
    greatest, error = _chance(kind, np.maximum(distance - slack, 0.0), step)
    return np.maximum(least - its_error, 0.0), greatest + error


def _chance(kind: str, distance: _Array, step: float) -> tuple[_Array, _Array]:
    """The chance of a bin and its error, computed without cancellation."""
    x, y = distance - step / 2, distance + step / 2
    if kind == "gaussian":
        r = math.sqrt(0.5)
        around = x < 0  # the bin in which the centre lies; of all others, the tails are subtracted
        inner, outer = special.erfc(r * np.abs(x)), special.erfc(r * y)
        inner[around], outer[around] = special.erf(r * np.abs(x[around])), special.erf(r * y[around])
        chance = np.where(around, inner + outer, inner - outer) / 2
        return chance, _MASS * np.where(around, chance, (inner + outer) / 2) + 1e-300
    if kind == "laplace":
        with np.errstate(over="ignore"):
            chance = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)) - np.expm1(-y), -np.exp(-x) * math.expm1(-step)) / 2
        return chance, _MASS * chance + 1e-300
    chance = np.maximum(np.minimum(y, 0.5) - np.maximum(x, -0.5), 0.0)
    return chance, 8 * _UNIT * (chance > 0)


def _tails(kind: str, ends: tuple[_Array, _Array], z: _Array, e: _Array) -> tuple[_Array, _Array, _Array]:
    """The most that the bins outside the window add, on both sides together."""
    chi_square, variation, hellinger = np.zeros_like(z), np.zeros_like(z), np.zeros_like(z)
    if kind == "uniform":  # its window holds all of it
        return chi_square, variation, hellinger
    with np.errstate(over="ignore"):
        for away, move in ((-ends[0], -z), (ends[1], z)):  # each side as if it were the right one
            if kind == "laplace":
                # Both densities fall as exp(−x) there: their ratio is one number, exp(move).
                chance = np.exp(-np.maximum(away - e, 0.0)) / 2
                ratio = np.maximum(np.abs(np.expm1(move + e)), np.abs(np.expm1(move - e)))
                root = np.maximum(np.abs(np.expm1((move + e) / 2)), np.abs(np.expm1((move - e) / 2)))
                chi_square += chance * ratio**2
                variation += chance * ratio / 2
                hellinger += chance * root**2 / 2
            else:
                before = special.ndtr(-(away - e))
                after = special.ndtr(-(away - move - 2 * e))
                square, log = (np.abs(z) + e) ** 2, special.log_ndtr(-(away - 2 * move - 3 * e))
                chi_square += np.exp(square + log + 1e-11 * (square - log)) + before
                variation += (before + after) / 2
                hellinger += (before + after) / 2
    return tuple(up(part, relative=1e-9) for part in (chi_square, variation, hellinger))  # type: ignore[return-value]
