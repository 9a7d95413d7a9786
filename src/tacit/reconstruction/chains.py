"""Markov chains that leave the law of an input, given its release, as it is (docs/proofs/posterior.md).

All moves are reversible with respect to that law. A chain takes them in a fixed order, or in the reverse order, and none
of them depends on the true input: sizes are tuned on pilot draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.errors import InputError, NoTheoremError
from .latent_priors import LatentPrior
from .noise import Gaussian, Laplace, Noise, Uniform, gaussian_of, unrounded
from .other_noise import Density, Sampled
from .release import Release, as_array, derivatives, type_error

_GRANTED = 1e-13
"""Relative error granted to float64 sums of squares, tests/reconstruction/test_posterior.py measures it."""

_ROWS = 512
"""Inputs that are differentiated together."""

_MOST_TURNED = 4096
"""Numbers of a prior up to which all pairs of them are looked at for good directions."""

_PILOT_POINTS = 16
_TUNING_ROUNDS = 30
_TRAJECTORY = 1.6
"""About a quarter of a turn, after which a Gaussian in good directions has forgotten where it was."""
_MOST_LEAPS = 24
_GOLDEN = (math.sqrt(5) - 1) / 2


class State(NamedTuple):
    """Where the chains are, one a row.

    `likelihood` is the logarithm of the release's density there, up to a constant, and `error` how far rounding may
    have taken the logarithm of the posterior density. `force` is the gradient of the latter, where it is known.
    """

    numbers: Tensor
    components: Tensor
    likelihood: Tensor
    error: Tensor
    force: Tensor | None

    def repeated(self, times: int) -> State:
        """Every chain this many times."""
        return State(*(part if part is None else part.repeat_interleave(times, dim=0) for part in self))

    def where(self, accepted: Tensor, other: State) -> State:
        """The other state's rows where accepted, else this one's."""
        force = None
        if self.force is not None and other.force is not None:
            force = torch.where(accepted[:, None], other.force, self.force)
        return State(
            torch.where(accepted[:, None], other.numbers, self.numbers),
            torch.where(accepted, other.components, self.components),
            torch.where(accepted, other.likelihood, self.likelihood),
            torch.where(accepted, other.error, self.error),
            force,
        )


class Given(NamedTuple):
    """A release in every row, and, for a prior of several components, how often each of them is proposed then."""

    released: Tensor
    proposals: Tensor | None

    def repeated(self, times: int) -> Given:
        """Every release this many times."""
        return Given(*(part if part is None else part.repeat_interleave(times, dim=0) for part in self))


@dataclass(frozen=True, kw_only=True)
class NoiseDensity:
    """The logarithm of a noise's density, up to a constant, and the greatest length of its gradient, row by row."""

    log: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, noise: Noise) -> NoiseDensity:
        """Of any noise with a density; of one that is rounded afterwards, that before rounding."""
        inner = unrounded(noise)
        if isinstance(inner, Gaussian):
            return cls(
                log=lambda rows: -inner.whitened(rows).square().sum(dim=1) / 2,
                slope=lambda rows: inner.whitened(rows).norm(dim=1) / inner.size,
            )
        if isinstance(inner, Laplace):
            return cls(log=lambda rows: -rows.abs().sum(dim=1) / inner.scale, slope=_constant(1 / inner.scale))
        if isinstance(inner, Uniform):
            # A unit in the last place more, so that no release is impossible where it came from.
            half = inner.width / 2 * (1 + 1e-12)
            return cls(
                log=lambda rows: torch.where((rows.abs() <= half).all(dim=1), 0.0, -math.inf), slope=_constant(0.0)
            )
        if isinstance(inner, Density):
            law = inner.distribution
            return cls(
                log=lambda rows: torch.as_tensor(law.logpdf(as_array(rows)).sum(axis=1)).to(rows),
                slope=_constant(inner.slope),
            )
        if isinstance(inner, Sampled):
            joint = inner.log_density
            return cls(
                log=lambda rows: torch.as_tensor(joint(as_array(rows))).to(rows), slope=_constant(inner.slope)
            )
        raise NoTheoremError(f"chains must have a noise with a density, got {noise!r}; use bayes_bound")


def _constant(slope: float) -> Callable[[Tensor], Tensor]:
    """At most this in every feature."""
    return lambda rows: torch.full_like(rows[:, 0], slope * math.sqrt(rows.shape[1]))


@dataclass(frozen=True, kw_only=True)
class Target:
    """The law of a prior's numbers, given a release."""

    release: Release
    prior: LatentPrior
    density: NoiseDensity

    def state(self, numbers: Tensor, components: Tensor, given: Given) -> State:
        """The chains at these numbers."""
        clean = self.release.features(self.prior.decode(numbers, components))
        missing = given.released - clean
        likelihood = self.density.log(missing)
        size = 1 + numbers.square().sum(dim=1) + likelihood.abs().nan_to_num(posinf=0.0)
        error = _GRANTED * size + type_error(torch.float64) * clean.norm(dim=1) * self.density.slope(missing)
        return State(numbers, components, likelihood, error, None)

    def force(self, numbers: Tensor, components: Tensor, given: Given) -> Tensor:
        """The gradient of the logarithm of the density, in the precision of searches."""
        parts = []
        for rows in torch.arange(len(numbers), device=numbers.device).split(_ROWS):
            with derivatives():
                here = numbers[rows].to(self.release.precision).requires_grad_()
                clean = self.release.search(self.prior.decode(here, components[rows])).flatten(1)
                likelihood = self.density.log(given.released[rows].to(clean) - clean)
                (found,) = torch.autograd.grad(likelihood.sum(), here)
            parts.append(found.to(torch.float64).nan_to_num())
        return torch.cat(parts) - numbers

    def given(self, released: Tensor) -> Given:
        """Releases as chains need them; half of all jumps go where a release is likely."""
        weights = self.prior.weights.to(released.device)
        if len(weights) == 1:
            return Given(released, None)
        clean = self.release.features(self.prior.centres().to(released.device))
        logs = torch.stack([self.density.log(released - row) for row in clean], dim=1)
        likely = torch.softmax(weights.log() + logs.nan_to_num(neginf=-1e300), dim=1)
        return Given(released, (likely + weights) / 2)


class Move(ABC):
    """A reversible step of every chain."""

    @abstractmethod
    def __call__(
        self, state: State, given: Given, factor: float, generator: torch.Generator
    ) -> tuple[State, Tensor]:
        """The chains after the step, and where it was accepted; `factor` stretches the step."""


def _decided(
    state: State,
    proposed: State,
    log_ratio: Tensor,
    allowed: float,
    generator: torch.Generator,
    error: float | Tensor = 0.0,
) -> tuple[State, Tensor]:
    """Metropolis's rule. Steps whose ratio float64 may get wrong by more than `allowed` are not taken, either way."""
    uniform = torch.rand(len(log_ratio), generator=generator, dtype=torch.float64, device=log_ratio.device)
    accepted = uniform.log() < log_ratio  # nan is no
    accepted &= state.error + proposed.error + error <= allowed
    return state.where(accepted, proposed), accepted


@dataclass(frozen=True, kw_only=True)
class Hamiltonian(Move):
    """Leapfrog steps with a diagonal mass: needs derivatives, and moves all numbers far at once.

    The map is its own inverse, but for the sign of the momentum, and keeps volumes, whatever function of the position
    the force is: a wrong force costs acceptance alone.
    """

    target: Target
    widths: Tensor
    size: float
    allowed: float = math.inf

    aim = 0.7
    """The share of accepted steps that sizes are tuned to."""

    @property
    def leaps(self) -> int:
        """Leapfrog steps in a row."""
        return min(max(round(_TRAJECTORY / self.size), 1), _MOST_LEAPS)

    def __call__(
        self, state: State, given: Given, factor: float, generator: torch.Generator
    ) -> tuple[State, Tensor]:
        target, step = self.target, self.size * factor * self.widths
        numbers, force = state.numbers, state.force
        if force is None:
            force = target.force(numbers, state.components, given)
        momentum = torch.randn(numbers.shape, generator=generator, dtype=torch.float64, device=numbers.device)
        before = momentum.square().sum(dim=1) / 2 - _log_prior(numbers)
        start = state._replace(force=force)
        for _ in range(self.leaps):
            momentum = momentum + step / 2 * force
            numbers = numbers + step * momentum
            force = target.force(numbers, state.components, given)
            momentum = momentum + step / 2 * force
        lost = ~(numbers.isfinite().all(dim=1) & momentum.isfinite().all(dim=1))
        numbers = torch.where(lost[:, None], state.numbers, numbers)
        proposed = target.state(numbers, state.components, given)._replace(force=force)
        after = momentum.square().sum(dim=1) / 2 - _log_prior(numbers)
        log_ratio = (proposed.likelihood - state.likelihood) - (after - before)
        log_ratio = torch.where(lost, -math.inf, log_ratio)
        return _decided(start, proposed, log_ratio, self.allowed, generator, _GRANTED * (before + after))


@dataclass(frozen=True, kw_only=True)
class CrankNicolson(Move):
    """Old numbers and fresh ones, mixed so that the prior stays as it is: needs forward passes alone.

    Numbers of which a release says little are nearly replaced, the others moved by about as much as it leaves open.
    """

    target: Target
    widths: Tensor
    size: float
    allowed: float = math.inf

    aim = 0.3
    leaps = 1

    def __call__(
        self, state: State, given: Given, factor: float, generator: torch.Generator
    ) -> tuple[State, Tensor]:
        told = 1 / self.widths.square() - 1  # about how much a release says, in units of the prior
        fresh = (self.size * factor) ** 2 / ((self.size * factor) ** 2 + told)
        drawn = torch.randn(state.numbers.shape, generator=generator, dtype=torch.float64, device=told.device)
        numbers = (1 - fresh).sqrt() * state.numbers + fresh.sqrt() * drawn
        proposed = self.target.state(numbers, state.components, given)
        return _decided(state, proposed, proposed.likelihood - state.likelihood, self.allowed, generator)


@dataclass(frozen=True, kw_only=True)
class Jump(Move):
    """To another component with the same numbers."""

    target: Target
    allowed: float = math.inf

    def __call__(
        self, state: State, given: Given, factor: float, generator: torch.Generator  # noqa: ARG002 — no size
    ) -> tuple[State, Tensor]:
        assert given.proposals is not None  # noqa: S101 — for types
        components = torch.multinomial(given.proposals, 1, generator=generator)[:, 0]
        proposed = self.target.state(state.numbers, components, given)
        weights = self.target.prior.weights.to(components.device)

        def lead(at: State) -> Tensor:
            proposals = given.proposals.gather(1, at.components[:, None])[:, 0]  # type: ignore[union-attr]
            return at.likelihood + weights[at.components].log() - proposals.log()

        return _decided(state._replace(force=None), proposed, lead(proposed) - lead(state), self.allowed, generator)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Moves in a fixed order; step t of a walk uses the same sizes in both directions."""

    target: Target
    main: Hamiltonian | CrankNicolson

    @property
    def moves(self) -> list[Move]:
        """What one step is made of."""
        several = len(self.target.prior.weights) > 1
        return [Jump(target=self.target, allowed=self.main.allowed), self.main] if several else [self.main]

    def step(
        self, state: State, given: Given, place: int, generator: torch.Generator, *, backwards: bool = False
    ) -> tuple[State, Tensor]:
        """The step at a place of the walk, with its moves in order or in reverse; and where the main one succeeded."""
        # Sizes that differ from step to step, so that no direction comes back to where it was every time.
        factor = 0.75 + 0.5 * ((place + 1) * _GOLDEN % 1)
        accepted = torch.zeros(len(state.numbers), dtype=torch.bool, device=state.numbers.device)
        for move in reversed(self.moves) if backwards else self.moves:
            state, moved = move(state, given, factor, generator)
            accepted = moved if move is self.main else accepted
        return state, accepted

    def with_size(self, size: float) -> Chain:
        """The same with another size of the main move."""
        return replace(self, main=replace(self.main, size=size))

    def tuned(self, state: State, given: Given, generator: torch.Generator) -> tuple[Chain, State]:
        """With the size that accepts as often as it should, on pilot chains that are not used again."""
        chain, worst = self, float(state.error.max())
        for round_ in range(_TUNING_ROUNDS):
            state, accepted = chain.step(state, given, round_, generator)
            rate = float(accepted.double().mean())
            gain = 2.0 / (1 + round_ / 3)
            chain = chain.with_size(chain.main.size * math.exp(gain * (rate - chain.main.aim)))
            worst = max(worst, float(state.error.max()))
        allowed = 8 * (worst + _GRANTED * self.target.prior.size)
        return replace(chain, main=replace(chain.main, allowed=allowed)), state


def _log_prior(numbers: Tensor) -> Tensor:
    return -numbers.square().sum(dim=1) / 2


def good_directions(release: Release, prior: LatentPrior, noise: Noise, generator: torch.Generator) -> tuple[LatentPrior, Tensor]:
    """A prior turned to directions in which its numbers are nearly independent given a release, and their spreads.

    From forward differences at a few pilot draws. Any directions and spreads are valid.
    """
    numbers, components = prior.drawn(_PILOT_POINTS, generator)
    gaussian = gaussian_of(noise)
    if prior.size > _MOST_TURNED:
        raise InputError(
            "the numbers of the prior",
            prior.size,
            requirement=f"must be at most {_MOST_TURNED}",
            remedy="make the inputs smaller",
        )
    told = torch.zeros(prior.size, prior.size, dtype=torch.float64, device=numbers.device)
    moves = 0.1 * torch.eye(prior.size, dtype=torch.float64, device=numbers.device)
    for point, component in zip(numbers, components, strict=True):
        both = torch.cat([(point + moves), point[None]])
        clean = release.features(prior.decode(both, component.expand(len(both))))
        slopes = (clean[:-1] - clean[-1]) / 0.1
        slopes = slopes / noise.size if gaussian is None else gaussian.whitened(slopes)
        told += slopes @ slopes.T / len(numbers)
    values, vectors = torch.linalg.eigh(told)
    return prior.turned(vectors.T), (1 + values.clamp(min=0)).rsqrt()
