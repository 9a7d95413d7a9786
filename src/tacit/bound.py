"""`tacit bound`: the bounds of a model on files, batch by batch, and the report about them.

Every finished batch is a file of the output folder, written whole or not at all. A run that was killed goes on where it
stopped, and gives the same numbers as one that was not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checked
from .errors import InputError, MissingExtraError
from .files import write_whole
from .guarantee import Adversary, Comparison, Guarantee, safe_text
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
    inputs = gallery[: task.limit]
    features = _model(task.model, task.weights)
    _claim_folder(task, inputs, features)
    found: dict[str, list[_Array]] = {method: [] for method in task.methods if method in _PER_INPUT}
    comparisons: list[Comparison] = []
    for method in found:
        for number, rows in enumerate(_rows(len(inputs))):
            advance(f"{method}, inputs {rows.start + 1} to {rows.stop} of {len(inputs)}")
            path = task.out / f"{method}-{number:05d}.npy"
            if not path.exists():
                _save(path, _batch(recon, method, features, inputs, rows, noise, task))
            found[method].append(_array(path, inputs[rows].shape))
    bounds = {method: np.concatenate(parts) for method, parts in found.items()}
    for method in task.methods:
        if method in bounds:
            comparisons.append(
                Comparison(
                    guarantee=_median_guarantee(recon, method, bounds[method], inputs, noise, task.feature_error)
                )
            )
        else:
            advance({"identify": "naming the input", "bayes": "rebuilding the input"}[method])
            comparisons.append(_gallery(recon, method, features, gallery, noise, task))
    return Report(
        command="bound",
        title="What nobody can rebuild from these features",
        summary=_summary(bounds, comparisons, inputs, noise),
        comparisons=tuple(comparisons),
        figures=_figures(recon, features, bounds, inputs, noise, task),
        detail={
            "inputs": list(inputs.shape),
            "noise": repr(noise),
            "basis": task.basis,
            "prior_std": _prior_std(inputs),
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
        return kinds[kind](float(size))
    except (KeyError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "--noise",
            text,
            requirement="must be gaussian:SIGMA, laplace:SCALE or uniform:WIDTH",
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
        _load(made, weights)
    return made.eval()


def _load(module: Any, weights: Path) -> None:
    """Weights from a file that cannot run code: safetensors, or torch's with weights_only."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    remedy = "pass the .safetensors or .pt file of a state_dict of this model"
    try:
        if weights.suffix == ".safetensors":
            state = load_file(weights)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what torch thinks of a file that it then refuses is no second line
                state = torch.load(weights, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    except (OSError, RuntimeError, SafetensorError, TypeError, AttributeError, ValueError) as failure:
        raise InputError(
            "--weights", f"{weights}: {failure}", requirement="must fit the model", remedy=remedy
        ) from None
    except Exception:  # torch raises pickle's own errors for files that are not weights, or try to be more
        raise InputError("--weights", str(weights), requirement="must hold tensors alone", remedy=remedy) from None


def _claim_folder(task: Task, inputs: _Array, features: Any) -> None:
    """Make the output folder, or make sure that it belongs to this very task."""
    from torch import __version__ as torch_version

    from . import __version__

    state = hashlib.sha256()
    for name, tensor in features.state_dict().items():
        state.update(name.encode() + tensor.cpu().numpy().tobytes())
    mark = {
        "tacit": __version__,
        "torch": str(torch_version),
        "model": _digest(Path(task.model.rpartition(":")[0]).read_bytes()),
        "factory": task.model.rpartition(":")[2],
        "weights": state.hexdigest(),
        "inputs": _digest(np.ascontiguousarray(inputs).tobytes()),
        "noise": task.noise,
        "basis": task.basis,
        "seed": task.seed,
        "feature_error": task.feature_error,
        "batch": BATCH,
    }
    path = task.out / "task.json"
    try:
        task.out.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_whole(path, (json.dumps(mark, indent=2) + "\n").encode())
            return
        before = json.loads(path.read_text())
    except (OSError, ValueError) as failure:
        raise InputError(
            "--out",
            f"{task.out}: {failure}",
            requirement="must be a folder that can be written",
            remedy="choose another",
        ) from None
    if before != mark:
        differing = sorted(key for key in mark if before.get(key) != mark[key])
        raise InputError(
            "--out",
            str(task.out),
            requirement=f"must belong to the same task, which differs in {', '.join(differing)}",
            remedy="choose another folder",
        )
    if not task.resume:
        raise InputError(
            "--out", str(task.out), requirement="must be new without --resume", remedy="add --resume to go on there"
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _rows(count: int) -> Iterator[slice]:
    return (slice(first, min(first + BATCH, count)) for first in range(0, count, BATCH))


def _batch(recon: Any, method: str, features: Any, inputs: _Array, rows: slice, noise: Any, task: Task) -> _Array:
    import torch

    chosen = torch.tensor(inputs[rows])
    options = {"basis": task.basis, "feature_error": task.feature_error}
    if method == "multi-point":
        return np.asarray(recon.multipoint_bounds(features, chosen, noise, **options).std)
    if method == "two-point":
        box = (float(inputs.min()), float(inputs.max()))
        return np.asarray(recon.two_point_bounds(features, chosen, noise, box=box, **options).rmse)
    # Each batch has a stream of its own, so that a run that was interrupted draws what it would have drawn.
    return np.asarray(recon.hcr_bounds(features, chosen, noise, seed=task.seed + rows.start, **options).std)


def _save(path: Path, values: _Array) -> None:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_whole(path, buffer.getvalue())


def _array(path: Path, shape: tuple[int, ...]) -> _Array:
    try:
        values: _Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        values = np.zeros(0)
    if values.shape != shape or np.isnan(values).any():
        raise InputError(
            "a batch of --out", str(path), requirement=f"must hold bounds of shape {shape}", remedy="delete the file"
        )
    return values


def _prior_std(inputs: _Array) -> float:
    """How much an entry varies over the inputs, on average."""
    return float(np.sqrt(np.mean(np.var(inputs, axis=0))))


def _median_guarantee(
    recon: Any, method: str, values: _Array, inputs: _Array, noise: Any, feature_error: float
) -> Guarantee:
    spread = safe_text(_prior_std(inputs), toward="nearest", digits=2)
    half = f"for at least half of the {values[0].size} modes of the {len(values)} inputs (whose own spread is {spread})"
    # Of an even number the upper of the two middle values: half of all modes have a bound at least as large.
    median = float(np.sort(values.ravel())[values.size // 2])
    if method == "two-point":
        return Guarantee(
            quantity=f"root mean squared error of an estimate, on the worse of two inputs in the data's range, {half}",
            side="at_least",
            value=median,
            adversary=Adversary.ANY,
            theorem="two-point Bayes risk: tacit.reconstruction.two_point_bounds",
            assumptions=recon.release_assumptions(noise, feature_error),
        )
    return Guarantee(
        quantity=f"standard deviation of an estimate, {half}",
        side="at_least",
        value=median,
        adversary=Adversary.UNBIASED,
        theorem={
            "multi-point": "multi-point Hammersley–Chapman–Robbins: tacit.reconstruction.multipoint_bounds",
            "hcr": "Hammersley–Chapman–Robbins, the published search: tacit.reconstruction.hcr_bounds",
        }[method],
        assumptions=recon.unbiased_assumptions(noise, feature_error),
    )


def _gallery(recon: Any, method: str, features: Any, inputs: _Array, noise: Any, task: Task) -> Comparison:
    import torch

    rows, seed = torch.tensor(inputs), task.seed
    options = {"seed": seed, "feature_error": task.feature_error}
    if method == "identify":
        guarantee = recon.identification_bound(features, rows, noise, **options)
        attack = recon.nearest_candidate(features, rows, noise, guarantee, seed=seed + 1)
    else:
        guarantee = recon.gallery_bound(features, rows, noise, **options)
        attack = recon.linear_decoder(features, rows, noise, guarantee, seed=seed + 1)
    return Comparison(guarantee=guarantee, attack=attack)


def _summary(
    bounds: dict[str, _Array], comparisons: Sequence[Comparison], inputs: _Array, noise: Any
) -> tuple[str, ...]:
    spread, extent = _prior_std(inputs), float(inputs.max() - inputs.min())
    sentences = [f"{len(inputs)} inputs of shape {inputs.shape[1:]}, released as features with noise {noise!r}."]
    if "multi-point" in bounds:
        median = float(np.median(bounds["multi-point"]))
        ratio = min(median / extent, 1e9)
        times = f"more than {int(ratio)} times the inputs' range" if ratio > 1 else "less than the inputs' range"
        sentences.append(
            f"Unbiased estimates of a mode scatter by {times} for half of the modes, where the inputs themselves vary "
            f"by {spread:.2g}. That says nothing of attackers with prior knowledge, who are biased."
        )
    for comparison in comparisons:
        if comparison.guarantee.adversary.kind == "prior":
            attack = "" if comparison.attack is None else f" An attack reached {comparison.attack.value_text}."
            sentences.append(f"The {comparison.guarantee}.{attack}")
    return tuple(sentences)


def _figures(
    recon: Any, features: Any, bounds: dict[str, _Array], inputs: _Array, noise: Any, task: Task
) -> tuple[Figure, ...]:
    made = []
    if bounds:
        made.append(_histogram("Bounds over all modes and inputs", bounds, inputs))
        if task.basis == "dct" and min(inputs.shape[-2:]) > LOWEST:
            lowest = {method: values[..., :LOWEST, :LOWEST] for method, values in bounds.items()}
            made.append(_histogram(f"The same for the {LOWEST} × {LOWEST} lowest modes", lowest, inputs))
    unbiased = next((bounds[method] for method in ("hcr", "multi-point") if method in bounds), None)
    if unbiased is not None and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        rows = {"moved by the bound on unbiased estimates": _allowed(unbiased, inputs, task)}
        if isinstance(noise, recon.Gaussian):
            rows["twin: its release differs by less than the noise"] = _twins(recon, features, inputs, noise, task)
        made.append(_pictures_of(rows, inputs))
    return tuple(made)


def _histogram(title: str, bounds: dict[str, _Array], inputs: _Array) -> Figure:
    return Figure(
        title=title,
        caption="Standard deviation of unbiased estimates (multi-point, hcr), root mean squared error of any estimate "
        "on the worse of two inputs (two-point). The dashed line is the inputs' own spread.",
        alternative="; ".join(
            f"{method}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
            for method, values in bounds.items()
        ),
        svg=figures.histogram(bounds, marked=(_prior_std(inputs), "spread of the inputs"), x_label="bound, per mode"),
    )


def _twins(recon: Any, features: Any, inputs: _Array, noise: Any, task: Task) -> _Array:
    import torch

    box = (float(inputs.min()), float(inputs.max()))
    chosen = torch.tensor(inputs[:SHOWN])
    found = recon.twins(features, chosen, noise, box=box, seed=task.seed, feature_error=task.feature_error)
    return np.asarray(found.inputs)


def _allowed(std: _Array, inputs: _Array, task: Task) -> _Array:
    """The first inputs with every mode moved by its bound, up or down by a coin's toss."""
    from scipy.fft import dctn, idctn

    count = min(SHOWN, len(inputs))
    low, high = float(inputs.min()), float(inputs.max())
    signs = np.random.default_rng(task.seed).choice([-1.0, 1.0], size=inputs[:count].shape)
    moves = signs * np.minimum(std[:count], 1e3 * (high - low))
    if task.basis == "pixel":
        return np.asarray(inputs[:count] + moves)
    modes = dctn(inputs[:count], norm="ortho", axes=(-2, -1)) + moves
    return np.asarray(idctn(modes, norm="ortho", axes=(-2, -1)))


def _pictures_of(rows: dict[str, _Array], inputs: _Array) -> Figure:
    low, high = float(inputs.min()), float(inputs.max())

    def pictures(images: _Array) -> list[_Array]:
        scaled = np.clip((images - low) / (high - low), 0, 1)
        return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in scaled]

    named = {"original": inputs[:SHOWN], **rows}
    return Figure(
        title="What this means for an image",
        caption="Moved by the bound: every mode up or down by the toss of a coin, as far as an unbiased estimate of it "
        "must scatter. Twin: the farthest valid image that a search found whose features lie within one standard "
        "deviation of the noise. All are cut off at the inputs' range.",
        alternative=f"Rows of images: {', '.join(named)}.",
        svg=figures.image_rows({name: pictures(images) for name, images in named.items()}),
    )
