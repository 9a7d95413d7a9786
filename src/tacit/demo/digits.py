"""The digits: private ones, public ones, and public ones for testing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

PRIVATE, UNLABELLED = 1200, 300


@dataclass(frozen=True, kw_only=True)
class Digits:
    """Digits as pairs of images and labels; images are rows of numbers from 0 to 1.

    Attributes
    ----------
    private
        What is released in some form.
    public
        Public digits.
    test
        Public digits for testing.
    """

    private: tuple[_Array, NDArray[np.int64]]
    public: tuple[_Array, NDArray[np.int64]]
    test: tuple[_Array, NDArray[np.int64]]

    @property
    def others(self) -> tuple[_Array, NDArray[np.int64]]:
        """All digits that are not private."""
        images, labels = (np.concatenate(pair) for pair in zip(self.public, self.test, strict=True))
        return images, labels


def drawn(seed: int) -> Digits:
    """All 1797 digits, split at random."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 1]).permutation(len(images))
    parts = np.split(order, [PRIVATE, PRIVATE + UNLABELLED])
    private, public, test = ((images[rows] / 16.0, labels[rows]) for rows in parts)
    return Digits(private=private, public=public, test=test)
