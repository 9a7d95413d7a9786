"""The command line: parse, one library call, print. Progress goes to stderr, data to stdout."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ..errors import TacitError
from .commands import audit, bound, demo, learn, ledger, plan
from .delivery import BAD_INPUT, FINE, INTERRUPTED
from .reproductions import reproduce

app = typer.Typer(
    name="tacit",
    help="What nobody can learn from a machine-learning model: proven, and attacked to show how tight the proof is.",
    epilog="Exit codes: 0 fine; 1 a guarantee was contradicted, or a requirement not met; 2 bad usage or input.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, bound, learn, ledger, plan, audit):
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ε shows a question mark
    try:
        code = app(arguments, standalone_mode=False, prog_name="tacit")
        sys.stdout.flush()
        return code if isinstance(code, int) else FINE
    except TacitError as error:
        message = str(error)
    except typer.TyperException as error:
        message = f"{error.format_message().rstrip('.')}; see tacit --help"
    except BrokenPipeError:
        _discard_output()
        return FINE
    except OSError as error:
        _discard_output()
        message = f"standard output must be writable, got {error.strerror}; use --quiet and --json"
    except typer.Abort:
        return INTERRUPTED
    typer.echo(f"tacit: error: {' '.join(message.split())}", err=True)
    return BAD_INPUT


def _discard_output() -> None:
    """What is still buffered has nowhere to go, and Python would complain about that at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
