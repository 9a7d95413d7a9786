"""What the rows of a file hold, to sort them by nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ..files import arrays
from .formats import loaded_arrow, suffix
from .whole import _frame

_MOST_CELLS = 2**24  # that are looked at for rows that repeat


def contents(path: Path, *, without: Collection[str], name: str) -> list[str]:
    """Each record of a file as text, without some columns; records with equal texts are equal in a copy of the file.

    A column that `write_with_column` cannot leave out, because it is part of X in an npz file, is refused.
    """
    kind = suffix(path, name=name)
    if kind == ".npz":
        held = arrays(path, name)
        for column in sorted(without):
            if "X" in held and column not in held and re.fullmatch(r"x\d+", column):
                raise InputError(
                    f"column {column!r} of `{name}`",
                    "a part of X, which is published",
                    requirement="must be an array of its own",
                    remedy="save it separately from X, e.g. as y",
                )
        kept = [held[key] for key in sorted(held) if key not in without]
        count = len(next(iter(held.values())))
        return [" ".join(array[row].tobytes().hex() for array in kept) for row in range(count)]
    frame = _frame(path, kind, name)
    columns = [_exact(frame[column]).to_pylist() for column in sorted(frame.column_names) if column not in without]
    return [repr(values) for values in zip(*columns, strict=True)] if columns else [""] * frame.num_rows


def occurrences(path: Path, *, most: int, name: str) -> NDArray[np.int64]:
    """How often each different row occurs among the first rows of a CSV or Parquet file, all columns together.

    Lines of a CSV file are compared as they stand; a Parquet file with columns that cannot be compared has none.
    """
    if suffix(path, name=name) == ".csv":
        with path.open("rb") as file:
            names = next(file, b"")
            lines = islice(file, min(most, _MOST_CELLS // (1 + names.count(b","))))
            counts = Counter(hash(line.rstrip(b"\r\n")) for line in lines)
        return np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    arrow = loaded_arrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            rows = max(1, min(most, _MOST_CELLS // max(1, len(file.schema_arrow.names))))
            parts, seen = [], 0
            for part in file.iter_batches(batch_size=rows):  # which may end with a row group
                parts.append(part.slice(0, rows - seen))
                seen += len(parts[-1])
                if seen >= rows:
                    break
        if not parts:
            return np.zeros(0, dtype=np.int64)
        table = arrow.Table.from_batches(parts).unify_dictionaries()
        table = table.rename_columns([str(place) for place in range(table.num_columns)])
        found = table.group_by(table.column_names).aggregate([([], "count_all")])
        return np.asarray(found["count_all"].to_numpy(), dtype=np.int64)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, arrow.ArrowTypeError, OSError):
        return np.zeros(0, dtype=np.int64)


def _exact(values: Any) -> Any:
    """Floats and times as the bits that a copy writes: Python has only one nan, and no nanoseconds."""
    arrow = loaded_arrow()
    kind = values.type
    if arrow.types.is_floating(kind) or (arrow.types.is_temporal(kind) and not arrow.types.is_interval(kind)):
        return values.combine_chunks().view({16: arrow.int16(), 32: arrow.int32(), 64: arrow.int64()}[kind.bit_width])
    return values
