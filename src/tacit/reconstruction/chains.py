"""Markov chains that leave the law of an input, given its release, as it is (docs/proofs/posterior.md).

All moves are reversible with respect to that law. A chain takes them in a fixed order, or in the reverse order. None of
them depends on the true input: sizes are tuned on pilot draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.errors import InputError, NoTheoremError
from .graphs import Recorded
from .latent_priors import LatentPrior
from .noise import Gaussian, Laplace, Noise, Uniform, gaussian_of, unrounded
from .other_noise import Density, Sampled
from .release import Release, as_array, derivatives, exact, type_error

_GRANTED = 1e-13
"""Relative error granted to float64 sums of squares; tests/reconstruction/test_posterior_bounds.py measures it."""

_ROWS = 512
_ROWS_ON_A_GPU = 1024
"""Inputs that are differentiated together; fewer on a GPU, too, where a prior has many numbers."""

_MOST_TURNED = 4096
"""Numbers of a prior up to which all pairs of them are looked at for good directions."""

_PILOT_POINTS = 8
_PROBES = 512
"""Random sums of features whose derivatives say where a release is informative, for priors of more numbers."""
_TUNING_ROUNDS = 24
_POOL = 256
_ASCENT = 20
"""Steps towards the most likely numbers, around which trajectories turn."""
_TRAJECTORY = 1.6
"""About a quarter of a turn, after which a Gaussian in good directions has forgotten where it was."""
_LONG_TRAJECTORY = 4.0
"""For priors that are bent, in which some directions are far wider at most places than they are on average."""
_MOST_LEAPS = 64
_WIDE = (0.5, 2.0, 8.0, 64.0)
"""Sizes of wide moves; the last one nearly draws from the prior."""
_EVER = 0.1
"""Share of pilot chains that some wide move must have moved."""
_GOLDEN = (math.sqrt(5) - 1) / 2


class State(NamedTuple):
    """Where the chains are, one per row.

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
        numbers, components, likelihood, error = (part.repeat_interleave(times, dim=0) for part in self[:4])
        force = None if self.force is None else self.force.repeat_interleave(times, dim=0)
        return State(numbers, components, likelihood, error, force)

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
    """A release in every row, and what chains make of it: nothing here depends on the true input otherwise.

    `proposals` says, for a prior of several components, how often each of them is proposed; `centre` holds numbers
    around which the others may lie.
    """

    released: Tensor
    proposals: Tensor | None
    centre: Tensor | None

    def repeated(self, times: int) -> Given:
        """Every release this many times."""
        proposals, centre = (
            None if part is None else part.repeat_interleave(times, dim=0) for part in (self.proposals, self.centre)
        )
        return Given(self.released.repeat_interleave(times, dim=0), proposals, centre)


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
            return cls(log=lambda rows: torch.as_tensor(joint(as_array(rows))).to(rows), slope=_constant(inner.slope))
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
    pool: tuple[Tensor, Tensor] | None = None
    """Numbers of draws from the prior, and their features: one of them may be near what was released."""
    recordings: dict[str, Recorded | None] = field(default_factory=dict, compare=False, repr=False)
    """What a GPU replays, once it is known; copies with another pool share it."""

    def state(self, numbers: Tensor, components: Tensor, given: Given) -> State:
        """The chains at these numbers."""
        clean = self.release.features(self.prior.decode(numbers, components))
        missing = given.released - clean
        likelihood = self.density.log(missing)
        size = 1 + numbers.square().sum(dim=1) + likelihood.abs().nan_to_num(posinf=0.0)
        error = _GRANTED * size + type_error(torch.float64) * clean.norm(dim=1) * self.density.slope(missing)
        return State(numbers, components, likelihood, error, None)

    def force(self, numbers: Tensor, components: Tensor, given: Given) -> Tensor:
        """The gradient of the logarithm of the density, in the precision of searches, or less on a GPU."""
        small = numbers.is_cuda and self.prior.size <= _MOST_TURNED
        here, released = (part.to(self.release.precision) for part in (numbers, given.released))
        recorded = self._recorded(here, components, released) if small and len(self.prior.weights) == 1 else None
        if recorded is not None:
            return recorded(here, components, released).to(torch.float64).nan_to_num() - numbers
        rows = _ROWS_ON_A_GPU if small else _ROWS
        with derivatives():
            split = zip(here.split(rows), components.split(rows), released.split(rows), strict=True)
            parts = [self._slope(*some).to(torch.float64).nan_to_num() for some in split]
        return torch.cat(parts) - numbers

    def _slope(self, numbers: Tensor, components: Tensor, released: Tensor) -> Tensor:
        """The gradient of the logarithm of a release's density."""
        with torch.enable_grad():
            here = numbers.detach().requires_grad_()
            clean = self.release.search(self.prior.decode(here, components)).flatten(1)
            likelihood = self.density.log(released.to(clean) - clean)
            return torch.autograd.grad(likelihood.sum(), here)[0]

    def _recorded(self, *examples: Tensor) -> Recorded | None:
        """The slope as a recording with few digits, always of the same rows: still one function of the position."""
        if "slope" not in self.recordings:
            self.recordings["slope"] = None
            if self.release.precision == torch.float32:
                with derivatives(precise=False):
                    self.recordings["slope"] = Recorded.of(self._slope, examples, _ROWS_ON_A_GPU)
        return self.recordings["slope"]

    def with_pool(self, generator: torch.Generator) -> Target:
        """With a pool, which is not used for anything else."""
        numbers, components = self.prior.drawn(_POOL, generator)
        return replace(self, pool=(numbers, self.release.features(self.prior.decode(numbers, components))))

    def has_derivatives(self, numbers: Tensor, components: Tensor, released: Tensor) -> bool:
        """Whether the density can be differentiated, and its derivative says more than the prior's."""
        try:
            force = self.force(numbers, components, Given(released, None, None))
        except InputError:
            return False
        return bool((force != -numbers).any())

    def given(self, released: Tensor) -> Given:
        """Releases as chains need them; half of all jumps go where a release is likely."""
        weights = self.prior.weights.to(released.device)
        if len(weights) == 1:
            return Given(released, None, None)
        clean = self.release.features(self.prior.centres().to(released.device))
        logs = torch.stack([self.density.log(released - row) for row in clean], dim=1)
        likely = torch.softmax(weights.log() + logs.nan_to_num(neginf=-1e300), dim=1)
        return Given(released, (likely + weights) / 2, None)

    def centred(self, given: Given, widths: Tensor) -> Given:
        """With numbers that are likely given the release: some steps of gradient ascent from the best of a pool."""
        centre = torch.zeros(len(given.released), self.prior.size, dtype=torch.float64, device=widths.device)
        if self.pool is not None:
            numbers, clean = self.pool
            logs = torch.stack([self.density.log(given.released - row) for row in clean], dim=1)
            centre = numbers[logs.argmax(dim=1)]
        begin, farthest = centre, 10 * math.sqrt(self.prior.size)  # no likely numbers lie beyond
        components, last = torch.zeros_like(centre[:, 0], dtype=torch.long), torch.zeros_like(centre)
        for _ in range(_ASCENT):
            last = 0.5 * last + 0.5 * widths.square() * self.force(centre, components, given)
            centre = centre + last
        lost = ~(centre.norm(dim=1) <= farthest)  # nan is lost, too
        return given._replace(centre=torch.where(lost[:, None], begin, centre))


class Move(ABC):
    """A reversible step of every chain."""

    @abstractmethod
    def __call__(self, state: State, given: Given, factor: float, generator: torch.Generator) -> tuple[State, Tensor]:
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
    """Trajectories with a diagonal mass: needs derivatives, and moves all numbers far at once.

    Half a kick by the force, a drift, half a kick; the drift is a straight line, or a turn around the centre that was
    found for the release, and the kicks are by what the turn leaves over. Each part keeps volumes and is its own
    inverse once the momentum is reversed, whatever function of the position the force is: a wrong force costs
    acceptance alone.
    """

    target: Target
    widths: Tensor
    size: float
    turning: bool
    bent: bool = False
    allowed: float = math.inf

    aim = 0.75
    """The share of accepted steps that sizes are tuned to."""

    @property
    def leaps(self) -> int:
        """Kicks and drifts in a row."""
        length = _LONG_TRAJECTORY if self.bent else _TRAJECTORY
        return min(max(round(length / self.size), 1), _MOST_LEAPS)

    def __call__(self, state: State, given: Given, factor: float, generator: torch.Generator) -> tuple[State, Tensor]:
        target, angle = self.target, self.size * factor
        numbers, force = state.numbers, state.force
        if force is None:
            force = target.force(numbers, state.components, given)
        momentum = torch.randn(numbers.shape, generator=generator, dtype=torch.float64, device=numbers.device)
        before = momentum.square().sum(dim=1) / 2 - _log_prior(numbers)
        start = state._replace(force=force)
        centre = given.centre if self.turning else None
        for _ in range(self.leaps):
            momentum = momentum + angle / 2 * self._kick(numbers, force, centre)
            if centre is None:
                numbers = numbers + angle * self.widths * momentum
            else:
                apart = (numbers - centre) / self.widths
                numbers = centre + self.widths * (math.cos(angle) * apart + math.sin(angle) * momentum)
                momentum = math.cos(angle) * momentum - math.sin(angle) * apart
            force = target.force(numbers, state.components, given)
            momentum = momentum + angle / 2 * self._kick(numbers, force, centre)
        lost = ~(numbers.isfinite().all(dim=1) & momentum.isfinite().all(dim=1))
        numbers = torch.where(lost[:, None], state.numbers, numbers)
        proposed = target.state(numbers, state.components, given)._replace(force=force)
        after = momentum.square().sum(dim=1) / 2 - _log_prior(numbers)
        log_ratio = (proposed.likelihood - state.likelihood) - (after - before)
        log_ratio = torch.where(lost, -math.inf, log_ratio)
        return _decided(start, proposed, log_ratio, self.allowed, generator, _GRANTED * (before + after))

    def _kick(self, numbers: Tensor, force: Tensor, centre: Tensor | None) -> Tensor:
        """The force, in units of the widths; without what turning around the centre does."""
        kick = self.widths * force
        return kick if centre is None else kick + (numbers - centre) / self.widths


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

    def __call__(self, state: State, given: Given, factor: float, generator: torch.Generator) -> tuple[State, Tensor]:
        told = 1 / self.widths.square() - 1  # about how much a release says, in units of the prior
        fresh = (self.size * factor) ** 2 / ((self.size * factor) ** 2 + told)
        drawn = torch.randn(state.numbers.shape, generator=generator, dtype=torch.float64, device=told.device)
        numbers = (1 - fresh).sqrt() * state.numbers + fresh.sqrt() * drawn
        proposed = self.target.state(numbers, state.components, given)
        change = proposed.likelihood - state.likelihood
        return _decided(state._replace(force=None), proposed, change, self.allowed, generator)


@dataclass(frozen=True, kw_only=True)
class Jump(Move):
    """To another component with the same numbers."""

    target: Target
    allowed: float = math.inf

    def __call__(
        self,
        state: State,
        given: Given,
        factor: float,  # noqa: ARG002 — a jump has no size
        generator: torch.Generator,
    ) -> tuple[State, Tensor]:
        assert given.proposals is not None  # noqa: S101 — for types
        components = drawn_components(given.proposals, generator)
        proposed = self.target.state(state.numbers, components, given)
        weights = self.target.prior.weights.to(components.device)

        def lead(at: State) -> Tensor:
            proposals = given.proposals.gather(1, at.components[:, None])[:, 0]  # type: ignore[union-attr]
            return at.likelihood + weights[at.components].log() - proposals.log()

        return _decided(state._replace(force=None), proposed, lead(proposed) - lead(state), self.allowed, generator)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Moves in a fixed order; step t of a walk uses the same sizes in both directions.

    Beside the main move there are jumps between the components of a prior, where it has several, and wide moves to
    places that no short one reaches, where pilots have shown that these are ever accepted.
    """

    target: Target
    main: Hamiltonian | CrankNicolson
    wide: bool = True

    def moves(self, place: int) -> list[Move]:
        """What the step at a place of a walk is made of."""
        found: list[Move] = [self.main]
        if self.wide:
            found.insert(0, self._wide(place))
        if len(self.target.prior.weights) > 1:
            found.insert(0, Jump(target=self.target, allowed=self.main.allowed))
        return found

    def step(
        self, state: State, given: Given, place: int, generator: torch.Generator, *, backwards: bool = False
    ) -> tuple[State, Tensor]:
        """The step at a place of a walk, with its moves in order or in reverse; and where the main one succeeded."""
        # Sizes that differ from step to step, so that no direction comes back to where it was every time.
        factor = 0.75 + 0.5 * ((place + 1) * _GOLDEN % 1)
        accepted = torch.zeros(len(state.numbers), dtype=torch.bool, device=state.numbers.device)
        for move in reversed(self.moves(place)) if backwards else self.moves(place):
            state, moved = move(state, given, factor, generator)
            accepted = moved if move is self.main else accepted
        return state, accepted

    def given(self, released: Tensor) -> Given:
        """Releases as this chain needs them."""
        found = self.target.given(released)
        turning = isinstance(self.main, Hamiltonian) and self.main.turning
        return self.target.centred(found, self.main.widths) if turning else found

    @exact()
    def tuned(self, numbers: Tensor, components: Tensor, released: Tensor, generator: torch.Generator) -> Chain:
        """With the size that accepts as often as it should, on pilot chains that are not used again."""
        main, given = self.main, self.given(released)
        state = self.target.state(numbers, components, given)
        worst = float(state.error.max())
        for place in range(_TUNING_ROUNDS):
            state, accepted = replace(self, main=main, wide=False).step(state, given, place, generator)
            rate = float(accepted.double().mean())
            gain = 2.0 / (1 + place / 3)
            main = replace(main, size=min(main.size * math.exp(gain * (rate - main.aim)), _TRAJECTORY))
            worst = max(worst, float(state.error.max()))
        gone = torch.zeros_like(accepted)
        for place in range(2 * len(_WIDE)):
            state, accepted = self._wide(place)(state, given, 1.0, generator)
            gone |= accepted
        allowed = 8 * (worst + _GRANTED * self.target.prior.size)
        return replace(self, main=replace(main, allowed=allowed), wide=float(gone.double().mean()) > _EVER)

    def _wide(self, place: int) -> CrankNicolson:
        return CrankNicolson(
            target=self.target, widths=self.main.widths, size=_WIDE[place % len(_WIDE)], allowed=self.main.allowed
        )


def drawn_components(chances: Tensor, generator: torch.Generator) -> Tensor:
    """A component for every row of chances, which are positive; `torch.multinomial` draws a number for each chance."""
    sums = chances.cumsum(dim=1)
    uniform = torch.rand(len(sums), 1, generator=generator, dtype=sums.dtype, device=sums.device)
    return torch.searchsorted(sums, uniform * sums[:, -1:], right=True)[:, 0].clamp(max=sums.shape[1] - 1)


def _log_prior(numbers: Tensor) -> Tensor:
    return -numbers.square().sum(dim=1) / 2


def good_directions(
    release: Release, prior: LatentPrior, noise: Noise, generator: torch.Generator
) -> tuple[LatentPrior, Tensor]:
    """A prior turned to directions in which its numbers are nearly independent given a release, and their spreads.

    From forward differences at a few pilot draws. Any directions and spreads are valid.
    """
    numbers, components = prior.drawn(_PILOT_POINTS, generator)
    gaussian = gaussian_of(noise)
    if prior.size > _MOST_TURNED:
        return prior, _spreads(release, prior, noise, numbers, components, generator)
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


def _spreads(
    release: Release,
    prior: LatentPrior,
    noise: Noise,
    numbers: Tensor,
    components: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """About how much a release leaves open of every number, by derivatives of random sums of features.

    The squares of such derivatives are, on average, the diagonal of what a release says; 1 where there are none.
    """
    told, probes = torch.zeros_like(numbers[0]), 0
    try:
        for _ in range(_PROBES // len(numbers)):
            with derivatives():
                here = numbers.to(release.precision).requires_grad_()
                clean = release.search(prior.decode(here, components)).flatten(1)
                sign = torch.randint(2, clean.shape, generator=generator, device=clean.device).to(clean) * 2 - 1
                (found,) = torch.autograd.grad((clean * sign).sum(), here)
            told += found.double().nan_to_num().square().mean(dim=0)
            probes += 1
    except (InputError, RuntimeError):
        return torch.ones_like(told)
    return (1 + told / (probes * noise.size**2)).rsqrt()
