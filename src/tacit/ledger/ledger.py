"""The ledger itself: a budget, and the entries of what was spent."""

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
from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Assumption, Guarantee
from . import amounts, database, entries
from . import anchor as anchors
from .amounts import Amount, Number
from .anchor import Mark
from .entries import Entry, Note
from .export import write_export

_meeting = threading.Lock()
"""Guards `Ledger._seen`: one lock for all ledgers, since an object with a lock of its own cannot be pickled."""
if hasattr(os, "register_at_fork"):  # a child does not begin with a lock that nobody will open
    os.register_at_fork(before=_meeting.acquire, after_in_parent=_meeting.release, after_in_child=_meeting.release)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A privacy budget and what was spent of it. Open or create one with `Ledger.open`.

    No connection outlives a call, so a ledger may be shared by threads and processes, forked, and pickled.

    Attributes
    ----------
    where
        The path of the SQLite file, or the address of the PostgreSQL database. It may hold a password.
    budget
        The ε and δ that may be spent in all.
    origin
        The digest of the first link of the chain. It tells this ledger from every other, even of the same budget.
    anchors
        Files outside the ledger that remember its last link; see `anchored`.
    """

    where: str = field(repr=False)  # may hold a password
    budget: Amount
    origin: str
    anchors: tuple[str, ...] = ()
    _seen: list[Mark] = field(default_factory=list, repr=False, compare=False)
    """The last link that this object has read or written: an earlier ledger that is restored is refused."""

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
        """Open a ledger, or create it with the budget given.

        Parameters
        ----------
        where
            The path of an SQLite file, or an address `postgresql://USER:PASSWORD@HOST/DATABASE`.
        epsilon, delta
            The budget of a new ledger. Leave both out to open one that exists, which keeps its budget.
        anchor
            A file outside the ledger that remembers its last link. It is created with a new ledger.
        new_anchor
            Create the anchor for a ledger that exists, if it is not there.

        Returns
        -------
        The ledger, once its whole chain has been checked.

        Raises
        ------
        InputError
            If the ledger does not exist and no budget is given, if it has another budget, if somebody edited it, or if
            it no longer holds what the anchor remembers.
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
        if new and wanted is None:
            raise InputError(
                "the ledger",
                database.name_of(place),
                requirement="must exist unless it is opened with a budget",
                remedy="check its name; to make a new one, pass `epsilon` and `delta`",
            )
        if file:
            anchors.check(file, before, new_ledger=new, new_anchor=new_anchor)
        if new and wanted is not None:
            database.create(place, wanted)
        with database.transaction(place, write=False) as connection:
            found = database.state_in(connection)
            entries.head(found, database.row_in(connection, found["last"]), ledger=database.name_of(place))
        opened = cls(where=place, budget=entries.amount_in(found), origin=entries.opening(found)["digest"])
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
        """Add an anchor: a file that remembers the ledger's last link from now on.

        The anchor is checked whenever the ledger is read or written, and moves on before `spend` or `note` returns.
        Keep it where the ledger's backups do not reach.

        Parameters
        ----------
        path
            The anchor. It must exist, and the ledger must hold the link that it remembers; otherwise an earlier ledger
            was restored, or this is another one. If the path is a symbolic link, its target is written.
        new
            Create the anchor if it does not exist.

        Returns
        -------
        The same ledger with one more anchor.
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
        """Raise `BudgetSpentError` if `spend` would raise it now. Nothing is reserved."""
        self._covered(self.spent, amounts.cost(epsilon, delta))

    def spend(self, what: str, *, epsilon: Number, delta: Number = 0, detail: Mapping[str, Any] | None = None) -> Entry:
        """Add an entry for a release, before the release is made.

        Once this returns, the entry survives a crash, and the release may be made.

        Parameters
        ----------
        what
            What is released, in one line.
        epsilon, delta
            The cost.
        detail
            Anything else that JSON can hold. It is stored in the clear: put nothing private into it. `neighbours` says
            in what two data sets differ that ε and δ compare, if not in one record added or removed.

        Returns
        -------
        The entry.

        Raises
        ------
        BudgetSpentError
            If the budget does not cover the cost. Nothing is spent. After any other error the entry may or may not
            stand, and nothing may be released.
        """
        cost = amounts.cost(epsilon, delta)
        what, detail = entries.checked_what(what), entries.checked_detail({} if detail is None else detail)
        return entries.entry_of(self._appended(None, None, what=what, cost=cost, detail=detail), self.budget)

    def note(self, entry: Entry | int, detail: Mapping[str, Any], *, number: int | None = None) -> Note:
        """Add a note to an entry at no cost, e.g. an answer before it is released.

        Parameters
        ----------
        entry
            The entry, or its id.
        detail
            What to note, in the clear.
        number
            The number of the note, the next free one unless given. Each number can be taken once: a process that is
            refused a number must not release the answer.

        Returns
        -------
        The note.
        """
        place = entry.id if isinstance(entry, Entry) else entry
        place = validate.whole("entry", place, at_least=1, remedy="pass what spend() returned, or its id")
        if number is not None:
            number = validate.whole("number", number, at_least=1, remedy="count the answers from 1")
        detail = entries.checked_detail(detail)
        return entries.note_of(self._appended(place, number, what="note", cost=amounts.NOTHING, detail=detail))

    @property
    def spent(self) -> Amount:
        """The sum of all entries."""
        known = self._known()
        with database.transaction(self.where, write=False) as connection:
            state = self._state(connection, known)
        self._meet(Mark(state["last"], state["digest"]))
        return entries.spent_in(state)

    @property
    def remaining(self) -> Amount:
        """What the budget still covers."""
        return self.budget - self.spent

    def entries(self) -> tuple[Entry, ...]:
        """All entries in order."""
        _, found = self._read()
        return tuple(entries.entry_of(link, self.budget) for link in _entries(found))

    def notes(self, entry: Entry | int | None = None) -> tuple[Note, ...]:
        """The notes of an entry, or all of them, in order."""
        place = entry.id if isinstance(entry, Entry) else entry
        _, found = self._read()
        kept = (link for link in found if link["number"] and place in (None, link["entry"]))
        return tuple(map(entries.note_of, kept))

    def notes_after(self, entry: Entry | int, link: Entry | Note | None) -> tuple[Note, ...]:
        """The notes of an entry that were added after a link, in order. Only what is later is read and checked.

        The anchors move on before this returns, as they do for whoever adds a note.

        Parameters
        ----------
        entry
            The entry, or its id.
        link
            A link that this ledger has returned, all before which was checked then; None reads from the first.

        Returns
        -------
        The notes. The last link of the ledger may be another's: to go on, pass the last note of these.
        """
        place = entry.id if isinstance(entry, Entry) else entry
        if link is None:
            state, found = self._read()
        else:
            mark = Mark(link.id, link.digest)
            known = [*self._known(), ("the caller", mark)]
            with database.transaction(self.where, write=False) as connection:
                state, rows = self._state(connection, known), database.rows_in(connection, after=mark.id - 1)
            _, *found = entries.chain(state, rows, ledger=self._name, first=mark.id)
        # Whoever wrote a note may have died before its anchors moved, and the caller may tell what it holds.
        self._remember(Mark(state["last"], state["digest"]))
        return tuple(entries.note_of(one) for one in found if one["number"] and one["entry"] == place)

    def last(self) -> dict[str, Any]:
        """The id, digest and time of the last link, which stands for the whole chain."""
        known = self._known()
        with database.transaction(self.where, write=False) as connection:
            state = self._state(connection, known)
            row = database.row_in(connection, state["last"])
        self._meet(Mark(state["last"], state["digest"]))
        return {"id": state["last"], "digest": state["digest"], "time": (row or state)["time"]}

    def verify(self) -> str:
        """Check the whole chain, and return the digest of its last link.

        Somebody who can write to the database can forge a whole chain. Anchors and the owner's seals show that, too.
        """
        state, _ = self._read()
        return str(state["digest"])

    def seal(self, key: bytes, *, first: bool = False) -> int:
        """Seal the chain with the owner's key, after checking it and all earlier seals.

        Parameters
        ----------
        key
            At least 32 bytes that nobody else knows.
        first
            Seal a ledger without seals. Such a ledger may have been made anew, so look at it first. Refused if there is
            a seal already.

        Returns
        -------
        The id of the last link, which is sealed together with all before it.
        """
        key = entries.checked_key(key)
        known = self._known()
        with database.transaction(self.where, write=True) as connection:
            state = self._state(connection, known, lock=True)
            found = entries.chain(state, database.rows_in(connection), ledger=self._name)
            seals = database.seals_in(connection)
            last = self._last_sealed(key, seals, [entries.opening(state), *found])
            if last is None and not first:
                raise self._unsealed()
            if last is not None and first:
                raise InputError(
                    f"the ledger {self._name}",
                    f"seals up to link {last}",
                    requirement="must hold none to be sealed for the first time",
                    remedy="seal it as any other, without `first=True`",
                )
            if state["last"] not in seals:
                database.add_seal(connection, state["last"], entries.seal_of(state["digest"], key))
        self._meet(Mark(state["last"], state["digest"]))
        return int(state["last"])

    def sealed(self, key: bytes) -> int:
        """Check all seals, and return the id of the last link that this key has sealed.

        That link and all before it are as they were when the owner sealed them. A seal cannot show that later links and
        their seals were taken away; an anchor can.

        Raises
        ------
        InputError
            If a seal does not fit the key, or there is none.
        """
        key = entries.checked_key(key)
        with database.transaction(self.where, write=False) as connection:
            seals = database.seals_in(connection)
        state, found = self._read()
        last = self._last_sealed(key, seals, [entries.opening(state), *found])
        if last is None:
            raise self._unsealed()
        return last

    def _unsealed(self) -> InputError:
        return InputError(
            f"the ledger {self._name}",
            "no seal",
            requirement="must have been sealed before it can be checked, or sealed again, with a key",
            remedy="if you sealed it before, somebody made it anew: spend nothing; if you never did, look at it, then "
            "seal it with `first=True`",
        )

    def _last_sealed(self, key: bytes, seals: Mapping[int, str], found: list[dict[str, Any]]) -> int | None:
        for place, seal in seals.items():
            known = isinstance(place, int) and 0 <= place < len(found) and isinstance(seal, str)
            expected = entries.seal_of(found[place]["digest"], key) if known else ""
            if not known or not hmac.compare_digest(seal.encode(errors="replace"), expected.encode()):
                raise InputError(
                    f"the seal of link {place} of {self._name}",
                    seal,
                    requirement="must be that of this key on this link",
                    remedy="check the key; if it is the owner's, the ledger was changed: spend nothing",
                )
        return max(seals, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything that a reviewer needs, in plain JSON types; docs/ledger.md says how to check the digests."""
        state, found = self._read()
        spent = entries.spent_in(state)
        return {
            "schema": entries.SCHEMA,
            "composition": "basic: costs are added",
            "neighbours": {
                kind: {"entries": ids, **entries.as_columns(total)}
                for kind, (ids, total) in entries.by_neighbours(_entries(found)).items()
            },
            "budget": entries.as_columns(self.budget),
            "spent": entries.as_columns(spent),
            "remaining": entries.as_columns(self.budget - spent),
            "digest": state["digest"],
            "clock_went_back": entries.went_back([entries.opening(state), *found]),
            "links": [entries.opening(state), *found],
        }

    def export(self, path: str | Path) -> None:
        """Write everything for a reviewer into a `.json` file, or a `.csv` file with one line for each link."""
        write_export(self.to_dict, path, kept=(self.where, *self.anchors))

    @property
    def guarantee(self) -> Guarantee:
        """What the budget promises about all releases that have an entry here, now or later.

        It promises nothing if entries are about different neighbours: no two data sets are neighbours in both senses,
        and what one entry bounds another may give away.
        """
        kinds = sorted({entry.neighbours for entry in self.entries()}) or [entries.NEIGHBOURS]
        mixed, about = len(kinds) > 1, " or ".join(kinds)
        return Guarantee(
            quantity=f"privacy loss ε of all releases with an entry, together, at δ = {self.budget.delta:f}, {about}",
            side="at_most",
            value=math.inf if mixed else amounts.float_above(self.budget.epsilon),
            adversary=Adversary.ANY,
            theorem="none: entries are about different neighbours, and do not add up"
            if mixed
            else ("basic composition", "theory.accounting.basic_composition"),
            assumptions=(
                Assumption(
                    text="each release is (ε, δ)-differentially private at the cost of its entry, for the neighbours "
                    "that it names",
                    checked_by="caller",
                ),
                Assumption(text="nothing computed from the data was released without an entry", checked_by="caller"),
                Assumption(
                    text="nobody restored an earlier ledger or made a new one (anchors and seals show it)",
                    checked_by="caller",
                ),
                Assumption(text="the costs together never exceed the budget", checked_by="code"),
            ),
            detail={"ledger": self._name, "neighbours": kinds},
            evidence=None if mixed else Evidence(rule="ledger", inputs=self._costs),
        )

    def _costs(self) -> dict[str, Any]:
        """What a certificate states: the cost of each entry, for the same neighbours."""
        found = list(self.entries())
        return {
            "delta": self.budget.delta,
            "about": found[0].neighbours if found else entries.NEIGHBOURS,
            "entries": [{"epsilon": one.epsilon, "delta": one.delta, "about": one.neighbours} for one in found],
        }

    def _covered(self, spent: Amount, cost: Amount) -> Amount:
        """What is spent once this cost is added; raises `BudgetSpentError` if that exceeds the budget."""
        if not self.budget.covers(spent + cost):
            raise BudgetSpentError(
                f"the budget of {self._name} must cover {cost}, "
                f"got {self.budget - spent} remaining; spend less, or stop here"
            )
        return spent + cost

    def _appended(
        self, entry: int | None, number: int | None, *, what: str, cost: Amount, detail: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Append a link in one transaction, which locks the ledger's one row and so reads the latest state."""
        known = self._known()
        with database.transaction(self.where, write=True) as connection:
            state = self._state(connection, known, lock=True)
            self._meet(Mark(state["last"], state["digest"]))
            spent = self._covered(entries.spent_in(state), cost)
            identity = int(state["last"]) + 1
            link: dict[str, Any] = {
                "id": identity,
                "entry": identity if entry is None else entry,
                "number": 0 if entry is None else database.free_number(connection, self.where, entry, number),
                "time": database.time_in(connection),
                "what": what,
                **entries.as_columns(cost),
                **entries.as_columns(spent, prefix="spent_"),
                "detail": detail,
                "previous": state["digest"],
            }
            link["digest"] = entries.digest_of(link)
            database.append(connection, link)
        self._remember(Mark(link["id"], link["digest"]))
        return link

    @property
    def _name(self) -> str:
        return database.name_of(self.where)

    def _read(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The ledger's row and all links, read at one moment, after checking that they belong together."""
        known = self._known()
        with database.transaction(self.where, write=False) as connection:
            state, rows = self._state(connection, known), database.rows_in(connection)
        found = entries.chain(state, rows, ledger=self._name)
        self._meet(Mark(state["last"], state["digest"]))
        return state, found

    def _known(self) -> list[tuple[str, Mark]]:
        """The links that the ledger must hold. Read them before the ledger: they were on its disk by then."""
        marks = [(f"the anchor {path}", anchors.required(path)) for path in self.anchors]
        with _meeting:
            marks += [("this process", mark) for mark in self._seen]
        return marks

    def _meet(self, mark: Mark) -> None:
        """Remember a link that the ledger holds, unless a later one is known: threads may read out of turn."""
        with _meeting:
            if not self._seen or self._seen[0].id < mark.id:
                self._seen[:] = [mark]

    def _remember(self, mark: Mark) -> None:
        """Move the anchors on, once the link is on the disk and before anybody is told of it."""
        self._meet(mark)
        for path in self.anchors:
            anchors.advance(path, mark)

    def _state(self, connection: Any, known: list[tuple[str, Mark]], *, lock: bool = False) -> dict[str, Any]:
        """The ledger's row, after checking that it fits its last link and holds all links that are known."""
        state = database.state_in(connection, lock=lock)
        entries.head(state, database.row_in(connection, state["last"]), ledger=self._name)
        first = entries.opening(state)["digest"]
        for who, mark in [("this process", Mark(0, self.origin)), *known]:
            row = {"digest": first} if mark.id == 0 else database.row_in(connection, mark.id)
            if row is None or row["digest"] != mark.digest:
                raise InputError(
                    f"the ledger {self._name}",
                    f"one that ends with link {state['last']}" if row is None else "another link there",
                    requirement=f"must hold link {mark.id} that {who} remembers",
                    remedy="this is an earlier ledger, or another one: restore the latest, and spend nothing",
                )
        return state


def _entries(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries among the links."""
    return [link for link in found if link["number"] == 0]
