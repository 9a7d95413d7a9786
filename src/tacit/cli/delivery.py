"""What a command delivers: files, text on stdout, and the exit code."""

from __future__ import annotations

import contextlib
import math
import os
import re
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from ..core.errors import InputError
from ..core.wording import counted
from ..runtime import private_files
from ..runtime.files import existing, one_file, write_whole
from .options import NOTHING
from .printing import say

if TYPE_CHECKING:
    from ..certificate import Verified
    from ..certificate.showing import Told
    from ..report import Proofs, Report

FINE, UNMET, BAD_INPUT, BROKEN, INTERRUPTED = 0, 1, 2, 70, 130

_OURS = {
    "--json": (rb'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"command"\s*:', "results that were written by --json"),
    "--report": (rb"\s*<!doctype html", "a page"),
    "--certificate": (rb'\s*\{\s*"_type"\s*:', "a certificate"),
}
"""How a file must begin to be replaced, and what such a file is: anything else was not written by a command."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The certificate that a command is asked for.

    `reveal` puts private inputs of theorems into it; otherwise they go, with what opens their commitments, into a file
    beside it that only its owner can read. `subjects` are released files that exist, `published` tells from the report
    those that the command has written. `replay` tells from it how the run can be repeated, and `files` are those that
    it read, of which nobody may guess the `private` ones by their hash. Of `only_with`, options that mean nothing
    without a certificate, none may be given without one.
    """

    path: Path | None
    reveal: bool
    subjects: Sequence[Path] = ()
    published: Callable[[Report], Sequence[Path]] = lambda _: ()
    seed: int | None = None
    replay: Callable[[Report], dict[str, Any]] | None = None
    files: Mapping[str, Path] | None = None
    private: Sequence[str] = ()
    only_with: Sequence[str] = ()

    def __post_init__(self) -> None:
        for option in self.only_with if self.path is None else ():
            raise InputError(option, NOTHING, requirement="must come with --certificate", remedy="name its file")
        for path in self.subjects if self.path is not None else ():
            existing(path, "--subject")

    @property
    def opening(self) -> Path | None:
        """Where the opening of a certificate with commitments is written."""
        return None if self.path is None or self.reveal else self.path.with_name(f"{self.path.name}.opening")

    def write(self, report: Report) -> list[Path]:
        """Write the certificate of a report, and return the paths of the files written."""
        from ..certificate import certified

        if self.path is None:
            return []
        made = certified(
            [comparison.guarantee for comparison in report.comparisons],
            command=report.command,
            title=report.title,
            subjects=(*self.subjects, *self.published(report)),
            reveal=self.reveal,
            seed=self.seed,
            replay=None if self.replay is None else self.replay(report),
            files=self.files,
            private=self.private,
        )
        _write(self.path, made.to_json())
        if made.opening is None or self.opening is None:
            return [self.path]
        with private_files.enclosed():
            self.opening.unlink(missing_ok=True)  # so that the new file has a mode of its own
            _write(self.opening, made.opening_json())
        return [self.path, self.opening]

    def remark(self, report: Report) -> str:
        """What nobody can check in the certificate, in a line; empty if all claims state what they follow from."""
        guarantees = [comparison.guarantee for comparison in report.comparisons]
        bare = sum(one.evidence is None or not math.isfinite(one.value) for one in guarantees)
        if self.path is None or not bare:
            return ""
        claims = f"{bare} of {counted(len(guarantees), 'claim')}"
        return f"certificate: the checker cannot follow {claims}, for which there is this library's word alone"


@contextlib.contextmanager
def delivery(
    json: Path | None,
    page: Path | None,
    *,
    quiet: bool,
    inputs: Iterable[Path | str | None] = (),
    interrupted: str = "",
    certificate: Wanted | None = None,
) -> Iterator[Callable[[Report | Proofs | Told | Verified], None]]:
    """Write and print results, and set the exit code; files that cannot be written are refused before any work.

    The function yielded takes the result. A file is not replaced if it is one of the command's `inputs`, or if it is
    not an earlier result. A run that is interrupted ends with one line, which says `interrupted` unless the run has
    more to say.
    """
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", str(page), requirement="must end in .html", remedy="rename it, or use --json")
    proof = None if certificate is None else certificate.path
    wanted = (("--json", json), ("--report", page), ("--certificate", proof))
    targets = [(option, path) for option, path in wanted if path is not None]
    for place, (option, path) in enumerate(targets):
        for other, same in targets[place + 1 :]:
            if one_file(path, same):
                raise InputError(
                    option, str(path), requirement=f"must differ from {other}", remedy="choose another name"
                )
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
    results: list[Report | Proofs | Told | Verified] = []
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
        written = [path for option, path in targets if option != "--certificate"]
        if certificate is not None:
            written += certificate.write(cast("Report", result))  # proofs are asked for no certificate
        if not quiet:
            with contextlib.suppress(BrokenPipeError):  # the reader closed the pipe; the files are written
                say(result.to_text())
            for path in written:
                say(f"written: {path.absolute()}", err=True)
            if certificate is not None and (remark := certificate.remark(cast("Report", result))):
                say(remark, err=True)
        if result.contradicted or not result.met:
            raise typer.Exit(UNMET)


def opened(page: Path) -> None:
    """Open a page in the browser, or say where it is."""
    if not webbrowser.open(page.absolute().as_uri()):
        say(f"tacit: no browser could be started; open {page.absolute()} yourself", err=True)


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
