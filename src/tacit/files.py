"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file in one step, on the disk before it has its name; an existing one keeps its mode."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}-")
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Temporary files are private to their owner; results are as readable as any new file.
        partial.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
