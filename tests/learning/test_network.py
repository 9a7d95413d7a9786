"""Torch modules behind scikit-learn's contract: as accurate, the same again, stored without a pickle."""

import copy
import io
import pickle
import sys

import numpy as np
import pytest
import skops.io
import torch
from networks import convolutions, perceptron
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import estimator_checks_generator
from teaching import Poison

from tacit import InputError, MissingExtraError
from tacit.learning import NetworkClassifier, PrivateClassifier, Teachers

KEY = bytes(range(32))
X, Y = load_digits(return_X_y=True)
X = X / 16
TRAIN, TEST = slice(0, 1200), slice(1200, None)
TRUSTED = ["tacit.learning.students.network.NetworkClassifier", "networks.perceptron"]


def small(**options):
    return NetworkClassifier(
        perceptron, **{"epochs": 15, "batch": 32, "learning_rate": 0.01, "random_state": 0, **options}
    )


CONTRACT = list(estimator_checks_generator(NetworkClassifier(perceptron, epochs=12, learning_rate=0.04, batch=32)))


# scikit-learn's own marker puts the function's address into the names of tests, which parallel runs compare.
@pytest.mark.parametrize(
    ("estimator", "check"), CONTRACT, ids=[f"{i}-{check.func.__name__}" for i, (_, check) in enumerate(CONTRACT)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def learned():
    return small().fit(X[TRAIN], Y[TRAIN])


def test_digits_are_learned(learned):
    convolved = NetworkClassifier(convolutions, shape=(1, 8, 8), epochs=5, learning_rate=0.01, random_state=0)
    for network in (learned, convolved.fit(X[TRAIN], Y[TRAIN])):
        assert network.score(X[TEST], Y[TEST]) > 0.9  # seeded
        chances = network.predict_proba(X[TEST])
        assert chances.dtype == np.float64
        assert np.abs(chances.sum(axis=1) - 1).max() < 1e-12


def test_equal_states_give_equal_networks_and_torchs_own_state_stays():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    few = slice(0, 200)
    first, again, other = (small(epochs=3, random_state=state).fit(X[few], Y[few]) for state in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)  # which decides nothing
    late = clone(first).fit(X[few], Y[few])
    for same in (again, late):
        assert (same.predict_proba(X) == first.predict_proba(X)).all()
    assert (other.predict_proba(X) != first.predict_proba(X)).any()
    assert not torch.backends.cudnn.deterministic


def test_its_features_are_what_the_last_layer_reads(learned):
    rows, last = learned.transform(X[TEST]), list(learned.network_)[-1]
    logits = rows @ last.weight.detach().double().numpy().T + last.bias.detach().double().numpy()
    assert np.array_equal(np.argmax(logits, axis=1), learned.predict(X[TEST]))
    with pytest.raises(InputError, match="must have a linear layer"):
        NetworkClassifier(unread, epochs=1).fit(X[:50], Y[:50]).transform(X[:5])


def unread(n_features, n_classes):
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, n_features)), torch.nn.Conv1d(1, n_classes, n_features), torch.nn.Flatten()
    )


def test_the_last_batch_is_never_a_single_record():
    few = slice(0, 33)
    network = NetworkClassifier(convolutions, shape=(1, 8, 8), epochs=1, batch=32, random_state=0)
    assert network.fit(X[few], Y[few]).predict(X[few]).shape == (33,)


def test_batches_are_augmented_in_training_alone():
    seen = []

    def shifted(inputs, generator):
        seen.append(inputs.shape)
        assert inputs.shape[1:] == (1, 8, 8)
        return torch.roll(inputs, int(torch.randint(-1, 2, (), generator=generator)), dims=-1)

    network = NetworkClassifier(convolutions, shape=(1, 8, 8), epochs=2, batch=600, augment=shifted, random_state=0)
    network.fit(X[TRAIN], Y[TRAIN])
    assert seen == [(600, 1, 8, 8)] * 4
    first = network.predict_proba(X)
    assert len(seen) == 4
    assert (network.fit(X[TRAIN], Y[TRAIN]).predict_proba(X) == first).all()
    plain = clone(network).set_params(augment=None).fit(X[TRAIN], Y[TRAIN])
    assert (plain.predict_proba(X) != first).any()


def test_what_is_stored_holds_weights_and_no_pickle(learned, tmp_path):
    chances = learned.predict_proba(X)
    for copied in (copy.deepcopy(learned), pickle.loads(pickle.dumps(learned))):  # noqa: S301 — our own bytes
        assert (copied.predict_proba(X) == chances).all()
    content = skops.io.dumps(learned)
    assert sorted(skops.io.get_untrusted_types(data=content)) == sorted(TRUSTED)
    assert (skops.io.loads(content, trusted=TRUSTED).predict_proba(X) == chances).all()
    state = learned.__getstate__()
    mark = tmp_path / "mark"
    state["weights"] = pickle.dumps(Poison(mark))
    with pytest.raises(Exception, match=r"[Hh]eader"):
        NetworkClassifier.__new__(NetworkClassifier).__setstate__(state)
    assert not mark.exists()


def test_as_teachers_stored_and_read_again(tmp_path):
    def teachers():
        return Teachers(small(), 4, KEY, classes=range(10), trusted=TRUSTED)

    heard = []
    once = teachers().fit(X[TRAIN], Y[TRAIN], folder=tmp_path, advance=heard.append).votes(X[TEST])
    assert len(heard) == len(list(tmp_path.glob("*.skops"))) == 4
    again = teachers().fit(X[TRAIN], Y[TRAIN], folder=tmp_path, advance=heard.append).votes(X[TEST])
    assert len(heard) == 4
    assert (once == again).all()
    assert np.mean(once == Y[TEST][:, None]) > 0.75  # seeded


def test_as_the_student_that_is_published():
    model = PrivateClassifier(
        small(), student=small(epochs=50), epsilon=1000.0, n_teachers=5, mechanism="gnmax", classes=range(10)
    )
    model.fit(X[:900], Y[:900], X[900:1200])
    assert model.score(X[TEST], Y[TEST]) > 0.7  # the noise is far below one vote
    stored = io.BytesIO()
    skops.io.dump(model.published(), stored)
    trusted = [*TRUSTED, "tacit.learning.classifier.PublishedClassifier"]
    assert set(skops.io.get_untrusted_types(data=stored.getvalue())) <= set(trusted)
    loaded = skops.io.loads(stored.getvalue(), trusted=trusted)
    assert (loaded.predict_proba(X[TEST]) == model.predict_proba(X[TEST])).all()


BAD = {
    "epochs must be a whole number": small(epochs=0),
    "batch must be a whole number": small(batch=0.5),
    "learning_rate must be a finite number > 0": small(learning_rate=0),
    "weight_decay must be a finite number ≥ 0": small(weight_decay=-1),
    "shape must hold 64 numbers": small(shape=(1, 28, 28)),
    "device must be a device of torch": small(device="moon"),
    "module_factory must return a torch module": NetworkClassifier(lambda *_: 3),
    "must be (128, 10), one logit for each class": NetworkClassifier(lambda n, _: torch.nn.Linear(n, 3), batch=128),
}


@pytest.mark.parametrize("message", BAD)
def test_what_cannot_be_used_is_one_line(message):
    with pytest.raises(InputError) as error:
        BAD[message].fit(X[:1280], Y[:1280])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-privacy\[torch\]'"):
        small().fit(X, Y)
