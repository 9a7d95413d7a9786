"""Which files hold tables, and what is said where one cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..errors import InputError, MissingExtraError

Table = dict[str, NDArray[Any]]
"""Columns of one length: numbers, nan where one is missing, or text as objects, None where it is missing."""

SUFFIXES = (".csv", ".parquet", ".npz")


def suffix(path: Path, *, name: str, among: Sequence[str] = SUFFIXES) -> str:
    """How the file's name ends, which says what it holds."""
    kind = path.suffix.lower()
    if kind not in among:
        raise InputError(
            name, str(path), requirement=f"must end in {', '.join(among)}", remedy="convert it to one of them"
        )
    return kind


def csv_names(path: Path, name: str) -> list[str]:
    """The names of a CSV file's columns, as they stand there."""
    arrow = loaded_arrow()
    try:
        with arrow.csv.open_csv(path) as beginning:
            names: list[str] = beginning.schema.names
    except (OSError, ValueError) as failure:  # pyarrow's own errors are among these
        raise unreadable(name, path, complaint(failure)) from None
    return names


def unreadable(name: str, path: Path, why: object) -> InputError:
    """The one line for a file that is no table; `why` is to say nothing of its records."""
    return InputError(
        name,
        f"{why} in {path.name}",
        requirement="must be a readable table with one record or more",
        remedy="check that the file is there, whole, and what its name says; a CSV begins with a line of column names",
    )


def complaint(failure: object) -> str:
    """What pyarrow complains about, without a word of a record."""
    known = re.match(r"Empty CSV file|.*Expected \d+ columns, got \d+", str(failure))
    return known[0] if known else type(failure).__name__ if isinstance(failure, Exception) else "no CSV"


def loaded_arrow() -> Any:
    """pyarrow with the parts of it that read and write files."""
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
