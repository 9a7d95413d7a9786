"""The ledger itself: a budget and what was spent of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import checked
from ..errors import BudgetSpentError, InputError
from ..guarantee import Adversary, Assumption, Guarantee
from . import amounts, database, records
from .amounts import Amount, Number
from .export import write_export
from .records import Entry, Note


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A budget and what was spent of it; made by `Ledger.open`.

    No connection outlives a call: a ledger may be used by many threads and processes, forked, and pickled.
    """

    where: str = field(repr=False)  # may hold a password
    budget: Amount

    @classmethod
    def open(cls, where: str | Path, *, epsilon: Number | None = None, delta: Number | None = None) -> Ledger:
        """The ledger in this SQLite file, or at this address `postgresql://USER:PASSWORD@HOST/DATABASE`.

        A new one is created with the budget given. One that exists keeps its budget: a different one is refused, and
        so is a ledger whose records are not as they were written.
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
        if not database.exists(place):
            if wanted is None:
                raise InputError(
                    "the ledger",
                    database.name_of(place),
                    requirement="must exist unless it is opened with a budget",
                    remedy="check its name, or pass epsilon and delta",
                )
            database.create(place, wanted)
        state, _ = _verified(place)
        budget = records.amount_in(state)
        if wanted is not None and wanted != budget:
            raise InputError(
                f"the budget of {database.name_of(place)}",
                str(wanted),
                requirement=f"must stay {budget}",
                remedy="open it without a budget, or start another ledger for other data",
            )
        return cls(where=place, budget=budget)

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
        place = checked.whole("entry", place, at_least=1, remedy="pass what spend() returned, or its id")
        if number is not None:
            number = checked.whole("number", number, at_least=1, remedy="count the answers from 1")
        detail = records.checked_detail(detail)
        return records.note_of(self._appended(place, number, what="note", cost=amounts.NOTHING, detail=detail))

    @property
    def spent(self) -> Amount:
        """The sum of all entries."""
        with database.transaction(self.where, write=False) as connection:
            return records.spent_in(database.state_in(connection))

    @property
    def remaining(self) -> Amount:
        """What the budget still covers."""
        return self.budget - self.spent

    def entries(self) -> tuple[Entry, ...]:
        """All entries in order."""
        _, found = _verified(self.where)
        return tuple(records.entry_of(record, self.budget) for record in _entries(found))

    def notes(self, entry: Entry | int | None = None) -> tuple[Note, ...]:
        """The notes of an entry, or all of them, in order."""
        place = entry.id if isinstance(entry, Entry) else entry
        _, found = _verified(self.where)
        kept = (record for record in found if record["number"] and place in (None, record["entry"]))
        return tuple(map(records.note_of, kept))

    def verify(self) -> str:
        """The digest of the last record, once the whole chain is found to be as it was written.

        Who can write to the database can forge a whole chain: a digest kept elsewhere shows that too, since it must be
        in every later chain.
        """
        state, _ = _verified(self.where)
        return str(state["digest"])

    @property
    def origin(self) -> str:
        """The digest of its first record, which tells it from every other ledger, also of the same budget."""
        with database.transaction(self.where, write=False) as connection:
            return str(records.opening(database.state_in(connection))["digest"])

    def to_dict(self) -> dict[str, Any]:
        """Everything a reviewer needs, in plain JSON types; docs/ledger.md says how to check the digests."""
        state, found = _verified(self.where)
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
            "records": [records.opening(state), *found],
        }

    def export(self, path: str | Path) -> None:
        """Everything for a reviewer, as `.json` or as `.csv` with one line a record."""
        write_export(self.to_dict, path, ledger=self.where)

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
            else "basic composition as a privacy filter (docs/ledger.md; Rogers et al. 2016, arXiv:1605.08294)",
            assumptions=(
                Assumption(
                    text="each release is (ε, δ)-differentially private at the cost of its entry, for the neighbours "
                    "that it names",
                    checked_by="caller",
                ),
                Assumption(text="nothing computed from the data was released without an entry", checked_by="caller"),
                Assumption(text="the costs together never exceed the budget", checked_by="code"),
            ),
            detail={"ledger": database.name_of(self.where), "neighbours": kinds},
        )

    def _covered(self, spent: Amount, cost: Amount) -> Amount:
        """What is spent with this cost, or `BudgetSpentError`."""
        if not self.budget.covers(spent + cost):
            raise BudgetSpentError(
                f"the budget of {database.name_of(self.where)} must cover {cost}, "
                f"got {self.budget - spent} remaining; spend less, or stop here"
            )
        return spent + cost

    def _appended(
        self, entry: int | None, number: int | None, *, what: str, cost: Amount, detail: Mapping[str, Any]
    ) -> dict[str, Any]:
        """One transaction: whoever holds the ledger's one row is alone, and what it reads is the latest."""
        with database.transaction(self.where, write=True) as connection:
            state = database.state_in(connection, lock=True)
            spent = self._covered(records.spent_in(state), cost)
            identity = int(state["last"]) + 1
            record: dict[str, Any] = {
                "id": identity,
                "entry": identity if entry is None else entry,
                "number": 0 if entry is None else database.free_number(connection, self.where, entry, number),
                "time": records.now(),
                "what": what,
                **records.as_columns(cost),
                **records.as_columns(spent, prefix="spent_"),
                "detail": detail,
                "previous": state["digest"],
            }
            record["digest"] = records.digest_of(record)
            database.append(connection, record)
        return record


def _entries(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries among records."""
    return [record for record in found if record["number"] == 0]


def _verified(where: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The ledger's row and all records, read in one moment, once they are found to belong together."""
    with database.transaction(where, write=False) as connection:
        state, rows = database.state_in(connection), database.rows_in(connection)
    return state, records.chain(state, rows, ledger=database.name_of(where))
