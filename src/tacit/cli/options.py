"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

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


def engine_of(engine: str, *, insecure: bool) -> str:
    """The engine in the library's form, in which the prefix insecure+ allows an unencrypted connection."""
    return f"insecure+{engine}" if insecure and "://" in engine else engine
