"""Tables at the door of a classifier: whether their columns have to be encoded, and by which rule.

What is decided here depends on the public table alone, or on features that count as public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from ..core import validate
from ..core.errors import InputError
from .columns import Columns, Table, as_table, text_of

_REMEDY = "pass data frames, dicts of columns or arrays alike for all records"


def rule_for(columns: Columns | None, private: Any, public: Any, *, takes_gaps: bool) -> Columns | None:
    """The rule that turns these tables into numbers, fitted to the public one; None for records that are numbers.

    `public` is None if only labels are private. A data frame of numbers without gaps is an array with names, as for
    every estimator of scikit-learn, unless `columns` asks for a rule.
    """
    if columns is not None and not isinstance(columns, Columns):
        raise InputError(
            "columns", type(columns).__name__, requirement="must be a Columns", remedy="pass tacit.learning.Columns()"
        )
    ours, theirs = (
        None if table is None or issparse(table) else validate.table("X", table) for table in (private, public)
    )
    if public is not None and (ours is None) != (theirs is None):
        odd = type(private if ours is None else public).__name__
        raise InputError("X and X_public", odd, requirement="must both be tables, or both arrays", remedy=_REMEDY)
    if ours is None:
        if columns is not None:
            raise InputError(
                "X", type(private).__name__, requirement="must be a table, as `columns` is given", remedy=_REMEDY
            )
        return None
    names = [*ours, *(theirs or ())]
    shown = private if public is None else public
    if columns is None and not isinstance(private, Mapping) and _plain(as_table(shown), takes_gaps=takes_gaps):
        if public is not None and not _plain(as_table(private), takes_gaps=takes_gaps):
            raise InputError(
                "X",
                "text or gaps where X_public has numbers",
                requirement="must hold numbers where the public records do, unless a rule says what becomes of others",
                remedy="pass columns=tacit.learning.Columns(), which puts public medians there",
            )
        return None
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            "the columns of X", "some without a name", requirement="must be named by text", remedy="name them"
        )
    if theirs is not None and set(ours) != set(theirs):
        raise InputError(
            "the columns of X",
            ", ".join(sorted(set(ours) ^ set(theirs))),
            requirement="must be those of X_public; these are in one of them alone",
            remedy="rename, add or leave out columns in one of the tables",
        )
    rule: Columns = clone(Columns() if columns is None else columns)
    return rule.fit(as_table(shown))


def _plain(table: Table, *, takes_gaps: bool) -> bool:
    """Whether all columns hold numbers, or true and false, without gaps that a learner cannot take."""
    for column in table.values():
        values = column.tolist() if column.dtype.kind == "O" else []
        gaps = [text_of(value) is None for value in values]
        if column.dtype.kind not in "biufO" or any(
            not gap and not isinstance(value, int | float | np.number) for gap, value in zip(gaps, values, strict=True)
        ):
            return False
        if not takes_gaps and (any(gaps) or (column.dtype.kind == "f" and np.isnan(column).any())):
            return False
    return True
