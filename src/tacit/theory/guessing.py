r"""Upper confidence limits for whoever names a secret of several values, or estimates a secret number, by an output.

The secrets of the table are s₁ … s_n. Nothing is assumed about them: what is bounded is about a secret that is drawn
from them, as from an urn, and the output that belongs to it. Proofs: docs/proofs/guessing.md.
"""

from __future__ import annotations

import math

import numpy as np

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, down, last_true, up
from .certificates import squared_sharp
from .confidence import binomial_upper

_FAILURE = "use a small probability such as 0.05"
_RATES = np.geomspace(1e-6, 8.0, 400)
"""The λ among which the best is taken."""


@at_most
def accuracy_upper(correct: int, *, rows: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the share of secrets that anyone who sees the output names rightly.

    Parameters
    ----------
    correct
        The rows that the best table of guesses gets right, Σ_t max_s n_s(t), or anything larger.
    rows
        The number n of rows.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for V, the Bayes vulnerability of the secret given the output.

    Notes
    -----
    Statement. V = Σ_t max_s π_s P_s(t), π_s = n_s/n. P(limit < V) ≤ α, where the limit is the larger one of Clopper and
    Pearson's for `correct` of n, and (correct + 1)/n.

    Assumptions. Given the secrets, outputs are independent, each from the law P_s of its secret (caller); correct ≤ n
    (checked).

    Direction. Rounded up; at most 1.

    References
    ----------
    Hoeffding 1956, doi:10.1214/aoms/1177728178, Theorem 4; docs/proofs/guessing.md.
    """
    n = validate.whole("rows", rows, at_least=1, remedy="count the rows")
    right = validate.whole("correct", correct, at_least=0, remedy="add up the largest class of every output")
    if right > n:
        raise InputError("correct", right, requirement=f"must not exceed the {n} rows", remedy="count the rows again")
    exact = binomial_upper(right, trials=n, failure_probability=failure_probability)
    return min(1.0, max(exact, up((right + 1) / n)))


@at_most
def collision_upper(agreement: float, *, rows: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the chance that two secrets with the same output agree.

    Parameters
    ----------
    agreement
        R = (Σ_(n_t ≥ 2) Σ_s n_s(t)(n_s(t) − 1)/(n_t − 1) + N₁)/n, where n_t rows have output t, n_s(t) of them with
        secret s, and N₁ outputs have one row; or anything larger.
    rows
        The number n of rows.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for r = E Σ_s P(s|T)².

    Notes
    -----
    Statement. P(limit < r) ≤ α. The limit is the least r ≥ R for which some λ > 0 has −λnR/2 − n ln(1 − r(1 −
    e^(−κ/2))) ≥ ln(1/α), κ = ⅔(1 − e^(−3λ/2)).

    Assumptions. Rows are independent pairs of a secret and an output, from one law (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/guessing.md.
    """
    share = validate.number("agreement", agreement, at_least=0, at_most=1, remedy="count pairs of rows that agree")
    n = validate.whole("rows", rows, at_least=1, remedy="count the rows")
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    least = up(-math.log(alpha), relative=LIBRARY) / n
    kappa = down(-2 / 3 * np.expm1(-1.5 * _RATES), relative=LIBRARY)
    lost = down(-np.expm1(-kappa / 2), relative=LIBRARY)

    def excluded(r: float) -> bool:
        exponents = -up(_RATES * share / 2, relative=LIBRARY) - np.log1p(-down(r * lost, relative=LIBRARY))
        return float(exponents.max()) * (1 - LIBRARY) - 1e-15 >= least

    return last_true(excluded, holds=1.0, fails=share) if excluded(1.0) else 1.0


@at_most
def accuracy_from_collisions(collision: float, *, classes: int) -> float:
    r"""The largest share of secrets that anyone names rightly, from the chance that two of them agree.

    Parameters
    ----------
    collision
        An upper bound on r = E Σ_s P(s|T)².
    classes
        The number K of values that the secret takes.

    Returns
    -------
    float
        An upper bound on V = E max_s P(s|T).

    Notes
    -----
    Statement. V ≤ (1 + √((K − 1)(Kr − 1)))/K, with equality where one value has the probability V and all others are
    equally likely, whatever the output.

    Assumptions. collision in [0, 1] bounds r (caller; the range is checked); K ≥ 2 (checked).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/guessing.md.
    """
    r = validate.number("collision", collision, at_least=0, at_most=1, remedy="give a probability")
    k = validate.whole("classes", classes, at_least=2, remedy="count the values of the secret")
    above = max(0.0, up(k * r - 1 + 4 * np.finfo(float).eps * k))
    return min(1.0, up((1 + math.sqrt((k - 1) * above)) / k, relative=4 * LIBRARY))


@at_most
def explained_upper(explained: float, *, spread: float, rows: int, failure_probability: float) -> float:
    r"""An upper confidence limit for the share of a secret number's variance that the output explains.

    Parameters
    ----------
    explained
        R² on the table itself: the variance of the means of all outputs, as a share of the variance of the secrets.
    spread
        The standard deviation of the secrets divided by B, where no secret is further than B from their mean.
    rows
        The number n of rows.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for R² = 1 − (least mean squared error of anyone who sees the output)/(variance of the secrets).

    Notes
    -----
    Statement. P(limit < R²) ≤ α, limit = v⁺/spread², where v⁺ is `squared_sharp` for explained·spread² and n pairs.

    Assumptions. Given the secrets, outputs are independent, each from the law of its secret (caller); the ranges are
    checked.

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/guessing.md.
    """
    share = validate.number("explained", explained, at_least=0, at_most=1, remedy="give R² of the table")
    scale = validate.number("spread", spread, above=0, at_most=1, remedy="divide by the largest distance from the mean")
    n = validate.whole("rows", rows, at_least=2, remedy="count the rows")
    squared = min(1.0, up(share * scale**2, relative=4 * LIBRARY))
    limit = squared_sharp(
        squared, positives=n - n // 2, negatives=n // 2, failure_probability=failure_probability, paired=True
    )
    return min(1.0, up(limit / scale**2, relative=4 * LIBRARY))
