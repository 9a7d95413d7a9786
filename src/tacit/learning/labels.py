"""Private labels as numbers of their classes, and classes that nobody named, found at a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ..core.errors import InputError
from ..theory.accounting import label_threshold, laplace_scale
from .mechanisms import Noise, SystemNoise

UNNAMED = -1
"""The number of a label that is none of the classes."""


def named(y: NDArray[Any], classes: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All classes in order, and the number of each label's; labels must be among them."""
    listed = np.unique(np.asarray(classes))
    if not len(listed):
        raise InputError("classes", classes, requirement="must not be empty", remedy="list every label that may occur")
    numbers = numbered(y, listed)
    if (numbers == UNNAMED).any():
        raise InputError(
            "y",
            "some label that is none of them",  # but not which, as labels are private
            requirement="must hold labels among classes alone",
            remedy="list every label that may occur",
        )
    return listed, numbers


def numbered(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The number of each label's class, of classes in order; `UNNAMED` where it has none."""
    check_classification_targets(y)
    places = np.searchsorted(classes, y)
    known = classes[np.minimum(places, len(classes) - 1)] == y
    return np.where(known, places, UNNAMED).astype(np.int64)


FOUND_BY = ("theory.accounting.laplace_scale", "theory.accounting.label_threshold")
"""The theorems by which a `Search` costs no more than it says."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for the labels that enough records hold, (ε, δ)-DP; a record or person changes so many counts by 1."""

    epsilon: float
    delta: float
    changed: int

    @property
    def scale(self) -> float:
        """Of the noise on each count."""
        return laplace_scale(self.epsilon, sensitivity=self.changed)

    @property
    def threshold(self) -> int:
        """What a noisy count has to reach."""
        return label_threshold(self.delta, scale=self.scale, changed=self.changed)

    def labels(self, y: NDArray[Any], people: list[bytes] | None = None, noise: Noise | None = None) -> list[Any]:
        """Those found, in order; each person counts once, for the label that most of their records hold."""
        check_classification_targets(y)
        source = SystemNoise() if noise is None else noise
        held, numbers = np.unique(y, return_inverse=True)
        counts = np.bincount(numbers if people is None else _usual(numbers, people), minlength=len(held))
        scale, threshold = self.scale, self.threshold
        return [
            label
            for label, count in zip(held.tolist(), counts.tolist(), strict=True)
            if count and count + source.laplace(scale) >= threshold
        ]

    def classes(self, found: object) -> NDArray[Any]:
        """The classes that these labels are, if there are enough; of a type of their own.

        Cut from all labels, an array of text would be as wide as the longest of them.
        """
        if not isinstance(found, list) or len(found) < 2:
            raise InputError(
                "the number of classes found among private labels",
                len(found) if isinstance(found, list) else found,
                requirement=f"must be two or more, each of about {self.threshold} records or people at this budget",
                remedy="name them by classes=… or --classes, which costs nothing, if they are public knowledge",
            )
        return np.array(found)


def _usual(numbers: NDArray[np.int64], people: list[bytes]) -> NDArray[np.int64]:
    """For each person the number that they have most often; of equals, the least."""
    _, who = np.unique(np.array(people, dtype=object), return_inverse=True)
    pairs, times = np.unique(np.column_stack([who, numbers]), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -times, pairs[:, 0]))
    _, first = np.unique(pairs[order, 0], return_index=True)
    usual: NDArray[np.int64] = pairs[order[first], 1]
    return usual
