"""The command line as people run it."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOING = "reading|counting|certifying|attacking|drawing|training|trying|writing|searching|proving|naming|rebuilding"
PROGRESS = re.compile(rf"this takes about |\d+ % |\d+ of \d+ |({DOING}) ?[\w':, -]*$")
"""What a run that takes long says now and then where there is no terminal."""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tacit", *arguments], capture_output=True, text=True, check=False, **options
    )


class Warm:
    """An interpreter that has imported what commands need, and runs each by `fork`: they begin in no time.

    Not for tests of what an interpreter imports, or finds where it starts. Hashes of text differ from those of the
    process of the test, as they do from run to run.
    """

    _CODE = """
import json, os, sys
import numpy, pyarrow.csv, sklearn.ensemble, sklearn.linear_model, sklearn.neural_network, skops.io
import tacit.cli, tacit.audit.study, tacit.learning.study.plan, tacit.learning.study.run, tacit.report.figures
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        ended, status = os.waitpid(child, 0 if asked["wait"] else os.WNOHANG)
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
                os.dup2(os.open(place, os.O_RDWR), number)
            exec(asked["before"])
            code = tacit.cli._run(asked["words"])
        finally:
            os._exit(code)
    os.setpgid(child, child)
    print(child, flush=True)
"""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, folder, *words, before="", until=None):
        """Run a command, after some code; as soon as `until` holds, it and all that it has started are killed."""
        words = [str(word) for word in words]
        with tempfile.TemporaryDirectory() as place:
            said = [Path(place) / name for name in ("out", "error")]
            for path in said:
                path.touch()
            asked = {"words": words, "folder": str(folder), "before": before, "said": [str(path) for path in said]}
            child = self._asked(**asked, environment=dict(os.environ))
            code = None
            while until is not None and code is None and not until():
                time.sleep(0.01)
                code = self._asked(wait=False)
            if until is not None and code is None:
                os.killpg(child, signal.SIGKILL)
            if code is None:
                code = self._asked(wait=True)
            return subprocess.CompletedProcess(words, code, *(path.read_text() for path in said))

    def _asked(self, **what):
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
