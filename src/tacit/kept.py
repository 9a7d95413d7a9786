"""What a run keeps in its folder: the task that the folder belongs to, finished arrays and records, weights.

Every file is written whole or not at all, so that a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .files import write_new, write_whole

_Array = NDArray[np.float64]

_TASK = "task.json"


def claim(folder: Path, mark: Mapping[str, object], *, resume: bool, name: str = "--out") -> None:
    """Make the output folder, or make sure that it belongs to the very task that `mark` describes."""
    path = folder / _TASK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists()
        if fresh:
            write_new(path, (json.dumps(mark, indent=2) + "\n").encode())
        before = json.loads(path.read_text())
    except (OSError, ValueError) as failure:
        raise InputError(
            name, f"{folder}: {failure}", requirement="must be a folder that can be written", remedy="choose another"
        ) from None
    _same(name, folder, before, mark)
    if not (resume or fresh):
        raise InputError(
            name, str(folder), requirement="must be new without --resume", remedy="add --resume to go on there"
        )


def _same(name: str, place: Path, before: object, mark: Mapping[str, object]) -> None:
    """Refuse what was kept for another task."""
    if before == mark:
        return
    known = before if isinstance(before, dict) else {}
    differing = sorted(key for key in mark if known.get(key) != mark[key]) or ["what it was"]
    raise InputError(
        name,
        str(place),
        requirement=f"must belong to the same task, which differs in {', '.join(differing)}",
        remedy="choose another folder",
    )


def unclaim(folder: Path) -> None:
    """Leave a folder in which no batch was finished as it was found, so that a mended command may use it."""
    if not any(folder.glob("*.npy")):
        (folder / _TASK).unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """What tells one file or array from another."""
    return hashlib.sha256(content).hexdigest()


def array(path: Path, shape: tuple[int, ...], make: Callable[[], _Array]) -> _Array:
    """The bounds of a finished batch; made and written first where there are none yet."""
    if not path.exists():
        buffer = io.BytesIO()
        np.save(buffer, make(), allow_pickle=False)
        write_whole(path, buffer.getvalue())
    try:
        values: _Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        values = np.zeros(0)
    if values.shape != shape or np.isnan(values).any():
        raise InputError(
            "a batch of --out", str(path), requirement=f"must hold bounds of shape {shape}", remedy="delete the file"
        )
    return values


def record(
    path: Path, make: Callable[[], Mapping[str, Any]], *, mark: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Plain data of a finished step; made and written first where there are none yet.

    With a mark, that of its task stands beside it, and what was made for another task is refused.
    """
    if not path.exists():
        made = {**make(), **({} if mark is None else {"task": mark})}
        write_new(path, (json.dumps(made, indent=2) + "\n").encode())
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InputError("a step of --out", str(path), requirement="must hold one object", remedy="delete the file")
    if mark is not None:
        _same("folder", path, found.get("task"), mark)
    return found


def load_weights(module: Any, path: Path) -> None:
    """Weights from a file that cannot run code: safetensors, or torch's with weights_only."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    remedy = "pass the .safetensors or .pt file of a state_dict of this model"
    try:
        if path.suffix == ".safetensors":
            state = load_file(path)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what torch thinks of a file that it then refuses is no second line
                state = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    except (OSError, RuntimeError, SafetensorError, TypeError, AttributeError, ValueError) as failure:
        raise InputError("--weights", f"{path}: {failure}", requirement="must fit the model", remedy=remedy) from None
    except Exception:  # torch raises pickle's own errors for files that are not weights, or try to be more
        raise InputError("--weights", str(path), requirement="must hold tensors alone", remedy=remedy) from None


def save_weights(module: Any, path: Path) -> None:
    """The module's state, for `load_weights`."""
    from safetensors.torch import save

    write_whole(path, save({name: tensor.contiguous().cpu() for name, tensor in module.state_dict().items()}))
