"""The shape of Gaussian noise that a head does not mind: much of it in directions that the head hardly reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from .calibration import class_numbers, in_float64
from .noise import Gaussian
from .release import as_array, derivatives, exact, open_release

_WIDEST = 4096
"""Features up to which a whole covariance is worked with."""
_PROBES = 16
"""Random combinations of scores whose gradients are taken at each public input."""
_SHAPES = ((0.0, 1.0), (0.5, 1e4), (1.0, 1e2), (1.0, 1e4))
"""Exponent and greatest ratio of variances. 0 is the same noise everywhere; 1 moves the scores equally in all
directions that the head reads. A greater ratio hides hardly more, and leaves a head in float32 fewer digits."""
_LEAST, _MOST, _HALVINGS = 1e-3, 1e3, 14
"""The scales between which one is sought, in units of the features' root mean square, and in how many steps."""


def fitted_covariance(
    features: Callable[[Any], Any],
    head: Callable[[Tensor], Tensor],
    public: object,
    *,
    labels: object = None,
    loss: float = 0.005,
    draws: int = 20_000,
    seed: int = 0,
) -> Gaussian:
    """Return Gaussian noise that costs the head at most this accuracy on public inputs, and hides as much as it can.

    The head's gradients say which directions of the features it reads. Several shapes are tried, from the same noise
    everywhere to noise that moves the scores equally in all directions. Of each, the largest is taken that keeps the
    accuracy; of these, the one from which a linear decoder rebuilds the public inputs worst. What is chosen promises
    nothing by itself: certify it as any other noise.

    The parameters are those of `Dithered.fit_covariance`.
    """
    loss = validate.number("loss", loss, above=0, below=1, remedy="use 0.005 for half a point")
    draws = validate.whole("draws", draws, at_least=100, remedy="use 20000")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    release = open_release(features, public, promised=False)
    clean = release.features(release.inputs)
    if not bool((clean != clean[:1]).any()):
        raise InputError(
            "the features of public", "all equal", requirement="must differ", remedy="pass more public inputs"
        )
    if clean.shape[1] > _WIDEST:
        raise InputError(
            "the number of features",
            clean.shape[1],
            requirement=f"must be at most {_WIDEST} for a fitted covariance",
            remedy="release fewer numbers: Dithered(…, keep=k).released",
        )
    scores = in_float64(head)
    study = _Study.of(clean, release.inputs.flatten(1), scores, labels, draws, seed)
    values, directions = torch.linalg.eigh(_read(clean, scores, seed))
    best, hidden = None, -1.0
    for exponent, ratio in _SHAPES:
        shape = (values.clamp(min=0) / values[-1].clamp(min=1e-300) + 1 / ratio) ** -exponent
        shape = shape.clamp(max=ratio * float(shape.min()))
        found = study.largest(directions * shape.sqrt(), study.accuracy() - loss)
        if found is not None and (share := study.left_by_a_linear_decoder(found)) > hidden:
            best, hidden = found, share
    if best is None:
        raise InputError(
            "loss",
            loss,
            requirement=f"must allow some noise: {_LEAST:g} of the features' size costs more",
            remedy="allow more, or check that the head takes flat features",
        )
    return Gaussian(covariance=as_array(best @ best.T))


def _read(clean: Tensor, head: Callable[[Tensor], Tensor], seed: int) -> Tensor:
    """Return the mean of JᵀJ, J the derivative of the head's scores, each less their mean, over public features."""
    generator = torch.Generator().manual_seed(seed)
    total = torch.zeros(clean.shape[1], clean.shape[1], dtype=torch.float64, device=clean.device)
    for rows in clean.split(1024):
        for _ in range(_PROBES):
            with derivatives(), torch.enable_grad():
                here = rows.clone().requires_grad_()
                scores = head(here)
                signs = torch.randint(2, scores.shape, generator=generator).to(scores) * 2 - 1
                centred = signs - signs.mean(dim=1, keepdim=True)  # raising all scores changes no class
                (gradients,) = torch.autograd.grad((scores * centred).sum(), here)
            total += gradients.T @ gradients
    if not bool(total.any()):
        raise InputError(
            "the derivative of head", 0.0, requirement="must not vanish", remedy="pass the head that returns scores"
        )
    return total / (len(clean) * _PROBES)


@dataclass(frozen=True, kw_only=True)
class _Study:
    """Public features and inputs, and the same noise for every shape."""

    clean: Tensor
    inputs: Tensor
    head: Callable[[Tensor], Tensor]
    truth: Tensor
    chosen: Tensor
    standard: Tensor

    @classmethod
    def of(
        cls, clean: Tensor, inputs: Tensor, head: Callable[[Tensor], Tensor], labels: object, draws: int, seed: int
    ) -> _Study:
        with exact():
            found = head(clean).argmax(dim=1)
        if labels is not None:
            found = class_numbers(labels, clean)
        generator = torch.Generator().manual_seed(seed + 1)
        chosen = torch.arange(draws) % len(clean)
        standard = torch.randn(draws, clean.shape[1], generator=generator, dtype=torch.float64)
        return cls(
            clean=clean,
            inputs=inputs,
            head=head,
            truth=found,
            chosen=chosen.to(clean.device),
            standard=standard.to(clean.device),
        )

    def accuracy(self, noise: Tensor | None = None, scale: float = 1.0) -> float:
        """Return the share of classes that are right with this noise, a row for each draw, or without noise."""
        right = 0
        for place in torch.arange(len(self.chosen), device=self.clean.device).split(4096):
            rows = self.clean[self.chosen[place]]
            with exact():
                guesses = self.head(rows if noise is None else rows + scale * noise[place]).argmax(dim=1)
            right += int((guesses == self.truth[self.chosen[place]]).sum())
        return right / len(self.chosen)

    def largest(self, root: Tensor, accuracy: float) -> Tensor | None:
        """Return the largest multiple of the root that keeps the accuracy; None if the least one does not."""
        noise = self.standard @ root.T
        size = float(self.clean.square().mean().sqrt() / noise.square().mean().sqrt())
        low, high = size * _LEAST, size * _MOST
        if self.accuracy(noise, low) < accuracy:
            return None
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.accuracy(noise, middle) >= accuracy else (low, middle)
        return low * root

    def left_by_a_linear_decoder(self, root: Tensor) -> float:
        """Return the share of the public inputs' variance that the best linear map from noisy features leaves."""
        spread, inputs = self.clean - self.clean.mean(dim=0), self.inputs - self.inputs.mean(dim=0)
        common = spread.T @ inputs / len(inputs)
        seen = torch.linalg.solve(spread.T @ spread / len(inputs) + root @ root.T, common)
        return 1 - float((common * seen).sum() / inputs.square().mean(dim=0).sum())
