"""What `tacit ledger` shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.encoding import decoded
from ..core.errors import InputError
from ..core.guarantee import Comparison
from ..core.wording import counted
from ..runtime.private_files import own_bytes
from .amounts import NOTHING, Amount
from .anchor import remembered
from .database import name_of, require_ledger
from .entries import by_neighbours, neighbours_in, spent_in
from .ledger import Ledger

if TYPE_CHECKING:
    from ..report import Report, Verdict

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
    """The report of `tacit ledger`: what was spent, what remains, and whether the chain is intact.

    Parameters
    ----------
    where
        The path of an SQLite file, or the address of a PostgreSQL database.
    anchor
        A file that remembers the ledger's last link, to check that no earlier ledger was restored.
    new_anchor
        Create the anchor if it does not exist.
    key
        The file of the owner's key, to check that nobody else changed what it has sealed.
    sign
        Seal the whole chain with the key. It must have been sealed before.
    sign_first
        The same for a chain that was never sealed.

    Returns
    -------
    The report.
    """
    from ..report import Report

    if (sign or sign_first) and key is None:
        raise InputError(
            "sign" if sign else "sign_first",
            None,
            requirement="must come with `key`",
            remedy="name the file of the owner's key",
        )
    secret = None if key is None else own_bytes(key, "key", remedy=_KEY)
    require_ledger(where, "where")
    before = None if anchor is None else remembered(str(anchor))
    ledger = Ledger.open(where, anchor=anchor, new_anchor=new_anchor)
    sealed = None if secret is None or sign_first else ledger.sealed(secret)  # by then, before anything is sealed now
    now = ledger.seal(secret, first=sign_first) if secret is not None and (sign or sign_first) else sealed
    content = ledger.to_dict()
    links = content["links"]
    entries = [link for link in links if link.get("number") == 0]
    spent = spent_in(entries[-1]) if entries else NOTHING
    kinds = by_neighbours(entries)
    summary = [f"Entries: {len(entries)}. Spent: {spent}. Remaining: {ledger.budget - spent}."]
    if len(kinds) == 1:
        summary.append(
            f"All entries are about the same change of the data, {next(iter(kinds))}, so their costs add up "
            "(tacit proof basic_composition)."
        )
    elif kinds:
        sums = "; ".join(f"about {kind}: {total}" for kind, (_, total) in kinds.items())
        summary.append(
            f"Entries are about different changes of the data, so their sum promises nothing: {sums}. An entry about "
            "labels allows features to be published in full. For an entry about records, a changed label is a record "
            "replaced, which may cost twice its ε. Keep a ledger for each kind of change."
        )
    last = len(links) - 1
    summary.append(
        f"The chain is intact. Link 0 is the budget; {counted(len(entries), 'entry')} and "
        f"{counted(last - len(entries), 'note')} follow. "
        f"The last digest is {content['digest']}."
    )
    if now is not None:
        summary += _seals(sealed, now, last)
    if anchor is not None:
        summary.append(
            f"The anchor {anchor} is new, and remembers link {last} from now on."
            if before is None
            else f"No earlier ledger was restored since link {before.id}, which the anchor {anchor} remembered."
        )
    unknown = []
    if sealed is None:  # a seal that is made now says nothing about what came before it
        unknown.append("whether somebody who can write to the database forged the whole chain (--key shows it)")
    if before is None:
        unknown.append("whether an earlier ledger was restored (--anchor shows it)")
    if unknown:
        summary.append(f"What this check cannot know: {'; '.join(unknown)}.")
    if content["clock_went_back"]:
        early = ", ".join(map(str, content["clock_went_back"]))
        summary.append(f"The clock went back: these links are earlier than one before them: {early}.")
    if len(entries) > _RECENT:
        summary.append(f"The last {_RECENT} entries (the JSON has all of them):")
    summary += [
        f"{number}. {entry['time'][:19]}Z, {entry['what']}: ε = {entry['epsilon']} and δ = {entry['delta']}, "
        f"{neighbours_in(entry['detail'])}."
        for number, entry in list(enumerate(entries, start=1))[-_RECENT:]
    ]
    return Report(
        command="ledger",
        title=f"The ledger {name_of(ledger.where)}",
        summary=tuple(summary),
        verdicts=(_left(ledger.budget - spent, spent, kinds=len(kinds)), _chain(unknown)),
        comparisons=(Comparison(guarantee=ledger.guarantee),),
        detail={"ledger": decoded(content), **({} if now is None else {"sealed": {"before": sealed, "now": now}})},
    )


def _left(left: Amount, spent: Amount, *, kinds: int) -> Verdict:
    """What the next release may cost."""
    from ..report import FINE, WEAK, Verdict

    level, reason = FINE, f"Spent: {spent}. A release that costs more than is left is refused."
    if kinds > 1:
        level, reason = WEAK, "Entries are about different changes of the data, so their sum promises nothing."
    return Verdict(level=level, about="What is left of the budget", proven=str(left), reason=reason, scope="")


def _chain(unknown: Sequence[str]) -> Verdict:
    """Whether entries were changed, and what the check could not see."""
    from ..report import FINE, WEAK, Verdict

    reason = f"Not shown: {'; '.join(unknown)}." if unknown else "The seal and the anchor agree with it."
    about = "Whether entries were changed or removed"
    return Verdict(level=WEAK if unknown else FINE, about=about, proven="the chain is intact", reason=reason, scope="")


def _seals(before: int | None, now: int, last: int) -> list[str]:
    """What the owner's key had sealed before this call, and what it has sealed now."""
    found = []
    if before is not None:
        found.append(
            f"The owner's key had sealed links 0 to {before} before: nobody without it has changed them since."
        )
    if before is None or before < now:
        found.append(
            f"Sealed now, for the first time: links {0 if before is None else before + 1} to {now}. From now on the "
            "seal shows changes to them; that they are genuine is for whoever looked at them to say."
        )
    if now < last:
        found.append(f"Links {now + 1} to {last} came later, and have no seal.")
    return found
