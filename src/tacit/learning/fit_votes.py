"""The part of a fit in which somebody votes: choose, train, pay, estimate where it helps, and ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from ..core.guarantee import Guarantee
from ..runtime import run_folder
from ..theory.accounting import laplace_scale
from .asking import answers, labels_and_counts
from .choice import Choice
from .dry_run import fit_student, made_up_answers
from .fit_choice import EXPECTED_ERROR, Chooser, proven
from .fit_records import Divided
from .fit_task import FitTask
from .held_out import AgreementEstimate, ErrorEstimate, private_agreement, private_error
from .interrupted import Notes
from .labels import UNNAMED
from .mechanisms import VoteQuota
from .nearby import VOTERS, NearbyVoters
from .teachers import Teachers

Council = Teachers | NearbyVoters

_CHOSEN = "chosen"
"""The name of the note that holds what an estimate has chosen."""
_PROBES = 500
"""The most public records on which the agreement of teachers is estimated."""
_FEW = 200
"""The number of public records on which a student is tried with a class that is answered once."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Answered:
    """What votes have led to.

    Attributes
    ----------
    choice
        The mechanism and why it was chosen.
    estimate
        What was paid for to choose it, if anything.
    guarantee
        What is proven about the whole fit.
    labels, counts
        For every public record the number of its class or −1, and the noisy counts, if released.
    asked
        The places of the public records that were asked about.
    """

    choice: Choice
    estimate: ErrorEstimate | AgreementEstimate | None
    guarantee: Guarantee
    labels: NDArray[np.int64]
    counts: NDArray[np.int64] | None
    asked: Sequence[int]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """What is there before anybody is asked.

    Attributes
    ----------
    choice
        The mechanism and why it was chosen; None if an estimate is to choose it.
    cost
        The ε of that estimate.
    mark
        What the folder and the ledger know the task by.
    council
        Who votes.
    """

    choice: Choice | None
    cost: float
    mark: dict[str, object]
    council: Council


def begun(
    task: FitTask,
    chooser: Chooser,
    records: Divided,
    numbers: NDArray[np.int64],
    *,
    trusted: Sequence[str],
    advance: Callable[[str], None],
) -> Begun:
    """Choose, and train who votes. `numbers` are those of the records' classes."""
    chosen, cost = chooser.unpaid()
    if chosen is not None:
        proven(chosen, advance)
        task.places(chosen.queries)  # which may fail, and costs nothing yet
    more = {} if chooser.proposer is None else {"proposals": run_folder.digest(chooser.proposer.labels.tobytes())}
    mark = task.claimed(
        None if chosen is None else chosen.mechanism,
        queries=_queries(task) if chosen is None else chosen.queries,
        teachers=chooser.teachers,
        **more,
    )
    council = _trained(task, chosen, chooser.teachers, records, numbers, trusted=trusted, advance=advance)
    return Begun(choice=chosen, cost=cost, mark=mark, council=council)


def answered(
    task: FitTask,
    chooser: Chooser,
    begun: Begun,
    records: Divided,
    numbers: NDArray[np.int64],
    *,
    advance: Callable[[str], None],
) -> Answered:
    """What is answered about public records, once it is paid for."""
    chosen, cost, council = begun.choice, begun.cost, begun.council
    # From here on private votes are looked at: what that may cost is on the disk first.
    notes = task.paid(begun.mark)
    estimate: ErrorEstimate | AgreementEstimate | None = None
    if chosen is None:  # which neighbours never leave open
        teachers = cast(Teachers, council)
        if task.options.error_share:
            estimate = _error(task, teachers, records, numbers, notes, cost=cost)
        else:
            estimate = _agreement(task, teachers, notes, cost=cost)
        chosen = chooser.informed(estimate)
        proven(chosen, advance)
        notes.settle(_CHOSEN, _described(chosen))
    found = answers(
        chosen.mechanism,
        council,
        task.seen,
        task.places(chosen.queries),
        proposer=chooser.proposer,
        notes=notes,
        engine=task.options.engine,
        advance=advance,
    )
    labels, counts = labels_and_counts(found, points=len(task.public))
    guarantee = task.release.guarantee_of(
        chosen.mechanism, council=chooser.size(chosen), estimate=estimate, resumed=notes.resumed
    )
    return Answered(
        choice=chosen,
        estimate=estimate,
        guarantee=guarantee,
        labels=labels,
        counts=counts,
        asked=[point for point, _ in found],
    )


def rehearsed(task: FitTask, chooser: Chooser, advance: Callable[[str], None]) -> tuple[Answered, object]:
    """Made-up answers and a student of them, so that what would fail later fails before anything is paid."""
    chosen, cost = chooser.unpaid()
    estimate: ErrorEstimate | AgreementEstimate | None = None
    if chosen is None:
        estimate = _made_up(task, chooser.teachers, cost=cost)
        chosen = chooser.informed(estimate)
    proven(chosen, advance)
    counting, classes = bool(getattr(chosen.mechanism, "counts", False)), len(task.classes)
    labels, counts = made_up_answers(len(task.public), asked=chosen.queries, classes=classes, counts=counting)
    made = Answered(
        choice=chosen,
        estimate=estimate,
        guarantee=task.release.guarantee_of(
            chosen.mechanism, council=chooser.size(chosen), estimate=estimate, resumed=True
        ),
        labels=labels,
        counts=counts,
        asked=range(chosen.queries),
    )
    counting &= has_fit_parameter(task.student, "counts")  # others get the class of the largest
    student = fit_student(task.student, task.public, labels, counts if counting else None)
    few = task.public[:_FEW]
    rare = made_up_answers(len(few), asked=len(few), classes=classes, counts=counting, rare=True)
    fit_student(task.student, few, *rare)
    return made, student


def _queries(task: FitTask) -> str:
    """What was said about the number of queries, as the mark of a task names it."""
    queries = task.options.queries
    return repr(queries if queries in (None, "all") else int(str(queries)))


def _trained(
    task: FitTask,
    chosen: Choice | None,
    teachers: int,
    records: Divided,
    numbers: NDArray[np.int64],
    *,
    trusted: Sequence[str],
    advance: Callable[[str], None],
) -> Council:
    """Who votes: teachers, or records."""
    taught, classes = records.taught & (numbers != UNNAMED), len(task.classes)
    if chosen is not None and isinstance(chosen.mechanism, VoteQuota):
        rank, quota = chosen.mechanism.rank, chosen.mechanism.quota
        return NearbyVoters(task.seen, rank=rank, quota=quota, classes=classes).fit(
            task.viewed(records.records[taught]),
            numbers[taught],
            people=records.people(taught),
            key=task.run.key,
            folder=None if task.folder is None else task.folder / VOTERS,
        )
    council = Teachers(task.estimator, teachers, task.run.key, classes=range(classes), trusted=trusted)
    return council.fit(
        task.viewed(records.records[taught]),
        numbers[taught],
        ids=records.owned(taught),
        engine=task.options.engine,
        folder=None if task.folder is None else task.folder / "teachers",
        advance=advance,
    )


def _agreement(task: FitTask, council: Teachers, notes: Notes, *, cost: float) -> AgreementEstimate:
    """How far the teachers agree on some public records, drawn once and noted."""
    noted = notes.value("agreement")
    if noted is not None:
        return AgreementEstimate(**noted)
    probes = task.seen[task.places(min(_PROBES, len(task.public)))]
    votes = council.counts(probes, engine=task.options.engine)
    found = private_agreement(votes, teachers=council.n_teachers, epsilon=cost)
    notes.add({"agreement": dataclasses.asdict(found)})
    return found


def _error(
    task: FitTask, council: Teachers, records: Divided, numbers: NDArray[np.int64], notes: Notes, *, cost: float
) -> ErrorEstimate:
    """How often teachers are wrong, drawn once and noted. Every held-out record tests one of them."""
    noted = notes.value("error")
    if noted is not None:
        return ErrorEstimate(**noted)
    tested, teachers = task.viewed(records.records[records.held_out]), council.n_teachers
    tester, wrong = records.testers(teachers), np.zeros(len(tested), dtype=np.int64)
    if len(tested):
        votes = council.votes(tested, engine=task.options.engine)
        wrong = (votes[np.arange(len(tested)), tester] != numbers[records.held_out]).astype(np.int64)
    mistakes = np.bincount(tester, weights=wrong, minlength=teachers).astype(np.int64)
    tests = np.bincount(tester, minlength=teachers).astype(np.int64)
    found = private_error(mistakes, tests, epsilon=cost)
    notes.add({"error": dataclasses.asdict(found)})
    return found


def _made_up(task: FitTask, teachers: int, *, cost: float) -> ErrorEstimate | AgreementEstimate:
    """The estimate that would be paid for, of votes as they may be."""
    if task.options.error_share:
        return ErrorEstimate(value=EXPECTED_ERROR, epsilon=cost, scale=1.0, teachers=teachers)
    scale = laplace_scale(cost, sensitivity=AgreementEstimate.sensitivity)
    return AgreementEstimate(value=teachers // 4, epsilon=cost, scale=scale, teachers=teachers)


def _described(chosen: Choice) -> dict[str, object]:
    """What a run must go on with that was chosen after it had paid."""
    mechanism = chosen.mechanism
    return {"mechanism": repr(mechanism), "constants": repr(mechanism.guarantee.detail), "queries": chosen.queries}
