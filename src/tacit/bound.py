"""`tacit bound`: the bounds of a model on files, batch by batch, and the report about them.

Every finished batch is a file of the output folder, written whole or not at all. A run that was killed goes on where it
stopped, and gives the same numbers as one that was not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checked, kept, readings
from .engine import Outcomes, opened
from .errors import InputError, MissingExtraError
from .guarantee import Comparison, safe_text
from .report import Figure, Report, figures

_Array = NDArray[np.float64]

METHODS = ("multi-point", "two-point", "hcr", "identify", "bayes")
BATCH = 4
SHOWN = 4
LOWEST = 8
_IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
_PER_INPUT = ("multi-point", "two-point", "hcr")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to bound: a model, its inputs, the noise, and how.

    `limit` is how many inputs are bounded one by one; the methods over a gallery (identify, bayes) use all of them.
    """

    model: str
    weights: Path | None
    data: Path
    noise: str
    methods: tuple[str, ...]
    basis: str
    out: Path
    resume: bool
    limit: int | None
    seed: int
    feature_error: float
    engine: str = "local"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """The inputs that are bounded one by one; of all inputs, how much they vary, and the least and greatest entry."""

    inputs: _Array
    spread: float
    box: tuple[float, float]


def steps(task: Task) -> int:
    """How many steps of progress the task has."""
    if task.limit is not None:
        checked.whole("--limit", task.limit, at_least=1, remedy="leave it out to bound all inputs")
    count = len(inputs_of(task.data)[: task.limit])
    per_input = sum(method in _PER_INPUT for method in task.methods)
    return per_input * -(-count // BATCH) + len(task.methods) - per_input


def bound(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it. `advance` hears what begins."""
    recon = _reconstruction()
    noise = _noise(task.noise, recon)
    for method in task.methods:
        checked.choice("--method", method, METHODS, remedy="or use all")
    checked.choice("--basis", task.basis, ("pixel", "dct"), remedy="use dct for images")
    gallery = inputs_of(task.data)
    data = _Data(
        inputs=gallery[: task.limit],
        spread=readings.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    features = _model(task.model, task.weights)
    with opened(task.engine) as outcomes:
        _claim_folder(task, data, features)
        bounds = _per_input(task, features, data, noise, outcomes, advance)
    comparisons: list[Comparison] = []
    for method in task.methods:
        if method in bounds:
            guarantee = readings.median_guarantee(
                method,
                bounds[method],
                spread=data.spread,
                noise=noise,
                feature_error=task.feature_error,
            )
            comparisons.append(Comparison(guarantee=guarantee))
        else:
            advance({"identify": "naming the input", "bayes": "rebuilding the input"}[method])
            comparisons.append(_gallery(recon, method, features, gallery, noise, task))
    return Report(
        command="bound",
        title="What nobody can rebuild from these features",
        summary=_summary(bounds, comparisons, data, noise),
        comparisons=tuple(comparisons),
        figures=_figures(recon, features, bounds, data, noise, task),
        detail={
            "inputs": list(data.inputs.shape),
            "noise": repr(noise),
            "basis": task.basis,
            "prior_std": data.spread,
            "median": {method: float(np.median(values)) for method, values in bounds.items()},
            "folder": str(task.out),
        },
    )


def inputs_of(path: Path) -> _Array:
    """Inputs from .npy, .npz, or a folder of images of one size (scaled to [0, 1], channels first)."""
    remedy = "pass a .npy or .npz file of numbers, or a folder of images"
    try:
        if path.is_dir():
            values = _pictures(path)
        elif path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        elif path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                if len(archive.files) != 1:
                    raise InputError(
                        "--data", archive.files, requirement="must hold one array", remedy="save the inputs alone"
                    )
                values = archive[archive.files[0]]
        else:
            raise InputError("--data", str(path), requirement="must be a folder, .npy or .npz", remedy=remedy)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError("--data", str(path), requirement="must be a readable file of numbers", remedy=remedy) from None
    array = checked.array("--data", values, remedy=remedy)
    if array.ndim < 2 or len(array) < 2:
        raise InputError("--data", array.shape, requirement="must hold two inputs or more, one a row", remedy=remedy)
    if array.min() == array.max():
        raise InputError("--data", float(array.min()), requirement="must not be the same everywhere", remedy=remedy)
    return array


def _pictures(folder: Path) -> _Array:
    from PIL import Image

    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGES)
    if not paths:
        raise InputError("--data", str(folder), requirement="must hold images", remedy=f"use {', '.join(_IMAGES)}")
    images = []
    for path in paths:
        with Image.open(path) as picture:
            images.append(np.asarray(picture.convert("L" if picture.mode in ("1", "L", "I;16") else "RGB")) / 255.0)
    if len({image.shape for image in images}) > 1:
        sizes = sorted({image.shape for image in images})
        raise InputError("the images of --data", sizes, requirement="must be of one size", remedy="resize them first")
    stacked = np.stack(images)
    return stacked[:, None] if stacked.ndim == 3 else stacked.transpose(0, 3, 1, 2)


def _reconstruction() -> Any:
    try:
        from . import reconstruction
    except ImportError:
        raise MissingExtraError(
            "tacit bound must have torch, got no such package; pip install 'tacit[torch]'"
        ) from None
    return reconstruction


def _noise(text: str, recon: Any) -> Any:
    kind, _, size = text.partition(":")
    kinds = {"gaussian": recon.Gaussian, "laplace": recon.Laplace, "uniform": recon.Uniform}
    try:
        if kind == "quantized":
            step, _, unrounded = size.partition(":")
            return recon.Quantized(_noise(unrounded, recon), float(step))
        return kinds[kind](float(size))
    except (KeyError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "--noise",
            text,
            requirement="must be gaussian:SIGMA, laplace:SCALE, uniform:WIDTH or quantized:STEP:gaussian:SIGMA",
            remedy="write for example gaussian:1.7",
        ) from None


def _model(text: str, weights: Path | None) -> Any:
    """The module that the factory of a Python file returns, in evaluation mode, with its weights."""
    from torch import nn

    name, _, factory = text.rpartition(":")
    remedy = "write model.py:factory, a Python file of yours and a function in it that returns the module"
    if not name or not Path(name).is_file():
        raise InputError("MODEL", text, requirement="must be FILE.py:FUNCTION, and the file must exist", remedy=remedy)
    specification = importlib.util.spec_from_file_location("tacit_model", name)
    if specification is None or specification.loader is None:
        raise InputError("MODEL", text, requirement="must be a Python file", remedy=remedy)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        made = getattr(module, factory)()
    except Exception as failure:  # the caller's own code may raise anything
        raise InputError(
            "MODEL", f"{type(failure).__name__}: {failure}", requirement="must run", remedy=f"mend it, or {remedy}"
        ) from None
    if not isinstance(made, nn.Module):
        raise InputError("MODEL", type(made).__name__, requirement="must return a torch module", remedy=remedy)
    if weights is not None:
        kept.load_weights(made, weights)
    return made.eval()


def _claim_folder(task: Task, data: _Data, features: Any) -> None:
    """Make the output folder, or make sure that it belongs to this very task."""
    state = hashlib.sha256()
    for name, tensor in features.state_dict().items():
        state.update(name.encode() + tensor.cpu().numpy().tobytes())
    mark = {
        **_versions(),
        "model": kept.digest(Path(task.model.rpartition(":")[0]).read_bytes()),
        "factory": task.model.rpartition(":")[2],
        "weights": state.hexdigest(),
        "inputs": kept.digest(np.ascontiguousarray(data.inputs).tobytes()),
        "box": list(data.box),
        "noise": task.noise,
        "basis": task.basis,
        "seed": task.seed,
        "feature_error": task.feature_error,
        "batch": BATCH,
    }
    kept.claim(task.out, mark, resume=task.resume)


def _versions() -> dict[str, str]:
    from torch import __version__ as torch_version

    from . import __version__

    return {"tacit": __version__, "torch": str(torch_version)}


def _rows(count: int) -> Iterator[slice]:
    return (slice(first, min(first + BATCH, count)) for first in range(0, count, BATCH))


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """What all batches share, wherever they run."""

    features: Any
    noise: Any
    box: tuple[float, float]
    basis: str
    seed: int
    feature_error: float
    versions: dict[str, str]


def _per_input(
    task: Task, features: Any, data: _Data, noise: Any, outcomes: Outcomes, advance: Callable[[str], None]
) -> dict[str, _Array]:
    """The bounds that methods give input by input: from files, and from the engine where there are none yet."""
    inputs = data.inputs
    setting = _Setting(
        features=features,
        noise=noise,
        box=data.box,
        basis=task.basis,
        seed=task.seed,
        feature_error=task.feature_error,
        versions=_versions(),
    )
    found: dict[str, dict[int, _Array]] = {method: {} for method in task.methods if method in _PER_INPUT}
    left = []
    for method in found:
        for number, rows in enumerate(_rows(len(inputs))):
            path = task.out / f"{method}-{number:05d}.npy"
            named = f"{method}, inputs {rows.start + 1} to {rows.stop} of {len(inputs)}"
            if path.exists():
                advance(named)
                make = partial(_batch, setting, method, inputs[rows], rows.start)
                found[method][number] = kept.array(path, inputs[rows].shape, make)
            else:
                left.append((method, number, rows, path, named))
    done = outcomes(_batch, setting, [(method, inputs[rows], rows.start) for method, _, rows, _, _ in left])
    for count, (*_, named) in enumerate(left):
        advance(named if task.engine == "local" else f"{count} of {len(left)} batches done on {task.engine}")
        index, values = next(done)
        method, number, rows, path, _ = left[index]
        found[method][number] = kept.array(path, inputs[rows].shape, partial(np.asarray, values))
    return {method: np.concatenate([parts[number] for number in sorted(parts)]) for method, parts in found.items()}


def _batch(setting: _Setting, method: str, inputs: _Array, first: int) -> _Array:
    """The bounds of one method for some inputs, of which the first has this number."""
    import torch

    recon, chosen = _reconstruction(), torch.tensor(inputs)
    if _versions() != setting.versions:
        raise InputError(
            "the packages of a worker", _versions(), requirement=f"must be {setting.versions}", remedy="install those"
        )
    options: dict[str, Any] = {"basis": setting.basis, "feature_error": setting.feature_error}
    if method == "multi-point":
        return np.asarray(recon.multipoint_bounds(setting.features, chosen, setting.noise, **options).std)
    if method == "two-point":
        options["box"] = setting.box
        return np.asarray(recon.two_point_bounds(setting.features, chosen, setting.noise, **options).rmse)
    # Each batch has a stream of its own, so that it draws the same wherever and whenever it runs.
    options["seed"] = setting.seed + first
    return np.asarray(recon.hcr_bounds(setting.features, chosen, setting.noise, **options).std)


def _gallery(recon: Any, method: str, features: Any, inputs: _Array, noise: Any, task: Task) -> Comparison:
    import torch

    rows, seed = torch.tensor(inputs), task.seed
    options = {"seed": seed, "feature_error": task.feature_error}
    if method == "identify":
        guarantee = recon.identification_bound(features, rows, noise, **options)
        attack = recon.nearest_candidate(features, rows, noise, guarantee, seed=seed + 1)
    else:
        prior = recon.Gallery(rows)
        guarantee = recon.bayes_bound(features, prior, noise, **options).guarantee()
        attack = recon.linear_decoder(features, rows, prior, noise, tries=4096, seed=seed + 1)
    return Comparison(guarantee=guarantee, attack=attack)


def _summary(bounds: dict[str, _Array], comparisons: Sequence[Comparison], data: _Data, noise: Any) -> tuple[str, ...]:
    inputs, extent = data.inputs, data.box[1] - data.box[0]
    sentences = [f"{len(inputs)} inputs of shape {inputs.shape[1:]}, released as features with noise {noise!r}."]
    if "multi-point" in bounds:
        median = float(np.median(bounds["multi-point"]))
        ratio = min(median / extent, 1e9)
        times = f"more than {int(ratio)} times the inputs' range" if ratio > 1 else "less than the inputs' range"
        sentences.append(
            f"Unbiased estimates of a mode scatter by {times} for half of the modes, where the inputs themselves vary "
            f"by {data.spread:.2g}. That says nothing of attackers with prior knowledge, who are biased."
        )
    for comparison in comparisons:
        if comparison.guarantee.adversary.kind == "prior":
            attack = "" if comparison.attack is None else f" An attack reached {comparison.attack.value_text}."
            sentences.append(f"The {comparison.guarantee}.{attack}")
    return tuple(sentences)


def _figures(
    recon: Any, features: Any, bounds: dict[str, _Array], data: _Data, noise: Any, task: Task
) -> tuple[Figure, ...]:
    made, inputs = [], data.inputs
    if bounds:
        made.append(_histogram("Bounds over all modes and inputs", bounds, data.spread))
        if task.basis == "dct" and min(inputs.shape[-2:]) > LOWEST:
            lowest = {method: values[..., :LOWEST, :LOWEST] for method, values in bounds.items()}
            made.append(_histogram(f"The same for the {LOWEST} × {LOWEST} lowest modes", lowest, data.spread))
    unbiased = next((bounds[method] for method in ("hcr", "multi-point") if method in bounds), None)
    if unbiased is not None and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        moved = readings.moved_by(unbiased[:SHOWN], inputs[:SHOWN], basis=task.basis, seed=task.seed)
        rows = {"moved by the bound on unbiased estimates": moved}
        if isinstance(noise, recon.Gaussian):
            rows["twin: its release differs by less than the noise"] = _twins(recon, features, data, noise, task)
        made.append(_pictures_of(rows, data))
    return tuple(made)


def _histogram(title: str, bounds: dict[str, _Array], spread: float) -> Figure:
    return Figure(
        title=title,
        caption="Standard deviation of unbiased estimates (multi-point, hcr), root mean squared error of any estimate "
        "on the worse of two inputs (two-point). The dashed line is the inputs' own spread.",
        alternative="; ".join(
            f"{method}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
            for method, values in bounds.items()
        ),
        svg=figures.histogram(bounds, marked=(spread, "spread of the inputs"), x_label="bound, per mode"),
    )


def _twins(recon: Any, features: Any, data: _Data, noise: Any, task: Task) -> _Array:
    import torch

    chosen = torch.tensor(data.inputs[:SHOWN])
    found = recon.twins(features, chosen, noise, box=data.box, seed=task.seed, feature_error=task.feature_error)
    return np.asarray(found.inputs)


def _pictures_of(rows: dict[str, _Array], data: _Data) -> Figure:
    low, high = data.box

    def pictures(images: _Array) -> list[_Array]:
        scaled = np.clip((images - low) / (high - low), 0, 1)
        return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in scaled]

    named = {"original": data.inputs[:SHOWN], **rows}
    return Figure(
        title="What this means for an image",
        caption="Moved by the bound: every mode up or down by the toss of a coin, as far as an unbiased estimate of it "
        "must scatter. Twin: the farthest valid image that a search found whose features lie within one standard "
        "deviation of the noise. All are cut off at the inputs' range.",
        alternative=f"Rows of images: {', '.join(named)}.",
        svg=figures.image_rows({name: pictures(images) for name, images in named.items()}),
    )
