"""`make bench`: what certificates cost, from 1e5 to 1e7 rows, against named baselines in the same run.

First `tacit audit` on Parquet files, as users run it, start and all; then `certify` on arrays. On a busy machine the
wall clock says more about the neighbours than about the program: the processor's time stands beside it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import stats

from tacit.audit import certify

SIZES = (10**5, 10**6, 10**7)
FEW = 20_000


def seconds(action: Callable[[], object]) -> float:
    """The shorter one of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


MEASURED = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen([sys.executable, *sys.argv[1:]])
_, status, used = os.wait4(process.pid, 0)
assert not os.waitstatus_to_exitcode(status)
unit = 1 if sys.platform == "darwin" else 1024
print(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e6)
"""


def command(*arguments: str) -> tuple[float, float, float]:
    """Wall seconds, seconds of all processors, and megabytes at the peak, of a command: the least of three runs each.

    A process of its own starts it: the peak of a child begins with its parent's memory.
    """
    runs = [
        subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    wall, used, peak = (min(column) for column in zip(*(map(float, run.stdout.split()) for run in runs), strict=True))
    return wall, used, peak


def naive_smoothed(secret: NDArray[np.int64], output: NDArray[np.float64], noise: float) -> float:
    """v of the kernel estimates by definition: every row at every point of a grid."""
    y = np.arange(output.min() - 8 * noise, output.max() + 8 * noise, noise / 8)
    one, zero = (stats.norm.pdf(y[:, None], output[secret == s][None], noise).mean(axis=1) for s in (1, 0))
    return float(((one - zero) ** 2 / (one + zero)).sum() * noise / 16)


def from_files(secret: NDArray[np.int64], outputs: dict[str, NDArray[np.float64] | NDArray[np.int64]]) -> None:
    """`tacit audit` on tables with these columns, and what reading them alone takes."""
    kinds: dict[str, tuple[tuple[str, ...], str]] = {
        "symbol": ((), "(aim: 3 s and 1 GB)"),
        "word": ((), ""),
        "rounded": ((), ""),
        "score": (("--noise", "0.1"), "(aim: 10 s)"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for rows in SIZES:
            columns = {name: one[:rows] for name, one in outputs.items()}
            places = pa.array(columns["symbol"].astype(np.int32))
            words = pa.DictionaryArray.from_arrays(places, [f"class {place}" for place in range(1000)]).cast("string")
            table = pa.table({"secret": np.array(["no", "yes"])[secret[:rows]], **columns, "word": words})
            parquet.write_table(table, Path(folder, f"{rows}.parquet"))
        for output, (options, aim) in kinds.items():
            print(f"tacit audit, {output} {' '.join(options)} {aim}")
            before = 0, 0.0
            for rows in SIZES:
                path = str(Path(folder, f"{rows}.parquet"))
                wanted = ("--secret", "secret", "--output", output, *options, "--attack-rows", "0", "--quiet")
                wall, used, peak = command("-m", "tacit", "audit", path, *wanted)
                line = f"  {rows:9d} rows {wall:6.2f} s wall {used:6.2f} s processor {peak:5.0f} MB"
                if before[0]:
                    line += f"   {(used - before[1]) / (rows - before[0]) * 1e9:5.0f} ns for each further row"
                print(line)
                before = rows, used
            script = f"from pyarrow import parquet; parquet.read_table({path!r}, columns=['secret', {output!r}])"
            print(f"  {used / command('-c', script)[1]:9.1f} × the processor time of reading both columns with pyarrow")


def nothing_leaks() -> None:
    """The certified advantage where outputs are independent of the secret, with a tenth as many values as rows."""
    print("nothing leaks, rows/10 different outputs: certified advantage, median of 5 tables")
    for rows in (10**3, 10**4, 10**5, 10**6):
        secrets = np.arange(rows) % 2
        found: dict[str, list[float]] = {"sharp": [], "pairwise": []}
        for seed in range(5):
            outputs = np.random.default_rng(seed).integers(0, rows // 10, rows)
            for form, values in found.items():
                values.append(certify(secrets, outputs, form=form).advantage)
        print(f"  {rows:9d} rows " + "   ".join(f"{form} {np.median(values):.3f}" for form, values in found.items()))


def from_arrays(secret: NDArray[np.int64], symbol: NDArray[np.int64], score: NDArray[np.float64]) -> None:
    """`certify` on arrays, against sorting the column and against the definition."""
    by_definition = seconds(lambda: naive_smoothed(secret[:FEW], score[:FEW], 0.1)) / FEW
    sorting = seconds(lambda: np.sort(score)) / len(score)
    for name, output, options in (
        ("discrete, 1000 values", symbol, {}),
        ("released with noise 0.1", score, {"noise": 0.1}),
        ("monotone", score, {"method": "monotone"}),
    ):
        first = 0.0
        for rows in SIZES:
            a, b = secret[:rows], output[:rows]
            taken = seconds(lambda a=a, b=b, options=options: certify(a, b, failure_probability=0.05, **options))  # type: ignore[misc]
            first = first or taken / rows
            print(
                f"{name:24} {rows:9d} rows {taken:7.2f} s   {taken / rows / first:5.2f} × the cost a row of 100000, "
                f"{taken / rows / sorting:5.1f} × sorting the column"
            )
        if options == {"noise": 0.1}:
            print(f"{'':24} {by_definition / (taken / rows):9.0f} × faster a row than by definition, on {FEW} rows")


def main() -> None:
    rng = np.random.default_rng(0)
    most = SIZES[-1]
    secret, symbol = rng.integers(0, 2, most), rng.integers(0, 1000, most)
    score = rng.normal(size=most)
    from_files(secret, {"symbol": symbol, "rounded": np.round(score, 2), "score": score})
    from_arrays(secret, symbol, score)
    nothing_leaks()


if __name__ == "__main__":
    main()
