"""Counts of teachers' votes: whole numbers, a row for each query and a column for each class."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InputError

_LARGEST_COUNT = 2**40
"""Beyond this, a count with noise might not fit into 64 bits."""

ABSTAIN = -1
"""The vote of a teacher that abstains, such as one whose chunk is empty."""

Teacher = tuple[NDArray[np.int64], Any]
"""The numbers of the classes in a chunk, and the estimator that tells them apart if there are several."""

_COUNTS = "pass vote_counts(votes, classes=…)"


def cast_votes(
    queries: NDArray[Any], teachers: Sequence[Teacher], finite: bool, *, abstaining: bool = False
) -> NDArray[np.int32]:
    """Votes of some teachers, queries × teachers.

    Parameters
    ----------
    queries
        The queries, a row each.
    teachers
        Teachers with an estimator.
    finite
        Whether all numbers are known to be finite; scikit-learn would look again in every call.
    abstaining
        Let a teacher that fails abstain on the queries that it fails on, rather than raise.
    """
    votes = np.full((len(queries), len(teachers)), ABSTAIN, dtype=np.int32)
    with _assumed(finite=finite):
        for place, teacher in enumerate(teachers):
            try:
                votes[:, place] = _predicted(queries, teacher)
            except Exception:
                if not abstaining:
                    raise
                for row in range(len(queries)):
                    with contextlib.suppress(Exception):
                        votes[row, place] = _predicted(queries[row : row + 1], teacher)[0]
    return votes


def _assumed(*, finite: bool) -> contextlib.AbstractContextManager[None]:
    """Scikit-learn's setting, where it is loaded; loading it would take longer than most votes."""
    if "sklearn" not in sys.modules:
        return contextlib.nullcontext()
    import sklearn

    found: contextlib.AbstractContextManager[None] = sklearn.config_context(assume_finite=finite)
    return found


def _predicted(queries: NDArray[Any], teacher: Teacher) -> NDArray[np.int64]:
    found, estimator = teacher
    predicted = np.asarray(estimator.predict(queries))
    if predicted.shape == (len(queries), 1):
        predicted = predicted[:, 0]
    if predicted.shape != (len(queries),) or not np.isin(predicted, np.arange(len(found))).all():
        raise LookupError
    return found[predicted.astype(np.int64)]


def vote_counts(votes: ArrayLike, *, classes: int) -> NDArray[np.int64]:
    """Count the votes for each class.

    Parameters
    ----------
    votes
        An array (queries × teachers) of class numbers 0 … classes − 1, or `ABSTAIN`.
    classes
        The number of classes.

    Returns
    -------
    An array (queries × classes) of counts.
    """
    if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or not 1 <= classes <= 2**20:
        raise InputError(
            "classes", classes, requirement="must be a whole number from 1 to 2**20", remedy="say how many classes"
        )
    found = _whole_numbers("votes", votes, dimensions=2, remedy="pass class indices, one row per query")
    if found.size and (found.min() < ABSTAIN or found.max() >= classes):
        bad = found[(found < ABSTAIN) | (found >= classes)].flat[0]
        raise InputError(
            "votes",
            int(bad),
            requirement=f"must lie in 0 … {classes - 1}, or be {ABSTAIN} for none",
            remedy="encode the classes as 0, 1, 2, …",
        )
    queries = len(found)
    cell = np.where(found == ABSTAIN, classes, found) + (classes + 1) * np.arange(queries)[:, None]
    counts = np.bincount(cell.ravel(), minlength=queries * (classes + 1)).reshape(queries, classes + 1)
    return counts[:, :classes].astype(np.int64)


def checked_counts(counts: ArrayLike, *, dimensions: int = 2) -> NDArray[np.int64]:
    """Counts as 64-bit integers; anything but whole numbers from 0 to 2**40 is refused."""
    found = _whole_numbers("counts", counts, dimensions=dimensions, remedy=_COUNTS)
    if dimensions == 1:  # one query: a few numbers, which Python compares faster
        row = found.tolist()
        fine = bool(row) and min(row) >= 0 and max(row) <= _LARGEST_COUNT
    else:
        fine = found.size > 0 and found.view(np.uint64).max() <= _LARGEST_COUNT  # negative ones are huge without a sign
    if not fine:
        raise InputError(
            "counts", counts, requirement="must be whole numbers ≥ 0 and ≤ 2**40, at least one", remedy=_COUNTS
        )
    return found


def winners(counts: ArrayLike) -> NDArray[np.int64]:
    """The class with the most votes for each query; the first one in a tie.

    Parameters
    ----------
    counts
        The counts of votes, a row for each query.

    Returns
    -------
    A class number for each query.
    """
    first: NDArray[np.int64] = np.argmax(checked_counts(counts), axis=1).astype(np.int64)
    return first


def votes_to_flip(counts: ArrayLike) -> NDArray[np.int64]:
    """The number of votes that may change, whichever they are, before one more could change the winner.

    d = max(0, ⌈(n₁ − n₂)/2⌉ − 1), n₁ ≥ n₂ the two largest counts. If one vote changes, d changes by at most 1; if the
    winner changes with it, d is 0 before and after (docs/proofs/accounting.md, lemma 1). The distance printed in the
    paper, n₁ − n₂ − 1, changes by 2.

    Parameters
    ----------
    counts
        The counts of votes, a row for each query.

    Returns
    -------
    A number for each query.
    """
    distance: NDArray[np.int64] = np.maximum(0, (leads(checked_counts(counts)) + 1) // 2 - 1)
    return distance


def leads(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lead of the winner over the next class, in votes, for each query; a single class leads over 0."""
    ordered = np.sort(np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), counts], axis=1), axis=1)
    lead: NDArray[np.int64] = ordered[:, -1] - ordered[:, -2]
    return lead


def _whole_numbers(name: str, values: ArrayLike, *, dimensions: int, remedy: str) -> NDArray[np.int64]:
    if type(values) is np.ndarray and values.dtype == np.int64 and values.ndim == dimensions:
        return values.copy()
    requirement = f"must be whole numbers in an array of {dimensions} dimension{'s' * (dimensions > 1)}"
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, values, requirement=requirement, remedy="fill in or leave out what is masked")
    try:
        found: NDArray[Any] = np.asarray(values)
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        raise InputError(name, values, requirement=requirement, remedy=remedy) from None
    if found.dtype.kind not in "iu" or found.ndim != dimensions:
        raise InputError(name, values, requirement=requirement, remedy=remedy)
    if found.dtype.kind == "u" and found.size and found.max() > 2**62:
        raise InputError(name, values, requirement="must fit into 64 bits", remedy=remedy)
    return found.astype(np.int64)
