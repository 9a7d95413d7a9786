"""Decisions of the service against an independent account of what the ledger holds."""

import hashlib
import hmac
import itertools
import math

import numpy as np
import pytest

from tacit.core.errors import InputError
from tacit.learning.mechanisms import Gate, SparseVector
from tacit.ledger import Ledger
from tacit.service import noise
from tacit.service.decisions import AHEAD, Decisions, Query

KEY = bytes(range(32))
GATE = Gate(epsilon=4.0, delta=1e-5, refusals=10)
SPARSE = SparseVector(epsilon=8.0, delta=1e-5, refusals=10)
MECHANISMS = pytest.mark.parametrize("mechanism", [GATE, SPARSE], ids=["gate", "svt"])


def asked(decisions, number, lead=30, asker="ann"):
    """Query number … in which the first of three classes leads by so many votes of 100."""
    counts = np.array([(100 + lead) // 2, (100 - lead) // 2, 0], dtype=np.int64)
    return Query(decisions.identity(b"%d" % number), counts, asker)


def answers_by_hand(mechanism, leads, draws):
    """An open threshold, or a gate, from noise that is given, written down without looking at the code."""
    told, refused = [], 0
    for lead, draw in zip(leads, draws, strict=False):
        if refused == mechanism.refusals:
            break
        distance = max(0, -(-lead // 2) - 1)
        if isinstance(mechanism, Gate):
            passes = draw >= mechanism.table[min(distance, len(mechanism.table) - 1)]
        else:  # P(Y ≤ y) = 1 − exp(−exp(y/s))
            noise = mechanism.scale * math.log(-math.log1p(-draw / 2**160))
            passes = distance + noise > mechanism.threshold
        told.append(0 if passes else None)
        refused += not passes
    return told


def noise_in(ledger, entry, key=KEY):
    """All noise that the ledger holds, in order."""
    sealing = hmac.new(key, b"tacit service noise", hashlib.sha256).digest()
    found = []
    for note in ledger.notes(entry):
        found += noise.opened(note.detail["noise"], sealing, f"{ledger.origin} {entry.id} {len(found)}")
    return found


def decided_in(ledger, entry):
    return [tuple(one) for note in ledger.notes(entry) for one in note.detail["decided"]]


@MECHANISMS
def test_stored_noise_decides_as_the_session_does(account, mechanism):
    """Every decision on record is what the noise on record gives, by an account of its own, until the last refusal."""
    ledger, entry = account
    decisions = Decisions(ledger, entry, mechanism, KEY)
    random, leads, told = np.random.default_rng(0), [], []
    for size in (1, 7, 60, 300, 300):
        part = random.choice([10, 40, 60, 90], size=size).tolist()
        queries = [asked(decisions, len(leads) + place, lead) for place, lead in enumerate(part)]
        told += decisions.decide(queries)
        leads += part
    by_hand = answers_by_hand(mechanism, leads, noise_in(ledger, entry))
    assert [answer for _, answer, _ in decided_in(ledger, entry)] == by_hand
    assert [one.answer for one in told if one.status in ("answered", "refused")] == by_hand
    decisions.show()
    assert by_hand.count(None) == mechanism.refusals == decisions.refused
    assert by_hand[-1] is None
    assert decisions.stopped
    assert {one.status for one in told[len(by_hand) :]} == {"spent"}


@MECHANISMS
def test_decisions_are_one_session_of_the_mechanism(account, mechanism):
    """However often processes begin again, and whichever of two comes first, the record is that of one session."""
    ledger, entry = account
    leads, number, random = [], itertools.count(), np.random.default_rng(1)
    crowd = [Decisions(ledger, entry, mechanism, KEY) for _ in range(2)]
    for turn in range(40):
        lead = int(random.choice([30, 60, 90]))
        one = crowd[turn % 2]
        if one.decide([asked(one, next(number), lead)])[0].status != "spent":
            leads.append(lead)
        if turn % 7 == 0:
            crowd[turn % 2] = Decisions(ledger, entry, mechanism, KEY)
    by_hand = answers_by_hand(mechanism, leads, noise_in(ledger, entry))
    assert [answer for _, answer, _ in decided_in(ledger, entry)] == by_hand
    for one in crowd:
        one.refresh()
        one.show()
        assert (one.answered, one.refused) == (by_hand.count(0), by_hand.count(None))


@MECHANISMS
def test_the_noise_of_a_decision_is_drawn_once(account, mechanism):
    """A decision that was drawn and not written is made again with the same noise, and comes out the same."""
    ledger, entry = account
    first = Decisions(ledger, entry, mechanism, KEY)
    before = noise_in(ledger, entry)
    assert len(before) == AHEAD
    tentative, _ = first._decided([asked(first, 1, 40)])  # and the process dies here
    second = Decisions(ledger, entry, mechanism, KEY)
    (told,) = second.decide([asked(second, 1, 40)])
    assert told.answer == tentative[0][1]
    assert noise_in(ledger, entry)[:AHEAD] == before
    assert len(noise_in(ledger, entry)) == AHEAD + 1  # and as many more are ahead


def test_a_note_that_was_written_though_an_error_came_is_found(account, monkeypatch):
    """An anchor that cannot be written is an error after the note stands: what was decided is told, and only once."""
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    written = Ledger.note

    def fails_late(self, *arguments, **options):
        written(self, *arguments, **options)
        raise InputError("anchor", "no room", requirement="must be written", remedy="make room")

    monkeypatch.setattr(Ledger, "note", fails_late)
    (told,) = decisions.decide([asked(decisions, 1, 90)])
    monkeypatch.undo()
    assert len(decided_in(ledger, entry)) == 1
    assert decided_in(ledger, entry)[0][1] == told.answer
    assert decisions.decide([asked(decisions, 1, 90)])[0].recorded


def test_nothing_is_told_that_was_not_written(account, monkeypatch):
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    query = asked(decisions, 1, 90)

    def fails(*_, **__):
        raise InputError("the ledger", "no server", requirement="must be reachable", remedy="start it")

    monkeypatch.setattr(Ledger, "note", fails)
    with pytest.raises(InputError, match="must be reachable"):
        decisions.decide([query])
    monkeypatch.undo()
    assert decisions.known(query.identity) is None
    assert not decided_in(ledger, entry)
    assert not decisions.decide([query])[0].recorded


def test_equal_queries_are_decided_once(account):
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    told = decisions.decide([asked(decisions, number, 80) for number in (1, 2, 1, 1)])
    assert len(decided_in(ledger, entry)) == 2
    assert told[0].answer == told[2].answer == told[3].answer
    again = decisions.decide([asked(decisions, 2, 0, asker="eve")])
    assert again[0].recorded
    assert (again[0].status, again[0].answer) == (told[1].status, told[1].answer)
    decisions.show()
    assert decisions.known(decisions.identity(b"2")) == again[0]
    assert decisions.known(decisions.identity(b"3")) is None


def test_quotas_are_exact_and_survive_a_restart(account):
    ledger, entry = account
    quotas = {"ann": 3}
    decisions = Decisions(ledger, entry, GATE, KEY, quotas=quotas)
    told = decisions.decide([asked(decisions, number, 90) for number in range(5)])
    assert [one.status == "quota" for one in told] == [False, False, False, True, True]
    decisions = Decisions(ledger, entry, GATE, KEY, quotas=quotas)
    assert decisions.decide([asked(decisions, 9, 90)])[0].status == "quota"
    assert decisions.decide([asked(decisions, 0, 90)])[0].recorded
    assert decisions.decide([asked(decisions, 9, 90, asker="bob")])[0].status != "quota"
    decisions.show()
    assert decisions.asked_by == {"ann": 3, "bob": 1}


def test_another_key_reads_no_noise(account):
    ledger, entry = account
    Decisions(ledger, entry, GATE, KEY)
    with pytest.raises(InputError, match="restore the key"):
        Decisions(ledger, entry, GATE, bytes(32))
    with pytest.raises(InputError, match="must be 32 bytes"):
        Decisions(ledger, entry, GATE, b"short")


def test_the_ledger_names_no_query(account):
    """What a query was cannot be found by trying all of them without the key."""
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    decisions.decide([asked(decisions, 7, 90)])
    ((identity, _, _),) = decided_in(ledger, entry)
    assert identity == decisions.identity(b"7")
    assert identity != hashlib.sha256(b"7").hexdigest()[: len(identity)]
    assert identity != Decisions.identity(type("Other", (), {"_naming": bytes(32)})(), b"7")


def test_what_is_decided_is_seen_when_it_may_leave(account):
    """Whoever polls the record or the counters must not see when a decision was written."""
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    query = asked(decisions, 1, 90)
    (told,) = decisions.decide([query])
    assert decisions.known(query.identity) is None
    assert (decisions.answered + decisions.refused, sum(decisions.asked_by.values())) == (0, 0)
    assert decisions.decide([query])[0].recorded  # on time, by the schedule
    decisions.show()
    assert decisions.known(query.identity).answer == told.answer
    assert (decisions.answered + decisions.refused, decisions.asked_by) == (1, {"ann": 1})
