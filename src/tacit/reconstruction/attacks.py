"""Real attacks, to show how tight the bounds are.

Attackers who rebuild inputs are biased, so no bound on unbiased estimators applies to them. Each attack is compared
with a bound for the prior that its held-out inputs are drawn from, or is reported by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError, NoTheoremError
from ..core.guarantee import Adversary, Attack, Guarantee
from ..theory.confidence import binomial_lower, binomial_upper, sampled_mean_lower, sampled_mean_upper
from .identification import GalleryRelease
from .latent_priors import LatentPrior, remaining_of
from .noise import Gaussian, Laplace, Noise, Quantized, Uniform, checked_noise, required_gaussian
from .priors import REMAINING, SHARE_OF_THEIRS, Gallery, Mixture
from .release import Release, as_array, derivatives, loaded, open_release
from .repeated import Drawn, Middle, checked_releases, repeated

_FAILURE = "use 0.001"
_NO_NOISE = 1e-12
"""Variance that features without noise are taken to have, as a share of their mean square."""
_renamed = renamed(confidence=("failure_probability", lambda value: 1 - value))


@_renamed
def nearest_candidate(
    features: Callable[[Any], Any],
    candidates: object,
    noise: Noise,
    guarantee: Guarantee,
    *,
    draws: int = 20_000,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Attack:
    """Name the candidate whose features are closest to a noisy release; the attack on `identification_bound`.

    If candidates are not equally likely because some occur more than once, it names the most probable one.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    candidates
        The inputs that the adversary holds, one per row.
    noise
        The noise of the release: Gaussian, or Gaussian and then rounded.
    guarantee
        What `identification_bound` returned for the same candidates.
    draws
        Noisy releases that are attacked.
    failure_probability
        The chance that the interval around the result misses the true value.
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
    features, noise = repeated(features, noise, releases)
    opening = GalleryRelease.opened(features, Gallery(candidates), noise, feature_error, naming=True)
    release, prior = opening.release, opening.prior
    truth, noisy, clean = _draws(release.features(release.inputs), prior, noise, draws, seed)
    clean, noisy = noise.whitened(clean), noise.whitened(noisy)
    handicap = clean.square().sum(dim=1) - 2 * torch.tensor(prior.weights, device=clean.device).log()
    hits = 0
    for first in range(0, len(noisy), 1024):
        guesses = (handicap - 2 * noisy[first : first + 1024] @ clean.T).argmin(dim=1)
        hits += int((guesses == truth[first : first + 1024]).sum())
    unsure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    return Attack(
        quantity=guarantee.quantity,
        value=hits / draws,
        low=binomial_lower(hits, trials=draws, failure_probability=unsure / 2),
        high=binomial_upper(hits, trials=draws, failure_probability=unsure / 2),
        failure_probability=unsure,
        adversary=guarantee.adversary,
        method="nearest candidate in feature space"
        + (", weighted by how often each occurs" * (opening.weights is not None)),
    )


@_renamed
def posterior_mean(
    features: Callable[[Any], Any],
    prior: Gallery,
    noise: Noise,
    *,
    held_out: object = None,
    tries: int = 2000,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Attack:
    """Rebuild an input as the mean of a gallery's inputs, each weighted by its probability given the release.

    No estimate has a smaller mean squared error for inputs from the gallery; the attack on `bayes_bound` for a gallery.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    prior
        The gallery.
    noise
        The noise of the release: Gaussian, Laplace or uniform, perhaps then rounded.
    held_out
        Other inputs, or a prior to draw `tries` of them from, to be rebuilt as if they were the gallery's. By default
        inputs are drawn from the gallery.
    tries
        How many inputs are drawn.
    failure_probability
        The chance that the interval around the result misses the true value.
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
    NoTheoremError
        If the noise has no known likelihood.
    """
    features, noise = repeated(features, noise, releases)
    unrounded = noise.noise if isinstance(noise, Quantized) else noise
    if not isinstance(unrounded, Gaussian | Laplace | Uniform):
        raise NoTheoremError(
            f"the posterior mean must have Gaussian, Laplace or uniform noise, got {noise!r}; use linear_decoder"
        )
    if not isinstance(prior, Gallery):
        raise InputError("prior", prior, requirement="must be a Gallery", remedy="write Gallery(inputs)")
    known, only_these = prior.as_given(prior.inputs), held_out is None
    release = open_release(features, known, feature_error=feature_error, only_these=only_these, promised=False)
    trial = _held_out(release, prior if held_out is None else held_out, tries, seed)
    clean, inputs = release.features(release.inputs), release.inputs.flatten(1)
    log_weights = torch.tensor(prior.weights, device=clean.device).log()

    def decode(released: Tensor) -> Tensor:
        likely = (log_weights + unrounded.log_likelihood(rows, clean) for rows in released.split(256))
        return torch.cat([torch.softmax(rows, dim=1) @ inputs for rows in likely])

    method = f"mean of the {len(inputs)} inputs, weighted by how likely each is"
    return _rebuilding(release, trial, noise, decode, method, failure_probability, seed)


@_renamed
def linear_decoder(
    features: Callable[[Any], Any],
    known: object,
    held_out: object,
    noise: Noise,
    *,
    tries: int = 2000,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Attack:
    """Rebuild held-out inputs by the linear map from noisy features that is best for the known inputs.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    known
        The inputs to which the map is fitted.
    held_out
        The inputs to rebuild, or a prior to draw `tries` of them from; only then can it be compared with `bayes_bound`.
    noise
        The noise of the release.
    tries
        How many inputs are drawn from a prior.
    failure_probability
        The chance that the interval around the result misses the true value.
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
    release, trial = _both(features, known, held_out, tries, seed, feature_error)
    seen, of_what = _middle(noise, releases)
    decode = _linear_map(release, seen, seed)
    method = f"linear decoder fitted to {len(release.inputs)} inputs{of_what}"
    return _rebuilding(release, trial, seen, decode, method, failure_probability, seed)


@_renamed
def learned_decoder(
    features: Callable[[Any], Any],
    known: object,
    held_out: object,
    noise: Noise,
    *,
    tries: int = 2000,
    failure_probability: float = 0.001,
    epochs: int = 30,
    width: int = 1024,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> Attack:
    """Rebuild held-out inputs by a network trained on noisy features of the known inputs.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    known
        The inputs on which the network is trained.
    held_out
        The inputs to rebuild, or a prior to draw `tries` of them from; only then can it be compared with `bayes_bound`.
    noise
        The noise of the release.
    tries
        How many inputs are drawn from a prior.
    failure_probability
        The chance that the interval around the result misses the true value.
    epochs
        Passes over the known inputs.
    width
        Units in each of the two hidden layers.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the number of epochs done.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    options: dict[str, Any] = {"seed": seed, "feature_error": feature_error, "releases": releases}
    decoder = trained_decoder(features, known, noise, epochs=epochs, width=width, advance=advance, **options)
    return evaluate_decoder(
        decoder, features, known, held_out, noise, tries=tries, failure_probability=failure_probability, **options
    )


def trained_decoder(
    features: Callable[[Any], Any],
    known: object,
    noise: Noise,
    *,
    epochs: int = 30,
    width: int = 1024,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> Callable[[Tensor], Tensor]:
    """Return the decoder of `learned_decoder`: a map from released features, one per row, to rebuilt inputs.

    Of several releases it takes the middle of each feature: the median for Laplace noise, the middle between the least
    and the greatest for uniform noise, else the mean.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    known
        The inputs on which the network is trained.
    noise
        The noise of the release.
    epochs
        Passes over the known inputs.
    width
        Units in each of the two hidden layers.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the number of epochs done.
    """
    release = open_release(features, known, feature_error=feature_error, promised=False)
    decode = _learned_map(release, _middle(noise, releases)[0], epochs, width, seed, advance)
    return lambda released: decode(released.to(release.inputs).flatten(1)).reshape(-1, *release.shape)


@_renamed
def evaluate_decoder(
    decoder: Callable[[Tensor], Tensor],
    features: Callable[[Any], Any],
    known: object,
    held_out: object,
    noise: Noise,
    *,
    tries: int = 2000,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Attack:
    """Measure a decoder on held-out inputs, as `learned_decoder` does.

    Parameters
    ----------
    decoder
        Maps released features, one per row, to rebuilt inputs; of several releases their middle, as `trained_decoder`
        says.
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    known
        The inputs on which it was trained.
    held_out
        The inputs to rebuild, or a prior to draw `tries` of them from; only then can it be compared with `bayes_bound`.
    noise
        The noise of the release.
    tries
        How many inputs are drawn from a prior.
    failure_probability
        The chance that the interval around the result misses the true value.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    """
    release, trial = _both(features, known, held_out, tries, seed, feature_error)
    seen, of_what = _middle(noise, releases)
    method = f"network trained on {len(release.inputs)} inputs{of_what}"
    return _rebuilding(release, trial, seen, lambda rows: decoder(rows).flatten(1), method, failure_probability, seed)


@_renamed
def gradient_inversion(
    features: Callable[[Any], Any],
    prior: Mixture,
    held_out: object,
    noise: Noise,
    *,
    tries: int = 2000,
    failure_probability: float = 0.001,
    steps: int = 300,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> Attack:
    """Rebuild held-out inputs as the most probable ones given the release and a prior, found by gradient descent.

    Parameters
    ----------
    features
        The function whose output is released; it must be differentiable.
    prior
        What the attacker assumes about inputs.
    held_out
        The inputs to rebuild, or a prior to draw `tries` of them from; only then can it be compared with `bayes_bound`.
    noise
        The noise of the release: Gaussian, or Gaussian and then rounded.
    tries
        How many inputs are drawn from a prior.
    failure_probability
        The chance that the interval around the result misses the true value.
    steps
        Steps of gradient descent.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the number of held-out inputs done.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    features, noise = repeated(features, noise, releases)
    gaussian = required_gaussian(noise, "gradient inversion")
    if not isinstance(prior, Mixture):
        raise InputError("prior", prior, requirement="must be a Mixture", remedy="write Mixture.fitted(public)")
    steps = validate.whole("steps", steps, at_least=1, remedy="use 300")
    release = open_release(features, prior.sample(8, seed=seed), feature_error=feature_error, promised=False)
    trial = _held_out(release, held_out, tries, seed)
    start = prior.means.mean(dim=0).to(release.inputs)
    rate = 0.1 * math.sqrt(float(prior.variances.mean()))

    def decode(released: Tensor) -> Tensor:
        found = []
        for chunk in released.split(256):
            target = gaussian.whitened(chunk)
            guess = start.expand(len(chunk), -1).clone().requires_grad_()
            optimiser = torch.optim.Adam([guess], lr=rate)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
            for _ in range(steps):
                with derivatives():
                    ours = release.function(guess.reshape(-1, *release.shape)).flatten(1)
                    distance = (gaussian.whitened(ours) - target).square().sum(dim=1) / 2
                    loss = (distance - prior.log_density(guess)).sum()
                    optimiser.zero_grad()
                    loss.backward()
                optimiser.step()
                schedule.step()
            found.append(guess.detach())
            advance(sum(map(len, found)))
        return torch.cat(found)

    method = f"gradient descent to the most probable input, {steps} steps"
    return _rebuilding(release, trial, noise, decode, method, failure_probability, seed)


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """Inputs that the attack has not seen, the variance that its error is a share of, and whom it stands for."""

    inputs: Tensor
    variance: float
    quantity: str
    adversary: Adversary


def _both(
    features: Callable[[Any], Any],
    known: object,
    held_out: object,
    tries: int,
    seed: int,
    feature_error: float | None,
) -> tuple[Release, _Trial]:
    release = open_release(features, known, feature_error=feature_error, promised=False)
    if len(release.inputs) < 2:
        raise InputError("the rows of known", len(release.inputs), requirement="must be 2 or more", remedy="pass more")
    return release, _held_out(release, held_out, tries, seed)


def _held_out(release: Release, held_out: object, tries: int, seed: int) -> _Trial:
    adversary = Adversary.PRIOR.scoped("the held-out inputs")
    remedy = "pass 30 inputs or more that the attack has not seen, or a prior"
    values, variance, quantity = held_out, None, SHARE_OF_THEIRS
    if isinstance(held_out, Gallery | Mixture | LatentPrior):
        # A stream of its own, different from the bound's and from that of the noise below.
        drawn = held_out.sample(validate.whole("tries", tries, at_least=30, remedy="use 2000"), seed=seed + 3)
        values, variance, quantity = drawn, float(held_out.variances.mean()), REMAINING
        if isinstance(held_out, LatentPrior):
            quantity = remaining_of(held_out)
        adversary = Adversary.PRIOR.scoped(held_out.description)
    array = validate.array("held_out", loaded("held_out", values), remedy=remedy)
    if array.shape[1:] != release.shape or len(array) < 30:
        raise InputError(
            "the shape of held_out", array.shape, requirement=f"must be (30 or more, *{release.shape})", remedy=remedy
        )
    return _Trial(
        inputs=torch.tensor(array, dtype=torch.float64, device=release.inputs.device),
        variance=variance if variance is not None else float(array.reshape(len(array), -1).var(axis=0).mean()),
        quantity=quantity,
        adversary=adversary,
    )


def _middle(noise: Noise, releases: object) -> tuple[Drawn, str]:
    """Return the noise of what a decoder sees of this many releases, and what that is, in words."""
    checked_noise(noise)
    count = checked_releases(releases)
    if count == 1:
        return noise, ""
    if isinstance(noise, Gaussian):
        return noise.averaged(count), f", from the mean of {count} releases"
    seen = Middle(noise, count)
    return seen, f", from the {seen.name} of {count} releases"


def _linear_map(release: Release, noise: Drawn, seed: int) -> Callable[[Tensor], Tensor]:
    """Return the linear map from released features to inputs with the least mean squared error on the known ones."""
    view = _uncorrelated(noise)
    clean, inputs = view(release.features(release.inputs)), release.inputs.flatten(1)
    centre, mean = clean.mean(dim=0), inputs.mean(dim=0)
    spread = clean - centre
    # The noise's variance in each feature is estimated from draws, so that any noise works.
    sampled = view(noise.sample(torch.zeros(4096, clean.shape[1], dtype=torch.float64), _generator(seed))).to(clean)
    variances, count = sampled.square().mean(dim=0), len(clean)
    if clean.shape[1] <= count:
        covariance = spread.T @ spread / count + torch.diag(variances)
        matrix = torch.linalg.solve(covariance, spread.T @ (inputs - mean) / count)
        return lambda released: (view(released) - centre) @ matrix + mean
    # The same map from products of inputs: there are fewer of these than of features.
    scaled = spread / variances.clamp(min=_NO_NOISE * float(spread.square().mean()))
    alike = scaled @ spread.T / count
    weights = torch.linalg.solve(alike + torch.eye(count).to(alike), (inputs - mean) / count)
    return lambda released: (view(released) - centre) @ scaled.T @ weights + mean


def _uncorrelated(noise: Drawn) -> Callable[[Tensor], Tensor]:
    """Return how to look at releases so that the noise is independent in every number."""
    return noise.whitened if isinstance(noise, Gaussian) and noise.sigma is None else lambda released: released


def _learned_map(
    release: Release, noise: Drawn, epochs: int, width: int, seed: int, advance: Callable[[int], None]
) -> Callable[[Tensor], Tensor]:
    """Return the linear map plus a network trained on its residuals, with fresh noise in every epoch."""
    epochs = validate.whole("epochs", epochs, at_least=1, remedy="use 30")
    width = validate.whole("width", width, at_least=1, remedy="use 1024")
    linear, view = _linear_map(release, noise, seed), _uncorrelated(noise)
    clean, inputs = release.features(release.inputs), release.inputs.flatten(1)
    generator = _generator(seed + 1, clean.device)
    centre = view(clean).mean(dim=0)
    noisy = clean + noise.sample(clean, generator)
    scale = (view(noisy) - centre).square().mean(dim=0).sqrt()
    leftover = float((inputs - linear(noisy)).square().mean().sqrt()) or 1.0
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        last = nn.Linear(width, inputs.shape[1])
        first = (nn.Linear(clean.shape[1], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    network = nn.Sequential(*first, last).to(clean.device)
    batch = min(256, len(clean))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, total_steps=epochs * math.ceil(len(clean) / batch))

    def correction(released: Tensor) -> Tensor:
        return leftover * network(((view(released) - centre) / scale).float())

    for epoch in range(epochs):
        order = torch.randperm(len(clean), generator=generator, device=clean.device)
        for rows in order.split(batch):
            released = clean[rows] + noise.sample(clean[rows], generator)
            target = (inputs[rows] - linear(released)).float()
            loss = (correction(released) - target).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        advance(epoch + 1)

    def decode(released: Tensor) -> Tensor:
        with torch.no_grad():
            return linear(released) + correction(released).double()

    return decode


def _rebuilding(
    release: Release,
    trial: _Trial,
    noise: Drawn,
    decode: Callable[[Tensor], Tensor],
    method: str,
    failure_probability: float,
    seed: int,
) -> Attack:
    """Measure a decoder on fresh releases of the held-out inputs.

    Guesses are clipped to the range of the inputs that the release was opened with. If the held-out inputs lie inside
    it, so do all errors, and the interval is exact; otherwise it is Student's, which is approximate.
    """
    unsure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    truth, known = trial.inputs.flatten(1), release.inputs.flatten(1)
    low, high = known.amin(dim=0), known.amax(dim=0)
    clean = release.features(trial.inputs)
    guess = decode(clean + noise.sample(clean, _generator(seed + 2, clean.device)))
    inside = bool(((low <= truth) & (truth <= high)).all())
    errors = as_array(((guess.clamp(low, high) if inside else guess) - truth).square().mean(dim=1))
    mean, count = float(errors.mean()), len(errors)
    if inside:
        most = float((high - low).square().mean()) * (1 + 1e-9)
        # Limits for a mean need independent values in random order; files may be sorted.
        shares = np.random.default_rng(seed).permutation(np.minimum(errors / most, 1.0))
        least = sampled_mean_lower(shares, failure_probability=unsure / 2) * most
        greatest = sampled_mean_upper(shares, failure_probability=unsure / 2) * most
    else:
        half = float(special.stdtrit(count - 1, 1 - unsure / 2) * errors.std(ddof=1) / math.sqrt(count))
        least, greatest = max(0.0, mean - half), mean + half
    return Attack(
        quantity=trial.quantity,
        value=mean / trial.variance,
        low=min(least, mean) / trial.variance,
        high=max(greatest, mean) / trial.variance,
        failure_probability=unsure,
        adversary=trial.adversary,
        method=method if inside else f"{method} (approximate interval, Student's)",
    )


def _generator(seed: object, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(validate.whole("seed", seed, at_least=0, remedy="use 0"))


def _draws(clean: Tensor, prior: Gallery, noise: Noise, draws: object, seed: object) -> tuple[Tensor, Tensor, Tensor]:
    """Return the drawn candidates, their noisy releases, and all clean features."""
    count = validate.whole("draws", draws, at_least=1, remedy="use 20000")
    generator = _generator(seed)
    truth = prior.drawn(count, generator).to(clean.device)
    chosen = clean[truth]
    return truth, chosen + noise.sample(chosen.cpu(), generator).to(clean.device), clean
