"""The command line as people run it."""

import subprocess
import sys


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tacit", *arguments], capture_output=True, text=True, check=False, **options
    )


def assert_one_line_error(finished):
    assert finished.returncode == 2, finished
    assert finished.stdout == ""
    assert finished.stderr.startswith("tacit: error: ")
    assert finished.stderr.count("\n") == 1
