"""Confidence limits against exact enumeration of their coverage: no simulation, so no false alarms."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.theory.confidence import (
    binomial_lower,
    binomial_upper,
    bounded_mean_lower,
    bounded_mean_upper,
    gaussian_scale_lower,
    gaussian_scale_upper,
    sampled_mean_lower,
    sampled_mean_upper,
)

mp.mp.dps = 30
SLACK = 1e-6

counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
failures = st.floats(1e-9, 0.4)


def at_most(k, n, p):
    """P(Bin(n, p) ≤ k) in 30 digits."""
    p = mp.mpf(p)
    return mp.fsum(mp.binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@given(counts, failures)
def test_binomial_upper_is_the_last_probability_not_excluded(count, alpha):
    k, n = count
    limit = binomial_upper(k, trials=n, failure_probability=alpha)
    if k == n:
        assert limit == 1
    else:
        assert at_most(k, n, limit) <= alpha < at_most(k, n, limit * (1 - SLACK))


@given(counts, failures)
def test_binomial_lower_is_the_last_probability_not_excluded(count, alpha):
    k, n = count
    limit = binomial_lower(k, trials=n, failure_probability=alpha)
    if k == 0:
        assert limit == 0
    else:
        assert 1 - at_most(k - 1, n, limit) <= alpha < 1 - at_most(k - 1, n, min(1, limit * (1 + SLACK)))


@pytest.mark.parametrize("p", np.linspace(0.01, 0.99, 23))
def test_exact_coverage_of_every_limit(p):
    n, alpha = 60, 0.05
    chance = stats.binom.pmf(np.arange(n + 1), n, p)
    for lower, upper in ((binomial_lower, binomial_upper), (_lower_of_counts, _upper_of_counts)):
        too_high = sum(chance[k] for k in range(n + 1) if lower(k, trials=n, failure_probability=alpha) > p)
        too_low = sum(chance[k] for k in range(n + 1) if upper(k, trials=n, failure_probability=alpha) < p)
        assert too_high <= alpha
        assert too_low <= alpha


def _lower_of_counts(k, *, trials, failure_probability):
    return bounded_mean_lower(k / trials, count=trials, failure_probability=failure_probability)


def _upper_of_counts(k, *, trials, failure_probability):
    return bounded_mean_upper(k / trials, count=trials, failure_probability=failure_probability)


def kl(m, mu):
    m, mu = mp.mpf(m), mp.mpf(mu)
    return (m * mp.log(m / mu) if m else 0) + ((1 - m) * mp.log((1 - m) / (1 - mu)) if m < 1 else 0)


@given(st.floats(1e-4, 1 - 1e-4), st.integers(1, 10**6), failures)
def test_bounded_mean_limits_invert_the_chernoff_bound(mean, count, alpha):
    log = mp.log(1 / mp.mpf(alpha))
    lower = bounded_mean_lower(mean, count=count, failure_probability=alpha)
    upper = bounded_mean_upper(mean, count=count, failure_probability=alpha)
    assert lower < mean < upper
    assert lower == 0 or count * kl(mean, lower) >= log > count * kl(mean, min(lower * (1 + SLACK), mean))
    assert upper == 1 or count * kl(mean, upper) >= log > count * kl(mean, max(upper * (1 - SLACK), mean))


def test_the_chernoff_bound_holds_for_values_between_0_and_1():
    """Two-point values on {0.2, 0.9}: the exact chance that the upper limit misses, by enumeration."""
    n, alpha, p = 40, 0.1, 0.3
    expectation = 0.2 + 0.7 * p
    chance = stats.binom.pmf(np.arange(n + 1), n, p)
    limits = [bounded_mean_upper(0.2 + 0.7 * k / n, count=n, failure_probability=alpha) for k in range(n + 1)]
    assert sum(chance[k] for k in range(n + 1) if limits[k] < expectation) <= alpha


def test_nothing_seen_and_everything_seen():
    assert binomial_lower(0, trials=5, failure_probability=0.01) == 0
    assert binomial_upper(5, trials=5, failure_probability=0.01) == 1
    assert binomial_upper(0, trials=5, failure_probability=0.01) == pytest.approx(1 - 0.01 ** (1 / 5))
    assert bounded_mean_lower(0, count=5, failure_probability=0.01) == 0
    assert bounded_mean_upper(1, count=5, failure_probability=0.01) == 1
    assert bounded_mean_upper(0, count=5, failure_probability=0.01) == pytest.approx(1 - 0.01 ** (1 / 5))


def naive_sampled_lower(values, alpha):
    """The same bets, one value at a time, and a plain search."""
    bets, mean_sum, square_sum, log = [], 0.5, 0.25, np.log(1 / alpha)
    variance = 0.25
    for t, x in enumerate(values, start=1):
        bets.append(np.sqrt(2 * log / (len(values) * variance)))
        mean_sum += x
        square_sum += (x - mean_sum / (t + 1)) ** 2
        variance = square_sum / (t + 1)
    grid = np.linspace(0.0005, 1, 2000)
    wealth = [sum(np.log1p(min(b, 0.9 / m) * (x - m)) for b, x in zip(bets, values, strict=True)) for m in grid]
    return max((m for m, w in zip(grid, wealth, strict=True) if w >= log), default=0.0)


def test_the_betting_limit_agrees_with_its_naive_twin():
    values = np.random.default_rng(0).beta(2, 5, size=200)
    found = sampled_mean_lower(values, failure_probability=0.01)
    assert found == pytest.approx(naive_sampled_lower(values, 0.01), abs=1e-3)


def test_the_betting_limit_misses_no_more_often_than_stated():
    """2 000 runs at α = 0.1 miss at most 200 times on average; more than 300 happens with probability < 1e-11."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(2000):
        values = rng.choice([0.0, 0.3, 1.0], p=[0.5, 0.4, 0.1], size=60)
        misses += sampled_mean_lower(values, failure_probability=0.1) > 0.22
    assert 10 < misses < 300


def test_few_values_that_hardly_differ_allow_large_bets():
    values = np.random.default_rng(3).uniform(0.4, 0.6, size=100)
    lost = values.mean() - sampled_mean_lower(values, failure_probability=0.001)
    assert lost < 2.2 * np.sqrt(2 * np.log(1000) / 100) * values.std()
    misses = 0
    rng = np.random.default_rng(4)
    for _ in range(2000):
        values = np.where(rng.random(40) < 0.05, 0.0, rng.uniform(0.8, 0.9, size=40))
        misses += sampled_mean_lower(values, failure_probability=0.1) > 0.95 * 0.85
    assert misses < 300


def test_the_betting_limit_is_about_as_tight_as_a_known_variance_allows():
    values = np.random.default_rng(2).uniform(0.4, 0.6, size=10_000)
    lost = values.mean() - sampled_mean_lower(values, failure_probability=0.001)
    assert lost < 1.5 * np.sqrt(2 * np.log(1000) / 10_000) * values.std()
    assert lost < 0.5 * (values.mean() - bounded_mean_lower(values.mean(), count=10_000, failure_probability=0.001))


def test_the_upper_betting_limit_is_the_lower_one_mirrored():
    values = np.random.default_rng(0).beta(2, 5, size=200)
    found = sampled_mean_upper(values, failure_probability=0.01)
    assert found == pytest.approx(1 - naive_sampled_lower(1 - values, 0.01), abs=1e-3)
    assert found >= 1 - sampled_mean_lower(1 - values, failure_probability=0.01)
    assert sampled_mean_upper(np.ones(10), failure_probability=0.01) == 1
    assert sampled_mean_upper(np.zeros(3), failure_probability=1e-9) == 1


def test_the_upper_betting_limit_misses_no_more_often_than_stated_and_is_tight():
    """2 000 runs at α = 0.1 miss at most 200 times on average; more than 300 happens with probability < 1e-11."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(2000):
        values = rng.choice([0.0, 0.7, 1.0], p=[0.1, 0.4, 0.5], size=60)
        misses += sampled_mean_upper(values, failure_probability=0.1) < 0.78
    assert 10 < misses < 300
    narrow = np.random.default_rng(2).uniform(0.1, 0.15, size=10_000)
    above = sampled_mean_upper(narrow, failure_probability=0.001) - narrow.mean()
    # Where values vary by little, the sure range of the bets decides: ln(1000)/(¾·10 000).
    assert 0 < above < 1.2 * np.log(1000) / 7500
    assert above < 0.2 * (bounded_mean_upper(narrow.mean(), count=10_000, failure_probability=0.001) - narrow.mean())


def test_values_that_are_all_zero_have_the_limit_zero():
    assert sampled_mean_lower(np.zeros(10), failure_probability=0.01) == 0
    assert sampled_mean_lower(np.ones(3), failure_probability=1e-9) == 0


@pytest.mark.parametrize("failure", [5e-324, 1e-310])
def test_the_smallest_failure_probabilities_leave_a_limit(failure):
    """1/δ would be infinite, and with it ln(1/δ)."""
    log, n = -mp.log(mp.mpf(failure)), 10**5
    upper, lower = (
        limit(0.3, count=n, failure_probability=failure) for limit in (bounded_mean_upper, bounded_mean_lower)
    )
    for mean in (upper, lower):
        kl = 0.3 * mp.log(0.3 / mp.mpf(mean)) + 0.7 * mp.log(0.7 / (1 - mp.mpf(mean)))
        assert log <= n * kl <= log * (1 + mp.mpf(1e-6))
    assert 0.2 < sampled_mean_lower(np.full(n, 0.3), failure_probability=failure) < 0.3


def scale_divergence(total, draws, tau, scale):
    """ln of Chernoff's bound, in 30 digits, by sums over the lattice."""

    def log_normaliser(s):
        reach = int(20 * s) + 3
        return mp.log(mp.fsum(mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(s) ** 2)) for x in range(-reach, reach + 1)))

    tau, scale = mp.mpf(tau), mp.mpf(scale)
    exponent = total * (1 / (2 * scale**2) - 1 / (2 * tau**2))
    return draws * (log_normaliser(scale) - log_normaliser(tau)) + exponent


@pytest.mark.parametrize(("total", "draws"), [(0, 3), (1, 40), (9, 4), (2000, 500), (10**6, 900)])
def test_limits_of_a_gaussian_scale_invert_the_chernoff_bound(total, draws):
    alpha = 0.01
    tau = max(np.sqrt(total / draws), 0.25)
    high = gaussian_scale_upper(total, draws=draws, failure_probability=alpha)
    log = -mp.log(alpha)
    assert scale_divergence(total, draws, tau, high * (1 - SLACK)) < log <= scale_divergence(total, draws, tau, high)
    low = gaussian_scale_lower(total, draws=draws, failure_probability=alpha)
    if total == 0:
        assert low == 0
    else:
        assert scale_divergence(total, draws, tau, low * (1 + SLACK)) < log <= scale_divergence(total, draws, tau, low)


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("draws", [1, 2, 5])
def test_limits_of_a_gaussian_scale_miss_no_more_often_than_stated(scale, draws):
    """By the exact law of the sum of squares, no simulation."""
    x = np.arange(-int(9 * scale) - 2, int(9 * scale) + 3)
    weights = np.exp(-(x**2) / (2 * scale**2))
    one = np.bincount(x**2, weights=weights / weights.sum())
    law = np.ones(1)
    for _ in range(draws):
        law = np.convolve(law, one)
    alpha = 0.05
    totals = np.flatnonzero(law > 1e-9)
    limits = [
        [limit(int(total), draws=draws, failure_probability=alpha) for total in totals]
        for limit in (gaussian_scale_lower, gaussian_scale_upper)
    ]
    assert law[totals][np.array(limits[0]) > scale].sum() <= alpha
    assert law[totals][np.array(limits[1]) < scale].sum() <= alpha


def test_limits_of_a_gaussian_scale_are_about_as_tight_as_normal_ones():
    """Of 40000 draws: 3.3 standard errors of 1/√(2n) each, and the slack of Chernoff's bound."""
    total, draws = 40_000 * 25, 40_000
    limits = [
        limit(total, draws=draws, failure_probability=5e-4) / 5
        for limit in (gaussian_scale_lower, gaussian_scale_upper)
    ]
    assert 1 - 4 / np.sqrt(2 * draws) < limits[0] < 1 < limits[1] < 1 + 4 / np.sqrt(2 * draws)
