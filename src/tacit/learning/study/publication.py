"""What may be published: the student, the labelled records and the report.

All of them depend on private records only through the answers.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...core.guarantee import Comparison
from ...core.wording import safe_text, text_above
from ...report import Figure, Report, Table, figures
from ...runtime import tables
from ...runtime.files import write_whole
from .. import stored
from ..choice import margins
from ..classifier import PrivateClassifier
from .inputs import Records
from .options import Task

_MOST_ROWS = 20
_LARGEST_EXPONENT = 700
"""The largest exponent of e that gives a float."""


def publish(
    task: Task, data: Records, model: PrivateClassifier, accuracy: dict[str, float] | None, folder: Path
) -> Report:
    """Write everything that may be published into the folder, and return the report."""
    trusted = stored.publish(folder / "student.skops", data.columns.before(model.published()))
    source = task.private if task.public is None else task.public
    labelled = f"labelled{source.suffix.lower()}"
    answers = [None if number < 0 else model.classes_[number].item() for number in model.labels_.tolist()]
    rows, hidden = (None, None) if task.public is not None else (data.rows[model.public_].tolist(), task.ids)
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
            "neighbours": model.guarantee_.detail["neighbours"],
            "label_private": task.public is None,
            "allow_overlap": task.allow_overlap,
            "classes": model.classes_.tolist(),
            "public_points": len(model.labels_),
            "asked": asked,
            "answered": len(model.answered_),
            "refused": len(model.refused_),
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


def _summary(
    task: Task, data: Records, model: PrivateClassifier, accuracy: dict[str, float] | None, labelled: str
) -> tuple[str, ...]:
    whom = "label" if task.public is None else "record"
    subject = f"any one private {whom}" if task.ids is None else f"the {whom}s of any one person"
    changed = "another in its place" if task.ids is None else "others in their place"
    otherwise = f"with {changed}" if task.public is None else f"without {'it' if task.ids is None else 'them'}"
    small = task.epsilon < _LARGEST_EXPONENT
    factor = safe_text(math.exp(task.epsilon), toward="up") if small else f"e^{text_above(task.epsilon)}"
    asked, points = len(model.answered_) + len(model.refused_), len(model.labels_)
    proven = model.guarantee_.detail
    promise = (
        f"Protected: {proven['neighbours']}. For anyone who sees all of this, whatever else they know: any conclusion "
        f"that they draw has, with {subject}, at most {factor} times the probability that it would have {otherwise} "
        f"(ε = {text_above(task.epsilon)}), plus δ = {text_above(task.delta)}; and the other way round."
    )
    said = [promise]
    if task.public is not None:
        replaced = {name: safe_text(amount, toward="up") for name, amount in proven["replaced"].items()}
        said.append(
            f"That compares data with and without {'them' if task.ids else 'it'}. If the number is public knowledge, "
            "so that one can only take the place of another, the promise is weaker: "
            f"ε = {replaced['epsilon']} and δ = {replaced['delta']}."
        )
    if "epsilon_count" in proven:
        said.append(
            f"The number of {'people' if task.ids else 'private records'} was read with noise, for "
            f"ε = {text_above(proven['epsilon_count'])} of this, to choose the number of teachers, "
            f"{proven['n_teachers']}. "
            "The mechanism, its constants and the queries depend only on that number and on what is public."
        )
    if "found_from" in proven:
        said.append(
            f"Nobody named the classes. They were found with noise, for ε = {proven['epsilon_classes']:g} and δ = "
            f"{proven['delta_classes']:g} of this: labels that about {proven['found_from']} {whom}s or more hold. "
            "Records with other labels were left out."
        )
    if task.allow_overlap:
        said.append(
            "Private records that are also in --public, --test or --proposer are not protected: the owner allowed "
            "such records (--allow-overlap)."
        )
    if task.public is None:
        said.append(
            "Only labels are protected (--labels-only). The features of all records are treated as public, and half of "
            "the records are published here without their own labels, in an order that depends neither on labels nor "
            "on the order of the file."
        )
    if task.epsilon > 4:
        said.append(f"That is a weak promise: at ε = {text_above(task.epsilon)} a determined reader may learn a lot.")
    said.append(
        f"{asked} of {points} public records were asked about; {len(model.answered_)} were answered, "
        f"{len(model.refused_)} refused. The budget paid for all answers together: what a single answer reveals is "
        "bounded by the whole ε, not by a share of it."
    )
    if accuracy is not None:
        said.append(
            f"The student is right on {100 * accuracy['accuracy']:.1f} % of {accuracy['records']} test records "
            f"({math.floor(1000 * accuracy['low']) / 10:.1f} to {math.ceil(1000 * accuracy['high']) / 10:.1f} %, "
            "failure probability 0.05); always naming the "
            f"most frequent class is right on {100 * accuracy['one_class']:.1f} %. These records are not protected: "
            "publish this figure only if their labels may be known."
        )
    said.append(
        f"{len(data.columns.numeric_)} numeric and {len(data.columns.categories_)} text columns were encoded "
        "by a rule that depends on public records only: their mean and deviation, their median where a number is "
        "missing, and their categories (all zeros for any other)."
    )
    if data.unused:
        said.append(f"Columns of the public table that were not used: {', '.join(data.unused)}.")
    said.append(f"The choice: {model.choice_}.")
    said.append(f"Beside this page are student.skops and {labelled}, the public records with the answers.")
    return tuple(said)


def _answers_table(model: PrivateClassifier) -> Table:
    numbers = model.labels_[model.answered_]
    counts = np.bincount(numbers, minlength=len(model.classes_))
    order = np.argsort(-counts, kind="stable")[:_MOST_ROWS]
    left = len(counts) - len(order)
    return Table(
        title="Answers",
        columns=("class", "public records", "share"),
        rows=tuple((str(model.classes_[c]), str(counts[c]), f"{100 * counts[c] / len(numbers):.1f} %") for c in order),
        note="How often each class was answered. Answers contain noise and may be wrong."
        + f" {left} rarer classes are left out." * bool(left),
    )


def _leads_figure(task: Task, model: PrivateClassifier) -> Figure:
    """Expected leads, and those in the noisy counts if these were released. True votes are private."""
    teachers, noise = (model.guarantee_.detail[name] for name in ("n_teachers", "spread"))
    found: dict[str, Any] = {"expected beforehand": np.array(margins(task.expected))}
    if model.noisy_counts_ is not None:
        ordered = np.sort(model.noisy_counts_[model.answered_], axis=1)
        found["in the noisy counts released"] = (ordered[:, -1] - ordered[:, -2]) / teachers
    return Figure(
        title="Leads of the winning class",
        caption="The lead of the winning class, as a share of all teachers, that was expected when the mechanism was "
        "chosen" + (", and the lead in the counts that were released with noise" if len(found) > 1 else "") + ". "
        "Leads near the noise or below it are often lost. True votes are private and not shown.",
        alternative=f"A histogram of expected leads, with noise of {noise:.3g} votes among {teachers} teachers marked.",
        svg=figures.leads(found, noise / teachers),
    )
