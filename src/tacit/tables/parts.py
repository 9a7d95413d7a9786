"""Some columns of a table of any size, part by part, for auditing: numbers are recognised, and nothing is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .formats import SUFFIXES, Table, complaint, csv_names, loaded_arrow, suffix, unreadable

_ROWS_AT_ONCE = 2**19
_BYTES_AT_ONCE = 2**23
_PROBED = 2**14  # rows of a part, by which it is decided whether counting equal ones pays
_LONGEST_TEXT = 200
_NUMBERS = ("int64", "double")
_EXACT = 2**53  # up to here float64 holds every whole number


def batches(
    path: Path, columns: Sequence[str], *, name: str
) -> Iterator[tuple[Table, NDArray[np.int64] | None, float]]:
    """Some columns of a CSV or Parquet file, part by part, in memory that does not grow with the file.

    Yields columns (booleans, whole numbers, floats or text; nothing missing), how many rows each of theirs stands for
    (None: one), and the share of the file that was read. Rows of one part that are the same to the last bit come once,
    where there are many of them. In a CSV file a column holds numbers if all its entries are numbers; two numbers
    written differently, such as 1 and 1.0, are one, and so are fractions that float64 does not tell apart.
    """
    kind = suffix(path, name=name, among=SUFFIXES[:2])
    seen = 0
    for part, share in (_csv_parts if kind == ".csv" else _parquet_parts)(path, columns, name):
        seen += part.num_rows
        for column in columns:
            _check_complete(part[column], f"column {column!r} of {name}", rows=seen)
        different, counts = _different_rows(part)
        yield {column: _plain(different[column], f"column {column!r} of {name}") for column in columns}, counts, share
    if not seen:
        raise unreadable(name, path, "no record")


def _parquet_parts(path: Path, columns: Sequence[str], name: str) -> Iterator[tuple[Any, float]]:
    arrow = loaded_arrow()
    try:
        # Unless told otherwise pyarrow holds all of the file that was read.
        file = arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BYTES_AT_ONCE)
    except (OSError, ValueError) as failure:
        raise unreadable(name, path, type(failure).__name__) from None
    with file:
        wanted = _named(file.schema_arrow.names, columns, name)
        done = 0
        try:
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                done += batch.num_rows
                part = arrow.Table.from_batches([batch]).select(wanted).rename_columns(list(dict.fromkeys(columns)))
                yield _simplified(part, name), done / max(1, file.metadata.num_rows)
        except OSError as failure:
            raise unreadable(name, path, type(failure).__name__) from None


def _csv_parts(path: Path, columns: Sequence[str], name: str) -> Iterator[tuple[Any, float]]:
    """Two passes: the first makes sure that the types which the beginning suggests hold to the end."""
    arrow = loaded_arrow()
    types: dict[str, Any] = {}
    large: set[str] = set()
    while True:
        try:
            for part, _ in _csv_pass(path, columns, name, types):
                _check_unmixed(part, name)
                large |= {column for column in part.column_names if _has_large_floats(part[column])}
            break
        except arrow.ArrowInvalid as failure:
            types |= _wider_type(path, str(failure), types, name)
    _check_told_apart(path, sorted(large), name)
    for part, share in _csv_pass(path, columns, name, types):
        yield _simplified(part, name), share


def _csv_pass(path: Path, columns: Sequence[str], name: str, types: dict[str, Any]) -> Iterator[tuple[Any, float]]:
    arrow = loaded_arrow()
    wanted = _named(csv_names(path, name), columns, name)
    options = arrow.csv.ConvertOptions(include_columns=wanted, column_types=types, strings_can_be_null=True)
    with arrow.OSFile(str(path)) as file:
        size = max(1, file.size())
        with arrow.csv.open_csv(
            file, convert_options=options, read_options=arrow.csv.ReadOptions(block_size=_BYTES_AT_ONCE)
        ) as reader:
            for batch in reader:
                part = arrow.Table.from_batches([batch]).rename_columns(list(dict.fromkeys(columns)))
                yield part, file.tell() / size


def _wider_type(path: Path, failure: str, types: dict[str, Any], name: str) -> dict[str, Any]:
    """Floats for a column that began with whole numbers; anything else that does not fit is a mixture of types."""
    arrow = loaded_arrow()
    found = re.match(
        r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to ([^:]+): invalid value '(.*)'",
        failure,
        re.DOTALL,
    )
    if not found:
        raise unreadable(name, path, complaint(failure)) from None
    column = csv_names(path, name)[int(found[1])]
    if found[2].startswith("int") and column not in types:
        return {column: arrow.float64()}
    raise _mixed(column.strip(), name, f"{found[3]!r} after {'numbers' if found[2] in _NUMBERS else found[2]}")


def _check_unmixed(part: Any, name: str) -> None:
    """Text, of which some entries are numbers with a decimal point: had all been, it were a column of numbers."""
    arrow = loaded_arrow()
    for column in part.column_names:
        if arrow.types.is_string(part[column].type):
            numbers = arrow.compute.match_substring_regex(part[column], r"^\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*$")
            if arrow.compute.any(numbers).as_py():
                raise _mixed(column, name, "numbers among text")


def _has_large_floats(values: Any) -> bool:
    """Whether some are so large that whole numbers next to them are the same float."""
    arrow = loaded_arrow()
    if not arrow.types.is_floating(values.type):
        return False
    large = arrow.compute.greater_equal(arrow.compute.abs(values), float(_EXACT))
    return bool(arrow.compute.any(large).as_py())


def _check_told_apart(path: Path, columns: Sequence[str], name: str) -> None:
    """Refuses long whole numbers that were read as floats: those that differ would be counted as one output."""
    arrow = loaded_arrow()
    for column in columns:
        (held,) = _named(csv_names(path, name), [column], name)
        for part, _ in _csv_pass(path, [column], name, {held: arrow.string()}):
            long = arrow.compute.match_substring_regex(part[column], r"^\s*[-+]?\d{16,}(\.\d*)?\s*$")
            if arrow.compute.any(long).as_py():
                raise InputError(
                    f"column {column!r} of {name}",
                    "whole numbers of 16 digits or more, read as floats",
                    requirement="must hold numbers that float64 or int64 tells apart",
                    remedy="make them text, e.g. by a letter in front",
                )


def _mixed(column: str, name: str, found: str) -> InputError:
    return InputError(
        f"column {column!r} of {name}",
        found,
        requirement="must hold entries of one type",
        remedy="make all of them numbers, or none of them",
    )


def _named(held: Sequence[str], columns: Sequence[str], name: str) -> list[str]:
    """The columns as the file calls them; spaces around names do not count."""
    found = []
    for column in dict.fromkeys(columns):
        matching = [one for one in held if one.strip() == column.strip()]
        if len(matching) != 1:
            raise InputError(
                f"column {column!r} of {name}",
                "two of them" if matching else ", ".join(one.strip() for one in held),
                requirement="must be there" if not matching else "must be there once",
                remedy="check the spelling" if not matching else "rename one of them",
            )
        found += matching
    return found


def _simplified(part: Any, name: str) -> Any:
    """Columns as booleans, whole numbers, floats or text."""
    arrow = loaded_arrow()
    types = arrow.types
    for column in part.column_names:
        kind = part[column].type
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_null(kind):
            continue
        if types.is_nested(kind):
            raise InputError(
                f"column {column!r} of {name}",
                str(kind),
                requirement="must hold one value a row",
                remedy="split it into several columns",
            )
        # Decimals of more digits than float64 tells apart stay different as text.
        number = types.is_floating(kind) or (types.is_decimal(kind) and kind.precision <= 15)
        try:
            cast = part[column].cast(arrow.float64() if number else arrow.string())
        except (ValueError, NotImplementedError):
            raise InputError(
                f"column {column!r} of {name}",
                str(kind),
                requirement="must hold numbers, booleans or text",
                remedy="convert it",
            ) from None
        part = _with(part, column, cast)
    return part


def _check_complete(values: Any, name: str, *, rows: int) -> None:
    """Of the last of so many rows, all before them complete: a file is not read on to count what it lacks."""
    if values.null_count:
        raise InputError(
            name,
            f"{values.null_count} missing among the first {rows} rows",
            requirement="must have no missing entry (empty, NA, NaN, null)",
            remedy="leave such rows out only if missing is unrelated to the secret, else make it a value of its own",
        )


def _different_rows(part: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Rows that differ in a bit, and how many there are of each; all rows, and None, if hardly any come twice."""
    arrow = loaded_arrow()
    floats = [field.name for field in part.schema if arrow.types.is_floating(field.type)]
    bits = _viewed(part, floats, arrow.int64())  # as numbers, 0.0 and −0.0 would be one
    keys = [str(place) for place in range(bits.num_columns)]

    def grouped(rows: Any) -> Any:
        # One thread: several would give the groups in an order that changes from run to run.
        return rows.rename_columns(keys).group_by(keys, use_threads=False).aggregate([([], "count_all")])

    beginning = bits.slice(0, _PROBED)
    if 2 * grouped(beginning).num_rows > beginning.num_rows:
        return part, None
    found = grouped(bits)
    different = found.select(keys).rename_columns(part.column_names)
    return _viewed(different, floats, arrow.float64()), found["count_all"].to_numpy()


def _viewed(part: Any, columns: Sequence[str], kind: Any) -> Any:
    """The same bits, read as another type."""
    for column in columns:
        part = _with(part, column, part[column].combine_chunks().view(kind))
    return part


def _with(part: Any, column: str, values: Any) -> Any:
    return part.set_column(part.column_names.index(column), column, values)


def _plain(values: Any, name: str) -> NDArray[Any]:
    arrow = loaded_arrow()
    if not arrow.types.is_string(values.type):
        return np.asarray(values.to_numpy())
    words = values.combine_chunks().dictionary_encode()
    known = words.dictionary.to_pylist()
    longest = max(map(len, known), default=0)
    if longest > _LONGEST_TEXT:
        raise InputError(
            name,
            f"one of {longest} characters",
            requirement=f"must hold texts of {_LONGEST_TEXT} characters or fewer",
            remedy="number the different texts, or hash them",
        )
    if any(text.endswith("\0") for text in known):
        raise InputError(
            name,
            "text that ends in NUL",
            requirement="must not end in what NumPy drops",
            remedy="escape the text, e.g. by repr",
        )
    return np.asarray(np.array(known, dtype=str)[words.indices.to_numpy()])
