"""Bounds for one input after another, in batches that are kept and run here or on a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
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
from ..noise import Noise
from ..two_point import two_point_bounds
from ..unbiased import hcr_bounds, multipoint_bounds
from .options import PER_INPUT, Data, Task

_Array = NDArray[np.float64]

BATCH = 4


def claim_folder(task: Task, folder: Path, data: Data, features: nn.Module) -> None:
    """Make the output folder, or check that it belongs to exactly this task."""
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
        "noise": repr(task.noise),
        "basis": task.basis,
        "seed": task.seed,
        "feature_error": task.feature_error,
        "batch": BATCH,
    }
    run_folder.claim(folder, mark, resume=task.resume, name="out")


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
    versions: dict[str, str]


def bounds_per_input(
    task: Task, features: Any, data: Data, outcomes: Outcomes, advance: Callable[[str], None]
) -> dict[str, _Array]:
    """Return the bounds of the methods that work input by input; finished batches are read from files."""
    inputs = data.inputs
    setting = _Setting(
        features=features,
        noise=task.noise,
        box=data.box,
        basis=task.basis,
        seed=task.seed,
        feature_error=task.feature_error,
        versions=_versions(),
    )
    found: dict[str, dict[int, _Array]] = {method: {} for method in task.methods if method in PER_INPUT}
    left = []
    for method in found:
        for number, rows in enumerate(_rows(len(inputs))):
            path = None if task.out is None else task.out / f"{method}-{number:05d}.npy"
            named = f"{method}, inputs {rows.start + 1} to {rows.stop} of {len(inputs)}"
            if path is not None and path.exists():
                advance(named)
                make = partial(_batch, setting, method, inputs[rows], rows.start)
                found[method][number] = run_folder.array(path, inputs[rows].shape, make)
            else:
                left.append((method, number, rows, path, named))
    done = outcomes(_batch, setting, [(method, inputs[rows], rows.start) for method, _, rows, _, _ in left])
    for count, (*_, named) in enumerate(left):
        advance(named if task.engine == "local" else f"{count} of {len(left)} batches done on {task.engine}")
        index, values = next(done)
        method, number, rows, path, _ = left[index]
        found[method][number] = values
        if path is not None:
            found[method][number] = run_folder.array(path, inputs[rows].shape, partial(np.asarray, values))
    return {method: np.concatenate([parts[number] for number in sorted(parts)]) for method, parts in found.items()}


def _batch(setting: _Setting, method: str, inputs: _Array, first: int) -> _Array:
    """Return the bounds of one method for a few inputs; `first` is the number of the first of them."""
    chosen = torch.tensor(inputs)
    if _versions() != setting.versions:
        raise InputError(
            "the packages of a worker", _versions(), requirement=f"must be {setting.versions}", remedy="install those"
        )
    options: dict[str, Any] = {"basis": setting.basis, "feature_error": setting.feature_error}
    if method == "multi-point":
        return np.asarray(multipoint_bounds(setting.features, chosen, setting.noise, **options).std)
    if method == "two-point":
        options["box"] = setting.box
        return np.asarray(two_point_bounds(setting.features, chosen, setting.noise, **options).rmse)
    # Each batch has its own random stream, so that it gives the same numbers wherever and whenever it runs.
    options["seed"] = setting.seed + first
    return np.asarray(hcr_bounds(setting.features, chosen, setting.noise, **options).std)
