"""Decisions of one session: each is in the ledger before anybody is told of it, and none is made twice.

A decision is the answer to one query, or a refusal. Decisions are notes of the ledger's entry that has paid for the
session, in numbered notes of which only one process can write each; every note also holds, encrypted, the noise of as
many decisions to come. docs/proofs/service.md says why the whole is one session of the mechanism.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BudgetSpentError, InputError
from ..learning.mechanisms import Gate, Session, SparseVector
from ..ledger import Entry, Ledger, Note
from . import noise

AHEAD = 512
"""Decisions whose noise is on the disk at any time, and so the most that one note holds."""

_KEY_BYTES = 32
_IDENTITY = 32
"""Hexadecimal digits of a query's identity: 128 bits."""

Status = Literal["answered", "refused", "spent", "quota"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is told about one query.

    Attributes
    ----------
    status
        "answered" or "refused"; "spent" if the session has stopped, "quota" if whoever asks may ask no more.
    answer
        The number of the class, if it is answered.
    recorded
        Whether it was on record before this query, and cost nothing.
    """

    status: Status
    answer: int | None = None
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query that nobody has asked before, as far as is known.

    Attributes
    ----------
    identity
        What `Decisions.identity` says of it.
    counts
        The votes for each class.
    asker
        The name of whoever asks, as the ledger shows it.
    """

    identity: str
    counts: NDArray[np.int64]
    asker: str


class Decisions:
    """The decisions of one session that the ledger's entry has paid for.

    Several processes may go on with one session: each number of a note is taken by one of them, and the others read
    what it wrote before they decide.

    Parameters
    ----------
    ledger, entry
        The ledger, and the entry that has paid.
    mechanism
        The mechanism.
    key
        The secret key of the session, of 32 bytes.
    quotas
        The most fresh queries of each asker; those that are not named have no limit.

    Attributes
    ----------
    answered, refused
        The numbers of answers and of refusals, as of the latest call of `show`, as all below.
    stopped
        Whether the session has stopped.
    asked_by
        The number of fresh queries of each asker.
    refusal_times
        When notes with refusals were written, in UTC.
    """

    def __init__(
        self,
        ledger: Ledger,
        entry: Entry,
        mechanism: Gate | SparseVector,
        key: bytes,
        *,
        quotas: Mapping[str, int] | None = None,
    ) -> None:
        if len(key) != _KEY_BYTES:
            raise InputError("key", f"{len(key)} bytes", requirement=f"must be {_KEY_BYTES} bytes", remedy="draw one")
        self.mechanism = mechanism
        self.quotas: dict[str, int] = dict(quotas or {})
        self._ledger, self._entry = ledger, entry
        self._sealing, self._naming = (_derived(key, use) for use in (b"noise", b"queries"))
        self._lock = threading.Lock()
        self._noise = noise.NoiseAhead(mechanism)
        self._record: dict[str, int | None] = {}
        self._asked_by: Counter[str] = Counter()
        self._showing = threading.Lock()
        self._unseen: list[Note] = []
        self._unseen_names: set[str] = set()
        self.asked_by: Counter[str] = Counter()
        self.refusal_times: list[str] = []
        self.answered = self.refused = 0
        self.stopped = False
        self._answered = self._refused = 0
        self._last: Note | None = None
        with self._lock:
            self._catch_up()
            while not self._noise.ahead:
                self._note([])
        self.show()

    @property
    def began(self) -> str:
        """When the session was paid for, in UTC."""
        return self._entry.time

    def identity(self, content: bytes) -> str:
        """The name of a query on record, which says nothing about it to those who do not hold the key.

        Parameters
        ----------
        content
            The query; equal queries, and they alone, are equal bytes.
        """
        return hmac.new(self._naming, content, hashlib.sha256).hexdigest()[:_IDENTITY]

    def known(self, identity: str) -> Decision | None:
        """What is on record about a query; None if it was not decided, as far as this process has shown."""
        if identity not in self._record or identity in self._unseen_names:
            return None
        return _told(self._record[identity], recorded=True)

    def show(self) -> None:
        """Let `known` and the counters say what is on record by now; until then, `decide` alone tells of it.

        Were they to follow the record at once, whoever asks again and again would see when a decision was written.
        """
        with self._showing:
            for note in self._unseen:
                for identity, answer, asker in note.detail["decided"]:
                    self._unseen_names.discard(identity)
                    self.asked_by[asker] += 1
                    if answer is None:
                        self.refused += 1
                        self.refusal_times.append(note.time)
                    else:
                        self.answered += 1
            self._unseen.clear()
            self.stopped = self.refused >= self.mechanism.refusals

    def decide(self, queries: Sequence[Query]) -> list[Decision]:
        """Decide queries in their order. Once this returns, all decisions are on the disk.

        Parameters
        ----------
        queries
            At most `AHEAD` of them; equal ones are decided once.

        Returns
        -------
        A decision for each query.

        Raises
        ------
        InputError
            If the ledger cannot be written. Then nothing may be told; a later call finds what was written.
        """
        with self._lock:
            decided, told = self._decided(queries)
            while decided and not self._note(decided):
                decided, told = self._decided(queries)
            fresh = {identity for identity, _, _ in decided}
            return [
                _told(self._record[query.identity], recorded=query.identity not in fresh)
                if query.identity in self._record
                else Decision(told[query.identity])
                for query in queries
            ]

    def refresh(self) -> None:
        """Read what other processes have decided."""
        with self._lock:
            self._catch_up()

    def _decided(self, queries: Sequence[Query]) -> tuple[list[tuple[str, int | None, str]], dict[str, Status]]:
        """The decisions about queries that are not on record, and why there is none about others."""
        session, asked_by = self._session(), Counter(self._asked_by)
        decided: list[tuple[str, int | None, str]] = []
        told: dict[str, Status] = {}
        seen: set[str] = set()
        for query in queries:
            if query.identity in self._record or query.identity in seen:
                continue
            seen.add(query.identity)
            if session.stopped:
                told[query.identity] = "spent"
            elif asked_by[query.asker] >= self.quotas.get(query.asker, asked_by[query.asker] + 1):
                told[query.identity] = "quota"
            else:
                self._noise.at = session.asked
                answer = session.answer(query.counts)
                if isinstance(answer, tuple):
                    raise BudgetSpentError("a service must release labels alone, got noisy counts; serve gate or svt")
                decided.append((query.identity, answer, query.asker))
                asked_by[query.asker] += 1
        return decided, told

    def _session(self) -> Session:
        """The session as it stands by the record."""
        session = self.mechanism.session(self._noise)
        session.go_on(answered=self._answered, refused=self._refused)
        return session

    def _note(self, decided: Sequence[tuple[str, int | None, str]]) -> bool:
        """Write decisions, and noise for as many more; False if others came first, whose notes are read then."""
        first = self._noise.ahead
        draws = noise.drawn(self.mechanism, len(decided) or AHEAD)
        detail = {
            "decided": [list(one) for one in decided],
            "noise": noise.sealed(draws, self._sealing, self._place(first)),
        }
        number = 1 if self._last is None else self._last.number + 1
        try:
            note = self._ledger.note(self._entry, detail, number=number)
        except InputError:
            if self._catch_up():
                return False
            raise
        self._adopt(note)
        return True

    def _catch_up(self) -> bool:
        """Read notes that this process does not know; whether there were any."""
        found = self._ledger.notes_after(self._entry, self._last)
        for note in found:
            self._adopt(note)
        return bool(found)

    def _adopt(self, note: Note) -> None:
        """Take over the decisions and the noise of the next note."""
        if note.number != (1 if self._last is None else self._last.number + 1):
            raise InputError(
                f"note {note.number} of entry {note.entry}",
                "out of order",
                requirement="must follow the note before it",
                remedy="the ledger was written by something else: answer nothing",
            )
        self._noise.add(noise.opened(note.detail["noise"], self._sealing, self._place(self._noise.ahead)))
        with self._showing:
            self._unseen.append(note)
            self._unseen_names.update(identity for identity, _, _ in note.detail["decided"])
        for identity, answer, asker in note.detail["decided"]:
            self._record[identity] = answer
            self._asked_by[asker] += 1
            if answer is None:
                self._refused += 1
            else:
                self._answered += 1
        self._noise.forget(self._answered + self._refused)
        self._last = note

    def _place(self, first: int) -> str:
        return f"{self._ledger.origin} {self._entry.id} {first}"


def _told(answer: int | None, *, recorded: bool) -> Decision:
    return Decision("refused" if answer is None else "answered", answer, recorded)


def _derived(key: bytes, use: bytes) -> bytes:
    """A key for one use."""
    return hmac.new(key, b"tacit service " + use, hashlib.sha256).digest()
