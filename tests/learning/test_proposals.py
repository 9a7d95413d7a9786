"""Labels proposed and confirmed: privacy by enumeration of all transcripts, rounds, resuming, and bad proposers."""

import dataclasses
import itertools

import numpy as np
import pytest
from noises import hockey_stick, law_of
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from tacit import InputError
from tacit.learning import Confirm, GNMax, PrivateClassifier, proposals
from tacit.learning.choice import choice
from tacit.learning.interrupted import Notes
from tacit.learning.proposals import Proposer, confirmed
from tacit.ledger import Ledger
from tacit.theory.gate import confirm_delta

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 3000)
POINTS = LABELS[:, None] * 3.0 + RNG.normal(size=(3000, 2))
PUBLIC = LABELS[2400:, None] * 3.0 + RNG.normal(size=(600, 2))
TRUTH = LABELS[2400:]
OTHERS = RNG.integers(0, 2, 40)
ELSEWHERE = OTHERS[:, None] * 3.0 + RNG.normal(size=(40, 2))
FIRST = LogisticRegression().fit(ELSEWHERE, OTHERS)


@pytest.fixture
def small(monkeypatch):
    """Confirmations with a short table, in rounds of 1, 1 and 2, so that students learn from the first answers."""
    monkeypatch.setattr(proposals, "_FIRST_ROUND", 1)
    return Confirm(epsilon=4.0, delta=0.02, refusals=2)


def transcripts(confirm, counts, propose):
    """The law of all that is released: which points were asked about, in which order, and the answers."""

    def play(noise):
        points = np.arange(len(counts))
        return tuple(confirmed(confirm.session(noise), counts, points, propose, done=[], note=lambda _: None))

    return law_of(play)


def neighbours(counts):
    """One teacher changes its vote on every query, one way or the other, or on none."""
    for ways in itertools.product((-1, 0, 1), repeat=len(counts)):
        yield counts + np.outer(ways, [1, -1])


def test_whatever_students_propose_costs_no_more_than_the_confirmations(small):
    """Students learn from answers alone, and which label and which point comes next depends on them."""
    public = np.array([[0.2, 0.1], [1.4, 1.4], [1.7, 1.6], [2.9, 3.0]])
    proposer = Proposer(FIRST, public, np.arange(2), KNeighborsClassifier(1))
    counts = np.array([[6, 5], [5, 6], [4, 5], [4, 7]])
    here = transcripts(small, counts, proposer.proposals)
    orders = {tuple(point for point, _ in transcript) for transcript in here}
    assert len(orders) > 2, "answers must decide what is asked, or nothing is tried here"
    assert sum(here.values()) == pytest.approx(1, abs=1e-12)
    known = {}

    def remembered(done):
        """The proposals after these answers, which are the same whatever the votes are."""
        if tuple(done) not in known:
            known[tuple(done)] = proposer.proposals(done)
        return known[tuple(done)]

    assert transcripts(small, counts, remembered) == here
    others = [transcripts(small, there, remembered) for there in neighbours(counts)]
    certificate = small.design.certificate()
    for epsilon in (0.0, 0.5, 2.0):
        allowed = confirm_delta(epsilon, table=small.table, refusals=2, certificate=certificate)
        worst = max(hockey_stick(here, there, epsilon) for there in others)
        assert worst <= allowed + 1e-12
        assert epsilon or worst > 0.1


def test_proposals_that_look_at_votes_are_seen_to_cost_more(small):
    """The enumeration can fail: who proposes the teachers' winner tells it by the answer."""
    counts, other = np.array([[6, 5], [6, 5]]), np.array([[5, 6], [5, 6]])
    laws = [
        transcripts(small, votes, lambda _, votes=votes: (votes.argmax(axis=1), np.zeros(2)))
        for votes in (counts, other)
    ]
    certificate = small.design.certificate()
    assert hockey_stick(*laws, 2.0) > confirm_delta(2.0, table=small.table, refusals=2, certificate=certificate)


def test_rounds_double_and_the_surest_come_first():
    confirm = Confirm(epsilon=1.0, delta=1e-5, refusals=100)
    counts = np.tile([0, 10**6], (200, 1))
    sure, rounds, told = np.linspace(0, 1, 200), [], []

    def propose(done):
        told.append(len(done))
        return np.ones(200, dtype=np.int64), sure

    found = confirmed(confirm.session(), counts, np.arange(200), propose, done=[], note=rounds.append)
    assert [len(part) for part in rounds] == [32, 32, 64, 72]
    assert told == [0, 32, 64, 128]
    assert [point for point, _ in found] == list(range(199, -1, -1))


def model(**options):
    options = {"epsilon": 4.0, "mechanism": "confirm", "n_teachers": 150, "classes": [0, 1], "refusals": 20, **options}
    return PrivateClassifier(GaussianNB(), key=bytes(32), **options)


def test_a_classifier_learns_from_confirmations():
    """The operating system's coins; 300 of 600 confirmed would need the table to be wrong."""
    learner = model().fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST)
    assert learner.guarantee_.value == 4.0
    assert learner.guarantee_.detail["mechanism"] == "Confirm"
    assumed = learner.guarantee_.assumed(checked_by="caller")
    assert any("was made without the private records" in text for text in assumed)
    assert any("through earlier answers alone" in text for text in assumed)
    assert len(learner.answered_) > 300
    assert np.mean(learner.labels_[learner.answered_] == TRUTH[learner.answered_]) > 0.95
    assert learner.score(PUBLIC, TRUTH) > 0.9
    assert not set(learner.answered_) & set(learner.refused_)


def test_teachers_deny_what_is_wrong():
    """A proposer that is wrong on every point is denied until nothing is left."""
    wrong = LogisticRegression().fit(ELSEWHERE, 1 - OTHERS)
    learner = model(refusals=5)
    with pytest.raises(InputError, match="the number of answers must be at least 1"):
        learner.fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=wrong)
    assert len(learner.refused_) == 5


def test_text_labels_and_models_without_chances():
    names = np.array(["cat", "dog"], dtype=object)
    proposer = RidgeClassifier().fit(ELSEWHERE, names[OTHERS])
    learner = model(classes=["cat", "dog"]).fit(POINTS[:2400], names[LABELS[:2400]], PUBLIC, proposer=proposer)
    assert len(learner.answered_) > 300
    assert set(learner.predict(PUBLIC)) == {"cat", "dog"}


@pytest.mark.parametrize(
    ("proposer", "message"),
    [
        (LogisticRegression(), "must be a fitted classifier of the public records"),
        (LogisticRegression().fit(ELSEWHERE[:, :1], OTHERS), "must be a fitted classifier of the public records"),
        (DummyClassifier(strategy="constant", constant=7).fit(ELSEWHERE, OTHERS + 6), "must name one of 2 classes"),
        (DummyClassifier().fit(ELSEWHERE, np.stack([OTHERS, OTHERS], axis=1)), "must"),
        (None, "must be given for mechanism='confirm'"),
        ("logistic", "must be a fitted classifier"),
    ],
)
def test_bad_proposers_are_refused_before_anything_is_paid_for(tmp_path, proposer, message):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=4, delta=1e-5)
    with pytest.raises(InputError, match=f"proposer {message}"):
        model(ledger=ledger).fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=proposer)
    assert ledger.entries() == ()


@pytest.mark.parametrize("mechanism", ["gate", "gnmax", GNMax(epsilon=1.0, delta=1e-5, queries=5)])
def test_a_proposer_that_nobody_asks_is_refused(mechanism):
    with pytest.raises(InputError, match="for no other but 'auto'"):
        model(mechanism=mechanism).fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST)


def test_an_interrupted_fit_goes_on_with_what_was_confirmed(tmp_path, monkeypatch):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=4, delta=1e-5)
    add = Notes.add

    def dying(notes, detail):
        if len(notes.found) == 2:
            raise KeyboardInterrupt
        add(notes, detail)

    def fit():
        return model(ledger=ledger).fit(
            POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST, folder=tmp_path / "private"
        )

    monkeypatch.setattr(Notes, "add", dying)
    with pytest.raises(KeyboardInterrupt):
        fit()
    monkeypatch.setattr(Notes, "add", add)
    (entry,) = ledger.entries()
    before = Notes.left(ledger, entry).answers
    assert len(before) == 64
    resumed = fit()
    after = Notes.left(ledger, entry)
    assert after.answers[:64] == before
    assert after.value("resumed") == 0, "every query has its own coin"
    assert len({point for point, _ in after.answers}) == len(after.answers) > 64
    assert {point for point, answer in after.answers if answer is not None} == set(resumed.answered_.tolist())
    assert len(ledger.entries()) == 1
    other = LogisticRegression().fit(ELSEWHERE[:10], OTHERS[:10])
    with pytest.raises(InputError, match="differs in proposals"):
        model(ledger=ledger).fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=other, folder=tmp_path / "private")


def test_auto_considers_confirmations_where_somebody_proposes():
    """Few teachers that agree: too few for the gate, enough to confirm a proposer that is often wrong."""
    options = {"epsilon": 2.0, "delta": 1e-5, "teachers": 30, "points": 400, "queries": None, "lead": (0.9,) * 4}
    alone, helped = choice("auto", **options), choice("auto", proposer_error=0.2, **options)
    assert "confirm" not in alone.reason
    assert isinstance(helped.mechanism, Confirm)
    assert "confirm" in helped.reason
    known = choice("auto", proposer_error=0.0, **options)
    assert not isinstance(known.mechanism, Confirm), "nothing is learned from confirming what is known"
    extreme = choice("auto", **{**options, "epsilon": 100.0}, proposer_error=0.2)
    assert "confirm" not in extreme.reason
    learner = model(mechanism="auto", refusals=None, n_teachers=60).fit(
        POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST
    )
    assert "confirm " in learner.choice_
    gated = model(mechanism="auto", refusals=None, queries=20, teacher_accuracy=0.99).fit(
        POINTS[:2400], LABELS[:2400], PUBLIC, proposer=RidgeClassifier().fit(ELSEWHERE, 1 - OTHERS)
    )
    for found in (learner, gated):  # its own account of its errors had a say in the choice, whatever was chosen
        assert any(
            "was made without the private records" in text for text in found.guarantee_.assumed(checked_by="caller")
        )


class Undecided(LogisticRegression):
    """A student that knows no class for some points, and says −1."""

    def predict(self, X):  # noqa: N803
        return np.where(np.arange(len(X)) % 50 == 49, -1, super().predict(X))


class Silent(LogisticRegression):
    """A student that learns and then cannot be asked."""

    def predict(self, X):  # noqa: N803
        raise ArithmeticError(f"{len(X)} points are too many")


def test_a_student_that_cannot_be_asked_is_not_taken_for_the_proposer():
    first = Proposer(FIRST, PUBLIC, np.array([0, 1]), Silent())
    with pytest.raises(InputError, match="the student must be a fitted classifier"):
        first.proposals([(0, 1), (1, 0)])


def test_a_student_that_proposes_no_class_is_refused_before_its_round():
    asked = []
    first = Proposer(FIRST, PUBLIC, np.array([0, 1]), Undecided())
    session = Confirm(epsilon=4.0, delta=1e-5, refusals=20).session()
    counts = np.where(TRUTH[:, None] == [0, 1], 150, 0)
    with pytest.raises(InputError, match="the student must propose one of 2 classes"):
        confirmed(session, counts, np.arange(len(PUBLIC)), first.proposals, done=[], note=asked.append)
    assert session.asked == sum(map(len, asked)) == 32, "all that was drawn was noted"


def test_a_session_goes_on_with_the_table_it_began_with_alone():
    """A folder's mark holds the guarantee's detail: it must tell tables apart."""
    one, other = (Confirm(epsilon=4.0, delta=1e-5, refusals=5) for _ in range(2))
    object.__setattr__(other, "design", dataclasses.replace(one.design, corners=one.design.corners[::2]))
    assert one.table != other.table
    assert one.guarantee.detail["table"] != other.guarantee.detail["table"]


def test_a_search_tells_how_far_it_is():
    told = []
    learner = model(epsilon=3.5, delta=0.03, refusals=1)
    learner.fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST, advance=told.append)
    steps = [text for text in told if text.startswith("searching for a table of chances: step ")]
    assert len(steps) > 20
    assert steps[0].startswith("searching for a table of chances: step 1 of at most 157")
    assert told[len(steps)] == "proving what the table of chances costs"
    again = []
    learner.fit(POINTS[:2400], LABELS[:2400], PUBLIC, proposer=FIRST, advance=again.append)
    assert not any(text.startswith("searching") for text in again)
