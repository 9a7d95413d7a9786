import math

import numpy as np
import pytest
import torch
from torch import nn

from tacit import InputError
from tacit.reconstruction import (
    Dithered,
    Gaussian,
    Laplace,
    Quantized,
    Uniform,
    hcr_bounds,
    identification_bound,
    multipoint_bounds,
    single_mode_bounds,
    twins,
    two_point_bounds,
)

RNG = np.random.default_rng(0)
FACTOR, DIAGONAL = RNG.normal(size=(6, 2)), RNG.uniform(0.5, 2.0, size=6)
DENSE = FACTOR @ FACTOR.T + np.diag(DIAGONAL)
NO_ERROR = torch.zeros(1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("noise", "covariance"),
    [
        (Gaussian(0.7), 0.49 * np.eye(6)),
        (Gaussian(covariance=DIAGONAL), np.diag(DIAGONAL)),
        (Gaussian(covariance=DENSE), DENSE),
        (Gaussian(covariance=(FACTOR, DIAGONAL)), DENSE),
    ],
)
def test_gaussian_noise_of_every_form(noise, covariance):
    rows = RNG.normal(size=(4, 6))
    shift, inverse = torch.tensor(rows), np.linalg.inv(covariance)
    truth = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
    found = noise.distance(shift, torch.zeros(4, dtype=torch.float64))
    assert np.all(found >= truth * (1 - 1e-14))
    np.testing.assert_allclose(found, truth, rtol=1e-9)
    whitened = noise.whitened(shift).numpy()
    np.testing.assert_allclose(whitened @ whitened.T, rows @ inverse @ rows.T, rtol=1e-9)
    drawn = noise.sample(torch.zeros(200_000, 6, dtype=torch.float64), torch.Generator().manual_seed(0)).numpy()
    error = np.abs(np.cov(drawn.T) - covariance) / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert error.max() < 6 * np.sqrt(2 / 200_000)  # six standard errors: by chance below 1e-7


@pytest.mark.parametrize(("noise", "deviation"), [(Laplace(0.5), np.sqrt(0.5)), (Uniform(3.0), np.sqrt(0.75))])
def test_product_noise_is_drawn_with_its_deviation(noise, deviation):
    drawn = noise.sample(torch.zeros(400_000, 1, dtype=torch.float64), torch.Generator().manual_seed(0)).numpy()
    assert abs(drawn.std() / deviation - 1) < 0.01
    assert abs(drawn.mean()) < 6 * deviation / np.sqrt(400_000)


@pytest.mark.parametrize("noise", [Gaussian(0.5), Gaussian(covariance=DENSE), Laplace(0.5), Uniform(9.0)])
def test_an_error_of_the_shift_is_paid_for(noise):
    shift = torch.tensor(RNG.normal(size=(1, 6)))
    careful = noise.total_variation(shift, shift, NO_ERROR + 0.1)[0]
    for _ in range(50):
        direction = torch.tensor(RNG.normal(size=(1, 6)))
        moved = shift + 0.1 * direction / direction.norm()
        assert noise.total_variation(shift, moved, NO_ERROR)[0] <= careful
        assert noise.chi_square(shift, moved, NO_ERROR)[0] <= noise.chi_square(shift, shift, NO_ERROR + 0.1)[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(),
        lambda: Gaussian(1.0, covariance=[1.0]),
        lambda: Gaussian(-1.0),
        lambda: Gaussian(float("nan")),
        lambda: Gaussian(covariance=[1.0, -1.0]),
        lambda: Gaussian(covariance=[[1.0, 2.0], [2.0, 1.0]]),
        lambda: Gaussian(covariance=[[1.0, 0.5], [0.0, 1.0]]),
        lambda: Gaussian(covariance=np.diag([1.0, 1e-14])),
        lambda: Gaussian(covariance=(np.ones((3, 1)), np.ones(2))),
        lambda: Gaussian(covariance=(np.ones((3, 1)), np.ones(3), np.ones(3))),
        lambda: Laplace(0.0),
        lambda: Uniform(-1.0),
        lambda: Quantized(Gaussian(1.0), 1e-6),
        lambda: Quantized(Gaussian(1.0), float("inf")),
        lambda: Quantized(Quantized(Gaussian(1.0), 1.0), 1.0),
        lambda: Quantized(1.0, 1.0),
        lambda: Gaussian(covariance=[1.0, 2.0]).whitened(torch.zeros(1, 3)),
    ],
)
def test_noise_that_is_none_is_refused(make):
    with pytest.raises(InputError) as refusal:
        make()
    assert "\n" not in str(refusal.value)
    assert "must" in str(refusal.value)


SCALARS = [Gaussian(0.5), Laplace(0.5), Uniform(2.0)]


@pytest.mark.parametrize("noise", [*SCALARS, Gaussian(covariance=DENSE)])
@pytest.mark.parametrize("step", [0.05, 0.5, 3.0])
def test_rounding_gives_nothing_away(noise, step):
    rounded = Quantized(noise, step)
    base, shift = torch.tensor(RNG.normal(size=(5, 6))), torch.tensor(0.2 * RNG.normal(size=(5, 6)))
    error = torch.full((5,), 1e-3, dtype=torch.float64)
    assert np.all(rounded.chi_square(base, shift, error) <= noise.chi_square(base, shift, error))
    assert np.all(rounded.total_variation(base, shift, error) <= noise.total_variation(base, shift, error))
    if step == 3.0 and noise in SCALARS:
        assert (
            rounded.total_variation(base, shift, error).mean() < 0.8 * noise.total_variation(base, shift, error).mean()
        )
    one = base[:1]  # one row of features for all shifts
    assert rounded.chi_square(one, shift, error).shape == (5,)


@pytest.mark.parametrize("noise", SCALARS)
def test_rounded_noise_is_the_release_less_the_features(noise):
    features = torch.tensor(RNG.normal(size=(1000, 4)))
    released = features + Quantized(noise, 0.7).sample(features, torch.Generator().manual_seed(3))
    unrounded = features + noise.sample(features, torch.Generator().manual_seed(3))
    np.testing.assert_allclose(released, 0.7 * np.round(unrounded.numpy() / 0.7), atol=1e-12)


def test_bounds_for_gaussian_noise_hold_after_rounding():
    torch.manual_seed(0)
    network, images = nn.Sequential(nn.Flatten(), nn.Linear(16, 20)), torch.rand(3, 1, 4, 4)
    plain, rounded = Gaussian(0.5), Quantized(Gaussian(0.5), 1.0)
    np.testing.assert_array_equal(
        multipoint_bounds(network, images, plain).std, multipoint_bounds(network, images, rounded).std
    )
    for bounds in (single_mode_bounds, hcr_bounds, two_point_bounds):
        options = {"restarts": 2, "repetitions": 2} if bounds is hcr_bounds else {}
        found, base = (bounds(network, images[:1], noise, **options) for noise in (rounded, plain))
        name = "rmse" if bounds is two_point_bounds else "std"
        assert np.all(getattr(found, name) >= getattr(base, name) * (1 - 1e-9)) or bounds is hcr_bounds
        assert "Quantized(Gaussian(0.5), 1)" in " ".join(found.guarantee_of(0, (0, 1, 2)).assumed(checked_by="caller"))
    gained = single_mode_bounds(network, images[:1], rounded).std / single_mode_bounds(network, images[:1], plain).std
    assert np.median(gained) > 1.1  # a step of two σ hides a quarter of the information
    statement = identification_bound(network, images, rounded, draws=1000)
    assert statement.value == identification_bound(network, images, plain, draws=1000).value
    assert twins(network, images[:1], rounded, steps=5).distance <= 1


def test_the_step_says_how_fine_a_release_is():
    assert Gaussian(0.5).grid == 0.5 / 2**16
    rounded = Quantized(Laplace(0.5), 0.25)
    assert (rounded.grid, rounded.size, rounded.standard) == (0.25, 0.5, "uniform")
    released = Dithered(nn.Identity(), rounded, releases=1000)(torch.full((1000, 3), 0.3)) / 0.25
    assert torch.equal(released, released.round())
    assert len(released.unique()) < 100


@pytest.mark.parametrize("times", [4, 16])
def test_what_more_releases_cost_depends_on_the_noise(times):
    """Gaussian noise: as much as √k times less noise. Uniform: about k times less. Laplace: in between."""
    inputs = torch.zeros(1, 1, dtype=torch.float64)

    def bound(noise, again=1):
        return two_point_bounds(lambda x: x, inputs, noise, basis="pixel", releases=again).rmse.item()

    assert bound(Gaussian(1.0), times) == pytest.approx(bound(Gaussian(1.0)) / times**0.5, rel=1e-3)
    # (ε²/4)(1 − ε)^k is greatest at ε = 2/(k + 2).
    change = 2 / (times + 2)
    assert bound(Uniform(1.0), times) == pytest.approx(change / 2 * (1 - change) ** (times / 2), rel=1e-2)
    assert bound(Uniform(1.0), times) < 2 * bound(Uniform(1.0)) / times
    assert bound(Uniform(1.0), times) < 0.8 * bound(Uniform(1.0)) / times**0.5
    one, several = bound(Laplace(1.0)), bound(Laplace(1.0), times)
    assert one / times < several < 1.1 * one / times**0.5


def test_who_sees_a_uniform_release_several_times_rebuilds_it_k_times_better():
    """The middle between the least and the greatest of k releases: no bound for noise of 1/√k holds against it."""
    rng = np.random.default_rng(0)
    seen = rng.uniform(-0.5, 0.5, size=(20_000, 16))
    error = np.sqrt(np.mean(((seen.max(axis=1) + seen.min(axis=1)) / 2) ** 2))
    inputs = torch.zeros(1, 1, dtype=torch.float64)
    wrong = two_point_bounds(lambda x: x, inputs, Uniform(1.0 / 4), basis="pixel").rmse.item()
    right = two_point_bounds(lambda x: x, inputs, Uniform(1.0), basis="pixel", releases=16).rmse.item()
    assert right < error < wrong


@pytest.mark.parametrize("kind", [Gaussian, Laplace, Uniform, lambda size: Quantized(Gaussian(0.25), size)])
def test_a_noise_is_named_by_all_its_digits(kind):
    """Six of them would name another noise, with which the claim is false."""
    size = 0.123456789012345
    assert f"{size!r})" in repr(kind(size))
    assert repr(kind(math.nextafter(size, 1))) != repr(kind(size))
    assert repr(kind(0.5)).endswith("0.5)")
