"""What the default chooses, beside the best of all mechanisms, constants and numbers of teachers in hindsight.

    python benchmarks/choice.py [--data FOLDER] [--epsilon 1 …]

Blobs and digits need no data; the folder may hold mnist/*.gz, fashion-mnist/*.gz and adult.tar.xz. Ridge classifiers
vote on 2000 public records at most, once for each number of teachers, and all mechanisms are computed from these votes.
The measure is the number of flawless answers that tell a learner as much as the answers given: the square of right
minus wrong ones, divided by all. Classes are named. The default is a mean over the noise of its estimate; it pays for
the number of records and that estimate. What is best in hindsight pays for neither, and knows all public labels.

The constants of the default were fitted to these data and to others: features of CIFAR-10 and SST-2, and artificial
classes. Best is what is best of all that the default compares, which prefers what can be checked without the library.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA

from tacit.learning.choice import choice, estimate_cost, number_of_teachers, prospects
from tacit.learning.columns import Columns
from tacit.learning.councils import councils
from tacit.learning.held_out import AgreementEstimate, low_distance
from tacit.learning.mechanisms.candidates import Candidate, Wanted, flawless
from tacit.learning.mechanisms.cases import margins, possible_margins
from tacit.learning.mechanisms.expectations import Votes
from tacit.learning.mechanisms.registry import KINDS
from tacit.learning.mechanisms.session import one_distance
from tacit.learning.shares import Shares
from tacit.reproduce.data import adult_tables, mnist_rows

DELTA, MOST, FEWEST = 1e-5, 2000, 20
NOISE = (np.arange(20) + 0.5) / 20
"""The noise of the estimate, as shares of it that are smaller."""
AT_ONCE = 2 * 10**7
"""Scores of teachers that are held at once."""


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


def votes_by(private: Any, y: Any, public: Any) -> dict[int, Any]:
    """Counts of votes, for each number of teachers that the default considers."""
    classes = int(y.max()) + 1
    numbers = [council.teachers for council in councils(len(private), classes) if council.teachers >= FEWEST]
    return {number: counted(private, y, public, teachers=number, classes=classes) for number in numbers}


def counted(private: Any, y: Any, public: Any, *, teachers: int, classes: int) -> Any:
    """Counts of the votes of `RidgeClassifier()`, for many teachers at a time."""
    order = np.random.default_rng([0, teachers]).permutation(len(private))
    size, more = divmod(len(private), teachers)
    counts, width = np.zeros((len(public), classes), dtype=np.int64), private.shape[1]
    larger, others = order[: more * (size + 1)].reshape(more, size + 1), order[more * (size + 1) :].reshape(-1, size)
    step = max(1, AT_ONCE // (len(public) * classes))
    for rows in (part[at : at + step] for part in (larger, others) for at in range(0, len(part), step)):
        x, signs = private[rows], np.where(y[rows][:, :, None] == np.arange(classes), 1.0, -1.0)
        centre, mean = x.mean(axis=1, keepdims=True), signs.mean(axis=1, keepdims=True)
        x, across = x - centre, (x - centre).transpose(0, 2, 1)
        if x.shape[1] < width:
            weights = across @ np.linalg.solve(x @ across + np.eye(x.shape[1]), signs - mean)
        else:
            weights = np.linalg.solve(across @ x + np.eye(width), across @ (signs - mean))
        known = np.where((signs > 0).any(axis=1), (mean - centre @ weights)[:, 0], -np.inf)
        scores = public @ weights.transpose(1, 0, 2).reshape(width, -1)
        votes = (scores.reshape(len(public), len(rows), classes) + known).argmax(axis=2)
        counts += np.stack([(votes == label).sum(axis=1) for label in range(classes)], axis=1)
    return counts


def value(candidate: Candidate) -> float:
    """In the first case, which is that of the real votes."""
    return flawless(*candidate.expected[0])


def compared(found: dict[int, Any], truth: Any, *, records: int, epsilon: float) -> str:
    """One line."""
    classes, points = next(iter(found.values())).shape[1], len(truth)
    budget, delta = Shares(epsilon=epsilon, delta=DELTA, counting=True).left
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
            if kind.considered(wanted, proposals=False):
                yield from ((kind.name, candidate) for candidate in kind.candidates(wanted))

    cases, lead = margins(None), possible_margins(None)
    best = max(
        (value(item), teachers, name, item.queries, item.refusals or 0)
        for teachers in found
        for name, item in candidates(teachers, epsilon, cases)
    )
    meant = number_of_teachers(prospects("auto", epsilon=budget, records=records, lead=cases, **common))
    teachers = min(found, key=lambda number: abs(number - meant))
    unpaid = choice("auto", epsilon=budget, teachers=teachers, lead=lead, **common)
    cost, names = estimate_cost(unpaid, epsilon=budget, teachers=teachers), []
    exact = low_distance([one_distance(row) for row in found[teachers]])
    paid: list[AgreementEstimate | None] = [
        AgreementEstimate(value=exact + round(extra / cost), epsilon=cost, scale=1 / cost, teachers=teachers)
        for extra in (stats.laplace.ppf(NOISE) if cost else ())
    ]
    worth = {(item.queries, repr(item.made())): value(item) for _, item in candidates(teachers, budget - cost, lead)}
    got = []
    for estimate in paid or [None]:
        chosen = choice("auto", epsilon=budget - cost, teachers=teachers, lead=lead, estimate=estimate, **common)
        names.append(chosen.reason.partition(", for")[0])
        got.append(worth[chosen.queries, repr(chosen.mechanism)])
    share = f"{100 * np.mean(got) / best[0]:.0f} %" if best[0] >= 1 else "nothing to be learned with any"
    shown = f"{np.mean(got):.0f} of {best[0]:.0f} ({share})"
    hindsight = f"{best[1]} teachers, {best[2]}, {best[3]} queries" + f", T = {best[4]}" * bool(best[4])
    mostly = max(names, key=names.count)
    return f"ε = {epsilon:g}: {shown}; default {teachers} teachers, estimate {cost:.2g}, {mostly}; best {hindsight}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 1.0, 4.0])
    options = parser.parse_args()
    for name, private, y, public, truth in tasks(options.data):
        found = votes_by(np.asarray(private), y, np.asarray(public))
        for epsilon in options.epsilon:
            print(f"{name}, {compared(found, truth, records=len(private), epsilon=epsilon)}", flush=True)


if __name__ == "__main__":
    main()
