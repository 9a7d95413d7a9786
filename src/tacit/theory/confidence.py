"""One-sided confidence limits that hold for every sample size (docs/proofs/confidence.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, SPECIAL, at_least, at_most, down, last_true, up

_MOST_TRIALS = 10**10
"""Beyond this the incomplete beta function errs by more than `SPECIAL` grants."""

_STAKE = 0.9
"""The share of what is owned that a bet may lose."""
_LARGEST_BET = 1e6

_GUESSES, _CLOSE = 30, 1e-9
"""Steps of a guess at most, and what is close enough to 0 for it."""

_SMALL_SCALE, _SMOOTH, _WIDEST = 0.25, 2.0, 3.0
"""The least τ for a limit on noise; the scale from which Z is that of an integral; ln of limit/τ that always holds."""

_FAILURE = "use a small probability such as 0.001"


@at_least
def binomial_lower(successes: int, *, trials: int, failure_probability: float) -> float:
    r"""A lower confidence limit for the probability of success.

    Parameters
    ----------
    successes
        The number k of successes.
    trials
        The number n of trials.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the probability p of success.

    Notes
    -----
    Statement. P(limit > p) ≤ failure_probability, limit = inf{p : P(Bin(n, p) ≥ k) > failure_probability}.

    Assumptions. Independent trials with one probability of success (caller); 0 ≤ k ≤ n (checked).

    Direction. Rounded down.

    References
    ----------
    Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404.
    """
    k, n = _counts(successes, trials)
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    if k == 0:
        return 0.0

    def excluded(p: float) -> bool:
        # The tail as a beta integral: SciPy's bdtrc rounds 1 − p first, which costs n units in the last place.
        return up(float(special.betainc(k, n - k + 1, p)), relative=SPECIAL) <= alpha

    guess = special.betaincinv(k, n - k + 1, alpha / (1 + SPECIAL))
    return last_true(excluded, holds=0.0, fails=k / n, near=float(guess))


@at_most
def binomial_upper(successes: int, *, trials: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the probability of success.

    Parameters
    ----------
    successes
        The number k of successes.
    trials
        The number n of trials.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the probability p of success.

    Notes
    -----
    Statement. P(limit < p) ≤ failure_probability, limit = sup{p : P(Bin(n, p) ≤ k) > failure_probability}.

    Assumptions. Independent trials with one probability of success (caller); 0 ≤ k ≤ n (checked).

    Direction. Rounded up.

    References
    ----------
    Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404.
    """
    k, n = _counts(successes, trials)
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    if k == n:
        return 1.0

    def excluded(p: float) -> bool:
        return up(float(special.betaincc(k + 1, n - k, p)), relative=SPECIAL) <= alpha

    guess = special.betainccinv(k + 1, n - k, alpha / (1 + SPECIAL))
    return last_true(excluded, holds=1.0, fails=k / n, near=float(guess))


@at_least
def bounded_mean_lower(mean: float, *, count: int, failure_probability: float) -> float:
    r"""A lower confidence limit for the expectation of numbers in [0, 1], from the mean of `count` of them.

    Parameters
    ----------
    mean
        The mean of the values.
    count
        The number n of values.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the expectation μ.

    Notes
    -----
    Statement. P(limit > μ) ≤ failure_probability, limit = inf{μ ≤ mean : n·kl(mean ‖ μ) < ln(1/failure_probability)}.

    Assumptions. Independent values in [0, 1] with one expectation (caller); mean in [0, 1] (checked).

    Direction. Rounded down.

    References
    ----------
    Hoeffding 1963, doi:10.1080/01621459.1963.10500830, equation (2.1).
    """
    m, n, log = _mean(mean, count, failure_probability)
    if m == 0:
        return 0.0
    return last_true(lambda mu: n * _kl_lower(m, mu) >= log, holds=0.0, fails=m)


@at_most
def bounded_mean_upper(mean: float, *, count: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the expectation of numbers in [0, 1], from the mean of `count` of them.

    Parameters
    ----------
    mean
        The mean of the values.
    count
        The number n of values.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the expectation μ.

    Notes
    -----
    Statement. P(limit < μ) ≤ failure_probability, limit = sup{μ ≥ mean : n·kl(mean ‖ μ) < ln(1/failure_probability)}.

    Assumptions. Independent values in [0, 1] with one expectation (caller); mean in [0, 1] (checked).

    Direction. Rounded up.

    References
    ----------
    Hoeffding 1963, doi:10.1080/01621459.1963.10500830, equation (2.1).
    """
    m, n, log = _mean(mean, count, failure_probability)
    if m == 1:
        return 1.0
    return last_true(lambda mu: n * _kl_lower(m, mu) >= log, holds=1.0, fails=m)


@at_least
def sampled_mean_lower(values: ArrayLike, *, failure_probability: float) -> float:
    r"""A lower confidence limit for the expectation of numbers in [0, 1], from the numbers themselves.

    Parameters
    ----------
    values
        The values, in the order drawn.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the expectation μ.

    Notes
    -----
    Statement. P(limit > μ) ≤ failure_probability, limit = sup{m : Π (1 + λ_t(x_t − m)) ≥ 1/failure_probability}, where
    the bet λ_t = min(b_t, 9/(10m)), and b_t depends on x_1 … x_(t−1) alone. Tighter than `bounded_mean_lower` where the
    numbers vary less than coins do.

    Assumptions. Independent values in [0, 1] with one expectation, in the order drawn (caller; the range is checked).

    Direction. Rounded down.

    References
    ----------
    Waudby-Smith and Ramdas 2024, doi:10.1093/jrsssb/qkad009; docs/proofs/confidence.md.
    """
    x = validate.array("values", values, at_least=0, at_most=1, dimensions=1, remedy="scale the values to [0, 1] first")
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    log = up(-math.log(alpha), relative=LIBRARY)
    seen = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (seen + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (seen + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    bets, error = np.sqrt(2 * log / (len(x) * before)), 4 * (len(x) + 8) * float(np.finfo(float).eps)

    @cache  # the ends and the guess are asked for twice
    def won(m: float) -> float:
        """The logarithm of what the bets against m have won, rounded down, beyond what is needed."""
        gains = np.log1p(np.minimum(bets, _STAKE / max(m, _STAKE / _LARGEST_BET)) * (x - m))
        return float(gains.sum()) - error * float(np.abs(gains).sum() + len(x)) - log

    if won(0.0) < 0:
        return 0.0
    return last_true(lambda m: won(m) >= 0, holds=0.0, fails=1.0, near=_crossing(won))


@at_most
def sampled_mean_upper(values: ArrayLike, *, failure_probability: float) -> float:
    r"""An upper confidence limit for the expectation of numbers in [0, 1], from the numbers themselves.

    Parameters
    ----------
    values
        The values, in the order drawn.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for the expectation μ.

    Notes
    -----
    Statement. P(limit < μ) ≤ failure_probability, limit = 1 − `sampled_mean_lower` of the numbers 1 − x_t.

    Assumptions. Independent values in [0, 1] with one expectation, in the order drawn (caller; the range is checked).

    Direction. Rounded up.

    References
    ----------
    Waudby-Smith and Ramdas 2024, doi:10.1093/jrsssb/qkad009; docs/proofs/confidence.md.
    """
    x = validate.array("values", values, at_least=0, at_most=1, dimensions=1, remedy="scale the values to [0, 1] first")
    # 1 − x is rounded by half a unit at most.
    lower = sampled_mean_lower(1 - x, failure_probability=failure_probability)
    return min(up(1 - lower + np.finfo(float).eps), 1.0)


@at_most
def gaussian_scale_upper(squares: int, *, draws: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the scale σ of discrete Gaussian noise, from the sum of its squares.

    Parameters
    ----------
    squares
        The sum t of the squares of the draws.
    draws
        The number n of draws.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for σ.

    Notes
    -----
    Statement. P(limit < σ) ≤ failure_probability, limit = inf{s ≥ τ : n·ln(Z(s)/Z(τ)) − t·(1/(2τ²) − 1/(2s²)) ≥
    ln(1/failure_probability)}, Z(s) = Σ exp(−x²/(2s²)) over all whole x, τ² = t/n (at least 1/16).

    Assumptions. Independent whole numbers x, each with the probability exp(−x²/(2σ²))/Z(σ) (caller).

    Direction. Rounded up.

    References
    ----------
    Chernoff's inequality; docs/proofs/confidence.md.
    """
    total, n, log = _squares(squares, draws, failure_probability)
    tau = max(math.sqrt(total / n), _SMALL_SCALE)
    return last_true(
        lambda s: _scale_divergence(total, n, tau, s) >= log,
        holds=tau * math.exp(min(_WIDEST + 2 * log / n, 700.0)),
        fails=tau,
    )


@at_least
def gaussian_scale_lower(squares: int, *, draws: int, failure_probability: float) -> float:
    r"""A lower confidence limit for the scale σ of discrete Gaussian noise, from the sum of its squares.

    Parameters
    ----------
    squares
        The sum t of the squares of the draws.
    draws
        The number n of draws.
    failure_probability
        The chance with which the limit may be wrong.

    Returns
    -------
    float
        The limit for σ.

    Notes
    -----
    Statement. P(limit > σ) ≤ failure_probability, limit = sup{s ≤ τ : n·ln(Z(s)/Z(τ)) + t·(1/(2s²) − 1/(2τ²)) ≥
    ln(1/failure_probability)}, or 0 if there is none above τ/100, Z and τ as for `gaussian_scale_upper`.

    Assumptions. Independent whole numbers x, each with the probability exp(−x²/(2σ²))/Z(σ) (caller).

    Direction. Rounded down.

    References
    ----------
    Chernoff's inequality; docs/proofs/confidence.md.
    """
    total, n, log = _squares(squares, draws, failure_probability)
    tau = max(math.sqrt(total / n), _SMALL_SCALE)
    if _scale_divergence(total, n, tau, tau / 100) < log:
        return 0.0
    return last_true(lambda s: _scale_divergence(total, n, tau, s) >= log, holds=tau / 100, fails=tau)


def _squares(squares: object, draws: object, failure_probability: object) -> tuple[int, int, float]:
    total = validate.whole("squares", squares, at_least=0, remedy="add up the squares of the draws")
    n = validate.whole("draws", draws, at_least=1, remedy="draw at least once")
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    return total, n, up(-math.log(alpha), relative=LIBRARY)


def _scale_divergence(total: int, n: int, tau: float, s: float) -> float:
    """n·ln(Z(s)/Z(τ)) + t·(1/(2s²) − 1/(2τ²)), rounded down."""
    parts = (n * _log_normaliser(s), -n * _log_normaliser(tau), total / (2 * s * s), -total / (2 * tau * tau))
    return sum(parts) - 8 * LIBRARY * (n + sum(abs(part) for part in parts))


def _log_normaliser(s: float) -> float:
    """ln Z(s) within 4e-15 of itself, or of 1: what the formulas leave out is below 1e-34 of Z."""
    if s >= _SMOOTH:
        return math.log(s) + math.log(math.sqrt(2 * math.pi))
    x = np.arange(1, 40)
    return float(np.log1p(2 * np.sum(np.exp(-(x**2) / (2 * s * s)))))


def _crossing(falling: Callable[[float], float]) -> float:
    """About where a function falls from above 0 at 0 to below 0 at 1, by false position (the Illinois rule)."""
    low, high = 0.0, 1.0
    above, below = falling(low), falling(high)
    middle, before = 0.5, 0.0
    for _ in range(_GUESSES):
        middle = low + (high - low) * above / (above - below) if above > 0 > below else (low + high) / 2
        found = falling(middle)
        if abs(found) < _CLOSE:
            break
        again = found * before > 0  # on the same side twice: the other one weighs less
        if found > 0:
            low, above, below = middle, found, below / 2 if again else below
        else:
            high, below, above = middle, found, above / 2 if again else above
        before = found
    return middle


def _counts(successes: object, trials: object) -> tuple[int, int]:
    n = validate.whole("trials", trials, at_least=1, remedy="run at least one trial")
    if n > _MOST_TRIALS:
        raise InputError("trials", n, requirement=f"must be at most {_MOST_TRIALS:g}", remedy="count a sample of them")
    k = validate.whole("successes", successes, at_least=0, remedy="count the successes")
    if k > n:
        raise InputError("successes", k, requirement=f"must not exceed trials = {n}", remedy="swap the two counts")
    return k, n


def _mean(mean: object, count: object, failure_probability: object) -> tuple[float, int, float]:
    m = validate.number("mean", mean, at_least=0, at_most=1, remedy="scale the values to [0, 1] first")
    n = validate.whole("count", count, at_least=1, remedy="average at least one value")
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    return m, n, up(-math.log(alpha), relative=LIBRARY)


def _kl_lower(m: float, mu: float) -> float:
    """kl(m ‖ μ) between two coins, rounded down; the two terms nearly cancel, hence the absolute allowance."""
    divergence = float(special.rel_entr(m, mu) + special.rel_entr(1 - m, 1 - mu))
    return down(divergence - 1e-15, relative=SPECIAL)
