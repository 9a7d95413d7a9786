"""A student is fitted to what it can use of the answers.

It costs no privacy, whatever it does: it sees public records and released answers. It gets class numbers, and −1 for
points without an answer if it can use them (`takes_unlabelled`), as scikit-learn's semi-supervised learners do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

UNLABELLED = -1
"""The label of a point that has none, as in `sklearn.semi_supervised`."""


class Constant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The student of answers that all name one class, which most classifiers refuse to learn from."""

    def fit(self, X: Any, y: Any) -> Constant:  # noqa: ARG002, N803
        """Keeps the one class."""
        self.classes_ = np.unique(y)[:1]
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """That class for every point."""
        return np.repeat(self.classes_, len(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """One, for every point."""
        return np.ones((len(X), 1))


class Renumbered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The student of answers that leave out a class between others: it gets numbers without a gap, as some insist."""

    def __init__(self, student: Any = None) -> None:
        self.student = student

    def fit(self, X: Any, y: Any) -> Renumbered:  # noqa: N803
        """From class numbers, −1 where there is none."""
        self.classes_ = np.unique(y[y != UNLABELLED])
        places = np.where(y == UNLABELLED, UNLABELLED, np.searchsorted(self.classes_, y))
        self.student_ = fitted(clone(self.student), X, places)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The student's classes, by their own numbers."""
        classes: NDArray[Any] = self.classes_[np.asarray(self.student_.predict(X), dtype=np.int64)]
        return classes

    @available_if(lambda self: hasattr(self.student, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The student's chances, a column for each of `classes_`."""
        return spread_chances(self.student_, X, classes=len(self.classes_))


def fitted(student: Any, X: NDArray[Any], y: NDArray[Any], counts: NDArray[Any] | None = None) -> Any:  # noqa: N803
    """The student, fitted to what it can use: all points, those with answers, or noisy counts."""
    answered = y != UNLABELLED
    present = np.unique(y[answered])
    if len(present) == 1:
        return Constant().fit(X, y[answered])
    if counts is not None:
        return student.fit(X, y, counts=counts)
    if not np.array_equal(present, np.arange(len(present))):
        return Renumbered(student).fit(X, y)
    if takes_unlabelled(student):
        return student.fit(X, y)
    return student.fit(X[answered], y[answered])


def takes_unlabelled(student: Any) -> bool:
    """Whether −1 means "no label" to it: scikit-learn's semi-supervised learners, and what has `takes_unlabelled`."""
    last = student.steps[-1][1] if isinstance(student, Pipeline) else student
    return bool(getattr(last, "takes_unlabelled", type(last).__module__.startswith("sklearn.semi_supervised")))


def spread_chances(student: Any, X: NDArray[Any], *, classes: int) -> NDArray[np.float64]:  # noqa: N803
    """The student's chances with a column for every class, 0 for those it never saw."""
    chances = np.zeros((len(X), classes))
    chances[:, np.asarray(student.classes_, dtype=np.int64)] = student.predict_proba(X)
    return chances
