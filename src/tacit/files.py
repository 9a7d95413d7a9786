"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file in one step, on the disk before it has its name; an existing one keeps its mode."""
    with _written(path, content) as partial:
        partial.replace(path)


def write_new(path: Path, content: bytes) -> None:
    """The same, unless the file is there by then: of several writers at once the first decides."""
    with _written(path, content) as partial:
        try:
            os.link(partial, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links: then the last decides
            partial.replace(path)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside the path with this content, on the disk; gone in the end unless it was renamed."""
    partial = path.parent / f".{path.name[:50]}-{secrets.token_hex(8)}"
    # Made with the mode that it is to have: as readable as any new file, or as the one that it replaces.
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666
    binary = getattr(os, "O_BINARY", 0)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, mode & 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            partial.chmod(mode)
        yield partial
    finally:
        partial.unlink(missing_ok=True)
