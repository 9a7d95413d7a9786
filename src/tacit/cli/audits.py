"""`tacit audit` and `tacit audit-model`: each parses its options, calls one function and delivers the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import InputError
from .delivery import Wanted, delivery
from .manual import INPUTS, NOISE, PROVE, TIME, described
from .options import (
    CertificatePath,
    Insecure,
    JsonPath,
    Quiet,
    ReportPath,
    Resume,
    Seed,
    Subjects,
    engine_of,
    options_named,
)
from .progress import progress

TrainedWith = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--trained-with",
        metavar="EPSILON DELTA",
        help="The ε and δ that the training is stated to have: what they imply is shown, and whether it is refuted.",
        rich_help_panel=PROVE,
    ),
]


@described(
    "tacit audit scores.csv --secret member --output predicted",
    "tacit audit scores.csv --secret member --output score --noise 0.1 \\\n--require-advantage 0.1 --report audit.html",
    renamed={
        "--delta": "--failure-probability",
        "--monotone": "--assume-one-direction",
        "--lipschitz": "--assume-max-slope",
    },
)
def audit(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file of any size, or an .npz file of arrays.")
    ],
    secret: Annotated[
        list[str],
        typer.Option(
            "--secret",
            metavar="COLUMN",
            help="The secret: a column with two values, or more; repeat it for several secrets.",
            rich_help_panel=INPUTS,
        ),
    ],
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            metavar="COLUMN",
            help="What the adversary sees; repeat it for several columns, or write * for any letters: 'x*'. Or a "
            "matrix: an array of TABLE.npz, or a .npy file with the rows of TABLE.",
            rich_help_panel=INPUTS,
        ),
    ],
    code: Annotated[
        str | None,
        typer.Option(
            "--code",
            metavar="CODE",
            help="For vectors of many numbers: auto, kmeans, tree or attack; kmeans:64 has 64 cells. A code that is "
            "fixed on a quarter of the rows is certified, and whole vectors are attacked.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    release_code: Annotated[
        Path | None,
        typer.Option(
            "--release-code",
            metavar="PATH",
            help="The code by kmeans or tree is what is released, not the vectors: write it to this JSON file.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive",
            metavar="VALUE",
            help="The value of the secret that attacks look for; by default the value that sorts last.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option(
            "--slice",
            metavar="COLUMN",
            help="A column whose values are also certified separately.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    secret_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--secret-range",
            metavar="LOW HIGH",
            help="The secret is a number, and this is the range that it can have at all.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            help="Rows with the same value here belong together (a patient's): one of each group is drawn.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Standard deviation of Gaussian noise that is added to the output at release.",
            rich_help_panel=NOISE,
        ),
    ] = None,
    noise_added: Annotated[
        float | None,
        typer.Option(
            "--noise-added",
            help="Standard deviation of Gaussian noise that the column holds already.",
            rich_help_panel=NOISE,
        ),
    ] = None,
    assume_one_direction: Annotated[
        bool,
        typer.Option(
            "--assume-one-direction",
            help="Assume that the secret's probability only rises, or only falls, as the output grows.",
            rich_help_panel=PROVE,
        ),
    ] = False,
    assume_max_slope: Annotated[
        float | None,
        typer.Option(
            "--assume-max-slope",
            metavar="SLOPE",
            help="Assume that the secret's mean, coded ±1 with both values equally likely, changes by at most SLOPE "
            "per unit of the output.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    failure_probability: Annotated[
        float,
        typer.Option("--failure-probability", help="The chance that a certificate is false.", rich_help_panel=PROVE),
    ] = 0.05,
    require_advantage: Annotated[
        float | None,
        typer.Option(
            "--require-advantage",
            help="A ceiling for the advantage: exit with 1 unless it is proven.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    menu: Annotated[
        bool,
        typer.Option(
            "--menu",
            help="Certify what could be released instead (rounded, noisy, labels), not only where the ceiling is not "
            "met.",
            rich_help_panel=PROVE,
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The label that the output should predict: prices what could be released instead in accuracy.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(
            "--record",
            metavar="COLUMN",
            help="The column that names the record, where rows are about many models, each trained on a random half "
            "of the records; repeat it for several. Attacks are then by someone who holds the record.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="COLUMN", help="With --record: the column that names the model.", rich_help_panel=INPUTS
        ),
    ] = None,
    trained_with: TrainedWith = None,
    attack_rows: Annotated[
        int,
        typer.Option(
            "--attack-rows",
            help="How many rows to attack at most, drawn at random; 0 for no attacks.",
            rich_help_panel=TIME,
        ),
    ] = 100_000,
    seed: Seed = 0,
    json: JsonPath = None,
    report: ReportPath = None,
    certificate: CertificatePath = None,
    commit_counts: Annotated[
        bool,
        typer.Option(
            "--commit-counts",
            help="With --certificate: replace the counts of the table by a commitment; PATH.json.opening, "
            "which you keep to yourself, opens it.",
        ),
    ] = False,
    subject: Subjects = None,
    quiet: Quiet = False,
) -> None:
    """Certify from a table what nobody can learn about a secret from an output, and attack it."""
    options: dict[str, Any] = {
        "secret": secret[0] if len(secret) == 1 else secret,
        "output": output,
        "positive": positive,
        "slices": slices,
        "secret_range": secret_range,
        "group": group,
        "noise": noise,
        "noise_added": noise_added,
        "assume_one_direction": assume_one_direction,
        "assume_max_slope": assume_max_slope,
        "failure_probability": failure_probability,
        "seed": seed,
    }
    beside = any(one.lower().endswith(".npy") for one in output)
    if certificate is not None and record:
        raise InputError(
            "--certificate",
            str(certificate),
            requirement="must come without --record: no rule of the checker follows repeated trainings",
            remedy="use --json",
        )
    wanted = Wanted(
        path=certificate,
        reveal=not commit_counts,
        subjects=subject or (),
        seed=seed,
        # A code depends on more than the table and these options, and a replay must not read a path that it is told.
        replay=None if code is not None or beside else lambda _: {"command": "audit", "options": options},
        only_with=["--commit-counts"] * commit_counts + ["--subject"] * bool(subject),
    )
    kept = (table, release_code, *(one for one in output if one.lower().endswith(".npy")), *(subject or ()))
    with delivery(json, report, quiet=quiet, inputs=kept, certificate=wanted) as deliver:
        from ..audit import audit_file

        named = options_named(audit, table="TABLE", slices="--slice")
        with named, progress(quiet=quiet) as advance:
            result = audit_file(
                table,
                code=code,
                release_code=release_code,
                require_advantage=require_advantage,
                menu=menu,
                target=target,
                record=record,
                model=model,
                trained_with=trained_with,
                attack_rows=attack_rows,
                pictures=report is not None,
                advance=advance,
                **options,
            )
        deliver(result)


@described(
    "tacit audit-model train.py:fit --data records.csv --label income",
    "tacit audit-model train.py:fit --data records.npz --models 64 \\\n--report audit.html",
)
def audit_model(
    factory: Annotated[
        str,
        typer.Argument(
            metavar="TRAIN",
            help="FILE.py:FUNCTION, which trains: FUNCTION(X, y) returns a fitted classifier of scikit-learn, or a "
            "torch module that returns logits.",
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Records: a .csv or .parquet file of numbers, or an .npz file of X and y.",
            rich_help_panel=INPUTS,
        ),
    ],
    label: Annotated[
        str,
        typer.Option("--label", metavar="COLUMN", help="The column with the label.", rich_help_panel=INPUTS),
    ] = "y",
    models: Annotated[
        int | None,
        typer.Option(
            "--models",
            help="How many models to train, each on a random half; by default as many as --seconds allows, 16 to 256.",
            rich_help_panel=TIME,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long training may take.", rich_help_panel=TIME)
    ] = 120.0,
    delta: Annotated[
        float,
        typer.Option(
            "--delta", help="The δ of the (ε, δ)-differential privacy that attacks refute.", rich_help_panel=PROVE
        ),
    ] = 0.0,
    trained_with: TrainedWith = None,
    failure_probability: Annotated[
        float,
        typer.Option("--failure-probability", help="The chance that a limit is false.", rich_help_panel=PROVE),
    ] = 0.05,
    require_advantage: Annotated[
        float | None,
        typer.Option(
            "--require-advantage",
            help="A ceiling for the advantage by what --release names: exit with 1 unless it is proven.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="class|digit",
            help="What the ceiling is for: the likeliest class, or that class with its probability to a digit.",
            rich_help_panel=PROVE,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="local|ADDRESS",
            help="Where models are trained: on this machine, or on a cluster at tls://, dask:// or ray://HOST:PORT.",
            rich_help_panel=TIME,
        ),
    ] = "local",
    insecure: Insecure = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="A folder for what models say about records, so that a run that was stopped can continue.",
            rich_help_panel=TIME,
        ),
    ] = None,
    resume: Resume = False,
    seed: Seed = 0,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Train models on random halves of the records, and attack them as someone who holds the record can."""
    with delivery(json, report, quiet=quiet, inputs=(data,)) as deliver:
        from ..audit import audit_model as audited

        with options_named(audit_model, factory="TRAIN"), progress(quiet=quiet) as advance:
            result = audited(
                factory,
                data=data,
                label=label,
                models=models,
                seconds=seconds,
                delta=delta,
                trained_with=trained_with,
                failure_probability=failure_probability,
                require_advantage=require_advantage,
                release=release,
                engine=engine_of(engine, insecure=insecure),
                out=out,
                resume=resume,
                seed=seed,
                pictures=report is not None,
                advance=advance,
            )
        deliver(result)
