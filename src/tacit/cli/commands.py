"""Most commands: each parses its options, calls one library function and delivers the result."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InputError, MissingExtraError
from ..report.timing import Paced
from .delivery import Wanted, delivery, opened
from .manual import BUDGET, INPUTS, LEARN, NOISE, PROVE, TIME, described
from .options import (
    Anchor,
    CertificatePath,
    Device,
    Insecure,
    JsonPath,
    LedgerUrlFile,
    NewAnchor,
    OpenPage,
    Quiet,
    ReportPath,
    Resume,
    Seed,
    Subjects,
    engine_of,
    given_or_refused,
    options_named,
    read_by_bound,
    refused_options,
)
from .printing import say
from .progress import progress

if TYPE_CHECKING:
    from ..report import Report


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
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss ε allowed.", rich_help_panel=BUDGET)],
    delta: Annotated[
        float,
        typer.Option("--delta", help="The δ that belongs to it, about 1/records².", rich_help_panel=BUDGET),
    ],
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


_FOR_INPUTS = (
    *("data", "out", "weights", "steps", "method", "basis", "releases", "engine", "device"),
    *("resume", "labels", "head", "head_weights"),
)
"""Options of `bound` that texts do not take."""


@described(
    "tacit bound model.py:features --data images.npz --noise gaussian:1.7 \\\n--out bounds --report bounds.html",
    "tacit bound encoder.py:embed --text letters.txt --public other.txt \\\n--noise gaussian:0.1",
)
def bound(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL.py:FUNCTION",
            help="A function that returns the torch module or, for texts, a function that encodes a list.",
        ),
    ],
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            metavar="KIND:SIZE",
            help="gaussian:σ, laplace:b, uniform:w or quantized:s:gaussian:σ.",
            rich_help_panel=NOISE,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="The inputs: .npy, .npz, or a folder of images.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        read_by_bound(
            "--weights",
            panel=INPUTS,
            meaning="A .safetensors or .pt file; by default the weights that the function sets.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        read_by_bound(
            "--public",
            panel=INPUTS,
            meaning="Public inputs: the prior is fitted to them, and attackers learn from them.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="The class number of each input, .npy or .npz; with --head.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="FILE.py:FUNCTION",
            help="A function that returns the rest of the network, which reads classes from features.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    head_weights: Annotated[
        Path | None,
        typer.Option("--head-weights", metavar="FILE", help="The weights of --head.", rich_help_panel=INPUTS),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            metavar="FILE",
            help="Instead of --data: texts, one per line (.txt) or a column of a table (.csv, .tsv, .parquet).",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="The column of --text and --public that holds the texts.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    attribute: Annotated[
        str | None,
        read_by_bound(
            "--attribute",
            panel=INPUTS,
            meaning="With --text: a function that returns a function from a list of texts to an attribute "
            "of each, such as a name.",
        ),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            metavar="PRIOR",
            help="What an attacker knows, for bayes: gaussian, spectrum, jittered:SIZE, generator:FILE or auto; with "
            "--text, trigrams (of --public), language-model:FOLDER or auto (trigrams).",
            rich_help_panel=NOISE,
        ),
    ] = "auto",
    releases: Annotated[
        int,
        typer.Option(
            "--releases",
            help="How often the same input is released, each time with fresh noise.",
            rich_help_panel=NOISE,
        ),
    ] = 1,
    feature_error: Annotated[
        float | None,
        typer.Option(
            "--feature-error",
            help="Relative error of released features; by default that of their type, 1e-6 for float32.",
            rich_help_panel=NOISE,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="METHOD,…",
            help="identify, bayes, two-point, multi-point or hcr; several with commas; or all.",
            rich_help_panel=PROVE,
        ),
    ] = "all",
    basis: Annotated[
        str,
        typer.Option(
            "--basis",
            metavar="BASIS",
            help="The coordinates: dct (cosine modes of images), pixel (single entries) or auto.",
            rich_help_panel=PROVE,
        ),
    ] = "auto",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", help="Bound this many inputs one by one, however long it takes.", rich_help_panel=PROVE
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", help="Steps of the chains of bayes; by default as many as time allows.", rich_help_panel=TIME
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            help="About how long to compute; bounds on real attackers come first.",
            rich_help_panel=TIME,
        ),
    ] = 120,
    device: Device = "auto",
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="WHERE",
            help="Where batches run: local, or a Dask cluster at tls://HOST:PORT.",
            rich_help_panel=TIME,
        ),
    ] = "local",
    insecure: Insecure = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="A folder for finished batches; needed with --data."),
    ] = None,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    certificate: CertificatePath = None,
    reveal_draws: Annotated[
        bool,
        typer.Option(
            "--reveal-draws",
            help="With --certificate: put the sampled values into it, which give the inputs away. By default it holds "
            "commitments; PATH.json.opening, which you keep to yourself, opens them.",
        ),
    ] = False,
    subject: Subjects = None,
    quiet: Quiet = False,
) -> None:
    """Bound how well anyone can rebuild the inputs of a model from its noisy features."""
    generator = prior.removeprefix("generator:") if prior.startswith("generator:") else None
    function = None if attribute is None else attribute.rpartition(":")[0]
    read = (model.rpartition(":")[0] or None, data, text, weights, public, generator, function)
    left = "" if out is None else f"finished batches are kept in {out}; the same command with --resume continues"
    files = [*(subject or ()), *([] if weights is None else [weights])]
    only = ["--reveal-draws"] * reveal_draws + ["--subject"] * bool(subject)
    chosen: dict[str, Any] = {"noise": noise, "seed": seed, "feature_error": feature_error}

    def repeated(result: Report) -> dict[str, Any]:
        from ..certificate.replaying import versions
        from ..reconstruction.study import again, inputs

        code = {"model": model, "attribute": attribute}
        functions = {name: one.rpartition(":")[2] for name, one in code.items() if one is not None}
        options = {**chosen, "functions": functions}
        if text is not None:
            options |= {"column": column, **{name: result.detail["time"][name] for name in ("limit", "draws")}}
        else:
            options |= {"prior": "generator" if generator else prior, "basis": basis, "releases": releases}
            options |= {"done": again.done_by(result), "device": inputs.device_of(device, engine)}
        told = prior == "auto" if text is not None else options["done"] is not None  # a model's folder is no file
        stated = options if told else None
        command = "bound" if text is None else "bound texts"
        return {"command": command, "options": stated, "versions": versions("torch", "numpy", "scipy")}

    roles = {"replay": data or text, "model": model.rpartition(":")[0] or None, "weights": weights, "public": public}
    roles |= {"generator": generator, "attribute": function}
    wanted = Wanted(
        path=certificate,
        reveal=reveal_draws,
        subjects=files,
        seed=seed,
        replay=repeated,
        files={name: Path(path) for name, path in roles.items() if path is not None},
        private=["replay"],
        only_with=only,
    )
    with delivery(json, report, quiet=quiet, inputs=(*read, *files), interrupted=left, certificate=wanted) as deliver:
        try:
            from ..reconstruction import bound_files, bound_texts_files
        except ImportError:
            raise MissingExtraError(
                "tacit bound must have torch, got no such package; pip install 'tacit-privacy[torch]'"
            ) from None

        if text is None:
            needed: dict[str, Any] = given_or_refused("without --text", {"--data": data, "--out": out})
            refused_options(context, ("column", "attribute"), "without --text")
        else:
            needed = given_or_refused("with --text", {"--public": public})
            refused_options(context, _FOR_INPUTS, "with --text")
        planned = seconds if text is None and steps is None and limit is None else None
        with options_named(bound, model="MODEL"), progress(quiet=quiet, expected=planned) as advance:
            if text is not None:
                result = bound_texts_files(
                    model,
                    text=text,
                    public=needed["--public"],
                    noise=noise,
                    prior=prior,
                    column=column,
                    attribute=attribute,
                    seed=seed,
                    feature_error=feature_error,
                    limit=limit,
                    seconds=seconds,
                    advance=advance,
                )
            else:
                result = bound_files(
                    model,
                    data=needed["--data"],
                    noise=noise,
                    out=needed["--out"],
                    weights=weights,
                    public=public,
                    prior=prior,
                    steps=steps,
                    seconds=seconds,
                    labels=labels,
                    head=head,
                    head_weights=head_weights,
                    method=method,
                    basis=basis,
                    limit=limit,
                    seed=seed,
                    feature_error=feature_error,
                    releases=releases,
                    engine=engine_of(engine, insecure=insecure),
                    device=device,
                    resume=resume,
                    pictures=report is not None,
                    advance=advance,
                )
        deliver(result if report is None else _with_page(result, report))


def _with_page(result: Report, path: Path) -> Report:
    """The report whose commands write its page again, too."""
    option = shlex.join(["--report", str(path)])
    changes = [replace(change, command=change.command and f"{change.command} {option}") for change in result.changes]
    return replace(result, changes=tuple(changes))


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
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss ε allowed.", rich_help_panel=BUDGET)],
    delta: Annotated[
        float,
        typer.Option("--delta", help="The δ that belongs to it, about 1/records².", rich_help_panel=BUDGET),
    ],
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
            help="auto, svt, svt-faithful, gnmax, confident-gnmax, stable, gate, confirm, neighbours or moments.",
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
            help="The share of teachers expected to be right, to choose by; without it, 0.6 to 1.",
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
