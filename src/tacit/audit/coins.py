"""Whether a table of who was used in which training can have come from fair and independent coins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FALSE_ALARM = 1e-6
"""The chance that coins which are fair and independent are refused."""
_TESTS = 6
_AT_ONCE = 512  # records whose pairs are counted together


def contradiction(inside: NDArray[np.bool_]) -> str:
    """What shows that memberships, models × records, were no fair and independent coins; nothing if nothing does.

    Seen are shares that are too far from a half, shares that are a half too often (where exactly half of the models, or
    of the records, were taken), and pairs of models or of records that agree too often or too rarely.
    """
    from scipy import stats  # takes a second to import

    level = FALSE_ALARM / _TESTS
    for of, trained, others, table in (
        ("record", "was in the training data of", "models", inside.T),
        ("model", "was trained on", "records", inside),
    ):
        rows, tosses = table.shape
        counts = table.sum(axis=1)
        far = int(np.argmax(np.abs(2 * counts - tosses)))
        if _chance(int(counts[far]), tosses) * rows <= level:
            return f"a {of} that {trained} {counts[far]} of {tosses} {others}"
        even = int((np.abs(2 * counts - tosses) <= 1).sum())
        share = 1 - 2 * float(stats.binom.cdf((tosses - 2) // 2, tosses, 0.5))
        if float(stats.binom.sf(even - 1, rows, share)) <= level:
            return f"{even} of {rows} {of}s that {trained.replace('was', 'were')} exactly half of the {others}"
    for of, others, table in (("models", "records", inside), ("records", "models", inside.T)):
        rows, tosses = table.shape
        agreed = _extreme_pair(table)
        if rows > 1 and _chance(agreed, tosses) * rows * (rows - 1) / 2 <= level:
            return f"two {of} whose memberships are the same in {agreed} of {tosses} {others}"
    return ""


def _chance(count: int, tosses: int) -> float:
    """The chance that a fair coin is as far from its mean."""
    from scipy import stats

    return min(1.0, 2 * float(stats.binom.sf(max(count, tosses - count) - 1, tosses, 0.5)))


def _extreme_pair(table: NDArray[np.bool_]) -> int:
    """How often the two rows agree whose agreement is farthest from a half."""
    rows, tosses = table.shape
    signs = np.where(table, 1.0, -1.0).astype(np.float32)  # sums of whole numbers below 2**24 are exact
    best = 0.0
    for start in range(0, rows, _AT_ONCE):
        found = signs[start : start + _AT_ONCE] @ signs.T
        found[np.arange(len(found)), np.arange(start, start + len(found))] = 0
        best = max(best, float(found.ravel()[np.argmax(np.abs(found))]), key=abs)
    return int(tosses + best) // 2
