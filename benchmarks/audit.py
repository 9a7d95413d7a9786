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

from tacit.audit import certify, certify_classes, certify_number
from tacit.theory import leakage

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


def of_vectors() -> None:
    """`tacit audit --code` on a million vectors of 128 numbers, in a .npy file and in Parquet columns."""
    rows, columns = 10**6, 128
    print(f"tacit audit --code auto, {rows} vectors of {columns} numbers, attacks included (aim: 2 minutes)")
    source, secret = np.random.default_rng(0), np.arange(rows) % 2
    with tempfile.TemporaryDirectory() as folder:
        matrix = np.lib.format.open_memmap(Path(folder, "x.npy"), "w+", np.float32, (rows, columns))
        for start in range(0, rows, 50_000):
            matrix[start : start + 50_000] = source.normal(size=(50_000, columns))
        matrix[:, 0] += 0.3 * secret
        matrix.flush()
        parquet.write_table(pa.table({"secret": secret}), Path(folder, "s.parquet"))
        wide = {f"x{place}": np.asarray(matrix[:, place]) for place in range(columns)}
        parquet.write_table(pa.table({"secret": secret, **wide}), Path(folder, "t.parquet"), row_group_size=2**16)
        for table, output in (("s.parquet", str(Path(folder, "x.npy"))), ("t.parquet", "x*")):
            wanted = ("--secret", "secret", "--output", output, "--code", "auto", "--quiet")
            wall, used, peak = command("-m", "tacit", "audit", str(Path(folder, table)), *wanted)
            kind = Path(output).suffix or "columns"
            print(f"  {kind:8} {wall:6.1f} s wall {used:6.1f} s processor {peak:5.0f} MB")


def nothing_leaks() -> None:
    """The certified advantage where outputs are independent of the secret, with a tenth as many values as rows.

    Tables differ: where chance brings equal outputs together with equal secrets, the limit is larger.
    """
    print("nothing leaks, rows/10 different outputs: certified advantage, median and upper decile of 40 tables")
    for rows in (10**3, 10**4, 10**5, 10**6):
        secrets = np.arange(rows) % 2
        found: dict[str, list[float]] = {"sharp": [], "closed": [], "pairwise": []}
        for seed in range(40):
            outputs = np.random.default_rng(seed).integers(0, rows // 10, rows)
            for form, values in found.items():
                values.append(certify(secrets, outputs, form=form).advantage)
        shown = {form: np.quantile(values, [0.5, 0.9]) for form, values in found.items()}
        print(f"  {rows:9d} rows " + "   ".join(f"{form} {low:.4f} {high:.4f}" for form, (low, high) in shown.items()))


def laws() -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Twenty pairs of laws of an output, for either secret, on which limits are tried."""
    found = {f"nothing leaks, {values} outputs": (np.full(values, 1 / values),) * 2 for values in (1, 12, 100, 1000)}
    for bias in (0.02, 0.2, 0.8):
        for values in (2, 60, 600):
            tilt = 1 + bias * np.resize([1.0, -1.0], values)
            found[f"{values} outputs, each with a bias of {bias}"] = tilt / values, (2 - tilt) / values
    for share in (0.002, 0.03, 0.4):
        exposed = np.array([share, 0.0, *np.full(50, (1 - share) / 50)])
        found[f"{share:g} of the records exposed"] = exposed, exposed[[1, 0, *range(2, 52)]]
        many = np.concatenate([np.full(200, share / 200), np.zeros(200), [1 - share]])
        found[f"{share:g} exposed, each by an output of its own"] = many, np.append(np.roll(many[:-1], 200), 1 - share)
    steep = np.geomspace(1, 1e-4, 80) / np.geomspace(1, 1e-4, 80).sum()
    found["rare outputs tell more"] = steep, steep[::-1] * 0.1 + steep * 0.9
    return {name: (np.asarray(one, float), np.asarray(zero, float)) for name, (one, zero) in found.items()}


def truths(one: NDArray[np.float64], zero: NDArray[np.float64]) -> NDArray[np.float64]:
    """v, total variation, true positive rates at `RATES` and δ at `LOSSES`, all at their largest."""
    total, gap = one + zero, one - zero
    seen = total > 0
    order = np.argsort(-(gap[seen] / total[seen]))
    falses, trues = (np.concatenate([[0.0], np.cumsum(law[seen][order])]) for law in (zero, one))
    sticks = [max(np.maximum(0, a - k * b).sum() for a, b in ((one, zero), (zero, one))) for k in np.exp(LOSSES)]
    rates = np.interp(RATES, falses, trues)
    # Where outputs of one class alone come first, the curve rises at once.
    rates = np.maximum(rates, trues[falses == 0].max())
    return np.array([(gap[seen] ** 2 / total[seen]).sum() / 2, np.abs(gap).sum() / 2, *rates, *sticks])


RATES, LOSSES = (0.0, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9), (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def missed(
    law: tuple[NDArray[np.float64], NDArray[np.float64]], *, rows: tuple[int, int], runs: int, failure: float, seed: int
) -> float:
    """The share of tables whose certificate has any bound below the truth."""
    source, truth, wrong = np.random.default_rng(seed), truths(*law), 0
    symbols = np.tile(np.arange(len(law[0])), 2)
    secrets = np.repeat([1, 0], len(law[0]))
    for run in range(runs):
        counts = np.concatenate([source.multinomial(size, chances) for size, chances in zip(rows, law, strict=True)])
        found = certify(secrets, symbols, weights=counts, failure_probability=failure, seed=run)
        bounds = [found.squared, found.variation, *found.tpr_at(RATES), *found.hockey_stick(LOSSES)]
        wrong += bool((np.array(bounds) < truth * (1 - 1e-12) - 1e-12).any())
    return wrong / runs


def coverage() -> None:
    """How often a certificate with failure probability 0.1 is wrong in any of its bounds."""
    print("certificates that are wrong, of 400 each, at a failure probability of 0.1 (by chance up to 0.17)")
    for rows in ((150, 150), (2_000, 2_000), (100, 2_000)):
        found = {name: missed(law, rows=rows, runs=400, failure=0.1, seed=1) for name, law in laws().items()}
        worst = max(found, key=lambda name: found[name])
        mean = float(np.mean(list(found.values())))
        print(f"  {rows} rows by class, {len(found)} laws: at most {found[worst]:.3f} ({worst}), on average {mean:.3f}")


def class_laws() -> dict[str, tuple[list[float], NDArray[np.float64]]]:
    """Shares of the values of a secret, and the law of the output for each value."""
    source = np.random.default_rng(4)

    def mixed(kept: float, values: int) -> NDArray[np.float64]:
        return kept * np.eye(values) + (1 - kept) / values

    return {
        "nothing leaks, 1 output": ([0.5, 0.3, 0.2], np.ones((3, 1))),
        "nothing leaks, 40 outputs": ([0.6, 0.2, 0.1, 0.06, 0.04], np.full((5, 40), 1 / 40)),
        "nothing leaks, 1000 outputs": ([0.25] * 4, np.full((4, 1000), 1e-3)),
        "a value kept with 0.6": ([0.4, 0.3, 0.2, 0.1], mixed(0.6, 4)),
        "a value kept with 0.05": ([0.34, 0.33, 0.33], mixed(0.05, 3)),
        "everything leaks": ([0.5, 0.3, 0.2], np.eye(3)),
        "a rare value exposed": ([0.9, 0.08, 0.02], np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])),
        "tilted, 60 outputs": (
            [0.25] * 4,
            np.array([np.roll(np.resize([1.3, 1.0, 0.7, 1.0], 60), i) / 60 for i in range(4)]),
        ),
        "ten values at random": ([0.1] * 10, source.dirichlet(np.full(30, 0.5), size=10)),
        "fifty values, 300 outputs": ([0.02] * 50, source.dirichlet(np.full(300, 0.2), size=50)),
        "two values, a coin of 30 %": ([0.5, 0.5], np.array([[0.65, 0.35], [0.35, 0.65]])),
    }


def missed_classes(law: tuple[list[float], NDArray[np.float64]], *, rows: int, runs: int, failure: float) -> float:
    """The share of tables whose certificate for classes is below the truth, in the shares of the table."""
    source, wrong = np.random.default_rng(1), 0
    shares, chances = law
    values, outputs = chances.shape
    for _ in range(runs):
        sizes = 2 + source.multinomial(rows - 2 * values, shares)
        truth = float((sizes[:, None] * chances).max(axis=0).sum()) / rows
        counts = np.stack([source.multinomial(size, one) for size, one in zip(sizes, chances, strict=True)])
        found = certify_classes(
            np.repeat([f"value {value}" for value in range(values)], outputs),
            np.tile(np.arange(outputs), values),
            weights=counts.ravel(),
            failure_probability=failure,
        )
        wrong += found.accuracy < truth * (1 - 1e-12)
    return wrong / runs


def number_laws(rows: int) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Secret numbers in [0, 1], and the law of the output for each."""
    source = np.random.default_rng(4)
    even, skewed = np.linspace(0, 1, rows), np.sort(source.beta(1, 8, rows))
    coins = np.resize([0.0, 1.0], rows)

    def where(numbers: NDArray[np.float64], above: float, high: list[float], low: list[float]) -> NDArray[np.float64]:
        return np.where((numbers > above)[:, None], [high], [low])

    near = np.exp(-0.5 * ((even[:, None] - np.linspace(0, 1, 12)) / 0.2) ** 2)
    return {
        "independent, 1 output": (even, np.ones((rows, 1))),
        "independent, 100 outputs": (skewed, np.full((rows, 100), 0.01)),
        "a step": (even, where(even, 0.5, [0.7, 0.2, 0.1], [0.1, 0.2, 0.7])),
        "a slight step": (skewed, where(skewed, 0.1, [0.52, 0.48], [0.48, 0.52])),
        "a rare output tells all": (skewed, where(skewed, 0.4, [0.0, 0.0, 1.0], [0.5, 0.5, 0.0])),
        "rounded": (even, np.eye(10)[np.minimum(9, (10 * even).astype(int))]),
        "rounded after noise": (even, near / near.sum(axis=1, keepdims=True)),
        "two numbers": (coins, where(coins, 0.5, [0.65, 0.35], [0.35, 0.65])),
        "one far away": (
            np.append(0.01 * even[:-1], 1.0),
            np.append(np.full((rows - 1, 2), [[1.0, 0.0]]), [[0.0, 1.0]], axis=0),
        ),
    }


def missed_numbers(law: tuple[NDArray[np.float64], NDArray[np.float64]], *, runs: int, failure: float) -> float:
    """The share of tables whose limit for R² is below the truth, for the numbers of the table."""
    source, wrong = np.random.default_rng(1), 0
    numbers, chances = law
    edges = np.cumsum(chances, axis=1)[:, :-1]
    means = (chances * numbers[:, None]).sum(axis=0) / chances.sum(axis=0)
    truth = float(chances.mean(axis=0) @ (means - numbers.mean()) ** 2 / numbers.var())
    for _ in range(runs):
        outputs = (source.random(len(numbers))[:, None] > edges).sum(axis=1)
        found = certify_number(numbers, outputs, secret_range=(0, 1), failure_probability=failure)
        wrong += found.explained < truth * (1 - 1e-12)
    return wrong / runs


def guess_coverage() -> None:
    """How often certificates for several values and for numbers with failure probability 0.1 are wrong."""
    for rows in (300, 3_000):
        classes = {name: missed_classes(law, rows=rows, runs=400, failure=0.1) for name, law in class_laws().items()}
        numbers = {name: missed_numbers(law, runs=400, failure=0.1) for name, law in number_laws(rows).items()}
        for what, found in (("several values", classes), ("numbers", numbers)):
            worst = max(found, key=lambda name: found[name])
            print(f"  {what}, {rows} rows, {len(found)} laws: at most {found[worst]:.3f} ({worst})")


def low_rates() -> None:
    """The largest true positive rate at a low false positive rate, beside the truth."""
    print("true positive rate at 0.1 % false positives: certified, by v and total variation alone, truth")
    for values, bias, rows in ((1000, 0.0, 10**6), (2, 0.3, 10**5), (60, 0.3, 10**5)):
        source, secrets = np.random.default_rng(0), np.arange(rows) % 2
        outputs = 2 * source.integers(0, max(1, values // 2), rows)
        outputs += source.random(rows) < (1 + bias * (2 * secrets - 1)) / 2
        found = certify(secrets, outputs)
        alone = leakage.roc_upper(0.001, squared=found.squared, advantage=found.variation)
        truth = 0.001 * (1 + bias) / (1 - bias)
        print(
            f"  {rows:9d} rows, {values:4d} outputs, bias {bias}: {found.tpr_at(0.001):.4f}, {alone:.4f}, {truth:.4f}"
        )


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
    low_rates()
    coverage()
    guess_coverage()
    of_vectors()


if __name__ == "__main__":
    main()
