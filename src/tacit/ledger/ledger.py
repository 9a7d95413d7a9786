"""The ledger itself: a budget and what was spent of it."""

from __future__ import annotations

import hmac
import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core import validate
from ..core.errors import BudgetSpentError, InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from . import amounts, anchor as anchors, database, records
from .amounts import Amount, Number
from .anchor import Mark
from .export import write_export
from .records import Entry, Note

_meeting = threading.Lock()
"""Whoever notes what was met holds it: one for all ledgers, since an object with a lock of its own cannot travel."""
if hasattr(os, "register_at_fork"):  # a child does not begin with a lock that nobody will open
    os.register_at_fork(before=_meeting.acquire, after_in_parent=_meeting.release, after_in_child=_meeting.release)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A budget and what was spent of it; made by `Ledger.open`.

    No connection outlives a call: a ledger may be used by many threads and processes, forked, and pickled.
    """

    where: str = field(repr=False)  # may hold a password
    budget: Amount
    origin: str
    """The digest of its first record, which tells it from every other ledger, also of the same budget."""
    anchors: tuple[str, ...] = ()
    """Files that remember the last record; see `anchored`."""
    _seen: list[Mark] = field(default_factory=list, repr=False, compare=False)
    """The last record that this object has met, if any: nobody may bring back an earlier ledger under its hands."""

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        anchor: str | Path | None = None,
        new_anchor: bool = False,
    ) -> Ledger:
        """The ledger in this SQLite file, or at this address `postgresql://USER:PASSWORD@HOST/DATABASE`.

        A new one is created with the budget given. One that exists keeps its budget: a different one is refused, and
        so is a ledger whose records are not as they were written, or that no longer holds what `anchor` remembers. An
        anchor that is not there is made with a new ledger; for one that exists, only with `new_anchor`.
        """
        place = database.place_of(where)
        if (epsilon is None) != (delta is None):
            raise InputError(
                "the budget",
                {"epsilon": epsilon, "delta": delta},
                requirement="must have both epsilon and delta, or neither",
                remedy="pass delta=0 for pure differential privacy",
            )
        wanted = None if epsilon is None else amounts.budget(epsilon, delta)
        file = "" if anchor is None else str(Path(anchor).absolute())
        before = anchors.remembered(file) if file else None
        new = not database.exists(place)
        if new:
            if wanted is None:
                raise InputError(
                    "the ledger",
                    database.name_of(place),
                    requirement="must exist unless it is opened with a budget",
                    remedy="check its name; to make a new one, pass epsilon and delta (tacit learn: --new-ledger)",
                )
        if file:
            anchors.check(file, before, new_ledger=new, new_anchor=new_anchor)
        if new and wanted is not None:
            database.create(place, wanted)
        with database.transaction(place, write=False) as connection:
            found = database.state_in(connection)
            records.head(found, database.row_in(connection, found["last"]), ledger=database.name_of(place))
        opened = cls(where=place, budget=records.amount_in(found), origin=records.opening(found)["digest"])
        if wanted is not None and wanted != opened.budget:
            raise InputError(
                f"the budget of {database.name_of(place)}",
                str(wanted),
                requirement=f"must stay {opened.budget}",
                remedy="open it without a budget, or start another ledger for other data",
            )
        if anchor is not None:
            return opened.anchored(anchor, new=new or new_anchor)
        opened._read()
        return opened

    def anchored(self, path: str | Path, *, new: bool = False) -> Ledger:
        """The same ledger, whose last record the file at `path` remembers from now on, next to other anchors.

        It must be there and remember a record of this ledger: else the ledger was rolled back, or is another. With
        `new`, one that is not there is made. It is checked whenever the ledger is read or written, and moves on before
        `spend` or `note` returns. Keep it where the ledger's backups do not reach; a link to it is followed.
        """
        place = str(Path(path).absolute())
        if new and anchors.remembered(place) is None:
            state, _ = self._read()
            anchors.advance(place, Mark(state["last"], state["digest"]))
        found = replace(self, anchors=(*self.anchors, place))
        state, _ = found._read()
        found._remember(Mark(state["last"], state["digest"]))
        return found

    def require(self, *, epsilon: Number, delta: Number = 0) -> None:
        """Raise `BudgetSpentError` where `spend` would now; nothing is reserved."""
        self._covered(self.spent, amounts.cost(epsilon, delta))

    def spend(self, what: str, *, epsilon: Number, delta: Number = 0, detail: Mapping[str, Any] | None = None) -> Entry:
        """Record a release before it is made. Once this returns, the entry survives a crash; then release.

        Raises `BudgetSpentError`, and records nothing, if the budget does not cover the cost. After any other error the
        entry may or may not stand, and nothing may be released.
        """
        cost = amounts.cost(epsilon, delta)
        what, detail = records.checked_what(what), records.checked_detail({} if detail is None else detail)
        return records.entry_of(self._appended(None, None, what=what, cost=cost, detail=detail), self.budget)

    def note(self, entry: Entry | int, detail: Mapping[str, Any], *, number: int | None = None) -> Note:
        """Record something with an entry at no cost, e.g. answer `number` before it leaves.

        A number is taken once: who is refused must not answer. Without one, the note takes the next.
        """
        place = entry.id if isinstance(entry, Entry) else entry
        place = validate.whole("entry", place, at_least=1, remedy="pass what spend() returned, or its id")
        if number is not None:
            number = validate.whole("number", number, at_least=1, remedy="count the answers from 1")
        detail = records.checked_detail(detail)
        return records.note_of(self._appended(place, number, what="note", cost=amounts.NOTHING, detail=detail))

    @property
    def spent(self) -> Amount:
        """The sum of all entries."""
        known = self._known()
        with database.transaction(self.where, write=False) as connection:
            state = self._state(connection, known)
        self._meet(Mark(state["last"], state["digest"]))
        return records.spent_in(state)

    @property
    def remaining(self) -> Amount:
        """What the budget still covers."""
        return self.budget - self.spent

    def entries(self) -> tuple[Entry, ...]:
        """All entries in order."""
        _, found = self._read()
        return tuple(records.entry_of(record, self.budget) for record in _entries(found))

    def notes(self, entry: Entry | int | None = None) -> tuple[Note, ...]:
        """The notes of an entry, or all of them, in order."""
        place = entry.id if isinstance(entry, Entry) else entry
        _, found = self._read()
        kept = (record for record in found if record["number"] and place in (None, record["entry"]))
        return tuple(map(records.note_of, kept))

    def verify(self) -> str:
        """The digest of the last record, once the whole chain is found to be as it was written.

        Who can write to the database can forge a whole chain: an anchor, or the owner's seals, show that, too.
        """
        state, _ = self._read()
        return str(state["digest"])

    def seal(self, key: bytes, *, first: bool = False) -> int:
        """Vouch with the owner's key for every record that is there, once they are verified; the last one's id.

        All earlier seals must be of this key. Where there is none, the ledger may have been made anew, and is sealed
        only with `first`; where there is one, `first` is refused.
        """
        key = records.checked_key(key)
        known = self._known()
        with database.transaction(self.where, write=True) as connection:
            state = self._state(connection, known, lock=True)
            found = records.chain(state, database.rows_in(connection), ledger=self._name)
            seals = database.seals_in(connection)
            last = self._last_sealed(key, seals, [records.opening(state), *found])
            if last is None and not first:
                raise self._unsealed()
            if last is not None and first:
                raise InputError(
                    f"the ledger {self._name}",
                    f"seals up to record {last}",
                    requirement="must hold none to be sealed for the first time",
                    remedy="seal it as any other: first=False; in commands, --sign",
                )
            if state["last"] not in seals:
                database.add_seal(connection, state["last"], records.seal_of(state["digest"], key))
        self._meet(Mark(state["last"], state["digest"]))
        return int(state["last"])

    def sealed(self, key: bytes) -> int:
        """The last record for which this key vouches. It and all before it were there when the owner sealed them.

        Raises `InputError` if any seal does not fit, or there is none. What no seal can show is that later records,
        and seals of them, were taken away: an anchor does.
        """
        key = records.checked_key(key)
        with database.transaction(self.where, write=False) as connection:
            seals = database.seals_in(connection)
        state, found = self._read()
        last = self._last_sealed(key, seals, [records.opening(state), *found])
        if last is None:
            raise self._unsealed()
        return last

    def _unsealed(self) -> InputError:
        return InputError(
            f"the ledger {self._name}",
            "no seal",
            requirement="must have been sealed before it can be checked, or sealed again, with a key",
            remedy="if you sealed it before, somebody made it anew: spend nothing; if you never did, look at it, then "
            "seal it with --sign-first (in Python, first=True)",
        )

    def _last_sealed(self, key: bytes, seals: Mapping[int, str], found: list[dict[str, Any]]) -> int | None:
        for place, seal in seals.items():
            known = isinstance(place, int) and 0 <= place < len(found) and isinstance(seal, str)
            expected = records.seal_of(found[place]["digest"], key) if known else ""
            if not known or not hmac.compare_digest(seal.encode(errors="replace"), expected.encode()):
                raise InputError(
                    f"the seal of record {place} of {self._name}",
                    seal,
                    requirement="must be that of this key on this record",
                    remedy="check the key; if it is the owner's, the ledger was changed: spend nothing",
                )
        return max(seals, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything a reviewer needs, in plain JSON types; docs/ledger.md says how to check the digests."""
        state, found = self._read()
        spent = records.spent_in(state)
        return {
            "schema": records.SCHEMA,
            "composition": "basic: costs are added",
            "neighbours": {
                kind: {"entries": ids, **records.as_columns(total)}
                for kind, (ids, total) in records.by_neighbours(_entries(found)).items()
            },
            "budget": records.as_columns(self.budget),
            "spent": records.as_columns(spent),
            "remaining": records.as_columns(self.budget - spent),
            "digest": state["digest"],
            "clock_went_back": records.went_back([records.opening(state), *found]),
            "records": [records.opening(state), *found],
        }

    def export(self, path: str | Path) -> None:
        """Everything for a reviewer, as `.json` or as `.csv` with one line a record."""
        write_export(self.to_dict, path, kept=(self.where, *self.anchors))

    def guarantee(self) -> Guarantee:
        """What the budget promises about everything that was or will be recorded here.

        Nothing, where entries are about different neighbours: no two data sets are neighbours in both senses, and what
        one entry bounds another may give away.
        """
        kinds = sorted({entry.neighbours for entry in self.entries()}) or [records.NEIGHBOURS]
        mixed, about = len(kinds) > 1, " or ".join(kinds)
        return Guarantee(
            quantity=f"privacy loss ε of all recorded releases together, at δ = {self.budget.delta:f}, {about}",
            side="at_most",
            value=math.inf if mixed else amounts.float_above(self.budget.epsilon),
            adversary=Adversary.ANY,
            theorem="none: entries are about different neighbours, and do not add up"
            if mixed
            else "basic composition as a privacy filter (tacit proof ledger; Rogers et al. 2016, arXiv:1605.08294)",
            assumptions=(
                Assumption(
                    text="each release is (ε, δ)-differentially private at the cost of its entry, for the neighbours "
                    "that it names",
                    checked_by="caller",
                ),
                Assumption(text="nothing computed from the data was released without an entry", checked_by="caller"),
                Assumption(
                    text="nobody brought back an earlier ledger or made it anew (anchors and seals show it)",
                    checked_by="caller",
                ),
                Assumption(text="the costs together never exceed the budget", checked_by="code"),
            ),
            detail={"ledger": self._name, "neighbours": kinds},
        )

    def _covered(self, spent: Amount, cost: Amount) -> Amount:
        """What is spent with this cost, or `BudgetSpentError`."""
        if not self.budget.covers(spent + cost):
            raise BudgetSpentError(
                f"the budget of {self._name} must cover {cost}, "
                f"got {self.budget - spent} remaining; spend less, or stop here"
            )
        return spent + cost

    def _appended(
        self, entry: int | None, number: int | None, *, what: str, cost: Amount, detail: Mapping[str, Any]
    ) -> dict[str, Any]:
        """One transaction: whoever holds the ledger's one row is alone, and what it reads is the latest."""
        known = self._known()
        with database.transaction(self.where, write=True) as connection:
            state = self._state(connection, known, lock=True)
            self._meet(Mark(state["last"], state["digest"]))
            spent = self._covered(records.spent_in(state), cost)
            identity = int(state["last"]) + 1
            record: dict[str, Any] = {
                "id": identity,
                "entry": identity if entry is None else entry,
                "number": 0 if entry is None else database.free_number(connection, self.where, entry, number),
                "time": database.time_in(connection),
                "what": what,
                **records.as_columns(cost),
                **records.as_columns(spent, prefix="spent_"),
                "detail": detail,
                "previous": state["digest"],
            }
            record["digest"] = records.digest_of(record)
            database.append(connection, record)
        self._remember(Mark(record["id"], record["digest"]))
        return record

    @property
    def _name(self) -> str:
        return database.name_of(self.where)

    def _read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The ledger's row and all records, read in one moment, once they are found to belong together."""
        known = self._known()
        with database.transaction(self.where, write=False) as connection:
            state, rows = self._state(connection, known), database.rows_in(connection)
        found = records.chain(state, rows, ledger=self._name)
        self._meet(Mark(state["last"], state["digest"]))
        return state, found

    def _known(self) -> list[tuple[str, Mark]]:
        """What the ledger must hold. To be read before the ledger: what is remembered was on its disk before."""
        marks = [(f"the anchor {path}", anchors.required(path)) for path in self.anchors]
        with _meeting:
            marks += [("this process", mark) for mark in self._seen]
        return marks

    def _meet(self, mark: Mark) -> None:
        """Note a record that the ledger holds, unless a later one was met: threads read out of turn."""
        with _meeting:
            if not self._seen or self._seen[0].id < mark.id:
                self._seen[:] = [mark]

    def _remember(self, mark: Mark) -> None:
        """Once the record is on the disk, and before anyone is told."""
        self._meet(mark)
        for path in self.anchors:
            anchors.advance(path, mark)

    def _state(self, connection: Any, known: list[tuple[str, Mark]], *, lock: bool = False) -> dict[str, Any]:
        """The ledger's row, once it fits its last record and holds what is known of it."""
        state = database.state_in(connection, lock=lock)
        records.head(state, database.row_in(connection, state["last"]), ledger=self._name)
        first = records.opening(state)["digest"]
        for who, mark in [("this process", Mark(0, self.origin)), *known]:
            row = {"digest": first} if mark.id == 0 else database.row_in(connection, mark.id)
            if row is None or row["digest"] != mark.digest:
                raise InputError(
                    f"the ledger {self._name}",
                    f"one that ends with record {state['last']}" if row is None else "another record there",
                    requirement=f"must hold record {mark.id} that {who} remembers",
                    remedy="an earlier one was brought back, or it is another: bring back the latest, spend nothing",
                )
        return state


def _entries(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries among records."""
    return [record for record in found if record["number"] == 0]
