"""Priors whose inputs are a map of independent standard normal numbers, in which chains move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from .priors import REMAINING, Mixture

_SAME = 1e-5
"""Relative difference between results for one row, alone and in a batch, that rounding in float32 may cause."""


class LatentPrior(ABC):
    """An input is made of standard normal numbers, and of one of several components where there are such.

    Attributes
    ----------
    shape
        Of an input.
    size
        How many numbers make an input.
    description
        What the adversary knows, in words.
    weights
        The probability of every component.
    bent
        Whether inputs are far from linear in the numbers.
    """

    shape: tuple[int, ...]
    size: int
    description: str
    weights: Tensor
    bent: bool = False

    @abstractmethod
    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:
        """Inputs, one per row, in the type of the numbers; differentiable in these."""

    @property
    @abstractmethod
    def variances(self) -> Tensor:
        """The variance of every entry of an input."""

    @property
    def unit(self) -> str:
        """What errors are shares of, in words."""
        return "the prior's variance"

    def turned(self, matrix: Tensor) -> LatentPrior:
        """The same prior, made of numbers that an orthogonal matrix turns into those of this one."""
        return _Turned(self, matrix)

    def centres(self) -> Tensor:
        """An input in the middle of every component."""
        count = len(self.weights)
        numbers = torch.zeros(count, self.size, dtype=torch.float64, device=self.weights.device)
        return self.decode(numbers, torch.arange(count, device=self.weights.device))

    def drawn(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Numbers and components of the next inputs of a stream, on the generator's device."""
        device = generator.device
        components = torch.multinomial(self.weights.to(device), count, replacement=True, generator=generator)
        numbers = torch.randn(count, self.size, generator=generator, dtype=torch.float64, device=device)
        return numbers, components

    def sample(self, count: int, *, seed: int) -> Tensor:
        """Inputs drawn from the prior, one per row.

        Parameters
        ----------
        count
            How many.
        seed
            The same seed gives the same inputs.
        """
        seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
        with torch.no_grad():
            return self.decode(*self.drawn(count, torch.Generator().manual_seed(seed)))

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_')}, inputs of shape {self.shape}: {self.description}"


class _Turned(LatentPrior):
    def __init__(self, prior: LatentPrior, matrix: Tensor) -> None:
        self.prior, self.matrix = prior, matrix
        self.shape, self.size, self.description = prior.shape, prior.size, prior.description
        self.weights = prior.weights

    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:
        return self.prior.decode(numbers @ self.matrix.to(numbers), components)

    @property
    def variances(self) -> Tensor:
        return self.prior.variances


class _Normal(LatentPrior):
    """One Gaussian: mean + numbers · matrix."""

    def __init__(self, mean: Tensor, matrix: Tensor, shape: tuple[int, ...], description: str) -> None:
        self.mean, self.matrix = mean, matrix
        self.shape, self.size, self.description = shape, len(matrix), description
        self.weights = torch.ones(1, dtype=torch.float64)
        self._kept: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}

    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:  # noqa: ARG002 — there is one
        kind = (numbers.dtype, numbers.device)
        if kind not in self._kept:
            self._kept[kind] = (self.mean.to(numbers), self.matrix.to(numbers))
        mean, matrix = self._kept[kind]
        return torch.addmm(mean, numbers, matrix).reshape(-1, *self.shape)

    @property
    def variances(self) -> Tensor:
        return self.matrix.square().sum(dim=0)

    def turned(self, matrix: Tensor) -> LatentPrior:
        return _Normal(self.mean, matrix.to(self.matrix) @ self.matrix, self.shape, self.description)


class _Several(LatentPrior):
    """Several Gaussians: a mean and a factor for each, or one spread for all entries of all of them."""

    def __init__(self, mixture: Mixture, spread: float | Tensor) -> None:
        self.means, self.spread = mixture.means, spread
        self.shape, self.size, self.description = mixture.shape, mixture.means.shape[1], mixture.description
        self.weights = mixture._weights
        self._variances = mixture.variances

    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:
        centres = self.means.to(numbers)[components.to(numbers.device)]
        if isinstance(self.spread, float):
            return (centres + self.spread * numbers).reshape(-1, *self.shape)
        moves = torch.empty_like(numbers)
        for component, factor in enumerate(self.spread.to(numbers)):
            rows = components == component
            moves[rows] = numbers[rows] @ factor.T
        return (centres + moves).reshape(-1, *self.shape)

    @property
    def variances(self) -> Tensor:
        return self._variances


def remaining_of(prior: LatentPrior) -> str:
    """What a bound on rebuilding bounds: the error, as a share of the prior's unit."""
    return REMAINING.replace("the prior's variance", prior.unit)


def check_fixed(what: str, function: Callable[[Tensor], Tensor], rows: Tensor) -> None:
    """Refuse a function that draws random numbers, or whose result for a row depends on the other rows."""
    with torch.no_grad():
        first, again = (torch.as_tensor(function(rows)).flatten(1).double() for _ in range(2))
        alone = torch.cat([torch.as_tensor(function(rows[place : place + 1])).flatten(1) for place in range(len(rows))])
    size = first.abs().amax(dim=1, keepdim=True) + 1e-300
    for other in (again, alone.double()):
        if not bool(((other - first).abs() <= _SAME * size).all()):
            raise InputError(
                what,
                "other results for the same row",
                requirement="must be a fixed function, row by row",
                remedy="put it into evaluation mode, without dropout, batch statistics or noise of its own",
            )


def latent(prior: object) -> LatentPrior:
    """A prior as a map of standard normal numbers: itself, or a `Mixture` with its components kept apart."""
    if isinstance(prior, LatentPrior):
        return prior
    if not isinstance(prior, Mixture):
        raise InputError(
            "prior",
            prior,
            requirement="must be a Mixture, Spectrum or Generator",
            remedy="write Mixture.fitted(public); for a gallery use bayes_bound, which is exact",
        )
    if len(prior.means) == 1 and prior._jitter is None:
        return _Normal(prior.means[0], prior._factors[0].T, prior.shape, prior.description)
    if prior._jitter is not None:
        return _Several(prior, prior._jitter)
    return _Several(prior, prior._factors.expand(len(prior.means), -1, -1))
