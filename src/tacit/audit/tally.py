"""The counts that certificates are made of: how often each output came with each secret."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from . import cells, waves
from .columns import EXACT, column, multiplicities, output_columns, spelled_numbers, two_labels

_Array = NDArray[Any]

_ENOUGH = 2**20  # rows of a class, to see whether they hold noise
_LEAST = 1e-300  # noise or width: what it divides must not overflow


class Tally:
    """Counts of outputs by secret, gathered batch by batch.

    Memory grows with the number of different outputs, not with rows. Batches (`add`) and other tallies of the same kind
    (`merge`) may come in any order. Without parameters outputs are discrete: whole numbers, booleans, text, and floats
    as symbols (−0.0 and 0.0 are two), several columns jointly.

    Parameters
    ----------
    noise
        Outputs are numbers that are released with Gaussian noise of this standard deviation in each coordinate. Up to
        three columns are counted on a grid, more by their values.
    width
        Outputs are numbers, counted in bins of this diameter, which was fixed before the data was seen.
    noise_added
        Outputs are numbers as they are released, which hold Gaussian noise of this standard deviation already.
    rows
        With `noise_added`: about how many rows will come.

    Raises
    ------
    InputError
        Where these do not go together, or are out of range.
    """

    def __init__(
        self,
        *,
        noise: float | None = None,
        width: float | None = None,
        noise_added: float | None = None,
        rows: int | None = None,
    ) -> None:
        if sum(one is not None for one in (noise, width, noise_added)) > 1:
            raise InputError(
                "noise, noise_added and width",
                "more than one",
                requirement="must not be given together",
                remedy="use noise for noise that is added at release, noise_added for noise that the column holds",
            )
        if (rows is not None) != (noise_added is not None):
            raise InputError(
                "rows",
                rows,
                requirement="must be given with noise_added, and only then",
                remedy="state how many rows will come",
            )
        self.noise = None if noise is None else _divisor("noise", noise)
        self.width = None if width is None else _divisor("width", width)
        self.noise_added = None if noise_added is None else _divisor("noise_added", noise_added)
        self.expected = (
            0 if rows is None else validate.whole("rows", rows, at_least=1, remedy="state how many will come")
        )
        self.waves: waves.Waves | None = None  # of the numbers, with noise or noise_added
        self.labels: list[Any] = []  # the two secrets, in the order seen
        self.rows = [0, 0]  # of each secret
        self.kind = ""  # "numbers" where there is noise or width, else the type of each column
        self.columns = 0
        self._keys: _Array = np.zeros(0)
        self._counts: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
        self._cells: dict[Any, NDArray[np.int64]] = {}

    def add(self, secret: object, output: object, *, weights: object = None) -> Self:
        """Count a batch of rows.

        Parameters
        ----------
        secret
            A column with at most two values.
        output
            A column, a mapping of columns, or a two-dimensional array: the adversary sees all columns.
        weights
            Multiplicities, whole numbers: a row with weight 3 stands for three independent rows.

        Returns
        -------
        The tally itself.

        Raises
        ------
        InputError
            Where the columns cannot be counted, or differ in type from earlier batches.
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
        if self.noise_added is not None:
            # A little noise is added to what is counted; the theorem subtracts its effect again.
            self.noise = smoothing(self.noise_added, rows=self.expected, dimensions=len(columns))
        self._room_for(int(counts.sum()), len(columns))
        if self.noise is not None and len(columns) in cells.STEPS:
            keys, found = cells.gridded(columns, classes, counts, self.noise)
        elif kind in ("boolean", "whole", "float"):
            keys, found = cells.counted(cells.symbols(columns[0]), classes, counts)
        elif self.width is not None and len(columns) == 1:
            keys, found = cells.counted(cells.binned(columns[0], self.width).astype(np.int64), classes, counts)
        else:
            if self.noise is not None:
                columns = [cells.finite(one) for one in columns]
            elif self.width is not None:
                columns = [cells.binned(one, self.width / math.sqrt(len(columns))) for one in columns]
            else:
                columns = [cells.symbols(one) for one in columns]
            for cell, count in cells.tuples(columns, classes, counts):
                self._cells[cell] = self._cells.get(cell, 0) + count
            keys, found = self._keys, self._counts[:0]
        self.labels, self.kind, self.columns = labels, kind, len(columns)
        for label in (0, 1):
            self.rows[label] += int(counts[classes == label].sum())
        if self.noise is not None and (self.waves is None or self.waves.rows.min() < _ENOUGH):
            seen = waves.Waves.of(columns, classes, counts, self.noise_added or self.noise)
            self.waves = seen if self.waves is None else self.waves.with_others(seen)
        if len(found):
            self._keys, self._counts = cells.merged(self._keys, self._counts, keys, found)
        return self

    def merge(self, other: Tally) -> Self:
        """Add the counts of another tally, e.g. from another process.

        Parameters
        ----------
        other
            A tally with the same settings.

        Returns
        -------
        The tally itself.

        Raises
        ------
        InputError
            Where the two are of different kinds.
        """
        if not isinstance(other, Tally) or other.settings != self.settings:
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
        self.noise = other.noise
        self._room_for(sum(other.rows), other.columns)
        labels = two_labels(self.labels, other.labels)
        place = [labels.index(label) for label in other.labels]
        counts = np.zeros_like(other._counts)
        counts[:, place] = other._counts[:, : len(place)]
        self._keys, self._counts = cells.merged(self._keys, self._counts, other._keys, counts)
        for cell, pair in other._cells.items():
            placed = np.zeros(2, dtype=np.int64)
            placed[place] = pair[: len(place)]
            self._cells[cell] = self._cells.get(cell, 0) + placed
        self.labels, self.kind, self.columns = labels, other.kind, other.columns
        for position, rows in zip(place, other.rows, strict=False):
            self.rows[position] += rows
        if other.waves is not None:
            placed_waves = other.waves.placed(place)
            self.waves = placed_waves if self.waves is None else self.waves.with_others(placed_waves)
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters that make another tally like this one."""
        if self.noise_added is not None:
            return {"noise_added": self.noise_added, "rows": self.expected}
        return {"noise": self.noise, "width": self.width}

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
        """How many different outputs, grid cells or bins were seen."""
        return len(self._keys) + len(self._cells)

    @property
    def continuous(self) -> bool:
        """Whether more than half of the rows have an output that no other row has, and a column holds fractions."""
        positive, negative = self.counts()
        if 2 * np.count_nonzero(positive + negative == 1) <= sum(self.rows):
            return False
        for place, kind in enumerate(self.kind.split(", ")):
            if kind == "text":
                texts = np.array([cell[place] for cell in self._cells]) if self._cells else self._keys
                numbers = spelled_numbers(texts)
                if numbers is not None and bool((numbers != np.floor(numbers)).any()):
                    return True
        return "float" in self.kind

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The counts of the positive and of the negative class over all outputs, numbers in ascending order."""
        both = self._counts
        if self._cells:
            both = np.array(list(self._cells.values()), dtype=np.int64)
        return both[:, self.labels.index(self.positive)], both[:, self.labels.index(self.negative)]

    def points(self) -> NDArray[np.float64]:
        """The different outputs of more than three columns of numbers, one in each row, in the order of `counts`."""
        return np.array(list(self._cells), dtype=np.float64)

    def cells(self) -> tuple[_Array, NDArray[np.int64], NDArray[np.int64]]:
        """The keys of the grid's cells in ascending order, and both classes' masses there in units of 2**−bits."""
        return self._keys, *self.counts()

    def check_noise(self, *, noise: str = "noise") -> None:
        """Refuse numbers that cannot hold the noise of `noise_added`; `noise` names the other option in the remedy."""
        if self.noise_added is not None and self.waves is not None and self.waves.refuted:
            raise InputError(
                "output",
                "too little spread, or too few decimals",
                requirement=f"must hold the Gaussian noise of standard deviation {self.noise_added!r} that was stated "
                f"(a column that does hold it, unrounded, is refused once in {1 / waves.FALSE_ALARM:g} times)",
                remedy=f"keep more decimals if it was rounded; use {noise} for noise that is added at release",
            )

    def _room_for(self, rows: int, columns: int) -> None:
        """Refuse more rows than can be counted exactly: masses on a grid are counts times a power of 2, in int64."""
        most = EXACT
        if self.noise is not None and columns in cells.STEPS:
            most = 2 ** (63 - cells.FRACTION_BITS[columns] * columns) - 1
        if sum(self.rows) + rows > most:
            raise InputError(
                "the table",
                f"{sum(self.rows) + rows} rows",
                requirement=f"must have at most {most} rows here",
                remedy="certify a random part of the rows, fixed before they are seen",
            )

    def _both(self) -> list[Any]:
        if not sum(self.rows):
            raise InputError(
                "the table", "no rows", requirement="must have rows", remedy="check the file or the query that made it"
            )
        if len(self.labels) < 2 or not all(self.rows):
            raise InputError(
                "secret",
                "one",
                requirement="must take two values in the table",
                remedy="add rows of the other class",
            )
        return self.labels

    def _labelled(self, secrets: _Array) -> tuple[list[Any], NDArray[np.int64]]:
        """The labels seen so far, and the position of each row's secret among them."""
        values, places = _factors(secrets)
        labels = two_labels(self.labels, values)
        return labels, np.array([labels.index(value) for value in values], dtype=np.int64)[places]

    def _kind_of(self, columns: list[_Array]) -> str:
        if self.noise is not None or self.noise_added is not None or self.width is not None:
            for one in columns:
                if one.dtype.kind == "U":
                    raise InputError(
                        "output",
                        "text",
                        requirement="must be numbers where noise or width is given",
                        remedy="leave both out for outputs that are categories",
                    )
            return "numbers"
        # A value of another type would be counted as the symbol that it equals: True as 1.
        return ", ".join({"U": "text", "f": "float", "b": "boolean"}.get(one.dtype.kind, "whole") for one in columns)


def smoothing(noise_added: float, *, rows: int, dimensions: int) -> float:
    """The extra noise with which a column that holds noise is counted: it balances what it hides against chance.

    It depends on the number of rows alone, not on any output.
    """
    return noise_added * min(0.5, 0.75 * math.pow(rows, -1 / (4 + dimensions)))


def _divisor(name: str, value: object) -> float:
    return validate.number(name, value, at_least=_LEAST, remedy=f"use None for no {name}")


def _factors(values: _Array) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values, as plain Python ones, and the position of each entry among them."""
    if values.dtype.kind == "b":
        return [False, True], values.astype(np.int64)
    if values.dtype.kind == "U" and len(values):
        # Comparing with the first word is far faster than sorting.
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
