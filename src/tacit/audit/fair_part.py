"""Rows of two classes of fixed sizes, drawn so that every secret is a fair coin.

The draw uses nothing but `random.Random(seed).random()`, whose numbers are the same in all versions of Python, so that
a checker can draw the same rows.
"""

from __future__ import annotations

import hashlib
import math
import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Counts = NDArray[np.int64]

AGAIN = 1 / 200
"""Of the failure probability: what a limit may use where the coins had to be tossed again."""

_BITS = 53  # in each random number
_AT_ONCE = 2**20


class _Numbers:
    """The numbers that `random.Random(seed).random()` gives one after another, many at once."""

    def __init__(self, seed: int) -> None:
        *state, position = random.Random(seed).getstate()[1]  # noqa: S311
        self._source = np.random.RandomState()
        self._source.set_state(("MT19937", np.array(state, dtype=np.uint32), position, 0, 0.0))
        self._left: NDArray[np.float64] = np.zeros(0)

    def take(self, count: int) -> NDArray[np.float64]:
        more = self._source.random_sample(max(0, count - len(self._left)))
        found, self._left = np.concatenate([self._left[:count], more]), self._left[count:]
        return found

    def give_back(self, numbers: NDArray[np.float64]) -> None:
        self._left = np.concatenate([numbers, self._left])


def seed_of(positive: _Counts, negative: _Counts) -> int:
    """The seed of the draw from these counts: 39 bits of their SHA-256, so that nobody can try several.

    The order of outputs does not matter.
    """
    order = np.lexsort((negative, positive))
    cells = np.column_stack([positive[order], negative[order]]).astype(">i8")
    return int.from_bytes(hashlib.sha256(cells.tobytes()).digest()[:5], "big") >> 1


class FairPart(NamedTuple):
    """The counts of the rows drawn, by output, and whether the coins had to be tossed again."""

    positive: _Counts
    negative: _Counts
    again: bool


def fair_part(positive: _Counts, negative: _Counts, *, seed: int) -> FairPart | None:
    """Draw rows such that each came with either secret as by a fair coin, independently of the outputs.

    Coins that ask a class for more rows than it has are tossed again, all of them.

    Parameters
    ----------
    positive, negative
        How often each output came with each secret.
    seed
        Of the draw.

    Returns
    -------
    The counts of the rows drawn, by output in ascending order of (positive, negative); None where a class has too few
    rows to toss any coins.
    """
    ones, zeros = int(positive.sum()), int(negative.sum())
    least = min(ones, zeros)
    # A class may exceed half of the rows by 2.6 standard deviations: that either does has probability 0.01 or so, and
    # at most 2·exp(−3.38) = 0.07.
    rows = 2 * least - math.isqrt(1352 * least // 100) - 1
    if rows < 1:
        return None
    numbers = _Numbers(seed)
    heads, again = _coins(rows, numbers), False
    while heads > ones or rows - heads > zeros:
        heads, again = _coins(rows, numbers), True
    order = np.lexsort((negative, positive))  # whatever order rows came in
    return FairPart(_drawn(positive[order], heads, numbers), _drawn(negative[order], rows - heads, numbers), again)


def _coins(count: int, numbers: _Numbers) -> int:
    """How many of so many fair coins show heads."""
    heads = 0
    for start in range(0, count, _AT_ONCE * _BITS):
        left = min(count - start, _AT_ONCE * _BITS)
        bits = (numbers.take(-(-left // _BITS)) * 2.0**_BITS).astype(np.int64)
        bits[-1] >>= -left % _BITS
        heads += int(np.unpackbits(bits.view(np.uint8)).sum())
    return heads


def _drawn(counts: _Counts, wanted: int, numbers: _Numbers) -> _Counts:
    """The counts of so many rows, drawn without replacement: those picked, or those left, whichever are fewer."""
    ends = np.cumsum(counts)
    total = int(ends[-1])
    few, values = min(wanted, total - wanted), 2.0 ** total.bit_length()
    picked: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    while len(picked) < few:
        found = numbers.take(2 * (few - len(picked)) + 64)
        places = (found * values).astype(np.int64)
        there = np.flatnonzero(places < total)
        seen = np.concatenate([picked, places[there]])
        first = np.sort(np.unique(seen, return_index=True)[1])[:few]
        if len(first) == few:
            numbers.give_back(found[there[first[-1] - len(picked)] + 1 :])
        picked = seen[first]
    taken = np.bincount(np.searchsorted(ends, picked, side="right"), minlength=len(counts)).astype(np.int64)
    return taken if few == wanted else counts - taken
