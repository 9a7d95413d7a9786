"""The command line. Each command parses its options, calls one library function and prints; progress goes to stderr."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import __version__
from ..core.errors import InputError, TacitError, shown
from .audits import audit, audit_model
from .bounds import bound
from .certificates import certificate, verify
from .commands import demo, ledger, proof
from .delivery import BAD_INPUT, BROKEN, FINE, INTERRUPTED
from .learning import learn
from .manual import Command, Group, described
from .options import NOTHING
from .plans import plan
from .printing import say
from .reproductions import reproduce
from .service import query, serve, token

_ORDER = (
    *("demo", "plan", "bound", "learn", "audit", "audit-model", "verify", "certificate", "ledger"),
    *("serve", "query", "token", "reproduce", "proof"),
)


class _Commands(Group):
    """The commands, in the order in which people need them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    name="tacit",
    cls=_Commands,
    help="Prove what nobody can learn from a machine-learning model, and attack it to show how tight the proof is.",
    epilog="Exit codes: 0 success; 1 a guarantee was contradicted, or a requirement was not met; 2 bad usage or input; "
    "70 an error inside Tacit; 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMPLETING = "_TACIT_COMPLETE"
for command in (demo, plan, bound, learn, audit, audit_model, verify, ledger, serve, query, proof):
    app.command(cls=Command)(command)
app.add_typer(reproduce, name="reproduce")
app.add_typer(certificate, name="certificate")
app.add_typer(token, name="token")


@app.callback(invoke_without_command=True)
@described("tacit demo --open", "tacit audit scores.csv --secret member --output predicted")
def _tacit(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        typer.echo(f"tacit {__version__}" if version else context.get_help())
        raise typer.Exit(FINE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; every expected failure is one line on stderr.

    Parameters
    ----------
    arguments
        The words after `tacit`; by default those of the process.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ε shows a question mark
    code, said = FINE, BAD_INPUT
    try:
        result = app(arguments, standalone_mode=False, prog_name="tacit")
        code = result if isinstance(result, int) else FINE
        sys.stdout.flush()
        return code
    except TacitError as error:
        message = str(error)
    except typer.TyperException as error:
        message = _misuse(error)
    except BrokenPipeError:  # the reader closed the pipe, which does not change the verdict
        _discard_output()
        return code
    except OSError as error:
        if error.filename is not None:
            message = f"a file must exist and be accessible, got {error.strerror} for {shown(str(error.filename))}; "
            message += "check its name and your permissions"
        else:
            _discard_output()
            message = f"standard output must be writable, got {error.strerror}; use --quiet and --json"
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as error:
        if _COMPLETING in os.environ:  # the shell asks for completions
            raise
        if isinstance(error.__context__, BrokenPipeError):  # from rich, which prints the help
            return code
        said, message = BROKEN, _failure(error)  # code that we call must not choose our exit code
    except MemoryError:
        said, message = BROKEN, "the run must fit into memory, got too little; use fewer rows, or a larger machine"
    except Exception as error:
        said, message = BROKEN, _failure(error)
    with contextlib.suppress(OSError):  # stderr is closed
        say(f"tacit: error: {' '.join(message.split())}", err=True)
    return said


_KINDS = {"float_parsing": "a number", "int_parsing": "a whole number", "float": "a number", "int": "a whole number"}
"""What an option's value must be, in the words of newer and of older versions of typer."""


def _misuse(error: typer.TyperException) -> str:
    """What typer complains about, in the form of our own errors where that is known."""
    context, option = getattr(error, "ctx", None), getattr(error, "param", None)
    remedy = f"see {'tacit' if context is None else context.command_path} --help"
    name = "" if option is None else option.opts[0] if option.opts[0].startswith("-") else str(option.metavar)
    if type(error).__name__ == "MissingParameter" and name:
        return str(InputError(name, NOTHING, requirement="must be given", remedy=remedy))
    complaints: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    older = re.fullmatch(r"'(.*)' is not a valid (int|float)[a-z ]*\.?", getattr(error, "message", ""), re.DOTALL)
    kind, value = (older[2], older[1]) if older else ("", None)
    if complaints:
        kind, value = str(complaints[0].get("type")), complaints[0].get("input")
    if kind in _KINDS and name:
        return str(InputError(name, value, requirement=f"must be {_KINDS[kind]}", remedy=remedy))
    return f"{error.format_message().rstrip('.')}; {remedy}"


def _failure(error: BaseException) -> str:
    """Say where Tacit itself failed, without the error's message, which may quote a record."""
    place = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in place if f"{os.sep}tacit{os.sep}" in frame.filename] or place
    where = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    told = f"Tacit must not fail, got {type(error).__name__} at {where}; please report this line"
    with contextlib.suppress(OSError):
        return f"{told} and {_written(error)}, which quotes no value; it is a bug"
    return f"{told}; it is a bug"


def _written(error: BaseException) -> str:
    """Write a file for a bug report, readable by its owner only, with versions and the traceback.

    It has neither error messages nor the command line, since both may quote records.
    """
    lines = [f"tacit {__version__}, Python {platform.python_version()}, {platform.platform()}\n"]
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        lines += [f"\n{type(cause).__module__}.{type(cause).__qualname__}\n"]
        lines += traceback.format_list(traceback.extract_tb(cause.__traceback__))
        cause = cause.__cause__ or cause.__context__
    descriptor, path = tempfile.mkstemp(prefix="tacit-error-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.writelines(lines)
    return path


def _open_streams() -> None:
    """Connect streams that the caller has closed (`>&-`) to the null device.

    Otherwise the next file to be opened, perhaps a ledger, would take the place of standard output.
    """
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor
            if found != place:
                os.dup2(found, place)
                os.close(found)
            os.set_inheritable(place, True)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


def _discard_output() -> None:
    """Discard buffered output that cannot be written, or Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
