"""Real adversaries, to show how tight the bounds are. Each holds the gallery that the bound's prior names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import checked
from ..guarantee import Attack, Guarantee
from ..theory.confidence import binomial_lower, binomial_upper, bounded_mean_lower, bounded_mean_upper
from .noise import Noise
from .release import as_array, opened

_CONFIDENCE = "use 0.999"


def nearest_candidate(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    guarantee: Guarantee,
    *,
    draws: int = 20_000,
    confidence: float = 0.999,
    seed: int = 0,
) -> Attack:
    """Names the candidate whose features lie closest to a noisy release; against `identification_bound`."""
    release = opened(features, candidates)
    truth, noisy, clean = _draws(release.features(release.inputs), noise, draws, seed)
    clean, noisy = noise.whitened(clean), noise.whitened(noisy)
    hits = 0
    for first in range(0, len(noisy), 1024):
        guesses = (clean.square().sum(dim=1) - 2 * noisy[first : first + 1024] @ clean.T).argmin(dim=1)
        hits += int((guesses == truth[first : first + 1024]).sum())
    unsure = 1 - checked.probability("confidence", confidence, remedy=_CONFIDENCE)
    return Attack(
        quantity=guarantee.quantity,
        value=hits / draws,
        low=binomial_lower(hits, trials=draws, failure_probability=unsure / 2),
        high=binomial_upper(hits, trials=draws, failure_probability=unsure / 2),
        confidence=confidence,
        adversary=guarantee.adversary,
        method="nearest candidate in feature space",
    )


def linear_decoder(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    guarantee: Guarantee,
    *,
    draws: int = 20_000,
    confidence: float = 0.999,
    seed: int = 0,
) -> Attack:
    """Rebuilds the input by the best linear map from noisy features, cut off at the inputs' range.

    Fitted on the gallery itself and tried on fresh releases of it; against `gallery_bound`.
    """
    release = opened(features, candidates)
    clean = release.features(release.inputs)
    inputs = release.inputs.reshape(len(clean), -1)
    centre, mean = clean.mean(dim=0), inputs.mean(dim=0)
    spread = clean - centre
    # E‖noise‖² per feature is estimated from draws, so that any noise will do.
    generator = torch.Generator().manual_seed(checked.whole("seed", seed, at_least=0, remedy="use 0"))
    sampled = noise.sample(torch.zeros(4096, clean.shape[1], dtype=torch.float64), generator).to(clean.device)
    covariance = spread.T @ spread / len(clean) + torch.diag(sampled.square().mean(dim=0))
    decoder = torch.linalg.solve(covariance, spread.T @ (inputs - mean) / len(clean))
    truth, noisy, _ = _draws(clean, noise, draws, seed + 1)
    low, high = inputs.amin(dim=0), inputs.amax(dim=0)
    rebuilt = torch.clamp((noisy - centre) @ decoder + mean, low, high)
    # Errors lie between 0 and the squared range of the inputs, averaged over their entries.
    most = float((high - low).square().mean())
    shares = as_array((rebuilt - inputs[truth]).square().mean(dim=1)) / most
    variance = float(np.mean(np.var(as_array(inputs), axis=0)))
    unsure = 1 - checked.probability("confidence", confidence, remedy=_CONFIDENCE)
    mean_share = float(min(shares.mean(), 1.0))
    return Attack(
        quantity=guarantee.quantity,
        value=mean_share * most / variance,
        low=bounded_mean_lower(mean_share, count=draws, failure_probability=unsure / 2) * most / variance,
        high=bounded_mean_upper(mean_share, count=draws, failure_probability=unsure / 2) * most / variance,
        confidence=confidence,
        adversary=guarantee.adversary,
        method="best linear decoder fitted on the candidates",
    )


def _draws(clean: Tensor, noise: Noise, draws: object, seed: object) -> tuple[Tensor, Tensor, Tensor]:
    """Which candidate, its noisy release, and all clean features."""
    count = checked.whole("draws", draws, at_least=1, remedy="use 20000")
    generator = torch.Generator().manual_seed(checked.whole("seed", seed, at_least=0, remedy="use 0"))
    truth = torch.randint(len(clean), (count,), generator=generator).to(clean.device)
    chosen = clean[truth]
    return truth, chosen + noise.sample(chosen.cpu(), generator).to(clean.device), clean
