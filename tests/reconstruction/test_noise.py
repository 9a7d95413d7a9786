import numpy as np
import pytest
import torch

from tacit import InputError
from tacit.reconstruction import Gaussian, Laplace, Uniform

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
    careful = noise.total_variation(shift, NO_ERROR + 0.1)[0]
    for _ in range(50):
        direction = torch.tensor(RNG.normal(size=(1, 6)))
        moved = shift + 0.1 * direction / direction.norm()
        assert noise.total_variation(moved, NO_ERROR)[0] <= careful
        assert noise.chi_square(moved, NO_ERROR)[0] <= noise.chi_square(shift, NO_ERROR + 0.1)[0]


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
        lambda: Laplace(0.0),
        lambda: Uniform(-1.0),
        lambda: Gaussian(covariance=[1.0, 2.0]).whitened(torch.zeros(1, 3)),
    ],
)
def test_noise_that_is_none_is_refused(make):
    with pytest.raises(InputError) as refusal:
        make()
    assert "\n" not in str(refusal.value)
    assert "must" in str(refusal.value)
