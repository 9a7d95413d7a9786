"""What may leave of a private regressor, and of a private classifier of several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Guarantee


class _Published(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    student: Any
    guarantee_json: str

    @property
    def guarantee_(self) -> Guarantee:
        """What is proven about it."""
        return Guarantee.from_json(self.guarantee_json)

    def fit(self, X: Any, y: Any) -> _Published:  # noqa: ARG002, N803
        """Refused: this would be a new release."""
        raise InputError(
            "what was published", "fit", requirement="must stay as it was released", remedy="make a new release"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self.student is not None

    def _predicted(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        points = np.asarray(validate.unmasked("X", X), dtype=np.float64)
        return np.asarray(self.student.predict(points), dtype=np.float64).reshape(len(points), -1)


class PublishedRegressor(RegressorMixin, _Published):  # type: ignore[misc]
    """The part of a `PrivateRegressor` that may be published. It holds no teacher, and cannot be fitted.

    Parameters
    ----------
    student
        The fitted student.
    label_range
        The least and the largest number that is predicted.
    guarantee_json
        The guarantee as JSON.
    """

    def __init__(self, student: Any = None, label_range: Any = None, guarantee_json: str = "") -> None:
        self.student = student
        self.label_range = label_range
        self.guarantee_json = guarantee_json

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Predict a number for each row of `X`."""
        low, high = self.label_range
        found: NDArray[np.float64] = np.clip(self._predicted(X)[:, 0], low, high)
        return found


class PublishedMultiLabelClassifier(ClassifierMixin, _Published):  # type: ignore[misc]
    """The part of a `PrivateMultiLabelClassifier` that may be published. It holds no teacher, and cannot be fitted.

    Parameters
    ----------
    student
        The fitted student, which predicts the share of teachers that say yes to each label.
    guarantee_json
        The guarantee as JSON.
    """

    def __init__(self, student: Any = None, guarantee_json: str = "") -> None:
        self.student = student
        self.guarantee_json = guarantee_json

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """0 or 1 for each row of `X` and each label."""
        return (self._predicted(X) > 0.5).astype(np.int64)

    def predict_shares(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The share of teachers, from 0 to 1, that would say yes to each label."""
        return np.clip(self._predicted(X), 0.0, 1.0)
