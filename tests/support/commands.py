"""The command line as people run it."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

DOING = "reading|counting|certifying|attacking|drawing|training|trying|writing|searching|proving|naming|rebuilding"
PROGRESS = re.compile(rf"this takes about |\d+ % |\d+ of \d+ |({DOING}) ?[\w':, -]*$")
"""What a run that takes long says now and then where there is no terminal."""
COMMANDS = (
    *("numpy", "pyarrow.csv", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neural_network", "skops.io"),
    *("tacit.audit.study", "tacit.learning.study.plan", "tacit.learning.study.run", "tacit.report.figures"),
)
"""What most commands import."""
SERVICE = (
    *("fastapi", "uvicorn", "sqlalchemy", "psycopg", "cryptography.hazmat.primitives.ciphers.aead", "skops.io"),
    *("sklearn.linear_model", "tacit.ledger.database", "tacit.service.session", "tacit.service.run"),
    *("tacit.service.app", "tacit.service.page"),
)
"""What a service imports."""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tacit", *arguments], capture_output=True, text=True, check=False, **options
    )


class Warm:
    """An interpreter that has imported what commands need, and runs each by `fork`: they begin in no time.

    Not for tests of what an interpreter imports, or finds where it starts. Hashes of text differ from those of the
    process of the test, as they do from run to run.

    Parameters
    ----------
    modules
        What it imports beside the command line itself.
    """

    _CODE = """
import importlib, json, os, sys
import tacit.cli
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    asked = json.loads(line)
    if "child" in asked:
        ended, status = os.waitpid(asked["child"], 0 if asked["wait"] else os.WNOHANG)
        print(json.dumps(os.waitstatus_to_exitcode(status) if ended else None), flush=True)
        continue
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            os.chdir(asked["folder"])
            os.environ.clear()
            os.environ.update(asked["environment"])
            for number, place in enumerate([os.devnull, *asked["said"]]):
                os.dup2(os.open(place, os.O_RDWR | os.O_APPEND), number)
            exec(asked["before"])
            code = tacit.cli._run(asked["words"])
        finally:
            os._exit(code)
    os.setpgid(child, child)
    print(child, flush=True)
"""

    def __init__(self, *modules):
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._CODE, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock, self._codes = threading.Lock(), {}

    def start(self, words, said, *, folder=".", before=""):
        """Start a command, after some code; `said` are two files, which exist, for what it says. Returns its number."""
        asked = {"words": [str(word) for word in words], "said": [str(path) for path in said], "before": before}
        return self._asked(**asked, folder=str(Path(folder).resolve()), environment=dict(os.environ))

    def ended(self, child, *, wait=False):
        """The exit code of a command, or None while it runs."""
        if child not in self._codes:
            code = self._asked(child=child, wait=wait)
            if code is None:
                return None
            self._codes[child] = code
        return self._codes[child]

    def run(self, folder, *words, before="", until=None):
        """Run a command, after some code; as soon as `until` holds, it and all that it has started are killed."""
        with tempfile.TemporaryDirectory() as place:
            said = [Path(place) / name for name in ("out", "error")]
            for path in said:
                path.touch()
            child = self.start(words, said, folder=folder, before=before)
            while until is not None and self.ended(child) is None:
                if until():
                    os.killpg(child, signal.SIGKILL)
                    break
                time.sleep(0.01)
            code = self.ended(child, wait=True)
            return subprocess.CompletedProcess(words, code, *(path.read_text() for path in said))

    def _asked(self, **what):
        with self._lock:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def assert_one_line_error(finished, match=""):
    """One line about what was wrong; before it, on a slow machine, some may have told how far the run was."""
    assert finished.returncode == 2, finished
    assert finished.stdout == ""
    *before, last = finished.stderr.splitlines()
    assert last.startswith("tacit: error: ")
    assert match in last
    assert [line for line in before if not PROGRESS.match(line)] == []
