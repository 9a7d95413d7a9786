"""How far apart two releases a + Z and a′ + Z lie, for Gaussian noise Z ~ N(0, σ²I).

All depends on one number, the *distance* d = ‖a′ − a‖/σ (docs/proofs/divergences.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .. import checked
from ..errors import InputError
from ..numerics import LIBRARY, SPECIAL, at_most, last_true, up

_DISTANCE = "pass ‖a′ − a‖/σ, the feature shift in units of the noise"


@at_most
def gaussian_chi_square(distance: ArrayLike) -> NDArray[np.float64]:
    r"""The chi-square divergence between the two releases, the denominator of the HCR bound.

    Statement.   χ² = exp(d²) − 1.
    Assumptions. Noise N(0, σ²I) (caller); distance ≥ 0 and finite (checked).
    Direction.   Exact, rounded up; inf where it exceeds float64, and exactly 0 at distance 0.
    Reference.   Chaudhuri et al. 2024, arXiv:2404.02866v3, equations (12) and (28).
    """
    d = checked.array("distance", distance, at_least=0, remedy=_DISTANCE)
    with np.errstate(over="ignore"):
        chi_square = up(np.expm1(up(d * d)), relative=LIBRARY)
    return np.where(d == 0, 0.0, chi_square)[()]


@at_most
def gaussian_total_variation(distance: ArrayLike) -> NDArray[np.float64]:
    r"""The total variation distance: how much better than a coin anyone tells the two releases apart.

    Statement.   TV = erf(d / (2√2)) = 2Φ(d/2) − 1.
    Assumptions. Noise N(0, σ²I) (caller); distance ≥ 0 and finite (checked).
    Direction.   Exact, rounded up, at most 1, and exactly 0 at distance 0.
    Reference.   Neyman and Pearson 1933 (the likelihood-ratio test is optimal); docs/proofs/divergences.md.
    """
    d = checked.array("distance", distance, at_least=0, remedy=_DISTANCE)
    variation = up(special.erf(d / math.sqrt(8.0)), relative=SPECIAL)
    return np.where(d == 0, 0.0, np.minimum(variation, 1.0))[()]


@at_most
def gaussian_delta(epsilon: float, *, distance: float) -> float:
    r"""The least δ for which the two releases are (ε, δ)-indistinguishable, in both directions.

    Statement.   δ(ε) = Φ(d/2 − ε/d) − exp(ε) Φ(−d/2 − ε/d).
    Assumptions. Noise N(0, σ²I) (caller); epsilon ≥ 0, distance ≥ 0, both finite (checked).
    Direction.   Exact, rounded up, at most 1; the rounding adds up to 1e-9 of Φ(d/2 − ε/d).
    Reference.   Balle and Wang 2018, arXiv:1805.06530v2, Theorem 8.
    """
    epsilon = checked.number("epsilon", epsilon, at_least=0, remedy="use 0 for total variation")
    d = checked.number("distance", distance, at_least=0, remedy=_DISTANCE)
    if d == 0:
        return 0.0
    first, second = d / 2 - epsilon / d, -d / 2 - epsilon / d
    if first < -40:
        return 5e-324  # Φ(−40) < 4e-350 lies below the smallest float
    # Both arguments carry a few units of rounding error, which log Φ multiplies by at most their size.
    error = SPECIAL + 8 * np.finfo(float).eps * (1 + (abs(second) + d) ** 2 + epsilon)
    likely = math.exp(special.log_ndtr(first)) * (1 + 2 * error)
    unlikely = math.exp(epsilon + special.log_ndtr(second)) * max(0.0, 1 - 2 * error)
    return min(1.0, max(0.0, up(likely - unlikely, relative=LIBRARY)))


@at_most
def gaussian_epsilon(delta: float, *, distance: float) -> float:
    r"""The least ε for which the two releases are (ε, δ)-indistinguishable.

    Statement.   inf{ε ≥ 0 : δ(ε) ≤ delta}, with δ(ε) of `gaussian_delta`.
    Assumptions. Noise N(0, σ²I) (caller); delta in (0, 1), distance ≥ 0 and finite (checked).
    Direction.   Rounded up: the ε returned was itself put to `gaussian_delta`, and δ(ε) falls with ε.
    Reference.   Balle and Wang 2018, arXiv:1805.06530v2, Theorem 8.
    """
    delta = checked.probability("delta", delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    d = checked.number("distance", distance, at_least=0, remedy=_DISTANCE)
    # Beyond this ε the first term alone, Φ(d/2 − ε/d) ≤ exp(−(ε/d − d/2)²/2), lies below delta.
    enough = d * d / 2 + d * math.sqrt(2 * math.log(1 / delta)) + 1
    if not math.isfinite(enough):
        raise InputError("distance", distance, requirement="must be below 1e150", remedy=_DISTANCE)
    return last_true(lambda epsilon: gaussian_delta(epsilon, distance=d) <= delta, holds=enough, fails=0.0)
