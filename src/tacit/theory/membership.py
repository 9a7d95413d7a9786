"""What training a model again and again on random halves of its records proves about membership.

Every record is in the training data of every model with probability ½, independently of all others. Proofs:
docs/proofs/membership.md.
"""

from __future__ import annotations

import math

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_least, at_most, down, up
from .confidence import binomial_lower, bounded_mean_upper

_FASTER = 1.1  # how much the number of guesses that δ pays for grows from one try to the next


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
    The limit is the largest ln(q/(1−q)) over whole j ≥ 0 with α_j = α − coins·δ/(2(j+1)) > 0, where q is Clopper and
    Pearson's lower limit at α_j for correct − j successes in as many trials as there are guesses.

    Assumptions. Every record was in each model's training data with probability ½, independently, and guesses depend
    on these coins by what the trained models tell alone (caller).

    Direction. Rounded down; at least 0.

    References
    ----------
    docs/proofs/membership.md, `guessing_epsilon`.
    """
    tries = validate.whole("guesses", guesses, at_least=1, remedy="guess at least once")
    right = validate.whole("correct", correct, at_least=0, remedy="count the right guesses")
    if right > tries:
        raise InputError("correct", right, requirement=f"must be {tries} at most", remedy="count the right guesses")
    tossed = validate.whole("coins", coins, at_least=tries, remedy="count a coin for every record and model")
    failure = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.05")
    lost = validate.number("delta", delta, at_least=0, below=1, remedy="use 0, or the δ of the claim")
    best, spared = 0.0, max(0, math.ceil(tossed * lost / (2 * failure)) - 1)
    while spared < right:
        left = down(failure - up(up(tossed * lost) / (2 * (spared + 1)))) if lost else failure
        if left > 0:
            share = binomial_lower(right - spared, trials=tries, failure_probability=left)
            if share > 0.5:
                odds = math.log1p((2 * share - 1) / (1 - share))  # both differences are exact
                best = max(best, down(odds, relative=4 * LIBRARY))
        if not lost:
            break
        spared = max(spared + 1, int(spared * _FASTER))
    return best


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
