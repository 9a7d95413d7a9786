"""The least error of any estimate of an input from its noisy release (docs/proofs/estimation.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, SPECIAL, at_least, at_most, down, up
from .confidence import bounded_mean_lower, bounded_mean_upper, sampled_mean_lower, sampled_mean_upper


@at_least
def hcr_variance(shift: ArrayLike, *, chi_square: ArrayLike) -> NDArray[np.float64]:
    r"""Least variance, at the true input, of any unbiased estimate of one coordinate of it.

    Parameters
    ----------
    shift
        The difference ε of the coordinate between the two inputs.
    chi_square
        The chi-square divergence of the other release from the true one, or anything larger.

    Returns
    -------
    ndarray
        A lower bound on the variance.

    Notes
    -----
    Statement. The Hammersley–Chapman–Robbins bound: Var ≥ ε² / χ², for any other input whose coordinate differs by ε
    and whose release by χ².

    Assumptions. The estimator is unbiased at both inputs (caller); chi_square is no less than the chi-square divergence
    of the other release from the true one (caller, by `gaussian_chi_square`).

    Direction. Exact, rounded down; inf where the two releases are the same but the inputs are not: then no unbiased
    estimator exists.

    References
    ----------
    Hammersley 1950; Chapman and Robbins 1951; Chaudhuri et al. 2024, arXiv:2404.02866v3, equation (5).
    """
    epsilon = validate.array("shift", shift, remedy="pass the change of the coordinate")
    chi = validate.array("chi_square", chi_square, at_least=0, finite=False, remedy="pass a chi-square divergence")
    epsilon, chi = _same_shape("shift", epsilon, "chi_square", chi)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variance = down(down(epsilon * epsilon) / chi)
    return np.where(epsilon == 0, 0.0, np.where(chi == 0, np.inf, np.maximum(variance, 0.0)))[()]


@at_most
def two_point_success(total_variation: ArrayLike) -> NDArray[np.float64]:
    r"""Greatest probability with which anyone tells which of two equally likely inputs was released.

    Parameters
    ----------
    total_variation
        The total variation distance of the two releases, or anything larger.

    Returns
    -------
    ndarray
        An upper bound on P(right).

    Notes
    -----
    Statement. P(right) ≤ (1 + TV)/2.

    Assumptions. total_variation is no less than that of the two releases (caller, by `gaussian_total_variation`).

    Direction. Exact, rounded up, at most 1.

    References
    ----------
    Le Cam 1973; the Neyman–Pearson lemma; docs/proofs/estimation.md.
    """
    variation = validate.array("total_variation", total_variation, at_least=0, at_most=1, remedy="pass a TV distance")
    return np.minimum(up(0.5 + variation / 2), 1.0)[()]


@at_least
def two_point_mse(shift: ArrayLike, *, total_variation: ArrayLike) -> NDArray[np.float64]:
    r"""Least worst-case mean squared error of any estimate, biased or not, of one coordinate of two inputs.

    Parameters
    ----------
    shift
        The difference ε of the coordinate between the two inputs.
    total_variation
        The total variation distance of the two releases, or anything larger.

    Returns
    -------
    ndarray
        A lower bound on the larger error.

    Notes
    -----
    Statement. By the two-point Bayes risk, the larger of the two errors, at either input, is at least (ε²/4)(1 − TV).

    Assumptions. total_variation is no less than that of the two releases (caller, by `gaussian_total_variation`).

    Direction. Valid for every noise, at most a factor 2 below the error of a fair coin between the two inputs; rounded
    down.

    References
    ----------
    Le Cam 1973; docs/proofs/estimation.md.
    """
    epsilon = validate.array("shift", shift, remedy="pass the change of the coordinate")
    variation = validate.array("total_variation", total_variation, at_least=0, at_most=1, remedy="pass a TV distance")
    epsilon, variation = _same_shape("shift", epsilon, "total_variation", variation)
    with np.errstate(over="ignore"):
        squared = np.minimum(down(epsilon * epsilon / 4), np.finfo(float).max)
    return np.maximum(down(squared * down(1 - variation)), 0.0)[()]


@at_least
def two_point_bayes_mse(shift: ArrayLike, *, distance: ArrayLike) -> NDArray[np.float64]:
    r"""Least worst-case mean squared error of any estimate of one coordinate of two inputs, for Gaussian noise.

    Parameters
    ----------
    shift
        The difference ε of the coordinate between the two inputs.
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    ndarray
        A lower bound on the larger error.

    Notes
    -----
    Statement. The larger of the two errors, at either input, is at least (ε²/4) · mmse(d²/4), where mmse(s) = exp(−s/2)
    ∫ φ(y) sech(√s·y) dy; this two-point Bayes risk is the exact error of the best estimate for a fair coin between the
    two inputs.

    Assumptions. Noise N(0, σ²I) (caller); distance = ‖a′ − a‖/σ ≥ 0 and finite (checked).

    Direction. Exact, rounded down: the integral by a trapezoidal sum whose error is bounded and subtracted.

    References
    ----------
    docs/proofs/estimation.md; the error bound is Trefethen and Weideman 2014, doi:10.1137/130932132, Theorem 5.1.
    """
    epsilon = validate.array("shift", shift, remedy="pass the change of the coordinate")
    d = validate.array("distance", distance, at_least=0, remedy="pass ‖a′ − a‖/σ")
    epsilon, d = _same_shape("shift", epsilon, "distance", d)
    with np.errstate(over="ignore"):
        squared = np.minimum(down(epsilon * epsilon / 4), np.finfo(float).max)
    return np.maximum(down(squared * _binary_mmse(d)), 0.0)[()]


def _binary_mmse(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """mmse(d²/4), rounded down, in batches of a few million integrand values."""
    root = up(np.minimum(d, 80.0).ravel() / 2)  # beyond distance 80 the factor exp(−d²/8) is zero in float64
    result = np.empty_like(root)
    # The integrand is analytic up to |Im y| = π/(2√s). On the strip of half-width w = π/(3√s), at most 3, it is at
    # most 2·exp(w²/2)·φ(Re y), so steps of w/6 err by less than 4·exp(w²/2)/(exp(12π) − 1) < 2e-14.
    width = np.minimum(math.pi / np.maximum(3 * root, 1e-300), 3.0)
    order = np.argsort(width)
    start = 0
    while start < len(order):
        step = float(width[order[start]]) / 6
        nodes = np.arange(0, math.ceil(9 / step)) * step
        rows = order[start : start + max(1, 2**21 // len(nodes))]
        weights = np.exp(-nodes * nodes / 2) * (step / math.sqrt(2 * math.pi))
        weights[1:] *= 2  # the integrand is even; leaving out what lies beyond 9 only lowers the sum
        integral = (1 / np.cosh(np.minimum(root[rows, None] * nodes, 700.0))) @ weights
        factor = np.exp(-root[rows] * root[rows] / 2)
        result[rows] = np.maximum(factor * (integral * (1 - 1e-12) - 2e-14), 0.0)
        start += len(rows)
    return down(result.reshape(d.shape), relative=1e-12)


@at_least
def two_point_error(log_odds: ArrayLike, *, total_variation: ArrayLike) -> NDArray[np.float64]:
    r"""Least probability of error of anyone who tells which of two inputs was released, for any noise.

    Parameters
    ----------
    log_odds
        The logarithm of the prior odds of the first input.
    total_variation
        The total variation distance of the two releases, or anything larger.

    Returns
    -------
    ndarray
        A lower bound on P(wrong).

    Notes
    -----
    Statement. P(wrong) ≥ min(w, 1 − w)(1 − TV), w = 1/(1 + exp(−log_odds)) the first input's prior probability.

    Assumptions. total_variation is no less than that of the two releases (caller).

    Direction. Valid for every noise, exact at even odds; rounded down.

    References
    ----------
    docs/proofs/estimation.md. Ziv–Zakai bounds average it over pairs drawn from the prior.
    """
    odds = validate.array("log_odds", log_odds, remedy="pass the logarithm of the prior odds")
    variation = validate.array("total_variation", total_variation, at_least=0, at_most=1, remedy="pass a TV distance")
    odds, variation = _same_shape("log_odds", odds, "total_variation", variation)
    rarer: NDArray[np.float64] = special.expit(-np.abs(odds))
    return np.maximum(down(rarer * down(1 - variation), relative=SPECIAL), 0.0)[()]


@at_least
def two_point_bayes_error(log_odds: ArrayLike, *, distance: ArrayLike) -> NDArray[np.float64]:
    r"""Least probability of error of anyone who tells which of two inputs was released, for Gaussian noise.

    Parameters
    ----------
    log_odds
        The logarithm of the prior odds of the first input.
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    ndarray
        A lower bound on P(wrong).

    Notes
    -----
    Statement. P(wrong) ≥ w Φ(−d/2 − l/d) + (1 − w) Φ(−d/2 + l/d), l = log_odds, w = 1/(1 + exp(−l)) the first input's
    prior probability; min(w, 1 − w) at d = 0. It is the error of the likelihood-ratio test.

    Assumptions. Noise N(0, σ²I) (caller); distance = ‖a′ − a‖/σ ≥ 0 and finite (checked).

    Direction. Exact, rounded down; distances below 1e-6 are treated as in `two_point_error`.

    References
    ----------
    Neyman and Pearson 1933; docs/proofs/estimation.md. Ziv–Zakai bounds average it over pairs drawn from the prior.
    """
    odds = validate.array("log_odds", log_odds, remedy="pass the logarithm of the prior odds")
    d = validate.array("distance", distance, at_least=0, remedy="pass ‖a′ − a‖/σ")
    odds, d = _same_shape("log_odds", odds, "distance", d)
    size, near = np.abs(odds), d < 1e-6
    safe = np.where(near, 1.0, d)
    with np.errstate(over="ignore"):
        tilt = size / safe
    rarer: NDArray[np.float64] = special.expit(-size)
    error: NDArray[np.float64] = special.expit(size) * special.ndtr(-safe / 2 - tilt) + rarer * special.ndtr(
        -safe / 2 + tilt
    )
    coin = rarer * (1 - np.where(near, d, 0.0))  # TV = 2Φ(d/2) − 1 < d
    return np.maximum(down(np.where(near, coin, error), relative=SPECIAL), 0.0)[()]


@at_most
def gallery_identification(
    features: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    sigma: float,
    draws: int,
    failure_probability: float,
    seed: int,
    keep: list[NDArray[np.float64]] | None = None,
) -> float:
    r"""Greatest probability with which anyone names the released one of N known candidates.

    Parameters
    ----------
    features
        The features a_i, one row for each candidate.
    weights
        How likely each candidate is, up to a factor; all equally likely unless given.
    sigma
        The standard deviation σ of the noise.
    draws
        The number of draws of X.
    failure_probability
        The chance with which the result may be wrong.
    seed
        The seed of the draws.
    keep
        A list to which the numbers are appended whose mean is limited: what a certificate states.

    Returns
    -------
    float
        An upper confidence limit for the probability.

    Notes
    -----
    Statement. The best guess is the most probable candidate, so it is E maxᵢ P(i | X), X = a_I + σZ, where I = i with a
    probability in proportion to weights[i], all equal unless given; estimated from independent draws of X, with an
    upper confidence limit, it exceeds the result with probability at most failure_probability.

    Assumptions. Noise N(0, σ²I), of which NumPy's generator gives independent draws, and rows are different candidates:
    one that occurs twice is one row of twice the weight (caller); features has one finite row per candidate, weights
    are positive (checked).

    Direction. Rounded up; the rounding errors of the posterior are bounded and added.

    References
    ----------
    docs/proofs/estimation.md; the lesser of `sampled_mean_upper` and `bounded_mean_upper`.
    """
    a = _candidates("features", features)
    n = validate.whole("draws", draws, at_least=1, remedy="use 10000 or more")
    named = [
        np.minimum(up(greatest, relative=error + LIBRARY), 1.0)
        for greatest, error in _greatest_posteriors(a, weights=weights, sigma=sigma, draws=n, seed=seed)
    ]
    values = np.concatenate(named)
    if keep is not None:
        keep.append(values)
    half = validate.probability("failure_probability", failure_probability, remedy="use 0.001") / 2
    mean = min(up(float(np.mean(values)), relative=1e-12), 1.0)
    # Bets are tighter where values vary little, Chernoff's bound where they are nearly all 1.
    return min(
        sampled_mean_upper(values, failure_probability=half),
        bounded_mean_upper(mean, count=n, failure_probability=half),
    )


@at_least
def gallery_mse(
    features: ArrayLike,
    inputs: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    sigma: float,
    draws: int,
    failure_probability: float,
    seed: int,
    keep: list[NDArray[np.float64]] | None = None,
) -> float:
    r"""Least mean squared error, per coordinate, of anyone who rebuilds one of N known inputs.

    Parameters
    ----------
    features
        The features a_i, one row for each candidate.
    inputs
        The inputs θ_i, one row for each candidate.
    weights
        How likely each candidate is, up to a factor; all equally likely unless given.
    sigma
        The standard deviation σ of the noise.
    draws
        The number of draws of X.
    failure_probability
        The chance with which the result may be wrong.
    seed
        The seed of the draws.
    keep
        A list to which the numbers are appended whose mean is limited, and then their unit: what a certificate states.

    Returns
    -------
    float
        A lower confidence limit for the mean squared error per coordinate.

    Notes
    -----
    Statement. The best estimate is the posterior mean, so it is E trace Cov(θ_I | X)/p, X = a_I + σZ, where I = i with
    a probability in proportion to weights[i], all equal unless given, reached by the posterior mean; estimated from
    independent draws of X, with a lower confidence limit, it lies below the result with probability at most
    failure_probability.

    Assumptions. Noise N(0, σ²I), of which NumPy's generator gives independent draws (caller); features and inputs have
    one finite row per candidate, weights are positive (checked).

    Direction. Rounded down; the rounding errors of the posterior are bounded and subtracted.

    References
    ----------
    docs/proofs/estimation.md; the greater of `sampled_mean_lower` and `bounded_mean_lower`.
    """
    a, theta = _gallery(features, inputs)
    n = validate.whole("draws", draws, at_least=1, remedy="use 10000 or more")
    coordinates = int(theta.shape[1])
    squares = np.sum(theta * theta, axis=1)
    if not squares.any():
        return 0.0
    most = up(float(squares.max()), relative=1e-9)  # the trace is at most the mean squared distance from any point
    shares: list[NDArray[np.float64]] = []
    for posterior, error in _posteriors(a, weights=weights, sigma=sigma, draws=n, seed=seed, width=coordinates):
        centre = posterior @ theta
        trace = posterior @ squares - np.sum(centre * centre, axis=1)
        rounding = 8 * (len(theta) + coordinates) * np.finfo(float).eps
        shares.append(np.clip(down((trace - most * (4 * error + rounding)) / most, relative=1e-12), 0.0, 1.0))
    values = np.concatenate(shares)
    if keep is not None:
        keep += [values, np.array([most])]
    half = validate.probability("failure_probability", failure_probability, remedy="use 0.001") / 2
    mean = max(down(float(np.mean(values)), relative=1e-12), 0.0)
    # Bets are tighter where values vary little, Chernoff's bound where they are nearly all 0.
    limit = max(
        sampled_mean_lower(values, failure_probability=half),
        bounded_mean_lower(mean, count=n, failure_probability=half),
    )
    return max(down(limit * most / coordinates, relative=1e-9), 0.0)


@at_least
def gallery_coordinate_mse(
    features: ArrayLike,
    inputs: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    sigma: float,
    draws: int,
    failure_probability: float,
    seed: int,
) -> NDArray[np.float64]:
    r"""Least mean squared error in each coordinate of anyone who rebuilds one of N known inputs.

    Parameters
    ----------
    features
        The features a_i, one row for each candidate.
    inputs
        The inputs θ_i, one row for each candidate.
    weights
        How likely each candidate is, up to a factor; all equally likely unless given.
    sigma
        The standard deviation σ of the noise.
    draws
        The number of draws of X.
    failure_probability
        The chance with which the result may be wrong.
    seed
        The seed of the draws.

    Returns
    -------
    ndarray
        A lower confidence limit for the mean squared error in each coordinate.

    Notes
    -----
    Statement. The best estimate is the posterior mean, as for `gallery_mse`, coordinate by coordinate: E Var(θ_Ij | X).
    All p of them hold together, except with probability failure_probability.

    Assumptions. Those of `gallery_mse`.

    Direction. Rounded down; the rounding errors of the posterior are bounded and subtracted.

    References
    ----------
    docs/proofs/estimation.md; `bounded_mean_lower`.
    """
    a, theta = _gallery(features, inputs)
    n = validate.whole("draws", draws, at_least=1, remedy="use 10000 or more")
    alpha = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    squares = theta * theta
    most: NDArray[np.float64] = up(squares.max(axis=0), relative=1e-9)
    total = np.zeros(theta.shape[1])
    for posterior, error in _posteriors(a, weights=weights, sigma=sigma, draws=n, seed=seed, width=2 * theta.shape[1]):
        variance = posterior @ squares - (posterior @ theta) ** 2
        rounding = 16 * len(theta) * np.finfo(float).eps
        total += np.sum(np.maximum(variance - most * (4 * error + rounding), 0.0), axis=0)
    shares: NDArray[np.float64] = np.maximum(down(total / n / np.where(most > 0, most, 1.0), relative=1e-12), 0.0)
    limits = [bounded_mean_lower(float(s), count=n, failure_probability=alpha / len(shares)) for s in shares]
    return np.maximum(down(np.array(limits) * most, relative=1e-9), 0.0)


def _gallery(features: ArrayLike, inputs: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and inputs, one row per candidate; inputs are centred, which keeps cancellation small."""
    a = _candidates("features", features)
    theta = _candidates("inputs", inputs)
    if len(a) != len(theta):
        raise InputError(
            "inputs", len(theta), requirement=f"must have one row for each of {len(a)} candidates", remedy="match them"
        )
    if np.abs(theta).max() > 1e150:
        raise InputError("inputs", float(np.abs(theta).max()), requirement="must be below 1e150", remedy="rescale them")
    return a, theta - theta.mean(axis=0)


_NUMBERS = 2**22
"""About how many numbers are held at once beside the candidates."""

_LEAST_DRAWS = 256
"""Draws that are compared with candidates together, however many candidates there are."""


def _posteriors(
    a: NDArray[np.float64], *, weights: ArrayLike | None, sigma: float, draws: int, seed: int, width: int = 1
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Yield, for batches of draws of X, P(i | X) as rows and a bound on the relative error of each entry.

    A batch holds about four million numbers, `width` per draw for the caller included.
    """
    gallery = _Scaled.of(a, weights, sigma)
    for x in gallery.releases(draws, max(1, _NUMBERS // max(len(a), a.shape[1], width)), seed):
        log_likelihood = gallery.log_likelihood(x, slice(None))
        error = gallery.error(x)
        log_likelihood -= log_likelihood.max(axis=1, keepdims=True)
        posterior = np.exp(log_likelihood)
        posterior /= posterior.sum(axis=1, keepdims=True)
        yield posterior, error


def _greatest_posteriors(
    a: NDArray[np.float64], *, weights: ArrayLike | None, sigma: float, draws: int, seed: int
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Yield, for batches of draws of X, max_i P(i | X) and a bound on its relative error.

    It is 1/Σ exp(l_i − max l), summed over blocks of candidates, so that millions of them need no more memory than
    their features. Every new maximum scales the sum so far, which costs less rounding than a term of the sum.
    """
    gallery = _Scaled.of(a, weights, sigma)
    batch = max(_LEAST_DRAWS, _NUMBERS // max(len(a), a.shape[1]))
    rows = max(1, _NUMBERS // batch)
    for x in gallery.releases(draws, batch, seed):
        error = gallery.error(x)
        total, top = np.zeros(len(x)), np.full(len(x), -np.inf)
        for first in range(0, len(a), rows):
            log_likelihood = gallery.log_likelihood(x, slice(first, first + rows))
            before, top = top, np.maximum(top, log_likelihood.max(axis=1))
            log_likelihood -= top[:, None]
            total = total * np.exp(before - top) + np.exp(log_likelihood).sum(axis=1)
        yield 1 / total, error


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scaled:
    """Candidates in units of the noise, around their mean: the posterior depends on differences alone."""

    features: NDArray[np.float64]
    mean: NDArray[np.float64]
    sigma: float
    squares: NDArray[np.float64]
    chances: NDArray[np.float64] | None
    log_chances: NDArray[np.float64]
    largest: float

    @classmethod
    def of(cls, a: NDArray[np.float64], weights: ArrayLike | None, sigma: float) -> _Scaled:
        """Check weights and σ, and compute the squared norms, a block of candidates at a time."""
        sigma = validate.number("sigma", sigma, above=0, remedy="give the standard deviation of the noise")
        chances = None if weights is None else _chances(weights, len(a))
        bare = cls(
            features=a,
            mean=a.mean(axis=0),
            sigma=sigma,
            squares=np.zeros(0),
            chances=chances,
            log_chances=np.zeros(1) if chances is None else np.log(chances),
            largest=max(float(a.max()), -float(a.min())),
        )
        rows = max(1, _NUMBERS // a.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [np.sum(bare.rows(slice(first, first + rows)) ** 2, axis=1) for first in range(0, len(a), rows)]
        return replace(bare, squares=np.concatenate(parts))

    def rows(self, some: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """Some candidates."""
        with np.errstate(over="ignore", invalid="ignore"):
            found: NDArray[np.float64] = (self.features[some] - self.mean) / self.sigma
        return found

    def releases(self, draws: int, batch: int, seed: int) -> Iterator[NDArray[np.float64]]:
        """Draw releases, a batch at a time."""
        generator = np.random.default_rng(validate.whole("seed", seed, at_least=0, remedy="use 0"))
        size = len(self.features)
        for start in range(0, draws, batch):
            count = min(batch, draws - start)
            released = (
                generator.integers(size, size=count)
                if self.chances is None
                else generator.choice(size, size=count, p=self.chances)
            )
            yield self.rows(released) + generator.standard_normal((count, self.features.shape[1]))

    def log_likelihood(self, x: NDArray[np.float64], some: slice) -> NDArray[np.float64]:
        """Of releases as rows and some candidates as columns, with the candidates' own chances."""
        log_chances = self.log_chances if len(self.log_chances) == 1 else self.log_chances[some]
        with np.errstate(over="ignore", invalid="ignore"):
            found: NDArray[np.float64] = x @ self.rows(some).T - self.squares[some] / 2 + log_chances
        return found if np.isfinite(found).all() else self._refuse()

    def error(self, x: NDArray[np.float64]) -> float:
        """A bound on the relative error of posteriors for these releases."""
        most = self.squares.max()
        with np.errstate(over="ignore", invalid="ignore"):
            size = math.sqrt(np.max(np.sum(x * x, axis=1))) * math.sqrt(most) + most
        # A dot product of k terms errs by at most k·u·‖x‖‖a‖ (Higham 2002, section 3.1); the posterior, a ratio
        # of N + 1 exponentials of such numbers, by the exponential of twice that, and its sum by N·u; so do weights.
        candidates, features = self.features.shape
        of_weights = 8 * float(np.abs(self.log_chances).max()) + (0 if self.chances is None else 2 * candidates)
        log_error = np.finfo(float).eps * (4 * (features + 8) * size + 2 * candidates + 64 + of_weights)
        if not log_error < 1e-3:
            self._refuse()
        return math.expm1(log_error)

    def _refuse(self) -> NoReturn:
        raise InputError(
            "sigma",
            self.sigma,
            requirement=f"must not be tiny beside features as large as {self.largest:.3g}",
            remedy="raise it: so little noise hides nothing",
        )


def _chances(weights: ArrayLike, count: int) -> NDArray[np.float64]:
    """The prior probability of each candidate."""
    remedy = "pass a positive number for each candidate, or leave them out"
    found = validate.array("weights", weights, at_least=0, dimensions=1, remedy=remedy)
    if len(found) != count or not np.all(found > 0):
        raise InputError(
            "weights",
            (len(found), float(found.min())),
            requirement=f"must be {count} positive numbers, one per candidate",
            remedy=remedy,
        )
    scaled = found / found.max()
    result: NDArray[np.float64] = scaled / scaled.sum()
    if not np.all(result > 0):
        raise InputError(
            "weights", float(found.min()), requirement="must not be tiny beside the others", remedy="leave it out"
        )
    return result


def _candidates(name: str, value: ArrayLike) -> NDArray[np.float64]:
    rows = validate.array(name, value, dimensions=2, remedy="pass one row per candidate")
    if len(rows) < 2:
        raise InputError(f"the rows of {name}", len(rows), requirement="must be 2 or more", remedy="add candidates")
    return rows


def _same_shape(
    first: str, a: NDArray[np.float64], second: str, b: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        a, b = np.broadcast_arrays(a, b)
    except ValueError:
        raise InputError(
            f"{first} and {second}",
            (a.shape, b.shape),
            requirement="must have shapes that broadcast",
            remedy="match them",
        ) from None
    return a, b
