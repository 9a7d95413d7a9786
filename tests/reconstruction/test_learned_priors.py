"""Generators: decoders of standard normal numbers, and how they are learned from public inputs."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from torch import nn

from tacit import InputError
from tacit.reconstruction import Gaussian, Generator, posterior_bound, train_generator


@pytest.fixture(scope="module")
def digits():
    return load_digits().images[:, None] / 16


@pytest.fixture(scope="module")
def spots():
    """Images of one spot somewhere on a circle."""
    place = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(800, 1, 1, 1))
    rows, columns = np.mgrid[:8, :8] - 3.5
    return np.exp(-((columns - 2.2 * np.cos(place)) ** 2 + (rows - 2.2 * np.sin(place)) ** 2) / 3)


@pytest.fixture(scope="module")
def learned(spots):
    return train_generator(spots, codes=2, steps=100)


def test_a_linear_decoder_gives_the_closed_form():
    """Two numbers and noise make three entries, so that the input is Gaussian."""
    torch.manual_seed(0)  # of its bias
    decoder = nn.Linear(2, 3)
    decoder.weight.data = torch.tensor([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]])
    prior = Generator(decoder, codes=2, shape=(3,), pixel_noise=[0.5, 0.2, 0.1], description="linear")
    weights = decoder.weight.detach().double()
    covariance = weights @ weights.T + torch.diag(torch.tensor([0.25, 0.04, 0.01], dtype=torch.float64))
    # The variance is that of 20 000 draws: five standard errors.
    np.testing.assert_allclose(prior.variances, covariance.diagonal(), rtol=0.05)
    seen = torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.float64)
    left = covariance - covariance @ seen.T @ seen @ covariance / (seen @ covariance @ seen.T + 0.25)
    truth = float(left.trace() / prior.variances.sum())
    found = posterior_bound(lambda x: x @ seen.to(x).T, prior, Gaussian(0.5), steps=10, inputs=1500, ends=4)
    assert 0.93 * truth < found.remaining <= truth


def test_draws_look_like_the_public_inputs(spots, learned):
    """Spots have neighbours among draws, far nearer than among those of a Gaussian of their mean and covariance."""
    drawn, rows = learned.sample(800, seed=1), spots.reshape(800, -1)
    assert drawn.shape == (800, 1, 8, 8)
    assert float(drawn.var(dim=0).mean()) == pytest.approx(rows.var(axis=0).mean(), rel=0.2)
    flat = np.random.default_rng(0).multivariate_normal(rows.mean(axis=0), np.cov(rows.T), size=800)

    def nearest(candidates):
        apart = ((rows[:200, None] - candidates[None]) ** 2).sum(axis=2)
        return apart.min(axis=1).mean()

    assert nearest(drawn.flatten(1).numpy()) < 0.1 * nearest(flat)


def test_the_same_seed_gives_the_same_prior(digits):
    options = {"codes": 4, "steps": 5}
    first, second = (train_generator(digits[:200], seed=3, **options) for _ in range(2))
    assert first.description == second.description
    assert first.description != train_generator(digits[:200], seed=4, **options).description


def test_another_decoder_with_the_same_weights_is_another_prior():
    torch.manual_seed(0)
    first, second = nn.Linear(4, 6), nn.Linear(6, 6)

    def prior(activation, codes=4, shape=(6,)):
        decoder = nn.Sequential(first, activation, second, nn.Unflatten(1, shape))
        return Generator(decoder, codes=codes, shape=shape, pixel_noise=0.1, description="two layers")

    found = {prior(activation).description for activation in (nn.ReLU(), nn.SiLU(), nn.Identity())}
    found |= {prior(nn.ReLU(), shape=shape).description for shape in ((2, 3), (1, 6))}
    assert len(found) == 5
    assert prior(nn.ReLU()).description in found


def test_vectors_and_odd_sizes_are_decoded_too(digits):
    rows = digits.reshape(1797, 64)[:150]
    assert train_generator(rows, codes=3, steps=2).sample(2, seed=0).shape == (2, 64)
    wide = np.random.default_rng(0).random((120, 2, 9, 11))
    assert train_generator(wide, codes=3, steps=2).sample(2, seed=0).shape == (2, 2, 9, 11)


def test_progress_ends_at_1(digits):
    told = []
    train_generator(digits[:150], codes=2, steps=3, advance=told.append)
    assert told == sorted(told)
    assert told[-1] == 1


def test_a_saved_prior_is_the_same_prior(learned, tmp_path):
    learned.save(tmp_path / "prior.safetensors")
    read = Generator.load(tmp_path / "prior.safetensors")
    assert read.description == learned.description
    assert torch.equal(read.sample(3, seed=0), learned.sample(3, seed=0))


def test_files_that_hold_no_generator_are_refused_in_one_line(learned, tmp_path):
    path = tmp_path / "prior.safetensors"
    refused = "must be a file with a generator"
    with pytest.raises(InputError, match=refused):
        Generator.load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(InputError, match=refused):
        Generator.load(path)
    learned.save(path)
    tensors = load_file(path)
    about = {"format": "tacit generator 1", "shape": "[1, 8, 8]", "codes": "2", "description": "changed"}
    # A shape for which no machine has memory, one that the weights do not fit, and numbers that are none.
    for changed in (
        {"shape": json.dumps([1, 1 << 20, 1 << 20])},
        {"shape": "[1, 9, 9]"},
        {"codes": "x"},
        {"format": ""},
    ):
        save_file(tensors, path, metadata=about | changed)
        with pytest.raises(InputError, match=refused):
            Generator.load(path)
    save_file(tensors | {"pixel_noise": torch.full((64,), torch.nan)}, path, metadata=about)
    with pytest.raises(InputError, match=refused):
        Generator.load(path)


def test_what_cannot_be_used_is_refused_in_one_line(digits, tmp_path):
    own = Generator(nn.Linear(2, 3), codes=2, shape=(3,), pixel_noise=0.1, description="mine")
    with pytest.raises(InputError, match="train_generator made"):
        own.save(tmp_path / "mine.safetensors")
    with pytest.raises(InputError, match="must be a torch module"):
        Generator(lambda codes: codes, codes=2, shape=(2,), pixel_noise=0.1, description="function")
    with pytest.raises(InputError, match="must decode codes"):
        Generator(nn.Linear(5, 3), codes=2, shape=(3,), pixel_noise=0.1, description="other")
    with pytest.raises(InputError, match="one number or 3"):
        Generator(nn.Linear(2, 3), codes=2, shape=(3,), pixel_noise=[0.1, 0.1], description="noise")
    with pytest.raises(InputError, match="100 inputs or more"):
        train_generator(digits[:50])


class Noisy(nn.Linear):
    def forward(self, numbers):
        made = super().forward(numbers)
        return made + torch.randn_like(made)


class Coupled(nn.Linear):
    def forward(self, numbers):
        return super().forward(numbers) - numbers.mean(dim=0).sum()


@pytest.mark.parametrize("decoder", [Noisy, Coupled])
def test_a_decoder_that_is_no_fixed_function_of_each_row_is_refused(decoder):
    """The chains' true inputs would not be those that were released."""
    prior = Generator(decoder(2, 3), codes=2, shape=(3,), pixel_noise=0.1, description="not fixed")
    with pytest.raises(InputError, match="must be a fixed function, row by row"):
        posterior_bound(lambda x: x, prior, Gaussian(0.5), steps=2, inputs=30)


@pytest.fixture
def linear():
    return Generator(nn.Linear(2, 3), codes=2, shape=(3,), pixel_noise=0.1, description="linear")


def test_what_is_estimated_is_a_fixed_function_too(linear):
    options = {"steps": 2, "inputs": 30}
    with pytest.raises(InputError, match="of must be a fixed function"):
        posterior_bound(lambda x: x, linear, Gaussian(0.5), of=lambda x: nn.functional.dropout(x), **options)
    with pytest.raises(InputError, match="attribute must be a fixed function"):
        posterior_bound(
            lambda x: x, linear, Gaussian(0.5), attribute=lambda x: torch.rand(len(x)).round(decimals=3), **options
        )


def test_the_unit_of_a_generator_is_stated(linear):
    found = posterior_bound(lambda x: x, linear, Gaussian(0.5), steps=2, inputs=30).guarantee
    assert f"{float(linear.variances.mean()):.9g}, the variance of an entry over 20 000 draws" in found.quantity


def test_a_generator_says_what_it_is_whatever_a_file_calls_it():
    """Guarantees quote the description, and a stranger may have written it."""
    decoder = nn.Sequential(nn.Linear(2, 3))
    named = Generator(decoder, codes=2, shape=(3,), pixel_noise=0.1, description="a Gaussian fitted to 50 inputs")
    assert named.description.startswith("a generator of 2 numbers: a Gaussian fitted to 50 inputs")
