"""Bounds against the exact risk of the best estimator where that is known: valid and tight.

Tests that sample say how often they would fail by chance; seeds are fixed, so they fail always or never.
"""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.theory import estimation
from tacit.theory.confidence import bounded_mean_lower, bounded_mean_upper, sampled_mean_lower, sampled_mean_upper
from tacit.theory.divergences import gaussian_chi_square, gaussian_total_variation
from tacit.theory.estimation import (
    gallery_coordinate_mse,
    gallery_identification,
    gallery_mse,
    hcr_variance,
    two_point_bayes_error,
    two_point_bayes_mse,
    two_point_error,
    two_point_mse,
    two_point_success,
)

mp.mp.dps = 30
RARE = 1e-6
sizes = st.floats(1e-6, 1e6)


@given(sizes, sizes)
def test_hcr_variance_is_the_quotient_rounded_down(shift, chi_square):
    exact = Fraction(shift) ** 2 / Fraction(chi_square)
    bound = Fraction(float(hcr_variance(shift, chi_square=chi_square)))
    assert exact * (1 - Fraction(1, 10**12)) < bound <= exact


@pytest.mark.parametrize(("slope", "sigma"), [(1.0, 1.0), (0.3, 2.0), (5.0, 0.7)])
def test_hcr_variance_meets_the_best_unbiased_estimator_of_a_linear_release(slope, sigma):
    """X = slope·θ + σZ: X/slope is unbiased with variance σ²/slope²; small steps reach it, all stay below it."""
    truth = (sigma / slope) ** 2
    steps = np.geomspace(1e-3, 3.0, 20) * sigma / slope
    bounds = hcr_variance(steps, chi_square=gaussian_chi_square(steps * slope / sigma))
    assert np.all(bounds <= truth * (1 + 1e-12))  # the steps themselves are rounded
    assert bounds.max() > 0.9999 * truth


def test_hcr_variance_where_the_release_does_not_move():
    assert hcr_variance(0.1, chi_square=0.0) == np.inf
    assert hcr_variance(0.0, chi_square=0.0) == 0
    assert hcr_variance(0.1, chi_square=np.inf) == 0
    assert hcr_variance([1e200, 1e-200], chi_square=1.0)[1] == 0


@given(st.floats(0, 1))
def test_two_point_success_is_rounded_up(variation):
    exact = (1 + Fraction(variation)) / 2
    bound = Fraction(float(two_point_success(variation)))
    assert exact <= bound <= min(Fraction(1), exact * (1 + Fraction(1, 10**12)))


@pytest.mark.parametrize("d", [0.1, 1.0, 2.5])
def test_two_point_success_is_what_the_likelihood_ratio_test_reaches(d):
    truth = mp.ncdf(mp.mpf(d) / 2)
    assert truth <= two_point_success(gaussian_total_variation(d)) <= truth * (1 + 1e-8)


@given(st.floats(0.01, 10), st.floats(0, 1))
def test_two_point_mse_is_the_exact_risk_for_uniform_noise(shift, move):
    """Uniform noise on [0, 1] moved by `move`: TV = move, and where the two overlap nobody knows anything."""
    truth = Fraction(shift) ** 2 / 4 * (1 - Fraction(move))
    bound = Fraction(float(two_point_mse(shift, total_variation=move)))
    assert truth * (1 - Fraction(1, 10**12)) - Fraction(5e-324) <= bound <= truth


@pytest.mark.parametrize("d", [0.1, 1.0, 2.0, 3.0])
def test_two_point_mse_stays_below_the_best_estimator_for_gaussian_noise(d):
    risk = binary_risk(d)
    bound = two_point_mse(1.0, total_variation=gaussian_total_variation(d))
    assert risk / 2 <= bound <= risk


@pytest.mark.parametrize("d", [1e-9, 0.1, 1.0, 2.456, 7.0, 20.0])
def test_two_point_bayes_mse_is_the_exact_risk_of_the_best_estimator(d):
    s = mp.mpf(d) ** 2 / 4
    half = [0, 0.5 / max(mp.sqrt(s), 1), 2, 5, 12]
    truth = 2 * mp.exp(-s / 2) * mp.quad(lambda y: mp.npdf(y) * mp.sech(mp.sqrt(s) * y), half) / 4
    bound = two_point_bayes_mse(1.0, distance=d)
    assert truth * (1 - 1e-10) <= bound <= truth
    if d < 10:
        assert binary_risk(d) == pytest.approx(float(truth), rel=1e-6)


def test_two_point_bayes_mse_over_an_array_is_that_of_its_entries():
    distances = np.random.default_rng(0).uniform(0, 9, size=(30, 20))
    shifts = np.full((30, 20), 3.0)
    together = two_point_bayes_mse(shifts, distance=distances)
    alone = [[float(two_point_bayes_mse(3.0, distance=d)) for d in row] for row in distances]
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    assert np.all(together >= two_point_mse(shifts, total_variation=gaussian_total_variation(distances)))


def test_two_point_bayes_mse_at_the_ends():
    assert two_point_bayes_mse(2.0, distance=0.0) == pytest.approx(1.0, rel=1e-11)
    assert two_point_bayes_mse(2.0, distance=1e6) == 0
    assert two_point_bayes_mse(0.0, distance=1.0) == 0


def binary_risk(d):
    """The least mean squared error for two equally likely inputs 0 and 1 whose releases lie d apart."""

    def weighed_variance(x):
        share = 1 / (1 + math.exp(d * d / 2 - d * x))
        return (stats.norm.pdf(x) + stats.norm.pdf(x - d)) / 2 * share * (1 - share)

    return integrate.quad(weighed_variance, -12, 12 + d, epsabs=1e-12)[0]


@pytest.mark.parametrize(("count", "d"), [(2, 0.5), (2, 2.0), (5, 1.5), (20, 2.0)])
def test_gallery_identification_against_orthogonal_candidates(count, d):
    """Of N orthogonal candidates of norm d·σ the largest coordinate is right with ∫φ(t − d)Φ(t)^(N−1)dt."""
    sigma = 0.8
    truth = integrate.quad(lambda t: stats.norm.pdf(t - d) * stats.norm.cdf(t) ** (count - 1), -12, 20)[0]
    bound = gallery_identification(
        d * sigma * np.eye(count), sigma=sigma, draws=1_000_000, failure_probability=RARE, seed=1
    )
    assert truth <= bound < truth / 0.99


@pytest.mark.parametrize("d", [0.5, 1.0, 2.0])
def test_gallery_mse_against_two_candidates(d):
    truth = binary_risk(d) * ((3 - 0) ** 2 + (5 - 1) ** 2) / 2
    bound = gallery_mse([[0.0], [d]], [[0, 1], [3, 5]], sigma=1.0, draws=2_000_000, failure_probability=RARE, seed=1)
    assert 0.99 * truth < bound <= truth


def test_gallery_bounds_fail_no_more_often_than_stated():
    """300 runs at failure probability 0.2; by chance alone this test fails with probability below 1e-6."""
    runs, failure, d = 300, 0.2, 1.0
    success, risk = stats.norm.cdf(d / 2), binary_risk(d)
    wrong_success = wrong_risk = 0
    for seed in range(runs):
        options = {"sigma": 1.0, "draws": 50, "failure_probability": failure, "seed": seed}
        wrong_success += gallery_identification([[0.0], [d]], **options) < success
        wrong_risk += gallery_mse([[0.0], [d]], [[0.0], [1.0]], **options) > risk
    most = stats.binom.isf(RARE / 2, runs, failure)
    assert max(wrong_success, wrong_risk) <= most


def test_gallery_bounds_agree_with_their_naive_twins():
    """The same draws, one at a time, densities written out."""
    rng = np.random.default_rng(5)
    features, inputs, sigma, draws, seed = rng.normal(size=(7, 3)), rng.normal(size=(7, 4)), 0.9, 400, 3
    generator = np.random.default_rng(seed)
    released = generator.integers(7, size=draws)
    noise = generator.standard_normal((draws, 3))
    named, variances = [], []
    for i in range(draws):
        x = features[released[i]] + sigma * noise[i]
        weights = np.array([math.exp(-np.sum((x - a) ** 2) / (2 * sigma**2)) for a in features])
        weights /= weights.sum()
        named.append(weights.max())
        mean = sum(w * theta for w, theta in zip(weights, inputs, strict=True))
        variances.append(sum(w * np.sum((theta - mean) ** 2) for w, theta in zip(weights, inputs, strict=True)))
    options = {"sigma": sigma, "draws": draws, "failure_probability": 0.01, "seed": seed}
    expected = min(
        sampled_mean_upper(named, failure_probability=0.005),
        bounded_mean_upper(np.mean(named), count=draws, failure_probability=0.005),
    )
    assert gallery_identification(features, **options) == pytest.approx(expected, rel=1e-9)
    most = np.max(np.sum((inputs - inputs.mean(axis=0)) ** 2, axis=1))
    shares = np.array(variances) / most
    limits = (
        sampled_mean_lower(shares, failure_probability=0.005),
        bounded_mean_lower(np.mean(shares), count=draws, failure_probability=0.005),
    )
    expected = max(limits) * most / 4
    assert gallery_mse(features, inputs, **options) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_candidates_in_blocks_are_named_as_all_at_once(monkeypatch, weighted):
    """Blocks of three candidates and batches of sixteen draws give what one matrix of all gives, but for rounding."""
    rng = np.random.default_rng(6)
    features, sigma = 50 + rng.normal(size=(40, 3)), 0.7
    weights = rng.uniform(1, 2, size=40) if weighted else None
    monkeypatch.setattr(estimation, "_LEAST_DRAWS", 16)
    monkeypatch.setattr(estimation, "_NUMBERS", 48)
    options = {"weights": weights, "sigma": sigma, "seed": 1}
    streamed = list(estimation._greatest_posteriors(features, draws=100, **options))
    assert [len(values) for values, _ in streamed] == [16] * 6 + [4]
    chances = np.ones(40) / 40 if weights is None else weights / weights.sum()
    generator, dense = np.random.default_rng(1), []
    for values, _ in streamed:
        count = len(values)
        of = generator.choice(40, size=count, p=chances) if weighted else generator.integers(40, size=count)
        x = features[of] + sigma * generator.standard_normal((count, 3))
        logs = np.log(chances) - ((x[:, None] - features) ** 2).sum(axis=2) / (2 * sigma**2)
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        dense.append((posterior / posterior.sum(axis=1, keepdims=True)).max(axis=1))
    np.testing.assert_allclose(np.concatenate([values for values, _ in streamed]), np.concatenate(dense), rtol=1e-11)
    assert all(0 < error < 1e-9 for _, error in streamed)


def exact_gallery(features, inputs, weights, sigma):
    """By integration over the line: the chance of naming the input, the error, and that of each coordinate."""
    chances = np.array(weights) / np.sum(weights)

    def joint(x):
        return chances * stats.norm.pdf(x, np.array(features)[:, 0], sigma)

    def posterior(x):
        return joint(x) / joint(x).sum()

    def variance(x, values):
        return posterior(x) @ (values - posterior(x) @ values) ** 2 * joint(x).sum()

    low, high = np.min(features) - 12 * sigma, np.max(features) + 12 * sigma
    cuts = np.linspace(low, high, 60)

    def integral(f):
        return sum(integrate.quad(f, a, b)[0] for a, b in itertools.pairwise(cuts))

    inputs = np.array(inputs)
    coordinates = [integral(lambda x, j=j: variance(x, inputs[:, j])) for j in range(inputs.shape[1])]
    return integral(lambda x: joint(x).max()), np.mean(coordinates), np.array(coordinates)


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (50, 30, 15, 5), (0.97, 0.01, 0.01, 0.01)])
def test_candidates_that_are_not_equally_likely_are_named_and_rebuilt_as_integration_says(weights):
    features, inputs = [[0.0], [0.8], [2.5], [2.5]], [[0.0, 1.0], [1.0, 1.0], [3.0, -2.0], [0.5, 4.0]]
    named, error, coordinates = exact_gallery(features, inputs, weights, 0.7)
    options = {"weights": weights, "sigma": 0.7, "draws": 400_000, "failure_probability": RARE, "seed": 2}
    assert named <= gallery_identification(features, **options) < named / 0.99
    assert 0.95 * error < gallery_mse(features, inputs, **options) <= error
    found = gallery_coordinate_mse(features, inputs, **options)
    assert np.all(found <= coordinates)
    assert np.all(found > 0.9 * coordinates)


def test_limits_are_tight_where_nearly_everything_and_nearly_nothing_is_given_away():
    """Little noise: Chernoff's bound keeps what bets lose. Much noise: values vary little, and bets gain."""
    few = {"draws": 2000, "failure_probability": 0.001, "seed": 0}
    grid = np.arange(100.0)[:, None]
    assert gallery_mse(grid, grid, sigma=0.3, **few) > 0
    assert gallery_identification(grid, sigma=0.15, **few) < 1
    features = np.random.default_rng(0).normal(size=(500, 8))
    named = gallery_identification(features, sigma=20.0, **few)
    assert named < 0.0085  # Chernoff alone says 0.010


def test_a_candidate_twice_is_one_of_twice_the_weight():
    features, inputs = [[0.0], [1.0]], [[0.0], [2.0]]
    options = {"sigma": 0.6, "draws": 400_000, "failure_probability": RARE, "seed": 4}
    _, error, _ = exact_gallery(features, inputs, (2, 1), 0.6)
    for weights in ((2, 1), (2e-9, 1e-9)):
        assert 0.99 * error < gallery_mse(features, inputs, weights=weights, **options) <= error
    again = gallery_mse([[0.0], [0.0], [1.0]], [[0.0], [0.0], [2.0]], **options)  # the error does not mind
    assert 0.99 * error < again <= error


@pytest.mark.parametrize("weights", [(1,), (1, 0), (1, -1), (1, np.nan), "ab"])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        gallery_identification([[0.0], [1.0]], weights=weights, sigma=1.0, draws=10, failure_probability=0.1, seed=0)


def test_identical_features_leave_only_guessing_and_identical_inputs_leave_nothing_to_learn():
    options = {"sigma": 1.0, "draws": 100_000, "failure_probability": RARE, "seed": 0}
    assert 0.25 <= gallery_identification(np.ones((4, 2)), **options) < 0.26
    assert gallery_mse(np.eye(4), np.ones((4, 2)), **options) == 0


@pytest.mark.parametrize(("offset", "size"), [(1e6, 1.0), (0.0, 1e-162), (0.0, 1e150), (-1e9, 1e3)])
def test_gallery_bounds_depend_neither_on_the_origin_nor_on_the_unit(offset, size):
    options = {"draws": 1_000_000, "failure_probability": RARE, "seed": 1}
    features = offset + size * np.array([[0.0], [1.0]])
    named = gallery_identification(features, sigma=size, **options)
    assert stats.norm.cdf(0.5) <= named < stats.norm.cdf(0.5) / 0.99
    risk = gallery_mse(features, [[0.0], [1.0]], sigma=size, **options)
    assert 0.99 * binary_risk(1.0) < risk <= binary_risk(1.0)


def test_huge_noise_leaves_guessing():
    assert 0.5 <= gallery_identification(np.eye(2), sigma=1e200, draws=10**6, failure_probability=RARE, seed=0) < 0.51


def test_noise_too_small_to_compute_with_is_refused():
    with pytest.raises(ValueError, match="raise it: so little noise hides nothing"):
        gallery_identification([[0.0], [1e9]], sigma=1e-9, draws=10, failure_probability=0.1, seed=0)


@given(st.floats(-30, 30), st.floats(1e-3, 20))
def test_the_error_of_telling_two_inputs_apart_is_that_of_the_likelihood_ratio_test(log_odds, distance):
    """∫ min(w f₀, (1 − w) f₁), cut at the point where the two cross, in 30 digits."""
    odds, d = mp.mpf(log_odds), mp.mpf(distance)
    w = 1 / (1 + mp.exp(-odds))
    crossing = d / 2 + odds / d  # f₀ is centred at 0, f₁ at d
    exact = w * mp.ncdf(-crossing) + (1 - w) * mp.ncdf(crossing - d)
    bound = mp.mpf(float(two_point_bayes_error(log_odds, distance=distance)))
    assert exact * (1 - mp.mpf(10) ** -9) - mp.mpf(10) ** -300 <= bound <= exact


@given(st.floats(-30, 30), st.floats(0, 5))
def test_total_variation_gives_less_than_the_exact_error_and_all_of_it_at_even_odds(log_odds, distance):
    """Mathematically at most; each is rounded down by its own allowance, largest where inputs hardly differ."""
    variation = gaussian_total_variation(distance)
    any_noise = two_point_error(log_odds, total_variation=variation)
    assert any_noise <= two_point_bayes_error(log_odds, distance=distance) * (1 + 1e-6)
    assert two_point_error(0.0, total_variation=variation) == pytest.approx((1 - variation) / 2, rel=1e-8)


@given(st.floats(-700, 700), st.fractions(0, 1))
def test_the_error_by_total_variation_is_rounded_down(log_odds, variation):
    rarer = 1 / (1 + mp.exp(abs(mp.mpf(log_odds))))
    exact = rarer * (1 - mp.mpf(float(variation)))
    bound = mp.mpf(float(two_point_error(log_odds, total_variation=float(variation))))
    assert exact * (1 - mp.mpf(10) ** -9) <= bound <= exact


@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-7])
def test_inputs_that_hardly_differ_are_guessed_by_their_odds(distance):
    rarer = 1 / (1 + math.exp(2.0))
    bound = two_point_bayes_error([-2.0, 2.0], distance=distance)
    assert np.all(bound <= rarer)
    assert np.all(bound > rarer * (1 - 2e-6))


def test_the_error_in_each_coordinate_is_its_posterior_variance():
    """Two candidates with releases d apart: a share mmse(d²/4) of each coordinate's variance remains."""
    features, inputs = [[0.0], [1.5]], [[0.0, 1.0, 5.0], [1.0, 1.0, 2.0]]
    options = {"sigma": 1.0, "draws": 400_000, "failure_probability": RARE, "seed": 3}
    found = gallery_coordinate_mse(features, inputs, **options)
    truth = two_point_bayes_mse([1.0, 0.0, 3.0], distance=1.5)
    assert np.all(found <= truth)
    assert np.all(found >= 0.985 * truth)
    assert np.mean(found) <= gallery_mse(features, inputs, **options) * 1.02
