"""The same numbers on a GPU as on the CPU, to the tolerance that the reference states."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tacit.reconstruction import Gaussian, hcr_bounds, multipoint_bounds, perturbation

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

NOISE = Gaussian(0.5)


@pytest.fixture
def networks():
    """A network whose ReLUs rest for different features of each image, on the CPU and on the GPU."""
    torch.manual_seed(0)
    here = nn.Sequential(nn.Flatten(), nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 90), nn.ReLU()).double()
    return here, copy.deepcopy(here).cuda()


@pytest.fixture
def points():
    return torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_certified_bounds(networks, points):
    here, there = networks
    np.testing.assert_allclose(
        multipoint_bounds(there, points.cuda(), NOISE).std, multipoint_bounds(here, points, NOISE).std, rtol=1e-9
    )


def test_algorithm_1_recorded_and_replayed(networks, points):
    here, there = networks
    start = 1e-3 * torch.randn(6, 3, 90, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = perturbation(there, points.cuda(), start.cuda(), repetitions=3).cpu()
    torch.testing.assert_close(found, perturbation(here, points, start, repetitions=3), rtol=1e-6, atol=1e-12)


def test_the_published_search(networks, points):
    here, there = networks
    options = {"size": 1 / 200, "repetitions": 3, "restarts": 5, "seed": 0}
    found = hcr_bounds(there.float(), points.cuda(), NOISE, **options).std
    np.testing.assert_allclose(found, hcr_bounds(here.float(), points, NOISE, **options).std, rtol=1e-2)
