"""Whole tables, for learning, and copies of them with one column set.

The text of a CSV file stays text: the type of a column must not be guessed from private records, since one entry that
is not a number would change how all others are read.
"""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ..files import arrays, check_memory, write_whole
from .fields import require_clear_quotes
from .formats import Table, loaded_arrow, reading, suffix, unreadable


def read(path: Path, *, name: str) -> Table:
    """Read all columns of a file; `name` is its name in error messages.

    An npz file has one array per column, or `X` with one row per record, whose columns are called x0, x1 …, and `y`.
    """
    kind = suffix(path, name=name)
    found = _npz(arrays(path, name), name) if kind == ".npz" else _columns(_frame(path, kind, name), name)
    if not found or not len(next(iter(found.values()))):
        raise unreadable(name, path, "no record")
    return found


def write_with_column(
    target: Path,
    source: Path,
    column: str,
    values: Sequence[str | float | None],
    *,
    rows: Sequence[int] | None = None,
    without: str | None = None,
) -> None:
    """Copy a table, or some of its rows, with one column set and possibly another left out; None is a missing entry.

    In an npz file a missing entry is an empty text, or nan among numbers.
    """
    kind, buffer = suffix(source, name="the table"), io.BytesIO()
    if kind == ".npz":
        held: dict[str, Any] = arrays(source, "the table")
        if rows is not None:
            held = {key: array[list(rows)] for key, array in held.items()}
        held.pop(without or "", None)
        text = any(isinstance(value, str) for value in values)
        gap = "" if text else np.nan
        held[column] = np.array([gap if value is None else value for value in values])
        _write_npz(buffer, held)
    else:
        arrow = loaded_arrow()
        frame = _frame(source, kind, "the table")
        frame = frame if rows is None else frame.take(list(rows))
        frame = frame.drop_columns([name for name in (column, without) if name in frame.column_names])
        frame = frame.append_column(column, arrow.array(values))
        if kind == ".csv":
            file = io.TextIOWrapper(buffer, encoding="utf-8", newline="", write_through=True)
            lines = csv.writer(file, lineterminator="\n")  # pyarrow would quote every number that was read as text
            lines.writerow(frame.column_names)
            lines.writerows(zip(*(held.to_pylist() for held in frame.columns), strict=True))
        else:
            plain = arrow.schema([arrow.field(held.name, held.type, held.nullable) for held in frame.schema])
            arrow.parquet.write_table(
                frame.cast(plain), buffer
            )  # metadata in a file may reveal something about all its records
    write_whole(target, buffer.getvalue())


def _write_npz(file: io.BytesIO, held: Mapping[str, NDArray[Any]]) -> None:
    """Write like np.savez_compressed, but with columns of any name and without timestamps."""
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, array in held.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue(), compress_type=zipfile.ZIP_DEFLATED)


def _frame(path: Path, kind: str, name: str) -> Any:
    arrow = loaded_arrow()
    with reading(path, name):
        if kind == ".parquet":
            # A few bytes may encode any number of equal rows.
            rows = arrow.parquet.read_metadata(path)
            check_memory(8 * rows.num_rows * rows.num_columns, path, name)
            frame = arrow.parquet.read_table(path, page_checksum_verification=True)
            frame.validate(full=True)
            frame = _decoded(frame)
        else:
            require_clear_quotes(path, name)
            parse = arrow.csv.ParseOptions(newlines_in_values=True)
            with arrow.csv.open_csv(path, parse_options=parse) as beginning:
                texts = dict.fromkeys(beginning.schema.names, arrow.string())
            convert = arrow.csv.ConvertOptions(column_types=texts)
            frame = arrow.csv.read_csv(path, parse_options=parse, convert_options=convert)
            frame = frame.rename_columns([column.strip() for column in frame.column_names])
    if len(set(frame.column_names)) < len(frame.column_names):
        raise unreadable(name, path, "two columns of the same name")
    return frame


def _decoded(frame: Any) -> Any:
    """Replace dictionaries by their values, since a dictionary reveals the order of the records."""
    arrow = loaded_arrow()
    for place, field in enumerate(frame.schema):
        while arrow.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
            frame = frame.set_column(place, field, frame.column(place).cast(field.type))
    return frame


def _columns(frame: Any, name: str) -> Table:
    return {column: _column(frame[column], f"column {column!r} of `{name}`") for column in frame.column_names}


def _column(values: Any, name: str) -> NDArray[Any]:
    arrow = loaded_arrow()
    types = arrow.types
    kind = values.type
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    if types.is_integer(kind) and values.null_count:
        # NumPy would turn all whole numbers into floats if one is missing, and change other records.
        found = np.empty(len(values), dtype=object)
        found[:] = values.to_pylist()
        return found
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(values.to_numpy())
    if types.is_decimal(kind):
        return np.asarray(values.cast(arrow.float64()).to_numpy())
    if types.is_nested(kind):
        raise InputError(
            name, str(kind), requirement="must hold one value per record", remedy="leave it out or split it"
        )
    try:
        words = values.cast(arrow.large_string()).combine_chunks().dictionary_encode()
    except (ValueError, NotImplementedError):  # binary data that is not text
        raise InputError(
            name, str(kind), requirement="must hold numbers or text", remedy="leave it out or convert it"
        ) from None
    # Equal texts share one object.
    known = np.array([*words.dictionary.to_pylist(), None], dtype=object)
    return np.asarray(known[words.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)])


def _npz(arrays: Mapping[str, NDArray[Any]], name: str) -> Table:
    found: Table = {}
    for key, array in arrays.items():
        if key == "X" and array.ndim > 1:
            flat = array.reshape(len(array), math.prod(array.shape[1:]))
            found |= {f"x{place}": flat[:, place] for place in range(flat.shape[1])}
        elif array.ndim == 1:
            found[key] = array
        else:
            raise InputError(
                f"array {key!r} of `{name}`",
                array.shape,
                requirement="must have one dimension, unless it is X",
                remedy="save one array per column, or X and y",
            )
    for key, array in found.items():
        if array.dtype.kind == "b":
            found[key] = np.where(array, "true", "false").astype(object)
        elif array.dtype.kind == "U":
            found[key] = array.astype(object)
        elif array.dtype.kind not in "iuf":
            raise InputError(
                f"array {key!r} of `{name}`",
                str(array.dtype),
                requirement="must hold numbers or text",
                remedy="convert it first",
            )
    if len({len(array) for array in found.values()}) > 1:
        lengths = {key: len(array) for key, array in arrays.items()}
        raise InputError(
            f"the arrays of `{name}`", lengths, requirement="must be of the same length", remedy="save them again"
        )
    return found
