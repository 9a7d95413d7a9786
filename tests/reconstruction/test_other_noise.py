"""Noise known by its density, or by draws: what it is told, what it refuses, and how often its limits miss."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tacit import InputError, NoTheoremError
from tacit.reconstruction import (
    Density,
    Dithered,
    Laplace,
    Quantized,
    Sampled,
    identification_bound,
    multipoint_bounds,
    single_mode_bounds,
    two_point_bounds,
)
from tacit.theory.divergences import laplace_chi_square, laplace_total_variation

NO_ERROR = torch.zeros(1, dtype=torch.float64)
LOGISTIC = Density(stats.logistic(scale=0.5), slope=2.0, curvature=2.0)
LAPLACE = Density(stats.laplace(scale=0.5), slope=2.0, curvature=0.0, kinks=[0.0])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 20))


IMAGES = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(1))


def test_a_density_bounds_what_its_closed_form_does():
    found = single_mode_bounds(network(), IMAGES, LAPLACE).std
    truth = single_mode_bounds(network(), IMAGES, Laplace(0.5)).std
    assert np.all(found <= truth * (1 + 1e-9))
    assert np.all(found > 0.98 * truth)
    found = two_point_bounds(network(), IMAGES[:1], LAPLACE).rmse
    truth = two_point_bounds(network(), IMAGES[:1], Laplace(0.5)).rmse
    np.testing.assert_allclose(found, truth, rtol=0.02)


def test_a_density_states_what_was_assumed_of_it():
    bounds = two_point_bounds(network(), IMAGES[:1], LOGISTIC, largest=1.0)
    statement = bounds.guarantee_of(0, (0, 1, 1))
    assumed = " ".join(statement.assumed(checked_by="caller"))
    assert "Density(logistic(scale=0.5), slope=2, curvature=2)" in assumed
    assert "|d/dx log p| of the noise's density is at most 2, |d²/dx² log p| 2" in assumed
    assert statement.failure_probability == 0
    rounded = Quantized(LOGISTIC, 0.1)
    assert rounded.assumptions[:-1] == LOGISTIC.assumptions
    shift = torch.full((1, 3), 0.1, dtype=torch.float64)
    assert rounded.chi_square(shift, shift, NO_ERROR) == LOGISTIC.chi_square(shift, shift, NO_ERROR)


def test_an_error_of_the_shift_is_paid_for():
    rng = np.random.default_rng(0)
    shift = torch.tensor(0.3 * rng.normal(size=(1, 6)))
    for noise in (LOGISTIC, LAPLACE):
        careful = noise.chi_square(shift, shift, NO_ERROR + 0.05)
        wary = noise.total_variation(shift, shift, NO_ERROR + 0.05)
        for _ in range(20):
            direction = torch.tensor(rng.normal(size=(1, 6)))
            moved = shift + 0.05 * direction / direction.norm()
            assert noise.chi_square(shift, moved, NO_ERROR) <= careful
            assert noise.total_variation(shift, moved, NO_ERROR) <= wary


@pytest.mark.parametrize("noise", [LOGISTIC, Density(stats.t(2), slope=1.07, curvature=1.5)])
def test_a_density_is_drawn_by_its_law_and_deployed(noise):
    """Kolmogorov–Smirnov, twice; fails by chance with probability 2e-7."""
    drawn = noise.sample(torch.zeros(50_000, 2, dtype=torch.float64), torch.Generator().manual_seed(0)).numpy()
    assert stats.kstest(drawn.ravel(), noise.distribution.cdf).pvalue > 1e-7
    released = Dithered(nn.Identity(), noise, releases=50_000)(torch.zeros(50_000, 1))
    assert stats.kstest(released.numpy().ravel(), noise.distribution.cdf).pvalue > 1e-7
    cells = released / noise.grid
    torch.testing.assert_close(cells, cells.round(), rtol=1e-15, atol=0)
    assert torch.isfinite(noise.shaped(torch.tensor([-0.5, 0.0, 0.5 - 2.0**-53], dtype=torch.float64))).all()


def test_what_needs_gaussian_noise_refuses_other():
    for noise in (LOGISTIC, sampled()):
        with pytest.raises(NoTheoremError, match="must have Gaussian noise"):
            multipoint_bounds(network(), IMAGES, noise)
        with pytest.raises(NoTheoremError, match="must have Gaussian noise"):
            identification_bound(network(), IMAGES, noise)


def laplace_logs(rows):
    return -np.abs(rows).sum(axis=1)


def laplace_draws(width):
    return lambda count, generator: generator.laplace(size=(count, width))


def sampled(width=20, **options):
    """Laplace noise of scale 1 as if only draws were known: |log p| moves by ‖z‖₁ ≤ √width·‖z‖ at most."""
    return Sampled(laplace_logs, laplace_draws(width), slope=np.sqrt(width) * (1 + 1e-12), **options)


def test_limits_from_draws_hold_as_often_as_they_say():
    """100 objects of ten limits each, α = 0.2. That more than 40 of them are wrong anywhere has probability 2e-6."""
    rng = np.random.default_rng(0)
    shifts = 0.1 * rng.normal(size=(10, 3))
    base = torch.tensor(shifts)
    chi_square, variation = laplace_chi_square(shifts, scale=1.0), laplace_total_variation(shifts, scale=1.0)
    wrong, loose = 0, []
    for seed in range(100):
        noise = sampled(3, draws=300, failure_probability=0.2, seed=seed)
        limits = noise.chi_square(base[:5], base[:5], NO_ERROR), noise.chi_square(base[5:], base[5:], NO_ERROR)
        wrong += bool((np.concatenate(limits) < chi_square).any())
        loose.append(noise.total_variation(base, base, NO_ERROR) / variation)
    assert wrong <= 40
    assert np.mean(loose) < 2


def test_many_draws_come_close():
    shift = torch.tensor([[0.05, -0.02, 0.04]], dtype=torch.float64)
    noise = sampled(3, draws=400_000)
    truth = laplace_chi_square(shift.numpy(), scale=1.0)
    assert truth <= noise.chi_square(shift, shift, NO_ERROR) <= 1.05 * truth
    closed = 4 * np.sinh(np.sqrt(3) * shift.norm().item() / 2) ** 2
    assert noise.chi_square(shift, shift, NO_ERROR) <= closed
    assert noise.chi_square(shift, shift, NO_ERROR + 0.01) > noise.chi_square(shift, shift, NO_ERROR)
    assert noise.chi_square(shift, 0 * shift, NO_ERROR).tolist() == [0]


def test_each_limit_gets_its_share_of_the_failure_probability():
    """The same draws, asked about once and after a thousand others: the later limit is the larger."""
    shift = torch.full((1001, 3), 0.05, dtype=torch.float64)
    limits = sampled(3, draws=500).chi_square(shift, shift, NO_ERROR)
    assert np.all(np.diff(limits[:10]) > 0)
    assert limits[1000] < 1.6 * limits[0]


def test_guarantees_carry_the_failure_probability():
    noise = sampled(draws=2000, failure_probability=0.01)
    unbiased = single_mode_bounds(network(), IMAGES[:1], noise, steps=(1e-2,))
    statement = unbiased.guarantee_of(0, (0, 0, 0))
    assert statement.failure_probability == 0.01
    assert f"is at most {float(noise.slope)!r}·‖z‖" in " ".join(statement.assumed(checked_by="caller"))
    assert np.all(unbiased.std <= single_mode_bounds(network(), IMAGES[:1], Laplace(1.0), steps=(1e-2,)).std)
    assert np.all(unbiased.std > 0.1)
    anyone = two_point_bounds(lambda x: 0.1 * x.reshape(len(x), -1), IMAGES[:1].double()[:, :, :1, :2], sampled(2))
    assert anyone.guarantee_of(0, (0, 0, 0)).failure_probability == 0.001
    assert np.all(anyone.rmse > 1)
    assert Quantized(noise, 0.1).failure_probability == 0.01


def test_long_shifts_are_refused_where_draws_cannot_be_trusted():
    shift = torch.tensor([[0.1, 0.1, 0.1], [1.0, 0.0, 0.0]], dtype=torch.float64)
    noise = sampled(3)
    with pytest.raises(NoTheoremError, match="use smaller steps"):
        noise.chi_square(shift, shift, NO_ERROR)
    assert noise.total_variation(shift, shift, NO_ERROR)[1] == pytest.approx(np.tanh(np.sqrt(3) / 2))


def test_draws_are_simulated_but_not_deployed():
    drawn = sampled(3).sample(torch.zeros(50_000, 3, dtype=torch.float64), torch.Generator().manual_seed(0)).numpy()
    assert stats.kstest(drawn.ravel(), stats.laplace.cdf).pvalue > 1e-7
    with pytest.raises(NoTheoremError, match="operating system's entropy"):
        Dithered(nn.Identity(), sampled(3))(torch.eye(3))


SHIFT = torch.full((1, 3), 0.01, dtype=torch.float64)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Density(stats.logistic(), slope=0.5, curvature=0.5), "slope must be at least"),
        (lambda: Density(stats.laplace(), slope=1.0, curvature=0.0), "curvature must be at least"),
        (lambda: Density("logistic", slope=1.0, curvature=0.5), "ppf of the distribution must work"),
        (lambda: Sampled(None, laplace_draws(3), slope=1.0), "log_density must be a function"),
        (lambda: Sampled(laplace_logs, laplace_draws(3), slope=0.0), "slope must be"),
        (lambda: sampled(3, draws=0), "draws must be"),
        (lambda: sampled(3, failure_probability=0.0), "failure_probability must be"),
        (lambda: sampled(3, seed=-1), "seed must be"),
        (lambda: sampled(4).chi_square(SHIFT, SHIFT, NO_ERROR), "the shape of what draw returns must be"),
        (
            lambda: Sampled(lambda rows: rows, laplace_draws(3), slope=2.0).chi_square(SHIFT, SHIFT, NO_ERROR),
            "the shape of what log_density returns must be",
        ),
        (
            lambda: Sampled(laplace_logs, laplace_draws(3), slope=0.5).chi_square(SHIFT, SHIFT, NO_ERROR),
            "state a greater slope",
        ),
    ],
)
def test_unusable_noise_is_refused(make, match):
    with pytest.raises(InputError, match=match) as refusal:
        make()
    assert "\n" not in str(refusal.value)
