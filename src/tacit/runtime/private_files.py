"""Where private records may be on disk or in shared memory: in folders that only their owner can open.

Workers on this machine read records from files that joblib writes. While a fit runs, all files of this process are
closed to other users, and joblib's are in a folder that is removed at the end. What a killed run left behind is removed
by the next run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import InputError
from .files import existing

_PREFIX = "tacit-private-"
_LOCK = "lock"
_JOBLIB = "JOBLIB_TEMP_FOLDER"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 — folders there have unpredictable names

_guard = threading.RLock()
_fits = 0
"""How many blocks of `enclosed` are open: the first restricts this process's files, the last lifts this again."""
_left = contextlib.ExitStack()


def closed(folder: Path, *, name: str = "folder") -> Path:
    """Create the folder if necessary, and close it and everything in it to other users.

    Nothing in it may belong to another user, who could open it again; this is refused even for root.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            _close(folder, folder.stat())
            for parent, folders, files in os.walk(folder):
                for found in (*folders, *files):
                    with contextlib.suppress(FileNotFoundError):  # removed by another run just now
                        path = Path(parent, found)
                        _close(path, path.lstat())
    except OSError as failure:
        raise InputError(
            name,
            f"{failure.strerror}, in {folder}",
            requirement="must be a folder that can be written, and closed to all other users",
            remedy="choose another",
        ) from None
    return folder


def _close(path: Path, held: os.stat_result) -> None:
    """Remove all permissions of other users; a link has none of its own, and is replaced when it is written."""
    if held.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{path.name} belongs to another user")
    if stat.S_IMODE(held.st_mode) & 0o077 and not stat.S_ISLNK(held.st_mode):
        path.chmod(stat.S_IMODE(held.st_mode) & 0o700)


def own_bytes(path: Path, name: str, *, remedy: str) -> bytes:
    """Read a file that only its owner can read; other files are refused, since others may know the secret."""
    existing(path, name)
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise PermissionError(errno.EPERM, "others may read it")
            return file.read()
    except (OSError, ValueError) as failure:
        raise InputError(
            name,
            f"{path}: {getattr(failure, 'strerror', None) or failure}",
            requirement="must be a file that only you can read",
            remedy=remedy,
        ) from None


@contextlib.contextmanager
def enclosed(folder: Path | None = None) -> Iterator[None]:
    """Make new files of this process readable by its user only, and give joblib's files a folder of their own.

    That folder is inside the given one, or where joblib would put its files, and is removed at the end. Blocks may
    overlap, in one thread or several: the first one chooses the place.
    """
    global _fits  # the file mask and the environment belong to the whole process
    with _guard:
        if not _fits:
            _enter(_left, _usual() if folder is None else closed(folder))
        _fits += 1
    try:
        yield
    finally:
        with _guard:
            _fits -= 1
            if not _fits:
                _left.close()


def _enter(left: contextlib.ExitStack, parent: Path) -> None:
    with contextlib.ExitStack() as begun:
        begun.callback(os.umask, os.umask(0o077))
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(parent)
            place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            begun.callback(shutil.rmtree, place, ignore_errors=True)
            begun.callback(os.close, _locked(place))
        except OSError as failure:
            raise InputError(
                "the folder for temporary files",
                f"{parent}: {failure.strerror}",
                requirement="must be writable",
                remedy=f"set {_JOBLIB} to another, or pass folder=…",
            ) from None
        begun.callback(_restore, os.environ.get(_JOBLIB))
        os.environ[_JOBLIB] = str(place)
        left.push(begun.pop_all())


def _usual() -> Path:
    """Where joblib puts what workers share: as configured, else in shared memory, else among temporary files."""
    if _JOBLIB in os.environ:
        return Path(os.environ[_JOBLIB])
    if os.access(_SHARED_MEMORY, os.W_OK) and shutil.disk_usage(_SHARED_MEMORY).free >= 2**31:
        return _SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(_JOBLIB, None)
    else:
        os.environ[_JOBLIB] = before


def _locked(place: Path) -> int:
    """A file that is locked as long as this process lives; it gets its name once it is locked."""
    partial = place / f".{_LOCK}"
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT, 0o600)
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
    partial.rename(place / _LOCK)
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Remove folders of this user's killed runs: their locks are no longer held."""
    if os.name != "posix":
        return
    import fcntl

    for place in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, or removed by another run just now
            held = place.lstat()
            if held.st_uid != os.geteuid() or not stat.S_ISDIR(held.st_mode):
                continue
            descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place)
            finally:
                os.close(descriptor)
