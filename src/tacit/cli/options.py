"""Options that several commands share, and how errors name options."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import InputError, NoTheoremError
from .printing import say

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[
    Path | None, typer.Option("--report", metavar="PATH.html", help="Write the results as an HTML page.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
LedgerUrlFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger-url-file", metavar="FILE", help="A file with the ledger's address, instead of the address itself."
    ),
]
Anchor = Annotated[
    Path | None,
    typer.Option("--anchor", metavar="FILE", help="A file, kept apart from the ledger, that remembers its last entry."),
]
NewAnchor = Annotated[bool, typer.Option("--new-anchor", help="Create the anchor for a ledger that already exists.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an earlier run in the same folder.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow an unencrypted connection to a cluster on another machine.")
]


def renamed_option(context: typer.Context, old: str, given: float | None, new: str, value: float) -> float:
    """Take the value of an option by its old name, with a warning; refuse both names at once."""
    if given is None:
        return value
    source = context.get_parameter_source(new.lstrip("-").replace("-", "_"))
    if source is not None and source.name != "DEFAULT":
        raise InputError(
            old, given, requirement=f"must not stand beside {new}, its new name", remedy=f"leave {old} out"
        )
    say(f"tacit: {old} will be removed; use {new}", err=True)
    return given


@contextlib.contextmanager
def options_named(command: Callable[..., Any], **arguments: str) -> Iterator[None]:
    """Let errors of the library, which name its parameters, name the options of a command.

    Parameters
    ----------
    command
        The command; each of its parameters `some_name` is its option `--some-name`.
    **arguments
        What positional arguments are called: `model="MODEL"`.
    """
    names = {name: f"--{name.replace('_', '-')}" for name in inspect.signature(command).parameters} | arguments

    def translated(text: str) -> str:
        return re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), text)

    try:
        yield
    except InputError as error:
        what = names.get(error.what, translated(error.what))
        words = {"requirement": translated(error.requirement), "remedy": translated(error.remedy)}
        raise InputError(what, error.value, **words) from None
    except NoTheoremError as error:
        raise NoTheoremError(translated(str(error))) from None


def engine_of(engine: str, *, insecure: bool) -> str:
    """The engine in the library's form, in which the prefix insecure+ allows an unencrypted connection."""
    return f"insecure+{engine}" if insecure and "://" in engine else engine
