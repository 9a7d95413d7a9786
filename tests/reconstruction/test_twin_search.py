import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tacit import NoTheoremError
from tacit.reconstruction import Gaussian, Laplace, twins

NOISE = Gaussian(0.5)


def test_twins_are_valid_close_in_features_and_far_in_pixels(network, images):
    found = twins(network, images, NOISE, box=(0.0, 1.0), steps=100)
    assert found.inputs.shape == tuple(images.shape)
    assert np.all(found.inputs >= 0)
    assert np.all(found.inputs <= 1)
    with torch.no_grad():
        released = network.double()(torch.tensor(found.inputs)).flatten(1)
        originals = network(images.double()).flatten(1)
    distances = ((released - originals).norm(dim=1) / 0.5).numpy()
    assert np.all(distances <= found.distance)
    assert np.all(found.distance <= 1.0)
    assert np.all(found.difference > 0.02)


def test_along_the_null_space_nothing_but_the_box_stops_them():
    """Features that ignore half of the entries: these can take any valid value."""

    def features(x):
        return 100.0 * x[:, :8]

    found = twins(features, torch.full((2, 16), 0.5, dtype=torch.float64), NOISE, box=(0.0, 1.0))
    hidden = np.abs(found.inputs[:, 8:] - 0.5)
    assert hidden.mean() > 0.4
    assert np.abs(found.inputs[:, :8] - 0.5).max() < 0.006


def test_the_guarantee_of_a_twin(images):
    torch.manual_seed(0)
    found = twins(nn.Sequential(nn.Flatten(), nn.Linear(16, 20)), images, NOISE, distance=2.0)
    statement = found.guarantee_of(1)
    assert statement.value == pytest.approx(stats.norm.cdf(found.distance[1] / 2), rel=1e-8)
    assert 1.5 < found.distance[1] <= 2.0


def test_only_gaussian_noise_has_twins(images):
    with pytest.raises(NoTheoremError, match="must have Gaussian noise"):
        twins(nn.Flatten(), images, Laplace(1.0))


@pytest.mark.parametrize("box", [None, (0.0, math.inf), (-math.inf, math.inf)])
def test_a_single_number_has_a_twin_in_any_box(box):
    found = twins(nn.Linear(1, 1).eval(), torch.full((1, 1), 0.5), Gaussian(1.0), box=box, steps=50)
    assert found.difference[0] > 0
    assert box is None or found.inputs.min() >= box[0]
