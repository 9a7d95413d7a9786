"""A classifier from one noisy release, without teachers: sums of features by class, and the public covariance.

It is not model-agnostic: the classifier is linear in public features. Where these are good, it needs a far smaller ε
than answers of teachers do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import validate
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.wording import text_above
from ..runtime import entropy, private_files
from ..theory import accounting
from .assumptions import CLASSES_PUBLIC, EACH_ALONE, comparing, neighbours
from .labels import FOUND_BY, UNNAMED, column, named, numbered
from .overlap import ALLOWED, REMEDY, require_other_rows
from .shares import Shares

_LENGTH = 2**15
"""Of a record's features as whole numbers, at most: what rounding takes away is far below the noise."""

_LEAST_EPSILON = 1e-5
"""Below, whatever δ, sums of any number of records would be lost in the noise, which may no longer be whole numbers."""

_ASSUMED = (
    Assumption(
        text="one fit is made; each further one is a release of its own, with its own cost", checked_by="caller"
    ),
    Assumption(
        text="nobody can foresee the noise: it comes from a cryptographic generator that the operating system seeds",
        checked_by="caller",
    ),
)


class MomentClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Ridge regression on public features whose only private part, the sums of features by class, is noisy.

    `fit(X, y, X_public)` scales every record's features to a length of at most 1, rounds them to whole numbers, adds
    them up by class, and adds discrete Gaussian noise to each sum. The rest is computed from public records.

    Parameters
    ----------
    epsilon, delta
        The whole cost of one `fit`. Fitting again costs again.
    features
        A transformer, fitted to the public records alone; the points as they are unless given.
    ridge
        Added to the covariance of the public features, as a multiple of its mean eigenvalue.
    classes
        All labels that may occur, from public knowledge; None finds those that enough records hold, as for
        `PrivateClassifier`.

    Attributes
    ----------
    guarantee_
        What is proven.
    classes_
        The classes.
    weights_
        The weights of the features for each class.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        features: Any = None,
        ridge: float = 0.1,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.features = features
        self.ridge = ridge
        self.classes = classes

    def fit(self, X: Any, y: Any, X_public: Any, *, allow_overlap: bool = False) -> MomentClassifier:  # noqa: N803 — scikit-learn's name
        """Spend the budget once.

        Parameters
        ----------
        X, y
            The private records and their labels.
        X_public
            The public records.
        allow_overlap
            Accept public records that are private ones. Such records are not protected.

        Returns
        -------
        This classifier, fitted.
        """
        ridge = validate.number("ridge", self.ridge, above=0, remedy="use about 0.1")
        finding = self.classes is None
        shares = Shares(epsilon=self.epsilon, delta=self.delta, finding=finding, least=_LEAST_EPSILON)
        epsilon, delta = shares.left
        sigma = accounting.lattice_sigma(epsilon, delta, sensitivity=_LENGTH)
        X, y = validate_data(self, X, column("y", y), dtype=np.float64)  # noqa: N806
        public = validate_data(self, X_public, dtype=np.float64, reset=False)
        if not allow_overlap:
            require_other_rows("X_public", public, X, called="X", remedy=REMEDY)
        self.features_ = None if self.features is None else clone(self.features).fit(public)
        with private_files.enclosed():
            whole = _whole(self._rows(X))
        if finding:
            search = shares.search(labels_only=False)
            self.classes_ = search.classes(search.labels(y))
            numbers = numbered(y, self.classes_)
            whole, numbers = whole[numbers != UNNAMED], numbers[numbers != UNNAMED]
        else:
            self.classes_, numbers = named(y, self.classes)
        sums = np.zeros((len(self.classes_), whole.shape[1]), dtype=np.int64)
        np.add.at(sums, numbers, whole)
        noisy = sums + entropy.discrete_gaussian(sigma, size=sums.size).reshape(sums.shape)
        rows = self._rows(public)
        covariance = rows.T @ rows / len(rows)
        penalty = ridge * np.trace(covariance) / len(covariance)
        system = covariance + penalty * np.eye(len(covariance))
        self.weights_ = np.linalg.solve(system, noisy.T.astype(np.float64) / _LENGTH)
        spent = accounting.lattice_delta(epsilon, sigma=sigma, sensitivity=_LENGTH)
        detail = {
            "delta": accounting.basic_composition([spent, shares.classes[1]]),
            "sigma": sigma,
            "sensitivity": _LENGTH,
            "released": sums.size,
        }
        if finding:
            detail |= {"epsilon_classes": search.epsilon, "delta_classes": search.delta, "found_from": search.threshold}
        self.guarantee_ = Guarantee(
            quantity=f"privacy loss ε at δ = {text_above(shares.delta)}",
            side="at_most",
            value=shares.epsilon,
            adversary=Adversary.ANY,
            theorem=(
                "sums with discrete Gaussian noise",
                *["theory.accounting.basic_composition"] * finding,
                "theory.accounting.lattice_delta",
                *FOUND_BY * finding,
            ),
            assumptions=(
                comparing(neighbours(labels_only=False, ids=False)),
                *[ALLOWED] * allow_overlap,
                *_ASSUMED,
                *[CLASSES_PUBLIC] * (not finding),
                *[EACH_ALONE] * (self.features is not None),
            ),
            detail=detail,
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The class whose fitted value is largest."""
        classes: NDArray[Any] = self.classes_[np.argmax(self._values(X), axis=1)]
        return classes

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The fitted value of each class; of two classes, by how much the second one's is larger."""
        values = self._values(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def _values(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        values: NDArray[np.float64] = self._rows(X) @ self.weights_
        return values

    def _rows(self, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
        """Features with a constant beside them, each row of length 1."""
        features = X if self.features_ is None else np.asarray(self.features_.transform(X), dtype=np.float64)
        length = np.linalg.norm(features, axis=1, keepdims=True)
        unit = features / np.where(length > 0, length, 1.0)
        rows: NDArray[np.float64] = np.hstack([unit, np.ones((len(unit), 1))]) / np.sqrt(2)
        return rows


def _whole(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows as whole numbers, rounded towards zero; one that is too long for the guarantee, or no number, is left out.

    Entries are looked at as floats first: what does not fit would become some whole number, whose square may wrap.
    """
    usable = np.all(np.abs(rows) <= 1, axis=1, keepdims=True)  # nan is not
    found: NDArray[np.int64] = np.trunc(np.where(usable, rows, 0.0) * _LENGTH).astype(np.int64)
    too_long = (found**2).sum(axis=1) > _LENGTH**2
    found[too_long] = 0
    return found
