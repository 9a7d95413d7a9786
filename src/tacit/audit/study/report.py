"""The report: sentences, tables and JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...core.wording import safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict
from ...theory import leakage
from ..attacks import LEAST_ROWS
from ..attempt import Attempt
from ..certificate import SCOPE, Certificate
from ..curve import EPSILONS, ImpliedByDP
from ..measuring import FALSE_POSITIVE_RATES
from ..menu import Menu, MenuOption
from ..vectors import VectorAudit
from ..verdict import Audit
from .findings import Findings
from .inputs import Read
from .options import Task

_READINGS = {
    "advantage": "advantage (TPR − FPR)",
    "balanced_accuracy": "balanced accuracy",
    "auc": "area under the ROC",
    "bits": "bits about the secret",
}
_MOST_SHOWN = 40  # slices in the table; the JSON has all
_MANY_VALUES, _ROWS_OF_A_VALUE = 100, 50
"""Categories are many, and limits loose, where there are more than the first, with fewer rows each than the second."""
SMALL, LARGE = 0.1, 0.25
"""Without a ceiling, an advantage is fine if nobody exceeds the first, and broken if an attack reaches the second."""


def page(task: Task, table: Read, found: Findings, pictures: tuple[Figure, ...]) -> Report:
    """The report of what was found, beginning with the verdict; the first picture carries it."""
    return Report(
        command="audit",
        title=f"What {_subject(task)} of {task.table.name} {_tells(task)} about {task.secret}",
        summary=_summary(task, table, found),
        comparisons=found.audit.comparisons,
        verdicts=_verdicts(task, table, found),
        opening=pictures[:1],
        changes=_changes(task, table, found),
        choices=() if found.menu is None else (_menu(task, found.menu),),
        figures=pictures[1:],
        tables=_tables(task, found),
        met=found.met,
        detail=_detail(task, table, found),
    )


def advantage_verdict(audited: Audit, *, about: str = "Telling the secret", caution: str = "") -> Verdict:
    """Whether the largest advantage is fine, weak or broken: by the ceiling, or else by `SMALL` and `LARGE`.

    Parameters
    ----------
    audited
        What was found.
    about
        What is judged.
    caution
        The certificate's caution in the words of the place where it is shown.
    """
    ceiling = audited.require_advantage
    certified = audited.certificate.method != "continuous"
    if audited.contradicted:
        level, reason = BROKEN, "An attack did what the certificate rules out: an assumption is wrong."
    elif ceiling is not None and audited.met:
        level, reason = FINE, f"The ceiling of {ceiling!r} is proven."
    elif ceiling is not None and audited.low > ceiling:
        level, reason = BROKEN, f"An attack exceeds the ceiling of {ceiling!r}."
    elif ceiling is not None:
        tried = "no attack has broken it" if audited.attacks else "no attack was run"
        level, reason = WEAK, f"The ceiling of {ceiling!r} is not proven, and {tried}."
    elif audited.low >= LARGE:
        level, reason = BROKEN, "An attack can tell the secret; 0 is guessing, 1 is certainty."
    elif certified and audited.high <= SMALL:
        level, reason = FINE, "Hardly better than guessing, which is 0; 1 is certainty."
    else:
        level, reason = WEAK, "A larger advantage is not ruled out; 0 is guessing, 1 is certainty."
    if level == FINE and audited.certificate.caution:
        level, reason = WEAK, caution or audited.certificate.caution
    elif level == FINE and audited.certificate.condition:
        level = WEAK
        reason = f"This holds if {audited.certificate.condition}, which no table can confirm. {reason}"
    best = max(audited.attacks, key=lambda attack: attack.value, default=None)
    return Verdict(
        level=level,
        about=about,
        proven=f"advantage at most {_up(audited.high)}" if certified else "nothing can be certified",
        reached="" if best is None else safe_text(best.value, toward="nearest"),
        reason=reason,
        scope="for everyone who sees the output" if certified else "",
    )


def _verdicts(task: Task, table: Read, found: Findings) -> tuple[Verdict, ...]:
    caution = _caution(task, table, found) if found.certificate.caution else ""
    by = task.name if found.vectors is None else f"the code of {task.name}"
    by += "" if task.noise is None else f" with noise of {task.noise:g}"
    cards = [advantage_verdict(found.audit, about=f"Telling {task.secret} by {by}", caution=caution)]
    if found.vectors is not None and not found.vectors.release_code:
        cards.insert(0, _vectors_verdict(task, found.vectors))
    if found.slices and found.certificate.method != "continuous":
        value = max(found.slices, key=lambda one: found.slices[one].advantage)
        worst = found.slices[value].advantage
        ceiling = task.require_advantage
        failing = len(found.failing)
        level = WEAK if failing or (ceiling is None and worst > SMALL) else FINE
        reason = f"The worst of {len(found.slices)} slices."
        if ceiling is not None:
            reason += f" The ceiling is proven in {len(found.slices) - failing} of them."
        about = (
            f"{cards[-1].about} in {task.slices} = {value!r}"
            if found.vectors
            else f"The same in {task.slices} = {value!r}"
        )
        cards.append(Verdict(level=level, about=about, proven=f"advantage at most {_up(worst)}", reason=reason))
    if found.vectors is not None and found.vectors.caution:
        cards = [replace(one, level=WEAK, reason=found.vectors.caution) if one.level == FINE else one for one in cards]
    return tuple(cards)


def _vectors_verdict(task: Task, found: VectorAudit) -> Verdict:
    """Of whole vectors nothing is proven; an attack may show that they are broken."""
    what = "vector" if found.code.terms is None else "text"
    best = max(found.attacks, key=lambda attack: attack.value, default=None)
    ceiling = task.require_advantage
    if found.reached > (LARGE if ceiling is None else ceiling):
        level, reason = BROKEN, f"An attack on the whole {what} can tell the secret; 0 is guessing, 1 is certainty."
    elif found.beaten:
        level, reason = BROKEN, f"An attack on the whole {what} reached more than anyone can who sees the code."
    else:
        level, reason = WEAK, f"The code is certified, not the {what}: whoever sees the {what} may learn more."
    return Verdict(
        level=level,
        about=f"Telling {task.secret} by {task.name}",
        proven="nothing is certified",
        reached="" if best is None else safe_text(best.value, toward="nearest"),
        reason=reason,
        scope="",
    )


def _subject(task: Task) -> str:
    return task.name if task.release_code is None else f"the code of {task.name}"


def _tells(task: Task) -> str:
    return "tells" if len(task.outputs) == 1 or task.release_code is not None else "tell"


def _changes(task: Task, table: Read, found: Findings) -> tuple[Change, ...]:
    """What makes the output safer, or the certificate tighter, and what that costs."""
    coarser = Change(
        what="Release less: round the output, or release the predicted class alone, and audit that.",
        price="what is released gets coarser; the model stays as it is.",
    )
    if found.vectors is not None:
        coarser = Change(
            what="Release a code of fewer cells, such as --code kmeans:8, and audit that.",
            price="what is released gets coarser; the model stays as it is.",
        )
    noisier = Change(
        what="Add Gaussian noise to the output when it is released, and audit with --noise.",
        price="every output is off by about the noise.",
    )
    private = Change(
        what="Publish a model that was learned privately: tacit learn.",
        price="accuracy; tacit plan shows how much, without private data.",
    )
    ceiling = task.require_advantage if task.require_advantage is not None else SMALL
    cheapest = () if found.menu is None else found.menu.meeting(ceiling)[:1]
    better = tuple(
        Change(
            what=f"Release {task.name} {option.what}: nobody's advantage in telling {task.secret} then exceeds "
            f"{_up(option.certificate.advantage)}, which is proven.",
            price=_price(option, found.menu),
        )
        for option in cheapest
        if not found.met and not found.slices  # of which the menu says nothing
    )
    coded = Change(
        what="Release only the code: audit with --code kmeans --release-code codebook.json.",
        price="of a vector, only the number of its cell is left.",
    )
    noised = Change(
        what="Add Gaussian noise to every number when it is released, and audit with --noise instead of --code.",
        price="every number is off by about the noise.",
    )
    if found.vectors is not None and not found.vectors.release_code:
        if found.vectors.code.terms is not None:
            return (replace(coded, price="of a text, only the number of its cell is left."), private)
        return (*better, coded, noised, *[private] * found.vectors.beaten)
    level = max((one.level for one in _verdicts(task, table, found)), key=(FINE, WEAK, BROKEN).index)
    if found.certificate.method == "continuous":
        return better or (coarser, noisier)
    if level == BROKEN:
        return (*(better or (coarser,)), private)
    needed = found.rows_needed.get(ceiling)
    if level == WEAK:
        more = []
        if needed is not None and needed > table.rows:
            more.append(
                Change(
                    what=f"Audit more rows: a ceiling of {ceiling:g} takes at least {needed}; there are {table.rows}.",
                    price=f"{needed - table.rows} rows or more, half of each class.",
                )
            )
        elif found.audit.low < ceiling < found.audit.high:
            more.append(Change(what="Audit more rows.", price="rows of the same kind, of both classes."))
        return (*more, *(better or (coarser,)))
    return (
        Change(
            what="Nothing needs to change. Audit again once the model, the data or the output changes.",
            price="a new table of as many rows.",
        ),
    )


def _summary(task: Task, table: Read, found: Findings) -> tuple[str, ...]:
    certificate, slices, failing = found.certificate, found.slices, found.failing
    sentences = [found.verdict]
    if certificate.caution:
        sentences.append(_caution(task, table, found))
    if found.vectors is not None and found.vectors.caution:
        sentences.append(found.vectors.caution)
    if slices and certificate.method != "continuous":
        worst = max(slices, key=lambda value: slices[value].advantage)
        limit = _up(slices[worst].advantage)
        reading = (
            f"in {task.slices} = {worst!r}, the worst of {len(slices)} slices, the advantage of nobody who sees only "
            f"{certificate.output} exceeds {limit} (all slices hold together except with probability "
            f"{task.failure_probability / 2:g})"
        )
        said = f"{reading[:1].upper()}{reading[1:]}."
        if failing:
            said = f"Not proven in {len(failing)} of {len(slices)} slices: {reading}; "
            said += f"the ceiling is {task.require_advantage:g}."
        if failing and found.audit.met:  # the reason not to release comes first
            whole = f"On the whole table: {found.verdict[:1].lower()}{found.verdict[1:]}"
            sentences = [said, whole, *sentences[1:]]
        else:
            sentences.append(said)
    sentences.append(_left_out(task))
    sentences.append(
        f"The secret, column {task.secret!r}, is {certificate.positive!r} in {certificate.positives} rows (called "
        f"positive) and {certificate.negative!r} in {certificate.negatives}."
    )
    sentences.append(_recognised(task, table, found) if found.vectors is None else _coded(table, found.vectors))
    if table.in_groups is not None:
        sentences.append(drawn_groups(task, table.rows, table.in_groups))
    if not task.attack_rows:
        sentences.append("No attacks were run, so nothing shows how tight the certificate is.")
    elif not found.tried:
        sentences.append(f"No attacks were run: they need {LEAST_ROWS} rows of each class.")
    elif table.sample.rows < table.rows:
        certified = "" if certificate.method == "continuous" else f"The certificate uses all {table.rows} rows. "
        sentences.append(f"{certified}The attacks use {table.sample.rows} of {table.rows} rows, drawn at random.")
    return (*sentences, *SCOPE)


def _left_out(task: Task) -> str:
    """Who may do better than anyone that this is about, and what a ceiling therefore leaves out."""
    said = f"Whoever sees more than {_subject(task)} may do better"
    if task.require_advantage is not None:
        said += ", and the ceiling says nothing about that"
    return (
        f"{said}: where the secret is membership, whoever also holds the record (tacit audit-model, or tacit audit "
        "--record for a table of many models)."
    )


def drawn_groups(task: Task, groups: int, rows: int) -> str:
    """How rows were drawn from groups, and what that makes of the claim."""
    return (
        f"Of the {groups} groups in column {task.group!r}, one row each was drawn at random from {rows} rows: all "
        "claims are about a random row of a random group."
    )


def _coded(table: Read, found: VectorAudit) -> str:
    """How vectors were coded, and what that leaves out."""
    said = (
        f"Of {found.own_rows + table.rows} rows, {found.own_rows} drawn at random fixed the code of {found.vectors}, "
        f"{found.code.in_words}; the other {table.rows} certify it."
    )
    if found.code.terms is not None:
        said += f" {found.left_out}"
    if found.release_code:
        return f"{said} The certificate is about records whose code is released and nothing else. {found.of_codebook}"
    return f"{said} The certificate is about whoever sees the code. What the code leaves out of a " + (
        "vector is attacked, not certified." if found.code.terms is None else "text is not certified."
    )


def _caution(task: Task, table: Read, found: Findings) -> str:
    """The certificate's caution, with the options of the command line in place of the library's parameters."""
    if found.certificate.method == "continuous":
        return (
            f"Nothing can be certified: {found.values} different values in {table.rows} rows make the output "
            "continuous, and every valid limit is 1. To certify it, release it with Gaussian noise and give --noise, "
            "round it before release, or state --assume-one-direction or --assume-max-slope."
            + " --code certifies a code of several columns."
            * (len(task.outputs) > 1)
        )
    return (
        f"The table must hold the output before noise is added. Its numbers look as if they held noise of "
        f"{task.noise!r} already: if they do, the certificate is false; give --noise-added instead of --noise."
    )


def _recognised(task: Task, table: Read, found: Findings) -> str:
    """How the output was read."""
    columns = ", ".join(f"{name!r} ({kind})" for name, kind in zip(task.outputs, table.kinds, strict=True))
    how = {
        "noisy": "read as numbers without noise, to which fresh Gaussian noise of standard deviation "
        f"{task.noise or 0:g} is added at release",
        "noise added": "read as released, with Gaussian noise of standard deviation "
        f"{task.noise_added or 0:g} in it already",
        "monotone": "read, as you state, as a score with which the secret's probability only grows or only falls",
        "lipschitz": "read, as you state, as numbers with which the secret's mean, coded ±1 and with both values "
        f"equally likely, changes by at most {task.lipschitz or 0:g} per unit; it was counted in {found.values} bins",
        "discrete": f"read as categories; the table has {found.values} of them",
        "continuous": f"read to the last digit: {found.values} different values were seen",
    }[found.certificate.method]
    said = f"The output, column{'s' * (len(task.outputs) > 1)} {columns}, is {how}."
    if found.certificate.method == "discrete" and found.values > max(_MANY_VALUES, table.rows // _ROWS_OF_A_VALUE):
        said += (
            " With so many, the limits are loose, and they hold only where the output is released as the table has "
            "it, to the last digit and no further. Round it before release, or, if it is a number, give --noise, "
            "--assume-one-direction or --assume-max-slope."
        )
    return said


def _tables(task: Task, found: Findings) -> tuple[Table, ...]:
    attacks = (_attacks(found.tried),) if found.tried else ()
    if found.certificate.method == "continuous":
        return attacks
    slices = (_slices(task, found.slices),) if found.slices else ()
    if found.vectors is not None:
        both = (*found.vectors.attacks, *found.tried)
        attacks = (_attacks(both, on_code=len(found.tried)),) if both else ()
    readings = _readings(found.certificate)
    if found.vectors is not None:
        readings = replace(readings, title="What nobody exceeds who sees the code")
    return (readings, *attacks, *slices, *([_sizes_needed(found.rows_needed)] if found.rows_needed else []))


def _price(option: MenuOption, menu: Menu | None) -> str:
    """What an option costs, in words."""
    if option.accuracy is not None and menu is not None and menu.accuracy is not None:
        return f"accuracy is {option.accuracy:.3f}; as it is now, {menu.accuracy:.3f}."
    if option.change is None:
        return "only a label is left."
    return f"a number changes by {option.change:.3g} on average."


def _menu(task: Task, menu: Menu) -> Table:
    priced = menu.accuracy is not None
    rows = []
    for option in menu.options:
        cells = [option.what, _up(option.certificate.advantage)]
        cells.append("–" if option.change is None else f"{option.change:.3g}")
        cells += [f"{option.accuracy:.3f}"] if option.accuracy is not None else []
        if task.require_advantage is not None:
            cells.append("met" if option.certificate.meets(advantage=task.require_advantage) else "not proven")
        rows.append(tuple(cells))
    columns = ["released instead", "advantage ≤", "change"]
    verdict = "verdict" if task.slices is None else "whole table"
    columns += ["accuracy"] * priced + [verdict] * (task.require_advantage is not None)
    names = dict.fromkeys(name for one in menu.options for name in one.certificate.guarantee.references)
    note = (
        f"Each is done to every record alike, and nobody's advantage exceeds the limit beside it. All limits were "
        f"certified on {menu.rows} rows of this table and hold together except with probability "
        f"{menu.failure_probability:g}; other rows fixed the scale. Release one of them, once. Change: of a number, on "
        "average. "
    )
    if any(option.what == "as the name of the largest alone" for option in menu.options):
        note += (
            "The name of the largest: which column is largest, such as the predicted class; where several are, the "
            "first. "
        )
    if task.slices is not None:
        note += "They are about the whole table, and say nothing about a slice: audit what you release with --slice. "
    if priced:
        note += (
            f"Accuracy: how often gradient boosting tells {task.target} from what is released, on rows of its own; as "
            f"it is, {menu.accuracy:.3f}. "
        )
    note += f"The limits are those of tacit proof {' '.join(name.rpartition('.')[2] for name in names)}."
    return Table(title="What could be released instead", columns=tuple(columns), rows=tuple(rows), note=note)


def _up(value: float) -> str:
    return safe_text(value, toward="up")


def _readings(certificate: Certificate) -> Table:
    private = ImpliedByDP(epsilon=1.0)
    rows = [
        (words, _up(getattr(certificate, name)), _up(getattr(private, name)), _theorem(certificate, name))
        for name, words in _READINGS.items()
    ]
    rows += [
        (
            f"TPR at {100 * rate:g} % FPR",
            _up(float(certificate.tpr_at(rate))),
            _up(float(private.tpr_at(rate))),
            _border(certificate, rate),
        )
        for rate in FALSE_POSITIVE_RATES
    ]
    return Table(
        title="What nobody exceeds",
        columns=("reading", "nobody exceeds", "if ε = 1", "theorem"),
        rows=tuple(rows),
        note="Proven from this table, for the average record; all readings hold together except with probability "
        f"{certificate.failure_probability:g}. tacit proof NAME prints a theorem and its proof; balanced accuracy is "
        "(1 + advantage)/2. “If ε = 1” is what differential privacy with ε = 1 and δ = 0 would imply, for comparison "
        "(tacit proof private_roc); this audit proves no differential privacy.",
    )


def _border(certificate: Certificate, rate: float) -> str:
    """The function that gives the largest true positive rate at a false positive rate."""
    by_curve = [leakage.private_roc(rate, epsilon=epsilon, delta=delta) for epsilon, delta in certificate.curve]
    return "hockey_stick_limit" if certificate.tpr_at(rate) in by_curve else "roc_upper"


def _theorem(certificate: Certificate, name: str) -> str:
    """The function that gives a reading."""
    names = certificate.guarantee_of(name.replace("_", " ")).references
    return names[0].rpartition(".")[2] if names else "–"


def _attacks(tried: tuple[Attempt, ...], *, on_code: int = 0) -> Table:
    """What attacks reached; the last `on_code` of them are on the code of vectors."""
    rows = []
    for place, attempt in enumerate(tried):
        value, low, _ = attempt.rates.advantage
        learner = attempt.learner if place < len(tried) - on_code else "code"
        cells = [learner, f"{value:.4f}", safe_text(max(0.0, low), toward="down")]
        for _, rates in attempt.at_rates[1:]:
            cells.append(f"{rates.true_positive_rate:.4f} at {100 * rates.false_positive_rate:.2f} %")
        rows.append((*cells, safe_text(attempt.epsilon, toward="down")))
    near = [f"TPR near {100 * rate:g} % FPR" for rate in FALSE_POSITIVE_RATES[1:]]
    chance = sum(attempt.failure_probability for attempt in tried)
    return Table(
        title="What attacks reached",
        columns=("attack", "advantage", "at least", *near, "ε at least"),
        rows=tuple(rows),
        note="Measured on rows that the attack was neither fitted to nor chosen on. “At least” is a confidence limit "
        "(Clopper–Pearson, tacit proof binomial_lower); those of all attacks hold together except with probability "
        f"{chance:.2g}. Beside each TPR is its FPR, which is not exactly as in the heading where scores are tied. "
        "“ε at least”: no release with a smaller ε, at δ = 0, can be attacked like this.",
    )


def _slices(task: Task, slices: dict[Any, Certificate]) -> Table:
    ordered = sorted(slices.items(), key=lambda item: -item[1].advantage)
    rows = []
    for value, one in ordered[:_MOST_SHOWN]:
        cells = [str(value), str(one.positives), str(one.negatives), _up(one.advantage)]
        if task.require_advantage is not None:
            cells.append("met" if one.meets(advantage=task.require_advantage) else "not proven")
        rows.append(tuple(cells))
    columns = (str(task.slices), "positives", "negatives", "advantage, at most")
    left = len(ordered) - len(rows)
    one_class = any(one.method == "none" for one in slices.values())
    return Table(
        title=f"By {task.slices}",
        columns=columns if task.require_advantage is None else (*columns, "verdict"),
        rows=tuple(rows),
        note="All slices hold together except with probability "
        f"{task.failure_probability / 2:g}, half of the failure probability; the other half is the whole table's. "
        "Each slice is proven like the whole table, by the theorems named for it."
        + " For a slice with one class nothing is bounded." * one_class
        + (f" The JSON has {left} more slices." if left else ""),
    )


def _sizes_needed(rows: dict[float, int]) -> Table:
    return Table(
        title="How many rows a ceiling takes",
        columns=("advantage, at most", "rows, at least"),
        rows=tuple((f"{ceiling:g}", str(needed)) for ceiling, needed in rows.items()),
        note="With fewer rows no such ceiling can be certified, even if nothing leaks and both classes have half the "
        "rows. Outputs that leak or have many values need more. The numbers are the least for which the limits of "
        "tacit proof variation_exact squared_sharp are low enough.",
    )


def _attempts(tried: tuple[Attempt, ...]) -> list[dict[str, Any]]:
    return [
        {
            "method": attempt.learner,
            "advantage": list(attempt.rates.advantage),
            "true_positive_rate": attempt.rates.true_positive_rate,
            "false_positive_rate": attempt.rates.false_positive_rate,
            "epsilon_lower": attempt.epsilon,
            "at_rates": [
                {
                    "aimed": aim,
                    "false_positive_rate": rates.false_positive_rate,
                    "true_positive_rate": rates.true_positive_rate,
                    "true_positive_limits": list(rates.true_positive_limits),
                }
                for aim, rates in attempt.at_rates
            ],
        }
        for attempt in tried
    ]


def _detail(task: Task, table: Read, found: Findings) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "verdict": found.verdict,
        "met": found.met,
        "require_advantage": task.require_advantage,
        "low": found.audit.low,
        "high": found.audit.high,
        "failure_probability": found.audit.failure_probability,
        "failure_probability_with_slices": min(
            1.0, found.audit.failure_probability + sum(one.failure_probability for one in found.slices.values())
        ),
        "rows": table.rows,
        "group": None if table.in_groups is None else {"column": task.group, "rows": table.in_groups},
        "attack_rows": table.sample.rows,
        "secret": {"column": task.secret, "positive": certificate.positive, "negative": certificate.negative},
        "outputs": [{"column": name, "kind": kind} for name, kind in zip(task.outputs, table.kinds, strict=True)],
        "noise": task.noise,
        "noise_added": task.noise_added,
        "caution": _caution(task, table, found) if certificate.caution else "",
        "lipschitz": task.lipschitz,
        "method": certificate.method,
        "readings": {
            "advantage": certificate.advantage,
            "balanced_accuracy": certificate.balanced_accuracy,
            "auc": certificate.auc,
            "bits": certificate.bits,
            "tpr_at": {f"{rate:g}": float(certificate.tpr_at(rate)) for rate in FALSE_POSITIVE_RATES},
            "delta_at": {f"{epsilon:g}": float(certificate.hockey_stick(epsilon)) for epsilon in EPSILONS},
        },
        "attacks": _attempts(found.tried),
        "code": None
        if found.vectors is None
        else {
            "cells": found.vectors.code.cells,
            "in_words": found.vectors.code.in_words,
            "own_rows": found.vectors.own_rows,
            "shown": found.vectors.code.shown,
            "released": found.vectors.release_code,
            "vector_low": found.vectors.reached,
            "beaten": found.vectors.beaten,
            "attacks_on_vector": _attempts(found.vectors.attacks),
        },
        "slices": [
            {
                "value": value,
                "positives": one.positives,
                "negatives": one.negatives,
                "advantage": one.advantage,
                "failure_probability": one.failure_probability,
            }
            for value, one in found.slices.items()
        ],
        "menu": None
        if found.menu is None
        else {
            "rows": found.menu.rows,
            "failure_probability": found.menu.failure_probability,
            "accuracy": found.menu.accuracy,
            "options": [
                {
                    "what": option.what,
                    "advantage": option.certificate.advantage,
                    "change": option.change,
                    "accuracy": option.accuracy,
                }
                for option in found.menu.options
            ],
        },
        "rows_needed": {f"{ceiling:g}": rows for ceiling, rows in found.rows_needed.items()},
    }
