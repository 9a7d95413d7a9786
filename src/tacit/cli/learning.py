"""`tacit learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .delivery import Wanted, delivery
from .manual import BUDGET, INPUTS, LEARN, TIME, described
from .options import (
    Anchor,
    CertificatePath,
    Delta,
    Device,
    Epsilon,
    Insecure,
    JsonPath,
    LedgerUrlFile,
    NewAnchor,
    Quiet,
    ReportPath,
    Resume,
    engine_of,
    options_named,
)
from .printing import say
from .progress import progress

if TYPE_CHECKING:
    from ..report import Report


@described(
    "tacit learn private.csv --label bought --public public.csv \\\n--epsilon 2 --delta 1e-5 --out bought",
    "tacit learn private.csv --label bought --labels-only --epsilon 1 \\\n--delta 1e-5 --out bought "
    "--learner sklearn.naive_bayes:GaussianNB",
    renamed={"--proposer": "--labelled-public", "--expected": "--teacher-accuracy"},
)
def learn(
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="Private records: .csv, .parquet or .npz.")],
    label: Annotated[
        list[str],
        typer.Option(
            "--label",
            metavar="COLUMN",
            help="The column to learn; repeat it for several yes-or-no columns.",
            rich_help_panel=INPUTS,
        ),
    ],
    epsilon: Epsilon,
    delta: Delta,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where everything is written.")],
    label_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--label-range",
            metavar="LOW HIGH",
            help="Learn numbers, of which this is the range that they can have at all.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Public records without labels, which teachers are asked about.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    labels_only: Annotated[
        bool,
        typer.Option(
            "--labels-only",
            help="Instead of --public: protect only labels, and publish half of the private records without theirs.",
            rich_help_panel=INPUTS,
        ),
    ] = False,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", metavar="FILE", help="Other labelled records, to test the student on.", rich_help_panel=INPUTS
        ),
    ] = None,
    labelled_public: Annotated[
        Path | None,
        typer.Option(
            "--labelled-public",
            metavar="FILE",
            help="Labelled records that are not private: a model of them proposes labels, teachers confirm.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A,B,…",
            help="All labels that may occur; by default they are found with noise.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            "--ids",
            metavar="COLUMN",
            help="The column that identifies the person; protects all records of a person together.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text", metavar="COLUMN", help="A column of whole texts to encode; repeatable.", rich_help_panel=INPUTS
        ),
    ] = None,
    text_encoder: Annotated[
        Path | None,
        typer.Option(
            "--text-encoder",
            metavar="FOLDER",
            help="The transformer that encodes texts; by default all-MiniLM-L6-v2, if its package is installed.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            "--image",
            metavar="COLUMN",
            help="A column of paths of images, relative to the file; repeatable.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    image_encoder: Annotated[
        str,
        typer.Option(
            "--image-encoder",
            metavar="NAME",
            help="What encodes images: gradients, timm:NAME or torchvision:NAME.",
            rich_help_panel=INPUTS,
        ),
    ] = "gradients",
    image_weights: Annotated[
        Path | None,
        typer.Option(
            "--image-weights",
            metavar="FILE",
            help="The .safetensors file with the weights of a network that encodes images.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    allow_overlap: Annotated[
        bool,
        typer.Option(
            "--allow-overlap",
            help="Accept files that contain private records, which are then not protected.",
            rich_help_panel=INPUTS,
        ),
    ] = False,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            metavar="MODULE:CLASS",
            help="The class of the teachers, from an installed package.",
            show_default="logistic regression; ridge regression for numbers",
            rich_help_panel=LEARN,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the learner; repeatable.", rich_help_panel=LEARN
        ),
    ] = None,
    student: Annotated[
        str | None,
        typer.Option(
            "--student",
            metavar="MODULE:CLASS",
            help="The class of the student, which is published; by default the learner's, or another that agrees "
            "better with released answers.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    student_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--student-set",
            metavar="NAME=VALUE",
            help="A parameter of the student; repeatable.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    teachers: Annotated[
        int | None,
        typer.Option(
            "--teachers",
            help="The number of teachers; by default chosen by ε and by the number of records, read with noise.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            metavar="MECHANISM",
            help="auto, svt, svt-adaptive, svt-faithful, gnmax, gnmax-winners, confident-gnmax, stable, gate, confirm, "
            "neighbours or moments.",
            rich_help_panel=LEARN,
        ),
    ] = "auto",
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="N",
            help="The number of public records to ask about, or all.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    refusals: Annotated[
        int | None,
        typer.Option(
            "--refusals",
            help="Stop after this many refusals (svt, svt-faithful, gate, confirm).",
            rich_help_panel=LEARN,
        ),
    ] = None,
    teacher_accuracy: Annotated[
        float | None,
        typer.Option(
            "--teacher-accuracy",
            help="The share of teachers expected to be right, to choose by; without it, any.",
            rich_help_panel=LEARN,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            metavar="WHERE",
            help="The ledger, a path or an address; by default one in FOLDER.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    ledger_url_file: LedgerUrlFile = None,
    new_ledger: Annotated[
        bool,
        typer.Option(
            "--new-ledger",
            help="Create the ledger named, with the budget of this run.",
            rich_help_panel=BUDGET,
        ),
    ] = False,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(
            "--budget-epsilon",
            help="The ε of a new ledger that pays for more than this run, such as tacit serve.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    budget_delta: Annotated[
        float | None,
        typer.Option("--budget-delta", help="The δ of a new ledger, for the same purpose.", rich_help_panel=BUDGET),
    ] = None,
    anchor: Anchor = None,
    new_anchor: NewAnchor = False,
    device: Device = "auto",
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="WHERE",
            help="Where teachers are trained: local, tls://HOST:PORT or ray://HOST:PORT.",
            rich_help_panel=TIME,
        ),
    ] = "local",
    insecure: Insecure = False,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    certificate: CertificatePath = None,
    quiet: Quiet = False,
) -> None:
    """Learn a classifier or regressor that may be published from private records, with (ε, δ)-differential privacy."""
    kept = (ledger, ledger_url_file, anchor, out / "ledger.sqlite", out / "private" / "anchor.json")
    read = (private, public, test, labelled_public, image_weights, *kept)

    def published(written: Report) -> list[Path]:
        names = ["student.skops", written.detail.get("labelled")]  # nothing is labelled where sums are released
        return [out / "publish" / name for name in names if name is not None]

    wanted = Wanted(path=certificate, reveal=True, published=published)  # the constants of a mechanism are public
    with delivery(json, report, quiet=quiet, inputs=read, certificate=wanted) as deliver:
        from ..learning import learn_files

        named = options_named(learn, private="PRIVATE", settings="--set", student_settings="--student-set")
        with named, progress(quiet=quiet) as advance:
            result = learn_files(
                private,
                label=label[0] if len(label) == 1 else label,
                label_range=label_range,
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
                labelled_public=labelled_public,
                queries=queries,
                refusals=refusals,
                teacher_accuracy=teacher_accuracy,
                classes=classes,
                ids=ids,
                text=text or (),
                text_encoder=text_encoder,
                image=image or (),
                image_encoder=image_encoder,
                image_weights=image_weights,
                ledger=ledger,
                ledger_url_file=ledger_url_file,
                new_ledger=new_ledger,
                budget_epsilon=budget_epsilon,
                budget_delta=budget_delta,
                anchor=anchor,
                new_anchor=new_anchor,
                device=device,
                engine=engine_of(engine, insecure=insecure),
                allow_overlap=allow_overlap,
                resume=resume,
                advance=advance,
            )
        deliver(result)
        if not quiet:
            say(f"to publish: {(out / 'publish').absolute()}", err=True)
            say(f"never to publish: {(out / 'private').absolute()}", err=True)
