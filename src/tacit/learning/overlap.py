"""Find private records in a table that is taken for public, and tell them from rows that are equal by chance.

Honest tables may share rows, as values may be few or rounded. If both were drawn from one population, chance would
decide whether equal rows are in one table or in both: k of them, of n + m rows in all, lie in both with probability
1 − (C(n, k) + C(m, k)) / C(n + m, k). So groups of k equal rows are counted for every k, and where far more lie in both
than chance puts there, one table holds rows of the other. Tables that hold no row twice may have been rid of those: of
them, less than a hundredth of the rows of each may be shared, or any number if columns hold so few values that most
possible rows occur. What is found depends on private records: it is shown to their owner in an error, and nowhere else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln

from ..core.errors import InputError
from ..core.guarantee import Assumption
from .columns import numbers, texts

_CHANCE = 1e-4
"""Tables drawn from one population are refused with at most this probability by each of three comparisons."""
_SHARE = 0.01
"""The share of common rows allowed in tables without repeated rows, from which these may have been removed."""
_CELLS = 10
"""If columns allow fewer different rows than this many times the rows there are, tables without repeated rows share
some rows by chance."""
_Numbers = NDArray[np.uint64]

REMEDY = "set some aside; `allow_overlap=True` takes them, and private records among them lose protection"
"""The remedy in functions that take public records."""

ALLOWED = Assumption(
    text="private records that are also among public or test records, or those of a model that proposes labels, are "
    "not protected: such records were allowed, and nothing was done to find them",
    checked_by="caller",
)


def require_other_rows(
    name: str, rows: Any, private: Any, *, called: str, remedy: str, unlimited: Collection[str] = ()
) -> None:
    """Raise `InputError` if more rows of `private` are in `rows` than chance allows; both are arrays, or tables.

    Columns of tables are matched by their names and, in case these were exchanged, by their values alone; then each
    column is left out in turn, as one may number the rows or name the file. Numbers are compared as 32-bit floats, so
    that the format of a file makes no difference. Columns of `unlimited`, such as whole texts, have so many possible
    values that none is shared by chance.
    """
    columns, ours = _columns(rows), _columns(private)
    beyond = [place for place, column in enumerate(sorted(rows)) if column in unlimited] if unlimited else []
    places = range(len(columns))
    whole = _sum(columns, places), _sum(ours, places)
    deduplicated = [len(np.unique(table)) == len(table) for table in whole]

    def compared(theirs: _Numbers, private: _Numbers, held: Iterable[int], tests: int = 1) -> None:
        shared = _shared(theirs, private, deduplicated=deduplicated, tests=tests)
        if not shared:
            return
        held = list(held)
        cells = math.prod(float(len(np.union1d(columns[place], ours[place]))) for place in held)
        if set(beyond) & set(held):
            cells = math.inf
        if any(deduplicated) and cells < _CELLS * (len(theirs) + len(private)):
            return
        raise InputError(
            name,
            f"{shared} rows, of {len(theirs)}, that are private records",
            requirement=f"must hold other records than {called}",
            remedy=remedy,
        )

    compared(*whole, places)
    if isinstance(rows, Mapping):
        compared(_sum(columns, [0] * len(places)), _sum(ours, [0] * len(places)), places)
    for half, rest in ((places[::2], places[1::2]), (places[1::2], places[::2])):
        # Rows that are equal but for a column of one half are equal in the other half: most often, there are none.
        theirs, mine = (_sum([table[place] for place in rest], rest) for table in (columns, ours))
        for place in half if rest and len(np.intersect1d(theirs, mine)) else ():
            theirs, mine = (
                sums - _mixed(table[place], place) for sums, table in zip(whole, (columns, ours), strict=True)
            )
            compared(theirs, mine, [other for other in places if other != place], tests=len(places))


def row_numbers(rows: NDArray[np.float64]) -> _Numbers:
    """A number for each row: equal ones for rows with equal entries."""
    columns = _columns(rows)
    return _sum(columns, range(len(columns)))


def _sum(columns: Sequence[_Numbers], places: Iterable[int]) -> _Numbers:
    """A number for each row: equal ones for rows with equal entries in equal places."""
    found: _Numbers = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
    for column, place in zip(columns, places, strict=True):
        found += _mixed(column, place)
    return found


def _shared(rows: _Numbers, private: _Numbers, *, deduplicated: Sequence[bool], tests: int) -> int:
    """How many of `rows` stand among the private ones, or 0 where that may be chance."""
    m, n = len(rows), len(private)
    both = np.intersect1d(rows, private)
    if not len(both):
        return 0
    found, places = np.unique(np.concatenate([rows, private]), return_inverse=True)
    theirs, ours = (np.bincount(part, minlength=len(found)) for part in (places[:m], places[m:]))
    split, every = (theirs > 0) & (ours > 0), theirs + ours
    if all(deduplicated) and theirs[split].sum() < _SHARE * m and ours[split].sum() < _SHARE * n:
        return 0
    sizes, groups = np.unique(every[every > 1], return_counts=True)
    divided = np.array([np.count_nonzero(split & (every == size)) for size in sizes])
    chance = 1 - _ratio(n, n + m, sizes) - _ratio(m, n + m, sizes)
    beyond = stats.binom.sf(divided - 1, groups, np.clip(chance, 0, 1)) < _CHANCE / (len(sizes) * tests)
    return int(theirs[split].sum()) if beyond.any() else 0


def _ratio(few: int, many: int, size: NDArray[np.int64]) -> NDArray[np.float64]:
    """C(few, size) / C(many, size)."""
    fits = size <= few
    k = np.where(fits, size, 0)
    logs = gammaln(few + 1) - gammaln(few - k + 1) - gammaln(many + 1) + gammaln(many - k + 1)
    return np.where(fits, np.exp(logs), 0.0)


def _columns(rows: Any) -> list[_Numbers]:
    """A number for each entry of each column: equal ones for equal entries."""
    if not isinstance(rows, Mapping):
        flat = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
        return [_plain(column).view(np.uint32).astype(np.uint64) for column in flat.T]
    found = []
    for name in sorted(rows):
        values = _plain(numbers(rows[name]))
        entries = values.view(np.uint32).astype(np.uint64)
        if rows[name].dtype.kind not in "iuf":
            said = texts(rows[name])
            for row in np.flatnonzero(np.isnan(values)).tolist():
                if said[row] is not None:
                    word = str(said[row]).encode("utf-8", "surrogatepass")
                    entries[row] = int.from_bytes(hashlib.blake2b(word, digest_size=8).digest())
        found.append(entries)
    return found


def _mixed(entries: NDArray[Any], place: int) -> _Numbers:
    """Spread over 64 bits, for each column otherwise, so that the sum over columns tells rows apart (splitmix64)."""
    found: _Numbers = entries.astype(np.uint64) + np.uint64((place + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return found ^ (found >> np.uint64(31))


def _plain(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Numbers as their bytes are compared: one zero, one nan, and no more digits than 32 bits hold."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(values + 0.0, dtype=np.float32)
    found[np.isnan(found)] = np.nan
    return found
