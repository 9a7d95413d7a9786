"""Nobody else on the machine can read private records: not while a fit runs, not afterwards, not after a kill."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import private_fit
import pytest
from sklearn.linear_model import LogisticRegression

from tacit import InputError
from tacit.learning import PrivateClassifier, Teachers
from tacit.runtime import private_files
from tacit.runtime.files import write_whole

NOBODY = 65534
ANOTHER = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="another user can only be played by root, with setpriv",
)

SPY = f"""
import os, struct, sys, time
mark, seen, places = struct.pack("d", {private_fit.MARK}), set(), sys.argv[1:]
print("looking", flush=True)
while os.getppid() != 1 and not os.path.exists(sys.argv[1] + "/done"):
    for place in places:
        for folder, _, names in os.walk(place):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    with open(path, "rb") as file:
                        held = file.read(1 << 20)
                except OSError:
                    continue
                if mark in held:
                    seen.add(path)
    time.sleep(0.005)  # a fit needs a core too
print(*sorted(seen), sep="\\n", flush=True)
"""


@pytest.fixture
def open_place(tmp_path):
    """A folder that every user can open, as /tmp is; pytest's own is closed to them."""
    place = Path("/tmp") / f"tacit-test-{os.getpid()}-{tmp_path.name}"  # noqa: S108
    place.mkdir(mode=0o755)
    yield place
    shutil.rmtree(place)


def fitting(*folders, seconds, **variables):
    """A process that fits in one folder after another, with processes of its own."""
    code = "import sys, private_fit\nfor folder in sys.argv[1:]: private_fit.fit(folder)"
    path = os.pathsep.join([str(Path(private_fit.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | variables | {"PAUSE": str(seconds), "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", code, *folders], env=environment, start_new_session=True)


@ANOTHER
@pytest.mark.usefixtures("all_cores")
def test_another_user_reads_no_record_while_a_fit_runs(open_place):
    """Neither of one that keeps nothing, nor of one that keeps its teachers in a folder."""
    nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    looking = [*nobody, "/usr/bin/env", "python3", "-c", SPY, str(open_place), "/dev/shm"]  # noqa: S108
    with subprocess.Popen(looking, stdout=subprocess.PIPE, text=True) as spy:
        assert spy.stdout.readline() == "looking\n"
        readable = open_place / "readable"  # that he would find what he can read
        readable.write_bytes(np.array([private_fit.MARK]).tobytes())
        with fitting("", str(open_place / "kept"), seconds=0.2, TMPDIR=str(open_place)) as process:
            failed = process.wait(timeout=600)
        (open_place / "done").touch()
        found, _ = spy.communicate(timeout=60)
    assert not failed
    assert found.split() == [str(readable)]
    assert list((open_place / "kept").rglob("teacher-*.skops"))


@pytest.mark.skipif(os.name != "posix", reason="kills and locks of Unix")
@pytest.mark.parametrize("folder", ["", "kept"])
@pytest.mark.usefixtures("all_cores")
def test_what_a_killed_fit_left_is_removed_by_the_next(open_place, folder, monkeypatch):
    """The next one in this process: it is the killed one that needs processes of its own."""
    where = open_place / (folder or "shared")
    where.mkdir()
    variables = {"JOBLIB_TEMP_FOLDER": str(open_place / "shared")}

    def left():
        return [path for path in where.rglob("*.pkl") if np.array([private_fit.MARK]).tobytes() in path.read_bytes()]

    deadline = time.monotonic() + 600
    with fitting(folder and str(where), seconds=60, **variables) as process:
        try:
            while not left() and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.05)
            process.kill()  # and not its workers, for which joblib keeps the file
            process.wait()
            assert left()
            assert stat.S_IMODE(next(where.glob("tacit-private-*")).stat().st_mode) == 0o700
            for name, value in {**variables, "PAUSE": "0", "LOKY_MAX_CPU_COUNT": "1"}.items():
                monkeypatch.setenv(name, value)
            private_fit.fit(folder and str(where))
            assert not left()
            assert not list(where.glob("tacit-private-*"))
        finally:
            with contextlib.suppress(ProcessLookupError):  # workers may have noticed
                os.killpg(process.pid, signal.SIGKILL)


def test_a_run_that_lives_keeps_its_files(tmp_path):
    """Another run of the same user begins beside it, and ends before it."""
    with private_files.enclosed(tmp_path):
        inside = Path(os.environ["JOBLIB_TEMP_FOLDER"])
        (inside / "record").write_text("4711")
        assert stat.S_IMODE((inside / "record").stat().st_mode) == 0o600
        code = f"from pathlib import Path\nfrom tacit.runtime import private_files\nplace = Path({str(tmp_path)!r})\n"
        code += "with private_files.enclosed(place):\n    print(len(list(place.glob('tacit-private-*'))))"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert other.stdout == "2\n"
        assert (inside / "record").exists()
    assert not inside.exists()
    assert not list(tmp_path.iterdir())


def test_blocks_overlap_and_leave_the_process_as_it_was(tmp_path):
    before, mask = os.environ.get("JOBLIB_TEMP_FOLDER"), os.umask(0o022)
    try:
        first, second = private_files.enclosed(tmp_path / "a"), private_files.enclosed(tmp_path / "b")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        (tmp_path / "new").touch()
        second.__exit__(None, None, None)
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
    assert os.environ.get("JOBLIB_TEMP_FOLDER") == before


def test_a_folder_that_others_can_open_is_closed_to_them(tmp_path):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 2)), np.arange(60) % 2
    folder = tmp_path / "wide"
    folder.mkdir(mode=0o755)
    (folder / "teachers").mkdir(mode=0o755)
    model = PrivateClassifier(LogisticRegression(), epsilon=50.0, n_teachers=3, mechanism="gnmax", classes=[0, 1])
    model.fit(points, labels, rng.normal(size=(9, 2)), folder=folder)
    Teachers(LogisticRegression(), 3, classes=[0, 1]).fit(points, labels, folder=tmp_path / "new" / "teachers")
    for place in (folder, tmp_path / "new" / "teachers"):
        held = list(place.rglob("*"))
        assert len(held) > 3
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        for path in held:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    with pytest.raises(InputError, match="folder must be a folder that can be written, and closed to all other users"):
        model.fit(points, labels, rng.normal(size=(9, 2)), folder=folder / "task.json")


def test_what_lies_in_a_private_folder_is_closed_too(tmp_path):
    """A file that is replaced keeps its mode: so that of one that others could read is changed before."""
    folder = tmp_path / "private"
    (folder / "deep").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.touch(mode=0o644)
    for path in (folder / "owner.html", folder / "deep" / "0.skops"):
        path.touch()
        path.chmod(0o666)
    (folder / "anchor.json").symlink_to(elsewhere)
    private_files.closed(folder)
    write_whole(folder / "owner.html", b"private")
    assert stat.S_IMODE((folder / "owner.html").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "deep" / "0.skops").stat().st_mode) == 0o600
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_refused(tmp_path):
    """Root can close it, and its owner can open it again."""
    for given in ("private", "private/release.json", "private/link", "private/deep/0.skops"):
        folder = tmp_path / given.replace("/", "-") / "private"
        (folder / "deep").mkdir(parents=True)
        (folder / "release.json").touch()
        (folder / "deep" / "0.skops").touch()
        (folder / "link").symlink_to(tmp_path)
        os.chown(folder.parent / given, NOBODY, NOBODY, follow_symlinks=False)
        with pytest.raises(InputError, match="belongs to another user"):
            private_files.closed(folder)
        with pytest.raises(InputError, match="belongs to another user"), private_files.enclosed(folder):
            pytest.fail("a fit began")


def test_temporary_files_have_a_place(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path / "file" / "in"))
    with pytest.raises(InputError, match="the folder for temporary files must be writable"):
        Teachers(LogisticRegression(), 2, classes=[0, 1]).fit(np.eye(8), np.arange(8) % 2)
