"""The report on a secret of several values or a number, and on several secrets together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import InputError, NoTheoremError
from ...core.wording import chance_text, safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.timing import Timed
from ...runtime import tables
from ..groups import Repeats, copied, grouped, shared, shared_name
from ..guess_attacks import LEAST_ROWS, GuessAttack
from ..guess_counts import ClassCounts, NumberCounts
from ..guesses import GuessCertificate, certify_class_counts, certify_number_counts
from ..sample import Sample
from ..verdict import Audit, guess_attacked
from .inputs import MOST_VALUES, Read, parts_of
from .options import Task
from .report import advantage_verdict, drawn_groups

_SECONDS = 5.0
_ALONE = (
    "Each secret is guessed alone: whoever knows one of them may learn another, and what they are together is a secret "
    "of its own."
)
_LOOKED_AT = 500_000  # rows among which copies are looked for


def check_secrets(secrets: Sequence[str], task: Task) -> None:
    """Refuse secrets that do not go together."""
    if not secrets or len(set(secrets)) < len(secrets):
        raise InputError(
            "secret", ", ".join(secrets), requirement="must name one column or several different ones", remedy="name it"
        )
    if len(secrets) > 1 and any(one is not None for one in (task.secret_range, task.positive, task.release_code)):
        raise InputError(
            "secret",
            ", ".join(secrets),
            requirement="must be one column where `secret_range`, `positive` or `release_code` is given",
            remedy=f"audit each in a run of its own, with `failure_probability` divided by {len(secrets)}",
        )


def guess_page(task: Task, timed: Timed) -> Report:
    """Read, certify and attack a secret of several values, or a number where a range is stated."""
    timed("reading the table")
    kept = Read(tallies={}, sample=Sample.of_all(task.attack_rows, task.seed), kinds=())
    counts: Any = ClassCounts() if task.secret_range is None else NumberCounts(*task.secret_range)
    rows = Repeats()
    for number, (columns, repeated, share) in enumerate(parts_of(task, task.columns, kept)):
        secrets, outputs = columns[task.secret], [columns[output] for output in task.outputs]
        rows.add([secrets, *outputs], repeated)
        counts.add(secrets, dict(enumerate(outputs)), weights=repeated)
        if counts.cells > MOST_VALUES:
            raise NoTheoremError(
                f"{task.name} must take {MOST_VALUES} different values or fewer, got more; round it before release, or "
                "audit fewer rows"
            )
        kept.sample.add(np.zeros(len(secrets)), [secrets, *outputs], repeated)
        if not number:
            timed.expect(_SECONDS + ((1 / share - 1) * timed.spent if share else 0.0))
        timed(f"{min(100, round(100 * share))} % of the table read")
    timed("certifying")
    words: dict[str, Any] = {
        "failure_probability": task.failure_probability,
        "name": task.name,
        "about": f"column {task.secret!r}",
    }
    certificate: GuessCertificate
    if task.secret_range is None:
        certificate = certify_class_counts(counts, **words)
    else:
        certificate = certify_number_counts(counts, **words)
    if kept.in_groups is not None:
        certificate = grouped(certificate, rows=kept.in_groups)
    if task.attack_rows:
        timed("attacking")
    tried = guess_attacked(certificate, kept.sample, failure_probability=task.failure_probability, seed=task.seed)
    audited = Audit(certificate=certificate, attacks=tried, require_advantage=task.require_advantage)
    return with_repeats(task, _page(task, certificate, audited, tried, kept), repeats(task, rows.copied))


def _page(
    task: Task, certificate: GuessCertificate, audited: Audit, tried: tuple[GuessAttack, ...], kept: Read
) -> Report:
    chance = chance_text(certificate.failure_probability)
    sentences = [audited.verdict]
    if certificate.limit < 1:
        sentences.append(f"{chance[:1].upper()}{chance[1:]}, {certificate.in_words}.")
    sentences.append(
        f"The output is read as categories; the table has {certificate.cells} of them in {certificate.rows} rows."
        + " Nothing can be certified of so many: round the output before release." * (certificate.limit >= 1)
    )
    if kept.in_groups is not None:
        sentences.append(drawn_groups(task, certificate.rows, kept.in_groups))
    if not task.attack_rows:
        sentences.append("No attacks were run, so nothing shows how tight the certificate is.")
    elif not tried:
        sentences.append(f"No attacks were run: they need {LEAST_ROWS} rows.")
    elif kept.sample.rows < certificate.rows:
        sentences.append(f"The attacks use {kept.sample.rows} of {certificate.rows} rows, drawn at random.")
    return Report(
        command="audit",
        title=f"What {task.name} of {task.table.name} tell{'s' * (len(task.outputs) == 1)} about {task.secret}",
        summary=(*sentences, *([certificate.caution] if certificate.caution else []), *certificate.scope),
        comparisons=audited.comparisons,
        verdicts=(_verdict(task, audited, certificate),),
        opening=(_picture({task.secret: (audited.low, audited.high)}, task),) if task.pictures else (),
        changes=_changes(audited),
        tables=(_readings(certificate), *([_attacks(certificate, tried)] if tried else [])),
        met=audited.met,
        detail=_detail(task, certificate, audited, tried, kept),
    )


def _verdict(task: Task, audited: Audit, certificate: GuessCertificate) -> Verdict:
    found = advantage_verdict(audited, about=f"Guessing {task.secret} by {task.name}")
    words = certificate.in_words if certificate.limit < 1 else "nothing is certified of so many different outputs"
    return replace(found, reason=f"{found.reason} {words[:1].upper()}{words[1:]}.")


def _picture(found: dict[str, tuple[float, float]], task: Task) -> Figure:
    ceiling = task.require_advantage
    marked = (ceiling, f"the ceiling, {ceiling:g}") if ceiling is not None else (0.0, "guessing without the output")
    return Figure(
        title="How much better than a blind guess",
        caption="Across: the advantage, the share of the best blind guess's error that somebody saves (of a number, of "
        "its mean squared error). 0 is guessing without the output, 1 is certainty. Each line reaches from what an "
        "attack has shown for sure, the lower limit of what it reached, to what nobody exceeds.",
        alternative="; ".join(
            f"{name}: from {safe_text(low, toward='down')} to {safe_text(high, toward='up')}"
            for name, (low, high) in found.items()
        )
        + ".",
        svg=figures.intervals(found, x_label="advantage", marked=marked),
    )


def _changes(audited: Audit) -> tuple[Change, ...]:
    return _changes_if(advantage_verdict(audited).level)


def _changes_if(level: str) -> tuple[Change, ...]:
    if level == FINE:
        return (
            Change(
                what="Nothing needs to change. Audit again once the model, the data or the output changes.",
                price="a new table of as many rows.",
            ),
        )
    coarser = Change(
        what="Release less: round the output, or release the predicted class alone, and audit that.",
        price="what is released gets coarser; the model stays as it is.",
    )
    more = Change(what="Audit more rows; with --group, rows of more groups.", price="collecting rows of the same kind.")
    return (coarser,) if level == BROKEN else (more, coarser)


def _readings(certificate: GuessCertificate) -> Table:
    measured = {"advantage", "share of right guesses", "share of the variance explained"}
    return Table(
        title="What nobody exceeds",
        columns=("reading", "limit", "theorem"),
        rows=tuple(
            (
                name,
                f"at {'most' if side == 'up' else 'least'} {safe_text(number, toward=side)}",
                certificate.guarantee.references[0].rpartition(".")[2] if name in measured else "follows",
            )
            for name, number, side in certificate.readings
        ),
        note="Proven from this table, for the average record and for secrets as frequent as in the table; all readings "
        f"hold together except with probability {certificate.failure_probability:g}. The advantage is the share of the "
        "best blind guess's error that somebody saves (of a number, of its mean squared error). tacit proof NAME "
        "prints a theorem and its proof.",
    )


def _attacks(certificate: GuessCertificate, tried: tuple[GuessAttack, ...]) -> Table:
    reached = certificate.readings[1][0]
    return Table(
        title="What attacks reached",
        columns=("attack", "advantage", "at least", reached),
        rows=tuple(
            (
                attack.learner,
                f"{attack.value:.4f}",
                safe_text(max(0.0, attack.low), toward="down"),
                f"{attack.reached:.4f}",
            )
            for attack in tried
        ),
        note="Measured on rows that the attack was not fitted to. “At least” is a confidence limit; all of them "
        f"hold together except with probability {sum(attack.failure_probability for attack in tried):.2g}.",
    )


def _detail(
    task: Task, certificate: GuessCertificate, audited: Audit, tried: tuple[GuessAttack, ...], kept: Read
) -> dict[str, Any]:
    return {
        "verdict": audited.verdict,
        "met": audited.met,
        "require_advantage": task.require_advantage,
        "low": audited.low,
        "high": audited.high,
        "failure_probability": audited.failure_probability,
        "rows": certificate.rows,
        "group": None if kept.in_groups is None else {"column": task.group, "rows": kept.in_groups},
        "attack_rows": kept.sample.rows,
        "secret": {
            "column": task.secret,
            "kind": "classes" if task.secret_range is None else "number",
            "values": getattr(certificate, "values", None),
            "range": None if task.secret_range is None else list(task.secret_range),
        },
        "outputs": [{"column": name} for name in task.outputs],
        "readings": {name.replace(" ", "_"): number for name, number, _ in certificate.readings},
        "plug_in": certificate.plug_in,
        "attacks": [
            {"method": one.learner, "advantage": [one.value, one.low, one.high], "reached": one.reached}
            for one in tried
        ],
    }


def repeats(task: Task, seen: tuple[int, int] | None) -> tuple[int, int] | None:
    """What `copied` says of the file's first rows, all columns together, or else has said of secrets and outputs.

    None where rows are in groups.
    """
    if task.group is not None or task.matrix:
        return seen if task.group is None else None
    return copied(tables.occurrences(task.table, most=_LOOKED_AT, name="table")) or seen


def _shared_columns(task: Task) -> list[str]:
    """What to say of columns that seem to name what several rows belong to; the first part of the file is looked at."""
    if task.group is not None or task.table.suffix.lower() == ".npz":
        return []
    said = []
    used = {one.strip() for one in task.columns}
    for name in tables.column_names(task.table, name="table"):
        if name in used or not shared_name(name):
            continue
        try:
            part, _, _ = next(tables.batches(task.table, [name], name="table", each=True))
        except InputError:  # it may have gaps, or two columns this name: nothing is read from it
            continue
        values = shared(part[name])
        if values is not None:
            remedy = (
                "keep one row of each, drawn at random"
                if task.code is not None or task.matrix
                else f"use --group {name}"
            )
            said.append(
                f"Column {name!r} repeats: {values} values in {len(part[name])} rows that were looked at. "
                f"If rows of one value belong together, they are not independent: {remedy}."
            )
    return said


def with_repeats(task: Task, page: Report, found: tuple[int, int] | None) -> Report:
    """The report, with a warning where rows look copied, as `copied` says, or where a column says which do."""
    if found is None:
        first, *others = page.summary
        page = replace(page, summary=(first, *_shared_columns(task), *others))
        return replace(page, detail={**page.detail, "copied": None})
    times, rows = found
    vectors = task.code is not None or task.matrix
    warning = (
        f"Rows repeat: {rows} different rows stand {times} times each in the file, which independent rows hardly do; "
        "every number here needs independent rows. If rows belong together, such as those of one patient, "
        + ("keep one of each, drawn at random" if vectors else "name the column that says which with --group")
        + "; if they are copies, keep one of each."
    )
    ceiling = " No ceiling counts as proven." * (task.require_advantage is not None)
    verdicts = tuple(
        replace(one, level=WEAK, reason=f"Rows repeat, and may not be independent.{ceiling}")
        if one.level == FINE
        else one
        for one in page.verdicts
    )
    first, *others = page.summary
    return replace(
        page,
        summary=(warning + ceiling, f"If rows are independent all the same: {first[:1].lower()}{first[1:]}", *others),
        verdicts=verdicts,
        changes=(
            Change(
                what="Keep one of each copy, and one row, drawn at random, of those that belong together."
                if vectors
                else "Name the column that says which rows belong together with --group, or keep one of each copy.",
                price="fewer rows, and so larger limits.",
            ),
            *(one for one in page.changes if one not in _changes_if(FINE)),
        ),
        met=page.met and task.require_advantage is None,
        detail={
            **page.detail,
            "met": page.met and task.require_advantage is None,
            "copied": {"times": times, "rows": rows},
        },
    )


def _reach(detail: Mapping[str, Any]) -> tuple[float, float]:
    """From what an attack has shown to what nobody exceeds who sees the output; where only a code is certified, 1."""
    code = detail.get("code")
    if code is None or code["released"]:
        return float(detail["low"]), float(detail["high"])
    return max(float(detail["low"]), float(code["vector_low"])), 1.0


def together(tasks: Sequence[Task], pages: Sequence[Report], failure_probability: float) -> Report:
    """One report on several secrets, each of which has its share of the failure probability."""
    task = tasks[0]
    names = [one.secret for one in tasks]
    found = {name: _reach(one.detail) for name, one in zip(names, pages, strict=True)}
    said = [f"{name}: {one.summary[0][:1].lower()}{one.summary[0][1:]}" for name, one in zip(names, pages, strict=True)]
    rest = [sentence for one in pages for sentence in one.summary[1:]]
    all_of = "both" if len(tasks) == 2 else f"all {len(tasks)}"
    return Report(
        command="audit",
        title=f"What {task.name} of {task.table.name} tell{'s' * (len(task.outputs) == 1)} about "
        + ", ".join(names[:-1])
        + f" and {names[-1]}",
        summary=(
            f"The limits for {all_of} secrets hold together, {chance_text(failure_probability)}.",
            _ALONE,
            *said,
            *dict.fromkeys(rest),
        ),
        comparisons=tuple(comparison for one in pages for comparison in one.comparisons),
        verdicts=tuple(verdict for one in pages for verdict in one.verdicts),
        opening=(_picture(found, task),) if task.pictures else (),
        changes=tuple(dict.fromkeys(change for one in pages for change in one.changes)),
        choices=tuple(
            replace(table, title=f"{name}: {table.title}")
            for name, one in zip(names, pages, strict=True)
            for table in one.choices
        ),
        figures=tuple(
            replace(figure, title=f"{name}: {figure.title}")
            for name, one in zip(names, pages, strict=True)
            # The picture of guesses alone is that of all of them.
            for figure in (*(one.opening if "tpr_at" in one.detail["readings"] else ()), *one.figures)
        ),
        tables=tuple(
            replace(table, title=f"{name}: {table.title}")
            for name, one in zip(names, pages, strict=True)
            for table in one.tables
        ),
        met=all(one.met for one in pages),
        detail={
            "met": all(one.met for one in pages),
            "failure_probability": failure_probability,
            "secrets": {name: dict(one.detail) for name, one in zip(names, pages, strict=True)},
        },
    )
