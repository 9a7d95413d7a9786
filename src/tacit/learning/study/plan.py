"""The report of `tacit plan`: a table, pictures and plain words. It reads no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.encoding import decoded
from ...core.errors import InputError
from ...core.guarantee import Adversary, Assumption, Comparison, Guarantee
from ...core.wording import safe_text, text_above
from ...report import Figure, Report, Table, figures
from ..mechanisms.registry import KINDS
from ..planning import Plan, Row, plan

_COLOURS = (figures.MUTED, figures.PROVEN, figures.ACHIEVED, figures.USEFUL, figures.INK) * 2
_ASSUMED = (
    Assumption(
        text="neighbours differ by one record added or removed, which changes at most one teacher's vote on each query",
        checked_by="caller",
    ),
    Assumption(text="what is run is one of these rows, with exactly its numbers, and once", checked_by="caller"),
    Assumption(text="the δ that each row spends stays within the budget", checked_by="code"),
)


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
    proposer_error: float | None = None,
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
        proposer_error=proposer_error,
    )
    return Report(
        command="plan",
        title=f"What ε = {text_above(made.epsilon)}, δ = {text_above(made.delta)} buys from {made.records} records",
        summary=_summary(made),
        comparisons=(Comparison(guarantee=_guarantee(made)),),
        figures=_figures(made),
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
            "--error",
            " ".join(texts),
            requirement="must be one ERROR, or RECORDS:ERROR as often as was measured",
            remedy="write --error 0.05, or --error 240:0.05 --error 60:0.11",
        ) from None


def _guarantee(made: Plan) -> Guarantee:
    known = {row.mechanism: row.delta_spent for row in made.rows if row.delta_spent is not None}
    spent = {mechanism: delta for mechanism, delta in known.items() if delta <= made.delta}
    return Guarantee(
        quantity=f"privacy loss ε at δ = {text_above(made.delta)} of any one row" + _without(made, spent),
        side="at_most",
        value=made.epsilon,
        adversary=Adversary.ANY,
        theorem=(
            "composition of votes' noise; what rows promise about answers: tacit proof learnability",
            *dict.fromkeys(KINDS[mechanism].theorem for mechanism in spent),
        ),
        assumptions=_ASSUMED,
        detail={"delta": made.delta, "delta_spent": spent},
    )


def _without(made: Plan, spent: Mapping[str, float]) -> str:
    more = [row.mechanism for row in made.rows if row.mechanism not in spent and row.delta_spent is not None]
    later = [row.mechanism for row in made.rows if row.delta_spent is None]
    reasons = [f"{', '.join(more)}, whose constants spend more"] * bool(more)
    reasons += [f"{' and '.join(later)}, whose tables are proven when they are run"] * bool(later)
    return f" but {'; '.join(reasons)}" if reasons else ""


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
        title=f"{made.queries} queries, {made.classes} classes",
        columns=tuple(columns),
        rows=tuple(_cells(row, made) for row in made.rows),
        note="Noise: λ of the threshold (sparse vector), the distance's scale (plain composition), σ of the counts "
        "(GNMax), the votes by which refusals become e times rarer (gate). Votes to flip: from this number on, "
        "a query is answered rightly. Right and lost: proven, except with probability "
        f"{made.failure_probability:.10g}; lost is what is answered wrongly or not at all."
        + " Estimate: about what a table will need, which has to be searched for; no promise."
        * any(row.estimated for row in made.rows)
        + (
            " Expected: no promise, but a model of votes in which a query's share of wrong teachers is Beta(e, 1 − e)."
            if modelled
            else ""
        ),
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
    return (*cells, "feasible" if row.feasible else "estimate" if row.estimated else "hopeless")


def _summary(made: Plan) -> tuple[str, ...]:
    if made.vc_dimension is not None:
        kind = (
            "some classifier of the class is always right"
            if made.best_error == 0
            else (f"the best of the class errs on {100 * made.best_error:.3g} %")
        )
        learner = f"Teachers minimise training errors over a class of VC dimension {made.vc_dimension}; {kind}."
    elif made.error is None:
        learner = "Teachers are taken to be always right, so what is hopeless here is hopeless for every learner."
    elif isinstance(made.error, Mapping):
        learner = (
            "Teachers err as the given learning curve says; chunks smaller than its smallest size are not considered."
        )
    else:
        learner = (
            f"Teachers are taken to err on {100 * made.error:.3g} % whatever the size of their chunks: check that "
            "yours do with the records each gets below, on public or synthetic data."
        )
    if made.best is None:
        choice = "No mechanism can promise anything with this budget."
    else:
        best = made.best
        choice = (
            f"If teachers are as described next, at least {best.answers_lower} of {made.queries} queries are "
            f"answered rightly, except with probability {made.failure_probability:.10g}, by {best.teachers} of them "
            f"with {best.records_per_teacher} records each: the best promise, that of {best.title}."
        )
    return (
        choice,
        f"{learner} No private data is used for a plan.",
        *(f"{row.title[:1].upper()}{row.title[1:]}. {row.verdict}" for row in made.rows),
    )


def _figures(made: Plan) -> tuple[Figure, ...]:
    found = [made.plot()]
    if made.error is not None and not isinstance(made.error, Mapping):
        found.append(_against_teachers(made))
    return tuple(found)


def _against_teachers(made: Plan) -> Figure:
    most = made.records // made.classes
    counts = [*(k for k in (10, 30, 100, 300, 1000, 3000, 10_000) if 2.5 * k < most), most]
    lines = {}
    for row, colour in zip(made.rows, _COLOURS, strict=False):
        shares = [made.expected_right(row.mechanism, teachers=k) or 0.0 for k in counts]
        lines[row.title] = (shares, colour)
    best = made.best or min(made.rows, key=lambda row: row.expected_misclassified or 0.0)
    return Figure(
        title="Expected right answers",
        caption="By the model of votes, with the given error whatever the number of teachers. In fact more teachers "
        "have fewer records each, and err more. No promise.",
        alternative="Shares of queries answered rightly: "
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
