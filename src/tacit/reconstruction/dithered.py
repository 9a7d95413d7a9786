"""The module to deploy: features and noise, without leaks from low bits."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core import validate
from ..core.errors import InputError
from .noise import Noise
from .release import check_evaluation, check_modes, exact, open_release

_VANISHING = 1e-9  # times the largest singular value


class Dithered(nn.Module):
    """A module that releases noisy features: `Dithered(features, noise)(inputs)`.

    The noise comes from the operating system's entropy, fresh at every call, and takes no seed. The release is rounded
    to the noise's `grid`, 2⁻¹⁶ of its size unless it is `Quantized`, because the low bits of floating-point sums reveal
    the features under the noise. Features are computed as the bounds compute them: without TF32, autocast or fused
    attention. A module in train mode is refused if that makes a difference.

    Parameters
    ----------
    features
        The module or callable whose output is released.
    noise
        The noise to add.
    keep
        How many numbers to release: the features are projected onto this many fixed directions. By default all
        features.
    public
        Public inputs. The directions are then the principal ones of their features, otherwise random. Directions are
        public (learned ones are part of the state_dict): if they were learned from private inputs they would be a
        release of their own, which no bound here covers.
    projection_seed
        For random directions.

    Attributes
    ----------
    released
        The function under the noise; pass it to the bounds.
    """

    def __init__(
        self,
        features: Callable[[Tensor], Tensor],
        noise: Noise,
        *,
        keep: int | None = None,
        public: object = None,
        projection_seed: int = 0,
    ) -> None:
        super().__init__()
        if not callable(features):
            raise InputError(
                "features", features, requirement="must be a module or a callable", remedy="pass the model"
            )
        if not hasattr(noise, "shaped"):
            raise InputError(
                "noise", noise, requirement="must be a noise of tacit.reconstruction", remedy="use Gaussian(sigma)"
            )
        self.noise = noise
        self.released = _Projected(features, keep, public, projection_seed)

    def forward(self, inputs: Tensor) -> Tensor:
        """Release the noisy features of these inputs, one row per input, in float64."""
        check_modes(self.released)
        model = self.released.features
        if isinstance(model, nn.Module) and any(part.training for part in model.modules()):
            check_evaluation(self.released, copy.deepcopy(self.released).eval(), inputs[:3])
        with exact():  # as the bounds compute them, whatever the caller has switched on
            features = self.released(inputs)
        noise = self.noise.shaped(_standard(self.noise.standard, tuple(features.shape)))
        noisy = features.to("cpu", torch.float64) + noise
        grid = self.noise.grid
        return (grid * torch.round(noisy / grid)).to(features.device)


class _Projected(nn.Module):
    """Features, flattened and, if asked for, projected onto `keep` orthonormal directions."""

    learned: Tensor | None

    def __init__(
        self, features: Callable[[Tensor], Tensor], keep: int | None, public: object = None, seed: int = 0
    ) -> None:
        super().__init__()
        self.features = features
        self.keep = (
            None
            if keep is None
            else validate.whole("keep", keep, at_least=1, remedy="use fewer than there are features")
        )
        self.seed = validate.whole("projection_seed", seed, at_least=0, remedy="use 0")
        if public is not None and self.keep is None:
            raise InputError(
                "keep", None, requirement="must be given with public", remedy="state how many numbers to release"
            )
        learned = None if public is None or self.keep is None else _principal(features, public, self.keep)
        self.register_buffer("learned", learned)
        self._random: Tensor | None = None  # made from the seed once the number of features is known

    def forward(self, inputs: Tensor) -> Tensor:
        flat = self.features(inputs).flatten(1)
        if self.keep is None:
            return flat
        if self.learned is not None:
            return flat @ self.learned.to(flat)
        if self._random is None:
            _check_keep(self.keep, flat.shape[1], "the features")
            generator = torch.Generator().manual_seed(self.seed)
            random = torch.randn(flat.shape[1], self.keep, generator=generator, dtype=torch.float64)
            self._random = torch.linalg.qr(random)[0]
        return flat @ self._random.to(flat)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Take over directions learned elsewhere, so that deployment does not need the public inputs."""
        found = state_dict.get(f"{prefix}learned")
        if self.learned is None and found is not None and found.shape[1:] == (self.keep,):
            self.learned = torch.empty_like(found)
        super()._load_from_state_dict(state_dict, prefix, *others)


def _principal(features: Callable[[Tensor], Tensor], public: object, keep: int) -> Tensor:
    """Return the directions in which features of public inputs vary most, one per column, with a fixed sign."""
    release = open_release(features, public)
    clean = release.features(release.inputs)
    _check_keep(keep, clean.shape[1], "the features")
    _, sizes, directions = torch.linalg.svd(clean - clean.mean(dim=0), full_matrices=False)
    _check_keep(keep, int((sizes > _VANISHING * sizes[0]).sum()), "the directions in which public features vary")
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    return (directions * largest.sign())[:keep].T.contiguous()


def _check_keep(keep: int, most: int, what: str) -> None:
    if keep > most:
        raise InputError("keep", keep, requirement=f"must be at most {most}, {what}", remedy="lower it")


def _standard(kind: str, shape: tuple[int, ...]) -> Tensor:
    """Return standard normal or uniform numbers (between −½ and ½) from the operating system's entropy, in float64."""
    count = math.prod(shape)
    if kind == "uniform":
        return torch.tensor(_uniform(count) - 0.5).reshape(shape)
    # Box and Muller 1958. 53 bits reach 8.5 standard deviations, beyond which a normal has probability 1e-17.
    radius = np.sqrt(-2 * np.log1p(-_uniform(count)))
    return torch.tensor(radius * np.cos(2 * math.pi * _uniform(count))).reshape(shape)


def _uniform(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return multiples of 2⁻⁵³ in [0, 1)."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(11)
    return words.astype(np.float64) * 2.0**-53
