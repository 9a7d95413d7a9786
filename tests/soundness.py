"""`make soundness`: would the tests notice if a theorem were 1 % too optimistic?

Every public function of tacit.theory returns a bound and is marked with its side, and so are the functions of other
rooms whose result is one. For each, the result is made 1 % too optimistic (a lower bound larger, an upper bound
smaller) and the tests of its module are run. A mutant that survives is listed and fails the command; so does a module
whose tests fail, or do not exist, without any mutation.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from inspect import getmembers, isfunction
from pathlib import Path

import tacit.reconstruction
import tacit.theory

TESTS = Path(__file__).parent
PASSED, FAILED = 0, 1  # pytest's exit codes; all others mean that it could not run


def theorems() -> dict[str, list[str]]:
    """All modules of tacit.theory, the others that hold a marked function, and the theorems that each defines."""
    found = {}
    for room in (tacit.theory, tacit.reconstruction):
        for info in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            functions = [
                name
                for name, value in getmembers(import_module(info.name), isfunction)
                if value.__module__ == info.name
                and not name.startswith("_")
                and (room is tacit.theory or hasattr(value, "side"))
            ]
            if functions or room is tacit.theory:
                found[info.name] = functions
    return found


def own_tests(module: str) -> Path:
    _, room, name = module.split(".")
    return TESTS / room / f"test_{name}.py"


def outcome(tests: Path, module: str, function: str | None = None) -> tuple[int, str]:
    """pytest's exit code and output, with one function of a module mutated or with none."""
    plugin = [] if function is None else ["-p", "mutant"]
    environment = dict(os.environ, PYTHONPATH=str(TESTS), PYTHONDONTWRITEBYTECODE="1")
    if function is not None:
        environment["TACIT_MUTANT"] = f"{module}:{function}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *plugin, str(tests)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return finished.returncode, finished.stdout + finished.stderr


def main() -> int:
    jobs: list[tuple[str, str | None]] = [(module, None) for module in theorems()]
    jobs += [(module, function) for module, functions in theorems().items() for function in functions]
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (module, function), (code, output) in zip(
            jobs, pool.map(lambda job: outcome(own_tests(job[0]), *job), jobs), strict=True
        ):
            if function is None:
                good, word = code == PASSED, "tests pass" if code == PASSED else "TESTS DO NOT PASS"
            else:
                good, word = code == FAILED, {PASSED: "SURVIVED", FAILED: "killed"}.get(code, "COULD NOT RUN")
            print(f"{word:18} {module}{'' if function is None else f'.{function}, 1 % too optimistic'}")
            if not good:
                bad += 1
                print(output[-2000:])
    mutants = sum(function is not None for _, function in jobs)
    print(f"{mutants} mutants of {len(jobs) - mutants} modules: {bad or 'no'} problem{'s' * (bad != 1)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
