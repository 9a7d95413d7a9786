"""What stays hidden under a stated prior, nearly exactly: chains that start at the true input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_least, down
from ..core.wording import safe_text
from ..theory.posterior import attribute_success, posterior_mse, radius_success
from .basis import BasisLike, basis_of
from .latent_priors import check_fixed, latent, remaining_of
from .noise import Noise, total_variation_theorems
from .release import as_array
from .repeated import repeated, repeated_theorems
from .sampler import KERNELS, MARK, Sampler, Star, pilots
from .unbiased import release_assumptions

_Array = NDArray[np.float64]

_SHOWN = 8
_WIDER = 1.5  # than any pilot point lies from the centre
_CUTS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0)  # in units of the pilots' mean
_MODE_CUT = 5.0
_ROUNDED = 1e-9  # share of a value that sums in float64 may add to it


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
        Number of steps and, for that number, the mean share that the stars show: no guarantee, but it tells whether
        more steps would raise the bound.
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
    releases
        How often an input is released, at most.
    evidence
        What a certificate states of `remaining`.
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
    releases: int = 1
    evidence: Evidence | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The share of the prior's variance that remains, as a statement."""
        found = self._statement(self.quantity, "at_least", self.remaining, "posterior_mse")
        return replace(found, evidence=self.evidence)

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
            theorem=(
                f"theory.posterior.{function}",
                *total_variation_theorems(self.noise),
                *repeated_theorems(self.noise, self.releases),
            ),
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
                *release_assumptions(self.noise, self.feature_error, self.releases),
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
    releases: int = 1,
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
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    PosteriorBounds
        The bounds, with `.guarantee`.
    """
    features, law = repeated(features, noise, releases)
    known = latent(prior)
    validate.choice("kernel", kernel, KERNELS, remedy="use auto")
    inputs = validate.whole("inputs", inputs, at_least=30, remedy="use 1000")
    ends = validate.whole("ends", ends, at_least=1, remedy="use 2")
    failure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    half = _half_steps(steps, seconds)
    if radius is not None:
        radius = validate.number("radius", radius, above=0, remedy="give a root mean squared difference")
    if of is not None and modes:
        raise InputError("modes", modes, requirement="must be False with of", remedy="leave out one of them")
    sampler = Sampler.opened(features, known, law, kernel=kernel, seed=seed, feature_error=feature_error)
    basis_ = basis_of(basis, known.shape, sampler.device)
    view = _View(sampler, basis_.to_modes if of is None else of, attribute, radius is not None)
    some = known.sample(8, seed=seed + 1).to(sampler.device)
    if of is not None:
        check_fixed("of", of, some)
    if attribute is not None:
        check_fixed("attribute", lambda rows: torch.as_tensor(attribute(rows)).reshape(len(rows), 1), some)
    if half is None:
        half = sampler.affordable(seconds or 0.0, inputs, ends)
    # Everything that is chosen is chosen on pilots, which are not used again.
    tried = view.points(sampler.stars(pilots(inputs), half, ends)[half])
    share = failure / (1 + modes + (attribute is not None) + (radius is not None))
    whole = _Cut.chosen(tried.numbers.flatten(2), inputs, share)
    variation = _WIDER * float(tried.variation.max())
    stars = sampler.stars(inputs, half, ends, marks=_marks(half), advance=advance)
    found = view.points(stars[half])
    fits = found.variation <= variation
    paid: dict[str, Any] = {
        "release_variation": min(variation, 1.0),
        "chain_variation": sampler.chain_variation(half, ends),
    }
    variances = known.variances if of is None else found.numbers.flatten(0, 1).var(dim=0)
    total = float(variances.sum()) * (1 + _ROUNDED)
    drawn: list[_Array] = []
    mse = posterior_mse(
        whole.values(found.numbers, fits), failure_probability=share, keep=drawn, **whole.limits, **paid
    )
    evidence = Evidence(
        rule="posterior error",
        inputs=lambda: {
            "values": drawn[0].tolist(),
            "variance": total,
            "failure_probability": share,
            **whole.limits,
            **paid,
        },
        private=("values", "most", "radius", "release_variation", "variance"),
    )
    rmse = None
    if modes:
        cuts = _Cut.of_each(tried.numbers)
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
        quantity=remaining_of(known)
        if of is None
        else f"mean squared error of estimated features of the input, as a share of {total:.6g}",
        examples=found.examples,
        radius=radius,
        prior=known.description,
        noise=noise,
        basis=basis_.name,
        feature_error=sampler.release.error,
        failure_probability=failure + noise.failure_probability,
        releases=releases,
        evidence=evidence,
    )


@dataclass(frozen=True, kw_only=True)
class _Points:
    """What bounds look at: one row per star, its points as columns; `numbers` are what is estimated."""

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

    def points(self, star: Star) -> _Points:
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

    def mean_share(self, star: Star) -> float:
        """What the stars show on average."""
        inputs = self._inputs(star)
        numbers = self._numbers(inputs.flatten(0, 1), inputs.shape[:2])
        return float(_spreads(numbers, torch.ones(numbers.shape[:2], dtype=torch.bool)).mean())

    def _inputs(self, star: Star) -> Tensor:
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
    def limits(self) -> dict[str, Any]:
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
            "`steps` and `seconds`", (steps, seconds), requirement="must not be given together", remedy="leave out one"
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
    return [MARK**power for power in range(20) if MARK**power * 2 <= half]
