"""What a run keeps in its folder: its task, finished arrays and notes, and weights.

Every file is written completely or not at all, so that a killed run can continue where it stopped. The last line of a
file is a seal, the SHA-256 of the task, the file's name and its content: a file that was damaged, renamed or made for
another task is refused. This protects against accidents; anyone who can write to the folder can also write seals.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from .files import check_unpacked, plain, write_new, write_whole

_Array = NDArray[np.float64]

_TASK = "task.json"
_BATCHES = ("*.npy", "*.skops")
_SEAL_LENGTH = len(b"\nsha256 \n") + 64


def claim(folder: Path, mark: Mapping[str, object], *, resume: bool, name: str = "out") -> None:
    """Create the output folder, or check that it belongs to the task that `mark` describes."""
    path = folder / _TASK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        batches = _batches(folder)
        fresh = not path.exists()
        if fresh and batches:
            raise InputError(
                name,
                str(folder),
                requirement=f"must not have .npy or .skops files without the {_TASK} that says what they belong to",
                remedy="choose another folder",
            )
        if fresh:
            write_new(path, (json.dumps(mark, indent=2) + "\n").encode())
        before = task(folder)
    except InputError:
        raise
    except (OSError, ValueError) as failure:
        raise InputError(
            name,
            f"{folder}: {getattr(failure, 'strerror', None) or failure}",
            requirement="must be a folder that can be written",
            remedy="choose another",
        ) from None
    _same(name, folder, before, mark)
    if not (resume or fresh):
        raise InputError(
            name,
            str(folder),
            requirement="must be new unless a run is resumed there",
            remedy="add `resume=True`",
        )


def claimed(folder: Path) -> bool:
    """Whether the folder belongs to a task."""
    return (folder / _TASK).exists()


def _same(name: str, place: Path, before: object, mark: Mapping[str, object]) -> None:
    """Refuse what belongs to another task."""
    if before == mark:
        return
    known = before if isinstance(before, dict) else {}
    differing = sorted(key for key in mark if known.get(key) != mark[key]) or ["what it was"]
    meant = " (inputs: the file, and how many of them)" * ("inputs" in differing)
    raise InputError(
        name,
        str(place),
        requirement=f"must belong to the same task, which differs in {', '.join(differing)}{meant}",
        remedy="choose another folder, or give the options and files of the run there",
    )


def unclaim(folder: Path) -> None:
    """Release a folder in which no batch was finished, so that a corrected command can use it."""
    if not _batches(folder):
        (folder / _TASK).unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file that belongs to the folder's task, with its seal."""
    write_whole(path, content + _seal(path, content, task(path.parent)))


def read(path: Path) -> bytes:
    """Read what `write` wrote, for this task and under this name."""
    return _unsealed(path, task(path.parent))


def array(path: Path, shape: tuple[int, ...], make: Callable[[], _Array]) -> _Array:
    """The bounds of a batch; computed and written first if there are none yet."""
    if not path.exists():
        buffer = io.BytesIO()
        np.save(buffer, make(), allow_pickle=False)
        write(path, buffer.getvalue())
    values: _Array = np.load(io.BytesIO(read(path)), allow_pickle=False)
    if values.shape != shape or np.isnan(values).any():
        raise InputError(
            "a batch of `out`", str(path), requirement=f"must hold bounds of shape {shape}", remedy="delete the file"
        )
    return values


def record(
    path: Path,
    make: Callable[[], Mapping[str, Any]],
    *,
    claimed: bool = True,
    mark: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Plain data of a finished step; computed and written first if there are none yet.

    Data that are not `claimed` are kept before the folder has a task, such as a key on which the task depends. A `mark`
    is stored with the data, and data with another mark are refused.
    """
    belongs = task(path.parent) if claimed else None
    if not path.exists():
        made = {**make(), **({} if mark is None else {"task": mark})}
        content = (json.dumps(made, indent=2) + "\n").encode()
        write_new(path, content + _seal(path, content, belongs))
    found: dict[str, Any] = json.loads(_unsealed(path, belongs))
    if mark is not None:
        _same("folder", path, found.get("task"), mark)
    return found


def _batches(folder: Path) -> bool:
    return any(True for pattern in _BATCHES for _ in folder.glob(pattern))


def task(folder: Path) -> Any:
    """The task that the folder belongs to."""
    return json.loads(plain(folder / _TASK, "a kept file").read_text())


def _seal(path: Path, content: bytes, task: object) -> bytes:
    said = json.dumps([task, path.name, digest(content)], sort_keys=True)
    return f"\nsha256 {digest(said.encode())}\n".encode()


def _unsealed(path: Path, task: object) -> bytes:
    try:
        whole = plain(path, "a kept file").read_bytes()
    except OSError:
        whole = b""
    content, seal = whole[:-_SEAL_LENGTH], whole[-_SEAL_LENGTH:]
    if seal != _seal(path, content, task):
        raise InputError(
            "a kept file",
            str(path),
            requirement="must be as this task wrote it, under the same name",
            # What precedes the task may have been released already: drawing it again would cost again.
            remedy="choose another folder" if task is None else "delete the file to have it made again",
        )
    return content


def load_weights(module: Any, path: Path, *, name: str = "weights") -> None:
    """Load weights from a file that cannot run code: safetensors, or torch's format with weights_only."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    remedy = "pass the .safetensors or .pt file of a state_dict of this model"
    plain(path, name)
    try:
        if path.suffix == ".safetensors":
            state = load_file(path)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's warnings about a file that it then refuses
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        check_unpacked(archive, path, name)
                state = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    except InputError:
        raise
    except (OSError, RuntimeError, SafetensorError, TypeError, AttributeError, ValueError) as failure:
        raise InputError(name, f"{path}: {failure}", requirement="must fit the model", remedy=remedy) from None
    except Exception:  # torch raises pickle's own errors for files that are not only weights
        raise InputError(name, str(path), requirement="must hold only tensors", remedy=remedy) from None


def save_weights(module: Any, path: Path) -> None:
    """Write the module's weights, for `load_weights`."""
    from safetensors.torch import save

    write_whole(path, save({name: tensor.contiguous().cpu() for name, tensor in module.state_dict().items()}))
