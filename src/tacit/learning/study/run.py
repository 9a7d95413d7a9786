"""The run of `tacit learn`: read records, try the learner, spend the budget, and write both parts of the folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.deprecation import renamed
from ...core.errors import InputError, TacitError
from ...report import Report
from ...report.timing import Timed
from ...runtime import private_files, workers
from ..assumptions import ENCODER_PUBLIC
from ..choice import number_of_teachers, prospects
from ..classifier import PrivateClassifier
from ..dry_run import seconds_of_a_teacher, trusted_types, try_estimator
from ..encoders import GRADIENTS
from ..mechanisms.cases import margins
from ..mechanisms.registry import MOMENTS, NEIGHBOURS, WITHOUT_TEACHERS
from ..teachers import Teachers
from . import earlier_ledgers, inputs, learners, owner_report, serving, summed
from .accuracy import accuracy
from .options import LEARNER, REGRESSOR, Task, checked
from .places import (
    check_anchor,
    check_ledger,
    opened_ledger,
    output_folder,
    rehearsed,
    told_if_interrupted,
    where,
)
from .publication import CHOSEN_BLINDLY, TEST_KNOWN, publish, releases_sums

_SECONDS, _SECONDS_PER_RECORD, _SECONDS_PER_TEACHER = 10.0, 2e-4, 0.03
"""What a run takes beside its learners: the pages, reading and comparing records, and storing each teacher."""
_LONG = 120.0
"""Seconds from which on a run is told how it would take less."""
_BEGINS = {NEIGHBOURS: "asking neighbours", MOMENTS: "summing up records"}
_FASTER = {NEIGHBOURS: "fewer queries take", MOMENTS: "fewer columns take"}
_TEACHERS = "fewer teachers or a faster learner take"


@renamed(proposer="labelled_public", expected="teacher_accuracy")
def learn_files(
    private: Path | str,
    *,
    label: str | Sequence[str],
    epsilon: float,
    delta: float,
    out: Path | str,
    label_range: tuple[float, float] | None = None,
    public: Path | str | None = None,
    labels_only: bool = False,
    test: Path | str | None = None,
    learner: str | None = None,
    settings: Sequence[str] = (),
    student: str | None = None,
    student_settings: Sequence[str] = (),
    teachers: int | None = None,
    mechanism: str = "auto",
    labelled_public: Path | str | None = None,
    queries: str | None = None,
    refusals: int | None = None,
    teacher_accuracy: float | None = None,
    classes: str | None = None,
    ids: str | None = None,
    text: Sequence[str] = (),
    text_encoder: Path | str | None = None,
    image: Sequence[str] = (),
    image_encoder: str = GRADIENTS,
    image_weights: Path | str | None = None,
    ledger: str | None = None,
    ledger_url_file: Path | str | None = None,
    new_ledger: bool = False,
    budget_epsilon: float | None = None,
    budget_delta: float | None = None,
    anchor: Path | str | None = None,
    new_anchor: bool = False,
    device: str = "auto",
    engine: str = "local",
    allow_overlap: bool = False,
    resume: bool = False,
    advance: Callable[[str], None] = lambda _: None,
) -> Report:
    """Learn a classifier, or a regressor, from a table of private records that may be published, as `tacit learn` does.

    `PrivateClassifier`, `PrivateRegressor` and `PrivateMultiLabelClassifier` do the same with arrays in memory. Files
    are `.csv`, `.parquet` or `.npz`.

    Parameters
    ----------
    private
        The file of private records.
    label
        The column to learn; or several, each of which says yes or no, 1 or 0, or true or false. Then teachers answer
        each, as for `PrivateMultiLabelClassifier`.
    epsilon, delta
        The cost of the run, and the budget of a new ledger unless that is given.
    out
        The folder to write. What may be published goes to `publish` in it.
    label_range
        The column holds numbers, and this is the range that they can have at all, from public knowledge. Then a
        regressor is learned, as by `PrivateRegressor`.
    public
        The file of public records, about which teachers are asked.
    labels_only
        Instead of `public`: protect only the labels. Half of the private records are published without their own
        labels.
    test
        A file of other labelled records, to measure the accuracy of the student.
    learner, settings
        The class of the teachers as "MODULE:CLASS", and its parameters as "NAME=VALUE"; logistic regression unless
        given, and ridge regression for numbers.
    student, student_settings
        The same for the student; unless given, the learner, or another if that agrees better with released answers
        left out. For numbers and several labels it is a regressor, and ridge regression unless given.
    teachers
        The number of teachers; unless given, chosen by ε, the public records and the number of records, read with
        noise; one for each 50 records for numbers, and for each 100 for several labels.
    mechanism
        The name of the mechanism, or "auto". "neighbours" trains no teachers: private records vote on public ones near
        them, and the learner is the student's last step. It is not model-agnostic. Nor is "moments", which asks nobody:
        sums of the encoded columns by class are released once with noise, and a linear classifier follows from them.
    labelled_public
        A file of labelled records that are not private: a model of them proposes labels, which teachers confirm.
    queries
        The number of public records to ask about, or "all"; chosen unless given.
    refusals
        The number of refusals after which the mechanism stops; chosen unless given.
    teacher_accuracy
        The share of teachers expected to be right, by which constants are chosen; any unless given.
    classes
        All labels that may occur, separated by commas; found with noise unless given.
    ids
        The column that says whose each record is, to protect all records of a person together.
    text
        Columns of whole texts: each is turned into numbers by `text_encoder`, not by categories.
    text_encoder
        The folder of a transformer, as for `TextEncoder`; all-MiniLM-L6-v2 from its installed package unless given.
    image
        Columns of paths of images, relative to the file that names them.
    image_encoder, image_weights
        What turns images into numbers, as for `ImageEncoder`: "gradients", "timm:NAME" or "torchvision:NAME", and the
        .safetensors file with the weights of a network.
    ledger, ledger_url_file
        The ledger, or a file that holds its address; one in `out` unless given.
    new_ledger
        Create the ledger that is named.
    budget_epsilon, budget_delta
        The budget of a new ledger, where more than this run is to be paid from it, such as `tacit serve`.
    anchor
        A file elsewhere that remembers the end of the ledger.
    new_anchor
        Create the anchor for a ledger that exists already.
    device
        Where learners that have a parameter `device` compute, such as those of torch: "cpu", "cuda", or "auto", which
        leaves it to them.
    engine
        Where teachers are trained: "local", or the address of a Dask or Ray cluster.
    allow_overlap
        Accept files that contain private records, which are then not protected.
    resume
        Go on in a folder that an earlier run left.
    advance
        Called with a line about what begins.

    Returns
    -------
    The report, which is also written to `out`/publish.

    Raises
    ------
    KeyboardInterrupt
        If interrupted; it says what was spent.
    """
    labels = (label,) if isinstance(label, str) else tuple(label)
    task = Task(
        private=Path(private),
        labels=labels,
        label_range=label_range,
        out=Path(out),
        epsilon=epsilon,
        delta=delta,
        public=_path(public),
        labels_only=labels_only,
        test=_path(test),
        learner=learner or (LEARNER if label_range is None else REGRESSOR),
        settings=tuple(settings),
        student=student,
        student_settings=tuple(student_settings),
        teachers=teachers,
        mechanism=mechanism,
        queries=queries,
        refusals=refusals,
        teacher_accuracy=teacher_accuracy,
        classes=classes,
        ids=ids,
        text=tuple(text),
        text_encoder=_path(text_encoder),
        image=tuple(image),
        image_encoder=image_encoder,
        image_weights=_path(image_weights),
        labelled_public=_path(labelled_public),
        ledger=ledger,
        ledger_url_file=_path(ledger_url_file),
        new_ledger=new_ledger,
        budget_epsilon=budget_epsilon,
        budget_delta=budget_delta,
        anchor=_path(anchor),
        new_anchor=new_anchor,
        device=device,
        engine=engine,
        allow_overlap=allow_overlap,
        resume=resume,
    )
    task = checked(task)
    return summed.run(task, advance) if task.summed else _run(task, advance)


def _path(name: Path | str | None) -> Path | None:
    return None if name is None else Path(name)


def _run(task: Task, advance: Callable[[str], None]) -> Report:
    """Run what is left of the task, write its folder, and return the report that may be published."""
    advance = Timed(advance)
    advance("reading tables")
    data = inputs.read(task, advance)
    classifier = _classifier(task, data)
    if classifier.estimator is not None:
        advance("trying the learner on made-up records")
    size = {
        "width": data.records.shape[1],
        "classes": len(set(data.labels.tolist()) if data.classes is None else data.classes),
    }
    with learners.quiet():
        trusted: Sequence[str] = ()
        if classifier.estimator is not None:
            held = try_estimator("learner", classifier.estimator, **size)
            trusted = trusted_types("learner", classifier.estimator, held)
        if classifier.student is not None:
            try_estimator("student", classifier.student, **size)
        proposer = None
        if data.proposer is not None:
            learner = classifier.estimator if classifier.student is None else classifier.student
            proposer = learners.proposer(learner, *data.proposer)
    check_ledger(task)
    check_anchor(task)
    place = where(task)
    earlier_ledgers.warn_of(task.private, place)
    with workers.open_workers(task.engine) as crowd:
        folder = output_folder(task)  # once a cluster, if there is to be one, has answered
        cores = crowd.cores
    ledger = opened_ledger(task)
    earlier_ledgers.remember(task.private, place)
    classifier.set_params(ledger=ledger)
    with told_if_interrupted(ledger, folder), learners.quiet():
        if not task.resume:
            seconds = _seconds(task, data, classifier.estimator, classes=size["classes"], cores=cores)
            advance.expect(seconds, remedy=f"{_FASTER.get(task.mechanism, _TEACHERS)} less" * (seconds > _LONG))
        advance(_BEGINS.get(task.mechanism, "training teachers"))
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
                rehearse=lambda stand_in: _rehearse(task, data, stand_in, folder),
                advance=advance,
            )
        except TacitError:
            raise
        except Exception as failure:  # of foreign code, whose words may quote records
            paid = hasattr(classifier, "teachers_") or hasattr(classifier, "noisy_sums_")
            raise _blamed(failure, paid=paid, proposes=proposer is not None) from None
        try:
            return _written(task, data, classifier, folder, advance)
        except TacitError:
            raise
        except OSError as failure:
            raise InputError(
                "out",
                f"{failure.strerror}, in {folder}",
                requirement="must be a folder with room for what was paid for; the budget is spent, the answers are "
                "kept",
                remedy="make room there and add `resume`, which costs no privacy",
            ) from None
        except Exception as failure:  # of a student that learned, but fails on some records
            raise _blamed(failure, paid=True, proposes=proposer is not None) from None


def _written(
    task: Task,
    data: inputs.Records,
    classifier: PrivateClassifier,
    folder: Path,
    advance: Callable[[str], None],
) -> Report:
    """Write both parts of the folder, once the answers are paid for."""
    advance("writing what may be published")
    report, measured = _published(task, data, classifier, folder / "publish")
    advance("writing the owner's page")
    with private_files.enclosed(folder / "private"):
        if isinstance(getattr(classifier, "teachers_", None), Teachers):
            serving.keep(task, data, classifier, folder / "private")
        lead = None if releases_sums(classifier) else owner_report.true_leads(task, data, classifier)
        plain = owner_report.unprotected_accuracy(task, data)
        owner_report.write_page(task, data, classifier, folder / "private", lead=lead, student=measured, plain=plain)
    return report


def _published(
    task: Task, data: inputs.Records, classifier: PrivateClassifier, folder: Path
) -> tuple[Report, dict[str, float] | None]:
    """Write what may be published; return its report and the accuracy, which may be for the owner alone."""
    shown = data.test is not None and not task.allow_overlap
    assumed = [CHOSEN_BLINDLY, *[ENCODER_PUBLIC] * bool(data.columns.encoders), *[TEST_KNOWN] * shown]
    proven = classifier.guarantee_
    compared, *others = proven.assumptions
    classifier.guarantee_ = dataclasses.replace(proven, assumptions=(compared, *assumed, *others))
    if data.classes is None:  # what they are is decided by those that were found, not by all private labels
        classifier.classes_ = inputs.typed(classifier.classes_.tolist(), classifier.classes_.tolist())
    measured = accuracy(data.columns.before(classifier.published()), data.test)
    # What is measured on records that may be private is for their owner.
    return publish(task, data, classifier, measured if shown else None, folder), measured


def _rehearse(task: Task, data: inputs.Records, stand_in: PrivateClassifier, folder: Path) -> None:
    """Write all pages once with made-up answers, so that nothing fails once the answers are paid for.

    If nobody named the classes, all private labels are used in their place, so these pages are private.
    """

    def write(trial: Path) -> set[Path]:
        _, measured = _published(task, data, stand_in, trial)
        written = set(trial.iterdir())
        lead = None if releases_sums(stand_in) else np.zeros(len(stand_in.answered_))
        owner_report.write_page(task, data, stand_in, trial, lead=lead, student=measured, plain=None)
        return written

    rehearsed(folder, write)


def _blamed(failure: Exception, *, paid: bool, proposes: bool) -> InputError:
    """The error for a failure of foreign code: of teachers before the budget is spent, of the student afterwards."""
    kind = type(failure).__name__
    if not paid:
        return InputError(
            "private",
            kind,
            requirement="must hold records that teachers can be trained on",
            remedy="see that there are more than a few",
        )
    return InputError(
        "the student",
        kind,
        requirement="must learn from public records and answers; the budget is spent, the answers are kept",
        remedy="choose another with `student` and a new `out`, which costs privacy again: it proposes other labels"
        if proposes
        else "choose another with `student` and add `resume`, which costs no privacy",
    )


def _seconds(task: Task, data: inputs.Records, learner: Any, *, classes: int, cores: int) -> float:
    """About how long the rest of the run takes. Made-up records are timed, private ones only counted; for the owner."""
    records, width = len(data.records), data.records.shape[1]
    if task.mechanism in WITHOUT_TEACHERS:
        return _SECONDS + records * _SECONDS_PER_RECORD
    queries = records // 2 if data.public is None else len(data.public)
    teachers = task.teachers
    if teachers is None:
        found = prospects(
            task.mechanism,
            epsilon=task.epsilon,
            delta=task.delta,
            records=records if data.public is not None else records // 2,
            points=queries,
            queries={None: None, "all": queries}.get(task.queries, queries),
            lead=margins(task.teacher_accuracy),
            refusals=task.refusals,
            classes=classes,
            proposer_error=None if task.labelled_public is None else 0.2,
        )
        teachers = number_of_teachers(found)
    one = seconds_of_a_teacher(learner, rows=records // teachers, width=width, classes=classes, queries=queries)
    return _SECONDS + records * _SECONDS_PER_RECORD + teachers * (one / cores + _SECONDS_PER_TEACHER)


def _classifier(task: Task, data: inputs.Records) -> PrivateClassifier:
    student = None
    if task.student is not None:
        student = learners.learner("student", task.student, "student_settings", task.student_settings)
    learner = learners.learner("learner", task.learner, "settings", task.settings)
    learners.place(task.device, [learner] if student is None else [learner, student])
    return PrivateClassifier(
        None if task.mechanism == MOMENTS else learner,
        epsilon=task.epsilon,
        delta=task.delta,
        n_teachers="auto" if task.teachers is None else task.teachers,
        mechanism=task.mechanism,
        student=student,
        queries=task.queries if task.queries in (None, "all") else int(str(task.queries)),
        teacher_accuracy=task.teacher_accuracy,
        refusals=task.refusals,
        classes=data.classes,
        engine=task.engine,
        random_state=0,  # of clusters of public records: a run that goes on must ask the same
    )
