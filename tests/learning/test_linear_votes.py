"""Votes of linear teachers by one product are those of their `predict`."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from teaching import KEY, data

from tacit.core.errors import InputError
from tacit.learning import Teachers
from tacit.learning.linear_votes import LinearVotes, is_linear


class Failing(KNeighborsClassifier):
    """Fails on queries whose first entry is large, as a foreign estimator may."""

    def predict(self, X):  # noqa: N803
        if X[0, 0] > 50:
            raise RuntimeError("words that quote a record")
        return super().predict(X)


@pytest.mark.parametrize("estimator", [LogisticRegression(), Perceptron(), SGDClassifier()], ids=repr)
def test_votes_are_those_of_predict(estimator):
    """Chunks of all kinds: all three classes, two, one, and none."""
    x, y = data(60, features=4)
    teachers = Teachers(estimator, 25, KEY, classes=range(3)).fit(x, y)
    known = [len(found) for found, _ in teachers._teachers]
    assert {1, 2, 3} <= set(known)
    queries = np.random.default_rng(3).normal(size=(300, 4))
    assert all(is_linear(model) for found, model in teachers._teachers if len(found) > 1)
    assert (teachers.standing().counts(queries) == teachers.counts(queries)).all()


def test_others_are_asked_one_by_one():
    x, y = data(90, features=4)
    for estimator in (KNeighborsClassifier(1), make_pipeline(StandardScaler(), LogisticRegression())):
        teachers = Teachers(estimator, 10, KEY, classes=range(3)).fit(x, y)
        queries = np.random.default_rng(3).normal(size=(40, 4))
        assert not is_linear(estimator)
        assert (teachers.standing().counts(queries) == teachers.counts(queries)).all()


def test_a_teacher_that_fails_abstains():
    """An error would tell of one teacher, without noise."""
    x, y = data(90, features=4)
    teachers = Teachers(Failing(1), 10, KEY, classes=range(3)).fit(x, y)
    assert teachers.standing().counts(np.full((1, 4), 100.0)).sum() == 0
    assert teachers.standing().counts(np.zeros((1, 4))).sum() == 10


def test_a_row_that_a_teacher_fails_on_spoils_no_other():
    """Others may have sent the row beside it."""
    x, y = data(90, features=4)
    teachers = Teachers(Failing(1), 10, KEY, classes=range(3)).fit(x, y)
    both = np.array([np.full(4, 100.0), np.zeros(4)])
    counts = teachers.standing().counts(both)
    assert counts.sum(axis=1).tolist() == [0, 10]
    assert (counts[1] == teachers.standing().counts(both[1:])[0]).all()
    with pytest.raises(InputError, match="must be classes of their chunks"):
        teachers.counts(both)


def test_every_teacher_has_a_place_that_no_other_decides():
    """Sums may be rounded by where they stand in a matrix, so its shape must not depend on records."""
    x, y = data(60, features=4)
    teachers = Teachers(LogisticRegression(), 25, KEY, classes=range(3)).fit(x, y)
    whole = teachers._teachers
    less = [(found, None if number == 7 else model) for number, (found, model) in enumerate(whole)]
    with_it, without = (LinearVotes(known, classes=3) for known in (whole, less))
    assert with_it._weights.shape == without._weights.shape == (4, 75)
    others = [place for place in range(75) if place // 3 != 7]
    assert (with_it._weights[:, others] == without._weights[:, others]).all()
    assert (with_it._offsets[others] == without._offsets[others]).all()


def test_stored_teachers_are_read_back(tmp_path):
    x, y = data(60, features=4)
    first = Teachers(LogisticRegression(), 25, KEY, classes=range(3)).fit(x, y, folder=tmp_path)
    queries = np.random.default_rng(3).normal(size=(100, 4))
    read = Teachers.load(tmp_path, classes=range(3))
    assert (read.counts(queries) == first.counts(queries)).all()
    with pytest.raises(InputError, match="must be the 3 that these teachers were trained for"):
        Teachers.load(tmp_path, classes=range(4))
    (tmp_path / "council.json").unlink()
    with pytest.raises(InputError, match="which tells what they vote for"):
        Teachers.load(tmp_path, classes=range(3))
