"""What the folder and the ledger of a fit remember, so that an interrupted fit can go on and pays for nothing twice.

The folder holds the key of the chunks and a name for the release, which the ledger's entry bears, too. An answer counts
as released once it is noted in the ledger. An answer that was drawn and not noted was seen by nobody: its query is
asked again, with fresh noise. An answer that was noted is read back and never drawn again (docs/proofs/accounting.md,
"Interrupted sessions").
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.guarantee import Assumption
from ..ledger import Entry, Ledger, amounts
from ..runtime import run_folder
from ..runtime.files import sync_folder
from .chunks import KEY_BYTES
from .mechanisms import Answer, Session

Answers = list[tuple[int, Answer]]
"""Pairs of the place of a public record and its answer, in the order in which they were asked about."""

UNSEEN = Assumption(
    text="the run was interrupted at a moment that does not depend on answers that were not yet noted in the ledger",
    checked_by="caller",
)


@dataclass(frozen=True)
class Run:
    """The secret key of a folder's chunks, and the public name of its release."""

    key: bytes
    release: str


def run(folder: Path | None, key: bytes | None) -> Run:
    """The run that the folder remembers, or a new one. A key that is given must be that of the folder."""
    fresh = Run(key or secrets.token_bytes(KEY_BYTES), secrets.token_hex(16))
    if folder is None:
        return fresh
    path = folder / "release.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
        found = run_folder.record(path, lambda: {"key": fresh.key.hex(), "release": fresh.release}, claimed=False)
        known = Run(bytes.fromhex(found["key"]), str(found["release"]))
    except (KeyError, OSError, TypeError, ValueError):
        known = Run(b"", "")
    if len(known.key) != KEY_BYTES or (key is not None and key != known.key):
        raise InputError(
            "folder",
            str(path),
            requirement="must be a file that can be written, or that holds the key of this task",
            remedy="choose another folder",
        )
    return known


def anchored(ledger: Ledger | None, folder: Path | None) -> Ledger | None:
    """The ledger with an anchor in the folder, after checking that it holds what the anchor remembers.

    Otherwise somebody could restore an earlier ledger, go on, and draw published answers again with fresh noise.
    """
    if ledger is None or folder is None:
        return ledger
    path = folder / "anchor.json"
    claimed = run_folder.claimed(folder)
    if claimed and not path.exists():
        raise InputError(
            "folder",
            f"no {path.name} in {folder}",
            requirement="must remember the ledger's last link once a run has paid",
            remedy="restore the file, or choose another folder, and pay for it",
        )
    return ledger.anchored(path, new=not claimed)


@dataclass
class Notes:
    """The notes of one entry. They are numbered, so that of two runs that go on at once only one can release."""

    ledger: Ledger | None = None
    entry: Entry | None = None
    earlier: bool = False
    """Whether an earlier run has paid, which may have drawn answers that it did not note."""
    found: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def left(cls, ledger: Ledger, entry: Entry) -> Notes:
        """The notes that an earlier run left."""
        return cls(ledger, entry, earlier=True, found=[note.detail for note in ledger.notes(entry)])

    def add(self, detail: Mapping[str, Any]) -> None:
        """Add a note, which is on the disk once this returns. Raises if another run took the number first."""
        if self.ledger is not None and self.entry is not None:
            self.ledger.note(self.entry, detail, number=len(self.found) + 1)
            self.found.append(detail)

    @property
    def answers(self) -> Answers:
        """All answers that were noted."""
        pairs = [zip(note["points"], note["answers"], strict=True) for note in self.found if "points" in note]
        return [pair for pairs_of_note in pairs for pair in pairs_of_note]

    def value(self, name: str) -> Any:
        """The value of this name in the first note that has it, or None."""
        return next((note[name] for note in self.found if name in note), None)

    def settle(self, name: str, value: Any) -> None:
        """Note what was chosen after the payment, before it answers; raise if an earlier run went on with another.

        Answers of one mechanism, followed by answers of another, would cost what both cost together.
        """
        noted = self.value(name)
        if noted is None and not self.answers:
            self.add({name: value})
        elif noted is not None and noted != value and self.entry is not None:
            raise _other(self.entry)

    @property
    def resumed(self) -> bool:
        """Whether answers may come from more than one run."""
        return self.value("resumed") is not None

    def resume(self, session: Session) -> None:
        """Bring a new session to where the noted answers end; if it goes on, note that and what it is charged.

        The noise that a session keeps between queries is lost with it. So an interruption is charged as a refusal,
        which would have drawn that noise afresh, too. Mechanisms that keep no noise (`keeps_noise`) are not charged.
        """
        if not self.earlier:
            return
        charged = sum(note["resumed"] for note in self.found if "resumed" in note)
        answers = [answer for _, answer in self.answers]
        session.replay(answers, charged=charged)
        latest_kept = [
            {key: note[key] for key in session.kept if key in note} for note in self.found if "answers" in note
        ]
        if latest_kept and latest_kept[-1] != session.kept:
            raise InputError(
                "the run that was interrupted",
                latest_kept[-1],
                requirement=f"must come to what follows from its answers here, {session.kept}",
                remedy="go on where it began, with the same versions of Tacit and NumPy, and on the same machine",
            )
        if not session.stopped:
            *_, latest = (self.found[-1].get("answers") if self.found else None) or [None]
            charge = int(latest is not None and getattr(session.mechanism, "keeps_noise", True))
            self.add({"resumed": charge})
            session.refused += charge


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an entry of the ledger pays for, and how much, for these neighbours."""

    what: str
    epsilon: Decimal
    delta: Decimal
    neighbours: str


def require(ledger: Ledger, release: str, costs: Sequence[Cost]) -> None:
    """Raise if the ledger cannot pay these costs, except those that an earlier run has paid for this release.

    All entries of a ledger must compare the same neighbours: other costs would not add up to a guarantee.
    """
    paid_before = [_entry(ledger, release, cost) is not None for cost in costs]
    left = [cost for cost, settled in zip(costs, paid_before, strict=True) if not settled]
    if left:
        others = {entry.neighbours for entry in ledger.entries()} - {cost.neighbours for cost in costs}
        if others:
            raise InputError(
                "the ledger",
                f"entries about {' and '.join(sorted(others))}",
                requirement=f"must hold entries about what this run protects alone, {left[0].neighbours}",
                remedy="open another ledger: the sum of both kinds would promise nothing",
            )
        nothing = Decimal(0)
        ledger.require(
            epsilon=sum((cost.epsilon for cost in left), nothing), delta=sum((cost.delta for cost in left), nothing)
        )


def paid(ledger: Ledger, release: str, cost: Cost, *, task: str, detail: Mapping[str, object]) -> Notes:
    """Pay the cost, unless an earlier run has paid it for this release and task; then return the notes of its entry."""
    earlier = _entry(ledger, release, cost)
    if earlier is None:
        detail = {"release": release, "task": task, "neighbours": cost.neighbours, **detail}
        return Notes(ledger, ledger.spend(cost.what, epsilon=cost.epsilon, delta=cost.delta, detail=detail))
    if earlier.detail.get("task") != task:
        raise _other(earlier)
    return Notes.left(ledger, earlier)


def noted(ledger: Ledger, release: str, cost: Cost, name: str) -> bool:
    """Whether an earlier run has paid for this part of the release, and has noted a value of this name."""
    earlier = _entry(ledger, release, cost)
    return earlier is not None and Notes.left(ledger, earlier).value(name) is not None


def drawn_once(
    name: str,
    draw: Callable[[], Any],
    *,
    cost: Cost,
    task: str,
    release: str,
    ledger: Ledger | None,
    folder: Path | None,
    mark: Mapping[str, object],
) -> Any:
    """Draw something from private records with noise: pay for it first, and draw it once for each payment.

    The result is kept in a file of the folder, beside what it was drawn for, and in a note of the ledger's entry. The
    note counts: removing the file does not make it drawn again. The note must not tell whose records belong together,
    as others may read the ledger, so where there are ids the file must exist.
    """
    notes = Notes() if ledger is None else paid(ledger, release, cost, task=task, detail={})
    noted = notes.value(name)
    if folder is None:
        found = draw()
    else:
        path = folder / f"{name}.json"
        if noted is not None and mark["ids"] is not None and not path.exists():
            raise InputError(
                "folder",
                f"no {path.name} in {folder}",
                requirement="must say for which people this was drawn and paid",
                remedy="restore the file, or choose another folder, and pay for it",
            )
        kept = run_folder.record(path, lambda: {name: draw() if noted is None else noted}, claimed=False, mark=mark)
        found = kept.get(name)
    if noted is not None:
        return noted
    notes.add({name: found})
    return found


def _entry(ledger: Ledger, release: str, cost: Cost) -> Entry | None:
    """The entry with which a run has paid for this part of the release; raises if it has paid another price."""
    for entry in ledger.entries():
        if entry.detail.get("release") == release and entry.what == cost.what:
            if (entry.epsilon, entry.delta, entry.neighbours) != (
                *amounts.cost(cost.epsilon, cost.delta),
                cost.neighbours,
            ):
                raise _other(entry)
            return entry
    return None


def _other(entry: Entry) -> InputError:
    return InputError(
        "the ledger's entry for this folder",
        f"{entry.what!r}, at ε = {entry.epsilon} and δ = {entry.delta}",
        requirement="must have paid for the very task that goes on, budget and constants included",
        remedy="choose another folder, and pay for it",
    )
