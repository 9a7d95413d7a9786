"""Tables with a matrix: some columns, and many numbers for each row, part by part and as often as they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.near import did_you_mean
from ..files import arrays, plain
from .fields import header
from .formats import Table, loaded_arrow, reading, suffix
from .parts import batches, checked, plain_name

_CELLS_AT_ONCE = 2**22


def expanded(path: Path, wanted: Sequence[str], *, name: str, without: Sequence[str | None]) -> tuple[str, ...]:
    """The names of columns, with those that match in place of each name with a `*`, except some.

    A column that is called like the pattern is meant itself.
    """
    if not any("*" in one for one in wanted):
        return tuple(wanted)
    kind = suffix(path, name=name)
    if kind == ".npz":
        held = list(arrays(path, name))
    elif kind == ".csv":
        held = [plain_name(one) for one in header(path, name)]
    else:
        with reading(path, name):
            held = loaded_arrow().parquet.read_schema(path).names
    found: list[str] = []
    for one in wanted:
        matching = [one]
        if "*" in one and one not in held:
            matching = [other for other in held if fnmatchcase(other, one) and other not in without]
        if not matching:
            raise InputError(
                f"column {one!r} of `{name}`",
                f"{len(held)} other columns",
                requirement="must match a column's name",
                remedy="name the columns, or write * for any letters: 'x*'",
            )
        found += matching
    return tuple(found)


class Matrices:
    """Some columns of a file, and a matrix of others that hold numbers.

    Parameters
    ----------
    path
        A CSV, Parquet or npz file.
    columns
        The columns that are read as they are.
    outputs
        The columns of the matrix: of an npz file, also arrays with several columns; or one .npy file with a matrix that
        has a row for each row of the table.
    name
        The file's name in error messages.
    """

    def __init__(self, path: Path, columns: Sequence[str], outputs: Sequence[str], *, name: str) -> None:
        self._path, self._columns, self._outputs, self._name = path, list(columns), list(outputs), name
        self._held: Table = {}
        self._beside: NDArray[Any] | None = None
        if suffix(path, name=name) == ".npz":
            self._held = self._arrays()
        elif len(outputs) == 1 and outputs[0].lower().endswith(".npy"):
            beside = plain(Path(outputs[0]), "output")
            with reading(beside, "output"):
                self._beside = np.load(beside, mmap_mode="r", allow_pickle=False)

    def _arrays(self) -> Table:
        held = arrays(self._path, self._name)
        for one in (*self._columns, *self._outputs):
            if one not in held or held[one].ndim not in ((1,) if one in self._columns else (1, 2)):
                raise InputError(
                    f"array {one!r} of `{self._name}`",
                    f"{held[one].ndim} dimensions" if one in held else f"{len(held)} other arrays",
                    requirement="must be one of the file's arrays: a column, or, for outputs, a matrix",
                    remedy=did_you_mean(one, list(held), "check its name"),
                )
        if len({len(held[one]) for one in (*self._columns, *self._outputs)}) > 1:
            raise InputError(
                f"`{self._name}`",
                "arrays of different lengths",
                requirement="must have a row for each record in all of them",
                remedy="save them again",
            )
        return held

    def rows(self) -> int:
        """How many rows the table has."""
        if self._held:
            return len(self._held[self._columns[0]])
        parts = batches(self._path, self._columns[:1], name=self._name)
        rows = sum(len(one[self._columns[0]]) if counts is None else int(counts.sum()) for one, counts, _ in parts)
        if self._beside is not None and (self._beside.ndim != 2 or len(self._beside) != rows):
            raise InputError(
                "output",
                f"{self._outputs[0]}, of shape {self._beside.shape}",
                requirement=f"must be a matrix with a row for each of the {rows} rows of `{self._name}`",
                remedy="save it in the order of the table",
            )
        return rows

    def parts(self) -> Iterator[tuple[Table, NDArray[Any], float]]:
        """Yield columns, the matrix of the same rows, and the share of the file read so far."""
        if self._held:
            wide = [self._held[one].reshape(len(self._held[one]), -1) for one in self._outputs]
            step = max(1, _CELLS_AT_ONCE // max(1, sum(one.shape[1] for one in wide)))
            rows = self.rows()
            for start in range(0, rows, step):
                here = slice(start, start + step)
                columns = checked({one: self._held[one][here] for one in self._columns}, self._name, rows=rows)
                yield columns, _side_by_side([one[here] for one in wide]), min(1.0, (start + step) / rows)
        elif self._beside is not None:
            done = 0
            step = max(1, _CELLS_AT_ONCE // max(1, self._beside.shape[1]))
            for columns, _, share in batches(self._path, self._columns, name=self._name, each=True):
                rows = len(columns[self._columns[0]])
                for start in range(0, rows, step):
                    here = slice(start, min(rows, start + step))
                    matrix = self._beside[done + here.start : done + here.stop]
                    yield {one: values[here] for one, values in columns.items()}, matrix, share
                done += rows
        else:
            names = [*self._columns, *self._outputs]
            for columns, counts, share in batches(self._path, names, name=self._name, numbers=self._outputs):
                matrix = _side_by_side([columns[one] for one in self._outputs])
                if counts is not None:
                    matrix = np.repeat(matrix, counts, axis=0)
                    columns = {one: np.repeat(columns[one], counts) for one in self._columns}
                yield {one: columns[one] for one in self._columns}, matrix, share


def _side_by_side(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if any(one.dtype.kind not in "fiub" for one in parts):
        raise InputError(
            "output", "text", requirement="must hold numbers where `code` is given", remedy="leave categories out"
        )
    return parts[0] if len(parts) == 1 and parts[0].ndim == 2 else np.column_stack(parts).astype(np.float64, copy=False)
