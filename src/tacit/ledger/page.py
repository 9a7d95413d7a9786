"""What `tacit ledger` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..guarantee import Comparison, decoded
from .amounts import NOTHING
from .database import name_of
from .ledger import Ledger
from .records import spent_in

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
    summary = [
        f"Entries: {len(entries)}. Spent: {spent}. Remaining: {ledger.budget - spent}.",
        f"All records, 0 to {len(records) - 1}, are as they were written; the last digest is {content['digest']}.",
    ]
    if len(entries) > _RECENT:
        summary.append(f"The last {_RECENT} entries (the JSON has all of them):")
    summary += [
        f"{entry['id']}. {entry['time'][:19]}Z, {entry['what']}: ε = {entry['epsilon']} and δ = {entry['delta']}."
        for entry in entries[-_RECENT:]
    ]
    return Report(
        command="ledger",
        title=f"The ledger {name_of(ledger.where)}",
        summary=tuple(summary),
        comparisons=(Comparison(guarantee=ledger.guarantee(), attack=None),),
        detail={"ledger": decoded(content)},
    )
