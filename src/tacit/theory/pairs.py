r"""An upper confidence limit for v from pairs of rows with the same output, without a bias by the number of outputs.

The secret S = ±1 is a fair coin, T the output, η = E[S|T], v = E η². The plug-in of v compares each row with itself,
too, and is too large by about the number of different outputs divided by the number of rows. Here only pairs of
different rows count. Proofs: docs/proofs/pairs.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, down, up

RATES = np.geomspace(1e-6, 4.0, 300)
"""The λ that are tried. They do not depend on the table."""

SPAN = 1.0
"""The largest μ√(nv) that is tried, which costs ln(1 + SPAN/2) of the logarithm of the failure probability."""

_REACH = 12  # standard deviations of a sum of signs; beyond lies less than 2e-31 of it
_AT_ONCE = 2**20
_STEPS = 64 * LIBRARY
_COUNTS = "count how often each output came with each secret"


@at_most
def squared_pairwise(positive: ArrayLike, negative: ArrayLike, *, failure_probability: float) -> float:
    r"""An upper confidence limit for v, from pairs of rows with the same output.

    Parameters
    ----------
    positive
        How often each output came with the first secret.
    negative
        How often it came with the second, in the same order.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for v.

    Notes
    -----
    Statement. n_t rows have output t and signs whose sum is s_t; Q = Σ (s_t² − n_t)/(n_t − 1) over outputs with two
    rows or more, or 0 if that is negative; N₁ outputs have one row. For each λ: Z_m = E exp(−λ(s² − m)/(m − 1)), where
    s is a sum of m fair signs, and μ is at most ½(1 − E[s² exp(−λ(s² − m)/(m − 1))]/(m Z_m)) for every size m = n_t ≥
    2. A value w of v is excluded if some λ has μ√(nw) ≤ 1 and −n ln(1 − w(1 − e^(−μ))) > λQ + Σ ln Z_(n_t) + μN₁ +
    ln(3/(2α)). P(limit < v) ≤ α, where the limit is the largest w that is not excluded.

    Assumptions. Rows are independent pairs, and every secret is a fair coin (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/pairs.md, `squared_pairwise`.
    """
    signs, sizes = _signs(positive, negative)
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    rows = float(sizes.sum())
    several = sizes > 1
    terms = (signs[several] ** 2 - sizes[several]) / (sizes[several] - 1)
    pairs = max(0.0, math.fsum(terms) + 1e-15 * math.fsum(np.abs(terms)))
    moments, slopes = np.zeros(len(RATES)), np.full(len(RATES), np.inf)
    for size, count in zip(*np.unique(sizes[several], return_counts=True), strict=True):
        of_size = _tilted(int(size))
        moments, slopes = moments + count * of_size[0], np.minimum(slopes, of_size[1])
    price = up(math.log1p(SPAN / 2) - math.log(failure), relative=_STEPS)
    singles = int((sizes == 1).sum())
    limit = 1.0
    for rate, moment, slope in zip(RATES.tolist(), moments.tolist(), slopes.tolist(), strict=True):
        if not 0 < slope < math.inf:
            continue
        if limit > down(SPAN**2 / (rows * slope**2), relative=_STEPS):
            break  # no larger λ excludes what is just below the limit
        exponent = up((rate * pairs + moment + slope * singles + price) / rows, relative=_STEPS)
        limit = min(limit, up(math.expm1(-exponent) / math.expm1(-slope), relative=_STEPS))
    return limit


def _tilted(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each λ, ln Z of an output with this many rows, rounded up, and the largest μ that it allows, rounded down."""
    sums = np.arange(size % 2, min(size, int(_REACH * math.sqrt(size)) + 2) + 1, 2)
    more = (size + sums[:-1]) // 2  # positive signs
    chances = np.concatenate([[1.0], np.cumprod((size - more) / (more + 1))])  # up to a common factor
    chances[sums > 0] *= 2  # sums of either sign
    squares = sums.astype(np.float64) ** 2
    at_once = max(1, _AT_ONCE // len(sums))
    moments, seconds = [], []
    for start in range(0, len(RATES), at_once):
        weights = np.exp(-np.outer(RATES[start : start + at_once], (squares - size) / (size - 1))) * chances
        totals = weights.sum(axis=1)
        moments.append(totals / chances.sum())
        seconds.append(weights @ squares / totals / size)
    error = 8 * float(np.finfo(float).eps) * (len(sums) + 8) + 1e-12
    return np.log(np.concatenate(moments)) + error, (1 - np.concatenate(seconds) * (1 + error)) / 2 - error


def _signs(positive: object, negative: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum of signs and the number of rows of each output that occurs."""
    counts = []
    for name, values in (("positive", positive), ("negative", negative)):
        found = np.asarray(validate.array(name, values, at_least=0, at_most=2**30, remedy=_COUNTS), dtype=np.float64)
        if found.ndim != 1 or (found != np.floor(found)).any():
            raise InputError(name, "something else", requirement="must be a list of whole numbers", remedy=_COUNTS)
        counts.append(found)
    one, zero = counts
    if len(one) != len(zero) or not (one.sum() + zero.sum()) > 0:
        raise InputError(
            "negative",
            f"{len(zero)} counts",
            requirement=f"must be {len(one)} counts, one row at least",
            remedy=_COUNTS,
        )
    there = one + zero > 0
    return (one - zero)[there], (one + zero)[there]
