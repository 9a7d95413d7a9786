"""The folder, the ledger and the anchor of a run of `tacit learn`."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...core.errors import InputError, TacitError
from ...ledger import Amount, Ledger, anchor, exists, named_place, require_ledger
from ...ledger.amounts import NOTHING
from ...ledger.database import name_of
from ...runtime import private_files, run_folder
from ...runtime.files import write_whole
from ..interrupted import run
from . import owner_report
from .options import Task

_OUTSIDE = "outside-anchor.txt"
"""The name of the file that remembers where the anchor outside of the folder is."""
_PROBE = ".room"
"""The name of a file that is written to find out whether there is room."""


def _require_room(folder: Path, names: set[str], size: int, *, probed: Path) -> None:
    """Raise OSError if files of these names, and of this size together, could not be written.

    The size depends on private labels, and a run may be killed, so the file of that size is written to `private` only.
    """
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{name} is a folder")
    for place, content in ((folder, b""), (probed, bytes(size))):
        probe = place / _PROBE
        try:
            write_whole(probe, content)
        finally:
            probe.unlink(missing_ok=True)
    if folder.stat().st_dev != probed.stat().st_dev and shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def rehearsed(folder: Path, write: Callable[[Path], Iterable[Path]]) -> None:
    """Write all pages once with made-up answers, so that nothing fails once the answers are paid for.

    `write` writes into the folder that it is given, and returns the files that are to be published.
    """
    trial = folder / "private" / "rehearsal"
    try:
        shutil.rmtree(trial, ignore_errors=True)  # of a run that was killed
        trial.mkdir(mode=0o700)
        try:
            written = list(write(trial))
            size = sum(path.stat().st_size for path in written)
            _require_room(folder / "publish", {path.name for path in written}, size, probed=trial)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except OSError as failure:
        raise InputError(
            "out",
            f"{failure.strerror}, in {folder}",
            requirement="must be a folder with room for all that is to be written; nothing was spent",
            remedy="make room there, or choose another",
        ) from None
    except TacitError:
        raise
    except Exception as failure:  # of foreign code, which has seen public records and made-up answers
        raise InputError(
            "the student",
            f"{type(failure).__name__}: {failure}",
            requirement="must be one that can be published; nothing was spent",
            remedy="choose another with `student`",
        ) from None


def _remove_remains(folder: Path) -> None:
    """Remove what a killed run was about to write in the folder to publish."""
    for path in folder.iterdir():
        if (path.name == _PROBE or re.fullmatch(r"\..*-[0-9a-f]{16}", path.name)) and not path.is_dir():
            path.unlink(missing_ok=True)


def output_folder(task: Task) -> Path:
    """Make the folder of the run, with its two parts."""
    folder, private = task.out, task.out / "private"
    try:
        (folder / "publish").mkdir(parents=True, exist_ok=True)
        _remove_remains(folder / "publish")
        private_files.closed(private, name="out")
        with private_files.enclosed(private):
            write_whole(private / "README.txt", owner_report.README.encode())
    except OSError as failure:
        raise InputError(
            "out",
            f"{folder}: {failure.strerror}",
            requirement="must be a folder that can be written",
            remedy="choose another",
        ) from None
    return folder


@contextlib.contextmanager
def told_if_interrupted(ledger: Ledger, folder: Path) -> Iterator[None]:
    """Let a `KeyboardInterrupt` say what this run has spent so far, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{_spent(ledger, folder)}; the same run with `resume=True` continues") from None


def _spent(ledger: Ledger, folder: Path) -> str:
    """What the run in this folder has spent, in words."""
    try:
        path = folder / "private" / "release.json"
        release = run(path.parent, None).release if path.exists() else None
        paid = [entry for entry in ledger.entries() if release is not None and entry.detail.get("release") == release]
    except TacitError:
        return "tacit ledger shows what was spent"
    spent = NOTHING
    for entry in paid:
        spent += Amount(entry.epsilon, entry.delta)
    return f"this run has spent {spent}, which it will not spend again" if paid else "nothing was spent"


def where(task: Task) -> str:
    """The place of the ledger, without a password."""
    named, _ = _place(task)
    return name_of(named) if named and "://" in named else str(Path(named or task.out / "ledger.sqlite").resolve())


def check_ledger(task: Task) -> None:
    """Refuse a ledger that was mistyped before a folder is made."""
    named, new = _place(task)
    if named is not None and not new:
        require_ledger(named, "ledger", remedy="check its name, or add `new_ledger=True` to make it")


def check_anchor(task: Task) -> None:
    """Refuse an anchor that cannot be used before a folder or a ledger is made, and a run that goes on without its own.

    A run that goes on without the anchor that it began with would not notice an earlier ledger that was restored
    together with the folder.
    """
    kept = task.out / "private" / _OUTSIDE
    if task.anchor is None:
        if kept.exists():
            raise InputError(
                "anchor",
                None,
                requirement="must be given, as the run in this folder began with one",
                remedy=f"add `anchor` {kept.read_text(encoding='utf-8').strip()}; if that is lost, `new_anchor` makes "
                "another, once you know that the ledger is the latest",
            )
        return
    path = str(task.anchor.absolute())
    before = anchor.remembered(path)
    named, new = _place(task)
    missing = named is None or not exists(named)
    if new or not (named and missing):  # a ledger that was mistyped is refused when it is opened
        anchor.check(path, before, new_ledger=new and missing, new_anchor=task.new_anchor)


def _place(task: Task) -> tuple[str | None, bool]:
    """The ledger that was named, None for that of the folder, and whether it may be created."""
    named, own = named_place("ledger", task.ledger, task.ledger_url_file), task.out / "ledger.sqlite"
    return named, task.new_ledger if named else not (own.exists() or run_folder.claimed(task.out / "private"))


def opened_ledger(task: Task) -> Ledger:
    """The ledger named, or that of the folder; a new one has the budget of this run."""
    named, new = _place(task)
    budget = {"epsilon": task.budget_epsilon or task.epsilon, "delta": task.budget_delta or task.delta} if new else {}
    if task.anchor is not None:  # remembered before anything can be spent, so that no killed run forgets it
        with private_files.enclosed(task.out / "private"):
            write_whole(task.out / "private" / _OUTSIDE, f"{task.anchor.absolute()}\n".encode())
    own = task.out / "ledger.sqlite"
    return Ledger.open(named or own, anchor=task.anchor, new_anchor=task.new_anchor, **budget)
