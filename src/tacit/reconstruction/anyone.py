"""Bounds for every estimator, biased or not, and for naming one of several known inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import checked
from ..errors import InputError
from ..guarantee import Adversary, Assumption, Guarantee
from ..numerics import down
from ..theory.estimation import gallery_identification, gallery_mse, two_point_bayes_mse, two_point_mse
from .basis import ROUNDING, BasisLike, basis_of
from .noise import Gaussian, Noise, required_gaussian
from .quotient import UNIT
from .release import FEATURE_ERROR, Release, as_array, opened
from .unbiased import release_assumptions

_Array = NDArray[np.float64]
Box = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoPointBounds:
    """Lower bounds on the root mean squared error of every estimate, biased or not, mode by mode.

    Each holds on the worse of two inputs: the given one, and one whose mode differs by `change`. Both arrays have the
    shape of the inputs.
    """

    rmse: _Array
    change: _Array
    noise: Noise
    basis: str

    def guarantee(self, index: int, mode: tuple[int, ...]) -> Guarantee:
        """The bound for one mode of one input, as a statement."""
        change = float(self.change[(index, *mode)])
        return Guarantee(
            quantity=f"root mean squared error of an estimate of {self.basis} mode {mode}, on the worse of input "
            f"{index} and one whose mode differs by {change:.6g}",
            side="at_least",
            value=float(self.rmse[(index, *mode)]),
            adversary=Adversary.ANY,
            theorem="two-point Bayes risk: theory.estimation",
            assumptions=release_assumptions(self.noise),
            detail={"change": change},
        )


def two_point_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "dct",
    box: Box | None = None,
    largest: float = 10.0,
) -> TwoPointBounds:
    """For every mode, the change of that mode alone that serves best, found by a line search up to `largest`.

    `box` gives the least and the greatest value of a valid input's entries: changed inputs are cut off there, so that
    the bound holds for an adversary who knows the box.
    """
    release = opened(features, inputs)
    modes = basis_of(basis, release.shape, release.inputs.device)
    largest = checked.number("largest", largest, above=0, remedy="use the greatest change that makes sense")
    limits = checked_box(box, release)
    mse = np.zeros((len(release.inputs), modes.size))
    changes = np.zeros_like(mse)
    for row, point in enumerate(release.inputs):
        base = release.features(point[None])
        for start in range(0, modes.size, 1024):
            stop = min(start + 1024, modes.size)
            vectors = modes.vectors(torch.arange(start, stop, device=point.device))
            for sign in (1.0, -1.0):
                found, change = _best_change(release, point, base, sign * vectors, limits, largest, noise)
                better = found > mse[row, start:stop]
                mse[row, start:stop] = np.where(better, found, mse[row, start:stop])
                changes[row, start:stop] = np.where(better, sign * change, changes[row, start:stop])
    shape = tuple(release.inputs.shape)
    rmse = np.maximum(down(np.sqrt(mse)), 0.0).reshape(shape)
    return TwoPointBounds(rmse=rmse, change=changes.reshape(shape), noise=noise, basis=modes.name)


def checked_box(box: object, release: Release) -> Box:
    """The least and the greatest value of a valid entry; no limits where none were given."""
    if box is None:
        return (-math.inf, math.inf)
    remedy = "pass (least, greatest), e.g. (0, 1)"
    if not isinstance(box, tuple) or len(box) != 2:
        raise InputError("box", box, requirement="must be a pair of numbers", remedy=remedy)
    low, high = (checked.number("each end of box", end, finite=False, remedy=remedy) for end in box)
    least, greatest = float(release.inputs.min()), float(release.inputs.max())
    if not low <= least <= greatest <= high:
        raise InputError(
            "box", box, requirement=f"must hold the inputs, which run from {least:g} to {greatest:g}", remedy=remedy
        )
    return (low, high)


def _best_change(
    release: Release, point: Tensor, base: Tensor, directions: Tensor, box: Box, largest: float, noise: Noise
) -> tuple[_Array, _Array]:
    """The certified bound and the change of the mode, for each direction: a geometric search, then two finer ones.

    What leaves the box is cut off; whatever input results is a valid second point, and its mode is measured.
    """
    flat = point.reshape(1, -1)
    best, best_change = np.zeros(len(directions)), np.zeros(len(directions))
    best_size = torch.full((len(directions),), largest, dtype=torch.float64, device=point.device)
    coarse = [-k / 2 for k in range(15)]
    finer, finest = ([k * step for k in (-3, -2, -1, 1, 2, 3)] for step in (0.125, 0.03))
    for exponents in (coarse, finer, finest):
        centre = best_size
        for exponent in exponents:
            size = (centre * 10.0**exponent).clamp(max=largest)
            moved = (flat + size[:, None] * directions).clamp(*box)
            shifts = release.features(moved.reshape(-1, *release.shape)) - base
            error = 2 * FEATURE_ERROR * (base.norm(dim=1) + shifts.norm(dim=1))
            change = as_array(((moved - flat) * directions).sum(dim=1))
            lost = (ROUNDING + 2 * flat.shape[1] * UNIT) * as_array((moved - flat).norm(dim=1))
            certain = np.maximum(change - lost, 0.0)
            if isinstance(noise, Gaussian):
                found = two_point_bayes_mse(certain, distance=noise.distance(shifts, error))
            else:
                found = two_point_mse(certain, total_variation=noise.total_variation(shifts, error))
            better = found > best
            best, best_change = np.where(better, found, best), np.where(better, change, best_change)
            best_size = torch.where(torch.as_tensor(better, device=size.device), size, best_size)
    return best, best_change


def identification_bound(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    *,
    draws: int = 20_000,
    failure_probability: float = 0.001,
    seed: int = 0,
) -> Guarantee:
    """The greatest probability with which anyone names the released one of the candidates, all equally likely."""
    release, whitened = _whitened_gallery(features, candidates, noise)
    value = gallery_identification(whitened, sigma=1.0, draws=draws, failure_probability=failure_probability, seed=seed)
    return Guarantee(
        quantity="probability of naming the released input",
        side="at_most",
        value=value,
        adversary=_gallery_adversary(release),
        theorem="the best guess is the most probable candidate: theory.estimation.gallery_identification",
        assumptions=_gallery_assumptions(release, noise),
        failure_probability=failure_probability,
        detail={"candidates": len(release.inputs), "draws": draws, "seed": seed},
    )


def gallery_bound(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    *,
    draws: int = 20_000,
    failure_probability: float = 0.001,
    seed: int = 0,
) -> Guarantee:
    """The share of the candidates' variance that remains after the release, at least, whoever rebuilds the input.

    The prior is the gallery itself: the released input is one of the candidates, all equally likely.
    """
    release, whitened = _whitened_gallery(features, candidates, noise)
    inputs = as_array(release.inputs).reshape(len(whitened), -1)
    error = gallery_mse(whitened, inputs, sigma=1.0, draws=draws, failure_probability=failure_probability, seed=seed)
    prior = float(np.mean(np.var(inputs, axis=0))) * (1 + 1e-12)
    if not prior > 0:
        raise InputError(
            "candidates", prior, requirement="must differ from one another", remedy="pass different inputs"
        )
    return Guarantee(
        quantity="mean squared error of the rebuilt input, as a share of the candidates' variance",
        side="at_least",
        value=max(0.0, error / prior * (1 - 1e-12)),
        adversary=_gallery_adversary(release),
        theorem="the best estimate is the posterior mean: theory.estimation.gallery_mse",
        assumptions=_gallery_assumptions(release, noise),
        failure_probability=failure_probability,
        detail={"candidates": len(inputs), "draws": draws, "seed": seed, "variance": prior},
    )


def _whitened_gallery(features: Callable[[Any], Any], candidates: object, noise: Noise) -> tuple[Release, _Array]:
    gaussian = required_gaussian(noise, "bounds over a gallery")
    release = opened(features, candidates)
    # What the door grants the features and their whitening is paid for with a little less noise.
    allowance = 1 + gaussian.rounding + 4 * FEATURE_ERROR
    return release, as_array(gaussian.whitened(release.features(release.inputs))) * allowance


def _gallery_adversary(release: Release) -> Adversary:
    return Adversary.PRIOR.scoped(f"{len(release.inputs)} equally likely inputs that the adversary holds")


def _gallery_assumptions(release: Release, noise: Noise) -> tuple[Assumption, ...]:
    return (
        Assumption(
            text=f"the released input is one of the {len(release.inputs)} candidates, each equally likely",
            checked_by="caller",
        ),
        Assumption(text="the pseudo-random draws of the computation behave as independent", checked_by="caller"),
        *release_assumptions(noise),
    )
