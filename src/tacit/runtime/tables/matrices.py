"""Tables with a matrix: some columns, and many numbers for each row, part by part and as often as they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from re import escape, fullmatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.near import did_you_mean
from ..files import arrays, plain
from .fields import header
from .formats import Table, loaded_arrow, reading, suffix, unreadable
from .parts import batches, checked, plain_name, spells_numbers

_CELLS_AT_ONCE = 2**22
_LOOKED_AT = 1000  # rows that say which columns of a CSV file hold text


def column_names(path: Path, *, name: str) -> list[str]:
    """The names of all columns of a file, or of the arrays of an npz file."""
    kind = suffix(path, name=name)
    if kind == ".npz":
        return list(arrays(path, name))
    if kind == ".csv":
        return [plain_name(one) for one in header(path, name)]
    with reading(path, name):
        return list(loaded_arrow().parquet.read_schema(path).names)


def expanded(path: Path, wanted: Sequence[str], *, name: str, without: Sequence[str | None]) -> tuple[str, ...]:
    """The names of columns, with those that match in place of each name with a `*`, except some.

    A column that is called like the pattern is meant itself.
    """
    if not any("*" in one for one in wanted):
        return tuple(wanted)
    held = column_names(path, name=name)
    found: list[str] = []
    for one in wanted:
        matching = [one]
        if "*" in one and one not in held:
            pattern = "(?s:.*)".join(map(escape, one.split("*")))  # no other letter stands for others
            matching = [other for other in held if fullmatch(pattern, other) and other not in without]
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
        self._texts: list[str] = []
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
        if not len(held[self._columns[0]]):
            raise unreadable(self._name, self._path, "no record")
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

    def allow_texts(self, own: NDArray[np.bool_]) -> None:
        """Let columns of a table hold text.

        Which columns of a CSV file do is decided by the first of the rows that are `own`, and by nothing else; in a
        Parquet file, they say so themselves.
        """
        if self._held or self._beside is not None:
            return
        self._texts = self._outputs
        if suffix(self._path, name=self._name) != ".csv":
            return
        kept: dict[str, list[str]] = {one: [] for one in self._outputs}
        done = 0
        for columns, _, _ in batches(self._path, self._outputs, name=self._name, texts=self._outputs, each=True):
            here = own[done : done + len(columns[self._outputs[0]])]
            done += len(here)
            for one, texts in kept.items():
                texts += columns[one][here].tolist()
            if len(kept[self._outputs[0]]) >= _LOOKED_AT:
                break
        self._texts = [one for one, texts in kept.items() if not spells_numbers(texts)]

    def parts(self) -> Iterator[tuple[Table, NDArray[Any] | list[NDArray[Any]], float]]:
        """Yield columns, the matrix of the same rows, and the share of the file read so far.

        Where columns hold text, a list of all columns takes the place of the matrix.
        """
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
            numbers = [one for one in self._outputs if one not in self._texts]
            for columns, _, share in batches(
                self._path, names, name=self._name, numbers=numbers, texts=self._texts, each=True
            ):
                seen = _side_by_side([columns[one] for one in self._outputs])
                yield {one: columns[one] for one in self._columns}, seen, share


def _side_by_side(parts: list[NDArray[Any]]) -> NDArray[Any] | list[NDArray[Any]]:
    """A matrix of numbers; a list of the columns where some hold text, which are objects then."""
    if any(one.dtype.kind not in "fiubO" for one in parts):
        raise InputError(
            "output",
            "text",
            requirement="must hold numbers, as parts of a vector",
            remedy="leave categories out; texts are audited with `code`, as columns of a CSV or Parquet file",
        )
    # Each of them: stacked, they would have one type.
    exact = [one if one.dtype.kind == "O" else validate.floats("output", one) for one in parts]
    if any(one.dtype.kind == "O" for one in exact):
        return exact
    return exact[0] if len(exact) == 1 and exact[0].ndim == 2 else np.column_stack(exact)
