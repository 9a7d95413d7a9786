import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

from tacit import InputError
from tacit.reconstruction import calibrate, identification_bound


@pytest.fixture(scope="module")
def problem():
    """Digits, identity features, and a linear head that reads them."""
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    fitted = LogisticRegression(max_iter=2000).fit(images[500:], labels[500:])
    head = nn.Linear(64, 10)
    with torch.no_grad():
        head.weight.copy_(torch.tensor(fitted.coef_))
        head.bias.copy_(torch.tensor(fitted.intercept_))
    return nn.Flatten(), head, torch.tensor(images[:300]).reshape(-1, 1, 8, 8), labels[:300]


def test_the_most_noise_that_keeps_the_accuracy(problem):
    found = calibrate(*problem, accuracy=0.8, draws=4000)
    chosen = int(np.argmin(np.abs(found.sigmas - found.noise.sigma)))
    assert found.accuracy == found.accuracies[chosen] >= 0.8
    assert np.all(found.accuracies[chosen + 1 :] < 0.8)
    assert found.guarantee.value == found.limits[chosen]


def test_the_least_noise_that_hides_the_input(problem):
    found = calibrate(*problem, identification=0.1, draws=4000)
    chosen = int(np.argmin(np.abs(found.sigmas - found.noise.sigma)))
    assert found.guarantee.value <= 0.1
    assert np.all(found.limits[:chosen] > 0.1)


def test_the_curve_trades_one_for_the_other_and_choosing_is_paid_for(problem):
    found = calibrate(*problem, accuracy=0.5, draws=4000)
    assert np.all(np.diff(found.limits) <= 0.02)
    assert found.accuracies[0] > 0.9 > found.accuracies[-1]
    features, _, inputs, _ = problem
    alone = identification_bound(features, inputs, found.noise, draws=4000)
    assert found.guarantee.value > alone.value  # at a sixteenth of the failure probability
    assert found.guarantee.failure_probability == alone.failure_probability


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "one at a time"),
        ({"accuracy": 0.9, "identification": 0.1}, "one at a time"),
        ({"accuracy": 1.5}, "accuracy must be"),
        ({"accuracy": 0.9999}, "within reach"),
        ({"identification": 0.003}, "within reach"),
        ({"accuracy": 0.5, "sigmas": []}, "must not be empty"),
        ({"accuracy": 0.5, "sigmas": [-1.0]}, "each of sigmas"),
    ],
)
def test_unusable_targets_are_refused(problem, options, match):
    with pytest.raises(InputError, match=match):
        calibrate(*problem, draws=1000, **options)


def test_unusable_labels_are_refused(problem):
    features, head, inputs, labels = problem
    for bad in (labels[:5], labels.astype(float), ["a"] * 300):
        with pytest.raises(InputError, match="labels must be 300 whole numbers"):
            calibrate(features, head, inputs, bad, accuracy=0.5)
