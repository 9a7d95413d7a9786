"""The same input released several times, each time with fresh noise (docs/proofs/divergences.md, "Repeated releases").

Gaussian releases tell what their mean tells: one release with less noise. For other noise with independent features,
several releases are one release of the features, copied side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ..core import validate
from ..core.errors import NoTheoremError
from .noise import Gaussian, Laplace, Noise, Uniform, checked_noise, unrounded
from .other_noise import Density

_Features = Callable[[Any], Any]


def repeated(features: _Features, noise: Noise, releases: object) -> tuple[_Features, Noise]:
    """Return features and a noise whose one release tells at least as much as several releases do.

    Parameters
    ----------
    features
        The function whose output is released.
    noise
        The noise added to it, fresh each time.
    releases
        How often the same input is released, at most.

    Raises
    ------
    NoTheoremError
        If the noise is not known to be independent in every feature.
    """
    checked_noise(noise)
    count = checked_releases(releases)
    if count == 1 or not callable(features):
        return features, noise
    if isinstance(noise, Gaussian):
        return features, noise.averaged(count)
    inner = unrounded(noise)
    if isinstance(inner, Gaussian) and inner.sigma is None:
        raise NoTheoremError(
            f"repeated releases must have Gaussian noise, or independent noise in every feature, got {noise!r}; "
            "pass the noise before rounding, whose bounds hold after it too"
        )
    if not isinstance(inner, Gaussian | Laplace | Uniform | Density):
        raise NoTheoremError(
            f"repeated releases must have Gaussian, Laplace or uniform noise, or a Density, got {noise!r}; bound one "
            "release of all copies of the features, with their joint noise"
        )
    return (_Copies(features, count) if isinstance(features, nn.Module) else _copied(features, count)), noise


def checked_releases(releases: object) -> int:
    """Return how often an input is released."""
    return validate.whole("releases", releases, at_least=1, remedy="use 1 where each input is released once")


def repeated_theorems(noise: Noise, releases: int) -> tuple[str, ...]:
    """Return what a guarantee for several releases rests on besides its own theorem."""
    if releases == 1:
        return ()
    return ("theory.divergences.repeated_scale",) if isinstance(noise, Gaussian) else ("repeated releases",)


class Drawn(Protocol):
    """Noise that can be drawn."""

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """Draw pseudo-random noise for features like these."""
        ...


@dataclass(frozen=True)
class Middle:
    """What a decoder makes of several releases: one number for each feature, in their middle.

    That is the median for Laplace noise, the middle between the least and the greatest for uniform noise, else the
    mean. All of these move with the features, so the middle is the features plus that of the noise.
    """

    noise: Noise
    releases: int

    @property
    def name(self) -> str:
        """The middle in words."""
        inner = unrounded(self.noise)
        return "median" if isinstance(inner, Laplace) else "mid-range" if isinstance(inner, Uniform) else "mean"

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the middle of as many draws of the noise."""
        drawn = torch.stack([self.noise.sample(features, generator) for _ in range(self.releases)])
        if self.name == "median":
            ordered = drawn.sort(dim=0).values
            return (ordered[(self.releases - 1) // 2] + ordered[self.releases // 2]) / 2
        if self.name == "mid-range":
            return (drawn.amin(dim=0) + drawn.amax(dim=0)) / 2
        return drawn.mean(dim=0)


class _Copies(nn.Module):
    """A module whose features are copied side by side."""

    def __init__(self, features: nn.Module, count: int) -> None:
        super().__init__()
        self.features, self.count, self.training = features, count, features.training

    def forward(self, inputs: Tensor) -> Any:
        return _side_by_side(self.features(inputs), self.count)


def _copied(features: _Features, count: int) -> _Features:
    """Copy the features of a callable, on tensors or on arrays."""

    def copied(rows: Any) -> Any:
        found = features(rows)
        return _side_by_side(np.asarray(found) if isinstance(rows, np.ndarray) else found, count)

    return copied


def _side_by_side(found: Any, count: int) -> Any:
    """Copy rows of features; what is none is left to the check of every release."""
    if not isinstance(found, Tensor | np.ndarray) or found.ndim < 1:
        return found
    rows = found.reshape(len(found), -1)
    return rows.repeat(1, count) if isinstance(rows, Tensor) else np.tile(rows, count)
