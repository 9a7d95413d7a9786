"""The module to deploy: features and noise, without leaks from low bits."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core import validate
from ..core.errors import InputError
from .noise import Noise
from .release import check_evaluation, check_modes, exact, open_release
from .repeated import checked_releases
from .shaping import fitted_covariance

_VANISHING = 1e-9  # times the largest singular value

_REMEMBERED = 2**20
"""Inputs whose releases are counted; of more, the latest."""


class Dithered(nn.Module):
    """A module that releases noisy features: `Dithered(features, noise)(inputs)`.

    The noise comes from the operating system's entropy, fresh at every call, and takes no seed. The release is rounded
    to the noise's `grid`, 2⁻¹⁶ of its size unless it is `Quantized`, because the low bits of floating-point sums reveal
    the features under the noise. Features are computed as the bounds compute them: without TF32, autocast or fused
    attention. A module in train mode is refused if that makes a difference.

    It counts how often it releases the same input or the same features, and warns once when one is released more often
    than declared: the bounds are for `releases=n`. What is equal in float32 counts as the same, so that an input is one
    in whichever type it comes. It keeps fingerprints in memory, of the latest million, and never the inputs; what other
    processes release, or a copy of this module, it does not know.

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
    releases
        How often the same input may be released; state the same number to the bounds.

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
        releases: int = 1,
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
        self.releases = checked_releases(releases)
        self.released = _Projected(features, keep, public, projection_seed)
        self._count = _Count()

    @classmethod
    def fit_covariance(
        cls,
        features: Callable[[Tensor], Tensor],
        head: Callable[[Tensor], Tensor],
        public: object,
        *,
        labels: object = None,
        loss: float = 0.005,
        draws: int = 20_000,
        seed: int = 0,
        releases: int = 1,
    ) -> Dithered:
        """Release with Gaussian noise in the shape that costs a head little accuracy and hides much.

        Directions of the features that the head hardly reads get most of the noise. The shape is learned from public
        inputs alone, and proves nothing by itself: pass `.noise` to the bounds, as any other noise.

        Parameters
        ----------
        features
            The module or callable whose output is released.
        head
            The function that turns flat features into class scores.
        public
            Public inputs, one per row, at best others than those on which the head was trained.
        labels
            Their class numbers; without these, the classes that the head finds without noise.
        loss
            How much accuracy the noise may cost on the public inputs, as a share.
        draws
            Noisy releases from which accuracies are measured.
        seed
            For the random draws.
        releases
            How often the same input may be released.

        Returns
        -------
        Dithered
            The module to deploy, with the noise as `.noise`.

        Raises
        ------
        InputError
            If a value cannot be used, or no noise keeps the accuracy.
        """
        noise = fitted_covariance(features, head, public, labels=labels, loss=loss, draws=draws, seed=seed)
        return cls(features, noise, releases=releases)

    def forward(self, inputs: Tensor) -> Tensor:
        """Release the noisy features of these inputs, one row per input, in float64."""
        check_modes(self.released)
        model = self.released.features
        if isinstance(model, nn.Module) and any(part.training for part in model.modules()):
            check_evaluation(self.released, copy.deepcopy(self.released).eval(), inputs[:3])
        with exact():  # as the bounds compute them, whatever the caller has switched on
            features = self.released(inputs)
        self._warn(self._count.most(inputs, features))
        noise = self.noise.shaped(_standard(self.noise.standard, tuple(features.shape)))
        noisy = features.to("cpu", torch.float64) + noise
        grid = self.noise.grid
        return (grid * torch.round(noisy / grid)).to(features.device)

    def _warn(self, times: int) -> None:
        if times > self.releases and not self._count.warned:
            self._count.warned = True
            warnings.warn(
                f"an input must be released no more often than declared, {self.releases}, got {times} releases of one; "
                "declare the true number, Dithered(…, releases=n), and compute the bounds with it",
                stacklevel=5,  # the caller of the module
            )


class _Count:
    """How often inputs and features were released, by fingerprints under a random key; a copy starts afresh."""

    def __init__(self) -> None:
        self.warned = False
        self._key = os.urandom(32)
        self._times: dict[bytes, int] = {}

    def __reduce__(self) -> tuple[type[_Count], tuple[()]]:
        return _Count, ()

    def most(self, inputs: Tensor, features: Tensor) -> int:
        """Count a release of each of these inputs and of its features; return the greatest number so far."""
        prints = [*self._prints(b"inputs", inputs), *self._prints(b"features", features)]
        for mark in prints:
            self._times[mark] = self._times.pop(mark, 0) + 1  # at the end: the latest
        found = max((self._times[mark] for mark in prints), default=0)
        for mark in list(itertools.islice(self._times, max(0, len(self._times) - 2 * _REMEMBERED))):
            del self._times[mark]
        return found

    def _prints(self, kind: bytes, rows: Tensor) -> list[bytes]:
        """Fingerprints in float32: the same in whichever type a row comes. At worst, different rows count as one."""
        plain = torch.as_tensor(rows).detach().to("cpu", torch.float32) + 0.0  # −0 is 0
        return [
            hashlib.blake2b(row.tobytes(), key=self._key, digest_size=16, person=kind).digest() for row in plain.numpy()
        ]


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
