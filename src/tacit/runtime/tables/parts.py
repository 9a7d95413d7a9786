"""Some columns of a table of any size, part by part, for auditing; values are unchanged, and none may be missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.near import did_you_mean
from .fields import fields, header, is_quoted, unquoted
from .formats import SUFFIXES, Table, loaded_arrow, reading, suffix, unreadable

_ROWS_AT_ONCE = 2**19
_CELLS_AT_ONCE = 2**23  # of wide tables, so that a part takes no more memory
_BYTES_AT_ONCE = 2**23
_TEXTS_AT_ONCE = 2**14  # rows, where texts may be long
_PROBED = 2**14  # rows that decide whether counting equal ones is worthwhile
_MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"]
_MISSING += ["NULL", "NaN", "n/a", "nan", "null"]


def batches(
    path: Path,
    columns: Sequence[str],
    *,
    name: str,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    apart: bool = False,
    each: bool = False,
) -> Iterator[tuple[Table, NDArray[np.int64] | None, float]]:
    """Read some columns of a CSV or Parquet file, part by part, in memory that does not grow with the file.

    Yields columns (booleans, whole numbers, floats or text; nothing missing), how many rows of the file each row stands
    for (None: one each), and the share of the file read so far. If many rows of a part are equal to the last bit, each
    of them comes once, unless `each` row is wanted.

    The fields of a CSV file are text, exactly as written: 1 and 1.0 are different, and so are a and "a", unless every
    field of the column is quoted. Only the columns in `numbers` are read as numbers, each as the nearest float64; with
    `apart`, a column with two texts for one number is refused. Text in the columns of `texts` may be of any length; it
    comes as Python's own strings, without the quotes of a CSV file.
    """
    kind = suffix(path, name=name, among=SUFFIXES[:2])
    if kind == ".csv":
        parts = _csv_parts(path, columns, name, numbers, texts, apart)
    else:
        parts = _parquet_parts(path, columns, name, most=_TEXTS_AT_ONCE if texts else _ROWS_AT_ONCE)
    seen = 0
    for part, share in parts:
        seen += part.num_rows
        for column in columns:
            _check_complete(part[column], f"column {column!r} of `{name}`", rows=seen)
        different, counts = (part, None) if each else _different_rows(part)
        labelled = {column: f"column {column!r} of `{name}`" for column in columns}
        found = {column: _plain(different[column], label, long=column in texts) for column, label in labelled.items()}
        yield found, counts, share
    if not seen:
        raise unreadable(name, path, "no record")


def checked(columns: Table, name: str, *, rows: int) -> Table:
    """Columns of another source as `batches` yields them: of one of its types, and with nothing missing."""
    with reading(Path(name), name):
        part = _simplified(loaded_arrow().table(columns), name)
    for column in columns:
        _check_complete(part[column], f"column {column!r} of `{name}`", rows=rows)
    return {column: _plain(part[column], f"column {column!r} of `{name}`") for column in columns}


def _parquet_parts(path: Path, columns: Sequence[str], name: str, *, most: int) -> Iterator[tuple[Any, float]]:
    arrow = loaded_arrow()
    done = 0
    with contextlib.ExitStack() as opened, reading(path, name):
        # By default pyarrow keeps all of the file that it has read, and does not verify it.
        options = {"pre_buffer": False, "buffer_size": _BYTES_AT_ONCE, "page_checksum_verification": True}
        file = opened.enter_context(arrow.parquet.ParquetFile(path, **options))
        wanted = _named(file.schema_arrow.names, columns, name)
        rows = file.metadata.num_rows
        at_once = min(most, _CELLS_AT_ONCE // len(wanted))
        for batch in file.iter_batches(batch_size=max(1, at_once), columns=wanted):
            batch.validate(full=True)
            done += batch.num_rows
            part = arrow.Table.from_batches([batch]).select(wanted).rename_columns(list(dict.fromkeys(columns)))
            yield _simplified(part, name), done / max(1, rows)
        if done != rows:
            raise unreadable(name, path, f"{done} of {rows} rows")


def _csv_parts(
    path: Path, columns: Sequence[str], name: str, numbers: Sequence[str], texts: Sequence[str], apart: bool
) -> Iterator[tuple[Any, float]]:
    """Two passes: the first finds the columns in which every field is quoted, so that quotes tell nothing."""
    arrow = loaded_arrow()
    different = list(dict.fromkeys(columns))
    held = _named(header(path, name), different, name)
    bare = {
        column
        for part, _ in fields(path, held, name)
        for column, kept in zip(different, held, strict=True)
        if part.num_rows and not arrow.compute.all(is_quoted(part[kept])).as_py()
    }
    known: dict[str, Any] = {}
    for part, share in fields(path, held, name):
        part = part.select(held).rename_columns(different)
        for column in different:
            label = f"column {column!r} of `{name}`"
            meant = arrow.compute.utf8_trim_whitespace(unquoted(part[column]))
            gaps = arrow.compute.is_in(meant, value_set=arrow.array(_MISSING))
            found = part[column] if column in bare and column not in texts else unquoted(part[column])
            if column in numbers:
                found = _numbers(arrow.compute.if_else(gaps, None, meant), label)
                if apart:
                    known[column] = _check_apart(known.get(column), part[column], found, label)
            part = _with(part, column, arrow.compute.if_else(gaps, None, found))
        yield part, share


def spells_numbers(texts: list[str]) -> bool:
    """Whether all texts are numbers, as a column of numbers may write them."""
    arrow = loaded_arrow()
    try:
        arrow.compute.utf8_trim_whitespace(arrow.array(texts, type=arrow.string())).cast(arrow.float64())
    except ValueError:
        return False
    return True


def _numbers(texts: Any, name: str) -> Any:
    arrow = loaded_arrow()
    try:
        return texts.cast(arrow.float64())
    except ValueError:
        raise InputError(
            name,
            "an entry that is not a number",
            requirement="must hold numbers where `noise`, `noise_added`, `code`, `assume_one_direction` or "
            "`assume_max_slope` is given",
            remedy="write all entries in decimal digits, leave the column out, or leave out the option for categories",
        ) from None


def _check_apart(known: Any, texts: Any, numbers: Any, name: str) -> Any:
    """All pairs of text and number so far; two texts for one number, which an adversary sees, are refused."""
    arrow = loaded_arrow()
    pairs = arrow.table({"text": texts, "number": numbers})
    if known is not None:
        pairs = arrow.concat_tables([known, pairs])
    pairs = pairs.group_by(["text", "number"], use_threads=False).aggregate([])
    if arrow.compute.count_distinct(pairs["number"]).as_py() < pairs.num_rows:
        raise InputError(
            name,
            "different texts for one number",
            requirement="must write every number in one way, with no more digits than float64 distinguishes",
            remedy="round all numbers to the same number of digits before they are released",
        )
    return pairs


def _named(held: Sequence[str], columns: Sequence[str], name: str) -> list[str]:
    """The columns as the file calls them; spaces and quotes around names do not count."""
    plain = [plain_name(one) for one in held]
    found = []
    for column in dict.fromkeys(columns):
        matching = [one for one, said in zip(held, plain, strict=True) if column.strip() in (said, one.strip())]
        if len(matching) != 1:
            raise InputError(
                f"column {column!r} of `{name}`",
                f"{len(matching)} columns of this name" if matching else f"{len(held)} other columns",
                requirement="must be there once" if matching else "must be one of the file's columns",
                # Not all names: in a file without a first line of names, they are a record.
                remedy="rename all but one of them" if matching else did_you_mean(column, plain, "check its name"),
            )
        if matching[0] in found:
            raise InputError(
                f"column {column!r} of `{name}`",
                "the same column twice",
                requirement="must be named once, in one spelling",
                remedy="leave one of the two out",
            )
        found += matching
    return found


def plain_name(held: str) -> str:
    """The name of a column without spaces and quotes around it."""
    return held.strip().removeprefix('"').removesuffix('"').replace('""', '"').strip()


def _simplified(part: Any, name: str) -> Any:
    """Columns of a Parquet file as booleans, whole numbers, floats or text; different values stay different."""
    types = loaded_arrow().types
    for column in part.column_names:
        while types.is_dictionary(part[column].type):
            part = _with(part, column, part[column].cast(part[column].type.value_type))
        kind = part[column].type
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_null(kind):
            continue
        if types.is_nested(kind):
            raise InputError(
                f"column {column!r} of `{name}`",
                str(kind),
                requirement="must hold one value per row",
                remedy="split it into several columns",
            )
        try:
            part = _with(part, column, _exact(part[column]))
        except (ValueError, NotImplementedError):
            raise InputError(
                f"column {column!r} of `{name}`",
                str(kind),
                requirement="must hold numbers, booleans, times or text in UTF-8, without loss",
                remedy="convert it",
            ) from None
    return part


def _exact(values: Any) -> Any:
    """Numbers as float64, times and durations as whole numbers of their unit, the rest as text; a loss is an error."""
    arrow = loaded_arrow()
    types, kind = arrow.types, values.type
    if types.is_floating(kind):
        return values.cast(arrow.float64())
    if types.is_time32(kind):
        return values.cast(arrow.int32())
    if types.is_time64(kind) or types.is_duration(kind):
        return values.cast(arrow.int64())
    # Decimals with more digits than float64 distinguishes stay different as text.
    found = values.cast(arrow.float64() if types.is_decimal(kind) and kind.precision <= 15 else arrow.string())
    if types.is_temporal(kind) and not found.cast(kind).equals(values):
        raise ValueError
    return found


def _check_complete(values: Any, name: str, *, rows: int) -> None:
    """Refuse missing entries in this part; the rest of the file is not read to count more of them."""
    arrow = loaded_arrow()
    missing = values.null_count
    if arrow.types.is_floating(values.type):
        missing += arrow.compute.sum(arrow.compute.is_nan(values)).as_py() or 0
    if missing:
        raise InputError(
            name,
            f"{missing} missing among the first {rows} rows",
            requirement="must have no missing entry (empty, NA, NaN, null)",
            remedy="leave out such rows only if missing is unrelated to the secret, else make it a value of its own",
        )


def _different_rows(part: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """The different rows, to the last bit, and how often each occurs; all rows and None if few occur twice."""
    arrow = loaded_arrow()
    floats = [field.name for field in part.schema if arrow.types.is_floating(field.type)]
    bits = _viewed(part, floats, arrow.int64())  # as numbers, 0.0 and −0.0 would be equal
    keys = [str(place) for place in range(bits.num_columns)]

    def grouped(rows: Any) -> Any:
        # One thread: with several, the order of the groups would change from run to run.
        return rows.rename_columns(keys).group_by(keys, use_threads=False).aggregate([([], "count_all")])

    beginning = bits.slice(0, _PROBED)
    if 2 * grouped(beginning).num_rows > beginning.num_rows:
        return part, None
    found = grouped(bits)
    different = found.select(keys).rename_columns(part.column_names)
    return _viewed(different, floats, arrow.float64()), found["count_all"].to_numpy()


def _viewed(part: Any, columns: Sequence[str], kind: Any) -> Any:
    """The same bits, as another type."""
    for column in columns:
        part = _with(part, column, part[column].combine_chunks().view(kind))
    return part


def _with(part: Any, column: str, values: Any) -> Any:
    return part.set_column(part.column_names.index(column), column, values)


def _plain(values: Any, name: str, *, long: bool = False) -> NDArray[Any]:
    arrow = loaded_arrow()
    if not arrow.types.is_string(values.type):
        return np.asarray(values.to_numpy())
    words = values.combine_chunks().dictionary_encode()
    if long:
        listed = np.empty(len(words.dictionary), dtype=object)
        listed[:] = words.dictionary.to_pylist()
        return np.asarray(listed[words.indices.to_numpy()])
    known = validate.texts(name, words.dictionary.to_pylist())
    return np.asarray(np.array(known, dtype=str)[words.indices.to_numpy()])
