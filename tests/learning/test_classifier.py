"""A classifier that may be published: scikit-learn's contract, real digits, and what must not leave.

Teachers are seeded by their key; the noise is the operating system's, so thresholds below may fail by chance: each
says how rarely.
"""

import contextlib
import copy
import io
import math
import pickle
import shutil
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import skops.io
from noises import hockey_stick, law_of
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit import BudgetSpentError, Comparison, InputError
from tacit.learning import (
    GNMax,
    MomentClassifier,
    PrivateClassifier,
    PrivateMultiLabelClassifier,
    Propagated,
    SparseVector,
    Teachers,
    medoids,
    membership_attack,
    private_count,
    private_error,
    votes_to_flip,
)
from tacit.learning.choice import choice
from tacit.learning.mechanisms.cases import margins
from tacit.learning.owners import owners
from tacit.learning.shares import Shares
from tacit.learning.students.fitting import takes_unlabelled
from tacit.ledger import Ledger
from tacit.runtime import run_folder
from tacit.theory.learnability import printed_refusals

KEY = bytes(range(32))

X, Y = load_digits(return_X_y=True)
X = X / 16
ORDER = np.random.default_rng(0).permutation(len(X))
PRIVATE, PUBLIC, HELD = ORDER[:1100], ORDER[1100:1500], ORDER[1500:]
NEAREST = KNeighborsClassifier(1)
LINEAR = LogisticRegression(C=10, max_iter=1000)


def digits(**options):
    """A classifier of digits, and what it was fitted on."""
    model = PrivateClassifier(NEAREST, key=KEY, random_state=0, classes=range(10), **options)
    return model.fit(X[PRIVATE], Y[PRIVATE], X[PUBLIC])


def blobs(n, *, seed=0):
    """Two classes far apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    return rng.normal(size=(n, 2)) + 8 * y[:, None], y


ELSEWHERE, _ = blobs(200, seed=1)
"""Public points, none of which is private."""

TWICE = "it fits twice and compares; fresh noise is what privacy is made of"
FIT_TWICE = dict.fromkeys(
    ("check_fit_idempotent", "check_classifier_data_not_an_array", "check_supervised_y_2d"), TWICE
)
TOO_FEW = {"check_fit2d_1feature": "classes are found with noise, and ten records are too few for that"}
MARKED = {"check_classifiers_classes": "its labels are −1 and 1, and −1 means 'no label' here"}


def exceptions(estimator):
    """The checks that may fail, and why; docs/learning.md lists them."""
    if isinstance(estimator, Propagated):
        return MARKED
    return {**FIT_TWICE, **TOO_FEW}


@parametrize_with_checks(
    [
        PrivateClassifier(epsilon=1000.0, key=KEY),
        PrivateClassifier(GaussianNB(), student=GaussianNB(), epsilon=1000.0, mechanism="gnmax", key=KEY),
        Propagated(),
    ],
    expected_failed_checks=exceptions,
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def test_digits_from_noisy_counts():
    """15 fits had a mean of 0.885 and a standard deviation of 0.015: the threshold is 12 of them away."""
    model = digits(epsilon=8.0, n_teachers=66, mechanism="gnmax", student=Propagated(LINEAR), queries=100)
    assert model.score(X[HELD], Y[HELD]) > 0.7
    assert len(model.answered_) == 100
    assert model.noisy_counts_.shape == (400, 10)
    assert np.array_equal(model.labels_[model.answered_], model.noisy_counts_[model.answered_].argmax(axis=1))
    assert model.guarantee_.value == 8
    assert LINEAR.fit(X[PRIVATE], Y[PRIVATE]).score(X[HELD], Y[HELD]) > 0.95


def test_labels_of_gnmax_are_as_right_as_its_noise_allows():
    """False alarm below exp(−2·100·0.25²) = 4e-6, by Hoeffding."""
    model = digits(epsilon=8.0, n_teachers=33, mechanism="gnmax", student=LINEAR, queries=100)
    counts = model.teachers_.counts(X[PUBLIC][model.answered_])
    sigma = GNMax(epsilon=8.0, delta=1e-5, queries=100).sigma
    rng = np.random.default_rng(0)
    noisy = counts + rng.normal(scale=sigma, size=(2000, *counts.shape))
    expected = np.mean(noisy.argmax(axis=2) == Y[PUBLIC][model.answered_])
    assert expected > 0.7
    assert np.mean(model.labels_[model.answered_] == Y[PUBLIC][model.answered_]) > expected - 0.25
    assert model.noisy_counts_ is None


def test_confident_gnmax_refuses_and_answers():
    """15 fits had 47 ± 5 answers and an accuracy of 0.83 ± 0.04: all thresholds are 7 standard deviations away."""
    model = digits(epsilon=8.0, n_teachers=66, mechanism="confident-gnmax", student=Propagated(LINEAR), queries=100)
    assert 10 <= len(model.answered_) <= 95
    assert len(model.refused_)
    assert (model.labels_[model.refused_] == -1).all()
    assert not set(model.answered_) & set(model.refused_)
    assert model.score(X[HELD], Y[HELD]) > 0.5


def test_stable_answers_are_free():
    """Zeros and ones: all teachers agree. Each stable query is refused with probability below 1e-4."""
    chosen = np.flatnonzero(Y < 2)
    rng = np.random.default_rng(1)
    rng.shuffle(chosen)
    private, public, held = chosen[:260], chosen[260:310], chosen[310:]
    model = PrivateClassifier(
        NEAREST, epsilon=8.0, n_teachers=26, mechanism="svt", refusals=1, classes=[0, 1], key=KEY, queries="all"
    ).fit(X[private], Y[private], X[public])
    distance = votes_to_flip(model.teachers_.counts(X[public]))
    stable = int(np.argmin(np.append(distance >= 11, False)))
    assert stable >= 5
    assert len(model.answered_) >= stable
    assert (model.labels_[model.answered_] == Y[public][model.answered_]).all()
    if len(np.unique(model.labels_[model.answered_])) == 2:
        assert model.score(X[held], Y[held]) > 0.8


def test_text_labels_and_classes_that_never_occur():
    points, y = blobs(300)
    names = np.array(["cat", "dog"])[y]
    model = PrivateClassifier(epsilon=100.0, classes=["ant", "cat", "dog"], key=KEY).fit(points, names, ELSEWHERE[:50])
    assert set(model.predict(points)) == {"cat", "dog"}
    assert model.score(points, names) > 0.95
    chances = model.predict_proba(points)
    assert chances.shape == (300, 3)
    assert (chances[:, 0] == 0).all()
    assert np.allclose(chances.sum(axis=1), 1)
    assert set(model.labels_) <= {-1, 1, 2}
    with pytest.raises(InputError, match="classes must not be empty"):
        PrivateClassifier(classes=[]).fit(points, names, ELSEWHERE[:50])
    with pytest.raises(InputError, match="y must hold labels among classes alone") as refusal:
        PrivateClassifier(classes=["cat", "cow"]).fit(points, names, ELSEWHERE[:50])
    assert "dog" not in str(refusal.value)


def test_more_teachers_than_records():
    points, y = blobs(60)
    model = PrivateClassifier(NEAREST, epsilon=200.0, n_teachers=500, mechanism="gnmax", queries=20, classes=[0, 1])
    model.fit(points, y, ELSEWHERE[:40])
    assert len(model.answered_) == 20
    votes = model.teachers_.votes(points)
    assert (votes != -1).any(axis=0).sum() <= 60
    assert set(np.unique(votes)) == {-1, 0, 1}
    assert set(model.predict(points)) <= {0, 1}


def test_one_class_alone_is_always_predicted():
    points, _ = blobs(60)
    model = PrivateClassifier(LINEAR, epsilon=1e4, n_teachers=20, mechanism="gnmax", classes=["no", "yes"])
    model.fit(points, ["yes"] * 60, ELSEWHERE[:30])
    assert (model.predict(points) == "yes").all()
    assert (model.predict_proba(points) == [0, 1]).all()


def test_nan_needs_learners_that_take_it():
    points, y = blobs(200)
    points[::9, 0] = np.nan
    boosted = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3)
    wanted = {"epsilon": 1e4, "n_teachers": 4, "mechanism": "gnmax", "classes": [0, 1], "queries": "all"}
    public = ELSEWHERE[:100].copy()
    public[::9, 0] = np.nan
    model = PrivateClassifier(boosted, **wanted).fit(points, y, public)
    assert model.score(points, y) > 0.95  # the noise is below one vote of four
    for estimator, student in ((LINEAR, None), (boosted, LINEAR)):
        with pytest.raises(ValueError, match="NaN"):
            PrivateClassifier(estimator, student=student, **wanted).fit(points, y, public)


def test_labels_alone_are_protected_without_public_points():
    points, y = blobs(400)
    model = PrivateClassifier(epsilon=100.0, key=KEY).fit(points, y)
    compared, first, *_ = model.guarantee_.assumptions
    assert compared.text == "it is enough to compare data that differ by one label changed"
    assert first.text.startswith("features of all records are treated as public")
    assert first.checked_by == "caller"
    assert model.guarantee_.quantity == "privacy loss ε of one label at δ = 1e-05"
    assert model.guarantee_.detail["teachers"] == 15  # of 188 records, at least 10 each; features tell how many
    assert not {"epsilon_count", "replaced"} & set(model.guarantee_.detail)
    quick = {"mechanism": "gnmax", "student": NEAREST}
    persons = PrivateClassifier(epsilon=100.0, **quick).fit(points, y, ids=[row // 2 for row in range(400)])
    assert persons.guarantee_.detail["neighbours"] == "all labels of one person changed"
    assert 120 < len(model.labels_) < 280
    assert model.score(points, y) > 0.9
    public = PrivateClassifier(epsilon=100.0, **quick).fit(points, y, ELSEWHERE[:50])
    assert public.guarantee_.quantity == "privacy loss ε at δ = 1e-05"
    assert public.guarantee_.detail["neighbours"] == "one record added or removed"
    texts = [assumption.text for assumption in public.guarantee_.assumptions]
    assert not any("classes that were named" in text for text in texts)  # they were found with noise
    assert not any("number of private records" in text for text in texts)  # it is counted with noise
    stated = PrivateClassifier(epsilon=100.0, classes=[0, 1], n_teachers=20, **quick).fit(points, y, ELSEWHERE[:50])
    compared, classes, *others = stated.guarantee_.assumptions
    assert compared.text == "it is enough to compare data that differ by one record added or removed"
    assert classes.text.startswith("the classes that were named, directly or by a model that proposes labels, are ")
    assert tuple(others) == GNMax(epsilon=1.0, delta=1e-5, queries=1).guarantee.assumptions


def votes_after(y, *, labels_only):
    points, _ = blobs(200)
    options = {"mechanism": "gnmax", "classes": [0, 1], "queries": 5, "student": NEAREST}
    model = PrivateClassifier(NEAREST, epsilon=100.0, n_teachers=12, key=KEY, **options)
    model.fit(points, y, None if labels_only else ELSEWHERE)
    return model.teachers_.votes(points)


@pytest.mark.parametrize("labels_only", [True, False])
def test_changing_a_label_changes_one_teacher(labels_only):
    """A hash that read labels would move the record to another teacher."""
    _, y = blobs(200)
    before = votes_after(y, labels_only=labels_only)
    changed = 0
    for row in range(6):
        other = y.copy()
        other[row] = 1 - other[row]
        differing = (before != votes_after(other, labels_only=labels_only)).any(axis=0).sum()
        assert differing <= 1
        changed += differing
    assert changed


def test_the_error_of_teachers_is_estimated_for_a_share_of_the_budget():
    """The estimate's noise exceeds 0.2 with probability below exp(−0.2·30·9) = 4e-24."""
    points, y = blobs(600)
    model = PrivateClassifier(
        NEAREST, epsilon=100.0, n_teachers=30, mechanism="svt", error_share=0.09, classes=[0, 1], key=KEY
    ).fit(points, y, ELSEWHERE[:80])
    assert model.error_.value < 0.2
    detail = model.guarantee_.detail
    assert detail["epsilon_error"] + detail["epsilon_mechanism"] <= 100
    assert model.guarantee_.value == 100
    assert detail["refusals"] >= 1
    assert "private estimate" in model.choice_
    with pytest.raises(InputError, match="error_share must be 0 unless"):
        PrivateClassifier(mechanism="gnmax", error_share=0.1).fit(points, y)


def test_the_number_of_records_is_private_and_counted_with_noise():
    """Counted as 400 ± 100, they are given 30 teachers in six of ten fits: 32 alike have a chance below 1e-5."""
    points, y = blobs(400)
    model = PrivateClassifier(NEAREST, epsilon=1.0, mechanism="gnmax", queries=5, classes=[0, 1], student=NEAREST)
    found = {model.fit(points, y, ELSEWHERE[:20]).guarantee_.detail["teachers"] for _ in range(32)}
    assert len(found) > 1
    detail = model.guarantee_.detail
    assert model.guarantee_.value == 1
    assert detail["epsilon_count"] == 0.01
    assert detail["epsilon_count"] + detail["epsilon_mechanism"] <= 1
    assert detail["replaced"]["epsilon"] >= 2
    assert 1e-5 * (1 + math.e) <= detail["replaced"]["delta"] < 1e-5 * (1 + math.e) * (1 + 1e-12)


def test_the_law_of_the_count_is_that_of_its_share():
    """Every value of its noise, but tails of about 1e-6: no event tells one record at ε, and some would below."""
    with_it, without = (law_of(lambda noise, n=n: private_count(n, epsilon=0.5, noise=noise)) for n in (60, 59))
    assert hockey_stick(with_it, without, 0.5) < 1e-5
    assert hockey_stick(with_it, without, 0.49) > 1e-3
    assert min(with_it) >= 1


def test_people_are_counted_where_a_person_is_protected():
    """One person more may bring any number of records. At this ε the count's noise is 0 but for 1e-40."""
    points, y = blobs(400)
    model = PrivateClassifier(NEAREST, epsilon=1e4, mechanism="gnmax", queries=5, classes=[0, 1])
    model.fit(points, y, ELSEWHERE[:20], ids=[row % 25 for row in range(400)])
    assert model.guarantee_.detail["teachers"] == 5
    assert model.guarantee_.detail["neighbours"] == "all records of one person added or removed"


def test_the_count_is_paid_for_once_and_drawn_once(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=2, delta=1e-5)
    points, y = blobs(300)
    model = PrivateClassifier(epsilon=2.0, mechanism="gnmax", queries=20, ledger=ledger, classes=[0, 1])
    first, again = (
        clone(model).set_params(ledger=ledger).fit(points, y, ELSEWHERE[:40], folder=tmp_path / "private").guarantee_
        for _ in range(2)
    )
    assert first.detail["teachers"] == again.detail["teachers"]
    count, answers = ledger.entries()
    assert (str(count.epsilon), str(count.delta)) == ("0.02", "0")
    assert (str(answers.epsilon), str(answers.delta)) == ("1.98", "0.00001")
    assert count.neighbours == answers.neighbours == "one record added or removed"
    assert float(ledger.remaining.epsilon) == 0
    broken = tmp_path / "broken"
    broken.mkdir()
    task = {"epsilon": 0.01, "delta": 0.0, "neighbours": "one record added or removed", "ids": None}
    for content, words in (
        ({"count": -5, "task": task}, "the count in folder must be a whole number"),
        ({"count": 300}, "must belong to the same task, which differs in delta, epsilon, neighbours"),
    ):
        (broken / "count.json").unlink(missing_ok=True)
        run_folder.record(broken / "count.json", lambda content=content: content, claimed=False)
        with pytest.raises(InputError, match=words):
            PrivateClassifier(classes=[0, 1]).fit(points, y, ELSEWHERE[:40], folder=broken)


def test_a_count_serves_no_other_promise_than_the_one_it_was_drawn_for(tmp_path):
    """A run that is stopped once it has counted leaves its count in the folder: drawn at ε = 10, it tells a record."""
    points, y = blobs(400)
    people = [row % 40 for row in range(400)]
    model = PrivateClassifier(epsilon=1000.0, mechanism="gnmax", queries=5, classes=[0, 1])
    folder = tmp_path / "private"
    model.fit(points, y, ELSEWHERE[:40], ids=people, folder=folder)
    for left in folder.iterdir():
        if left.name not in ("count.json", "release.json"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    for epsilon, ids in ((0.1, people), (1000.0, None), (1000.0, [*people[::-1][:399], 39])):
        with pytest.raises(InputError, match="choose another folder"):
            model.set_params(epsilon=epsilon).fit(points, y, ELSEWHERE[:40], ids=ids, folder=folder)
    order = np.random.default_rng(0).permutation(400)
    same = [people[row] for row in order]
    model.set_params(epsilon=1000.0).fit(points[order], y[order], ELSEWHERE[:40], ids=same, folder=folder)
    assert model.guarantee_.detail["teachers"] == 6


def test_a_ledger_of_records_takes_no_labels(tmp_path):
    """What was spent on one kind of neighbours says nothing about the other."""
    points, y = blobs(300)
    for first, second in ((ELSEWHERE, None), (None, ELSEWHERE)):
        ledger = Ledger.open(tmp_path / f"{first is None}.db", epsilon=100, delta=1e-3)
        model = PrivateClassifier(epsilon=10.0, mechanism="gnmax", ledger=ledger, classes=[0, 1], n_teachers=9)
        model.fit(points, y, first)
        with pytest.raises(InputError, match="the ledger must hold entries about what this run protects alone"):
            model.fit(points, y, second)
        assert len(ledger.entries()) == 1


def test_theorem_3_2_takes_the_estimate_for_the_printed_constants():
    points, y = blobs(600)
    options = {"n_teachers": 30, "mechanism": "svt-faithful", "error_share": 0.5, "key": KEY}
    model = PrivateClassifier(NEAREST, epsilon=4000.0, **options)
    model.fit(points, y, ELSEWHERE[:80])  # at a usual ε it would take thousands of teachers
    printed = printed_refusals(model.error_.value, queries=80, failure_probability=0.05)
    assert model.guarantee_.detail["refusals"] == min(80, printed)
    assert "private estimate" in model.choice_


def test_one_record_moves_the_sum_of_errors_by_a_hundred_at_most():
    """One teacher's whole error changes: the noise is for that."""

    class Silent:
        def laplace(self, scale):
            self.scale = scale
            return 0

    silent = Silent()
    before = private_error([0, 3, 0], [5, 4, 0], epsilon=0.5, noise=silent)
    assert before.value == pytest.approx((0 + 75 + 50) / 300)
    assert 200 <= silent.scale < 200.001
    for wrong, tested in (([5, 3, 0], [5, 4, 0]), ([0, 3, 1], [5, 4, 1]), ([0, 4, 0], [5, 4, 0])):
        after = private_error(wrong, tested, epsilon=0.5, noise=silent)
        assert abs(after.value - before.value) <= 100 / 300 + 1e-12
    with pytest.raises(InputError, match="none larger than its own"):
        private_error([2], [1], epsilon=1.0)


def test_the_cost_is_spent_before_the_first_answer(tmp_path, monkeypatch):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=3, delta=1e-4)
    points, y = blobs(300)
    options = {"epsilon": 2.0, "mechanism": "gnmax", "queries": 20, "n_teachers": 17, "classes": [0, 1]}
    model = PrivateClassifier(**options, ledger=ledger, key=KEY)
    spent = []
    counts = Teachers.counts
    monkeypatch.setattr(Teachers, "counts", lambda self, *a, **k: spent.append(ledger.spent) or counts(self, *a, **k))
    model.fit(points, y, ELSEWHERE[:40])
    assert float(spent[0].epsilon) == 2
    (entry,) = ledger.entries()
    (note,) = ledger.notes(entry)
    noted = dict(zip(note.detail["points"], note.detail["answers"], strict=True))
    assert {place: model.labels_[place] for place in model.answered_} == noted
    with pytest.raises(BudgetSpentError):
        model.fit(points, y, ELSEWHERE[:40])
    assert len(spent) == 1
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "student_")
    assert len(ledger.entries()) == 1


def test_copies_spend_from_the_same_ledger(tmp_path):
    """Cross-validation clones, and may pickle: no copy may lose the ledger."""
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=100, delta=1e-3)
    points, y = blobs(200)
    model = PrivateClassifier(epsilon=10.0, mechanism="gnmax", ledger=ledger, classes=[0, 1])
    cross_val_score(pickle.loads(pickle.dumps(model)), points, y, cv=3)  # noqa: S301
    assert float(ledger.spent.epsilon) == 30


def test_what_is_published_holds_nothing_private():
    points, y = blobs(300)
    model = PrivateClassifier(epsilon=100.0, key=KEY).fit(points, y, ELSEWHERE[:60])
    assert isinstance(model.teachers_, Teachers)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        assert not hasattr(copied, "teachers_")
        assert (copied.predict(points) == model.predict(points)).all()
    published = model.published()
    assert set(vars(published)) == {"student", "classes", "guarantee_json", "columns"}
    assert published.columns is None  # of arrays
    stored = io.BytesIO()
    skops.io.dump(published, stored)
    trusted = ["tacit.learning.classifier.PublishedClassifier"]
    assert set(skops.io.get_untrusted_types(data=stored.getvalue())) <= set(trusted)
    loaded = skops.io.loads(stored.getvalue(), trusted=trusted)
    assert (loaded.predict(points) == model.predict(points)).all()
    assert np.allclose(loaded.predict_proba(points), model.predict_proba(points))
    assert loaded.guarantee_ == model.guarantee_
    with pytest.raises(InputError, match="must stay as it was released"):
        loaded.fit(points, y)
    with pytest.raises(NotFittedError):
        clone(model).published()


@pytest.mark.parametrize(
    ("student", "takes"),
    [
        (SelfTrainingClassifier(LogisticRegression()), True),
        (LabelSpreading(kernel="knn", n_neighbors=5), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (make_pipeline(StandardScaler(), LabelSpreading(kernel="knn", n_neighbors=5)), True),
        (LinearSVC(), False),
        (Propagated(neighbors=5), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_students(student, takes):
    """Ten answers, forty points without one; noise of σ below 1 on 17 unanimous votes."""
    points, y = blobs(300)
    assert takes_unlabelled(student) is takes
    model = PrivateClassifier(
        epsilon=300.0, n_teachers=17, mechanism="gnmax", student=student, queries=10, key=KEY, random_state=0
    ).fit(points, y, ELSEWHERE[:50])
    assert len(model.answered_) == 10
    assert model.score(points, y) > 0.95
    assert hasattr(model, "predict_proba") is hasattr(student, "predict_proba")


def test_counts_reach_further_than_their_argmax():
    """Every single count is drowned in noise, yet neighbours average it: the naive twin is a vote by argmax."""
    rng = np.random.default_rng(0)
    points, y = blobs(600)
    counts = np.stack([30 * (1 - y), 30 * y], axis=1) + rng.normal(scale=60, size=(600, 2))
    labels = counts.argmax(axis=1)
    assert np.mean(labels == y) < 0.75
    student = Propagated(neighbors=10).fit(points, labels, counts=counts)
    assert student.score(points, y) > 0.99


def test_points_that_no_label_reaches_are_left_out():
    points, y = blobs(60)
    labels = np.where((y == 0) & (np.arange(60) < 30), 0, -1)
    student = Propagated(neighbors=3).fit(points, labels)
    assert (student.propagated_[y == 1] == -1).all()
    assert (student.predict(points) == 0).all()


def test_medoids_are_points_one_for_each_cluster():
    centres = np.array([[0, 0], [10, 0], [0, 10]])
    points = np.concatenate([centres, *(centre + np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) for centre in centres)])
    assert medoids(points, clusters=3, random_state=0).tolist() == [0, 1, 2]
    assert medoids(points, clusters=99).tolist() == list(range(15))
    assert len(medoids(np.zeros((5, 2)), clusters=3)) == 1


def test_the_choice_is_made_without_private_votes():
    points, y = blobs(300)
    wanted = {"epsilon": 1.0, "delta": 1e-5, "teachers": 250, "points": 9000, "queries": None}
    unsure = choice("auto", lead=margins(0.8), **wanted)
    assert isinstance(unsure.mechanism, GNMax)
    assert unsure.queries == 9000
    assert unsure.mechanism.classes is None, "labels nearly keep what winners do, and their certificate can be checked"
    assert unsure.expected_right >= 0.6 * unsure.expected_answers
    agreed = choice("auto", lead=margins(np.array([[1000, 0], [999, 1]])), **{**wanted, "epsilon": 4.0})
    assert isinstance(agreed.mechanism, SparseVector)
    assert agreed.queries == 9000
    assert "No private vote was used for this" in agreed.reason
    first, second = (
        PrivateClassifier(epsilon=4.0, n_teachers=20, classes=[0, 1]).fit(points, labels, ELSEWHERE[:60])
        for labels in (y, 1 - y)
    )
    assert first.choice_ == second.choice_


def test_a_mechanism_for_two_classes_takes_no_more():
    points, y = blobs(300)
    mechanism = GNMax(epsilon=50.0, delta=1e-6, queries=15, classes=2)
    options = {"epsilon": 60.0, "n_teachers": 17, "mechanism": mechanism}
    model = PrivateClassifier(classes=[0, 1], **options).fit(points, y, ELSEWHERE[:60])
    assert "theory.winners.winner_delta" in model.guarantee_.references
    assert len(model.answered_) == 15
    with pytest.raises(InputError, match="must be for all 3 classes"):
        PrivateClassifier(classes=[0, 1, 2], **options).fit(points, y, ELSEWHERE[:60])
    with pytest.raises(InputError, match="must be named, as this mechanism is for a fixed number of them"):
        PrivateClassifier(**options).fit(points, y, ELSEWHERE[:60])  # whatever labels there are


def test_winners_are_charged_as_such_by_name():
    """Whoever learns from them, and whether classes are named or found; no counts are released."""
    points, y = blobs(300)
    for options in ({"classes": [0, 1]}, {"student": Propagated(LINEAR)}):
        model = PrivateClassifier(epsilon=60.0, n_teachers=17, mechanism="gnmax-winners", queries=15, **options)
        model.fit(points, y, ELSEWHERE[:60])
        assert "theory.winners.winner_delta" in model.guarantee_.references
        assert model.guarantee_.detail["classes"] == 2
        assert len(model.answered_) == 15
        assert model.noisy_counts_ is None
    with pytest.raises(InputError, match="epsilon must be at most 100 for gnmax-winners, got 101"):
        choice("gnmax-winners", epsilon=101.0, delta=1e-5, teachers=9, points=30, queries=20, lead=margins(0.9))
    with pytest.raises(InputError, match="queries must be at most 2000 for gnmax-winners, got 2001"):
        choice("gnmax-winners", epsilon=1.0, delta=1e-5, teachers=9, points=3000, queries=2001, lead=margins(0.9))


def test_a_mechanism_may_be_given():
    points, y = blobs(300)
    mechanism = GNMax(epsilon=50.0, delta=1e-6, queries=15)
    given = {"mechanism": mechanism, "classes": [0, 1]}
    model = PrivateClassifier(epsilon=60.0, n_teachers=17, **given).fit(points, y, ELSEWHERE[:60])
    assert len(model.answered_) == 15
    assert model.guarantee_.value == 50
    assert model.guarantee_.quantity == "privacy loss ε at δ = 1e-06"
    counted = PrivateClassifier(epsilon=60.0, **given).fit(points, y, ELSEWHERE[:60])
    assert 50.6 <= counted.guarantee_.value < 50.6 * (1 + 1e-15)
    with pytest.raises(InputError, match="n_teachers must be a number, as this mechanism leaves nothing"):
        PrivateClassifier(epsilon=50.1, **given).fit(points, y, ELSEWHERE[:60])
    with pytest.raises(InputError, match=r"mechanism\.epsilon must be a number ≤ epsilon"):
        PrivateClassifier(epsilon=40.0, **given).fit(points, y, ELSEWHERE[:60])
    found = PrivateClassifier(epsilon=60.0, n_teachers=17, mechanism=mechanism).fit(points, y, ELSEWHERE[:60])
    assert 53 <= found.guarantee_.value < 53 * (1 + 1e-15)


def test_an_id_is_one_person_whatever_type_it_has():
    """Two lists from two sources, one after the other: NumPy's strings and numbers, and Python's."""
    names = ["ann", "bob", b"eve", 7, 2**70]
    alike = [np.str_("ann"), np.str_("bob"), np.bytes_(b"eve"), np.int16(7), 2**70]
    found = owners(np.zeros((10, 1)), names + alike)
    assert found[:5] == found[5:]
    assert len(set(owners(np.zeros((4, 1)), ["7", 7, b"7", "'7'"]))) == 4
    with pytest.raises(InputError, match="ids must hold strings, bytes or whole numbers alone"):
        owners(np.zeros((1, 1)), [7.0])


def test_a_person_is_one_record_if_there_are_ids():
    points, y = blobs(200)
    ids = [f"person {row // 20}" for row in range(200)]
    model = PrivateClassifier(NEAREST, epsilon=100.0, n_teachers=8, classes=[0, 1], key=KEY)
    before = model.fit(points, y, ELSEWHERE, ids=ids).teachers_.votes(points)
    after = model.fit(points[20:], y[20:], ELSEWHERE, ids=ids[20:]).teachers_.votes(points)
    assert (before != after).any(axis=0).sum() <= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0}, "epsilon must"),
        ({"delta": 1.5}, "delta must"),
        ({"mechanism": "laplace"}, "mechanism must be one of"),
        ({"queries": 0}, "queries must"),
        ({"queries": "some"}, "queries must"),
        ({"n_teachers": 0}, "n_teachers must"),
        ({"teacher_accuracy": 0.2}, "teacher_accuracy must"),
        ({"refusals": 0}, "refusals must"),
        ({"key": b"short"}, "key must be 32 bytes"),
        ({"ledger": "ledger.db"}, "ledger must be a Ledger"),
        ({"error_share": 1.0}, "error_share must"),
        ({"mechanism": 3}, r"mechanism\.epsilon must"),
    ],
)
def test_options_that_cannot_be_used(options, words):
    points, y = blobs(60)
    with pytest.raises(InputError, match=words):
        PrivateClassifier(**options).fit(points, y, ELSEWHERE)


def test_no_answer_is_an_error_that_says_so():
    """Teachers who toss coins do not agree."""
    points, y = blobs(600)
    coins = DummyClassifier(strategy="uniform")
    model = PrivateClassifier(coins, epsilon=1.0, mechanism="svt", refusals=2, classes=[0, 1], n_teachers=200)
    with pytest.raises(InputError, match="number of answers must be at least 1"):
        model.fit(points, y, ELSEWHERE[:20])
    assert (model.labels_ == -1).all()
    assert model.refused_.tolist() == [0, 1]  # the others were not asked


@dataclass(frozen=True, kw_only=True)
class NoNoise(GNMax):
    """The winner itself."""

    def response(self, counts, session):  # noqa: ARG002
        return int(np.argmax(counts))


def test_canaries_show_a_mechanism_without_noise():
    """Without noise nothing is random but the seeded canaries; with it, a false alarm has probability below 1e-3."""
    points, y = blobs(40)
    student = KNeighborsClassifier(1)
    options = {"n_teachers": 1, "student": student, "classes": range(5), "queries": "all", "epsilon": 0.2}
    broken = PrivateClassifier(NEAREST, mechanism=NoNoise(epsilon=0.2, delta=1e-5, queries=10), **options)
    right = PrivateClassifier(NEAREST, mechanism="gnmax", **options)
    far = np.random.default_rng(3).uniform(-30, 30, size=(10, 2))
    for model, caught in ((broken, True), (right, False)):
        attack = membership_attack(model, points, y, far, runs=44, failure_probability=1e-3)
        guarantee = model.fit(points, y, far).guarantee_
        assert Comparison(guarantee=guarantee, attacks=[attack]).contradicted is caught
    with pytest.raises(InputError, match="classifier must have no ledger"):
        membership_attack(PrivateClassifier(), points, y, far)


EXACT = {
    "half": (np.float16(0.3), np.float16(1e-4)),
    "single": (np.float32(1.1), np.float32(1e-5)),
    "whole": (np.int64(1), 1e-5),
    "decimal": (Decimal("1.1"), Decimal("1e-5")),
    "fraction": (Fraction(1, 3), Fraction(1, 10**5)),
    "long": (np.longdouble(1) / 3, np.longdouble(1) / 10**5),
}


def exact(number):
    return (
        Fraction(*map(int, number.as_integer_ratio())) if hasattr(number, "as_integer_ratio") else Fraction(int(number))
    )


@pytest.mark.parametrize(("epsilon", "delta"), EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("counting", [False, True])
def test_shares_of_a_budget_of_any_type_are_floats_within_it(epsilon, delta, counting):
    shares = Shares(epsilon=epsilon, delta=delta, counting=counting, finding=True)
    amounts = (*shares.left, *shares.classes, shares.count, *shares.whole)
    assert {type(amount) for amount in amounts} == {float}
    assert Fraction(shares.left[0]) + Fraction(shares.classes[0]) + Fraction(shares.count) <= exact(epsilon)
    assert Fraction(shares.left[1]) + Fraction(shares.classes[1]) <= exact(delta)
    for whole, given in zip(shares.whole, (epsilon, delta), strict=True):
        assert float(given) * (1 - 1e-15) < whole
        assert Fraction(whole) <= exact(given)


@pytest.mark.parametrize(("epsilon", "delta"), [EXACT["half"], EXACT["decimal"]])
def test_a_budget_of_any_type_is_spent_once(epsilon, delta, tmp_path):
    points, y = blobs(3000)
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=epsilon, delta=delta)
    model = PrivateClassifier(
        epsilon=epsilon, delta=delta, mechanism="svt", error_share=type(epsilon)(0.1), classes=[0, 1], ledger=ledger
    )
    with contextlib.suppress(InputError):  # at so small an ε there may be no answer
        model.fit(points, y, ELSEWHERE[:40], folder=tmp_path / "private")
    assert exact(ledger.spent.epsilon) <= exact(epsilon)
    detail = model.guarantee_.detail
    used = (detail[name] for name in ("epsilon_mechanism", "epsilon_error", "epsilon_count"))
    assert sum(map(Fraction, used)) <= exact(epsilon)


@pytest.mark.parametrize("place", ["X", "X_public", "predict", "published"])
@pytest.mark.parametrize("kind", [MomentClassifier, PrivateClassifier, PrivateMultiLabelClassifier])
def test_masked_records_are_refused(kind, place):
    """scikit-learn would read what is masked as if it were there."""
    source = np.random.default_rng(0)
    records, public, labels = source.normal(size=(300, 3)), source.normal(size=(40, 3)), np.arange(300) % 2
    if kind is PrivateMultiLabelClassifier:
        labels = np.eye(2)[labels]
    model = kind(epsilon=20.0, delta=1e-6)
    masked = np.ma.masked_array(public, mask=public > 0)
    if place in ("predict", "published"):
        model.fit(records, labels, public)
    ways = {
        "X": lambda: model.fit(np.ma.masked_array(records, mask=records > 0), labels, public),
        "X_public": lambda: model.fit(records, labels, masked),
        "predict": lambda: model.predict(masked),
        "published": lambda: getattr(model, "published", lambda: model)().predict(masked),
    }
    with pytest.raises(
        InputError, match=f"{'X_public' if place == 'X_public' else 'X'} must be without masked entries"
    ):
        ways[place]()


@pytest.mark.parametrize("epsilon", ["1", Decimal("nan"), Decimal("sNaN"), Decimal(-1), True, np.float16("inf")])
def test_what_is_no_budget_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        PrivateClassifier(epsilon=epsilon).fit(*blobs(30), ELSEWHERE[:40])


@pytest.mark.parametrize("mechanism", ["svt", "svt-adaptive", "gate", "stable"])
def test_too_few_teachers_for_any_answer_cost_nothing(tmp_path, mechanism):
    """Two teachers can never lead by what noise asks for: it says so before it spends anything on refusals."""
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=2, delta=1e-5)
    points, y = blobs(100)
    model = PrivateClassifier(
        NEAREST, epsilon=2.0, mechanism=mechanism, n_teachers=2, ledger=ledger, classes=[0, 1], queries="all"
    )
    with pytest.raises(InputError, match=r"teachers must be enough for an answer: .* agreed on each of 40"):
        model.fit(points, y, ELSEWHERE[:40], folder=tmp_path / "private")
    assert ledger.entries() == ()
