"""Chances of bins against exact sums in many digits: valid, tight, and never above the unrounded noise."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tacit import InputError
from tacit.theory.divergences import (
    gaussian_chi_square,
    gaussian_total_variation,
    laplace_chi_square,
    laplace_total_variation,
    uniform_total_variation,
)
from tacit.theory.quantized import KINDS, quantized_chi_square, quantized_total_variation

TIGHT = 1 + 1e-7

UPPER = {  # P(noise > x), of size 1, for x ≥ 0
    "gaussian": lambda x: mp.erfc(x / mp.sqrt(2)) / 2,
    "laplace": lambda x: mp.exp(-x) / 2,
    "uniform": lambda x: max(mp.mpf(0), mp.mpf("0.5") - x),
}


def chance(kind, low, high):
    if high < 0:
        return chance(kind, -high, -low)
    upper = UPPER[kind]
    return upper(low) - upper(high) if low >= 0 else 1 - upper(-low) - upper(high)


def sums(kind, a, z, step):
    """χ² and total variation of one rounded feature, over all bins that matter in 40 digits."""
    with mp.workdps(60):
        a, z, step = mp.mpf(a), mp.mpf(z), mp.mpf(step)
        reach = (abs(z) + 1 if kind == "uniform" else 2 * abs(z) + (20 if kind == "gaussian" else 50)) + step
        chi_square, variation = mp.mpf(0), mp.mpf(0)
        for k in range(int(mp.floor((a - reach) / step)), int(mp.ceil((a + reach) / step)) + 1):
            low, high = (k - mp.mpf("0.5")) * step - a, (k + mp.mpf("0.5")) * step - a
            p, q = chance(kind, low, high), chance(kind, low - z, high - z)
            variation += abs(q - p) / 2
            chi_square += (q - p) ** 2 / p if p else (mp.inf if q else 0)
        return chi_square, variation


def options(kind, step, size=1.0):
    return {"kind": kind, "size": size, "step": step}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("z", [1e-3, -0.3, 1.7])
def test_one_feature_is_the_sum_over_its_bins(kind, step, z):
    for a in (0.0, 0.4, 7.3, -123.456):
        chi_square, variation = sums(kind, a, z, step)
        found = quantized_chi_square([2 * a], [2 * z], **options(kind, 2 * step, 2.0))
        assert chi_square <= found <= chi_square * TIGHT + mp.mpf("1e-25")
        found = quantized_total_variation([2 * a], [2 * z], **options(kind, 2 * step, 2.0))
        assert variation <= found <= variation * TIGHT + mp.mpf("1e-14")


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(KINDS), st.floats(-50, 50), st.floats(-3, 3).filter(lambda z: abs(z) > 1e-6), st.floats(0.3, 30.0)
)
def test_one_feature_is_bounded_at_every_scale(kind, a, z, step):
    chi_square, variation = sums(kind, a, z, step)
    found = quantized_chi_square([a], [z], **options(kind, step))
    assert chi_square <= found
    assert found <= chi_square * (1 + 1e-4) + mp.mpf("1e-17") or kind == "uniform"
    assert variation <= quantized_total_variation([a], [z], **options(kind, step))


def unrounded(kind, z):
    return {
        "gaussian": lambda: (
            gaussian_chi_square(np.linalg.norm(z, axis=-1)),
            gaussian_total_variation(np.linalg.norm(z, axis=-1)),
        ),
        "laplace": lambda: (laplace_chi_square(z, scale=1.0), laplace_total_variation(z, scale=1.0)),
        "uniform": lambda: (np.full(len(z), np.inf), uniform_total_variation(z, width=1.0)),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0.01, 0.2, 1.0, 5.0])
def test_rounding_never_gives_anything_away(kind, step):
    rng = np.random.default_rng(0)
    a, z = 3 * rng.normal(size=(20, 8)), 0.2 * rng.normal(size=(20, 8))
    chi_square, variation = unrounded(kind, z)
    assert np.all(quantized_chi_square(a, z, **options(kind, step)) <= chi_square * (1 + 1e-9))
    assert np.all(quantized_total_variation(a, z, **options(kind, step)) <= variation * (1 + 1e-9))


@pytest.mark.parametrize("kind", KINDS)
def test_features_multiply(kind):
    rng = np.random.default_rng(1)
    a, z, step = rng.normal(size=5), 0.3 * rng.normal(size=5), 3.0
    parts = [sums(kind, x, y, step) for x, y in zip(a, z, strict=True)]
    truth = mp.fprod([1 + chi_square for chi_square, _ in parts]) - 1
    coupled = 1 - mp.fprod([1 - variation for _, variation in parts])
    assert truth <= quantized_chi_square(a, z, **options(kind, step)) <= truth * TIGHT
    found = quantized_total_variation(a, z, **options(kind, step))
    assert max(variation for _, variation in parts) <= found <= coupled * TIGHT


def test_the_affinity_beats_the_coupling_for_many_features():
    """Sampled: TV = E(1 − q/p)⁺ over 400 features; by chance below its own six-sigma band with probability 1e-8."""
    rng = np.random.default_rng(0)
    z, step = np.full(400, 0.05), 2.0
    k = np.rint(rng.laplace(size=(20_000, 400)) / step)
    p, q = (
        np.array(
            [
                float(chance("laplace", mp.mpf((n - 0.5) * step - y), mp.mpf((n + 0.5) * step - y)))
                for n in range(-12, 13)
            ]
        )
        for y in (0.0, 0.05)
    )
    logs = np.log(q / p)[np.clip(k, -12, 12).astype(int) + 12].sum(axis=1)
    gains = np.maximum(-np.expm1(logs), 0)
    found = quantized_total_variation(np.zeros(400), z, **options("laplace", step))
    assert gains.mean() - 6 * gains.std() / np.sqrt(20_000) <= found <= 1.6 * gains.mean()
    assert found < 0.9 * laplace_total_variation(z, scale=1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a", [0.0, 0.4999, 0.5, 0.51, 3.2])
def test_errors_are_paid_for_at_a_bin_edge_too(kind, a):
    step, z, error = 1.0, 0.05, 0.03
    careful = quantized_chi_square([a], [z], **options(kind, step), error=error)
    wary = quantized_total_variation([a], [z], **options(kind, step), error=error)
    for near in np.linspace(-error, error, 5):
        for far in (-error, 0.0, error):
            chi_square, variation = sums(kind, a + near, z + far, step)
            assert chi_square <= careful * TIGHT
            assert variation <= wary * TIGHT
    assert wary < 0.2


def test_a_huge_step_hides_everything_and_an_edge_nothing():
    for kind in KINDS:
        assert np.all(quantized_chi_square([[20.0], [-50.0]], [[100.0], [-90.0]], **options(kind, 1000.0)) < 1e-20)
        assert np.all(quantized_total_variation([20.0], [100.0], **options(kind, 1000.0)) < 1e-11)
        assert quantized_total_variation([499.0], [2.0], **options(kind, 1000.0)) > 0.6
    neighbours = quantized_chi_square([[20.0], [495.0], [0.0]], np.full((3, 1), 3.0), **options("gaussian", 1000.0))
    assert neighbours[0] < 1e-20 < neighbours[1]
    assert neighbours[2] < 1e-20
    assert quantized_chi_square([0.0], [0.2], **options("uniform", 3.0)) < 1e-20
    assert quantized_chi_square([1.2], [0.2], **options("uniform", 3.0)) < np.inf
    assert quantized_chi_square([0.9], [0.2], **options("uniform", 3.0)) == np.inf


def test_a_small_step_gives_the_unrounded_noise():
    for kind in ("gaussian", "laplace"):
        chi_square, variation = unrounded(kind, np.array([[0.3, -0.1]]))
        for step in (1e-9, 1e-5, 0.01):
            found = quantized_chi_square([0.3, 5.0], [0.3, -0.1], **options(kind, step))
            assert found == pytest.approx(chi_square[0], rel=0.02 if kind == "laplace" else 1e-9)
            found = quantized_total_variation([0.3, 5.0], [0.3, -0.1], **options(kind, step))
            assert found == pytest.approx(variation[0], rel=0.02)


def test_where_nothing_moves_nothing_is_given_away():
    still = np.zeros((2, 3))
    for kind in KINDS:
        assert quantized_chi_square(still + 0.3, still, **options(kind, 0.5)).tolist() == [0, 0]
        assert quantized_total_variation(still + 0.3, still, **options(kind, 0.5)).tolist() == [0, 0]
        assert isinstance(quantized_chi_square([0.1], [0.0], **options(kind, 0.5)), float)


def test_far_shifts_are_bounded_and_never_crash():
    for kind in KINDS:
        assert quantized_total_variation([0.0], [1e200], **options(kind, 1.0)) == 1
        assert quantized_chi_square([0.0], [1e3], **options(kind, 1.0)) == np.inf
    with pytest.raises(InputError, match="must match"):
        quantized_chi_square(np.zeros((2, 3)), np.zeros((4, 3)), **options("gaussian", 1.0))
    with pytest.raises(InputError, match="size must not be that small"):
        quantized_chi_square([0.0], [1.0], **options("gaussian", 1.0, 5e-324))


def test_erf_and_erfc_are_as_exact_as_granted():
    x = np.concatenate([np.geomspace(1e-12, 8.5, 400), np.linspace(0.1, 8.5, 400)])
    for function, exact in ((special.erf, mp.erf), (special.erfc, mp.erfc)):
        with mp.workdps(50):
            error = max(abs(mp.mpf(float(function(value))) / exact(mp.mpf(float(value))) - 1) for value in x)
        assert error < 1e-13
