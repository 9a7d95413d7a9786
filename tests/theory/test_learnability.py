"""Learning bounds against exact binomials and sums, brute force, and simulations with stated false-alarm rates."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit import InputError
from tacit.learning.votes import votes_to_flip, winners
from tacit.theory.accounting import printed_scale, printed_teachers
from tacit.theory.learnability import (
    agnostic_excess,
    gnmax_distance,
    gnmax_test_margin,
    hard_queries,
    hard_share,
    log_growth,
    printed_answer_error,
    printed_records,
    printed_refusals,
    printed_student_error,
    realizable_error,
    stable_release_distance,
    student_error,
    sufficient_records,
    tolerated_votes,
)

mp.mp.dps = 40
CLOSE = mp.mpf("1e-9")


def growth(n, v):
    """ln of (eN/V)^V or 2^N, in 40 digits."""
    every = n * mp.log(2)
    return every if n < v else min(every, v * (1 + mp.log(mp.mpf(n) / v)))


@given(st.integers(1, 400), st.integers(1, 60))
def test_log_growth_is_no_less_than_sauers_sum(n, v):
    found = log_growth(n, vc_dimension=v)
    assert mp.log(sum(math.comb(n, i) for i in range(min(n, v) + 1))) <= found * (1 + 1e-15)
    assert growth(n, v) <= found <= growth(n, v) * (1 + CLOSE)


@given(st.integers(50, 10**7), st.integers(1, 6), st.floats(1e-9, 0.5))
def test_learning_bounds_are_their_formulas(s, v, beta):
    realizable = min(1, 2 * (growth(2 * s, v) + mp.log(2 / mp.mpf(beta))) / (s * mp.log(2)))
    assert realizable <= realizable_error(s, vc_dimension=v, failure_probability=beta) <= realizable * (1 + CLOSE)
    agnostic = min(1, mp.sqrt(2 * growth(s, v) / s) + mp.sqrt(2 * mp.log(2 / mp.mpf(beta)) / s))
    assert agnostic <= agnostic_excess(s, vc_dimension=v, failure_probability=beta) <= agnostic * (1 + CLOSE)


def test_the_realizable_bound_holds_for_thresholds():
    """Of all consistent thresholds on [0, 1] around ½ the worst errs on more than α with probability 2(1 − α)^s."""
    for s in (20, 100, 1000):
        for beta in (0.01, 0.1, 0.5):
            alpha = realizable_error(s, vc_dimension=1, failure_probability=beta)
            assert alpha == 1 or 2 * (1 - alpha) ** s <= beta


def noisy_thresholds(generator, s, flipped):
    x = np.sort(generator.random(s))
    truth = x > 0.5
    labels = truth ^ (generator.random(s) < flipped)
    return x, truth, labels


def fitted(x, labels):
    """The threshold with the fewest errors."""
    ones = np.concatenate([[0], np.cumsum(labels)])
    errors = ones + (len(x) - np.arange(len(x) + 1)) - (ones[-1] - ones)
    place = int(np.argmin(errors))
    return 0.0 if place == 0 else x[place - 1]


def test_the_agnostic_bound_holds_in_simulation():
    """Each run fails with probability 0.1 at most; 70 failures of 400 have a chance of 1e-6."""
    generator, failures = np.random.default_rng(0), 0
    bound = agnostic_excess(300, vc_dimension=1, failure_probability=0.1)
    assert bound < 1
    for _ in range(400):
        x, _, labels = noisy_thresholds(generator, 300, 0.2)
        failures += 0.6 * abs(fitted(x, labels) - 0.5) > bound  # the excess of a threshold over the best, at 20 % noise
    assert failures < 70


@given(st.floats(0.01, 0.9), st.integers(1, 20), st.floats(1e-6, 0.5), st.sampled_from([0.0, 0.1]))
def test_sufficient_records_are_the_least(alpha, v, beta, gamma):
    error = agnostic_excess if gamma else realizable_error
    s = sufficient_records(alpha, vc_dimension=v, failure_probability=beta, best_error=gamma)
    assert isinstance(s, int)
    assert error(s, vc_dimension=v, failure_probability=beta) <= alpha
    assert s == 1 or error(s - 1, vc_dimension=v, failure_probability=beta) > alpha
    assert error(3 * s, vc_dimension=v, failure_probability=beta) <= alpha


@given(st.floats(0, 1), st.integers(1, 500), st.data())
def test_hard_share_is_markov(error, k, data):
    b = data.draw(st.integers(0, k - 1))
    truth = min(mp.mpf(1), mp.mpf(error) * k / (b + 1))
    found = hard_share(error, teachers=k, outvoted=b)
    assert truth <= found <= truth * (1 + CLOSE) + mp.mpf(1e-300)
    assert hard_share(error, teachers=k, outvoted=k // 3 if k > 1 else 0) <= 3 * error * (1 + 1e-12) + 1e-300


@given(st.integers(1, 3000), st.floats(0, 0.4), st.floats(1e-6, 0.5))
def test_hard_queries_are_the_binomial_quantile(m, error, beta):
    found = hard_queries(error, teachers=3, outvoted=1, queries=m, failure_probability=beta)
    q = hard_share(error, teachers=3, outvoted=1)
    assert isinstance(found, int)
    assert stats.binom.sf(found, m, q) <= beta * (1 + 1e-8)
    assert found == 0 or stats.binom.sf(found - 1, m, q) > beta * (1 - 1e-6)


def test_markovs_worst_case_is_met():
    """Teachers that err together: as many hard queries as allowed, with the probability allowed."""
    generator = np.random.default_rng(1)
    m, k, b, error, beta = 200, 30, 9, 0.05, 0.1
    bound = hard_queries(error, teachers=k, outvoted=b, queries=m, failure_probability=beta)
    wrong = (generator.random((20_000, m)) < error * k / (b + 1)).sum(axis=1)  # b + 1 teachers wrong, or none
    # 20 000 runs: a share beyond these limits has a chance below 1e-6.
    assert (wrong > bound).mean() <= beta + 0.011
    assert (wrong > bound - 1).mean() > beta - 0.011


def test_the_printed_chernoff_step_fails_and_the_printed_cutoff_mostly_stands():
    m, e, beta = 1000, 0.05, 0.05
    printed = e * m + math.sqrt(e * m * math.log(m / beta) / 2)
    assert stats.binom.sf(math.floor(printed), m, e) > 100 * beta / m  # claimed: at most β/m for one teacher
    for m, e, beta in itertools.product(
        (10, 30, 100, 1000, 10_000), (0.001, 0.003, 0.01, 0.05, 0.1, 0.3), (0.001, 0.01, 0.1)
    ):
        refusals = min(m, printed_refusals(e, queries=m, failure_probability=beta))
        hard = hard_queries(e, teachers=3, outvoted=0, queries=m, failure_probability=beta)
        assert refusals >= min(m, hard + 1) - (e * m < 0.5)  # one too few where less than one error is expected
    assert printed_refusals(0.001, queries=10, failure_probability=0.01) == 1
    assert hard_queries(0.001, teachers=3, outvoted=0, queries=10, failure_probability=0.01) == 1


@given(st.integers(1, 40), st.integers(0, 25), st.data())
def test_tolerated_votes_leave_the_distance(k, d, data):
    b = tolerated_votes(k, distance=d)
    assert isinstance(b, int)
    if b < 0:
        assert votes_to_flip([[k, 0]])[0] < d
        return
    first = data.draw(st.integers(0, b))
    second = data.draw(st.integers(0, b - first))
    counts = [[k - first - second, first, second]]
    assert winners(counts)[0] == 0
    assert votes_to_flip(counts)[0] >= d
    assert votes_to_flip([[k - b, b]])[0] >= d
    if b + 1 <= k:
        worse = [[b + 1, k - b - 1]]  # of equals, the first wins
        assert winners(worse)[0] == 0 or votes_to_flip(worse)[0] < d


@given(st.floats(0.2, 100), st.integers(0, 50), st.integers(1, 1000), st.floats(1e-6, 0.5))
def test_stable_release_distance_is_the_least_by_its_union(scale, w, m, beta):
    d = stable_release_distance(scale=scale, threshold=w, queries=m, failure_probability=beta)
    b = mp.exp(-1 / mp.mpf(scale))
    assert isinstance(d, int)
    assert m * b ** (d - w) / (1 + b) <= beta
    assert d == w + 1 or m * b ** (d - 1 - w) / (1 + b) > beta * (1 - CLOSE)


def gaussian_table(sigma):
    x = np.arange(-int(14 * sigma) - 2, int(14 * sigma) + 3)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return x, weights / weights.sum()


@pytest.mark.parametrize("sigma", [0.7, 3.0, 20.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_gnmax_distances_hold_for_the_noise_that_is_drawn(sigma, classes):
    x, weights = gaussian_table(sigma)
    for m, beta in ((1, 0.3), (100, 0.05), (10_000, 1e-3)):
        d = gnmax_distance(sigma=sigma, classes=classes, queries=m, failure_probability=beta)
        difference = np.convolve(weights, weights[::-1])
        reach = len(x) - 1
        tail = difference[reach + 2 * d + 1 :].sum()
        assert m * (classes - 1) * tail <= beta
        assert m * (classes - 1) * mp.exp(-(mp.mpf(2 * d + 1) ** 2) / (4 * sigma**2)) <= beta
        assert d == 0 or m * (classes - 1) * mp.exp(-(mp.mpf(2 * d - 1) ** 2) / (4 * sigma**2)) > beta * (1 - CLOSE)
        assert isinstance(d, int)
        g = gnmax_test_margin(test_sigma=sigma, queries=m, failure_probability=beta)
        assert isinstance(g, int)
        assert m * weights[x <= -g].sum() <= beta
        assert m * mp.exp(-(mp.mpf(g) ** 2) / (2 * sigma**2)) <= beta
        assert m * mp.exp(-(mp.mpf(g - 1) ** 2) / (2 * sigma**2)) > beta * (1 - CLOSE)


def test_the_printed_numbers():
    """T of Theorem 3.2, 7α + 3γ of Claim 4.1, 15α of Theorem 4.2."""
    e, m, beta = mp.mpf("0.05"), 1000, mp.mpf("0.05")
    assert printed_refusals(0.05, queries=1000, failure_probability=0.05) == mp.ceil(
        3 * (e * m + mp.sqrt(e * m * mp.log(m / beta) / 2))
    )
    assert printed_refusals(0.05, queries=1000, failure_probability=0.05) == 198
    assert printed_answer_error(0.01) == pytest.approx(0.07, rel=1e-12)
    assert printed_answer_error(0.01, best_error=0.1) == pytest.approx(0.37, rel=1e-12)
    assert printed_student_error(0.01) == pytest.approx(0.15, rel=1e-12)
    assert printed_student_error(0.01, best_error=0.1) == pytest.approx(0.85, rel=1e-12)
    assert printed_student_error(0.1) == 1
    # Claim 4.1 by Markov's inequality: 3α + 3γ.
    assert hard_share(0.11, teachers=300, outvoted=100) < printed_answer_error(0.01, best_error=0.1)


def test_the_printed_root_of_claim_4_1_is_a_constant():
    for alpha in (0.1, 0.01, 0.001):
        m = 4 * math.log(1 / alpha**2) / alpha
        assert math.sqrt(math.log(m / alpha) / (2 * m * alpha)) > 0.3


@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_printed_records_are_the_chain_of_the_theorem(gamma):
    alpha, v, beta, epsilon, delta = 0.02, 3, 0.01, 1.0, 1e-6
    m = sufficient_records(alpha, vc_dimension=v, failure_probability=beta, best_error=0.5)
    t = printed_refusals(alpha + gamma, queries=m, failure_probability=beta)
    scale = printed_scale(epsilon, delta, refusals=t)
    k = printed_teachers(delta, scale=scale, refusals=t, queries=m, failure_probability=beta)
    chunk = sufficient_records(alpha, vc_dimension=v, failure_probability=beta / k, best_error=gamma)
    found = printed_records(
        alpha, vc_dimension=v, epsilon=epsilon, delta=delta, failure_probability=beta, best_error=gamma
    )
    assert found == k * chunk
    harder = printed_records(
        alpha / 4, vc_dimension=v, epsilon=epsilon, delta=delta, failure_probability=beta, best_error=gamma
    )
    exponent = math.log(harder / found) / math.log(4)
    assert (2.5 if gamma else 1.5) < exponent < (3.2 if gamma else 2.1)  # α^(−5/2), α^(−3/2), and logarithms


@given(st.integers(20, 10**6), st.integers(1, 5), st.floats(1e-6, 0.5), st.floats(0, 0.05), st.floats(0, 0.2))
def test_student_error_is_the_least_of_its_formulas(m, v, beta, share, gamma):
    wrong = int(share * m)
    rate = mp.mpf(2 * wrong) / m
    bounds = [gamma + agnostic_excess(m, vc_dimension=v, failure_probability=beta) + rate]
    if gamma == 0:
        a = (growth(2 * m, v) + mp.log(4 / mp.mpf(beta))) / m
        bounds.append(rate + 2 * mp.sqrt(rate * a) + 4 * a)
        if wrong == 0:
            bounds.append(realizable_error(m, vc_dimension=v, failure_probability=beta))
    found = student_error(m, wrong_labels=wrong, vc_dimension=v, failure_probability=beta, best_error=gamma)
    assert min(1, *bounds) <= found <= min(1, *bounds) * (1 + CLOSE)


def test_remark_2_needs_fewer_queries_than_theorem_4_2():
    """At one wrong label in a hundred, m of order V/α beats the V/α² of the agnostic bound."""
    m = 100_000
    found = student_error(m, wrong_labels=m // 1000, vc_dimension=5, failure_probability=0.01)
    assert found < agnostic_excess(m, vc_dimension=5, failure_probability=0.01)


def test_a_student_of_labels_that_an_adversary_chose_stays_within_its_bound():
    """The nearest labels on one side are turned. Each run fails with probability 0.1 at most; 70 of 400: 1e-6."""
    generator, failures, m, wrong = np.random.default_rng(2), 0, 2000, 20
    bound = student_error(m, wrong_labels=wrong, vc_dimension=1, failure_probability=0.1)
    assert bound < 0.3
    for _ in range(400):
        x, truth, _ = noisy_thresholds(generator, m, 0.0)
        labels = truth.copy()
        labels[np.flatnonzero(truth)[:wrong]] = False
        failures += abs(fitted(x, labels) - 0.5) > bound
    assert failures < 70


def test_more_wrong_labels_than_labels_are_refused():
    with pytest.raises(InputError, match="must not exceed queries = 5"):
        student_error(5, wrong_labels=6, vc_dimension=1, failure_probability=0.1)
