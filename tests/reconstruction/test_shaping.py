"""Noise in the shape that a head does not mind: it keeps the accuracy, hides more, and is bounded as any other."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from tacit import Comparison, InputError
from tacit.reconstruction import (
    Dithered,
    Gaussian,
    Mixture,
    learned_decoder,
    linear_decoder,
    posterior_attack,
    posterior_bound,
)

PIXELS, CLASSES = load_digits(return_X_y=True)
IMAGES = torch.tensor(PIXELS / 16, dtype=torch.float32)
LABELS = torch.tensor(CLASSES // 5)  # below five, or not: a head reads little of what there is
LOSS, DRAWS = 0.01, 20_000  # what the noise may cost, and the releases that fit_covariance counts by default
TRAINING, PUBLIC, TEST = slice(0, 800), slice(800, 1300), slice(1300, None)
ROWS = torch.rand(40, 5, generator=torch.Generator().manual_seed(0))


def trained(head):
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
    network = nn.Sequential(features, head())
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(150):
        loss = nn.functional.cross_entropy(network(IMAGES[TRAINING]), LABELS[TRAINING])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


@pytest.fixture(scope="module", params=["linear head", "head of two layers"])
def network(request):
    heads = {
        "linear head": lambda: nn.Linear(48, 2),
        "head of two layers": lambda: nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 2)),
    }
    return trained(heads[request.param])


@pytest.fixture(scope="module")
def shaped(network):
    return Dithered.fit_covariance(network[0], network[1], IMAGES[PUBLIC], labels=LABELS[PUBLIC], loss=LOSS)


def right(network, noise, rows=TEST, times=20):
    """The share of each input's noisy releases that are classified correctly."""
    inputs, truth = IMAGES[rows].repeat(times, 1), LABELS[rows].repeat(times)
    module = Dithered(network[0], noise, releases=times)
    return (network[1](module(inputs).float()).argmax(dim=1) == truth).double().reshape(times, -1).mean(dim=0)


def accuracy(network, noise, rows=TEST, times=20):
    return float(right(network, noise, rows, times).mean())


def clean_accuracy(network, rows=TEST):
    return float((network(IMAGES[rows]).argmax(dim=1) == LABELS[rows]).double().mean())


def as_good_elsewhere(network, least):
    """The most of the same noise everywhere that keeps this accuracy on the test images."""
    low, high = 1e-3, 10.0
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if accuracy(network, Gaussian(middle), times=5) >= least else (low, middle)
    return Gaussian(low)


def test_the_noise_costs_as_much_accuracy_as_allowed_and_hides_more_than_the_same_everywhere(network, shaped):
    times = 40
    kept = right(network, shaped.noise, PUBLIC, times)
    of_one = float((kept * (1 - kept)).mean())  # variance of one release's hit, its input given
    error = (of_one / DRAWS + of_one / (times * len(kept))) ** 0.5
    # Five standard errors: a false alarm in two million runs. The fit counts hits, so it may miss by one of them.
    assert float(kept.mean()) == pytest.approx(clean_accuracy(network, PUBLIC) - LOSS, abs=5 * error + 1 / DRAWS)
    tested = accuracy(network, shaped.noise)
    assert tested >= clean_accuracy(network) - 0.025
    prior = Mixture.fitted(IMAGES[:1300])
    options = {"steps": 20, "inputs": 150}
    same = as_good_elsewhere(network, tested)
    ours, theirs = (posterior_bound(network[0], prior, noise, **options) for noise in (shaped.noise, same))
    assert ours.remaining > theirs.remaining + 0.05
    known = prior.sample(2000, seed=1)
    attacks = [
        posterior_attack(network[0], prior, shaped.noise, steps=20, tries=150),
        linear_decoder(network[0], known, prior, shaped.noise),
        learned_decoder(network[0], known, prior, shaped.noise, epochs=3, width=64),
    ]
    assert not Comparison(guarantee=ours.guarantee, attacks=attacks).contradicted
    assert max(attack.value for attack in attacks) < 1.05  # attacks that know the shape rebuild something
    assert min(attack.value for attack in attacks) < ours.remaining + 0.2


def test_directions_that_a_head_does_not_read_are_drowned():
    """A head of two classes that reads the first of five features alone."""

    def head(rows):
        return torch.stack([rows[:, 0], 1 - rows[:, 0]], dim=1)

    made = Dithered.fit_covariance(nn.Identity(), head, ROWS, loss=0.05)
    spread = made.noise.shaped(torch.eye(5, dtype=torch.float64)).square().sum(dim=0).sqrt()
    assert spread[0] < 0.1
    assert bool((spread[1:] > 90 * spread[0]).all())
    released = made(ROWS)
    assert float((released[:, 0] - ROWS[:, 0]).abs().max()) < 0.5


def test_a_head_that_reads_everything_alike_gets_the_same_noise_everywhere():
    torch.manual_seed(0)
    head = nn.Linear(5, 6, bias=False)
    centred = torch.eye(6) - 1 / 6
    turned = torch.linalg.svd(centred)[0][:, :5]
    head.weight.data = turned  # all five directions move the scores by the same amount
    made = Dithered.fit_covariance(nn.Identity(), head, ROWS, loss=0.2)
    covariance = made.noise.shaped(torch.eye(5, dtype=torch.float64))
    values = torch.linalg.eigvalsh(covariance.T @ covariance)
    assert float(values[-1] / values[0]) < 1.6


def test_the_choice_is_the_same_every_time(network, shaped):
    again = Dithered.fit_covariance(network[0], network[1], IMAGES[PUBLIC], labels=LABELS[PUBLIC], loss=LOSS)
    rows = torch.rand(3, 48, dtype=torch.float64)
    assert torch.equal(again.noise.shaped(rows), shaped.noise.shaped(rows))


def test_without_labels_the_heads_own_classes_are_kept(network):
    made = Dithered.fit_covariance(network[0], network[1], IMAGES[PUBLIC], loss=0.02, draws=5000)
    module = Dithered(network[0], made.noise, releases=10)
    rows = IMAGES[PUBLIC].repeat(10, 1)
    same = network[1](module(rows).float()).argmax(dim=1) == network(rows).argmax(dim=1)
    assert 0.97 <= float(same.double().mean()) <= 0.99


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"loss": 0}, "loss must be"),
        ({"loss": 1e-9, "head": lambda rows: torch.sin(1e9 * rows)}, "loss must allow some noise"),
        ({"draws": 1}, "draws must be"),
        ({"labels": [0, 1]}, "labels must be 40 whole numbers"),
        ({"public": torch.ones(9, 5)}, "the features of public must differ"),
        ({"head": lambda rows: rows * 0}, "the derivative of head must not vanish"),
        ({"features": lambda rows: rows.repeat(1, 1000)}, "must be at most 4096"),
    ],
)
def test_unusable_arguments_are_refused(change, match):
    options = {"features": nn.Identity(), "head": lambda rows: rows, "public": ROWS, **change}
    with pytest.raises(InputError, match=match):
        Dithered.fit_covariance(options.pop("features"), options.pop("head"), options.pop("public"), **options)


def test_wide_ratios_are_whitened_to_many_digits(shaped):
    """The greatest ratio of variances that is tried leaves the bounds, which invert the covariance, enough digits."""
    assert shaped.noise.rounding < 1e-4
    standard = torch.randn(20, 48, dtype=torch.float64)
    back = shaped.noise.whitened(shaped.noise.shaped(standard))
    np.testing.assert_allclose(back.norm(dim=1), standard.norm(dim=1), rtol=1e-6)
