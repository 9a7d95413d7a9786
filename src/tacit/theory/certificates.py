r"""Upper confidence limits for what an output tells about a secret, from a table of both.

The secret S = ±1, T the output, η = E[S|T] where S is a fair coin. A *plug-in* is the value that v = E η², the mutual
information I or TV = E|η| takes on the table itself: for masses μ₁(t), μ₀(t) of the two classes, 1 in all,

    v̂ = Σ (μ₁ − μ₀)²/(μ₁ + μ₀),   Î = Σ μ₁ ln(2μ₁/(μ₁ + μ₀)) + μ₀ ln(2μ₀/(μ₁ + μ₀)),   T̂V = Σ |μ₁ − μ₀|.

*By class*: given the secrets, outputs are independent draws of their class; μ₁ = n₁(t)/(2n₁), μ₀ = n₀(t)/(2n₀).
*Paired*: rows are independent pairs and every secret is a fair coin; μ₁ = n₁(t)/n, μ₀ = n₀(t)/n.

Every limit grows with its plug-in, so a plug-in that is too large is still valid. No limit depends on how many values
the output takes. Proofs: docs/proofs/certificates.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import LIBRARY, SPECIAL, at_least, at_most, down, last_true, up
from .confidence import binomial_upper, bounded_mean_upper
from .leakage import coin_information

_PLUG_IN = "compute it from the table, uncentred"
_CLASS = "count the rows of the class"
_FAILURE = "use a small probability such as 0.05"
_LOSS = "give the least mean loss on the table"

_LN2 = math.log(2)
_SQUARED_PRICE = 1.05
_LOG_PRICE = 1.2
"""What the moment bounds of single classes cost against those of both together; see the proofs."""

_STEPS = 16 * LIBRARY


@at_most
def squared_closed(
    plug_in: float, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for v, in closed form.

    Parameters
    ----------
    plug_in
        The plug-in v̂, or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for v.

    Notes
    -----
    Statement. P(limit < v) ≤ α, √limit = √(2L/n) + √(v̂ + 2L/n), L = ln(1/α); n = n₁ + n₀ if paired or n₁ = n₀, else
    the larger one of 2·min(n₁, n₀) and 4n₁n₀/(1.05(n₁ + n₀)).

    Assumptions. Rows by class, or paired, and v̂ of the same kind (caller). The output may take any number of values.

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/certificates.md, Theorem B, closed form.
    """
    x, log, n = _arguments(plug_in, positives, negatives, failure_probability, paired, _SQUARED_PRICE)
    floor = up(2 * log / n, relative=LIBRARY)
    return min(1.0, up((math.sqrt(floor) + math.sqrt(x + floor)) ** 2, relative=_STEPS))


@at_most
def squared_sharp(
    plug_in: float, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for v, by the exact rate of the worst law.

    Parameters
    ----------
    plug_in
        The plug-in v̂, or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for v.

    Notes
    -----
    Statement. P(limit < v) ≤ α, limit = sup{w : nΛ(v̂, w) < L}, L = ln(1/α), Λ(x, w) = sup over λ in [0, ½] of −λx − ln
    φ(w), φ(w) = e^(λw)(cosh 2λ√w − √w sinh 2λ√w); n = n₁ + n₀ if paired, else 2·min(n₁, n₀), and where `squared_closed`
    is smaller, that.

    Assumptions. Rows by class, or paired, and v̂ of the same kind (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/certificates.md, Theorem B, sharp form.
    """
    x, log, n = _arguments(plug_in, positives, negatives, failure_probability, paired, None)
    closed = squared_closed(
        x, positives=positives, negatives=negatives, failure_probability=failure_probability, paired=paired
    )
    if n * _squared_rate(x, 1.0) < log:
        return closed
    return min(closed, last_true(lambda w: n * _squared_rate(x, w) >= log, holds=1.0, fails=x))


@at_most
def log_closed(
    plug_in: float, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for the mutual information in nats, in closed form.

    Parameters
    ----------
    plug_in
        The plug-in Î in nats, or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for I, in nats.

    Notes
    -----
    Statement. P(limit < I) ≤ α, √limit = √(L/n) + √(Î + L/n), L = ln(1/α); n = n₁ + n₀ if paired or n₁ = n₀, else the
    larger one of 2·min(n₁, n₀) and 4n₁n₀/(1.2(n₁ + n₀)).

    Assumptions. Rows by class, or paired, and Î of the same kind (caller).

    Direction. Rounded up; at most ln 2.

    References
    ----------
    docs/proofs/certificates.md, Theorem C.
    """
    x, log, n = _arguments(plug_in, positives, negatives, failure_probability, paired, _LOG_PRICE)
    floor = up(log / n, relative=LIBRARY)
    return min(up(_LN2), up((math.sqrt(floor) + math.sqrt(x + floor)) ** 2, relative=_STEPS))


@at_most
def log_sharp(
    plug_in: float, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for the mutual information in nats, by the exact rate of the worst law.

    Parameters
    ----------
    plug_in
        The plug-in Î in nats, or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for I, in nats.

    Notes
    -----
    Statement. P(limit < I) ≤ α, limit = ι(sup{e : n·kl(k ‖ (1+e)/2) < L}), k = (Î − ln(1−e))/ln((1+e)/(1−e)), ι(e) =
    ½[(1+e) ln(1+e) + (1−e) ln(1−e)], L = ln(1/α); n = n₁ + n₀ if paired, else 2·min(n₁, n₀), and where `log_closed` is
    smaller, that.

    Assumptions. Rows by class, or paired, and Î of the same kind (caller).

    Direction. Rounded up; at most ln 2.

    References
    ----------
    docs/proofs/certificates.md, Theorem C, sharp form.
    """
    x, log, n = _arguments(plug_in, positives, negatives, failure_probability, paired, None)
    closed = log_closed(
        x, positives=positives, negatives=negatives, failure_probability=failure_probability, paired=paired
    )
    if n * _log_rate(x, _NEARLY_ONE) < log:
        return closed
    bias = last_true(lambda e: n * _log_rate(x, e) >= log, holds=_NEARLY_ONE, fails=0.0)
    return min(closed, coin_information(bias))


@at_most
def variation_upper(
    plug_in: float, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for TV, the largest advantage; for smoothed plug-ins and any class sizes.

    Parameters
    ----------
    plug_in
        The plug-in T̂V, or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for TV.

    Notes
    -----
    Statement. P(limit < TV) ≤ α, limit = sup{a : n·kl((1+T̂V)/2 ‖ (1+a)/2) < L}, L = ln(1/α), n = n₁ + n₀ if paired,
    else 2·min(n₁, n₀); by class also limit = T̂V + √(L/2·(1/n₁ + 1/n₀)): the smaller one.

    Assumptions. Rows by class, or paired, and T̂V of the same kind (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/certificates.md, limits for total variation.
    """
    x, log, n = _arguments(plug_in, positives, negatives, failure_probability, paired, None)
    half = min(1.0, up((1 + x) / 2))
    limit = up(2 * bounded_mean_upper(half, count=round(n), failure_probability=failure_probability) - 1)
    if paired:
        return min(1.0, limit)
    wide = math.sqrt(log / 2 * (1 / positives + 1 / negatives))
    return min(1.0, limit, up(x + wide, relative=_STEPS))


@at_most
def variation_exact(
    correct: int, *, positives: int, negatives: int, failure_probability: float, paired: bool = False
) -> float:
    r"""An upper confidence limit for TV from the correct guesses of the best table, by the binomial law itself.

    Parameters
    ----------
    correct
        The correct guesses of the best table, Σ max(n₁(t), n₀(t)), or anything larger.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.
    paired
        Whether rows are independent pairs with a secret tossed as a fair coin; otherwise rows are drawn by class.

    Returns
    -------
    float
        The limit for TV.

    Notes
    -----
    Statement. P(limit < TV) ≤ α, limit = 2p − 1, p of Clopper and Pearson for `correct` of n = n₁ + n₀, and by class
    not below (correct + 1)/n. The least error of any guess is (1 − TV)/2.

    Assumptions. `correct` = Σ max(n₁(t), n₀(t)) or more; rows paired, or by class with n₁ = n₀ (caller; n₁ = n₀ and
    correct ≤ n are checked).

    Direction. Rounded up; at most 1.

    References
    ----------
    Clopper and Pearson 1934; Hoeffding 1956, doi:10.1214/aoms/1177728178, Theorem 4; docs/proofs/certificates.md,
    limits for total variation.
    """
    one, zero = _classes(positives, negatives)
    n = one + zero
    right = validate.whole("correct", correct, at_least=0, remedy="add up the larger class of every output")
    if right > n:
        raise InputError("correct", right, requirement=f"must not exceed the {n} rows", remedy="count the rows again")
    share = binomial_upper(right, trials=n, failure_probability=failure_probability)
    if not _paired(paired):
        if one != zero:
            raise NoTheoremError(
                f"the binomial limit by class must have classes of one size, got {one} and {zero}; "
                "use variation_upper, or paired=True where every secret was a fair coin"
            )
        share = max(share, up((right + 1) / n))
    return min(1.0, max(0.0, up(2 * share - 1)))


@at_most
def hockey_stick_limit(
    plug_in: float, *, epsilon: float, positives: int, negatives: int, failure_probability: float
) -> float:
    r"""An upper confidence limit for the largest P₁(A) − e^ε P₀(A), at one ε and in one direction.

    Parameters
    ----------
    plug_in
        The plug-in Ĥ, or anything larger.
    epsilon
        The privacy loss ε.
    positives
        The number n₁ of rows of the first class.
    negatives
        The number n₀ of rows of the second class.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for the supremum H of P₁(A) − e^ε P₀(A).

    Notes
    -----
    Statement. P(limit < H) ≤ α, limit = Ĥ + √(L/2·(1/n₁ + e^(2ε)/n₀)), Ĥ = Σ max(0, n₁(t)/n₁ − e^ε n₀(t)/n₀).

    Assumptions. Rows by class (caller). Several ε or both directions: divide α (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/certificates.md, hockey stick.
    """
    x = validate.number("plug_in", plug_in, at_least=0, at_most=1, remedy=_PLUG_IN)
    k = math.exp(validate.number("epsilon", epsilon, at_least=0, at_most=300, remedy="give the privacy loss, e.g. 1.0"))
    one, zero = _classes(positives, negatives)
    wide = math.sqrt(_log(failure_probability) / 2 * (1 / one + k * k / zero))
    return min(1.0, up(x + wide, relative=_STEPS))


@at_least
def printed_squared_loss(empirical_loss: float, *, count: int, failure_probability: float) -> float:
    r"""Theorem 2 of the paper: a lower confidence limit for the least squared loss of any guess, MMSE = 1 − E[E[S|T]²].

    Parameters
    ----------
    empirical_loss
        The least loss on the table itself.
    count
        The number n of rows.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for the MMSE.

    Notes
    -----
    Statement. P(limit > MMSE) ≤ α, limit = empirical loss − 2√(2L/n), L = ln(1/α).

    Assumptions. n independent pairs, with any prior; the loss is the least of all tables (caller).

    Direction. Rounded down; at least 0.

    References
    ----------
    Theorem 2 of Diaz, Kairouz, Liao and Sankar 2019.
    """
    loss = validate.number("empirical_loss", empirical_loss, at_least=0, at_most=1, remedy=_LOSS)
    n = validate.whole("count", count, at_least=1, remedy="count the rows")
    gap = up(2 * math.sqrt(2 * _log(failure_probability) / n), relative=_STEPS)
    return max(0.0, down(loss - gap))


@at_least
def printed_log_loss(empirical_loss: float, *, count: int, alphabet: int, failure_probability: float) -> float:
    r"""Theorem 3 of the paper: a lower confidence limit for the least log-loss of any guess, H(S|T) in nats.

    Parameters
    ----------
    empirical_loss
        The least loss on the table itself.
    count
        The number n of rows.
    alphabet
        The number d of values that the output can take.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for H(S|T), in nats.

    Notes
    -----
    Statement. P(limit > H(S|T)) ≤ α, limit = empirical loss − h(√((2d + L)/n)), h the binary entropy, L = ln(1/α).

    Assumptions. n independent pairs, with any prior; the output has d possible values; the loss is the least of all
    tables (caller); n ≥ 4(2d + L) (checked).

    Direction. Rounded down; at least 0.

    References
    ----------
    Theorem 3 of Diaz, Kairouz, Liao and Sankar 2019.
    """
    loss = validate.number("empirical_loss", empirical_loss, at_least=0, at_most=up(_LN2), remedy=_LOSS)
    n = validate.whole("count", count, at_least=1, remedy="count the rows")
    d = validate.whole("alphabet", alphabet, at_least=1, remedy="say how many values the output can take at all")
    needed = up(4 * (2 * d + _log(failure_probability)), relative=LIBRARY)
    if n < needed:
        raise NoTheoremError(
            f"Theorem 3 must have at least 4(2d + ln(1/failure_probability)) = {math.ceil(needed)} rows for d = {d}, "
            f"got {n}; use log_sharp, which has no such floor"
        )
    theta = min(0.5, up(math.sqrt((2 * d + _log(failure_probability)) / n), relative=_STEPS))
    entropy = up(float(special.entr(theta) + special.entr(1 - theta)), relative=SPECIAL)
    return max(0.0, down(loss - entropy))


@at_least
def printed_network_loss(
    empirical_loss: float, *, count: int, neurons: int, barron: float, diameter: float, failure_probability: float
) -> float:
    r"""Theorem 1 of the paper: a lower confidence limit for the MMSE from a two-layer network's loss.

    Parameters
    ----------
    empirical_loss
        The least loss on the table itself.
    count
        The number n of rows.
    neurons
        The number k of neurons.
    barron
        The Barron constant C.
    diameter
        The diameter D of the set of outputs.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for the MMSE.

    Notes
    -----
    Statement. P(limit > MMSE) ≤ α, limit = empirical loss − C₀√(L/(2n)) − C₁/k − C₂/√k, L = ln(1/α), C₀ = (2 + DC)², C₁
    = (DC)², C₂ = 4DC, for k neurons, diameter D and Barron constant C.

    Assumptions. n independent pairs; outputs in a compact set K of diameter D around 0, where both classes have
    densities; an extension of η has Barron constant C; the loss is the *global minimum* over networks of k neurons on
    these pairs, which training does not show (caller).

    Direction. Rounded down; at least 0.

    References
    ----------
    Theorem 1 of Diaz, Kairouz, Liao and Sankar 2019, equations (22) and (24).
    """
    loss = validate.number("empirical_loss", empirical_loss, at_least=0, at_most=1, remedy=_LOSS)
    n = validate.whole("count", count, at_least=1, remedy="count the rows")
    k = validate.whole("neurons", neurons, at_least=1, remedy="say how many neurons the hidden layer has")
    reach = validate.number("barron", barron, at_least=0, remedy="give the Barron constant of the posterior")
    reach *= validate.number("diameter", diameter, at_least=0, remedy="give the diameter of the outputs' range")
    statistical = (2 + reach) ** 2 * math.sqrt(_log(failure_probability) / (2 * n))
    gap = up(statistical + reach**2 / k + 4 * reach / math.sqrt(k), relative=_STEPS)
    return max(0.0, down(loss - gap))


@at_most
def lipschitz_excess(constant: float, *, width: float) -> float:
    r"""How much of v bins can hide if the posterior is Lipschitz.

    Parameters
    ----------
    constant
        The Lipschitz constant C of η.
    width
        The diameter w of the bins.

    Returns
    -------
    float
        An upper bound on v − v_bins.

    Notes
    -----
    Statement. v ≤ v_bins + (Cw)²/4.

    Assumptions. |η(t) − η(t′)| ≤ C‖t − t′‖ (caller); bins of diameter w fixed before the data was seen (caller). A
    Barron constant of η is such a C.

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/certificates.md, Lipschitz posteriors.
    """
    c = validate.number("constant", constant, at_least=0, remedy="give the Lipschitz constant of E[S|T]")
    w = validate.number("width", width, above=0, remedy="give the bins' diameter")
    return min(1.0, up(min(c * w, 2.0) ** 2 / 4, relative=_STEPS))


@at_most
def tanh_barron(gradient: ArrayLike) -> float:
    r"""The Barron constant, and the Lipschitz constant, of a posterior that is a hyperbolic tangent of a linear score.

    Parameters
    ----------
    gradient
        The vector a, or a number in one dimension.

    Returns
    -------
    float
        The constant ‖a‖, rounded up.

    Notes
    -----
    Statement. For η(t) = tanh(⟨a, t⟩ + b), both are ‖a‖. Gaussian classes with means ±Sv₀ and unit covariance, seen
    through ⟨·, v⟩, have a = ⟨v, v₀⟩.

    Assumptions. The posterior has this shape (caller).

    Direction. Exact, rounded up.

    References
    ----------
    Diaz, Kairouz, Liao and Sankar 2019, equations (44) to (48); docs/proofs/certificates.md.
    """
    a = validate.array("gradient", gradient, at_most=1e150, at_least=-1e150, remedy="give the score's coefficients")
    return up(float(np.sqrt((a * a).sum())), relative=1e-12)


@at_most
def binning_root(step: float, *, noise: float, dimensions: int) -> float:
    r"""How much linear binning of outputs changes plug-ins of their noisy release: the root ρ of its chi-square.

    Parameters
    ----------
    step
        The step h of the grid.
    noise
        The standard deviation γ of the noise in each coordinate.
    dimensions
        The number d of coordinates.

    Returns
    -------
    float
        An upper bound on ρ.

    Notes
    -----
    Statement. √v̂ ≤ √ṽ + √2·ρ, √Î ≤ √Ĩ + √(2 ln 2)·ρ, T̂V ≤ T̃V + ρ, where hats are plug-ins of releases with noise
    N(0, γ²) in each coordinate, tildes those of outputs split between neighbours on a grid of step h, and ρ² = (1 +
    x²/(32(1 − x/3)))^d − 1, x = (h/γ)², d coordinates.

    Assumptions. step ≤ noise (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/certificates.md, noise at release.
    """
    gamma = validate.number("noise", noise, above=0, remedy="give the noise's standard deviation")
    h = validate.number("step", step, above=0, at_most=gamma, remedy="use a grid finer than the noise")
    d = validate.whole("dimensions", dimensions, at_least=1, remedy="count the coordinates")
    x = (h / gamma) ** 2
    return up(math.sqrt(math.expm1(d * math.log1p(x * x / (32 * (1 - x / 3))))), relative=_STEPS)


@at_most
def smoothing_root(step: float, *, noise: float, dimensions: int) -> float:
    r"""How much more noise hides in an output that already has some: the root ρ of the triangular discrimination.

    Parameters
    ----------
    step
        The standard deviation h of the noise that is added.
    noise
        The standard deviation γ of the noise that is in the output already.
    dimensions
        The number d of coordinates.

    Returns
    -------
    float
        An upper bound on ρ.

    Notes
    -----
    Statement. √v(Y) ≤ √v(Y′) + √2·ρ, √I(Y) ≤ √I(Y′) + √(2 ln 2)·ρ, where Y = T + N(0, γ²) in each of d coordinates, Y′
    = Y + N(0, h²), ρ² = ¼[(1 − x²)^(−d/2) + (1 + x²/(1 + 2x))^(d/2) − 2], x = (h/γ)².

    Assumptions. The noise in Y is independent of T and of the secret, given T (caller); step < noise (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/certificates.md, noise in the column.
    """
    x, d = _smoothing(step, noise, dimensions)
    both = math.expm1(-d / 2 * math.log1p(-x * x)) + math.expm1(d / 2 * math.log1p(x * x / (1 + 2 * x)))
    return up(math.sqrt(both) / 2, relative=_STEPS)


@at_most
def smoothing_variation(step: float, *, noise: float, dimensions: int) -> float:
    r"""How much of the advantage more noise hides if the output already has some.

    Parameters
    ----------
    step
        The standard deviation h of the noise that is added.
    noise
        The standard deviation γ of the noise that is in the output already.
    dimensions
        The number d of coordinates.

    Returns
    -------
    float
        An upper bound on τ.

    Notes
    -----
    Statement. TV(Y) ≤ TV(Y′) + τ, and P₁(A) − kP₀(A) is for Y at most its supremum for Y′ plus (1 + k)τ/2, where Y = T
    + N(0, γ²) in each of d coordinates, Y′ = Y + N(0, h²), τ = 2[F(r) − F(r/(1 + x))], F the chi-square distribution of
    d degrees, r = d(1 + x)ln(1 + x)/x, x = (h/γ)².

    Assumptions. The noise in Y is independent of T and of the secret, given T (caller); step < noise (checked).

    Direction. An upper bound, rounded up.

    References
    ----------
    docs/proofs/certificates.md, noise in the column.
    """
    x, d = _smoothing(step, noise, dimensions)
    r = d * (1 + x) * (math.log1p(x) / x)
    near, far = (float(special.gammainc(d / 2, end / 2)) for end in (r / (1 + x), r))
    return up(2 * (far - near) + 4 * SPECIAL)


@at_most
def characteristic_limit(frequency: float, *, noise: float, count: int, failure_probability: float) -> float:
    r"""A limit for the empirical characteristic function of noisy numbers; beyond it they lack the noise.

    Parameters
    ----------
    frequency
        The frequency t.
    noise
        The standard deviation γ of the noise.
    count
        The number n of values.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit; a value above 1 rules out nothing.

    Notes
    -----
    Statement. P(|mean of e^(itY)| > limit) ≤ α, limit = e^(−γ²t²/2) + 2√(ln(4/α)/n), for n independent Y = T + N(0,
    γ²).

    Assumptions. Y are independent and of one law, the noise independent of T (caller).

    Direction. Rounded up; useful only below 1.

    References
    ----------
    docs/proofs/certificates.md, noise in the column.
    """
    t = validate.number("frequency", frequency, above=0, remedy="give t of e^(itY)")
    gamma = validate.number("noise", noise, above=0, remedy="give the noise's standard deviation")
    n = validate.whole("count", count, at_least=1, remedy="count the numbers")
    wide = 2 * math.sqrt((_log(failure_probability) + math.log(4)) / n)
    left = math.exp(-(min(gamma * t, 1e3) ** 2) / 2)  # beyond, it is 0 in float64 and its rounding up covers it
    return up(left + wide, relative=_STEPS)


def _smoothing(step: object, noise: object, dimensions: object) -> tuple[float, int]:
    gamma = validate.number("noise", noise, above=0, remedy="give the standard deviation of the noise in the output")
    h = validate.number("step", step, above=0, below=gamma, remedy="add less noise than there is")
    x = (h / gamma) ** 2
    if x < 1e-12:
        raise InputError("step", step, requirement="must be at least noise/10**6", remedy="use a larger one")
    return x, validate.whole("dimensions", dimensions, at_least=1, remedy="count the coordinates")


_NEARLY_ONE = 1 - 2.0**-40


def _squared_rate(x: float, w: float) -> float:
    """Λ(x, w), rounded down; 0 for w ≤ x."""
    if w <= x:
        return 0.0
    e = math.sqrt(w)
    m = (x + w) / (2 * e)
    if e < 1 and math.atanh(e) - math.atanh(min(m, e)) <= e:
        return _coins_apart(m, e)
    rate = -(x + w) / 2 - math.log(math.cosh(e) - e * math.sinh(e))
    return max(0.0, down(rate - 1e-14, relative=_STEPS))


def _log_rate(x: float, e: float) -> float:
    """kl(k ‖ (1+e)/2), rounded down; 0 where ι(e) ≤ x."""
    if e < 1e-12:
        return 0.0
    span = 2 * math.atanh(e)
    if coin_information(e, toward="down") <= x:
        return 0.0
    # Near 1 the square would be rounded away from e, near 0 the two logarithms would cancel.
    both = math.log1p(e) + math.log1p(-e) if e > 0.5 else math.log1p(-e * e)
    # 2k − 1 = (2x − ln(1−e²))/ln((1+e)/(1−e)), rounded up, which brings the two coins together.
    m = up((2 * x - both) / span, relative=_STEPS)
    return _coins_apart(m, e) if m < e else 0.0


def _coins_apart(m: float, e: float) -> float:
    """kl((1+m)/2 ‖ (1+e)/2) for m ≤ e, rounded down; the two terms nearly cancel, hence the absolute allowance."""
    divergence = float(special.rel_entr((1 + m) / 2, (1 + e) / 2) + special.rel_entr((1 - m) / 2, (1 - e) / 2))
    return max(0.0, down(divergence - 4e-15, relative=SPECIAL))


def _arguments(
    plug_in: object, positives: object, negatives: object, failure: object, paired: object, price: float | None
) -> tuple[float, float, float]:
    """The plug-in, ln(1/α) rounded up, and the effective number of rows; closed forms lose `price` at unequal sizes."""
    x = validate.number("plug_in", plug_in, at_least=0, at_most=1, remedy=_PLUG_IN)
    one, zero = _classes(positives, negatives)
    if _paired(paired):
        return x, _log(failure), float(one + zero)
    count = 2.0 * min(one, zero)
    if price is not None and one != zero:
        count = max(count, down(4 * (one * zero / (one + zero)) / price, relative=LIBRARY))
    return x, _log(failure), count


def _classes(positives: object, negatives: object) -> tuple[int, int]:
    one = validate.whole("positives", positives, at_least=1, remedy=_CLASS)
    return one, validate.whole("negatives", negatives, at_least=1, remedy=_CLASS)


def _paired(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError("paired", value, requirement="must be True or False", remedy="use False for rows by class")
    return value


def _log(failure_probability: object) -> float:
    chance = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    return up(-math.log(chance), relative=LIBRARY)
