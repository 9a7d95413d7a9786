"""What may be published: the student, the labelled records if there are answers, and the report.

All of them depend on private records only through the answers, or the noisy sums.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.guarantee import Assumption, Comparison, Guarantee
from ...core.wording import counted, safe_text, text_above
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.wording import percent, percent_down, percent_up
from ...runtime import tables
from ...runtime.files import write_whole
from ...theory.leakage import private_advantage, private_roc
from .. import stored
from ..classifier import PrivateClassifier
from ..encoders import TextEncoder
from ..mechanisms.cases import margins
from ..students.choosing import LEARNER
from .inputs import Records
from .options import Task

_MOST_ROWS = 20
_LARGEST_EXPONENT = 700
"""The largest exponent of e that gives a float."""
WEAK_EPSILON = 4.0
"""Above this privacy loss, a promise is called weak."""
_AVOIDED = 0.1
"""Of the errors of always naming the most frequent class, the share that a useful student avoids."""
WEAK_DELTA, BROKEN_DELTA = 1e-3, 0.1
"""Above the first δ, a promise is called weak; from the second on, it is none."""


CHOSEN_BLINDLY = Assumption(
    text="public records and the options of this run were chosen without looking at private ones (had you looked at "
    "private/owner.html and run again, that would not be covered)",
    checked_by="caller",
)
TEST_KNOWN = Assumption(
    text="the accuracy on the test records may be known: it was computed from them without noise, and they are no "
    "private records of this run",
    checked_by="caller",
)

_NOT_AGNOSTIC = "This is not model-agnostic: it is a nearest-neighbour vote in the stated public features."
_LINEAR = "This is not model-agnostic: the classifier is linear in the stated public features."


def publish(
    task: Task, data: Records, model: PrivateClassifier, accuracy: dict[str, float] | None, folder: Path
) -> Report:
    """Write everything that may be published into the folder, and return the report."""
    trusted = stored.publish(folder / "student.skops", data.columns.before(model.published()))
    labelled = None if releases_sums(model) else _write_answers(task, data, model, folder)
    report = Report(
        command="learn",
        title="A classifier that may be published, and what it gives away",
        summary=_summary(task, data, model, accuracy, labelled),
        comparisons=(Comparison(guarantee=model.guarantee_),),
        verdicts=_verdicts(task, model, accuracy),
        opening=(promise_figure(task),),
        changes=_changes(task, model, accuracy),
        tables=() if releases_sums(model) else (_answers_table(model), *_students_tables(model)),
        figures=() if releases_sums(model) else _leads_figures(task, model),
        detail={
            "epsilon": task.epsilon,
            "delta": task.delta,
            "neighbours": model.guarantee_.detail["neighbours"],
            "labels_only": task.public is None,
            "allow_overlap": task.allow_overlap,
            "classes": model.classes_.tolist(),
            "public_records": len(model.public_ if data.public is None else data.public),
            **_amounts(model),
            "choice": model.choice_,
            "columns": {
                "numeric": list(data.columns.numeric_),
                "categories": data.columns.categories_,
                **({"encoded": _encoded(data)} if data.columns.encoded_ else {}),
            },
            "unused_columns": list(data.unused),
            "test": accuracy,
            "student": {"file": "student.skops", "trusted": list(trusted)} | _student_detail(model),
            **({} if labelled is None else {"labelled": labelled}),
        },
    )
    write_whole(folder / "results.json", report.to_json().encode())
    write_whole(folder / "report.html", report.to_html().encode())
    return report


def _encoded(data: Records) -> dict[str, dict[str, Any]]:
    """By what the columns of texts and images were encoded."""
    return {
        name: {
            "what": "Texts" if isinstance(encoder, TextEncoder) else "Images",
            "encoder": encoder.called,
            "numbers": len(data.columns.encoded_[name][1]),
            "digest": getattr(encoder, "digest_", None),
        }
        for name, encoder in (data.columns.encoders or {}).items()
    }


def releases_sums(model: PrivateClassifier) -> bool:
    """Whether sums were released, and no answers."""
    return hasattr(model, "noisy_sums_")


def _amounts(model: PrivateClassifier) -> dict[str, int]:
    """How much was released."""
    if releases_sums(model):
        return {"sums": int(model.noisy_sums_.size)}
    answered, refused = len(model.answered_), len(model.refused_)
    return {"asked": answered + refused, "answered": answered, "refused": refused}


def _write_answers(task: Task, data: Records, model: PrivateClassifier, folder: Path) -> str:
    """Write the public records with the answers; return the name of the file."""
    source = task.private if task.public is None else task.public
    labelled = f"labelled{source.suffix.lower()}"
    answers = [None if number < 0 else model.classes_[number].item() for number in model.labels_.tolist()]
    rows, hidden = (None, None) if task.public is not None else (data.rows[model.public_].tolist(), task.ids)
    tables.write_with_column(folder / labelled, source, task.label, answers, rows=rows, without=hidden)
    return labelled


def promise_verdict(
    guarantee: Guarantee, *, whom: str = "record", remark: str = "", all_protected: bool = True
) -> Verdict:
    """Whether the promise to a private record is fine, weak or broken.

    Parameters
    ----------
    guarantee
        A bound on ε; its detail holds δ.
    whom
        What is protected: a record, its label, or all records of a person.
    remark
        A sentence on what is not protected; empty if there is nothing of the kind.
    all_protected
        Whether the promise is made to every private record.
    """
    epsilon, delta = guarantee.value, float(guarantee.detail["delta"])
    factor = safe_text(math.exp(epsilon), toward="up") if epsilon < _LARGEST_EXPONENT else f"e^{text_above(epsilon)}"
    if delta >= BROKEN_DELTA:
        level, why = BROKEN, ". But δ is the chance that everything is given away."
    elif delta > WEAK_DELTA:
        level, why = WEAK, ". δ is large: with this chance anything may be given away."
    elif epsilon > WEAK_EPSILON:
        level, why = WEAK, ": a determined reader may learn a lot."
    else:
        level, why = FINE if all_protected else WEAK, "."
    verb = "change" if whom.endswith("s") else "changes"
    reason = f"Up to δ, one {whom} {verb} the probability of any conclusion by a factor of {factor} at most{why}"
    return Verdict(
        level=level,
        about=f"What it gives away about one {whom}",
        proven=f"ε at most {text_above(epsilon)}, δ {text_above(delta)}",
        reason=f"{reason} {remark}".rstrip(),
    )


def protected(task: Task) -> str:
    """What the promise is about, in words that follow "one"."""
    whom = "label" if task.public is None else "record"
    return whom if task.ids is None else f"person's {whom}s"


def _verdicts(task: Task, model: PrivateClassifier, accuracy: dict[str, float] | None) -> tuple[Verdict, ...]:
    remarks = []
    if task.public is None:
        shown = (
            "Features of records count as public" if releases_sums(model) else "Which records there are is published"
        )
        remarks.append(f"{shown}; their labels alone are protected.")
    if task.allow_overlap:
        remarks.append("Private records that are also in public files are not protected.")
    whom, remark = protected(task), " ".join(remarks)
    cards = [promise_verdict(model.guarantee_, whom=whom, remark=remark, all_protected=not task.allow_overlap)]
    if accuracy is not None:
        low, high, one_class = (accuracy[name] for name in ("low", "high", "one_class"))
        cards.append(
            Verdict(
                level=FINE if _useful(accuracy) else BROKEN if high < one_class else WEAK,
                about=f"How often the {'classifier' if releases_sums(model) else 'student'} is right",
                proven=f"{percent_down(low)} to {percent_up(high)}",
                measured=True,
                reason=f"Naming the most frequent class is right on {percent(one_class)} of the test records."
                + _chosen_student(model),
            )
        )
    if releases_sums(model):
        cards.append(
            Verdict(
                level=FINE if accuracy is not None and _useful(accuracy) else WEAK,
                about="What the budget bought",
                proven="one linear classifier",
                measured=True,
                reason=f"{_summing(task)}. {_LINEAR}"
                + " Nothing here says how often it is right: add test records." * (accuracy is None),
            )
        )
        return tuple(cards)
    answered, refused = len(model.answered_), len(model.refused_)
    useful = accuracy is not None and _useful(accuracy)
    near = "teachers" not in model.guarantee_.detail
    cards.append(
        Verdict(
            level=BROKEN if not answered else FINE if useful and answered >= refused else WEAK,
            about="What the budget bought",
            proven=counted(answered, "answer"),
            measured=True,
            reason=(
                f"{_voting(task, model, counted(answered + refused, 'record'))}. {_NOT_AGNOSTIC}"
                if near
                else f"Teachers were asked about {counted(answered + refused, 'record')} and refused {refused}."
            )
            + f" Nothing here says how many answers are right: add test records.{_chosen_student(model)}"
            * (accuracy is None),
        )
    )
    return tuple(cards)


def _chosen_student(model: PrivateClassifier) -> str:
    """Which student was chosen in the place of the learner, in a sentence; empty if it is the learner, or was named."""
    choice = model.student_choice_
    if choice is None or choice.chosen == LEARNER:
        return ""
    return (
        f" The student is {choice.chosen}: it named {100 * choice.agreement[choice.chosen]:.1f} % of answers left out, "
        f"the learner {100 * choice.agreement[LEARNER]:.1f} %."
    )


def _useful(accuracy: dict[str, float]) -> bool:
    """Whether the student certainly avoids enough of the errors that the most frequent class alone would make."""
    return accuracy["low"] > accuracy["one_class"] + _AVOIDED * (1 - accuracy["one_class"])


_COLUMNS, _LEARNERS = "other columns, or a mechanism with teachers,", "another learner or student"


def _changes(task: Task, model: PrivateClassifier, accuracy: dict[str, float] | None) -> tuple[Change, ...]:
    half, near = task.epsilon / 2, "teachers" not in model.guarantee_.detail
    found = [
        Change(
            what=f"Promise more: run a new release with ε = {text_above(half)}.",
            price=f"about twice as many records{' and teachers' * (not near)} for as "
            f"{'good a classifier' if releases_sums(model) else 'many right answers'}, and this release stays spent.",
        ),
        Change(
            what=f"Bring more private records: with twice as many {'of them' if near else 'teachers'}, the same noise "
            "hides half as much.",
            price="records; the promise stays as it is.",
        ),
    ]
    if accuracy is not None and not _useful(accuracy):
        found.append(
            Change(
                what=f"Try {_COLUMNS if releases_sums(model) else _LEARNERS} on public or made-up records first.",
                price="time; trying it on private records would be another release.",
            )
        )
    elif not releases_sums(model) and not len(model.answered_):
        found.append(Change(what="Ask fewer queries, or plan first.", price="fewer answers; tacit plan reads no data."))
    return tuple(found)


def promise_figure(task: Task) -> Figure:
    """What any test can reach that tells data with a record from data without it, or with another label."""
    epsilon, delta, whom = min(task.epsilon, _LARGEST_EXPONENT), task.delta, protected(task)
    are = "is" if task.ids is None else "are"
    tested = f"which of two the {whom} {are}" if task.public is None else f"whether one {whom} {are} in the data"
    apart = " Records that are also in public files are not protected." if task.allow_overlap else ""
    rates = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))
    limit = private_roc(rates, epsilon=epsilon, delta=delta)
    advantage = safe_text(float(private_advantage(epsilon, delta=delta)), toward="up")
    return Figure(
        title=f"What anyone can tell about one {whom}",
        caption=f"Somebody tests {tested}. Whatever they know, the rates of the test stay in the shaded region; its "
        f"advantage (true minus false positive rate) is {advantage} at most (tacit proof private_roc "
        f"private_advantage). The diagonal is guessing.{apart}",
        alternative=f"True against false positive rate: a region that reaches {advantage} above the diagonal.",
        svg=figures.roc(rates.tolist(), limit.tolist(), {}),
    )


def _summary(
    task: Task, data: Records, model: PrivateClassifier, accuracy: dict[str, float] | None, labelled: str | None
) -> tuple[str, ...]:
    whom = "label" if task.public is None else "record"
    subject = f"any one private {whom}" if task.ids is None else f"the {whom}s of any one person"
    changed = "another in its place" if task.ids is None else "others in their place"
    otherwise = f"with {changed}" if task.public is None else f"without {'it' if task.ids is None else 'them'}"
    small = task.epsilon < _LARGEST_EXPONENT
    factor = safe_text(math.exp(task.epsilon), toward="up") if small else f"e^{text_above(task.epsilon)}"
    published = "published records" if task.public is None else "public records"
    proven = model.guarantee_.detail
    promise = (
        f"Protected: {proven['neighbours']}. For anyone who sees all of this, whatever else they know: any conclusion "
        f"that they draw has, with {subject}, at most {factor} times the probability that it would have {otherwise} "
        f"(ε = {text_above(task.epsilon)}), plus δ = {text_above(task.delta)}; and the other way round."
    )
    said = [promise]
    one, many = ("person", "people") if task.ids else ("record", "private records")
    if task.public is not None:
        replaced = {name: safe_text(amount, toward="up") for name, amount in proven["replaced"].items()}
        said.append(
            f"This compares data with and without one {one}. Where the number of {many} is public knowledge, compare "
            f"data with another {one} in the place of one: the promise is then weaker, ε = {replaced['epsilon']} and "
            f"δ = {replaced['delta']} (tacit proof replacement_delta)."
        )
    if "epsilon_count" in proven:
        said.append(
            f"ε = {text_above(proven['epsilon_count'])} of this paid for the number of {many}, read with noise (tacit "
            f"proof laplace_scale). {_counted_for(proven)}The mechanism, its constants and the queries depend only on "
            f"{_chosen_by(proven)} and what is public."
        )
    if "epsilon_agreement" in proven:
        said.append(
            f"ε = {text_above(proven['epsilon_agreement'])} of this paid for an estimate, with noise, of how far "
            f"teachers agree: {proven['agreement']}, the votes that can change without another class winning, "
            "on all but one public record in twenty (tacit proof laplace_scale). The mechanism and its constants were "
            "chosen by it."
        )
    if "found_from" in proven:
        said.append(
            f"The classes were not given. ε = {text_above(proven['epsilon_classes'])} and δ = "
            f"{text_above(proven['delta_classes'])} of this paid for finding them with noise (tacit proof "
            f"label_threshold): they are the labels that at least about {proven['found_from']} records have. Records "
            "with other labels were left out."
        )
    if task.allow_overlap:
        said.append(
            "Private records that are also in --public, --test or --labelled-public are not protected: the owner "
            "allowed such records (--allow-overlap)."
        )
    if task.public is None:
        said.append(
            "Only labels are protected (--labels-only). The features of all records are treated as public, and half of "
            + (
                "them, whose labels are not used, serve as the public records."
                if labelled is None
                else "the records are published here without their own labels, in an order that depends neither on "
                "labels nor on the order of the file."
            )
        )
    if task.epsilon > WEAK_EPSILON:
        said.append(f"That is a weak promise: at ε = {text_above(task.epsilon)} a determined reader may learn a lot.")
    if labelled is None:
        said.append(
            f"{_summing(task)}. Features are the encoded columns: where no weighted sum of these tells classes apart, "
            "no budget helps."
        )
    else:
        said.append(_answering(task, model, published))
    if labelled is not None and "teachers" not in proven:
        said.append("Near means near in the encoded columns: where these say little about the label, no budget helps.")
    if accuracy is not None:
        said.append(
            f"The {'classifier' if labelled is None else 'student'} is right on {100 * accuracy['accuracy']:.1f} % of "
            f"{accuracy['records']} test records "
            f"({math.floor(1000 * accuracy['low']) / 10:.1f} to {math.ceil(1000 * accuracy['high']) / 10:.1f} %, "
            "failure probability 0.05); always naming the "
            f"most frequent class is right on {100 * accuracy['one_class']:.1f} %. These records are not protected: "
            "publish this figure only if their labels may be known."
        )
    said.append(
        f"{len(data.columns.numeric_)} numeric and {len(data.columns.categories_)} text columns were encoded by a rule "
        f"that depends only on {'features' if task.public is None else 'public records'}: the mean and standard "
        "deviation of numbers, the median in the place of missing numbers, and the categories of texts (others become "
        "zeros)."
    )
    for name, about in _encoded(data).items():
        said.append(
            f"{about['what']} of column {name!r} were encoded by {about['encoder']}, each by itself, in the "
            f"{about['numbers']} directions in which {'features' if task.public is None else 'public records'} differ "
            f"most{'; of a long text only the beginning counts' * (about['what'] == 'Texts')}."
        )
    if data.unused:
        said.append(f"Columns of the public table that were not used: {', '.join(data.unused)}.")
    said.append(f"The choice: {model.choice_}.")
    if model.student_choice_ is not None:
        said.append(
            f"The student is {model.student_choice_.chosen}: {model.student_choice_.reason}. This depends only on "
            "answers that were released and on public records, so it costs no privacy."
        )
    said.append(
        "Beside this page is student.skops, the classifier."
        if labelled is None
        else f"Beside this page are student.skops and {labelled}, the {published} with the answers."
    )
    return tuple(said)


def _answering(task: Task, model: PrivateClassifier, published: str) -> str:
    """How many queries were asked and answered, and what pays for it."""
    asked, points = len(model.answered_) + len(model.refused_), len(model.labels_)
    if "teachers" in model.guarantee_.detail:
        who = (
            f"Teachers were asked about {asked} of {points} {published}; {len(model.answered_)} were answered, "
            f"{len(model.refused_)} refused. "
        )
    else:
        who = f"{_voting(task, model, f'{asked} of {points} {published}')}. "
    return (
        f"{who}The budget pays for all answers together: what a single answer reveals is bounded by the whole ε, not "
        "by a share of it."
    )


def _answers_table(model: PrivateClassifier) -> Table:
    numbers = model.labels_[model.answered_]
    counts = np.bincount(numbers, minlength=len(model.classes_))
    order = np.argsort(-counts, kind="stable")[:_MOST_ROWS]
    left = len(counts) - len(order)
    return Table(
        title="Answers",
        columns=("class", "records", "share"),
        rows=tuple((str(model.classes_[c]), str(counts[c]), f"{100 * counts[c] / len(numbers):.1f} %") for c in order),
        note="How often each class was answered. Answers contain noise and may be wrong."
        + f" {left} rarer classes are left out." * bool(left),
    )


def _students_tables(model: PrivateClassifier) -> tuple[Table, ...]:
    """How students compare by answers left out, if they were compared."""
    choice = model.student_choice_
    if choice is None or not choice.agreement:
        return ()
    first = choice.agreement[LEARNER]
    rows = [(LEARNER, f"{100 * first:.1f} %", "")]
    rows += [
        (
            name,
            f"{100 * choice.agreement[name]:.1f} %",
            f"{100 * (choice.agreement[name] - first):+.1f} ± {100 * error:.1f}",
        )
        for name, error in choice.errors.items()
    ]
    return (
        Table(
            title="Students compared",
            columns=("student", "answers named", "ahead of the learner"),
            rows=tuple(rows),
            note=f"Each of {choice.answers} answers was left out once, and students learned from others. Named: the "
            "share of them that a student named. Ahead: the difference to the learner in points, with its standard "
            f"error. {choice.chosen.capitalize()} is published. Answers hold noise: these shares are no accuracies.",
        ),
    )


def _student_detail(model: PrivateClassifier) -> dict[str, Any]:
    """By which figures the student was chosen, if that was left to the run."""
    choice = model.student_choice_
    return {} if choice is None else dataclasses.asdict(choice)


def electorate(model: PrivateClassifier) -> tuple[float, str]:
    """How many may vote on a query, and who they are, in words that follow "a share of"."""
    detail = model.guarantee_.detail
    if "teachers" in detail:
        return detail["teachers"], "all teachers"
    return detail["expected_votes"], "the votes expected on a query"


def expected_leads(task: Task, model: PrivateClassifier) -> dict[str, NDArray[np.float64]]:
    """The leads by which a mechanism was chosen, if they were expected of teachers."""
    if "teachers" not in model.guarantee_.detail:
        return {}
    return {"expected beforehand": np.concatenate([np.array(case) for case in margins(task.teacher_accuracy)])}


def _summing(task: Task) -> str:
    """What was released, where nobody votes."""
    each = "each record has a length of at most 1" if task.ids is None else "the mean of each person's records counts"
    return f"The features of private records were summed up by class, where {each}, and released once with noise"


def _voting(task: Task, model: PrivateClassifier, whom: str) -> str:
    """How private records voted, where there are no teachers."""
    voter = "record" if task.ids is None else "person"
    times = counted(model.guarantee_.detail["quota"], "time")
    return f"Private records voted on {whom} near them, each {voter} at most {times}"


def _counted_for(proven: Mapping[str, Any]) -> str:
    """What the number of records was read for."""
    return f"It gave the number of teachers, {proven['teachers']}. " if "teachers" in proven else ""


def _chosen_by(proven: Mapping[str, Any]) -> str:
    """What was read with noise, and paid for, that the choice depends on."""
    found = ["that number", *["the classes found"] * ("found_from" in proven)]
    return ", ".join(found + ["the estimate of how far teachers agree"] * ("epsilon_agreement" in proven))


def _leads_figures(task: Task, model: PrivateClassifier) -> tuple[Figure, ...]:
    """Expected leads, and those in the noisy counts if these were released. True votes are private."""
    (votes, whose), noise = electorate(model), model.guarantee_.detail["spread"]
    found: dict[str, Any] = expected_leads(task, model)
    said = ["that was expected when the mechanism was chosen"] * bool(found)
    if model.noisy_counts_ is not None:
        ordered = np.sort(model.noisy_counts_[model.answered_], axis=1)
        found["in the noisy counts released"] = (ordered[:, -1] - ordered[:, -2]) / votes
        said.append(f"{'and the lead ' * bool(said)}in the counts that were released with noise")
    if not found:
        return ()
    marked = f"{votes} teachers" if "teachers" in model.guarantee_.detail else f"about {votes:.3g}"
    figure = Figure(
        title="Leads of the winning class",
        caption=f"The lead of the winning class, as a share of {whose}, {', '.join(said)}. "
        "Leads near the noise or below it are often lost. True votes are private and not shown.",
        alternative=f"A histogram of leads, with noise of {noise:.3g} votes among {marked} marked.",
        svg=figures.leads(found, noise / votes),
    )
    return (figure,)
