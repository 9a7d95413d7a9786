"""The report in words, tables and JSON."""

from __future__ import annotations

from typing import Any

from ...core.wording import safe_text
from ...report import Figure, Report, Table
from ..attacks import FALSE_POSITIVE_RATES, LEAST_ROWS
from ..attempt import Attempt
from ..certificate import SCOPE, Certificate
from ..curve import ImpliedByDP
from .findings import Findings
from .inputs import Read
from .options import Task

_MOST_SHOWN = 40  # slices in the table; the JSON has all


def page(task: Task, table: Read, found: Findings, pictures: tuple[Figure, ...]) -> Report:
    """All that was found, beginning with the verdict."""
    return Report(
        command="audit",
        title=f"What {task.name} of {task.table.name} tells about {task.secret}",
        summary=_summary(task, table, found),
        comparisons=found.audit.comparisons,
        figures=pictures,
        tables=_tables(task, found),
        met=found.met,
        detail=_detail(task, table, found),
    )


def _summary(task: Task, table: Read, found: Findings) -> tuple[str, ...]:
    certificate, slices, failing = found.certificate, found.slices, found.failing
    sentences = [found.audit.verdict]
    if certificate.caution:
        sentences.append(certificate.caution)
    if slices:
        worst = max(slices, key=lambda value: slices[value].advantage)
        limit = _up(slices[worst].advantage)
        reading = (
            f"in {task.slices} = {worst!r}, the worst of {len(slices)} slices, nobody's advantage exceeds {limit}, all "
            f"slices together except with probability {task.delta / 2:g}"
        )
        said = f"{reading[:1].upper()}{reading[1:]}."
        if failing:
            said = f"Not proven in {len(failing)} of {len(slices)} slices: {reading}; "
            said += f"{task.require_advantage:g} is allowed."
        if failing and found.audit.met:  # what keeps the release back comes first
            whole = f"On the whole table: {found.audit.verdict[:1].lower()}{found.audit.verdict[1:]}"
            sentences = [said, whole, *sentences[1:]]
        else:
            sentences.append(said)
    sentences.append(
        f"The secret, column {task.secret!r}, is {certificate.positive!r} in {certificate.positives} rows (called "
        f"positive) and {certificate.negative!r} in {certificate.negatives}."
    )
    sentences.append(_recognised(task, table, found))
    if not task.attack_rows:
        sentences.append("No attacks were made, so nothing shows how tight the certificate is.")
    elif not found.tried:
        sentences.append(f"No attacks were made: they need {LEAST_ROWS} rows of each class.")
    elif table.sample.rows < table.rows:
        sentences.append(
            f"The certificate counts all {table.rows} rows; attacks were made on {table.sample.rows} of them, drawn at "
            "random."
        )
    return (*sentences, *SCOPE)


def _recognised(task: Task, table: Read, found: Findings) -> str:
    """How the output was read."""
    columns = ", ".join(f"{name!r} ({kind})" for name, kind in zip(task.outputs, table.kinds, strict=True))
    how = {
        "noisy": "taken as free of noise in the table, and released with fresh Gaussian noise of standard deviation "
        f"{task.noise or 0:g} on top",
        "noise added": "taken as released, with Gaussian noise of standard deviation "
        f"{task.noise_added or 0:g} in it already",
        "monotone": "taken, as you state, as a score with which the secret's probability only grows or only falls",
        "lipschitz": "taken, as you state, as numbers with which the secret's mean, ±1 and with both values equally "
        f"likely, changes by at most {task.lipschitz or 0:g} per unit: {found.values} bins were seen",
        "discrete": f"taken as a category each: {found.values} different ones were seen",
    }[found.certificate.method]
    return f"The output, column{'s' * (len(task.outputs) > 1)} {columns}, is {how}."


def _tables(task: Task, found: Findings) -> tuple[Table, ...]:
    made = [_readings(found.certificate, found.tried)]
    if found.tried:
        made.append(_attacks(found.tried))
    if found.slices:
        made.append(_slices(task, found.slices))
    return (*made, _sizes_needed(found.rows_needed))


def _up(value: float) -> str:
    return safe_text(value, toward="up")


def _readings(certificate: Certificate, tried: tuple[Attempt, ...]) -> Table:
    private = ImpliedByDP(epsilon=1.0)
    rows = [
        ("advantage (TPR − FPR)", _up(certificate.advantage), _up(private.advantage)),
        ("balanced accuracy", _up(certificate.balanced_accuracy), _up(private.balanced_accuracy)),
        ("area under the ROC", _up(certificate.auc), _up(private.auc)),
        ("bits about the secret", _up(certificate.bits), _up(private.bits)),
    ]
    rows += [
        (f"TPR at {100 * rate:g} % FPR", _up(float(certificate.tpr_at(rate))), _up(float(private.tpr_at(rate))))
        for rate in FALSE_POSITIVE_RATES
    ]
    return Table(
        title="What nobody exceeds",
        columns=("reading", "nobody exceeds", "ε = 1 would imply"),
        rows=tuple(rows),
        note="Proven from this table, for the average record, all at once except with probability "
        f"{certificate.delta:g}; beside it what differential privacy with ε = 1 and δ = 0 would imply, which this is "
        "not. Proofs: tacit proof roc_upper auc_upper information_upper private_roc."
        + (" How near attacks came, the next table says." if tried else ""),
    )


def _attacks(tried: tuple[Attempt, ...]) -> Table:
    rows = []
    for attempt in tried:
        value, low, _ = attempt.rates.advantage
        cells = [attempt.method, f"{value:.4f}", safe_text(max(0.0, low), toward="down")]
        for _, rates in attempt.at_rates[1:]:
            cells.append(f"{rates.true_positive_rate:.4f} at {100 * rates.false_positive_rate:.2f} %")
        rows.append((*cells, safe_text(attempt.epsilon, toward="down")))
    aims = [f"TPR, aim {100 * aim:g} % FPR" for aim in FALSE_POSITIVE_RATES[1:]]
    chance = sum(attempt.attack.failure_probability for attempt in tried)
    return Table(
        title="What attacks reached",
        columns=("attack", "advantage", "at least", *aims, "ε at least"),
        rows=tuple(rows),
        note="On rows that the attack was neither fitted to nor chosen on. At least: a limit (Clopper–Pearson), all "
        f"attacks together except with probability {chance:.2g}. After the TPR stands the FPR that was realised: ties "
        "make it differ from the one aimed at. ε at least: no release with a smaller ε, at δ = 0, behaves like this.",
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
    return Table(
        title=f"By {task.slices}",
        columns=columns if task.require_advantage is None else (*columns, "verdict"),
        rows=tuple(rows),
        note=f"All slices together except with probability {task.delta / 2:g}; the other half of δ is the whole "
        f"table's. A slice with one class alone bounds nothing.{f' {left} more are in the JSON.' if left else ''}",
    )


def _sizes_needed(rows: dict[float, int]) -> Table:
    return Table(
        title="How many rows a ceiling takes",
        columns=("advantage, at most", "rows, at least"),
        rows=tuple((f"{ceiling:g}", str(needed)) for ceiling, needed in rows.items()),
        note="Half of each class, and nothing leaking: with fewer rows no output can be certified to stay below. What "
        "leaks, and outputs with many values, take more.",
    )


def _detail(task: Task, table: Read, found: Findings) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "verdict": found.audit.verdict,
        "met": found.met,
        "require_advantage": task.require_advantage,
        "low": found.audit.low,
        "high": found.audit.high,
        "failure_probability": found.audit.failure_probability,
        "failure_probability_with_slices": min(
            1.0, found.audit.failure_probability + sum(one.delta for one in found.slices.values())
        ),
        "rows": table.rows,
        "attack_rows": table.sample.rows,
        "secret": {"column": task.secret, "positive": certificate.positive, "negative": certificate.negative},
        "outputs": [{"column": name, "kind": kind} for name, kind in zip(task.outputs, table.kinds, strict=True)],
        "noise": task.noise,
        "noise_added": task.noise_added,
        "caution": certificate.caution,
        "lipschitz": task.lipschitz,
        "method": certificate.method,
        "readings": {
            "advantage": certificate.advantage,
            "balanced_accuracy": certificate.balanced_accuracy,
            "auc": certificate.auc,
            "bits": certificate.bits,
            "tpr_at": {f"{rate:g}": float(certificate.tpr_at(rate)) for rate in FALSE_POSITIVE_RATES},
        },
        "attacks": [
            {
                "method": attempt.method,
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
            for attempt in found.tried
        ],
        "slices": [
            {
                "value": value,
                "positives": one.positives,
                "negatives": one.negatives,
                "advantage": one.advantage,
                "failure_probability": one.delta,
            }
            for value, one in found.slices.items()
        ],
        "rows_needed": {f"{ceiling:g}": rows for ceiling, rows in found.rows_needed.items()},
    }
