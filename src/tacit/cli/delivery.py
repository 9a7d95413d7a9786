"""What a command leaves: files, text on stdout, and the exit code."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..core.errors import InputError
from ..runtime.files import write_whole
from .printing import say

if TYPE_CHECKING:
    from ..report import Proofs, Report

FINE, UNMET, BAD_INPUT, BROKEN, INTERRUPTED = 0, 1, 2, 70, 130


@contextlib.contextmanager
def delivery(json: Path | None, page: Path | None, *, quiet: bool) -> Iterator[Callable[[Report | Proofs], None]]:
    """Refuses files that cannot be written before any work is done; then writes, prints and sets the exit code."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", str(page), requirement="must end in .html", remedy="rename it, or use --json")
    if json is not None and page is not None and _resolved(json) == _resolved(page):
        raise InputError("--json", str(json), requirement="must differ from --report", remedy="give it its own name")
    for option, path in (("--json", json), ("--report", page)):
        if path is not None:
            _check_writable(option, path)
    results: list[Report | Proofs] = []
    yield results.append
    for result in results:
        if json is not None:
            _write(json, result.to_json())
        if page is not None:
            _write(page, result.to_html())
        if not quiet:
            with contextlib.suppress(BrokenPipeError):  # the reader has seen enough; what was asked for is written
                say(result.to_text())
            for path in (json, page):
                if path is not None:
                    say(f"written: {path.absolute()}", err=True)
        if result.contradicted or not result.met:
            raise typer.Exit(UNMET)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # over-long names, circles of links, zero bytes: refused when checked
        return path


def _check_writable(option: str, path: Path) -> None:
    target = _resolved(path)
    try:
        if target.is_dir():
            raise IsADirectoryError
        if not target.exists():
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        elif not os.access(target, os.W_OK):
            raise PermissionError
    except (OSError, ValueError):
        raise InputError(
            option,
            str(path),
            requirement="must name a file that can be written",
            remedy="choose a folder that exists and is yours to write to",
        ) from None


def _write(path: Path, content: str) -> None:
    """All or nothing for a file; a pipe or a device takes the text as it comes."""
    target = _resolved(path)
    try:
        if target.exists() and not target.is_file():
            target.write_text(content, encoding="utf-8")
        else:
            write_whole(target, content.encode())
    except OSError as failure:
        raise InputError(
            "the output file",
            f"{path}: {failure.strerror or failure}",
            requirement="must be writable",
            remedy="free some space or choose another place",
        ) from None
