"""The module to deploy: features, noise, and nothing that leaks beside them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import checked
from ..errors import InputError
from .noise import Noise


class Dithered(nn.Module):
    """Releases noisy features: `Dithered(features, noise)(inputs)`.

    The noise comes from the operating system's entropy, afresh at every call, and takes no seed. What is released is
    rounded to 2⁻¹⁶ of the noise's size, because the low bits of floating-point sums betray the features under the
    noise. `keep` limits how many numbers are released: the features are first projected onto that many fixed random
    directions, which are public. `released` is the function under the noise: pass it to the bounds.
    """

    def __init__(
        self, features: Callable[[Tensor], Tensor], noise: Noise, *, keep: int | None = None, projection_seed: int = 0
    ) -> None:
        super().__init__()
        if not callable(features):
            raise InputError(
                "features", features, requirement="must be a module or a callable", remedy="pass the model"
            )
        if not hasattr(noise, "shaped"):
            raise InputError("noise", noise, requirement="must be a noise of this room", remedy="use Gaussian(sigma)")
        self.noise = noise
        self.released = _Projected(features, keep, projection_seed)

    def forward(self, inputs: Tensor) -> Tensor:
        features = self.released(inputs).detach()
        noise = self.noise.shaped(_standard(self.noise.standard, tuple(features.shape)))
        exact = features.to("cpu", torch.float64) + noise
        grid = self.noise.size / 2**16
        return (grid * torch.round(exact / grid)).to(features.device)


class _Projected(nn.Module):
    """Features, flattened, and projected onto `keep` orthonormal directions if that is asked for."""

    def __init__(self, features: Callable[[Tensor], Tensor], keep: int | None, seed: int) -> None:
        super().__init__()
        self.features = features
        self.keep = None if keep is None else checked.whole("keep", keep, at_least=1, remedy="use fewer than features")
        self.seed = checked.whole("projection_seed", seed, at_least=0, remedy="use 0")
        self._directions: Tensor | None = None  # made from the seed when the number of features is known

    def forward(self, inputs: Tensor) -> Tensor:
        flat = self.features(inputs).flatten(1)
        if self.keep is None:
            return flat
        if self._directions is None:
            if self.keep > flat.shape[1]:
                raise InputError(
                    "keep", self.keep, requirement=f"must be at most {flat.shape[1]}, the features", remedy="lower it"
                )
            generator = torch.Generator().manual_seed(self.seed)
            random = torch.randn(flat.shape[1], self.keep, generator=generator, dtype=torch.float64)
            self._directions = torch.linalg.qr(random)[0]
        return flat @ self._directions.to(flat)


def _standard(kind: str, shape: tuple[int, ...]) -> Tensor:
    """Standard normal or uniform numbers (between −½ and ½), float64, from the operating system's entropy."""
    count = math.prod(shape)
    if kind == "uniform":
        return torch.tensor(_uniform(count) - 0.5).reshape(shape)
    # Box and Muller 1958. With 53 bits the tails end at 8.5 standard deviations, which 1e-17 of a normal exceeds.
    radius = np.sqrt(-2 * np.log1p(-_uniform(count)))
    return torch.tensor(radius * np.cos(2 * math.pi * _uniform(count))).reshape(shape)


def _uniform(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Multiples of 2⁻⁵³ in [0, 1)."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
    return words.astype(np.float64) * 2.0**-53
