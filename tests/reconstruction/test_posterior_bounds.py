"""Chains that start at the true input, against exact answers; and what happens where a chain is made wrongly.

Seeds are fixed; failure probabilities of 1e-6 say how often other seeds would fail.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from tacit import Comparison, InputError, NoTheoremError
from tacit.reconstruction import (
    Gallery,
    Gaussian,
    Jittered,
    Laplace,
    Mixture,
    Quantized,
    Uniform,
    bayes_bound,
    posterior_attack,
    posterior_bound,
)
from tacit.reconstruction import chains as rooms
from tacit.reconstruction.noise import NotGaussian

RARE = 1e-6
LINE = Mixture([[0.0]], [[1.0]], shape=(1,), description="a standard normal number")


def correlated(size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    turned = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]
    return turned @ torch.diag(torch.linspace(0, 4, size, dtype=torch.float64).neg().exp()) @ turned.T


def normal(covariance, shape):
    factor = torch.linalg.cholesky(covariance)
    return Mixture(np.zeros((1, len(factor))), factor, shape=shape, description="a Gaussian")


def linear(inputs, outputs, seed=0):
    layer = nn.Linear(inputs, outputs).double()
    generator = torch.Generator().manual_seed(seed)
    layer.weight.data = 2 * torch.randn(outputs, inputs, generator=generator, dtype=torch.float64) / math.sqrt(inputs)
    return nn.Sequential(nn.Flatten(), layer)


def posterior_covariance(network, covariance, sigma):
    weights = network[1].weight.detach()
    return torch.linalg.inv(torch.linalg.inv(covariance) + weights.T @ weights / sigma**2)


NINE, SMALL = correlated(9), linear(9, 6)
PRIOR = normal(NINE, (1, 3, 3))
EXACT = posterior_covariance(SMALL, NINE, 0.5)
SHARE = float(EXACT.trace() / NINE.trace())


def least_error(function, law, prior=stats.norm.pdf, reach=8.0):
    """The posterior variance of a number, averaged over releases, by quadrature."""
    x = np.linspace(-reach, reach, 2001)
    weights = prior(x) / prior(x).sum()
    y = np.linspace(function(x).min() - reach, function(x).max() + reach, 4001)
    likelihood = law.pdf(y[:, None] - function(x)[None, :])
    density, first, second = likelihood @ weights, likelihood @ (weights * x), likelihood @ (weights * x * x)
    possible = np.where(density > 1e-200, density, np.inf)
    return integrate.trapezoid(second - np.where(density > 1e-200, first**2 / possible, second), y)


@pytest.mark.parametrize("kernel", ["hamiltonian", "crank-nicolson"])
def test_for_linear_features_and_a_gaussian_prior_the_share_is_the_exact_one(kernel):
    steps = {"hamiltonian": 8, "crank-nicolson": 40}[kernel]
    found = posterior_bound(SMALL, PRIOR, Gaussian(0.5), kernel=kernel, steps=steps, inputs=1500, ends=4)
    assert 0.95 * SHARE < found.remaining <= SHARE
    assert found.guarantee.value == found.remaining
    assert found.guarantee.failure_probability == 0.001
    assert [number for number, _ in found.curve] == ([2, 8] if kernel == "hamiltonian" else [2, 10, 40])
    shares = [share for _, share in found.curve]
    assert shares[-1] == pytest.approx(SHARE, rel=0.05)
    if kernel == "crank-nicolson":  # two Hamiltonian steps are nearly enough, and draws vary with the processor
        assert shares[0] < shares[-1]


def test_with_400_entries_hardly_anything_is_lost():
    covariance, network = correlated(400), linear(400, 60)
    truth = float(posterior_covariance(network, covariance, 1.0).trace() / covariance.trace())
    options = {"steps": 4, "inputs": 1200, "ends": 1}
    found = posterior_bound(network, normal(covariance, (1, 20, 20)), Gaussian(1.0), **options)
    assert 0.985 * truth < found.remaining <= truth


def test_the_share_is_exact_to_a_percent_where_nothing_is_released():
    """Features say nothing, so that a rival is a fresh draw; of 400 entries, nearly alike in every pair."""
    prior = normal(torch.eye(400, dtype=torch.float64), (400,))
    options = {"steps": 2, "inputs": 2000, "ends": 1, "failure_probability": 0.01, "kernel": "crank-nicolson"}
    found = posterior_bound(lambda x: 0 * x[:, :1], prior, Gaussian(1.0), **options)
    assert 0.991 < found.remaining <= 1


def test_the_share_exceeds_the_truth_no_more_often_than_stated():
    prior, network = normal(NINE[:2, :2], (2,)), linear(2, 2)
    truth = float(posterior_covariance(network, NINE[:2, :2], 0.5).trace() / NINE[:2, :2].trace())
    options = {"steps": 12, "inputs": 100, "failure_probability": 0.1, "ends": 1, "kernel": "crank-nicolson"}
    found = [posterior_bound(network, prior, Gaussian(0.5), seed=seed, **options) for seed in range(12)]
    assert sum(one.remaining > truth for one in found) <= 0.1 * 12 + 3 * math.sqrt(0.1 * 0.9 * 12)
    means = np.array([one.curve[-1][1] for one in found])
    assert means.mean() == pytest.approx(truth, abs=4 * means.std() / math.sqrt(12))


@pytest.mark.parametrize(
    ("noise", "law", "kernel"),
    [
        (Gaussian(1.0), stats.norm(), "hamiltonian"),
        (Quantized(Gaussian(1.0), 0.5), stats.norm(), "crank-nicolson"),
        (Laplace(0.5), stats.laplace(scale=0.5), "hamiltonian"),
        (Uniform(2.0), stats.uniform(-1, 2), "auto"),
    ],
    ids=["Gaussian", "Quantized", "Laplace", "Uniform"],
)
def test_in_one_dimension_it_agrees_with_quadrature(noise, law, kernel):
    """Features that bend; inputs on both sides of 0 look alike."""
    truth = least_error(lambda x: np.abs(x) + 0.2 * x, law)
    options = {"steps": 16 if kernel == "hamiltonian" else 40, "inputs": 1500, "ends": 4, "kernel": kernel}
    found = posterior_bound(lambda x: x.abs() + 0.2 * x, LINE, noise, **options)
    assert 0.85 * truth < found.remaining <= truth
    assert found.curve[-1][1] == pytest.approx(truth, rel=0.05)


def test_two_bumps_are_reached_by_jumps():
    prior = Mixture([[-2.0], [2.0]], 0.5, shape=(1,), description="two bumps")

    def density(x):
        return (stats.norm.pdf(x, -2, 0.5) + stats.norm.pdf(x, 2, 0.5)) / 2

    truth = least_error(lambda x: x, stats.norm(scale=1.5), density) / 4.25
    found = posterior_bound(lambda x: x, prior, Gaussian(1.5), steps=6, inputs=2000, ends=4)
    assert 0.85 * truth < found.remaining <= truth
    assert found.remaining > bayes_bound(lambda x: x, prior, Gaussian(1.5), basis="pixel", steps=0).remaining


def test_a_gallery_with_hardly_any_jitter_is_the_gallery():
    inputs = torch.rand(12, 1, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    clean, noise = SMALL(inputs).detach(), Gaussian(0.5)
    generator = torch.Generator().manual_seed(1)
    chosen = torch.randint(12, (40_000,), generator=generator)
    likely = torch.softmax(noise.log_likelihood(clean[chosen] + noise.sample(clean[chosen], generator), clean), dim=1)
    flat = inputs.flatten(1)
    error = (likely @ flat.square()).sum(dim=1) - (likely @ flat).square().sum(dim=1)
    truth = float(error.mean()) / float(Gallery(inputs).variances.sum())
    found = posterior_bound(SMALL, Jittered(inputs, jitter=1e-3), noise, steps=6, inputs=2000, ends=4)
    assert 0.9 * truth < found.remaining <= 1.01 * truth
    assert found.curve[-1][1] == pytest.approx(truth, rel=0.04)


def test_modes_and_features_of_the_input_stay_below_their_exact_error():
    options = {"steps": 4, "inputs": 2000, "ends": 4, "basis": "pixel"}
    found = posterior_bound(SMALL, PRIOR, Gaussian(0.5), modes=True, **options)
    exact = np.sqrt(np.diag(EXACT)).reshape(1, 3, 3)
    assert np.all(found.rmse <= exact)
    assert np.all(found.rmse > 0.85 * exact)
    assert found.guarantee_of((0, 1, 1)).value == found.rmse[0, 1, 1]
    sums = posterior_bound(SMALL, PRIOR, Gaussian(0.5), of=lambda x: x.flatten(1).sum(dim=1, keepdim=True), **options)
    assert 0.85 * float(EXACT.sum()) < sums.remaining * sums.variance <= float(EXACT.sum())
    assert "features of the input" in sums.guarantee.quantity


def test_the_chance_of_naming_an_attribute_and_of_coming_near():
    """From |x| and noise nobody knows the sign of x; nobody is near x more often than near the best guess."""
    options = {"steps": 10, "inputs": 800, "ends": 24}
    found = posterior_bound(
        lambda x: x.abs(), LINE, Gaussian(1.0), attribute=lambda x: (x[:, 0] > 0).long(), radius=0.1, **options
    )
    assert 0.5 <= found.attribute_success < 0.64
    assert 0.06 < found.radius_success < 0.35
    assert found.guarantee_of("attribute").side == found.guarantee_of("radius").side == "at_most"


def test_the_attack_and_the_bound_meet():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(9, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU()).double()
    bound = posterior_bound(network, PRIOR, Gaussian(0.2), steps=20, inputs=800)
    attack = posterior_attack(network, PRIOR, Gaussian(0.2), steps=30, tries=300)
    assert not Comparison(guarantee=bound.guarantee, attacks=[attack]).contradicted
    assert bound.remaining > 0.85 * attack.value
    exact = posterior_attack(SMALL, PRIOR, Gaussian(0.5), steps=20, tries=200)
    assert exact.low < SHARE < exact.high


def test_the_attack_on_other_inputs_is_measured_in_their_variance():
    """Draws from the prior itself, handed in, and the same ones halved: their errors are the prior's attacker's."""
    drawn = PRIOR.sample(200, seed=9)
    options = {"steps": 16, "held_out": drawn}
    attack = posterior_attack(SMALL, PRIOR, Gaussian(0.5), **options)
    assert attack.quantity.endswith("as a share of their variance")
    assert attack.low < SHARE < attack.high
    other = posterior_attack(SMALL, PRIOR, Gaussian(0.5), **options | {"held_out": drawn / 2})
    assert other.value > attack.value  # less to know, behind the same noise
    with pytest.raises(InputError, match="the shape of held_out must be"):
        posterior_attack(SMALL, PRIOR, Gaussian(0.5), held_out=drawn[:29])


@pytest.mark.parametrize("features", [lambda x: np.round(x.numpy()), lambda x: torch.round(x)], ids=["numpy", "torch"])
def test_features_without_derivatives(features):
    truth = least_error(np.round, stats.norm(scale=0.5))
    found = posterior_bound(features, LINE, Gaussian(0.5), steps=24, inputs=1500, ends=4)
    assert found.kernel == "CrankNicolson"
    assert 0.85 * truth < found.remaining <= truth


def test_features_that_may_differ_are_paid_for():
    options = {"steps": 4, "inputs": 200, "kernel": "crank-nicolson"}
    shares = [
        posterior_bound(SMALL, PRIOR, Gaussian(0.5), feature_error=error, **options).remaining
        for error in (1e-12, 1e-3, 0.09)
    ]
    assert shares[0] > shares[1] > shares[2] == 0


def test_the_same_seed_gives_the_same_numbers():
    options = {"steps": 4, "inputs": 100}
    first, again, other = (posterior_bound(SMALL, PRIOR, Gaussian(0.5), seed=seed, **options) for seed in (1, 1, 2))
    assert first.remaining == again.remaining != other.remaining
    assert first.curve == again.curve
    assert np.array_equal(first.examples, again.examples)
    assert first.examples.shape == (8, 3, 1, 3, 3)
    assert "at least" in repr(first)


def test_seconds_choose_the_number_of_steps_and_progress_is_told():
    told = []
    options = {"inputs": 60, "ends": 1, "advance": told.append}
    found = posterior_bound(SMALL, PRIOR, Gaussian(0.5), seconds=0.2, **options)
    assert found.steps >= 2
    assert found.steps % 2 == 0
    assert told == sorted(told)
    assert told[-1] == 1


def caught(found, truth):
    """Whether the tests above would see it: beyond the truth, or far below."""
    return not 0.95 * truth < found.remaining <= truth


def bound_of_nine():
    return posterior_bound(SMALL, PRIOR, Gaussian(0.5), kernel="crank-nicolson", steps=30, inputs=1500, ends=4)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_a_likelihood_with_the_wrong_variance_is_caught(monkeypatch, share):
    right = rooms.NoiseDensity.of
    wrong = staticmethod(lambda noise: right(Gaussian(noise.sigma * math.sqrt(share))))
    monkeypatch.setattr(rooms.NoiseDensity, "of", wrong)
    assert caught(bound_of_nine(), SHARE)


def test_a_step_size_that_looks_at_the_input_is_caught(monkeypatch):
    """Small steps far out: chains go there and stay."""
    right = rooms.CrankNicolson.__call__

    def looking(self, state, given, factor, generator):
        far = state.numbers.norm(dim=1, keepdim=True)
        return right(self, state, given, torch.where(far > 3, 0.01, 30.0) * factor, generator)

    assert not caught(bound_of_nine(), SHARE)
    monkeypatch.setattr(rooms.CrankNicolson, "__call__", looking)
    assert caught(bound_of_nine(), SHARE)


def test_an_odd_number_of_steps_of_a_kernel_that_alternates_is_caught(monkeypatch):
    """From |x| the sign stays open, and a chain that always changes it is reversible; one step proves too much."""

    def alternating(self, state, given, *_):
        other = self.target.state(-state.numbers, state.components, given)
        return other, torch.ones(len(other.numbers), dtype=torch.bool)

    monkeypatch.setattr(rooms.CrankNicolson, "__call__", alternating)
    monkeypatch.setattr(rooms.Chain, "tuned", lambda self, *_: dataclasses.replace(self, wide=False))
    options = {"steps": 2, "inputs": 300, "ends": 1, "kernel": "crank-nicolson"}
    assert posterior_bound(lambda x: x.abs(), LINE, Gaussian(0.1), **options).remaining == 0
    forwards = rooms.Chain.step
    monkeypatch.setattr(
        rooms.Chain, "step", lambda *given, backwards=False: forwards(*given) if not backwards else (given[1], None)
    )
    monkeypatch.setattr("tacit.reconstruction.sampler.Sampler._stepped", _without_counting)
    odd = posterior_bound(lambda x: x.abs(), LINE, Gaussian(0.1), **options)
    assert odd.curve[-1][1] > 1.5  # the exact share is 1
    with pytest.raises(InputError, match="steps must be even"):
        posterior_bound(lambda x: x.abs(), LINE, Gaussian(0.1), steps=3)


def _without_counting(sampler, state, given, place, *, backwards):
    return sampler.chain.step(state, given, place, sampler.generator, backwards=backwards)[0]


def test_rounding_of_densities_is_less_than_is_granted():
    generator = torch.Generator().manual_seed(0)
    for rows in (torch.randn(20, 5000, generator=generator, dtype=torch.float64), torch.full((20, 5000), 0.1).double()):
        exact = np.array([math.fsum(float(entry) ** 2 for entry in row) for row in rows])
        wrong = np.abs(rows.square().sum(dim=1).numpy() - exact) / exact
        assert wrong.max() < rooms._GRANTED / 10


def test_what_cannot_be_bounded_is_refused():
    class Stated(NotGaussian):
        size = 1.0

        def shaped(self, standard):
            return standard

        def chi_square(self, base, *_):
            return base[:, 0]

        total_variation = chi_square

    with pytest.raises(InputError, match="for a gallery use bayes_bound"):
        posterior_bound(SMALL, Gallery(torch.rand(5, 1, 3, 3)), Gaussian(0.5))
    with pytest.raises(NoTheoremError, match="a noise with a density"):
        posterior_bound(SMALL, PRIOR, Stated())
    with pytest.raises(InputError, match="`steps` and `seconds` must not be given together"):
        posterior_bound(SMALL, PRIOR, Gaussian(0.5), steps=2, seconds=1)
    with pytest.raises(InputError, match="modes must be False with of"):
        posterior_bound(SMALL, PRIOR, Gaussian(0.5), of=lambda x: x, modes=True)
    with pytest.raises(InputError, match="part must be a claim that was asked for"):
        posterior_bound(SMALL, PRIOR, Gaussian(0.5), steps=2, inputs=30).guarantee_of("radius")
    with pytest.raises(InputError, match="kernel must be one of"):
        posterior_bound(SMALL, PRIOR, Gaussian(0.5), kernel="gibbs")
