"""`make soundness`: would the tests notice if a theorem were 1 % too optimistic?

Every public function of tacit.theory returns a bound and is marked with its side, and so are the functions of other
rooms whose result is one. For each, the result is made 1 % too optimistic (a lower bound larger, an upper bound
smaller) and the tests of its module are run. A mutant that survives is listed and fails the command; so does a module
whose tests fail, or do not exist, without any mutation. Each rule and each mechanism of the checker is made as lenient.

Each run of pytest is a process of its own, forked from one that has loaded the heavy packages and nothing of tacit.
The run without a mutation notes what each test calls and how long it takes. A mutant meets the tests that call it
first, the quick ones before the slow ones, and the others after them: it survives only if all tests pass.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getmembers, isfunction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent / "src"))  # the tree that this file lies in, whatever is installed

sys.path.insert(0, str(TESTS.parent / "checker"))

from mutant import lenient, optimistic, replace  # noqa: E402

PASSED, FAILED = 0, 1  # pytest's exit codes; all others mean that it could not run
DIED = -1
HEAVY = ["dp_accounting", "hypothesis", "mpmath", "pytest", "scipy.stats", "sklearn.linear_model", "torch"]

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(HEAVY)


def theorems() -> dict[str, list[str]]:
    """All modules of tacit.theory, the others that hold a marked function, and the theorems that each defines."""
    found = {}
    for room in (import_module("tacit.theory"), import_module("tacit.reconstruction")):
        for info in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            functions = [
                name
                for name, value in getmembers(import_module(info.name), isfunction)
                if value.__module__ == info.name
                and not name.startswith("_")
                and (room.__name__ == "tacit.theory" or hasattr(value, "side"))
            ]
            if functions or room.__name__ == "tacit.theory":
                found[info.name] = functions
    return found


CHECKER = "tacit_check"


def rules() -> list[str]:
    """The rules of the checker and its mechanisms."""
    checker = import_module(CHECKER)
    return [*checker.RULES, *checker.MECHANISMS]


def own_tests(module: str) -> Path:
    if module == CHECKER:
        return TESTS / "certificate" / "test_checker.py"
    _, room, name = module.split(".")
    return TESTS / room / f"test_{name}.py"


@dataclass
class Notes:
    """A pytest plugin that notes what each test calls and how long it takes."""

    seconds: dict[str, float] = field(default_factory=dict)
    callers: dict[str, set[str]] = field(default_factory=dict)
    _called: set[str] = field(default_factory=set)

    def of_calls(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            self._called.add(original.__name__)
            return original(*arguments, **options)

        return noted

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._called.clear()
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        for function in self._called:
            self.callers.setdefault(function, set()).add(item.nodeid)
        return result

    def order(self, function: str) -> list[str]:
        callers = self.callers.get(function, set())
        return sorted(self.seconds, key=lambda test: (test not in callers, self.seconds[test]))


@dataclass
class Quickest:
    """A pytest plugin that runs the tests in the order given and does not look for the simplest failure."""

    order: list[str]

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("mutant", settings(), max_examples=100, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutant")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = {test: place for place, test in enumerate(self.order)}
        items.sort(key=lambda item: places.get(item.nodeid, len(places)))


@dataclass(frozen=True)
class Outcome:
    code: int  # pytest's exit code
    output: str = ""
    notes: Notes = field(default_factory=Notes)


def _run(answer: Connection, tests: Path, module: str, mutated: str | None, noted: list[str], order: list[str]) -> None:
    notes = Notes()
    for name in noted if module != CHECKER else ():
        replace(module, name, notes.of_calls)
    if mutated is not None and module == CHECKER:
        lenient(mutated)
    elif mutated is not None:
        replace(module, mutated, optimistic)
    plugin = notes if mutated is None else Quickest(order)
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
        loaded = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is, before pytest could rewrite it
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", loaded, str(tests)], plugins=[plugin])
    answer.send(Outcome(int(code), output.getvalue(), notes))


def outcome(
    tests: Path,
    module: str,
    mutated: str | None = None,
    *,
    noted: list[str] | None = None,
    order: list[str] | None = None,
) -> Outcome:
    """What pytest says of these tests, in a process of its own, with one function of a module mutated or with none.

    Without a mutation the calls of the functions `noted` are; with one the tests run in the `order` given.
    """
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=_run, args=(there, tests, module, mutated, noted or [], order or []))
    process.start()
    there.close()
    try:
        return here.recv()  # type: ignore[no-any-return]
    except EOFError:
        return Outcome(DIED)
    finally:
        process.join()


def main() -> int:
    found, bad = {**theorems(), CHECKER: rules()}, 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running: dict[Future[Outcome], tuple[str, str | None]] = {
            pool.submit(outcome, own_tests(module), module, noted=functions): (module, None)
            for module, functions in found.items()
        }
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                (module, function), result = running.pop(done), done.result()
                if function is None:
                    good, word = result.code == PASSED, "tests pass" if result.code == PASSED else "TESTS DO NOT PASS"
                    for name in found[module]:
                        order = result.notes.order(name)
                        running[pool.submit(outcome, own_tests(module), module, name, order=order)] = (module, name)
                else:
                    good = result.code == FAILED
                    word = {PASSED: "SURVIVED", FAILED: "killed"}.get(result.code, "COULD NOT RUN")
                print(f"{word:18} {module}{'' if function is None else f'.{function}, 1 % too optimistic'}", flush=True)
                if not good:
                    bad += 1
                    print(result.output[-2000:])
    mutants = sum(map(len, found.values()))
    print(f"{mutants} mutants of {len(found)} modules: {bad or 'no'} problem{'s' * (bad != 1)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
