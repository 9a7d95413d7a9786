"""What `tacit ledger` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..guarantee import Comparison, decoded
from .amounts import NOTHING
from .database import name_of
from .ledger import Ledger
from .records import by_neighbours, neighbours_in, spent_in

if TYPE_CHECKING:
    from ..report import Report

_RECENT = 20


def statement(where: str | Path) -> Report:
    """The report of `tacit ledger`: what was spent, what remains, and whether the records are as they were written."""
    from ..report import Report

    ledger = Ledger.open(where)
    content = ledger.to_dict()
    records = content["records"]
    entries = [record for record in records if record.get("number") == 0]
    spent = spent_in(entries[-1]) if entries else NOTHING
    kinds = by_neighbours(entries)
    summary = [f"Entries: {len(entries)}. Spent: {spent}. Remaining: {ledger.budget - spent}."]
    if len(kinds) == 1:
        summary.append(f"All entries are about the same thing, {next(iter(kinds))}, so their costs add up.")
    elif kinds:
        sums = "; ".join(f"about {kind}: {total}" for kind, (_, total) in kinds.items())
        summary.append(
            f"The entries are about different things, so what was spent is no promise about any of them: {sums}. What "
            "an entry about labels leaves open, features of records, may be published in full; an entry about records "
            "counts for one changed label as one record replaced, up to twice its ε. Keep a ledger for each kind."
        )
    summary.append(
        f"All records, 0 to {len(records) - 1}, are as they were written; the last digest is {content['digest']}."
    )
    if len(entries) > _RECENT:
        summary.append(f"The last {_RECENT} entries (the JSON has all of them):")
    summary += [
        f"{entry['id']}. {entry['time'][:19]}Z, {entry['what']}: ε = {entry['epsilon']} and δ = {entry['delta']}, "
        f"{neighbours_in(entry['detail'])}."
        for entry in entries[-_RECENT:]
    ]
    return Report(
        command="ledger",
        title=f"The ledger {name_of(ledger.where)}",
        summary=tuple(summary),
        comparisons=(Comparison(guarantee=ledger.guarantee(), attack=None),),
        detail={"ledger": decoded(content)},
    )
