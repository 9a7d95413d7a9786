"""What remains of a stated prior's uncertainty after the release, whoever rebuilds the input and however."""

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
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_least, down
from ..theory.confidence import sampled_mean_lower
from ..theory.estimation import gallery_coordinate_mse, gallery_mse, two_point_bayes_error, two_point_error
from .basis import Basis, BasisLike, basis_of
from .identification import GalleryRelease
from .noise import Noise, checked_noise, gaussian_of, total_variation_theorems
from .priors import Gallery, Mixture, Prior
from .release import Release, as_array, open_release
from .unbiased import mode_error, release_assumptions, shift_error

_Array = NDArray[np.float64]

REMAINING = "mean squared error of the rebuilt input, as a share of the prior's variance"
_PILOT_POINTS, _PILOT_DRAWS = 4, 500
# In standard deviations: a Gaussian's integral needs 4 to 6, several bumps one length that joins them.
_LENGTHS = {0.0: (3.5, 4.5, 6.0, 12.0), 0.5: (4.5, 12.0, 24.0), 1.0: (1.5, 2.0, 3.0, 6.0, 12.0)}
_LOST = 1e-6  # share of a mode's change that rounding may take
_PAID = 3 * _LOST  # of its square, and more
_MOST_MODES = 4096  # for covariances of all modes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BayesBounds(Carded):
    """At least this much remains of the prior's uncertainty, for every estimate, biased or not.

    `remaining` is the mean squared error as a share of the prior's variance, over the whole input: 0 hides nothing, 1
    everything. `rmse`, where it was asked for, is the root mean squared error of every mode, beside the prior's own
    `prior_std` (of inputs with more than 4096 entries, estimated from draws); both have the shape of an input, and all
    of `remaining` and `rmse` hold together. For another seed they hold anew, not both together.
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

    @property
    def guarantee(self) -> Guarantee:
        """The headline as a statement."""
        return self._statement(REMAINING, self.remaining, self.theorem)

    def guarantee_of(self, mode: tuple[int, ...]) -> Guarantee:
        """The bound for one mode, as a statement."""
        if self.rmse is None:
            raise InputError("rmse", None, requirement="must have been asked for", remedy="pass mode_draws=2000")
        where = validate.place("mode", mode, self.rmse.shape, remedy="give a number for each axis, from 0")
        quantity = f"root mean squared error of an estimate of {self.basis} mode {where}"
        return self._statement(quantity, float(self.rmse[where]), self.mode_theorem)

    mode_guarantee = formerly("mode_guarantee", guarantee_of)

    def _card(self) -> tuple[str, Rows]:
        found = self.guarantee
        return found.quantity, found.facts

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
                *release_assumptions(self.noise, self.feature_error),
            ),
            failure_probability=self.failure_probability,
            detail={"variance": self.variance},
        )


@at_least
def bayes_bound(
    features: Callable[[Any], Any],
    prior: Prior,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    draws: int = 20_000,
    mode_draws: int = 0,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> BayesBounds:
    """The share of the prior's uncertainty that remains, from `draws` draws of it; per mode with `mode_draws` > 0.

    A `Gallery` has its exact Bayes error (Gaussian noise only). A `Mixture` is bounded by Ziv and Zakai's
    inequality: pairs of inputs that differ by a chosen change, drawn from the prior, must be told apart. It needs
    forward passes alone, two a draw, and any noise; for linear features and a Gaussian prior it is exact but for
    the confidence limit. `mode_draws` is the number of pairs for each mode, or for a gallery only whether modes are
    wanted. `advance` hears how many draws are done.
    """
    if not isinstance(prior, Gallery | Mixture):
        raise InputError(
            "prior", prior, requirement="must be a Gallery or a Mixture", remedy="write Mixture.fitted(public)"
        )
    checked_noise(noise)
    draws = validate.whole("draws", draws, at_least=100, remedy="use 20000")
    mode_draws = validate.whole("mode_draws", mode_draws, at_least=0, remedy="use 0, or 2000")
    failure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    only_these = isinstance(prior, Gallery)
    some = prior.as_given(prior.inputs) if isinstance(prior, Gallery) else prior.sample(8, seed=seed)
    release = open_release(features, some, feature_error=feature_error, only_these=only_these)
    modes = basis_of(basis, prior.shape, release.inputs.device)
    share = failure / 2 if mode_draws else failure
    if isinstance(prior, Gallery):
        theorem, mode_theorem = _gallery_theorem("gallery_mse"), _gallery_theorem("gallery_coordinate_mse")
        remaining, mse = _gallery(
            features, prior, noise, modes, draws, mode_draws > 0, share, seed, feature_error, advance
        )
    else:
        study = _Pairs(release=release, prior=prior, noise=noise, modes=modes, seed=seed)
        remaining, mse = study.bounds(draws, mode_draws, share, advance)
        theorem = mode_theorem = _pairs_theorem(noise)
    prior_variances = _mode_variances(prior, modes, release.inputs.device)
    rmse = None if mse is None else np.maximum(down(np.sqrt(mse)), 0.0).reshape(prior.shape)
    return BayesBounds(
        remaining=min(remaining, 1.0),
        rmse=rmse,
        prior_std=np.sqrt(prior_variances).reshape(prior.shape),
        variance=float(prior.variances.mean()),
        prior=prior.description,
        noise=noise,
        basis=modes.name,
        feature_error=release.error,
        failure_probability=failure + noise.failure_probability,
        theorem=theorem,
        mode_theorem=mode_theorem,
    )


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
    advance: Callable[[int], None],
) -> tuple[float, _Array | None]:
    """The exact Bayes error of a gallery: the posterior's own variance, averaged over releases."""
    gallery = GalleryRelease.opened(features, prior, noise, feature_error)
    inputs = as_array(modes.to_modes(gallery.release.inputs)).reshape(len(gallery.whitened), -1)
    options: dict[str, Any] = {
        "weights": gallery.weights,
        "sigma": 1.0,
        "draws": draws,
        "failure_probability": failure,
    }
    computed = gallery_mse(gallery.whitened, inputs, seed=seed, **options)
    # The best estimate stays inside the candidates' hull, where no squared error exceeds the squared diameter; the
    # laws of the releases differ by the total variation, and so do the mean errors, times that.
    spread = (inputs - inputs.mean(axis=0)) ** 2
    lost = gallery.total_variation * 4 * (1 + 1e-9)
    error = computed - lost * float(spread.sum(axis=1).max()) / inputs.shape[1]
    remaining = max(0.0, error / (float(prior.variances.mean()) * (1 + 1e-11)))
    advance(draws)
    mse = None
    if per_mode:
        each = gallery_coordinate_mse(gallery.whitened, inputs, seed=seed + 1, **options)
        mse = np.maximum(each - lost * spread.max(axis=0), 0.0)
    return remaining, mse


def _mode_variances(prior: Prior, modes: Basis, device: torch.device) -> _Array:
    """The prior's variance of every mode."""
    if isinstance(prior, Gallery):
        rows, weights = modes.to_modes(prior.inputs.to(device)).flatten(1), torch.tensor(prior.weights, device=device)
        return as_array(weights @ (rows - weights @ rows).square())
    if modes.size > _MOST_MODES:
        rows = modes.to_modes(prior.sample(4096, seed=0).to(device)).flatten(1)
        return as_array(rows.var(dim=0))
    return as_array(torch.diagonal(_in_modes(prior.covariances()[0].to(device), modes)))


def _in_modes(covariance: Tensor, modes: Basis) -> Tensor:
    """The covariance of the modes of an input with this covariance."""
    half = modes.to_modes(covariance.reshape(-1, *modes.shape)).reshape(covariance.shape)
    return modes.to_modes(half.T.reshape(-1, *modes.shape)).reshape(covariance.shape)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """For every mode a change of the input, per unit of that mode, and how long it is.

    Lengths have density 2h/H² up to H = longest, where those below `shortest` of H are taken as that.
    """

    rows: Tensor | None  # in modes, one a row; None: that mode alone
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
        self, draws: int, mode_draws: int, failure: float, advance: Callable[[int], None]
    ) -> tuple[float, _Array | None]:
        """The share that remains, and, where it is asked for, the mean squared error of each mode."""
        generator = torch.Generator().manual_seed(self.seed)
        change = self._best_change(draws, generator)
        weights = change.longest.square() / 4
        chosen = torch.multinomial(weights.cpu(), draws, replacement=True, generator=generator).to(weights.device)
        errors = self._errors(change, chosen, generator, advance)
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
                advance(draws + (mode + 1) * mode_draws)
        return remaining, mse

    def _errors(
        self,
        change: _Change,
        chosen: Tensor,
        generator: torch.Generator,
        advance: Callable[[int], None] = lambda _: None,
    ) -> _Array:
        """Twice the least error of telling apart pairs that differ by a random length of each chosen mode's change.

        H²/4 times the expectation is at most the mean squared error.
        """
        found: list[_Array] = []
        for modes in chosen.split(2048):
            count = len(modes)
            uniform = torch.rand(2, count, generator=generator, dtype=torch.float64).to(chosen.device)
            lengths = change.longest[modes] * uniform[0].sqrt().clamp(min=change.shortest)
            moves = change.of(modes, lengths, self.modes).reshape(count, *self.release.shape)
            point = self.prior.drawn(count, generator).to(moves.device)
            # A fair coin says whether the prior drew the first or the second of the pair: then every pair counts by
            # a number between 0 and 1, however unlikely one of its ends is.
            first = torch.where((uniform[1] < 0.5).reshape(-1, *[1] * len(self.release.shape)), point, point - moves)
            second = first + moves
            odds, error = self.prior.log_odds(first, second)
            base = self.release.features(first)
            shifts = self.release.features(second) - base
            wrong = self._least_error(as_array(odds), base, shifts)
            # Where float64 does not hold the change of the mode, the pair counts as told apart.
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
        """Of several changes the one of which pilot draws, not used again, promise most; any is valid."""

        def promise(change: _Change) -> float:
            weights = change.longest.square() / 4
            chosen = torch.multinomial(weights.cpu(), _PILOT_DRAWS, replacement=True, generator=generator)
            errors = self._errors(change, chosen.to(weights.device), generator)
            mean, noise = float(errors.mean()), float(errors.std()) / math.sqrt(draws)
            return (mean - 3 * noise) * float(weights.sum())

        return max(self._changes(), key=promise)

    def _changes(self) -> list[_Change]:
        """Along the columns of the posterior covariance that a linear model would have, at several lengths."""
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
        """About how much a release says about every pair of modes, at a few inputs drawn from the prior."""
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
