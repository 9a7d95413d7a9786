"""Sums by class: how far one record, one person or one person's labels move them, exactly, and what is released."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import SeededNoise
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from tacit import BudgetSpentError, Comparison, InputError
from tacit.learning import PrivateClassifier, canary, distinguishing_attack
from tacit.learning.interrupted import UNSEEN
from tacit.learning.labels import UNNAMED
from tacit.learning.moments import _LENGTH, NoisySums, sums_by_class, unit_rows
from tacit.ledger import Ledger

CLASSES = 3
values = st.sampled_from([0.0, -0.0, 0.1, -0.3, 1.0, -1.0, 3.0, 1e308, -1e308, 1e-320, 1e-160, np.nan, np.inf])
points = st.lists(st.tuples(values, values, values), min_size=0, max_size=6)
a_class = st.sampled_from([*range(CLASSES), UNNAMED])


def sums(records, labels, people=None):
    features = np.array(records, dtype=float).reshape(-1, 3)
    return sums_by_class(unit_rows(features), np.array(labels, dtype=np.int64), people, classes=CLASSES)


def squared(here, there):
    """In Python's whole numbers."""
    return sum((a - b) ** 2 for a, b in zip(here.ravel().tolist(), there.ravel().tolist(), strict=True))


@given(st.data(), points)
@settings(max_examples=300)
def test_one_record_moves_the_sums_by_its_length(data, records):
    """Wherever it stands, whatever it holds."""
    labels = data.draw(st.lists(a_class, min_size=len(records), max_size=len(records)))
    one, label = data.draw(st.tuples(values, values, values)), data.draw(a_class)
    place = data.draw(st.integers(0, len(records)))
    without = sums(records, labels)
    with_it = sums([*records[:place], one, *records[place:]], [*labels[:place], label, *labels[place:]])
    assert squared(with_it, without) <= _LENGTH**2
    if label == UNNAMED or not np.isfinite(one).all():
        assert squared(with_it, without) == 0


@given(st.data(), points, points)
@settings(max_examples=300)
def test_one_person_moves_the_sums_by_the_length_of_one_record(data, records, theirs):
    every = [*records, *theirs]
    labels = data.draw(st.lists(a_class, min_size=len(every), max_size=len(every)))
    people = [data.draw(st.sampled_from([b"a", b"b"])) for _ in records] + [b"new"] * len(theirs)
    kept, mixed = len(records), data.draw(st.permutations(range(len(every))))
    without = sums(every[:kept], labels[:kept], people[:kept])
    with_them = sums(*([each[row] for row in mixed] for each in (every, labels, people)))
    assert squared(with_them, without) <= _LENGTH**2


@given(st.data(), points)
@settings(max_examples=300)
def test_changed_labels_of_a_person_move_the_sums_by_the_root_of_two(data, records):
    """Also where labels are no class before or after, and their records are left out."""
    people = [data.draw(st.sampled_from([b"a", b"b"])) for _ in records]
    labels = data.draw(st.lists(a_class, min_size=len(records), max_size=len(records)))
    other = [data.draw(a_class) if who == b"a" else old for who, old in zip(people, labels, strict=True)]
    assert squared(sums(records, labels, people), sums(records, other, people)) <= 2 * _LENGTH**2
    if records:
        changed = [data.draw(a_class), *labels[1:]]
        assert squared(sums(records, labels), sums(records, changed)) <= 2 * _LENGTH**2


def test_the_bounds_are_reached():
    """Those that the noise is made for."""
    one = [(3.0, 4.0, 0.0)]
    nothing = np.zeros((CLASSES, 4), dtype=np.int64)
    added, changed = (NoisySums(epsilon=1.0, delta=1e-5, changed=moved).sensitivity for moved in (1, 2))
    for records, people in ((one, None), (one * 5, [b"a"] * 5)):
        here = sums(records, [0] * len(records), people)
        assert 0.999 * added**2 < squared(here, nothing) <= added**2
        assert 0.999 * changed**2 < squared(here, sums(records, [1] * len(records), people)) <= changed**2


@pytest.mark.parametrize("row", [(0.8, 0.6061), (1.01, 0.0), (np.nan, 0.0), (-np.inf, 0.0), (2.0**40, 0.0)])
def test_rows_that_are_too_long_are_left_out(row):
    """By 1 % or by a factor whose square is 0 in 64 bits: whoever made the rows, nothing else rests on their length."""
    alone = sums_by_class(np.array([row]), np.zeros(1, dtype=np.int64), None, classes=1)
    assert not alone.any()
    kept = sums_by_class(np.array([(0.8, 0.6), row]), np.zeros(2, dtype=np.int64), None, classes=1)
    assert 0.999 * _LENGTH**2 < squared(kept, alone) <= _LENGTH**2


def test_fractions_are_refused():
    """They would stay beside noise that is whole."""
    with pytest.raises(InputError, match="sums must be whole numbers, got 'float64 ones'"):
        NoisySums(epsilon=1.0, delta=1e-5).release(np.array([[0.3, 0.0]]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [3, 9, 130])
def test_a_row_is_the_same_to_the_last_bit_whoever_stands_beside_it(order, width):
    features = np.asarray(np.random.default_rng(0).normal(size=(301, width)), order=order)
    every = unit_rows(features)
    for kept in (1, 2, 7, 300):
        assert (unit_rows(np.asarray(features[:kept], order=order)) == every[:kept]).all()


def test_a_person_counts_as_the_mean_of_their_records():
    rng = np.random.default_rng(1)
    records, labels = rng.normal(size=(40, 3)), rng.integers(0, CLASSES, 40)
    people = [bytes([owner]) for owner in rng.integers(0, 9, 40)]
    twin = np.zeros((CLASSES, 4))
    for row, label, owner in zip(unit_rows(records), labels, people, strict=True):
        twin[label] += row / people.count(owner)
    assert np.abs(sums(records, labels, people) - twin * _LENGTH).max() <= 40  # one for the rounding of each record


# The attack. Noise is seeded, so nothing here fails by chance; with other seeds the right mechanism would be
# contradicted with probability at most 1e-6.


def attacked(mechanism):
    attack = distinguishing_attack(mechanism, runs=5_000, failure_probability=1e-6, noise=SeededNoise(0))
    return attack, Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize("changed", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_canary_shows_most_of_what_is_claimed_and_no_more(epsilon, changed):
    attack, contradicted = attacked(NoisySums(epsilon=epsilon, delta=1e-5, changed=changed))
    assert 0.8 * epsilon <= attack.low <= epsilon
    assert not contradicted
    assert "canary" in attack.method


@dataclass(frozen=True, kw_only=True)
class RootForgotten(NoisySums):
    """Takes a changed label for one record."""

    @property
    def sensitivity(self):
        return float(_LENGTH)


@dataclass(frozen=True, kw_only=True)
class NoiseLeftOut(NoisySums):
    """Draws less noise than it states."""

    @functools.cached_property
    def drawn_with(self):
        return NoisySums(epsilon=1.5 * self.epsilon, delta=self.delta, changed=self.changed)

    def release(self, totals, noise=None):
        return self.drawn_with.release(totals, noise)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_what_breaks_the_claim_is_caught(epsilon, monkeypatch):
    assert attacked(RootForgotten(epsilon=epsilon, delta=1e-5, changed=2))[1]
    assert attacked(NoiseLeftOut(epsilon=epsilon, delta=1e-5))[1]

    def records_for_themselves(rows, numbers, people, *, classes):  # noqa: ARG001
        return sums_by_class(rows, numbers, None, classes=classes)

    monkeypatch.setattr(canary, "sums_by_class", records_for_themselves)
    assert attacked(NoisySums(epsilon=epsilon, delta=1e-5))[1]


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"delta": 1.0}, {"changed": 0}])
def test_constants_without_a_meaning_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        NoisySums(**{"epsilon": 1.0, "delta": 1e-5} | wrong)


def test_games_of_votes_are_no_attack_on_sums():
    with pytest.raises(InputError, match="tried must be left out for sums"):
        distinguishing_attack(NoisySums(epsilon=1.0, delta=1e-5), tried=[])


# The classifier.


@pytest.fixture(scope="module")
def digits():
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return features[order] / 16, labels[order]


def classifier(**options):
    return PrivateClassifier(mechanism="moments", **{"epsilon": 8.0, "classes": range(10)} | options)


def test_a_classifier_of_moments(digits):
    features, labels = digits
    model = classifier().fit(features[:1200], labels[:1200], features[1200:1500])
    assert model.score(features[1500:], labels[1500:]) > 0.6
    proven = model.guarantee_
    assert proven.value == 8
    assert proven.references[0] == "theory.accounting.lattice_delta"
    assert proven.detail["sensitivity"] == _LENGTH
    assert proven.evidence is None  # the checker has no rule for it
    assert not {"teachers", "epsilon_count"} & set(proven.detail)
    told = " ".join(assumption.text for assumption in proven.assumptions) + model.choice_
    assert not [word for word in ("teacher", "quer", "answer", "refus", "vote") if word in told]
    assert "not model-agnostic" in model.choice_
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "predict_proba")
    assert (model.published().predict(features[:20]) == model.predict(features[:20])).all()


def test_the_noise_is_what_the_guarantee_says(digits):
    """650 entries: by Laurent and Massart their mean square is off σ² by 50 % with probability below 1e-7."""
    features, labels = digits
    ids = [row // 3 for row in range(1200)]
    model = classifier(features=StandardScaler())
    model.fit(features[:1200], labels[:1200], features[1200:], ids=ids)
    people = [str(owner).encode() for owner in ids]
    rows = unit_rows(model.features_.transform(features[:1200]))
    noise = model.noisy_sums_ - sums_by_class(rows, labels[:1200], people, classes=10)
    assert noise.size == 650
    assert np.mean(noise**2.0) == pytest.approx(model.guarantee_.detail["sigma"] ** 2, rel=0.5)
    assert model.guarantee_.detail["neighbours"] == "all records of one person added or removed"
    assert any("on its own" in assumption.text for assumption in model.guarantee_.assumptions)


def test_labels_alone_cost_the_root_of_two(digits):
    features, labels = digits
    model = classifier(classes=None).fit(features, labels, ids=[row // 2 for row in range(len(labels))])
    detail = model.guarantee_.detail
    assert detail["changed"] == 2
    assert 2**0.5 * _LENGTH <= detail["sensitivity"] <= 2**0.5 * _LENGTH * (1 + 1e-12)
    assert model.guarantee_.quantity.startswith("privacy loss ε of one label")
    assert detail["epsilon_mechanism"] + detail["epsilon_classes"] <= 8
    assert 2 <= len(model.classes_) <= 10
    assert len(model.noisy_sums_) == len(model.classes_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": LogisticRegression()}, "estimator must be left out for mechanism='moments'"),
        ({"student": LogisticRegression()}, "student must be left out for mechanism='moments'"),
        ({"n_teachers": 10}, "n_teachers must be left out for mechanism='moments'"),
        ({"refusals": 3}, "refusals must be left out for mechanism='moments'"),
        ({"queries": "all"}, "queries must be left out for mechanism='moments'"),
        ({"engine": "dask"}, "engine must be left out for mechanism='moments'"),
        ({"error_share": 0.1}, "error_share must be 0 unless"),
        ({"epsilon": 9e-6}, "epsilon must be a finite number"),
    ],
)
def test_what_is_about_teachers_is_refused(digits, options, message):
    features, labels = digits
    with pytest.raises(InputError, match=message):
        classifier(**options).fit(features[:1000], labels[:1000], features[1000:])


@pytest.mark.parametrize("noted", [False, True])
def test_an_interrupted_fit_pays_once_and_releases_once(digits, tmp_path, monkeypatch, noted):
    """Stopped just before the sums are noted, nobody saw them; stopped just after, they are read back."""
    features, labels = digits
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=8.0, delta=1e-5)
    split = {"X": features[:1100], "y": labels[:1100], "X_public": features[1100:], "folder": tmp_path / "private"}
    real, drawn = Ledger.note, []

    def stopped(self, entry, detail, *, number):
        if "sums" not in detail:
            return real(self, entry, detail, number=number)
        drawn.append(detail["sums"])
        if noted:
            real(self, entry, detail, number=number)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "note", stopped)
        with pytest.raises(KeyboardInterrupt):
            classifier(ledger=ledger).fit(**split)
    assert ledger.spent.epsilon == 8  # before anything was released
    model = classifier(ledger=ledger).fit(**split)
    assert (model.noisy_sums_.tolist() == drawn[0]) is noted
    assert (UNSEEN in model.guarantee_.assumptions) is not noted
    again = classifier(ledger=ledger).fit(**split)
    assert (again.noisy_sums_ == model.noisy_sums_).all()
    assert ledger.spent.epsilon == 8
    assert sum("sums" in note.detail for note in ledger.notes()) == 1
    for other, message in (
        ({"epsilon": 4.0}, "must have paid for the very task"),
        ({"delta": 1e-6}, "must have paid for the very task"),
        ({"features": StandardScaler()}, "must belong to the same task, which differs in features"),
    ):
        with pytest.raises(InputError, match=message):
            classifier(ledger=ledger, **other).fit(**split)
    with pytest.raises(InputError, match="must belong to the same task, which differs in records"):
        classifier(ledger=ledger).fit(**split | {"X": features[:1099], "y": labels[:1099]})


def test_a_budget_that_does_not_cover_it_is_refused(digits, tmp_path):
    features, labels = digits
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=4.0, delta=1e-5)
    with pytest.raises(BudgetSpentError, match="must cover ε = 8"):
        classifier(ledger=ledger).fit(features[:1000], labels[:1000], features[1000:])
    assert ledger.spent.epsilon == 0
