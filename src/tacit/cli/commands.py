"""Commands of few options, `tacit demo`, `tacit ledger` and `tacit proof`: each calls one function and delivers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import InputError
from ..report.timing import Paced
from .delivery import Wanted, delivery, opened
from .manual import BUDGET, described
from .options import (
    Anchor,
    CertificatePath,
    JsonPath,
    LedgerUrlFile,
    NewAnchor,
    OpenPage,
    Quiet,
    ReportPath,
    options_named,
)
from .progress import progress


@described("tacit demo --open", "tacit demo --report demo.html --json demo.json")
def demo(
    json: JsonPath = None,
    report: ReportPath = None,
    certificate: CertificatePath = None,
    open_page: OpenPage = False,
    quiet: Quiet = False,
) -> None:
    """Release digits in three ways, prove what nobody can learn from each release, and attack it."""
    if open_page and report is None:
        report = Path("tacit-demo.html")
    wanted = Wanted(path=certificate, reveal=True, seed=0)  # its digits are public
    with delivery(json, report, quiet=quiet, certificate=wanted) as deliver:
        from .. import demo as demonstration

        with progress(quiet=quiet) as advance:
            result = demonstration.demo(advance=Paced(advance, demonstration.SECONDS))
        deliver(result)
    if open_page and report is not None:
        opened(report)


@described(
    "tacit ledger bought/ledger.sqlite",
    "tacit ledger bought/ledger.sqlite --anchor elsewhere/anchor.json \\\n--json ledger.json",
)
def ledger(
    where: Annotated[
        str | None, typer.Argument(metavar="WHERE", help="An SQLite file, or postgresql://USER@HOST/DATABASE.")
    ] = None,
    ledger_url_file: LedgerUrlFile = None,
    anchor: Anchor = None,
    new_anchor: NewAnchor = False,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The owner's key, which checks the owner's seals.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    sign: Annotated[
        bool,
        typer.Option(
            "--sign", help="Seal all present entries with the key, after its earlier seals.", rich_help_panel=BUDGET
        ),
    ] = False,
    sign_first: Annotated[
        bool,
        typer.Option(
            "--sign-first", help="Seal a ledger that has no seal yet. Inspect it first.", rich_help_panel=BUDGET
        ),
    ] = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Show what was spent of a privacy budget and what remains, and check that no entry was changed."""
    with delivery(json, report, quiet=quiet, inputs=(where, ledger_url_file, anchor, key)) as deliver:
        from ..ledger import named_place, statement

        with options_named(ledger, where="WHERE", first="--sign-first"):
            place = named_place("where", where, ledger_url_file)
            if place is None:
                raise InputError(
                    "where", None, requirement="must be given", remedy="name the ledger, or use `ledger_url_file`"
                )
            result = statement(place, anchor=anchor, new_anchor=new_anchor, key=key, sign=sign, sign_first=sign_first)
        deliver(result)


@described("tacit proof", "tacit proof advantage_upper")
def proof(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="A function or module of tacit.theory, or a theorem's name in a report; by default list all.",
        ),
    ] = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Print a theorem and its proof. Reports name the theorems of every number."""
    with delivery(json, report, quiet=quiet) as deliver:
        from ..report import proofs

        deliver(proofs(names or ()))
