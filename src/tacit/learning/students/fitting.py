"""Fit a student to those answers that it can use.

A student costs no privacy, whatever it does: it sees public records and released answers. It gets class numbers, and
−1 for points without an answer if it can use them (`takes_unlabelled`), as scikit-learn's semi-supervised learners do.
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
    """The student for answers that all name one class, from which most classifiers refuse to learn."""

    def fit(self, X: Any, y: Any) -> Constant:  # noqa: ARG002, N803
        """Keep the one class."""
        self.classes_ = np.unique(y)[:1]
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The one class, for every point."""
        return np.repeat(self.classes_, len(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Probability 1, for every point."""
        return np.ones((len(X), 1))


class Renumbered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The student for answers that skip a class: its own student gets numbers without a gap, which some need."""

    def __init__(self, student: Any = None) -> None:
        self.student = student

    def fit(self, X: Any, y: Any) -> Renumbered:  # noqa: N803
        """Fit to class numbers, −1 for points without an answer."""
        self.classes_ = np.unique(y[y != UNLABELLED])
        places = np.where(y == UNLABELLED, UNLABELLED, np.searchsorted(self.classes_, y))
        self.student_ = fitted(clone(self.student), X, places)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict class numbers."""
        classes: NDArray[Any] = self.classes_[np.asarray(self.student_.predict(X), dtype=np.int64)]
        return classes

    @available_if(lambda self: hasattr(self.student, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The student's probabilities, a column for each of `classes_`."""
        return spread_chances(self.student_, X, classes=len(self.classes_))

    @available_if(lambda self: hasattr(self.student, "transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """What the student makes of the points, such as what a network's last layer sees."""
        seen: NDArray[np.float64] = self.student_.transform(X)
        return seen


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
    """The student's probabilities with a column for every class, 0 for those it never saw."""
    chances = np.zeros((len(X), classes))
    chances[:, np.asarray(student.classes_, dtype=np.int64)] = student.predict_proba(X)
    return chances
