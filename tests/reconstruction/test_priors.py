"""Priors against SciPy's densities and their own samples."""

import re

import numpy as np
import pytest
import torch
from scipy import stats

from tacit import InputError
from tacit.reconstruction import Gallery, Generator, Jittered, Mixture, Spectrum, TextPrior

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(300, 1, 2, 2)) * [[1.0, 2.0], [0.5, 1.0]] + RNG.integers(2, size=(300, 1, 1, 1)) * 6


def factors(prior):
    return [factor.numpy() for factor in prior._factors]


@pytest.mark.parametrize("components", [1, 3])
def test_the_density_is_that_of_the_stated_mixture(components):
    prior = Mixture.fitted(PUBLIC, components=components)
    points = torch.tensor(RNG.normal(size=(20, 1, 2, 2)) * 3)
    weights = prior._log_weights.exp().numpy()
    density = sum(
        weight * stats.multivariate_normal(mean.numpy(), factor @ factor.T).pdf(points.flatten(1).numpy())
        for weight, mean, factor in zip(weights, prior.means, factors(prior), strict=True)
    )
    odds, error = prior.log_odds(points[:10], points[10:])
    np.testing.assert_allclose(odds.numpy(), np.log(density[:10] / density[10:]), rtol=1e-9, atol=1e-9)
    assert 0 < error.min() <= error.max() < 1e-6


def test_the_density_around_a_gallery():
    prior = Jittered(PUBLIC[:5], jitter=0.7)
    points = torch.tensor(RNG.normal(size=(20, 1, 2, 2)))
    centres = PUBLIC[:5].reshape(5, -1)
    density = np.mean([stats.multivariate_normal(c, 0.49).pdf(points.flatten(1).numpy()) for c in centres], axis=0)
    odds, error = prior.log_odds(points[:10], points[10:])
    np.testing.assert_allclose(odds.numpy(), np.log(density[:10] / density[10:]), rtol=1e-9, atol=1e-9)
    assert error.max() < 1e-9


@pytest.mark.parametrize(
    "prior",
    [Mixture.fitted(PUBLIC), Mixture.fitted(PUBLIC, components=3), Jittered(PUBLIC, jitter=0.5), Gallery(PUBLIC)],
    ids=lambda prior: prior.description[:20],
)
def test_samples_have_the_stated_variances(prior):
    """400 000 draws: the standard error of a variance is below 0.5 %, so 3 % is beyond six of them."""
    drawn = prior.sample(400_000, seed=1).flatten(1)
    np.testing.assert_allclose(drawn.var(dim=0).numpy(), prior.variances.numpy(), rtol=0.03)
    if isinstance(prior, Mixture):
        np.testing.assert_allclose(torch.diagonal(prior.covariances()[0]).numpy(), prior.variances.numpy(), rtol=1e-12)
        assert torch.equal(prior.sample(3, seed=4), prior.sample(3, seed=4))


def test_one_entry_is_enough():
    prior = Mixture.fitted(PUBLIC.reshape(-1, 1))
    np.testing.assert_allclose(prior.variances.numpy(), PUBLIC.var(), rtol=1e-12)


def test_other_inputs_make_another_prior():
    descriptions = {Gallery(PUBLIC[i : i + 5]).description for i in range(3)}
    descriptions |= {Jittered(PUBLIC[i : i + 5], jitter=0.5).description for i in range(3)}
    assert len(descriptions) == 6
    assert Gallery(PUBLIC).description == Gallery(torch.tensor(PUBLIC)).description


PARTS = {"means": np.zeros((2, 4)), "spread": 1.0, "shape": (2, 2), "description": "two points"}


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        (Mixture(**PARTS), r"Mixture of 2 Gaussians, inputs of shape \(2, 2\): two points"),
        (Mixture.fitted(PUBLIC), r"Mixture of 1 Gaussian, inputs of shape \(1, 2, 2\): a Gaussian fitted to 300 .*"),
        (Gallery(PUBLIC[:7]), r"Gallery of 7 inputs of shape \(1, 2, 2\): 7 equally likely .*"),
        (
            Jittered(PUBLIC, jitter=0.5),
            r"Jittered of 300 Gaussians, inputs of shape \(1, 2, 2\): 300 equally likely public .* deviation 0\.5",
        ),
        (Spectrum.fitted(PUBLIC), r"Spectrum, inputs of shape \(1, 2, 2\): Gaussian images .* of 300 public ones"),
        (
            Generator(torch.nn.Linear(3, 4), codes=3, shape=(4,), pixel_noise=0.1, description="linear"),
            r"Generator, inputs of shape \(4,\): a generator of 3 numbers: linear",
        ),
        (
            TextPrior.fitted(["a b", "b a"], longest=5),
            "TextPrior: texts of up to 5 words, drawn from trigrams of 2 public texts with 2 different words",
        ),
    ],
)
def test_every_prior_prints_what_it_is_in_one_line(prior, says):
    assert re.fullmatch(says + r" \([0-9a-f]{8}\)", repr(prior))


def test_a_jittered_prior_under_its_earlier_name():
    with pytest.warns(DeprecationWarning, match="is Jittered"):
        earlier = Mixture.around(PUBLIC[:5], jitter=0.7)
    assert earlier.description == Jittered(PUBLIC[:5], jitter=0.7).description
    with pytest.raises(InputError, match="jitter must be"):
        Jittered(PUBLIC, jitter=0.0)


def test_rounding_that_would_swamp_the_density_is_refused():
    prior = Jittered(PUBLIC + 1e6, jitter=1e-6)
    with pytest.raises(InputError, match="raise the jitter or the shrinkage"):
        prior.log_odds(prior.sample(2, seed=0), prior.sample(2, seed=1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"spread": 0.0}, "spread must be"),
        ({"spread": "wide"}, "spread must be"),
        ({"shape": 4}, "shape must be a tuple"),
        ({"spread": np.zeros((4, 4))}, "lower triangular"),
        ({"spread": np.ones((4, 4))}, "lower triangular"),
        ({"spread": np.eye(3)}, "the shape of spread"),
        ({"weights": [0.5, 0.6]}, "sum to 1"),
        ({"weights": [1.0]}, "sum to 1"),
        ({"shape": (3,)}, "shape must hold 4 entries"),
        ({"description": ""}, "description must be"),
        ({"means": [[np.nan] * 4]}, "means must be"),
    ],
)
def test_priors_that_are_none_are_refused(change, match):
    with pytest.raises(InputError, match=match):
        Mixture(**{**PARTS, **change})


def test_public_inputs_that_cannot_be_fitted_are_refused():
    with pytest.raises(InputError, match="public must have two rows"):
        Mixture.fitted(np.zeros((1, 4)))
    with pytest.raises(InputError, match="at most 8192"):
        Mixture.fitted(np.zeros((3, 9000)))
    with pytest.raises(InputError, match="shrinkage must be"):
        Mixture.fitted(PUBLIC, shrinkage=0.0)
    with pytest.raises(InputError, match="must differ from one another"):
        Gallery(torch.ones(3, 1, 2, 2))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
def test_a_fitted_prior_has_the_unit_of_the_public_inputs(size):
    public = np.random.default_rng(0).normal(size=(50, 4))
    one, other = Mixture.fitted(public), Mixture.fitted(size * public)
    np.testing.assert_allclose(other.variances, size**2 * one.variances, rtol=1e-9)
    with pytest.raises(InputError, match="public must differ from one another"):
        Mixture.fitted(np.full((5, 3), size))
