"""Writing files completely or not at all, and reading files of others, which may hold anything.

Sizes are checked before memory is allocated: a header may claim more than the file holds, and an archive may unpack to
more than any machine has.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import stat
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.near import did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALWAYS_UNPACKED = 2**28
"""Bytes to which any archive may unpack."""
_UNPACKED_RATIO = 200
"""Beyond that, how many times its own size."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: it is on disk before it gets its name; an existing file keeps its mode."""
    with _written(path, content) as partial:
        partial.replace(path)
    sync_folder(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """Write a file atomically unless it exists by then: of several concurrent writers the first one wins."""
    with _written(path, content) as partial:
        try:
            os.link(partial, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links: the last writer wins
            partial.replace(path)
    sync_folder(path.parent)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock the folder against others who do so, while something in it is read and written. Windows has no such lock."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush a folder, and with it the names of new files; Windows cannot open folders, and writes them in order."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A file beside the path with this content, flushed to disk; removed at the end unless it was renamed."""
    partial = path.parent / f".{path.name[:50]}-{secrets.token_hex(8)}"
    # Created with its final mode: that of any new file, or of the file that it replaces.
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


def one_file(path: Path, other: Path) -> bool:
    """Whether two paths name the same file, through links of any kind, or would once it exists."""
    with contextlib.suppress(OSError, ValueError):
        if path.samefile(other):
            return True
    try:
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):  # over-long names, zero bytes
        return False


def existing(
    path: Path,
    name: str,
    *,
    kind: str = "file",
    shown: str | None = None,
    remedy: str | None = None,
) -> Path:
    """Return the path of a file or folder that exists; else say that there is none, and what is spelled like it."""
    try:
        path.stat()
    except PermissionError:  # in a folder that is closed to us, it may be there
        return path
    except (OSError, ValueError):  # also names that are too long, or hold a zero byte
        try:
            beside = sorted(other.name for other in path.parent.iterdir())
        except (OSError, ValueError):
            beside = []
        meant = did_you_mean(path.name, beside, "", likeness=0.75)
        advice = f"{meant} If not, {remedy}" if meant and remedy else meant or remedy or "check the path"
        raise InputError(
            name,
            str(path) if shown is None else shown,
            requirement=f"must name a {kind} that exists",
            remedy=f"no such {kind}: {advice}",
        ) from None
    return path


def plain(path: Path, name: str) -> Path:
    """Return the path if it is a plain file; a pipe or a device might block, or never end."""
    existing(path, name)
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:  # in a folder that is closed to us: opening it will raise the right error
        return path
    if kind != stat.S_IFREG:
        raise InputError(
            name,
            f"{path}, {_KINDS.get(kind, 'something else')}",
            requirement="must be a plain file",
            remedy="copy the data into one",
        )
    return path


def array(path: Path, name: str) -> NDArray[Any]:
    """The array of an .npy file."""
    with _reading(path, name), plain(path, name).open("rb") as file:
        return _array(file, os.fstat(file.fileno()).st_size, path, name)


def arrays(path: Path, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file."""
    with _reading(path, name), zipfile.ZipFile(plain(path, name)) as archive:
        check_unpacked(archive, path, name)
        found: dict[str, NDArray[Any]] = {}
        for member in archive.infolist():
            with archive.open(member) as file:
                found[member.filename.removesuffix(".npy")] = _array(file, member.file_size, path, name)
        if len(found) < len(archive.infolist()):
            raise ValueError
        return found


def check_unpacked(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    """Refuse an archive that would unpack to much more than its size."""
    size, packed = sum(member.file_size for member in archive.infolist()), path.stat().st_size
    if size > max(_ALWAYS_UNPACKED, _UNPACKED_RATIO * packed):
        raise InputError(
            name,
            f"{packed} bytes that unpack to {size} in {path.name}",
            requirement=f"must not unpack to more than {_UNPACKED_RATIO} times its size",
            remedy="save it without compression",
        )
    check_memory(size, path, name)


def check_memory(size: int, path: Path, name: str) -> None:
    """Refuse what would take more than half of the memory."""
    most = _memory() // 2
    if size > most:
        raise InputError(
            name,
            f"{size} bytes in {path.name}",
            requirement=f"must fit into half of the memory, {most} bytes",
            remedy="use fewer rows, or a larger machine",
        )


def _array(file: IO[bytes], size: int, path: Path, name: str) -> NDArray[Any]:
    """The array of a file of this size, after checking its header against the size."""
    import numpy as np

    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or count * max(1, dtype.itemsize) > size - file.tell():
        raise ValueError
    check_memory(8 * count, path, name)  # as float64, to which all arrays are converted
    file.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return found


@contextlib.contextmanager
def _reading(path: Path, name: str) -> Iterator[None]:
    """Turn errors and warnings about bytes that are not arrays into one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except InputError:
        raise
    except Exception as failure:  # NumPy and zipfile raise many types
        raise InputError(
            name,
            f"{type(failure).__name__} in {path}",
            requirement="must be a readable file of numbers or text",
            remedy="check that it exists, is complete and is what its name says; write it by numpy.save or savez",
        ) from None


def _memory() -> int:
    """Bytes of memory of the machine, or of the part that this process may use."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36
    with contextlib.suppress(OSError, ValueError):  # no control group sets a limit
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return most
