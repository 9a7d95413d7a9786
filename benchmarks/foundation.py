"""`make bench`: what the foundation costs, as ratios against a named baseline in the same run."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from tacit.theory.confidence import bounded_mean_upper
from tacit.theory.estimation import gallery_identification


def seconds(action: Callable[[], object], *, repeats: int) -> float:
    """The median time of an action."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2]


def run_python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def naive_identification(features: np.ndarray, *, sigma: float, draws: int, seed: int) -> float:
    """One release at a time, one candidate at a time: the statement written down."""
    generator = np.random.default_rng(seed)
    total = 0.0
    for _ in range(draws):
        x = features[generator.integers(len(features))] + sigma * generator.standard_normal(features.shape[1])
        logs = [-float(np.sum((x - a) ** 2)) / (2 * sigma**2) for a in features]
        top = max(logs)
        total += 1 / sum(math.exp(log - top) for log in logs)
    return bounded_mean_upper(total / draws, count=draws, failure_probability=0.001)


def main() -> None:
    bare = seconds(run_python("pass"), repeats=9)
    for name, code in (("import tacit", "import tacit"), ("import numpy", "import numpy")):
        taken = seconds(run_python(code), repeats=9)
        print(f"{name:34} {taken:8.3f} s   {taken / bare:6.1f} × a bare interpreter")
    features = np.random.default_rng(0).normal(size=(500, 64))
    draws = 100
    naive = seconds(lambda: naive_identification(features, sigma=3.0, draws=draws, seed=0), repeats=3) / draws
    many = 20_000

    def ours() -> float:
        return gallery_identification(features, sigma=3.0, draws=many, failure_probability=0.001, seed=0)

    taken = seconds(ours, repeats=3) / many
    print(
        f"{'gallery_identification, a release':34} {taken:8.2e} s   {naive / taken:6.1f} × faster than its naive twin"
    )


if __name__ == "__main__":
    main()
