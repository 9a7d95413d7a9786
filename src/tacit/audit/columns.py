"""Check columns: one type, nothing missing, and different entries stay different."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError

EXACT = 2**53
"""The largest size up to which float64 holds every whole number."""

_TYPES = "use whole numbers, floats, booleans or text"
_AS_TEXT = "pass the column as text"
_MISSING = "make it a value of its own, or leave these rows out if missing is unrelated to the secret"

_Array = NDArray[Any]


def column(name: str, value: object) -> _Array:
    """A column as bool, int64, float64 or text; refuses missing entries and mixed types.

    Whole numbers among floats become floats: 1 and 1.0 are the same value.
    """
    requirement = "must be one column of numbers, booleans or text"
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(name, "a masked array", requirement=f"{requirement} without masked entries", remedy=_MISSING)
    what = type(value).__name__  # not what it holds, which may be private
    if isinstance(value, str | bytes | Mapping) or value is None:
        raise InputError(name, what, requirement=requirement, remedy=_TYPES)
    try:
        # Plain sequences keep the types of their entries: NumPy would turn [1, "a"] into text.
        plain = not any(hasattr(value, name) for name in ("dtype", "__array__", "__array_interface__", "to_numpy"))
        found = np.asarray(list(cast("Any", value)), dtype=object) if plain else np.asarray(validate.detached(value))
        if found.dtype.kind == "U" and not isinstance(value, np.ndarray):
            # NumPy's own text would lose NULs at the end.
            found = np.asarray(list(cast("Any", value)), dtype=object)
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        raise InputError(name, what, requirement=requirement, remedy=_TYPES) from None
    if found.ndim != 1:
        raise InputError(f"{name}, of shape {found.shape},", what, requirement=requirement, remedy=_TYPES)
    if found.dtype.kind in "OT":
        found = _of_one_type(name, found)
    if found.dtype.kind == "f":
        if found.dtype.itemsize > 8:
            raise InputError(name, str(found.dtype), requirement="must fit into float64", remedy=_AS_TEXT)
        missing = int(np.count_nonzero(np.isnan(found)))
        if missing:
            raise InputError(name, f"{missing} missing", requirement="must have no missing entry", remedy=_MISSING)
        return found.astype(np.float64, copy=False)
    if found.dtype.kind in "iu":
        if len(found) and found.dtype == np.uint64 and int(found.max()) > 2**63 - 1:
            raise InputError(name, "a larger number", requirement="must fit into int64", remedy=_AS_TEXT)
        return found.astype(np.int64, copy=False)
    if found.dtype.kind not in "bU":
        raise InputError(name, str(found.dtype), requirement=requirement, remedy=_TYPES)
    if found.dtype.kind == "U" and found.dtype.itemsize > 4 * validate.LONGEST_TEXT:
        validate.texts(name, found.tolist())
    return found


def _of_one_type(name: str, found: _Array) -> _Array:
    kinds = {kind_of(entry) for entry in found.tolist()}
    if "missing" in kinds:
        missing = sum(kind_of(entry) == "missing" for entry in found.tolist())
        raise InputError(name, f"{missing} missing", requirement="must have no missing entry", remedy=_MISSING)
    if kinds == {"whole", "float"}:
        for entry in found.tolist():
            if isinstance(entry, numbers.Integral) and abs(int(entry)) > EXACT:
                raise InputError(
                    name, "a larger one", requirement="must be at most 2**53 in size among floats", remedy=_AS_TEXT
                )
        kinds = {"float"}
    if kinds == {"text"}:
        validate.texts(name, found.tolist())
    if len(kinds) > 1 or not kinds <= {"text", "boolean", "whole", "float"}:
        raise InputError(
            name, ", ".join(sorted(kinds)), requirement="must hold entries of one type", remedy="convert the column"
        )
    types: dict[str, Any] = {"text": str, "boolean": bool, "whole": np.int64, "float": np.float64}
    try:
        return found.astype(types[kinds.pop()]) if kinds else found.astype(np.float64)
    except OverflowError:
        raise InputError(name, "a huge number", requirement="must fit into int64", remedy=_AS_TEXT) from None


def kind_of(entry: object) -> str:
    """The type of an entry of a column, in a word."""
    if isinstance(entry, str):
        # Subclasses, such as enumerations, may be written differently from what they hold.
        return "text" if type(entry) in (str, np.str_) else type(entry).__name__
    if isinstance(entry, bool | np.bool_):
        return "boolean"
    if isinstance(entry, numbers.Integral):
        return "whole"
    if isinstance(entry, float | np.floating):
        if math.isnan(entry):
            return "missing"
        return "float" if isinstance(entry, float | np.float32 | np.float16) else type(entry).__name__
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return "missing"
    return type(entry).__name__


def spelled_numbers(texts: _Array) -> NDArray[np.float64] | None:
    """The numbers that the texts of a column spell; None where one of them is no number."""
    try:
        found: NDArray[np.float64] = texts.astype(np.float64)
    except ValueError:
        return None
    return None if np.isnan(found).any() else found


def output_columns(output: object, *, rows: int) -> list[_Array]:
    """The columns that the adversary sees, checked to have as many rows as the secret."""
    named = validate.table("output", output)
    if named is not None:
        columns = [column(f"output {name!r}", value) for name, value in named.items()]
    elif getattr(output, "ndim", 1) == 2 and not isinstance(output, np.ma.MaskedArray):
        seen = np.asarray(validate.detached(output))
        columns = [column(f"column {index} of output", seen[:, index]) for index in range(seen.shape[1])]
    else:
        columns = [column("output", output)]
    if not columns:
        raise InputError("output", output, requirement="must have a column", remedy="name what the adversary sees")
    for one in columns:
        if len(one) != rows:
            raise InputError(
                "output",
                f"{len(one)} rows",
                requirement=f"must have as many rows as secret, {rows}",
                remedy="pass columns of one table",
            )
    return columns


def multiplicities(weights: object, rows: int) -> NDArray[np.int64]:
    """How many rows each row stands for."""
    if weights is None:
        return np.ones(rows, dtype=np.int64)
    found = column("weights", weights)
    whole = found.dtype.kind == "i" or (found.dtype.kind == "f" and bool((found == np.floor(found)).all()))
    if not whole or len(found) != rows or (len(found) and (found.min() < 0 or found.max() > 2**32)):
        raise InputError(
            "weights",
            f"{len(found)} {'whole numbers' if whole else 'entries'}",
            requirement=f"must be {rows} whole numbers ≥ 0, each the number of independent rows that a row stands for",
            remedy="with importance weights, keep each row with probability weight/largest, and certify those kept",
        )
    return found.astype(np.int64)


class SeveralValuesError(InputError):
    """A secret takes more than two values."""


def several_values(what: str, values: int) -> SeveralValuesError:
    """The error that says how many values were seen, but not which: these are the secrets."""
    return SeveralValuesError(
        what,
        f"{values} values or more",
        requirement="must take exactly two values",
        remedy="compare two of them, or one against the rest, or certify all values with certify_classes",
    )


def two_labels(before: list[Any], values: list[Any]) -> list[Any]:
    """The secrets seen before and now, in this order; refuses a third one."""
    labels = before + [value for value in values if value not in before]
    if len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("secret", "text and numbers", requirement="must be of one type", remedy="convert the column")
    if len(labels) > 2:
        raise several_values("secret", len(labels))
    return labels
