"""Rows of two classes of fixed sizes, drawn so that every secret is a fair coin."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_Counts = NDArray[np.int64]

_DEVIATIONS = 2.6
"""By how many standard deviations a class may exceed half of the rows drawn: that neither does has probability 0.99."""

_MOST = 10**9 - 1
"""Rows of a class that NumPy can draw from."""


def fair_part(positive: _Counts, negative: _Counts, *, seed: int) -> tuple[_Counts, _Counts] | None:
    """Draw rows such that each came with either secret as by a fair coin, independently of the outputs.

    Parameters
    ----------
    positive, negative
        How often each output came with each secret.
    seed
        Of the draw.

    Returns
    -------
    The counts of the rows drawn; None where a class has fewer rows than the coins ask for, or too many to draw from.
    """
    ones, zeros = int(positive.sum()), int(negative.sum())
    rows = int(((math.sqrt(_DEVIATIONS**2 + 8 * min(ones, zeros)) - _DEVIATIONS) / 2) ** 2)
    source, order = np.random.default_rng(seed), np.lexsort((negative, positive))  # whatever order rows came in
    heads = int(source.binomial(rows, 0.5))
    if rows < 1 or heads > ones or rows - heads > zeros or max(ones, zeros) > _MOST:
        return None
    drawn = [
        source.multivariate_hypergeometric(counts[order], count, method="marginals")
        for counts, count in ((positive, heads), (negative, rows - heads))
    ]
    return drawn[0], drawn[1]
