"""What training a model again and again on random halves of its records proves about membership.

Every record is in the training data of every model with probability ½, independently of all others. Proofs:
docs/proofs/membership.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, SPECIAL, at_least, at_most, down, up
from .confidence import binomial_lower, bounded_mean_upper

_MOST, _STEP = 64, 2.0**-20
"""Limits for ε and μ are at most the first, which takes 10²⁷ right guesses, and multiples of the second."""
_NORMAL = 1e-9
"""Granted to SciPy's quantiles of the normal law, relative to their size and 1; tests measure it against 40 digits."""


@at_least
def guessing_epsilon(
    correct: int, *, guesses: int, coins: int, failure_probability: float, delta: float = 0.0
) -> float:
    r"""A lower confidence limit for ε, from guesses which records models were trained on.

    Parameters
    ----------
    correct
        How many guesses are right.
    guesses
        How many guesses were made, a number that was fixed before the models' outputs were seen.
    coins
        How many coins were tossed: records times models.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    delta
        The δ of the (ε, δ) that is refuted.

    Returns
    -------
    float
        The limit for ε.

    Notes
    -----
    Statement. If the training is (ε, δ)-differentially private for adding or removing one record, P(limit > ε) ≤ α.
    If δ = 0, the limit is ln(q/(1−q)), where q is Clopper and Pearson's lower limit at α for that many successes in as
    many trials as there are guesses. Otherwise it is the largest ε that the recursion of the proof refutes, for the
    curve TPR ≤ min(1, e^ε FPR + δ, 1 − e^(−ε)(1 − δ − FPR)).

    Assumptions. Every record was in each model's training data with probability ½, independently, and guesses depend
    on these coins by what the trained models tell alone (caller).

    Direction. Rounded down; at least 0.

    References
    ----------
    docs/proofs/membership.md, `guessing_epsilon`.
    """
    right, tries, tossed, failure = _guesses(correct, guesses, coins, failure_probability)
    lost = validate.number("delta", delta, at_least=0, below=1, remedy="use 0, or the δ of the claim")
    if lost:
        return _largest_refuted(right, tries, tossed, failure, lambda epsilon: _private(epsilon, lost))
    share = binomial_lower(right, trials=tries, failure_probability=failure)
    if share <= 0.5:
        return 0.0
    return max(0.0, down(math.log1p((2 * share - 1) / (1 - share)), relative=4 * LIBRARY))  # differences are exact


@at_least
def guessing_distance(correct: int, *, guesses: int, coins: int, failure_probability: float) -> float:
    r"""A lower confidence limit for μ of Gaussian differential privacy, from guesses which records were trained on.

    Parameters
    ----------
    correct
        How many guesses are right.
    guesses
        How many guesses were made, a number that was fixed before the models' outputs were seen.
    coins
        How many coins were tossed: records times models.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for μ: the distance of two normal laws of variance 1 that tell no less than the training does.

    Notes
    -----
    Statement. If the training is μ-Gaussian differentially private for adding or removing one record, P(limit > μ) ≤ α.
    The limit is the largest μ that the recursion of the proof refutes, for the curve TPR ≤ Φ(Φ⁻¹(FPR) + μ).

    Assumptions. As in `guessing_epsilon`; and what is claimed of the training is the whole curve, not one (ε, δ)
    (caller).

    Direction. Rounded down; at least 0.

    References
    ----------
    docs/proofs/membership.md, `guessing_distance`.
    """
    return _largest_refuted(*_guesses(correct, guesses, coins, failure_probability), _gaussian)


def _guesses(correct: int, guesses: int, coins: int, failure_probability: float) -> tuple[int, int, int, float]:
    tries = validate.whole("guesses", guesses, at_least=1, remedy="guess at least once")
    right = validate.whole("correct", correct, at_least=0, remedy="count the right guesses")
    if right > tries:
        raise InputError("correct", right, requirement=f"must be {tries} at most", remedy="count the right guesses")
    tossed = validate.whole("coins", coins, at_least=tries, remedy="count a coin for every record and model")
    failure = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.05")
    return right, tries, tossed, failure


def _largest_refuted(
    right: int, tries: int, tossed: int, failure: float, family: Callable[[float], Callable[[float], float]]
) -> float:
    """The largest parameter of a family of curves, each above those of smaller ones, that the guesses refute."""
    below, above = 0, int(_MOST / _STEP)
    while above - below > 1:
        middle = (below + above) // 2
        if _refuted(right, tries, tossed, failure, family(middle * _STEP)):
            below = middle  # what is returned was itself refuted
        else:
            above = middle
    return below * _STEP


def _refuted(right: int, tries: int, tossed: int, failure: float, least: Callable[[float], float]) -> bool:
    """Whether so many right guesses have a probability below α, by the recursion of docs/proofs/membership.md.

    `least` is the inverse of the curve, rounded down. All sums are of positive numbers, so that their relative errors
    are below 2⁻⁵³ for each of their terms; `slack` is more than three times that, and covers the other operations.
    """
    slack = 4e-16 * (tries + 100)
    hit, missed, total = failure * right / tossed, failure * (tries - right) / tossed, failure
    for number in range(right - 1, -1, -1):
        mass = (least(hit * (1 - slack)) * (1 - slack) - missed * (1 + slack)) * tossed / (tries - number)
        if mass <= 0:  # and so it is for all smaller numbers
            return False
        total += mass
        if total * (1 - slack) > 1:
            return True
        hit += mass * number / tossed
        missed += mass * (tries - number) / tossed
    return False


def _private(epsilon: float, delta: float) -> Callable[[float], float]:
    factor = math.exp(epsilon)

    def least(rate: float) -> float:
        """The least FPR at which this TPR is possible; where it is not, more than 1."""
        low = (rate - delta) / factor * (1 - 4 * LIBRARY)
        high = 1 - delta - factor * (1 - rate) * (1 + 4 * LIBRARY) - 4 * LIBRARY
        return max(0.0, low, high)

    return least


def _gaussian(distance: float) -> Callable[[float], float]:
    def least(rate: float) -> float:
        quantile = float(special.ndtri(rate))
        return float(special.ndtr(quantile - _NORMAL * (1 + abs(quantile)) - distance)) * (1 - SPECIAL)

    return least


@at_most
def retrained_advantage(plug_in: float, *, models: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the advantage of whoever holds the record and sees a model's output on it.

    Parameters
    ----------
    plug_in
        The plug-in: the mean over records of Σ_t |n₁(t) − n₀(t)|/models, where n₁(t) and n₀(t) count the models with
        output t on the record that were trained on it and that were not. Or anything larger.
    models
        How many models were trained.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for TPR − FPR, on average over these records.

    Notes
    -----
    Statement. P(limit < advantage) ≤ α, (1 + limit)/2 = sup{p : models·kl((1 + plug-in)/2 ‖ p) < ln(1/α)}.

    Assumptions. Every record was in each model's training data with probability ½, and models were trained
    independently of each other, the coins of each together with its outputs (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/membership.md, `retrained_advantage`.
    """
    share = validate.number("plug_in", plug_in, at_least=0, remedy="pass the plug-in of the table")
    half = min(1.0, up((1 + min(1.0, share)) / 2))
    return min(1.0, up(2 * bounded_mean_upper(half, count=models, failure_probability=failure_probability) - 1))
