"""Files that are written once: keys, signed certificates, and what is made of them."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.errors import InputError
from ..runtime.files import sync_folder


def absent(name: str, path: Path) -> None:
    """Refuse a path that exists, even as a link that leads nowhere."""
    if os.path.lexists(path):
        raise InputError(
            name, str(path), requirement="must be a new file, as none is overwritten", remedy="choose another name"
        )


def write_absent(name: str, path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file that must not exist. It has its mode from the start, and is removed if it cannot be completed."""
    absent(name, path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except (OSError, ValueError) as failure:
        raise InputError(
            name,
            f"{path}: {getattr(failure, 'strerror', None) or failure}",
            requirement="must name a new file that can be written",
            remedy="choose a folder that exists and is yours to write to",
        ) from None
