r"""What private answers from votes cost: (ε, δ) of the published sparse vector, stable release, GNMax and quotas.

Two data sets are neighbours if one record was added or removed (or, where labels alone are protected, if one label was
changed); then at most one teacher changes its vote on each query, however the queries are chosen. All noise is
discrete, as `runtime.entropy` draws it, and every statement is about that noise. Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import LIBRARY, SPECIAL, at_most, down, last_true, up

_DELTA = "use about 1/n², e.g. 1e-10 for 100000 records"
_EPSILON = "give the privacy loss that is allowed, e.g. 1.0"
_SCALE = "give the scale of the threshold's noise, e.g. 2·refusals/epsilon"
_SIGMA = "give the standard deviation of the noise, e.g. 40"
_THRESHOLD = "give the threshold as a whole number of votes"
_REFUSALS = "say after how many refusals it stops"
_QUERIES = "say how many queries are asked"
_ANSWERS = "say how many queries are answered"
_QUOTA = "say on how many queries a record may vote"
_SUMS = "say how many sums are released"
_REACH = "say by how much one record moves a sum at most, in whole numbers"
_MOST_REACH = 2**20
"""Beyond this a grid is finer than any noise, and products of its steps leave what floats hold exactly."""
_SENSITIVITY = "give the largest change by one record, in Euclidean norm"

_UNIT = float(np.finfo(float).eps)

_MOST_STEPS = 10**8
"""Beyond this the incomplete beta function may err by more than `SPECIAL` grants."""

_MOST_NOISE = 2.0**40
"""Where a search for enough noise ends; half of the least float is 0, which no δ that is rounded up keeps to."""

_GUESSES, _TIGHT, _LEAST = 20, 1e-14, 1e-300
"""Steps towards a root at most, more of which would take longer than a search without it; how near they come; and the
least chance whose logarithm is taken."""

_SPAN = 12.0
"""Sums of discrete Gaussians are tabulated up to this many standard deviations; both tails hold below 2·exp(−72)."""

_WIDE = 2.0
"""From this deviation on, weights add up to the first term of Poisson's formula but for exp(−2π²·4) of itself."""

_TAIL = up(2 * math.exp(-_SPAN * _SPAN / 2), relative=LIBRARY)

_CELLS = 4096
"""Cells per standard deviation, at most; finer lattices are tabulated exactly."""


@at_most
def composition_delta(epsilon: float, *, step_epsilon: float, steps: int) -> float:
    r"""The least δ for which every adaptive sequence of pure-DP steps is (ε, δ)-DP.

    Parameters
    ----------
    epsilon
        The privacy loss ε of the whole sequence.
    step_epsilon
        The privacy loss ε₀ of each step.
    steps
        The number T of steps.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) = max over l of P(Bin(T, q) ≤ l) − exp(ε) P(Bin(T, 1 − q) ≤ l), q = 1/(1 + exp(ε₀)).

    Assumptions. Each of the T steps is ε₀-DP given the outcomes before it (caller); epsilon ≥ 0, step_epsilon > 0, 1 ≤
    steps ≤ 1e8 (checked).

    Direction. Exact, rounded up; exactly 0 from ε = Tε₀ on.

    References
    ----------
    Kairouz, Oh and Viswanath 2015, arXiv:1311.0776v4, Theorem 3.3.
    """
    epsilon, step, t = _epsilon(epsilon), _step(step_epsilon), _steps("steps", steps)
    if epsilon >= up(t * step):
        return 0.0
    ratio = math.exp(-step)  # q = ratio/(1 + ratio)
    q_lower = max(0.0, down(ratio / (1 + ratio), relative=LIBRARY))
    p_upper = min(1.0, up(1 / (1 + ratio), relative=LIBRARY))
    best = 0.0
    edge = math.floor((t - epsilon / step) / 2)
    for l in {max(0, min(t - 1, edge + move)) for move in (-1, 0, 1)}:  # noqa: E741 — the theorem's letter
        likely = up(float(special.betainc(t - l, l + 1, p_upper)), relative=SPECIAL)
        unlikely = down(float(special.betainc(t - l, l + 1, q_lower)), relative=SPECIAL)
        # Without its second term the difference is still an upper bound: where exp(ε) would overflow.
        kept = down(math.exp(epsilon) * unlikely, relative=LIBRARY) if epsilon < 700 else 0.0
        best = max(best, up(likely - max(0.0, kept)))
    return min(1.0, best)


@at_most
def basic_composition(costs: Sequence[float]) -> float:
    r"""Basic composition: the ε, or the δ, of several releases together is the sum of theirs.

    Parameters
    ----------
    costs
        The ε of every release, or the δ of every release.

    Returns
    -------
    float
        An upper bound on the sum; adding 0 changes nothing.

    Notes
    -----
    Statement. Releases that are each (ε_i, δ_i)-DP are together (ε, δ)-DP with ε = Σε_i and δ = Σδ_i, for the same
    neighbours. Each release, and its cost, may be chosen after seeing earlier ones, if ε and δ are fixed in advance and
    never exceeded, as in a ledger.

    Assumptions. Each release is (ε_i, δ_i)-DP for these neighbours, given what was released before (caller); costs
    are ≥ 0 (checked).

    Direction. Exact sum, rounded up.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan 2016 (arXiv:1605.08294); docs/proofs/accounting.md.
    """
    total = 0.0
    remedy = "give the ε, or the δ, of each release"
    for cost in validate.array("costs", costs, at_least=0, dimensions=1, remedy=remedy).tolist():
        total = up(total + cost) if total and cost else total + cost
    return total


@at_most
def laplace_scale(epsilon: float, *, sensitivity: int) -> float:
    r"""The least scale of discrete Laplace noise with which one whole number is ε-DP.

    Parameters
    ----------
    epsilon
        The privacy loss ε that is allowed.
    sensitivity
        The largest change Δ of the number by one record.

    Returns
    -------
    float
        The scale s, rounded up.

    Notes
    -----
    Statement. The number plus noise with P(x) ∝ exp(−|x|/s) is ε-DP for s = Δ/ε.

    Assumptions. One record changes the number by at most Δ; noise drawn exactly (caller); epsilon > 0, sensitivity ≥ 1
    (checked).

    Direction. Exact, rounded up.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon = _positive_epsilon(epsilon)
    delta = validate.whole("sensitivity", sensitivity, at_least=1, remedy="give the largest change by one record")
    return up(delta / epsilon)


@at_most
def lone_label_chance(threshold: int, *, scale: float) -> float:
    r"""The chance that a label held by a single record is found: that its noisy count reaches the threshold.

    Parameters
    ----------
    threshold
        The threshold t of the noisy count.
    scale
        The scale λ of the noise.

    Returns
    -------
    float
        An upper bound on P(1 + Z ≥ t).

    Notes
    -----
    Statement. P(1 + Z ≥ t) = a^(t−1)/(1 + a), a = exp(−1/λ), Z discrete Laplace of scale λ.

    Assumptions. Noise drawn exactly (caller); threshold ≥ 2, scale > 0 (checked).

    Direction. Exact, rounded up.

    References
    ----------
    docs/proofs/accounting.md.
    """
    t = validate.whole("threshold", threshold, at_least=2, remedy="use that of label_threshold")
    return _single_release(t - 2, _scale(scale))


@at_most
def label_threshold(delta: float, *, scale: float, changed: int) -> int:
    r"""The least threshold at which naming the labels whose noisy counts reach it is (c/λ, δ)-DP.

    Parameters
    ----------
    delta
        The δ that is allowed.
    scale
        The scale λ of the noise on each count.
    changed
        The largest number c of counts that one record, or person, changes.

    Returns
    -------
    int
        The least threshold t.

    Notes
    -----
    Statement. min{t ≥ 2 : c·p(t) ≤ δ}, p of `lone_label_chance`.

    Assumptions. One record, or person, changes at most c counts, each by 1; labels that nobody holds are never found;
    discrete Laplace noise of scale λ on every other count, drawn exactly and independently (caller); delta in (0, 1),
    scale > 0, c ≥ 1 (checked).

    Direction. The t returned was itself checked against the claim.

    References
    ----------
    docs/proofs/accounting.md.
    """
    delta, scale = _delta(delta), _scale(scale)
    c = validate.whole("changed", changed, at_least=1, remedy="use 1 for a record that is added, 2 for a changed label")
    share = down(delta / c, relative=4e-16)
    return 2 + _least(
        lambda more: lone_label_chance(2 + more, scale=scale) <= share, what=f"a threshold for scale = {scale:g}"
    )


@at_most
def replacement_delta(epsilon: float, delta: float) -> float:
    r"""The δ at 2ε when a record is replaced, for what is (ε, δ)-DP when one is added or removed.

    Parameters
    ----------
    epsilon
        The ε that holds when one record is added or removed.
    delta
        The δ that holds when one record is added or removed.

    Returns
    -------
    float
        An upper bound on δ at 2ε when one record is replaced.

    Notes
    -----
    Statement. (1 + exp(ε)) δ, or 1 where that is more.

    Assumptions. (ε, δ)-DP for one record added or removed (caller); epsilon ≥ 0, delta in (0, 1) (checked).

    Direction. Exact for the worst of such mechanisms, rounded up.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta = _epsilon(epsilon), _delta(delta)
    if epsilon >= 700:  # exp(ε) would overflow
        return 1.0
    return min(1.0, up((1 + math.exp(epsilon)) * delta, relative=4 * LIBRARY))


@at_most
def unstable_release(threshold: int, *, scale: float) -> float:
    r"""The chance that sparse vector answers a query whose winner one vote can change (distance 0).

    Parameters
    ----------
    threshold
        The threshold w, in whole votes.
    scale
        The scale λ of the threshold's noise.

    Returns
    -------
    float
        An upper bound on P(Y − Z > w).

    Notes
    -----
    Statement. P(Y − Z > w) = (b^(w+1) (1 + b) − b^(2w+3)/(1 + b²)) / (1 + b + b²), b = exp(−1/(2λ)), Z discrete Laplace
    of scale λ (the threshold's noise), Y of scale 2λ (the distance's).

    Assumptions. Both drawn exactly and independently (caller); threshold ≥ 0, scale > 0 (checked).

    Direction. Exact, rounded up.

    References
    ----------
    docs/proofs/accounting.md.
    """
    w, scale = _threshold(threshold), _scale(scale)
    rate = 1 / (2 * scale)
    b = math.exp(-rate)
    # exp(−x) errs by x times the relative error of x, and x may be large: exponents are rounded, not results.
    first = up(math.exp(-down((w + 1) * rate, relative=4e-16)), relative=LIBRARY) * (1 + b)
    second = down(math.exp(-up((2 * w + 3) * rate, relative=4e-16)), relative=LIBRARY) / (1 + b * b)
    return min(1.0, up((first - max(0.0, second)) / (1 + b + b * b), relative=8 * LIBRARY) + 5e-324)


@at_most
def sparse_vector_delta(epsilon: float, *, scale: float, threshold: int, refusals: int) -> float:
    r"""δ(ε) of Algorithm 2, sparse vector over stability: answers until T refusals, for any adaptive queries.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    scale
        The scale λ of the threshold's noise.
    threshold
        The threshold w, in whole votes.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ 1 − (1 − p)^T (1 − δ_T(ε)), p = P(Y − Z > w) of `unstable_release`, δ_T of `composition_delta` for
    T steps of 2/λ.

    Assumptions. One record changes at most one vote a query; the distance is `votes_to_flip`; noise of scale λ on every
    new threshold and 2λ on every distance, drawn exactly; a new threshold after each refusal; no answer after the T-th
    (caller).

    Direction. An upper bound, rounded up.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Algorithm 2, corrected; docs/proofs/accounting.md.
    """
    epsilon, scale, t = _epsilon(epsilon), _scale(scale), _steps("refusals", refusals)
    composed = composition_delta(epsilon, step_epsilon=up(2 / scale), steps=t)
    return _either(unstable_release(threshold, scale=scale), t, composed)


@at_most
def sparse_vector_scale(epsilon: float, delta: float, *, refusals: int) -> float:
    r"""The least noise scale λ at which T refusals spend at most half of δ, the other half left to the threshold.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    float
        The scale λ, rounded up.

    Notes
    -----
    Statement. inf{λ : δ_T(ε) ≤ δ/2}, δ_T as in `sparse_vector_delta`.

    Assumptions. Those of `sparse_vector_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. Rounded up: the λ returned was itself checked against the claim.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, t = _positive_epsilon(epsilon), _delta(delta), _steps("refusals", refusals)
    return _least_noise(
        lambda scale: composition_delta(epsilon, step_epsilon=up(2 / scale), steps=t),
        delta / 2,
        holds=up(2 * t / epsilon, relative=LIBRARY),
        fails=1 / (epsilon + 1),
    )


@at_most
def sparse_vector_threshold(epsilon: float, delta: float, *, scale: float, refusals: int) -> int:
    r"""The least threshold w, in votes, with which Algorithm 2 is (ε, δ)-DP at the noise scale given.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    scale
        The scale λ of the threshold's noise.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    int
        The threshold w, in votes.

    Notes
    -----
    Statement. min{w ≥ 0 : δ(ε) ≤ δ}, δ(ε) of `sparse_vector_delta`.

    Assumptions. Those of `sparse_vector_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. The w returned was itself checked against the claim.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, scale = _positive_epsilon(epsilon), _delta(delta), _scale(scale)
    t = _steps("refusals", refusals)
    composed = composition_delta(epsilon, step_epsilon=up(2 / scale), steps=t)
    return _least(
        lambda w: _either(unstable_release(w, scale=scale), t, composed) <= delta,
        what=f"a threshold for scale = {scale:g} and refusals = {t} at epsilon = {epsilon:g} and delta = {delta:g}",
    )


@at_most
def sparse_vector_distance(
    *, scale: float, threshold: int, refusals: int, queries: int, failure_probability: float
) -> int:
    r"""The least distance from a flip at which all queries are answered, except with a small probability.

    Parameters
    ----------
    scale
        The scale λ of the threshold's noise.
    threshold
        The threshold w, in whole votes.
    refusals
        The number T of refusals after which the mechanism stops.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The distance d, in votes.

    Notes
    -----
    Statement. P(any of m queries at distance ≥ d is refused) ≤ m T P(Y − Z ≥ d − w) ≤ failure_probability.

    Assumptions. Noise as in `sparse_vector_delta`, and no stop by other queries' refusals before (caller).

    Direction. Upper bound on the least distance, by a union over queries and thresholds.

    References
    ----------
    docs/proofs/accounting.md.
    """
    scale, w = _scale(scale), _threshold(threshold)
    t, m = _steps("refusals", refusals), _steps("queries", queries)
    beta = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.01")
    share = down(beta / (m * t), relative=4e-16)
    return w + 1 + _least(lambda gap: unstable_release(gap, scale=scale) <= share, what=f"a distance for {m} queries")


@at_most
def stable_teachers(distance: int, *, agreement: float) -> int:
    r"""The least number of teachers whose given share of agreement puts a query `distance` votes from a flip.

    Parameters
    ----------
    distance
        The distance d from a flip, in votes.
    agreement
        The share a of the teachers that vote for the winner.

    Returns
    -------
    int
        The number k of teachers.

    Notes
    -----
    Statement. k = ⌊2d/(2a − 1)⌋ + 1: with at least ak of k votes for the winner, ⌈(n₁ − n₂)/2⌉ − 1 ≥ d.

    Assumptions. agreement in (½, 1] and distance ≥ 0 (checked).

    Direction. Exact, in rational arithmetic; more teachers work as well.

    References
    ----------
    docs/proofs/accounting.md.
    """
    d = validate.whole("distance", distance, at_least=0, remedy="give the votes to flip")
    a = Fraction(validate.number("agreement", agreement, above=0.5, at_most=1, remedy="use 1 for unanimous votes"))
    return math.floor(2 * d / (2 * a - 1)) + 1


@at_most
def printed_scale(epsilon: float, delta: float, *, refusals: int) -> float:
    r"""The noise scale λ of the paper's Algorithm 2.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    refusals
        The number T of refusals after which the mechanism stops.

    Returns
    -------
    float
        The scale λ, rounded up.

    Notes
    -----
    Statement. λ = √(32 T ln(2/δ))/ε.

    Assumptions. epsilon > 0, delta in (0, 1), refusals ≥ 1 (checked).

    Direction. As printed, rounded up.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Algorithm 2, line 1.
    """
    epsilon, delta, t = _positive_epsilon(epsilon), _delta(delta), _steps("refusals", refusals)
    return up(math.sqrt(32 * t * math.log(2 / delta)) / epsilon, relative=4 * LIBRARY)


@at_most
def printed_threshold(delta: float, *, scale: float, queries: int) -> int:
    r"""The threshold w of the paper's Algorithm 2, in whole votes.

    Parameters
    ----------
    delta
        The δ of (ε, δ)-differential privacy.
    scale
        The scale λ of the threshold's noise.
    queries
        The number m of queries.

    Returns
    -------
    int
        The threshold w, in votes.

    Notes
    -----
    Statement. w = ⌈2λ ln(2m/δ)⌉.

    Assumptions. delta in (0, 1), scale > 0, queries ≥ 1 (checked).

    Direction. As printed, rounded up.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Algorithm 2, line 2.
    """
    delta, scale, m = _delta(delta), _scale(scale), _steps("queries", queries)
    return math.ceil(up(2 * scale * math.log(2 * m / delta), relative=4 * LIBRARY))


@at_most
def printed_teachers(delta: float, *, scale: float, refusals: int, queries: int, failure_probability: float) -> int:
    r"""The number of teachers k of the paper's Algorithm 2.

    Parameters
    ----------
    delta
        The δ of (ε, δ)-differential privacy.
    scale
        The scale λ of the threshold's noise.
    refusals
        The number T of refusals after which the mechanism stops.
    queries
        The number m of queries.
    failure_probability
        The failure probability, the paper's β: the chance that the claim is false.

    Returns
    -------
    int
        The number k of teachers.

    Notes
    -----
    Statement. k = ⌈34 √2 λ ln(4mT/min(δ, β/2))⌉.

    Assumptions. delta and failure_probability in (0, 1), the rest positive (checked).

    Direction. As printed, the root over the 2 alone; rounded up.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Algorithm 2, line 1.
    """
    delta, scale = _delta(delta), _scale(scale)
    t, m = _steps("refusals", refusals), _steps("queries", queries)
    beta = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.01")
    return math.ceil(up(34 * math.sqrt(2) * scale * math.log(4 * m * t / min(delta, beta / 2)), relative=8 * LIBRARY))


@at_most
def stable_release_delta(epsilon: float, *, scale: float, threshold: int, queries: int) -> float:
    r"""δ(ε) of Algorithm 1, stable release, composed over m adaptive queries, each of which costs.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    scale
        The scale s of the noise on each distance.
    threshold
        The threshold w, in whole votes.
    queries
        The number m of queries.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ 1 − (1 − p)^m (1 − δ_m(ε)), p = b^(w+1)/(1 + b), b = exp(−1/s), δ_m of `composition_delta` for m
    steps of 1/s.

    Assumptions. One record changes at most one vote a query; the distance is `votes_to_flip`, with discrete Laplace
    noise of scale s, answered where it exceeds the whole threshold w (caller).

    Direction. An upper bound, rounded up.

    References
    ----------
    Bassily, Thakkar and Thakurta 2018, Algorithm 1 and Theorem 2.4; docs/proofs/accounting.md.
    """
    epsilon, scale, m = _epsilon(epsilon), _scale(scale), _steps("queries", queries)
    w = _threshold(threshold)
    composed = composition_delta(epsilon, step_epsilon=up(1 / scale), steps=m)
    return _either(_single_release(w, scale), m, composed)


@at_most
def stable_release_scale(epsilon: float, delta: float, *, queries: int) -> float:
    r"""The least noise scale of Algorithm 1 at which m queries spend at most half of δ on composition.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    queries
        The number m of queries.

    Returns
    -------
    float
        The scale s, rounded up.

    Notes
    -----
    Statement. inf{s : δ_m(ε) ≤ δ/2}, δ_m of `composition_delta` for m steps of 1/s.

    Assumptions. Those of `stable_release_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. Rounded up: the scale returned was itself checked against the claim.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, m = _positive_epsilon(epsilon), _delta(delta), _steps("queries", queries)
    return _least_noise(
        lambda scale: composition_delta(epsilon, step_epsilon=up(1 / scale), steps=m),
        delta / 2,
        holds=up(m / epsilon, relative=LIBRARY),
        fails=1 / (2 * (epsilon + 1)),
    )


@at_most
def stable_release_threshold(epsilon: float, delta: float, *, scale: float, queries: int) -> int:
    r"""The least threshold w with which Algorithm 1 on m queries is (ε, δ)-DP at the noise scale given.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    scale
        The scale s of the noise on each distance.
    queries
        The number m of queries.

    Returns
    -------
    int
        The threshold w, in votes.

    Notes
    -----
    Statement. min{w ≥ 0 : δ(ε) ≤ δ}, δ(ε) of `stable_release_delta`.

    Assumptions. Those of `stable_release_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. The w returned was itself checked against the claim.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, scale = _positive_epsilon(epsilon), _delta(delta), _scale(scale)
    m = _steps("queries", queries)
    composed = composition_delta(epsilon, step_epsilon=up(1 / scale), steps=m)
    return _least(
        lambda w: _either(_single_release(w, scale), m, composed) <= delta,
        what=f"a threshold for scale = {scale:g} and queries = {m} at epsilon = {epsilon:g} and delta = {delta:g}",
    )


@at_most
def gnmax_delta(epsilon: float, *, sigma: float, answers: int, test_sigma: float = 1.0, tests: int = 0) -> float:
    r"""δ(ε) of GNMax: N noisy vote counts (or their argmax) and, if it is confident, A tests of the largest count.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ₂ of the noise on each count of an answer.
    answers
        The number N of answers.
    test_sigma
        The standard deviation σ₁ of the noise on the largest count in a test.
    tests
        The number A of tests; 0 for GNMax without a test.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. Without tests this is GNMax, noisy vote counts; with them Confident-GNMax, noisy vote counts behind a
    noisy threshold. δ(ε) ≤ R·E(1 − exp(ε − L))⁺, L = (A + 2U)/(2σ₁²) + (2N + 2V)/(2σ₂²), U and V discrete Gaussians of
    variances Aσ₁² and 2Nσ₂²; R − 1 is about 4N·exp(−π²σ₂²) + 2A·exp(−π²σ₁²), and 0 for a single draw.

    Assumptions. One record changes at most one vote a query; fresh discrete Gaussian noise of σ₂ on every count of an
    answer and σ₁ on the largest count of a test; at most N answers and A tests, stopped by counts that are fixed
    beforehand (caller).

    Direction. An upper bound, rounded up, at most 1; where a sum's noise has a standard deviation of 8192 or more, a
    coarser lattice is used.

    References
    ----------
    Canonne, Kamath and Steinke, arXiv:2004.00010v4, Theorem 7; docs/proofs/accounting.md.
    """
    epsilon, sigma, n = _epsilon(epsilon), _sigma(sigma), _steps("answers", answers)
    test_sigma = _sigma(test_sigma, "test_sigma")
    a = validate.whole("tests", tests, at_least=0, remedy="use 0 for GNMax without a test")
    if a == 0:
        return _shifted_delta(epsilon, sigma, 2 * n)
    masses, losses, log_ratio = _sum_of_noise(sigma, 2 * n)
    test_masses, test_losses, test_log_ratio = _sum_of_noise(test_sigma, a)
    left = epsilon - test_losses  # what the answers' loss has to exceed
    if not (np.abs(left).max() < 600 and np.abs(losses).max() < 600):
        return 1.0
    # Sums from the end: the chance that the answers' loss exceeds a value, under either data set.
    chances = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    others = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
    first = np.searchsorted(losses, left, side="right")
    error = 4 * (len(masses) + 4096) * _UNIT
    excesses = chances[first] * (1 + error) - np.exp(left) * others[first] * (1 - error)
    excess = float(np.sum(test_masses * np.maximum(excesses, 0.0)))
    return _scaled_delta(excess, log_ratio + test_log_ratio, tails=2)


@at_most
def gnmax_sigma(epsilon: float, delta: float, *, answers: int, tests: int = 0, ratio: float = 1.0) -> float:
    r"""The least standard deviation of GNMax's noise for a budget; the tests' is `ratio` times as large.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    answers
        The number N of answers.
    tests
        The number A of tests; 0 for GNMax without a test.
    ratio
        The ratio σ₁/σ₂ of the tests' noise to that of the answers.

    Returns
    -------
    float
        The standard deviation σ₂, rounded up.

    Notes
    -----
    Statement. inf{σ : δ(ε) ≤ delta} with σ₂ = σ and σ₁ = ratio·σ, δ(ε) of `gnmax_delta`.

    Assumptions. Those of `gnmax_delta`; epsilon > 0, delta in (0, 1), ratio > 0 (checked).

    Direction. Rounded up: the σ returned was itself checked with `gnmax_delta`.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, n = _positive_epsilon(epsilon), _delta(delta), _steps("answers", answers)
    a = validate.whole("tests", tests, at_least=0, remedy="use 0 for GNMax without a test")
    ratio = validate.number("ratio", ratio, at_least=0.1, at_most=100, remedy="give σ₁/σ₂, e.g. 3")
    return _least_noise(
        lambda sigma: gnmax_delta(epsilon, sigma=sigma, answers=n, test_sigma=ratio * sigma, tests=a),
        delta,
        holds=max(_enough_noise(epsilon, delta, 2 * n + a / ratio**2), 3.0, 3.0 / ratio),
        fails=0.1,
    )


@at_most
def quota_delta(epsilon: float, *, sigma: float, quota: int, changed: int = 1) -> float:
    r"""δ(ε) of noisy vote counts on any number of queries, where every voter votes on at most q of them.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each count of every query.
    quota
        The number q of queries on which one voter, a record or a person, may vote.
    changed
        The number c of counts that one vote may change: 1 if a voter is added or removed, 2 if a label is changed.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ R·E(1 − exp(ε − L))⁺, L = (cq + 2V)/(2σ²), V a discrete Gaussian of variance cqσ²; R − 1 is about
    2cq·exp(−π²σ²), and 0 for a single draw. The number of queries does not enter.

    Assumptions. A voter casts one vote on a query or none, and no more than q in all; which queries it votes on depends
    on the queries and on its own records; fresh discrete Gaussian noise of σ on every count, whether or not anyone
    voted; queries depend on private records through earlier answers alone (caller); quota ≥ 1, changed ≥ 1
    (checked).

    Direction. An upper bound, rounded up, at most 1; reached, but for R, by q queries on which one voter votes.

    References
    ----------
    docs/proofs/accounting.md.
    """
    return _shifted_delta(_epsilon(epsilon), _sigma(sigma), _moved_votes(quota, changed))


@at_most
def quota_sigma(epsilon: float, delta: float, *, quota: int, changed: int = 1) -> float:
    r"""The least standard deviation of the noise on vote counts for a budget, where every voter has a quota.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    quota
        The number q of queries on which one voter, a record or a person, may vote.
    changed
        The number c of counts that one vote may change: 1 if a voter is added or removed, 2 if a label is changed.

    Returns
    -------
    float
        The standard deviation σ, rounded up.

    Notes
    -----
    Statement. inf{σ : δ(ε) ≤ delta}, δ(ε) of `quota_delta`.

    Assumptions. Those of `quota_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. Rounded up: the σ returned was itself checked with `quota_delta`.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, moved = _positive_epsilon(epsilon), _delta(delta), _moved_votes(quota, changed)
    return _least_noise(
        lambda sigma: quota_delta(epsilon, sigma=sigma, quota=quota, changed=changed),
        delta,
        holds=max(_enough_noise(epsilon, delta, moved), 3.0),
        fails=0.1,
    )


@at_most
def clipped_sums_delta(epsilon: float, *, sigma: float, sums: int, reach: int = 1) -> float:
    r"""δ(ε) of sums of clipped whole numbers with discrete Gaussian noise, such as sums of teachers' answers.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each sum.
    sums
        The number n of sums.
    reach
        How far one record moves a sum at most, r: the largest answer of a teacher, if the smallest is 0.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ R·E(1 − exp(ε − L))⁺, L = (nr² + 2rV)/(2σ²), V a discrete Gaussian of variance nσ²; R − 1 is
    about 2n·exp(−π²σ²), and 0 for a single sum.

    Assumptions. One record moves each of n sums of whole numbers by at most r; fresh discrete Gaussian noise of σ on
    every sum; what is asked depends on private records through earlier answers alone, and n is fixed beforehand
    (caller); sums ≥ 1, reach ≥ 1 (checked).

    Direction. An upper bound, rounded up, at most 1; reached, but for R, by a teacher whose every answer moves from 0
    to r.

    References
    ----------
    docs/proofs/accounting.md.
    """
    return _shifted_delta(_epsilon(epsilon), _sigma(sigma), _steps("sums", sums), _reach(reach))


@at_most
def clipped_sums_sigma(epsilon: float, delta: float, *, sums: int, reach: int = 1) -> float:
    r"""The least standard deviation of the noise on sums of clipped whole numbers for a budget.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    sums
        The number n of sums.
    reach
        How far one record moves a sum at most.

    Returns
    -------
    float
        The standard deviation σ, rounded up.

    Notes
    -----
    Statement. inf{σ : δ(ε) ≤ delta}, δ(ε) of `clipped_sums_delta`.

    Assumptions. Those of `clipped_sums_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. Rounded up: the σ returned was itself checked with `clipped_sums_delta`.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta, n, r = _positive_epsilon(epsilon), _delta(delta), _steps("sums", sums), _reach(reach)
    return _least_noise(
        lambda sigma: clipped_sums_delta(epsilon, sigma=sigma, sums=n, reach=r),
        delta,
        holds=max(_enough_noise(epsilon, delta, n * r**2), 3.0),
        fails=0.1,
    )


@at_most
def lattice_delta(epsilon: float, *, sigma: float, sensitivity: float) -> float:
    r"""δ(ε) of one release of any number of whole numbers, such as sums with discrete Gaussian noise.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each number.
    sensitivity
        The largest change Δ of the vector by one record, in Euclidean norm.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ exp((α − 1)(αρ − ε))·(1 − 1/α)^(α−1)/α for every α > 1, ρ = Δ²/(2σ²).

    Assumptions. One record changes the vector of whole numbers by at most Δ in Euclidean norm; fresh discrete Gaussian
    noise of σ on every entry (caller).

    Direction. An upper bound at the best α found, rounded up, at most 1.

    References
    ----------
    Canonne, Kamath and Steinke, arXiv:2004.00010v4, Theorem 4 and Corollary 13; docs/proofs/accounting.md.
    """
    epsilon, sigma = _epsilon(epsilon), _sigma(sigma)
    change = validate.number("sensitivity", sensitivity, above=0, at_most=2.0**40, remedy=_SENSITIVITY)
    rho = up((change / sigma) ** 2 / 2, relative=LIBRARY)

    def exponent(log_order: float) -> float:
        above = math.exp(log_order)  # α − 1
        return above * ((1 + above) * rho - epsilon) - above * math.log1p(1 / above) - math.log1p(above)

    found = optimize.minimize_scalar(exponent, bounds=(-20.0, 20.0), method="bounded")
    best = exponent(float(found.x))
    # The terms cancel one another: each is off by some units in the last place of the largest.
    above = math.exp(float(found.x))
    error = 16 * _UNIT * (above * (1 + above) * rho + above * epsilon + above + 40)
    return min(1.0, up(math.exp(min(0.0, best + error)), relative=LIBRARY))


@at_most
def lattice_sigma(epsilon: float, delta: float, *, sensitivity: float) -> float:
    r"""The least standard deviation of the noise for one release of whole numbers within a budget.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    sensitivity
        The largest change Δ of the vector by one record, in Euclidean norm.

    Returns
    -------
    float
        The standard deviation σ, rounded up.

    Notes
    -----
    Statement. inf{σ : δ(ε) ≤ delta}, δ(ε) of `lattice_delta`.

    Assumptions. Those of `lattice_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. Rounded up: the σ returned was itself checked with `lattice_delta`.

    References
    ----------
    docs/proofs/accounting.md.
    """
    epsilon, delta = _positive_epsilon(epsilon), _delta(delta)
    change = validate.number("sensitivity", sensitivity, above=0, at_most=2.0**20, remedy=_SENSITIVITY)
    log = -math.log(delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return _least_noise(
        lambda sigma: lattice_delta(epsilon, sigma=sigma, sensitivity=change),
        delta,
        holds=max(1.05 * change / (math.sqrt(2) * root), 1e-3),
        fails=1e-3,
    )


@at_most
def sums_sensitivity(length: float, *, changed: int) -> float:
    r"""How far one record, or all records of one person, move sums of rows by class, in Euclidean norm.

    Parameters
    ----------
    length
        The largest length Λ of a record's row; those of a person who has m records are divided by m.
    changed
        The number c of sums that a record changes: 1 if it is added or removed, 2 if its label changes.

    Returns
    -------
    float
        An upper bound on the change of all sums together.

    Notes
    -----
    Statement. √c·Λ.

    Assumptions. A row depends on its own record and on public things, is no longer than Λ, and no longer than Λ/m where
    the record is one of m of a person, whatever their labels are (caller); length > 0, changed a whole number of at
    least 1 (checked).

    Direction. Exact, rounded up; reached by one record, and by a person whose records are alike.

    References
    ----------
    docs/proofs/accounting.md.
    """
    length = validate.number("length", length, above=0, at_most=2.0**40, remedy="give the length of the longest row")
    changed = validate.whole("changed", changed, at_least=1, remedy="use 1, or 2 if only labels are protected")
    return length if changed == 1 else up(length * math.sqrt(changed), relative=LIBRARY)


def _sum_of_noise(
    sigma: float, count: int, reach: int = 1, *, over: float = -math.inf
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Upper bounds on the chances of the privacy losses of `count` discrete Gaussians, each shifted by `reach`.

    Returns the chances, the losses in rising order, and the logarithm of R: all chances have to be multiplied by it.
    Some or all of the losses up to `over` may be left out.
    """
    deviation = sigma * math.sqrt(count)
    step = max(1, math.floor(deviation / _CELLS))
    half = math.ceil(_SPAN * deviation / step) + 1
    first = -half
    if deviation >= _WIDE and over > -math.inf:  # a few cells earlier, for rounding
        first = min(max(first, math.floor((sigma**2 * over / reach - count * reach / 2) / step) - 4), half)
    cell = np.arange(first, half + 1, dtype=np.float64)
    top = cell * step + (step - 1)  # the value of the sum in the cell that has the largest loss
    nearest = np.where(cell >= 0, cell * step, top)  # and the likeliest
    weights = step * np.exp(-(nearest**2) / (2 * count) / sigma**2)
    # Poisson's summation formula has positive terms only: the normaliser is at least its first.
    normaliser = math.sqrt(2 * math.pi) * deviation
    if step == 1:
        normaliser *= 1 - 1e-12
        if deviation < _WIDE:
            normaliser = max(normaliser, float(np.sum(weights)) * (1 - 1e-9))
    masses = weights / normaliser * (1 + 1e-9)
    losses = up((count * reach**2 + 2 * reach * top) / (2 * sigma**2), relative=LIBRARY)
    spread = 2 * math.exp(-((math.pi * sigma) ** 2)) / -math.expm1(-3 * (math.pi * sigma) ** 2)
    if count == 1:
        return masses, losses, 0.0
    log_ratio = math.inf if spread > 0.5 else 2.01 * (count - 1) * math.atanh(spread)
    return masses, losses, log_ratio


def _shifted_delta(epsilon: float, sigma: float, count: int, reach: int = 1) -> float:
    """δ(ε) of `count` discrete Gaussians, each shifted by `reach`."""
    masses, losses, log_ratio = _sum_of_noise(sigma, count, reach, over=epsilon)
    over = losses > epsilon
    excess = float(np.sum(masses[over] * -np.expm1(epsilon - losses[over])))
    return _scaled_delta(excess, log_ratio, tails=1)


def _enough_noise(epsilon: float, delta: float, count: float) -> float:
    """A σ that is enough for `count` discrete Gaussians, each shifted by one, unless it is below 3.

    By zCDP μ²/2 = ρ with √ρ ≤ √(ln(1/δ) + ε) − √ln(1/δ) is enough, and noise of 2 or more keeps R at 1.
    """
    log = -math.log(delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return 1.05 * math.sqrt(count / 2) / root


def _least_noise(spent: Callable[[float], float], delta: float, *, holds: float, fails: float) -> float:
    """The least scale at which a search saw that no more than delta is spent; it begins at a root of the logarithms."""
    known, (low, high) = cache(spent), (math.log(fails), math.log(holds))

    def excess(log_scale: float) -> float:
        scale = {low: fails, high: holds}.get(log_scale, min(max(math.exp(log_scale), fails), holds))
        return math.log(max(known(scale), _LEAST) / max(delta, _LEAST))

    near = None
    if excess(low) > 0 > excess(high):
        root, _ = optimize.brentq(
            excess, low, high, xtol=_TIGHT, rtol=_TIGHT, maxiter=_GUESSES, full_output=True, disp=False
        )
        near = math.exp(root)
    return last_true(lambda scale: known(scale) <= delta, holds=holds, fails=fails, near=near)


def _scaled_delta(excess: float, log_ratio: float, *, tails: int) -> float:
    if log_ratio > 1:
        return 1.0
    return min(1.0, up(excess * math.exp(log_ratio) + tails * _TAIL, relative=1e-9))


def _single_release(threshold: int, scale: float) -> float:
    """P(Y > w) for one discrete Laplace Y, rounded up."""
    exponent = down((threshold + 1) / scale, relative=4e-16)
    return min(1.0, up(math.exp(-exponent) / (1 + math.exp(-1 / scale)), relative=4 * LIBRARY) + 5e-324)


def _either(chance: float, times: int, delta: float) -> float:
    """1 − (1 − chance)^times (1 − delta), rounded up."""
    if chance >= 1 or delta >= 1:
        return 1.0
    kept = down(times * math.log1p(-chance) + math.log1p(-delta), relative=4 * LIBRARY)
    return min(1.0, up(-math.expm1(kept), relative=LIBRARY))


def _least(claim: Callable[[int], bool], *, what: str) -> int:
    """The least whole number at which bisection saw the claim hold."""
    good = 1
    while not claim(good - 1):
        good *= 2
        if good > 2**53:
            raise NoTheoremError(
                f"{what} must leave something of delta for wrong answers, got none at any size; use more noise, "
                "fewer refusals or a larger budget"
            )
    good, bad = good - 1, good // 2 - 1
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if claim(middle) else (good, middle)
    return good


def _epsilon(value: object) -> float:
    return validate.number("epsilon", value, at_least=0, at_most=1e4, remedy="use 0 for total variation")


def _positive_epsilon(value: object) -> float:
    return validate.number("epsilon", value, at_least=1e-9, at_most=1e4, remedy=_EPSILON)


def _delta(value: object) -> float:
    return validate.probability("delta", value, remedy=_DELTA)


def _step(value: object) -> float:
    return validate.number("step_epsilon", value, above=0, at_most=1e5, remedy="give the privacy loss of one step")


def _scale(value: object) -> float:
    return validate.number("scale", value, at_least=1e-4, at_most=_MOST_NOISE, remedy=_SCALE)


def _sigma(value: object, name: str = "sigma") -> float:
    return validate.number(name, value, at_least=1e-3, at_most=2.0**40, remedy=_SIGMA)


def _threshold(value: object) -> int:
    return validate.whole("threshold", value, at_least=0, remedy=_THRESHOLD)


def _moved_votes(quota: object, changed: object) -> int:
    remedy = "use 1 for a voter that is added, 2 for a changed label"
    return _steps("quota", quota) * validate.whole("changed", changed, at_least=1, remedy=remedy)


def _reach(value: object) -> int:
    reach = validate.whole("reach", value, at_least=1, remedy=_REACH)
    if reach > _MOST_REACH:
        raise InputError("reach", reach, requirement=f"must be at most {_MOST_REACH}", remedy="use a coarser grid")
    return reach


def _steps(name: str, value: object) -> int:
    remedies = {"refusals": _REFUSALS, "queries": _QUERIES, "answers": _ANSWERS, "quota": _QUOTA, "sums": _SUMS}
    steps = validate.whole(name, value, at_least=1, remedy=remedies.get(name, "say how many steps there are"))
    if steps > _MOST_STEPS:
        raise InputError(name, steps, requirement=f"must be at most {_MOST_STEPS:g}", remedy="plan a smaller release")
    return steps
