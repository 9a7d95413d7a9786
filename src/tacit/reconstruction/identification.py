"""The chance of naming which one of several known inputs was released."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_most, up
from ..theory.divergences import gaussian_total_variation
from ..theory.estimation import gallery_identification
from .noise import Noise, required_gaussian
from .priors import Gallery
from .release import Release, as_array, open_release, type_error
from .unbiased import release_assumptions

if TYPE_CHECKING:
    pass

_BOUNDED = "root mean squared error of an estimate, on the worse of two inputs"
_Array = NDArray[np.float64]
Box = tuple[float, float]


@at_most
def identification_bound(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    *,
    draws: int = 20_000,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
) -> Guarantee:
    """The greatest probability with which anyone names the released one of the candidates, all equally likely.

    Candidates that are equal are one, as much more likely: to name it is to name the input. So are those that a module
    does not tell apart: equal once rounded to the type of its weights, −0 or 0, with the same features.
    """
    gallery = GalleryRelease.opened(features, Gallery(candidates), noise, feature_error, naming=True)
    computed = gallery_identification(
        gallery.whitened,
        weights=gallery.weights,
        sigma=1.0,
        draws=draws,
        failure_probability=failure_probability,
        seed=seed,
    )
    # Each candidate's release is within this total variation of the computed one: a guess gains no more.
    value = min(1.0, up(computed + gallery.total_variation))
    prior = gallery.prior
    return Guarantee(
        quantity="probability of naming the released input",
        side="at_most",
        value=value,
        adversary=Adversary.PRIOR.scoped(prior.description),
        theorem=(
            "the best guess is the most probable candidate",
            "theory.estimation.gallery_identification",
            "theory.divergences.gaussian_total_variation",
        ),
        assumptions=(
            Assumption(
                text=f"the released input is one of the {len(prior.places)} candidates, each equally likely",
                checked_by="caller",
            ),
            Assumption(text="the pseudo-random draws of the computation behave as independent", checked_by="caller"),
            *release_assumptions(noise, gallery.release.error),
        ),
        failure_probability=failure_probability,
        detail={
            "candidates": len(gallery.whitened),
            "guessing": float(prior.weights.max()),
            "draws": draws,
            "seed": seed,
        },
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GalleryRelease:
    """Known candidates, their whitened features, and how far, in total variation, a true release may be from them."""

    prior: Gallery
    release: Release
    whitened: _Array
    total_variation: float

    @staticmethod
    def opened(
        features: Callable[[Any], Any],
        prior: Gallery,
        noise: Noise,
        feature_error: float | None,
        *,
        naming: bool = False,
    ) -> GalleryRelease:
        """For `naming`, inputs that the model does not tell apart by the numbers it is given are one."""
        gaussian = required_gaussian(noise, "bounds over a gallery")
        release = open_release(features, prior.as_given(prior.inputs), feature_error=feature_error, only_these=True)
        clean = release.features(release.inputs)
        whitened = gaussian.whitened(clean)
        moved = release.error * clean.norm(dim=1) / gaussian.size + gaussian.rounding * whitened.norm(dim=1)
        if naming:
            error = max(release.error, type_error(release.seen))
            prior, joined = prior.as_seen(release.seen, as_array(clean), error)
            moved += (whitened - whitened[joined]).norm(dim=1)  # those that join another are counted with its features
            first = np.unique(joined)
            release, whitened = dataclasses.replace(release, inputs=release.inputs[first]), whitened[first]
        variation = float(gaussian_total_variation(float(moved.max()) * (1 + 1e-9)))
        return GalleryRelease(prior=prior, release=release, whitened=as_array(whitened), total_variation=variation)

    @property
    def weights(self) -> _Array | None:
        """How likely each candidate is; None where all are alike."""
        weights = self.prior.weights
        return None if np.all(weights == weights[0]) else weights
