"""Private labels as numbers of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ..errors import InputError


def numbered(y: NDArray[Any], classes: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All classes in order, those that occur where None are listed, and the number of each label's."""
    check_classification_targets(y)
    if classes is None:
        found, numbers = np.unique(y, return_inverse=True)
        return found, numbers.astype(np.int64)
    listed = np.unique(np.asarray(classes))
    if not len(listed):
        raise InputError("classes", classes, requirement="must not be empty", remedy="list every label that may occur")
    places = np.searchsorted(listed, y)
    if not np.array_equal(listed[np.minimum(places, len(listed) - 1)], y):
        raise InputError(
            "y",
            "some label that is none of them",  # but not which, as labels are private
            requirement="must hold labels among classes alone",
            remedy="list every label that may occur",
        )
    return listed, places.astype(np.int64)
