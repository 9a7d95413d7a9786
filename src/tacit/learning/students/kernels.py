"""Kernel ridge regression as a classifier: strong on few records, and trained by one system of equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data


class KernelRidgeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """scikit-learn's `KernelRidge` with a Gaussian kernel, fitted to +1 for a record's class and −1 for the others.

    Parameters
    ----------
    gamma
        The parameter of the kernel exp(−γ‖x − x′‖²).
    alpha
        The ridge penalty.
    """

    def __init__(self, *, gamma: float = 1.0, alpha: float = 0.1) -> None:
        self.gamma = gamma
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> KernelRidgeClassifier:  # noqa: N803 — scikit-learn's name
        """Solve one system with as many equations as records."""
        X, y = validate_data(self, X, y, dtype=np.float64)  # noqa: N806
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        targets = 2.0 * np.eye(len(self.classes_))[numbers] - 1
        self.ridge_ = KernelRidge(kernel="rbf", gamma=self.gamma, alpha=self.alpha).fit(X, targets)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The class whose fitted value is largest."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        classes: NDArray[Any] = self.classes_[np.argmax(self.ridge_.predict(X), axis=1)]
        return classes
