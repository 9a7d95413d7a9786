"""Classes that nobody named: found with noise, paid for, and never by a label that one record alone holds."""

import numpy as np
import pandas
import pytest
from noises import ScriptedNoise, SeededNoise
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from tacit import InputError
from tacit.learning import MomentClassifier, PrivateClassifier, Teachers
from tacit.learning.labels import Search, column, distinct, named, numbered, typed
from tacit.ledger import Ledger
from tacit.runtime import run_folder

LONE = "Ytterby syndrome"


def records(size=600, seed=0):
    """Two far groups, "ill" and "well", and one record with a label of its own."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size)
    points, labels = rng.normal(size=(size, 2)) + 8 * group[:, None], np.array(["ill", "well"], dtype=object)[group]
    labels[17] = LONE
    return points, labels


PUBLIC = np.random.default_rng(1).normal(size=(60, 2)) * 5 + 4
OPTIONS = {"epsilon": 40.0, "n_teachers": 20, "mechanism": "gnmax", "student": GaussianNB()}


@pytest.mark.parametrize("public", [PUBLIC, None])
@pytest.mark.parametrize("ids", [None, [str(row // 2) for row in range(600)]])
def test_a_label_that_one_record_holds_is_not_published(public, ids, tmp_path):
    """It is found with a chance below δ/10 = 1e-6; each of the others is missed with one below 1e-50."""
    points, labels = records()
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=40, delta=1e-5)
    model = PrivateClassifier(LogisticRegression(), ledger=ledger, **OPTIONS)
    model.fit(points, labels, public, ids=ids)
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.classes_.dtype == "<U4"  # as wide as the longest that was found
    assert LONE not in str(vars(model.published()))
    assert np.mean(model.predict(points) == labels) > 0.9
    classes, answers = ledger.entries()
    assert classes.what == "PrivateClassifier.fit, the classes with noise"
    assert (float(classes.epsilon), float(classes.delta)) == pytest.approx((2.0, 1e-6))
    assert classes.epsilon + answers.epsilon == 40
    assert model.guarantee_.value == 40
    detail = model.guarantee_.detail
    assert (detail["epsilon_classes"], detail["delta_classes"]) == pytest.approx((2.0, 1e-6))
    assert detail["epsilon_mechanism"] <= 38
    assert (detail["delta"], detail["delta_mechanism"]) == pytest.approx((1e-5, 9e-6))
    assert detail["found_from"] == Search(epsilon=2.0, delta=1e-6, changed=2 if public is None else 1).threshold


def test_sums_of_features_find_classes_the_same_way():
    points, labels = records()
    model = MomentClassifier(epsilon=40.0).fit(points, labels, PUBLIC)
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.guarantee_.value == 40
    assert model.guarantee_.detail["delta"] <= 1e-5
    assert model.guarantee_.detail["found_from"] == Search(epsilon=2.0, delta=1e-6, changed=1).threshold
    named = MomentClassifier(epsilon=40.0, classes=["ill", "well", LONE]).fit(points, labels, PUBLIC)
    assert "found_from" not in named.guarantee_.detail
    assert named.guarantee_.detail["sigma"] < model.guarantee_.detail["sigma"]


def test_a_search_is_drawn_once_for_each_folder_even_if_it_found_too_little(tmp_path):
    points, labels = records(60)
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=2, delta=1e-5)
    model = PrivateClassifier(LogisticRegression(), **OPTIONS | {"epsilon": 1.0}, ledger=ledger)
    for _ in range(2):
        with pytest.raises(InputError, match="the number of classes found among private labels must be two or more"):
            model.fit(points, labels, PUBLIC, folder=tmp_path / "kept")
    assert len(ledger.entries()) == 1
    path = tmp_path / "kept" / "classes.json"
    assert run_folder.record(path, dict, claimed=False)["classes"] == []
    assert [dict(note.detail) for note in ledger.notes()] == [{"classes": ()}]


@pytest.mark.parametrize("removed", [(), ("classes.json", "count.json"), ("classes.json", "count.json", "task.json")])
def test_what_was_paid_once_is_not_drawn_again_whatever_is_removed(removed, tmp_path, monkeypatch):
    """A count with noise of scale 33 is drawn alike six times with a chance below 1e-8."""
    points, labels = records()
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=3, delta=1e-5)

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Teachers, "fit", killed)
    seen, folder = set(), tmp_path / "kept"
    for _ in range(6):
        model = PrivateClassifier(ledger=ledger, **OPTIONS | {"epsilon": 3.0, "n_teachers": "auto"})
        with pytest.raises(KeyboardInterrupt):
            model.fit(points, labels, PUBLIC, folder=folder)
        classes, count = (
            run_folder.record(folder / f"{name}.json", dict, claimed=False) for name in ("classes", "count")
        )
        seen.add((tuple(classes["classes"]), count["count"]))
        for name in removed:
            (folder / name).unlink()
    assert len(seen) == 1
    assert len(ledger.entries()) == len(ledger.notes()) == 2


def test_classes_that_were_drawn_for_some_people_serve_no_others(tmp_path):
    points, labels = records()
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=40, delta=1e-5)
    model, folder = PrivateClassifier(LogisticRegression(), ledger=ledger, **OPTIONS), tmp_path / "kept"
    model.fit(points, labels, PUBLIC, ids=range(600), folder=folder)
    (folder / "classes.json").unlink()
    with pytest.raises(InputError, match="must say for which people this was drawn and paid"):
        model.fit(points, labels, PUBLIC, ids=[row // 2 for row in range(600)], folder=folder)


WHOLE = np.random.default_rng(3).integers(0, 2, 600)
ODD = {
    "text among whole numbers": ([int(label) for label in WHOLE], "hiv", np.int64, [0, 1]),
    "a float among whole numbers": ([int(label) for label in WHOLE], 2.0, np.int64, [0, 1]),
    "a number among flags": ([bool(label) for label in WHOLE], 2, np.bool_, [False, True]),
    "a flag among whole numbers": ([int(label) for label in WHOLE], True, np.int64, [0, 1]),
    "a number among texts": ([str(label) for label in WHOLE], 7, "<U1", ["0", "1"]),
    "a long text of NumPy": ([str(label) for label in WHOLE], np.str_(LONE), "<U1", ["0", "1"]),
    "a whole number among floats": ([np.float32(label) for label in WHOLE], 5, np.int64, [0, 1]),
}


@pytest.mark.parametrize("container", [list, lambda labels: np.array(labels, dtype=object), pandas.Series])
@pytest.mark.parametrize(("labels", "odd", "kind", "classes"), ODD.values(), ids=ODD)
def test_no_record_has_a_say_in_the_type_of_what_is_published(labels, odd, kind, classes, container):
    """The odd label is found with a chance below 1e-6, each of the others is missed with one below 1e-50.

    What teachers learn decides nothing here: a few quick ones will do.
    """
    points = np.random.default_rng(4).normal(size=(601, 2)) + 8 * np.append(WHOLE, 0)[:, None]
    mixed = container([*labels, odd])
    model = PrivateClassifier(GaussianNB(), **OPTIONS | {"n_teachers": 3, "queries": 20})
    for found in (
        clone(model).fit(points[:600], container(labels), PUBLIC),
        clone(model).fit(points, mixed, PUBLIC),
        clone(model).fit(points, mixed),  # private in its labels
        MomentClassifier(epsilon=40.0).fit(points, mixed, PUBLIC),
    ):
        assert found.classes_.tolist() == classes
        assert found.classes_.dtype == found.predict(PUBLIC).dtype == kind


def test_labels_that_python_takes_for_equal():
    """One, as a whole number or a float of any type, is one label; True is another, and so is "1"."""
    held, places = distinct("y", column("y", [1, 1.0, np.int8(1), np.float32(1), True, np.True_, "1", np.str_("1")]))
    assert [(type(label), label) for label in held] == [(bool, True), (int, 1), (str, "1")]
    assert places.tolist() == [1, 1, 1, 1, 0, 0, 2, 2]
    assert [(type(label), label) for label in typed(held).tolist()] == [(type(label), label) for label in held]
    classes, numbers = named(column("y", [True, 0, 1.0]), [0, 1])
    assert (classes.dtype, classes.tolist(), numbers.tolist()) == (np.int64, [0, 1], [1, 0, 1])
    classes, numbers = named(column("y", [0, "0"]), ["0", 0])  # NumPy would make one class of both
    assert (classes.tolist(), numbers.tolist()) == ([0, "0"], [0, 1])


@pytest.mark.parametrize("container", [np.array, list, pandas.Series])
def test_a_type_that_is_stated_for_all_labels_is_theirs_but_for_its_width(container):
    for labels, kind in (
        (np.array([0, 1], dtype=np.int8), np.int64),
        (np.array([0.0, 1.0]), np.int64),
        (np.array([False, True]), np.bool_),
        (np.array(["a", "b", "longer"])[:2], "<U1"),
    ):
        found = typed(distinct("y", column("y", container(labels)))[0])
        assert found.dtype == kind
        assert found.tolist() == labels.tolist()


DAYS = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")[WHOLE]


@pytest.mark.parametrize(
    "labels",
    [DAYS, DAYS.tolist(), WHOLE.astype("S1"), [None, *WHOLE[1:]], [np.nan, *WHOLE[1:]], ["a\ud800", *WHOLE[1:]]],
)
def test_labels_that_cannot_be_kept_are_refused_before_anything_is_paid(labels, tmp_path):
    points, _ = records()
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=40, delta=1e-5)
    model = PrivateClassifier(LogisticRegression(), ledger=ledger, **OPTIONS)
    with pytest.raises(ValueError, match=r"must hold text, whole numbers or true and false|contains NaN"):
        model.fit(points, labels, PUBLIC, folder=tmp_path / "kept")
    assert not ledger.entries()


def test_what_a_proposer_names_is_public():
    points, labels = records()
    known, names = records(seed=5)
    ill_or_well = np.array([name if name != LONE else "ill" for name in names])
    proposer = KNeighborsClassifier(1).fit(known, ill_or_well)
    options = OPTIONS | {"mechanism": "auto"}
    with pytest.raises(InputError, match="y must hold labels among classes alone"):
        PrivateClassifier(LogisticRegression(), **options).fit(points, labels, PUBLIC, proposer=proposer)
    labels[17] = "ill"
    model = PrivateClassifier(LogisticRegression(), **options).fit(points, labels, PUBLIC, proposer=proposer)
    assert "found_from" not in model.guarantee_.detail
    assert any("are public knowledge" in text for text in model.guarantee_.assumed(checked_by="caller"))


def test_labels_are_found_as_often_as_their_counts_say():
    """2000 searches for each count; a false alarm needs five standard deviations in one of 8 cases: below 5e-6."""
    search, noise, runs = Search(epsilon=1.0, delta=0.05, changed=1), SeededNoise(0), 2000
    t, a = search.threshold, np.exp(-1.0)
    for count in range(1, 9):
        y = np.repeat("cat", count)
        share = np.mean([search.labels(y, noise=noise) == ["cat"] for _ in range(runs)])
        gap = t - count
        expected = a**gap / (1 + a) if gap > 0 else 1 - a ** (1 - gap) / (1 + a)
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / runs)


def test_a_person_counts_once():
    """Of twelve records one person holds ten; without noise their label has one vote."""
    y = np.array(["rare"] * 9 + ["usual"] + ["usual"] * 2)
    people = [b"one"] * 10 + [b"two", b"three"]
    search = Search(epsilon=20.0, delta=0.01, changed=1)
    assert search.threshold == 2
    assert search.labels(y, people, ScriptedNoise(0, 0)) == ["usual"]
    assert search.labels(y, noise=ScriptedNoise(0, 0)) == ["rare", "usual"]
    tied = np.array(["b", "a", "b", "a"])  # of equals the first, and a label that nobody mostly has is never found
    assert search.labels(tied, [b"one", b"one", b"two", b"two"], ScriptedNoise(0)) == ["a"]


def test_labels_that_are_no_class_have_no_number():
    assert numbered(np.array(["x", "a", "b", "zz"]), np.array(["a", "b"])).tolist() == [-1, 0, 1, -1]


def test_a_mechanism_must_leave_something_for_the_classes():
    from tacit.learning import GNMax

    points, labels = records()
    model = PrivateClassifier(mechanism=GNMax(epsilon=39.0, delta=1e-6, queries=5), epsilon=40.0, n_teachers=5)
    with pytest.raises(InputError, match="classes must be named, as this mechanism leaves too little"):
        model.fit(points, labels, PUBLIC)
