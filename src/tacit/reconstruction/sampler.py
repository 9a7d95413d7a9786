"""A tuned chain, and the stars that it draws: true inputs, and rivals that are as likely given the release."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..core import validate
from .chains import (
    Chain,
    CrankNicolson,
    Given,
    Hamiltonian,
    NoiseDensity,
    State,
    Target,
    drawn_components,
    good_directions,
)
from .latent_priors import LatentPrior, check_fixed
from .noise import Noise, unrounded
from .release import Release, exact, open_release

KERNELS = ("auto", "hamiltonian", "crank-nicolson")
MARK = 5
"""The numbers of steps of a curve grow by this factor."""
_PILOTS = 64
_FEWEST_PILOTS = 16


class Star:
    """True inputs and their rivals."""

    def __init__(self, start: State, ends: State, times: int) -> None:
        self.start, self.ends, self.times = start, ends, times


class Sampler:
    """A tuned chain, and a stream of draws from the prior with their releases."""

    def __init__(self, release: Release, noise: Noise, chain: Chain, generator: torch.Generator) -> None:
        self.release, self.noise, self.chain, self.generator = release, noise, chain, generator
        self.device = release.inputs.device
        self._taken, self._accepted = 0, 0.0

    @classmethod
    def opened(
        cls,
        features: Callable[[Any], Any],
        prior: LatentPrior,
        noise: Noise,
        *,
        kernel: str,
        seed: int,
        feature_error: float | None,
    ) -> Sampler:
        """Tuned on pilot draws, which are not used again."""
        seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
        release = open_release(features, prior.sample(8, seed=seed), feature_error=feature_error)
        generator = torch.Generator(release.inputs.device).manual_seed(seed)
        tried, _ = prior.drawn(8, torch.Generator(generator.device).manual_seed(seed + 1))
        check_fixed("prior", lambda rows: prior.decode(rows, torch.zeros_like(rows[:, 0], dtype=torch.long)), tried)
        turned, widths = good_directions(release, prior, noise, generator)
        target = Target(release=release, prior=turned, density=NoiseDensity.of(noise))
        numbers, components = turned.drawn(_PILOTS, generator)
        clean = release.features(turned.decode(numbers, components))
        released = clean + unrounded(noise).sample(clean, generator)
        if kernel == "auto":
            kernel = "hamiltonian" if target.has_derivatives(numbers, components, released) else "crank-nicolson"
        mains: list[Hamiltonian | CrankNicolson] = [CrankNicolson(target=target, widths=widths, size=0.5)]
        if kernel == "hamiltonian":
            # Turns need a centre, which a prior of several components does not have.
            kinds = (True, False) if len(prior.weights) == 1 else (False,)
            target = target.with_pool(generator)
            options: dict[str, Any] = {"target": target, "widths": widths, "size": 0.3, "bent": prior.bent}
            mains = [Hamiltonian(turning=turning, **options) for turning in kinds]
        chains = [Chain(target=target, main=main).tuned(numbers, components, released, generator) for main in mains]
        return cls(release, noise, max(chains, key=lambda chain: chain.main.size), generator)

    @property
    def accepted(self) -> float:
        """The share of main moves that were accepted, so far."""
        return self._accepted / max(self._taken, 1)

    def drawn(self, count: int) -> tuple[State, Given]:
        """Chains at fresh true inputs, and these inputs' releases, unrounded."""
        target = self.chain.target
        numbers, components = target.prior.drawn(count, self.generator)
        clean = self.release.features(target.prior.decode(numbers, components))
        given = self.chain.given(clean + unrounded(self.noise).sample(clean, self.generator))
        return target.state(numbers, components, given), given

    def begun(self, given: Given) -> tuple[Tensor, Tensor]:
        """Numbers and components at which chains may begin that see releases alone."""
        numbers, components = self.chain.target.prior.drawn(len(given.released), self.generator)
        if given.centre is not None:
            numbers = given.centre + self.chain.main.widths * numbers
        if given.proposals is not None:
            components = drawn_components(given.proposals, self.generator)
        return numbers, components

    def inputs(self, state: State) -> Tensor:
        """The inputs at which chains are."""
        with torch.no_grad():
            return self.chain.target.prior.decode(state.numbers, state.components)

    @exact()
    def stars(
        self,
        count: int,
        half: int,
        ends: int,
        *,
        marks: Sequence[int] = (),
        advance: Callable[[float], None] = lambda _: None,
    ) -> dict[int, Star]:
        """Stars of fresh inputs with this many steps to the middle; at `marks`, shorter ones with one rival each."""
        start, given = self.drawn(count)
        state, found = start, dict[int, Star]()
        work, done = half * (1 + ends) + sum(marks), 0
        for place in range(half):
            state = self._stepped(state, given, place, backwards=False)
            done += 1
            if place + 1 in marks or place + 1 == half:
                rivals = ends if place + 1 == half else 1
                far, theirs = state.repeated(rivals), given.repeated(rivals)
                for back in reversed(range(place + 1)):
                    far = self._stepped(far, theirs, back, backwards=True)
                    done += rivals
                    advance(done / work)
                found[place + 1] = Star(start, far, rivals)
            advance(done / work)
        return found

    def _stepped(self, state: State, given: Given, place: int, *, backwards: bool) -> State:
        state, accepted = self.chain.step(state, given, place, self.generator, backwards=backwards)
        self._taken += len(accepted)
        self._accepted += float(accepted.sum())
        return state

    def affordable(self, seconds: float, inputs: int, ends: int) -> int:
        """About how many steps to the middle fit into the time, with pilots; by the clock of pilot steps.

        Draws afterwards are those that there would have been without it.
        """
        before, counted = self.generator.get_state(), (self._taken, self._accepted)
        state, given = self.drawn(min(inputs, 512))
        start = time.perf_counter()
        for place in range(2):
            state = self._stepped(state, given, place, backwards=False)
        each = (time.perf_counter() - start) / 2 / len(state.numbers)
        self.generator.set_state(before)
        self._taken, self._accepted = counted
        rows = (inputs + pilots(inputs)) * (1 + ends) + inputs / (MARK - 1)
        return max(1, int(seconds / (each * rows)))

    def chain_variation(self, half: int, ends: int) -> float:
        """How far wrong decisions may take the law of a star, in total variation."""
        return min(half * (ends + 1) * len(self.chain.moves(0)) * self.chain.main.allowed, 1.0)


def pilots(inputs: int) -> int:
    """How many stars choose what is chosen."""
    return min(max(inputs // 4, _FEWEST_PILOTS), _PILOTS)
