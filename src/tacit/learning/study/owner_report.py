"""The page for the owner of the records alone, which is computed from private records without noise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.guarantee import Adversary, Assumption, Comparison, Guarantee
from ...report import Figure, Report, Table, figures
from ...runtime.files import write_whole
from ..classifier import PrivateClassifier
from ..nearby import NearbyVoters
from ..votes import leads
from .accuracy import accuracy
from .inputs import Records
from .learners import learner
from .options import Task
from .publication import electorate, expected_leads

WARNING = "NOT TO BE PUBLISHED"
README = f"""{WARNING}

This folder is as private as the records themselves. It holds the teachers, if there are any, each trained on some of
them, the key that assigned records to teachers, and owner.html, which was computed from private records without noise.

What may be published is in the folder publish beside it.
"""
CAUTION = (
    "If you change options because of it and run again, the new choice depends on private records in a way that no "
    "budget covers."
)
UNPROTECTED = Guarantee(
    quantity="privacy loss ε of this page",
    side="at_most",
    value=math.inf,
    adversary=Adversary.ANY,
    theorem="none: no noise was added to what stands here",
    assumptions=(Assumption(text="nobody but the owner of the records sees this page", checked_by="caller"),),
)


def true_leads(task: Task, data: Records, model: PrivateClassifier) -> NDArray[np.float64]:
    """The lead of the winning class on every query that was asked, in true votes, as a share of the electorate."""
    asked = np.sort(np.concatenate([model.answered_, model.refused_]))
    public = data.records[model.public_] if data.public is None else data.public
    council = model.teachers_
    if isinstance(council, NearbyVoters):
        counts = council.counts(public[asked])
    else:
        counts = council.counts(public[asked], engine=task.engine)
    share: NDArray[np.float64] = leads(counts) / electorate(model)[0]
    return share


def write_page(
    task: Task,
    data: Records,
    model: PrivateClassifier,
    folder: Path,
    *,
    lead: NDArray[np.float64] | None,
    student: dict[str, float] | None,
    plain: dict[str, float] | None,
) -> None:
    """Write how well those who vote agree, if anybody does, and what the accuracy would have been without privacy."""
    rows, notes, drawn = [], list[str](), tuple[Figure, ...]()
    if lead is not None:
        whose = electorate(model)[1]
        rows = [("median lead", f"{100 * np.median(lead):.1f} %")]
        notes = [f"Median lead: the lead of the winning class over the next, in true votes, as a share of {whose}."]
        drawn = (_leads_figure(task, model, lead),)
    for name, found in (("student", student), ("no privacy", plain)):
        if found is not None:
            rows.append((f"accuracy, {name}", f"{100 * found['accuracy']:.1f} %"))
    rows += [(f"unknown {name}", f"{100 * share:.1f} %") for name, share in data.unknown.items() if share]
    rows = rows or [("unknown values", "none")]
    learns = "logistic regression" if lead is None else "the learner"
    if plain is not None:
        notes.append(f"Accuracy: that of the student, and that of {learns} on all private records without privacy.")
    if any(data.unknown.values()) or not notes:
        notes.append("Unknown: the share of private records whose value is missing, or does not occur in public ones.")
    shows = ["how well votes agree"] * (lead is not None) + ["what accuracy privacy has cost"] * (plain is not None)
    shows += ["how many private records have values that do not occur in public ones"] * (not shows)
    page = Report(
        command="learn",
        title=f"{WARNING}: what only the owner of the records may see",
        summary=(
            "Everything here was computed from private records without noise. Nothing protects them on this page.",
            f"It shows {', and '.join(shows)}.",
            CAUTION,
        ),
        comparisons=(Comparison(guarantee=UNPROTECTED),),
        tables=(
            Table(
                title="For the owner",
                columns=("what", "found"),
                rows=tuple(rows),
                note=" ".join(notes),
            ),
        ),
        figures=drawn,
        detail={"leads": None if lead is None else lead.tolist(), "test_unprotected": plain, "unknown": data.unknown},
    )
    write_whole(folder / "owner.json", page.to_json().encode())
    write_whole(folder / "owner.html", page.to_html().encode())


def _leads_figure(task: Task, model: PrivateClassifier, lead: NDArray[np.float64]) -> Figure:
    (votes, whose), noise = electorate(model), model.guarantee_.detail["spread"]
    return Figure(
        title="True leads of the winning class",
        caption=f"The lead over the next class, as a share of {whose}, on every query that was asked.",
        alternative=f"A histogram of true leads, with their median at {100 * np.median(lead):.1f} %.",
        svg=figures.leads({"true votes": lead} | expected_leads(task, model), noise / votes),
    )


def unprotected_accuracy(task: Task, data: Records) -> dict[str, float] | None:
    """The accuracy of the learner trained on all private records at once."""
    if data.test is None:
        return None
    model = learner("learner", task.learner, "settings", task.settings)
    try:
        return accuracy(data.columns.before(model.fit(data.records, data.labels)), data.test)
    except Exception:  # a learner that served for chunks may have no room for all records: nothing depends on it
        return None
