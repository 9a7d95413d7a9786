"""The plug-ins: what v, mutual information and total variation are on the table itself, rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..core.errors import InputError
from ..core.rounding import up
from ..theory.certificates import binning_root, smoothing_variation
from ..theory.confidence import bounded_mean_upper
from .cells import FRACTION_BITS, STEPS, unpacked
from .tally import Tally

_Masses = tuple[NDArray[np.float64], NDArray[np.float64]]

_REACH = 9  # standard deviations of the noise; beyond lies less than 3e-19 of it
_MOST_CELLS = 2**25
_MOST_PAIRS = 4 * 10**8  # of draws and rows, by Monte Carlo: a few seconds
_MOST_DRAWS, _FEWEST_DRAWS, _AT_ONCE = 40_000, 1_000, 128
ROUNDING = 1e-4
"""How far a column that holds noise may be rounded, as a share of the noise with which it is counted."""

_ROUNDING = {1: 1e-11, 2: 1e-8, 3: 1e-8}
"""Absolute rounding error of all sums over smoothed cells, by the number of coordinates; see the proofs."""


@dataclass(frozen=True, kw_only=True)
class PlugIns:
    """Upper bounds on the plug-ins, and the number of right guesses of the best rule where it is a whole number."""

    squared: float
    information: float
    variation: float
    correct: int | None = None


def discrete(tally: Tally, *, paired: bool) -> PlugIns:
    """Plug-ins of the counts themselves."""
    positive, negative = tally.counts()
    return _of_masses(_masses(positive, negative, tally, paired), correct=int(np.maximum(positive, negative).sum()))


def monotone(tally: Tally, *, paired: bool) -> PlugIns:
    """The largest plug-ins of any posterior that only grows, or only falls, with the output."""
    positive, negative = tally.counts()
    rising = _rising(*_masses(positive, negative, tally, paired), positive, negative)
    turned = _masses(positive[::-1], negative[::-1], tally, paired)
    falling = _rising(*turned, positive[::-1], negative[::-1])
    return PlugIns(
        squared=max(rising.squared, falling.squared),
        information=max(rising.information, falling.information),
        variation=max(rising.variation, falling.variation),
        correct=max(rising.correct or 0, falling.correct or 0),
    )


def smoothed(tally: Tally, *, paired: bool) -> PlugIns:
    """Plug-ins of the outputs as released, with Gaussian noise; the error of the grid is added."""
    per_noise, rounding = STEPS[tally.columns], _ROUNDING[tally.columns]
    rough = [_of_masses(part, correct=None) for part in _smoothed_masses(tally, paired)]
    # Every coordinate was first moved by at most 2**−bits of a cell.
    moved = 2.0 ** -FRACTION_BITS[tally.columns] / per_noise * math.sqrt(tally.columns)
    root = binning_root(1.0, noise=per_noise, dimensions=tally.columns)

    def whole(sizes: list[float], error: float) -> float:
        return up((math.sqrt(math.fsum(sizes) + rounding) + error) ** 2, relative=1e-13)

    return PlugIns(
        squared=min(1.0, whole([part.squared for part in rough], math.sqrt(2) * root + moved)),
        information=min(
            up(math.log(2)), whole([part.information for part in rough], math.sqrt(2 * math.log(2)) * root + moved)
        ),
        variation=min(1.0, up(math.fsum(part.variation for part in rough) + rounding + root + moved, relative=1e-13)),
    )


def draws_for(points: int) -> int:
    """How many draws `sampled` takes for as many different outputs."""
    return min(_MOST_DRAWS, _MOST_PAIRS // points)


def sampled(tally: Tally, *, paired: bool, failure_probability: float, seed: int) -> PlugIns:
    """The same for more coordinates than fit on a grid, by Monte Carlo with upper confidence limits."""
    positive, negative = tally.counts()
    masses = np.stack(_masses(positive, negative, tally, paired), axis=1)
    points = _in_deviations(tally.points(), float(tally.noise or 1.0))
    draws = draws_for(len(points))
    rng = np.random.default_rng(seed)
    share = masses.sum(axis=1)
    chosen = rng.choice(len(points), size=draws, p=share / share.sum())
    released = points[chosen] + rng.standard_normal((draws, points.shape[1]))
    with np.errstate(over="ignore"):
        reach = math.sqrt(max(float((rows**2).sum(axis=1).max()) for rows in (points, released)))
    # What rounding may do to the logarithm of a density ratio, and so to a posterior.
    error = float(np.finfo(float).eps) * (2 * (points.shape[1] + 8) * reach**2 + 2 * len(points))
    if draws < _FEWEST_DRAWS or not error <= 1e-4:
        raise InputError(
            "output",
            f"{len(points)} different rows, up to {reach:.3g} standard deviations of the noise from their mean",
            requirement=f"must be at most {_MOST_PAIRS // _FEWEST_DRAWS} different rows, none beyond 1e5 deviations",
            remedy="certify a random part of the rows, release at most 3 coordinates, or add more noise",
        )
    bias = np.concatenate(
        [_posterior(released[at : at + _AT_ONCE], points, masses) for at in range(0, draws, _AT_ONCE)]
    )
    bias = np.minimum(1.0, np.abs(bias) + error)
    nats = (special.xlog1py(1 + bias, bias) + special.xlogy(1 - bias, 1 - bias)) / 2

    def limit(values: NDArray[np.float64]) -> float:
        mean = min(1.0, up(float(values.mean()) + 1e-12))
        return bounded_mean_upper(mean, count=draws, failure_probability=failure_probability / 3)

    return PlugIns(
        squared=limit(bias**2),
        information=min(up(math.log(2)), up(limit(np.minimum(1.0, nats / math.log(2))) * math.log(2), relative=1e-14)),
        variation=limit(bias),
    )


def _in_deviations(points: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Points in standard deviations of the noise from their mean; those that overflow become infinite.

    Differences are taken before dividing: far from 0, division could round different points to the same one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (points - points[0]) / noise
        scaled -= scaled.mean(axis=0)
    return np.where(np.isnan(scaled), np.inf, scaled)


def _posterior(
    released: NDArray[np.float64], points: NDArray[np.float64], masses: NDArray[np.float64]
) -> NDArray[np.float64]:
    """E[S | release] under the table's own kernel estimate."""
    log = released @ points.T
    log -= (points**2).sum(axis=1) / 2  # the rest of the distance is common to all points
    log -= log.max(axis=1, keepdims=True)
    one, zero = (np.exp(log, out=log) @ masses).T
    found: NDArray[np.float64] = (one - zero) / (one + zero)
    return found


def hockey_sticks(tally: Tally, ratios: Iterable[float]) -> list[tuple[float, float]]:
    """Σ max(0, P₁ − k P₀) and the same with the classes exchanged, for each ratio k."""
    errors = []
    if tally.noise is None:
        parts = [_masses(*tally.counts(), tally, paired=False)]
    else:
        per_noise = STEPS[tally.columns]
        parts = _smoothed_masses(tally, paired=False)
        moved = 2.0 ** -FRACTION_BITS[tally.columns] / per_noise * math.sqrt(tally.columns)
        root = binning_root(1.0, noise=per_noise, dimensions=tally.columns)
        errors.append(root / 2 + moved + _ROUNDING[tally.columns])
        if tally.noise_added is not None:
            hidden = smoothing_variation(tally.noise, noise=tally.noise_added, dimensions=tally.columns)
            errors.append((hidden + ROUNDING * math.sqrt(tally.columns)) / 2)

    def stick(ratio: float, first: int, second: int) -> float:
        total = math.fsum(2 * float(np.maximum(0.0, part[first] - ratio * part[second]).sum()) for part in parts)
        error = sum((1 + ratio) * error for error in errors)
        return min(1.0, up(total + error + 1e-15 * ratio, relative=1e-12))

    return [(stick(ratio, 0, 1), stick(ratio, 1, 0)) for ratio in ratios]


def _masses(positive: NDArray[np.int64], negative: NDArray[np.int64], tally: Tally, paired: bool) -> _Masses:
    rows = sum(tally.rows)
    unit_one = 1 / rows if paired else 0.5 / tally.positives
    unit_zero = 1 / rows if paired else 0.5 / tally.negatives
    return positive.astype(np.float64) * unit_one, negative.astype(np.float64) * unit_zero


def _of_masses(masses: _Masses, *, correct: int | None) -> PlugIns:
    one, zero = masses
    total = one + zero
    seen = total > 0
    one, zero, total = one[seen], zero[seen], total[seen]
    bias = np.abs(one - zero) / total
    # ι loses digits to cancellation where the bias is small: a series there, as in coin_information.
    series = bias**2 * (0.5 + bias**2 / 12) + bias**6 / 29
    logs = (special.xlog1py(1 + bias, bias) + special.xlogy(1 - bias, 1 - bias)) / 2 + 1e-15
    nats = np.where(bias < 1e-3, series, logs)
    # Equal masses cancel in the bias up to a unit in the last place of their sum.
    return PlugIns(
        squared=min(1.0, up(float((total * bias**2).sum()) + 1e-15, relative=1e-12)),
        information=min(up(math.log(2)), up(float((total * nats).sum()) + 1e-15, relative=1e-12)),
        variation=min(1.0, up(float((total * bias).sum()) + 1e-15, relative=1e-12)),
        correct=correct,
    )


def _rising(
    one: NDArray[np.float64], zero: NDArray[np.float64], positive: NDArray[np.int64], negative: NDArray[np.int64]
) -> PlugIns:
    """Plug-ins for posteriors that grow with the output; each fit's distance from the optimum is bounded and added."""
    from scipy import optimize

    total = one + zero
    fit = optimize.isotonic_regression((one - zero) / total, weights=total)
    starts = fit.blocks[:-1]
    blocks = _of_masses((np.add.reduceat(one, starts), np.add.reduceat(zero, starts)), correct=None)
    bias = np.clip(np.repeat(fit.x[starts], np.diff(fit.blocks)), -1.0, 1.0)
    # A concave gain lies below its tangent at the fit; the tangent's maximum over monotone rules is at a threshold.
    slope = 2 * ((one - zero) - bias * total)
    squared = blocks.squared + max(0.0, _best_threshold(slope) - float((slope * bias).sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(one > 0, one / (1 + bias), 0.0) - np.where(zero > 0, zero / (1 - bias), 0.0)
    information = blocks.information + max(0.0, _best_threshold(slope) - float((slope * bias).sum()))
    rounding = 4 * (len(total) + 8) * float(np.finfo(float).eps)
    gain = np.concatenate([[0], np.cumsum(negative - positive)])
    # Above the threshold the guess is positive, below it negative.
    correct = int(positive.sum() + gain.max())
    return PlugIns(
        squared=min(1.0, up(squared + rounding)),
        information=min(up(math.log(2)), up(information + rounding)),
        variation=min(1.0, up(_best_threshold(one - zero) + rounding)),
        correct=correct,
    )


def _best_threshold(gain: NDArray[np.float64]) -> float:
    """The largest Σ gain·h over rules h that jump from −1 to 1 at most once."""
    below = np.concatenate([[0.0], np.cumsum(gain)])
    return float(below[-1] - 2 * below.min())


def _smoothed_masses(tally: Tally, paired: bool) -> list[_Masses]:
    """Both classes' masses after the lattice channel, from which the release follows; in parts that do not overlap."""
    per_noise = STEPS[tally.columns]
    keys, positive, negative = tally.cells()
    one, zero = _masses(positive, negative, tally, paired)
    unit = 2.0 ** -(FRACTION_BITS[tally.columns] * tally.columns)
    one, zero = one * unit, zero * unit
    reach = _REACH * per_noise
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-(offsets**2) / (2 * (per_noise**2 - 2.25)))
    kernel /= kernel.sum()
    if tally.columns == 1:
        return _smoothed_line(keys, one, zero, kernel)
    places = unpacked(keys, tally.columns)
    low = places.min(axis=0) - reach
    shape = tuple(int(size) for size in places.max(axis=0) - low + 1 + reach)
    _enough_room(math.prod(shape))
    both = []
    for mass in (one, zero):
        dense = np.zeros(shape)
        dense[tuple((places - low).T)] = mass
        both.append(_blurred(dense, kernel).ravel())
    return [(both[0], both[1])]


def _blurred(dense: NDArray[np.float64], kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convolve with the kernel along every axis, by Fourier transform; the margins keep it from wrapping around."""
    from scipy import fft

    shape = [fft.next_fast_len(size, real=True) for size in dense.shape]
    spectrum = fft.rfftn(dense, shape)
    for axis, size in enumerate(shape):
        around = np.zeros(size)
        around[np.arange(len(kernel)) - len(kernel) // 2] = kernel
        # The kernel is symmetric: its transform is real.
        factor = (fft.rfft if axis == len(shape) - 1 else fft.fft)(around).real
        spectrum *= factor.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    whole: NDArray[np.float64] = fft.irfftn(spectrum, shape)
    return np.maximum(0.0, whole[tuple(slice(size) for size in dense.shape)])


def _smoothed_line(
    keys: NDArray[np.int64], one: NDArray[np.float64], zero: NDArray[np.float64], kernel: NDArray[np.float64]
) -> list[_Masses]:
    breaks = np.flatnonzero(np.diff(keys) > len(kernel)) + 1
    parts = np.split(np.arange(len(keys)), breaks)
    _enough_room(sum(int(keys[part[-1]] - keys[part[0]]) + len(kernel) for part in parts))
    smooth = []
    for part in parts:
        places = keys[part] - keys[part[0]]
        both = []
        for mass in (one, zero):
            dense = np.zeros(int(places[-1]) + 1)
            dense[places] = mass[part]
            both.append(np.convolve(dense, kernel))
        smooth.append((both[0], both[1]))
    return smooth


def _enough_room(cells: int) -> None:
    if cells > _MOST_CELLS:
        raise InputError(
            "output",
            f"a range of {cells:.2g} grid cells",
            requirement=f"must span at most {_MOST_CELLS:.2g} cells of the grid that its noise needs",
            remedy="release fewer coordinates, add more noise, or cut the output off before release",
        )
