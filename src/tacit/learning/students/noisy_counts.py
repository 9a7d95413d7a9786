"""Students that learn from noisy counts, which say more than the class with the largest count."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ...core import validate
from ...core.errors import InputError
from .fitting import UNLABELLED, Constant, fitted, spread_chances


class Propagated(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Labels, or noisy counts of votes, spread over a graph of neighbours; then any classifier fitted to all of them.

    Every point is joined to its nearest `neighbors`; F = αSF + (1 − α)Y is iterated with the normalised graph S (Zhou
    et al. 2003). Points that no label reaches are left out. Noisy counts say more than their largest at the same
    privacy, and the noise averages out along the graph.

    Parameters
    ----------
    final
        The classifier that is fitted to all labels in the end; logistic regression unless given.
    features
        A transformer, in whose space neighbours are close. The final classifier gets the points as they are.
    learned
        A classifier with `transform`, such as `NetworkClassifier`. It is fitted to the labels that were spread; then
        the released labels or counts are spread again, over a graph of its features scaled to length 1.
    neighbors
        The number of neighbours of each point.
    alpha
        The weight of the neighbours in each iteration.
    iterations
        The number of iterations.

    Attributes
    ----------
    propagated_
        The class number that every point was given, −1 for none.
    final_
        The final classifier.
    """

    takes_unlabelled = True

    def __init__(
        self,
        final: Any = None,
        *,
        features: Any = None,
        learned: Any = None,
        neighbors: int = 10,
        alpha: float = 0.9,
        iterations: int = 100,
    ) -> None:
        self.final = final
        self.features = features
        self.learned = learned
        self.neighbors = neighbors
        self.alpha = alpha
        self.iterations = iterations

    def fit(self, X: Any, y: Any, counts: Any = None) -> Propagated:  # noqa: N803
        """Fit to labels, or to noisy counts.

        Parameters
        ----------
        X
            The points.
        y
            Their labels, −1 for none.
        counts
            A row for each point and a column for each class. Rows of points with the label −1 are ignored.

        Returns
        -------
        This classifier, fitted.
        """
        neighbors = validate.whole("neighbors", self.neighbors, at_least=1, remedy="use about 10")
        alpha = validate.number("alpha", self.alpha, above=0, below=1, remedy="use about 0.9")
        iterations = validate.whole("iterations", self.iterations, at_least=1, remedy="use about 100")
        if self.learned is not None and not hasattr(self.learned, "transform"):
            raise InputError(
                "learned",
                self.learned,
                requirement="must have transform",
                remedy="use a NetworkClassifier, whose transform is what its last layer sees",
            )
        X, y = validate_data(self, X, y)  # noqa: N806
        known, self.classes_, start = _targets(y, counts)
        start = np.where(known[:, None], start - start.mean(axis=1, keepdims=True) * (counts is not None), 0.0)
        if not start.any():
            raise InputError(
                "counts",
                "the same for all classes at every point",
                requirement="must favour some class somewhere",
                remedy="ask for more answers, or pass labels alone",
            )
        near = X if self.features is None else clone(self.features).fit_transform(X)
        joined = partial(_spread, start=start, neighbors=neighbors, alpha=alpha, iterations=iterations)
        labels = _largest(joined(near))
        if self.learned is not None:
            reached = labels != UNLABELLED
            seeing = fitted(clone(self.learned), X[reached], labels[reached])
            if not isinstance(seeing, Constant):  # of one class: there is nothing to see
                labels = _largest(joined(normalize(seeing.transform(X))))
        self.propagated_ = labels
        final = LogisticRegression(max_iter=1000) if self.final is None else self.final
        self.final_ = fitted(clone(final), X[labels != UNLABELLED], labels[labels != UNLABELLED])
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The final classifier's classes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)  # noqa: N806
        classes: NDArray[Any] = self.classes_[self.final_.predict(X)]
        return classes

    @available_if(lambda self: self.final is None or hasattr(self.final, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The final classifier's probabilities, a column for each class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)  # noqa: N806
        return spread_chances(self.final_, X, classes=len(self.classes_))


class VoteRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression on shares of votes, as noisy as they were released.

    The cross-entropy log Σ exp fⱼ − Σ tⱼ fⱼ is linear in the targets t, so noise with mean 0, however large, averages
    out over the points, and probabilities estimate shares of votes. The largest noisy counts alone would give
    probabilities close to chance. Scale all features alike. With labels it is the usual logistic regression.

    Parameters
    ----------
    penalty
        The weight of half the squared weights in the mean loss.
    """

    def __init__(self, *, penalty: float = 3e-3) -> None:
        self.penalty = penalty

    def fit(self, X: Any, y: Any, counts: Any = None) -> VoteRegression:  # noqa: N803
        """Fit to labels, or to noisy counts, as `Propagated` does; points with the label −1 are left out."""
        penalty = validate.number("penalty", self.penalty, above=0, remedy="use about 0.003")
        X, y = validate_data(self, X, y, dtype=np.float64)  # noqa: N806
        known, self.classes_, targets = _targets(y, counts)
        if counts is not None:
            # What a row of counts sums up to is the number of teachers, and noise that the mean over rows takes away.
            votes = max(1.0, float(np.mean(np.sum(targets[known], axis=1))))
            targets = 1 / len(self.classes_) + (targets - targets.mean(axis=1, keepdims=True)) / votes
        rows, targets = np.hstack([X[known], np.ones((int(known.sum()), 1))]), targets[known]
        shape = rows.shape[1], len(self.classes_)
        free = np.ones((shape[0], 1))
        free[-1] = 0.0  # the constant is not penalised

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            weights = flat.reshape(shape)
            values = rows @ weights
            mean = float(np.mean(special.logsumexp(values, axis=1) - np.sum(targets * values, axis=1)))
            slope = rows.T @ (special.softmax(values, axis=1) - targets) / len(rows) + penalty * free * weights
            return mean + penalty * float(np.sum(free * weights**2)) / 2, slope.ravel()

        found = optimize.minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
        self.n_iter_ = int(found.nit)
        self.weights_ = found.x.reshape(shape)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probabilities of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        chances: NDArray[np.float64] = special.softmax(X @ self.weights_[:-1] + self.weights_[-1], axis=1)
        return chances

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest of `classes_`."""
        places = np.argmax(self.predict_proba(X), axis=1)
        classes: NDArray[Any] = self.classes_[places]
        return classes


def _targets(y: NDArray[Any], counts: Any) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[np.float64]]:
    """Which points have an answer, the classes, and for each point its noisy counts or a 1 for its label."""
    check_classification_targets(y)
    known = y != UNLABELLED if y.dtype.kind in "if" else np.ones(len(y), dtype=bool)
    if not known.any():
        raise InputError(
            "y", y, requirement="must have one label at least, got no class", remedy="ask for more answers"
        )
    if counts is None:
        classes, places = np.unique(y[known], return_inverse=True)
        ones = np.zeros((len(y), len(classes)))
        ones[np.flatnonzero(known), places] = 1.0
        return known, classes, ones
    table = validate.array("counts", counts, dimensions=2, remedy="pass a row for each point")
    if len(table) != len(y):
        raise InputError("counts", table.shape, requirement=f"must have {len(y)} rows", remedy="one for each point")
    return known, np.arange(table.shape[1]), table


def _largest(spread: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class with the largest value at each point, −1 if nothing reached it."""
    return np.where(spread.any(axis=1), np.argmax(spread, axis=1), UNLABELLED)


def _spread(
    X: NDArray[Any],  # noqa: N803
    start: NDArray[np.float64],
    *,
    neighbors: int,
    alpha: float,
    iterations: int,
) -> NDArray[np.float64]:
    """F after the iterations, from F = Y."""
    if len(X) == 1:
        return start
    graph = kneighbors_graph(X, min(neighbors, len(X) - 1), mode="connectivity", include_self=False)
    graph = graph.maximum(graph.T)
    roots = 1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    normalised = sparse.diags(roots) @ graph @ sparse.diags(roots)
    found = start.copy()
    for _ in range(iterations):
        found = alpha * (normalised @ found) + (1 - alpha) * start
    return found
