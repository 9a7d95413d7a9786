"""The run of `tacit learn`: read records, try the learner, spend the budget, and write both parts of the folder."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.deprecation import renamed
from ...core.errors import InputError, TacitError
from ...core.guarantee import Assumption
from ...ledger import Amount, Ledger, anchor, exists, named_place, require_ledger
from ...ledger.amounts import NOTHING
from ...ledger.database import name_of
from ...report import Report
from ...report.timing import Timed
from ...runtime import private_files, run_folder, workers
from ...runtime.files import write_whole
from ..choice import margins, number_of_teachers, prospects
from ..classifier import PrivateClassifier
from ..dry_run import seconds_of_a_teacher, trusted_types, try_estimator
from ..interrupted import run
from ..mechanisms.registry import MOMENTS, NEIGHBOURS, WITHOUT_TEACHERS
from ..teachers import Teachers
from . import earlier_ledgers, inputs, learners, owner_report, serving
from .accuracy import accuracy
from .options import LEARNER, Task, checked
from .publication import publish, summed

_CHOSEN_BLINDLY = Assumption(
    text="public records and the options of this run were chosen without looking at private ones (had you looked at "
    "private/owner.html and run again, that would not be covered)",
    checked_by="caller",
)
_OUTSIDE = "outside-anchor.txt"
"""The name of the file that remembers where the anchor outside of the folder is."""
_PROBE = ".room"
"""The name of a file that is written to find out whether there is room."""
_SECONDS, _SECONDS_PER_RECORD, _SECONDS_PER_TEACHER = 10.0, 2e-4, 0.03
"""What a run takes beside its learners: the pages, reading and comparing records, and storing each teacher."""
_LONG = 120.0
"""Seconds from which on a run is told how it would take less."""
_BEGINS = {NEIGHBOURS: "asking neighbours", MOMENTS: "summing up records"}
_FASTER = {NEIGHBOURS: "fewer queries take", MOMENTS: "fewer columns take"}
_TEACHERS = "fewer teachers or a faster learner take"
_TEST = Assumption(
    text="the accuracy on the test records may be known: it was computed from them without noise, and they are no "
    "private records of this run",
    checked_by="caller",
)


@renamed(proposer="labelled_public", expected="teacher_accuracy")
def learn_files(
    private: Path | str,
    *,
    label: str,
    epsilon: float,
    delta: float,
    out: Path | str,
    public: Path | str | None = None,
    labels_only: bool = False,
    test: Path | str | None = None,
    learner: str = LEARNER,
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
    """Learn a classifier from a table of private records that may be published, as `tacit learn` does.

    `PrivateClassifier` does the same with arrays in memory. Files are `.csv`, `.parquet` or `.npz`.

    Parameters
    ----------
    private
        The file of private records.
    label
        The column to learn.
    epsilon, delta
        The cost of the run, and the budget of a new ledger unless that is given.
    out
        The folder to write. What may be published goes to `publish` in it.
    public
        The file of public records, about which teachers are asked.
    labels_only
        Instead of `public`: protect only the labels. Half of the private records are published without their own
        labels.
    test
        A file of other labelled records, to measure the accuracy of the student.
    learner, settings
        The class of the teachers as "MODULE:CLASS", and its parameters as "NAME=VALUE".
    student, student_settings
        The same for the student; the learner unless given.
    teachers
        The number of teachers; about the square root of the number of records unless given.
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
        The share of teachers expected to be right, by which constants are chosen; from 0.6 to 1 unless given.
    classes
        All labels that may occur, separated by commas; found with noise unless given.
    ids
        The column that says whose each record is, to protect all records of a person together.
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
    task = Task(
        private=Path(private),
        label=label,
        out=Path(out),
        epsilon=epsilon,
        delta=delta,
        public=_path(public),
        labels_only=labels_only,
        test=_path(test),
        learner=learner,
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
    return _run(checked(task), advance)


def _path(name: Path | str | None) -> Path | None:
    return None if name is None else Path(name)


def _run(task: Task, advance: Callable[[str], None]) -> Report:
    """Run what is left of the task, write its folder, and return the report that may be published."""
    advance = Timed(advance)
    advance("reading tables")
    data = inputs.read(task)
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
    _check_ledger(task)
    _check_anchor(task)
    where = _where(task)
    earlier_ledgers.warn_of(task.private, where)
    with workers.open_workers(task.engine) as crowd:
        folder = _folder(task)  # once a cluster, if there is to be one, has answered
        cores = crowd.cores
    ledger = _ledger(task)
    earlier_ledgers.remember(task.private, where)
    classifier.set_params(ledger=ledger)
    with _told_if_interrupted(ledger, folder), learners.quiet():
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
        lead = None if summed(classifier) else owner_report.true_leads(task, data, classifier)
        plain = owner_report.unprotected_accuracy(task, data)
        owner_report.write_page(task, data, classifier, folder / "private", lead=lead, student=measured, plain=plain)
    return report


def _published(
    task: Task, data: inputs.Records, classifier: PrivateClassifier, folder: Path
) -> tuple[Report, dict[str, float] | None]:
    """Write what may be published; return its report and the accuracy, which may be for the owner alone."""
    shown = data.test is not None and not task.allow_overlap
    assumed = [_CHOSEN_BLINDLY, *[_TEST] * shown]
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
    trial = folder / "private" / "rehearsal"
    try:
        shutil.rmtree(trial, ignore_errors=True)  # of a run that was killed
        trial.mkdir(mode=0o700)
        try:
            _, measured = _published(task, data, stand_in, trial)
            written = list(trial.iterdir())
            _require_room(
                folder / "publish",
                {path.name for path in written},
                sum(path.stat().st_size for path in written),
                probed=trial,
            )
            lead = None if summed(stand_in) else np.zeros(len(stand_in.answered_))
            owner_report.write_page(task, data, stand_in, trial, lead=lead, student=measured, plain=None)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except OSError as failure:
        raise InputError(
            "out",
            f"{failure.strerror}, in {folder}",
            requirement="must be a folder with room for all that is to be written; nothing was spent",
            remedy="make room there, or choose another",
        ) from None
    except TacitError:
        raise
    except Exception as failure:  # of foreign code, which has seen public records and made-up answers
        raise InputError(
            "the student",
            f"{type(failure).__name__}: {failure}",
            requirement="must be one that can be published; nothing was spent",
            remedy="choose another with `student`",
        ) from None


def _require_room(folder: Path, names: set[str], size: int, *, probed: Path) -> None:
    """Raise OSError if files of these names, and of this size together, could not be written.

    The size depends on private labels, and a run may be killed, so the file of that size is written to `private` only.
    """
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, f"{name} is a folder")
    for place, content in ((folder, b""), (probed, bytes(size))):
        probe = place / _PROBE
        try:
            write_whole(probe, content)
        finally:
            probe.unlink(missing_ok=True)
    if folder.stat().st_dev != probed.stat().st_dev and shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _remove_remains(folder: Path) -> None:
    """Remove what a killed run was about to write in the folder to publish."""
    for path in folder.iterdir():
        if (path.name == _PROBE or re.fullmatch(r"\..*-[0-9a-f]{16}", path.name)) and not path.is_dir():
            path.unlink(missing_ok=True)


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


def _folder(task: Task) -> Path:
    folder, private = task.out, task.out / "private"
    try:
        (folder / "publish").mkdir(parents=True, exist_ok=True)
        _remove_remains(folder / "publish")
        private_files.closed(private, name="out")
        with private_files.enclosed(private):
            write_whole(private / "README.txt", owner_report.README.encode())
    except OSError as failure:
        raise InputError(
            "out",
            f"{folder}: {failure.strerror}",
            requirement="must be a folder that can be written",
            remedy="choose another",
        ) from None
    return folder


@contextlib.contextmanager
def _told_if_interrupted(ledger: Ledger, folder: Path) -> Iterator[None]:
    """Let a `KeyboardInterrupt` say what this run has spent so far, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{_spent(ledger, folder)}; the same run with `resume=True` continues") from None


def _spent(ledger: Ledger, folder: Path) -> str:
    """What the run in this folder has spent, in words."""
    try:
        path = folder / "private" / "release.json"
        release = run(path.parent, None).release if path.exists() else None
        paid = [entry for entry in ledger.entries() if release is not None and entry.detail.get("release") == release]
    except TacitError:
        return "tacit ledger shows what was spent"
    spent = NOTHING
    for entry in paid:
        spent += Amount(entry.epsilon, entry.delta)
    return f"this run has spent {spent}, which it will not spend again" if paid else "nothing was spent"


def _where(task: Task) -> str:
    """The place of the ledger, without a password."""
    named, _ = _place(task)
    return name_of(named) if named and "://" in named else str(Path(named or task.out / "ledger.sqlite").resolve())


def _check_ledger(task: Task) -> None:
    """Refuse a ledger that was mistyped before a folder is made."""
    named, new = _place(task)
    if named is not None and not new:
        require_ledger(named, "ledger", remedy="check its name, or add `new_ledger=True` to make it")


def _check_anchor(task: Task) -> None:
    """Refuse an anchor that cannot be used before a folder or a ledger is made, and a run that goes on without its own.

    A run that goes on without the anchor that it began with would not notice an earlier ledger that was restored
    together with the folder.
    """
    kept = task.out / "private" / _OUTSIDE
    if task.anchor is None:
        if kept.exists():
            raise InputError(
                "anchor",
                None,
                requirement="must be given, as the run in this folder began with one",
                remedy=f"add `anchor` {kept.read_text(encoding='utf-8').strip()}; if that is lost, `new_anchor` makes "
                "another, once you know that the ledger is the latest",
            )
        return
    path = str(task.anchor.absolute())
    before = anchor.remembered(path)
    named, new = _place(task)
    missing = named is None or not exists(named)
    if new or not (named and missing):  # a ledger that was mistyped is refused when it is opened
        anchor.check(path, before, new_ledger=new and missing, new_anchor=task.new_anchor)


def _place(task: Task) -> tuple[str | None, bool]:
    """The ledger that was named, None for that of the folder, and whether it may be created."""
    named, own = named_place("ledger", task.ledger, task.ledger_url_file), task.out / "ledger.sqlite"
    return named, task.new_ledger if named else not (own.exists() or run_folder.claimed(task.out / "private"))


def _ledger(task: Task) -> Ledger:
    """The ledger named, or that of the folder; a new one has the budget of this run."""
    named, new = _place(task)
    budget = {"epsilon": task.budget_epsilon or task.epsilon, "delta": task.budget_delta or task.delta} if new else {}
    if task.anchor is not None:  # remembered before anything can be spent, so that no killed run forgets it
        with private_files.enclosed(task.out / "private"):
            write_whole(task.out / "private" / _OUTSIDE, f"{task.anchor.absolute()}\n".encode())
    own = task.out / "ledger.sqlite"
    return Ledger.open(named or own, anchor=task.anchor, new_anchor=task.new_anchor, **budget)
