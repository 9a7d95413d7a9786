"""`make bench`: what certificates cost, from 1e5 to 1e7 rows, against named baselines in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.audit import certify


def seconds(action: Callable[[], object]) -> float:
    """The shorter one of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def naive_smoothed(secret: NDArray[np.int64], output: NDArray[np.float64], noise: float) -> float:
    """v of the kernel estimates by definition: every row at every point of a grid."""
    y = np.arange(output.min() - 8 * noise, output.max() + 8 * noise, noise / 8)
    one, zero = (stats.norm.pdf(y[:, None], output[secret == s][None], noise).mean(axis=1) for s in (1, 0))
    return float(((one - zero) ** 2 / (one + zero)).sum() * noise / 16)


def main() -> None:
    rng = np.random.default_rng(0)
    most = 10**7
    secret, symbol = rng.integers(0, 2, most), rng.integers(0, 1000, most)
    score = rng.normal(size=most)
    few = 20_000
    by_definition = seconds(lambda: naive_smoothed(secret[:few], score[:few], 0.1)) / few
    sorting = seconds(lambda: np.sort(score)) / most
    for name, output, options in (
        ("discrete, 1000 values", symbol, {}),
        ("released with noise 0.1", score, {"noise": 0.1}),
        ("monotone", score, {"method": "monotone"}),
    ):
        first = 0.0
        for rows in (10**5, 10**6, most):
            a, b = secret[:rows], output[:rows]
            taken = seconds(lambda a=a, b=b, options=options: certify(a, b, delta=0.05, **options))  # type: ignore[misc]
            first = first or taken / rows
            print(
                f"{name:24} {rows:9d} rows {taken:7.2f} s   {taken / rows / first:5.2f} × the cost a row of 100000, "
                f"{taken / rows / sorting:5.1f} × sorting the column"
            )
        if options == {"noise": 0.1}:
            print(f"{'':24} {by_definition / (taken / rows):9.0f} × faster a row than by definition, on {few} rows")


if __name__ == "__main__":
    main()
