"""The report of an audit against whoever holds the record: sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.guarantee import Comparison
from ...core.wording import safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.wording import percent
from ...theory.divergences import gaussian_epsilon
from ..measuring import FALSE_POSITIVE_RATES
from ..record_attacks import ATTACKS
from ..record_audit import KNOWN, RecordAudit
from .report import LARGE, SMALL

_HOLDS = (
    "This is about an adversary who holds the record, has the others (but does not know which of them were used), and "
    "can train models of the same kind."
)
"""Who the adversary is; every such report begins with it, unless a stated privacy is refuted before."""
PRIVATE = Change(
    what="Train with differential privacy, or publish a private classifier (tacit learn).",
    price="accuracy; the guarantee then needs no attack and no repeated training.",
)
_SHOWN = 10  # exposed records in the table


def record_page(
    found: RecordAudit,
    *,
    command: str,
    title: str,
    done: str,
    sees: Sequence[str],
    changes: tuple[Change, ...],
    names: Sequence[object],
    pictures: bool,
    require_advantage: float | None = None,
    required_of: int | None = None,
) -> Report:
    """The report.

    Parameters
    ----------
    found
        What was found.
    command, title
        Of the report.
    done
        What was done, in a sentence or two.
    sees
        In a word or two, what is seen in each comparison.
    changes
        What the reader can do.
    names
        What each record is called.
    pictures
        Whether to draw pictures.
    require_advantage
        A ceiling for the advantage in every comparison.
    required_of
        The one comparison that the ceiling is for, if it is not for all.
    """
    ceilings = [require_advantage if required_of in (None, place) else None for place in range(len(found.comparisons))]
    judged = list(zip(found.comparisons, ceilings, strict=True))
    met = all(_met(one, ceiling) for one, ceiling in judged) and not found.refuted
    return Report(
        command=command,
        title=title,
        summary=_summary(found, done),
        comparisons=found.comparisons,
        verdicts=(*_claimed_verdict(found), *(_verdict(one, ceiling, found) for one, ceiling in judged)),
        opening=(_roc(found),) if pictures else (),
        changes=changes,
        figures=(_exposed(found),) if pictures else (),
        tables=(*_implied(found), _attacks(found, sees), _most_exposed(found, names)),
        met=met,
        detail={
            "models": found.models,
            "records": found.records,
            "delta": found.delta,
            "epsilon_lower": found.epsilon,
            "mu_lower": found.mu,
            "trained_with": None if found.claimed is None else [found.claimed.epsilon, found.claimed.delta],
            "refuted": found.refuted,
            "require_advantage": require_advantage,
            "required_of": None
            if required_of is None
            else found.comparisons[required_of].guarantee.adversary.scope.removeprefix(KNOWN),
            "met": met,
            "attacks": [attack.to_dict() for attack in found.attacks],
            "exposure": found.exposure.tolist(),
            "numbers": list(names),
        },
    )


def _met(comparison: Comparison, ceiling: float | None) -> bool:
    return ceiling is None or (comparison.guarantee.value <= ceiling and not comparison.contradicted)


def _summary(found: RecordAudit, done: str) -> tuple[str, ...]:
    best = found.attacks[0]
    at = {aim: max(dict(attack.at_rates)[aim] for attack in found.attacks) for aim in FALSE_POSITIVE_RATES}
    reached = (
        f"The best attack ({ATTACKS[best.name][0]}) tells with an advantage of "
        f"{safe_text(best.value, toward='nearest')} whether a model was trained on a record, at least "
        f"{safe_text(best.low, toward='down')} by its lower limit; 0 is guessing, 1 is certainty."
    )
    rates = (
        f"At one false alarm in a thousand records, attacks find {percent(at[0.001])} of the members; at one in a "
        f"hundred, {percent(at[0.01])}."
    )
    refuted = (
        "Guesses were right too often for a training that is (ε, δ)-differentially private for adding or removing one "
        f"record, with δ = {found.delta:g} and ε below {safe_text(found.epsilon, toward='down')}."
        if found.epsilon > 0
        else "The guesses refute no ε."
    )
    if found.mu > 0:
        same = ""
        if found.delta > 0:
            about = gaussian_epsilon(found.delta, distance=found.mu)
            same = f" (an ε of about {safe_text(about, toward='nearest')} at that δ)"
        refuted += (
            " Of a training whose privacy is that of Gaussian noise, they refute every μ below "
            f"{safe_text(found.mu, toward='down')}{same}."
        )
    return (*_claim_sentence(found), _HOLDS, done, reached, rates, refuted)


def _claim_sentence(found: RecordAudit) -> tuple[str, ...]:
    """What became of the stated (ε, δ), if that is refuted before all else."""
    claimed = found.claimed
    if claimed is None:
        return ()
    stated = f"ε = {claimed.epsilon!r}, δ = {claimed.delta!r}"
    if found.refuted:
        said = (
            f"Refuted: the training is not differentially private with {stated}; whoever holds the record guesses "
            f"rightly too often for any ε below {safe_text(found.epsilon, toward='down')}."
        )
    else:
        said = (
            f"The training is stated to be differentially private with {stated}; no attack by whoever holds the record "
            "refutes that, which does not prove it."
        )
    return (said,)


def _claimed_verdict(found: RecordAudit) -> tuple[Verdict, ...]:
    claimed = found.claimed
    if claimed is None:
        return ()
    reason = "Nothing here proves what is stated: attacks can refute it, but not confirm it."
    if found.refuted:
        reason = "Guesses were right too often for it: the training, or its accounting, is not as stated."
    return (
        Verdict(
            level=BROKEN if found.refuted else WEAK,
            about=f"Training with ε = {claimed.epsilon:g}, δ = {claimed.delta:g}, as stated",
            proven=f"ε at least {safe_text(found.epsilon, toward='down')}" if found.epsilon > 0 else "",
            reason=reason,
            scope="by guesses that were right",
        ),
    )


def _verdict(comparison: Comparison, ceiling: float | None, found: RecordAudit) -> Verdict:
    """How one release stands against its best attack; by the same bounds as an audit of a table."""
    guarantee, best = comparison.guarantee, comparison.attacks[0]
    certified = guarantee.value < 1
    if comparison.contradicted:
        level, reason = BROKEN, "An attack did what the guarantee rules out: an assumption is wrong."
    elif ceiling is not None and guarantee.value <= ceiling:
        level, reason = FINE, f"The ceiling of {ceiling!r} is proven."
    elif ceiling is not None and max(one.low for one in comparison.attacks) > ceiling:
        level, reason = BROKEN, f"An attack exceeds the ceiling of {ceiling!r}."
    elif ceiling is not None:
        level, reason = WEAK, f"The ceiling of {ceiling!r} is not proven, and no attack has broken it."
    elif best.value >= LARGE:
        level, reason = BROKEN, "An attack tells members from others; 0 is guessing, 1 is certainty."
    elif guarantee.value <= SMALL:
        level, reason = FINE, "Hardly better than guessing, which is 0; 1 is certainty."
    else:
        level, reason = (
            WEAK,
            "A larger advantage is not ruled out; 0 is guessing, 1 is certainty. More models rule out more.",
        )
    shown = max(one.epsilon for one in found.attacks if one.adversary == guarantee.adversary)
    if level == FINE and np.tanh(shown / 2) >= LARGE:  # the advantage on one record that this ε allows
        level = WEAK
        reason += (
            " But this is an average, and some records are exposed far more: guesses refute every ε below "
            f"{safe_text(shown, toward='down')}."
        )
    return Verdict(
        level=level,
        about=f"Releasing {guarantee.adversary.scope.removeprefix(KNOWN)}",
        proven=f"advantage at most {safe_text(guarantee.value, toward='up')}" if certified else "nothing is proven",
        reached=safe_text(best.value, toward="nearest"),
        reason=reason,
        scope="for everyone who holds the record and sees this once, on average over records" if certified else "",
    )


def _roc(found: RecordAudit) -> Figure:
    tried = found.comparisons[-1].attacks
    curves = {ATTACKS[one.name][0]: one.roc for one in found.attacks if one.adversary == tried[0].adversary}
    return Figure(
        title="How many members each attack finds, at how many false alarms",
        caption="Both axes are logarithmic. Across: the share of other records that an attack calls members. Up: the "
        "share of members that it finds. On the dashed line an attack guesses.",
        alternative=f"ROC curves of {', '.join(curves)}; the largest area below one is "
        f"{max(one.auc for one in found.attacks):.3f}.",
        svg=figures.log_roc(curves),
    )


def _exposed(found: RecordAudit) -> Figure:
    order = np.argsort(-found.exposure)[np.unique(np.linspace(0, found.records - 1, 200).astype(int))]
    shares = np.linspace(0, 1, len(order))
    return Figure(
        title="How exposed each record is",
        caption="The most exposed records come first. For each, an estimate of the advantage with which what is seen "
        "of it tells models that were trained on it from others. It is an estimate from few models, not a limit.",
        alternative=f"Half of the records are above {float(np.median(found.exposure)):.3f}, one in ten above "
        f"{float(np.quantile(found.exposure, 0.9)):.3f}.",
        svg=figures.curve(
            shares.tolist(), found.exposure[order].tolist(), x_label="share of records", y_label="estimated advantage"
        ),
    )


def _implied(found: RecordAudit) -> tuple[Table, ...]:
    """What the stated (ε, δ) allows, beside the most that was measured."""
    claimed = found.claimed
    if claimed is None:
        return ()
    rows = [
        (
            "advantage (TPR − FPR)",
            safe_text(claimed.advantage, toward="up"),
            f"{max(one.value for one in found.attacks):.3f}",
        ),
        *(
            (
                f"TPR at {100 * aim:g} % FPR",
                safe_text(float(claimed.tpr_at(aim)), toward="up"),
                f"{max(dict(one.at_rates)[aim] for one in found.attacks):.3f}",
            )
            for aim in FALSE_POSITIVE_RATES
        ),
        ("ε", f"{claimed.epsilon:g}", f"at least {safe_text(found.epsilon, toward='down')}"),
    ]
    return (
        Table(
            title="What the stated privacy allows, and what attacks reached",
            columns=("reading", f"allowed by ε = {claimed.epsilon:g}, δ = {claimed.delta:g}", "reached"),
            rows=tuple(rows),
            note="Advantages and rates are measured, and may exceed what is allowed by chance; the limit for ε counts "
            "that, and alone refutes (tacit proof private_roc guessing_epsilon).",
        ),
    )


def _attacks(found: RecordAudit, sees: Sequence[str]) -> Table:
    seen = {comparison.guarantee.adversary: short for comparison, short in zip(found.comparisons, sees, strict=True)}
    several = len(seen) > 1
    return Table(
        title="Attacks by whoever holds the record",
        columns=(
            "attack",
            *(["sees"] if several else []),
            "advantage",
            "at least",
            *(f"TPR at FPR {aim:g}" for aim in FALSE_POSITIVE_RATES),
            "AUC",
            "ε at least",
        ),
        rows=tuple(
            (
                ATTACKS[one.name][0],
                *([seen[one.adversary]] if several else []),
                safe_text(one.value, toward="nearest"),
                safe_text(one.low, toward="down"),
                *(f"{rate:.3f}" for _, rate in one.at_rates),
                f"{one.auc:.3f}",
                safe_text(one.epsilon, toward="down"),
            )
            for one in found.attacks
        ),
        note="Seen is the likeliest class, that class with its probability to a digit, or all of them. " * several
        + "QMIA is told of one half of the records which were used, and guesses the others. "
        * any(one.name == "qmia" for one in found.attacks)
        + "Measured on models that rules were not chosen on; true positive rates at the best threshold afterwards. "
        "Limits of advantages count models, limits of ε count guesses.",
    )


def _most_exposed(found: RecordAudit, names: Sequence[object]) -> Table:
    order = np.argsort(-found.exposure, kind="stable")[:_SHOWN]
    return Table(
        title="The most exposed records",
        columns=("record", "estimated advantage"),
        rows=tuple((str(names[place]), f"{found.exposure[place]:.3f}") for place in order.tolist()),
        note="Records have the names of the table, or are numbered from 1 in the order of the file; the JSON has all.",
    )
