"""The digits: private ones, public ones, and public ones to test on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

PRIVATE, UNLABELLED = 1200, 300


@dataclass(frozen=True, kw_only=True)
class Digits:
    """Private digits with their labels, public ones, and public ones to test on; images are rows from 0 to 1."""

    private: tuple[_Array, NDArray[np.int64]]
    public: tuple[_Array, NDArray[np.int64]]
    test: tuple[_Array, NDArray[np.int64]]

    @property
    def others(self) -> tuple[_Array, NDArray[np.int64]]:
        """All that is not private."""
        images, labels = (np.concatenate(pair) for pair in zip(self.public, self.test, strict=True))
        return images, labels


def drawn(seed: int) -> Digits:
    """All 1797, in parts drawn at random."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 1]).permutation(len(images))
    parts = np.split(order, [PRIVATE, PRIVATE + UNLABELLED])
    private, public, test = ((images[rows] / 16.0, labels[rows]) for rows in parts)
    return Digits(private=private, public=public, test=test)
