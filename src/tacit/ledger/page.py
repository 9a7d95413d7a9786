"""What `tacit ledger` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.encoding import decoded
from ..core.errors import InputError
from ..core.guarantee import Comparison
from ..runtime.private_files import own_bytes
from .amounts import NOTHING
from .anchor import remembered
from .database import exists, name_of
from .ledger import Ledger
from .records import by_neighbours, neighbours_in, spent_in

if TYPE_CHECKING:
    from ..report import Report

_RECENT = 20
_KEY = "name that of the owner's key, and chmod 600; make one with: (umask 077; openssl rand -hex 32 > owner.key)"


def statement(
    where: str | Path,
    *,
    anchor: str | Path | None = None,
    new_anchor: bool = False,
    key: Path | None = None,
    sign: bool = False,
    sign_first: bool = False,
) -> Report:
    """The report of `tacit ledger`: what was spent, what remains, and whether the records are as they were written.

    With an anchor, also that no earlier ledger was brought back; with the file of the owner's key, that nobody else
    changed the records that it has sealed. `sign` seals those that are there, if earlier ones are sealed, and
    `sign_first`, if none is. An anchor that is not there is made with `new_anchor`.
    """
    from ..report import Report

    if (sign or sign_first) and key is None:
        raise InputError(
            "--sign" if sign else "--sign-first",
            None,
            requirement="must come with --key",
            remedy="name the file of the owner's key",
        )
    secret = None if key is None else own_bytes(key, "--key", remedy=_KEY)
    if not exists(where):
        raise InputError(
            "WHERE",
            name_of(str(where)),
            requirement="must be a ledger that exists",
            remedy="check its name; tacit learn makes a ledger, and so does Ledger.open in Python",
        )
    before = None if anchor is None else remembered(str(anchor))
    ledger = Ledger.open(where, anchor=anchor, new_anchor=new_anchor)
    sealed = None if secret is None or sign_first else ledger.sealed(secret)  # by then, before anything is sealed now
    now = ledger.seal(secret, first=sign_first) if secret is not None and (sign or sign_first) else sealed
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
    if now is not None:
        summary += _seals(sealed, now, last)
    if anchor is not None:
        summary.append(
            f"The anchor {anchor} is new, and remembers record {last} from now on."
            if before is None
            else f"No earlier ledger was brought back since record {before.id}, which the anchor {anchor} remembered."
        )
    unknown = []
    if sealed is None:  # a seal that is made now says nothing about what came before it
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
        detail={"ledger": decoded(content), **({} if now is None else {"sealed": {"before": sealed, "now": now}})},
    )


def _seals(before: int | None, now: int, last: int) -> list[str]:
    """What the owner's key vouches for: records that were sealed before this call, and those that it has sealed."""
    found = []
    if before is not None:
        found.append(
            f"The owner's key has sealed records 0 to {before} before: nobody without it made them anew, or changed "
            "them, since."
        )
    if before is None or before < now:
        found.append(
            f"Sealed now, for the first time: records {0 if before is None else before + 1} to {now}. The seal vouches "
            "for them from now on; that they are genuine, it takes from who looked at them."
        )
    if now < last:
        found.append(f"Records {now + 1} to {last} came later, and have no seal.")
    return found
