"""The same numbers on a GPU as on the CPU, to the tolerance that the reference states."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import tacit
from tacit.reconstruction import Gaussian, Generator, hcr_bounds, multipoint_bounds, perturbation, posterior_bound
from tacit.reconstruction.sampler import Sampler

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
    """Fewer features move than pixels: bounds of 10⁵, of directions that they do not feel, which rounding limits."""
    here, there = networks
    np.testing.assert_allclose(
        multipoint_bounds(there, points.cuda(), NOISE).std, multipoint_bounds(here, points, NOISE).std, rtol=1e-5
    )


def test_algorithm_1(networks, points):
    here, there = networks
    start = 1e-3 * torch.randn(6, 3, 90, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = perturbation(there, points.cuda(), start.cuda(), repetitions=3).cpu()
    torch.testing.assert_close(found, perturbation(here, points, start, repetitions=3), rtol=1e-6, atol=1e-12)


def test_the_published_search(networks, points):
    here, there = networks
    options = {"size": 1 / 200, "repetitions": 3, "restarts": 5, "seed": 0}
    found = hcr_bounds(there.float(), points.cuda(), NOISE, **options).std
    np.testing.assert_allclose(found, hcr_bounds(here.float(), points, NOISE, **options).std, rtol=1e-2)


@pytest.mark.parametrize(
    ("layer", "tolerance"),
    [
        (nn.Conv2d(3, 8, 3, padding=1), 1e-9),
        (nn.Conv2d(3, 8, 3, padding="same"), 1e-9),
        (nn.Conv2d(3, 9, 3, groups=3, padding_mode="circular", padding=1), 1e-9),
        # Fewer features than pixels: bounds of directions that they do not feel are limited by rounding alone.
        (nn.Conv2d(3, 4, (3, 2), stride=(2, 1), dilation=2, bias=False), 1e-5),
    ],
    ids=str,
)
def test_convolutions(layer, tolerance):
    """Those that become matrix products there, and those that do not."""
    torch.manual_seed(0)
    here = nn.Sequential(layer, nn.LeakyReLU(), nn.Flatten()).double()
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    np.testing.assert_allclose(
        multipoint_bounds(copy.deepcopy(here).cuda(), images.cuda(), NOISE).std,
        multipoint_bounds(here, images, NOISE).std,
        rtol=tolerance,
    )


@pytest.mark.parametrize("prior", [{}, {"public": "public.npy", "steps": 4}])
def test_a_run_from_files_with_all_methods(tmp_path, monkeypatch, prior):
    """`tacit bound --device cuda` as on the CPU, the pictures of its page included."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, count in (("data.npy", 12), ("public.npy", 200)):
        np.save(name, rng.random((count, 1, 4, 4)))
    np.save("labels.npy", np.arange(12) % 3)
    labelled = {"labels": "labels.npy", "head": "model.py:head"}
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def features():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.ReLU())\n"
        "def head():\n    torch.manual_seed(1)\n    return nn.Linear(20, 3)\n"
    )
    options = {"data": "data.npy", "noise": "gaussian:0.5", "limit": 4, **labelled, **prior}
    there, here, auto = (
        tacit.bound_files("model.py:features", out=device, device=device, **options)
        for device in ("cuda", "cpu", "auto")
    )
    assert len(there.comparisons) == 5
    for found, expected in zip(there.comparisons, here.comparisons, strict=True):
        assert found.guarantee.value == pytest.approx(expected.guarantee.value, rel=0.05)
    assert [one.guarantee.value for one in auto.comparisons] == [one.guarantee.value for one in there.comparisons]
    assert there.to_html()
    for one, other in zip(there.detail["sizes"], here.detail["sizes"], strict=True):
        assert one["accuracy"] == pytest.approx(other["accuracy"], abs=0.02)


def test_a_recorded_force_is_one_function_of_the_position_and_near_the_exact_one() -> None:
    """Whatever row a chain stands in: else steps back would not undo steps forth."""
    torch.manual_seed(0)
    decoder = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64))
    prior = Generator(decoder, codes=4, shape=(8, 8), pixel_noise=0.1, description="a small one")
    features = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh()).cuda()
    sampler = Sampler.opened(features, prior, Gaussian(0.3), kernel="hamiltonian", seed=0, feature_error=None)
    target = sampler.chain.target
    state, given = sampler.drawn(1500)  # more than a recording has rows
    assert target.recordings["slope"] is not None
    forces = target.force(state.numbers, state.components, given)
    turned = given._replace(released=given.released.flip(0))
    assert torch.equal(target.force(state.numbers.flip(0), state.components, turned).flip(0), forces)
    exact = target._slope(state.numbers.float(), state.components, given.released.float()) - state.numbers
    assert float((forces - exact).norm() / exact.norm()) < 0.02
    bound = posterior_bound(features, prior, Gaussian(0.3), steps=20, inputs=300).remaining
    here = posterior_bound(features.cpu(), prior, Gaussian(0.3), steps=20, inputs=300).remaining
    np.testing.assert_allclose(bound, here, atol=0.1)
