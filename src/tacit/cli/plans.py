"""`tacit plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from .delivery import Wanted, delivery
from .manual import INPUTS, LEARN, PROVE, described
from .options import CertificatePath, Delta, Epsilon, JsonPath, Quiet, ReportPath, options_named


@described(
    "tacit plan --records 60000 --queries 1000 --error 0.05 \\\n--epsilon 2 --delta 1e-10",
    "tacit plan --records 20000 --queries 500 --vc-dimension 11 \\\n--epsilon 1 --delta 1e-9 --report plan.html",
    renamed={"--beta": "--failure-probability", "--proposer-error": "--public-model-error"},
)
def plan(
    records: Annotated[
        int, typer.Option("--records", help="The number of private labelled records.", rich_help_panel=INPUTS)
    ],
    queries: Annotated[
        int, typer.Option("--queries", help="The number of public queries to answer.", rich_help_panel=INPUTS)
    ],
    epsilon: Epsilon,
    delta: Delta,
    failure_probability: Annotated[
        float,
        typer.Option(
            "--failure-probability", help="The probability with which a promise may fail.", rich_help_panel=PROVE
        ),
    ] = 0.05,
    teachers: Annotated[
        int | None,
        typer.Option(
            "--teachers",
            help="The number of teachers; by default the smallest for which something is proven.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    error: Annotated[
        list[str] | None,
        typer.Option(
            "--error",
            metavar="[RECORDS:]ERROR",
            help="A teacher's error, trained on RECORDS records; repeat it for a learning curve.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    vc_dimension: Annotated[
        int | None,
        typer.Option(
            "--vc-dimension", help="The VC dimension of the teachers' class, instead of --error.", rich_help_panel=LEARN
        ),
    ] = None,
    best_error: Annotated[
        float,
        typer.Option("--best-error", help="The error of the best classifier of that class.", rich_help_panel=LEARN),
    ] = 0.0,
    classes: Annotated[int, typer.Option("--classes", help="The number of classes.", rich_help_panel=INPUTS)] = 2,
    public_model_error: Annotated[
        float | None,
        typer.Option(
            "--public-model-error",
            help="The error of a model trained on labelled public records; also plans the mechanism confirm.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    json: JsonPath = None,
    report: ReportPath = None,
    certificate: CertificatePath = None,
    quiet: Quiet = False,
) -> None:
    """Show what a privacy budget buys before any private record is touched, or that it buys too little."""
    with delivery(json, report, quiet=quiet, certificate=Wanted(path=certificate, reveal=True)) as deliver:
        from ..learning.study.plan import report as planned

        with options_named(plan):
            result = planned(
                records,
                queries,
                epsilon=epsilon,
                delta=delta,
                failure_probability=failure_probability,
                error=error or (),
                vc_dimension=vc_dimension,
                best_error=best_error,
                classes=classes,
                teachers=teachers,
                public_model_error=public_model_error,
            )
        deliver(result)
