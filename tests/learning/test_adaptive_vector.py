"""Noise that is chosen anew: what is charged whatever was answered, exact laws, runs that go on, and what it buys.

Seeded noise does not fail by chance.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import ScriptedNoise, SeededNoise, exact_law, hockey_stick
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from tacit import BudgetSpentError, Comparison, InputError, NoTheoremError
from tacit.learning import AdaptiveVector, PrivateClassifier, SparseVector, asking
from tacit.learning.choice import choice
from tacit.learning.interrupted import Notes
from tacit.learning.mechanisms import AdaptiveSession
from tacit.learning.mechanisms.adaptive_policy import UNIT
from tacit.learning.mechanisms.cases import possible_margins
from tacit.learning.mechanisms.expectations import Votes, alike
from tacit.learning.mechanisms.session import Session
from tacit.learning.mechanisms.sparse_vector import refusing
from tacit.learning.worst_case import worst_case_attack
from tacit.ledger import Ledger
from tacit.theory import adaptive_threshold
from tacit.theory.adaptive_threshold import adaptive_threshold_delta, least_scale, refusal_price
from tacit.theory.open_threshold import telling_chance

SMALL = AdaptiveVector(epsilon=1.0, delta=1e-5, queries=400, teachers=300)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize("teachers", [1, 300, 10**5])
def test_constants_are_those_of_the_theorem(epsilon, delta, teachers):
    mechanism = AdaptiveVector(epsilon=epsilon, delta=delta, queries=100, teachers=teachers)
    found = mechanism.constants
    for scale, price, threshold in zip(found.scales, found.prices, found.thresholds, strict=True):
        assert scale > least_scale(found.order)
        assert refusal_price(scale, order=found.order) * UNIT <= price
        assert telling_chance(threshold, scale=scale) <= found.labels / 2 * min(1, price / found.budget)
    assert found.last_scale >= least_scale(found.order)
    assert telling_chance(found.last_threshold, scale=found.last_scale) <= found.labels / 2
    spent = adaptive_threshold_delta(epsilon, order=found.order, budget=found.budget / UNIT, labels=found.labels)
    assert 0.99 * delta < spent == mechanism.delta_spent <= delta
    assert found.budget < 2**53  # so that floats hold it exactly


@settings(max_examples=60)
@given(st.floats(0.2, 4), st.integers(20, 3000), st.randoms(use_true_random=False), st.sampled_from([0.02, 0.3, 0.8]))
def test_whatever_is_answered_prices_stay_within_the_budget(epsilon, teachers, coins, often):
    """The rule is followed along random refusals; what was charged is added up anew."""
    mechanism = AdaptiveVector(epsilon=epsilon, delta=1e-5, queries=150, teachers=teachers)
    noise = ScriptedNoise()
    session, spent, last = mechanism.session(noise), 0, False
    while not session.stopped:
        scale, threshold, price = session.option
        assert not (last and price is not None)
        assert (scale, threshold, price) in mechanism.constants.options
        if price is not None:
            assert spent + price <= mechanism.constants.budget
        refused = coins.random() < often
        noise.values = [refused]
        distance = coins.randrange(3 * threshold)
        answer = session.answer([2 * distance + 2, 0])
        assert noise.asked[-1] == refusing(distance, scale=scale, threshold=threshold) / 2**160
        assert answer == (None if refused else 0)
        spent += refused * (price or 0)
        last = price is None
        assert session.left == mechanism.constants.budget - spent
        assert session.ended == (refused and last)
    assert session.ended or session.asked == 150


@pytest.mark.parametrize("ways", [(1,), (-1,), (1, 1, 1), (1, -1, 1, -1), (-1, -1, 1, 1, -1, 1), (0, 0, 0)])
def test_the_law_of_short_sessions_by_enumeration(ways):
    """Neighbours' transcripts, with winners that differ where the way is 0, are no further apart than is claimed."""
    mechanism = AdaptiveVector(epsilon=2.0, delta=0.02, queries=6, teachers=60)
    found = mechanism.constants
    top = 2 * found.thresholds[0] + 2
    rows = [((top, 1), (top - way, 1 + way)) if way else ((2, 1), (1, 2)) for way in ways]
    laws = [exact_law(mechanism, part) for part in zip(*rows, strict=True)]
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 3.0):
        claimed = adaptive_threshold_delta(epsilon, order=found.order, budget=found.budget / UNIT, labels=found.labels)
        for one, other in (laws, laws[::-1]):
            assert hockey_stick(one, other, epsilon) <= claimed


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Generous(AdaptiveVector):
    """Eight times the budget that is charged for."""

    def session(self, noise=None):
        session = super().session(noise)
        session._state.left *= 8
        return session


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Half(AdaptiveVector):
    """Half the noise that is charged for."""

    def response(self, counts, session):
        scale, threshold, _ = session.option
        chance = refusing(max(0, int(counts.max() - counts.min()) - 2 - threshold), scale=scale, threshold=threshold)
        refused = session.noise.coin(chance, of=2**160)
        session.count(refused=refused)
        return None if refused else int(counts.argmax())


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Endless(AdaptiveVector):
    """The last refusal ends nothing."""

    def session(self, noise=None):
        return _EndlessSession(self, noise)


class _EndlessSession(AdaptiveSession):
    def count(self, *, refused):
        super().count(refused=refused)
        self.ended = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Telling(AdaptiveVector):
    """Where one vote decides, half of all queries are answered."""

    def response(self, counts, session):
        if abs(int(counts[0] - counts[1])) > 1:
            return super().response(counts, session)
        refused = session.noise.coin(1, of=2)
        session.count(refused=refused)
        return None if refused else int(counts.argmax())


BUDGET = {"epsilon": 2.0, "delta": 1e-5, "queries": 200}


@pytest.mark.parametrize("teachers", [40])
def test_the_attack_comes_near_and_contradicts_nothing(teachers):
    mechanism = AdaptiveVector(**BUDGET, teachers=teachers)
    attack = worst_case_attack(mechanism, runs=100, failure_probability=1e-6)
    assert 0.8 * mechanism.epsilon <= attack.low <= mechanism.epsilon
    assert not Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize("broken", [_Generous, _Half, _Endless, _Telling])
def test_what_is_not_paid_for_is_caught(broken):
    mechanism = broken(**{**BUDGET, "queries": 80 if broken is _Endless else 200}, teachers=60)
    attack = worst_case_attack(mechanism, runs=100, failure_probability=1e-6)
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


def answered(mechanism, lead, noise):
    """The answers to equally likely leads, in an order of chance."""
    session = mechanism.session(noise)
    for each in np.random.default_rng(0).permutation(lead):
        if session.stopped:
            break
        session.answer([(mechanism.teachers + each) // 2, (mechanism.teachers - each) // 2])
    return session.answered


@pytest.mark.parametrize(("mean", "spread"), [(0.2, 0.6), (0.5, 0.5), (0.9, 0.05), (1.0, 0.0)])
def test_answers_are_foreseen(mean, spread):
    """Within a fifth, or twenty, of the mean of eight sessions."""
    mechanism = AdaptiveVector(epsilon=2.0, delta=1e-5, queries=1000, teachers=600)
    shares = np.clip(mean * (1 + spread * stats.norm.ppf((np.arange(1000) + 0.5) / 1000)), -1, 1)
    lead = (600 - 2 * np.rint(300 * (1 - shares))).astype(int)
    ((foreseen, _),) = mechanism.policy.foreseen(alike([Votes(lead=lead.astype(float), teachers=600)]))
    seen = np.mean([answered(mechanism, np.abs(lead), SeededNoise(seed)) for seed in range(8)])
    assert abs(foreseen - seen) <= max(20, 0.2 * seen)


def test_it_need_not_be_told_how_many_it_will_refuse():
    """Where all agree it answers nearly all, as one refusal would do; where many differ, most of what a good T does."""
    for mean, spread, refusals in ((1.0, 0.0, 1), (0.5, 0.6, 256)):
        mechanism = AdaptiveVector(epsilon=2.0, delta=1e-5, queries=1000, teachers=1000)
        shares = np.clip(mean * (1 + spread * stats.norm.ppf((np.arange(1000) + 0.5) / 1000)), 0, 1)
        lead = 2 * np.rint(500 * shares).astype(int)
        best = SparseVector(epsilon=2.0, delta=1e-5, refusals=refusals, queries=1000)
        told = best.session(SeededNoise(1))
        for each in lead:
            if not told.stopped:
                told.answer([500 + each // 2, 500 - each // 2])
        assert answered(mechanism, lead, SeededNoise(2)) > 0.8 * told.answered
        assert told.answered > 500


def test_by_name_it_is_chosen_without_refusals():
    budget = {"epsilon": 1.0, "delta": 1e-5, "teachers": 300}
    wanted = {**budget, "points": 500, "queries": None, "lead": possible_margins(None)}
    found = choice("svt-adaptive", **wanted)
    assert found.mechanism == AdaptiveVector(**budget, queries=500)
    with pytest.raises(InputError, match="must be left out for svt-adaptive"):
        PrivateClassifier(epsilon=1.0, delta=1e-5, mechanism="svt-adaptive", refusals=3).fit(X, Y, PUBLIC)


@pytest.mark.parametrize(("epsilon", "delta"), [(5000.0, 1e-5), (1e3, 1e-30)])
def test_where_no_constants_are_known_another_mechanism_is_chosen(epsilon, delta):
    wanted = {"teachers": 300, "points": 50, "queries": None, "lead": possible_margins(None)}
    assert not isinstance(choice("auto", epsilon=epsilon, delta=delta, **wanted).mechanism, AdaptiveVector)


def test_a_session_that_has_ended_stays_so():
    session = SMALL.session(ScriptedNoise())
    while not session.stopped:
        session.noise.values = [True]
        session.answer([3, 2])
    assert session.ended
    with pytest.raises(BudgetSpentError):
        session.count(refused=False)
    with pytest.raises(BudgetSpentError):
        SMALL.session().replay([None] * session.refused + [0], charged=0)
    with pytest.raises(NoTheoremError, match="one by one"):
        SMALL.session().go_on(answered=1, refused=0)


def test_another_session_is_refused():
    with pytest.raises(NoTheoremError, match="a session of its own"):
        SMALL.response(np.array([3, 4]), Session(SparseVector(epsilon=1.0, delta=1e-5, refusals=2)))


GENERATOR = np.random.default_rng(0)
Y = np.arange(1500) % 2
X = GENERATOR.normal(size=(1500, 3)) + 8 * Y[:, None]
PUBLIC = GENERATOR.normal(size=(60, 3)) + 8 * (np.arange(60) % 2)[:, None]


def test_an_interrupted_run_goes_on_with_what_is_left(tmp_path, monkeypatch):
    """And not where its arithmetic comes to something else."""
    monkeypatch.setattr(asking, "_BLOCK", 10)
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=2, delta=1e-5)
    model = PrivateClassifier(
        GaussianNB(), student=GaussianNB(), ledger=ledger, random_state=0, epsilon=2.0, delta=1e-5, n_teachers=100,
        mechanism="svt-adaptive", queries="all", classes=[0, 1],
    )  # fmt: skip
    add = Notes.add

    def dying(notes, detail):
        if len(notes.found) == 3:
            raise KeyboardInterrupt
        add(notes, detail)

    with monkeypatch.context() as context:
        context.setattr(Notes, "add", dying)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, PUBLIC, folder=tmp_path / "private")
    (entry,) = ledger.entries()
    before = Notes.left(ledger, entry)
    assert len(before.answers) == 30
    session = AdaptiveVector(epsilon=2.0, delta=1e-5, queries=60, teachers=100).session()
    session.replay([answer for _, answer in before.answers], charged=0)
    assert (before.found[-1]["left"], before.found[-1]["last"]) == (session.left, session.last)
    with monkeypatch.context() as context:
        context.setattr(AdaptiveSession, "left", property(lambda self: int(self._state.left[0]) - 1))
        with pytest.raises(InputError, match="must come to what follows from its answers"):
            model.fit(X, Y, PUBLIC, folder=tmp_path / "private")
    model.fit(X, Y, PUBLIC, folder=tmp_path / "private")
    found = Notes.left(ledger, entry)
    assert found.answers[:30] == before.answers
    assert found.value("resumed") == 0
    assert model.guarantee_.value == 2.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta", 1e-30), ("epsilon", 5000.0), ("queries", 0), ("teachers", 0), ("teachers", 1.5), ("epsilon", math.nan)],
)
def test_what_cannot_be_made_is_refused(name, value):
    with pytest.raises(InputError, match=name):
        AdaptiveVector(**{"epsilon": 1.0, "delta": 1e-5, "queries": 10, "teachers": 20, name: value})


def test_scales_end_where_nothing_is_proven_of_larger_ones():
    found = AdaptiveVector(epsilon=1e-6, delta=1e-20, queries=10, teachers=2**53)
    assert found.constants.scales[-1] <= adaptive_threshold.COARSEST < 1.25 * found.constants.scales[-1]
    assert found.delta_spent <= 1e-20
