"""Anchors: files outside a ledger that remember its last link. A ledger that no longer holds it was rolled back.

An anchor moves after the link is on the ledger's disk and before the call that wrote the link returns. So a true ledger
always holds what its anchors remember, whenever a process dies, and no answer is released before the anchor has moved.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from ..core.errors import InputError
from ..runtime.files import alone, write_whole


class Mark(NamedTuple):
    """A link: its id in the chain, and its digest."""

    id: int
    digest: str


def remembered(path: str) -> Mark | None:
    """What the anchor remembers; None if it does not exist."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        mark = Mark(content["id"], content["digest"])
        if type(mark.id) is int and mark.id >= 0 and re.fullmatch("[0-9a-f]{64}", mark.digest):
            return mark
    except FileNotFoundError:
        return None
    except (KeyError, OSError, RecursionError, TypeError, ValueError):
        pass
    if Path(path).is_dir():
        raise InputError(
            "anchor",
            path,
            requirement="must be a file, not a folder",
            remedy=f"name a file, e.g. {path}/anchor.json",
        )
    raise InputError(
        "anchor",
        path,
        requirement="must be a file that holds the id and the digest of a ledger's link",
        remedy="name the right file, or delete it if you know that the ledger is the latest",
    )


def check(path: str, before: Mark | None, *, new_ledger: bool, new_anchor: bool) -> None:
    """Raise if the anchor cannot be used, before anything is created.

    Parameters
    ----------
    path
        The anchor.
    before
        What it remembered before anybody looked whether the ledger exists: a true ledger is there before its anchor.
    new_ledger
        Whether the ledger is to be created.
    new_anchor
        Whether the anchor may be created for a ledger that exists.
    """
    if before is not None and new_ledger:
        raise InputError(
            "anchor",
            path,
            requirement="must not remember another ledger than the one that is to be created",
            remedy="name another file for the anchor, or restore the ledger that it remembers",
        )
    if not (new_ledger or new_anchor):
        required(path)
    elif before is None:
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(
                "anchor",
                path,
                requirement="must be a file in a folder that exists and can be written",
                remedy="check its name, or make the folder",
            )


def required(path: str) -> Mark:
    """What the anchor remembers. It must exist: one that was mistyped or taken away shows nothing."""
    mark = remembered(path)
    if mark is None:
        raise InputError(
            "anchor",
            path,
            requirement="must name a file that exists, unless it is to be new",
            remedy="no such file: check its name, or restore it; `new_anchor=True` makes a new one",
        )
    return mark


def advance(path: str, mark: Mark) -> None:
    """Remember this link, on the disk once this returns, unless the anchor remembers a later one.

    A symbolic link stays one, and its target is written: the anchor elsewhere must not be left behind.
    """
    try:
        target = Path(os.path.realpath(path))
        with alone(target.parent):
            before = remembered(str(target))
            if before is None or before.id < mark.id:
                write_whole(target, (json.dumps(mark._asdict()) + "\n").encode())
    except OSError as failure:
        raise InputError(
            "anchor",
            f"{path}: {failure.strerror or failure}",
            requirement="must be a file that can be written",
            remedy="choose a folder that exists and is yours to write to; release nothing",
        ) from None
