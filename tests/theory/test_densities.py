"""Quadrature against integrals of the densities, closed bounds against their worst case, limits against enumeration."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from tacit import InputError
from tacit.theory.confidence import bounded_mean_upper
from tacit.theory.densities import (
    Cells,
    DensityTable,
    bounded_ratio_chi_square,
    bounded_ratio_hellinger,
    bounded_ratio_total_variation,
    density_chi_square,
    density_total_variation,
    sampled_chi_square,
    sampled_total_variation,
)
from tacit.theory.divergences import laplace_chi_square, laplace_total_variation

TIGHT = 1 + 1e-8


@given(st.floats(1e-6, 20.0))
def test_the_closed_bounds_are_reached_by_a_ratio_of_two_values(v):
    """r is e^v with probability 1/(e^v + 1), and else e^(−v)."""
    with mp.workdps(40):
        most = mp.exp(mp.mpf(v))
        often = most / (most + 1)
        chi_square = (most - 1) ** 2 * (1 - often) + (1 - 1 / most) ** 2 * often
        hellinger = 1 - (mp.sqrt(most) * (1 - often) + often / mp.sqrt(most))
        variation = (1 - 1 / most) * often
    assert chi_square <= bounded_ratio_chi_square(v) <= chi_square * TIGHT
    assert hellinger <= bounded_ratio_hellinger(v) <= hellinger * TIGHT
    assert variation <= bounded_ratio_total_variation(v) <= min(1, variation * TIGHT)


def test_closed_bounds_at_the_ends():
    functions = (bounded_ratio_chi_square, bounded_ratio_hellinger, bounded_ratio_total_variation)
    assert [function(0.0) for function in functions] == [0, 0, 0]
    assert [function(1e5) for function in functions] == [np.inf, 1, 1]


LAWS = {
    "logistic": (stats.logistic(scale=0.5), {"slope": 2.0, "curvature": 2.0}),
    "laplace": (stats.laplace(loc=1.0, scale=2.0), {"slope": 0.5, "curvature": 0.0, "kinks": [1.0]}),
    "student": (stats.t(3), {"slope": 2 / 3**0.5, "curvature": 4 / 3}),
    "lopsided": (stats.genlogistic(0.3), {"slope": 1.0, "curvature": 0.33}),
}


@pytest.fixture(scope="module", params=list(LAWS))
def law(request):
    distribution, stated = LAWS[request.param]
    return distribution, stated["slope"], DensityTable.of(distribution, **stated)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def integral(distribution, z, function):
    """E function(Δ), by Gauss's rule in pieces that grow from the median outward, and that end where Δ changes sign."""

    def change(x):
        return distribution.logpdf(x - z) - distribution.logpdf(x)

    middle, spread = distribution.median(), distribution.ppf(0.75) - distribution.ppf(0.25)
    even = optimize.brentq(change, distribution.ppf(1e-9), distribution.isf(1e-9), xtol=1e-14)
    places = {middle + side * spread * x for x in (0.0, *np.geomspace(0.3, 1e4, 16)) for side in (-1, 1)}
    places = np.clip([*places, middle + z, middle + z / 2, even], distribution.ppf(1e-13), distribution.isf(1e-13))
    low, high = (ends[:, None] for ends in (np.unique(places)[:-1], np.unique(places)[1:]))
    x = (low + high + (high - low) * NODES) / 2
    return np.sum((high - low) / 2 * WEIGHTS * distribution.pdf(x) * function(change(x)))


@pytest.mark.parametrize("v", [3e-4, 0.02, 0.11, 0.7, -0.7, 1.3, -2.9])
def test_quadrature_is_the_integral(law, v):
    """Valid, and tight: within 1.5 % for shifts below 1/slope, and 3.5 % below 3/slope."""
    distribution, slope, table = law
    z, tight = v / slope, 1.015 if abs(v) < 1 else 1.035
    chi_square = integral(distribution, z, lambda change: np.expm1(change) ** 2)
    assert chi_square * (1 - 1e-7) <= density_chi_square([z], table=table) <= tight * chi_square
    variation = integral(distribution, z, lambda change: np.abs(np.expm1(change)) / 2)
    assert variation * (1 - 1e-7) <= density_total_variation([z], table=table) <= tight * variation
    affinity = 1 - integral(distribution, z, lambda change: np.expm1(change / 2) ** 2 / 2)
    many = density_total_variation(np.full(400, z), table=table)
    assert np.sqrt(1 - affinity**800) * (1 - 1e-6) <= many <= tight * np.sqrt(1 - affinity**800)


def test_laplace_by_quadrature_is_laplace_in_closed_form():
    table = DensityTable.of(LAWS["laplace"][0], **LAWS["laplace"][1])
    rng = np.random.default_rng(0)
    shifts = rng.normal(size=(300, 6)) * np.geomspace(1e-4, 4, 300)[:, None]
    truth = laplace_chi_square(shifts, scale=2.0)
    found = density_chi_square(shifts, table=table)
    assert np.all(truth <= found * TIGHT)
    assert np.all(found <= truth * np.where(np.abs(shifts).max(axis=1) < 2, 1.02, 1.1))
    truth = laplace_total_variation(shifts, scale=2.0)
    found = density_total_variation(shifts, table=table)
    assert np.all(truth <= found * (1 + 2e-4))  # the closed form is simplified for small shifts
    assert np.all(found <= 1.02 * truth)


def test_an_error_of_the_shift_is_paid_for(law):
    distribution, slope, table = law
    for v in (0.003, 0.4):
        z, error = v / slope, 0.03 / slope
        careful = density_chi_square([z], table=table, error=error)
        wary = density_total_variation([z], table=table, error=error)
        for near in (z - error, z + error):
            assert integral(distribution, near, lambda change: np.expm1(change) ** 2) <= careful
            assert integral(distribution, near, lambda change: np.abs(np.expm1(change)) / 2) <= wary
        assert careful <= bounded_ratio_chi_square(slope * (z + error) * (1 + 1e-11))


def test_an_error_longer_than_the_shift_may_turn_it_round():
    distribution, stated = LAWS["lopsided"]
    table = DensityTable.of(distribution, **stated)
    right, left = (table.small[0, side] for side in (0, 1))
    for z in (1e-5, -1e-5):
        careful = density_chi_square([z], table=table, error=4e-4)
        assert careful >= max(right, left) ** 2 * 4.1e-4**2
    for near in (-3.9e-4, 4.1e-4):
        truth = integral(distribution, near, lambda change: np.expm1(change) ** 2)
        assert truth <= density_chi_square([1e-5], table=table, error=4e-4)


def test_far_and_still(law):
    _, slope, table = law
    assert density_chi_square(np.zeros((2, 3)), table=table).tolist() == [0, 0]
    assert density_total_variation(np.zeros((2, 3)), table=table).tolist() == [0, 0]
    assert density_chi_square([1e6 / slope], table=table) == np.inf
    assert density_total_variation([1e6 / slope], table=table) == 1
    far = density_chi_square([20 / slope], table=table)
    assert far == pytest.approx(4 * np.sinh(10) ** 2, rel=1e-9)
    assert isinstance(density_chi_square([0.1], table=table), float)


@pytest.mark.parametrize(
    ("distribution", "stated", "match"),
    [
        (stats.logistic(), {"slope": 0.9, "curvature": 0.5}, "slope must be at least 0.9"),
        (stats.logistic(), {"slope": 1.0, "curvature": 0.4}, "curvature must be at least 0.[45]"),
        (stats.laplace(), {"slope": 1.0, "curvature": 1.0}, "curvature must be at least"),
        (stats.norm(), {"slope": 2.0, "curvature": 1.0}, "slope must be at least"),
        (stats.uniform(), {"slope": 1.0, "curvature": 1.0}, "a density positive everywhere"),
        (stats.logistic(), {"slope": 1.0, "curvature": 1.0, "kinks": [np.nan]}, "kinks must be"),
        (stats.logistic(), {"slope": np.nan, "curvature": 1.0}, "slope must be"),
        (stats.poisson(3.0), {"slope": 1.0, "curvature": 1.0}, "ppf of the distribution must give others"),
        (stats.logistic(), {"slope": 1.0, "curvature": 1.0, "kinks": None}, "kinks must be"),
        ("logistic", {"slope": 1.0, "curvature": 1.0}, "ppf of the distribution must"),
    ],
)
def test_what_visibly_breaks_the_statement_is_refused(distribution, stated, match):
    with pytest.raises(InputError, match=match):
        Cells.of(distribution, **stated).table()


class Mismatched:
    """A logistic density with the distribution function of a wider one."""

    logpdf, ppf = stats.logistic().logpdf, stats.logistic().ppf
    cdf, sf = stats.logistic(scale=1.2).cdf, stats.logistic(scale=1.2).sf


def test_a_distribution_function_of_another_density_is_refused():
    with pytest.raises(InputError, match="cdf of the distribution must agree with logpdf"):
        Cells.of(Mismatched(), slope=1.0, curvature=0.5)


@pytest.mark.parametrize("v", [0.1, 1.0])
def test_limits_from_draws_cover_as_often_as_they_say(v):
    """The ratio of two values; the exact chance that a limit misses, by enumeration."""
    n, alpha = 50, 0.1
    high = 1 / (np.exp(v) + 1)
    chance = stats.binom.pmf(np.arange(n + 1), n, high)
    draws = [np.repeat([v, -v], [k, n - k]) for k in range(n + 1)]
    truth = high * np.expm1(v) ** 2 + (1 - high) * np.expm1(-v) ** 2
    limits = [sampled_chi_square(draw, most=1.2 * v, failure_probability=alpha) for draw in draws]
    assert sum(chance[k] for k in range(n + 1) if limits[k] < truth) <= alpha
    limits = [sampled_total_variation(draw, most=1.2 * v, failure_probability=alpha) for draw in draws]
    assert sum(chance[k] for k in range(n + 1) if limits[k] < np.tanh(v / 2)) <= alpha


def test_limits_from_draws_are_those_of_bounded_means():
    rng = np.random.default_rng(0)
    ratios, options = rng.uniform(-0.3, 0.3, size=10_000), {"most": 0.5, "failure_probability": 0.01}
    bounded = {"count": 10_000, "failure_probability": 0.01}
    truth = np.expm1(0.5) ** 2 * bounded_mean_upper(float(np.mean((np.expm1(ratios) / np.expm1(0.5)) ** 2)), **bounded)
    assert truth * (1 - 1e-12) <= sampled_chi_square(ratios, **options) <= truth * TIGHT
    least = -np.expm1(-0.5)
    truth = least * bounded_mean_upper(float(np.mean(np.maximum(-np.expm1(ratios), 0) / least)), **bounded)
    assert truth * (1 - 1e-12) <= sampled_total_variation(ratios, **options) <= truth * TIGHT
    for function in (sampled_chi_square, sampled_total_variation):
        assert function(ratios, **options) < function(ratios, **options, error=0.01)
        assert function(np.zeros(3), most=0.0, failure_probability=0.1) == 0
    assert sampled_chi_square([0.5], **options) == bounded_ratio_chi_square(0.5)
    with pytest.raises(InputError, match="the greatest of log_ratios must be at most"):
        sampled_chi_square([0.6], **options)
