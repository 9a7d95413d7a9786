"""What `tacit ledger` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.guarantee import Comparison, decoded
from .amounts import NOTHING
from .anchor import remembered
from .database import name_of
from .ledger import Ledger
from .records import by_neighbours, neighbours_in, spent_in

if TYPE_CHECKING:
    from ..report import Report

_RECENT = 20


def statement(
    where: str | Path, *, anchor: str | Path | None = None, key: Path | None = None, sign: bool = False
) -> Report:
    """The report of `tacit ledger`: what was spent, what remains, and whether the records are as they were written.

    With an anchor, also that no earlier ledger was brought back; with the file of the owner's key, that nobody else
    made the records that it has sealed. `sign` seals those that are there.
    """
    from ..report import Report

    if sign and key is None:
        raise InputError("--sign", None, requirement="must come with --key", remedy="name the file of the owner's key")
    secret = None if key is None else _key(key)
    before = None if anchor is None else remembered(str(anchor))
    ledger = Ledger.open(where, anchor=anchor)
    if sign and secret is not None:
        ledger.seal(secret)
    sealed = None if secret is None else ledger.sealed(secret)
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
    last = len(records) - 1
    summary.append(
        f"All records, 0 to {last}, follow each other as they were written; the last digest is {content['digest']}."
    )
    if sealed is not None:
        later = f" Records {sealed + 1} to {last} came later, and have no seal." if sealed < last else ""
        summary.append(
            f"The owner's key has sealed records 0 to {sealed}: nobody without it made or changed them.{later}"
        )
    if anchor is not None:
        summary.append(
            f"The anchor {anchor} is new, and remembers record {last} from now on."
            if before is None
            else f"No earlier ledger was brought back since record {before.id}, which the anchor {anchor} remembered."
        )
    unknown = []
    if sealed is None:
        unknown.append("whether someone who can write to the database made all records anew (--key shows it)")
    if before is None:
        unknown.append("whether an earlier ledger was brought back (--anchor shows it)")
    if unknown:
        summary.append(f"What this check cannot know: {'; '.join(unknown)}.")
    if content["clock_went_back"]:
        early = ", ".join(map(str, content["clock_went_back"]))
        summary.append(f"The clock went back: earlier than a record before them are {early}.")
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
        comparisons=(Comparison(guarantee=ledger.guarantee()),),
        detail={"ledger": decoded(content)},
    )


def _key(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as failure:
        raise InputError(
            "--key",
            f"{path}: {getattr(failure, 'strerror', None) or failure}",
            requirement="must be a file that can be read",
            remedy="name that of the owner's key; make one with: openssl rand -hex 32",
        ) from None
