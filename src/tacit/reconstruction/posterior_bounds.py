"""What stays hidden under a stated prior, nearly exactly: chains that start at the true input, and their attack."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Attack, Guarantee
from ..core.rounding import at_least, down
from ..core.wording import safe_text
from ..theory.posterior import attribute_success, posterior_mse, radius_success
from .basis import BasisLike, basis_of
from .bayes import REMAINING
from .chains import Chain, CrankNicolson, Given, Hamiltonian, NoiseDensity, State, Target, good_directions
from .latent_priors import LatentPrior, latent
from .noise import Noise, checked_noise, total_variation_theorems, unrounded
from .release import Release, as_array, open_release
from .unbiased import release_assumptions

_Array = NDArray[np.float64]

_PILOTS = 64
_SHOWN = 8
_MARK = 5  # the curve's numbers of steps grow by this factor
_WIDER = 1.5  # than any pilot point lies from the centre
_CUTS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0)  # in units of the pilots' mean
_MODE_CUT = 5.0
_ROUNDED = 1e-9  # share of a value that sums in float64 may add to it
_KERNELS = ("auto", "hamiltonian", "crank-nicolson")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PosteriorBounds(Carded):
    """At least this much stays hidden, whoever rebuilds the input and however.

    All claims hold together, except with `failure_probability`.

    Attributes
    ----------
    remaining
        Everyone's mean squared error as a share of `variance`: 0 hides nothing, 1 everything.
    rmse
        Everyone's root mean squared error in each mode, in the shape of an input, where it was asked for.
    attribute_success
        Greatest chance of naming the attribute, where one was given.
    radius_success
        Greatest chance of coming within `radius` of the input, where one was given.
    curve
        Number of steps and, for so many, the mean share that the stars show: no guarantee, but it tells whether more
        steps would raise the bound.
    steps
        Of the chain between two points of a star.
    inputs
        How many stars there were.
    ends
        How many rivals a star has.
    accepted
        The share of accepted steps.
    kernel
        The main move of the chains.
    variance
        The prior's mean variance of an entry, of which `remaining` is a share.
    quantity
        What `remaining` is.
    examples
        Inputs, each followed by its rivals: given the release, all of a row are equally likely.
    radius
        Root mean squared difference, over the entries of an input.
    prior
        What the adversary knows, in words.
    noise
        Of the release.
    basis
        Of the modes.
    feature_error
        Relative error of released features that is paid for.
    failure_probability
        The chance with which any of the claims may be false.
    """

    remaining: float
    rmse: _Array | None
    attribute_success: float | None
    radius_success: float | None
    curve: tuple[tuple[int, float], ...]
    steps: int
    inputs: int
    ends: int
    accepted: float
    kernel: str
    variance: float
    quantity: str
    examples: _Array
    radius: float | None
    prior: str
    noise: Noise
    basis: str
    feature_error: float
    failure_probability: float

    @property
    def guarantee(self) -> Guarantee:
        """The share of the prior's variance that remains, as a statement."""
        return self._statement(self.quantity, "at_least", self.remaining, "posterior_mse")

    def guarantee_of(self, part: str | tuple[int, ...]) -> Guarantee:
        """Another claim as a statement.

        Parameters
        ----------
        part
            "attribute", "radius", or a mode: a number for each axis.
        """
        if part == "attribute" and self.attribute_success is not None:
            quantity = "chance of naming the attribute"
            return self._statement(quantity, "at_most", self.attribute_success, "attribute_success")
        if part == "radius" and self.radius_success is not None:
            quantity = f"chance of coming within {self.radius:g} of the input, root mean squared over its entries"
            return self._statement(quantity, "at_most", self.radius_success, "radius_success")
        if self.rmse is None or isinstance(part, str):
            raise InputError(
                "part",
                part,
                requirement="must be a claim that was asked for",
                remedy="pass modes=True, attribute=… or radius=… to posterior_bound",
            )
        where = validate.place("part", part, self.rmse.shape, remedy="give a number for each axis, from 0")
        quantity = f"root mean squared error of an estimate of {self.basis} mode {where}"
        return self._statement(quantity, "at_least", float(self.rmse[where]), "posterior_mse")

    def _card(self) -> tuple[str, Rows]:
        found = self.guarantee
        rising = " → ".join(f"{steps}: {safe_text(share, toward='nearest')}" for steps, share in self.curve)
        chains = f"{self.inputs} inputs with {self.ends} rivals each, {100 * self.accepted:.0f} % of steps accepted"
        return found.quantity, [*found.facts, ("chains", chains), ("steps and mean share", rising)]

    def _statement(self, quantity: str, side: Any, value: float, function: str) -> Guarantee:
        return Guarantee(
            quantity=quantity,
            side=side,
            value=value,
            adversary=Adversary.PRIOR.scoped(self.prior),
            theorem=(*total_variation_theorems(self.noise), f"theory.posterior.{function}"),
            assumptions=(
                Assumption(text=f"the input is drawn from this prior: {self.prior}", checked_by="caller"),
                Assumption(
                    text="the pseudo-random draws of the computation behave as independent", checked_by="caller"
                ),
                Assumption(
                    text="rounding an input to float64 moves its features by no more than their stated error",
                    checked_by="caller",
                ),
                Assumption(
                    text="the chains' positions, kept in float64, move as real numbers would (what rounding does to "
                    "the decisions whether to move is paid for)",
                    checked_by="caller",
                ),
                *release_assumptions(self.noise, self.feature_error),
            ),
            failure_probability=self.failure_probability,
            detail={"variance": self.variance, "steps": self.steps, "inputs": self.inputs, "ends": self.ends},
        )


@at_least
def posterior_bound(
    features: Callable[[Any], Any],
    prior: object,
    noise: Noise,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    inputs: int = 1000,
    ends: int = 2,
    of: Callable[[Tensor], Tensor] | None = None,
    modes: bool = False,
    basis: BasisLike = "auto",
    attribute: Callable[[Tensor], Tensor] | None = None,
    radius: float | None = None,
    kernel: str = "auto",
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> PosteriorBounds:
    """Bound everyone's error from below by chains that start at the true input.

    Inputs are drawn from the prior and released; from each a chain that knows the release alone wanders to inputs that
    are as likely given the release. How far these lie from the true one is what nobody can know. More steps tighten
    the bound until it meets the best attack; more inputs tighten the confidence limit.

    Parameters
    ----------
    features
        The model that is released: a torch module, or a callable.
    prior
        A `Mixture` or another prior made of standard normal numbers.
    noise
        Any noise with a density; of a `Quantized` one, that before rounding.
    steps
        Of the chain between two points of a star, an even number; 100 unless `seconds` are given.
    seconds
        Choose as many steps as about fit into this time. The same number of steps and the same seed give the same
        numbers.
    inputs
        How many are drawn.
    ends
        Rivals of each input. Two serve the mean squared error; chances of success need 16 or more.
    of
        What is estimated: a differentiable or any other function from rows of inputs to rows of numbers, such as the
        activations of a perceptual distance. The input itself unless given.
    modes
        Whether every mode is bounded, too.
    basis
        What the modes are: "dct", "pixel", or as for `bayes_bound`.
    attribute
        A function from rows of inputs to one whole number each, such as a class.
    radius
        Bound the chance that anyone comes so near to the input, root mean squared over its entries.
    kernel
        "hamiltonian" where there are derivatives, "crank-nicolson" where there are none; "auto" finds out.
    failure_probability
        The chance with which any claim of the result may be false.
    seed
        Of all draws.
    feature_error
        Relative error of the released features, as for `bayes_bound`.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    PosteriorBounds
        The bounds, with `.guarantee`.
    """
    checked_noise(noise)
    known = latent(prior)
    validate.choice("kernel", kernel, _KERNELS, remedy="use auto")
    inputs = validate.whole("inputs", inputs, at_least=30, remedy="use 1000")
    ends = validate.whole("ends", ends, at_least=1, remedy="use 2")
    failure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    half = _half_steps(steps, seconds)
    if radius is not None:
        radius = validate.number("radius", radius, above=0, remedy="give a root mean squared difference")
    if of is not None and modes:
        raise InputError("modes", modes, requirement="must be False with of", remedy="leave out one of them")
    sampler = Sampler.opened(features, known, noise, kernel=kernel, seed=seed, feature_error=feature_error)
    basis_ = basis_of(basis, known.shape, sampler.device)
    view = _View(sampler, basis_.to_modes if of is None else of, attribute, radius is not None)
    if half is None:
        half = sampler.affordable(seconds or 0.0, inputs, ends)
    # Everything that is chosen is chosen on pilots, which are not used again.
    pilots = view.points(sampler.stars(_PILOTS, half, ends)[half])
    share = failure / (1 + modes + (attribute is not None) + (radius is not None))
    whole = _Cut.chosen(pilots.numbers.flatten(2), inputs, share)
    variation = _WIDER * float(pilots.variation.max())
    stars = sampler.stars(inputs, half, ends, marks=_marks(half), advance=advance)
    found = view.points(stars[half])
    fits = found.variation <= variation
    paid = {"release_variation": min(variation, 1.0), "chain_variation": sampler.chain_variation(half, ends)}
    variances = known.variances if of is None else found.numbers.flatten(0, 1).var(dim=0)
    total = float(variances.sum()) * (1 + _ROUNDED)
    mse = posterior_mse(whole.values(found.numbers, fits), failure_probability=share, **whole.limits, **paid)
    rmse = None
    if modes:
        cuts = _Cut.of_each(pilots.numbers)
        rmse = np.array(
            [
                posterior_mse(
                    cut.values(found.numbers[:, :, mode : mode + 1], fits),
                    failure_probability=share / len(cuts),
                    **cut.limits,
                    **paid,
                )
                for mode, cut in enumerate(cuts)
            ]
        )
        rmse = np.maximum(down(np.sqrt(rmse)), 0.0).reshape(known.shape)
    named = near = None
    if found.labels is not None:
        named = attribute_success(found.labels, inside=fits.numpy(), failure_probability=share, **paid)
    if found.distances is not None and radius is not None:
        near = radius_success(found.distances, radius=radius, inside=fits.numpy(), failure_probability=share, **paid)
    return PosteriorBounds(
        remaining=min(max(down(mse / total), 0.0), 1.0),
        rmse=rmse,
        attribute_success=named,
        radius_success=near,
        curve=tuple((2 * mark, view.mean_share(stars[mark]) / total) for mark in sorted(stars)),
        steps=2 * half,
        inputs=inputs,
        ends=ends,
        accepted=sampler.accepted,
        kernel=type(sampler.chain.main).__name__,
        variance=float(variances.mean()),
        quantity=REMAINING
        if of is None
        else f"mean squared error of estimated features of the input, as a share of {total:.6g}",
        examples=found.examples,
        radius=radius,
        prior=known.description,
        noise=noise,
        basis=basis_.name,
        feature_error=sampler.release.error,
        failure_probability=failure + noise.failure_probability,
    )


def posterior_attack(
    features: Callable[[Any], Any],
    prior: object,
    noise: Noise,
    *,
    steps: int = 100,
    chains: int = 4,
    tries: int = 300,
    kernel: str = "auto",
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> Attack:
    """Rebuild inputs by the mean of a chain that sees the release alone; against `posterior_bound`.

    Parameters
    ----------
    features
        The model that is released.
    prior
        That of the bound; the inputs to rebuild are drawn from it.
    noise
        Any noise with a density.
    steps
        Of each chain; the mean is taken over the second half of them.
    chains
        How many there are for each input, each from a fresh draw from the prior.
    tries
        How many inputs are rebuilt.
    kernel
        As for `posterior_bound`.
    failure_probability
        The chance that the interval misses the true error.
    seed
        Of all draws; the inputs are others than those of `posterior_bound`.
    feature_error
        As for `posterior_bound`.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    Attack
        The mean squared error as a share of the prior's variance, with an approximate interval.
    """
    checked_noise(noise)
    known = latent(prior)
    validate.choice("kernel", kernel, _KERNELS, remedy="use auto")
    steps = validate.whole("steps", steps, at_least=2, remedy="use 200")
    chains = validate.whole("chains", chains, at_least=1, remedy="use 4")
    tries = validate.whole("tries", tries, at_least=30, remedy="use 300")
    unsure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    sampler = Sampler.opened(features, known, noise, kernel=kernel, seed=seed, feature_error=feature_error)
    start, given = sampler.drawn(tries)
    truth, given = sampler.inputs(start), given.repeated(chains)
    target = sampler.chain.target
    state = target.state(*target.prior.drawn(tries * chains, sampler.generator), given)
    total = torch.zeros_like(sampler.inputs(state))
    for place in range(steps):
        state, _ = sampler.chain.step(state, given, place, sampler.generator)
        if place >= steps // 2:
            total += sampler.inputs(state)
        advance((place + 1) / steps)
    guess = total.reshape(tries, chains, *known.shape).mean(dim=1) / (steps - steps // 2)
    errors = as_array((guess - truth).square().flatten(1).mean(dim=1)) / float(known.variances.mean())
    mean = float(errors.mean())
    width = float(stats.t.ppf(1 - unsure / 2, tries - 1) * errors.std(ddof=1) / math.sqrt(tries))
    return Attack(
        quantity=REMAINING,
        value=mean,
        low=max(0.0, mean - width),
        high=mean + width,
        failure_probability=unsure,
        adversary=Adversary.PRIOR.scoped(known.description),
        method=f"mean of {chains} chains that see the release, {steps} steps each; interval approximate, Student's",
    )


class _Star:
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
            mains = [Hamiltonian(target=target, widths=widths, size=0.3, turning=turning) for turning in kinds]
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

    def inputs(self, state: State) -> Tensor:
        """The inputs at which chains are."""
        with torch.no_grad():
            return self.chain.target.prior.decode(state.numbers, state.components)

    def stars(
        self,
        count: int,
        half: int,
        ends: int,
        *,
        marks: Sequence[int] = (),
        advance: Callable[[float], None] = lambda _: None,
    ) -> dict[int, _Star]:
        """Stars of fresh inputs with this many steps to the middle; at `marks`, shorter ones with one rival each."""
        start, given = self.drawn(count)
        state, found = start, dict[int, _Star]()
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
                found[place + 1] = _Star(start, far, rivals)
            advance(done / work)
        return found

    def _stepped(self, state: State, given: Given, place: int, *, backwards: bool) -> State:
        state, accepted = self.chain.step(state, given, place, self.generator, backwards=backwards)
        self._taken += len(accepted)
        self._accepted += float(accepted.sum())
        return state

    def affordable(self, seconds: float, inputs: int, ends: int) -> int:
        """About how many steps to the middle fit into the time, with pilots; by the clock of pilot steps."""
        state, given = self.drawn(min(inputs, 512))
        start = time.perf_counter()
        for place in range(2):
            state = self._stepped(state, given, place, backwards=False)
        each = (time.perf_counter() - start) / 2 / len(state.numbers)
        rows = (inputs + _PILOTS) * (1 + ends) + inputs / (_MARK - 1)
        return max(1, int(seconds / (each * rows)))

    def chain_variation(self, half: int, ends: int) -> float:
        """How far wrong decisions may take the law of a star, in total variation."""
        return min(half * (ends + 1) * len(self.chain.moves(0)) * self.chain.main.allowed, 1.0)


@dataclass(frozen=True, kw_only=True)
class _Points:
    """What bounds look at: one row a star, its points as columns; `numbers` are what is estimated."""

    numbers: Tensor
    variation: Tensor
    labels: NDArray[np.int64] | None
    distances: _Array | None
    examples: _Array


@dataclass(frozen=True)
class _View:
    """How stars are looked at."""

    sampler: Sampler
    of: Callable[[Tensor], Tensor]
    attribute: Callable[[Tensor], Tensor] | None
    distances: bool

    def points(self, star: _Star) -> _Points:
        inputs = self._inputs(star)
        stars, flat = inputs.shape[:2], inputs.flatten(0, 1)
        clean = self.sampler.release.features(flat)
        error = self.sampler.release.error * clean.norm(dim=1) * (1 + _ROUNDED)
        variation = self.sampler.noise.total_variation(clean, torch.zeros_like(clean), error)
        labels = distances = None
        if self.attribute is not None:
            labels = np.asarray(validate.detached(self.attribute(flat))).reshape(stars)
        if self.distances:
            rows = inputs.flatten(2)
            distances = as_array(torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist"))
            distances = distances / math.sqrt(rows.shape[2]) * (1 - _ROUNDED)
        return _Points(
            numbers=self._numbers(flat, stars),
            variation=torch.as_tensor(variation).reshape(stars),
            labels=labels,
            distances=distances,
            examples=as_array(inputs[:_SHOWN]),
        )

    def mean_share(self, star: _Star) -> float:
        """What the stars show on average."""
        inputs = self._inputs(star)
        numbers = self._numbers(inputs.flatten(0, 1), inputs.shape[:2])
        return float(_spreads(numbers, torch.ones(numbers.shape[:2], dtype=torch.bool)).mean())

    def _inputs(self, star: _Star) -> Tensor:
        true = self.sampler.inputs(star.start)[:, None]
        rivals = self.sampler.inputs(star.ends)
        return torch.cat([true, rivals.reshape(len(true), star.times, *rivals.shape[1:])], dim=1)

    def _numbers(self, flat: Tensor, stars: tuple[int, ...]) -> Tensor:
        with torch.no_grad():
            found = torch.as_tensor(self.of(flat))
        return found.reshape(*stars, -1).to("cpu", torch.float64)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """Where values are cut off, and the ball whose points count."""

    centre: Tensor
    radius: float
    most: float

    @classmethod
    def chosen(cls, pilots: Tensor, inputs: int, failure_probability: float) -> _Cut:
        """Of several cuts the one of which pilots promise the greatest confidence limit."""
        found = cls._around(pilots)
        values = found.values(pilots, torch.ones(pilots.shape[:2], dtype=torch.bool))
        mean = float(values.mean()) or 1.0

        log = -math.log(failure_probability)

        def promise(cut: float) -> float:
            shares = np.minimum(values / (cut * mean), 1.0)
            bet = min(math.sqrt(2 * log / (inputs * max(float(shares.var()), 1e-12))), 0.75)
            return cut * (float(shares.mean()) - log / (inputs * bet) - bet * float(shares.var()) / 2)

        return replace(found, most=max(_CUTS, key=promise) * mean)

    @classmethod
    def of_each(cls, pilots: Tensor) -> list[_Cut]:
        """One for each number that is estimated."""
        cuts = [cls._around(pilots[:, :, mode : mode + 1]) for mode in range(pilots.shape[2])]
        everything = torch.ones(pilots.shape[:2], dtype=torch.bool)
        means = [float(cut.values(pilots[:, :, mode : mode + 1], everything).mean()) for mode, cut in enumerate(cuts)]
        return [replace(cut, most=_MODE_CUT * mean or 1.0) for cut, mean in zip(cuts, means, strict=True)]

    @classmethod
    def _around(cls, pilots: Tensor) -> _Cut:
        centre = pilots.mean(dim=(0, 1))
        return cls(centre=centre, radius=_WIDER * float((pilots - centre).norm(dim=2).max()), most=math.inf)

    @property
    def limits(self) -> dict[str, float]:
        """What the theorem asks for."""
        return {"most": self.most, "radius": self.radius}

    def values(self, points: Tensor, fits: Tensor) -> _Array:
        """The value of every star: half the mean squared distance of its pairs, none of it due to rounding."""
        inside = fits & ((points - self.centre).norm(dim=2) <= self.radius * (1 - _ROUNDED))
        return as_array(_spreads(points, inside)) * (1 - _ROUNDED)


def _spreads(points: Tensor, inside: Tensor) -> Tensor:
    """Half the squared distance, averaged over all pairs of a star's points; pairs with a point outside count 0."""
    weights = inside.to(points)[:, :, None]
    count = weights.sum(dim=1, keepdim=True)
    centre = (weights * points).sum(dim=1, keepdim=True) / count.clamp(min=1)
    squares = (weights * (points - centre).square()).sum(dim=(1, 2))
    return squares * count[:, 0, 0] / (points.shape[1] * (points.shape[1] - 1))


def _half_steps(steps: object, seconds: object) -> int | None:
    """Steps to the middle, or None where the time decides."""
    if steps is not None and seconds is not None:
        raise InputError(
            "steps and seconds", (steps, seconds), requirement="must not be given together", remedy="leave out one"
        )
    if seconds is not None:
        validate.number("seconds", seconds, above=0, remedy="use 60")
        return None
    number = validate.whole("steps", 100 if steps is None else steps, at_least=2, remedy="use 100")
    if number % 2:
        raise InputError("steps", number, requirement="must be even: an odd number proves nothing", remedy="add one")
    return number // 2


def _marks(half: int) -> list[int]:
    """Numbers of steps to the middle at which the curve is drawn: 1, 5, 25 and so on."""
    return [_MARK**power for power in range(20) if _MARK**power * 2 <= half]
