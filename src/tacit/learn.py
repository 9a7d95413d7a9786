"""`tacit learn`: a table of private records in, a classifier out that may be published.

The output folder has two rooms. `publish/` holds what may leave: the student, the public records with the answers, the
report. `private/` holds the teachers, their key, and a page for the owner; it is as private as the records. Between
them stands the ledger, unless it stands elsewhere: what was paid, and every answer that was released.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import importlib
import io
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checked, tables
from .errors import InputError, TacitError
from .files import write_whole
from .guarantee import Adversary, Assumption, Comparison, Guarantee, safe_text
from .learning import Columns, PrivateClassifier, stored, workers
from .learning.choice import NAMES, margins
from .learning.columns import texts
from .learning.rehearsal import rehearsal, vouched
from .ledger import Ledger
from .report import Figure, Report, Table, figures
from .theory.confidence import binomial_lower, binomial_upper

WARNING = "NOT TO BE PUBLISHED"
_MOST_CLASSES = 20
_README = f"""{WARNING}

This folder is as private as the records themselves. It holds the teachers, each trained on some of them, the key that
dealt records to teachers, and owner.html, which was computed from private records without noise.

What may leave is in the folder publish beside it.
"""
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


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to learn, from which files, at what cost; the fields are the options of the command line."""

    private: Path
    label: str
    out: Path
    epsilon: float
    delta: float
    public: Path | None = None
    test: Path | None = None
    learner: str = "sklearn.linear_model:LogisticRegression"
    settings: tuple[str, ...] = ()
    student: str | None = None
    student_settings: tuple[str, ...] = ()
    teachers: int | None = None
    mechanism: str = "auto"
    queries: str | None = None
    refusals: int | None = None
    expected: float = 0.8
    classes: str | None = None
    ids: str | None = None
    proposer: Path | None = None
    ledger: str | None = None
    engine: str = "local"
    resume: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """Private records, public ones unless all records lend their features, and records to test on, as numbers."""

    columns: Columns
    records: NDArray[np.float64]
    labels: NDArray[Any]
    classes: NDArray[Any]
    ids: list[str] | None
    public: NDArray[np.float64] | None
    test: tuple[tables.Table, list[str]] | None
    proposer: tuple[NDArray[np.float64], NDArray[Any]] | None
    """Labelled records that may be known, for a model that proposes labels."""
    unknown: dict[str, float]
    """For each column, the share of private records for which the public rule has no value. Private."""
    unused: tuple[str, ...]
    """Columns of the public table that nothing was learned from."""


def learn(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run what is left of the task, write everything into its folder, and report what may be known."""
    _check(task)
    advance("reading tables")
    data = _data(task)
    classifier = _classifier(task, data)
    advance("trying the learner on made-up records")
    size = {"width": data.records.shape[1], "classes": len(data.classes)}
    with _quiet_learners():
        held = rehearsal("--learner", classifier.estimator, **size)
        trusted = vouched("--learner", classifier.estimator, held)
        if classifier.student is not None:
            rehearsal("--student", classifier.student, **size)
        proposer = _proposer(classifier, data)
    with workers.opened(task.engine):
        folder = _folder(task)  # once a cluster, if there is to be one, has answered
    classifier.set_params(ledger=_ledger(task))
    advance("training teachers")
    with _quiet_learners():
        try:
            classifier.fit(
                data.records,
                data.labels,
                data.public,
                ids=data.ids,
                proposer=proposer,
                folder=folder / "private",
                trusted=trusted,
                advance=advance,
            )
        except TacitError:
            raise
        except Exception as failure:  # of foreign code, whose words may quote records
            paid = hasattr(classifier, "labels_")
            raise InputError(
                "the student" if paid else "PRIVATE",
                type(failure).__name__,
                requirement="must learn from public records and answers; the budget is spent, the answers are kept"
                if paid
                else "must hold records that teachers can be trained on",
                remedy="choose another with --student and add --resume, which costs no privacy"
                if paid
                else "see that there are more than a few",
            ) from None
        assumed = [_CHOSEN_BLINDLY, *[_TEST] * (data.test is not None)]
        proven = classifier.guarantee_
        classifier.guarantee_ = dataclasses.replace(proven, assumptions=(*assumed, *proven.assumptions))
        advance("writing what may be published")
        accuracy = _accuracy(data.columns.before(classifier.published()), data.test)
        report = _published(task, data, classifier, accuracy, folder / "publish")
        advance("writing the owner's page")
        _owner(task, data, classifier, accuracy, folder / "private")
    return report


def _check(task: Task) -> None:
    """Numbers and names that need no file, so that nothing is read, or made, in vain."""
    checked.number("--epsilon", task.epsilon, at_least=1e-9, at_most=1e4, remedy="use about 1")
    checked.probability("--delta", task.delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    checked.choice("--mechanism", task.mechanism, ("auto", *NAMES), remedy="use auto")
    checked.number(
        "--expected", task.expected, above=0.5, at_most=1, remedy="give the share of teachers that are right"
    )
    for name, value in (("--teachers", task.teachers), ("--refusals", task.refusals)):
        if value is not None:
            checked.whole(name, value, at_least=1, remedy="leave it out to have it chosen")
    if task.queries is not None and task.queries != "all" and not re.fullmatch(r"0*[1-9]\d{0,15}", task.queries):
        raise InputError("--queries", task.queries, requirement="must be 'all' or a number ≥ 1", remedy="leave it out")
    if task.public is not None and task.public.resolve() == task.private.resolve():
        raise _public_is_private(task.public)
    for name, path in (("--test", task.test), ("--proposer", task.proposer)):
        if path is not None and path.resolve() == task.private.resolve():
            raise _others(name, path)
    if (task.mechanism == "confirm") != (task.proposer is not None) and task.mechanism != "auto":
        raise InputError(
            "--proposer",
            None if task.proposer is None else str(task.proposer),
            requirement="must be given for --mechanism confirm, and for no other but auto",
            remedy="name labelled records that may be known, or choose gate",
        )
    private = task.out / "private"
    if (private / "task.json").exists() and not task.resume:
        raise InputError(
            "--out", str(task.out), requirement="must be new without --resume", remedy="add --resume to go on there"
        )


def _others(option: str, path: Path) -> InputError:
    return InputError(
        option,
        str(path),
        requirement="must hold other records than PRIVATE",
        remedy="set some aside, or leave it out",
    )


def _public_is_private(path: Path) -> InputError:
    return InputError(
        "--public",
        str(path),
        requirement="must hold other records than PRIVATE: it is published",
        remedy="set some aside, or leave it out to protect labels alone",
    )


def _data(task: Task) -> _Data:
    private = tables.read(task.private, name="PRIVATE")
    labels = _labels(_taken(private, task.label, "--label"), "PRIVATE", task.label)
    ids = None if task.ids is None else texts(_taken(private, task.ids, "--ids"))
    if ids is not None and None in ids:
        raise InputError(
            f"column {task.ids!r} of PRIVATE",
            "a record without one",
            requirement="must say whose every record is",
            remedy="fill it in",
        )
    public, unused = None, []
    if task.public is not None:
        public = tables.read(task.public, name="--public")
        shared = [name for name in public if name in private and name != task.label]
        if shared and all(np.array_equal(public[name], private[name]) for name in shared):
            raise _public_is_private(task.public)
        unused = [name for name in (task.label, task.ids) if name is not None and public.pop(name, None) is not None]
    classes = _classes(task, labels)
    columns = Columns().fit(private if public is None else public)
    if not len(columns.get_feature_names_out()):
        raise InputError(
            "--public", columns.names_, requirement="must have columns to learn from", remedy="add features"
        )
    test = None if task.test is None else _labelled(task, task.test, "--test", classes, columns)
    proposer = None
    if task.proposer is not None:
        given, said = _labelled(task, task.proposer, "--proposer", classes, columns)
        if all(name in private and np.array_equal(given[name], private[name]) for name in columns.names_):
            raise _others("--proposer", task.proposer)
        named = np.isin(said, classes)
        proposer = columns.transform(given)[named], _typed([text for text in said if text in classes], classes)
    if public is not None:
        _same_columns(private, columns, "PRIVATE")
    return _Data(
        columns=columns,
        records=columns.transform(private),
        labels=_typed(labels, classes),
        classes=_typed(classes, classes),
        ids=None if ids is None else [str(owner) for owner in ids],
        public=None if public is None else columns.transform(public),
        test=test,
        proposer=proposer,
        unknown=columns.unknown(private),
        unused=tuple(unused),
    )


def _labelled(
    task: Task, path: Path, option: str, classes: Sequence[str], columns: Columns
) -> tuple[tables.Table, list[str]]:
    """Other labelled records, with the columns of the public ones."""
    found = tables.read(path, name=option)
    labels = _labels(_taken(found, task.label, "--label", of=option), option, task.label)
    if not set(labels) & set(classes):
        raise InputError(
            f"column {task.label!r} of {option}",
            labels[0],
            requirement="must hold the classes of PRIVATE",
            remedy="write labels alike in both files",
        )
    found.pop(task.ids or "", None)
    _same_columns(found, columns, option)
    return found, labels


def _taken(table: tables.Table, column: str, option: str, of: str = "PRIVATE") -> NDArray[Any]:
    if column not in table:
        raise InputError(option, column, requirement=f"must name a column of {of}", remedy=f"it has {', '.join(table)}")
    return table.pop(column)


def _labels(column: NDArray[Any], name: str, label: str) -> list[str]:
    found = texts(column)
    if None in found:
        raise InputError(
            f"column {label!r} of {name}",
            "a record without one",
            requirement="must hold a label for every record",
            remedy="leave such records out",
        )
    return [str(text) for text in found]


def _same_columns(table: tables.Table, columns: Columns, name: str) -> None:
    lacking = [column for column in columns.names_ if column not in table]
    beyond = [column for column in table if column not in columns.names_]
    if lacking or beyond:
        parts = [f"lacking {', '.join(lacking)}"] * bool(lacking) + [f"beyond them {', '.join(beyond)}"] * bool(beyond)
        raise InputError(
            f"the columns of {name}",
            "; ".join(parts),
            requirement="must be those of the public table, and the label",
            remedy="rename, add or leave out columns in one of the files",
        )


def _classes(task: Task, labels: Sequence[str]) -> list[str]:
    """All that may occur: as told, else as found, which is then treated as public."""
    column = f"column {task.label!r} of PRIVATE"
    if task.classes is None:
        found, name, shown = set(labels), column, "one class"
        if len(found) > max(_MOST_CLASSES, len(labels) // 10):
            raise InputError(
                column,
                "almost as many labels as records",
                requirement="must name classes",
                remedy="group its values into a few, or name another column",
            )
    else:
        told = texts(np.array(task.classes.split(","), dtype=object))
        found, name, shown = {text for text in told if text is not None}, "--classes", task.classes
        if len(found) > 1 and not found.issuperset(labels):
            raise InputError(
                column,
                "some other label",  # but not which, as labels are private
                requirement="must hold classes of --classes alone",
                remedy="list every label that may occur",
            )
    if len(found) < 2:
        raise InputError(
            name,
            shown,
            requirement="must hold two classes or more",
            remedy="list all that may occur, as in --classes yes,no",
        )
    return sorted(found)


def _typed(labels: Sequence[str], classes: Sequence[str]) -> NDArray[Any]:
    """Whole numbers if all classes are, else text."""
    whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", text) for text in classes)
    return np.array(labels, dtype=np.int64 if whole else None)


def _classifier(task: Task, data: _Data) -> PrivateClassifier:
    student = None
    if task.student is not None:
        student = _learner("--student", task.student, "--student-set", task.student_settings)
    return PrivateClassifier(
        _learner("--learner", task.learner, "--set", task.settings),
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
        random_state=0,  # of clusters of public points: a run that goes on must ask the same
    )


def _proposer(classifier: PrivateClassifier, data: _Data) -> Any:
    """A student, or a teacher, of labelled records that may be known."""
    if data.proposer is None:
        return None
    model = copy.deepcopy(classifier.estimator if classifier.student is None else classifier.student)
    for name, value in model.get_params().items():
        if re.fullmatch(r"(.*__)?random_state", name) and value is None:
            model.set_params(**{name: 0})  # a run that goes on must propose the same
    records, labels = data.proposer
    try:
        return model.fit(records, labels)
    except Exception as failure:  # of foreign code
        raise InputError(
            "--proposer",
            f"{type(failure).__name__}: {failure}",
            requirement="must hold records that the student, or else the learner, can be fitted to",
            remedy="see that there are more than a few, of two classes or more",
        ) from None


def _learner(option: str, text: str, setting: str, settings: Sequence[str]) -> Any:
    """An instance of the class of an installed package."""
    module, _, name = text.partition(":")
    requirement = "must be MODULE:CLASS of an installed package"
    remedy = "write for example sklearn.linear_model:LogisticRegression"
    try:
        with warnings.catch_warnings(), _installed_alone():
            warnings.simplefilter("ignore")
            found = getattr(importlib.import_module(module), name)
            made = found()
    except Exception as failure:  # whatever a foreign module raises
        raise InputError(
            option, f"{text}: {type(failure).__name__}: {failure}", requirement=requirement, remedy=remedy
        ) from None
    if isinstance(made, type) or not all(
        callable(getattr(made, word, None)) for word in ("fit", "predict", "get_params")
    ):
        raise InputError(option, text, requirement="must be a classifier in the style of scikit-learn", remedy=remedy)
    known = made.get_params()
    for pair in settings:
        key, sign, value = pair.partition("=")
        if not sign or key not in known:
            raise InputError(
                setting, pair, requirement=f"must be NAME=VALUE of {name}", remedy=f"it has {', '.join(sorted(known))}"
            )
        made.set_params(**{key: _value(value)})
    return made


@contextlib.contextmanager
def _installed_alone() -> Iterator[None]:
    """`python -m` looks for modules in the current folder first: a file that lies there is no package."""
    before = list(sys.path)
    if sys.path[:1] in ([""], [os.getcwd()]):
        del sys.path[0]
    try:
        yield
    finally:
        sys.path[:] = before


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _folder(task: Task) -> Path:
    folder, private = task.out, task.out / "private"
    try:
        (folder / "publish").mkdir(parents=True, exist_ok=True)
        private.mkdir(mode=0o700, exist_ok=True)
        write_whole(private / "README.txt", _README.encode())
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


@contextlib.contextmanager
def _quiet_learners() -> Iterator[None]:
    """Learners' warnings and what they print, here and in the processes that train teachers: it may be private."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    sys.stdout.flush()
    printed, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries in C print passes Python by
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(printed, 1)
        os.close(printed)
        os.close(nowhere)
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _published(
    task: Task, data: _Data, model: PrivateClassifier, accuracy: dict[str, float] | None, folder: Path
) -> Report:
    """The student, the labelled records, the report: nothing here comes from private records but through answers."""
    trusted = stored.publish(folder / "student.skops", data.columns.before(model.published()))
    source = task.private if task.public is None else task.public
    labelled = f"labelled{source.suffix.lower()}"
    answers = [None if number < 0 else model.classes_[number].item() for number in model.labels_.tolist()]
    rows, hidden = (None, None) if task.public is not None else (model.public_.tolist(), task.ids)
    tables.write_with_column(folder / labelled, source, task.label, answers, rows=rows, without=hidden)
    asked = len(model.answered_) + len(model.refused_)
    report = Report(
        command="learn",
        title="A classifier that may be published, and what it gives away",
        summary=_summary(task, data, model, accuracy, labelled),
        comparisons=(Comparison(guarantee=model.guarantee_),),
        tables=(_answers_table(model),),
        figures=(_leads_figure(task, model),),
        detail={
            "epsilon": task.epsilon,
            "delta": task.delta,
            "label_private": task.public is None,
            "classes": model.classes_.tolist(),
            "public_points": len(model.labels_),
            "asked": asked,
            "answered": len(model.answered_),
            "refused": len(model.refused_),
            "epsilon_per_answer": task.epsilon / len(model.answered_),
            "choice": model.choice_,
            "columns": {"numeric": list(data.columns.numeric_), "categories": data.columns.categories_},
            "unused_columns": list(data.unused),
            "test": accuracy,
            "student": {"file": "student.skops", "trusted": list(trusted)},
            "labelled": labelled,
        },
    )
    write_whole(folder / "results.json", report.to_json().encode())
    write_whole(folder / "report.html", report.to_html().encode())
    return report


def _accuracy(predictor: Any, test: tuple[tables.Table, list[str]] | None) -> dict[str, float] | None:
    """The share of records to test on that it names rightly, with 95 % confidence limits, and that of one class."""
    if test is None:
        return None
    table, truth = test
    named = texts(np.asarray(predictor.predict(table)))
    right, trials = sum(one == other for one, other in zip(named, truth, strict=True)), len(truth)
    return {
        "records": trials,
        "accuracy": right / trials,
        "low": float(binomial_lower(right, trials=trials, failure_probability=0.025)),
        "high": float(binomial_upper(right, trials=trials, failure_probability=0.025)),
        "one_class": max(truth.count(text) for text in set(truth)) / trials,
    }


def _summary(
    task: Task, data: _Data, model: PrivateClassifier, accuracy: dict[str, float] | None, labelled: str
) -> tuple[str, ...]:
    whom = "label" if task.public is None else "person's records" if task.ids else "record"
    factor = safe_text(math.exp(task.epsilon), toward="up")
    asked, points = len(model.answered_) + len(model.refused_), len(model.labels_)
    promise = (
        f"Whoever sees all of this, whatever else they know: any one private {whom} makes nothing that they see more "
        f"than {factor} times as likely or unlikely (ε = {task.epsilon:g}), except with probability δ = "
        f"{task.delta:g}."
    )
    said = [promise]
    if task.public is None:
        said.append(
            "Labels alone are protected. Without public records the features of all records are treated as public, "
            "and half of the records are published here without their own labels."
        )
    if task.epsilon > 4:
        said.append(f"That is a weak promise: at ε = {task.epsilon:g} a determined reader may learn a good deal.")
    said.append(
        f"{asked} of {points} public records were asked about; {len(model.answered_)} were answered, "
        f"{len(model.refused_)} refused. The budget paid for all answers together: ε = "
        f"{safe_text(task.epsilon / len(model.answered_), toward='nearest')} an answer on average."
    )
    if accuracy is not None:
        said.append(
            f"The student is right on {100 * accuracy['accuracy']:.1f} % of {accuracy['records']} records to test on "
            f"({100 * accuracy['low']:.1f} to {100 * accuracy['high']:.1f} with 95 % confidence); naming the most "
            f"frequent class always is right on {100 * accuracy['one_class']:.1f} %. These records are not protected: "
            "publish this figure only if their labels may be known."
        )
    said.append(
        f"{len(data.columns.numeric_)} columns of numbers and {len(data.columns.categories_)} of text became numbers "
        "by a rule that public records alone decide: public mean, deviation and median (where a number is missing), "
        "public categories (all zeros for any other)."
    )
    if data.unused:
        said.append(f"Columns of the public table that were not used: {', '.join(data.unused)}.")
    said.append(f"The choice: {model.choice_}.")
    said.append(f"Beside this page lie student.skops and {labelled}, the public records with the answers.")
    return tuple(said)


def _answers_table(model: PrivateClassifier) -> Table:
    numbers = model.labels_[model.answered_]
    counts = np.bincount(numbers, minlength=len(model.classes_))
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    left = len(counts) - len(order)
    return Table(
        title="Answers",
        columns=("class", "public records", "share"),
        rows=tuple((str(model.classes_[c]), str(counts[c]), f"{100 * counts[c] / len(numbers):.1f} %") for c in order),
        note="How often each class was answered. Answers carry noise and may be wrong; they are what was paid for."
        + f" {left} rarer classes are left out." * bool(left),
    )


def _leads_figure(task: Task, model: PrivateClassifier) -> Figure:
    """Of votes that were expected, and of noisy counts where these were released: true votes are private."""
    teachers, noise = _noise(model)
    found: dict[str, Any] = {"expected beforehand": np.array(margins(task.expected))}
    if model.noisy_counts_ is not None:
        ordered = np.sort(model.noisy_counts_[model.answered_], axis=1)
        found["in the noisy counts released"] = (ordered[:, -1] - ordered[:, -2]) / teachers
    return Figure(
        title="Leads of the winning class",
        caption="By how many votes, as a share of all teachers, the right class was expected to lead when the "
        "mechanism was chosen"
        + (", and the lead in the counts that were released with noise" if len(found) > 1 else "")
        + ". "
        "Leads near the noise or below it are often lost. True votes are private and not shown.",
        alternative=f"A histogram of expected leads, with noise of {noise:.3g} votes among {teachers} teachers marked.",
        svg=figures.leads(found, noise / teachers),
    )


def _noise(model: PrivateClassifier) -> tuple[int, float]:
    detail = model.guarantee_.detail
    return int(detail["n_teachers"]), float(detail["spread"])


def _owner(task: Task, data: _Data, model: PrivateClassifier, accuracy: dict[str, float] | None, folder: Path) -> None:
    """What the owner alone may see: computed from private records without noise."""
    asked = np.sort(np.concatenate([model.answered_, model.refused_]))
    public = data.records[model.public_] if data.public is None else data.public
    counts = np.sort(model.teachers_.counts(public[asked], engine=task.engine), axis=1)
    teachers, noise = _noise(model)
    leads = (counts[:, -1] - counts[:, -2]) / teachers
    rows = [("median lead", f"{100 * np.median(leads):.1f} %")]
    plain = _unprotected_accuracy(task, data)
    for name, found in (("student", accuracy), ("no privacy", plain)):
        if found is not None:
            rows.append((f"accuracy, {name}", f"{100 * found['accuracy']:.1f} %"))
    rows += [(f"unknown {name}", f"{100 * share:.1f} %") for name, share in data.unknown.items() if share]
    caution = (
        "If you change options because of it and run again, the new choice depends on private records in a way that no "
        "budget covers."
    )
    page = Report(
        command="learn",
        title=f"{WARNING}: what only the owner of the records may see",
        summary=(
            "Everything here was computed from private records without noise. Nothing protects them on this page.",
            f"It shows how well teachers agree{' and what privacy cost in accuracy' * (plain is not None)}.",
            caution,
        ),
        comparisons=(Comparison(guarantee=_UNPROTECTED),),
        tables=(
            Table(
                title="For the owner",
                columns=("what", "found"),
                rows=tuple(rows),
                note="Median lead: of the winning class over the next, in true votes, as a share of teachers."
                + " Accuracy: of the student, and of the learner on all private records without privacy."
                * (plain is not None)
                + " Unknown: the share of private records whose value is missing, or none that public records have."
                * any(data.unknown.values()),
            ),
        ),
        figures=(
            Figure(
                title="True leads of the winning class",
                caption="Over its rival, as a share of all teachers, on every query that was asked.",
                alternative=f"A histogram of true leads, with their median at {100 * np.median(leads):.1f} %.",
                svg=figures.leads(
                    {"true votes": leads, "expected beforehand": np.array(margins(task.expected))}, noise / teachers
                ),
            ),
        ),
        detail={"leads": leads.tolist(), "test_unprotected": plain, "unknown": data.unknown},
    )
    write_whole(folder / "owner.json", page.to_json().encode())
    write_whole(folder / "owner.html", page.to_html().encode())


def _unprotected_accuracy(task: Task, data: _Data) -> dict[str, float] | None:
    """Of the learner itself, trained on all private records at once."""
    if data.test is None:
        return None
    learner = _learner("--learner", task.learner, "--set", task.settings)
    try:
        return _accuracy(data.columns.before(learner.fit(data.records, data.labels)), data.test)
    except Exception:  # a learner that served for chunks may have no room for all records: nothing depends on it
        return None


_UNPROTECTED = Guarantee(
    quantity="privacy loss ε of this page",
    side="at_most",
    value=math.inf,
    adversary=Adversary.ANY,
    theorem="none: no noise was added to what stands here",
    assumptions=(Assumption(text="nobody but the owner of the records sees this page", checked_by="caller"),),
)
