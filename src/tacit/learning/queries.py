"""The public records to ask about: all, or one of each cluster. This uses public data only, so it is free."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ..core import validate


def medoids(X: NDArray[Any], *, clusters: int, random_state: Any = None) -> NDArray[np.int64]:  # noqa: N803
    """The points closest to the centres of their k-means clusters.

    Answers about them reach furthest in a graph of neighbours, so a student that propagates labels needs few.

    Parameters
    ----------
    X
        The points.
    clusters
        The number of clusters. There are fewer medoids if points repeat.
    random_state
        The seed of k-means.

    Returns
    -------
    The places of the medoids, in order.
    """
    clusters = validate.whole("clusters", clusters, at_least=1, remedy="say how many queries may be asked")
    if clusters >= len(X):
        return np.arange(len(X), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of points that repeat
        found = KMeans(clusters, n_init=1, random_state=random_state).fit(X)
    distance = found.transform(X)[np.arange(len(X)), found.labels_]
    nearest_first = np.argsort(distance, kind="stable")
    _, first = np.unique(found.labels_[nearest_first], return_index=True)
    return np.sort(nearest_first[first]).astype(np.int64)
