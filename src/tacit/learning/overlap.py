"""Private records in a table that is taken for public: found by what rows hold, and told from chance by pairs of rows.

Honest tables may share rows, as values are few or round. But were both drawn from one crowd, equal rows would lie in
one table or in both as chance has it: k of them, of n + m rows in all, lie in both with probability
1 − (C(n, k) + C(m, k)) / C(n + m, k). So pairs, triples and fours of equal rows are counted, and where far more lie in
both than chance puts there, one table holds rows of the other. Tables that hold no row twice may have been rid of
those: of them, less than a hundredth of the rows may be shared. What is found depends on private records: it is for
their owner, in an error, and goes nowhere else.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..errors import InputError
from ..guarantee import Assumption
from .columns import numbers, texts

_CHANCE = 1e-4
"""Tables drawn from one crowd are refused about as rarely as this."""
_SHARE = 0.01
"""Of tables without a row that occurs twice: these may have been rid of such rows, which says nothing about chance."""
_SIZES = (2, 3, 4)
"""How many equal rows are looked at: more of them lie in both tables anyway."""

REMEDY = "set some aside; allow_overlap=True takes them, and private records among them lose protection"
"""Of a function that takes public records."""

ALLOWED = Assumption(
    text="private records that also stand among public records, in a test or with a proposer are not protected: such "
    "records were allowed, and nothing was done to find them (allow_overlap=True or --allow-overlap)",
    checked_by="caller",
)


def require_other_rows(name: str, rows: Any, private: Any, *, called: str, remedy: str) -> None:
    """`InputError` where rows of `private` stand among `rows` beyond chance; both are arrays, or tables of columns.

    Columns of tables are matched by their names and, in case these were exchanged, by their values alone; numbers are
    compared as 32-bit floats, so that the format of a file makes no difference.
    """
    for theirs, ours in zip(_keys(rows), _keys(private), strict=True):
        shared = _shared(theirs, ours)
        if shared:
            raise InputError(
                name,
                f"{shared} rows, of {len(theirs)}, that are private records",
                requirement=f"must hold other records than {called}",
                remedy=remedy,
            )


def _shared(rows: Sequence[bytes], private: Sequence[bytes]) -> int:
    """How many of `rows` stand among the private ones, or 0 where that may be chance."""
    theirs, ours, m, n = Counter(rows), Counter(private), len(rows), len(private)
    both = theirs.keys() & ours.keys()
    shared = sum(theirs[row] for row in both)
    if not shared or (len(theirs) == m and len(ours) == n and shared < _SHARE * m):
        return 0
    split = Counter(theirs[row] + ours[row] for row in both)
    every = Counter((theirs + ours).values())
    for size in _SIZES:
        chance = 1 - (math.comb(n, size) + math.comb(m, size)) / math.comb(n + m, size)
        if stats.binom.sf(split[size] - 1, every[size], chance) < _CHANCE / len(_SIZES):
            return shared
    return 0


def _keys(rows: Any) -> list[list[bytes]]:
    """A short digest of each row; of tables twice, by names and by values alone."""
    if not isinstance(rows, Mapping):
        return [_digests(_plain(np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)), [])]
    names = sorted(rows)
    values = _plain(np.stack([numbers(rows[name]) for name in names], axis=1))
    words = [(name, texts(rows[name])) for name in names if rows[name].dtype.kind not in "iuf"]
    left: list[list[str]] = [[] for _ in values]
    for name, said in words:
        for row in np.flatnonzero(np.isnan(values[:, names.index(name)])).tolist():
            if said[row] is not None:
                left[row].append(f"{name}\0{said[row]}")
    unnamed = [sorted(text.partition("\0")[2] for text in row) for row in left]
    return [_digests(values, left), _digests(np.sort(values, axis=1), unnamed)]


def _plain(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Numbers as their bytes are compared: one zero, one nan, and no more digits than 32 bits hold."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(values + 0.0, dtype=np.float32)
    found[np.isnan(found)] = np.nan
    return found


def _digests(values: NDArray[np.float32], words: Sequence[Sequence[str]]) -> list[bytes]:
    said = ["\1".join(row).encode("utf-8", "surrogatepass") for row in words] or [b""] * len(values)
    return [
        hashlib.blake2b(row.tobytes() + text, digest_size=16).digest() for row, text in zip(values, said, strict=True)
    ]
