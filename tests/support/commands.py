"""The command line as people run it."""

import re
import subprocess
import sys

DOING = "reading|counting|certifying|attacking|drawing|training|trying|writing|searching|proving|naming|rebuilding"
PROGRESS = re.compile(rf"this takes about |\d+ % |\d+ of \d+ |({DOING}) ?[\w':, -]*$")
"""What a run that takes long says now and then where there is no terminal."""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tacit", *arguments], capture_output=True, text=True, check=False, **options
    )


def assert_one_line_error(finished, match=""):
    """One line about what was wrong; before it, on a slow machine, some may have told how far the run was."""
    assert finished.returncode == 2, finished
    assert finished.stdout == ""
    *before, last = finished.stderr.splitlines()
    assert last.startswith("tacit: error: ")
    assert match in last
    assert [line for line in before if not PROGRESS.match(line)] == []
