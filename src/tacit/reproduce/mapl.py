"""`tacit reproduce mapl`: what private answers are worth on MNIST, Fashion-MNIST and Adult, next to published numbers.

All constants were fixed on parts of the training sets before the test sets were used. Votes and the result of every
release are files in the output folder, so that a run that was killed continues with `resume`. The folder holds votes of
private records: these are public data sets, but anything else would have to stay private.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline

from .. import __version__
from ..core import validate
from ..core.guarantee import Comparison, Guarantee
from ..core.wording import counted
from ..learning import (
    KernelRidgeClassifier,
    MomentClassifier,
    NetworkClassifier,
    OrientedGradients,
    Propagated,
    VoteRegression,
    medoids,
    private_count,
)
from ..learning.assumptions import neighbours
from ..learning.choice import choice
from ..learning.mechanisms import GNMax, Mechanism, VoteQuota
from ..learning.mechanisms.cases import margins
from ..learning.mechanisms.registry import NEIGHBOURS
from ..learning.nearby import NearbyVoters, nearby_choice
from ..learning.release import Release
from ..learning.shares import Shares
from ..learning.students.fitting import UNLABELLED, fitted
from ..learning.students.images import distorted, small_convolutional
from ..learning.study.publication import promise_verdict
from ..report import BROKEN, FINE, WEAK, Figure, Report, Table, Verdict, figures
from ..runtime import run_folder
from .councils import LOADERS, SPLITS, CouncilTask, Data, answers, mean_of, percent, released, vote_counts
from .data import data_folder
from .results import write_results

_Array = NDArray[Any]
_Advance = Callable[[str], None]
_Row = dict[str, Any]

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 1.9, 4.0, 8.0)
GOOD = 0.9
"""A student is fine if it is right at least this share of the times that one without privacy is."""
RECIPE, MOMENTS, NOT_PRIVATE = "recipe", "moments", "not private"
WITHOUT_TEACHERS = (NEIGHBOURS, MOMENTS, NOT_PRIVATE)
_WHOSE = {RECIPE: "recipe's", NEIGHBOURS: "neighbours'"}
"""Of the students that the summary speaks of."""
SECONDS = {
    "mnist": {"votes": 120.0, "gate": 20.0, RECIPE: 60.0, NOT_PRIVATE: 60.0, NEIGHBOURS: 70.0, "others": 30.0},
    "adult": {"votes": 20.0, "gate": 8.0, "confident-gnmax": 6.0, "gnmax-winners": 6.0, RECIPE: 8.0, "others": 1.5},
}
"""About how long the votes of a council, and a release with its student take on two cores."""
MECHANISMS = {
    "svt-faithful": "sparse vector, as printed",
    "svt": "sparse vector, tight",
    "svt-adaptive": "sparse vector, noise chosen anew",
    "stable": "plain composition",
    "gate": "gate",
    "confident-gnmax": "Confident-GNMax",
    "gnmax": "GNMax",
    "gnmax-winners": "GNMax, winners alone",
    RECIPE: "recipe: GNMax's counts",
    MOMENTS: "moments, not agnostic",
    NEIGHBOURS: "neighbours, not agnostic",
    NOT_PRIVATE: "not private",
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How one data set is treated, and what others published about it.

    Attributes
    ----------
    title
        The name of the data set.
    teachers
        How many teachers vote.
    expected
        The share of teachers expected to be right, by which constants are chosen.
    queries, recipe
        The number of queries of the recipe, and the student of the recipe and of neighbours.
    estimator
        What each teacher is.
    student
        The student of all other mechanisms.
    linear, ridge
        Features and penalty of the moments.
    published
        What others reported.
    """

    title: str
    teachers: int
    expected: float
    queries: int
    estimator: Any
    student: Any
    recipe: Any
    linear: Any
    ridge: float
    published: tuple[str, ...]


def _mnist() -> Setting:
    return _images(
        "MNIST",
        OrientedGradients(),
        published=(
            "PATE 2018 (data-dependent ε, 250 teachers, 286 of 640 queries answered): 98.5 % at ε = 1.97",
            "PATE 2017: 98.0 % at ε = 2.04",
            "Private-kNN (per record, public features): 98.8 % at ε = 0.47",
        ),
    )


def _fashion() -> Setting:
    """Garments are near others of their class less often, so labels are spread less far, and none of a network's."""
    setting = _images("Fashion-MNIST", OrientedGradients(upright=False), published=())
    student = clone(setting.student).set_params(alpha=0.9, iterations=100)
    return replace(setting, student=student, recipe=student)


def _images(title: str, gradients: OrientedGradients, *, published: tuple[str, ...]) -> Setting:
    network = NetworkClassifier(
        small_convolutional,
        epochs=12,
        learning_rate=3e-3,
        shape=(1, 28, 28),
        augment=distorted,
        random_state=0,
    )
    teacher = KernelRidgeClassifier(gamma=1.5, alpha=0.05)
    smooth = Nystroem(gamma=1.0, n_components=1000, random_state=0), RidgeClassifier(alpha=1e-2)
    spread = partial(Propagated, alpha=0.99, iterations=200)
    return Setting(
        title=title,
        teachers=500,
        expected=0.9,
        queries=200,
        estimator=teacher,
        student=spread(make_pipeline(gradients, *smooth), features=gradients),
        recipe=spread(make_pipeline(gradients, teacher), features=gradients, learned=network),
        linear=make_pipeline(gradients, Nystroem(gamma=2.0, n_components=1000, random_state=0)),
        ridge=0.5,
        published=published,
    )


def _adult() -> Setting:
    return Setting(
        title="Adult",
        teachers=300,
        expected=0.8,
        queries=1500,
        estimator=LogisticRegression(C=10.0, max_iter=300),
        student=LogisticRegression(C=0.1, max_iter=300),
        recipe=VoteRegression(penalty=5e-3),
        linear=None,
        ridge=1e-2,
        published=("PATE 2018 (data-dependent ε, 250 teachers): 83.7 % at ε = 1.90",),
    )


SETTINGS: dict[str, Callable[[], Setting]] = {"mnist": _mnist, "fashion": _fashion, "adult": _adult}


@dataclass(frozen=True, kw_only=True)
class Task(CouncilTask):
    """Which data set, and how much to run.

    Attributes
    ----------
    seeds
        How many councils of teachers, each on both splits.
    mechanisms
        Which mechanisms are compared.
    """

    epsilons: tuple[float, ...] = EPSILONS
    seeds: int = 5
    mechanisms: tuple[str, ...] = tuple(MECHANISMS)


@dataclass(frozen=True, eq=False)
class _Run:
    task: Task
    setting: Setting
    data: Mapping[str, Data]


def steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes, on two cores: reading, and each council's votes and releases."""
    known = SECONDS.get(task.name, SECONDS["adult"])
    votes = [known["votes"]] * _asks_teachers(task)
    council = [*votes, *(known.get(name, known["others"]) for name, _ in _releases(task))]
    return [0.0, *council * (len(SPLITS) * task.seeds)]


def reproduce(task: Task, *, advance: _Advance = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it; `advance` is called as each step begins."""
    setting = SETTINGS[validate.choice("DATA", task.name, tuple(SETTINGS), remedy="see tacit reproduce mapl --help")]()
    validate.whole("--seeds", task.seeds, at_least=1, remedy="leave it out for five")
    for name in task.mechanisms:
        validate.choice("--mechanism", name, tuple(MECHANISMS), remedy="leave it out for all")
    advance("reading the data")
    run = _Run(task, setting, LOADERS[task.name](data_folder(task.data)))
    run_folder.claim(task.out, _mark(task, run), resume=task.resume)
    rows: list[_Row] = []
    for split, data in run.data.items():
        for seed in range(task.seeds):
            where = f"{split} records tested, council {seed + 1} of {task.seeds}"
            votes = None
            if _asks_teachers(task):
                advance(f"{where}: {setting.teachers} teachers vote")
                votes = vote_counts(
                    data,
                    setting.estimator,
                    setting.teachers,
                    council=seed,
                    path=task.out / f"votes-{split}-{seed}.npy",
                    engine=task.engine,
                )
            for name, epsilon in _releases(task):
                advance(f"{where}: {MECHANISMS[name]}{f', ε = {epsilon:g}' if epsilon else ''}")
                path = task.out / f"{split}-{seed}-{name.replace(' ', '-')}-{epsilon:g}.json"
                make = partial(_result, setting, data, votes, name, epsilon, path)
                if name in WITHOUT_TEACHERS:
                    found = run_folder.record(path, make)
                else:
                    found = released(path, make, _chosen(setting, data, name, epsilon)[0])
                rows.append({"split": split, "seed": seed, "mechanism": name, "epsilon": epsilon, **found})
    report = _report(run, rows)
    write_results(report, task.out, name=f"learning-{task.name}", heading=setting.title)
    return report


def _asks_teachers(task: Task) -> bool:
    return any(name not in WITHOUT_TEACHERS for name in task.mechanisms)


def _releases(task: Task) -> Iterator[tuple[str, float]]:
    for name in task.mechanisms:
        for epsilon in (0.0,) if name == NOT_PRIVATE else task.epsilons:
            yield name, epsilon


def _mark(task: Task, run: _Run) -> dict[str, object]:
    return {
        "tacit": __version__,
        "task": f"mapl {task.name}",
        **run.data[SPLITS[0]].mark(),
        # Without the addresses of functions, which change.
        "setting": run_folder.digest(re.sub(r" at 0x\w+", "", repr(run.setting)).encode()),
    }


def _result(setting: Setting, data: Data, votes: _Array | None, name: str, epsilon: float, path: Path) -> _Row:
    """Return one release and its student: queries asked and answered, correct labels, the student's accuracy."""
    if name == NOT_PRIVATE:
        model: Any = clone(setting.student.final if isinstance(setting.student, Propagated) else setting.student)
        return {"accuracy": _accuracy(model.fit(data.private, data.labels), data)}
    if name == MOMENTS:
        model = MomentClassifier(
            epsilon=epsilon, delta=DELTA, features=setting.linear, ridge=setting.ridge, classes=range(data.classes)
        )
        return {"accuracy": _accuracy(model.fit(data.private, data.labels, data.public), data)}
    near = name == NEIGHBOURS  # who need no votes of teachers
    place = path.with_name(f"answers-{path.name}")
    if votes is None or near:
        release = run_folder.record(place, partial(_near, data, epsilon))
    else:
        mechanism, queries = _chosen(setting, data, name, epsilon)
        asked = _asked(data, queries).tolist()
        release = released(place, partial(answers, mechanism, votes, asked), mechanism)
    labels = np.full(len(data.public), UNLABELLED, dtype=np.int64)
    counts = np.zeros((len(data.public), data.classes), dtype=np.int64) if near or name == RECIPE else None
    for place, answer in zip(release["points"], release["answers"], strict=True):
        if counts is not None:
            counts[place] = answer
            labels[place] = int(np.argmax(counts[place]))
        elif answer is not None:
            labels[place] = answer
    known = labels != UNLABELLED
    found: _Row = {"asked": len(release["points"]), "answered": int(known.sum()), "labels": None, "accuracy": None}
    found |= {key: release[key] for key in ("quota", "rank") if key in release}
    if known.any():
        found["labels"] = float(np.mean(labels[known] == data.truth[known]))
        student = clone(setting.student if counts is None else setting.recipe)
        found["accuracy"] = _accuracy(fitted(student, data.public, labels, counts), data)
    return found


def _near(data: Data, epsilon: float) -> dict[str, Any]:
    """Return the public records asked about, noisy counts of the private records near them, and the constants."""
    shares = _shares(epsilon)
    chosen = nearby_choice(
        data.public_features,
        partial(_asked, data),
        voters=private_count(len(data.private), epsilon=shares.count),
        epsilon=shares.left[0],
        delta=shares.left[1],
        queries=None,
        changed=1,
    )
    asked, mechanism = _asked(data, chosen.queries), cast(VoteQuota, chosen.mechanism)
    voters = NearbyVoters(data.public_features, rank=mechanism.rank, quota=mechanism.quota, classes=data.classes)
    voters.fit(data.private_features, data.labels, people=None, key=bytes(32))
    counts = np.zeros((len(data.public), data.classes), dtype=np.int64)
    counts[asked] = voters.counts(data.public_features[asked])
    return {**answers(mechanism, counts, asked.tolist()), "quota": mechanism.quota, "rank": mechanism.rank}


def _chosen(setting: Setting, data: Data, name: str, epsilon: float) -> tuple[Mechanism, int]:
    """Return a mechanism that teachers vote by, and the number of public records to ask about."""
    if name == RECIPE:
        return GNMax(epsilon=epsilon, delta=DELTA, queries=setting.queries, counts=True), setting.queries
    chosen = choice(
        name,
        epsilon=epsilon,
        delta=DELTA,
        teachers=setting.teachers,
        points=len(data.public),
        queries=None,
        lead=margins(setting.expected),
        classes=data.classes,
    )
    return chosen.mechanism, chosen.queries


@cache
def _asked(data: Data, queries: int) -> _Array:
    """Return the public records to ask about: medoids of their features, the same for all mechanisms."""
    return medoids(data.public_features, clusters=queries, random_state=0)


def _accuracy(model: Any, data: Data) -> float:
    return float(np.mean(model.predict(data.tested) == data.tested_truth))


def _summarised(rows: list[_Row], name: str, epsilon: float) -> _Row:
    """Return means over councils and splits, and the accuracy by split; None if no query was answered."""
    found = [row for row in rows if (row["mechanism"], row["epsilon"]) == (name, epsilon)]
    accuracies = [row["accuracy"] for row in found if row["accuracy"] is not None]
    return {
        "mechanism": name,
        "epsilon": epsilon,
        **{key: mean_of(found, key) for key in ("asked", "answered", "labels", "accuracy")},
        **{split: mean_of([row for row in found if row["split"] == split], "accuracy") for split in SPLITS},
        "least": min(accuracies, default=None),
        "failed": len(found) - len(accuracies),
    }


def _report(run: _Run, rows: list[_Row]) -> Report:
    task, setting = run.task, run.setting
    means = [_summarised(rows, name, epsilon) for name, epsilon in _releases(task)]
    shown = {"errors": _figure(setting, means)}
    guarantees = [_guarantee(run, rows, epsilon) for epsilon in task.epsilons]
    return Report(
        command=f"reproduce mapl {task.name}",
        title=f"Private answers on {setting.title}",
        summary=_summary(run, means),
        comparisons=tuple(Comparison(guarantee=guarantee) for guarantee in guarantees),
        verdicts=_verdicts(run, means, guarantees),
        opening=tuple(shown.values()),
        tables=(_table(run, means),),
        detail={
            "means": means,
            "rows": rows,
            "figures": list(shown),
            "setting": {"teachers": setting.teachers, "queries": setting.queries, "delta": DELTA, "seeds": task.seeds},
        },
    )


def _guarantee(run: _Run, rows: list[_Row], epsilon: float) -> Guarantee:
    """Return what is proven of the recipe; of neighbours, by the constants of the first run, where no teachers vote."""
    constants = [row for row in rows if (row["mechanism"], row["epsilon"]) == (NEIGHBOURS, epsilon)]
    if _asks_teachers(run.task) or not constants:
        return GNMax(epsilon=epsilon, delta=DELTA, queries=run.setting.queries, counts=True).guarantee
    shares = _shares(epsilon)
    mechanism = VoteQuota(
        epsilon=shares.left[0], delta=shares.left[1], quota=constants[0]["quota"], rank=constants[0]["rank"]
    )
    release = Release(
        shares=shares,
        compared=neighbours(labels_only=False, ids=False),
        labels_only=False,
        overlapping=False,
        proposed=False,
        named=True,
        transformed=True,
    )
    return release.guarantee_of(mechanism, council={}, estimate=None, resumed=False)


def _shares(epsilon: float) -> Shares:
    """As in a fit, a hundredth of ε pays for the number of private records, by which constants are chosen."""
    return Shares(epsilon=epsilon, delta=DELTA, counting=True)


def usual(epsilons: Sequence[float]) -> float:
    """Return the budget that cards are about: the largest up to 2, or the smallest."""
    return max((epsilon for epsilon in epsilons if epsilon <= 2), default=min(epsilons))


def _verdicts(run: _Run, means: list[_Row], guarantees: list[Guarantee]) -> tuple[Verdict, ...]:
    """Return the cards: the promise at one budget, the best student there, and the paper's own mechanism."""
    epsilon = usual(run.task.epsilons)
    by_name = {row["mechanism"]: row for row in means if row["epsilon"] in (epsilon, 0.0)}
    bare = by_name.pop(NOT_PRIVATE, {"accuracy": None})["accuracy"]
    beside = "" if bare is None else f" Learned without privacy, a student is right on {percent(bare)}."
    promise = promise_verdict(guarantees[run.task.epsilons.index(epsilon)], remark="All mechanisms have this budget.")
    cards = [replace(promise, about="What the answers give away about one record")]
    best = max(by_name.values(), key=lambda row: row["accuracy"] or 0.0, default=None)
    paper = by_name.get("svt-faithful")
    for row, about in ((best, "The best student"), (paper, "The paper's mechanism, as printed")):
        if row is None or (row is paper and row is best and cards[1:]):
            continue
        accuracy, name = row["accuracy"], MECHANISMS[row["mechanism"]]
        level = BROKEN if accuracy is None else FINE if bare is None or accuracy >= GOOD * bare else WEAK
        reason = f"By {name}, at ε = {epsilon:g}: the share of tested records on which its student is right.{beside}"
        if accuracy is None:
            reason = f"At ε = {epsilon:g} it answers no query, so that there is nothing to learn from."
        cards.append(
            Verdict(level=level, about=about, proven=percent(accuracy), measured=True, reason=reason)
            if accuracy is not None
            else Verdict(level=level, about=about, proven="no answers", measured=True, reason=reason)
        )
    return tuple(cards)


def _summary(run: _Run, means: list[_Row]) -> tuple[str, ...]:
    setting, data = run.setting, run.data[SPLITS[0]]
    teachers = f"{setting.teachers} teachers, " * _asks_teachers(run.task)
    sizes = (
        f"{len(data.private)} private records, {teachers}{len(data.public)} public records, "
        f"{len(data.tested)} records to test the student on; δ = {DELTA:g}; the accounting does not use the data."
    )
    repeated = f"{counted(run.task.seeds, 'council')} of teachers" if teachers else counted(run.task.seeds, "run")
    runs = (
        f"Means over {repeated} on each of two splits: testing uses first the last, then the first records of the test "
        "file."
    )
    students = (
        f"At ε = {row['epsilon']:g} the {_WHOSE[row['mechanism']]} student is right on {percent(row['accuracy'])} of "
        f"the tested records (last {percent(row['last'])}, first {percent(row['first'])}; worst run "
        f"{percent(row['least'])})."
        for row in means
        if row["mechanism"] in _WHOSE and row["accuracy"] is not None
    )
    return (sizes, runs, *students, *(f"Published: {line}." for line in setting.published))


def _table(run: _Run, means: list[_Row]) -> Table:
    return Table(
        title="Queries, labels and students",
        columns=("mechanism", "ε", "asked", "answered", "labels right", "student", "last", "first", "worst run"),
        rows=tuple(
            (
                MECHANISMS[row["mechanism"]],
                f"{row['epsilon']:g}" if row["epsilon"] else "–",
                *("–" if row[key] is None else f"{row[key]:.0f}" for key in ("asked", "answered")),
                *(percent(row[key]) for key in ("labels", "accuracy", *SPLITS, "least")),
            )
            for row in means
        ),
        note="Means over councils and splits. Asked and answered count queries; labels right is the share of answers "
        "that are true; student is its accuracy on tested records, over runs with at least one answer. Plain "
        "composition pays for every query. GNMax pays for labels by their moments; winners alone, "
        "by a game that is exact, are proven for up to 2000 queries. The recipe's and the "
        "neighbours' student learns from noisy counts. Two alternatives are not model-agnostic: moments, one noisy "
        "release that serves linear learners only, and neighbours, a nearest-neighbour vote in public features "
        "whose cost does not grow with the queries. Except for the recipe, queries and constants were chosen "
        "without private votes: for neighbours by public records and the noisy number of private ones, for others "
        f"as if a share of {run.setting.expected:g} of the teachers were right.",
    )


def _figure(setting: Setting, means: list[_Row]) -> Figure:
    epsilons = sorted({row["epsilon"] for row in means if row["epsilon"]})
    wrong = {(row["mechanism"], row["epsilon"]): 1 - row["accuracy"] for row in means if row["accuracy"] is not None}
    lines = {label: [wrong.get((name, epsilon)) for epsilon in epsilons] for name, label in MECHANISMS.items()}
    shown = {label: values for label, values in lines.items() if any(value is not None for value in values)}
    least = wrong.get((NOT_PRIVATE, 0.0))
    return Figure(
        title="The student's errors",
        caption=f"Share of tested records that the student gets wrong on {setting.title}, against the privacy loss ε; "
        "no point where no query was answered.",
        alternative="; ".join(f"{label}: {_read(epsilons, values)}" for label, values in shown.items()),
        svg=figures.comparison(
            epsilons,
            shown,
            x_label="privacy loss ε",
            y_label="wrong on tested records",
            level=None if least is None else (least, MECHANISMS[NOT_PRIVATE]),
        ),
    )


def _read(epsilons: Sequence[float], values: Sequence[float | None]) -> str:
    pairs = zip(epsilons, values, strict=True)
    return ", ".join(f"{100 * value:.1f} % at {epsilon:g}" for epsilon, value in pairs if value is not None)
