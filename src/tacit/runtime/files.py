"""Files of ours, which are there whole or not at all, and files of others, which may hold anything.

Of the latter sizes are checked before memory is taken: a header may claim what the file does not hold, and an archive
may unpack to more than any machine has.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import stat
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..core.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALWAYS_UNPACKED = 2**28
"""Bytes to which an archive may unpack, however small it is."""
_UNPACKED_RATIO = 200
"""Beyond that, so many bytes for each of the archive's."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


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


def one_file(path: Path, other: Path) -> bool:
    """Whether two names are of one file, through links of any kind, or would be once it is there."""
    with contextlib.suppress(OSError, ValueError):
        if path.samefile(other):
            return True
    try:
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):  # over-long names, zero bytes
        return False


def plain(path: Path, name: str) -> Path:
    """The path, unless there is something else than a file: what a pipe or a device gives may never come, or end.

    One that is not there is left to whoever opens it, who knows what to say.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):
        return path
    if kind != stat.S_IFREG:
        raise InputError(
            name,
            f"{path}, {_KINDS.get(kind, 'something else')}",
            requirement="must be a plain file",
            remedy="copy what is to be read into one",
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
    """Refuses an archive that unpacks to much more than it holds, before it does."""
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
    """Refuses what would take more than half of the memory there is."""
    most = _memory() // 2
    if size > most:
        raise InputError(
            name,
            f"{size} bytes in {path.name}",
            requirement=f"must fit into half of the memory, {most} bytes",
            remedy="use fewer rows, or another machine",
        )


def _array(file: IO[bytes], size: int, path: Path, name: str) -> NDArray[Any]:
    """The array of a file of this size, whose header must tell the truth about it."""
    import numpy as np

    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or count * max(1, dtype.itemsize) > size - file.tell():
        raise ValueError
    check_memory(8 * count, path, name)  # as float64, which all of them become
    file.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return found


@contextlib.contextmanager
def _reading(path: Path, name: str) -> Iterator[None]:
    """Whatever is raised over bytes that are no arrays becomes one line; so does what is only warned of."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except InputError:
        raise
    except Exception as failure:  # NumPy and zipfile raise what they like
        raise InputError(
            name,
            f"{type(failure).__name__} in {path}",
            requirement="must be a readable file of numbers or text",
            remedy="check that it is there, whole, and what its name says; write it with numpy.save or numpy.savez",
        ) from None


def _memory() -> int:
    """In bytes: of the machine, or of the part of it that this process may use."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36
    with contextlib.suppress(OSError, ValueError):  # where no group sets a limit
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return most
