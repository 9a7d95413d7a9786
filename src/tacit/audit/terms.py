"""Texts as numbers: their lengths, and how often a few words and strings of letters occur, chosen on rows of their own.

Every text becomes numbers by itself, so that equal texts have equal numbers whatever stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from .columns import column, kind_of

TERMS = 128
"""How many terms are counted in a column's texts: half of them tell most, half are in about every other text."""
LONGEST_STRING = 4
"""Letters of the longest string that is a term; words, and two words in a row, have any length."""
BUCKETS = 2**20
"""Of terms, which are known by the number of their bucket alone."""

_MOST_LETTERS = 100_000  # of a text in which terms are counted; its length is known whole
_LETTERS_AT_ONCE = 2**20
_FEWEST_TEXTS = 5  # with a term, and without it, among those that choose it
_FACTOR, _INVERSE = 0x9E3779B97F4A7C15, 0xF1DE83E19937733D  # odd, and their product is 1 modulo 2**64
_STEP = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)

_Floats = NDArray[np.float64]
_Whole = NDArray[np.int64]
_Columns = list[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Terms:
    """What turns columns, some of which hold texts, into a matrix of numbers.

    Attributes
    ----------
    buckets
        For each column the terms that are counted in its texts, by the ascending numbers of their buckets; None for a
        column of numbers.
    """

    buckets: tuple[_Whole | None, ...]

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(1 if one is None else 2 + len(one) for one in self.buckets)

    @property
    def counted(self) -> int:
        """How many terms are counted in texts."""
        return sum(len(one) for one in self.buckets if one is not None)

    def __call__(self, columns: _Columns) -> _Floats:
        """A number as it is; of a text, how many letters and words it has, and how often each of the terms occurs."""
        if len(columns) != len(self.buckets):
            raise InputError(
                "output",
                f"{len(columns)} columns",
                requirement=f"must have the {len(self.buckets)} columns that the code was made for",
                remedy="pass the columns in the same order",
            )
        blocks = []
        for number, (one, buckets) in enumerate(zip(columns, self.buckets, strict=True)):
            if (one.dtype.kind == "O") != (buckets is not None):
                raise InputError(
                    f"column {number} of output",
                    "numbers" if buckets is not None else "text",
                    requirement=f"must hold {'text' if buckets is not None else 'numbers'}, as where the code was made",
                    remedy="pass the columns in the same order",
                )
            blocks.append(one[:, None].astype(np.float64) if buckets is None else _counts(one.tolist(), buckets))
        return np.concatenate(blocks, axis=1)


def at_rows(vectors: NDArray[Any] | _Columns, rows: NDArray[Any]) -> NDArray[Any] | _Columns:
    """Some rows of a matrix, or of each column."""
    return [one[rows] for one in vectors] if isinstance(vectors, list) else vectors[rows]


def with_texts(name: str, value: Any) -> _Columns | None:
    """The columns of an output in which at least one holds texts, those as Python's own strings; None for any other.

    Parameters
    ----------
    name
        The output in error messages.
    value
        A column of texts, or columns of texts and of numbers: a mapping, a data frame or a two-dimensional array.
    """
    if isinstance(value, str | bytes | np.ma.MaskedArray):
        return None
    named = validate.table(name, value)
    if named is not None:
        held = list(named.items())
    elif getattr(value, "ndim", 1) == 2 and getattr(getattr(value, "dtype", None), "kind", "") in ("O", "U", "T"):
        held = [(place, value[:, place]) for place in range(value.shape[1])]
    else:
        held = [("", value)]
    texts = [_texts(f"column {label!r} of {name}" if label != "" else name, one) for label, one in held]
    if all(one is None for one in texts):
        return None
    pairs = zip(held, texts, strict=True)
    columns = [
        _numbers(f"column {label!r} of {name}", one) if found is None else found for (label, one), found in pairs
    ]
    if len({len(one) for one in columns}) > 1:
        raise InputError(
            name,
            "columns of different lengths",
            requirement="must have a row for each record in all of them",
            remedy="pass columns of one table",
        )
    return columns


def _texts(name: str, value: Any) -> NDArray[Any] | None:
    """A column of texts as objects: NumPy's own text drops NULs, and gives every text the room of the longest."""
    if getattr(getattr(value, "dtype", None), "kind", "O") not in ("O", "U", "T") or hasattr(value, "detach"):
        return None
    listed = next((getattr(value, one) for one in ("tolist", "to_pylist", "to_list") if hasattr(value, one)), None)
    if listed is None and not isinstance(value, list | tuple):
        return None
    entries = list(value) if listed is None else listed()
    kinds = {kind_of(entry) for entry in entries} if isinstance(entries, list | tuple) else set()
    if "text" not in kinds:
        return None
    if "missing" in kinds:
        raise InputError(
            name,
            f"{sum(kind_of(entry) == 'missing' for entry in entries)} missing",
            requirement="must have no missing entry",
            remedy="make it a text of its own, or leave these rows out if missing is unrelated to the secret",
        )
    if kinds != {"text"}:
        raise InputError(
            name, ", ".join(sorted(kinds)), requirement="must hold entries of one type", remedy="convert the column"
        )
    found = np.empty(len(entries), dtype=object)
    found[:] = [str(entry) for entry in entries]
    return found


def _numbers(name: str, value: object) -> _Floats:
    found = column(name, value)
    return validate.floats(name, found)


def chosen(labels: NDArray[np.bool_], columns: _Columns) -> Terms:
    """Choose terms on rows that are not certified: those that tell most, and those that are neither rare nor usual."""
    return Terms(tuple(_chosen(labels, one.tolist()) if one.dtype.kind == "O" else None for one in columns))


def _chosen(labels: NDArray[np.bool_], texts: list[str]) -> _Whole:
    positives, negatives, prints = np.zeros(BUCKETS), np.zeros(BUCKETS), np.zeros(BUCKETS)
    marks = np.random.default_rng(0).random(len(texts))
    for rows, buckets in _occurring(texts):
        there = np.unique(rows * BUCKETS + buckets)
        rows, buckets = np.divmod(there, BUCKETS)
        positives += np.bincount(buckets, weights=labels[rows], minlength=BUCKETS)
        negatives += np.bincount(buckets, weights=~labels[rows], minlength=BUCKETS)
        prints += np.bincount(buckets, weights=marks[rows], minlength=BUCKETS)
    both = positives + negatives
    kept = np.flatnonzero((both >= _FEWEST_TEXTS) & (both <= len(texts) - _FEWEST_TEXTS))
    # Terms that occur in the same texts, such as parts of one rare word, are counted once.
    kept = kept[np.unique(prints[kept], return_index=True)[1]]
    one, zero = int(labels.sum()), int((~labels).sum())
    share = both[kept] / len(texts)
    gap = np.abs(positives[kept] / one - negatives[kept] / zero) / np.sqrt(share * (1 - share))
    telling = kept[np.argsort(-gap, kind="stable")[: TERMS // 2]]
    common = kept[np.argsort(np.abs(share - 0.5), kind="stable")]
    common = common[~np.isin(common, telling)][: TERMS - len(telling)]
    return np.sort(np.concatenate([telling, common]))


def _counts(texts: list[str], wanted: _Whole) -> _Floats:
    found = np.zeros((len(texts), 2 + len(wanted)))
    found[:, 0] = [len(text) for text in texts]
    found[:, 1] = [len(text.split()) for text in texts]
    places = np.full(BUCKETS, -1)
    places[wanted] = np.arange(len(wanted))
    for rows, buckets in _occurring(texts):
        here = places[buckets]
        seen = here >= 0
        cells = rows[seen] * len(wanted) + here[seen]
        first, last = int(rows[0]), int(rows[-1]) + 1
        counts = np.bincount(cells - first * len(wanted), minlength=(last - first) * len(wanted))
        found[first:last, 2:] += counts.reshape(last - first, -1)
    return found


def _occurring(texts: list[str]) -> Iterator[tuple[_Whole, _Whole]]:
    """Part by part of the texts: the number of a text, ascending, and the bucket of a term that occurs in it."""
    start, letters = 0, 0
    for place, text in enumerate(texts):
        letters += min(len(text), _MOST_LETTERS)
        if letters >= _LETTERS_AT_ONCE or place == len(texts) - 1:
            rows, buckets = _terms([one[:_MOST_LETTERS] for one in texts[start : place + 1]])
            if len(rows):
                yield rows + start, buckets
            start, letters = place + 1, 0


def _terms(texts: list[str]) -> tuple[_Whole, _Whole]:
    """Every string of up to four letters, every word, and every two words in a row; a letter is any character."""
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    found, keys = [], np.zeros(len(letters), dtype=np.uint64)
    for length in range(1, LONGEST_STRING + 1):
        keys = _mixed(keys[: max(0, len(letters) - length + 1)], letters[length - 1 :])
        inside = rows[: len(keys)] == rows[length - 1 :]
        found.append((rows[: len(keys)][inside], keys[inside]))
    within = _in_words(letters)
    edges = np.diff(np.concatenate([[False], within, [False]]).astype(np.int8))
    breaks = np.flatnonzero(within[1:] & within[:-1] & (rows[1:] != rows[:-1])) + 1  # from one text to the next
    starts, ends = (np.sort(np.concatenate([np.flatnonzero(edges == side), breaks])) for side in (1, -1))
    words = _word_keys(letters, starts, ends)
    found.append((rows[starts], words))
    together = rows[starts[1:]] == rows[starts[:-1]] if len(starts) else np.zeros(0, dtype=bool)
    found.append((rows[starts[:-1]][together], _mixed(words[:-1], words[1:])[together]))
    numbers, all_keys = (np.concatenate(each) for each in zip(*found, strict=True))
    buckets = (all_keys >> np.uint64(44)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], buckets[order]


def _in_words(letters: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which letters are those of words: all alphabets' letters and digits."""
    different, places = np.unique(letters, return_inverse=True)
    return np.array([chr(one).isalnum() for one in different.tolist()], dtype=bool)[places]


def _word_keys(letters: NDArray[np.uint64], starts: _Whole, ends: _Whole) -> NDArray[np.uint64]:
    """A number for each word, by its letters and their order alone; modulo 2**64."""
    powers, inverses = (
        np.concatenate([np.ones(1, dtype=np.uint64), np.full(len(letters), factor, dtype=np.uint64)]).cumprod(
            dtype=np.uint64
        )
        for factor in (_FACTOR, _INVERSE)
    )
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum((letters + _STEP) * powers[:-1], dtype=np.uint64)])
    return _mixed((sums[ends] - sums[starts]) * inverses[starts], np.full(len(starts), _STEP))


def _mixed(keys: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Both numbers in one, whose every bit depends on all of theirs."""
    mixed = (keys + np.uint64(_FACTOR)) * _STEP ^ (more + np.uint64(1)) * np.uint64(_FACTOR)
    for _ in range(2):
        mixed = (mixed ^ (mixed >> _HALF)) * _STEP
    return np.asarray(mixed ^ (mixed >> _HALF), dtype=np.uint64)


def text_prints(texts: NDArray[Any]) -> NDArray[np.uint64]:
    """Numbers that are equal for equal texts, and for others almost never."""
    digests = b"".join(blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in texts.tolist())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
