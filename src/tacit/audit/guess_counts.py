"""Counts for secrets of several values, and sums for secret numbers: by output, gathered batch by batch."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from .cells import symbols
from .columns import column, multiplicities, output_columns, spelled_numbers

MOST_CLASSES = 1000
"""Values of a secret that are told apart; with more, hardly any value has rows enough."""
MOST_NUMBERS = 20
"""Different numbers that are taken as classes; a secret with more of them is a number, whose range must be stated."""

_BINS = 2**14
"""Of the range of a secret number, to see how many lie close together."""
_NARROWEST = 1e-6
"""Of its size, how wide a range must be, so that rounding to float64 changes nothing that counts."""

_Array = NDArray[Any]
_Whole = NDArray[np.int64]


class _Cells:
    """A number for every different output; outputs are equal only where they are equal to the last bit."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self.kind = ""

    def __len__(self) -> int:
        return len(self._places)

    def ranks(self) -> _Whole:
        """The rank of every output's number, as outputs sort."""
        found: _Whole = np.empty(len(self), dtype=np.int64)
        for rank, cell in enumerate(sorted(self._places)):
            found[self._places[cell]] = rank
        return found

    def of(self, columns: list[_Array]) -> _Whole:
        kind = ", ".join(one.dtype.kind for one in columns)
        if self.kind and kind != self.kind:
            raise InputError(
                "output",
                "columns of other types",
                requirement="must have the same types in every batch",
                remedy="read every batch with the same types",
            )
        self.kind = kind
        places: _Whole = np.zeros(len(columns[0]), dtype=np.int64)
        keys = [symbols(one) for one in columns]
        for one in keys:
            inner, position = np.unique(one, return_inverse=True)
            _, places = np.unique(places * len(inner) + position, return_inverse=True)
        _, first = np.unique(places, return_index=True)
        seen = zip(*(one[first].tolist() for one in keys), strict=True)
        known = np.array([self._places.setdefault(cell, len(self._places)) for cell in seen], dtype=np.int64)
        return known[places]


def _checked(secret: object, output: object, weights: object) -> tuple[_Array, list[_Array], _Whole]:
    """Secrets, outputs and multiplicities of the rows that stand for one row or more."""
    secrets = column("secret", secret)
    columns, counts = output_columns(output, rows=len(secrets)), multiplicities(weights, len(secrets))
    there = counts > 0
    return secrets[there], [one[there] for one in columns], counts[there]


class ClassCounts:
    """How often each output came with each value of the secret."""

    def __init__(self) -> None:
        self.labels: dict[Any, int] = {}
        self._cells = _Cells()
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, secret: object, output: object, *, weights: object = None) -> Self:
        """Count a batch of rows; the parameters are those of `Tally.add`, but for the secret, which has any values."""
        secrets, columns, counts = _checked(secret, output, weights)
        if not len(secrets):
            return self
        values, classes = np.unique(secrets, return_inverse=True)
        codes = [self.labels.setdefault(value, len(self.labels)) for value in values.tolist()]
        _check_labels(list(self.labels))
        both = self._cells.of(columns) * len(codes) + classes
        different, places = np.unique(both, return_inverse=True)
        summed = np.zeros(len(different), dtype=np.int64)
        np.add.at(summed, places, counts)
        for key, count in zip(different.tolist(), summed.tolist(), strict=True):
            self._counts[key // len(codes), codes[key % len(codes)]] += count
        return self

    @property
    def cells(self) -> int:
        """Different outputs."""
        return len(self._cells)

    @property
    def values(self) -> int:
        """Different values of the secret."""
        return len(self.labels)

    def triples(self) -> tuple[_Whole, _Whole, _Whole]:
        """The outputs, secrets and counts of all pairs that occur, both numbered as they sort: in one order always."""
        if not self._counts:
            raise InputError(
                "the table", "no rows", requirement="must have rows", remedy="check the file or the query that made it"
            )
        found = np.array([(*key, count) for key, count in self._counts.items()], dtype=np.int64)
        cells = self._cells.ranks()[found[:, 0]]
        ranks = {label: rank for rank, label in enumerate(sorted(self.labels))}
        classes = np.array([ranks[label] for label in self.labels], dtype=np.int64)[found[:, 1]]
        order = np.lexsort((cells, classes))
        return cells[order], classes[order], found[order, 2]


def drawing_order(cells: _Whole, classes: _Whole, counts: _Whole) -> tuple[_Whole, int]:
    """In which order rows are drawn from these counts, and with which seed: by the counts alone.

    Neither the order of the rows of a table nor the names of outputs matter, nor those of secrets, but for secrets
    that have the same counts; so nobody can try several draws.

    Returns
    -------
    The places of the counts in order, class by class, and 39 bits of their SHA-256.
    """
    sizes: _Whole = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    np.add.at(sizes, classes, counts)
    ranks = _ranked(sizes, _summed(classes, _mixed(counts)))[classes]
    places = _ranked(_summed(cells, _mixed(ranks * (int(counts.max()) + 1) + counts)))[cells]
    order = np.lexsort((places, ranks))
    held = np.column_stack([places, ranks, counts])[order].astype(">i8")
    return order, int.from_bytes(hashlib.sha256(held.tobytes()).digest()[:5], "big") >> 1


def _mixed(numbers: _Whole) -> NDArray[np.uint64]:
    """Numbers of 64 bits, the same for the same number, whose sums are different for different sets (splitmix64)."""
    found = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    mixed: NDArray[np.uint64] = found ^ (found >> np.uint64(31))
    return mixed


def _summed(places: _Whole, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The sum of the numbers of each place, but for multiples of 2⁶⁴."""
    found: NDArray[np.uint64] = np.zeros(int(places.max()) + 1, dtype=np.uint64)
    np.add.at(found, places, numbers)
    return found


def _ranked(*keys: NDArray[Any]) -> _Whole:
    """The rank of each place, by the first key, then by the next."""
    found: _Whole = np.empty(len(keys[0]), dtype=np.int64)
    found[np.lexsort(keys[::-1])] = np.arange(len(found))
    return found


def _check_labels(labels: list[Any]) -> None:
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("secret", "text and numbers", requirement="must be of one type", remedy="convert the column")
    # A few words among numbers, such as "unknown", make no classes of them.
    if len(labels) > MOST_NUMBERS and 2 * (numbers := sum(map(_is_number, labels))) > len(labels):
        raise InputError(
            "secret",
            f"{numbers} different numbers or more",  # but not which: these are the secrets
            requirement=f"must take {MOST_NUMBERS} different numbers or fewer to be read as classes",
            remedy="state the range that its numbers can have at all with `secret_range`, cut it into a few classes, "
            "or, where numbers are codes, write them as words",
        )
    if len(labels) > MOST_CLASSES:
        raise InputError(
            "secret",
            f"{len(labels)} different values or more",
            requirement=f"must take {MOST_CLASSES} different values or fewer",
            remedy="group them into fewer classes",
        )
    if len({_meant(label) for label in labels}) < len(labels):
        raise InputError(
            "secret",
            "one value in several spellings",  # but not which
            requirement="must write each value in one way",
            remedy="leave out quotes and spaces around values, and write equal numbers alike: who names a value need "
            "not name its spelling",
        )


def _meant(label: Any) -> Any:
    """The value without what surrounds it; a number if it spells one."""
    if not isinstance(label, str):
        return label
    text = label.strip().strip('"').strip()
    numbers = spelled_numbers(np.array([text]))
    return text if numbers is None else float(numbers[0])


def _is_number(label: Any) -> bool:
    if isinstance(label, str):
        return spelled_numbers(np.array([label])) is not None
    return not isinstance(label, bool)


class NumberCounts:
    """How many rows each output has, and the sum of their secrets, which are numbers of a stated range.

    Parameters
    ----------
    low, high
        The range, which must not come from the table.
    """

    def __init__(self, low: float, high: float) -> None:
        self.low = validate.number("secret_range", low, remedy="state the least number that is possible")
        self.high = validate.number("secret_range", high, remedy="state the largest number that is possible")
        if not (self.low < self.high and np.isfinite(self.high - self.low)):
            raise InputError(
                "secret_range",
                (low, high),
                requirement="must be two numbers, the smaller one first",
                remedy="swap them",
            )
        if self.high - self.low < _NARROWEST * max(abs(self.low), abs(self.high)):
            raise InputError(
                "secret_range",
                (low, high),
                requirement=f"must be wider than {_NARROWEST:g} of its ends, where float64 tells numbers apart",
                remedy="subtract a constant from the secret that was fixed before the data was seen",
            )
        self._cells = _Cells()
        self._bins: _Whole = np.zeros(_BINS, dtype=np.int64)
        self.rows = 0
        self._sums: NDArray[np.float64] = np.zeros((0, 3))  # of 1, of the secrets and of their squares

    def add(self, secret: object, output: object, *, weights: object = None) -> Self:
        """Count a batch of rows; the parameters are those of `Tally.add`, but for the secret, which is a number."""
        secrets, columns, counts = _checked(secret, output, weights)
        scaled = self.scaled(secrets)
        if not len(scaled):
            return self
        places = self._cells.of(columns)
        more = np.zeros((len(self._cells) - len(self._sums), 3))
        self._sums = np.concatenate([self._sums, more])
        for power in range(3):
            self._sums[:, power] += np.bincount(places, weights=counts * scaled**power, minlength=len(self._sums))
        np.add.at(self._bins, np.minimum(_BINS - 1, ((scaled + 1) / 2 * _BINS).astype(np.int64)), counts)
        self.rows += int(counts.sum())
        return self

    def scaled(self, secrets: _Array) -> NDArray[np.float64]:
        """Secrets as numbers from −1 to 1, over the range stated; others are refused."""
        found = spelled_numbers(secrets) if secrets.dtype.kind == "U" else secrets.astype(np.float64)
        if found is None:
            raise InputError(
                "secret", "text", requirement="must hold numbers where `secret_range` is given", remedy="leave it out"
            )
        if not ((found >= self.low) & (found <= self.high)).all():
            raise InputError(
                "secret",
                "a number outside it",  # but not which
                requirement=f"must lie within `secret_range`, {self.low:g} to {self.high:g}",
                remedy="state the range that its numbers can have at all, or cut them off at its ends",
            )
        return np.clip((found - self.low) / ((self.high - self.low) / 2) - 1, -1.0, 1.0)

    @property
    def cells(self) -> int:
        """Different outputs."""
        return len(self._cells)

    def shortest_half(self) -> float:
        """About the length of the shortest interval that holds half of the secrets, in their unit; rounded up."""
        below = np.concatenate([[0], np.cumsum(self._bins)])
        ends = np.searchsorted(below, below + -(-self.rows // 2))  # of the shortest one from each bin on
        starts = np.flatnonzero(ends <= _BINS)
        return float((ends[starts] - starts).min()) * (self.high - self.low) / _BINS

    def centred(self) -> tuple[NDArray[np.float64], float]:
        """For each output its rows, and the sums of ξ and of ξ²; and the standard deviation of the secrets.

        ξ is the distance of a secret from the mean of all, in units of the largest one that the range allows.
        """
        if self.rows < 2:
            raise InputError(
                "the table", f"{self.rows} rows", requirement="must have two rows or more", remedy="add rows"
            )
        sizes, sums, squares = self._sums.T
        mean = float(sums.sum()) / self.rows
        reach = 1 + abs(mean)
        square = np.maximum(0.0, squares - 2 * mean * sums + sizes * mean**2) / reach**2
        variance = float(square.sum()) / self.rows
        if not variance > 64 * (self.rows + 8) * float(np.finfo(float).eps):
            raise InputError(
                "secret",
                "one number, or numbers that hardly differ",
                requirement="must take different numbers",
                remedy="check the column, or state a narrower range",
            )
        deviation = math.sqrt(variance) * reach * (self.high - self.low) / 2
        return np.stack([sizes, np.clip((sums - sizes * mean) / reach, -sizes, sizes), square]), deviation
