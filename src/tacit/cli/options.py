"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[Path | None, typer.Option("--report", metavar="PATH.html", help="Write a page to look at.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on in a folder that a run left behind.")]
