"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file in one step, on the disk before it has its name; an existing one keeps its mode."""
    with _written(path, content) as partial:
        partial.replace(path)
    sync_folder(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """The same, unless the file is there by then: of several writers at once the first decides."""
    with _written(path, content) as partial:
        try:
            os.link(partial, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links: then the last decides
            partial.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """A new file's name is on the disk once its folder is; Windows cannot open folders, and writes them in order."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside the path with this content, on the disk; gone in the end unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}-")
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Temporary files are private to their owner; results are as readable as any new file.
        partial.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
