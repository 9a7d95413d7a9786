"""Votes of many linear teachers by one product of matrices, where asking each of them in turn would take longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LinearVotes:
    """The votes of linear classifiers of scikit-learn: the class with the largest score, as their `predict` says.

    A score is a sum over features, so the vote of each teacher depends on the query and on that teacher alone.

    Parameters
    ----------
    teachers
        For each teacher the numbers of the classes that it knows, and its estimator, for which `is_linear` holds.
    """

    def __init__(self, teachers: Sequence[tuple[NDArray[np.int64], Any]]) -> None:
        self._teachers = len(teachers)
        widths = [len(estimator.intercept_) for _, estimator in teachers]
        self._groups = []
        for width in sorted(set(widths)):
            places = [place for place, found in enumerate(widths) if found == width]
            weights = np.concatenate([teachers[place][1].coef_ for place in places])
            offsets = np.concatenate([teachers[place][1].intercept_ for place in places])
            # What is told apart by the sign of one score has two classes.
            named = np.array([_classes(*teachers[place]) for place in places])
            self._groups.append((np.array(places), weights.T, offsets, named, width))

    def votes(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class numbers that teachers vote for, queries × teachers."""
        votes = np.empty((len(queries), self._teachers), dtype=np.int64)
        for places, weights, offsets, named, width in self._groups:
            with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest; any vote will do
                scores = (queries @ weights + offsets).reshape(len(queries), len(places), width)
            best = (scores[:, :, 0] > 0).astype(np.int64) if width == 1 else scores.argmax(axis=2)
            votes[:, places] = named[np.arange(len(places)), best]
        return votes


def is_linear(estimator: Any) -> bool:
    """Whether the estimator predicts as linear classifiers of scikit-learn do, with nothing in between."""
    from sklearn.linear_model._base import LinearClassifierMixin

    kind = type(estimator)
    same = all(
        getattr(kind, name, None) is getattr(LinearClassifierMixin, name) for name in ("predict", "decision_function")
    )
    return same and isinstance(getattr(estimator, "coef_", None), np.ndarray)


def _classes(found: NDArray[np.int64], estimator: Any) -> NDArray[np.int64]:
    known: NDArray[np.int64] = found[np.asarray(estimator.classes_, dtype=np.int64)]
    return known
