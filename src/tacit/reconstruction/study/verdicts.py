"""Is a release fine, weak or broken? The words of the page, and where they begin."""

from __future__ import annotations

from ...core.guarantee import Attack, Comparison, Guarantee
from ...report import BROKEN, FINE, WEAK, Verdict
from ...report.wording import percent, percent_down, percent_up
from ..realism import IN_DOUBT, NOT_CHECKED, REFUTED

RARE, OFTEN = 0.1, 0.5
"""Naming an input is fine if nobody does it more often than the first, and broken if an attack does it more often than
the second."""
MOST, LITTLE = 0.5, 0.1
"""Rebuilding is fine if at least the first share stays hidden, and broken if an attack leaves less than the second."""


def rare_naming(guessing: float) -> float:
    """Up to which probability naming an input is called rare, where guessing names it as often as this."""
    return min(max(RARE, 2 * guessing), (1 + guessing) / 2, OFTEN)


def naming_verdict(comparison: Comparison) -> Verdict:
    """How well anyone who holds the candidates names the one released."""
    guarantee, attack = comparison.guarantee, comparison.attacks[0]
    guessing = float(guarantee.detail["guessing"])
    rare = rare_naming(guessing)
    if comparison.contradicted:
        level, reason = BROKEN, "An attack did what the proof rules out: an assumption does not hold."
    elif attack.low > OFTEN:
        level, reason = BROKEN, "Most inputs are given away to somebody who holds candidates."
    elif guarantee.value <= rare:
        level, reason = FINE, f"Guessing names {percent(guessing)}."
    elif attack.low > rare:
        level, reason = WEAK, f"Many inputs are given away; guessing names {percent(guessing)}."
    else:
        level, reason = WEAK, "It is not ruled out that many inputs are given away."
    passed = attack.value > guarantee.value and percent(attack.value) != percent_up(guarantee.value)
    if passed and not comparison.contradicted:
        reason += " What the attack reached is measured: it passes the proven limit by chance, within its interval."
    return Verdict(
        level=level,
        about="Naming the input",
        proven=f"at most {percent_up(guarantee.value)}",
        reached=percent(attack.value),
        reason=reason,
        scope="for everyone who holds these inputs",
    )


def rebuilding_verdict(
    guarantee: Guarantee, attack: Attack, *, prior: str = "", contradicted: bool = False, hurried: bool = False
) -> Verdict:
    """How much of an input stays hidden from everyone.

    Parameters
    ----------
    guarantee
        The share of the variance that stays hidden, at least.
    attack
        The best attack on what matters: real inputs, if they were attacked, or draws from the prior.
    prior
        What real inputs say about the prior: "refuted", "in doubt", "not refuted" or "not checked"; empty where the
        attacker holds the inputs themselves.
    contradicted
        Whether an attack did what the guarantee rules out.
    hurried
        Whether there was no time for the strongest attack on real inputs.
    """
    left = min(attack.value, 1.0)
    if contradicted and prior != REFUTED:
        level, reason = BROKEN, "An attack did what the proof rules out: an assumption does not hold."
    elif attack.high < LITTLE:
        level, reason = BROKEN, "An attack rebuilds inputs almost exactly."
    elif prior in (REFUTED, IN_DOUBT):
        level = BROKEN if prior == REFUTED else WEAK
        reason = f"The prior is {prior} by your inputs: the bound is true for draws from the prior, not for them."
    elif prior == NOT_CHECKED:
        level, reason = WEAK, "There were too few inputs to check the prior: the bound is about draws from it."
    elif hurried:
        level, reason = WEAK, "For draws from the prior. There was no time for the strongest attack on your inputs."
    elif guarantee.value >= MOST and prior:
        level = FINE
        reason = (
            "Most of a draw from the prior stays hidden; attacks on your inputs did not refute it, which is no proof."
        )
    elif guarantee.value >= MOST:
        level, reason = FINE, "Most of every input stays hidden, on average. 100 % is to have learned nothing."
    elif guarantee.value >= LITTLE:
        level, reason = WEAK, "Less than half is proven to stay hidden. 100 % is to have learned nothing."
    else:
        level, reason = WEAK, "Hardly anything is proven to stay hidden. 100 % is to have learned nothing."
    if attack.value < guarantee.value and not contradicted and prior not in (REFUTED, IN_DOUBT):
        reason += " What the attack left is measured: it lies below the proven limit by chance, within its interval."
    return Verdict(
        level=level,
        about="Rebuilding the input: what stays hidden",
        proven=f"at least {percent_down(guarantee.value)}",
        reached=f"{percent(left)} left",
        reason=reason,
        scope="for draws from the prior" if prior else "for everyone who holds these inputs",
    )
