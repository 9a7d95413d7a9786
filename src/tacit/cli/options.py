"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[Path | None, typer.Option("--report", metavar="PATH.html", help="Write a page to look at.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
LedgerUrlFile = Annotated[
    Path | None,
    typer.Option("--ledger-url-file", metavar="FILE", help="A file with the ledger's address, instead of WHERE."),
]
Anchor = Annotated[
    Path | None,
    typer.Option("--anchor", metavar="FILE", help="A file elsewhere that remembers the end of the ledger."),
]
NewAnchor = Annotated[bool, typer.Option("--new-anchor", help="Create the anchor for a ledger that exists already.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on in a folder that a run left behind.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Speak to the cluster of --engine in plain text, though it is elsewhere.")
]


def engine_of(engine: str, *, insecure: bool) -> str:
    """The engine as the library calls it, where an address says by itself that plain text is allowed."""
    return f"insecure+{engine}" if insecure and "://" in engine else engine
