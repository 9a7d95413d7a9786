"""Try learners on made-up records, and students on made-up answers, before any budget is spent."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import InputError
from . import stored
from .students import fitting

_EACH = 50
"""The number of made-up records of each class."""
_PLAIN = frozenset({"collections.OrderedDict"})
"""Containers that skops does not trust by itself, though they do nothing; LightGBM's classifiers hold one."""


def try_estimator(name: str, estimator: Any, *, width: int, classes: int) -> tuple[str, ...]:
    """Check that an estimator learns, names classes and can be stored; return the types that skops does not trust.

    Its errors are about made-up records, so their messages may be shown.
    """
    labels = np.arange(_EACH * classes) % classes
    records = np.random.default_rng(0).normal(size=(len(labels), width)) + labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up records
        try:
            fitted = clone(estimator).fit(records, labels)
            good = bool(np.isin(np.asarray(fitted.predict(records)), labels).all())
        except Exception as failure:  # what foreign code raises
            raise InputError(
                name,
                f"{type(failure).__name__}: {failure}",
                requirement="must learn from a table of numbers",
                remedy="check its parameters, or choose another",
            ) from None
    if not good:
        raise InputError(
            name,
            type(estimator).__name__,
            requirement="must be a classifier, which names classes that it has seen",
            remedy="choose another",
        )
    skops = stored.needed()
    try:
        return tuple(skops.get_untrusted_types(data=skops.dumps(fitted)))
    except Exception as failure:  # skops raises what it likes for what it cannot hold
        raise InputError(
            name,
            f"{type(fitted).__name__}: {type(failure).__name__}",
            requirement="must be one that skops can store",
            remedy="choose another",
        ) from None


def seconds_of_a_teacher(estimator: Any, *, rows: int, width: int, classes: int, queries: int) -> float:
    """How long one teacher takes to learn from this many records and to vote, timed on made-up ones; 0 if it fails."""
    rng = np.random.default_rng(0)
    labels = np.arange(max(rows, 2 * classes)) % classes
    records, asked = rng.normal(size=(len(labels), width)), rng.normal(size=(queries, width))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up records
        before = time.perf_counter()
        try:
            clone(estimator).fit(records, labels).predict(asked)
        except Exception:  # of foreign code; teachers that fail say so themselves
            return 0.0
        return time.perf_counter() - before


def trusted_types(name: str, estimator: Any, held: tuple[str, ...]) -> tuple[str, ...]:
    """The types that an estimator holds, if all come from its packages or from scikit-learn.

    Somebody who names a learner trusts its packages, but not whatever else a stored file may hold.
    """
    parts = (estimator, *estimator.get_params(deep=True).values())
    packages = {"sklearn"} | {type(part).__module__.partition(".")[0] for part in parts} - {"builtins"}
    foreign = [kind for kind in held if kind.partition(".")[0] not in packages and kind not in _PLAIN]
    if foreign:
        raise InputError(
            name,
            ", ".join(foreign),
            requirement=f"must hold types of {', '.join(sorted(packages))} alone once it has learned",
            remedy="choose another",
        )
    return held


def made_up_answers(
    points: int, *, asked: int, classes: int, counts: bool, rare: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Made-up labels: class numbers in turn for the first public records, and −1 for all others.

    With `rare`, all name the first class except one, which names the last.
    """
    answers = np.arange(asked) % classes
    if rare:
        answers = np.where(np.arange(asked) == asked - 1, classes - 1, 0)
    labels = np.full(points, fitting.UNLABELLED, dtype=np.int64)
    labels[:asked] = answers
    if not counts:
        return labels, None
    table = np.zeros((points, classes), dtype=np.int64)
    table[np.arange(asked), answers] = _EACH
    return labels, table


def fit_student(student: Any, public: NDArray[Any], labels: NDArray[np.int64], counts: NDArray[np.int64] | None) -> Any:
    """A copy of the student, fitted to these answers; raises if it cannot learn or predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up answers
        try:
            fitted = fitting.fitted(clone(student), public, labels, counts)
            good = bool(np.isin(np.asarray(fitted.predict(public)), labels).all())
        except Exception as failure:  # what foreign code raises; it has seen nothing private
            good, kind = False, f"{type(student).__name__}, which raised {type(failure).__name__}: {failure}"
        else:
            kind = type(student).__name__
    if not good:
        raise InputError(
            "the student",
            kind,
            requirement="must learn from public records and made-up answers, also where a class is answered once",
            remedy="choose another; nothing was spent",
        )
    return fitted
