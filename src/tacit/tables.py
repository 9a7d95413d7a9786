"""Tables from CSV, Parquet and npz files: columns by name, of numbers or of text.

read       a whole table, for learning. The text of a CSV file stays text: what a column is must not be guessed from
           private records, since one that is no number would change how all others are read
batches    some columns of a table of any size, part by part, for auditing. Here numbers are recognised
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, MissingExtraError
from .files import write_whole

Table = dict[str, NDArray[Any]]
"""Columns of one length: numbers, nan where one is missing, or text as objects, None where it is missing."""

SUFFIXES = (".csv", ".parquet", ".npz")

_ROWS_AT_ONCE = 2**19
_BYTES_AT_ONCE = 2**23
_PROBED = 2**14  # rows of a part, by which it is decided whether counting equal ones pays
_LONGEST_TEXT = 200
_NUMBERS = ("int64", "double")
_EXACT = 2**53  # up to here float64 holds every whole number


def read(path: Path, *, name: str) -> Table:
    """All columns of a file; `name` is what messages call it.

    An npz holds one array a column, or `X` with a row for each record, whose columns are called x0, x1 …, beside `y`.
    """
    kind = suffix(path, name=name)
    found = _npz(_arrays(path, name), name) if kind == ".npz" else _columns(_frame(path, kind, name), name)
    if not found or not len(next(iter(found.values()))):
        raise _unreadable(name, path, "no record")
    return found


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
            _check_complete(part[column], f"column {column!r} of {name}")
        different, counts = _different_rows(part)
        yield {column: _plain(different[column], f"column {column!r} of {name}") for column in columns}, counts, share
    if not seen:
        raise _unreadable(name, path, "no record")


def suffix(path: Path, *, name: str, among: Sequence[str] = SUFFIXES) -> str:
    """How the file's name ends, which says what it holds."""
    kind = path.suffix.lower()
    if kind not in among:
        raise InputError(
            name, str(path), requirement=f"must end in {', '.join(among)}", remedy="convert it to one of them"
        )
    return kind


def write_with_column(
    target: Path,
    source: Path,
    column: str,
    values: Sequence[str | int | None],
    *,
    rows: Sequence[int] | None = None,
    without: str | None = None,
) -> None:
    """A copy of a table, or of some of its rows, with one column set, and perhaps without another; None leaves a gap.

    Gaps in an npz, which knows none, are empty text, or nan among numbers.
    """
    kind, buffer = suffix(source, name="the table"), io.BytesIO()
    if kind == ".npz":
        arrays: dict[str, Any] = _arrays(source, "the table")
        if rows is not None:
            arrays = {key: array[list(rows)] for key, array in arrays.items()}
        arrays.pop(without or "", None)
        text = any(isinstance(value, str) for value in values)
        gap = "" if text else np.nan
        arrays[column] = np.array([gap if value is None else value for value in values])
        np.savez_compressed(buffer, **arrays)
    else:
        arrow = _arrow()
        frame = _frame(source, kind, "the table")
        frame = frame if rows is None else frame.take(list(rows))
        frame = frame.drop_columns([name for name in (column, without) if name in frame.column_names])
        frame = frame.append_column(column, arrow.array(values))
        if kind == ".csv":
            file = io.TextIOWrapper(buffer, encoding="utf-8", newline="", write_through=True)
            lines = csv.writer(file, lineterminator="\n")  # pyarrow's would quote every number that was read as text
            lines.writerow(frame.column_names)
            lines.writerows(zip(*(held.to_pylist() for held in frame.columns), strict=True))
        else:
            plain = arrow.schema([arrow.field(held.name, held.type, held.nullable) for held in frame.schema])
            arrow.parquet.write_table(frame.cast(plain), buffer)  # remarks in a file may speak of all its records
    write_whole(target, buffer.getvalue())


def _parquet_parts(path: Path, columns: Sequence[str], name: str) -> Iterator[tuple[Any, float]]:
    arrow = _arrow()
    try:
        # Unless told otherwise pyarrow holds all of the file that was read.
        file = arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BYTES_AT_ONCE)
    except (OSError, ValueError) as failure:
        raise _unreadable(name, path, type(failure).__name__) from None
    with file:
        wanted = _named(file.schema_arrow.names, columns, name)
        done = 0
        try:
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                done += batch.num_rows
                part = arrow.Table.from_batches([batch]).select(wanted).rename_columns(list(dict.fromkeys(columns)))
                yield _simplified(part, name), done / max(1, file.metadata.num_rows)
        except OSError as failure:
            raise _unreadable(name, path, type(failure).__name__) from None


def _csv_parts(path: Path, columns: Sequence[str], name: str) -> Iterator[tuple[Any, float]]:
    """Two passes: the first makes sure that the types which the beginning suggests hold to the end."""
    arrow = _arrow()
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
    arrow = _arrow()
    wanted = _named(_csv_schema(path, name).names, columns, name)
    options = arrow.csv.ConvertOptions(include_columns=wanted, column_types=types, strings_can_be_null=True)
    with arrow.OSFile(str(path)) as file:
        size = max(1, file.size())
        with arrow.csv.open_csv(
            file, convert_options=options, read_options=arrow.csv.ReadOptions(block_size=_BYTES_AT_ONCE)
        ) as reader:
            for batch in reader:
                part = arrow.Table.from_batches([batch]).rename_columns(list(dict.fromkeys(columns)))
                yield part, file.tell() / size


def _csv_schema(path: Path, name: str) -> Any:
    arrow = _arrow()
    try:
        with arrow.csv.open_csv(path) as beginning:
            return beginning.schema
    except (OSError, ValueError) as failure:
        raise _unreadable(name, path, _said(failure)) from None


def _wider_type(path: Path, failure: str, types: dict[str, Any], name: str) -> dict[str, Any]:
    """Floats for a column that began with whole numbers; anything else that does not fit is a mixture of types."""
    arrow = _arrow()
    found = re.match(
        r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to ([^:]+): invalid value '(.*)'",
        failure,
        re.DOTALL,
    )
    if not found:
        raise _unreadable(name, path, _said(failure)) from None
    column = _csv_schema(path, name).names[int(found[1])]
    if found[2].startswith("int") and column not in types:
        return {column: arrow.float64()}
    raise _mixed(column.strip(), name, f"{found[3]!r} after {'numbers' if found[2] in _NUMBERS else found[2]}")


def _check_unmixed(part: Any, name: str) -> None:
    """Text, of which some entries are numbers with a decimal point: had all been, it were a column of numbers."""
    arrow = _arrow()
    for column in part.column_names:
        if arrow.types.is_string(part[column].type):
            numbers = arrow.compute.match_substring_regex(part[column], r"^\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*$")
            if arrow.compute.any(numbers).as_py():
                raise _mixed(column, name, "numbers among text")


def _has_large_floats(values: Any) -> bool:
    """Whether some are so large that whole numbers next to them are the same float."""
    arrow = _arrow()
    if not arrow.types.is_floating(values.type):
        return False
    large = arrow.compute.greater_equal(arrow.compute.abs(values), float(_EXACT))
    return bool(arrow.compute.any(large).as_py())


def _check_told_apart(path: Path, columns: Sequence[str], name: str) -> None:
    """Refuses long whole numbers that were read as floats: those that differ would be counted as one output."""
    arrow = _arrow()
    for column in columns:
        (held,) = _named(_csv_schema(path, name).names, [column], name)
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
    arrow = _arrow()
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


def _check_complete(values: Any, name: str) -> None:
    if values.null_count:
        raise InputError(
            name,
            f"{values.null_count} missing",
            requirement="must have no missing entry (empty, NA, NaN, null)",
            remedy="leave such rows out only if missing is unrelated to the secret, else make it a value of its own",
        )


def _different_rows(part: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Rows that differ in a bit, and how many there are of each; all rows, and None, if hardly any come twice."""
    arrow = _arrow()
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
    arrow = _arrow()
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


def _said(failure: object) -> str:
    """What pyarrow complains about, without a word of a record."""
    said = re.match(r"Empty CSV file|.*Expected \d+ columns, got \d+", str(failure))
    return said[0] if said else type(failure).__name__ if isinstance(failure, Exception) else "no CSV"


def _frame(path: Path, kind: str, name: str) -> Any:
    arrow = _arrow()
    try:
        if kind == ".parquet":
            frame = arrow.parquet.read_table(path)
        else:
            with arrow.csv.open_csv(path) as beginning:
                names = beginning.schema.names
            options = arrow.csv.ConvertOptions(column_types=dict.fromkeys(names, arrow.string()))
            frame = arrow.csv.read_csv(path, convert_options=options)
            frame = frame.rename_columns([column.strip() for column in frame.column_names])
    except (OSError, ValueError) as failure:  # pyarrow's own errors are among these
        raise _unreadable(name, path, _said(failure)) from None
    if len(set(frame.column_names)) < len(frame.column_names):
        raise _unreadable(name, path, "two columns of one name")
    return frame


def _columns(frame: Any, name: str) -> Table:
    return {column: _column(frame[column], f"column {column!r} of {name}") for column in frame.column_names}


def _column(values: Any, name: str) -> NDArray[Any]:
    arrow = _arrow()
    types = arrow.types
    kind = values.type
    if types.is_null(kind):
        return np.full(len(values), np.nan)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(values.to_numpy())
    if types.is_decimal(kind):
        return np.asarray(values.cast(arrow.float64()).to_numpy())
    if types.is_nested(kind):
        raise InputError(name, str(kind), requirement="must hold one value a record", remedy="leave it out or split it")
    try:
        words = values.cast(arrow.large_string()).combine_chunks().dictionary_encode()
    except (ValueError, NotImplementedError):  # binary data that is no text
        raise InputError(
            name, str(kind), requirement="must hold numbers or text", remedy="leave it out or convert it"
        ) from None
    # Equal texts share one object.
    known = np.array([*words.dictionary.to_pylist(), None], dtype=object)
    return np.asarray(known[words.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)])


def _arrays(path: Path, name: str) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as failure:
        raise _unreadable(name, path, type(failure).__name__) from None


def _npz(arrays: Mapping[str, NDArray[Any]], name: str) -> Table:
    found: Table = {}
    for key, array in arrays.items():
        if key == "X" and array.ndim > 1:
            flat = array.reshape(len(array), -1)
            found |= {f"x{place}": flat[:, place] for place in range(flat.shape[1])}
        elif array.ndim == 1:
            found[key] = array
        else:
            raise InputError(
                f"array {key!r} of {name}",
                array.shape,
                requirement="must have one dimension, unless it is X",
                remedy="save one array a column, or X and y",
            )
    for key, array in found.items():
        if array.dtype.kind == "b":
            found[key] = np.where(array, "true", "false").astype(object)
        elif array.dtype.kind == "U":
            found[key] = array.astype(object)
        elif array.dtype.kind not in "iuf":
            raise InputError(
                f"array {key!r} of {name}",
                str(array.dtype),
                requirement="must hold numbers or text",
                remedy="convert it first",
            )
    if len({len(array) for array in found.values()}) > 1:
        lengths = {key: len(array) for key, array in arrays.items()}
        raise InputError(f"the arrays of {name}", lengths, requirement="must be of one length", remedy="save them anew")
    return found


def _unreadable(name: str, path: Path, why: object) -> InputError:
    return InputError(
        name,
        f"{why} in {path.name}",
        requirement="must be a readable table with one record or more",
        remedy="check that the file is there, whole, and what its name says; a CSV begins with a line of column names",
    )


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            "CSV and Parquet files must have pyarrow, got no such package; pip install 'tacit[tables]'"
        ) from None
    return pyarrow
