"""All commands but `tacit reproduce`: each parses its options, calls one library function and delivers the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import MissingExtraError
from .delivery import delivery
from .options import (
    Anchor,
    Insecure,
    JsonPath,
    LedgerUrlFile,
    NewAnchor,
    Quiet,
    ReportPath,
    Resume,
    engine_of,
    options_named,
    renamed_option,
)
from .printing import say
from .progress import progress


def demo(json: JsonPath = None, report: ReportPath = None, quiet: Quiet = False) -> None:
    """Release digits in three ways, prove what nobody can learn from each release, and attack it."""
    with delivery(json, report, quiet=quiet) as deliver:
        from .. import demo as demonstration

        with progress(demonstration.STEPS, quiet=quiet) as advance:
            result = demonstration.demo(advance=advance)
        deliver(result)


def bound(
    model: Annotated[
        str, typer.Argument(metavar="MODEL.py:FUNCTION", help="A function that returns the torch module.")
    ],
    data: Annotated[
        Path, typer.Option("--data", metavar="FILE_OR_FOLDER", help="The inputs: .npy, .npz, or a folder of images.")
    ],
    noise: Annotated[
        str,
        typer.Option(
            "--noise", metavar="KIND:SIZE", help="gaussian:σ, laplace:b, uniform:w or quantized:s:gaussian:σ."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A folder for finished batches.")],
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="FILE", help="A .safetensors or .pt file; else as the function builds it."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            metavar="FILE_OR_FOLDER",
            help="Public inputs: bayes is then about draws from a Gaussian with their mean and covariance.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="identify, bayes, two-point, multi-point or hcr; several separated by commas; or all."
        ),
    ] = "all",
    basis: Annotated[
        str,
        typer.Option("--basis", help="The coordinates: dct (cosine modes of images), pixel (single entries) or auto."),
    ] = "auto",
    limit: Annotated[int | None, typer.Option("--limit", help="Bound only this many inputs one by one.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For searches, Monte Carlo and attacks.")] = 0,
    feature_error: Annotated[
        float | None,
        typer.Option("--feature-error", help="Relative error of released features; else by type, 1e-6 for float32."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Where batches run: local, or a Dask cluster at tls://HOST:PORT.")
    ] = "local",
    insecure: Insecure = False,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Bound how well anyone can rebuild the inputs of a model from its noisy features."""
    read = (model.rpartition(":")[0] or None, data, weights, public)
    left = f"finished batches are kept in {out}; the same command with --resume goes on"
    with delivery(json, report, quiet=quiet, inputs=read, interrupted=left) as deliver:
        try:
            from ..reconstruction import bound_files
        except ImportError:
            raise MissingExtraError(
                "tacit bound must have torch, got no such package; pip install '.[torch]' in Tacit's checkout"
            ) from None

        with options_named(bound, model="MODEL"), progress(None, quiet=quiet) as advance:
            result = bound_files(
                model,
                data=data,
                noise=noise,
                out=out,
                weights=weights,
                public=public,
                method=method,
                basis=basis,
                limit=limit,
                seed=seed,
                feature_error=feature_error,
                engine=engine_of(engine, insecure=insecure),
                resume=resume,
                advance=advance,
            )
        deliver(result)


def learn(
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="Private records: .csv, .parquet or .npz.")],
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column to learn.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss allowed.")],
    delta: Annotated[float, typer.Option("--delta", help="The δ that belongs to it, about 1/records².")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where everything is written.")],
    public: Annotated[
        Path | None,
        typer.Option("--public", metavar="FILE", help="Public records without labels, which teachers are asked about."),
    ] = None,
    labels_only: Annotated[
        bool,
        typer.Option(
            "--labels-only",
            help="Instead of --public: protect only labels, and publish half of the private records without theirs.",
        ),
    ] = False,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Other labelled records, to test the student on.")
    ] = None,
    learner: Annotated[
        str,
        typer.Option("--learner", metavar="MODULE:CLASS", help="The class of the teachers, of an installed package."),
    ] = "sklearn.linear_model:LogisticRegression",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the learner; repeatable.")
    ] = None,
    student: Annotated[
        str | None,
        typer.Option(
            "--student",
            metavar="MODULE:CLASS",
            help="The class of the student, which is published; else the learner's.",
        ),
    ] = None,
    student_settings: Annotated[
        list[str] | None, typer.Option("--student-set", metavar="NAME=VALUE", help="A parameter of the student.")
    ] = None,
    teachers: Annotated[
        int | None,
        typer.Option("--teachers", help="Number of teachers; else about the square root of the number of records."),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option("--mechanism", help="auto, svt, svt-faithful, gnmax, confident-gnmax, stable, gate or confirm."),
    ] = "auto",
    proposer: Annotated[
        Path | None,
        typer.Option(
            "--proposer", metavar="FILE", help="Labelled records that are not private, from which labels are proposed."
        ),
    ] = None,
    queries: Annotated[
        str | None, typer.Option("--queries", help="Number of public records to ask about, or all.")
    ] = None,
    refusals: Annotated[
        int | None,
        typer.Option("--refusals", help="Number of refusals after which svt, svt-faithful, gate or confirm stops."),
    ] = None,
    expected: Annotated[
        float, typer.Option("--expected", help="The share of teachers expected to be right; auto chooses by it.")
    ] = 0.8,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B,…", help="All labels that may occur; else they are found with noise."),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            "--ids", metavar="COLUMN", help="Whose each record is, to protect all records of a person together."
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="WHERE", help="The ledger, a path or an address; else one in FOLDER."),
    ] = None,
    ledger_url_file: LedgerUrlFile = None,
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="Create the ledger named, with the budget of this run.")
    ] = False,
    anchor: Anchor = None,
    new_anchor: NewAnchor = False,
    engine: Annotated[
        str, typer.Option("--engine", help="Where teachers are trained: local, tls://HOST:PORT or ray://HOST:PORT.")
    ] = "local",
    insecure: Insecure = False,
    allow_overlap: Annotated[
        bool,
        typer.Option(
            "--allow-overlap", help="Accept files that contain private records, which are then not protected."
        ),
    ] = False,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Learn a classifier that may be published from private records, with (ε, δ)-differential privacy."""
    kept = (ledger, ledger_url_file, anchor, out / "ledger.sqlite", out / "private" / "anchor.json")
    with delivery(json, report, quiet=quiet, inputs=(private, public, test, proposer, *kept)) as deliver:
        from ..learning import learn_files

        with progress(None, quiet=quiet) as advance:
            result = learn_files(
                private,
                label=label,
                epsilon=epsilon,
                delta=delta,
                out=out,
                public=public,
                labels_only=labels_only,
                test=test,
                learner=learner,
                settings=settings or (),
                student=student,
                student_settings=student_settings or (),
                teachers=teachers,
                mechanism=mechanism,
                proposer=proposer,
                queries=queries,
                refusals=refusals,
                expected=expected,
                classes=classes,
                ids=ids,
                ledger=ledger,
                ledger_url_file=ledger_url_file,
                new_ledger=new_ledger,
                anchor=anchor,
                new_anchor=new_anchor,
                engine=engine_of(engine, insecure=insecure),
                allow_overlap=allow_overlap,
                resume=resume,
                advance=advance,
            )
        deliver(result)
        if not quiet:
            say(f"to publish: {(out / 'publish').absolute()}", err=True)
            say(f"never to publish: {(out / 'private').absolute()}", err=True)


def ledger(
    where: Annotated[
        str | None, typer.Argument(metavar="WHERE", help="An SQLite file, or postgresql://USER@HOST/DATABASE.")
    ] = None,
    ledger_url_file: LedgerUrlFile = None,
    anchor: Anchor = None,
    new_anchor: NewAnchor = False,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The owner's key, which checks the owner's seals.")
    ] = None,
    sign: Annotated[
        bool, typer.Option("--sign", help="Seal all present entries with the key, after its earlier seals.")
    ] = False,
    sign_first: Annotated[
        bool, typer.Option("--sign-first", help="Seal a ledger that has no seal yet. Inspect it first.")
    ] = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Show what was spent of a privacy budget and what remains, and check that no entry was changed."""
    with delivery(json, report, quiet=quiet, inputs=(where, ledger_url_file, anchor, key)) as deliver:
        from ..ledger import named_place, statement

        place = named_place("WHERE", where, ledger_url_file)
        deliver(statement(place or "", anchor=anchor, new_anchor=new_anchor, key=key, sign=sign, sign_first=sign_first))


def plan(
    context: typer.Context,
    records: Annotated[int, typer.Option("--records", help="The number of private labelled records.")],
    queries: Annotated[int, typer.Option("--queries", help="The number of public queries to answer.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss allowed.")],
    delta: Annotated[float, typer.Option("--delta", help="The δ that belongs to it, about 1/records².")],
    failure_probability: Annotated[
        float, typer.Option("--failure-probability", help="The probability with which a promise may fail.")
    ] = 0.05,
    beta: Annotated[float | None, typer.Option("--beta", hidden=True)] = None,
    teachers: Annotated[
        int | None, typer.Option("--teachers", help="The number of teachers; by default the smallest that works.")
    ] = None,
    error: Annotated[
        list[str] | None,
        typer.Option(
            "--error",
            metavar="[RECORDS:]ERROR",
            help="A teacher's error, trained on RECORDS records; give several for a learning curve.",
        ),
    ] = None,
    vc_dimension: Annotated[
        int | None, typer.Option("--vc-dimension", help="The VC dimension of the teachers' class, instead of --error.")
    ] = None,
    best_error: Annotated[
        float, typer.Option("--best-error", help="The error of the best classifier of that class.")
    ] = 0.0,
    classes: Annotated[int, typer.Option("--classes", help="The number of classes.")] = 2,
    proposer_error: Annotated[
        float | None,
        typer.Option("--proposer-error", help="The share of wrong proposals; plans for the mechanism confirm as well."),
    ] = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Show what a privacy budget buys before any private record is touched, or that it buys too little."""
    failure_probability = renamed_option(context, "--beta", beta, "--failure-probability", failure_probability)
    with delivery(json, report, quiet=quiet) as deliver:
        from ..learning.study.plan import report as planned

        deliver(
            planned(
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
                proposer_error=proposer_error,
            )
        )


def audit(
    context: typer.Context,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file of any size.")],
    secret: Annotated[str, typer.Option("--secret", metavar="COLUMN", help="The secret: a column with two values.")],
    output: Annotated[
        list[str],
        typer.Option("--output", metavar="COLUMN", help="What the adversary sees; repeat it for several columns."),
    ],
    noise: Annotated[
        float | None,
        typer.Option("--noise", help="Standard deviation of Gaussian noise that is added to the output at release."),
    ] = None,
    noise_added: Annotated[
        float | None,
        typer.Option("--noise-added", help="Standard deviation of Gaussian noise that the column holds already."),
    ] = None,
    monotone: Annotated[
        bool,
        typer.Option(
            "--monotone", help="State that the secret's probability only grows, or only falls, with the output."
        ),
    ] = False,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            "--lipschitz",
            metavar="L",
            help="State that the secret's mean, coded ±1 with both values equally likely, changes by at most L per "
            "unit of the output.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive",
            metavar="VALUE",
            help="The value of the secret that attacks look for; by default the value that sorts last.",
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option("--slice", metavar="COLUMN", help="A column, each value of which is certified separately, too."),
    ] = None,
    failure_probability: Annotated[
        float, typer.Option("--failure-probability", help="The chance that a certificate is false.")
    ] = 0.05,
    delta: Annotated[float | None, typer.Option("--delta", hidden=True)] = None,
    require_advantage: Annotated[
        float | None,
        typer.Option("--require-advantage", help="A ceiling for the advantage: exit with 1 unless it is proven."),
    ] = None,
    attack_rows: Annotated[
        int, typer.Option("--attack-rows", help="How many rows to attack at most, drawn at random; 0 for no attacks.")
    ] = 100_000,
    seed: Annotated[int, typer.Option("--seed", help="For random draws and attacks.")] = 0,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Certify from a table what nobody can learn about a secret from an output, and attack it."""
    failure_probability = renamed_option(context, "--delta", delta, "--failure-probability", failure_probability)
    with delivery(json, report, quiet=quiet, inputs=(table,)) as deliver:
        from ..audit import audit_file

        with progress(None, quiet=quiet) as advance:
            result = audit_file(
                table,
                secret=secret,
                output=output,
                noise=noise,
                noise_added=noise_added,
                monotone=monotone,
                lipschitz=lipschitz,
                positive=positive,
                slices=slices,
                failure_probability=failure_probability,
                require_advantage=require_advantage,
                attack_rows=attack_rows,
                seed=seed,
                pictures=report is not None,
                advance=advance,
            )
        deliver(result)


def proof(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
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
