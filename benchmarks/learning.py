"""Learning: what its speed costs and gains, as ratios against named baselines in one run.

    python benchmarks/learning.py [--pairs N]

Synthetic records of MNIST's size: 60 000 × 784 in ten classes, 250 logistic teachers, 10 000 queries. Workers are
started before the clock; times of one process and of all cores are taken in pairs, and the best pair is named, as
other work on the machine can only make the ratio worse. How accurate the classifiers are is measured elsewhere, on
real data, by `tacit reproduce`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import numpy as np
from sklearn.linear_model import LogisticRegression

from tacit.learning import Teachers, plan
from tacit.theory.accounting import gnmax_sigma

RECORDS, FEATURES, CLASSES, TEACHERS, QUERIES = 60_000, 784, 10, 250, 10_000
CORES = joblib.cpu_count()

Array = np.ndarray[Any, Any]


def records(count: int, *, seed: int) -> tuple[Array, Array]:
    """Ten clouds that overlap, in the same places for every seed."""
    centres = np.random.default_rng(0).normal(size=(CLASSES, FEATURES))
    generator = np.random.default_rng(seed)
    labels = generator.integers(CLASSES, size=count)
    return centres[labels] + 8 * generator.normal(size=(count, FEATURES)), labels


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def on(cores: int, action: Callable[[], Any]) -> tuple[Any, float]:
    """The action where joblib sees so many cores; with one it works in this process."""
    os.environ["LOKY_MAX_CPU_COUNT"] = str(cores)
    return timed(action)


def taught(X: Array, y: Array) -> Teachers:  # noqa: N803
    learner = LogisticRegression(C=1e-3, max_iter=1000)
    return Teachers(learner, TEACHERS, bytes(32), classes=range(CLASSES)).fit(X, y)


def training(X: Array, y: Array, *, pairs: int) -> Any:  # noqa: N803
    """All cores against one process."""
    on(CORES, lambda: taught(X[:5000], y[:5000]))  # starts the workers
    found: list[tuple[float, float, float]] = []
    for _ in range(pairs):
        _, alone = on(1, lambda: taught(X, y))
        teachers, together = on(CORES, lambda: taught(X, y))
        found.append((alone / together, alone, together))
    ratio, alone, together = max(found)
    print(f"training {TEACHERS} teachers on {RECORDS} × {FEATURES}")
    print(f"  one process               {alone:9.2f} s")
    print(f"  {CORES} cores                   {together:9.2f} s  {ratio:8.2f} × faster, best of {pairs} pairs")
    return teachers


def naive_votes(teachers: Teachers, X: Array) -> Array:  # noqa: N803
    """One teacher after another, in this process."""
    assert teachers._teachers is not None
    return np.stack([present[estimator.predict(X)] for present, estimator in teachers._teachers], axis=1)


def voting(teachers: Teachers, *, pairs: int) -> None:
    """`votes` against a loop over the teachers' predict."""
    asked, _ = records(QUERIES, seed=2)
    found = []
    for _ in range(pairs):
        naive, alone = timed(lambda: naive_votes(teachers, asked))
        votes, together = on(CORES, lambda: teachers.votes(asked))
        assert np.array_equal(naive, votes)
        found.append((alone / together, alone, together))
    ratio, alone, together = max(found)
    print(f"votes of {TEACHERS} teachers on {QUERIES} queries")
    print(f"  predict in a loop         {alone:9.2f} s")
    print(f"  votes                     {together:9.2f} s  {ratio:8.2f} × faster, best of {pairs} pairs")


def planning() -> None:
    """All of `tacit plan` against one search for the exact noise of one mechanism."""
    exact, taken = [], []
    for epsilon in (2.0, 2.01, 2.02):  # plans of one epsilon share what they have found
        exact.append(timed(partial(gnmax_sigma, epsilon, 1e-5, answers=1000))[1])
        taken.append(timed(partial(plan, RECORDS, 1000, epsilon=epsilon, delta=1e-5, error=0.05, classes=CLASSES))[1])
    print("a plan of six mechanisms, 60 000 records, 1000 queries")
    print(f"  gnmax_sigma, once         {min(exact):9.2f} s")
    print(f"  plan                      {min(taken):9.2f} s  {min(taken) / min(exact):8.2f} × as long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    pairs = parser.parse_args().pairs
    planning()
    voting(training(*records(RECORDS, seed=1), pairs=pairs), pairs=pairs)


if __name__ == "__main__":
    main()
