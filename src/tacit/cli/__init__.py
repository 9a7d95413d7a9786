"""The command line: parse, one library call, print. Progress goes to stderr, data to stdout."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ..core.errors import TacitError, shown
from .commands import audit, bound, demo, learn, ledger, plan, proof
from .delivery import BAD_INPUT, BROKEN, FINE, INTERRUPTED
from .printing import say
from .reproductions import reproduce

app = typer.Typer(
    name="tacit",
    help="What nobody can learn from a machine-learning model: proven, and attacked to show how tight the proof is.",
    epilog="Exit codes: 0 fine; 1 a guarantee was contradicted, or a requirement not met; 2 bad usage or input; 70 "
    "Tacit itself failed; 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMPLETING = "_TACIT_COMPLETE"
for command in (demo, bound, learn, ledger, plan, audit, proof):
    app.command()(command)
app.add_typer(reproduce, name="reproduce")


@app.callback(invoke_without_command=True)
def _tacit(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        typer.echo(f"tacit {__version__}" if version else context.get_help())
        raise typer.Exit(FINE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; every expected failure is one line on stderr."""
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
        message = f"{error.format_message().rstrip('.')}; see tacit --help"
    except BrokenPipeError:  # a reader who has seen enough takes nothing from the verdict
        _discard_output()
        return code
    except OSError as error:
        if error.filename is not None:
            message = f"a file must be there and yours to use, got {error.strerror} for {shown(str(error.filename))}; "
            message += "check its name and your rights"
        else:
            _discard_output()
            message = f"standard output must be writable, got {error.strerror}; use --quiet and --json"
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as error:
        if _COMPLETING in os.environ:  # for a shell, which asks what may come next
            raise
        said, message = BROKEN, _failure(error)  # code that we call must not choose what our exit code says
    except MemoryError:
        said, message = BROKEN, "the run must fit into memory, got no more of it; use fewer rows, or another machine"
    except Exception as error:
        said, message = BROKEN, _failure(error)
    with contextlib.suppress(OSError):  # nobody hears it
        say(f"tacit: error: {' '.join(message.split())}", err=True)
    return said


def _failure(error: BaseException) -> str:
    """Where Tacit itself failed; not what the error says, which may quote a record."""
    place = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in place if f"{os.sep}tacit{os.sep}" in frame.filename] or place
    where = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
    told = f"Tacit must not fail, got {type(error).__name__} at {where}; please report this line"
    with contextlib.suppress(OSError):
        return f"{told} and {_written(error)}, which quotes no value: it is a bug"
    return f"{told}, it is a bug"


def _written(error: BaseException) -> str:
    """A file for a report, which its owner alone can read: versions, and the lines of code that led here.

    Neither what errors say nor what was on the command line is in it: both may quote records.
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
    """Let streams that the caller has closed (`>&-`) lead nowhere: the exit code speaks, and files are written.

    Else the next file that is opened, a ledger perhaps, would take the place of standard output.
    """
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            found = os.open(os.devnull, os.O_RDWR)  # takes the lowest place that is free
            if found != place:
                os.dup2(found, place)
                os.close(found)
            os.set_inheritable(place, True)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


def _discard_output() -> None:
    """What is still buffered has nowhere to go, and Python would complain about that at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
