"""Learners that the recipes are made of: students of noisy counts, features, kernels, and a release of moments."""

import math
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit import InputError
from tacit.learning import (
    KernelRidgeClassifier,
    MomentClassifier,
    NetworkClassifier,
    OrientedGradients,
    PrivateClassifier,
    Propagated,
    VoteRegression,
)
from tacit.learning.columns import numbers, texts
from tacit.learning.moments import _LENGTH, _whole
from tacit.learning.students.fitting import fitted, spread_chances
from tacit.learning.students.images import distorted, small_convolutional
from tacit.theory.accounting import lattice_sigma

X, Y = load_digits(return_X_y=True)
X = X / 16
KEY = bytes(range(32))
DATA = Path(__file__).resolve().parents[1] / "data"


def expected_to_fail(estimator):
    if isinstance(estimator, VoteRegression):
        return {"check_classifiers_classes": "the label −1 means that there is none"}
    return {}


@parametrize_with_checks([KernelRidgeClassifier(), VoteRegression()], expected_failed_checks=expected_to_fail)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_vote_regression_of_labels_is_logistic_regression():
    points, labels = make_blobs(300, centers=3, cluster_std=3.0, random_state=0)
    ours = VoteRegression(penalty=0.01).fit(points, labels)
    theirs = LogisticRegression(C=1 / (0.01 * len(points)), tol=1e-8, max_iter=5000).fit(points, labels)
    np.testing.assert_allclose(ours.predict_proba(points), theirs.predict_proba(points), atol=2e-3)


def test_vote_regression_averages_noise_out_where_labels_of_noisy_counts_do_not():
    """Noise of three times the number of teachers. Seeded: it cannot fail by chance."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(20_000, 5))
    share = 1 / (1 + np.exp(-(points @ [2.0, -1.0, 0.5, 0.0, 0.0] - 2.5)))
    votes = rng.binomial(100, share)
    counts = np.stack([100 - votes, votes], axis=1) + np.rint(rng.normal(scale=300, size=(len(points), 2)))
    student = VoteRegression(penalty=1e-3).fit(points, np.argmax(counts, axis=1), counts=counts)
    blunt = LogisticRegression().fit(points, np.argmax(counts, axis=1))
    winner = (share > 0.5).astype(int)
    assert np.mean(student.predict(points) == winner) > 0.97
    assert np.mean(np.abs(student.predict_proba(points)[:, 1] - share)) < 0.06
    assert np.mean(np.abs(blunt.predict_proba(points)[:, 1] - share)) > 0.2


def test_vote_regression_leaves_out_points_that_have_no_answer():
    points, labels = make_blobs(60, centers=2, random_state=1)
    counts = np.where(np.eye(2)[labels] == 1, 90, 10)
    known = np.arange(60) < 40
    spoilt = np.where(known[:, None], counts, [[1000, 0]])
    student = VoteRegression().fit(points, np.where(known, labels, -1), counts=spoilt)
    alone = VoteRegression().fit(points[known], labels[known], counts=counts[known])
    np.testing.assert_allclose(student.weights_, alone.weights_, atol=1e-6)
    with pytest.raises(InputError, match="must have one label at least"):
        VoteRegression().fit(points, np.full(60, -1))


def test_propagation_follows_the_neighbours_of_the_features():
    """Two circles whose points alternate in the plane but lie apart in their radius."""
    angle = np.linspace(0, 40, 400)
    radius = np.where(np.arange(400) % 2, 1.0, 1.05)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    truth, labels = np.arange(400) % 2, np.full(400, -1)
    labels[[0, 1]] = truth[[0, 1]]
    by_radius = FunctionTransformer(
        lambda rows: np.stack([1e3 * np.linalg.norm(rows, axis=1), np.arctan2(*rows.T)], axis=1)
    )
    student = Propagated(KernelRidgeClassifier(gamma=1e3), features=by_radius, alpha=0.99, iterations=400)
    assert np.array_equal(student.fit(points, labels).propagated_, truth)
    assert not np.array_equal(student.set_params(features=None).fit(points, labels).propagated_, truth)


class Seeing(LogisticRegression):
    """A classifier that sees one coordinate of a point."""

    def transform(self, X):  # noqa: N803
        return X[:, :1]


def test_labels_are_spread_anew_over_what_a_classifier_has_learned_to_see():
    # Two pairs on each side of zero; the second coordinate joins each pair with one of the other side.
    points = np.array([[1, 0], [1, 10], [2, 20], [2, 30], [-1, 10.1], [-1, 0.1], [-2, 30.1], [-2, 20.1]], dtype=float)
    labels, sides = np.array([0, -1, 0, -1, 1, -1, 1, -1]), [0, 0, 0, 0, 1, 1, 1, 1]
    student = Propagated(neighbors=1).fit(points, labels)
    assert student.propagated_.tolist() == [0, 1, 0, 1, 1, 0, 1, 0]
    assert student.set_params(learned=Seeing(), neighbors=3).fit(points, labels).propagated_.tolist() == sides
    assert Propagated(learned=Seeing()).fit(points, np.zeros(8, dtype=int)).predict(points).tolist() == [0] * 8
    # The same where no count favours class 1 of three.
    counts = np.where(np.eye(3)[2 * labels] == 1, 9, 1)
    student.fit(points, np.where(labels < 0, -1, 2 * labels), counts=counts)
    assert student.propagated_.tolist() == [2 * side for side in sides]


def test_what_has_learned_must_show_what_it_sees():
    with pytest.raises(InputError, match="learned must have transform"):
        Propagated(learned=LogisticRegression()).fit(X, Y)


def test_features_are_fitted_to_public_points_and_seen_by_teachers_alone():
    private, public = X[:900], X[900:]
    model = PrivateClassifier(
        KernelRidgeClassifier(), epsilon=20.0, n_teachers=10, mechanism="gnmax", queries=60, features=PCA(12), key=KEY
    ).set_params(classes=range(10))
    model.set_params(student=LogisticRegression(max_iter=500)).fit(private, Y[:900], public)
    np.testing.assert_allclose(model.features_.mean_, public.mean(axis=0))
    assert model.teachers_.votes(model.features_.transform(public[:5])).shape == (5, 10)
    assert model.student_.n_features_in_ == 64


class Strict(LogisticRegression):
    """As gradient boosting of other packages is: classes must be 0, 1, 2 and so on."""

    def fit(self, X, y):  # noqa: N803
        assert (np.unique(y) == np.arange(len(np.unique(y)))).all()
        return super().fit(X, y)


def test_a_class_that_no_answer_names_leaves_no_gap_for_the_student():
    """Class 1 of three is never answered, and some records have no answer at all."""
    points, labels = make_blobs(300, centers=3, random_state=0)
    answers = np.where(labels == 1, -1, labels)
    student = fitted(Strict(), points, answers)
    known = answers >= 0
    assert (student.predict(points[known]) == labels[known]).mean() > 0.9
    assert student.classes_.tolist() == [0, 2]
    chances = spread_chances(student, points, classes=3)
    assert (chances[:, 1] == 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("votes", "students.VoteRegression"),
        ("propagated", "students.Propagated"),
        ("kernel", "kernels.KernelRidgeClassifier"),
    ],
)
def test_files_of_earlier_versions_go_on_loading(name, kind):
    """Published by tacit 0.1, whose modules lay elsewhere; their types are listed as its results.json did."""
    trusted = ["tacit.learning.classifier.PublishedClassifier", f"tacit.learning.{kind}"]
    loaded = skops.io.load(DATA / f"{name}.skops", trusted=trusted)
    means = 2 * np.eye(3, 4)
    assert loaded.predict(means).tolist() == [0, 1, 2]
    assert loaded.guarantee_.value == 1000
    assert skops.io.get_untrusted_types(data=skops.io.dumps(loaded)) == sorted(
        {trusted[0], f"{type(loaded.student).__module__}.{type(loaded.student).__name__}"}
    )


def test_kernel_ridge_is_the_solution_of_its_system():
    points, labels = make_blobs(30, centers=3, random_state=2)
    model = KernelRidgeClassifier(gamma=0.3, alpha=0.2).fit(points, labels)
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    weights = np.linalg.solve(np.exp(-0.3 * squares) + 0.2 * np.eye(30), 2 * np.eye(3)[labels] - 1)
    np.testing.assert_allclose(model.ridge_.dual_coef_, weights, atol=1e-8)


def naive_gradients(image, cell, orientations):
    side = len(image)
    found = np.zeros((side // cell, side // cell, orientations))
    for i in range(side):
        for j in range(side):
            down = image[i + 1, j] - image[i - 1, j] if 0 < i < side - 1 else 0.0
            right = image[i, j + 1] - image[i, j - 1] if 0 < j < side - 1 else 0.0
            turn = (math.atan2(down, right) / (2 * math.pi) * orientations) % orientations
            low = math.floor(turn) % orientations
            share = turn - math.floor(turn)
            found[i // cell, j // cell, low] += (1 - share) * math.hypot(down, right)
            found[i // cell, j // cell, (low + 1) % orientations] += share * math.hypot(down, right)
    rows = np.sqrt(found.ravel())
    return rows / np.linalg.norm(rows)


def test_oriented_gradients_are_the_definition():
    images = np.random.default_rng(0).random((5, 64))
    found = OrientedGradients(upright=False).fit_transform(images)
    np.testing.assert_allclose(found, [naive_gradients(row.reshape(8, 8), 4, 8) for row in images], atol=1e-12)
    assert np.array_equal(OrientedGradients(upright=False).fit_transform(np.zeros((1, 64))), np.zeros((1, 32)))


def test_oriented_gradients_of_an_image_do_not_depend_on_others():
    model = OrientedGradients().fit(X)
    together = model.transform(X)
    np.testing.assert_array_equal(together[1:], model.transform(X[1:]))
    np.testing.assert_array_equal(together[:300], np.concatenate([model.transform(row[None]) for row in X[:300]]))


def test_a_text_does_not_depend_on_the_records_before_it():
    for first in (True, 1, 1.0):
        assert texts(np.array([first, 1, True], dtype=object))[1:] == ["1", "true"]


def test_a_whole_number_beyond_all_floats_is_none_as_in_a_file():
    huge = np.array([10**400, "3", -(10**400), 1e400], dtype=object)
    np.testing.assert_array_equal(numbers(huge), [np.nan, 3.0, np.nan, np.nan])


def test_oriented_gradients_need_no_fit():
    np.testing.assert_array_equal(OrientedGradients().transform(X[:5]), OrientedGradients().fit(X).transform(X[:5]))
    with pytest.raises(InputError, match="must be square images"):
        OrientedGradients().transform(X[:5, :63])


def test_counts_that_favour_no_class_are_refused():
    with pytest.raises(InputError, match="counts must favour some class somewhere"):
        Propagated().fit(X[:50], Y[:50], counts=np.full((50, 10), 7))


def test_a_leaning_stroke_is_set_upright():
    straight, leaning = np.zeros((28, 28)), np.zeros((28, 28))
    for row in range(4, 24):
        straight[row, 13:15] = 1
        leaning[row, 13 + (row - 13) // 2 : 15 + (row - 13) // 2] = 1
    rows = np.stack([straight.ravel(), leaning.ravel()])
    apart = [
        float(np.linalg.norm(np.subtract(*OrientedGradients(upright=upright).fit_transform(rows))))
        for upright in (False, True)
    ]
    assert apart[1] < 0.6 * apart[0]


@pytest.mark.parametrize(("width", "cell"), [(63, 1), (64, 3)])
def test_images_that_are_not_square_are_refused(width, cell):
    with pytest.raises(InputError, match="must be square images whose side is a multiple of cell"):
        OrientedGradients(cell=cell).fit(np.zeros((2, width)))


def test_the_small_network_learns_digits_from_distorted_images():
    """Seeded; a net that guesses is right on a tenth."""
    model = NetworkClassifier(
        small_convolutional, epochs=6, learning_rate=3e-3, shape=(1, 8, 8), augment=distorted, random_state=0
    )
    assert np.mean(model.fit(X[:1200], Y[:1200]).predict(X[1200:]) == Y[1200:]) > 0.85


def test_a_record_moves_the_sums_by_no_more_than_the_guarantee_says():
    rows = np.random.default_rng(0).normal(size=(500, 40))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    whole = _whole(rows)
    assert whole.dtype == np.int64
    assert ((whole**2).sum(axis=1) <= _LENGTH**2).all()
    np.testing.assert_allclose(whole / _LENGTH, rows, atol=1 / _LENGTH)
    assert not _whole(rows * (1 + 1e-3)).any(), "rows that are too long must not count"
    for bad in (np.nan, np.inf, -np.inf, 1e300, 2.0**63 / _LENGTH, 2.0**32 / _LENGTH):  # squares of the last wrap to 0
        assert not _whole(np.array([[bad, 0.5]])).any()


def test_a_record_that_its_features_cannot_bear_moves_nothing():
    """A square root of −1 is no number, and would be some huge whole one. The noise alone reaches 30 σ at most."""
    public = np.random.default_rng(0).random((200, 2))
    labels = np.arange(200) % 2
    model = MomentClassifier(epsilon=1.0, features=FunctionTransformer(np.sqrt), ridge=1.0, classes=[0, 1])
    with np.errstate(invalid="ignore"):
        records = np.vstack([public, [[-1.0, 1e40]]])
        fitted = model.fit(records, np.append(labels, 1), public, allow_overlap=True)
    assert np.abs(fitted.weights_).max() < 30 * lattice_sigma(1.0, 1e-5, sensitivity=_LENGTH) / _LENGTH + 1000
    assert [text for text in fitted.guarantee_.assumed(checked_by="caller") if "on its own" in text]


def test_moments_with_a_large_budget_are_ridge_regression():
    model = MomentClassifier(epsilon=1e3, delta=1e-5).fit(X[:900], Y[:900], X[900:1400])
    values = model.decision_function(X)
    if len(model.classes_) == 2:
        values = np.column_stack([-values, values])
    np.testing.assert_array_equal(model.classes_[values.argmax(axis=1)], model.predict(X))
    plain = RidgeClassifier(alpha=1.0).fit(X[:900], Y[:900])
    ours, theirs = (np.mean(fitted.predict(X[1400:]) == Y[1400:]) for fitted in (model, plain))
    assert ours > theirs - 0.05
    assert model.guarantee_.value == 1e3
    assert model.guarantee_.detail["delta"] <= 1e-5


def test_the_noise_of_moments_is_what_the_guarantee_says():
    """2100 entries: by Laurent and Massart their mean square is off σ² by 26 % with probability below 1e-7."""
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(50, 209)), np.arange(50) % 10
    model = MomentClassifier(epsilon=0.5, delta=1e-5, ridge=1.0, classes=range(10))
    model.fit(points, labels, points, allow_overlap=True)
    rows = model._rows(points)
    covariance = rows.T @ rows / len(rows)
    system = covariance + np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    sums = np.stack([_whole(rows)[labels == label].sum(axis=0) for label in range(10)])
    noise = (system @ model.weights_).T * _LENGTH - sums
    assert noise.size == 2100
    np.testing.assert_allclose(noise, np.rint(noise), atol=1e-3)
    sigma = lattice_sigma(0.5, 1e-5, sensitivity=_LENGTH)
    assert np.mean(noise**2) == pytest.approx(sigma**2, rel=0.26)


def test_moments_refuse_labels_that_were_not_listed():
    with pytest.raises(InputError, match="y must hold labels among classes alone") as refusal:
        MomentClassifier(classes=[0, 1]).fit(X[:50], Y[:50], X[50:])
    assert not any(str(label) in str(refusal.value) for label in range(10))
    with pytest.raises(InputError, match="classes must not be empty"):
        MomentClassifier(classes=[]).fit(X[:50], Y[:50], X[50:])


@pytest.mark.parametrize("delta", [1e-5, 5e-324])
def test_moments_refuse_a_budget_too_small_for_their_noise_and_take_the_least_that_is_not(delta):
    with pytest.raises(InputError, match=r"epsilon must be a finite number ≥ 1e-05 and .* use about 1"):
        MomentClassifier(epsilon=9e-6, delta=delta, classes=range(10)).fit(X[:50], Y[:50], X[50:])
    least = MomentClassifier(epsilon=1e-5, delta=delta, classes=range(10)).fit(X[:50], Y[:50], X[50:])
    assert least.guarantee_.value == 1e-5
