"""Bounds on unbiased estimators of an input, for any model: how much must an unbiased estimate vary?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.deprecation import formerly
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import at_least, down
from ..theory.estimation import hcr_variance
from ..theory.multipoint import UNIT, multipoint_variance, two_sided_variance
from .algorithm1 import perturbation
from .basis import ROUNDING, Basis, BasisLike, basis_of
from .mode_display import mode_card, mode_histogram
from .noise import Noise, chi_square_theorems
from .release import Release, as_array, open_release, scales
from .repeated import repeated, repeated_theorems

if TYPE_CHECKING:
    from ..report import Figure

_Array = NDArray[np.float64]

_BOUNDED = "standard deviation of an unbiased estimate"
MULTIPOINT = (
    "multi-point Hammersley–Chapman–Robbins (Barankin)",
    "theory.multipoint.multipoint_variance",
    "theory.multipoint.two_sided_variance",
)
"""The theorem of `multipoint_bounds`."""
REGULARISATION = 1e-8
_STEPS = (1e-3, 1e-2, 1e-1, 1.0)  # times an input's scale
_LARGER_STEPS = (1e-3, 0.01, 0.1, 0.3)  # float32 errors matter less for large steps; little noise needs small ones
_FIRST_BLOCK = 64  # modes, if time is limited
_SQUARE_TENSORS = 10  # of size test points × test points, held at once


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UnbiasedBounds(Carded):
    """Lower bounds on the standard deviation of every unbiased estimate, for each mode.

    They say nothing about real attackers, who are biased. A bound above the spread of the data only says that unbiased
    estimators are worse than guessing.

    Attributes
    ----------
    std
        The bounds, in the shape of the inputs; inf means that no unbiased estimator exists.
    inputs
        The inputs.
    noise
        The noise of the release.
    basis
        The name of the modes.
    theorem
        What the bounds rest on.
    feature_error
        The relative error of the features that the bounds allow for.
    releases
        How often an input is released, at most.
    """

    std: _Array
    inputs: _Array
    noise: Noise
    basis: str
    theorem: tuple[str, ...]
    feature_error: float
    releases: int = 1

    def guarantee_of(self, index: int, mode: tuple[int, ...]) -> Guarantee:
        """Return the bound for one mode of one input.

        Parameters
        ----------
        index
            The number of the input, from 0.
        mode
            One number for each axis of an input, from 0.
        """
        where = mode_of_input(self.std, index, mode)
        return Guarantee(
            quantity=f"standard deviation of an estimate of {self.basis} mode {where[1:]} of input {where[0]}",
            side="at_least",
            value=float(self.std[where]),
            adversary=Adversary.UNBIASED,
            theorem=self.theorem,
            assumptions=unbiased_assumptions(self.noise, self.feature_error, self.releases),
            failure_probability=self.noise.failure_probability,
        )

    guarantee = formerly("guarantee", guarantee_of)

    def plot(self) -> Figure:
        """Draw a histogram of all bounds; if there are several inputs, their spread is marked."""
        return mode_histogram(
            _BOUNDED,
            self.std,
            spread=float(np.sqrt(np.mean(np.var(self.inputs, axis=0)))),
            caption="For unbiased estimators only: a bound above the inputs' own spread says that these are worse than "
            "guessing, not that the inputs are safe.",
        )

    def _card(self) -> tuple[str, Rows]:
        return mode_card(_BOUNDED, self.std, basis=self.basis, noise=self.noise, adversary=Adversary.UNBIASED)


def hcr_theorem(noise: Noise, how: str, releases: int = 1) -> tuple[str, ...]:
    """Return the theorem behind bounds from one change at a time, and how the change was found."""
    return (
        f"Hammersley–Chapman–Robbins, {how}",
        "theory.estimation.hcr_variance",
        *chi_square_theorems(noise),
        *repeated_theorems(noise, releases),
    )


def mode_of_input(values: _Array, index: object, mode: object) -> tuple[int, ...]:
    """Return where the value of a mode of an input lies in an array for all modes of all inputs."""
    of_input = validate.place("index", index, values.shape[:1], remedy="count the inputs from 0")
    return of_input + validate.place("mode", mode, values.shape[1:], remedy="give a number for each axis, from 0")


def unbiased_assumptions(noise: Noise, feature_error: float, releases: int = 1) -> tuple[Assumption, ...]:
    """Return what bounds on unbiased estimators rest on.

    Parameters
    ----------
    noise
        The noise of the release.
    feature_error
        The relative error of the features that the bound allows for.
    releases
        How often an input is released, at most.
    """
    text = "the estimator is right on average for every input, inside the data's range or not"
    return (Assumption(text=text, checked_by="caller"), *release_assumptions(noise, feature_error, releases))


def release_assumptions(noise: Noise, feature_error: float, releases: int = 1) -> tuple[Assumption, ...]:
    """Return what every bound of this package rests on.

    Parameters
    ----------
    noise
        The noise of the release.
    feature_error
        The relative error of the features that the bound allows for.
    releases
        How often an input is released, at most.
    """
    once = f"the release is the features plus fresh noise {noise!r}, once"
    often = f"the same input is released at most {releases} times, each time as its features plus fresh noise {noise!r}"
    return (
        Assumption(text=once if releases == 1 else often, checked_by="caller"),
        *(Assumption(text=text, checked_by="caller") for text in noise.assumptions),
        Assumption(
            text="released numbers are rounded far above their low bits, which would reveal the features",
            checked_by="caller",
        ),
        Assumption(
            text="the released features are those of the model in evaluation mode, up to a relative error of "
            f"{feature_error:.2g} (as `Dithered` computes them, without TF32, autocast or fused attention; float32 has "
            "about 1e-6)",
            checked_by="caller",
        ),
        Assumption(text="features are finite, repeatable, and do not depend on other inputs", checked_by="code"),
    )


@at_least
def multipoint_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    steps: Sequence[float] | None = None,
    memory: float = 4e9,
    seconds: float | None = None,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> UnbiasedBounds:
    """Bound all modes at once, with every mode as a test point (Barankin); Gaussian noise only.

    Only forward passes are needed. Each step is taken forwards and backwards, and each mode keeps its best bound.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    steps
        Step lengths, in units of the inputs. By default 10⁻³ of the range of an input's entries; for less exact
        features, three larger ones too, which the errors affect less.
    memory
        Limits memory, in bytes. Where the matrices of all test points do not fit, modes are taken in blocks, each with
        its own test points: as valid, and less tight.
    seconds
        Time to spend on better bounds: small blocks come first, then larger ones up to the largest that fits, then
        random blocks until the time is up or one block held all modes. The first pass is always completed, and so is a
        block that has begun. Every result is a bound; more time gives larger ones.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the number of inputs done (in the first pass, with `seconds`).

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    features, law = repeated(features, noise, releases)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    sizes = _steps(steps, release, _STEPS[:1] if release.error < 1e-10 else _LARGER_STEPS)
    if seconds is not None:
        seconds = validate.number("seconds", seconds, above=0, remedy="leave it out for one pass")
    deadline = math.inf if seconds is None else monotonic() + seconds
    width = release.features(release.inputs[:1]).shape[1]
    variance = torch.zeros(len(release.inputs), modes.size, dtype=torch.float64, device=release.inputs.device)
    for number, (order, block, at_once) in enumerate(_passes(modes.size, width, memory, timed=seconds is not None)):
        for first in range(0, len(release.inputs), at_once):
            chosen = release.inputs[first : first + at_once]
            for group in order.to(chosen.device).split(block):
                if number > 0 and monotonic() >= deadline:
                    return _multipoint(release, modes, noise, variance, releases)
                best, vectors = variance[first : first + at_once], modes.vectors(group)
                for step in sizes:
                    found = _block_variance(release, law, chosen, vectors, step[first : first + at_once])
                    best[:, group] = torch.maximum(best[:, group], found)
            if number == 0:
                advance(first + len(chosen))
    return _multipoint(release, modes, noise, variance, releases)


def _block_variance(release: Release, noise: Noise, inputs: Tensor, vectors: Tensor, step: Tensor) -> Tensor:
    """Bound the modes with these vectors, each a test point for all of them, at each input's own step.

    The better of two systems counts: the points on both sides, and for each mode the one that moves the features less,
    which is better at a kink.
    """
    base, forwards = _moves(release, inputs, vectors, step)
    _, backwards = _moves(release, inputs, -vectors, step)
    farthest = torch.maximum(forwards.norm(dim=2).amax(dim=1), backwards.norm(dim=2).amax(dim=1))
    error = release.error * (2 * base.norm(dim=1) + farthest) / noise.size * (1 + 1e-9)
    forwards, backwards = noise.whitened(forwards), noise.whitened(backwards)
    far, back = forwards.norm(dim=2), backwards.norm(dim=2)
    options: dict[str, Any] = {
        "step": step,
        "feature_error": error + noise.rounding * torch.maximum(far, back).amax(dim=1),
        "input_error": _input_error(inputs, step),
        "regularisation": REGULARISATION,
    }
    # Where both sides differ only by rounding, take the same one on every machine.
    nearer = torch.where((back < far * (1 - 1e-6))[:, :, None], backwards, forwards)
    found = multipoint_variance(nearer, **options)
    del nearer
    return torch.maximum(found, two_sided_variance(forwards, backwards, **options))


def _multipoint(release: Release, modes: Basis, noise: Noise, variance: Tensor, releases: int) -> UnbiasedBounds:
    theorem = (*MULTIPOINT, *repeated_theorems(noise, releases))
    return _result(release, modes, noise, as_array(variance), theorem, releases)


@at_least
def single_mode_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    steps: Sequence[float] | None = None,
    feature_error: float | None = None,
    releases: int = 1,
) -> UnbiasedBounds:
    """Bound one mode at a time, for any noise, by changing that mode alone.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    steps
        Step lengths, in units of the inputs; the best counts, forwards or backwards. By default four from 10⁻³ to 1
        times the range of an input's entries.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    features, law = repeated(features, noise, releases)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    sizes = _steps(steps, release, _STEPS)
    variance = np.zeros((len(release.inputs), modes.size))
    for row, chosen in enumerate(release.inputs):
        for start in range(0, modes.size, 1024):
            stop = min(start + 1024, modes.size)
            vectors = modes.vectors(torch.arange(start, stop, device=chosen.device))
            for step, sign in itertools.product([size[row : row + 1] for size in sizes], (1.0, -1.0)):
                (base,), (shifts,) = _moves(release, chosen[None], sign * vectors, step)
                change = np.full(stop - start, max(0.0, float(step - _input_error(chosen[None], step))))
                found = hcr_variance(change, chi_square=_chi_square(release, law, shifts, base))
                variance[row, start:stop] = np.maximum(variance[row, start:stop], found)
    return _result(release, modes, noise, variance, hcr_theorem(noise, "one mode at a time", releases), releases)


@at_least
def hcr_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    size: float = 1 / 200,
    repetitions: int = 10,
    restarts: int = 25,
    basis: BasisLike = "auto",
    seed: int = 0,
    rows: int = 1024,
    feature_error: float | None = None,
    releases: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> UnbiasedBounds:
    """Bound every mode by the published procedure: Algorithm 1, the greatest bound over random starts.

    For most models and modes `multipoint_bounds` is far larger. The search runs in float32 where the model is a module;
    every perturbation found is certified by one float64 forward pass.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    size
        Each start is noise times size/√n, with n features.
    repetitions
        Least-squares steps of Algorithm 1.
    restarts
        Random starts for each input.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    seed
        For the starts.
    rows
        How many pairs of input and start are worked on at once.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.
    advance
        Called with the number of inputs done.

    Raises
    ------
    InputError
        If a value cannot be used, or if the model has no usable derivative anywhere, as after rounding.

    References
    ----------
    Algorithm 1 of arXiv:2404.02866v3.
    """
    features, law = repeated(features, noise, releases)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    size = validate.number("size", size, above=0, remedy="use 1/200")
    repetitions = validate.whole("repetitions", repetitions, at_least=1, remedy="use 10")
    restarts = validate.whole("restarts", restarts, at_least=1, remedy="use 25")
    rows = validate.whole("rows", rows, at_least=1, remedy="use 1024")
    generator = torch.Generator().manual_seed(validate.whole("seed", seed, at_least=0, remedy="use 0"))
    variance = np.zeros((len(release.inputs), modes.size))
    changed = False
    at_once = max(1, rows // restarts)
    for first in range(0, len(release.inputs), at_once):
        chosen = release.inputs[first : first + at_once]
        starts = chosen.repeat_interleave(restarts, dim=0)
        base = release.features(chosen).repeat_interleave(restarts, dim=0)
        start = law.sample(base.cpu(), generator).to(base.device) * (size / math.sqrt(base.shape[1]))
        found = perturbation(
            release.search,
            chosen.to(release.precision),
            start.to(release.precision).reshape(len(chosen), restarts, -1),
            repetitions=repetitions,
        )
        changed = changed or bool(found.any())
        moved = starts + found.to(torch.float64).flatten(0, 1)
        chi_square = torch.tensor(_chi_square(release, law, release.features(moved) - base, base)).to(base.device)
        lost = torch.tensor(mode_error(moved - starts)).to(base.device)
        changes = modes.to_modes(moved - starts).reshape(len(moved), -1).abs() - lost[:, None]
        by_start = (len(chosen), restarts, -1)
        change, divergence = _best_starts(changes.clamp(min=0).reshape(by_start), chi_square.reshape(by_start))
        variance[first : first + len(chosen)] = hcr_variance(as_array(change), chi_square=as_array(divergence))
        advance(first + len(chosen))
    if not changed:
        release.check_at_rest(release.inputs[:3])
    theorem = hcr_theorem(noise, "Algorithm 1 of arXiv:2404.02866v3", releases)
    return _result(release, modes, noise, variance, theorem, releases)


def _best_starts(changes: Tensor, chi_square: Tensor) -> tuple[Tensor, Tensor]:
    """Return the start that bounds each mode best: from (inputs, starts, modes) and (inputs, starts, 1)."""
    quotients = (changes.square() / chi_square).nan_to_num(nan=0.0)  # 0/0: nothing changed
    best = quotients.argmax(dim=1, keepdim=True)
    return changes.gather(1, best)[:, 0], chi_square.expand_as(changes).gather(1, best)[:, 0]


def _moves(release: Release, inputs: Tensor, vectors: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features of every input, (b, n), and how far its step along every vector moves them, (b, m, n)."""
    directions = torch.cat([torch.zeros_like(vectors[:1]), vectors])
    points = torch.addcmul(inputs.reshape(len(inputs), 1, -1), step[:, None, None], directions)
    found = release.features(points, apart=True).reshape(len(inputs), len(directions), -1)
    return found[:, 0].clone(), found[:, 1:] - found[:, :1]  # a view would keep all in memory


def _chi_square(release: Release, noise: Noise, shifts: Tensor, base: Tensor) -> _Array:
    """Return the divergence of each shift, lengthened by the allowed error of the features."""
    return noise.chi_square(base, shifts, shift_error(release, shifts, base))


def shift_error(release: Release, shifts: Tensor, base: Tensor) -> Tensor:
    """Return how far each shift of the features may be from the released one, in norm."""
    return release.error * (2 * base.norm(dim=-1) + shifts.norm(dim=-1)) * (1 + 1e-9)


def mode_error(changes: Tensor) -> _Array:
    """Return how far a mode of each change may be from its exact value, by the basis and by summation."""
    flat = changes.flatten(1)
    return (ROUNDING * math.sqrt(flat.shape[1]) + 2 * flat.shape[1] * UNIT) * as_array(flat.norm(dim=1))


def _input_error(inputs: Tensor, step: Tensor) -> Tensor:
    """Return how far a mode of θ + ε, rounded to float64, may be from its exact value."""
    return 2 * UNIT * (inputs.reshape(len(inputs), -1).norm(dim=1) + step) + ROUNDING * step


def _steps(steps: Sequence[float] | None, release: Release, shares: Sequence[float]) -> list[Tensor]:
    """Return each step's length for every input: as given, or these shares of the input's scale."""
    if steps is None:
        return [share * scales(release.inputs) for share in shares]
    if not isinstance(steps, Sequence) or isinstance(steps, str) or not steps:
        raise InputError("steps", steps, requirement="must be a non-empty list of numbers", remedy="leave it out")
    sizes = [validate.number("each of steps", step, above=0, remedy="use 1e-3") for step in steps]
    return [torch.full_like(scales(release.inputs), size) for size in sizes]


def _passes(modes: int, width: int, memory: object, *, timed: bool) -> Iterator[tuple[Tensor, int, int]]:
    """Yield an order of the modes, the size of a block, and how many inputs `memory` bytes hold at once.

    One pass, unless time is limited: then small blocks, larger ones, and the largest in random orders without end,
    unless it holds all modes.
    """
    most = validate.number("memory", memory, at_least=1e6, remedy="give bytes, e.g. 4e9")

    def need(block: int) -> float:
        return 8.0 * block * (_SQUARE_TENSORS * block + 8 * width + 4 * modes)

    largest, order = modes, torch.arange(modes)
    while largest > 1 and need(largest) > most:
        largest = math.ceil(largest / 2)
    block = _FIRST_BLOCK if timed else largest
    while block < largest:
        yield order, block, max(1, int(most // need(block)))
        block *= 4
    yield order, largest, max(1, int(most // need(largest)))
    generator = torch.Generator().manual_seed(0)
    while timed and largest < modes:
        yield torch.randperm(modes, generator=generator), largest, max(1, int(most // need(largest)))


def _result(
    release: Release, modes: Basis, noise: Noise, variance: _Array, theorem: tuple[str, ...], releases: int
) -> UnbiasedBounds:
    infinite = np.isinf(variance)
    std = np.maximum(down(np.sqrt(np.where(infinite, 0.0, variance))), 0.0)
    return UnbiasedBounds(
        std=np.where(infinite, np.inf, std).reshape(tuple(release.inputs.shape)),
        inputs=as_array(release.inputs),
        noise=noise,
        basis=modes.name,
        theorem=theorem,
        feature_error=release.error,
        releases=releases,
    )
