"""What certificates need of a table: how often each output came with each secret. Counts add up over batches."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import checked
from ..errors import InputError

_Array = NDArray[Any]

STEPS = {1: 64, 2: 16, 3: 8}
"""Grid cells per standard deviation of the noise, by the number of coordinates."""

FRACTION_BITS = {1: 20, 2: 15, 3: 10}
"""Outputs are split between neighbouring cells in fractions of 2**−bits, so that sums are exact."""

_FARTHEST = 2**30  # cells from 0, so that the position within a cell is still known to 2**−23
_FARTHEST_BIN = 2**21
_MOST_DENSE = 2**24
_BLOCK = 2**22  # rows at a time
_EXACT = 2**53  # up to here float64 holds every whole number
_LEAST = 1e-300  # noise or width: what it divides must not overflow
_KEY_BITS = 20  # of each coordinate in a packed key, for two and three coordinates

_TYPES = "use whole numbers, floats, booleans or text"
_AS_TEXT = "pass the column as text"
_MISSING = "leave these rows out only if missing is unrelated to the secret, else make it a value of its own"


class Tally:
    """Counts of outputs by secret, in memory that grows with the number of different outputs, not with rows.

    Tally()                discrete outputs: whole numbers, booleans, text, floats as symbols, of which −0.0 and 0.0 are
                           two; several columns jointly
    Tally(noise=0.1)       numbers that are released with Gaussian noise of this standard deviation in each coordinate;
                           up to three columns are counted on a grid, more of them by their values
    Tally(width=0.2)       numbers, counted in bins of this diameter, fixed before the data is seen

    `add` takes batches and `merge` other tallies of the same kind, in any order.
    """

    def __init__(self, *, noise: float | None = None, width: float | None = None) -> None:
        if noise is not None and width is not None:
            raise InputError(
                "width", width, requirement="must not be given together with noise", remedy="use one of the two"
            )
        self.noise = None if noise is None else _divisor("noise", noise)
        self.width = None if width is None else _divisor("width", width)
        self.labels: list[Any] = []  # the two secrets, in the order seen
        self.rows = [0, 0]  # of each of them
        self.kind = ""  # of the outputs: numbers where there is noise or width, else of each column
        self.columns = 0
        self.fractional = False  # whether a column of symbols holds floats
        self._keys: _Array = np.zeros(0)
        self._counts: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
        self._cells: dict[Any, NDArray[np.int64]] = {}

    def add(self, secret: object, output: object, *, weights: object = None) -> Self:
        """Counts a batch of rows.

        `output` is one column, a mapping of columns or an array with a column each: the adversary sees them all.
        `weights` are multiplicities, whole numbers: a row with weight 3 stands for three independent rows.
        """
        secrets = column("secret", secret)
        columns = output_columns(output, rows=len(secrets))
        counts = multiplicities(weights, len(secrets))
        if not counts.all():
            there = counts > 0
            secrets, counts, columns = secrets[there], counts[there], [one[there] for one in columns]
        if not len(secrets):
            return self
        labels, classes = self._labelled(secrets)
        kind = self._kind_of(columns)
        if self.kind and (kind, len(columns)) != (self.kind, self.columns):
            raise InputError(
                "output",
                f"{kind} in {len(columns)} columns",
                requirement=f"must stay {self.kind} in {self.columns} columns, as before",
                remedy="read every batch with the same types",
            )
        self._room_for(int(counts.sum()), len(columns))
        fractional = any(one.dtype.kind == "f" for one in columns)
        if self.noise is not None and len(columns) in STEPS:
            keys, found = _gridded(columns, classes, counts, self.noise)
        elif kind in ("boolean", "whole", "float"):
            keys, found = _counted(_symbols(columns[0]), classes, counts)
        elif self.width is not None and len(columns) == 1:
            keys, found = _counted(_binned(columns[0], self.width).astype(np.int64), classes, counts)
        else:
            if self.noise is not None:
                columns = [_finite(one) for one in columns]
            elif self.width is not None:
                columns = [_binned(one, self.width / math.sqrt(len(columns))) for one in columns]
            else:
                columns = [_symbols(one) for one in columns]
            for cell, count in _tuples(columns, classes, counts):
                self._cells[cell] = self._cells.get(cell, 0) + count
            keys, found = self._keys, self._counts[:0]
        self.labels, self.kind, self.columns = labels, kind, len(columns)
        self.fractional |= fractional
        for label in (0, 1):
            self.rows[label] += int(counts[classes == label].sum())
        if len(found):
            self._keys, self._counts = _merged(self._keys, self._counts, keys, found)
        return self

    def merge(self, other: Tally) -> Self:
        """Adds what another tally counted, e.g. in another process."""
        if not isinstance(other, Tally) or (other.noise, other.width) != (self.noise, self.width):
            raise InputError(
                "other", other, requirement="must be a Tally with the same noise and width", remedy="make both alike"
            )
        if not other.labels:
            return self
        if self.kind and (other.kind, other.columns) != (self.kind, self.columns):
            raise InputError(
                "other",
                f"{other.kind} in {other.columns} columns",
                requirement=f"must have counted {self.kind} in {self.columns} columns",
                remedy="read every batch with the same types",
            )
        self._room_for(sum(other.rows), other.columns)
        labels = two_labels(self.labels, other.labels)
        place = [labels.index(label) for label in other.labels]
        counts = np.zeros_like(other._counts)
        counts[:, place] = other._counts[:, : len(place)]
        self._keys, self._counts = _merged(self._keys, self._counts, other._keys, counts)
        for cell, pair in other._cells.items():
            placed = np.zeros(2, dtype=np.int64)
            placed[place] = pair[: len(place)]
            self._cells[cell] = self._cells.get(cell, 0) + placed
        self.labels, self.kind, self.columns = labels, other.kind, other.columns
        self.fractional |= other.fractional
        for position, rows in zip(place, other.rows, strict=False):
            self.rows[position] += rows
        return self

    @property
    def negative(self) -> Any:
        """The secret that sorts first: False, 0, "no"."""
        return min(self._both())

    @property
    def positive(self) -> Any:
        """The secret that sorts last: True, 1, "yes"."""
        return max(self._both())

    @property
    def positives(self) -> int:
        """Rows with the positive secret."""
        return self.rows[self.labels.index(self.positive)]

    @property
    def negatives(self) -> int:
        """Rows with the negative secret."""
        return self.rows[self.labels.index(self.negative)]

    @property
    def symbols(self) -> int:
        """How many different outputs, cells or bins were seen."""
        return len(self._keys) + len(self._cells)

    @property
    def unrepeated(self) -> float:
        """The share of rows whose output no other row has."""
        positive, negative = self.counts()
        return float(np.count_nonzero(positive + negative == 1)) / max(1, sum(self.rows))

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts of the positive and the negative class over all outputs, numbers in ascending order."""
        both = self._counts
        if self._cells:
            both = np.array(list(self._cells.values()), dtype=np.int64)
        return both[:, self.labels.index(self.positive)], both[:, self.labels.index(self.negative)]

    def points(self) -> NDArray[np.float64]:
        """The different outputs of more than three columns of numbers, a row each, in the order of `counts`."""
        return np.array(list(self._cells), dtype=np.float64)

    def cells(self) -> tuple[_Array, NDArray[np.int64], NDArray[np.int64]]:
        """Keys of the grid's cells in ascending order, and the two classes' masses in units of 2**−bits."""
        return self._keys, *self.counts()

    def _room_for(self, rows: int, columns: int) -> None:
        """Refuses more rows than can be counted exactly: masses on a grid are counts times a power of 2, in int64."""
        most = _EXACT
        if self.noise is not None and columns in STEPS:
            most = 2 ** (63 - FRACTION_BITS[columns] * columns) - 1
        if sum(self.rows) + rows > most:
            raise InputError(
                "the table",
                f"{sum(self.rows) + rows} rows",
                requirement=f"must have at most {most} rows here",
                remedy="certify a random part of the rows, fixed before they are seen",
            )

    def _both(self) -> list[Any]:
        if not sum(self.rows):
            raise InputError("the table", "no rows", requirement="must have rows", remedy="check the file or the query")
        if len(self.labels) < 2 or not all(self.rows):
            seen = [label for label, rows in zip(self.labels, self.rows, strict=False) if rows]
            raise InputError(
                "secret",
                seen,
                requirement="must take two values in the table",
                remedy="add rows of the other class: nothing can be said about telling apart what is not there",
            )
        return self.labels

    def _labelled(self, secrets: _Array) -> tuple[list[Any], NDArray[np.int64]]:
        """The labels seen up to now, and the position of each row's secret among them."""
        values, places = _factors(secrets)
        labels = two_labels(self.labels, values)
        return labels, np.array([labels.index(value) for value in values], dtype=np.int64)[places]

    def _kind_of(self, columns: list[_Array]) -> str:
        if self.noise is not None or self.width is not None:
            for one in columns:
                if one.dtype.kind == "U":
                    raise InputError(
                        "output",
                        str(one[0]),
                        requirement="must be numbers where noise or width is given",
                        remedy="leave both out for outputs that are categories",
                    )
            return "numbers"
        # One of another type would be counted as the symbol that it is equal to: True as 1.
        return ", ".join({"U": "text", "f": "float", "b": "boolean"}.get(one.dtype.kind, "whole") for one in columns)


def _divisor(name: str, value: object) -> float:
    return checked.number(name, value, at_least=_LEAST, remedy=f"use None for no {name}")


def column(name: str, value: object) -> _Array:
    """One column as bool, int64, float64 or text without anything missing, different entries staying different.

    Mixed types are refused, but for whole numbers among floats, which are floats: 1 and 1.0 are one value.
    """
    requirement = "must be one column of numbers, booleans or text"
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(name, value, requirement=f"{requirement} without masked entries", remedy=_MISSING)
    if isinstance(value, str | bytes | Mapping) or value is None:
        raise InputError(name, value, requirement=requirement, remedy=_TYPES)
    try:
        # Lists keep the types of their entries: NumPy would turn [1, "a"] into text.
        listed = isinstance(value, list | tuple)
        found = np.asarray(value, dtype=object) if listed else np.asarray(checked.detached(value))
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        raise InputError(name, value, requirement=requirement, remedy=_TYPES) from None
    if found.ndim != 1:
        raise InputError(f"{name}, of shape {found.shape},", value, requirement=requirement, remedy=_TYPES)
    if found.dtype.kind in "OT":
        found = _of_one_type(name, found)
    if found.dtype.kind == "f":
        if found.dtype.itemsize > 8:
            raise InputError(name, str(found.dtype), requirement="must fit into float64", remedy=_AS_TEXT)
        missing = int(np.count_nonzero(np.isnan(found)))
        if missing:
            raise InputError(name, f"{missing} missing", requirement="must have no missing entry", remedy=_MISSING)
        return found.astype(np.float64, copy=False)
    if found.dtype.kind in "iu":
        if len(found) and found.dtype == np.uint64 and int(found.max()) > 2**63 - 1:
            raise InputError(name, int(found.max()), requirement="must fit into int64", remedy=_AS_TEXT)
        return found.astype(np.int64, copy=False)
    if found.dtype.kind not in "bU":
        raise InputError(name, str(found.dtype), requirement=requirement, remedy=_TYPES)
    return found


def _of_one_type(name: str, found: _Array) -> _Array:
    kinds = {_kind(entry) for entry in found.tolist()}
    if "missing" in kinds:
        missing = sum(_kind(entry) == "missing" for entry in found.tolist())
        raise InputError(name, f"{missing} missing", requirement="must have no missing entry", remedy=_MISSING)
    if kinds == {"whole", "float"}:
        for entry in found.tolist():
            if isinstance(entry, numbers.Integral) and abs(int(entry)) > _EXACT:
                raise InputError(
                    name, int(entry), requirement="must be at most 2**53 in size among floats", remedy=_AS_TEXT
                )
        kinds = {"float"}
    if kinds == {"text"} and any(entry.endswith("\0") for entry in found.tolist()):
        raise InputError(
            name,
            "text that ends in NUL",
            requirement="must not end in what NumPy drops",
            remedy="escape the text, e.g. by repr",
        )
    if len(kinds) > 1 or not kinds <= {"text", "boolean", "whole", "float"}:
        raise InputError(
            name, ", ".join(sorted(kinds)), requirement="must hold entries of one type", remedy="convert the column"
        )
    types: dict[str, Any] = {"text": str, "boolean": bool, "whole": np.int64, "float": np.float64}
    try:
        return found.astype(types[kinds.pop()]) if kinds else found.astype(np.float64)
    except OverflowError:
        raise InputError(name, "a huge number", requirement="must fit into int64", remedy=_AS_TEXT) from None


def _kind(entry: object) -> str:
    if isinstance(entry, str):
        return "text"
    if isinstance(entry, bool | np.bool_):
        return "boolean"
    if isinstance(entry, numbers.Integral):
        return "whole"
    if isinstance(entry, float | np.floating):
        if math.isnan(entry):
            return "missing"
        return "float" if isinstance(entry, float | np.float32 | np.float16) else type(entry).__name__
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return "missing"
    return type(entry).__name__


def output_columns(output: object, *, rows: int) -> list[_Array]:
    """The columns that the adversary sees, each with as many rows as the secret has."""
    named = checked.table("output", output)
    if named is not None:
        columns = [column(f"output {name!r}", value) for name, value in named.items()]
    elif getattr(output, "ndim", 1) == 2 and not isinstance(output, np.ma.MaskedArray):
        seen = np.asarray(checked.detached(output))
        columns = [column(f"column {index} of output", seen[:, index]) for index in range(seen.shape[1])]
    else:
        columns = [column("output", output)]
    if not columns:
        raise InputError("output", output, requirement="must have a column", remedy="name what the adversary sees")
    for one in columns:
        if len(one) != rows:
            raise InputError(
                "output",
                f"{len(one)} rows",
                requirement=f"must have as many rows as secret, {rows}",
                remedy="pass columns of one table",
            )
    return columns


def multiplicities(weights: object, rows: int) -> NDArray[np.int64]:
    """How many rows each row stands for."""
    if weights is None:
        return np.ones(rows, dtype=np.int64)
    found = column("weights", weights)
    whole = found.dtype.kind == "i" or (found.dtype.kind == "f" and bool((found == np.floor(found)).all()))
    if not whole or len(found) != rows or (len(found) and (found.min() < 0 or found.max() > 2**32)):
        raise InputError(
            "weights",
            weights,
            requirement=f"must be {rows} whole numbers ≥ 0, each the number of independent rows that a row stands for",
            remedy="for importance weights keep each row with probability weight/largest and certify what was kept",
        )
    return found.astype(np.int64)


def two_labels(before: list[Any], values: list[Any]) -> list[Any]:
    """The secrets seen before and now, in this order; a third one is refused."""
    labels = before + [value for value in values if value not in before]
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("secret", labels, requirement="must be of one type", remedy="convert the column")
    if len(labels) > 2:
        raise InputError(
            "secret",
            sorted(labels)[:8],
            requirement="must take exactly two values",
            remedy="compare two of them, or one against the rest",
        )
    return labels


def _factors(values: _Array) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values, as plain Python ones, and the position of each entry among them."""
    if values.dtype.kind == "b":
        return [False, True], values.astype(np.int64)
    if values.dtype.kind == "U" and len(values):
        # Two words are told apart far faster than sorted.
        other = values != values[0]
        rest = values[other]
        if not len(rest) or bool((rest == rest[0]).all()):
            return [str(values[0]), *(str(word) for word in rest[:1])], other.astype(np.int64)
    if values.dtype.kind == "i" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low <= 2**16:
            seen = np.bincount(values - low, minlength=high - low + 1) > 0
            places = np.cumsum(seen) - 1
            return (np.flatnonzero(seen) + low).tolist(), places[values - low]
    different, places = np.unique(values, return_inverse=True)
    return different.tolist(), places


def _counted(keys: _Array, classes: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[_Array, NDArray[np.int64]]:
    """Different keys in ascending order and the counts of both classes."""
    if not len(keys):
        return keys, np.zeros((0, 2), dtype=np.int64)
    if keys.dtype.kind == "i" and int(keys.max()) - int(keys.min()) <= min(_MOST_DENSE, 4 * len(keys)):
        low = int(keys.min())
        dense = _pairs(keys - low, classes, counts, int(keys.max()) - low + 1)
        seen = np.flatnonzero(dense.any(axis=1))
        return seen + low, dense[seen]
    different, places = np.unique(keys, return_inverse=True)
    return different, _pairs(places, classes, counts, len(different))


def _pairs(
    places: NDArray[np.int64], classes: NDArray[np.int64], counts: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    if float(counts.sum(dtype=np.float64)) < _EXACT / 2:  # sums of whole numbers in float64 are exact, and faster
        summed = np.bincount(2 * places + classes, weights=counts, minlength=2 * size)
        return summed.astype(np.int64).reshape(-1, 2)
    whole = np.zeros(2 * size, dtype=np.int64)
    np.add.at(whole, 2 * places + classes, counts)
    return whole.reshape(-1, 2)


def _symbols(values: _Array) -> _Array:
    """Keys that are equal where the outputs are the same to the last bit, in the outputs' order.

    Floats are numbered in ascending order, −0.0 as −1 and 0.0 as 0: whoever sees the output sees the sign.
    """
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind != "f":
        return values
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, ~(bits & np.iinfo(np.int64).max))


def _tuples(columns: list[_Array], classes: NDArray[np.int64], counts: NDArray[np.int64]) -> Any:
    """(cell, counts of both classes) for every different row; a cell is the tuple of its columns' values."""
    places: NDArray[np.int64] = np.zeros(len(classes), dtype=np.int64)
    for one in columns:
        inner, position = np.unique(one, return_inverse=True)
        _, places = np.unique(places * len(inner) + position, return_inverse=True)
    _, first = np.unique(places, return_index=True)
    summed = _pairs(places, classes, counts, len(first))
    return zip(zip(*(one[first].tolist() for one in columns), strict=True), summed, strict=True)


def _merged(
    keys: _Array, counts: NDArray[np.int64], more: _Array, found: NDArray[np.int64]
) -> tuple[_Array, NDArray[np.int64]]:
    if not len(keys):
        return more, found
    if not len(more):
        return keys, counts
    different, places = np.unique(np.concatenate([keys, more]), return_inverse=True)
    total = np.zeros((len(different), 2), dtype=np.int64)
    np.add.at(total, places, np.concatenate([counts, found]))
    return different, total


def _finite(values: _Array) -> NDArray[np.float64]:
    numeric = values.astype(np.float64, copy=False)
    if values.dtype.kind == "i" and len(values) and not np.abs(numeric).max() < _EXACT:
        raise InputError(
            "output",
            int(values[np.abs(numeric).argmax()]),
            requirement="must be below 2**53 in size here",
            remedy="subtract a constant that was fixed before the data was seen",
        )
    if not np.isfinite(numeric).all():
        raise InputError(
            "output",
            "an infinite number",
            requirement="must be finite here",
            remedy="cut the output off before release",
        )
    return numeric


def _binned(values: _Array, side: float) -> NDArray[np.float64]:
    """The number of each value's bin; bins are narrower than `side` by more than rounding can widen them."""
    with np.errstate(over="ignore"):
        bins = np.floor(_finite(values) / (side * (1 - 1e-9)))
    if not np.abs(bins).max() <= _FARTHEST_BIN:
        raise InputError(
            "output",
            float(values[np.abs(bins).argmax()]),
            requirement=f"must lie within {_FARTHEST_BIN} bins of 0",
            remedy="use wider bins, or subtract a constant that was fixed before the data was seen",
        )
    return bins


def _gridded(
    columns: list[_Array], classes: NDArray[np.int64], counts: NDArray[np.int64], noise: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of the grid's cells in ascending order, and each class's mass there, split linearly between neighbours."""
    bits, per_noise = FRACTION_BITS[len(columns)], STEPS[len(columns)]
    reach = _FARTHEST if len(columns) == 1 else 2 ** (_KEY_BITS - 1) - 2
    keys: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    masses: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
    for start in range(0, len(classes), _BLOCK):
        rows = slice(start, start + _BLOCK)
        lows, fractions = [], []
        for one in columns:
            with np.errstate(over="ignore"):
                scaled = _finite(one[rows]) * (per_noise / noise)
            if not np.abs(scaled).max() <= reach:
                raise InputError(
                    "output",
                    float(one[rows][np.abs(scaled).argmax()]),
                    requirement=f"must lie within {reach // per_noise} standard deviations of the noise around 0",
                    remedy="subtract a constant that was fixed before the data was seen, or cut the output off",
                )
            position = np.rint(np.ldexp(scaled, bits)).astype(np.int64)
            lows.append(position >> bits)
            fractions.append(position & ((1 << bits) - 1))
        for corner in np.ndindex(*(2,) * len(columns)):
            key: Any = 0
            mass: Any = counts[rows]
            for above, low, fraction in zip(corner, lows, fractions, strict=True):
                key = (key << _KEY_BITS) + low + above + (2 ** (_KEY_BITS - 1) if len(columns) > 1 else 0)
                mass = mass * (fraction if above else (1 << bits) - fraction)
            keys, masses = _merged(keys, masses, *_counted(key, classes[rows], mass))
    return keys, masses


def unpacked(keys: NDArray[np.int64], dimensions: int) -> NDArray[np.int64]:
    """Coordinates of packed keys, one row a cell."""
    mask = (1 << _KEY_BITS) - 1
    shifts = [_KEY_BITS * place for place in reversed(range(dimensions))]
    places: NDArray[np.int64] = np.stack([(keys >> shift) & mask for shift in shifts], axis=1)
    return places - np.int64(2 ** (_KEY_BITS - 1))
