"""The commands of `tacit reproduce`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import validate
from ..core.errors import InputError, MissingExtraError
from ..report.timing import Paced
from .delivery import delivery
from .manual import INPUTS, LEARN, PROVE, TIME, Command, Group, described
from .options import Device, Insecure, JsonPath, Quiet, ReportPath, Resume, Seed, engine_of, options_named
from .progress import progress

if TYPE_CHECKING:
    from ..report import Report

reproduce = typer.Typer(
    cls=Group,
    help="Repeat a published experiment, and show Tacit's own results beside it.",
    no_args_is_help=True,
)


@reproduce.callback()
@described("tacit reproduce hcr mnist --out hcr", "tacit reproduce audit figure1 --out figure1")
def _reproduce() -> None:
    """Let the group have examples."""


_AUDITS = {
    "figure1": ("rows", "neurons", "restarts", "tables"),
    "adult": ("data", "records", "resume"),
    "mnist": ("data", "records", "rows", "shadows", "resume"),
}
"""The experiments of `tacit reproduce audit`, with the options that each one takes."""

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help="Where the data are; by default the folder in TACIT_DATA.",
        rich_help_panel=INPUTS,
    ),
]
# For studies of private learning.
DataSet = Annotated[str, typer.Argument(metavar="DATA", help="mnist, adult or (mapl only) fashion.")]
VotesFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where votes and results are kept.")]
Budgets = Annotated[
    list[float] | None, typer.Option("--epsilon", help="A budget ε; repeatable.", rich_help_panel=PROVE)
]
TeachersEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="WHERE",
        help="Where teachers are trained: local, tls://HOST:PORT or ray://HOST:PORT.",
        rich_help_panel=TIME,
    ),
]


@reproduce.command(cls=Command)
@described(
    "tacit reproduce hcr mnist --out hcr",
    "tacit reproduce hcr cifar10 --out hcr --images 20 --device cuda \\\n--report hcr.html",
)
def hcr(
    net: Annotated[
        str, typer.Argument(metavar="NET", help="mnist, cifar10, resnet18, swin-t, squeezenet or resnet50.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A folder for weights, batches and results.")],
    data: DataFolder = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights", metavar="FILE", help="torchvision's weights: .pth or .safetensors.", rich_help_panel=INPUTS
        ),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option("--images", help="The number of images to evaluate, drawn at random.", rich_help_panel=INPUTS),
    ] = None,
    search_images: Annotated[
        int | None,
        typer.Option(
            "--search-images", help="How many of them the published search runs on; 0 skips it.", rich_help_panel=PROVE
        ),
    ] = None,
    restarts: Annotated[
        int, typer.Option("--restarts", help="Random starts of the published search.", rich_help_panel=PROVE)
    ] = 25,
    repetitions: Annotated[
        int, typer.Option("--repetitions", help="Repetitions of its least-squares step.", rich_help_panel=PROVE)
    ] = 10,
    chain_steps: Annotated[
        int,
        typer.Option(
            "--chain-steps",
            help="Steps of the chains that bound rebuilding an image drawn from a prior; 0 leaves them out.",
            rich_help_panel=PROVE,
        ),
    ] = 100,
    device: Device = "auto",
    seed: Seed = 0,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Reconstruction bounds of arXiv:2404.02866, with tighter bounds, the prior and attacks."""
    with delivery(json, report, quiet=quiet, inputs=(weights,)) as deliver:
        study = _study("hcr")
        task = study.Task(
            net=net,
            out=out,
            data=data,
            weights=weights,
            images=images,
            search_images=search_images,
            restarts=restarts,
            repetitions=repetitions,
            chain_steps=chain_steps,
            device=device,
            resume=resume,
            seed=seed,
        )
        deliver(_reproduced(hcr, study, task, quiet=quiet))


@reproduce.command(cls=Command)
@described(
    "tacit reproduce mapl mnist --out mapl --report mapl.html",
    "tacit reproduce mapl adult --out mapl --epsilon 2 --mechanism gate",
)
def mapl(
    data_set: DataSet,
    out: VotesFolder,
    data: DataFolder = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", help="The number of groups of teachers, each trained on both splits.", rich_help_panel=LEARN
        ),
    ] = 5,
    epsilon: Budgets = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option("--mechanism", help="A mechanism to compare; repeatable; by default all.", rich_help_panel=LEARN),
    ] = None,
    engine: TeachersEngine = "local",
    insecure: Insecure = False,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Private answers of arXiv:1803.05101 and related methods on (Fashion-)MNIST and Adult, with published numbers."""
    with delivery(json, report, quiet=quiet) as deliver:
        study = _study("mapl")
        task = study.Task(
            name=data_set,
            out=out,
            data=data,
            seeds=seeds,
            epsilons=tuple(epsilon or study.EPSILONS),
            mechanisms=tuple(mechanism or study.MECHANISMS),
            engine=engine_of(engine, insecure=insecure),
            resume=resume,
        )
        deliver(_reproduced(mapl, study, task, quiet=quiet))


@reproduce.command(cls=Command)
@described(
    "tacit reproduce mechanisms mnist --out mechanisms",
    "tacit reproduce mechanisms adult --out mechanisms --teachers 300 \\\n--epsilon 1 --report mechanisms.html",
)
def mechanisms(
    data_set: DataSet,
    out: VotesFolder,
    data: DataFolder = None,
    councils: Annotated[
        int, typer.Option("--councils", help="The number of groups of teachers of each size.", rich_help_panel=LEARN)
    ] = 3,
    teachers: Annotated[
        list[int] | None,
        typer.Option("--teachers", help="The size of a group of teachers; repeatable.", rich_help_panel=LEARN),
    ] = None,
    epsilon: Budgets = None,
    engine: TeachersEngine = "local",
    insecure: Insecure = False,
    resume: Resume = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Every mechanism on the same votes and budget: queries answered, correct labels and students."""
    with delivery(json, report, quiet=quiet) as deliver:
        study = _study("mechanisms")
        task = study.Task(
            name=data_set,
            out=out,
            data=data,
            councils=councils,
            teachers=tuple(teachers or study.TEACHERS),
            epsilons=tuple(epsilon or study.EPSILONS),
            engine=engine_of(engine, insecure=insecure),
            resume=resume,
        )
        deliver(_reproduced(mechanisms, study, task, quiet=quiet))


@reproduce.command("audit", cls=Command)
@described(
    "tacit reproduce audit figure1 --out figure1",
    "tacit reproduce audit adult --out adult --records 5000 \\\n--report adult.html",
)
def reproduce_audit(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="figure1, adult or mnist.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A folder for results and figures.")],
    data: DataFolder = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="figure1: rows of each simulated table; mnist: rows drawn for each audit.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    neurons: Annotated[
        int | None, typer.Option("--neurons", help="figure1: neurons of the paper's network.", rich_help_panel=PROVE)
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option("--restarts", help="figure1: networks to train, of which the best counts.", rich_help_panel=PROVE),
    ] = None,
    tables: Annotated[
        int | None,
        typer.Option("--tables", help="figure1: tables to certify; medians are reported.", rich_help_panel=PROVE),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            "--records", help="adult: people audited; mnist: members, and as many others.", rich_help_panel=INPUTS
        ),
    ] = None,
    shadows: Annotated[
        int | None, typer.Option("--shadows", help="mnist: shadow models for each model.", rich_help_panel=PROVE)
    ] = None,
    seed: Seed = 0,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="adult, mnist: continue an earlier run in the same folder.", rich_help_panel=TIME
        ),
    ] = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Figure 1 of the paper on auditing with finite adversaries, and audits of real models on Adult and MNIST."""
    with delivery(json, report, quiet=quiet) as deliver:
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
        validate.choice("EXPERIMENT", experiment, tuple(_AUDITS), remedy="choose one")
        for name, value in given.items():
            if name not in _AUDITS[experiment]:
                raise InputError(
                    f"--{name}",
                    str(value),
                    requirement=f"must be left out for {experiment}",
                    remedy="see tacit reproduce audit --help",
                )
        study = _study("finite" if experiment == "figure1" else "audits")
        task = study.Task(experiment=experiment, out=out, seed=seed, **given)
        deliver(_reproduced(reproduce_audit, study, task, quiet=quiet))


def _reproduced(command: Callable[..., None], study: ModuleType, task: Any, *, quiet: bool) -> Report:
    with options_named(command), progress(quiet=quiet) as advance:
        paced = Paced(advance, study.steps(task), resumed=getattr(task, "resume", False))
        report: Report = study.reproduce(task, advance=paced)
    return report


def _study(name: str) -> ModuleType:
    try:
        from ..reproduce import audits, finite, hcr, mapl, mechanisms
    except ModuleNotFoundError:
        raise MissingExtraError(
            "tacit reproduce must have torch, got no such package; pip install 'tacit-privacy[learning,torch]'"
        ) from None
    return {"audits": audits, "finite": finite, "hcr": hcr, "mapl": mapl, "mechanisms": mechanisms}[name]
