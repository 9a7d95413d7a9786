"""`tacit reproduce mechanisms`: every mechanism on the same votes and the same budget, for councils of four sizes.

The constants of a mechanism are chosen by the votes expected beforehand, never by the actual ones. Queries are the
public records in the order of their file, the same for all. The student is another learner of the teachers' kind,
fitted only to the answers, so that it shows what these are worth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .. import __version__
from ..core import validate
from ..core.guarantee import Comparison, Guarantee
from ..core.wording import counted
from ..learning.choice import Choice, choice
from ..learning.mechanisms.cases import margins
from ..learning.students.fitting import fitted
from ..learning.study.publication import promise_verdict
from ..report import BROKEN, FINE, WEAK, Figure, Report, Table, Verdict, figures
from ..runtime import run_folder
from .councils import LOADERS, SPLITS, CouncilTask, Data, answers, mean_of, percent, released, vote_counts
from .data import data_folder
from .mapl import DELTA, MECHANISMS, SECONDS, SETTINGS, Setting, usual
from .results import write_results

_Array = NDArray[Any]
_Advance = Callable[[str], None]
_Row = dict[str, Any]

EPSILONS = (0.5, 1.0, 2.0, 4.0)
TEACHERS = (100, 250, 500, 1000)
EXPECTED = {
    "mnist": {100: 0.97, 250: 0.95, 500: 0.93, 1000: 0.87},
    "adult": {100: 0.82, 250: 0.80, 500: 0.78, 1000: 0.77},
}
"""The share of teachers that are right, by their number; constants are chosen by it. It was measured on a sixth of the
training file, with teachers on chunks of the same size from the rest, and rounded down."""
_SECONDS_PER_RELEASE = 1.0
COMPARED = ("svt-faithful", "svt", "svt-adaptive", "stable", "gnmax", "gnmax-winners", "confident-gnmax", "gate")


@dataclass(frozen=True, kw_only=True)
class Task(CouncilTask):
    """Which data set, and how much to run.

    Attributes
    ----------
    councils
        How many councils of each size.
    teachers
        The sizes.
    """

    epsilons: tuple[float, ...] = EPSILONS
    councils: int = 3
    teachers: tuple[int, ...] = TEACHERS


def steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes, on two cores: reading, and each council's votes and releases."""
    known = SECONDS.get(task.name, SECONDS["adult"])
    releases = [known.get(name, _SECONDS_PER_RELEASE) for name in COMPARED] * len(task.epsilons)
    return [0.0, *[known["votes"], *releases] * (len(task.teachers) * task.councils)]


def reproduce(task: Task, *, advance: _Advance = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it; `advance` is called as each step begins."""
    setting = SETTINGS[
        validate.choice("DATA", task.name, tuple(EXPECTED), remedy="see tacit reproduce mechanisms --help")
    ]()
    validate.whole("--councils", task.councils, at_least=1, remedy="leave it out for three")
    for count in task.teachers:
        validate.whole("--teachers", count, at_least=2, remedy="leave it out for 100 to 1000")
    advance("reading the data")
    data = LOADERS[task.name](data_folder(task.data))[SPLITS[0]]
    run_folder.claim(task.out, _mark(task, setting, data), resume=task.resume)
    rows = list(_rows(task, setting, data, advance))
    report = _report(task, setting, data, rows)
    write_results(report, task.out, name=f"mechanisms-{task.name}", heading=setting.title)
    return report


def _mark(task: Task, setting: Setting, data: Data) -> dict[str, object]:
    how = re.sub(r" at 0x\w+", "", repr((setting.estimator, EXPECTED[task.name])))
    return {
        "tacit": __version__,
        "task": f"mechanisms {task.name}",
        **data.mark(),
        "setting": run_folder.digest(how.encode()),
    }


def _rows(task: Task, setting: Setting, data: Data, advance: _Advance) -> Iterator[_Row]:
    for teachers in task.teachers:
        for council in range(task.councils):
            where = f"{teachers} teachers, council {council + 1} of {task.councils}"
            advance(f"{where}: they vote")
            votes = vote_counts(
                data,
                setting.estimator,
                teachers,
                council=council,
                path=task.out / f"votes-{teachers}-{council}.npy",
                engine=task.engine,
            )
            plurality = float(np.mean(np.argmax(votes, axis=1) == data.truth))
            for epsilon in task.epsilons:
                for name in COMPARED:
                    advance(f"{where}: {MECHANISMS[name]}, ε = {epsilon:g}")
                    path = task.out / f"{teachers}-{council}-{name}-{epsilon:g}.json"
                    chosen = _chosen(task, data, teachers, name, epsilon)
                    found = released(path, partial(_result, setting, data, votes, chosen), chosen.mechanism)
                    yield {
                        "teachers": teachers,
                        "council": council,
                        "plurality": plurality,
                        "mechanism": name,
                        "epsilon": epsilon,
                        **found,
                    }


def _chosen(task: Task, data: Data, teachers: int, name: str, epsilon: float) -> Choice:
    known = EXPECTED[task.name]
    nearest = min(known, key=lambda size: abs(math.log(size / teachers)))
    return choice(
        name,
        epsilon=epsilon,
        delta=DELTA,
        teachers=teachers,
        points=len(data.public),
        queries=None,
        lead=margins(known[nearest]),
        classes=data.classes,
    )


def _result(setting: Setting, data: Data, votes: _Array, chosen: Choice) -> _Row:
    """Return one release and its student: queries asked and answered, correct labels, the student's accuracy."""
    release = answers(chosen.mechanism, votes, range(chosen.queries))
    known = [(place, answer) for place, answer in zip(*release.values(), strict=True) if answer is not None]
    found: _Row = {"asked": len(release["points"]), "answered": len(known), "labels": None, "accuracy": None}
    if known:
        places, labels = (np.array(column) for column in zip(*known, strict=True))
        student = fitted(clone(setting.estimator), data.public_features[places], labels, None)
        found["labels"] = float(np.mean(labels == data.truth[places]))
        found["accuracy"] = float(np.mean(student.predict(data.tested_features) == data.tested_truth))
    return found


def _summarised(rows: Sequence[_Row], teachers: int, epsilon: float, name: str) -> _Row:
    """Return means over the councils; shares are None if no query was answered."""
    found = [row for row in rows if (row["teachers"], row["epsilon"], row["mechanism"]) == (teachers, epsilon, name)]
    means = {key: mean_of(found, key) for key in ("plurality", "asked", "answered", "labels", "accuracy")}
    return {"teachers": teachers, "epsilon": epsilon, "mechanism": name, **means}


def _report(task: Task, setting: Setting, data: Data, rows: list[_Row]) -> Report:
    means = [
        _summarised(rows, teachers, epsilon, name)
        for teachers in task.teachers
        for epsilon in task.epsilons
        for name in COMPARED
    ]
    shown = {f"{teachers}": _figure(setting, task, means, teachers) for teachers in task.teachers}
    guarantees, winners = (
        [_chosen(task, data, task.teachers[0], name, epsilon).mechanism.guarantee for epsilon in task.epsilons]
        for name in ("gnmax", "gnmax-winners")
    )
    return Report(
        command=f"reproduce mechanisms {task.name}",
        title=f"Mechanisms on the same votes, on {setting.title}",
        summary=_summary(task, data, means),
        comparisons=tuple(Comparison(guarantee=guarantee) for guarantee in (*guarantees, *winners)),
        verdicts=_verdicts(task, means, guarantees),
        opening=tuple(shown.values())[:1],
        figures=tuple(shown.values())[1:],
        tables=(_table(means),),
        detail={
            "means": means,
            "rows": rows,
            "figures": list(shown),
            "setting": {
                "delta": DELTA,
                "councils": task.councils,
                "expected": {str(size): share for size, share in EXPECTED[task.name].items()},
            },
        },
    )


def _verdicts(task: Task, means: list[_Row], guarantees: list[Guarantee]) -> tuple[Verdict, ...]:
    """Return the cards: the promise at one budget, the gate against GNMax, and the sparse vector as printed."""
    epsilon = usual(task.epsilons)
    promise = promise_verdict(guarantees[task.epsilons.index(epsilon)], remark="All mechanisms have this budget.")
    pairs = _pairs(task, means)
    wins = sum(_wins(*pair[2:]) for pair in pairs)
    printed = [row for row in means if row["mechanism"] == "svt-faithful"]
    answering = sum(row["labels"] is not None for row in printed)
    return (
        replace(promise, about="What the answers give away about one record"),
        Verdict(
            level=FINE if 2 * wins >= len(pairs) else WEAK,
            about="The gate against GNMax",
            proven=f"ahead in {wins} of {len(pairs)} cases",
            measured=True,
            reason="Ahead: it answers more queries, and at least as large a share of them correctly.",
        ),
        Verdict(
            level=FINE if answering == len(printed) else WEAK if answering else BROKEN,
            about=f"The {MECHANISMS['svt-faithful']}",
            proven=f"answers in {answering} of {len(printed)} cases",
            measured=True,
            reason="With the constants that the paper prints.",
        ),
    )


def _pairs(task: Task, means: list[_Row], name: str = "gate") -> list[tuple[int, float, _Row, _Row]]:
    """Return the gate, or another mechanism, and GNMax for each number of teachers and budget."""
    found = {(row["teachers"], row["epsilon"], row["mechanism"]): row for row in means}
    return [
        (teachers, epsilon, found[teachers, epsilon, name], found[teachers, epsilon, "gnmax"])
        for teachers in task.teachers
        for epsilon in task.epsilons
    ]


def _summary(task: Task, data: Data, means: list[_Row]) -> tuple[str, ...]:
    first = (
        f"{len(data.private)} private records; {len(data.public)} public records, asked about in the order of their "
        f"file; {len(data.tested)} records to test the student on; δ = {DELTA:g}; the accounting does not use the "
        f"data. Means over {counted(task.councils, 'council')} of each size."
    )
    pairs, by_winners = _pairs(task, means), _pairs(task, means, "gnmax-winners")
    wins = [_case(*pair) for pair in pairs if _wins(*pair[2:])]
    losses: dict[int, list[str]] = {}
    for teachers, epsilon, gate, noisy in pairs:
        if not _wins(gate, noisy):
            losses.setdefault(teachers, []).append(f"{epsilon:g}")
    lost = [f"{teachers} teachers at ε = {', '.join(budgets)}" for teachers, budgets in losses.items()]
    return (
        first,
        (
            f"In {len(wins)} of {len(pairs)} cases the gate answers more queries than GNMax, and at least as large a "
            f"share of them correctly{': ' + '; '.join(wins) if wins else ''}."
        ),
        f"In the others it answers fewer, or is right less often{': ' + '; '.join(lost) if lost else ''}.",
        (
            "The gate's student is better than GNMax's in "
            f"{sum((gate['accuracy'] or 0) > noisy['accuracy'] for *_, gate, noisy in pairs)} cases."
        ),
        (
            "Charged for winners alone, which is proven for up to 2000 queries, GNMax names the true class of more "
            f"queries in {sum(_right(one) > _right(all_counts) for *_, one, all_counts in by_winners)} of "
            f"{len(by_winners)} cases."
        ),
    )


def _right(row: _Row) -> float:
    """Return the number of answers that are true."""
    return 0.0 if row["labels"] is None else float(row["answered"] * row["labels"])


def _wins(gate: _Row, noisy: _Row) -> bool:
    return gate["labels"] is not None and gate["answered"] > noisy["answered"] and gate["labels"] >= noisy["labels"]


def _case(teachers: int, epsilon: float, gate: _Row, noisy: _Row) -> str:
    return (
        f"{teachers} teachers at ε = {epsilon:g}, {gate['answered']:.0f} answers against {noisy['answered']:.0f} "
        f"({gate['answered'] / noisy['answered']:.2g} ×)"
    )


def _table(means: list[_Row]) -> Table:
    return Table(
        title="Queries answered, labels right, student",
        columns=("teachers", "ε", *(MECHANISMS[name] for name in COMPARED)),
        rows=tuple(
            (
                f"{teachers}",
                f"{epsilon:g}",
                *(
                    _cell(row)
                    for name in COMPARED
                    for row in means
                    if (row["teachers"], row["epsilon"], row["mechanism"]) == (teachers, epsilon, name)
                ),
            )
            for teachers, epsilon in dict.fromkeys((row["teachers"], row["epsilon"]) for row in means)
        ),
        note="Queries answered, the share of answers that are true, and in brackets the accuracy of a student that "
        "learned only from them. Mechanisms that refuse answer the easier queries, which explains part of their "
        "accuracy; a student may learn more from many doubtful answers than from a few certain ones.",
    )


def _cell(row: _Row) -> str:
    if row["labels"] is None:
        return "0"
    return f"{row['answered']:.0f} at {percent(row['labels'])} ({percent(row['accuracy'])})"


def _figure(setting: Setting, task: Task, means: list[_Row], teachers: int) -> Figure:
    found = {
        (row["mechanism"], row["epsilon"]): row["answered"] * row["labels"]
        for row in means
        if row["teachers"] == teachers and row["labels"] is not None
    }
    lines = {MECHANISMS[name]: [found.get((name, epsilon)) for epsilon in task.epsilons] for name in COMPARED}
    plurality = next(row["plurality"] for row in means if row["teachers"] == teachers)
    return Figure(
        title=f"Correct answers of {teachers} teachers",
        caption=f"Public records of {setting.title} that were answered with their true class, against the privacy loss "
        f"ε; no point where no query was answered. The plurality of {teachers} teachers is right on "
        f"{percent(plurality)} of all records.",
        alternative="; ".join(
            f"{label}: "
            + ", ".join(f"{value or 0:.0f} at {at:g}" for at, value in zip(task.epsilons, values, strict=True))
            for label, values in lines.items()
        ),
        svg=figures.comparison(task.epsilons, lines, x_label="privacy loss ε", y_label="correct answers", counted=True),
    )
