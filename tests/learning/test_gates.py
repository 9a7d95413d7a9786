"""The gate and its tables: distances by enumeration, exact laws, stopping, stored designs, and attacks.

Seeded noise does not fail by chance; the one test on the operating system's entropy says how often it does.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from noises import ScriptedNoise, SeededNoise, exact_law, hockey_stick

from tacit import BudgetSpentError, Comparison, InputError
from tacit.learning import (
    ABSTAIN,
    Confirm,
    Game,
    Gate,
    PrivateClassifier,
    distinguishing_attack,
    vote_counts,
    votes_to_flip,
    winners,
    worst_case,
)
from tacit.learning.choice import choice
from tacit.learning.mechanisms import gate_design
from tacit.learning.mechanisms.expectations import Votes
from tacit.learning.mechanisms.registry import KINDS
from tacit.learning.worst_case import worst_case_attack
from tacit.theory.confidence import binomial_lower, binomial_upper
from tacit.theory.gate import ONE, confirm_delta, gate_delta

# At δ = 1e-5: from how many votes to flip on 99 % are to be answered, by (ε, T).
GATE_99 = {
    (0.5, 1): 117, (0.5, 5): 183, (0.5, 20): 300, (0.5, 100): 594,
    (1.0, 1): 65, (1.0, 5): 100, (1.0, 20): 162, (1.0, 100): 318,
    (2.0, 1): 37, (2.0, 5): 55, (2.0, 20): 88, (2.0, 100): 172,
    (4.0, 1): 21, (4.0, 5): 31, (4.0, 20): 49, (4.0, 100): 95,
}  # fmt: skip
CONFIRM_99 = {
    (1.0, 1): 39, (1.0, 5): 58, (1.0, 20): 93, (1.0, 100): 182,
    (2.0, 1): 22, (2.0, 5): 32, (2.0, 20): 51, (2.0, 100): 98,
}  # fmt: skip


@pytest.fixture(scope="module")
def small():
    """Mechanisms with few entries, so that laws can be enumerated."""
    return Gate(epsilon=4.0, delta=0.02, refusals=2), Confirm(epsilon=4.0, delta=0.02, refusals=2)


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("teachers", [1, 2, 3, 4])
def test_one_vote_moves_the_distance_by_one_and_the_winner_only_at_none(classes, teachers):
    """All councils and all changes of one vote, abstentions included."""
    options = [ABSTAIN, *range(classes)]
    votes = np.array(list(itertools.product(options, repeat=teachers)))
    counts = vote_counts(votes, classes=classes)
    distance, winner = votes_to_flip(counts), winners(counts)
    leads = np.stack([proposal_leads(counts, label) for label in range(classes)])
    place = {tuple(row): index for index, row in enumerate(votes.tolist())}
    for index, row in enumerate(votes.tolist()):
        for vote in options:
            other = place[(vote, *row[1:])]  # councils are symmetric: the first teacher stands for each
            if winner[index] == winner[other]:
                assert abs(distance[index] - distance[other]) <= 1
            else:
                assert distance[index] == distance[other] == 0
            assert np.abs(leads[:, index] - leads[:, other]).max() <= 1


def proposal_leads(counts, label):
    others = np.delete(np.concatenate([counts, np.zeros((len(counts), 1), dtype=np.int64)], axis=1), label, axis=1)
    return (counts[:, label] - others.max(axis=1)) // 2


def test_tables_reach_the_distances_asked_for():
    for (epsilon, refusals), most in GATE_99.items():
        assert Gate(epsilon=epsilon, delta=1e-5, refusals=refusals).distance(chance=0.01) <= most
    for (epsilon, refusals), most in CONFIRM_99.items():
        assert Confirm(epsilon=epsilon, delta=1e-5, refusals=refusals).lead(chance=0.01) <= most


STORED = [budget for budget in gate_design._stored() if budget[3] <= 5 or budget in [(True, 1.0, 1e-5, 100)]]


@pytest.mark.parametrize("budget", STORED, ids=str)
def test_stored_designs_prove_what_they_cost(budget):
    labels, epsilon, delta, refusals = budget
    mechanism = (Gate if labels else Confirm)(epsilon=epsilon, delta=delta, refusals=refusals)
    assert 0.999 * delta < mechanism.delta_spent <= delta
    assert mechanism.guarantee.value == epsilon
    table = mechanism.table
    assert list(table) == sorted(table, reverse=True)
    assert min(table) == gate_design.FLOOR > 0
    assert mechanism.delta_spent == mechanism.guarantee.detail["delta_spent"]


def test_designs_are_searched_for_where_none_is_stored(small):
    told = []
    found = gate_design.find_design(3.0, 0.05, refusals=1, labels=True, advance=told.append)
    assert found is gate_design.find_design(3.0, 0.05, refusals=1, labels=True)
    assert len(told) > 20
    for mechanism in small:
        assert 0.999 * mechanism.delta < mechanism.delta_spent <= mechanism.delta


def profile(mechanism, cost, epsilons):
    """δ at several ε, by one certificate."""
    certificate = mechanism.design.certificate()
    return {epsilon: cost(epsilon, table=mechanism.table, refusals=2, certificate=certificate) for epsilon in epsilons}


def counts_at(distance, way):
    """Two-class counts so many votes from a flip, before and after one vote moved."""
    top = 2 * distance + 2
    return (top + 1, 1), (top + 1 - way, 1 + way)


def test_the_gate_by_enumeration(small):
    gate, _ = small
    certified = profile(gate, gate_delta, (0.0, 0.5, 1.0, 4.0))
    middle = gate.distance(chance=0.5)
    for offsets in ([0, 0, 0, 0], [-2, -1, 0, 1], [2, 2, -1, 0]):
        for ways in itertools.product((1, -1), repeat=4):
            pairs = [counts_at(max(1, middle + offset), way) for offset, way in zip(offsets, ways, strict=True)]
            laws = [exact_law(gate, rows) for rows in zip(*pairs, strict=True)]
            for epsilon, delta in certified.items():
                assert hockey_stick(*laws, epsilon) <= delta + 1e-12


def test_winners_that_differ_cost_what_was_paid_for_labels(small):
    gate, _ = small
    laws = [exact_law(gate, [row] * 3) for row in ((5, 4, 0), (4, 5, 0))]
    beta = 1 - gate.chance(0)
    assert hockey_stick(*laws, 3.0) == pytest.approx(1 - (1 - beta) ** 2, rel=1e-9)
    assert hockey_stick(*laws, 3.0) <= gate.delta


def test_confirmations_by_enumeration(small):
    _, confirm = small
    certified = profile(confirm, confirm_delta, (0.0, 1.0, 4.0))
    for first, second in itertools.product(range(-2, 6), repeat=2):
        rows = [(10 + 2 * lead, 10) for lead in (first, second, first)]
        moved = [(high - 1, low + 1) for high, low in rows]
        laws = [exact_law(confirm, rows), exact_law(confirm, moved)]
        for epsilon, delta in certified.items():
            assert hockey_stick(*laws, epsilon) <= delta + 1e-12


def test_the_coin_is_that_of_the_distance_and_the_last_refusal_ends_it():
    gate = Gate(epsilon=1.0, delta=1e-5, refusals=2)
    noise = ScriptedNoise(False, True, False, True)
    session = gate.session(noise)
    rows = [(250, 0), (0, 3, 3), (0, 90), (10**6, 0)]
    assert [session.answer(row) for row in rows] == [0, None, 1, None]
    assert noise.asked == [gate.table[124], gate.table[0], gate.table[44], gate_design.FLOOR]
    assert session.stopped
    with pytest.raises(BudgetSpentError, match="has stopped"):
        session.answer((250, 0))


def test_confirmations_are_of_the_label_proposed():
    confirm = Confirm(epsilon=1.0, delta=1e-5, refusals=1)
    noise = ScriptedNoise(False, False, False, True)
    session = confirm.session(noise)
    least, table = confirm.design.leads
    assert session.answer((10, 30, 0), proposed=1) == 1
    assert session.answer((10, 30, 0), proposed=0) == 0
    assert session.answer((30, 10)) == 0
    assert session.answer((0, 10**6, 5), proposed=2) is None
    assert noise.asked == [table[10 - least], table[-10 - least], table[10 - least], table[0]]
    assert confirm.chance(0) == 0.5
    assert session.stopped
    for proposed in (3, -1, 1.0, True, None):
        with pytest.raises(InputError, match="proposed must"):
            confirm.session().answer((1, 2, 3), proposed=proposed)


def test_refusals_come_as_often_as_the_table_says():
    """The operating system's coins, 4000 of each of three distances: fails by chance with probability 6e-6."""
    gate = Gate(epsilon=1.0, delta=1e-5, refusals=1)
    for chance in (0.9, 0.5, 0.1):
        distance = gate.distance(chance=chance)
        row = (2 * distance + 2, 0)
        refused = sum(gate.session().answer(row) is None for _ in range(4000))
        low = binomial_lower(refused, trials=4000, failure_probability=1e-6)
        assert low <= gate.chance(distance) <= binomial_upper(refused, trials=4000, failure_probability=1e-6)


@dataclass(frozen=True, kw_only=True)
class ShiftedTable(Gate):
    """A table that does not begin at 1 − β: labels come out where one vote decides."""

    def response(self, counts, session):
        distance = int(votes_to_flip(counts[None])[0]) + self.distance(chance=0.5)
        return None if session.noise.coin(self.table[min(distance, len(self.table) - 1)]) else int(np.argmax(counts))


@dataclass(frozen=True, kw_only=True)
class NoRefusalsFarOut(Gate):
    """Chances below a quarter are taken for none."""

    def response(self, counts, session):
        chance = self.table[min(int(votes_to_flip(counts[None])[0]), len(self.table) - 1)]
        return None if chance > ONE // 4 and session.noise.coin(chance) else int(np.argmax(counts))

    @property
    def undecided(self):
        return 2 * self.distance(chance=0.25) + 1, 0


@pytest.mark.parametrize("broken", [ShiftedTable, NoRefusalsFarOut])
def test_broken_gates_are_caught(broken):
    mechanism = broken(epsilon=4.0, delta=1e-5, refusals=1)
    attack = distinguishing_attack(mechanism, runs=1_000, failure_probability=1e-6, noise=SeededNoise(0))
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize("mechanism", [Gate, Confirm])
def test_right_gates_keep_their_claims(mechanism):
    """Also against a long run of answers, which votes closer to a flip make less likely."""
    right = mechanism(epsilon=4.0, delta=1e-5, refusals=1)
    far = right.distance(chance=0.25) if mechanism is Gate else right.lead(chance=0.25)
    run = Game(name="a long run", left=[(2 * far + 3, 1)] * 12, right=[(2 * far + 2, 2)] * 12)
    for tried, runs, at_least in (([run], 20_000, 0.3), (None, 300, 3.8)):
        attack = distinguishing_attack(right, runs=runs, failure_probability=1e-4, tried=tried, noise=SeededNoise(0))
        assert at_least <= attack.low <= 4.0
        assert not Comparison(guarantee=right.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize(
    "mechanism",
    [
        Gate(epsilon=1.0, delta=1e-5, refusals=5),
        Confirm(epsilon=2.0, delta=1e-5, refusals=5),
        Gate(epsilon=4.0, delta=0.02, refusals=2),
    ],
    ids=str,
)
def test_the_worst_adversary_comes_close_to_the_claim_and_stays_below(mechanism):
    attack = worst_case_attack(mechanism, runs=100, failure_probability=1e-3)
    assert 0.9 * mechanism.epsilon <= attack.low <= mechanism.epsilon
    certified = mechanism.delta_spent
    gains = worst_case._Adversary(mechanism, np.random.default_rng(1)).gains(mechanism.epsilon, games=30)
    assert 0.98 * certified < gains.mean()
    assert gains.max() <= certified * (1 + 1e-9), "no game may gain more than the certificate allows"


@pytest.mark.parametrize("right", [Gate, Confirm])
def test_played_games_are_weighed_rightly(right):
    """The gains of all transcripts of a short game, each with the chance of being played, are its hockey stick."""
    mechanism = right(epsilon=4.0, delta=0.02, refusals=2)
    adversary = worst_case._Adversary(mechanism, np.random.default_rng(0))
    query = adversary._queries[0]
    adversary._queries, adversary._choice = [query], lambda left, y: (query, 0.3)  # noqa: ARG005
    laws = [exact_law(mechanism, [row] * 5) for row in (query.here, query.there)]
    truth = sum(max(0.0, p - laws[1].get(key, 0.0)) for key, p in laws[0].items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_case, "_LONGEST", 5)
        patch.setattr(adversary, "worth", lambda left, y: 2.0)  # noqa: ARG005 — so that it never ends a game
        gains = adversary.gains(0.0, games=4000)
    assert gains.mean() == pytest.approx(truth, abs=5 * gains.std() / np.sqrt(4000))
    assert gains.std() > 0


@dataclass(frozen=True, kw_only=True)
class AnyVotesShift(Gate):
    """A table read some votes too far out: a label may come out where one vote decides."""

    votes: int = 2

    def response(self, counts, session):
        place = min(int(votes_to_flip(counts[None])[0]) + self.votes, len(self.table) - 1)
        return None if session.noise.coin(self.table[place]) else int(np.argmax(counts))


@dataclass(frozen=True, kw_only=True)
class Steeper(Gate):
    """Every third vote counts twice: there chances fall faster than the certificate allows."""

    def response(self, counts, session):
        distance = int(votes_to_flip(counts[None])[0])
        place = min(distance + distance // 3, len(self.table) - 1)
        return None if session.noise.coin(self.table[place]) else int(np.argmax(counts))


@dataclass(frozen=True, kw_only=True)
class OtherCounts(Confirm):
    """Leads are taken to be the whole difference: one vote moves them by 2."""

    def response(self, counts, session):
        first, *others = counts.tolist()
        return None if session.noise.coin(self._of(first - max(others))) else 0


@dataclass(frozen=True, kw_only=True)
class OneRefusalMore(Gate):
    """It stops a refusal too late."""

    def finished(self, session):
        return session.refused > self.refusals


@dataclass(frozen=True, kw_only=True)
class OneDenialMore(Confirm):
    """It stops a denial too late."""

    def finished(self, session):
        return session.refused > self.refusals


@pytest.mark.parametrize(
    "broken",
    [
        OneRefusalMore(epsilon=1.0, delta=1e-5, refusals=1),
        OneDenialMore(epsilon=1.0, delta=1e-5, refusals=1),
        AnyVotesShift(epsilon=1.0, delta=1e-5, refusals=5),
    ],
    ids=lambda broken: type(broken).__name__,
)
def test_the_worst_adversary_takes_what_sessions_do_and_not_what_they_say(broken):
    attack = worst_case_attack(broken, runs=100, failure_probability=1e-3)
    assert Comparison(guarantee=broken.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize(
    ("broken", "refusals"), [(AnyVotesShift, 1), (AnyVotesShift, 5), (Steeper, 1), (Steeper, 5), (OtherCounts, 5)]
)
def test_tables_that_are_read_wrongly_are_caught(broken, refusals):
    mechanism = broken(epsilon=4.0, delta=1e-5, refusals=refusals)
    attack = distinguishing_attack(mechanism, runs=400, failure_probability=1e-6, noise=SeededNoise(0))
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


def test_sessions_that_the_worst_adversary_does_not_understand_show_nothing():
    """Two coins a query, or an answer against the coin: what it read would not be the chance."""

    class TwoCoins(Gate):
        def response(self, counts, session):
            session.noise.coin(ONE // 2)
            return super().response(counts, session)

    class Contrary(Gate):
        def response(self, counts, session):
            return 0 if super().response(counts, session) is None else None

    for odd in (TwoCoins, Contrary):
        assert worst_case_attack(odd(epsilon=4.0, delta=1e-5, refusals=1), runs=20).low == 0


@pytest.mark.parametrize("mechanism", [Gate, Confirm])
def test_budgets_beyond_the_search_are_refused(mechanism):
    for change in ({"epsilon": 0.001}, {"epsilon": 30.0}, {"delta": 1e-13}, {"delta": 0.2}, {"refusals": 201}):
        with pytest.raises(InputError, match="must"):
            mechanism(**{"epsilon": 1.0, "delta": 1e-5, "refusals": 1, **change})


@pytest.mark.parametrize(("epsilon", "refusals"), [(0.5, 100), (1.0, 5), (2.0, 20), (4.0, 1)])
def test_what_the_choice_expects_of_a_gate_is_near_its_table(epsilon, refusals):
    gate = Gate(epsilon=epsilon, delta=1e-5, refusals=refusals)
    lead = np.arange(1.0, 4 * gate.distance(chance=0.01), 3.0)
    noise = 1 / gate_design.likely_step(epsilon, 1e-5, refusals=refusals)
    answered, right = KINDS["gate"].expected(Votes(lead=lead, teachers=10**4), queries=10**4, noise=noise)
    distance = np.ceil(lead / 2).astype(int) - 1
    truth = 10**4 * np.mean([1 - gate.chance(int(d)) for d in distance])
    assert answered == right
    assert abs(answered - truth) < 0.03 * 10**4


def test_auto_takes_the_gate_where_votes_are_concentrated_and_says_so():
    found = choice("auto", epsilon=2.0, delta=1e-5, teachers=500, points=2000, queries=None, lead=(0.9,) * 19 + (0.1,))
    assert isinstance(found.mechanism, Gate)
    assert "gate" in found.reason
    split = choice("auto", epsilon=2.0, delta=1e-5, teachers=250, points=2000, queries=None, lead=(0.3, 0.2))
    assert not isinstance(split.mechanism, Gate)
    extreme = choice("auto", epsilon=100.0, delta=1e-5, teachers=250, points=200, queries=None, lead=(0.9,))
    assert "gate" not in extreme.reason


def test_a_classifier_learns_through_the_gate():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    points = labels[:, None] * 4.0 + rng.normal(size=(4000, 2))
    learner = PrivateClassifier(
        epsilon=4.0, mechanism="gate", refusals=5, n_teachers=150, key=bytes(32), classes=[0, 1]
    )
    learner.fit(points[:3000], labels[:3000], X_public=points[3000:])
    assert learner.guarantee_.value == 4.0
    assert learner.guarantee_.detail["mechanism"] == "Gate"
    assert len(learner.answered_) > 500
    assert learner.score(points[3000:], labels[3000:]) > 0.95
