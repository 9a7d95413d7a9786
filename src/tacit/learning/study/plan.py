"""The report of `tacit plan`: a table, pictures and plain words. It reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.encoding import decoded
from ...core.errors import InputError
from ...core.evidence import Evidence
from ...core.guarantee import Adversary, Assumption, Comparison, Guarantee
from ...core.wording import counted, safe_text, text_above
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.wording import percent, percent_down
from ..mechanisms.registry import KINDS
from ..planning import EPSILONS, Plan, Row, plan
from .publication import promise_verdict

_COLOURS = (figures.MUTED, figures.PROVEN, figures.ACHIEVED, figures.USEFUL, figures.INK) * 2
_ASSUMED = (
    Assumption(
        text="neighbours differ by one record added or removed, which changes at most one teacher's vote on each query",
        checked_by="caller",
    ),
    Assumption(text="one mechanism is run, once, with exactly the numbers of its row", checked_by="caller"),
    Assumption(text="the δ that each row spends stays within the budget", checked_by="code"),
)


_LEAST, _MOST = 0.001, 100.0
"""The privacy losses that plans are made for."""
_WORTH_TRYING = 0.5
"""The share of right answers from which on a run without a promise is worth it."""


def report(
    records: int,
    queries: int,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float = 0.05,
    error: Sequence[str] = (),
    vc_dimension: int | None = None,
    best_error: float = 0.0,
    classes: int = 2,
    teachers: int | None = None,
    public_model_error: float | None = None,
) -> Report:
    """The report of `tacit plan`. `error` is as on the command line: one ERROR, or several RECORDS:ERROR."""
    made = plan(
        records,
        queries,
        epsilon=epsilon,
        delta=delta,
        failure_probability=failure_probability,
        error=_curve(error),
        vc_dimension=vc_dimension,
        best_error=best_error,
        classes=classes,
        teachers=teachers,
        public_model_error=public_model_error,
    )
    first, *others = _figures(made)
    by_teachers, *more = _intended_figures(made)
    usual = _usual(made)
    if made.best is None and others and usual is not None and usual.share >= _WORTH_TRYING:
        # What is expected says more than what a promise would need.
        first, others = others[0], [first, *others[1:]]
    budget = f"ε = {text_above(made.epsilon)}, δ = {text_above(made.delta)}"
    return Report(
        command="plan",
        title=f"What {budget} buys from {counted(made.records, 'record')}",
        summary=_summary(made),
        comparisons=(Comparison(guarantee=_guarantee(made)),),
        verdicts=(_verdict(made), promise_verdict(_guarantee(made))),
        opening=(first, by_teachers),
        changes=_changes(made),
        figures=(*others, *more),
        tables=(_table(made),),
        detail={"plan": decoded(made.to_dict())},
    )


def _curve(texts: Sequence[str]) -> float | Mapping[int, float] | None:
    if not texts:
        return None
    try:
        if len(texts) == 1 and ":" not in texts[0]:
            return float(texts[0])
        pairs = [text.split(":") for text in texts]
        return {int(size): float(error) for size, error in pairs}
    except ValueError:
        raise InputError(
            "error",
            " ".join(texts),
            requirement="must be one ERROR, or RECORDS:ERROR as often as was measured",
            remedy="write `error` 0.05, or `error` 240:0.05 `error` 60:0.11",
        ) from None


def _guarantee(made: Plan) -> Guarantee:
    known = {row.mechanism: row.delta_spent for row in made.rows if row.delta_spent is not None}
    spent = {mechanism: delta for mechanism, delta in known.items() if delta <= made.delta}
    refusals = {row.mechanism: row.refusals for row in made.rows}
    theorems = dict.fromkeys(KINDS[mechanism].proof(refusals[mechanism])[0] for mechanism in spent)
    return Guarantee(
        quantity=f"privacy loss ε at δ = {text_above(made.delta)} of running one of the mechanisms"
        + _without(made, spent),
        side="at_most",
        value=made.epsilon,
        adversary=Adversary.ANY,
        theorem=tuple(theorems) or "none: no constants keep to the budget",
        assumptions=_ASSUMED,
        detail={"delta": made.delta, "delta_spent": spent},
        evidence=_evidence(made, tuple(spent)),
    )


def _evidence(made: Plan, mechanisms: tuple[str, ...]) -> Evidence | None:
    """The constants of every mechanism that keeps to the budget; None if there is none, or one has no rule to check."""
    stated = [
        KINDS[row.mechanism].stated(
            epsilon=made.epsilon,
            queries=made.queries,
            noise=row.noise,
            threshold=row.threshold,
            refusals=row.refusals,
        )
        for row in made.rows
        if row.mechanism in mechanisms
    ]
    if not all(stated) or not stated:
        return None
    parts = [{**part, "epsilon": made.epsilon, "delta": made.delta} for part in stated]
    inputs = {"delta": made.delta, "neighbours": "one record added or removed", "parts": parts}
    return Evidence(rule="one of several mechanisms", inputs=lambda: inputs)


def _without(made: Plan, spent: Mapping[str, float]) -> str:
    more = [row.mechanism for row in made.rows if row.mechanism not in spent and row.delta_spent is not None]
    later = [row.mechanism for row in made.rows if row.delta_spent is None]
    reasons = [f"{', '.join(more)} (the constants spend more)"] * bool(more)
    reasons += [f"{', '.join(later)} (proven when run)"] * bool(later)
    return f" except {' and '.join(reasons)}" if reasons else ""


def _verdict(made: Plan) -> Verdict:
    """Whether the budget buys answers: a promise for half of the queries, some promise, or none."""
    about, best = "What the budget buys", made.best
    if best is not None:
        share = best.answers_lower / made.queries
        return Verdict(
            level=FINE if share >= 0.5 else WEAK,
            about=about,
            proven=f"at least {percent_down(share)} right answers",
            reason=f"By {best.mechanism}, with {counted(best.teachers, 'teacher')} of "
            f"{counted(best.records_per_teacher, 'record')} each. "
            f"{_teachers(made)}",
            scope="if teachers are as stated",
        )
    hoped = [row for row in made.rows if row.estimated]
    if hoped:
        names = ", ".join(row.mechanism for row in hoped)
        reason = f"Only an estimate, no promise: {names}. What it keeps is proven when it is run."
        return Verdict(level=WEAK, about=about, proven="nothing beforehand", reason=reason, scope="")
    usual = _usual(made)
    if usual is None or usual.share < _WORTH_TRYING:
        reason = "Nothing is promised, and no model of votes expects much."
        return Verdict(level=BROKEN, about=about, proven="nothing", reason=reason, scope="")
    reason = f"Expected are {percent(usual.share)} right answers, by {usual.words}, if they err no more than stated."
    return Verdict(level=WEAK, about=about, proven="no promise", reason=reason, scope="")


@dataclass(frozen=True)
class _Usual:
    """What the model of votes expects of the best mechanism with as many teachers as `tacit learn` takes."""

    mechanism: str
    teachers: int
    records: int
    share: float

    @property
    def words(self) -> str:
        return f"{self.mechanism} with {counted(self.teachers, 'teacher')} of {counted(self.records, 'record')} each"


def _usual(made: Plan) -> _Usual | None:
    """None without a teacher's error, as then nothing is expected."""
    if made.error is None:
        return None
    teachers = made.intended().teachers
    shares = {row.mechanism: made.expected_right(row.mechanism, teachers=teachers) or 0.0 for row in made.rows}
    best = max(shares, key=lambda name: shares[name])
    return _Usual(best, teachers, made.records // teachers, shares[best])


def _changes(made: Plan) -> tuple[Change, ...]:
    """What a larger or smaller budget or fewer queries would bring; without a promise, what would bring one."""
    if made.best is None:
        return _ways_out(made)
    best = made.best
    twice, half = (
        made.teachers_needed(best.mechanism, epsilon=size * made.epsilon)
        if _LEAST <= size * made.epsilon <= _MOST
        else None
        for size in (2.0, 0.5)
    )
    found = []
    if twice is not None:
        found.append(
            Change(
                what=f"Twice the ε, {text_above(2 * made.epsilon)}: {best.mechanism} needs "
                f"{counted(twice, 'teacher')}.",
                price=f"one record then changes probabilities by a factor of {_factor(2 * made.epsilon)} instead of "
                f"{_factor(made.epsilon)}.",
            )
        )
    if half is not None:
        found.append(
            Change(
                what=f"Half the ε, {text_above(made.epsilon / 2)}: a factor of {_factor(made.epsilon / 2)} instead of "
                f"{_factor(made.epsilon)}.",
                price=f"{best.mechanism} needs {counted(half, 'teacher')}, each with enough records to learn from.",
            )
        )
    found.append(
        Change(
            what="Ask fewer queries: each answer gets a larger share of the budget.",
            price="fewer answers to learn from.",
        )
    )
    return tuple(found)


def _ways_out(made: Plan) -> tuple[Change, ...]:
    """What makes a mechanism promise something: of those that one change helps, that with the fewest teachers."""
    rows = sorted(
        (row for row in made.rows if not row.estimated), key=lambda row: (row.teachers_needed or math.inf, row.teachers)
    )
    name, ways = next(((row.mechanism, helps) for row in rows if (helps := made.helping(row.mechanism))), ("", {}))
    factor = f"one record then changes probabilities by a factor of {{}} instead of {_factor(made.epsilon)}."
    changes: dict[str, Callable[[Any], tuple[str, str]]] = {
        "teachers": lambda size: (
            f"Use {counted(size, 'teacher')}: {name} then promises something.",
            f"{counted(made.records // size, 'record')} for each teacher to learn from.",
        ),
        "queries": lambda size: (
            f"Ask fewer queries: {name} promises something for {size}.",
            "fewer answers to learn from.",
        ),
        "epsilon": lambda size: (
            f"A larger ε: {name} promises something with {text_above(size)}.",
            factor.format(_factor(size)),
        ),
        "records": lambda size: (
            f"Bring more records: {name} promises something with {size}.",
            f"{size - made.records} more.",
        ),
    }
    if ways.get("queries", made.queries) < made.queries / 10:  # so few answers teach nobody
        del ways["queries"]
    found = [Change(what=what, price=price) for what, price in (changes[way](size) for way, size in ways.items())]
    usual = _usual(made)
    if usual is not None and usual.share >= _WORTH_TRYING:
        what = f"Learn without a promise: ε is kept, and {percent(usual.share)} right answers are expected."
        found.insert(0, Change(what=what, price="nobody knows how many are right before tacit learn --test says it."))
    if not found:
        what = "Use a learner that errs less: no other change alone brings a promise."
        found = [Change(what=what, price="time to find one on public or synthetic data.")]
    return tuple(found)


def _factor(epsilon: float) -> str:
    return safe_text(math.exp(min(epsilon, 700.0)), toward="up")


def _table(made: Plan) -> Table:
    columns = [
        "mechanism",
        "teachers",
        "records each",
        "refusals T",
        "noise",
        "votes to flip",
        "right, at least",
        "lost, at most",
    ]
    modelled = made.error is not None
    columns += ["expected answers", "expected lost"] if modelled else []
    columns += ["student errs on"] if made.vc_dimension is not None else []
    columns.append("verdict")
    return Table(
        title=f"{counted(made.queries, 'query')}, {made.classes} classes",
        columns=tuple(columns),
        rows=tuple(_cells(row, made) for row in made.rows),
        note="Noise is the scale of the distance's noise (svt, stable, and svt-adaptive to begin with; half of it if "
        "noise hides the threshold, as in svt-faithful, and in svt with T = 1), the standard deviation of each count's "
        "noise (gnmax, gnmax-winners, confident-gnmax), and the votes by which refusals become e times rarer (gate, "
        "confirm). Votes to flip: a query is answered correctly if the right class wins and that many teachers could "
        "change their votes without changing the winner. Right and lost are proven, except with "
        f"probability {made.failure_probability:.10g}, by the theorems named above; lost queries are answered "
        "wrongly or not at all."
        + " An estimate promises nothing: the mechanism's table or noise is searched for when it is run."
        * any(row.estimated for row in made.rows)
        + " Expected numbers promise nothing: they come from a model of votes in which the share of teachers that are "
        "wrong on a query is Beta(e, 1 − e), where e is a teacher's error." * modelled,
    )


def _cells(row: Row, made: Plan) -> tuple[str, ...]:
    cells = [
        row.mechanism,
        str(row.teachers),
        str(row.records_per_teacher),
        "–" if row.refusals is None else str(row.refusals),
        safe_text(row.noise, toward="nearest"),
        str(row.votes_to_flip),
        str(row.answers_lower) if row.feasible else "–",
        _percent(row.misclassified_upper) if row.feasible else "–",
    ]
    if made.error is not None:
        cells += ["–", "–"]
        if row.expected_answers is not None and row.expected_misclassified is not None:
            cells[-2:] = [f"{row.expected_answers:.0f}", f"{100 * row.expected_misclassified:.1f} %"]
    if made.vc_dimension is not None:
        cells.append("–" if row.student_error_upper is None else _percent(row.student_error_upper))
    hoped = row.expected_misclassified is not None and row.expected_misclassified < 0.5
    lacking = "no promise" if hoped or KINDS[row.mechanism].unpromised else "hopeless"
    return (*cells, "feasible" if row.feasible else "estimate" if row.estimated else lacking)


def _teachers(made: Plan) -> str:
    """What is assumed about teachers."""
    if made.vc_dimension is not None:
        kind = (
            "some classifier of the class is always right"
            if made.best_error == 0
            else (f"the best of the class errs on {100 * made.best_error:.3g} %")
        )
        return f"Teachers minimise training errors over a class of VC dimension {made.vc_dimension}; {kind}."
    if made.error is None:
        return "Teachers are assumed to be always right, so what is hopeless here is hopeless for every learner."
    if isinstance(made.error, Mapping):
        return (
            "Teachers are assumed to err as the given learning curve says; none gets fewer records than its smallest "
            "size."
        )
    return (
        f"Teachers are assumed to err on {100 * made.error:.3g} %, whatever the number of their records: check on "
        "public or synthetic data that yours do with the numbers of records below."
    )


def _summary(made: Plan) -> tuple[str, ...]:
    if made.best is None:
        choice = "No mechanism can promise right answers with this budget."
    else:
        best = made.best
        choice = (
            f"The best promise is that of {best.mechanism}: {counted(best.teachers, 'teacher')} with "
            f"{counted(best.records_per_teacher, 'record')} each answer at least {best.answers_lower} of "
            f"{counted(made.queries, 'query')} correctly, except with "
            f"probability {made.failure_probability:.10g}, if they are as assumed ({_proof(best)})."
        )
    return (
        choice,
        _intended(made),
        f"{_teachers(made)} No private data is used for a plan.",
        *(
            f"{row.mechanism}. {row.verdict}" + f" Proof: {_proof(row)}." * bool(row.theorem and not row.estimated)
            for row in made.rows
        ),
    )


def _proof(row: Row) -> str:
    """The command that prints the proofs of what the row says about answers and teachers."""
    return " ".join(["tacit proof", *(name.rpartition(".")[2] for name in row.theorem)])


def _figures(made: Plan) -> tuple[Figure, ...]:
    found = [made.plot()]
    usual = _usual(made)
    if usual is not None and not isinstance(made.error, Mapping):
        found.append(_against_teachers(made, made.best or usual))
    return tuple(found)


def _intended(made: Plan) -> str:
    """What `tacit learn` does by default, in words."""
    meant = made.intended()
    paid = ""
    if meant.estimate:
        paid = (
            f", spends ε = {text_above(meant.estimate)} on an estimate of how far they agree, by which it may choose "
            "another mechanism"
        )
    worst, best = (percent(right / made.queries) for right in (min(meant.right), max(meant.right)))
    expected = (
        f"{worst} of the queries, as teachers with few records are taken to err more than the share stated"
        if len(meant.accuracies) == 1
        else f"{worst} to {best} of the queries, if teachers with many records are right on "
        f"{percent(meant.accuracies[0])} to {percent(meant.accuracies[-1])}"
    )
    return (
        f"By default, tacit learn takes {counted(meant.teachers, 'teacher')} with about "
        f"{counted(meant.records_per_teacher, 'record')} each and {meant.choice.name}{paid}, and names the class that "
        f"one learner of all records would name on {expected}. That is expected by a model of votes, not promised. "
        "Where a linear classifier is to tell two classes apart, it may take moments, without teachers."
    )


def _intended_figures(made: Plan) -> list[Figure]:
    """Expected right answers for several agreements, against the number of teachers and against ε."""
    meant = made.intended()
    epsilons = sorted({*EPSILONS, made.epsilon})
    at = {epsilon: made.intended(epsilon=epsilon) for epsilon in epsilons}
    councils = [prospect for prospect in meant.prospects[::-1] if str(prospect.teachers).strip("0") in ("1", "3")]

    def lines(rights: Sequence[Sequence[float]]) -> dict[str, tuple[list[float], str]]:
        return {
            f"teachers right on {100 * accuracy:.3g} %": ([right[case] / made.queries for right in rights], colour)
            for case, (accuracy, colour) in enumerate(zip(meant.accuracies, _COLOURS, strict=False))
        }

    caption = (
        "By a model of votes, with the mechanism that is best in each case. A line is for a share of queries on which "
        "teachers with many records are right; those with fewer are right on less. A line falls where a mechanism that "
        "answers fewer queries, and fewer of them wrongly, takes over. This is no promise."
    )
    spread = " to ".join(percent(right / made.queries) for right in (min(meant.right), max(meant.right)))
    found = []
    if len(councils) > 1:
        found.append(
            Figure(
                title="Right answers, by the number of teachers",
                caption=f"{caption} tacit learn takes {counted(meant.teachers, 'teacher')} by default.",
                alternative=f"With {counted(meant.teachers, 'teacher')}, {spread} of the queries are answered rightly.",
                svg=figures.curves(
                    [prospect.teachers for prospect in councils],
                    lines([prospect.right for prospect in councils]),
                    x_label="teachers",
                    y_label="share of queries",
                    marked=(meant.teachers, "tacit learn"),
                ),
            )
        )
    found.append(
        Figure(
            title="Right answers, by ε",
            caption=f"{caption} At each ε there are as many teachers as tacit learn takes.",
            alternative=f"At ε = {made.epsilon:.10g}, {spread} of the queries are answered rightly.",
            svg=figures.curves(
                epsilons,
                lines([at[epsilon].right for epsilon in epsilons]),
                x_label="ε",
                y_label="share of queries",
                marked=(made.epsilon, "this plan"),
            ),
        )
    )
    return found


def _against_teachers(made: Plan, best: Row | _Usual) -> Figure:
    most = made.records // made.classes
    counts = [*(k for k in (10, 30, 100, 300, 1000, 3000, 10_000) if 2.5 * k < most), most]
    lines = {}
    for row, colour in zip(made.rows, _COLOURS, strict=False):
        shares = [made.expected_right(row.mechanism, teachers=k) or 0.0 for k in counts]
        lines[row.mechanism] = (shares, colour)
    return Figure(
        title="Expected right answers",
        caption="By the model of votes, with the given error for every number of teachers. This is no promise: more "
        "teachers have fewer records each, and err more.",
        alternative="Shares of queries answered correctly: "
        + "; ".join(
            f"{name} {100 * shares[-1]:.0f} % with {counts[-1]} teachers" for name, (shares, _) in lines.items()
        ),
        svg=figures.curves(
            counts,
            lines,
            x_label="teachers",
            y_label="share of queries",
            marked=(best.teachers, best.mechanism),
        ),
    )


def _percent(share: float) -> str:
    return f"{safe_text(100 * share, toward='up', digits=3)} %"
