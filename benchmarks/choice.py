"""What the default chooses, beside the best of all mechanisms, constants and numbers of teachers in hindsight.

    python benchmarks/choice.py [--data FOLDER] [--epsilon 1 …]

Blobs and digits need no data; the folder may hold mnist/*.gz, fashion-mnist/*.gz and adult.tar.xz. Ridge classifiers of
10 to 1000 records each vote on 2000 public records at most, once for each number of teachers, and all mechanisms are
computed from these votes. The measure is the number of flawless answers that tell a learner as much as the answers
given: the square of right minus wrong ones, divided by all. The default is drawn five times, with fresh noise of its
estimate; it pays for the number of records, the classes and that estimate, and what is best in hindsight for none.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier

from tacit.learning.choice import (
    choice,
    estimate_cost,
    margins,
    number_of_teachers,
    possible_margins,
    prospects,
)
from tacit.learning.columns import Columns
from tacit.learning.held_out import private_agreement
from tacit.learning.mechanisms.candidates import Candidate, Wanted
from tacit.learning.mechanisms.expectations import Votes
from tacit.learning.mechanisms.registry import KINDS
from tacit.learning.shares import Shares
from tacit.reproduce.data import adult_tables, mnist_rows

DELTA, DRAWS, MOST = 1e-5, 5, 2000
SIZES = (10, 15, 30, 60, 125, 250, 500, 1000)


def tasks(folder: Path | None) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Name, private records and labels, public records and labels."""
    points, y = make_blobs(11_000, centers=[[0, 0], [20, 0], [0, 20], [20, 20]], random_state=0)
    yield "blobs", points[:9000], y[:9000], points[9000:], y[9000:]
    points, y = load_digits(return_X_y=True)
    yield "digits", points[:1100] / 16, y[:1100], points[1100:] / 16, y[1100:]
    if folder is None:
        return
    for name in ("mnist", "fashion-mnist"):
        if (folder / name).is_dir():
            private, y, public, truth = mnist_rows(folder / name)
            seen = PCA(50, random_state=0).fit(public)
            yield name, seen.transform(private), y, seen.transform(public[:MOST]), truth[:MOST]
    if (folder / "adult.tar.xz").exists():
        (people, y), (others, truth) = adult_tables(folder / "adult.tar.xz")
        columns = Columns().fit(others)
        yield "adult", columns.transform(people), y, columns.transform(others)[:MOST], truth[:MOST]


def councils(private: Any, y: Any, public: Any) -> dict[int, Any]:
    """Counts of votes by the number of teachers."""
    found, classes, generator = {}, int(y.max()) + 1, np.random.default_rng(0)
    for size in SIZES:
        teachers, order = len(private) // size, generator.permutation(len(private))
        if teachers < 10:
            break
        counts = np.zeros((len(public), classes), dtype=np.int64)
        for rows in np.array_split(order, teachers):
            votes = (
                y[rows[0]] if len(set(y[rows])) == 1 else RidgeClassifier().fit(private[rows], y[rows]).predict(public)
            )
            counts[np.arange(len(public)), votes] += 1
        found[teachers] = counts
    return found


def value(candidate: Candidate) -> float:
    """In the first case, which is that of the real votes."""
    answers, right = candidate.expected[0]
    return max(0.0, 2 * right - answers) ** 2 / max(1.0, answers)


def compared(found: dict[int, Any], truth: Any, *, records: int, epsilon: float) -> str:
    """One line."""
    classes, points = next(iter(found.values())).shape[1], len(truth)
    budget, delta = Shares(epsilon=epsilon, delta=DELTA, counting=True, finding=True).left
    common = {"delta": delta, "points": points, "queries": None, "classes": classes}

    def votes(teachers: int, lead: Any) -> tuple[Votes, ...]:
        counts = found[teachers]
        second, first = np.sort(counts, axis=1).T[-2:]
        ahead = np.where(counts.argmax(axis=1) == truth, first - second, second - first).astype(np.float64)
        thought = (teachers - 2 * np.rint(teachers * (1 - np.array(case)) / 2) for case in lead)
        return tuple(Votes(lead=each, teachers=teachers, classes=classes) for each in (ahead, *thought))

    def candidates(teachers: int, spent: float, lead: Any) -> Iterator[tuple[str, Candidate]]:
        wanted = Wanted(
            epsilon=spent, delta=delta, points=points, queries=None, refusals=None, counts=False,
            votes=votes(teachers, lead),
        )  # fmt: skip
        for kind in KINDS.values():
            if kind.compared and kind.available(spent, delta, proposals=False):
                yield from ((kind.name, candidate) for candidate in kind.candidates(wanted))

    cases, lead = margins(None), possible_margins(None)
    best = max(
        (value(item), teachers, name, item.queries, item.refusals or 0)
        for teachers in found
        for name, item in candidates(teachers, epsilon, cases)
    )
    meant = number_of_teachers(prospects("auto", epsilon=budget, records=records, lead=cases, **common))
    teachers = min(found, key=lambda number: abs(math.log(number / meant)))
    unpaid = choice("auto", epsilon=budget, teachers=teachers, lead=lead, **common)
    cost, got, names = estimate_cost(unpaid, epsilon=budget, teachers=teachers), [], []
    for _ in range(DRAWS):
        estimate = private_agreement(found[teachers], teachers=teachers, epsilon=cost) if cost else None
        chosen = choice("auto", epsilon=budget - cost, teachers=teachers, lead=lead, estimate=estimate, **common)
        names.append(chosen.reason.partition(", for")[0])
        made = chosen.mechanism
        got += [
            value(item)
            for name, item in candidates(teachers, budget - cost, lead)
            if item.queries == chosen.queries and repr(item.made()) == repr(made)
        ][:1]
    shown = f"{np.mean(got):.0f} of {best[0]:.0f} ({100 * np.mean(got) / max(best[0], 1e-9):.0f} %)"
    hindsight = f"{best[1]} teachers, {best[2]}, {best[3]} queries" + f", T = {best[4]}" * bool(best[4])
    return f"ε = {epsilon:g}: {shown}; default {teachers} teachers, {max(names, key=names.count)}; best {hindsight}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 1.0, 4.0])
    options = parser.parse_args()
    for name, private, y, public, truth in tasks(options.data):
        found = councils(private, y, public)
        for epsilon in options.epsilon:
            print(f"{name}, {compared(found, truth, records=len(private), epsilon=epsilon)}", flush=True)


if __name__ == "__main__":
    main()
