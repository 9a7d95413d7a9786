"""Audits of tables that somebody sends: by the command, in a process of its own, and nothing is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import InputError

SECONDS = 300.0
"""How long an audit may take."""
_AT_ONCE = 1
"""Audits at once; others wait."""
_MOST_WAITING = 4
_MEMORY = 2**33
"""Bytes that an audit may use: a small file may unpack to a large table."""
_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "OMP_NUM_THREADS", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
"""What an audit inherits of the environment, in which there may be passwords."""
_turn = asyncio.Semaphore(_AT_ONCE)
_waiting: set[object] = set()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to audit.

    Attributes
    ----------
    secret
        The column with the secret.
    output
        The column that the adversary sees.
    """

    secret: str
    output: str


def asked(given: Mapping[str, str]) -> Asked:
    """What a request asks for, by its parameters."""
    unknown = sorted(set(given) - {"secret", "output"})
    if unknown:
        raise InputError(unknown[0], given[unknown[0]], requirement="must not be given", remedy="use secret and output")
    for name in ("secret", "output"):
        if not given.get(name):
            raise InputError(name, None, requirement="must name a column of the table", remedy=f"add ?{name}=COLUMN")
    return Asked(secret=given["secret"], output=given["output"])


async def audited(table: bytes, what: Asked) -> dict[str, Any]:
    """Run `tacit audit` on a table in CSV or Parquet.

    Parameters
    ----------
    table
        The bytes of the file.
    what
        What to audit.

    Returns
    -------
    The results, the certificate, and the page, under `results`, `certificate` and `report`.
    """
    kind = "parquet" if table[:4] == b"PAR1" else "csv"
    if len(_waiting) >= _MOST_WAITING:
        raise InputError(
            "audits at once",
            len(_waiting) + 1,
            requirement=f"must be {_MOST_WAITING} at most",
            remedy="try again later",
        )
    async with _queued(), _turn:
        with tempfile.TemporaryDirectory(prefix="tacit-audit-") as folder:
            place = Path(folder)
            path = place / f"table.{kind}"
            path.write_bytes(table)
            words = [f"--secret={what.secret}", f"--output={what.output}", "--quiet"]  # whatever a column is called
            for option, name in (("json", "results.json"), ("report", "report.html"), ("certificate", "checked.json")):
                words += [f"--{option}", str(place / name)]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tacit", "audit", str(path), *words),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env={name: os.environ[name] for name in _KEPT if name in os.environ}
                | {"HOME": folder, "TMPDIR": folder},
                preexec_fn=_limited,
            )
            try:
                _, said = await asyncio.wait_for(process.communicate(), SECONDS)
            except TimeoutError:
                raise InputError(
                    "the table",
                    f"{len(table)} bytes",
                    requirement=f"must be one whose audit ends within {SECONDS:g} s",
                    remedy="send fewer rows, or run tacit audit where it is",
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if process.returncode not in (0, 1):
                raise _failed(said.decode(errors="replace"), path)
            return {
                "results": json.loads((place / "results.json").read_text()),
                "certificate": json.loads((place / "checked.json").read_text()),
                "report": (place / "report.html").read_text(),
            }


@contextlib.asynccontextmanager
async def _queued() -> AsyncIterator[None]:
    mark = object()
    _waiting.add(mark)
    try:
        yield
    finally:
        _waiting.discard(mark)


def _limited() -> None:
    """Limit the memory of the process that is about to begin."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


class FailedAuditError(InputError):
    """A table that the command refuses, in its words."""

    def __init__(self, line: str) -> None:
        Exception.__init__(self, line)


def _failed(said: str, path: Path) -> InputError:
    """The line of the command, without the name of the file, which means nothing to whoever sent it."""
    line = next((line for line in reversed(said.splitlines()) if line.startswith("tacit: error: ")), "")
    if not line:  # it was killed, for its memory perhaps
        return InputError(
            "the table", "an error", requirement="must be one that can be audited", remedy="send fewer rows"
        )
    words = line.removeprefix("tacit: error: ").replace(str(path), "the table").replace(path.name, "the table")
    return FailedAuditError(words[:500])
