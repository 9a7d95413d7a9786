"""Turn the columns of a table into numbers, by a rule that depends on public records alone."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..core import validate
from ..core.errors import InputError, InputWarning
from ..core.near import did_you_mean

Table = dict[str, NDArray[Any]]
"""Columns by name."""
Advance = Callable[[str], None]
"""Called with a line about the progress."""

_MISSING = frozenset({"", "na", "n/a", "nan", "null"})

_NEARLY_ALL = 0.95
"""The share of numbers from which on a column of text is probably meant to be one of numbers."""
_FLAT = 1e-9
"""Directions in which public rows differ by less than this share of the most are rounding alone."""
_LARGEST_SQUARED = 1e100
"""Squares of larger numbers, and their sums, may leave float64."""


def _silent(line: str) -> None:
    """Say nothing."""


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
    encoders
        A `TextEncoder` or an `ImageEncoder` for each column of whole texts, or of paths of images. What it makes of a
        record is centred by the public mean, projected onto the directions in which public records differ most, and
        scaled so that its square is 1 on average over public records: as much as a column of numbers has. A missing
        text or image becomes the public mean.
    directions
        How many directions are kept of an encoder's numbers, at most. Few of them need less budget, or fewer records.

    Attributes
    ----------
    numeric_
        The median, mean and deviation of each numeric column.
    categories_
        The categories of each column of text.
    encoded_
        The mean and the directions of each column that has an encoder.
    names_
        The names of all columns.
    """

    encoders: Any = None  # of rules that earlier versions stored
    directions: int = 32
    encoded_: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = MappingProxyType({})

    def __init__(self, most: int = 100, encoders: Any = None, directions: int = 32) -> None:
        self.most = most
        self.encoders = encoders
        self.directions = directions

    def fit(self, table: Any, y: object = None, *, advance: Advance = _silent) -> Columns:  # noqa: ARG002 — scikit-learn's contract
        """Find the rule from public records; `advance` is called with a line about the progress of encoders."""
        self.numeric_: dict[str, tuple[float, float, float]] = {}
        self.categories_: dict[str, list[str]] = {}
        self.encoded_ = {}
        columns, nearly = as_table(table), []
        directions = validate.whole("directions", self.directions, at_least=1, remedy="use 32")
        for name in self.encoders or {}:
            if name not in columns:
                raise InputError(
                    "encoders",
                    name,
                    requirement="must name columns of the table",
                    remedy=did_you_mean(name, list(columns), "check its name"),
                )
        for name, column in columns.items():
            if name in (self.encoders or {}):
                self.encoded_[name] = _directions(self.encoders[name].encode(column, advance=advance), directions)
                continue
            known = _known(column)
            said = [] if column.dtype.kind in "iuf" else texts(column)
            given = sum(word is not None for word in said)
            if len(known) and (len(known) == given or not said):
                largest = float(np.abs(known).max())
                unit = largest if largest > _LARGEST_SQUARED else 1.0
                known = np.sort(known + 0.0) / unit  # the last digits of a mean may tell the order of what is summed up
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

    def transform(self, table: Any, *, advance: Advance = _silent) -> NDArray[np.float64]:
        """One row of numbers for each record; `advance` is called with a line about the progress of encoders."""
        check_is_fitted(self)
        columns = _columns(table)
        lacking = [name for name in self.names_ if name not in columns]
        if lacking:
            raise InputError(
                "the table", lacking, requirement="must have every column of the public one", remedy="add these"
            )
        parts = [self._part(name, _values(columns[name]), advance) for name in self.names_]
        found: NDArray[np.float64] = np.concatenate(parts, axis=1)
        return found

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002
        """The names of the resulting columns: age, colour=red …"""
        check_is_fitted(self)
        return np.array([part for name in self.names_ for part in self._parts(name)], dtype=object)

    def _parts(self, name: str) -> list[str]:
        """The names of what becomes of a column."""
        if name in self.encoded_:
            return [f"{name}[{place}]" for place in range(len(self.encoded_[name][1]))]
        return [f"{name}={word}" for word in self.categories_[name]] if name in self.categories_ else [name]

    def unknown(self, table: Any) -> dict[str, float]:
        """For each column the share of records whose value is missing, no number, or none of the categories."""
        check_is_fitted(self)
        columns = _columns(table)
        shares: dict[str, Any] = {name: np.mean(np.isnan(numbers(_values(columns[name])))) for name in self.numeric_}
        for name, words in self.categories_.items():
            shares[name] = np.mean([word not in words for word in texts(_values(columns[name]))])
        for name in self.encoded_:
            shares[name] = np.mean([word is None for word in texts(_values(columns[name]))])
        return {name: float(shares[name]) for name in self.names_}

    def before(self, classifier: Any) -> Pipeline:
        """A classifier of tables: this rule, followed by a classifier that was fitted to its results."""
        return Pipeline([("columns", self.published()), ("classifier", classifier)])

    def published(self) -> Columns:
        """This rule without the places of files on this machine."""
        found = copy.copy(self)
        if self.encoders:
            found.encoders = {name: encoder.published() for name, encoder in self.encoders.items()}
        return found

    def compared(self, table: Any) -> Table:
        """A table as equal rows are found in it: of images, what their files hold stands for their places."""
        found = as_table(table)
        for name, encoder in (self.encoders or {}).items():
            found[name] = encoder.compared(found[name])
        return found

    def _part(self, name: str, column: NDArray[Any], advance: Advance) -> NDArray[np.float64]:
        if name in self.encoded_:
            centre, directions = self.encoded_[name]
            rows = self.encoders[name].encode(column, advance=advance)
            found, one = np.zeros((len(rows), len(directions))), np.empty(len(centre))
            for place in np.flatnonzero(~np.isnan(rows).any(axis=1)):
                np.subtract(rows[place], centre, out=one)
                found[place] = directions @ one  # one by one, as a batch may be summed up in another order
            return found
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


def _directions(rows: NDArray[np.float64], most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of the rows that are there, and the directions in which they differ most, each a row.

    Directions are scaled together, so that the squares of a row's projections add up to 1 on average. Rows are put in
    order first, so that the order they came in does not show in last digits.
    """
    known = rows[~np.isnan(rows).any(axis=1)]
    known = known[np.lexsort(known.T)]
    if not len(known):
        return np.zeros(rows.shape[1]), np.zeros((1, rows.shape[1]))
    mean = known.mean(axis=0)
    _, lengths, directions = np.linalg.svd(known - mean, full_matrices=False)
    kept = max(1, min(most, int(np.sum(lengths > _FLAT * lengths[0]))))
    spread = math.sqrt(float(np.sum(lengths[:kept] ** 2)) / len(known))
    return mean, directions[:kept] / (spread if spread > 0 else 1.0)


def as_table(table: Any) -> Table:
    """The columns of a dict or a data frame, each an array of its entries as they are."""
    return {name: _values(column) for name, column in _columns(table).items()}


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
    found: NDArray[Any] | None = None
    if isinstance(column, list | tuple):
        listed = list(column)
    elif isinstance(getattr(column, "dtype", None), np.dtype) or not (
        hasattr(column, "to_list") or hasattr(column, "to_pylist")
    ):
        found = _without_dates(np.asarray(column))
        listed = found.tolist() if found.dtype.kind == "O" else []
    else:
        listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    if found is None:
        found = np.empty(len(listed), dtype=object)
        for place, value in enumerate(listed):
            found[place] = value
    if found.ndim != 1 or any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in listed):
        raise InputError(
            "a column of the table",
            "several values in one row",
            requirement="must hold one value per record",
            remedy="leave it out or split it",
        )
    return found


def _known(column: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers of a column. True and False are text, in memory as in a file."""
    found = numbers(column)
    if column.dtype.kind not in "iuf":
        found[[isinstance(value, bool | np.bool_) for value in column.tolist()]] = np.nan
    return found[np.isfinite(found)]


def _without_dates(column: NDArray[Any]) -> NDArray[Any]:
    """Dates and durations as text, as a file has them; NumPy would count them in units of its own."""
    if column.dtype.kind not in "mM":
        return column
    found = column.astype(str).astype(object)
    found[np.isnat(column)] = None
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
