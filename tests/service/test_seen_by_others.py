"""What those who read the ledger see, and what they may hold against it, whatever fails."""

import errno

import numpy as np
import pytest

from tacit.core.errors import InputError
from tacit.learning.mechanisms import Gate, SparseVector
from tacit.ledger import anchor
from tacit.service import noise
from tacit.service.decisions import Decisions, Query

KEY = bytes(range(32))
GATE = Gate(epsilon=4.0, delta=1e-5, refusals=10)


def query(decisions, number):
    return Query(decisions.identity(b"%d" % number), np.array([95, 5, 0], dtype=np.int64), "ann")


def test_the_length_of_sealed_noise_tells_nothing_about_it():
    """Auditors read the ledger: a shorter text would be a smaller number."""
    extremes = [0, 7, 10**9, 2**63 - 1, 2**160 - 1]
    assert len({len(noise.sealed([number], KEY, "here")) for number in extremes}) == 1
    for mechanism in (GATE, SparseVector(epsilon=8.0, delta=1e-5, refusals=10)):
        for draws in ([draw] for draw in noise.drawn(mechanism, 200)):
            assert noise.opened(noise.sealed(draws, KEY, "here"), KEY, "here") == draws


def test_an_answer_whose_note_stands_is_told_only_once_the_anchor_has_moved(account, tmp_path, monkeypatch):
    """Otherwise a ledger without this note could be restored, and its anchor would not know."""
    ledger, entry = account
    decisions = Decisions(ledger, entry, GATE, KEY)
    before = anchor.required(str(tmp_path / "anchor.json"))

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(anchor, "write_whole", no_room)
    with pytest.raises(InputError, match=r"^anchor must be a file that can be written"):
        decisions.decide([query(decisions, 1)])
    assert decisions.known(query(decisions, 1).identity) is None
    assert anchor.required(str(tmp_path / "anchor.json")) == before
    monkeypatch.undo()
    assert len(ledger.notes(entry)) == 2  # the noise, and the decision that nobody was told
    (told,) = decisions.decide([query(decisions, 1)])
    assert told.recorded
    assert anchor.required(str(tmp_path / "anchor.json")).id == ledger.last()["id"]


def test_a_process_that_reads_what_another_wrote_moves_its_own_anchor(account, tmp_path):
    ledger, entry = account
    writer = Decisions(ledger, entry, GATE, KEY)
    reader = Decisions(ledger.anchored(tmp_path / "elsewhere.json", new=True), entry, GATE, KEY)
    writer.decide([query(writer, 1)])
    assert anchor.required(str(tmp_path / "elsewhere.json")).id < ledger.last()["id"]
    reader.refresh()
    reader.show()
    assert reader.known(query(reader, 1).identity).recorded
    assert anchor.required(str(tmp_path / "elsewhere.json")).id == ledger.last()["id"]
