"""Turn the columns of a table into numbers, by a rule that depends on public records alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..core import validate
from ..core.errors import InputError, InputWarning

_MISSING = frozenset({"", "na", "n/a", "nan", "null"})

_NEARLY_ALL = 0.95
"""The share of numbers from which on a column of text is probably meant to be one of numbers."""
_LARGEST_SQUARED = 1e100
"""Squares of larger numbers, and their sums, may leave float64."""


class Columns(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Center and scale columns of numbers, and turn columns of text into a column of 0 and 1 for each category.

    `fit` takes *public* records. A column is numeric if all its public values are numbers. Each record is then
    transformed on its own, so a private record changes nothing but its own row. A number is centred and scaled by the
    public mean and deviation; if it is missing or not a number, it is replaced by the public median. A text that is
    missing, or not among the `most` frequent public values of its column, becomes all zeros.

    A table is a mapping of names to columns, such as a dict of arrays, or a data frame of pandas, Polars or Arrow.

    Parameters
    ----------
    most
        The most categories of a column of text.

    Attributes
    ----------
    numeric_
        The median, mean and deviation of each numeric column.
    categories_
        The categories of each column of text.
    names_
        The names of all columns.
    """

    def __init__(self, most: int = 100) -> None:
        self.most = most

    def fit(self, table: Any, y: object = None) -> Columns:  # noqa: ARG002 — scikit-learn's contract
        """Find the rule from public records."""
        self.numeric_: dict[str, tuple[float, float, float]] = {}
        self.categories_: dict[str, list[str]] = {}
        columns, nearly = _columns(table), []
        for name in columns:
            column = _values(columns[name])
            found = numbers(column)
            known = found[np.isfinite(found)]
            said = [] if column.dtype.kind in "iuf" else texts(column)
            given = sum(word is not None for word in said)
            if len(known) and (len(known) == given or not said):
                largest = float(np.abs(known).max())
                unit = largest if largest > _LARGEST_SQUARED else 1.0
                known = known / unit
                self.numeric_[name] = (
                    float(np.median(known)) * unit,
                    float(np.mean(known)) * unit,
                    float(np.std(known)) * unit or 1.0,
                )
            else:
                if len(known) >= _NEARLY_ALL * given > 0:
                    nearly.append(name)
                words, counts = np.unique([word for word in said if word is not None], return_counts=True)
                frequent = words[np.argsort(-counts, kind="stable")][: self.most]
                self.categories_[name] = sorted(map(str, frequent))
        if nearly:
            warnings.warn(
                f"the columns {', '.join(map(repr, nearly))} are read as text, though nearly all of their public "
                "values are numbers: look for words among them, such as a second line of names",
                InputWarning,
                stacklevel=2,
            )
        self.names_ = list(columns)
        return self

    def transform(self, table: Any) -> NDArray[np.float64]:
        """One row of numbers for each record."""
        check_is_fitted(self)
        columns = _columns(table)
        lacking = [name for name in self.names_ if name not in columns]
        if lacking:
            raise InputError(
                "the table", lacking, requirement="must have every column of the public one", remedy="add these"
            )
        parts = [self._part(name, _values(columns[name])) for name in self.names_]
        found: NDArray[np.float64] = np.concatenate(parts, axis=1)
        return found

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """The names of the resulting columns: age, colour=red …"""
        check_is_fitted(self)
        parts = [
            [f"{name}={word}" for word in self.categories_[name]] if name in self.categories_ else [name]
            for name in self.names_
        ]
        return np.array([name for part in parts for name in part], dtype=object)

    def unknown(self, table: Any) -> dict[str, float]:
        """For each column the share of records whose value is missing, no number, or none of the categories."""
        check_is_fitted(self)
        columns = _columns(table)
        shares = {name: np.mean(np.isnan(numbers(_values(columns[name])))) for name in self.numeric_}
        for name, words in self.categories_.items():
            shares[name] = np.mean([word not in words for word in texts(_values(columns[name]))])
        return {name: float(shares[name]) for name in self.names_}

    def before(self, classifier: Any) -> Pipeline:
        """A classifier of tables: this rule, followed by a classifier that was fitted to its results."""
        return Pipeline([("columns", self), ("classifier", classifier)])

    def _part(self, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
        if name in self.numeric_:
            median, mean, deviation = self.numeric_[name]
            with np.errstate(over="ignore", invalid="ignore"):  # of what is no finite number
                scaled = (numbers(column) - mean) / deviation
            return np.where(np.isfinite(scaled), scaled, (median - mean) / deviation)[:, None]
        words = self.categories_[name]
        places = {word: place for place, word in enumerate(words)}
        part = np.zeros((len(column), len(words)))
        hit = np.array([places.get(word, -1) if word is not None else -1 for word in texts(column)], dtype=np.int64)
        part[np.flatnonzero(hit >= 0), hit[hit >= 0]] = 1.0
        return part


def _columns(table: Any) -> Mapping[str, Any]:
    found = validate.table("the table", table)
    if found is None:
        requirement = "must be a dict of columns or a data frame"
        raise InputError("the table", type(table).__name__, requirement=requirement, remedy="name its columns")
    return found


def _values(column: Any) -> NDArray[Any]:
    """The entries of a column, each as it is.

    NumPy would turn all whole numbers into floats where one entry is missing, and all numbers into text where one is
    text. What a record becomes must not depend on another, so lists and columns of Arrow, Polars and pandas are
    converted entry by entry.
    """
    if isinstance(column, list | tuple):
        listed = list(column)
    elif isinstance(getattr(column, "dtype", None), np.dtype) or not (
        hasattr(column, "to_list") or hasattr(column, "to_pylist")
    ):
        return np.asarray(column)
    else:
        listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Each value as a number, nan where it is none; what one becomes does not depend on the others."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    try:
        found = column.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        found = np.array([_number(value) for value in column.tolist()], dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def texts(column: NDArray[Any]) -> list[str | None]:
    """Each value as text, None where it is missing; whole numbers without a point, so that 1 and 1.0 are one text."""
    known: dict[tuple[type, object], str | None] = {}
    found = []
    for entry in column.tolist():
        value = entry.item() if isinstance(entry, np.generic) else entry
        key = type(value), value  # True, 1 and 1.0 are equal, and no text of one may depend on another record
        if key not in known:
            known[key] = text_of(value)
        found.append(known[key])
    return found


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return math.nan


def text_of(value: object) -> str | None:
    """A value as text, None where it is missing."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    lowered = text.lower()
    if value is None or lowered in _MISSING or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return lowered if lowered in ("true", "false") else text
