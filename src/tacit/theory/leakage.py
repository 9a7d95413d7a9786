r"""What bounded leakage allows: from v, I and TV to ROC, AUC, advantage and (ε, δ); and what DP would imply.

The secret S = ±1 is a fair coin, T the output, η = E[S|T]. Three numbers say how much T tells about S:

    v = E η²            1 − v is the least mean squared error of a guess in [−1, 1]
    I = I(S; T)         mutual information in nats
    TV = E |η|          the largest advantage, TPR − FPR, of any guess

Rates: TPR = P(guess + | S = 1), FPR = P(guess + | S = −1). Proofs: docs/proofs/leakage.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.rounding import LIBRARY, at_most, down, last_true, up

_SQUARED = "give v, a number between 0 and 1"
_ADVANTAGE = "give the total variation, or 1 for no bound of its own"
_RATE = "give the rate as a share, e.g. 0.01"
_EPSILON = "give the privacy loss, e.g. 1.0"
_DELTA = "use 0 for pure differential privacy"

_LN2 = math.log(2)
_STEPS = 8 * LIBRARY
"""Granted to a handful of elementary operations on positive numbers."""


@at_most
def advantage_upper(squared: float) -> float:
    r"""The largest advantage TPR − FPR of any guess.

    Parameters
    ----------
    squared
        An upper bound on v.

    Returns
    -------
    float
        An upper bound on the advantage.

    Notes
    -----
    Statement. TV = E|η| ≤ √v; equality where |η| is constant.

    Assumptions. squared in [0, 1] bounds v (caller; the range is checked).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    return min(1.0, up(math.sqrt(_squared(squared))))


@at_most
def information_upper(squared: float) -> float:
    r"""The largest mutual information about the secret, in nats.

    Parameters
    ----------
    squared
        An upper bound on v.

    Returns
    -------
    float
        An upper bound on the mutual information, in nats.

    Notes
    -----
    Statement. I ≤ v ln 2; equality where η is 0 or ±1.

    Assumptions. squared in [0, 1] bounds v (caller; the range is checked).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    return up(_squared(squared) * _LN2, relative=LIBRARY)


@at_most
def squared_from_information(information: float) -> float:
    r"""The largest v compatible with a mutual information.

    Parameters
    ----------
    information
        An upper bound on the mutual information, in nats.

    Returns
    -------
    float
        An upper bound on v.

    Notes
    -----
    Statement. ι(√v) ≤ I, ι(e) = ½[(1+e) ln(1+e) + (1−e) ln(1−e)]; equality where |η| is constant.

    Assumptions. information in nats, in [0, ln 2], bounds I (caller; the range is checked).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/leakage.md.
    """
    nats = validate.number(
        "information", information, at_least=0, at_most=up(_LN2), remedy="give nats: bits times ln 2"
    )
    if nats > _LN2 * (1 - _STEPS):
        return 1.0
    edge = last_true(lambda e: coin_information(e, toward="down") > nats, holds=1.0, fails=0.0)
    return min(1.0, up(edge * edge))


@at_most
def roc_upper(false_positive_rate: ArrayLike, *, squared: float = 1.0, advantage: float = 1.0) -> NDArray[np.float64]:
    r"""The largest true positive rate of any test with the false positive rates given.

    Parameters
    ----------
    false_positive_rate
        The false positive rates f.
    squared
        An upper bound on v.
    advantage
        An upper bound on TV.

    Returns
    -------
    ndarray
        An upper bound on the true positive rate at each false positive rate.

    Notes
    -----
    Statement. TPR ≤ min(1, f + A, [f + v(1−f) + √(v² + 4vf(1−f))]/(1+v) if f ≤ (1−v)/(1+v)): the boundary of (TPR −
    FPR)² ≤ v(TPR + FPR)(2 − TPR − FPR), cut by TPR − FPR ≤ A. Every point of it is attained.

    Assumptions. squared and advantage in [0, 1] bound v and TV together (caller; the ranges are checked).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    f = validate.array("false_positive_rate", false_positive_rate, at_least=0, at_most=1, remedy=_RATE)
    v, a = _squared(squared), _advantage(advantage)
    ellipse = (f + v * (1 - f) + np.sqrt(v * v + 4 * v * f * (1 - f))) / (1 + v)
    ellipse = np.where(f * (1 + v) <= 1 - v, ellipse, 1.0)
    return np.minimum(1.0, up(np.minimum(ellipse, f + a), relative=_STEPS))[()]


@at_most
def auc_upper(*, squared: float = 1.0, advantage: float = 1.0) -> float:
    r"""The largest area under the ROC curve of any score.

    Parameters
    ----------
    squared
        An upper bound on v.
    advantage
        An upper bound on TV.

    Returns
    -------
    float
        An upper bound on the area under the curve.

    Notes
    -----
    Statement. AUC ≤ ½ + √(v/3) for v ≤ 1/3, 1 − ⅜(1−v)² above; and AUC ≤ ½ + A − A²/2. Each is attained.

    Assumptions. squared and advantage in [0, 1] bound v and TV (caller; the ranges are checked).

    Direction. The smaller one, rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    v, a = _squared(squared), _advantage(advantage)
    by_squared = 0.5 + math.sqrt(v / 3) if v <= 1 / 3 else 1 - 0.375 * (1 - v) ** 2
    return min(1.0, up(min(by_squared, 0.5 + a * (1 - a / 2)), relative=_STEPS))


@at_most
def hockey_stick_upper(epsilon: float, *, squared: float = 1.0, advantage: float = 1.0) -> float:
    r"""The least δ with which the two classes' outputs are (ε, δ)-indistinguishable, on average over records.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    squared
        An upper bound on v.
    advantage
        An upper bound on TV.

    Returns
    -------
    float
        An upper bound on δ.

    Notes
    -----
    Statement. P₁(A) − e^ε P₀(A), or the classes exchanged, is for every event A at most the maximum of TPR − e^ε FPR
    over the region of `roc_upper`: with k = e^ε, ½[√((k−1)² + v(k+1)²) − (k−1)] if k < (3−v)/(1+v), else 2v/(1+v);
    where that point has an advantage above A, A − (k−1)F, F the least FPR there with advantage A. Attained.

    Assumptions. squared and advantage in [0, 1] bound v and TV together (caller; the ranges are checked).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=700, remedy=_EPSILON)
    v, a = _squared(squared), _advantage(advantage)
    k = max(1.0, down(math.exp(epsilon), relative=LIBRARY))  # the maximum falls with k
    if v == 0:
        return 0.0
    v = max(v, 1e-300)  # and grows with v: no product below underflows
    if k * (1 + v) < 3 - v:
        root = math.sqrt((k - 1) ** 2 + v * (k + 1) ** 2)
        free = v * (k + 1) ** 2 / (root + (k - 1)) / 2
        spread = v * (k + 1) / root  # TPR − FPR at that point
    else:
        free = spread = 2 * v / (1 + v)
    bounds = [up(free, relative=_STEPS), a]
    if a < spread:
        # Where the strip cuts the ellipse: 4v·m(1−m) = A², FPR = m − A/2.
        middle = a * a / v / (2 * (1 + math.sqrt(max(0.0, 1 - a * a / v))))
        lost = (k - 1) * max(0.0, down(middle - a / 2 - 1e-15, relative=_STEPS))
        bounds = [up(a - down(lost, relative=_STEPS), relative=LIBRARY)]
    return max(0.0, min(1.0, *bounds))


@at_most
def private_roc(false_positive_rate: ArrayLike, *, epsilon: float, delta: float = 0.0) -> NDArray[np.float64]:
    r"""The largest true positive rate of anyone against an (ε, δ)-differentially private release.

    Parameters
    ----------
    false_positive_rate
        The false positive rates f.
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.

    Returns
    -------
    ndarray
        An upper bound on the true positive rate at each false positive rate.

    Notes
    -----
    Statement. TPR ≤ min(1, e^ε f + δ, 1 − e^(−ε)(1 − δ − f)).

    Assumptions. The two classes' outputs are (ε, δ)-indistinguishable both ways (caller).

    Direction. Rounded up.

    References
    ----------
    Kairouz, Oh and Viswanath 2015, arXiv:1311.0776v4, Theorem 2.1.
    """
    f = validate.array("false_positive_rate", false_positive_rate, at_least=0, at_most=1, remedy=_RATE)
    epsilon, delta = _privacy(epsilon, delta)
    low: NDArray[np.float64] = np.minimum(
        math.exp(epsilon) * f + delta, 1 - math.exp(-epsilon) * np.maximum(0.0, 1 - delta - f)
    )
    return np.minimum(1.0, up(low, relative=_STEPS))[()]


@at_most
def private_advantage(epsilon: float, *, delta: float = 0.0) -> float:
    r"""The largest advantage TPR − FPR of anyone against an (ε, δ)-differentially private release.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.

    Returns
    -------
    float
        An upper bound on the advantage.

    Notes
    -----
    Statement. TV ≤ δ + (1−δ) tanh(ε/2); attained.

    Assumptions. The two classes' outputs are (ε, δ)-indistinguishable both ways (caller).

    Direction. Rounded up.

    References
    ----------
    Kairouz, Oh and Viswanath 2015, arXiv:1311.0776v4, Theorem 2.1; docs/proofs/leakage.md.
    """
    epsilon, delta = _privacy(epsilon, delta)
    return min(1.0, up(delta + (1 - delta) * math.tanh(epsilon / 2), relative=_STEPS))


@at_most
def private_squared(epsilon: float, *, delta: float = 0.0) -> float:
    r"""The largest v of an (ε, δ)-differentially private release.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.

    Returns
    -------
    float
        An upper bound on v.

    Notes
    -----
    Statement. v ≤ δ + (1−δ) tanh²(ε/2); attained.

    Assumptions. The two classes' outputs are (ε, δ)-indistinguishable both ways (caller).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    epsilon, delta = _privacy(epsilon, delta)
    return min(1.0, up(delta + (1 - delta) * math.tanh(epsilon / 2) ** 2, relative=_STEPS))


@at_most
def private_information(epsilon: float, *, delta: float = 0.0) -> float:
    r"""The largest mutual information about the secret, in nats, of an (ε, δ)-differentially private release.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.

    Returns
    -------
    float
        An upper bound on the mutual information, in nats.

    Notes
    -----
    Statement. I ≤ δ ln 2 + (1−δ) ι(tanh(ε/2)), ι of `squared_from_information`; attained.

    Assumptions. The two classes' outputs are (ε, δ)-indistinguishable both ways (caller).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    epsilon, delta = _privacy(epsilon, delta)
    kept = coin_information(min(1.0, up(math.tanh(epsilon / 2), relative=LIBRARY)))
    return min(up(_LN2), up(delta * _LN2 + (1 - delta) * kept, relative=_STEPS))


@at_most
def private_auc(epsilon: float, *, delta: float = 0.0) -> float:
    r"""The largest area under the ROC curve of any score against an (ε, δ)-differentially private release.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.

    Returns
    -------
    float
        An upper bound on the area under the curve.

    Notes
    -----
    Statement. AUC ≤ 1 − ½(1−δ)²(1 − tanh(ε/2)); attained.

    Assumptions. The two classes' outputs are (ε, δ)-indistinguishable both ways (caller).

    Direction. Rounded up.

    References
    ----------
    docs/proofs/leakage.md.
    """
    epsilon, delta = _privacy(epsilon, delta)
    return min(1.0, up(1 - (1 - delta) ** 2 * (1 - math.tanh(epsilon / 2)) / 2, relative=_STEPS))


@at_most
def coin_information(bias: float, *, toward: str = "up") -> float:
    r"""The information about the secret, in nats, in a coin that shows it with probability (1+e)/2.

    Parameters
    ----------
    bias
        The bias e of the coin.
    toward
        The side to round to: "up" or "down".

    Returns
    -------
    float
        ι(e), in nats.

    Notes
    -----
    Statement. ι(e) = ½[(1+e) ln(1+e) + (1−e) ln(1−e)] = ln 2 − h((1+e)/2).

    Assumptions. bias e in [0, 1] (checked).

    Direction. Exact, rounded up, or down with toward="down".

    References
    ----------
    docs/proofs/leakage.md.
    """
    e = validate.number("bias", bias, at_least=0, at_most=1, remedy="give 2P(right) − 1")
    validate.choice("toward", toward, ("up", "down"), remedy="use 'up' for an upper bound")
    if e < 1e-3:
        # e²/2 + e⁴/12 and a tail below e⁶/30·(1 + e²): the two logarithms would cancel.
        low = e * e * (0.5 + e * e / 12)
        return up(low + e**6 / 29, relative=LIBRARY) if toward == "up" else max(0.0, down(low, relative=LIBRARY))
    rest = (1 - e) * math.log1p(-e) if e < 1 else 0.0
    nats = ((1 + e) * math.log1p(e) + rest) / 2
    error = 1e-15 * e
    return up(nats + error, relative=LIBRARY) if toward == "up" else max(0.0, down(nats - error, relative=LIBRARY))


def _squared(value: object) -> float:
    return validate.number("squared", value, at_least=0, at_most=1, remedy=_SQUARED)


def _advantage(value: object) -> float:
    return validate.number("advantage", value, at_least=0, at_most=1, remedy=_ADVANTAGE)


def _privacy(epsilon: object, delta: object) -> tuple[float, float]:
    return (
        validate.number("epsilon", epsilon, at_least=0, at_most=700, remedy=_EPSILON),
        validate.number("delta", delta, at_least=0, at_most=1, remedy=_DELTA),
    )
