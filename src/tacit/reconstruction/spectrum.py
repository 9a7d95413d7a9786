"""Natural images by their power per frequency and colour: the prior for inputs too large for a covariance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from .basis import cosines
from .latent_priors import LatentPrior
from .priors import fingerprint, public_inputs

_BANDS = 32
"""Rings of frequencies, of equal width on a logarithmic scale, whose modes share one power."""
_FLOOR = 1e-6
"""Least power of a mode, as a share of the mean one: no mode is known exactly."""


class Spectrum(LatentPrior):
    """A prior of Gaussian images with independent cosine modes, and one power for each ring of frequencies.

    Colours are turned to their principal axes, each with a spectrum of its own. Real images have edges, which no such
    prior knows: attackers who know about them may do better than its bounds.

    Parameters
    ----------
    mean
        The mean of each channel.
    colours
        One axis of colour per row, orthonormal.
    powers
        The variance of each cosine mode, of shape (axes of colour, height, width).
    description
        Where the prior comes from, in words. Guarantees quote it.
    flat
        Whether inputs have the shape (height, width), without an axis for channels.
    """

    def __init__(self, mean: Tensor, colours: Tensor, powers: Tensor, *, description: str, flat: bool = False) -> None:
        remedy = "use Spectrum.fitted(public)"
        self._powers = torch.tensor(validate.array("powers", powers, at_least=0, dimensions=3, remedy=remedy))
        channels, height, width = self._powers.shape
        self._mean = torch.tensor(validate.array("mean", mean, dimensions=1, remedy=remedy))
        self._colours = torch.tensor(validate.array("colours", colours, dimensions=2, remedy=remedy))
        if self._mean.shape != (channels,) or self._colours.shape != (channels, channels):
            requirement = f"must be {channels} means and {channels} × {channels} colours"
            shapes = (tuple(self._mean.shape), tuple(self._colours.shape))
            raise InputError("the shapes of mean and colours", shapes, requirement=requirement, remedy=remedy)
        words = validate.text("description", description, remedy="say where the prior comes from")
        self.description = f"{words} ({fingerprint(self._mean, self._colours, self._powers)})"
        self.shape = (height, width) if flat else (channels, height, width)
        self.size = channels * height * width
        self.weights = torch.ones(1, dtype=torch.float64)
        self._kept: dict[tuple[torch.dtype, torch.device], tuple[Tensor, ...]] = {}

    @classmethod
    def fitted(cls, public: object) -> Spectrum:
        """Take the mean colour, the axes of colour and the power of each ring of frequencies from public images.

        Parameters
        ----------
        public
            Images, one per row, of shape (height, width) or (channels, height, width).
        """
        images = public_inputs("public", public)
        flat = images.ndim == 3
        if images.ndim not in (3, 4):
            raise InputError(
                "the shape of an input in public",
                tuple(images.shape[1:]),
                requirement="must be (height, width) or (channels, height, width)",
                remedy="use Mixture.fitted for other inputs",
            )
        images = images[:, None] if flat else images
        mean = images.mean(dim=(0, 2, 3))
        centred = images - mean[:, None, None]
        pixels = centred.permute(0, 2, 3, 1).flatten(0, 2)
        colours = torch.linalg.eigh(pixels.T @ pixels / len(pixels)).eigenvectors.T.flip(0)
        height, width = images.shape[2:]
        high, wide = cosines(height, images.device), cosines(width, images.device)
        modes = torch.einsum("kc,nchw->nkhw", colours, high @ centred @ wide.T)
        rings = _rings(height, width)
        power = modes.square().mean(dim=0).flatten(1)
        sums = torch.zeros(len(power), int(rings.max()) + 1, dtype=torch.float64).index_add_(1, rings, power)
        powers = (sums / torch.bincount(rings))[:, rings]
        powers = powers.clamp(min=_FLOOR * float(powers.mean())).reshape(-1, height, width)
        if not float(powers.max()) > 0:
            raise InputError("public", 0.0, requirement="must differ from one another", remedy="pass others")
        words = f"Gaussian images with the power per frequency and colour of {len(images)} public ones"
        return cls(mean, colours, powers, description=words, flat=flat)

    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:  # noqa: ARG002 — there is one
        """Images, one per row, in the type of the numbers; differentiable in these."""
        kind = (numbers.dtype, numbers.device)
        if kind not in self._kept:
            high, wide = (cosines(size, numbers.device).to(numbers) for size in self._powers.shape[1:])
            self._kept[kind] = (
                self._mean.to(numbers),
                self._colours.to(numbers),
                self._powers.sqrt().to(numbers),
                high,
                wide,
            )
        mean, colours, sizes, high, wide = self._kept[kind]
        axes = high.T @ (sizes * numbers.reshape(-1, *sizes.shape)) @ wide
        images = (axes.transpose(1, 3) @ colours).transpose(1, 3) + mean[:, None, None]
        return images.reshape(-1, *self.shape)

    @property
    def variances(self) -> Tensor:
        """The variance of every entry."""
        high, wide = (cosines(size, self._powers.device).square() for size in self._powers.shape[1:])
        axes = high.T @ self._powers @ wide
        return torch.einsum("kc,khw->chw", self._colours.square(), axes).flatten()


def _rings(height: int, width: int) -> Tensor:
    """The ring of every cosine mode: the constant one by itself, then by frequency in waves a pixel."""
    down, across = torch.meshgrid(torch.arange(height) / height, torch.arange(width) / width, indexing="ij")
    frequency = (down.square() + across.square()).sqrt().flatten().double()
    least = 1 / max(height, width)
    ring = 1 + (_BANDS - 1) * (frequency.clamp(min=least) / least).log() / math.log(math.sqrt(2) / least)
    ring = torch.where(frequency > 0, ring.round().clamp(min=1), 0).long()
    return torch.unique(ring, return_inverse=True)[1]
