"""The student is chosen by released answers: not worse than the learner beyond noise, and at no cost of privacy."""

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tacit.learning import GNMax, PrivateClassifier, Propagated
from tacit.learning.students import choosing
from tacit.learning.students.choosing import LEARNER, fitted_student
from tacit.learning.students.fitting import UNLABELLED

X, Y = load_digits(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)


def noisy(y, share, *, classes=10, seed=0):
    """Labels of which this share were drawn at random."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(y)) < share, rng.integers(0, classes, len(y)), y)


def test_noise_calls_for_another_student_than_a_tree():
    """Seeded: it cannot fail by chance."""
    labels = noisy(Y[:600], 0.4)
    student, choice = fitted_student(TREE, X[:600], labels, None, features=None)
    plain = TREE.fit(X[:600], labels)
    assert choice.chosen != LEARNER
    assert choice.agreement[choice.chosen] - choice.agreement[LEARNER] > choice.errors[choice.chosen]
    assert choice.agreement[choice.chosen] == max(choice.agreement.values())
    assert student.score(X[600:], Y[600:]) > plain.score(X[600:], Y[600:]) + 0.2
    assert f"{choice.answers} answers" in choice.reason


class First(ClassifierMixin, BaseEstimator):
    """Names the first class, whatever it is asked."""

    def fit(self, X, y):  # noqa: ARG002, N803
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):  # noqa: N803
        return np.zeros(len(X), dtype=np.int64)


def test_figures_are_shares_of_answers_left_out():
    """A learner that names the first class always is right on its share, and others' differences are paired."""
    labels = noisy(Y[:300] % 3, 0.3, classes=3)
    _, choice = fitted_student(First(), X[:300], labels, None, features=None)
    assert choice.agreement[LEARNER] == np.mean(labels == 0)
    for name, error in choice.errors.items():
        assert 0 < error < 2 / np.sqrt(300), name


def test_the_learner_is_kept_where_nobody_is_better():
    """All answers are true and a linear rule holds: nobody is ahead of logistic regression by a standard error."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 2))
    labels = (points[:, 0] > 0).astype(np.int64)
    student, choice = fitted_student(LogisticRegression(C=1e4), points, labels, None, features=None)
    assert choice.chosen == LEARNER
    assert type(student) is LogisticRegression
    assert "not ahead" in choice.reason


def test_equals_do_not_take_the_learners_place():
    """Nobody can learn noise: over seeded answers, the learner is kept more often than not."""
    kept = 0
    for seed in range(12):
        points = np.random.default_rng(seed).normal(size=(200, 3))
        labels = noisy(np.zeros(200, dtype=np.int64), 1.0, classes=2, seed=seed)
        _, choice = fitted_student(LogisticRegression(), points, labels, None, features=None)
        kept += choice.chosen == LEARNER
    assert kept > 6


@pytest.mark.parametrize("labels", [np.arange(49) % 2, np.r_[np.zeros(200), np.ones(4)], np.zeros(100)])
def test_few_answers_keep_the_learner(labels):
    points = X[: len(labels)]
    _, choice = fitted_student(TREE, points, labels.astype(np.int64), None, features=None)
    assert (choice.chosen, choice.answers, choice.agreement) == (LEARNER, 0, {})
    assert "would take 50 answers" in choice.reason


def test_points_without_an_answer_are_not_counted():
    labels = noisy(Y[:600], 0.4)
    labels[::2] = UNLABELLED
    _, choice = fitted_student(TREE, X[:600], labels, None, features=None)
    assert choice.answers == 300


def test_the_same_answers_lead_to_the_same_choice():
    """Also where nobody seeded the learner, and whatever the global state of numpy is."""
    labels = noisy(Y, 0.5)
    found = []
    for seed in range(2):
        np.random.seed(seed)  # noqa: NPY002
        found.append(fitted_student(DecisionTreeClassifier(splitter="random"), X, labels, None, features=None)[1])
    assert found[0] == found[1]


def test_no_more_answers_than_needed_are_used(monkeypatch):
    monkeypatch.setattr(choosing, "_MOST", 200)
    _, choice = fitted_student(TREE, X, noisy(Y, 0.2), None, features=None)
    assert choice.answers == 200


def test_classes_beyond_number_keep_the_learner(monkeypatch):
    """Each has answers enough, but not among those that are used."""
    monkeypatch.setattr(choosing, "_MOST", 60)
    labels = np.arange(600) % 100
    _, choice = fitted_student(TREE, X[:600], labels, None, features=None)
    assert choice.chosen == LEARNER
    assert "so many classes" in choice.reason


class Spoilt(LogisticRegression):
    """A learner that cannot do with fewer answers."""

    def fit(self, X, y):  # noqa: N803
        if len(y) < 300:
            raise ArithmeticError
        return super().fit(X, y)


def test_a_learner_that_cannot_be_compared_is_kept():
    student, choice = fitted_student(Spoilt(max_iter=1000), X[:300], Y[:300], None, features=None)
    assert isinstance(student, Spoilt)
    assert choice.chosen == LEARNER
    assert "ArithmeticError" in choice.reason


def test_a_student_that_fails_on_other_public_records_is_not_taken():
    """A number that overflows once it is standardised, in a record that nobody was asked about."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 20)) / 10
    labels = (points.sum(axis=1) > 0).astype(np.int64)
    points[-1], labels[-1] = 1.7e308, UNLABELLED
    student, choice = fitted_student(First(), points, labels, None, features=None)
    assert choice.chosen == LEARNER
    assert "fails on some public records" in choice.reason
    assert len(student.predict(points)) == 400


def test_gaps_that_only_the_learner_takes_keep_it():
    points = np.array(X[:600])
    points[::7, 3] = np.nan
    student, choice = fitted_student(TREE, points, noisy(Y[:600], 0.4), None, features=None)
    assert choice.chosen == LEARNER
    assert "gaps" in choice.reason
    assert len(student.predict(points)) == 600


@pytest.mark.parametrize("counts", [False, True])
def test_every_student_can_be_stored_and_holds_no_foreign_types(counts):
    labels = noisy(Y[:300] % 3, 0.1, classes=3)
    votes = 50 * np.eye(3, dtype=np.int64)[labels] if counts else None
    for start in (TREE, Propagated()):
        for name, student in choosing._others(start, features=None, counts=counts).items():
            learned = choosing.fit(student, X[:300], labels, votes)
            assert learned.predict_proba(X[:5]).shape == (5, 3), name
            stored = skops.io.dumps(learned)
            held = skops.io.get_untrusted_types(data=stored)
            spreads = isinstance(start, Propagated)
            assert set(held) <= {f"tacit.learning.students.{kind}" for kind in ("Propagated", "VoteRegression")}, name
            assert counts or spreads or not held, name
            again = skops.io.loads(stored, trusted=held)
            assert np.array_equal(again.predict(X[:300]), learned.predict(X[:300]))


def test_the_classifier_says_what_it_chose_and_a_named_student_is_not_exchanged():
    options = {"epsilon": 100.0, "n_teachers": 20, "mechanism": "gnmax", "queries": 200, "classes": range(10)}
    options |= {"random_state": 0, "key": bytes(32)}
    model = PrivateClassifier(TREE, **options).fit(X[:1000], Y[:1000], X[1000:1400])
    assert model.student_choice_.chosen != LEARNER
    assert model.student_choice_.answers == 200
    named = PrivateClassifier(TREE, student=TREE, **options).fit(X[:1000], Y[:1000], X[1000:1400])
    assert named.student_choice_ is None
    assert type(named.student_) is DecisionTreeClassifier
    assert model.score(X[1400:], Y[1400:]) > named.score(X[1400:], Y[1400:])
    gap = np.full((1, X.shape[1]), np.nan)
    assert len(named.predict(gap)) == 1
    with pytest.raises(ValueError, match="contains NaN"):  # which the chosen student does not take
        model.predict(gap)


def test_features_and_noisy_counts_are_used_where_they_are_there():
    options = {"features": StandardScaler(), "n_teachers": 20, "classes": range(10), "random_state": 0}
    counted = GNMax(epsilon=50.0, delta=1e-5, queries=200, counts=True)
    model = PrivateClassifier(TREE, epsilon=50.0, mechanism=counted, **options)
    model.fit(X[:1000], Y[:1000], X[1000:1400])
    assert "the learner on features" in model.student_choice_.agreement
    near = PrivateClassifier(mechanism="neighbours", epsilon=8.0, classes=range(10), random_state=0)
    near.fit(X[:1100] / 16, Y[:1100], X[1100:1500] / 16)
    assert "vote regression" in near.student_choice_.agreement
    assert near.score(X[1500:] / 16, Y[1500:]) > 0.6
