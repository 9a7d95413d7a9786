"""Where private records may lie on a disk or in shared memory: in folders that nobody but their owner can open.

Workers of this machine read records from files that joblib writes. While a fit runs, all files of this process are
closed to others, and joblib's lie in a folder that is removed in the end. What a killed run left goes with the next.
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

_PREFIX = "tacit-private-"
_LOCK = "lock"
_JOBLIB = "JOBLIB_TEMP_FOLDER"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 — folders there have names that nobody can foresee

_guard = threading.RLock()
_fits = 0
"""How many blocks of `enclosed` are open: the first closes this process's files to others, the last opens them."""
_left = contextlib.ExitStack()


def closed(folder: Path, *, name: str = "folder") -> Path:
    """The folder, made if need be, which its owner alone can open; one that others could open is closed to them.

    So is what lies in it. Nothing of it may be another user's, who could open it again; not even root takes such a one.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            _close(folder, folder.stat())
            for parent, folders, files in os.walk(folder):
                for found in (*folders, *files):
                    with contextlib.suppress(FileNotFoundError):  # removed by another run in this moment
                        path = Path(parent, found)
                        _close(path, path.lstat())
    except OSError as failure:
        raise InputError(
            name,
            f"{failure.strerror}, in {folder}",
            requirement="must be a folder that can be written, and closed to all other users of the machine",
            remedy="choose another",
        ) from None
    return folder


def _close(path: Path, held: os.stat_result) -> None:
    """Take all rights from other users; a link has none of its own, and is replaced when it is written."""
    if held.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{path.name} belongs to another user")
    if stat.S_IMODE(held.st_mode) & 0o077 and not stat.S_ISLNK(held.st_mode):
        path.chmod(stat.S_IMODE(held.st_mode) & 0o700)


def own_bytes(path: Path, name: str, *, remedy: str) -> bytes:
    """What a file holds that nobody but its owner can read; any other is refused, since others know the secret."""
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise PermissionError(errno.EPERM, "others may read it")
            return file.read()
    except (OSError, ValueError) as failure:
        raise InputError(
            name,
            f"{path}: {getattr(failure, 'strerror', None) or failure}",
            requirement="must be a file that you can read, and nobody else",
            remedy=remedy,
        ) from None


@contextlib.contextmanager
def enclosed(folder: Path | None = None) -> Iterator[None]:
    """While this is open, new files of this process are its user's alone, and joblib's lie in a folder of their own.

    That folder lies in the one given, else where joblib would put its files, and is removed in the end. Blocks may
    overlap, in one thread or several: the first decides where.
    """
    global _fits  # the mask and the variables of a process are one for all its threads
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
                requirement="must be one that can be written",
                remedy=f"set {_JOBLIB} to another, or pass folder=…",
            ) from None
        begun.callback(_restore, os.environ.get(_JOBLIB))
        os.environ[_JOBLIB] = str(place)
        left.push(begun.pop_all())


def _usual() -> Path:
    """Where joblib puts what workers share: as told, else in memory, else among temporary files."""
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
    """A file that is locked for as long as this process lives; it has its name once it is."""
    partial = place / f".{_LOCK}"
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT, 0o600)
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
    partial.rename(place / _LOCK)
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Folders of this user's runs that were killed: nobody holds their locks any more."""
    if os.name != "posix":
        return
    import fcntl

    for place in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, or removed by another run in this moment
            held = place.lstat()
            if held.st_uid != os.geteuid() or not stat.S_ISDIR(held.st_mode):
                continue
            descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place)
            finally:
                os.close(descriptor)
