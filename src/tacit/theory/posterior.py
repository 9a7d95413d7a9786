"""What chains that start at the true input prove about everyone's error (docs/proofs/posterior.md).

A *star* is the true input and K rivals. From the input, s steps of Markov chains that are reversible with respect to
the law of the input given its release lead to a middle point; from there the same steps in reverse order lead, K times
independently, to the rivals. Given the release and the middle, all K + 1 points are independent draws from one law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import at_least, at_most, down, up
from .confidence import sampled_mean_lower, sampled_mean_upper

_FAILURE = "use a small probability such as 0.001"


@at_least
def posterior_mse(
    values: ArrayLike,
    *,
    most: float,
    radius: float,
    failure_probability: float,
    release_variation: float = 0.0,
    chain_variation: float = 0.0,
    keep: list[NDArray[np.float64]] | None = None,
) -> float:
    r"""Least mean squared error of anyone who estimates features φ(X) of an input X from its release.

    Parameters
    ----------
    values
        One number a star: the mean of ½‖φ(x) − φ(x′)‖² over all pairs of its points. Pairs with a point outside the
        ball count as 0.
    most
        Values are cut off here. It must be chosen without looking at these stars.
    radius
        Of the ball: it holds the points whose φ lies within this distance of a fixed centre, and whose release is
        computed to within `release_variation`. It must be chosen without looking at these stars.
    failure_probability
        The chance with which the result may be too large.
    release_variation
        Greatest total variation, over points in the ball, of the true release from the computed one.
    chain_variation
        Total variation of the law of the computed stars from that of exact ones.
    keep
        A list to which the numbers are appended whose mean is limited: what a certificate states.

    Returns
    -------
    float
        The bound, in units of ‖φ‖²; 0 where nothing is proven.

    Notes
    -----
    Statement. E‖T − φ(X)‖² ≥ B (L − c) − 4R²t for every estimate T made from the release, except with probability
    failure_probability, where L is the lower confidence limit for the expectation of min(value, B)/B, B = most,
    R = radius, t = release_variation and c = chain_variation. Without the two payments, the expectation of the values
    is E Var(φ(X) | release, middle), at most E Var(φ(X) | release), which is the error of the best estimate.

    Assumptions. The stars are independent and made as this module says, from kernels that never look at the input
    (caller); release_variation and chain_variation are no less than the true ones (caller); values are not negative
    (checked).

    Direction. Never too large in expectation, and exact as the number of steps grows if the chain is ergodic and has
    no period; rounded down.

    References
    ----------
    docs/proofs/posterior.md; the star is Besag and Clifford 1989, doi:10.1093/biomet/76.4.633; `sampled_mean_lower`.
    """
    found = validate.array("values", values, at_least=0, dimensions=1, remedy="pass one number a star")
    ceiling = validate.number("most", most, above=0, remedy="use three times the mean of pilot stars")
    reach = validate.number("radius", radius, at_least=0, remedy="choose it on pilot stars")
    failure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    released, chained = _variations(release_variation, chain_variation)
    shares = np.clip(down(np.minimum(found, ceiling) / ceiling), 0.0, 1.0)
    if keep is not None:
        keep.append(shares)
    limit = sampled_mean_lower(shares, failure_probability=failure)
    paid = up(up(4 * reach * reach * released, relative=1e-15) + up(ceiling * chained))
    return max(down(down(ceiling * limit) - paid), 0.0)


@at_most
def attribute_success(
    labels: ArrayLike,
    *,
    inside: ArrayLike | None = None,
    failure_probability: float,
    release_variation: float = 0.0,
    chain_variation: float = 0.0,
) -> float:
    r"""Greatest probability with which anyone names an attribute of an input from its release.

    Parameters
    ----------
    labels
        The attribute of each point, as a whole number; one row per star, its K + 1 points as columns.
    inside
        Which points have a release that is computed to within `release_variation`; all, unless given.
    failure_probability
        The chance with which the result may be too small.
    release_variation
        Greatest total variation, over points inside, of the true release from the computed one.
    chain_variation
        Total variation of the law of the computed stars from that of exact ones.

    Returns
    -------
    float
        The bound, at most 1.

    Notes
    -----
    Statement. P(guess = a(X)) ≤ U + t + c for every guess made from the release, except with probability
    failure_probability, where U is the upper confidence limit for the expectation of the greatest share of a star's
    points that have one attribute; points outside count for every attribute. t = release_variation,
    c = chain_variation.

    Assumptions. The stars are independent and made as this module says, from kernels that never look at the input
    (caller); release_variation and chain_variation are no less than the true ones (caller).

    Direction. Never too small in expectation, and exact as the numbers of steps and of rivals grow if the chain is
    ergodic and has no period; rounded up.

    References
    ----------
    docs/proofs/posterior.md; Besag and Clifford 1989, doi:10.1093/biomet/76.4.633; `sampled_mean_upper`.
    """
    named = validate.array("labels", labels, dimensions=2, remedy="pass one star a row")
    counted = _inside(inside, named.shape)
    alike = (named[:, :, None] == named[:, None, :]) & counted[:, :, None] & counted[:, None, :]
    return _limit(_most(alike, counted), named.shape[1], failure_probability, release_variation, chain_variation)


@at_most
def radius_success(
    distances: ArrayLike,
    *,
    radius: float,
    inside: ArrayLike | None = None,
    failure_probability: float,
    release_variation: float = 0.0,
    chain_variation: float = 0.0,
) -> float:
    r"""Greatest probability with which anyone comes within a radius of an input, from its release.

    Parameters
    ----------
    distances
        For each star the distances between its K + 1 points, of shape (stars, K + 1, K + 1), each no greater than the
        exact one.
    radius
        How near a guess must come to count as a success.
    inside
        Which points have a release that is computed to within `release_variation`; all, unless given.
    failure_probability
        The chance with which the result may be too small.
    release_variation
        Greatest total variation, over points inside, of the true release from the computed one.
    chain_variation
        Total variation of the law of the computed stars from that of exact ones.

    Returns
    -------
    float
        The bound, at most 1.

    Notes
    -----
    Statement. P(d(guess, X) ≤ τ) ≤ U + t + c for every guess made from the release, except with probability
    failure_probability, where U is the upper confidence limit for the expectation, over stars, of the greatest share
    of its points that lie within 2τ of one of them; points outside count for every guess. τ = radius,
    t = release_variation, c = chain_variation.

    Assumptions. d is a metric (caller); the stars are independent and made as this module says, from kernels that
    never look at the input (caller); release_variation and chain_variation are no less than the true ones (caller).

    Direction. Too large by what the doubled radius adds, and by 1/(K + 1) at most where all points are apart; rounded
    up.

    References
    ----------
    docs/proofs/posterior.md; Besag and Clifford 1989, doi:10.1093/biomet/76.4.633; `sampled_mean_upper`.
    """
    apart = validate.array("distances", distances, at_least=0, dimensions=3, remedy="pass a square matrix a star")
    if apart.shape[1] != apart.shape[2]:
        raise InputError(
            "the shape of distances", apart.shape, requirement="must be (stars, K + 1, K + 1)", remedy="pass all pairs"
        )
    reach = up(2 * validate.number("radius", radius, at_least=0, remedy="give a distance"))
    counted = _inside(inside, apart.shape[:2])
    near = (apart <= reach) & counted[:, :, None] & counted[:, None, :]
    return _limit(_most(near, counted), apart.shape[1], failure_probability, release_variation, chain_variation)


@at_most
def restored_share(
    words: ArrayLike,
    *,
    lengths: ArrayLike,
    inside: ArrayLike | None = None,
    failure_probability: float,
    release_variation: float = 0.0,
    chain_variation: float = 0.0,
) -> float:
    r"""Greatest expected share of the words of a text that anyone restores from its release, each at its place.

    Parameters
    ----------
    words
        Whole numbers of shape (stars, K + 1, places); a star's points have one length, and what stands after it is
        not read.
    lengths
        The number of words of each star's texts.
    inside
        Which points have a release that is computed to within `release_variation`; all, unless given.
    failure_probability
        The chance with which the result may be too small.
    release_variation
        Greatest total variation, over points inside, of the true release from the computed one.
    chain_variation
        Total variation of the law of the computed stars from that of exact ones.

    Returns
    -------
    float
        The bound, at most 1.

    Notes
    -----
    Statement. The expected share of places at which a guess has the word of X is at most U + t + c for every guess made
    from the release and the length, except with probability failure_probability, where U is the upper confidence limit
    for the expectation of the mean, over places, of the greatest share of a star's points that have one word there;
    points outside count for every word. t = release_variation, c = chain_variation.

    Assumptions. The stars are independent and made as this module says, from kernels that never look at the input and
    keep its length (caller); release_variation and chain_variation are no less than the true ones (caller).

    Direction. Never too small in expectation, and exact as the numbers of steps and of rivals grow if the chain is
    ergodic, for texts of each length, and has no period; rounded up.

    References
    ----------
    docs/proofs/posterior.md; Besag and Clifford 1989, doi:10.1093/biomet/76.4.633; `sampled_mean_upper`.
    """
    found = validate.array("words", words, dimensions=3, remedy="pass one star a row, one point a column")
    counted = _inside(inside, found.shape[:2])
    until = validate.array("lengths", lengths, at_least=1, dimensions=1, remedy="pass the number of words of each star")
    if until.shape != found.shape[:1] or (until > found.shape[2]).any():
        raise InputError(
            "lengths",
            f"{until.shape}, up to {until.max():g}",
            requirement=f"must be {found.shape[0]} numbers of at most {found.shape[2]}",
            remedy="pass the number of words of each star",
        )
    used = np.arange(found.shape[2]) < until[:, None]
    alike = (found[:, :, None, :] == found[:, None, :, :]) & (counted[:, :, None] & counted[:, None, :])[..., None]
    most = alike.sum(axis=2).max(axis=1) + (~counted).sum(axis=1)[:, None]
    mean = (most * used).sum(axis=1) / until
    return _limit(mean, found.shape[1], failure_probability, release_variation, chain_variation)


def _most(together: NDArray[np.bool_], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Star by star, the greatest number of points that one guess gets right."""
    found: NDArray[np.float64] = together.sum(axis=2).max(axis=1) + (~inside).sum(axis=1)
    return found


def _limit(
    most: NDArray[np.float64],
    points: int,
    failure_probability: object,
    release_variation: object,
    chain_variation: object,
) -> float:
    """The limit for the chance of success, from the greatest number of points that are guessed right, star by star."""
    failure = validate.probability("failure_probability", failure_probability, remedy=_FAILURE)
    released, chained = _variations(release_variation, chain_variation)
    # No share is below 1/(K + 1): what lies above it is what varies.
    least = 1 / points
    above = np.clip(up((most - 1) / max(points - 1, 1)), 0.0, 1.0)
    limit = sampled_mean_upper(above, failure_probability=failure)
    share = up(up(least) + up((1 - down(least)) * limit))
    return min(up(share + up(released + chained)), 1.0)


def _inside(inside: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if inside is None:
        return np.ones(shape, dtype=bool)
    found = np.asarray(inside)
    if found.dtype != bool or found.shape != shape:
        raise InputError(
            "inside",
            f"{found.dtype} of shape {found.shape}",
            requirement=f"must be true or false for each point, of shape {shape}",
            remedy="leave it out where all points count",
        )
    return found


def _variations(release_variation: object, chain_variation: object) -> tuple[float, float]:
    return tuple(  # type: ignore[return-value]
        validate.number(name, value, at_least=0, at_most=1, remedy="pass a total variation")
        for name, value in (("release_variation", release_variation), ("chain_variation", chain_variation))
    )
