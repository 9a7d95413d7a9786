"""Which files hold tables, and the errors for files that cannot be read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...core.errors import InputError, MissingExtraError, TacitError
from ..files import existing, plain

Table = dict[str, NDArray[Any]]
"""Columns of the same length. Numbers have nan for a missing entry. Text, and whole numbers of which some are missing,
are objects with None for a missing entry."""

SUFFIXES = (".csv", ".parquet", ".npz")


def suffix(path: Path, *, name: str, among: Sequence[str] = SUFFIXES) -> str:
    """The suffix of a plain file, which determines its format."""
    existing(path, name)
    kind = path.suffix.lower()
    if kind not in among:
        raise InputError(
            name, str(path), requirement=f"must end in {', '.join(among)}", remedy="convert it to one of them"
        )
    plain(path, name)
    return kind


@contextlib.contextmanager
def reading(path: Path, name: str) -> Iterator[None]:
    """Turn any error about a truncated or corrupt file into one line that quotes no record."""
    try:
        yield
    except TacitError:
        raise
    except Exception as failure:
        raise unreadable(name, path, complaint(failure)) from None


def unreadable(name: str, path: Path, why: object) -> InputError:
    """The error for a file that is not a table; `why` must not quote its records."""
    return InputError(
        name,
        f"{why} in {path.name}",
        requirement="must be a readable table with at least one record",
        remedy="check that the file exists, is complete and is what its name says; a CSV begins with column names",
    )


def complaint(failure: Exception) -> str:
    """What went wrong, without quoting a record."""
    known = re.search(r"Empty CSV file|Expected \d+ columns, got \d+|invalid UTF8|CRC checksum", str(failure))
    return known[0] if known else type(failure).__name__


def loaded_arrow() -> Any:
    """Import pyarrow with its modules for files."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            "CSV and Parquet files must have pyarrow, got no such package; pip install 'tacit-privacy[tables]'"
        ) from None
    return pyarrow
