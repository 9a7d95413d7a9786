"""What a command delivers: files, text on stdout, and the exit code."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..core.errors import InputError
from ..runtime.files import one_file, write_whole
from .printing import say

if TYPE_CHECKING:
    from ..report import Proofs, Report

FINE, UNMET, BAD_INPUT, BROKEN, INTERRUPTED = 0, 1, 2, 70, 130

_OURS = {
    "--json": (rb'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"command"\s*:', "results that were written by --json"),
    "--report": (rb"\s*<!doctype html", "a page"),
}
"""How a file must begin to be replaced, and what such a file is: anything else was not written by a command."""


@contextlib.contextmanager
def delivery(
    json: Path | None,
    page: Path | None,
    *,
    quiet: bool,
    inputs: Iterable[Path | str | None] = (),
    interrupted: str = "",
) -> Iterator[Callable[[Report | Proofs], None]]:
    """Write and print results, and set the exit code; files that cannot be written are refused before any work.

    The function yielded takes the result. A file is not replaced if it is one of the command's `inputs`, or if it is
    not an earlier result. A run that is interrupted ends with one line, which says `interrupted` unless the run has
    more to say.
    """
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", str(page), requirement="must end in .html", remedy="rename it, or use --json")
    if json is not None and page is not None and one_file(json, page):
        raise InputError("--json", str(json), requirement="must differ from --report", remedy="choose another name")
    targets = [(option, path) for option, path in (("--json", json), ("--report", page)) if path is not None]
    named = [Path(found) for found in inputs if found is not None and "://" not in str(found)]
    for option, path in targets:
        for found in named:
            if one_file(path, found):
                raise InputError(
                    option,
                    str(path),
                    requirement="must not be a file that the command reads or keeps",
                    remedy="choose another name",
                )
        _check_writable(option, path)
        _check_replaceable(option, path)
    results: list[Report | Proofs] = []
    try:
        yield results.append
    except KeyboardInterrupt as stop:  # in here, as typer tells the caller nothing but its exit code
        said = str(stop) or interrupted
        with contextlib.suppress(OSError):
            say(f"tacit: interrupted{': ' * bool(said)}{said}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    for result in results:
        for option, path in targets:  # once more: the run may have made files of its own
            _check_replaceable(option, path)
        if json is not None:
            _write(json, result.to_json())
        if page is not None:
            _write(page, result.to_html())
        if not quiet:
            with contextlib.suppress(BrokenPipeError):  # the reader closed the pipe; the files are written
                say(result.to_text())
            for _, path in targets:
                say(f"written: {path.absolute()}", err=True)
        if result.contradicted or not result.met:
            raise typer.Exit(UNMET)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # over-long names, cyclic links, zero bytes: refused by the checks
        return path


def _check_replaceable(option: str, path: Path) -> None:
    """Refuse to replace a file that the option did not write; pipes and devices are never refused."""
    start, kind = _OURS[option]
    target = _resolved(path)
    try:
        if not target.is_file():
            return
        with target.open("rb") as file:
            held = file.read(200)
    except (OSError, ValueError) as failure:
        held = f"unreadable: {failure}".encode()
    if held and re.match(start, held, flags=re.IGNORECASE) is None:
        raise InputError(
            option,
            f"{path}, which holds something else",
            requirement=f"must be new, or {kind}",
            remedy="choose another name, or remove the file if it is not needed",
        )


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
    """Write a file completely or not at all; write to pipes and devices directly."""
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
