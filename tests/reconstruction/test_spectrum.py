"""Images by their power per frequency and colour."""

import numpy as np
import pytest
import torch
from torch import nn

from tacit import InputError
from tacit.reconstruction import Gaussian, Spectrum, posterior_bound
from tacit.reconstruction import chains as rooms


def images(count=300, shape=(3, 12, 10), seed=0):
    """Smooth colour images: white noise, blurred, with channels that are alike."""
    drawn = torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    smooth = nn.functional.avg_pool2d(drawn, 3, stride=1, padding=1, count_include_pad=False)
    return 0.4 + 0.1 * smooth + 0.2 * smooth.mean(dim=1, keepdim=True)


def test_draws_have_the_mean_the_variance_and_the_smoothness_of_the_public_images():
    public = images(2000)
    prior = Spectrum.fitted(public)
    drawn = prior.sample(4000, seed=0)
    assert drawn.shape == (4000, 3, 12, 10)
    # Means of 4 000 draws: five standard errors.
    assert float((drawn.mean(dim=(0, 2, 3)) - public.mean(dim=(0, 2, 3))).abs().max()) < 0.01
    np.testing.assert_allclose(drawn.flatten(1).var(dim=0), prior.variances, rtol=0.15)
    assert float(prior.variances.sum()) == pytest.approx(float(public.flatten(1).var(dim=0).sum()), rel=0.02)

    def step(rows):
        return float((rows[..., 1:] - rows[..., :-1]).square().mean() / rows.var())

    assert step(drawn) == pytest.approx(step(public), rel=0.1)
    between = torch.corrcoef(torch.stack([drawn[:, 0].flatten(), drawn[:, 1].flatten()]))[0, 1]
    real = torch.corrcoef(torch.stack([public[:, 0].flatten(), public[:, 1].flatten()]))[0, 1]
    assert float(between) == pytest.approx(float(real), abs=0.05)


def test_grey_images_need_no_axis_for_channels():
    prior = Spectrum.fitted(images()[:, 0])
    assert prior.shape == prior.sample(2, seed=0).shape[1:] == (12, 10)
    assert "power per frequency" in repr(prior)


def test_it_is_linear_so_that_bounds_meet_the_closed_form(monkeypatch):
    """Also with many numbers, for which only spreads are estimated and directions are left as they are."""
    prior = Spectrum.fitted(images(shape=(3, 6, 4)))
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(72, 12)).double()
    network[1].weight.data = torch.randn(12, 72, generator=generator, dtype=torch.float64) / 4
    eye = torch.eye(72, dtype=torch.float64)
    factor = (prior.decode(eye, torch.zeros(72)) - prior.decode(0 * eye, torch.zeros(72))).flatten(1)
    covariance, weights = factor.T @ factor, network[1].weight.detach()
    noise = 0.5 * float((weights @ covariance @ weights.T).diagonal().mean().sqrt())
    known = torch.linalg.inv(weights @ covariance @ weights.T + noise**2 * torch.eye(12))
    left = covariance - covariance @ weights.T @ known @ weights @ covariance
    truth = float(left.trace() / covariance.trace())
    options = {"steps": 10, "inputs": 400, "ends": 2}
    found = posterior_bound(network, prior, Gaussian(noise), **options)
    assert 0.9 * truth < found.remaining <= truth
    monkeypatch.setattr(rooms, "_MOST_TURNED", 50)
    found = posterior_bound(network, prior, Gaussian(noise), **options | {"steps": 30})
    assert 0.85 * truth < found.remaining <= truth


def test_what_is_no_image_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"must be \(height, width\)"):
        Spectrum.fitted(np.random.default_rng(0).normal(size=(9, 5)))
    with pytest.raises(InputError, match="must differ"):
        Spectrum.fitted(np.ones((9, 5, 5)))
    with pytest.raises(InputError, match="shapes of mean and colours"):
        Spectrum([0.0], [[1.0]], np.ones((3, 4, 4)), description="wrong")
