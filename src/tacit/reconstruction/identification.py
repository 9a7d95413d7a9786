"""The probability of naming which one of several known inputs was released."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_most, up
from ..theory.divergences import gaussian_total_variation
from ..theory.estimation import gallery_identification
from .noise import Noise, required_gaussian
from .priors import Gallery
from .release import Release, as_array, open_release, type_error
from .repeated import repeated, repeated_theorems
from .unbiased import release_assumptions

_Array = NDArray[np.float64]


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
    releases: int = 1,
) -> Guarantee:
    """Bound the probability with which anyone names the released one of several equally likely candidates.

    Equal candidates count as one, which is correspondingly more likely. So do candidates that a module cannot tell
    apart: equal after rounding to the type of its weights (−0 and 0 are equal), with the same features.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    candidates
        The inputs that the adversary holds, one per row.
    noise
        The noise added to the features: Gaussian, or Gaussian and then rounded.
    draws
        Random releases from which the bound is computed. Each is compared with every candidate: for a million of these,
        2000 draws are enough and take a minute on a few cores.
    failure_probability
        The chance that the result is wrong because of the random draws.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.

    Returns
    -------
    A guarantee; its `detail` has the number of different `candidates` and the success of `guessing`.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    NoTheoremError
        If the noise is not Gaussian.
    """
    features, law = repeated(features, noise, releases)
    gallery = GalleryRelease.opened(features, Gallery(candidates), law, feature_error, naming=True)
    drawn: list[_Array] = []
    computed = gallery_identification(
        gallery.whitened,
        weights=gallery.weights,
        sigma=1.0,
        draws=draws,
        failure_probability=failure_probability,
        seed=seed,
        keep=drawn,
    )
    # Each candidate's release is within this total variation of the computed one, so a guess gains at most this.
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
            *repeated_theorems(noise, releases),
        ),
        assumptions=(
            Assumption(
                text=f"the released input is one of the {len(prior.places)} candidates, each equally likely",
                checked_by="caller",
            ),
            Assumption(text="the pseudo-random draws of the computation behave as independent", checked_by="caller"),
            *release_assumptions(noise, gallery.release.error, releases),
        ),
        failure_probability=failure_probability,
        detail={
            "candidates": len(gallery.whitened),
            "guessing": float(prior.weights.max()),
            "draws": draws,
            "seed": seed,
        },
        evidence=Evidence(
            rule="identification",
            inputs=lambda: {
                "values": drawn[0].tolist(),
                "distance": gallery.distance,
                "failure_probability": failure_probability,
            },
            private=("values", "distance"),
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GalleryRelease:
    """Known candidates, their whitened features, and how far a real release may differ.

    It differs by `distance` in units of the noise, and so by `total_variation`.
    """

    prior: Gallery
    release: Release
    whitened: _Array
    distance: float
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
        """Open a release; for `naming`, inputs that the model cannot tell apart are merged."""
        gaussian = required_gaussian(noise, "bounds over a gallery")
        release = open_release(features, prior.as_given(prior.inputs), feature_error=feature_error, only_these=True)
        clean = release.features(release.inputs)
        whitened = gaussian.whitened(clean)
        moved = release.error * clean.norm(dim=1) / gaussian.size + gaussian.rounding * whitened.norm(dim=1)
        if naming:
            error = max(release.error, type_error(release.seen))
            prior, joined = prior.as_seen(release.seen, as_array(clean), error)
            merged = np.flatnonzero(joined != np.arange(len(joined)))
            if len(merged):  # they count with the features of one
                moved[merged] += (whitened[merged] - whitened[joined[merged]]).norm(dim=1)
                first = np.unique(joined)
                release, whitened = dataclasses.replace(release, inputs=release.inputs[first]), whitened[first]
        distance = float(moved.max()) * (1 + 1e-9)
        return GalleryRelease(
            prior=prior,
            release=release,
            whitened=as_array(whitened),
            distance=distance,
            total_variation=float(gaussian_total_variation(distance)),
        )

    @property
    def weights(self) -> _Array | None:
        """How likely each candidate is; None if all are equally likely."""
        weights = self.prior.weights
        return None if np.all(weights == weights[0]) else weights
