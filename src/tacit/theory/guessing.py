r"""Upper confidence limits for whoever names a secret of several values, or estimates a secret number, by an output.

The secrets of the table are s₁ … s_n. Nothing is assumed about them: what is bounded is about a secret that is drawn
from them, as from an urn, and the output that belongs to it. Proofs: docs/proofs/guessing.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, down, last_true, up
from .certificates import squared_sharp
from .confidence import binomial_upper

_FAILURE = "use a small probability such as 0.05"
_STRENGTHS = tuple(0.5**power for power in range(1, 8))
"""The λ of the limits for R², fixed beforehand."""
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
def explained_upper(sizes: ArrayLike, sums: ArrayLike, squares: ArrayLike, *, failure_probability: float) -> float:
    r"""An upper confidence limit for the share of a secret number's variance that the output explains.

    Parameters
    ----------
    sizes
        The number n_t of rows of each output.
    sums
        The sum of ξ over these rows, where ξ = (x − x̄)/B: secrets, less their mean, in units of a B that no secret is
        further from the mean. Their total is 0.
    squares
        The sum of ξ² over these rows.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for R² = 1 − (least mean squared error of anyone who sees the output)/(variance of the secrets).

    Notes
    -----
    Statement. P(limit < R²) ≤ α. The limit is the least of eight, each at α/8, in units of q = Σ squares/n. One is
    `squared_sharp` for v̂ = Σ sums²/sizes/n. The others are (1 − exp(−λW − ln(8/α)/n))/λ for λ = 2^(−j), j = 1 … 7, with
    W = Σ_t n_t w_t/n, m = |sums|/n_t, q_t = squares/n_t, a = (−ln(1 − λ) − λ)/λ, and w_t = m²/(1 − 4aq_t) where 4aq_t <
    1 and moreover 4aq_t + aG² ≤ ½ or m ≥ ¼; else w_t = 1 + a, which it never exceeds. G = min(1, 2m/(1 − 4aq_t − a)),
    and 1 where the denominator is not positive.

    Assumptions. Given the secrets, outputs are independent, each from the law of its secret (caller); every |ξ| ≤ 1 and
    the sum of all ξ is 0 (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/guessing.md.
    """
    n_t, s_t, q_t = (
        np.asarray(
            validate.array(name, values, dimensions=1, remedy="add up the rows of each output"), dtype=np.float64
        )
        for name, values in (("sizes", sizes), ("sums", sums), ("squares", squares))
    )
    alpha = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    n = float(n_t.sum())
    if not (
        len(n_t) == len(s_t) == len(q_t) and n >= 2 and (n_t >= 1).all() and (np.abs(s_t) <= n_t * (1 + 1e-9)).all()
    ):
        raise InputError(
            "sizes",
            f"{len(n_t)} outputs",
            requirement="must be those of sums and squares",
            remedy="count the rows again",
        )
    error = 16 * (n + 8) * float(np.finfo(float).eps)
    m, q = np.abs(s_t) / n_t + error, q_t / n_t + error
    spread = float(q_t.sum()) / n - error
    if not spread > 0:
        return 1.0
    plug_in = min(1.0, float((n_t * m**2).sum()) / n * (1 + LIBRARY) + error)
    half, share = int(n) // 2, alpha / (1 + len(_STRENGTHS))
    limits = [squared_sharp(plug_in, positives=int(n) - half, negatives=half, failure_probability=share, paired=True)]
    log = up(-math.log(share), relative=LIBRARY) / n
    for strength in _STRENGTHS:
        a = (-math.log1p(-strength) - strength) / strength * (1 + 1e-9)
        room = 1 - 4 * a * q
        reach = np.where(room > a, np.minimum(1.0, 2 * m / np.where(room > a, room - a, 1.0)), 1.0)
        good = (room > 0) & ((4 * a * q + a * reach**2 <= 0.5) | (m >= 0.25 * (1 + 1e-9)))
        terms = np.where(good, np.minimum(1 + a, m**2 / np.where(good, room, 1.0)), 1 + a)
        whole = up(float((n_t * terms).sum()) / n, relative=1e-9)
        limits.append(up(-math.expm1(-strength * whole - log) / strength, relative=1e-12))
    return min(1.0, up(min(limits) / spread, relative=4 * LIBRARY))
