"""The report of audits of several outputs: in words, in two tables, and as intervals and regions."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.guarantee import Comparison
from ..core.wording import safe_text
from ..report import Figure, Report, Table, figures
from .audit_cases import CEILING, DELTA, RATES, Found, Task
from .results import write_results


def one_of(found: list[Found], model: str, secret: str, output: str) -> Found:
    """The audit of one output."""
    (one,) = [one for one in found if (one["model"], one["secret"], one["output"]) == (model, secret, output)]
    return one


def between(found: list[Found], model: str, secret: str, output: str) -> str:
    """What it tells, as an interval in words."""
    one = one_of(found, model, secret, output)
    return f"{safe_text(one['low'], toward='down')} – {safe_text(one['high'], toward='up')}"


def counted(found: list[Found]) -> tuple[str, ...]:
    """How many outputs keep the ceiling, and how sure all of this is."""
    judged = [one["judged"] for one in found]
    failing = sum(one["failure_probability"] for one in found)
    return (
        (
            f"A ceiling of {CEILING:g} is met by {judged.count('met')} of {len(judged)} outputs, broken by "
            f"{judged.count('broken')}, and not proven for {judged.count('not proven')}."
        ),
        (
            f"All intervals hold together except with probability {failing:.2g}, for the average record and who sees "
            "just that output."
        ),
    )


def tables(found: list[Found], labels: tuple[str, ...], note: str) -> tuple[Table, Table]:
    """Advantages, and other readings, a row for each output under its labels."""
    implied = any(one["implied"] is not None for one in found)
    told, read = [], []
    for one in found:
        named = [one[label] for label in labels]
        cells = [safe_text(one["low"], toward="down"), safe_text(one["high"], toward="up")]
        if implied:
            cells.append("–" if one["implied"] is None else safe_text(one["implied"], toward="up"))
        told.append((*named, *cells, one["judged"]))
        cells = [safe_text(one[name], toward="up") for name in ("tpr_at_1_percent", "auc", "bits")]
        read.append((*named, *cells, safe_text(one["epsilon_shown"], toward="down")))
    return (
        Table(
            title="What is told, as an advantage",
            columns=(*labels, "shown", "at most", *["DP allows"] * implied, f"{CEILING:g} allowed"),
            rows=tuple(told),
            note="Advantages, TPR − FPR. Shown: by the best attack, on rows of its own. At most: certified, for "
            f"everyone who sees the output. {note}",
        ),
        Table(
            title="Other readings of the same certificates and attacks",
            columns=(*labels, "TPR at 1 % FPR", "AUC", "bits", "ε shown"),
            rows=tuple(read),
            note="The first three are never exceeded. ε shown: by an attack; for no smaller ε are the two classes' "
            "outputs (ε, 0)-indistinguishable.",
        ),
    )


def intervals(found: Mapping[str, Found], title: str) -> Figure:
    """What each output tells, as a line from attack to certificate."""
    named = {name: (one["low"], one["high"]) for name, one in found.items()}
    return Figure(
        title=title,
        caption="The largest advantage of anyone lies on the line: from what an attack has shown to what nobody "
        "exceeds.",
        alternative="; ".join(
            f"{name}: {safe_text(low, toward='down')} to {safe_text(high, toward='up')}"
            for name, (low, high) in named.items()
        ),
        svg=figures.intervals(named, x_label="advantage (TPR − FPR)", marked=(CEILING, f"allowed: {CEILING:g}")),
    )


def roc(one: Found) -> Figure:
    """The region that no ROC curve leaves, and those of attacks."""
    return Figure(
        title=f"Where every ROC curve has to stay: {one['secret']} from {one['output']}, {one['model']}",
        caption="Nobody who sees only this output leaves the shaded region, whatever the method. Lines: attacks, on "
        "rows of their own.",
        alternative=f"The region reaches {safe_text(one['high'], toward='up')} above the diagonal, the best attack "
        f"{safe_text(one['low'], toward='down')} or more.",
        svg=figures.roc(RATES, one["region"], one["roc"]),
    )


def delivered(
    task: Task,
    *,
    title: str,
    heading: str,
    summary: tuple[str, ...],
    tables: tuple[Table, ...],
    found: list[Found],
    shown: Mapping[str, Figure],
) -> Report:
    """The report, and its files in the output folder."""
    report = Report(
        command=f"reproduce audit {task.experiment}",
        title=title,
        summary=summary,
        comparisons=tuple(Comparison.from_dict(one["comparison"]) for one in found),
        figures=tuple(shown.values()),
        tables=tables,
        detail={
            "audits": [{key: value for key, value in one.items() if key != "comparison"} for one in found],
            "ceiling": CEILING,
            "failure_probability": DELTA,
            "figures": list(shown),
        },
    )
    write_results(report, task.out, name=f"audit-{task.experiment}", heading=heading)
    return report
