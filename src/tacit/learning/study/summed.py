"""`tacit learn` for numbers and for several labels: sums of teachers' answers, released once with noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, TacitError
from ...core.guarantee import Comparison
from ...core.wording import counted, safe_text, text_above
from ...report import FINE, WEAK, Change, Report, Table, Verdict
from ...report.timing import Timed
from ...runtime import private_files, tables, workers
from ...runtime.files import write_whole
from .. import stored
from ..assumptions import ENCODER_PUBLIC
from ..multi_label import PrivateMultiLabelClassifier
from ..regressor import PrivateRegressor
from . import earlier_ledgers, inputs, learners
from .options import Task
from .owner_report import CAUTION, UNPROTECTED, WARNING
from .places import (
    check_anchor,
    check_ledger,
    opened_ledger,
    output_folder,
    rehearsed,
    told_if_interrupted,
    where,
)
from .publication import CHOSEN_BLINDLY, TEST_KNOWN, WEAK_EPSILON, promise_figure, promise_verdict, protected

_USEFUL = 0.1
"""The share of the spread that a useful student explains, or by which it beats naming no label at all."""

Model = PrivateRegressor | PrivateMultiLabelClassifier


def run(task: Task, advance: Callable[[str], None]) -> Report:
    """Run what is left of the task, write its folder, and return the report that may be published."""
    if task.public is None:
        raise InputError("public", None, requirement="must name a file of public records", remedy="give one")
    advance = Timed(advance)
    advance("reading tables")
    data = inputs.read_numbers(task, task.public, advance)
    model = _model(task)
    check_ledger(task)
    check_anchor(task)
    place = where(task)
    earlier_ledgers.warn_of(task.private, place)
    with workers.open_workers(task.engine):
        folder = output_folder(task)  # once a cluster, if there is to be one, has answered
    ledger = opened_ledger(task)
    earlier_ledgers.remember(task.private, place)
    model.set_params(ledger=ledger)
    values = data.values[:, 0] if task.label_range is not None else data.values
    with told_if_interrupted(ledger, folder), learners.quiet():
        advance("training teachers")
        try:
            model.fit(
                data.records,
                values,
                data.public,
                ids=data.ids,
                ids_column=task.ids,
                folder=folder / "private",
                allow_overlap=task.allow_overlap,
                rehearse=lambda made: rehearsed(folder, lambda trial: _trial(task, data, made, trial)),
                advance=advance,
            )
        except TacitError:
            raise
        except Exception as failure:  # of foreign code, whose words may quote records
            raise InputError(
                "private",
                type(failure).__name__,
                requirement="must hold records that teachers can be trained on",
                remedy="see that there are more than a few; tacit ledger says whether anything was spent",
            ) from None
        advance("writing what may be published")
        try:
            report, measured = _published(task, data, model, folder / "publish")
            advance("writing the owner's page")
            with private_files.enclosed(folder / "private"):
                _write_owner(task, data, folder / "private", measured, _unprotected(task, data))
        except OSError as failure:
            raise InputError(
                "out",
                f"{failure.strerror}, in {folder}",
                requirement="must be a folder with room for what was paid for; the budget is spent, the answers are "
                "kept",
                remedy="make room there and add `resume`, which costs no privacy",
            ) from None
    return report


def _model(task: Task) -> Model:
    learner = learners.learner("learner", task.learner, "settings", task.settings)
    student = None
    if task.student is not None:
        student = learners.learner("student", task.student, "student_settings", task.student_settings)
    learners.place(task.device, [learner] if student is None else [learner, student])
    options: dict[str, Any] = {
        "epsilon": task.epsilon,
        "delta": task.delta,
        "n_teachers": "auto" if task.teachers is None else task.teachers,
        "student": student,
        "queries": task.queries if task.queries in (None, "all") else int(str(task.queries)),
        "engine": task.engine,
        "random_state": 0,  # of clusters of public records: a run that goes on must ask the same
    }
    if task.label_range is None:
        return PrivateMultiLabelClassifier(learner, **options)
    return PrivateRegressor(learner, label_range=task.label_range, **options)


def _trial(task: Task, data: inputs.Numbers, model: Model, folder: Path) -> Iterable[Path]:
    """Write all pages from made-up answers; return those that are to be published."""
    _, measured = _published(task, data, model, folder)
    written = list(folder.iterdir())
    _write_owner(task, data, folder, measured, None)
    return written


def _published(task: Task, data: inputs.Numbers, model: Model, folder: Path) -> tuple[Report, dict[str, Any] | None]:
    """Write what may be published; return its report and what test records show, which may be for the owner alone."""
    shown = data.test is not None and not task.allow_overlap
    compared, *others = model.guarantee_.assumptions
    assumed = (
        compared,
        CHOSEN_BLINDLY,
        *[ENCODER_PUBLIC] * bool(data.columns.encoders),
        *[TEST_KNOWN] * shown,
        *others,
    )
    model.guarantee_ = dataclasses.replace(model.guarantee_, assumptions=assumed)
    predictor = data.columns.before(model.published())
    measured = _measured(task, predictor, data.test)
    trusted = stored.publish(folder / "student.skops", predictor)
    answers = _write_answers(task, data, model, folder)
    report = _report(task, data, model, measured if shown else None, answers, trusted)
    write_whole(folder / "results.json", report.to_json().encode())
    write_whole(folder / "report.html", report.to_html().encode())
    return report, measured


def _write_answers(task: Task, data: inputs.Numbers, model: Model, folder: Path) -> str:
    """Write the public records with the noisy means in the place of the labels; return the name of the file."""
    source = task.public or task.private  # which is checked to be the first
    name = f"labelled{source.suffix.lower()}"
    for number, label in enumerate(task.labels):
        means: list[float | None] = [None] * len(data.public)
        for place, mean in zip(model.asked_.tolist(), model.means_[:, number].tolist(), strict=True):
            means[place] = float(f"{mean:.6g}")
        tables.write_with_column(folder / name, source if number == 0 else folder / name, label, means)
    return name


def _measured(
    task: Task, predictor: Any, test: tuple[tables.Table, NDArray[np.float64]] | None
) -> dict[str, Any] | None:
    """How well test records are predicted, and how well without looking at them."""
    if test is None:
        return None
    table, truth = test
    said = np.asarray(predictor.predict(table), dtype=np.float64).reshape(len(truth), -1)
    if task.label_range is not None:  # numbers beyond the range are none that it predicts, and count as they are
        spread = float(np.sum((truth - truth.mean()) ** 2))
        return {
            "records": len(truth),
            "explained": 1 - float(np.sum((truth - said) ** 2)) / spread if spread else 0.0,
            "error": float(np.abs(truth - said).mean()),
            "error_of_mean": float(np.abs(truth - truth.mean()).mean()),
        }
    both, either = float(np.sum(truth * said)), float(np.sum(truth) + np.sum(said))
    usual = truth.mean(axis=0) > 0.5
    return {
        "records": len(truth),
        "f1": 2 * both / either if either else 0.0,
        "right": float((truth == said).mean()),
        "right_of_usual": float((truth == usual).mean()),
        "labels": {
            label: {"right": float(right), "right_of_usual": float(otherwise)}
            for label, right, otherwise in zip(
                task.labels, (truth == said).mean(axis=0), (truth == usual).mean(axis=0), strict=True
            )
        },
    }


def _words(task: Task, measured: dict[str, Any]) -> str:
    """What test records show, in a sentence."""
    if task.label_range is not None:
        return (
            f"On {measured['records']} test records the student is off by {measured['error']:.3g} on average, where "
            f"their mean is off by {measured['error_of_mean']:.3g}; it explains {100 * measured['explained']:.1f} % of "
            "their variance (R²)."
        )
    return (
        f"On {measured['records']} test records the student is right about {100 * measured['right']:.1f} % of the "
        f"labels, where always saying what is more frequent is right about {100 * measured['right_of_usual']:.1f} %; "
        f"its F1 score over all labels is {measured['f1']:.3f}."
    )


def _useful(task: Task, measured: dict[str, Any]) -> bool:
    if task.label_range is not None:
        return bool(measured["explained"] > _USEFUL)
    return bool(measured["right"] > measured["right_of_usual"] + _USEFUL * (1 - measured["right_of_usual"]))


def _report(
    task: Task,
    data: inputs.Numbers,
    model: Model,
    measured: dict[str, Any] | None,
    answers: str,
    trusted: tuple[str, ...],
) -> Report:
    proven, noise = model.guarantee_.detail, _noise(model)
    learned = f"a number of {task.labels[0]}" if task.label_range is not None else counted(len(task.labels), "label")
    promise = (
        f"Protected: {proven['neighbours']}. For anyone who sees all of this, whatever else they know: the probability "
        f"of any conclusion changes by a factor of at most {_factor(task.epsilon)} (ε = {text_above(task.epsilon)}), "
        f"plus δ = {text_above(task.delta)}."
    )
    replaced = {name: safe_text(amount, toward="up") for name, amount in proven["replaced"].items()}
    one = "person" if task.ids else "record"
    instead = (
        f"This compares data with and without one {one}; with another {one} in the place of one, ε = "
        f"{replaced['epsilon']} and δ = {replaced['delta']} (tacit proof replacement_delta)."
    )
    said = [
        promise,
        instead,
    ]
    if "epsilon_count" in proven:
        said.append(
            f"ε = {text_above(proven['epsilon_count'])} of this paid for the number of private "
            f"{'people' if task.ids else 'records'}, read with noise (tacit proof laplace_scale), which gave the "
            f"number of teachers, {model.n_teachers_}."
        )
    if task.allow_overlap:
        said.append("Private records that are also in --public or --test are not protected (--allow-overlap).")
    if task.epsilon > WEAK_EPSILON:
        said.append(f"That is a weak promise: at ε = {text_above(task.epsilon)} a determined reader may learn a lot.")
    said.append(
        f"{model.n_teachers_} teachers, each trained on its own part of the private records, were asked about "
        f"{len(model.asked_)} of {len(data.public)} public records. {_answering(task)} The sums were released once, "
        f"each with noise; a mean has a noise of {noise}. The student averages over many of them."
    )
    if measured is not None:
        said.append(
            f"{_words(task, measured)} These records are not protected: publish this figure only if their labels may "
            "be known."
        )
    said.append(
        f"{len(data.columns.numeric_)} numeric and {len(data.columns.categories_)} text columns were encoded by a rule "
        "that depends only on public records."
    )
    if data.unused:
        said.append(f"Columns of the public table that were not used: {', '.join(data.unused)}.")
    said.append(f"Beside this page are student.skops and {answers}, the public records with the noisy means.")
    kind = "A regressor" if task.label_range is not None else "A classifier of several labels"
    return Report(
        command="learn",
        title=f"{kind} that may be published, and what it gives away",
        summary=tuple(said),
        comparisons=(Comparison(guarantee=model.guarantee_),),
        verdicts=_verdicts(task, model, measured),
        opening=(promise_figure(task),),
        changes=_changes(task, measured),
        tables=(*_labels_tables(task, measured), _means_table(task, model)),
        detail={
            "epsilon": task.epsilon,
            "delta": task.delta,
            "neighbours": proven["neighbours"],
            "allow_overlap": task.allow_overlap,
            "labels": list(task.labels),
            "label_range": None if task.label_range is None else list(task.label_range),
            "learned": learned,
            "public_records": len(data.public),
            "asked": len(model.asked_),
            "teachers": model.n_teachers_,
            "columns": {"numeric": list(data.columns.numeric_), "categories": data.columns.categories_},
            "unused_columns": list(data.unused),
            "test": measured,
            "student": {"file": "student.skops", "trusted": list(trusted)},
            "labelled": answers,
        },
    )


def _answering(task: Task) -> str:
    if task.label_range is None:
        return "A teacher said yes or no to each label."
    low, high = task.label_range
    return f"Answers below {low:g} or above {high:g}, the stated range, were set to its ends."


def _factor(epsilon: float) -> str:
    return safe_text(math.exp(epsilon), toward="up") if epsilon < 700 else f"e^{text_above(epsilon)}"


def _noise(model: Model) -> str:
    share = model.guarantee_.detail["spread"] / model.n_teachers_
    if isinstance(model, PrivateMultiLabelClassifier):
        return f"{share:.3g} of all teachers"
    low, high = model.label_range or (0.0, 1.0)
    return f"{share * (high - low):.3g}"


def _verdicts(task: Task, model: Model, measured: dict[str, Any] | None) -> tuple[Verdict, ...]:
    remark = "Private records that are also in public files are not protected." if task.allow_overlap else ""
    cards = [
        promise_verdict(model.guarantee_, whom=protected(task), remark=remark, all_protected=not task.allow_overlap)
    ]
    if measured is not None:
        numbers = task.label_range is not None
        share = measured["explained"] if numbers else measured["right"]
        cards.append(
            Verdict(
                level=FINE if _useful(task, measured) else WEAK,
                about="How much of the numbers it explains" if numbers else "How often it is right about a label",
                proven=f"{100 * share:.1f} %",
                measured=True,
                reason=_words(task, measured),
            )
        )
    cards.append(
        Verdict(
            level=FINE if measured is not None and _useful(task, measured) else WEAK,
            about="What the budget bought",
            proven=counted(len(model.asked_) * len(task.labels), "noisy mean"),
            measured=True,
            reason=f"Each has a noise of {_noise(model)}; the student averages over many."
            + " Nothing here says how well it predicts: add test records." * (measured is None),
        )
    )
    return tuple(cards)


def _changes(task: Task, measured: dict[str, Any] | None) -> tuple[Change, ...]:
    found = [
        Change(
            what=f"Promise more: run a new release with ε = {text_above(task.epsilon / 2)}.",
            price="about twice the noise, and this release stays spent.",
        ),
        Change(
            what="Bring more private records: with twice as many teachers, the noise on a mean is half as large.",
            price="records; the promise stays as it is.",
        ),
    ]
    if task.label_range is not None:
        found.append(
            Change(
                what="State a narrower range, if numbers near its ends are rare: noise shrinks with its width.",
                price="numbers beyond it are clipped. Choose it without looking at private ones.",
            )
        )
    if measured is not None and not _useful(task, measured):
        found.append(
            Change(
                what="Try another learner or student on public or made-up records first.",
                price="time; trying it on private records would be another release.",
            )
        )
    return tuple(found)


def _labels_tables(task: Task, measured: dict[str, Any] | None) -> tuple[Table, ...]:
    """How often the student is right about each label, if there are several and test records."""
    if measured is None or task.label_range is not None:
        return ()
    return (
        Table(
            title="Labels, one by one",
            columns=("label", "right", "naming the more frequent"),
            rows=tuple(
                (label, f"{100 * found['right']:.1f} %", f"{100 * found['right_of_usual']:.1f} %")
                for label, found in measured["labels"].items()
            ),
            note=f"On {measured['records']} test records: how often the student is right, and how often always naming "
            "the more frequent of yes and no would be.",
        ),
    )


def _means_table(task: Task, model: Model) -> Table:
    rows = [
        (label, *(f"{number:.3g}" for number in np.quantile(model.means_[:, place], (0.05, 0.5, 0.95))))
        for place, label in enumerate(task.labels)
    ]
    return Table(
        title="Noisy means",
        columns=("column", "5 % lie below", "half lie below", "95 % lie below"),
        rows=tuple(rows),
        note="Of the answers as they were released. Noise takes some of them beyond what is possible.",
    )


def _unprotected(task: Task, data: inputs.Numbers) -> dict[str, Any] | None:
    """What the learner shows on test records if it is trained on all private records at once."""
    if data.test is None:
        return None
    values = data.values
    if task.label_range is not None:
        values = np.clip(values, *task.label_range)
    try:
        said = []
        points = data.columns.transform(data.test[0])
        for column in values.T:
            learner = learners.learner("learner", task.learner, "settings", task.settings)
            said.append(np.asarray(learner.fit(data.records, column).predict(points), dtype=np.float64).ravel())
    except Exception:  # a learner that served for chunks may have no room for all records: nothing depends on it
        return None
    return _measured(task, _Said(np.column_stack(said)), data.test)


@dataclasses.dataclass(frozen=True)
class _Said:
    """A predictor that has predicted already."""

    values: NDArray[np.float64]

    def predict(self, _table: object) -> NDArray[np.float64]:
        """What was predicted."""
        return self.values


def _write_owner(
    task: Task,
    data: inputs.Numbers,
    folder: Path,
    student: dict[str, Any] | None,
    plain: dict[str, Any] | None,
) -> None:
    """Write the page for the owner: what privacy has cost, what was clipped, and which values were unknown."""
    name, title = ("explained", "variance explained") if task.label_range is not None else ("right", "labels right")
    rows = [
        (f"{title}, {whose}", f"{100 * found[name]:.1f} %")
        for whose, found in (("student", student), ("no privacy", plain))
        if found is not None
    ]
    if task.label_range is not None:
        low, high = task.label_range
        beyond = float(np.mean((data.values < low) | (data.values > high)))
        rows.append(("private numbers beyond the range", f"{100 * beyond:.1f} %"))
    rows += [(f"unknown {column}", f"{100 * share:.1f} %") for column, share in data.unknown.items() if share]
    page = Report(
        command="learn",
        title=f"{WARNING}: what only the owner of the records may see",
        summary=(
            "Everything here was computed from private records without noise. Nothing protects them on this page.",
            CAUTION,
        ),
        comparisons=(Comparison(guarantee=UNPROTECTED),),
        tables=(
            Table(
                title="For the owner",
                columns=("what", "found"),
                rows=tuple(rows) or (("unknown values", "none"),),
                note="No privacy: the learner, trained on all private records at once. Unknown: the share of private "
                "records whose value is missing, or does not occur in public ones.",
            ),
        ),
        detail={"test_unprotected": plain, "unknown": data.unknown},
    )
    write_whole(folder / "owner.json", page.to_json().encode())
    write_whole(folder / "owner.html", page.to_html().encode())
