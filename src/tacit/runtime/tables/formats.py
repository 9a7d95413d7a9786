"""Which files hold tables, and what is said where one cannot be read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...core.errors import InputError, MissingExtraError, TacitError
from ..files import plain

Table = dict[str, NDArray[Any]]
"""Columns of one length: numbers, nan where one is missing; or objects, None where one is missing: text, and whole
numbers of which some are missing."""

SUFFIXES = (".csv", ".parquet", ".npz")


def suffix(path: Path, *, name: str, among: Sequence[str] = SUFFIXES) -> str:
    """How the name of a plain file ends, which says what it holds."""
    kind = path.suffix.lower()
    if kind not in among:
        raise InputError(
            name, str(path), requirement=f"must end in {', '.join(among)}", remedy="convert it to one of them"
        )
    plain(path, name)
    return kind


@contextlib.contextmanager
def reading(path: Path, name: str) -> Iterator[None]:
    """Whatever is raised over a file that is truncated or corrupt becomes one line without a word of a record."""
    try:
        yield
    except TacitError:
        raise
    except Exception as failure:
        raise unreadable(name, path, complaint(failure)) from None


def unreadable(name: str, path: Path, why: object) -> InputError:
    """The one line for a file that is no table; `why` is to say nothing of its records."""
    return InputError(
        name,
        f"{why} in {path.name}",
        requirement="must be a readable table with one record or more",
        remedy="check that the file is there, whole, and what its name says; a CSV begins with a line of column names",
    )


def complaint(failure: Exception) -> str:
    """What went wrong, without a word of a record."""
    known = re.search(r"Empty CSV file|Expected \d+ columns, got \d+|invalid UTF8|CRC checksum", str(failure))
    return known[0] if known else type(failure).__name__


def loaded_arrow() -> Any:
    """pyarrow with the parts of it that read and write files."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            "CSV and Parquet files must have pyarrow, got no such package; pip install '.[tables]' in Tacit's checkout"
        ) from None
    return pyarrow
