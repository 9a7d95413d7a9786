"""Options that several commands share, and how errors name options."""

import contextlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import BudgetSpentError, InputError, InputWarning, MissingExtraError, NoTheoremError, PrivacyWarning
from ..runtime.clusters import INSECURE
from .manual import BUDGET, TIME
from .printing import say

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[
    Path | None, typer.Option("--report", metavar="PATH.html", help="Write the results as an HTML page.")
]
CertificatePath = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="PATH.json",
        help="Write a certificate: what tacit verify, or anyone without Tacit, needs to check the numbers.",
    ),
]
Subjects = Annotated[
    list[Path] | None,
    typer.Option(
        "--subject",
        metavar="FILE",
        help="With --certificate: a released file to name in it, by its SHA-256; repeatable.",
    ),
]
_READ_BY_BOUND = {
    "--weights": "FILE",
    "--public": "PATH",
    "--generator": "FILE",
    "--attribute": "FILE.py:FUNCTION",
}
"""Files that `bound` reads and `verify --replay` reads again, and what is given for each."""


def read_by_bound(name: str, *, panel: str, meaning: str) -> Any:
    """The option for a file that `bound` reads."""
    return typer.Option(name, metavar=_READ_BY_BOUND[name], help=meaning, rich_help_panel=panel)


OpenPage = Annotated[
    bool, typer.Option("--open", help="Open the page in the browser; without --report it is tacit-demo.html.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The privacy loss ε allowed.", rich_help_panel=BUDGET)]
Delta = Annotated[
    float, typer.Option("--delta", help="The δ that belongs to it, about 1/records².", rich_help_panel=BUDGET)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
LedgerUrlFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger-url-file",
        metavar="FILE",
        help="A file with the ledger's address, instead of the address itself.",
        rich_help_panel=BUDGET,
    ),
]
Anchor = Annotated[
    Path | None,
    typer.Option(
        "--anchor",
        metavar="FILE",
        help="A file, kept apart from the ledger, that remembers its last entry.",
        rich_help_panel=BUDGET,
    ),
]
NewAnchor = Annotated[
    bool,
    typer.Option("--new-anchor", help="Create the anchor for a ledger that already exists.", rich_help_panel=BUDGET),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an earlier run in the same folder.", rich_help_panel=TIME)
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|cuda|auto",
        help="Where torch computes; auto takes a GPU if there is one.",
        rich_help_panel=TIME,
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The seed of random draws and attacks.", rich_help_panel=TIME)]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Allow an unencrypted connection to a cluster on another machine.", rich_help_panel=TIME
    ),
]


class _Word:
    """A word for a value that was not typed: errors show it without quotes."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __repr__(self) -> str:
        return self.word


NOTHING = _Word("nothing")


def typed(value: object) -> object:
    """The value as it was typed on the command line, not as Python shows it."""
    if value is None:
        return NOTHING
    if value is True:
        return _Word("the flag")
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value) if isinstance(value, Path) else value


def given_or_refused(when: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that must be given in this case."""
    for name, value in options.items():
        if value is None:
            raise InputError(name, NOTHING, requirement=f"must be given {when}", remedy="see tacit bound --help")
    return options


def refused_options(context: typer.Context, names: tuple[str, ...], when: str) -> None:
    """Refuse options that mean nothing in this case."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                option, typed(context.params[name]), requirement=f"must not be given {when}", remedy="leave it out"
            )


@contextlib.contextmanager
def options_named(command: Callable[..., Any], **arguments: str) -> Iterator[None]:
    """Let errors of the library, which name its parameters, name the options of a command.

    `resume` and `resume=True` become --resume, and `engine='local'` becomes --engine local.

    Parameters
    ----------
    command
        The command; each of its parameters `some_name` is its option `--some-name`.
    **arguments
        What positional arguments are called: `model="MODEL"`.
    """
    names = {name: f"--{name.replace('_', '-')}" for name in inspect.signature(command).parameters} | arguments

    def option(found: re.Match[str]) -> str:
        named = names.get(found[1])
        if named is None:
            return found[0]
        value = "" if found[2] in (None, "True") else f" {found[2].strip(chr(39))}"
        return named + value

    def translated(text: str) -> str:
        text = re.sub(rf"write `{re.escape(INSECURE)}[^`]*`", "add --insecure", text)
        return re.sub(r"`(\w+)(?:=([^`]*))?`", option, text)

    usual = warnings.showwarning

    def said(message: Any, category: Any, *place: Any, **more: Any) -> None:
        if issubclass(category, PrivacyWarning | InputWarning):
            say(f"tacit: warning: {translated(str(message))}", err=True)
        else:
            usual(message, category, *place, **more)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", PrivacyWarning)
            warnings.simplefilter("always", InputWarning)
            warnings.showwarning = said
            yield
    except InputError as error:
        what = names.get(error.what, translated(error.what))
        words = {"requirement": translated(error.requirement), "remedy": translated(error.remedy)}
        raise InputError(what, typed(error.value), **words) from None
    except (BudgetSpentError, MissingExtraError, NoTheoremError) as error:
        raise type(error)(translated(str(error))) from None
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(translated(str(stop))) from None


def engine_of(engine: str, *, insecure: bool) -> str:
    """The engine in the library's form, in which the prefix insecure+ allows an unencrypted connection."""
    return f"{INSECURE}{engine}" if insecure and "://" in engine else engine
