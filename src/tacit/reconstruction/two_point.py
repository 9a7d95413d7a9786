"""Bounds for every estimator, biased or not: two inputs that the released features hardly tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.deprecation import formerly
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Guarantee
from ..core.rounding import at_least, down
from ..theory.estimation import two_point_bayes_mse, two_point_mse
from .basis import BasisLike, basis_of
from .mode_display import mode_card, mode_histogram
from .noise import Gaussian, Noise, gaussian_of, total_variation_theorems
from .release import Release, as_array, open_release, scales
from .repeated import repeated, repeated_theorems
from .unbiased import mode_error, mode_of_input, release_assumptions, shift_error

if TYPE_CHECKING:
    from ..report import Figure

_BOUNDED = "root mean squared error of an estimate, on the worse of two inputs"
_MOST_STATED = 10_000
"""Modes in a certificate: more of them the checker does not read."""
_Array = NDArray[np.float64]
Box = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoPointBounds(Carded):
    """Lower bounds on the root mean squared error of every estimate, biased or not, for each mode.

    Each holds on the worse of two inputs: the given one, and one whose mode differs by `change`.

    Attributes
    ----------
    rmse
        The bounds, in the shape of the inputs.
    change
        By how much the mode of the second input differs, in the same shape.
    noise
        The noise of the release.
    basis
        The name of the modes.
    feature_error
        The relative error of the features that the bounds allow for.
    releases
        How often an input is released, at most.
    pairs
        For Gaussian noise the change of each mode that is certain, and the distance of the two releases.
    """

    rmse: _Array
    change: _Array
    noise: Noise
    basis: str
    feature_error: float
    releases: int = 1
    pairs: _Array | None = None

    def guarantee_of(self, index: int, mode: tuple[int, ...]) -> Guarantee:
        """Return the bound for one mode of one input.

        Parameters
        ----------
        index
            The number of the input, from 0.
        mode
            One number for each axis of an input, from 0.
        """
        where = mode_of_input(self.rmse, index, mode)
        change = float(self.change[where])
        return Guarantee(
            quantity=f"root mean squared error of an estimate of {self.basis} mode {where[1:]}, on the worse of input "
            f"{where[0]} and one whose mode differs by {change:.6g}",
            side="at_least",
            value=float(self.rmse[where]),
            adversary=Adversary.ANY,
            theorem=two_point_theorem(self.noise, self.releases),
            assumptions=release_assumptions(self.noise, self.feature_error, self.releases),
            failure_probability=self.noise.failure_probability,
            detail={"change": change},
            evidence=self.evidence(where),
        )

    def evidence(self, where: tuple[int, ...] | None = None) -> Evidence | None:
        """Return what a certificate states of one bound or, by default, of the bound that half of all have.

        Parameters
        ----------
        where
            The number of the input, and its mode.
        """
        pairs = self.pairs
        if pairs is not None and where is not None:
            pairs = pairs.reshape(2, -1)[:, [np.ravel_multi_index(where, self.rmse.shape)]]
        return evidence_of(pairs)

    guarantee = formerly("guarantee", guarantee_of)

    def plot(self) -> Figure:
        """Draw a histogram of all bounds."""
        return mode_histogram(
            _BOUNDED,
            self.rmse,
            spread=0.0,
            caption="For any estimate, biased or not, on the worse of an input and one whose mode differs.",
        )

    def _card(self) -> tuple[str, Rows]:
        return mode_card(_BOUNDED, self.rmse, basis=self.basis, noise=self.noise, adversary=Adversary.ANY)


def evidence_of(pairs: _Array | None) -> Evidence | None:
    """Return what a certificate states of `TwoPointBounds.pairs`; nothing where the checker would refuse that many."""
    if pairs is None or pairs[0].size > _MOST_STATED:
        return None
    return Evidence(rule="two points", inputs=lambda: {"modes": pairs.reshape(2, -1).T.tolist()}, private=("modes",))


def two_point_theorem(noise: Noise, releases: int = 1) -> tuple[str, ...]:
    """Return the theorem: Gaussian noise has the exact risk, other noise a bound by its total variation."""
    gaussian, theorem = gaussian_of(noise), ["two-point Bayes risk"]
    if gaussian is not None:
        theorem.append("theory.estimation.two_point_bayes_mse")
    if gaussian is not noise:
        theorem += ["theory.estimation.two_point_mse", *total_variation_theorems(noise)]
    return (*theorem, *repeated_theorems(noise, releases))


@at_least
def two_point_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    box: Box | None = None,
    largest: float | None = None,
    feature_error: float | None = None,
    releases: int = 1,
) -> TwoPointBounds:
    """Bound the error of any estimate of each mode, on the worse of two inputs that differ in this mode.

    For every mode, a line search finds the change that gives the largest bound.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    box
        The least and the greatest entry of a valid input. Changed inputs are clipped to it, so that the bound also
        holds against an adversary who knows the box.
    largest
        The largest change tried. By default ten times the width of the box or, without one, of an input's range.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    features, law = repeated(features, noise, releases)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    limits = checked_box(box, release)
    width = limits[1] - limits[0]
    greatest = [10 * (width if 0 < width < math.inf else scale) for scale in scales(release.inputs).tolist()]
    if largest is not None:
        greatest = [validate.number("largest", largest, above=0, remedy="leave it out")] * len(greatest)
    mse = np.zeros((len(release.inputs), modes.size))
    changes = np.zeros_like(mse)
    pairs = np.zeros((2, *mse.shape))
    for row, point in enumerate(release.inputs):
        base = release.features(point[None])
        for start in range(0, modes.size, 1024):
            stop = min(start + 1024, modes.size)
            vectors = modes.vectors(torch.arange(start, stop, device=point.device))
            for sign in (1.0, -1.0):
                found, change, pair = _best_change(release, point, base, sign * vectors, limits, greatest[row], law)
                better = found > mse[row, start:stop]
                mse[row, start:stop] = np.where(better, found, mse[row, start:stop])
                changes[row, start:stop] = np.where(better, sign * change, changes[row, start:stop])
                pairs[:, row, start:stop] = np.where(better, pair, pairs[:, row, start:stop])
    shape = tuple(release.inputs.shape)
    rmse = np.maximum(down(np.sqrt(mse)), 0.0).reshape(shape)
    return TwoPointBounds(
        rmse=rmse,
        change=changes.reshape(shape),
        noise=noise,
        basis=modes.name,
        feature_error=release.error,
        releases=releases,
        pairs=pairs.reshape(2, *shape) if isinstance(law, Gaussian) else None,
    )


def checked_box(box: object, release: Release) -> Box:
    """Return the least and the greatest valid entry; infinite if there is no box."""
    if box is None:
        return (-math.inf, math.inf)
    remedy = "pass (least, greatest), e.g. (0, 1)"
    if not isinstance(box, tuple) or len(box) != 2:
        raise InputError("box", box, requirement="must be a pair of numbers", remedy=remedy)
    low, high = (validate.number("each end of box", end, finite=False, remedy=remedy) for end in box)
    least, greatest = float(release.inputs.min()), float(release.inputs.max())
    if not low <= least <= greatest <= high:
        raise InputError(
            "box", box, requirement=f"must hold the inputs, which run from {least:g} to {greatest:g}", remedy=remedy
        )
    return (low, high)


def _best_change(
    release: Release, point: Tensor, base: Tensor, directions: Tensor, box: Box, largest: float, noise: Noise
) -> tuple[_Array, _Array, _Array]:
    """Return, for each direction, the certified bound and the change of the mode, by one coarse and two finer searches.

    The third array has two rows: the part of the change that is certain, and the distance of the two releases.

    Points are clipped to the box; whatever input results is a valid second point, and its mode is measured.
    """
    flat = point.reshape(1, -1)
    best, best_change = np.zeros(len(directions)), np.zeros(len(directions))
    pair = np.zeros((2, len(directions)))
    best_size = torch.full((len(directions),), largest, dtype=torch.float64, device=point.device)
    coarse = [-k / 2 for k in range(15)]
    finer, finest = ([k * step for k in (-3, -2, -1, 1, 2, 3)] for step in (0.125, 0.03))
    for exponents in (coarse, finer, finest):
        centre = best_size
        for exponent in exponents:
            size = (centre * 10.0**exponent).clamp(max=largest)
            moved = (flat + size[:, None] * directions).clamp(*box)
            shifts = release.features(moved.reshape(-1, *release.shape)) - base
            error = shift_error(release, shifts, base)
            change = as_array(((moved - flat) * directions).sum(dim=1))
            lost = mode_error(moved - flat)
            certain = np.maximum(change - lost, 0.0)
            gaussian = gaussian_of(noise)
            found, apart = np.zeros(len(certain)), np.full(len(certain), math.inf)
            if gaussian is not None:
                apart = gaussian.distance(shifts, error)
                found = two_point_bayes_mse(certain, distance=apart)
            if gaussian is not noise:
                variation = noise.total_variation(base, shifts, error)
                found = np.maximum(found, two_point_mse(certain, total_variation=variation))
            better = found > best
            best, best_change = np.where(better, found, best), np.where(better, change, best_change)
            pair = np.where(better, [certain, apart], pair)
            best_size = torch.where(torch.as_tensor(better, device=size.device), size, best_size)
    return best, best_change, pair
