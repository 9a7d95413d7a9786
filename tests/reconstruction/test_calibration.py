import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

from tacit import InputError
from tacit.reconstruction import Gallery, Mixture, bayes_bound, calibrate, identification_bound
from tacit.reconstruction.calibration import _halves


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


def index_of(found):
    return int(np.argmin(np.abs(found.sigmas - found.noise.sigma)))


def test_the_most_noise_that_keeps_the_accuracy(problem):
    found = calibrate(*problem, target={"accuracy": 0.8}, draws=2000)
    chosen = index_of(found)
    assert found.accuracy == found.accuracies[chosen]
    assert found.accuracy == pytest.approx(0.8, abs=0.1)  # of other inputs than those that chose
    assert np.all(found.accuracies[chosen + 3 :] < 0.85)


def test_the_accuracy_is_measured_on_inputs_that_did_not_choose_it():
    """Labels by which the half that chooses is always right and the other half always wrong."""
    inputs = np.random.default_rng(0).choice([-1.0, 1.0], size=(60, 1)) * np.arange(1, 61)[:, None]
    choosing, _ = _halves(Gallery(inputs), seed=0)
    right = (inputs[:, 0] > 0).astype(int)
    labels = np.where(np.isin(np.arange(60), choosing), right, 1 - right)
    head = nn.Linear(1, 2, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    options = {"sigmas": [0.01, 3.0], "draws": 1000}
    found = calibrate(nn.Identity(), head, inputs, labels, target={"accuracy": 0.999}, **options)
    assert found.accuracy == 0.0
    # A target of another kind chooses by no accuracy, so all inputs are there to measure it.
    found = calibrate(nn.Identity(), head, inputs, labels, target={"identification": 0.99}, **options)
    assert found.accuracy == pytest.approx(0.5, abs=0.15)


def test_equal_inputs_choose_together_or_report_together():
    inputs = np.repeat(np.random.default_rng(0).normal(size=(7, 3)), 4, axis=0)
    choosing, reporting = _halves(Gallery(inputs), seed=0)
    assert sorted([*choosing.tolist(), *reporting.tolist()]) == list(range(28))
    assert not {row // 4 for row in choosing.tolist()} & {row // 4 for row in reporting.tolist()}
    assert len(choosing) == 12


def test_equal_candidates_are_not_taken_for_many(problem):
    """Two digits, fifty times each: a list of a hundred would make naming rare, and everybody knows them."""
    features, head, inputs, labels = problem
    rows = np.repeat([0, 1], 50)
    options = {"draws": 2000, "sigmas": [0.1, 1.0]}
    found = calibrate(features, head, inputs[rows], labels[rows], target={"identification": 0.99}, **options)
    exact = stats.norm.cdf(float((inputs[0] - inputs[1]).norm()) / 2 / found.noise.sigma)
    assert exact <= found.identification.value < exact + 0.05


def test_the_least_noise_that_hides_the_input(problem):
    found = calibrate(*problem, target={"identification": 0.1}, draws=2000)
    chosen = index_of(found)
    assert found.identification.value <= 0.1
    assert np.all(found.identification_upper[:chosen] > 0.1)


def test_the_least_noise_that_leaves_half_of_the_variance(problem):
    found = calibrate(*problem, target={"remaining": 0.5}, draws=1000)
    chosen = index_of(found)
    assert found.remaining.value >= 0.5
    assert found.remaining.side == "at_least"
    assert np.all(found.remaining_lower[:chosen] < 0.5)


def test_after_the_grid_the_target_is_approached(problem):
    """Four halvings of a step of the grid, 256^(1/15): the chosen noise is within 2.4 % of one that does not do."""
    for target in ({"accuracy": 0.8}, {"identification": 0.1}, {"remaining": 0.5}):
        found = calibrate(*problem, target=target, draws=500)
        assert len(found.sigmas) == 20
        assert np.all(np.diff(found.sigmas) > 0)
        after = index_of(found) + (1 if "accuracy" in target else -1)
        ratio = found.sigmas[after] / found.noise.sigma
        assert 1 < max(ratio, 1 / ratio) < 256 ** (1 / 15 / 16) * (1 + 1e-9)


def test_the_curve_trades_one_for_the_other_and_choosing_is_paid_for(problem):
    features, _, inputs, _ = problem
    found = calibrate(*problem, target={"accuracy": 0.5}, draws=4000, sigmas=[0.05, 0.5, 5.0])
    chosen = index_of(found)
    assert found.identification.value == found.identification_upper[chosen]
    assert found.remaining.value == found.remaining_lower[chosen]
    assert np.all(np.diff(found.identification_upper) <= 0.02)
    assert np.all(np.diff(found.remaining_lower) >= -0.02)
    assert found.accuracies[0] > 0.9 > found.accuracies[-1]
    # Three noises and two limits of each: at a sixth of the failure probability, and so a little wider.
    options = {"draws": 4000, "failure_probability": 0.001 / 6}
    paid = identification_bound(features, inputs, found.noise, **options)
    assert found.identification.value == paid.value
    assert found.identification.value > identification_bound(features, inputs, found.noise, draws=4000).value
    remaining = bayes_bound(features, Gallery(inputs), found.noise, **options)
    assert found.remaining.value == pytest.approx(remaining.remaining, rel=1e-9)
    assert found.identification.failure_probability == found.remaining.failure_probability == 0.001


@pytest.mark.usefixtures("quick_attacks")
def test_with_a_prior_the_noise_hides_draws_from_it_and_real_inputs_check_it(problem, monkeypatch):
    """For linear features and a Gaussian the exact share is known; real digits are easier to rebuild than its draws.

    A network learns that from more digits than in other tests, and from fewer than usual.
    """
    features, head, inputs, labels = problem
    public = load_digits().data[500:] / 16
    public = public.reshape(-1, 1, 8, 8)
    options = {"target": {"remaining": 0.3}, "sigmas": [0.1, 0.3, 1.0], "draws": 1000, "steps": 4}
    with monkeypatch.context() as patch:
        patch.setattr("tacit.reconstruction.realism._TRAINED", 30_000)
        found = calibrate(features, head, inputs, labels, public=public, **options)
    covariance = Mixture.fitted(public).covariances()[0].numpy()
    posterior = np.linalg.inv(np.linalg.inv(covariance) + np.eye(64) / found.sigmas[:, None, None] ** 2)
    exact = np.trace(posterior, axis1=1, axis2=2) / np.trace(covariance)
    assert np.all(found.remaining_lower <= exact)
    assert np.all(found.remaining_lower > 0.9 * exact)
    assert found.noise.sigma == found.sigmas[1]
    assert "a Gaussian fitted to 1297 public inputs" in str(found.remaining.adversary)
    assert found.verdict == "refuted"
    assert found.on_data.high < found.remaining.value
    assert repr(found).startswith("The prior is refuted: an attack left 0.")
    drawn, few = Mixture.fitted(public).sample(300, seed=1), slice(29)
    one_noise = options | {"sigmas": [0.3]}
    held = calibrate(features, head, drawn, labels, prior=Mixture.fitted(public), **one_noise)
    unsure = calibrate(features, head, inputs[few], labels[few], prior=Mixture.fitted(public), **one_noise)
    for one, verdict, limit in (
        (found, "refuted", "not for the real inputs: that these are draws from it is refuted"),
        (held, "not refuted", "the input is drawn from this prior"),
        (unsure, "not checked", "no easier to rebuild than draws from the prior, which was not checked"),
    ):
        assert one.verdict == one.remaining.to_dict()["detail"]["verdict"] == verdict
        assert limit in one.remaining.assumptions[0].text
        assert f"That real inputs are such draws is {verdict}" in one.plot().caption
        assert f"That real inputs are such draws is {verdict}" in repr(one)
    own = calibrate(features, head, inputs, labels, **options | {"sigmas": [3.0]})
    assert own.verdict == "not checked"
    assert "somebody who holds the inputs themselves" in own.plot().caption


@pytest.mark.parametrize(
    ("target", "options", "match"),
    [
        (None, {}, "target must hold one of accuracy"),
        ({}, {}, "target must hold one of accuracy"),
        ({"accuracy": 0.9, "identification": 0.1}, {}, "target must hold one of accuracy"),
        ({"precision": 0.9}, {}, "the name of target must be one of"),
        ({"accuracy": 1.5}, {}, "accuracy must be"),
        ({"accuracy": 0.9999}, {}, "within reach"),
        ({"identification": 0.003}, {}, "within reach"),
        ({"remaining": 0.9999}, {}, "within reach"),
        ({"accuracy": 0.5}, {"sigmas": []}, "must not be empty"),
        ({"accuracy": 0.5}, {"sigmas": [-1.0]}, "each of sigmas"),
    ],
)
def test_unusable_targets_are_refused(problem, target, options, match):
    with pytest.raises(InputError, match=match):
        calibrate(*problem, draws=100, target=target, **options)


def test_unusable_labels_are_refused(problem):
    features, head, inputs, labels = problem
    for bad in (labels[:5], labels.astype(float), ["a"] * 300):
        with pytest.raises(InputError, match="labels must be 300 whole numbers"):
            calibrate(features, head, inputs, bad, target={"accuracy": 0.5})
