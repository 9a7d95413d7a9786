"""Teachers and students in files, by skops: nothing is unpickled, and types that nobody trusts are refused."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import InputError, MissingExtraError
from ..runtime import run_folder
from ..runtime.files import write_whole

_SCHEMA = "schema.json"
_UNUSED = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask"))
"""What skops imports as it asks scikit-learn for all estimators: none is there, and torch takes seconds to load."""


@contextlib.contextmanager
def _without(modules: Sequence[str]) -> Iterator[None]:
    """Meanwhile, modules that are not yet imported count as not installed."""
    absent = [name for name in modules if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None means that
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def needed() -> Any:
    """The package skops; raises if it is not installed."""
    try:
        with _without(() if "skops.io" in sys.modules else _UNUSED):
            import skops.io
    except ImportError:
        raise MissingExtraError(
            "folder must have skops, which stores teachers, got no such package; pip install 'tacit-privacy[learning]'"
        ) from None
    return skops.io


def write(path: Path, estimator: Any, *, trusted: Sequence[str]) -> None:
    """Store a trained estimator, whole or not at all; one that `read` would refuse is refused here already."""
    skops = needed()
    try:
        content: bytes = skops.dumps(estimator)
        unknown = sorted(set(skops.get_untrusted_types(data=content)) - set(trusted))
    except Exception as failure:  # skops raises what it likes for what it cannot hold
        raise InputError(
            f"the type {type(estimator).__name__} of the teachers",
            type(failure).__name__,
            requirement="must be one that skops can store",
            remedy="use folder=None to keep teachers in memory",
        ) from None
    if unknown:
        raise _untrusted("the estimator", unknown)
    run_folder.write(path, content)


def read(path: Path, kind: type, *, trusted: Sequence[str]) -> Any:
    """What `write` stored, of exactly this type."""
    skops = needed()
    try:
        content = run_folder.read(path)
        unknown = sorted(set(skops.get_untrusted_types(data=content)) - set(trusted))
        estimator = None if unknown else skops.loads(content, trusted=list(trusted))
    except Exception:  # whatever a file that is not ours makes skops raise
        unknown, estimator = [], None
    if unknown:
        raise _untrusted(str(path), unknown)
    if type(estimator) is not kind:
        raise InputError(
            "a teacher of folder",
            str(path),
            requirement=f"must be a {kind.__name__} that skops stored",
            remedy="delete the file to train the teacher again",
        )
    return estimator


def _untrusted(what: str, unknown: Sequence[str]) -> InputError:
    names = ", ".join(unknown)
    return InputError(
        f"{what}, which holds {names},",
        len(unknown),
        requirement="must hold no types but those that skops or you trust",
        remedy="list them in trusted= if only you can write to the folder, or use folder=None",
    )


def publish(path: Path, estimator: Any) -> tuple[str, ...]:
    """Store what may be published; return the types that must be trusted to load it."""
    skops = needed()
    try:
        content: bytes = skops.dumps(estimator)
    except Exception as failure:
        raise InputError(
            "the student",
            type(failure).__name__,
            requirement="must be one that skops can store",
            remedy="choose another with `student`; with `resume` that costs no privacy",
        ) from None
    content = _impersonal(content)
    write_whole(path, content)
    return tuple(sorted(skops.get_untrusted_types(data=content)))


def _impersonal(content: bytes) -> bytes:
    """What skops has written, with its parts numbered in order, and without a time.

    skops names parts by their addresses in memory, which depend on all that was there before, private records included.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    schema, numbers, names = json.loads(held.pop(_SCHEMA)), dict[int, int](), dict[str, str]()
    for node in _nodes(schema):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers))
        if "file" in node:
            suffix = Path(node["file"]).suffix
            node["file"] = names.setdefault(node["file"], f"{len(names)}{suffix}")
    parts = {names[name]: part for name, part in held.items()} | {_SCHEMA: json.dumps(schema, indent=2).encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(parts):
            archive.writestr(zipfile.ZipInfo(name), parts[name])  # dated by the first day that archives know
    return buffer.getvalue()


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """What skops calls a node, and all nodes in it, in order."""
    if isinstance(schema, dict) and "__loader__" in schema:
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _nodes(part)
