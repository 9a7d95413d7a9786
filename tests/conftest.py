"""Settings for every test.

Hypothesis runs derandomised: a failure on one machine is a failure on every machine, and `make soundness` can tell
a mutant that dies from a test that was lucky. It tries twice as many examples as `make test`.

Teachers are trained one after another in the process of the test, and in that of a command that it starts: starting
processes takes longer than most of these trainings. Tests of the processes themselves ask for `all_cores`.

Folders of tests lie in memory where there is enough of it: what is stored is stored as for ever, and a disk takes four
milliseconds each of the many thousand times.
"""

import gc
import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")

_MEMORY = Path("/dev/shm")  # noqa: S108 — pytest makes a folder of its own there
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

settings.register_profile("tacit", max_examples=50, derandomize=True, deadline=None, print_blob=True)
settings.load_profile("tacit")

_declared = []
"""Operators, which are there as long as this."""


def pytest_configure(config):
    """torchvision's wheel is a CUDA build: beside a CPU build of torch it imports only once its operators are declared.

    Not in the process that hands out tests to others, which would load torch for nothing while they wait for it.
    """
    if config.getoption("dist", "no") != "no":
        return
    import torch

    if torch.version.cuda is None:
        _declared.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            _declared[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def pytest_collection_finish():
    """What was loaded stays loaded: the search for garbage need not look through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.fixture(scope="session")
def _new_places(tmp_path_factory):
    """Folders, one after another. Pytest would number them by a look at all that there are, for thousands of tests."""
    base = tmp_path_factory.mktemp("state")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _no_memory_of_other_runs(monkeypatch, _new_places):
    """What a command or a fit remembers of private records, it remembers for this test alone."""
    place = next(_new_places)
    place.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    monkeypatch.setenv("TACIT_FITS", f"12345678901 {place / 'fits.jsonl'}")


@pytest.fixture
def all_cores(monkeypatch):
    """joblib starts processes, here and in what is started from here."""
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")


@pytest.fixture(scope="module")
def quick_attacks():
    """Attacks beside bounds and certificates learn for a shorter time, where no test asks how good they are."""
    from tacit.audit import learners
    from tacit.reconstruction import realism

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_KNOWN", 2000), ("_TRAINED", 10_000), ("_LEAST_STEPS", 20)):
            patch.setattr(realism, name, value)
        for name, value in (("_STEPS", 100), ("_RESTARTS", 4)):
            patch.setattr(learners, name, value)
        yield


@pytest.fixture(scope="session")
def parser():
    """What typer makes of the commands, anew for each call of its own: it takes longer than most calls."""
    from typer.main import get_command

    from tacit import cli

    return get_command(cli.app)


@pytest.fixture(scope="session")
def warm():
    """The command line in processes of its own, which need not load everything again either."""
    from commands import COMMANDS, Warm

    started = Warm(*COMMANDS)
    yield started
    started.close()


@pytest.fixture
def here(monkeypatch, capsys, parser):
    """The command line in this process, which need not load everything again."""
    from tacit import cli

    monkeypatch.setattr(cli, "app", parser)

    def run_here(folder, *arguments):
        monkeypatch.chdir(folder)
        code = cli._run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run_here
