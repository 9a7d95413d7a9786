"""`tacit bound`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import MissingExtraError
from .delivery import Wanted, delivery
from .manual import INPUTS, NOISE, PROVE, TIME, described
from .options import (
    CertificatePath,
    Device,
    Insecure,
    JsonPath,
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
from .progress import progress

if TYPE_CHECKING:
    from ..report import Report

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
