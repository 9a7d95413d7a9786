"""The attack that belongs to bounds by chains: the mean of chains that see the release alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from scipy import special
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Adversary, Attack
from .latent_priors import latent, remaining_of
from .noise import Noise, unrounded
from .priors import SHARE_OF_THEIRS
from .release import as_array, exact, loaded
from .repeated import repeated
from .sampler import KERNELS, Sampler


def posterior_attack(
    features: Callable[[Any], Any],
    prior: object,
    noise: Noise,
    *,
    held_out: object = None,
    steps: int = 100,
    chains: int = 4,
    tries: int = 300,
    kernel: str = "auto",
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[float], None] = lambda _: None,
) -> Attack:
    """Rebuild inputs by the mean of a chain that sees the release alone; against `posterior_bound`.

    Parameters
    ----------
    features
        The model that is released.
    prior
        That of the bound, which the attacker takes for true.
    noise
        Any noise with a density.
    held_out
        Other inputs to rebuild, as if they were draws from the prior. By default inputs are drawn from it.
    steps
        Of each chain; the mean is taken over the second half of them.
    chains
        How many there are for each input, each from numbers that are likely given the release, or from a fresh draw
        from the prior.
    tries
        How many inputs are drawn.
    kernel
        As for `posterior_bound`.
    failure_probability
        The chance that the interval misses the true error.
    seed
        Of all draws; the inputs are others than those of `posterior_bound`.
    feature_error
        As for `posterior_bound`.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    Attack
        The mean squared error as a share of the prior's variance or, for `held_out`, of theirs, with an approximate
        interval.
    """
    features, law = repeated(features, noise, releases)
    known = latent(prior)
    validate.choice("kernel", kernel, KERNELS, remedy="use auto")
    steps = validate.whole("steps", steps, at_least=2, remedy="use 200")
    chains = validate.whole("chains", chains, at_least=1, remedy="use 4")
    tries = validate.whole("tries", tries, at_least=30, remedy="use 300")
    unsure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    sampler = Sampler.opened(features, known, law, kernel=kernel, seed=seed, feature_error=feature_error)
    if held_out is None:
        start, given = sampler.drawn(tries)
        truth, variance = sampler.inputs(start), float(known.variances.mean())
        quantity, whose = remaining_of(known), known.description
    else:
        truth = _checked_inputs(held_out, known.shape).to(sampler.device)
        clean = sampler.release.features(truth)
        given = sampler.chain.given(clean + unrounded(law).sample(clean, sampler.generator))
        tries, variance = len(truth), float(truth.flatten(1).var(dim=0, correction=0).mean())
        quantity, whose = SHARE_OF_THEIRS, "the held-out inputs"
    given = given.repeated(chains)
    target = sampler.chain.target
    state = target.state(*sampler.begun(given), given)
    total = torch.zeros_like(sampler.inputs(state))
    with exact():
        for place in range(steps):
            state, _ = sampler.chain.step(state, given, place, sampler.generator)
            if place >= steps // 2:
                total += sampler.inputs(state)
            advance((place + 1) / steps)
    guess = total.reshape(tries, chains, *known.shape).mean(dim=1) / (steps - steps // 2)
    errors = as_array((guess - truth).square().flatten(1).mean(dim=1)) / variance
    mean = float(errors.mean())
    width = float(special.stdtrit(tries - 1, 1 - unsure / 2) * errors.std(ddof=1) / math.sqrt(tries))
    return Attack(
        quantity=quantity,
        value=mean,
        low=max(0.0, mean - width),
        high=mean + width,
        failure_probability=unsure,
        adversary=Adversary.PRIOR.scoped(whose),
        method=f"mean of {chains} chains that see the release, {steps} steps each; interval approximate, Student's",
    )


def _checked_inputs(held_out: object, shape: tuple[int, ...]) -> Tensor:
    remedy = "pass 30 inputs or more, or leave it out to draw from the prior"
    array = validate.array("held_out", loaded("held_out", held_out), remedy=remedy)
    if array.shape[1:] != shape or len(array) < 30 or not array.var(axis=0).any():
        requirement = f"must be (30 or more, *{shape}), not all the same"
        raise InputError("the shape of held_out", array.shape, requirement=requirement, remedy=remedy)
    return torch.tensor(array, dtype=torch.float64)
