"""Twins: valid inputs far from the given ones whose releases the noise hides. They illustrate a bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.deprecation import formerly
from ..core.display import Carded, Rows
from ..core.guarantee import Adversary, Guarantee
from ..core.rounding import at_most
from ..core.wording import safe_text
from ..theory.divergences import gaussian_total_variation
from ..theory.estimation import two_point_success
from .noise import Gaussian, Noise, required_gaussian
from .release import Release, as_array, derivatives, open_release
from .repeated import repeated, repeated_theorems
from .two_point import Box, checked_box
from .unbiased import release_assumptions, shift_error

_Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Twins(Carded):
    """For each input, a different valid input whose release looks the same under the noise.

    Attributes
    ----------
    inputs
        The twins.
    difference
        The root mean square change of an entry, for each input.
    distance
        An upper limit on the distance between the features of input and twin, in units of the noise.
    noise
        The noise of the release.
    feature_error
        The relative error of the features that the distances allow for.
    releases
        How often an input is released, at most.
    """

    inputs: _Array
    difference: _Array
    distance: _Array
    noise: Noise
    feature_error: float
    releases: int = 1

    def guarantee_of(self, index: int) -> Guarantee:
        """Return how well anyone can tell an input from its twin.

        Parameters
        ----------
        index
            The number of the input, from 0.
        """
        (index,) = validate.place("index", index, self.distance.shape, remedy="count the inputs from 0")
        return Guarantee(
            quantity=f"probability of telling input {index} from its twin",
            side="at_most",
            value=float(two_point_success(gaussian_total_variation(self.distance[index]))),
            adversary=Adversary.PRIOR.scoped("the input and its twin, equally likely"),
            theorem=(
                "Neyman–Pearson",
                "theory.estimation.two_point_success",
                "theory.divergences.gaussian_total_variation",
                *repeated_theorems(self.noise, self.releases),
            ),
            assumptions=release_assumptions(self.noise, self.feature_error, self.releases),
            detail={"distance": float(self.distance[index])},
        )

    guarantee = formerly("guarantee", guarantee_of)

    def _card(self) -> tuple[str, Rows]:
        likely = max(self.guarantee_of(index).value for index in range(len(self.inputs)))
        least, greatest = (f"{float(found):.3g}" for found in (self.difference.min(), self.difference.max()))
        return (
            f"Twins of {len(self.inputs)} inputs: valid inputs whose releases look alike",
            [
                ("anyone tells an input from its twin", f"with probability at most {safe_text(likely, toward='up')}"),
                ("root mean square change of an entry", f"{least} to {greatest}"),
                ("noise", repr(self.noise)),
            ],
        )


@at_most
def twins(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    distance: float = 1.0,
    box: Box | None = None,
    steps: int = 300,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Twins:
    """Search for the farthest valid inputs whose features are within `distance` of each input's; Gaussian noise only.

    What a gradient search finds is moved back along the straight line to the input until its float64 features are close
    enough. So the distance is certain; that no valid input is farther away is not.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    distance
        The largest distance between features, in units of the noise.
    box
        The least and the greatest entry of a valid input.
    steps
        Steps of the gradient search.
    seed
        For the random draws.
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
    gaussian = required_gaussian(law, "twins")
    release = open_release(features, inputs, feature_error=feature_error)
    distance = validate.number("distance", distance, above=0, remedy="use 1.0")
    steps = validate.whole("steps", steps, at_least=1, remedy="use 300")
    limits = checked_box(box, release)
    generator = torch.Generator().manual_seed(validate.whole("seed", seed, at_least=0, remedy="use 0"))
    base = gaussian.whitened(release.features(release.inputs))
    finite = math.isfinite(limits[1] - limits[0])
    spread = (limits[1] - limits[0]) / 4 if finite else float(release.inputs.std(correction=0)) or 1.0
    start = torch.randn(release.inputs.shape, generator=generator, dtype=torch.float64).to(release.inputs)
    change = (0.1 * spread * start).requires_grad_()
    optimiser = torch.optim.Adam([change], lr=0.05 * spread)
    with derivatives():
        for _ in range(steps):
            moved = (release.inputs + change).clamp(*limits)
            far = (moved - release.inputs).flatten(1).norm(dim=1)
            near = (gaussian.whitened(release.function(moved).flatten(1)) - base).norm(dim=1) / distance
            # Each input by itself: outside the distance, move closer; inside, move away.
            loss = torch.where(near > 0.9, near.clamp(min=1e-12).log(), -far.clamp(min=1e-12).log()).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    moved = (release.inputs + change.detach()).clamp(*limits)
    moved, found = _cut_back(release, moved, gaussian, distance)
    difference = (moved - release.inputs).flatten(1).square().mean(dim=1).sqrt()
    return Twins(
        inputs=as_array(moved),
        difference=as_array(difference),
        distance=found,
        noise=noise,
        feature_error=release.error,
        releases=releases,
    )


def _cut_back(release: Release, moved: Tensor, noise: Gaussian, distance: float) -> tuple[Tensor, _Array]:
    """Return the farthest of 64 points on each line from the input to `moved` with features that are close enough."""
    best, found = release.inputs.clone(), np.zeros(len(moved))
    base = release.features(release.inputs)
    for share in torch.linspace(0, 1, 65).tolist()[1:]:
        point = release.inputs + share * (moved - release.inputs)
        shifts = release.features(point) - base
        certain = noise.distance(shifts, shift_error(release, shifts, base))
        good = certain <= distance
        rows = torch.as_tensor(good, device=best.device)
        best[rows] = point[rows]
        found = np.where(good, certain, found)
    return best, found
