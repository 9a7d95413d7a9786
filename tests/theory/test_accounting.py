"""Accountants against exact sums in 40 digits, exhaustive games of adaptive queries, and dp-accounting."""

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit import InputError, NoTheoremError
from tacit.theory.accounting import (
    basic_composition,
    clipped_sums_delta,
    clipped_sums_sigma,
    composition_delta,
    gnmax_delta,
    gnmax_sigma,
    label_threshold,
    laplace_scale,
    lattice_delta,
    lattice_sigma,
    lone_label_chance,
    printed_scale,
    printed_teachers,
    printed_threshold,
    quota_delta,
    quota_sigma,
    replacement_delta,
    sparse_vector_delta,
    sparse_vector_distance,
    sparse_vector_scale,
    sparse_vector_threshold,
    stable_release_delta,
    stable_release_scale,
    stable_release_threshold,
    stable_teachers,
    sums_sensitivity,
    unstable_release,
)
from tacit.theory.divergences import gaussian_delta

mp.mp.dps = 40


def randomized_response(epsilon, step, steps):
    """δ(ε) of `steps` randomised responses, outcome by outcome."""
    step, epsilon = mp.mpf(step), mp.mpf(epsilon)
    p, q = 1 / (1 + mp.exp(-step)), 1 / (1 + mp.exp(step))
    return mp.fsum(
        mp.binomial(steps, l) * max(mp.mpf(0), p ** (steps - l) * q**l - mp.exp(epsilon) * q ** (steps - l) * p**l)
        for l in range(steps + 1)  # noqa: E741
    )


@given(st.floats(1e-6, 20), st.integers(1, 1000))
def test_laplace_scale_is_the_least(epsilon, sensitivity):
    """The likelihood ratio of two numbers that far apart, in 40 digits; a scale of a billionth less exceeds it."""
    scale = laplace_scale(epsilon, sensitivity=sensitivity)

    def loss(scale):
        return max(mp.mpf(abs(x - sensitivity) - abs(x)) / mp.mpf(scale) for x in (-1, 0, sensitivity, sensitivity + 1))

    assert loss(scale) <= mp.mpf(epsilon) < loss(scale * (1 - 1e-9))


@given(st.integers(2, 60), st.floats(0.05, 10))
def test_a_lone_label_is_found_as_often_as_the_noise_says(threshold, scale):
    """Against the sum of the chances, in 40 digits."""
    a = mp.exp(-1 / mp.mpf(scale))
    truth = mp.fsum(a**z * (1 - a) / (1 + a) for z in range(threshold - 1, threshold + int(100 * scale) + 1))
    found = lone_label_chance(threshold, scale=scale)
    assert truth <= found <= truth * (1 + mp.mpf(10) ** -12) + mp.mpf(10) ** -300


def indicator_delta(epsilon, first, second):
    """The least δ for one label that is found with these chances."""
    gaps = [p - math.exp(epsilon) * q for p, q in ((first, second), (1 - first, 1 - second))]
    return max(sum(max(0.0, gap) for gap in gaps), 0.0)


@given(st.floats(0.25, 12), st.floats(-12, -1), st.integers(1, 2))
def test_label_threshold_is_the_least_for_every_pair_of_counts(scale, log_delta, changed):
    """Chances by adding up the noise; each of the labels that differ occurs on both sides, or on one side once."""
    delta = 10**log_delta
    threshold = label_threshold(delta, scale=scale, changed=changed)
    assert changed * lone_label_chance(threshold, scale=scale) <= delta
    assert threshold == 2 or changed * lone_label_chance(threshold - 1, scale=scale) > delta
    reach = int(threshold + 60 * scale + 60)
    noise = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    noise /= noise.sum()

    def chance(count):
        return 0.0 if count == 0 else float(noise[np.arange(-reach, reach + 1) + count >= threshold].sum())

    for count in range(threshold + 5):
        share = indicator_delta(1 / scale, *(pair := (chance(count), chance(count + 1))))
        share = max(share, indicator_delta(1 / scale, *pair[::-1]))
        if count:
            assert share <= 1e-12
        else:
            assert share <= delta / changed * (1 + 1e-9)
            assert indicator_delta(0.0, *pair[::-1]) >= 0.99 * lone_label_chance(threshold, scale=scale)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=20))
def test_basic_composition_is_no_less_than_the_exact_sum(costs):
    exact = sum(map(Fraction, costs))
    found = Fraction(basic_composition(costs))
    assert exact <= found <= exact * (1 + Fraction(1, 10**13))
    assert basic_composition([0.0, *costs, 0.0]) == basic_composition(costs)


def test_basic_composition_adds_no_cost_below_zero():
    with pytest.raises(InputError, match="costs must"):
        basic_composition([1.0, -0.5])


@given(st.floats(0, 5), st.floats(-20, -0.5))
def test_replacement_delta_is_reached_by_three_laws_in_a_row(epsilon, log_delta):
    """Without the record, with it and with another: the chances of one event, close in both ways from law to law."""
    delta = math.exp(log_delta)
    growth, small = mp.exp(mp.mpf(epsilon)), mp.mpf(delta)
    other, without = mp.mpf(0), small
    record = growth * small + small
    assume(record < mp.mpf("0.5"))
    for first, second in ((without, other), (record, without)):
        for here, there in ((first, second), (second, first)):
            assert here <= growth * there + small
            assert 1 - here <= growth * (1 - there) + small
    truth = record - growth**2 * other
    found = replacement_delta(epsilon, delta)
    assert truth <= found <= truth * (1 + mp.mpf("1e-12"))
    assert replacement_delta(800.0, delta) == 1


@given(st.floats(0.01, 3), st.integers(1, 60), st.floats(0, 1))
def test_composition_is_that_of_randomised_response(step, steps, share):
    epsilon = share * steps * step
    truth = randomized_response(epsilon, step, steps)
    assume(truth > 1e-30)
    found = composition_delta(epsilon, step_epsilon=step, steps=steps)
    q = 1 / (1 + mp.exp(mp.mpf(step)))
    edge = int((steps - epsilon / step) / 2) + 1
    likely = mp.fsum(mp.binomial(steps, l) * (1 - q) ** (steps - l) * q**l for l in range(edge + 1))  # noqa: E741
    assert truth <= found <= truth + mp.mpf("1e-9") * likely


def test_composition_agrees_with_dp_accounting():
    """The notes' figure: 20 × 0.1-DP at δ = 1e-5 is 1.60, against 2.36 by advanced composition."""
    theirs = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.1)).self_compose(20)
    ours = [composition_delta(epsilon, step_epsilon=0.1, steps=20) for epsilon in (1.59, 1.60)]
    assert ours[0] > 1e-5 > ours[1]
    for epsilon in (0.3, 1.0, 1.5):
        assert composition_delta(epsilon, step_epsilon=0.1, steps=20) == pytest.approx(
            theirs.get_delta_for_epsilon(epsilon), rel=2e-3
        )


def test_composition_grows_with_its_steps_and_falls_with_epsilon():
    by_steps = [composition_delta(1.0, step_epsilon=0.2, steps=t) for t in range(1, 200)]
    assert by_steps == sorted(by_steps)
    by_epsilon = [composition_delta(e, step_epsilon=0.2, steps=50) for e in np.linspace(0, 12, 100)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_epsilon[-1] == 0


def laplace_table(scale, reach):
    x = np.arange(-reach, reach + 1)
    b = np.exp(-1 / scale)
    return x, (1 - b) / (1 + b) * b ** np.abs(x)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.7])
@pytest.mark.parametrize("threshold", [0, 1, 7])
def test_unstable_release_is_the_double_sum(scale, threshold):
    one, two = mp.exp(-1 / mp.mpf(scale)), mp.exp(-1 / (2 * mp.mpf(scale)))
    truth = mp.mpf(0)
    for z in range(-int(100 * scale) - 40, int(100 * scale) + 40):
        gap = threshold + z
        tail = two ** (gap + 1) / (1 + two) if gap >= 0 else 1 - two ** (-gap) / (1 + two)
        truth += (1 - one) / (1 + one) * one ** abs(z) * tail
    assert truth * (1 - mp.mpf("1e-30")) <= unstable_release(threshold, scale=scale) <= truth * (1 + mp.mpf("1e-11"))


# --- Algorithm 2 as a game: the naive twin -------------------------------------------------------------------------


def tail(gap, scale):
    """P(Y > gap) for a discrete Laplace Y."""
    b = np.exp(-1 / scale)
    gap = np.asarray(gap, dtype=float)
    return np.where(gap >= 0, b ** (np.maximum(gap, 0) + 1) / (1 + b), 1 - b ** np.maximum(-gap, 0) / (1 + b))


def game_value(epsilon, *, scale, threshold, refusals, queries, kinds):
    """The largest δ(ε) that any adaptive strategy of so many queries reaches, by trying all of them.

    A kind is (d, d′) for a query with one winner, or "flip". Weights are kept for every value of the threshold's noise.
    """
    reach = int(40 * scale) + 10
    noise, chance = laplace_table(scale, reach)

    def stop(p, q):
        return max(0.0, p.sum() - np.exp(epsilon) * q.sum())

    def value(p, q, left, t):
        best = stop(p, q)
        if left == 0 or t == 0:
            return best
        for kind in kinds:
            first, second = (0, 0) if kind == "flip" else kind
            passed = tail(threshold + noise - first, 2 * scale), tail(threshold + noise - second, 2 * scale)
            refused = (p * (1 - passed[0])).sum() * chance, (q * (1 - passed[1])).sum() * chance
            total = value(*refused, left - 1, t - 1)
            if kind == "flip":
                total += (p * passed[0]).sum()  # a label that the other data set never gives
            else:
                total += value(p * passed[0], q * passed[1], left - 1, t)
            best = max(best, total)
        return best

    return value(chance, chance, queries, refusals)


def kinds_around(threshold):
    moves = [(d, d + 1) for d in (0, threshold, threshold + 1)]
    return ["flip", *moves, *[(b, a) for a, b in moves]]


@pytest.mark.parametrize(("scale", "threshold", "refusals"), [(0.5, 2, 1), (0.8, 3, 2), (1.5, 4, 1), (2.0, 6, 2)])
def test_no_strategy_of_adaptive_queries_beats_sparse_vector_delta(scale, threshold, refusals):
    for epsilon in (0.0, 0.5 * refusals / scale, 1.2 * refusals / scale, 2 * refusals / scale):
        claimed = sparse_vector_delta(epsilon, scale=scale, threshold=threshold, refusals=refusals)
        kinds = kinds_around(threshold)
        reached = game_value(epsilon, scale=scale, threshold=threshold, refusals=refusals, queries=3, kinds=kinds)
        assert reached <= claimed * (1 + 1e-9)


def test_from_the_full_epsilon_on_sparse_vector_delta_is_reached():
    """What is left there is T chances to release an unstable winner, whatever the number of queries."""
    for scale, threshold, refusals in ((0.5, 2, 1), (1.0, 5, 3)):
        claimed = sparse_vector_delta(2 * refusals / scale * 1.001, scale=scale, threshold=threshold, refusals=refusals)
        reached = game_value(
            2 * refusals / scale * 1.001,
            scale=scale,
            threshold=threshold,
            refusals=refusals,
            queries=refusals,
            kinds=["flip"],
        )
        assert claimed * 0.9999 < reached <= claimed * (1 + 1e-9)


def test_the_printed_distance_would_break_the_claim():
    """With sensitivity 2 a strategy of four queries beats what holds for sensitivity 1."""
    kinds = [(3, 1), (3, 5), (1, 3), (2, 4)]
    reached = game_value(2.0, scale=1.0, threshold=2, refusals=1, queries=4, kinds=kinds)
    chance = unstable_release(2, scale=1.0)
    assert reached > 0.02
    assert sparse_vector_delta(2.0, scale=1.0, threshold=40, refusals=1) < 1e-6 < chance


@pytest.mark.parametrize(("epsilon", "delta", "refusals"), [(0.5, 1e-5, 1), (1.0, 1e-5, 20), (2.0, 1e-9, 100)])
def test_sparse_vector_designs_are_the_least(epsilon, delta, refusals):
    scale = sparse_vector_scale(epsilon, delta, refusals=refusals)
    assert randomized_response(epsilon, 2 / scale, refusals) <= delta / 2
    assert randomized_response(epsilon, 2 / (0.999 * scale), refusals) > delta / 2
    w = sparse_vector_threshold(epsilon, delta, scale=scale, refusals=refusals)
    spent = {"scale": scale, "refusals": refusals}
    assert sparse_vector_delta(epsilon, threshold=w, **spent) <= delta
    assert sparse_vector_delta(epsilon, threshold=w - 1, **spent) > delta
    exact = mp.mpf(2) / 3 * mp.exp(-(mp.mpf(w) + 1) / (2 * scale))  # the order of magnitude of the chance at w
    assert 0.2 * delta < refusals * exact < 2.5 * delta


def test_a_delta_that_no_noise_keeps_to_ends_the_search():
    with pytest.raises(NoTheoremError, match="use less extreme ones"):
        gnmax_sigma(1.0, 5e-324, answers=5)


def test_too_little_noise_is_no_design():
    with pytest.raises(NoTheoremError, match="use more noise"):
        sparse_vector_threshold(1.0, 1e-5, scale=1.0, refusals=3)


def test_a_distance_is_answered_with_the_probability_it_promises():
    options = {"scale": 2.0, "threshold": 10, "refusals": 2, "queries": 5}
    d = sparse_vector_distance(failure_probability=0.01, **options)
    noise, chance = laplace_table(2.0, 200)
    refused = [1 - (chance * tail(10 + noise - at, 4.0)).sum() for at in (d, d - 1)]
    assert 5 * 2 * refused[0] <= 0.01 < 5 * 2 * refused[1]


@given(st.integers(0, 500), st.fractions(Fraction(51, 100), 1))
def test_teachers_are_the_least(distance, agreement):
    agreement = float(agreement)
    k = stable_teachers(distance, agreement=agreement)
    margin = (2 * Fraction(agreement) - 1) * k
    assert -((-margin / 2) // 1) - 1 >= distance
    if k > 1:
        fewer = (2 * Fraction(agreement) - 1) * (k - 1)
        assert -((-fewer / 2) // 1) - 1 < distance
    assert isinstance(k, int)


def test_the_printed_constants():
    """The notes: λ = 62 and k ≈ 66 000 at T = 10, ε = 1, δ = 1e-5 (m = 1000)."""
    scale = printed_scale(1.0, 1e-5, refusals=10)
    truth = mp.sqrt(320 * mp.log(2 / mp.mpf(1e-5)))
    assert truth <= scale <= truth * (1 + mp.mpf("1e-12"))
    w = printed_threshold(1e-5, scale=scale, queries=1000)
    assert w == int(mp.ceil(2 * mp.mpf(scale) * mp.log(2000 / mp.mpf(1e-5))))
    k = printed_teachers(1e-5, scale=scale, refusals=10, queries=1000, failure_probability=0.05)
    assert k == int(mp.ceil(34 * mp.sqrt(2) * mp.mpf(scale) * mp.log(40000 / mp.mpf(1e-5))))
    assert 62 < scale < 63
    assert 66_000 < k < 67_000


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize(("refusals", "queries"), [(1, 1), (10, 1000), (500, 500)])
def test_the_printed_constants_are_private_and_their_teachers_suffice(epsilon, refusals, queries):
    delta = 1e-5
    scale = printed_scale(epsilon, delta, refusals=refusals)
    w = printed_threshold(delta, scale=scale, queries=queries)
    assert sparse_vector_delta(epsilon, scale=scale, threshold=w, refusals=refusals) <= delta / 2
    k = printed_teachers(delta, scale=scale, refusals=refusals, queries=queries, failure_probability=0.05)
    needed = sparse_vector_distance(
        scale=scale, threshold=w, refusals=refusals, queries=queries, failure_probability=0.025
    )
    assert stable_teachers(needed, agreement=2 / 3) <= k + 1


# --- Algorithm 1 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_no_sequence_of_stable_releases_beats_its_delta(queries):
    """Without a shared threshold every outcome is independent: all mixtures of kinds, all outcomes."""
    scale, threshold = 1.3, 3
    kinds = [(d, d + 1) for d in (0, 2, 3, 4)]
    pairs = [(tail(threshold - a, scale), tail(threshold - b, scale)) for a, b in (*kinds, *((b, a) for a, b in kinds))]
    laws = [((p, 1 - p), (q, 1 - q)) for p, q in pairs]
    unstable = tail(threshold, scale)
    laws.append(((unstable, 0, 1 - unstable), (0, unstable, 1 - unstable)))
    for epsilon in (0.0, 0.5, queries / scale):
        claimed = stable_release_delta(epsilon, scale=scale, threshold=threshold, queries=queries)
        reached = 0.0
        for chosen in itertools.combinations_with_replacement(laws, queries):
            outcomes = itertools.product(*[zip(*law, strict=True) for law in chosen])
            gains = (
                max(0.0, np.prod([p for p, _ in outcome]) - np.exp(epsilon) * np.prod([q for _, q in outcome]))
                for outcome in outcomes
            )
            reached = max(reached, sum(gains))
        assert reached <= claimed * (1 + 1e-9)
    assert claimed * 0.9999 < reached  # at ε = m/s all that is left is the unstable winner


@pytest.mark.parametrize(("epsilon", "queries"), [(1.0, 1), (1.0, 50), (3.0, 400)])
def test_stable_release_designs_are_the_least(epsilon, queries):
    scale = stable_release_scale(epsilon, 1e-5, queries=queries)
    assert randomized_response(epsilon, 1 / scale, queries) <= 5e-6
    assert randomized_response(epsilon, 1 / (0.999 * scale), queries) > 5e-6
    w = stable_release_threshold(epsilon, 1e-5, scale=scale, queries=queries)
    spent = [stable_release_delta(epsilon, scale=scale, threshold=at, queries=queries) for at in (w, w - 1)]
    assert spent[0] <= 1e-5 < spent[1]


# --- GNMax ---------------------------------------------------------------------------------------------------------


@cache
def gaussian_sum(sigma, count):
    """The law of a sum of discrete Gaussians by convolution: values and chances."""
    x = np.arange(-int(14 * sigma) - 3, int(14 * sigma) + 4)
    one = np.exp(-(x**2) / (2 * sigma**2))
    one /= one.sum()
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, one)
    half = len(total) // 2
    return np.arange(-half, half + 1), total


def convolved_delta(epsilon, sigma, answers, test_sigma=None, tests=0):
    s, p = gaussian_sum(sigma, 2 * answers)
    loss = (2 * answers + 2 * s) / (2 * sigma**2)
    if tests:
        u, q = gaussian_sum(test_sigma, tests)
        loss = ((tests + 2 * u) / (2 * test_sigma**2))[:, None] + loss[None]
        p = q[:, None] * p[None]
    return float(np.sum(p * np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))))


@pytest.mark.parametrize(("sigma", "answers"), [(0.9, 1), (1.5, 1), (3.0, 4), (6.0, 12), (17.3, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_gnmax_delta_is_the_convolution(sigma, answers, epsilon):
    truth = convolved_delta(epsilon, sigma, answers)
    slack = 1 + 1e-7 + 5 * answers * np.exp(-((np.pi * sigma) ** 2))
    assert truth * (1 - 1e-10) <= gnmax_delta(epsilon, sigma=sigma, answers=answers) <= truth * slack + 1e-30


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_confident_gnmax_delta_is_the_double_sum(epsilon):
    truth = convolved_delta(epsilon, 3.0, 2, 5.0, 7)
    found = gnmax_delta(epsilon, sigma=3.0, answers=2, test_sigma=5.0, tests=7)
    assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-6)


def test_the_privacy_loss_is_that_of_two_counts_moved_by_one():
    """The definition itself: four independent noisy counts, two queries, every outcome."""
    sigma, epsilon = 1.2, 1.0
    x = np.arange(-12, 13)
    p = np.exp(-(x**2) / (2 * sigma**2))
    p /= p.sum()
    up, down = np.append(0, p[:-1]), np.append(p[1:], 0)
    two = [np.outer(a, b).ravel() for a, b in ((p, p), (up, down))]
    left, right = (np.outer(law, law).ravel() for law in two)
    truth = np.maximum(0, left - np.exp(epsilon) * right).sum()
    assert truth * (1 - 1e-9) <= gnmax_delta(epsilon, sigma=sigma, answers=2) <= truth * (1 + 1e-4)


@pytest.mark.parametrize(("sigma", "answers"), [(10.0, 10), (40.0, 57)])
def test_gnmax_agrees_with_dp_accounting(sigma, answers):
    """Theirs rounds every step's loss up to its grid, so it lies a little above."""
    theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-5).self_compose(2 * answers)
    for epsilon in (0.5, 1.0):
        ours = gnmax_delta(epsilon, sigma=sigma, answers=answers)
        assert 0.99 * theirs.get_delta_for_epsilon(epsilon) < ours < 1.0001 * theirs.get_delta_for_epsilon(epsilon)
    least = theirs.get_epsilon_for_delta(1e-5)
    ours = [gnmax_delta(epsilon, sigma=sigma, answers=answers) for epsilon in (least - 2e-3, least + 2e-3)]
    assert ours[0] > 1e-5 > ours[1]


def test_confident_gnmax_agrees_with_dp_accounting():
    fine = {"value_discretization_interval": 1e-5}
    tests = pld.from_discrete_gaussian_mechanism(60.0, **fine).self_compose(100)
    theirs = tests.compose(pld.from_discrete_gaussian_mechanism(20.0, **fine).self_compose(40))
    least = theirs.get_epsilon_for_delta(1e-5)
    options = {"sigma": 20.0, "answers": 20, "test_sigma": 60.0, "tests": 100}
    ours = [gnmax_delta(epsilon, **options) for epsilon in (least - 2e-3, least + 2e-3)]
    assert ours[0] > 1e-5 > ours[1]


@pytest.mark.parametrize(("sigma", "answers", "tests"), [(30.0, 30, 0), (2000.0, 10**5, 0), (300.0, 2000, 9000)])
def test_gnmax_lies_between_the_continuous_formula_and_zero_concentrated_privacy(sigma, answers, tests):
    """Coarsened lattices included: the second and third are far too fine to tabulate."""
    distance = np.sqrt(2 * answers / sigma**2 + tests / (3 * sigma) ** 2)
    delta = gnmax_delta(1.0, sigma=sigma, answers=answers, test_sigma=3 * sigma, tests=tests)
    assert delta == pytest.approx(gaussian_delta(1.0, distance=distance), rel=0.02)
    rho = distance**2 / 2
    assert delta < np.exp(-((1.0 - rho) ** 2) / (4 * rho))
    assert delta >= gaussian_delta(1.0, distance=distance) * 0.9999


@given(st.floats(0.2, 4), st.floats(1e-9, 1e-2), st.integers(1, 300))
@settings(max_examples=15)
def test_gnmax_sigma_is_the_least(epsilon, delta, answers):
    sigma = gnmax_sigma(epsilon, delta, answers=answers)
    assert gnmax_delta(epsilon, sigma=sigma, answers=answers) <= delta
    assert gnmax_delta(epsilon, sigma=0.999 * sigma, answers=answers) > delta
    assert sigma < 3 or gaussian_delta(epsilon, distance=np.sqrt(2 * answers) / (0.998 * sigma)) > delta


def test_gnmax_sigma_with_tests_is_the_least():
    sigma = gnmax_sigma(1.0, 1e-5, answers=50, tests=200, ratio=4.0)
    options = {"answers": 50, "tests": 200}
    assert gnmax_delta(1.0, sigma=sigma, test_sigma=4 * sigma, **options) <= 1e-5
    assert gnmax_delta(1.0, sigma=0.999 * sigma, test_sigma=4 * 0.999 * sigma, **options) > 1e-5


def test_gnmax_with_hardly_any_noise_promises_nothing():
    assert gnmax_delta(1.0, sigma=0.2, answers=1) == 1
    assert gnmax_delta(0.0, sigma=5.0, answers=10**5, test_sigma=1.0, tests=10**5) == 1


# --- quotas --------------------------------------------------------------------------------------------------------


def shifted_delta(epsilon, sigma, count):
    """δ(ε) of so many discrete Gaussians, each against the same moved by one, by convolution."""
    s, p = gaussian_sum(sigma, count)
    loss = (count + 2 * s) / (2 * sigma**2)
    return float(np.sum(p * np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))))


@pytest.mark.parametrize(
    ("sigma", "quota", "changed"), [(0.9, 1, 1), (1.5, 3, 1), (3.0, 7, 1), (3.0, 4, 2), (17.3, 5, 1)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_quota_delta_is_the_convolution(sigma, quota, changed, epsilon):
    truth = shifted_delta(epsilon, sigma, quota * changed)
    slack = 1 + 1e-7 + 5 * quota * np.exp(-((np.pi * sigma) ** 2))
    found = quota_delta(epsilon, sigma=sigma, quota=quota, changed=changed)
    assert truth * (1 - 1e-10) <= found <= truth * slack + 1e-30


def best_strategy(epsilon, sigma, queries, quota):
    """The largest δ(ε) that any adaptive strategy reaches, by trying all of them.

    Before each query the adversary, who has seen the sum of what a voter's answers contained, decides whether that
    voter is to vote on it. If it has votes left, its count moves by one on one side, else the answer is noise alone.
    """
    x = np.arange(-12, 13)
    chance = np.exp(-(x**2) / (2 * sigma**2))
    chance /= chance.sum()

    @cache
    def value(left, votes, seen, voted):
        if not left:
            return max(0.0, -math.expm1(min(0.0, epsilon - (voted + 2 * seen) / (2 * sigma**2))))
        best = value(left - 1, votes, seen, voted)
        if votes:
            after = [value(left - 1, votes - 1, seen + int(noise), voted + 1) for noise in x]
            best = max(best, float(chance @ after))
        return best

    return value(queries, quota, 0, 0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("queries", "quota"), [(4, 1), (6, 2), (5, 3)])
def test_no_strategy_of_adaptive_queries_beats_the_quota(epsilon, queries, quota):
    """However many queries there are; with one vote more than the quota, a strategy does."""
    found = quota_delta(epsilon, sigma=1.6, quota=quota)
    assert found * 0.999 < best_strategy(epsilon, 1.6, queries, quota) <= found
    assert best_strategy(epsilon, 1.6, queries, quota + 1) > 1.01 * found


@pytest.mark.parametrize(("sigma", "quota"), [(10.0, 21), (40.0, 115)])
def test_a_quota_agrees_with_dp_accounting(sigma, quota):
    theirs = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-5).self_compose(quota)
    least = theirs.get_epsilon_for_delta(1e-5)
    ours = [quota_delta(epsilon, sigma=sigma, quota=quota) for epsilon in (least - 2e-3, least + 2e-3)]
    assert ours[0] > 1e-5 > ours[1]


@given(st.floats(0.05, 4), st.floats(1e-9, 1e-2), st.integers(1, 300), st.sampled_from([1, 2]))
@settings(max_examples=15)
def test_quota_sigma_is_the_least(epsilon, delta, quota, changed):
    sigma = quota_sigma(epsilon, delta, quota=quota, changed=changed)
    assert quota_delta(epsilon, sigma=sigma, quota=quota, changed=changed) <= delta
    assert quota_delta(epsilon, sigma=0.999 * sigma, quota=quota, changed=changed) > delta
    assert sigma < 3 or gaussian_delta(epsilon, distance=np.sqrt(quota * changed) / (0.998 * sigma)) > delta


# --- clipped sums --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "sums", "reach"), [(1.5, 1, 2), (3.0, 3, 2), (7.0, 4, 5), (40.0, 3, 16)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
def test_clipped_sums_delta_is_the_convolution(sigma, sums, reach, epsilon):
    s, p = gaussian_sum(sigma, sums)
    loss = (sums * reach**2 + 2 * reach * s) / (2 * sigma**2)
    truth = float(np.sum(p * np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))))
    slack = 1 + 1e-7 + 5 * sums * np.exp(-((np.pi * sigma) ** 2))
    found = clipped_sums_delta(epsilon, sigma=sigma, sums=sums, reach=reach)
    assert truth * (1 - 1e-10) <= found <= truth * slack + 1e-30


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("first", range(-3, 4))
@pytest.mark.parametrize("second", range(-3, 4))
def test_no_smaller_shift_beats_the_reach(first, second, epsilon):
    """All shifts of two sums by at most 3, by enumeration: none shows more than the bound, and 3 twice reaches it."""
    sigma, x = 2.5, np.arange(-45, 46)
    law = np.exp(-(x**2) / (2 * sigma**2))
    law /= law.sum()
    losses = np.add.outer(*((s * s + 2 * s * x) / (2 * sigma**2) for s in (first, second)))
    exact = float(np.sum(np.outer(law, law) * np.maximum(0, -np.expm1(np.minimum(epsilon - losses, 0)))))
    bound = clipped_sums_delta(epsilon, sigma=sigma, sums=2, reach=3)
    assert exact <= bound
    assert abs(first) + abs(second) < 6 or exact > 0.999 * bound


def test_clipped_sums_of_reach_one_are_a_quota():
    assert clipped_sums_delta(0.7, sigma=9.0, sums=12) == quota_delta(0.7, sigma=9.0, quota=4, changed=3)


@given(st.floats(0.05, 4), st.floats(1e-9, 1e-2), st.integers(1, 10**5), st.sampled_from([1, 7, 1024]))
@settings(max_examples=15)
def test_clipped_sums_sigma_is_the_least(epsilon, delta, sums, reach):
    sigma = clipped_sums_sigma(epsilon, delta, sums=sums, reach=reach)
    assert clipped_sums_delta(epsilon, sigma=sigma, sums=sums, reach=reach) <= delta
    assert clipped_sums_delta(epsilon, sigma=0.999 * sigma, sums=sums, reach=reach) > delta
    assert sigma < 3 or gaussian_delta(epsilon, distance=reach * np.sqrt(sums) / (0.998 * sigma)) > delta


def naive_lattice_delta(epsilon, sigma, sensitivity):
    """The statement itself, at the best of many α, with 50 digits."""
    with mp.workdps(50):
        rho = mp.mpf(sensitivity) ** 2 / (2 * mp.mpf(sigma) ** 2)

        def log_bound(alpha):
            return (alpha - 1) * (alpha * rho - epsilon) + (alpha - 1) * mp.log(1 - 1 / alpha) - mp.log(alpha)

        step = mp.mpf(10)
        best = mp.mpf(0)
        while step > mp.mpf("1e-12"):  # a pattern search over ln(α − 1)
            values = {shift: log_bound(1 + mp.exp(best + shift * step)) for shift in (-1, 0, 1)}
            least = min(values, key=values.get)
            best, step = (best + least * step, step) if least else (best, step / 2)
        return float(mp.exp(min(0, log_bound(1 + mp.exp(best)))))


@pytest.mark.parametrize(("epsilon", "sigma", "sensitivity"), [(1.0, 5.0, 1.0), (0.5, 900.0, 256.0), (4.0, 1.5, 2.0)])
def test_lattice_delta_is_the_best_of_all_orders(epsilon, sigma, sensitivity):
    truth = naive_lattice_delta(epsilon, sigma, sensitivity)
    assert truth <= lattice_delta(epsilon, sigma=sigma, sensitivity=sensitivity) <= truth * (1 + 1e-6)


@pytest.mark.parametrize("shift", [(1,), (3,), (1, 1), (2, -1), (0, 4)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_lattice_delta_covers_the_exact_divergence(shift, epsilon):
    sigma, reach = 2.5, np.arange(-60, 61)
    weights = np.exp(-(reach**2) / (2 * sigma**2))
    masses, losses = np.ones(1), np.zeros(1)
    for s in shift:
        masses = np.multiply.outer(masses, weights / weights.sum()).ravel()
        losses = np.add.outer(losses, (s * s - 2 * s * reach) / (2 * sigma**2)).ravel()
    exact = float(np.sum(masses * np.maximum(0, -np.expm1(epsilon - losses))))
    bound = lattice_delta(epsilon, sigma=sigma, sensitivity=math.hypot(*shift))
    assert exact <= bound <= 8 * exact + 1e-9


@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), [(0.25, 1e-5, 512.0), (2.0, 1e-9, 1.0)])
def test_lattice_sigma_is_the_least(epsilon, delta, sensitivity):
    sigma = lattice_sigma(epsilon, delta, sensitivity=sensitivity)
    assert lattice_delta(epsilon, sigma=sigma, sensitivity=sensitivity) <= delta
    assert lattice_delta(epsilon, sigma=0.9999 * sigma, sensitivity=sensitivity) > delta


def test_sums_of_whole_rows_move_as_far_and_no_farther():
    """All pairs of rows of whole numbers no longer than 5, as one person's two records of half the length or alone."""
    rows = [(a, b) for a in range(-5, 6) for b in range(-5, 6) if a * a + b * b <= 25]
    added = max(math.hypot(*row) for row in rows)
    together = max(math.hypot(a / 2 + c / 2, b / 2 + d / 2) for a, b in rows for c, d in rows)
    relabelled = max(math.hypot(*row, *row) for row in rows)
    assert sums_sensitivity(5, changed=1) == added == together
    assert relabelled <= sums_sensitivity(5, changed=2) <= relabelled * (1 + 1e-12)
