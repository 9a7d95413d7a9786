"""Rows that somebody asks about: checked, named, and turned into numbers for the teachers."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.near import did_you_mean
from ..learning.columns import Columns, text_of

MOST_ROWS = 500
"""Rows of one request."""
LONGEST = 1000
"""Characters of one value."""

Row = tuple[Any, ...]
"""The values of a row, in the order of the columns: numbers and None for numeric columns, else text and None."""


class Rows:
    """Reads rows of the table that teachers know.

    Parameters
    ----------
    columns
        The rule that turns columns into numbers.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.names: list[str] = list(columns.names_)
        self._known = set(self.names)
        self._numeric = [name in columns.numeric_ for name in self.names]
        self.kinds = dict(zip(self.names, ("number" if numeric else "text" for numeric in self._numeric), strict=True))

    def read(self, given: object) -> list[Row]:
        """Rows from JSON: a list of objects by column name, or of lists in the order of the columns.

        Parameters
        ----------
        given
            What JSON says.

        Returns
        -------
        The rows.

        Raises
        ------
        InputError
            If a row is not one of this table.
        """
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_ROWS:
            got = f"{len(given)} rows" if isinstance(given, list) else type(given).__name__
            raise InputError("rows", got, requirement=f"must be a list of 1 to {MOST_ROWS} rows", remedy="send fewer")
        return [self._row(place, row) for place, row in enumerate(given)]

    def content(self, row: Row) -> bytes:
        """The row as bytes: rows are equal if and only if these are."""
        parts = []
        for value in row:
            if value is None:
                parts.append(b"n")
            elif isinstance(value, float):
                parts.append(b"f" + struct.pack("<d", value))
            else:
                text = value.encode(errors="surrogatepass")
                parts.append(b"t" + struct.pack("<I", len(text)) + text)
        return b"".join(parts)

    def numbers(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        """What teachers see of the rows."""
        table = {name: [row[place] for row in rows] for place, name in enumerate(self.names)}
        return self.columns.transform(table)

    def _row(self, place: int, row: object) -> Row:
        if isinstance(row, Mapping):
            if row.keys() != self._known:
                self._refuse_names(place, row)
            values = [row[name] for name in self.names]
        elif isinstance(row, list):
            if len(row) != len(self.names):
                raise InputError(
                    f"rows[{place}]",
                    f"{len(row)} values",
                    requirement=f"must have {len(self.names)} values, one for each column",
                    remedy="GET /v1/service lists the columns",
                )
            values = row
        else:
            raise InputError(
                f"rows[{place}]",
                type(row).__name__,
                requirement="must be an object by column name, or a list of values",
                remedy="GET /v1/service lists the columns",
            )
        return tuple(
            self._value(place, name, value, numeric)
            for name, value, numeric in zip(self.names, values, self._numeric, strict=True)
        )

    def _value(self, place: int, name: str, value: object, numeric: bool) -> float | str | None:
        if value is None:
            return None
        if numeric:
            # Subnormal and signed zeros are no reason to decide twice.
            if type(value) in (int, float):
                try:
                    found = float(value) + 0.0  # type: ignore[arg-type]
                except OverflowError:
                    found = math.inf
                if math.isfinite(found):
                    return found
            requirement = "must be a finite number, or null where it is missing"
        else:
            if type(value) in (str, bool, int, float) and len(str(value)) <= LONGEST:
                return text_of(value)  # as teachers know it: 1.0 is 1, and an empty text is missing
            requirement = f"must be text of at most {LONGEST} characters, or null where it is missing"
        raise InputError(f"rows[{place}].{name}", value, requirement=requirement, remedy="correct it and ask again")

    def _refuse_names(self, place: int, row: Mapping[str, object]) -> None:
        missing = [name for name in self.names if name not in row]
        unknown = [name for name in row if name not in self._known]
        if unknown:
            raise InputError(
                f"rows[{place}]",
                unknown[0],
                requirement="must have the columns that teachers know, and no others",
                remedy=did_you_mean(unknown[0], missing or self.names, "leave it out"),
            )
        raise InputError(
            f"rows[{place}]",
            f"no {missing[0]}",
            requirement="must have every column that teachers know",
            remedy="add it; null where it is missing",
        )
