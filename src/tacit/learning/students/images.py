"""Grey images as rows of pixels: features that need no training, a small network, and distortions to train it by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import validate_data

from ...core import validate
from ...core.errors import InputError

_AT_ONCE = 1000


class OrientedGradients(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Histograms of oriented gradients of square grey images (Dalal and Triggs 2005), as rows of length 1.

    Nothing is fitted, so it may be used on private records. It is vectorised here because scikit-image computes one
    image at a time.

    Parameters
    ----------
    cell
        The side of a cell, in pixels.
    orientations
        The number of directions.
    upright
        Shear images first, until their mass no longer leans.
    """

    def __init__(self, *, cell: int = 4, orientations: int = 8, upright: bool = True) -> None:
        self.cell = cell
        self.orientations = orientations
        self.upright = upright

    def fit(self, X: Any, y: Any = None) -> OrientedGradients:  # noqa: ARG002, N803 — scikit-learn's names
        """Check the shape of the images."""
        self._side(validate_data(self, X).shape[1])
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """A row for each image: its cells in reading order, the orientations of each."""
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        images = X.reshape(len(X), self._side(X.shape[1]), -1)
        return np.concatenate([self._described(images[i : i + _AT_ONCE]) for i in range(0, len(images), _AT_ONCE)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _side(self, pixels: int) -> int:
        side = math.isqrt(pixels)
        cell = validate.whole("cell", self.cell, at_least=1, remedy="use 4")
        validate.whole("orientations", self.orientations, at_least=1, remedy="use 8")
        if side * side != pixels or side % cell:
            raise InputError(
                "X",
                f"{pixels} numbers a row",
                requirement=f"must be square images whose side is a multiple of cell = {cell}",
                remedy="pass all pixels of grey images, or another cell",
            )
        return side

    def _described(self, images: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.upright:
            images = _upright(images)
        down, right = np.zeros_like(images), np.zeros_like(images)
        down[:, 1:-1] = images[:, 2:] - images[:, :-2]
        right[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
        strength = np.hypot(down, right)
        turn = np.arctan2(down, right) / (2 * np.pi) * self.orientations
        cells = images.shape[1] // self.cell
        found = np.empty((len(images), cells, cells, self.orientations))
        for orientation in range(self.orientations):
            away = np.abs((turn - orientation + self.orientations / 2) % self.orientations - self.orientations / 2)
            share = strength * np.maximum(0.0, 1 - away)
            found[..., orientation] = share.reshape(-1, cells, self.cell, cells, self.cell).sum(axis=(2, 4))
        rows = np.sqrt(found.reshape(len(images), -1))
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        described: NDArray[np.float64] = rows / np.where(length > 0, length, 1.0)
        return described


def _upright(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mass in the middle, and each row moved sideways until rows and columns of the mass are uncorrelated."""
    side = images.shape[1]
    weights = np.abs(images)
    across = np.arange(side, dtype=np.float64)
    mass = np.maximum(_total(weights), np.finfo(np.float64).tiny)
    y, x = _total(weights * across[:, None]) / mass, _total(weights * across) / mass
    above, beside = across - y[:, None], across - x[:, None]
    lean = _total(weights * above[:, :, None] * beside[:, None, :])
    height = _total(weights * above[:, :, None] ** 2)
    slope = lean / np.where(height > 0, height, 1.0)
    middle = (side - 1) / 2
    straight = _moved(images, slope[:, None] * above + (x - middle)[:, None])
    return _moved(straight.transpose(0, 2, 1), np.repeat((y - middle)[:, None], side, axis=1)).transpose(0, 2, 1)


def _total(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over each image, in an order that does not depend on how many there are (a matrix product's would)."""
    sums: NDArray[np.float64] = images.reshape(len(images), -1).sum(axis=1)
    return sums


def _moved(images: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move each row to the left by a number of pixels, with linear interpolation; zeros come in."""
    side = images.shape[2]
    whole = np.floor(by)
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1)))
    places = np.arange(side) + whole[:, :, None].astype(np.int64)
    left, right = (np.take_along_axis(padded, np.clip(places + k, 0, side + 1), axis=2) for k in (1, 2))
    moved: NDArray[np.float64] = left + (by - whole)[:, :, None] * (right - left)
    return moved


def small_convolutional(n_features: int, n_classes: int) -> Any:
    """For `NetworkClassifier`, with `shape=(1, side, side)`: three convolutions, each with batch normalisation."""
    import torch
    from torch import nn

    def stage(before: int, after: int) -> list[Any]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]

    side = math.isqrt(n_features)
    network: Any = nn.Sequential(
        *stage(1, 16),
        *stage(16, 32),
        *stage(32, 64),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * (side // 8) ** 2, n_classes),
    )
    return network.to(memory_format=torch.channels_last)  # takes a third less time on CPUs


def distorted(images: Any, generator: Any) -> Any:
    """For `NetworkClassifier(augment=…)`: every image turned, stretched, sheared and moved a little, at random."""
    import torch
    from torch.nn import functional

    def between(most: float, *shape: int) -> Any:
        return most * (2 * torch.rand(len(images), *shape, generator=generator, device=images.device) - 1)

    angle, stretch, shear, move = between(0.2), 1 + between(0.1, 2), between(0.2), between(0.1, 2)
    rows = (
        torch.stack([angle.cos() * stretch[:, 0], shear - angle.sin() * stretch[:, 1], move[:, 0]], dim=1),
        torch.stack([angle.sin() * stretch[:, 0], angle.cos() * stretch[:, 1], move[:, 1]], dim=1),
    )
    grid = functional.affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)
