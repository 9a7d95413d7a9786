"""Pairs of rows, one of each class, drawn by a digest of the table, so that nobody can try several draws."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from .tally import Tally

MOST_PAIRS = 5000
"""Pairs drawn at most: what is computed from them takes memory that grows with their square."""

_Floats = NDArray[np.float64]


def row_pairs(tally: Tally) -> tuple[_Floats, _Floats]:
    """Draw as many rows of either class, without replacement and in random order.

    The seed is 64 bits of the SHA-256 of the outputs in ascending order with their counts: the order of the table does
    not matter. Other units draw anew; whoever changes them until a draw pleases has a false certificate.

    Parameters
    ----------
    tally
        The counts of more than three columns of numbers.

    Returns
    -------
    The rows of the positive and of the negative class.
    """
    points = tally.points() + 0.0  # −0.0 is 0.0
    order = np.lexsort(points.T[::-1])
    points, counts = points[order], [count[order] for count in tally.counts()]
    digest = hashlib.sha256(points.astype(">f8").tobytes())
    for count in counts:
        digest.update(count.astype(">i8").tobytes())
    source = np.random.default_rng(int.from_bytes(digest.digest()[:8], "big"))
    pairs = min(MOST_PAIRS, *(int(count.sum()) for count in counts))
    ones, zeros = (points[_drawn(count, pairs, source)] for count in counts)
    return ones, zeros


def _drawn(counts: NDArray[np.int64], wanted: int, source: np.random.Generator) -> NDArray[np.int64]:
    ends = np.cumsum(counts)
    picked = source.choice(int(ends[-1]), size=wanted, replace=False)
    return np.searchsorted(ends, picked, side="right")
