r"""What sparse vector with an open threshold costs if its noise is chosen anew for every query, by what was answered.

Every refusal has a price that depends on the noise it was drawn with, and prices add up: whatever rule chooses the
noise, all that matters is the sum. The last refusal has no price. Proofs: docs/proofs/adaptive_threshold.md.
"""

from __future__ import annotations

import math

import numpy as np

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import LIBRARY, at_least, at_most, down, up
from .open_threshold import SLACK, telling_chance

_UNIT = float(np.finfo(float).eps)
_ORDER = "use about 4·ln(1/delta)/epsilon/3"
_EPSILON = "give the privacy loss that is allowed, e.g. 1.0"

_LEAST_ORDER, _MOST_ORDER = 1e-3, 1e8
_FINEST, COARSEST = 1 / 500, 1e9
"""As of `theory.open_threshold`: beyond, floats or `SLACK` would matter."""


@at_most
def refusal_price(scale: float, *, order: float) -> float:
    r"""What one refusal costs that is not the last, on the scale on which refusals add up.

    Parameters
    ----------
    scale
        The scale s of the noise on the distance that was refused.
    order
        The order λ, which is the same for all refusals of a session.

    Returns
    -------
    float
        The price g.

    Notes
    -----
    Statement. g = −λ/s − ln(1 − λ(exp(1/s) − 1)), which falls with s.

    Assumptions. 1/500 ≤ scale ≤ 1e9, 1e-3 ≤ order ≤ 1e8, and scale above `least_scale` (checked).

    Direction. An upper bound, rounded up; it has room for clocks that run faster by a share of 1e-12.

    References
    ----------
    docs/proofs/adaptive_threshold.md.
    """
    s, rate = _scale(scale), _order(order)
    step = up(up(1 / s) + SLACK)
    share = up(rate * math.expm1(step), relative=2 * LIBRARY)
    if share >= 1:
        raise NoTheoremError(
            f"noise must have a scale above {least_scale(rate):.6g} for a price of order {rate:g}, got {s:g}; use more"
        )
    return up(up(-math.log1p(-share), relative=LIBRARY) - down(rate * step))


@at_most
def least_scale(order: float) -> float:
    r"""The least scale of noise that a session of this order may use, and then for its last refusal alone.

    Parameters
    ----------
    order
        The order λ.

    Returns
    -------
    float
        The scale.

    Notes
    -----
    Statement. s = 1/ln(1 + 1/λ), at which exp(1/s) − 1 = 1/λ.

    Assumptions. 1e-3 ≤ order ≤ 1e8 (checked).

    Direction. An upper bound, rounded up; it has room for clocks that run faster by a share of 1e-12.

    References
    ----------
    docs/proofs/adaptive_threshold.md.
    """
    step = down(math.log1p(down(1 / _order(order))), relative=LIBRARY) - 2 * SLACK
    return up(1 / step, relative=4 * _UNIT)


@at_most
def adaptive_threshold_delta(epsilon: float, *, order: float, budget: float, labels: float) -> float:
    r"""δ(ε) of a session whose refusals, but for the last, have prices that add up to no more than a budget.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    order
        The order λ.
    budget
        The most, B, that the prices of all refusals but the last add up to.
    labels
        The chance a that labels tell: half of it is shared among refusals by their prices, half is for the last.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ a + exp(B − λε)/(1 + 2λ). Without labels it is attained for B = 0.

    Assumptions. One record changes at most one vote a query; the distance is `votes_to_flip`; a query at distance d is
    refused with the chance 1 − exp(−H(d)), drawn exactly, where H of neighbouring distances differs by a factor of
    exp(1/s + 1e-12) at most; else the winner is released. s is chosen by earlier answers and what is public. While the
    session goes on, `refusal_price(s)` is at most what is left of B, from which a refusal takes it, and exp(−H(0)) is
    at most its share a/2·price/B; from some moment on, fixed by earlier answers, s is at least `least_scale`,
    exp(−H(0)) is at most a/2, and the first refusal is the last (caller). epsilon ≥ 0, 1e-3 ≤ order ≤ 1e8,
    0 ≤ budget ≤ 1e6 (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/adaptive_threshold.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=1e4, remedy="use 0 for total variation")
    rate, prices = _order(order), _budget(budget)
    chance = validate.number("labels", labels, at_least=0, at_most=1, remedy="leave labels a fiftieth of delta")
    parts = prices, rate * epsilon, math.log1p(2 * rate)
    exponent = parts[0] - parts[1] - parts[2] + (4 * _UNIT + LIBRARY) * sum(parts)
    if exponent >= 0:
        return 1.0
    return min(1.0, up(up(math.exp(exponent), relative=LIBRARY) + chance))


@at_least
def adaptive_threshold_budget(epsilon: float, delta: float, *, order: float) -> float:
    r"""What the prices of all refusals but the last may add up to, if labels have a fiftieth of δ.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    order
        The order λ.

    Returns
    -------
    float
        The budget B.

    Notes
    -----
    Statement. B = λε + ln(0.98·δ·(1 + 2λ)), at which `adaptive_threshold_delta` is at most δ.

    Assumptions. Those of `adaptive_threshold_delta`; epsilon > 0, delta in (0, 1) (checked). Where B would
    be negative, one refusal alone costs more than δ, and there is none (checked).

    Direction. A lower bound, rounded down: what was computed of it was itself checked against the claim.

    References
    ----------
    docs/proofs/adaptive_threshold.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=1e-9, at_most=1e4, remedy=_EPSILON)
    delta = validate.probability("delta", delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    rate = _order(order)
    labels = FOR_LABELS * delta
    found = rate * epsilon + math.log1p(2 * rate) + math.log(0.98) + math.log(delta)
    found -= 1e-12 * (1 + rate * epsilon + abs(math.log(delta)))
    if found < 0 or adaptive_threshold_delta(epsilon, order=rate, budget=found, labels=labels) > delta:
        raise NoTheoremError(
            f"the order must leave something of delta = {delta:g} for refusals at epsilon = {epsilon:g}, got "
            f"{rate:g}; use a larger one"
        )
    return found


@at_most
def adaptive_threshold_votes(chance: float, *, scale: float) -> int:
    r"""The least open threshold w at which a label is released where one vote decides with at most this chance.

    Parameters
    ----------
    chance
        The chance.
    scale
        The scale s of the noise.

    Returns
    -------
    int
        The threshold, in votes.

    Notes
    -----
    Statement. min{w ≥ 0 : exp(−min(69, exp(w/s))) ≤ chance}.

    Assumptions. Chances are drawn as `adaptive_threshold_delta` has them (caller); chance ≥ 1e-29, 1/500 ≤ scale ≤ 1e9
    (checked).

    Direction. The w returned was itself checked against the claim.

    References
    ----------
    docs/proofs/adaptive_threshold.md.
    """
    s = _scale(scale)
    allowed = validate.probability("chance", chance, remedy="leave labels more of delta")
    if allowed < LEAST_CHANCE:
        raise InputError(
            "chance", allowed, requirement=f"must be at least {LEAST_CHANCE:g}", remedy="leave labels more of delta"
        )
    found = max(0, math.floor(s * math.log(max(-math.log(allowed), 1.0))) - 1)
    while found and telling_chance(found, scale=s) <= allowed:
        found -= 1
    while telling_chance(found, scale=s) > allowed:
        found += 1
    return found


FOR_LABELS = 0.02
"""The share of δ that is left to labels."""

LEAST_CHANCE = 1e-29
"""No chance of a telling label is drawn below this."""


def _order(value: object) -> float:
    return validate.number("order", value, at_least=_LEAST_ORDER, at_most=_MOST_ORDER, remedy=_ORDER)


def _scale(value: object) -> float:
    remedy = "give the scale of the noise on distances, e.g. 10/epsilon"
    return validate.number("scale", value, at_least=_FINEST, at_most=COARSEST, remedy=remedy)


def _budget(value: object) -> float:
    return validate.number("budget", value, at_least=0, at_most=1e6, remedy="see adaptive_threshold_budget")
