"""Closed forms against integrals of the densities themselves, in 30 digits: valid and tight."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.theory.divergences import (
    gaussian_chi_square,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_total_variation,
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
    assert truth <= gaussian_delta(epsilon, distance=d) <= truth + 1e-9 * likely + mp.mpf("1e-320")


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


def test_arrays_keep_their_shape_and_scalars_stay_scalars():
    assert gaussian_chi_square(np.ones((2, 3))).shape == (2, 3)
    assert isinstance(gaussian_total_variation(1.0), float)
