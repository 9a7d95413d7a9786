"""Which ledgers paid for a file of private records before, so that a second run elsewhere does not begin from nothing.

A file for each set of private records lies in the user's state folder (`$XDG_STATE_HOME/tacit/ledgers`, by default
`~/.local/state/tacit/ledgers`), readable by its owner alone. Its name is the digest of the records, and of where they
lie; it holds the places of ledgers and nothing of the records. Records that were both changed and moved are not
recognised, nor are those of another user or machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from pathlib import Path

from ...core.errors import PrivacyWarning, TacitError
from ...ledger import Ledger
from ...runtime import private_files
from ...runtime.files import write_whole


def warn_of(private: Path, ledger: str) -> None:
    """Warn if other ledgers than this one have paid for releases about these records."""
    for earlier in _known(private):
        if earlier == ledger:
            continue
        if "://" not in earlier and not Path(earlier).exists():
            warnings.warn(
                f"these private records had a ledger, {earlier}, which is gone: what it paid for was spent all the "
                "same, and what is spent here comes on top",
                PrivacyWarning,
                stacklevel=2,
            )
            continue
        spent = ""
        if "://" not in earlier:
            with contextlib.suppress(TacitError):
                spent = f", where {Ledger.open(earlier).spent} was spent"
        warnings.warn(
            f"these private records have a ledger already, {earlier}{spent}: what is spent here comes on top; use "
            f"`ledger` {earlier} to keep one budget for them",
            PrivacyWarning,
            stacklevel=2,
        )


def remember(private: Path, ledger: str) -> None:
    """Note that this ledger pays for releases about these records; where there is no place to note it, nothing is."""
    with contextlib.suppress(OSError, TacitError):
        folder = private_files.closed(_folder())
        for name in _names(private):
            places = _read(folder / name)
            if ledger not in places:
                with private_files.enclosed():
                    write_whole(folder / name, (json.dumps([*places, ledger]) + "\n").encode())


def _known(private: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return list(dict.fromkeys(place for name in _names(private) for place in _read(_folder() / name)))
    return []


def _names(private: Path) -> tuple[str, str]:
    """Names for what the file holds, and for where it lies."""
    with private.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{content}.json", f"{hashlib.sha256(os.fsencode(private.resolve())).hexdigest()}.json"


def _read(path: Path) -> list[str]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [place for place in held if isinstance(place, str)] if isinstance(held, list) else []


def _folder() -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else Path.home() / ".local" / "state") / "tacit" / "ledgers"
