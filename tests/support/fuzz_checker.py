"""Broken certificates for the checker: `python tests/support/fuzz_checker.py --cases 100000`.

Each case is made from the seed and its number alone. It passes if the checker ends in time with a verdict on each
claim, each of one line, or with one line that says why the file is no certificate.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "checker"), str(ROOT / "tests" / "support"), str(ROOT / "src")]

SECONDS = 10
SEEDS = ("audit", "audit of pairs", "open threshold", "stable release", "gnmax", "ledger", "identification")
STRANGE: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 10**6, 10**12, 10**30, 10**39, 0.5, "", "0", "-1", "1/0", "1/3", "-7/2"),
    *("0x1p-1074", "0x0.0p+0", "0x1.fffffffffffffp+1023", "0x1p+9999", "nan", "NaN", "1e400", "\x1b[31m", "é" * 50),
    *([], {}, [[]], [0], [[0, 0]], [[1, 1]], {"sha256": "0" * 64}, "at least", "at most", "audit", "ledger", "gnmax"),
    *("tacit.theory.gate.gate_delta", "9" * 400, "9" * 401, "1/" + "9" * 400, -(10**12), ["x"] * 1000),
]


def places(value: Any) -> list[tuple[Any, ...]]:
    """The places in a value, each after what holds it."""
    found: list[tuple[Any, ...]] = []

    def look(value: Any, path: tuple[Any, ...]) -> None:
        found.append(path)
        if isinstance(value, dict | list):
            for name, entry in value.items() if isinstance(value, dict) else enumerate(value):
                look(entry, (*path, name))

    look(value, ())
    return found


def broken(number: int, seed: int, whole: list[str]) -> bytes:
    """One to four changes of a whole certificate: of its values, of its shape, or of its bytes."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311 — which case it is
    text = rng.choice(whole)
    if rng.random() < 0.2:
        data = bytearray(text.encode())
        for _ in range(rng.randint(1, 4)):
            start, length = rng.randrange(len(data)), rng.choice([0, 1, 1, 5, 100])
            data[start : start + length] = rng.choice(
                [b"", b"9", b"-", b'"', b"{", b"]", b"\xff", b"\x00", b"e9", b","]
            )
        return bytes(data)
    statement = json.loads(text)
    for _ in range(rng.randint(1, 4)):
        path = rng.choice([found for found in places(statement) if found])
        here = statement
        for step in path[:-1]:
            here = here[step]
        if rng.random() < 0.15:
            del here[path[-1]]
        elif rng.random() < 0.15 and isinstance(here, list) and len(here) < 1000:
            here *= rng.choice([2, 10])
        elif isinstance(here[path[-1]], int) and rng.random() < 0.5:
            here[path[-1]] += rng.choice([1, -1, 10, 10**5, 10**9])
        else:
            here[path[-1]] = copy.deepcopy(rng.choice(STRANGE))
    return json.dumps(statement).encode()


def fuzzed(cases: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """What the checker said, counted, and the cases that it did not end well."""
    import certified_cases
    import tacit_check

    whole = [json.dumps(certified_cases.statement(name)) for name in SEEDS]
    said: Counter[str] = Counter()
    bad = []
    for number in range(cases):
        data, start = broken(number, seed, whole), time.process_time()
        try:
            verdicts = tacit_check.check(data)
            lines = [f"{verdict}: {reason}" for verdict, reason, _ in verdicts]
            said.update(verdict for verdict, _, _ in verdicts)
        except tacit_check.BadFileError as failure:
            lines = [str(failure)]
            said["refused"] += 1
        except Exception as failure:
            bad.append(f"case {number}: {type(failure).__name__}: {failure}")
            continue
        if any("\n" in line or not line.isprintable() or len(line) > 600 for line in lines):
            bad.append(f"case {number}: not one printable line: {lines!r}")
        if time.process_time() - start > SECONDS:
            bad.append(f"case {number}: {time.process_time() - start:.1f} s")
    return said, bad


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    counted, failed = fuzzed(given.cases, given.seed)
    print("\n".join([*failed[:20], f"{given.cases} cases, {len(failed)} bad: {dict(counted)}"]))
    sys.exit(bool(failed))
