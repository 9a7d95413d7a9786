"""How much of a stated prior's uncertainty remains after the release, whoever rebuilds the input and however."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.deprecation import formerly
from ..core.display import Carded, Rows
from ..core.errors import InputError, NoTheoremError
from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_least, down
from ..theory.confidence import sampled_mean_lower
from ..theory.estimation import gallery_coordinate_mse, gallery_mse, two_point_bayes_error, two_point_error
from .basis import Basis, BasisLike, basis_of
from .chains import NoiseDensity
from .identification import GalleryRelease
from .latent_priors import LatentPrior
from .noise import Noise, gaussian_of, total_variation_theorems
from .posterior_bounds import PosteriorBounds, posterior_bound
from .priors import REMAINING, Gallery, Mixture, Prior
from .release import Release, as_array, open_release
from .repeated import repeated, repeated_theorems
from .unbiased import mode_error, release_assumptions, shift_error

_Array = NDArray[np.float64]

_OF_CHAINS = 0.9  # of the failure probability; the rest is that of the pairs
_PILOT_POINTS, _PILOT_DRAWS = 4, 500
# In standard deviations: one Gaussian needs 4 to 6; several far apart need one length that connects them.
_LENGTHS = {0.0: (3.5, 4.5, 6.0, 12.0), 0.5: (4.5, 12.0, 24.0), 1.0: (1.5, 2.0, 3.0, 6.0, 12.0)}
_LOST = 1e-6  # share of a mode's change that rounding may lose
_PAID = 3 * _LOST  # covers the loss in its square
_MOST_MODES = 4096  # for covariances of all modes
_MOST_SAMPLED = 20_000_000  # entries, to estimate variances of modes from


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BayesBounds(Carded):
    """Lower bounds on the error of every estimate, biased or not, of an input drawn from a stated prior.

    `remaining` and all of `rmse` hold together. They are about draws from the prior: about real inputs they say as much
    as the prior fits them. Bounds from another seed hold as well, but not together with these.

    Attributes
    ----------
    remaining
        The mean squared error over the whole input, as a share of the prior's variance: 0 hides nothing, 1 everything.
    rmse
        The root mean squared error of each mode, in the shape of an input; None unless `mode_draws` was given.
    prior_std
        The prior's own standard deviation of each mode; for inputs of more than 4096 entries, and for priors that are
        neither a gallery nor a mixture, estimated from draws.
    variance
        The prior's mean variance of an entry.
    prior
        The prior in words.
    noise
        The noise of the release.
    basis
        The name of the modes.
    feature_error
        The relative error of the features that the bounds allow for.
    failure_probability
        The chance that any of the bounds is wrong.
    theorem, mode_theorem
        What `remaining` rests on, and what `rmse` does where chains give less.
    chains
        What `posterior_bound` found, with pictures and the curve over its steps; None where no chains were run.
    releases
        How often an input is released, at most.
    evidence
        What a certificate states of `remaining`.
    """

    remaining: float
    rmse: _Array | None
    prior_std: _Array
    variance: float
    prior: str
    noise: Noise
    basis: str
    feature_error: float
    failure_probability: float
    theorem: tuple[str, ...]
    mode_theorem: tuple[str, ...]
    chains: PosteriorBounds | None = None
    releases: int = 1
    evidence: Evidence | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The bound on the error over the whole input."""
        if self.chains is not None and self.theorem == tuple(self.chains.guarantee.theorem):
            return self._by_chains(self.chains.guarantee, self.remaining)
        return replace(self._statement(REMAINING, self.remaining, self.theorem), evidence=self.evidence)

    def guarantee_of(self, mode: tuple[int, ...]) -> Guarantee:
        """Return the bound for one mode.

        Parameters
        ----------
        mode
            One number for each axis of an input, from 0.

        Raises
        ------
        InputError
            If modes were not asked for.
        """
        if self.rmse is None:
            raise InputError("rmse", None, requirement="must have been asked for", remedy="pass mode_draws=2000")
        where = validate.place("mode", mode, self.rmse.shape, remedy="give a number for each axis, from 0")
        chains = self.chains
        if chains is not None and chains.rmse is not None and chains.rmse[where] == self.rmse[where]:
            return self._by_chains(chains.guarantee_of(where), float(self.rmse[where]))
        quantity = f"root mean squared error of an estimate of {self.basis} mode {where}"
        return self._statement(quantity, float(self.rmse[where]), self.mode_theorem)

    mode_guarantee = formerly("mode_guarantee", guarantee_of)

    def _card(self) -> tuple[str, Rows]:
        found = self.guarantee
        return found.quantity, found.facts

    def _by_chains(self, guarantee: Guarantee, value: float) -> Guarantee:
        return replace(guarantee, value=value, failure_probability=self.failure_probability)

    def _statement(self, quantity: str, value: float, theorem: tuple[str, ...]) -> Guarantee:
        return Guarantee(
            quantity=quantity,
            side="at_least",
            value=value,
            adversary=Adversary.PRIOR.scoped(self.prior),
            theorem=theorem,
            assumptions=(
                Assumption(text=f"the input is drawn from this prior: {self.prior}", checked_by="caller"),
                Assumption(
                    text="the pseudo-random draws of the computation behave as independent", checked_by="caller"
                ),
                Assumption(
                    text="rounding an input to float64 moves its features by no more than their stated error",
                    checked_by="caller",
                ),
                *release_assumptions(self.noise, self.feature_error, self.releases),
            ),
            failure_probability=self.failure_probability,
            detail={"variance": self.variance},
        )


@at_least
def bayes_bound(
    features: Callable[[Any], Any],
    prior: Prior | LatentPrior,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    steps: int | None = None,
    seconds: float | None = None,
    draws: int = 20_000,
    mode_draws: int = 0,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[float], None] = lambda _: None,
) -> BayesBounds:
    """Bound how well anyone rebuilds an input drawn from a stated prior.

    For a `Gallery`, this is the exact Bayes error (Gaussian noise only). For other priors it is the better of two
    bounds: `posterior_bound`, whose chains come close to the exact error if they mix, and Ziv and Zakai's inequality,
    by which pairs of inputs that differ by a chosen change must be told apart. The second needs the prior's density,
    so it is left out for priors other than `Mixture`; the first needs that of the noise. Nine tenths of the failure
    probability go to the chains.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    prior
        A `Gallery`, a `Mixture` or another prior made of standard normal numbers. The bound is about draws from it.
    noise
        The noise added to the features.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    steps
        Steps of the chains, an even number: 100 unless `seconds` are given. 0 leaves the chains out, for a `Mixture`.
    seconds
        Choose as many steps as about fit into this time.
    draws
        Pairs for the bound over the whole input or, for a gallery, random draws.
    mode_draws
        Pairs for each mode; 0 leaves modes out. For a gallery, any positive number gives them.
    failure_probability
        The chance that the result is wrong because of the random draws.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the share of the work that is done.

    Raises
    ------
    InputError
        If the model, the prior or a value cannot be used.
    NoTheoremError
        If the prior is a gallery and the noise is not Gaussian, or if neither prior nor noise has a density.
    """
    if not isinstance(prior, Gallery | Mixture | LatentPrior):
        raise InputError(
            "prior",
            prior,
            requirement="must be a Gallery, a Mixture, a Spectrum or a Generator",
            remedy="write Mixture.fitted(public)",
        )
    if isinstance(prior, LatentPrior) and steps == 0:
        raise InputError(
            "steps", 0, requirement="must be 2 or more for a prior without a density", remedy="leave it out"
        )
    copied, law = repeated(features, noise, releases)
    draws = validate.whole("draws", draws, at_least=100, remedy="use 20000")
    mode_draws = validate.whole("mode_draws", mode_draws, at_least=0, remedy="use 0, or 2000")
    failure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    chained = not isinstance(prior, Gallery) and steps != 0 and _usable_in_chains(noise, prior)
    paired = isinstance(prior, Mixture)
    only_these = isinstance(prior, Gallery)
    some = prior.as_given(prior.inputs) if isinstance(prior, Gallery) else prior.sample(8, seed=seed)
    release = open_release(copied, some, feature_error=feature_error, only_these=only_these)
    modes = basis_of(basis, prior.shape, release.inputs.device)
    common: dict[str, Any] = {"seed": seed, "feature_error": feature_error, "releases": releases}
    remaining, mse, chains, evidence = 0.0, None, None, None
    theorem: tuple[str, ...] = ()
    mode_theorem: tuple[str, ...] = ()
    if chained:
        chains = posterior_bound(
            features,
            prior,
            noise,
            steps=steps,
            seconds=seconds,
            modes=mode_draws > 0,
            basis=basis,
            failure_probability=_OF_CHAINS * failure if paired else failure,
            advance=lambda done: advance(_OF_CHAINS * done if paired else done),
            **common,
        )
    if isinstance(prior, Gallery):
        often = repeated_theorems(noise, releases)
        theorem, mode_theorem = (
            (*_gallery_theorem(function), *often) for function in ("gallery_mse", "gallery_coordinate_mse")
        )
        share = failure / 2 if mode_draws else failure
        remaining, mse, evidence = _gallery(
            copied, prior, law, modes, draws, mode_draws > 0, share, seed, feature_error, advance
        )
    elif isinstance(prior, Mixture):
        share = (failure - _OF_CHAINS * failure if chained else failure) / (2 if mode_draws else 1)
        study = _Pairs(release=release, prior=prior, noise=law, modes=modes, seed=seed)
        begun = _OF_CHAINS if chained else 0.0
        remaining, mse = study.bounds(draws, mode_draws, share, lambda done: advance(begun + (1 - begun) * done))
        theorem = mode_theorem = (*_pairs_theorem(noise), *repeated_theorems(noise, releases))
    rmse = None if mse is None else np.maximum(down(np.sqrt(mse)), 0.0).reshape(prior.shape)
    if chains is not None:
        if chains.remaining >= remaining:
            remaining, theorem = chains.remaining, tuple(chains.guarantee.theorem)
        if chains.rmse is not None:
            rmse = chains.rmse if rmse is None else np.maximum(rmse, chains.rmse)
    return BayesBounds(
        remaining=min(remaining, 1.0),
        rmse=rmse,
        prior_std=np.sqrt(_mode_variances(prior, modes, release.inputs.device)).reshape(prior.shape),
        variance=float(prior.variances.mean()),
        prior=prior.description,
        noise=noise,
        basis=modes.name,
        feature_error=release.error,
        failure_probability=failure + noise.failure_probability,
        theorem=theorem,
        mode_theorem=mode_theorem,
        chains=chains,
        releases=releases,
        evidence=evidence,
    )


def _usable_in_chains(noise: Noise, prior: Mixture | LatentPrior) -> bool:
    """Whether the noise has a density; if it has none, the prior must have one, for pairs."""
    try:
        NoiseDensity.of(noise)
    except NoTheoremError:
        if not isinstance(prior, Mixture):
            raise
        return False
    return True


def _gallery_theorem(function: str) -> tuple[str, ...]:
    return (
        "the best estimate is the posterior mean",
        f"theory.estimation.{function}",
        "theory.divergences.gaussian_total_variation",
    )


def _pairs_theorem(noise: Noise) -> tuple[str, ...]:
    gaussian, theorem = gaussian_of(noise), ["Ziv–Zakai: pairs drawn from the prior must be told apart"]
    if gaussian is not None:
        theorem.append("theory.estimation.two_point_bayes_error")
    if gaussian is not noise:
        theorem += ["theory.estimation.two_point_error", *total_variation_theorems(noise)]
    return (*theorem, "theory.confidence.sampled_mean_lower")


def _gallery(
    features: Callable[[Any], Any],
    prior: Gallery,
    noise: Noise,
    modes: Basis,
    draws: int,
    per_mode: bool,
    failure: float,
    seed: int,
    feature_error: float | None,
    advance: Callable[[float], None],
) -> tuple[float, _Array | None, Evidence | None]:
    """Return the exact Bayes error of a gallery: the posterior's own variance, averaged over releases."""
    gallery = GalleryRelease.opened(features, prior, noise, feature_error)
    inputs = as_array(modes.to_modes(gallery.release.inputs)).reshape(len(gallery.whitened), -1)
    options: dict[str, Any] = {
        "weights": gallery.weights,
        "sigma": 1.0,
        "draws": draws,
        "failure_probability": failure,
    }
    drawn: list[_Array] = []
    computed = gallery_mse(gallery.whitened, inputs, seed=seed, keep=drawn, **options)
    # The best estimate stays inside the candidates' hull, where no squared error exceeds the squared diameter. Mean
    # errors under two distributions of the release differ by at most that times their total variation.
    spread = (inputs - inputs.mean(axis=0)) ** 2
    lost = gallery.total_variation * 4 * (1 + 1e-9)
    error = computed - lost * float(spread.sum(axis=1).max()) / inputs.shape[1]
    variance = float(prior.variances.mean()) * (1 + 1e-11)
    remaining = max(0.0, error / variance)
    mse = None
    if per_mode:
        each = gallery_coordinate_mse(gallery.whitened, inputs, seed=seed + 1, **options)
        mse = np.maximum(each - lost * spread.max(axis=0), 0.0)
    advance(1.0)
    evidence = Evidence(
        rule="gallery error",
        inputs=lambda: {
            "values": drawn[0].tolist(),
            "most": float(drawn[1][0]),
            "coordinates": inputs.shape[1],
            "distance": gallery.distance,
            "variance": variance,
            "failure_probability": failure,
        },
        private=("values", "most", "distance", "variance"),
    )
    return remaining, mse, evidence if drawn else None


def _mode_variances(prior: Prior | LatentPrior, modes: Basis, device: torch.device) -> _Array:
    """Return the prior's variance of every mode."""
    if isinstance(prior, Gallery):
        rows, weights = modes.to_modes(prior.inputs.to(device)).flatten(1), torch.tensor(prior.weights, device=device)
        return as_array(weights @ (rows - weights @ rows).square())
    if modes.size > _MOST_MODES or not isinstance(prior, Mixture):
        count = max(min(4096, _MOST_SAMPLED // modes.size), 64)
        rows = modes.to_modes(prior.sample(count, seed=0).to(device)).flatten(1)
        return as_array(rows.var(dim=0))
    return as_array(torch.diagonal(_in_modes(prior.covariances()[0].to(device), modes)))


def _in_modes(covariance: Tensor, modes: Basis) -> Tensor:
    """Return the covariance of the modes of an input with this covariance."""
    half = modes.to_modes(covariance.reshape(-1, *modes.shape)).reshape(covariance.shape)
    return modes.to_modes(half.T.reshape(-1, *modes.shape)).reshape(covariance.shape)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """For every mode a change of the input, per unit of that mode, and its length.

    Lengths have density 2h/H² up to H = longest; those below `shortest`·H are raised to it.
    """

    rows: Tensor | None  # in modes, one per row; None changes that mode alone
    longest: Tensor
    shortest: float

    def of(self, chosen: Tensor, lengths: Tensor, modes: Basis) -> Tensor:
        if self.rows is None:
            return lengths[:, None] * modes.vectors(chosen)
        return modes.from_modes((lengths[:, None] * self.rows[chosen]).reshape(-1, *modes.shape)).flatten(1)


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Ziv and Zakai's inequality by Monte Carlo (docs/proofs/estimation.md, `two_point_bayes_error`)."""

    release: Release
    prior: Mixture
    noise: Noise
    modes: Basis
    seed: int

    def bounds(
        self, draws: int, mode_draws: int, failure: float, advance: Callable[[float], None]
    ) -> tuple[float, _Array | None]:
        """Return the share that remains and, if asked for, the mean squared error of each mode."""
        generator = torch.Generator().manual_seed(self.seed)
        change = self._best_change(draws, generator)
        weights = change.longest.square() / 4
        chosen = torch.multinomial(weights.cpu(), draws, replacement=True, generator=generator).to(weights.device)
        work = draws + self.modes.size * mode_draws
        errors = self._errors(change, chosen, generator, lambda done: advance(done / work))
        limit = sampled_mean_lower(errors, failure_probability=failure)
        total = float(self.prior.variances.sum()) * (1 + 1e-9)
        remaining = max(down(limit * float(weights.sum()) / total, relative=_PAID), 0.0)
        mse = None
        if mode_draws:
            mse = np.zeros(self.modes.size)
            for mode in range(self.modes.size):
                chosen = torch.full((mode_draws,), mode, device=weights.device)
                errors = self._errors(change, chosen, generator)
                limit = sampled_mean_lower(errors, failure_probability=failure / self.modes.size)
                mse[mode] = max(down(limit * float(weights[mode]), relative=_PAID), 0.0)
                advance((draws + (mode + 1) * mode_draws) / work)
        return remaining, mse

    def _errors(
        self,
        change: _Change,
        chosen: Tensor,
        generator: torch.Generator,
        advance: Callable[[int], None] = lambda _: None,
    ) -> _Array:
        """Return twice the least error of telling apart pairs that differ by a random length of a mode's change.

        H²/4 times its expectation is at most the mean squared error.
        """
        found: list[_Array] = []
        for modes in chosen.split(2048):
            count = len(modes)
            uniform = torch.rand(2, count, generator=generator, dtype=torch.float64).to(chosen.device)
            lengths = change.longest[modes] * uniform[0].sqrt().clamp(min=change.shortest)
            moves = change.of(modes, lengths, self.modes).reshape(count, *self.release.shape)
            point = self.prior.drawn(count, generator).to(moves.device)
            # A fair coin decides whether the prior drew the first or the second of the pair. So every pair counts by a
            # number between 0 and 1, however unlikely one of its ends is.
            first = torch.where((uniform[1] < 0.5).reshape(-1, *[1] * len(self.release.shape)), point, point - moves)
            second = first + moves
            odds, error = self.prior.log_odds(first, second)
            base = self.release.features(first)
            shifts = self.release.features(second) - base
            wrong = self._least_error(as_array(odds), base, shifts)
            # A pair whose change is lost in float64 rounding counts as told apart.
            changes = self.modes.to_modes(second - first).flatten(1)
            certain = as_array(changes.gather(1, modes[:, None])[:, 0]) - mode_error(second - first)
            held = certain >= (1 - _LOST) * as_array(lengths)
            found.append(np.minimum(2 * wrong * np.where(held, 1 - 2 * as_array(error), 0.0), 1.0))
            advance(sum(map(len, found)))
        return np.concatenate(found)

    def _least_error(self, odds: _Array, base: Tensor, shifts: Tensor) -> _Array:
        error, gaussian = shift_error(self.release, shifts, base), gaussian_of(self.noise)
        found = np.zeros(len(odds))
        if gaussian is not None:
            found = two_point_bayes_error(odds, distance=gaussian.distance(shifts, error))
        if gaussian is not self.noise:
            variation = self.noise.total_variation(base, shifts, error)
            found = np.maximum(found, two_point_error(odds, total_variation=variation))
        return found

    def _best_change(self, draws: int, generator: torch.Generator) -> _Change:
        """Return the change that looks best on pilot draws, which are not used again; any is valid."""

        def promise(change: _Change) -> float:
            weights = change.longest.square() / 4
            chosen = torch.multinomial(weights.cpu(), _PILOT_DRAWS, replacement=True, generator=generator)
            errors = self._errors(change, chosen.to(weights.device), generator)
            mean, noise = float(errors.mean()), float(errors.std()) / math.sqrt(draws)
            return (mean - 3 * noise) * float(weights.sum())

        return max(self._changes(), key=promise)

    def _changes(self) -> list[_Change]:
        """Return changes along the columns of a linear model's posterior covariance, at several lengths."""
        device = self.release.inputs.device
        kinds: list[tuple[Tensor | None, Tensor]] = []
        if self.modes.size > _MOST_MODES:
            spread = torch.tensor(np.sqrt(_mode_variances(self.prior, self.modes, device)), device=device)
            kinds = [(None, share * spread) for share in (0.01, 0.1, 1.0)]
        else:
            fisher, eye = self._fisher(), torch.eye(self.modes.size, dtype=torch.float64, device=device)
            for covariance in self.prior.covariances():
                inside = _in_modes(covariance.to(device), self.modes)
                root = torch.linalg.cholesky(inside + 1e-9 * torch.diagonal(inside).mean() * eye)
                inner = torch.linalg.cholesky(eye + root.T @ fisher @ root)
                posterior = root @ torch.cholesky_solve(root.T, inner)
                variances = torch.diagonal(posterior)
                kinds.append((posterior / variances[:, None], variances.sqrt()))
        return [
            _Change(rows=rows, longest=length * spread, shortest=shortest)
            for rows, spread in kinds
            for shortest, lengths in _LENGTHS.items()
            for length in lengths
        ]

    def _fisher(self) -> Tensor:
        """Estimate how much a release says about every pair of modes, at a few draws from the prior."""
        points = self.prior.sample(_PILOT_POINTS, seed=self.seed).to(self.release.inputs.device)
        step = 0.1 * math.sqrt(float(self.prior.variances.mean()))
        total = torch.zeros(self.modes.size, self.modes.size, dtype=torch.float64, device=points.device)
        vectors = self.modes.vectors(torch.arange(self.modes.size, device=points.device))
        for point in points:
            moved = (point.reshape(1, -1) + step * vectors).reshape(-1, *self.release.shape)
            slopes = (self.release.features(moved) - self.release.features(point[None])) / step
            gaussian = gaussian_of(self.noise)
            slopes = slopes / self.noise.size if gaussian is None else gaussian.whitened(slopes)
            total += slopes @ slopes.T / len(points)
        return total
