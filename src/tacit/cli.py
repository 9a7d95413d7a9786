"""The command line: parse, one library call, print. Progress goes to stderr, data to stdout."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import __version__
from .errors import InputError, TacitError

if TYPE_CHECKING:
    from .report import Report

FINE, UNMET, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="tacit",
    help="What nobody can learn from a machine-learning model: proven, and attacked to show how tight the proof is.",
    epilog="Exit codes: 0 fine; 1 a guarantee was contradicted, or a requirement not met; 2 bad usage or input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[Path | None, typer.Option("--report", metavar="PATH.html", help="Write a page to look at.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]


@app.callback(invoke_without_command=True)
def _tacit(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit(FINE)


@app.command()
def demo(json: JsonPath = None, report: ReportPath = None, quiet: Quiet = False) -> None:
    """Release noisy features of digits, prove what nobody can learn from them, and attack them."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from . import demo as demonstration

        with _progress(demonstration.STEPS, quiet=quiet) as advance:
            result = demonstration.demo(advance=advance)
        deliver(result)


@contextlib.contextmanager
def _delivery(json: Path | None, page: Path | None, *, quiet: bool) -> Iterator[Callable[[Report], None]]:
    """Refuses files that cannot be written before any work is done; then writes, prints and sets the exit code."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", str(page), requirement="must end in .html", remedy="rename it, or use --json")
    if json is not None and page is not None and json.absolute() == page.absolute():
        raise InputError("--json", str(json), requirement="must differ from --report", remedy="give it its own name")
    for option, path in (("--json", json), ("--report", page)):
        if path is not None:
            _check_writable(option, path)
    results: list[Report] = []
    yield results.append
    for result in results:
        if json is not None:
            _write(json, result.to_json())
        if page is not None:
            _write(page, result.to_html())
        if not quiet:
            typer.echo(result.to_text())
            for path in (json, page):
                if path is not None:
                    typer.echo(f"written: {path.absolute()}", err=True)
        if result.contradicted:
            raise typer.Exit(UNMET)


@contextlib.contextmanager
def _progress(steps: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that is told what begins."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun = 0

        def advance(description: str) -> None:
            nonlocal begun
            bar.update(task, description=description, completed=begun)
            begun += 1

        yield advance


def _check_writable(option: str, path: Path) -> None:
    requirement, remedy = "must name a file that can be written", "choose a folder that exists and is yours to write to"
    try:
        folder = path.absolute().parent
        good = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and not path.is_dir()
    except (OSError, ValueError):  # over-long names, embedded zero bytes
        good = False
    if not good:
        raise InputError(option, str(path), requirement=requirement, remedy=remedy)


def _write(path: Path, content: str) -> None:
    """All or nothing: an older file stays until the new one is complete."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.absolute().parent, prefix=f".{path.name[:50]}-", delete=False
        ) as file:
            partial = Path(file.name)
            try:
                file.write(content)
                file.flush()
                # Temporary files are private to their owner; results are as readable as any new file.
                mask = os.umask(0)
                os.umask(mask)
                partial.chmod(0o666 & ~mask)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as failure:
        raise InputError(
            "the output file",
            f"{path}: {failure.strerror or failure}",
            requirement="must be writable",
            remedy="free some space or choose another place",
        ) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; every expected failure is one line on stderr."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, standalone_mode=False, prog_name="tacit")
        return code if isinstance(code, int) else FINE
    except TacitError as error:
        message = str(error)
    except typer.TyperException as error:
        if not getattr(error, "message", "") or type(error).__name__ == "NoArgsIsHelpError":
            return BAD_INPUT
        message = f"{error.format_message()}; see tacit --help"
    except typer.Abort:
        return INTERRUPTED
    typer.echo(f"tacit: error: {' '.join(message.split())}", err=True)
    return BAD_INPUT
