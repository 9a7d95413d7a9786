"""A fit that may be interrupted: what its folder and its ledger remember, so that going on costs nothing twice.

The folder holds the key of the chunks and a name for the release; the ledger's entry bears that name. An answer is
released once it is noted there. What was drawn and not noted was seen by nobody: its query is asked again, with fresh
noise. What was noted is read back, never drawn again (docs/proofs/accounting.md, "Interrupted sessions").
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
"""Public records that were asked about, by their places, and their answers, in order."""

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
    """What the folder remembers, or a new beginning; a key that is given must be the folder's."""
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
    """The ledger, once it holds what the folder remembers of it, and remembered there from now on.

    Who brings back an earlier ledger and goes on would draw published answers again, with fresh noise.
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
            remedy="bring the file back, or choose another folder, and pay for it",
        )
    return ledger.anchored(path, new=not claimed)


@dataclass
class Notes:
    """The notes of one entry: numbered, so that of two runs that go on at once only one can release."""

    ledger: Ledger | None = None
    entry: Entry | None = None
    earlier: bool = False
    """Whether an earlier run has paid, and so may have drawn what it did not note."""
    found: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def left(cls, ledger: Ledger, entry: Entry) -> Notes:
        """Those that an earlier run left, and room for more."""
        return cls(ledger, entry, earlier=True, found=[note.detail for note in ledger.notes(entry)])

    def add(self, detail: Mapping[str, Any]) -> None:
        """On the disk once this returns; refused where another run was faster."""
        if self.ledger is not None and self.entry is not None:
            self.ledger.note(self.entry, detail, number=len(self.found) + 1)
            self.found.append(detail)

    @property
    def answers(self) -> Answers:
        """All that were noted."""
        pairs = [zip(note["points"], note["answers"], strict=True) for note in self.found if "points" in note]
        return [pair for pairs_of_note in pairs for pair in pairs_of_note]

    def value(self, name: str) -> Any:
        """What one of the notes says under this name, or None."""
        return next((note[name] for note in self.found if name in note), None)

    @property
    def resumed(self) -> bool:
        """Whether answers may stem from more than one run."""
        return self.value("resumed") is not None

    def resume(self, session: Session) -> None:
        """Bring a new session to where the answers end. If it has more to say, note that it goes on, and its charge.

        The noise that a session keeps between queries is lost with it. An epoch that was open is closed by this, as a
        refusal would close it; a mechanism that keeps none says so by `keeps_noise`.
        """
        if not self.earlier:
            return
        charged = sum(note["resumed"] for note in self.found if "resumed" in note)
        answers = [answer for _, answer in self.answers]
        session.replay(answers, charged=charged)
        if not session.stopped:
            *_, latest = (self.found[-1].get("answers") if self.found else None) or [None]
            charge = int(latest is not None and getattr(session.mechanism, "keeps_noise", True))
            self.add({"resumed": charge})
            session.refused += charge


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an entry of the ledger pays for, and how much, when data differ in what `neighbours` says."""

    what: str
    epsilon: Decimal
    delta: Decimal
    neighbours: str


def require(ledger: Ledger, release: str, costs: Sequence[Cost]) -> None:
    """Raise what `paid` would now, but for costs that an earlier run has paid for this release.

    All entries of a ledger must mean the same by ε: costs for other neighbours do not add up to anything.
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
    """The notes of the release's entry for this: one that is spent now, or that an earlier run spent on the task."""
    earlier = _entry(ledger, release, cost)
    if earlier is None:
        detail = {"release": release, "task": task, "neighbours": cost.neighbours, **detail}
        return Notes(ledger, ledger.spend(cost.what, epsilon=cost.epsilon, delta=cost.delta, detail=detail))
    if earlier.detail.get("task") != task:
        raise _other(earlier)
    return Notes.left(ledger, earlier)


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
    """What is read off private records with noise: paid for first, and drawn once for each payment.

    It stands in a file of the folder, beside what it was drawn for, and in a note of the ledger's entry, which counts:
    who removes the file does not have it drawn again. Whose records those of one person are, the note must not tell,
    as ledgers may be read by others; so where there are ids, the file must be there.
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
                remedy="bring the file back, or choose another folder, and pay for it",
            )
        kept = run_folder.record(path, lambda: {name: draw() if noted is None else noted}, claimed=False, mark=mark)
        found = kept.get(name)
    if noted is not None:
        return noted
    notes.add({name: found})
    return found


def _entry(ledger: Ledger, release: str, cost: Cost) -> Entry | None:
    """That under which a run has paid for this part of the release; one that has paid another price is refused."""
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
        entry.what,
        requirement="must have paid for the very task that goes on, budget and constants included",
        remedy="choose another folder, and pay for it",
    )
