"""What people send by the forms of the page: fields, files, and rows in CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ..core.errors import InputError
from .rows import MOST_ROWS, Rows

_MOST_FIELDS = 5000
_MISSING = frozenset({"", "na", "n/a", "nan", "null"})
"""What stands for a missing value, as in the tables that teachers learned from."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """The fields of a form.

    Attributes
    ----------
    texts
        What was written, by the name of the field.
    files
        The bytes of files, by the name of the field; empty where none was chosen.
    """

    texts: dict[str, str]
    files: dict[str, bytes]


def read(content: bytes, kind: str) -> Form:
    """Read a form as browsers send it.

    Parameters
    ----------
    content
        The body of the request.
    kind
        Its Content-Type.
    """
    name = kind.partition(";")[0].strip().lower()
    if name == "application/x-www-form-urlencoded":
        try:
            pairs = parse_qsl(
                content.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace"
            )
        except ValueError:
            raise _unreadable(kind) from None
        return Form(texts=dict(pairs), files={})
    boundary = re.search(r'boundary="?([^";,\s]{1,70})"?', kind)
    if name != "multipart/form-data" or boundary is None:
        raise _unreadable(kind)
    return _parts(content, boundary[1].encode(errors="replace"), kind)


def _parts(content: bytes, boundary: bytes, kind: str) -> Form:
    texts: dict[str, str] = {}
    files: dict[str, bytes] = {}
    _, *parts = (b"\r\n" + content).split(b"\r\n--" + boundary, _MOST_FIELDS)
    for part in parts:
        if part.startswith(b"--"):
            return Form(texts=texts, files=files)
        head, found, value = part.partition(b"\r\n\r\n")
        said = head.decode(errors="replace")
        name = re.search(r';\s*name="([^"]*)"', said)
        if not found or name is None:
            break
        if re.search(r";\s*filename\*?=", said):
            files[name[1]] = value
        else:
            texts[name[1]] = value.decode(errors="replace")
    raise _unreadable(kind)


def _unreadable(kind: str) -> InputError:
    return InputError("the form", kind, requirement="must be sent whole by a browser", remedy="send it again")


def rows(text: str, known: Rows) -> list[list[Any]]:
    """Rows from CSV, in the order of the columns: with a line of names, or else with the values of all columns.

    Parameters
    ----------
    text
        The lines. Columns with other names than those of the table are left out, and so are empty lines.
    known
        The columns of the table.

    Returns
    -------
    Rows as `Rows.read` takes them.
    """
    try:
        lines = [line for line in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")) if any(line)]
    except csv.Error as failure:
        raise InputError(
            "the rows", str(failure), requirement="must be CSV with commas between values", remedy="correct it"
        ) from None
    names, order = known.names, list(range(len(known.names)))
    head = [cell.strip() for cell in lines[0]] if lines else []
    titled = head == names or (bool(set(names) & set(head)) and not all(map(_is_number, head)))
    if titled:
        missing = [name for name in names if name not in head]
        if missing:
            raise InputError(
                "the first line",
                f"no {missing[0]}",
                requirement="must name every column",
                remedy="add it, with empty values where it is missing",
            )
        order, lines = [head.index(name) for name in names], lines[1:]
    if not 1 <= len(lines) <= MOST_ROWS:
        raise InputError(
            "the rows",
            f"{len(lines)} rows",
            requirement=f"must be 1 to {MOST_ROWS}",
            remedy="write one row on each line" if not lines else "ask in parts",
        )
    wanted = len(head) if titled else len(names)
    found = []
    for number, line in enumerate(lines, start=1):
        if len(line) != wanted:
            raise InputError(
                f"row {number}",
                f"{len(line)} values",
                requirement=f"must have {wanted} values" + ("" if titled else ", one for each column"),
                remedy="put commas between them, and nothing where one is missing",
            )
        found.append(values([line[place] for place in order], known, number=number))
    return found


def values(texts: Sequence[str], known: Rows, *, number: int | None = None) -> list[Any]:
    """The values of one row, in the order of the columns, from what was written for each.

    Parameters
    ----------
    texts
        What was written.
    known
        The columns of the table.
    number
        The number of the row, for messages; None if there is only one.
    """
    found: list[Any] = []
    for name, text in zip(known.names, texts, strict=True):
        word = text.strip()
        if word.lower() in _MISSING:
            found.append(None)
        elif name not in known.columns.numeric_:
            found.append(word)
        elif _is_number(word):
            found.append(float(word))
        else:
            place = name if number is None else f"{name} in row {number}"
            raise InputError(
                place, word, requirement="must be a number, or nothing where it is missing", remedy="correct it"
            )
    return found


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
