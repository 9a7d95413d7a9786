"""Does a prior hold for real inputs? The release is attacked on these, too.

A bound under a prior is about draws from it, and real inputs may be easier to rebuild. Where an attack leaves less of
them than the bound allows, the prior is refuted: the bound is true, and protects nobody.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import NoTheoremError
from ..core.guarantee import Assumption, Attack, Guarantee
from .attacks import learned_decoder, linear_decoder, posterior_mean
from .latent_priors import LatentPrior
from .noise import Noise
from .posterior_attacks import posterior_attack
from .priors import Gallery, Mixture

_Array = NDArray[np.float64]

LEAST_TRIED = 30
"""The fewest inputs on which an attack's error is worth reporting."""

_KNOWN, _MOST_ENTRIES = 20_000, 40_000_000
"""Inputs to which decoders are fitted, at most; and their entries, all together."""
_TRAINED = 100_000
"""Inputs that a network is shown in training, each as often as it fits."""
_TRIES, _CHAINS, _LEAST_STEPS = 500, 2, 60
"""Inputs that chains rebuild, chains for each, and the fewest steps of these."""

ByChains = Callable[..., Attack | None]
"""As `posterior_attack`."""

REFUTED, IN_DOUBT, NOT_REFUTED, NOT_CHECKED = "refuted", "in doubt", "not refuted", "not checked"


def verdict_of(guarantee: Guarantee, on_data: Attack | None) -> str:
    """Return whether an attack on real inputs refutes the prior of a guarantee: it does what the bound rules out."""
    if on_data is None:
        return NOT_CHECKED
    value = guarantee.value
    if on_data.high < value if guarantee.side == "at_least" else on_data.low > value:
        return REFUTED
    beyond = on_data.value < value if guarantee.side == "at_least" else on_data.value > value
    return IN_DOUBT if beyond else NOT_REFUTED


def judged(guarantee: Guarantee, on_data: Attack | None) -> Guarantee:
    """Return a guarantee under a prior that says whether real inputs refute that prior.

    The verdict stands in `detail`. Unless real inputs were tried and do not refute the prior, the first assumption says
    that the guarantee is not one about them.
    """
    verdict = verdict_of(guarantee, on_data)
    limits = {
        REFUTED: "this guarantee is used for draws from the prior only, and not for the real inputs: that these are "
        "draws from it is refuted",
        IN_DOUBT: "this guarantee is used for draws from the prior only, and not for the real inputs: that these are "
        "draws from it is in doubt",
        NOT_CHECKED: "real inputs are no easier to rebuild than draws from the prior, which was not checked",
    }
    limit = (Assumption(text=limits[verdict], checked_by="caller"),) if verdict in limits else ()
    return replace(
        guarantee, assumptions=(*limit, *guarantee.assumptions), detail={**guarantee.detail, "verdict": verdict}
    )


def attack_draws(
    features: Any,
    prior: Mixture | LatentPrior,
    noise: Noise,
    *,
    public: _Array | None,
    steps: int | None,
    seed: int,
    feature_error: float | None,
    releases: int = 1,
    failure_probability: float = 0.001,
    tries: int = _TRIES,
    by_chains: ByChains = posterior_attack,
    advance: Callable[[str, float], None] = lambda *_: None,
) -> tuple[Attack, ...]:
    """Rebuild draws from the prior: by a linear decoder, by public inputs, and by chains where `steps` are given.

    Their intervals hold together, except with the failure probability, so that the best may be chosen: `best_of`. The
    attack `by_chains` comes last, and may be given up by returning None.
    """
    common: dict[str, Any] = {
        "seed": seed,
        "feature_error": feature_error,
        "releases": releases,
        "failure_probability": failure_probability / (1 + (public is not None) + (steps is not None)),
    }
    found = [linear_decoder(features, some_draws(prior, seed + 1), prior, noise, **common)]
    if public is not None:
        known = Gallery(public[: _affordable(prior.shape)])
        with contextlib.suppress(NoTheoremError):  # noise without a likelihood
            found.append(posterior_mean(features, known, noise, held_out=prior, **common))
    if steps is not None:
        told = partial(advance, "an attack by chains")
        chains: dict[str, Any] = {"steps": max(steps, _LEAST_STEPS), "chains": _CHAINS, "tries": tries}
        last = by_chains(features, prior, noise, advance=told, **chains, **common)
        found += [] if last is None else [last]
    return tuple(found)


def best_of(attacks: Sequence[Attack]) -> Attack:
    """Return the attack that certainly leaves least; its interval misses only if one of all intervals does."""
    best = min(attacks, key=lambda attack: attack.high)
    return replace(best, failure_probability=math.fsum(attack.failure_probability for attack in attacks))


def attack_real(
    features: Any,
    prior: Mixture | LatentPrior,
    inputs: _Array,
    noise: Noise,
    guarantee: Guarantee,
    *,
    public: _Array | None,
    steps: int | None,
    seed: int,
    feature_error: float | None,
    releases: int = 1,
    failure_probability: float = 0.001,
    tries: int = _TRIES,
    by_chains: ByChains = posterior_attack,
    advance: Callable[[str, float], None] = lambda *_: None,
) -> Attack | None:
    """Rebuild real inputs with all that the adversary knows; the best attack, as a share of the prior's variance.

    That is the one that certainly leaves less than the bound or, where none does, the one that left least. Decoders
    learn from public inputs, or else from draws from the prior. The attack `by_chains` comes last, and may be given up
    by returning None. None if there are too few real inputs.
    """
    if len(inputs) < LEAST_TRIED or not _variance(inputs) > 0:
        return None
    known = some_draws(prior, seed + 1) if public is None else public[: _affordable(prior.shape)]
    count = 2 + (public is not None) + (steps is not None)
    # All are tried and the best one counts, so the failure probabilities of all add up.
    options: dict[str, Any] = {
        "seed": seed,
        "feature_error": feature_error,
        "releases": releases,
        "failure_probability": failure_probability / count,
    }
    epochs = min(max(_TRAINED // len(known), 3), 30)

    def trained(epoch: int) -> None:
        advance("training a network that rebuilds the real inputs", epoch / epochs)

    network = learned_decoder(features, known, inputs, noise, epochs=epochs, width=512, advance=trained, **options)
    found = [(linear_decoder(features, known, inputs, noise, **options), inputs), (network, inputs)]
    if public is not None:
        with contextlib.suppress(NoTheoremError):  # noise without a likelihood
            found.append((posterior_mean(features, Gallery(known), noise, held_out=inputs, **options), inputs))
    if steps is not None:
        some = inputs[np.random.default_rng(seed).permutation(len(inputs))[:tries]]
        told = partial(advance, "an attack by chains on the real inputs")
        chains: dict[str, Any] = {"steps": max(steps, _LEAST_STEPS), "chains": _CHAINS}
        last = by_chains(features, prior, noise, held_out=some, advance=told, **chains, **options)
        found += [] if last is None else [(last, some)]
    whole = float(prior.variances.mean())
    tried = [_scaled(attack, _variance(held_out) / whole) for attack, held_out in found]
    best = min(tried, key=lambda attack: attack.high)
    if best.high >= guarantee.value:
        best = min(tried, key=lambda attack: attack.value)
    return replace(
        best,
        quantity=guarantee.quantity,
        adversary=guarantee.adversary,
        failure_probability=failure_probability,
        method=f"on the real inputs, the best of {len(tried)} attacks: {best.method}",
    )


def some_draws(prior: Mixture | LatentPrior, seed: int) -> Any:
    """Return draws from the prior, as many as decoders are fitted to."""
    return prior.sample(_affordable(prior.shape), seed=seed)


def _affordable(shape: tuple[int, ...]) -> int:
    return max(min(_KNOWN, _MOST_ENTRIES // int(np.prod(shape))), 100)


def _variance(inputs: _Array) -> float:
    return float(inputs.reshape(len(inputs), -1).var(axis=0).mean())


def _scaled(attack: Attack, share: float) -> Attack:
    return replace(attack, **{end: share * getattr(attack, end) for end in ("value", "low", "high")})
