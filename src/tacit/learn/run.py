"""The run: records read, a learner tried, the budget spent, and both rooms of the folder written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError, TacitError
from ..files import write_whole
from ..guarantee import Assumption
from ..learning import PrivateClassifier, workers
from ..learning.rehearsal import rehearsal, vouched
from ..ledger import Ledger
from ..report import Report
from . import learners, owner, records
from .accuracy import accuracy
from .publication import publish
from .task import Task, check

_CHOSEN_BLINDLY = Assumption(
    text="public records and the options of this run were chosen without looking at private ones (had you looked at "
    "private/owner.html and run again, that would not be covered)",
    checked_by="caller",
)
_TEST = Assumption(
    text="the accuracy on --test may be known: it was computed from those records without noise, and they are no "
    "private records of this run",
    checked_by="caller",
)


def learn(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run what is left of the task, write everything into its folder, and report what may be known."""
    check(task)
    advance("reading tables")
    data = records.read(task)
    classifier = _classifier(task, data)
    advance("trying the learner on made-up records")
    size = {"width": data.records.shape[1], "classes": len(data.classes)}
    with learners.quiet():
        held = rehearsal("--learner", classifier.estimator, **size)
        trusted = vouched("--learner", classifier.estimator, held)
        if classifier.student is not None:
            rehearsal("--student", classifier.student, **size)
        proposer = None
        if data.proposer is not None:
            learner = classifier.estimator if classifier.student is None else classifier.student
            proposer = learners.proposer(learner, *data.proposer)
    with workers.opened(task.engine):
        folder = _folder(task)  # once a cluster, if there is to be one, has answered
    classifier.set_params(ledger=_ledger(task))
    advance("training teachers")
    with learners.quiet():
        try:
            classifier.fit(
                data.records,
                data.labels,
                data.public,
                ids=data.ids,
                label_column=task.label,
                ids_column=task.ids,
                proposer=proposer,
                folder=folder / "private",
                trusted=trusted,
                allow_overlap=task.allow_overlap,
                advance=advance,
            )
        except TacitError:
            raise
        except Exception as failure:  # of foreign code, whose words may quote records
            raise _blamed(failure, paid=hasattr(classifier, "teachers_"), proposes=proposer is not None) from None
        shown = data.test is not None and not task.allow_overlap
        assumed = [_CHOSEN_BLINDLY, *[_TEST] * shown]
        proven = classifier.guarantee_
        compared, *others = proven.assumptions
        classifier.guarantee_ = dataclasses.replace(proven, assumptions=(compared, *assumed, *others))
        advance("writing what may be published")
        measured = accuracy(data.columns.before(classifier.published()), data.test)
        # What is measured on records that may be private is for their owner.
        report = publish(task, data, classifier, measured if shown else None, folder / "publish")
        advance("writing the owner's page")
        owner.write_page(task, data, classifier, measured, folder / "private")
    return report


def _blamed(failure: Exception, *, paid: bool, proposes: bool) -> InputError:
    """Before the budget is spent teachers are trained, afterwards students, from public records and answers."""
    kind = type(failure).__name__
    if not paid:
        return InputError(
            "PRIVATE",
            kind,
            requirement="must hold records that teachers can be trained on",
            remedy="see that there are more than a few",
        )
    return InputError(
        "the student",
        kind,
        requirement="must learn from public records and answers; the budget is spent, the answers are kept",
        remedy="choose another with --student and a new --out, which costs privacy again: it proposes other labels"
        if proposes
        else "choose another with --student and add --resume, which costs no privacy",
    )


def _classifier(task: Task, data: records.Records) -> PrivateClassifier:
    student = None
    if task.student is not None:
        student = learners.learner("--student", task.student, "--student-set", task.student_settings)
    return PrivateClassifier(
        learners.learner("--learner", task.learner, "--set", task.settings),
        epsilon=task.epsilon,
        delta=task.delta,
        n_teachers="auto" if task.teachers is None else task.teachers,
        mechanism=task.mechanism,
        student=student,
        queries=task.queries if task.queries in (None, "all") else int(str(task.queries)),
        expected=task.expected,
        refusals=task.refusals,
        classes=None if task.classes is None else data.classes,
        engine=task.engine,
        random_state=0,  # of clusters of public records: a run that goes on must ask the same
    )


def _folder(task: Task) -> Path:
    folder, private = task.out, task.out / "private"
    try:
        (folder / "publish").mkdir(parents=True, exist_ok=True)
        private.mkdir(mode=0o700, exist_ok=True)
        write_whole(private / "README.txt", owner.README.encode())
    except OSError as failure:
        raise InputError(
            "--out",
            f"{folder}: {failure.strerror}",
            requirement="must be a folder that can be written",
            remedy="choose another",
        ) from None
    return folder


def _ledger(task: Task) -> Ledger:
    """The ledger named, or one of this folder; a new one has the budget of this run."""
    where = str(task.out / "ledger.sqlite") if task.ledger is None else task.ledger
    try:
        return Ledger.open(where)
    except InputError:
        return Ledger.open(where, epsilon=task.epsilon, delta=task.delta)
