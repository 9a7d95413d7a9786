"""The report of audits of several outputs: in words, in two tables, and as intervals and regions."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.guarantee import Comparison
from ..core.wording import safe_text
from ..report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from .audit_cases import CEILING, DELTA, RATES, Found, Task
from .results import write_results

_JUDGED = ("met", "not proven", "broken")


def one_of(found: list[Found], model: str, secret: str, output: str) -> Found:
    """Return the audit of one output."""
    (one,) = [one for one in found if (one["model"], one["secret"], one["output"]) == (model, secret, output)]
    return one


def between(found: list[Found], model: str, secret: str, output: str) -> str:
    """Return how much an output tells, as an interval in words."""
    one = one_of(found, model, secret, output)
    return f"{safe_text(one['low'], toward='down')} – {safe_text(one['high'], toward='up')}"


def counted(found: list[Found]) -> tuple[str, ...]:
    """State how many outputs keep the ceiling, and how certain everything is."""
    judged = [one["judged"] for one in found]
    failing = sum(one["failure_probability"] for one in found)
    return (
        (
            f"A ceiling of {CEILING:g} is met by {judged.count('met')} of {len(judged)} outputs, broken by "
            f"{judged.count('broken')}, and not proven for {judged.count('not proven')}."
        ),
        (
            f"All intervals hold together except with probability {failing:.2g}, for the average record and an "
            "adversary who sees only that output."
        ),
    )


def verdicts(found: list[Found]) -> tuple[Verdict, ...]:
    """Return a card for each model: what the output that tells most gives away."""
    cards = []
    for model in dict.fromkeys(one["model"] for one in found):
        outputs = [one for one in found if one["model"] == model]
        worst = max(outputs, key=lambda one: (_JUDGED.index(one["judged"]), one["high"]))
        secrets = " or ".join(dict.fromkeys(one["secret"] for one in outputs))
        level = (FINE, WEAK, BROKEN)[_JUDGED.index(worst["judged"])]
        reason = {
            FINE: f"The ceiling of {CEILING:g} is proven for every output.",
            BROKEN: f"An attack exceeds the ceiling of {CEILING:g}.",
            WEAK: f"The ceiling of {CEILING:g} is not proven, and no attack has broken it.",
        }[level]
        cards.append(
            Verdict(
                level=level,
                about=f"Telling {secrets} ({model})",
                proven=f"advantage at most {safe_text(worst['high'], toward='up')}",
                reached=f"{safe_text(worst['low'], toward='down')} or more",
                reason=f"{reason} The output that tells most: {worst['output']}"
                + (f", about {worst['secret']}." if " or " in secrets else "."),
                scope="for everyone who sees one of the outputs",
            )
        )
    return tuple(cards)


def tables(found: list[Found], labels: tuple[str, ...], note: str) -> tuple[Table, Table]:
    """Return two tables with a row for each output: its advantage, and other readings."""
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
            title="What each output tells, as an advantage",
            columns=(*labels, "shown", "at most", *["DP allows"] * implied, f"{CEILING:g} allowed"),
            rows=tuple(told),
            note="Advantages, TPR − FPR. Shown: by the best attack, on rows it was not fitted to. At most: certified, "
            f"for everyone who sees only the output. {note}",
        ),
        Table(
            title="Other readings of the same certificates and attacks",
            columns=(*labels, "TPR at 1 % FPR", "AUC", "bits", "ε shown"),
            rows=tuple(read),
            note="Nobody exceeds the first three. ε shown: an attack shows that the outputs of the two classes are "
            "not (ε, 0)-indistinguishable for any smaller ε.",
        ),
    )


def intervals(found: Mapping[str, Found], title: str) -> Figure:
    """Draw how much each output tells, as a line from attack to certificate."""
    named = {name: (one["low"], one["high"]) for name, one in found.items()}
    return Figure(
        title=title,
        caption="The largest advantage that anyone can have lies on the line, between what an attack has shown and "
        "what nobody exceeds.",
        alternative="; ".join(
            f"{name}: {safe_text(low, toward='down')} to {safe_text(high, toward='up')}"
            for name, (low, high) in named.items()
        ),
        svg=figures.intervals(named, x_label="advantage (TPR − FPR)", marked=(CEILING, f"allowed: {CEILING:g}")),
    )


def roc(one: Found) -> Figure:
    """Draw the region that no ROC curve leaves, and the curves of attacks."""
    return Figure(
        title=f"Where every ROC curve must stay: {one['secret']} from {one['output']}, {one['model']}",
        caption="Nobody who sees only this output leaves the shaded region, by any method. Lines: attacks, on rows "
        "they were not fitted to.",
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
    changes: tuple[Change, ...] = (),
) -> Report:
    """Return the report, and write its files to the output folder."""
    report = Report(
        command=f"reproduce audit {task.experiment}",
        title=title,
        summary=summary,
        comparisons=tuple(Comparison.from_dict(one["comparison"]) for one in found),
        verdicts=verdicts(found),
        opening=tuple(shown.values())[:1],
        changes=changes,
        figures=tuple(shown.values())[1:],
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
