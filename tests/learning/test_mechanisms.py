"""Mechanisms by their exact laws, their stopping rules, and what they refuse."""

import copy
import dataclasses
import json
import math
import multiprocessing
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from noises import ScriptedNoise, SeededNoise, exact_law, hockey_stick

from tacit import BudgetSpentError, Guarantee, InputError, NoTheoremError
from tacit.certificate import certified
from tacit.learning import AdaptiveVector, ConfidentGNMax, Gate, GNMax, SparseVector, StableRelease
from tacit.theory.accounting import gnmax_delta, sparse_vector_delta, stable_release_delta
from tacit.theory.label_moments import labels_delta
from tacit.theory.open_threshold import open_threshold_delta
from tacit.theory.winners import winner_delta

TRUNCATED = 2e-5  # what the enumerated noise leaves out, at most


def checked_law(mechanism, left, right, delta_at):
    """The exact δ(ε) of these two sequences of counts, at several ε, stays below the accountant's."""
    laws = exact_law(mechanism, left), exact_law(mechanism, right)
    assert sum(laws[0].values()) == pytest.approx(1)
    seen = 0.0
    for epsilon in (0.0, 0.5, 1.0, mechanism.epsilon, 2 * mechanism.epsilon):
        found = hockey_stick(*laws, epsilon)
        assert found <= delta_at(epsilon) + TRUNCATED
        seen = max(seen, found)
    assert hockey_stick(*laws, mechanism.epsilon) <= mechanism.delta + TRUNCATED
    return seen


def around(distance, way):
    """Two-class counts so many votes from a flip, before and after one vote moved."""
    top = 2 * distance + 2
    return (top, 1), (top - way, 1 + way)


WAYS = [(1,), (-1,), (1, -1), (-1, 1), (1, 1)]


@pytest.mark.parametrize("refusals", [2, 3])
@pytest.mark.parametrize("ways", [*WAYS, (1, -1, 1, 1), (-1, -1, -1, 1)])
def test_an_open_threshold_by_enumeration(ways, refusals):
    mechanism = SparseVector(epsilon=4.0, delta=0.05, refusals=refusals)
    options = {"scale": mechanism.scale, "threshold": mechanism.threshold, "refusals": refusals}
    pairs = [around(mechanism.threshold + place, way) for place, way in zip((1, 0, 0, 2), ways, strict=False)]
    seen = checked_law(mechanism, *zip(*pairs, strict=True), lambda epsilon: open_threshold_delta(epsilon, **options))
    assert seen > 0.1


@pytest.mark.parametrize("ways", WAYS)
def test_a_hidden_threshold_by_enumeration(ways):
    mechanism = SparseVector(epsilon=4.0, delta=0.05, refusals=1)
    options = {"scale": mechanism.scale, "threshold": mechanism.threshold, "refusals": 1}
    pairs = [around(mechanism.threshold + place, way) for place, way in zip((1, 0), ways, strict=False)]
    seen = checked_law(mechanism, *zip(*pairs, strict=True), lambda epsilon: sparse_vector_delta(epsilon, **options))
    assert seen > 0.05


@pytest.mark.parametrize(
    "make",
    [
        lambda: SparseVector(epsilon=4.0, delta=0.05, refusals=1),
        lambda: StableRelease(epsilon=2.0, delta=0.05, queries=2),
    ],
)
def test_winners_that_differ_cost_no_more_than_delta(make):
    mechanism = make()
    laws = [exact_law(mechanism, [row, row]) for row in ((5, 4, 0), (4, 5, 0))]
    assert 0 < hockey_stick(*laws, 20.0) <= mechanism.delta + TRUNCATED


@pytest.mark.parametrize("ways", [(1, 1), (1, -1)])
def test_stable_release_by_enumeration(ways):
    mechanism = StableRelease(epsilon=2.0, delta=0.05, queries=2)
    options = {"scale": mechanism.scale, "threshold": mechanism.threshold, "queries": 2}
    pairs = [around(mechanism.threshold, way) for way in ways]
    seen = checked_law(mechanism, *zip(*pairs, strict=True), lambda epsilon: stable_release_delta(epsilon, **options))
    assert seen > 0.25


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [((4, 4), (3, 5)), ((5, 3), (4, 4)), ((3, 2, 2), (2, 3, 2)), ((0, 0), (1, 0))]
)
def test_gnmax_by_enumeration(left, right, counts):
    mechanism = GNMax(epsilon=2.5, delta=0.1, queries=1, counts=counts)
    seen = checked_law(
        mechanism, [left], [right], lambda epsilon: gnmax_delta(epsilon, sigma=mechanism.sigma, answers=1)
    )
    if counts and left == (4, 4):  # here the accountant is exact
        assert (
            hockey_stick(exact_law(mechanism, [left]), exact_law(mechanism, [right]), 1.0)
            > 0.99 * gnmax_delta(1.0, sigma=mechanism.sigma, answers=1) - TRUNCATED
        )
    assert seen > 0.1


def test_gnmax_on_two_queries_by_enumeration():
    mechanism = GNMax(epsilon=5.0, delta=0.1, queries=2)
    left, right = [(4, 4)] * 2, [(5, 3), (3, 5)]
    checked_law(mechanism, left, right, lambda epsilon: labels_delta(epsilon, sigma=mechanism.sigma, answers=2))


def test_winners_of_two_classes_by_enumeration():
    """Any margin of one answer, and margins that differ in two; the noise is less than counts need."""
    one = GNMax(epsilon=1.5, delta=0.1, queries=1, classes=2)
    seen = [
        checked_law(one, [(5, low)], [(4, low + 1)], lambda epsilon: winner_delta(epsilon, sigma=one.sigma, answers=1))
        for low in (2, 4, 7)
    ]
    assert max(seen) > 0.99 * winner_delta(0.0, sigma=one.sigma, answers=1)
    two = GNMax(epsilon=4.0, delta=0.1, queries=2, classes=2)
    for left, right in (([(4, 4)] * 2, [(5, 3), (3, 5)]), ([(5, 4), (3, 5)], [(4, 5), (2, 6)])):
        checked_law(two, left, right, lambda epsilon: winner_delta(epsilon, sigma=two.sigma, answers=2))
    assert two.sigma < GNMax(epsilon=4.0, delta=0.1, queries=2).sigma


@pytest.mark.parametrize("classes", [2, 3])
def test_winners_are_of_the_classes_they_are_charged_for(classes):
    mechanism = GNMax(epsilon=1.0, delta=1e-5, queries=20, classes=classes)
    assert mechanism.sigma < 0.95 * GNMax(epsilon=1.0, delta=1e-5, queries=20).sigma
    assert mechanism.sigma < 0.86 * GNMax(epsilon=1.0, delta=1e-5, queries=20, counts=True).sigma
    assert mechanism.guarantee.references == ("theory.winners.winner_delta",)
    assert mechanism.guarantee.evidence is None
    assert mechanism.guarantee.detail["classes"] == classes
    session = mechanism.session()
    assert session.answer([3, 2][:classes]) in (0, 1)
    with pytest.raises(InputError, match=f"number of classes must be at most {classes}.*got {classes + 1};") as refused:
        session.answer([817] * (classes + 1))
    assert "817" not in str(refused.value)  # votes are private


@pytest.mark.parametrize("wrong", [{"classes": 1}, {"classes": True}, {"classes": 2.5}, {"classes": 3, "counts": True}])
def test_winners_are_of_a_number_of_classes_and_nothing_else_is_released(wrong):
    with pytest.raises(InputError, match="classes must be"):
        GNMax(epsilon=1.0, delta=1e-5, queries=2, **wrong)


def test_winners_beyond_what_is_computed_are_refused_in_the_callers_words():
    with pytest.raises(InputError, match=r"queries must be at most 2000 .*got 2001; ask fewer, or leave classes out"):
        GNMax(epsilon=1.0, delta=1e-5, queries=2001, classes=2)
    with pytest.raises(NoTheoremError, match=r"at most 150, got about 504 .*, or GNMax without classes"):
        GNMax(epsilon=0.1, delta=1e-5, queries=200, classes=3).sigma  # noqa: B018


@pytest.mark.parametrize(("left", "right"), [((5, 5), (6, 4)), ((6, 3), (5, 4)), ((4, 4), (4, 5))])
def test_confident_gnmax_by_enumeration(left, right):
    mechanism = ConfidentGNMax(epsilon=3.0, delta=0.1, queries=1, answers=1, threshold=5, ratio=1.5)
    options = {"sigma": mechanism.sigma, "answers": 1, "test_sigma": mechanism.test_sigma, "tests": 1}
    checked_law(mechanism, [left], [right], lambda epsilon: labels_delta(epsilon, **options))


def test_a_hidden_threshold_step_by_step():
    """Strictly above the threshold; a new threshold after a refusal, and none before; the end at the T-th."""
    mechanism = SparseVector(epsilon=1.0, delta=1e-5, refusals=2, queries=9, variant="faithful")
    w, scale = mechanism.threshold, mechanism.scale
    row = (1, 2 * w + 3, 0)  # w votes from a flip
    noise = ScriptedNoise(3, 4, 3, -1, -1)
    session = mechanism.session(noise)
    assert session.answer(row) == 1  # 4 is above 3
    assert session.answer(row) is None  # 3 is not
    assert not session.stopped
    assert session.answer(row) is None  # nor is −1 above −1
    assert session.stopped
    assert noise.asked == [scale, 2 * scale, 2 * scale, scale, 2 * scale]
    with pytest.raises(BudgetSpentError, match="must answer nothing more"):
        session.answer(row)


def test_an_open_threshold_step_by_step():
    """One coin a query, by its distance; a refusal where it falls; the end at the T-th."""
    mechanism = SparseVector(epsilon=1.0, delta=1e-5, refusals=2)
    w, scale = mechanism.threshold, mechanism.scale
    noise = ScriptedNoise(False, True, False, True)
    session = mechanism.session(noise)
    asked = [w + 3, w, 10 * w, 0]
    answers = [session.answer((1, 2 * distance + 3, 0)) for distance in asked]
    assert answers == [1, None, 1, None]
    assert session.stopped
    assert noise.asked == pytest.approx([-math.expm1(-min(69, math.exp((w - d) / scale))) for d in asked])
    with pytest.raises(BudgetSpentError, match="must answer nothing more"):
        session.answer((1, 9, 0))


def test_exactly_as_many_refusals_as_were_paid_for():
    for mechanism in (
        SparseVector(epsilon=1.0, delta=1e-5, refusals=3),
        SparseVector(epsilon=1.0, delta=1e-5, refusals=3, queries=100, variant="faithful"),
    ):
        session = mechanism.session(SeededNoise(0))
        while not session.stopped:
            session.answer([3, 3])
        assert session.refused == 3


def test_stopping_rules_that_are_fixed_beforehand():
    for mechanism, asked, answered in (
        (GNMax(epsilon=1.0, delta=1e-5, queries=4), 4, 4),
        (StableRelease(epsilon=1.0, delta=1e-5, queries=3), 3, 0),
        (ConfidentGNMax(epsilon=1.0, delta=1e-5, queries=9, answers=2, threshold=0), 2, 2),
        (ConfidentGNMax(epsilon=1.0, delta=1e-5, queries=9, answers=2, threshold=10**6), 9, 0),
        (SparseVector(epsilon=1.0, delta=1e-5, refusals=5, queries=2), 2, 0),
    ):
        session = mechanism.session(SeededNoise(1))
        row = [10**4, 0] if answered else [1, 1]
        while not session.stopped:
            session.answer(row)
        assert (session.asked, session.answered) == (asked, answered)
        with pytest.raises(BudgetSpentError):
            session.answer(row)


def test_the_system_s_noise_answers_clear_votes():
    """Each fails by chance with probability far below 1e-9."""
    row = [0, 10**5, 0]
    for mechanism in (
        SparseVector(epsilon=1.0, delta=1e-5, refusals=2),
        StableRelease(epsilon=1.0, delta=1e-5, queries=2),
        GNMax(epsilon=1.0, delta=1e-5, queries=2),
        ConfidentGNMax(epsilon=1.0, delta=1e-5, queries=2, answers=2, threshold=100),
    ):
        session = mechanism.session()
        assert [session.answer(row), session.answer(row)] == [1, 1]
    noisy = GNMax(epsilon=1.0, delta=1e-5, queries=1, counts=True).session().answer(row)
    assert len(noisy) == 3
    assert all(type(count) is int for count in noisy)
    assert abs(noisy[1] - 10**5) < 1000


@pytest.mark.parametrize(
    "mechanism",
    [
        SparseVector(epsilon=1.0, delta=1e-5, refusals=10),
        SparseVector(epsilon=1.0, delta=1e-5, refusals=10, queries=1000, variant="faithful"),
        StableRelease(epsilon=1.0, delta=1e-5, queries=20),
        GNMax(epsilon=1.0, delta=1e-5, queries=100),
        ConfidentGNMax(epsilon=1.0, delta=1e-5, queries=400, answers=100, threshold=150),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_guarantees_say_what_is_proven_and_who_checks_what(mechanism):
    guarantee = mechanism.guarantee
    assert guarantee.value == 1.0
    assert guarantee.side == "at_most"
    assert guarantee.quantity == "privacy loss ε at δ = 1e-05"
    assert guarantee.detail["delta_spent"] <= 1e-5
    assert any("one teacher's vote" in text for text in guarantee.assumed(checked_by="caller"))
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


def test_faithful_noise_is_the_printed_one_and_tight_is_less():
    faithful = SparseVector(epsilon=1.0, delta=1e-5, refusals=10, queries=1000, variant="faithful")
    tight = SparseVector(epsilon=1.0, delta=1e-5, refusals=10)
    assert 62 < faithful.scale < 63
    assert faithful.threshold > 4 * tight.threshold
    assert tight.distance(queries=1000, failure_probability=0.05) < faithful.distance(
        queries=1000, failure_probability=0.05
    )


@pytest.mark.parametrize("refusals", [1, 20])
def test_constants_are_computed_anew_where_a_mechanism_is_loaded(refusals):
    """Another version may have others for the same fields, and a guarantee about its own."""
    mechanism = SparseVector(epsilon=1.0, delta=1e-5, refusals=refusals)
    expected = mechanism.guarantee
    vars(mechanism)["scale"] = 1.0
    loaded = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 — our own bytes
    assert loaded == mechanism
    assert loaded.guarantee == expected
    assert copy.copy(mechanism).guarantee == expected


def test_faithful_constants_are_refused_where_they_prove_nothing():
    mechanism = SparseVector(epsilon=200.0, delta=0.3, refusals=50, queries=60, variant="faithful")
    with pytest.raises(NoTheoremError, match="use a smaller epsilon"):
        mechanism.guarantee  # noqa: B018


def test_sessions_cannot_be_copied_or_sent():
    session = GNMax(epsilon=1.0, delta=1e-5, queries=4).session()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NoTheoremError, match="must not be copied"):
            copied(session)


def test_a_forked_process_cannot_go_on():
    session = GNMax(epsilon=1.0, delta=1e-5, queries=4).session()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child():
        try:
            queue.put(str(session.answer([1, 2])))
        except NoTheoremError as refusal:
            queue.put(str(refusal))

    process = context.Process(target=child)
    process.start()
    said = queue.get()
    process.join()
    assert "must stay in the process" in said


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1, 2]], [], [-1, 2], ["a"], None, [True, False], [2**41, 0], [np.nan]])
def test_counts_that_are_none_spend_nothing(bad):
    session = GNMax(epsilon=1.0, delta=1e-5, queries=1).session()
    with pytest.raises(InputError, match="must"):
        session.answer(bad)
    assert session.asked == 0


def test_an_interrupted_query_ends_the_session():
    session = SparseVector(epsilon=1.0, delta=1e-5, refusals=3).session(ScriptedNoise())  # no noise at all
    with pytest.raises(IndexError):
        session.answer([1, 2])
    assert session.stopped
    with pytest.raises(BudgetSpentError):
        session.answer([1, 2])


@pytest.mark.parametrize("kind", [np.float16, np.float32, Fraction, lambda number: Decimal(repr(number))])
@pytest.mark.parametrize(
    "made",
    [
        partial(SparseVector, queries=10, refusals=2),
        partial(StableRelease, queries=10),
        partial(GNMax, queries=10),
        partial(ConfidentGNMax, queries=10, answers=5, threshold=20),
        partial(Gate, refusals=2),
    ],
    ids=lambda made: made.func.__name__,
)
def test_budgets_of_any_type_are_floats_that_promise_no_more(made, kind):
    given = made(epsilon=kind(1.1), delta=kind(1e-4))
    assert type(given.epsilon) is type(given.delta) is float
    for name, value in (("epsilon", kind(1.1)), ("delta", kind(1e-4))):
        exact = Fraction(float(value)) if isinstance(value, np.floating) else Fraction(value)
        assert Fraction(getattr(given, name)) <= exact
    assert given == made(epsilon=given.epsilon, delta=given.delta)


@pytest.mark.parametrize(
    "made",
    [
        partial(SparseVector, queries=np.int64(10), refusals=np.uint8(2)),
        partial(StableRelease, queries=np.uint8(10)),
        partial(GNMax, queries=np.uint8(20)),
        partial(GNMax, queries=np.int16(20), classes=np.uint8(2)),
        partial(
            ConfidentGNMax, queries=np.int64(10), answers=np.int8(5), threshold=np.int64(20), ratio=np.float16(3.3)
        ),
        partial(Gate, refusals=np.int64(2)),
        partial(AdaptiveVector, queries=np.int64(10), teachers=np.uint16(60)),
    ],
    ids=lambda made: made.func.__name__,
)
def test_numpys_numbers_become_pythons_which_files_can_hold(made):
    mechanism = made(epsilon=1.0, delta=1e-4)
    plain = type(mechanism)(**{field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)})
    assert {type(getattr(mechanism, field.name)).__module__ for field in dataclasses.fields(mechanism)} == {"builtins"}
    assert mechanism == plain
    assert json.dumps(dict(mechanism.guarantee.detail))
    assert certified([mechanism.guarantee], title="NumPy").statement


def test_a_narrow_ratio_makes_no_narrow_noise():
    made = ConfidentGNMax(epsilon=1.0, delta=1e-4, queries=10, answers=5, threshold=20, ratio=np.float16(3.3))
    assert type(made.test_sigma) is float
