"""Closed forms against integrals of the densities themselves, in 30 digits: valid and tight."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import InputError
from tacit.theory.divergences import (
    gaussian_chi_square,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_total_variation,
    laplace_chi_square,
    laplace_total_variation,
    repeated_scale,
    uniform_total_variation,
)

mp.mp.dps = 30
TIGHT = 1 + 1e-8
distances = st.floats(1e-3, 6.0)


def density(x, mean=0):
    return mp.exp(-((x - mean) ** 2) / 2) / mp.sqrt(2 * mp.pi)


def integral(function, *breaks):
    return mp.quad(function, [-mp.inf, *sorted({-20, *breaks, 20}), mp.inf])


@pytest.mark.parametrize("d", [0.01, 0.5, 1.0, 2.456, 4.0])
def test_chi_square_is_the_integral(d):
    truth = integral(lambda x: (density(x, d) / density(x) - 1) ** 2 * density(x), 0, d, 2 * d)
    assert truth <= gaussian_chi_square(d) <= truth * TIGHT


@given(st.floats(1e-8, 26.0))
def test_chi_square_is_rounded_up_at_every_scale(d):
    truth = mp.expm1(mp.mpf(d) ** 2)
    assert truth <= gaussian_chi_square(d) <= truth * TIGHT


@pytest.mark.parametrize("d", [0.01, 0.5, 1.0, 2.456, 4.0])
def test_total_variation_is_the_integral(d):
    truth = integral(lambda x: abs(density(x, d) - density(x)), 0, d / 2, d) / 2
    assert truth * (1 - 1e-15) <= gaussian_total_variation(d) <= truth * TIGHT


@given(distances)
def test_total_variation_is_rounded_up_at_every_scale(d):
    truth = mp.erf(mp.mpf(d) / mp.sqrt(8))
    assert truth <= gaussian_total_variation(d) <= min(1, truth * TIGHT)


def hockey_stick(epsilon, d):
    epsilon, d = mp.mpf(epsilon), mp.mpf(d)
    return mp.ncdf(d / 2 - epsilon / d) - mp.exp(epsilon) * mp.ncdf(-d / 2 - epsilon / d)


@pytest.mark.parametrize(("epsilon", "d"), [(0.0, 1.0), (0.5, 0.3), (1.0, 0.5), (3.0, 2.0)])
def test_delta_is_the_integral_of_what_exceeds(epsilon, d):
    crossing = d / 2 + epsilon / d
    truth = mp.quad(
        lambda x: density(x, d) - mp.exp(epsilon) * density(x), [crossing, crossing + 5, crossing + 30, mp.inf]
    )
    assert truth * (1 - 1e-15) <= gaussian_delta(epsilon, distance=d) <= truth * (1 + 1e-6)


@given(st.floats(0, 20), distances)
def test_delta_is_rounded_up_at_every_scale(epsilon, d):
    truth = hockey_stick(epsilon, d)
    likely = mp.ncdf(mp.mpf(d) / 2 - mp.mpf(epsilon) / d)
    assert truth <= gaussian_delta(epsilon, distance=d) <= truth + 1e-8 * likely + mp.mpf("1e-320")


def test_delta_at_epsilon_zero_is_total_variation():
    assert gaussian_delta(0, distance=1.3) == pytest.approx(float(gaussian_total_variation(1.3)), rel=1e-9)


@given(st.floats(1e-12, 0.4), st.floats(0.02, 6.0))
def test_epsilon_is_the_least_that_reaches_delta(delta, d):
    epsilon = gaussian_epsilon(delta, distance=d)
    assert hockey_stick(epsilon, d) <= delta
    assert epsilon == 0 or hockey_stick(epsilon * (1 - 1e-4), d) > delta


def test_no_shift_costs_nothing_and_a_huge_one_hides_nothing():
    assert gaussian_chi_square(0) == gaussian_total_variation(0) == gaussian_delta(1, distance=0) == 0
    assert gaussian_epsilon(1e-5, distance=0) == 0
    assert gaussian_chi_square(30) == np.inf
    assert gaussian_total_variation(100) == gaussian_delta(1, distance=1e9) == 1
    assert gaussian_delta(1, distance=1e-9) <= 5e-324


@pytest.mark.parametrize(
    ("epsilon", "d"),
    [
        (1.084368209255218e34, 1.4726630363088618e17),
        (3.4443942527674604e107, 8.299872592717871e53),
        (5e13, 1e7),
        (5.0001e9, 1e5),
        (1e-12, 1e-12),
        (4e-9, 1e-10),
    ],
)
def test_delta_is_on_the_safe_side_at_extremes(epsilon, d):
    """Here d/2 − ε/d cancels almost wholly, or both are tiny."""
    with mp.workdps(150):
        assert hockey_stick(epsilon, d) <= gaussian_delta(epsilon, distance=d)


def test_parameters_beyond_float64_are_bounded_or_refused_but_never_crash():
    assert gaussian_delta(1, distance=1e155) == 1
    assert gaussian_epsilon(5e-324, distance=1) > 38
    assert gaussian_epsilon(1e-310, distance=0) == 0
    with pytest.raises(ValueError, match="distance must be below"):
        gaussian_epsilon(1e-5, distance=1e155)


def laplace(x, mean=0):
    return mp.exp(-abs(x - mean)) / 2


def laplace_integral(function, z):
    return mp.quad(function, [-mp.inf, -40, 0, z / 2, z, 40 + z, mp.inf])


@pytest.mark.parametrize("z", [1e-3, 0.3, 1.0, 4.0])
def test_laplace_chi_square_is_the_integral(z):
    truth = laplace_integral(lambda x: (laplace(x, z) / laplace(x) - 1) ** 2 * laplace(x), z)
    assert truth * (1 - 1e-12) <= laplace_chi_square([2 * z], scale=2.0) <= truth * TIGHT


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_laplace_chi_square_multiplies_over_features(shift):
    with mp.workdps(400):
        factors = [2 * mp.exp(abs(mp.mpf(z))) / 3 + mp.exp(-2 * abs(mp.mpf(z))) / 3 for z in shift]
        truth = mp.fprod(factors) - 1
        assert truth <= laplace_chi_square(shift, scale=1.0) <= truth * TIGHT + mp.mpf("1e-300")


@pytest.mark.parametrize("z", [1e-6, 0.3, 1.0, 4.0])
def test_laplace_total_variation_is_exact_for_one_feature(z):
    truth = laplace_integral(lambda x: abs(laplace(x, z) - laplace(x)), z) / 2
    assert truth * (1 - 1e-12) <= laplace_total_variation([2 * z], scale=2.0) <= truth * TIGHT


@pytest.mark.parametrize("count", [2, 20, 200])
def test_laplace_total_variation_bounds_the_truth_for_many_features(count):
    """Sampled: TV = E(1 − f₁/f₀)⁺; by chance below its own six-sigma band with probability under 1e-8."""
    rng = np.random.default_rng(0)
    shift = np.full(count, 1.0 / np.sqrt(count))
    x = rng.laplace(size=(40_000, count))
    ratio = np.exp(np.sum(np.abs(x) - np.abs(x - shift), axis=1))
    gains = np.maximum(1 - ratio, 0)
    bound = laplace_total_variation(shift, scale=1.0)
    assert gains.mean() - 6 * gains.std() / 200 <= bound <= 1.6 * gains.mean()


def test_laplace_total_variation_of_many_features_is_the_hellinger_bound():
    affinity = ((1 + mp.mpf(0.01) / 2) * mp.exp(-mp.mpf(0.01) / 2)) ** 400
    truth = mp.sqrt(1 - affinity**2)
    assert truth <= laplace_total_variation([0.01] * 400, scale=1.0) <= truth * (1 + 1e-6)


@given(st.lists(st.floats(-1.2, 1.2), min_size=1, max_size=5))
def test_uniform_total_variation_is_what_the_boxes_do_not_share(shift):
    with mp.workdps(400):
        truth = 1 - mp.fprod([max(mp.mpf(0), 1 - abs(mp.mpf(z))) for z in shift])
        assert truth <= uniform_total_variation(shift, width=1.0) <= min(1, truth * TIGHT + mp.mpf("1e-300"))


def test_product_noise_where_nothing_moves_and_where_everything_does():
    still, far = np.zeros((2, 3)), np.full((2, 3), 1e4)
    assert laplace_chi_square(still, scale=1).tolist() == [0, 0]
    assert laplace_total_variation(still, scale=1).tolist() == [0, 0]
    assert uniform_total_variation(still, width=1).tolist() == [0, 0]
    assert laplace_chi_square(far, scale=1).tolist() == [np.inf, np.inf]
    assert laplace_total_variation(far, scale=1).tolist() == [1, 1]
    assert uniform_total_variation(far, width=1).tolist() == [1, 1]


def test_arrays_keep_their_shape_and_scalars_stay_scalars():
    assert gaussian_chi_square(np.ones((2, 3))).shape == (2, 3)
    assert isinstance(gaussian_total_variation(1.0), float)


@given(st.integers(1, 10**12))
def test_repeated_scale_is_rounded_down(releases):
    truth = 1 / mp.sqrt(releases)
    assert truth * (1 - mp.mpf("1e-13")) <= repeated_scale(releases) <= truth


@pytest.mark.parametrize("releases", [1, 2, 7])
def test_the_mean_of_gaussian_releases_is_as_far_as_all_of_them(releases):
    """The chi-square divergence of all releases, a product, is that of one with less noise."""
    each, together = gaussian_chi_square(0.4), gaussian_chi_square(0.4 / repeated_scale(releases))
    assert together == pytest.approx((1 + each) ** releases - 1, rel=1e-9)
    assert repeated_scale(1) == 1.0


@pytest.mark.parametrize("releases", [0, 1.5, "two", True])
def test_releases_are_counted_in_whole_numbers(releases):
    with pytest.raises(InputError, match="releases must be a whole number"):
        repeated_scale(releases)
