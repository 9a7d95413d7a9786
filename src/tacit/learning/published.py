"""What may leave of a private classifier: the student, the classes and the guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Guarantee
from .students import fitting


class PublishedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The part of a `PrivateClassifier` that may be published. It holds no teacher and no votes, and cannot be fitted.

    Parameters
    ----------
    student
        The fitted student, which predicts class numbers.
    classes
        All classes, in the order of their numbers.
    guarantee_json
        The guarantee as JSON.
    columns
        The rule that turns tables into numbers, if it classifies tables.
    """

    columns: Any = None  # of files that earlier versions wrote

    def __init__(self, student: Any = None, classes: Any = None, guarantee_json: str = "", columns: Any = None) -> None:
        self.student = student
        self.classes = classes
        self.guarantee_json = guarantee_json
        self.columns = columns

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes, in the order of the columns of `predict_proba`."""
        return np.asarray(self.classes)

    @property
    def guarantee_(self) -> Guarantee:
        """What is proven about it."""
        return Guarantee.from_json(self.guarantee_json)

    def fit(self, X: Any, y: Any) -> PublishedClassifier:  # noqa: ARG002, N803
        """Refused: this would be a new release."""
        raise InputError(
            "a published classifier", "fit", requirement="must stay as it was released", remedy="use PrivateClassifier"
        )

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict a class for each row of `X`."""
        classes: NDArray[Any] = self.classes_[self.student.predict(self._numbers(X))]
        return classes

    @available_if(lambda self: hasattr(self.student, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probabilities of the classes, a column for each of `classes_`."""
        return fitting.spread_chances(self.student, self._numbers(X), classes=len(self.classes_))

    def _numbers(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        validate.unmasked("X", X)
        return np.asarray(X if self.columns is None else self.columns.transform(X), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return self.student is not None


# Published files name the type by the module that it stood in when tacit 0.1 wrote them: they go on loading.
PublishedClassifier.__module__ = "tacit.learning.classifier"
