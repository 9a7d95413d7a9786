"""How far apart two releases a + Z and a′ + Z lie, for Gaussian, Laplace and uniform noise Z.

For Gaussian noise N(0, σ²I) everything depends on one number, the *distance* d = ‖a′ − a‖/σ. Proofs:
docs/proofs/divergences.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, LOG_NDTR, SPECIAL, at_least, at_most, down, last_true, up

_DISTANCE = "pass ‖a′ − a‖/σ, the feature shift in units of the noise"


@at_most
def gaussian_chi_square(distance: ArrayLike) -> NDArray[np.float64]:
    r"""The chi-square divergence between the two releases, the denominator of the HCR bound.

    Parameters
    ----------
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    ndarray
        An upper bound on χ², in the shape of `distance`.

    Notes
    -----
    Statement. χ² = exp(d²) − 1.

    Assumptions. Noise N(0, σ²I) (caller); distance ≥ 0 and finite (checked).

    Direction. Exact, rounded up; inf where it exceeds float64, and exactly 0 at distance 0.

    References
    ----------
    Chaudhuri et al. 2024, arXiv:2404.02866v3, equations (12) and (28).
    """
    d = validate.array("distance", distance, at_least=0, remedy=_DISTANCE)
    with np.errstate(over="ignore"):
        chi_square = up(np.expm1(up(d * d)), relative=LIBRARY)
    return np.where(d == 0, 0.0, chi_square)[()]


@at_most
def gaussian_total_variation(distance: ArrayLike) -> NDArray[np.float64]:
    r"""The total variation distance: how much better than a coin anyone tells the two releases apart.

    Parameters
    ----------
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    ndarray
        An upper bound on TV, in the shape of `distance`.

    Notes
    -----
    Statement. TV = erf(d / (2√2)) = 2Φ(d/2) − 1.

    Assumptions. Noise N(0, σ²I) (caller); distance ≥ 0 and finite (checked).

    Direction. Exact, rounded up, at most 1, and exactly 0 at distance 0.

    References
    ----------
    Neyman and Pearson 1933 (the likelihood-ratio test is optimal); docs/proofs/divergences.md.
    """
    d = validate.array("distance", distance, at_least=0, remedy=_DISTANCE)
    variation = np.minimum(up(special.erf(d / math.sqrt(8.0)), relative=SPECIAL), 1.0)
    return np.where(d < 1e-290, d, variation)[()]  # erf(x/√8) < x, and subnormal numbers have no relative error


@at_most
def gaussian_delta(epsilon: float, *, distance: float) -> float:
    r"""The least δ for which the two releases are (ε, δ)-indistinguishable, in both directions.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) = Φ(d/2 − ε/d) − exp(ε) Φ(−d/2 − ε/d).

    Assumptions. Noise N(0, σ²I) (caller); epsilon ≥ 0, distance ≥ 0, both finite (checked).

    Direction. Exact, rounded up, at most 1; the rounding adds about 1e-9 of Φ(d/2 − ε/d), more for large d or ε, and
    where its errors cannot be kept below a tenth the result is 1.

    References
    ----------
    Balle and Wang 2018, arXiv:1805.06530v2, Theorem 8.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, remedy="use 0 for total variation")
    d = validate.number("distance", distance, at_least=0, remedy=_DISTANCE)
    if d == 0:
        return 0.0
    first, second = d / 2 - epsilon / d, -d / 2 - epsilon / d
    # What rounding may have done to either argument, and through it to log Φ, whose slope is at most |x| + 1.
    argument_error = 4 * np.finfo(float).eps * (d + epsilon / d)
    if first + argument_error < -40:
        return 5e-324  # Φ(−40) < 4e-350 lies below the smallest float
    log_first, log_second = float(special.log_ndtr(first)), float(special.log_ndtr(second))
    error = (
        LOG_NDTR * (1 - log_first - log_second)
        + argument_error * (2 + abs(first) + abs(second))
        + 4 * np.finfo(float).eps * (1 + epsilon)
    )
    if not error < 0.1:
        return 1.0
    likely = math.exp(log_first) * (1 + 2 * error)
    unlikely = math.exp(epsilon + log_second) * (1 - 2 * error)
    return min(1.0, max(0.0, up(likely - unlikely, relative=LIBRARY)))


@at_most
def gaussian_epsilon(delta: float, *, distance: float) -> float:
    r"""The least ε for which the two releases are (ε, δ)-indistinguishable.

    Parameters
    ----------
    delta
        The δ of (ε, δ)-indistinguishability.
    distance
        The distance d between the two releases, in units of σ.

    Returns
    -------
    float
        An upper bound on the least ε.

    Notes
    -----
    Statement. inf{ε ≥ 0 : δ(ε) ≤ delta}, with δ(ε) of `gaussian_delta`.

    Assumptions. Noise N(0, σ²I) (caller); delta in (0, 1), distance ≥ 0 and finite (checked).

    Direction. Rounded up: the ε returned was itself checked with `gaussian_delta`, and δ(ε) falls with ε.

    References
    ----------
    Balle and Wang 2018, arXiv:1805.06530v2, Theorem 8.
    """
    delta = validate.probability("delta", delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    d = validate.number("distance", distance, at_least=0, remedy=_DISTANCE)
    # Beyond this ε the first term alone, Φ(d/2 − ε/d) ≤ exp(−(ε/d − d/2)²/2), lies below delta.
    enough = d * d / 2 + d * math.sqrt(-2 * math.log(delta)) + 1
    if not math.isfinite(enough):
        raise InputError("distance", distance, requirement="must be below 1e150", remedy=_DISTANCE)
    return last_true(lambda epsilon: gaussian_delta(epsilon, distance=d) <= delta, holds=enough, fails=0.0)


@at_most
def laplace_chi_square(shift: ArrayLike, *, scale: float) -> NDArray[np.float64]:
    r"""The chi-square divergence for independent Laplace noise; one row of feature shifts per release.

    Parameters
    ----------
    shift
        How far each feature moves: one row for each release.
    scale
        The scale b of the noise.

    Returns
    -------
    ndarray
        An upper bound on χ² for each row.

    Notes
    -----
    Statement. 1 + χ² = Π (⅔ exp(u) + ⅓ exp(−2u)), u = |z_j|/b over the features j.

    Assumptions. Independent Laplace noise of scale b in every feature (caller); finite shifts, scale > 0 (checked).

    Direction. Exact, rounded up; inf where it exceeds float64, and exactly 0 where no feature moves.

    References
    ----------
    docs/proofs/divergences.md.
    """
    z, b = _product_shift(shift, "scale", scale)
    u = up(np.abs(z) / b)
    with np.errstate(over="ignore", invalid="ignore"):
        # One factor less 1 is ⅓ exp(−2u) expm1(u)² (2 exp(u) + 1): no cancellation.
        factor = np.exp(-2 * u) * np.expm1(u) ** 2 * (2 * np.exp(u) + 1) / 3
        # Beyond u = 300 the pieces overflow; ⅔ exp(u) + ⅓ exp(−2u) < exp(u) bounds the logarithm there.
        logs = up(np.where(u < 300, np.log1p(factor), u), relative=1e-12)
        chi_square = up(np.expm1(up(np.sum(logs, axis=-1), relative=1e-12)), relative=1e-12)
    return np.where((z == 0).all(axis=-1), 0.0, chi_square)[()]


@at_most
def laplace_total_variation(shift: ArrayLike, *, scale: float) -> NDArray[np.float64]:
    r"""An upper bound on the total variation for independent Laplace noise; one row of feature shifts per release.

    Parameters
    ----------
    shift
        How far each feature moves: one row for each release.
    scale
        The scale b of the noise.

    Returns
    -------
    ndarray
        An upper bound on TV for each row.

    Notes
    -----
    Statement. TV ≤ min(1 − Π exp(−u/2), √(1 − A²)), A = Π (1 + u/2) exp(−u/2), u = |z_j|/b over the features j; the
    first is exact for one feature.

    Assumptions. Independent Laplace noise of scale b in every feature (caller); finite shifts, scale > 0 (checked).

    Direction. An upper bound, rounded up, at most 1, and exactly 0 where no feature moves.

    References
    ----------
    docs/proofs/divergences.md.
    """
    z, b = _product_shift(shift, "scale", scale)
    u = up(np.abs(z) / b)
    coupled = up(-np.expm1(-up(np.sum(u, axis=-1) / 2, relative=1e-12)), relative=1e-12)
    # −2 ln A = Σ (u − 2 log1p(u/2)); the two nearly cancel for small u, where the sum is below u²/4.
    loss = np.where(u < 1e-3, u * u / 4, u - 2 * np.log1p(u / 2) + 1e-12 * u)
    hellinger = up(np.sqrt(-np.expm1(-up(np.sum(loss, axis=-1), relative=1e-12))), relative=1e-12)
    return np.where((z == 0).all(axis=-1), 0.0, np.minimum(np.minimum(coupled, hellinger), 1.0))[()]


@at_most
def uniform_total_variation(shift: ArrayLike, *, width: float) -> NDArray[np.float64]:
    r"""The total variation for independent uniform noise of the given width; one row of feature shifts per release.

    Parameters
    ----------
    shift
        How far each feature moves: one row for each release.
    width
        The width w of the noise.

    Returns
    -------
    ndarray
        An upper bound on TV for each row.

    Notes
    -----
    Statement. TV = 1 − Π max(0, 1 − |z_j|/w) over the features j.

    Assumptions. Independent uniform noise of width w in every feature (caller); finite shifts, width > 0 (checked).

    Direction. Exact, rounded up, at most 1, and exactly 0 where no feature moves.

    References
    ----------
    docs/proofs/divergences.md.
    """
    z, w = _product_shift(shift, "width", width)
    u = np.minimum(up(np.abs(z) / w), 1.0)
    with np.errstate(divide="ignore"):
        log_overlap = np.sum(np.log1p(-u), axis=-1)
    variation = np.minimum(up(-np.expm1(log_overlap), relative=1e-12), 1.0)
    return np.where((z == 0).all(axis=-1), 0.0, variation)[()]


@at_least
def repeated_scale(releases: int) -> float:
    r"""The factor by which repeated releases shrink Gaussian noise: n of them tell as much as one with σ/√n.

    Parameters
    ----------
    releases
        How often n the same features are released, each time with fresh noise.

    Returns
    -------
    float
        A lower bound on 1/√n: less noise hides less, so every bound from it holds.

    Notes
    -----
    Statement. Repeated releases a + Z₁, …, a + Z_n with independent noise of one density are one release of n copies of
    the features a, side by side, with that noise in each. If the noise is N(0, Σ), their mean tells everything that
    they tell together: it is one release a + Z with noise N(0, Σ/n).

    Assumptions. The noise is fresh each time (caller); releases ≥ 1 (checked).

    Direction. Exact, rounded down; 1 for one release.

    References
    ----------
    Fisher 1922 (the mean is sufficient); docs/proofs/divergences.md.
    """
    count = validate.whole("releases", releases, at_least=1, remedy="use 1 where each input is released once")
    return 1.0 if count == 1 else down(1 / math.sqrt(count), relative=LIBRARY)


def _product_shift(shift: ArrayLike, name: str, size: float) -> tuple[NDArray[np.float64], float]:
    z = np.atleast_1d(validate.array("shift", shift, remedy="pass the features' shift, one row per release"))
    return z, validate.number(name, size, above=0, remedy=f"give the {name} of the noise")
