"""Votes of many linear teachers by one product of matrices, where asking each of them in turn would take longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LinearVotes:
    """The votes of linear classifiers of scikit-learn: the class with the largest score, as their `predict` says.

    Each teacher has a column for each class, in a matrix whose shape depends on their numbers alone. A product may be
    rounded differently in different places of a matrix, so a record that changes one teacher must move no other.

    Parameters
    ----------
    teachers
        For each teacher the numbers of the classes that it knows, and its estimator, for which `is_linear` holds, or
        None if it has none.
    classes
        The number of all classes.
    """

    def __init__(self, teachers: Sequence[tuple[NDArray[np.int64], Any]], *, classes: int) -> None:
        self._shape = len(teachers), classes
        taught = [(number, *teacher) for number, teacher in enumerate(teachers) if teacher[1] is not None]
        features = taught[0][2].coef_.shape[1] if taught else 0
        self._weights = np.zeros((features, len(teachers) * classes))
        self._offsets = np.full(len(teachers) * classes, -np.inf)  # what a teacher does not know never wins
        for number, found, estimator in taught:
            places = number * classes + found[np.asarray(estimator.classes_, dtype=np.int64)]
            weights, offsets = estimator.coef_, estimator.intercept_
            if len(offsets) == 1:  # the sign of one score tells two classes apart
                weights, offsets = np.vstack([0 * weights, weights]), np.array([0.0, *offsets])
            self._weights[:, places], self._offsets[places] = weights.T, offsets

    def votes(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class numbers that teachers vote for, queries × teachers; of no meaning for one without an estimator."""
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest; any vote will do
            scores = queries @ self._weights + self._offsets
        best: NDArray[np.int64] = scores.reshape(len(queries), *self._shape).argmax(axis=2)
        return best


def is_linear(estimator: Any) -> bool:
    """Whether the estimator predicts as linear classifiers of scikit-learn do, with nothing in between."""
    from sklearn.linear_model._base import LinearClassifierMixin

    kind = type(estimator)
    same = all(
        getattr(kind, name, None) is getattr(LinearClassifierMixin, name) for name in ("predict", "decision_function")
    )
    return same and isinstance(getattr(estimator, "coef_", None), np.ndarray)
