"""Naming one of several known inputs, against whoever compares with all of them."""

import numpy as np
import pytest
import torch
from networks import linear
from scipy import stats
from torch import nn

from tacit import Attack, Comparison, InputError, NoTheoremError
from tacit.reconstruction import (
    Gallery,
    Gaussian,
    Laplace,
    bayes_bound,
    identification_bound,
    nearest_candidate,
)
from tacit.theory.confidence import binomial_lower

NOISE = Gaussian(0.5)


def test_two_candidates_are_told_apart_as_the_normal_distribution_says():
    candidates = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    truth = stats.norm.cdf(0.5 / 0.5)
    found = identification_bound(lambda x: x, candidates, NOISE, draws=1_000_000, failure_probability=1e-6)
    assert truth <= found.value < truth / 0.99
    assert found.adversary.kind == "prior"


def test_the_nearest_candidate_does_not_contradict_the_bound():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh())
    candidates = torch.rand(50, 1, 4, 4)
    guarantee = identification_bound(network, candidates, NOISE, failure_probability=1e-6)
    generator = torch.Generator().manual_seed(5)
    features = network(candidates).detach().double()
    truth = torch.randint(50, (20_000,), generator=generator)
    noisy = features[truth] + NOISE.sample(features[truth], generator)
    hits = int((torch.cdist(noisy, features).argmin(dim=1) == truth).sum())
    attack = Attack(
        quantity=guarantee.quantity,
        value=hits / 20_000,
        low=binomial_lower(hits, trials=20_000, failure_probability=1e-6),
        high=1.0,
        failure_probability=1e-6,
        adversary=guarantee.adversary,
        method="nearest candidate",
    )
    comparison = Comparison(guarantee=guarantee, attacks=[attack])
    assert not comparison.contradicted
    assert attack.value > 0.9 * guarantee.value


def test_features_that_may_differ_are_paid_for_in_galleries():
    """Features of 1e13 may be released as 1e13 ± 1 within 1e-13: with noise 1, anyone reads off which."""
    candidates = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)

    def features(x):
        return 1e13 + 0 * x[:, :1]

    options = {"draws": 100_000, "failure_probability": 1e-6}
    assert identification_bound(features, candidates, Gaussian(1.0), **options).value >= stats.norm.cdf(1.0)


ZEROS_AND_ONES = np.repeat([[0.0, 0.0], [1.0, 0.0]], 50, axis=0)
SIGNED = np.where(ZEROS_AND_ONES == 0, np.array([-0.0, 0.0])[np.arange(100) % 2, None], ZEROS_AND_ONES)


@pytest.mark.parametrize(
    ("candidates", "model"),
    [
        (ZEROS_AND_ONES, lambda x: x),
        (ZEROS_AND_ONES.astype(np.uint8), lambda x: x),
        (SIGNED, lambda x: x),
        (1 + ZEROS_AND_ONES + 1e-12 * np.arange(100)[:, None], nn.Identity()),  # float32 does not see the difference
        (1 + ZEROS_AND_ONES + 1e-5 * np.arange(100)[:, None], nn.Linear(2, 2, dtype=torch.bfloat16).eval()),
    ],
    ids=["floats", "whole numbers", "minus zero", "equal in float32", "equal in bfloat16"],
)
def test_candidates_that_are_equal_are_one(candidates, model):
    """Everybody knows which of two it is, up to the noise, however often each stands in the list."""
    if isinstance(model, nn.Linear):
        with torch.no_grad():
            model.weight.copy_(torch.eye(2))
            model.bias.zero_()
    options = {"draws": 100_000, "failure_probability": 1e-6, "feature_error": 1e-13}
    found = identification_bound(model, candidates, NOISE, **options)
    truth = stats.norm.cdf(0.5 / 0.5)
    assert truth <= found.value < truth / 0.98
    assert found.detail["candidates"] == 2
    assert found.detail["guessing"] == 0.5
    assert "100 equally likely inputs that the adversary holds, 2 of them different" in str(found)
    attack = nearest_candidate(model, candidates, NOISE, found, feature_error=1e-13)
    assert attack.value == pytest.approx(truth, abs=0.02)
    assert not Comparison(guarantee=found, attacks=[attack]).contradicted


def test_candidates_of_unequal_weight_are_named_as_integration_says():
    """Nine of the first and one of the second: the best guess weighs, and names more often than the nearest."""
    candidates = np.array([[0.0, 0.0]] * 9 + [[1.0, 0.0]])
    point = (1 - 0.25 * np.log(1 / 9) * 2) / 2  # where 0.9 N(0, ½²) and 0.1 N(1, ½²) cross
    truth = 0.9 * stats.norm.cdf(point, 0, 0.5) + 0.1 * stats.norm.sf(point, 1, 0.5)
    found = identification_bound(lambda x: x, candidates, NOISE, draws=400_000, failure_probability=1e-6)
    assert truth <= found.value < truth / 0.99
    attack = nearest_candidate(lambda x: x, candidates, NOISE, found, draws=200_000)
    assert attack.low <= truth <= attack.high
    assert attack.value > stats.norm.cdf(1.0) + 0.05


class Remainder(nn.Module):
    """The place of a time within a minute, sent in half precision, which does not hold the time itself."""

    def __init__(self):
        super().__init__()
        self.period = nn.Parameter(torch.tensor(64.0))

    def forward(self, x):
        return torch.remainder(x, self.period).half()


class SignOfZero(nn.Module):
    """Of (0, k) nothing, of (−0, k) k."""

    def forward(self, x):
        return (torch.pi - torch.atan2(x[:, :1], -torch.ones_like(x[:, :1]))) / (2 * torch.pi) * x[:, 1:]


TIMES = 128.0 * np.arange(13_281_250, 13_281_300)
HALVES = 64.0 * np.arange(516, 576)


@pytest.mark.parametrize(
    ("candidates", "model"),
    [
        (np.stack([TIMES, TIMES + 1 + np.arange(50)], 1), lambda x: np.mod(x, 128.0).astype(np.float32)),
        (np.stack([HALVES, HALVES + 1 + np.arange(60) % 15], 1), Remainder().eval()),
        (np.stack([TIMES, TIMES + 1 + np.arange(50)], 1), lambda x: np.mod(x, 128.0)),
    ],
    ids=["a callable that returns float32", "a module that returns half precision", "float64"],
)
def test_candidates_with_different_features_are_different_whatever_type_these_come_in(candidates, model):
    """Each has features of its own: whoever compares with all of them must not do better than is said."""
    rows = candidates.reshape(-1, 1)
    found = identification_bound(model, rows, Gaussian(0.1))
    assert found.detail["candidates"] == len(rows)
    clean = model(torch.tensor(rows, dtype=torch.float32)) if isinstance(model, nn.Module) else model(rows)
    clean = torch.as_tensor(clean).detach().double()
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(len(rows), (20_000,), generator=generator)
    noisy = clean[truth] + Gaussian(0.1).sample(clean[truth], generator)
    assert float((torch.cdist(noisy, clean).argmin(dim=1) == truth).double().mean()) <= found.value


def test_zeros_whose_sign_the_model_sees_are_different_inputs():
    """Half of the releases name their k, the others say nothing of it: so the bounds, of naming and of rebuilding."""
    candidates = np.array([[zero, k] for k in range(1, 21) for zero in (0.0, -0.0)])
    noise, model = Gaussian(0.01), SignOfZero().eval()
    found = identification_bound(model, candidates, noise, draws=100_000, failure_probability=1e-6)
    truth = 1 / 2 + 1 / 40
    assert truth <= found.value < truth / 0.97
    left = bayes_bound(model, Gallery(candidates), noise, basis="pixel", draws=100_000, failure_probability=1e-6)
    assert 0.95 / 2 < left.remaining <= 1 / 2


def test_candidates_that_are_nearly_equal_are_different():
    candidates = np.concatenate([ZEROS_AND_ONES[:50:50], ZEROS_AND_ONES[50:] + 1e-6 * np.arange(50)[:, None]])
    found = identification_bound(nn.Identity().double(), candidates, NOISE)
    assert found.detail["candidates"] == 51


def test_candidates_that_are_all_equal_are_refused():
    with pytest.raises(InputError, match="must differ from one another"):
        identification_bound(lambda x: x, np.ones((5, 3)), NOISE)
    with pytest.raises(InputError, match="must differ in the type in which the model computes"):
        identification_bound(nn.Identity(), 1 + 1e-12 * np.arange(5.0)[:, None], NOISE)


def test_galleries_need_gaussian_noise(images):
    with pytest.raises(NoTheoremError, match="must have Gaussian noise"):
        identification_bound(linear(1.0), images.double(), Laplace(1.0))
