"""The command line: parse, one library call, print. Progress goes to stderr, data to stdout."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .errors import InputError, MissingExtraError, TacitError
from .files import write_whole

if TYPE_CHECKING:
    from .report import Report

_AUDITS = {
    "figure1": ("rows", "neurons", "restarts", "tables"),
    "adult": ("data", "records", "resume"),
    "mnist": ("data", "records", "rows", "shadows", "resume"),
}
"""Experiments of `tacit reproduce audit`, and the options that each of them takes."""

FINE, UNMET, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="tacit",
    help="What nobody can learn from a machine-learning model: proven, and attacked to show how tight the proof is.",
    epilog="Exit codes: 0 fine; 1 a guarantee was contradicted, or a requirement not met; 2 bad usage or input.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
reproduce = typer.Typer(
    help="Run a published experiment again, with what goes beyond it beside it.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")

JsonPath = Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the results as JSON.")]
ReportPath = Annotated[Path | None, typer.Option("--report", metavar="PATH.html", help="Write a page to look at.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on in a folder that a run left behind.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", metavar="FOLDER", help="Where the data are; else as TACIT_DATA says.")
]
# Of studies of private learning.
DataSet = Annotated[str, typer.Argument(metavar="DATA", help="mnist or adult.")]
VotesFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where votes and results are kept.")]
Budgets = Annotated[list[float] | None, typer.Option("--epsilon", help="A budget; may be repeated.")]
TeachersEngine = Annotated[str, typer.Option("--engine", help="local, or dask://… or ray://… for teachers.")]


@app.callback(invoke_without_command=True)
def _tacit(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        typer.echo(f"tacit {__version__}" if version else context.get_help())
        raise typer.Exit(FINE)


@app.command()
def demo(json: JsonPath = None, report: ReportPath = None, quiet: Quiet = False) -> None:
    """Release noisy features of digits, prove what nobody can learn from them, and attack them."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from . import demo as demonstration

        with _progress(demonstration.STEPS, quiet=quiet) as advance:
            result = demonstration.demo(advance=advance)
        deliver(result)


@app.command()
def bound(
    model: Annotated[str, typer.Argument(metavar="MODEL.py:FACTORY", help="A function that returns the torch module.")],
    data: Annotated[Path, typer.Option("--data", metavar="FILE_OR_FOLDER", help="Inputs: .npy, .npz, or images.")],
    noise: Annotated[
        str,
        typer.Option("--noise", metavar="KIND:SIZE", help="gaussian:σ, laplace:b, uniform:w or quantized:s:gaussian:σ"),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where finished batches are kept.")],
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FILE", help="A .safetensors or .pt file.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="multi-point, two-point, hcr, identify, bayes, several with commas, or all.")
    ] = "all",
    basis: Annotated[str, typer.Option("--basis", help="dct (cosine modes of images) or pixel.")] = "dct",
    limit: Annotated[int | None, typer.Option("--limit", help="Bound only so many inputs one by one.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For searches, Monte Carlo and attacks.")] = 0,
    feature_error: Annotated[
        float, typer.Option("--feature-error", help="How exact the released features are: 1e-6 for float32.")
    ] = 1e-13,
    engine: Annotated[
        str, typer.Option("--engine", help="Where batches run: local, or dask://HOST:PORT of a cluster.")
    ] = "local",
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Bound how well anyone can rebuild the inputs of a model from its noisy features."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from . import bound as study

        task = study.Task(
            model=model,
            weights=weights,
            data=data,
            noise=noise,
            methods=study.METHODS if method == "all" else tuple(method.split(",")),
            basis=basis,
            out=out,
            resume=resume,
            limit=limit,
            seed=seed,
            feature_error=feature_error,
            engine=engine,
        )
        with _progress(study.steps(task), quiet=quiet) as advance:
            result = study.bound(task, advance=advance)
        deliver(result)


@app.command()
def learn(
    private: Annotated[Path, typer.Argument(metavar="PRIVATE", help="Private records: .csv, .parquet or .npz.")],
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="What is to be learned.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss allowed.")],
    delta: Annotated[float, typer.Option("--delta", help="The δ that belongs to it, about 1/records².")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where everything is written.")],
    public: Annotated[
        Path | None,
        typer.Option("--public", metavar="FILE", help="Public records, without labels; else labels alone are private."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Other labelled records, to test the student on.")
    ] = None,
    learner: Annotated[
        str, typer.Option("--learner", metavar="MODULE:CLASS", help="What teachers are, of an installed package.")
    ] = "sklearn.linear_model:LogisticRegression",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the learner; repeatable.")
    ] = None,
    student: Annotated[
        str | None, typer.Option("--student", metavar="MODULE:CLASS", help="What is published; else the learner.")
    ] = None,
    student_settings: Annotated[
        list[str] | None, typer.Option("--student-set", metavar="NAME=VALUE", help="A parameter of the student.")
    ] = None,
    teachers: Annotated[
        int | None, typer.Option("--teachers", help="How many; else the root of the number of records.")
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option("--mechanism", help="auto, svt, svt-faithful, gnmax, confident-gnmax, stable, gate or confirm."),
    ] = "auto",
    proposer: Annotated[
        Path | None,
        typer.Option("--proposer", metavar="FILE", help="Labelled records that may be known, to propose labels by."),
    ] = None,
    queries: Annotated[
        str | None, typer.Option("--queries", help="How many public records are asked about, or all.")
    ] = None,
    refusals: Annotated[
        int | None, typer.Option("--refusals", help="After how many svt, gate or confirm stop.")
    ] = None,
    expected: Annotated[
        float, typer.Option("--expected", help="The share of teachers expected to be right, for the choice.")
    ] = 0.8,
    classes: Annotated[
        str | None, typer.Option("--classes", metavar="A,B,…", help="All labels that may occur; else those that do.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="COLUMN", help="Whose each record is, to protect whole persons.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="WHERE", help="Where the budget is kept; else in FOLDER.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Where teachers are trained: local, dask://HOST:PORT or ray://HOST:PORT.")
    ] = "local",
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Learn from private records a classifier that may be published, with (ε, δ)-differential privacy."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from . import learn as study

        task = study.Task(
            private=private,
            label=label,
            epsilon=epsilon,
            delta=delta,
            out=out,
            public=public,
            test=test,
            learner=learner,
            settings=tuple(settings or ()),
            student=student,
            student_settings=tuple(student_settings or ()),
            teachers=teachers,
            mechanism=mechanism,
            proposer=proposer,
            queries=queries,
            refusals=refusals,
            expected=expected,
            classes=classes,
            ids=ids,
            ledger=ledger,
            engine=engine,
            resume=resume,
        )
        with _progress(None, quiet=quiet) as advance:
            result = study.learn(task, advance=advance)
        deliver(result)
        if not quiet:
            typer.echo(f"to publish: {(out / 'publish').absolute()}", err=True)
            typer.echo(f"never to publish: {(out / 'private').absolute()}", err=True)


@app.command()
def ledger(
    where: Annotated[
        str, typer.Argument(metavar="WHERE", help="An SQLite file, or postgresql://USER:PASSWORD@HOST/DATABASE.")
    ],
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Show what was spent of a privacy budget, what remains, and that the records are as they were written."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from .ledger import statement

        deliver(statement(where))


@app.command()
def plan(
    records: Annotated[int, typer.Option("--records", help="Private labelled records.")],
    queries: Annotated[int, typer.Option("--queries", help="Public queries to be answered.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss allowed.")],
    delta: Annotated[float, typer.Option("--delta", help="The δ that belongs to it, about 1/records².")],
    beta: Annotated[float, typer.Option("--beta", help="The probability with which a promise may fail.")] = 0.05,
    teachers: Annotated[int | None, typer.Option("--teachers", help="How many; else the least that serve.")] = None,
    error: Annotated[
        list[str] | None,
        typer.Option("--error", metavar="[RECORDS:]ERROR", help="A teacher's error; several make a learning curve."),
    ] = None,
    vc_dimension: Annotated[
        int | None, typer.Option("--vc-dimension", help="Of the teachers' class, instead of an error.")
    ] = None,
    best_error: Annotated[float, typer.Option("--best-error", help="Of the best classifier of that class.")] = 0.0,
    classes: Annotated[int, typer.Option("--classes", help="How many classes there are.")] = 2,
    proposer_error: Annotated[
        float | None, typer.Option("--proposer-error", help="The share of wrong proposals, to plan for confirm, too.")
    ] = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Say what a privacy budget buys before any private record is touched, and when it is hopeless."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from .plan import report as planned

        deliver(
            planned(
                records,
                queries,
                epsilon=epsilon,
                delta=delta,
                beta=beta,
                error=error or (),
                vc_dimension=vc_dimension,
                best_error=best_error,
                classes=classes,
                teachers=teachers,
                proposer_error=proposer_error,
            )
        )


@app.command()
def audit(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file of any size.")],
    secret: Annotated[str, typer.Option("--secret", metavar="COLUMN", help="The secret, a column with two values.")],
    output: Annotated[
        list[str], typer.Option("--output", metavar="COLUMN", help="What the adversary sees; repeatable.")
    ],
    noise: Annotated[
        float | None, typer.Option("--noise", help="Standard deviation of the Gaussian noise it is released with.")
    ] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="State that the secret's chance only grows, or only falls, with it.")
    ] = False,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            "--lipschitz", metavar="L", help="State that a fair secret's mean, ±1, moves by at most L per unit."
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="VALUE", help="What is to be found; else what sorts last."),
    ] = None,
    slices: Annotated[
        str | None, typer.Option("--slice", metavar="COLUMN", help="Certify each of its values separately, too.")
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="The probability with which certificates may fail.")] = 0.05,
    require_advantage: Annotated[
        float | None, typer.Option("--require-advantage", help="Exit with 1 unless every advantage is proven below.")
    ] = None,
    attack_rows: Annotated[
        int, typer.Option("--attack-rows", help="Attack so many rows, drawn at random; 0 for no attacks.")
    ] = 100_000,
    seed: Annotated[int, typer.Option("--seed", help="For draws and attacks.")] = 0,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Certify from a table what nobody can learn about a secret from an output, and attack it."""
    with _delivery(json, report, quiet=quiet) as deliver:
        from . import audited as study

        task = study.Task(
            table=table,
            secret=secret,
            outputs=tuple(output),
            noise=noise,
            monotone=monotone,
            lipschitz=lipschitz,
            positive=positive,
            slices=slices,
            delta=delta,
            require_advantage=require_advantage,
            attack_rows=attack_rows,
            seed=seed,
            pictures=report is not None,
        )
        with _progress(None, quiet=quiet) as advance:
            result = study.audit(task, advance=advance)
        deliver(result)


@reproduce.command()
def hcr(
    net: Annotated[
        str, typer.Argument(metavar="NET", help="mnist, cifar10, resnet18, swin-t, squeezenet or resnet50.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where weights, batches and results are kept.")],
    data: DataFolder = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FILE", help="torchvision's weights: .pth or .safetensors.")
    ] = None,
    images: Annotated[int | None, typer.Option("--images", help="Evaluate so many, drawn at random.")] = None,
    search_images: Annotated[
        int | None,
        typer.Option("--search-images", help="Run the published search on the first so many of them; 0 leaves it out."),
    ] = None,
    restarts: Annotated[int, typer.Option("--restarts", help="Random starts of the published search.")] = 25,
    repetitions: Annotated[int, typer.Option("--repetitions", help="Of its least-squares step.")] = 10,
    device: Annotated[str | None, typer.Option("--device", help="cuda or cpu; a GPU where there is one.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For training, draws, searches and attacks.")] = 0,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruction bounds of arXiv:2404.02866, beside tighter ones, the prior, and attacks."""
    with _delivery(json, report, quiet=quiet) as deliver:
        study = _reproduction("hcr")
        task = study.Task(
            net=net,
            out=out,
            data=data,
            weights=weights,
            images=images,
            search_images=search_images,
            restarts=restarts,
            repetitions=repetitions,
            device=device,
            resume=resume,
            seed=seed,
        )
        deliver(_reproduced(study, task, quiet=quiet))


@reproduce.command()
def mapl(
    data_set: DataSet,
    out: VotesFolder,
    data: DataFolder = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Councils of teachers, each on both splits.")] = 5,
    epsilon: Budgets = None,
    mechanism: Annotated[
        list[str] | None, typer.Option("--mechanism", help="One of those compared, or several; all unless given.")
    ] = None,
    engine: TeachersEngine = "local",
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Private answers of arXiv:1803.05101 and of its peers on MNIST and Adult, beside published numbers."""
    with _delivery(json, report, quiet=quiet) as deliver:
        study = _reproduction("mapl")
        task = study.Task(
            name=data_set,
            out=out,
            data=data,
            seeds=seeds,
            epsilons=tuple(epsilon or study.EPSILONS),
            mechanisms=tuple(mechanism or study.MECHANISMS),
            engine=engine,
            resume=resume,
        )
        deliver(_reproduced(study, task, quiet=quiet))


@reproduce.command()
def mechanisms(
    data_set: DataSet,
    out: VotesFolder,
    data: DataFolder = None,
    councils: Annotated[int, typer.Option("--councils", help="Of each size.")] = 3,
    teachers: Annotated[list[int] | None, typer.Option("--teachers", help="A size; may be repeated.")] = None,
    epsilon: Budgets = None,
    engine: TeachersEngine = "local",
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Every way to answer on the same votes and the same budget: queries answered, labels right, students."""
    with _delivery(json, report, quiet=quiet) as deliver:
        study = _reproduction("mechanisms")
        task = study.Task(
            name=data_set,
            out=out,
            data=data,
            councils=councils,
            teachers=tuple(teachers or study.TEACHERS),
            epsilons=tuple(epsilon or study.EPSILONS),
            engine=engine,
            resume=resume,
        )
        deliver(_reproduced(study, task, quiet=quiet))


@reproduce.command("audit")
def reproduce_audit(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="figure1, adult or mnist.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where results and figures are written.")],
    data: DataFolder = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="figure1: of each simulated table; mnist: drawn for each audit.")
    ] = None,
    neurons: Annotated[int | None, typer.Option("--neurons", help="figure1: of the paper's network.")] = None,
    restarts: Annotated[
        int | None, typer.Option("--restarts", help="figure1: networks, of which the best counts.")
    ] = None,
    tables: Annotated[int | None, typer.Option("--tables", help="figure1: certify so many, and take medians.")] = None,
    records: Annotated[
        int | None, typer.Option("--records", help="adult: people audited; mnist: members, and as many others.")
    ] = None,
    shadows: Annotated[int | None, typer.Option("--shadows", help="mnist: shadow models of each model.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="For draws, training and attacks.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="adult, mnist: go on in a folder that a run left behind.")
    ] = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Figure 1 of the paper on auditing with finite adversaries; audits of real models, on Adult and MNIST."""
    with _delivery(json, report, quiet=quiet) as deliver:
        options = {
            "data": data,
            "rows": rows,
            "neurons": neurons,
            "restarts": restarts,
            "tables": tables,
            "records": records,
            "shadows": shadows,
            "resume": resume or None,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if experiment not in _AUDITS:
            raise InputError(
                "EXPERIMENT", experiment, requirement=f"must be one of {', '.join(_AUDITS)}", remedy="choose one"
            )
        for name, value in given.items():
            if name not in _AUDITS[experiment]:
                raise InputError(
                    f"--{name}",
                    str(value),
                    requirement=f"must be left out for {experiment}",
                    remedy="see tacit reproduce audit --help",
                )
        study = _reproduction("figure1" if experiment == "figure1" else "audits")
        task = study.Task(experiment=experiment, out=out, seed=seed, **given)
        deliver(_reproduced(study, task, quiet=quiet))


def _reproduced(study: ModuleType, task: Any, *, quiet: bool) -> Report:
    with _progress(study.steps(task), quiet=quiet) as advance:
        report: Report = study.reproduce(task, advance=advance)
    return report


def _reproduction(study: str) -> ModuleType:
    try:
        from .reproduction import audits as real_audits
        from .reproduction import finite as audit_study
        from .reproduction import hcr as reconstruction_study
        from .reproduction import mapl as learning_study
        from .reproduction import mechanisms as mechanisms_study
    except ModuleNotFoundError:
        raise MissingExtraError(
            "tacit reproduce must have torch, got no such package; pip install 'tacit[learning,torch]'"
        ) from None
    return {
        "hcr": reconstruction_study,
        "mapl": learning_study,
        "mechanisms": mechanisms_study,
        "figure1": audit_study,
        "audits": real_audits,
    }[study]


@contextlib.contextmanager
def _delivery(json: Path | None, page: Path | None, *, quiet: bool) -> Iterator[Callable[[Report], None]]:
    """Refuses files that cannot be written before any work is done; then writes, prints and sets the exit code."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--report", str(page), requirement="must end in .html", remedy="rename it, or use --json")
    if json is not None and page is not None and _resolved(json) == _resolved(page):
        raise InputError("--json", str(json), requirement="must differ from --report", remedy="give it its own name")
    for option, path in (("--json", json), ("--report", page)):
        if path is not None:
            _check_writable(option, path)
    results: list[Report] = []
    yield results.append
    for result in results:
        if json is not None:
            _write(json, result.to_json())
        if page is not None:
            _write(page, result.to_html())
        if not quiet:
            with contextlib.suppress(BrokenPipeError):  # the reader has seen enough; what was asked for is written
                typer.echo(result.to_text())
            for path in (json, page):
                if path is not None:
                    typer.echo(f"written: {path.absolute()}", err=True)
        if result.contradicted or not result.met:
            raise typer.Exit(UNMET)


@contextlib.contextmanager
def _progress(steps: int | None, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that is told what begins; without a number of steps it follows words such as "3 of 40 done"."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun = 0

        def advance(description: str) -> None:
            nonlocal begun
            counted = re.match(r"(\d+) of (\d+) ", description) if steps is None else None
            if counted:
                bar.update(task, description=description, completed=int(counted[1]), total=int(counted[2]))
            else:
                bar.update(task, description=description, completed=begun, total=steps)
            begun += 1

        yield advance


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # over-long names, circles of links, zero bytes: refused when checked
        return path


def _check_writable(option: str, path: Path) -> None:
    target = _resolved(path)
    try:
        if target.is_dir():
            raise IsADirectoryError
        if not target.exists():
            with tempfile.TemporaryFile(dir=target.parent):
                pass
        elif not os.access(target, os.W_OK):
            raise PermissionError
    except (OSError, ValueError):
        raise InputError(
            option,
            str(path),
            requirement="must name a file that can be written",
            remedy="choose a folder that exists and is yours to write to",
        ) from None


def _write(path: Path, content: str) -> None:
    """All or nothing for a file; a pipe or a device takes the text as it comes."""
    target = _resolved(path)
    try:
        if target.exists() and not target.is_file():
            target.write_text(content, encoding="utf-8")
        else:
            write_whole(target, content.encode())
    except OSError as failure:
        raise InputError(
            "the output file",
            f"{path}: {failure.strerror or failure}",
            requirement="must be writable",
            remedy="free some space or choose another place",
        ) from None


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
