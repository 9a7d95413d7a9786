"""Bounds for one input after another, in batches that are kept and run here or on a cluster."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ...core.errors import InputError
from ...runtime import run_folder
from ...runtime.clusters import Outcomes
from ..noise import Gaussian, Laplace, Noise, Quantized, Uniform
from ..other_noise import Density, Sampled
from ..release import as_array
from ..two_point import two_point_bounds
from ..unbiased import hcr_bounds, multipoint_bounds
from .budget import Budget, OutOfTime
from .options import PER_INPUT, Data, Task

_Array = NDArray[np.float64]

BATCH = 4


def claim_folder(task: Task, folder: Path, data: Data, features: nn.Module, prior: str | None) -> None:
    """Make the output folder, or check that it belongs to exactly this task; `prior` describes a stated one."""
    state = hashlib.sha256()
    for name, tensor in (*features.named_parameters(), *features.named_buffers()):
        state.update(name.encode() + tensor.detach().cpu().flatten().view(torch.uint8).numpy().tobytes())
    mark = {
        **_versions(),
        "model": run_folder.digest(Path(task.model.rpartition(":")[0]).read_bytes()),
        "factory": task.model.rpartition(":")[2],
        "weights": state.hexdigest(),
        "inputs": run_folder.digest(np.ascontiguousarray(data.inputs).tobytes()),
        "box": list(data.box),
        "noise": _described(task.noise),
        "basis": task.basis,
        "seed": task.seed,
        "feature_error": task.feature_error,
        "batch": BATCH,
        **({} if task.releases == 1 else {"releases": task.releases}),
        **({} if prior is None else {"prior": prior}),
    }
    run_folder.claim(folder, mark, resume=task.resume, name="out")


def _described(value: Any) -> Any:
    """Describe a noise so that no other has the same description; one of a caller's own code never has it twice."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, torch.Tensor):
        return run_folder.digest(np.ascontiguousarray(as_array(value)).tobytes())
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # a distribution of SciPy with its parameters
        return [value.dist.name, repr(value.args), repr(value.kwds)]
    if isinstance(value, Gaussian | Laplace | Uniform | Quantized | Density | Sampled):
        return [type(value).__name__, *([name, _described(part)] for name, part in sorted(vars(value).items()))]
    return repr(value)


def _versions() -> dict[str, str]:
    from torch import __version__ as torch_version

    from ... import __version__

    return {"tacit": __version__, "torch": str(torch_version)}


def _rows(count: int) -> Iterator[slice]:
    return (slice(first, min(first + BATCH, count)) for first in range(0, count, BATCH))


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """What all batches share, wherever they run."""

    features: Any
    noise: Noise
    box: tuple[float, float]
    basis: str
    seed: int
    feature_error: float | None
    releases: int
    versions: dict[str, str]


def bounds_per_input(
    task: Task, features: Any, data: Data, outcomes: Outcomes, budget: Budget, *, must: bool
) -> tuple[dict[str, _Array], dict[str, float], _Array | None]:
    """Return the bounds of the methods that work input by input; finished batches are read from files.

    Without a limit, inputs are bounded in their order for as long as there is time, method after method. With one, all
    of them are. If this is all that the run does (`must`), the first batch is computed however long it takes.

    Returns
    -------
    The bounds of each method that has any; for each that is not complete, the seconds that the rest would take about,
    infinite if no batch was finished; and `TwoPointBounds.pairs` of two-point, if all of its batches have them.
    """
    setting = _Setting(
        features=features,
        noise=task.noise,
        box=data.box,
        basis=task.basis,
        seed=task.seed,
        feature_error=task.feature_error,
        releases=task.releases,
        versions=_versions(),
    )
    found: dict[str, _Array] = {}
    missing: dict[str, float] = {}
    pairs: _Array | None = None
    for method in (name for name in task.methods if name in PER_INPUT):
        free = task.limit is not None or (must and not found)
        parts, rest = _method(task, setting, method, data.inputs, outcomes, budget, free=free)
        done = list(itertools.takewhile(parts.__contains__, range(len(list(_rows(len(data.inputs)))))))
        if done:
            found[method] = np.concatenate([parts[number][0] for number in done])
            if all(len(parts[number]) == 3 for number in done):
                pairs = np.concatenate([parts[number][1:] for number in done], axis=1)
        if rest:
            missing[method] = rest
    return found, missing, pairs


def _method(
    task: Task, setting: _Setting, method: str, inputs: _Array, outcomes: Outcomes, budget: Budget, *, free: bool
) -> tuple[dict[int, _Array], float]:
    """The batches of one method that are finished, by their numbers, and about how long the others would take.

    Each is what `_batch` returned; the bounds alone, if an earlier version kept them in the folder. With `free`, the
    first batch, or all up to the limit, are computed whatever the time.
    """
    parts: dict[int, _Array] = {}
    left = []
    for number, rows in enumerate(_rows(len(inputs))):
        path = None if task.out is None else task.out / f"{method}-{number:05d}.npy"
        named = f"{method}, inputs {rows.start + 1} to {rows.stop} of {len(inputs)}"
        if path is not None and path.exists():
            budget.begin(named)
            parts[number] = _kept(path, inputs[rows].shape, None)
        else:
            left.append((number, rows, path, named))
    done = outcomes(_batch, setting, [(method, inputs[rows], rows.start) for _, rows, _, _ in left])
    begun, finished = budget.spent, 0
    for count, (*_, named) in enumerate(left):
        limited = not free or (task.limit is None and finished > 0)
        each = (budget.spent - begun) / finished if finished else 0.0
        if limited and not budget.left > each:
            break
        budget.begin(named if task.engine == "local" else f"{count} of {len(left)} batches done on {task.engine}")
        try:
            with budget.stopping(setting.features) if limited and task.engine == "local" else contextlib.nullcontext():
                index, values = next(done)
        except OutOfTime:
            break
        number, rows, path, _ = left[index]
        finished += 1
        parts[number] = values if path is None else _kept(path, inputs[rows].shape, values)
    if finished == len(left):
        return parts, 0.0
    return parts, (len(left) - finished) * (budget.spent - begun) / finished if finished else math.inf


def _kept(path: Path, shape: tuple[int, ...], values: _Array | None) -> _Array:
    """A finished batch, written first if it is given: bounds in one file and, if it has any, pairs in one beside it."""
    beside = path.with_name(f"{path.stem}-pairs.npy")
    if values is not None and len(values) > 1:
        run_folder.array(beside, (2, *shape), partial(np.asarray, values[1:]))
    bounds = run_folder.array(path, shape, partial(np.asarray, None if values is None else values[0]))[None]
    if not beside.exists():
        return bounds
    return np.concatenate([bounds, run_folder.array(beside, (2, *shape), partial(np.asarray, None))])


def _batch(setting: _Setting, method: str, inputs: _Array, first: int) -> _Array:
    """Return the bounds of one method for a few inputs, and for two-point the pairs that they follow from, if any.

    `first` is the number of the first of them.
    """
    chosen = torch.tensor(inputs)
    if _versions() != setting.versions:
        raise InputError(
            "the packages of a worker", _versions(), requirement=f"must be {setting.versions}", remedy="install those"
        )
    options: dict[str, Any] = {
        "basis": setting.basis,
        "feature_error": setting.feature_error,
        "releases": setting.releases,
    }
    if method == "multi-point":
        return np.asarray(multipoint_bounds(setting.features, chosen, setting.noise, **options).std)[None]
    if method == "two-point":
        options["box"] = setting.box
        found = two_point_bounds(setting.features, chosen, setting.noise, **options)
        return np.stack([found.rmse, *(() if found.pairs is None else found.pairs)])
    # Each batch has its own random stream, so that it gives the same numbers wherever and whenever it runs.
    options["seed"] = setting.seed + first
    return np.asarray(hcr_bounds(setting.features, chosen, setting.noise, **options).std)[None]
