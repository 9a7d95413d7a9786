"""Bounds on unbiased estimators of an input, for any model: how much must an honest estimate scatter?"""

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
from .noise import Noise, checked_noise, chi_square_theorems
from .release import Release, as_array, open_release, scales

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
_STEPS = (1e-3, 1e-2, 1e-1, 1.0)  # of an input's own scale
_LARGER_STEPS = (1e-3, 0.01, 0.1, 0.3)  # errors of float32 spoil the large ones less, and little noise wants small ones
_FIRST_BLOCK = 64  # modes, where time is limited
_SQUARE_TENSORS = 10  # of test points × test points, that the quotient holds at once


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UnbiasedBounds(Carded):
    """Lower bounds on the standard deviation of every unbiased estimate, mode by mode.

    `std` has the shape of the inputs. inf means that no unbiased estimator exists. A value above the spread of
    the data says that unbiased estimators are worse than guessing, and no more: real attackers are biased.
    """

    std: _Array
    inputs: _Array
    noise: Noise
    basis: str
    theorem: tuple[str, ...]
    feature_error: float

    def guarantee_of(self, index: int, mode: tuple[int, ...]) -> Guarantee:
        """The bound for one mode of one input, as a statement."""
        where = mode_of_input(self.std, index, mode)
        return Guarantee(
            quantity=f"standard deviation of an estimate of {self.basis} mode {where[1:]} of input {where[0]}",
            side="at_least",
            value=float(self.std[where]),
            adversary=Adversary.UNBIASED,
            theorem=self.theorem,
            assumptions=unbiased_assumptions(self.noise, self.feature_error),
            failure_probability=self.noise.failure_probability,
        )

    guarantee = formerly("guarantee", guarantee_of)

    def plot(self) -> Figure:
        """A histogram of all bounds, which a notebook shows; the inputs' spread is marked if there are several."""
        return mode_histogram(
            _BOUNDED,
            self.std,
            spread=float(np.sqrt(np.mean(np.var(self.inputs, axis=0)))),
            caption="For unbiased estimators alone: a bound above the inputs' own spread says that they are worse than "
            "guessing, not that the inputs are safe.",
        )

    def _card(self) -> tuple[str, Rows]:
        return mode_card(_BOUNDED, self.std, basis=self.basis, noise=self.noise, adversary=Adversary.UNBIASED)


def hcr_theorem(noise: Noise, how: str) -> tuple[str, ...]:
    """The theorem of bounds from one change at a time, and how the change was found."""
    return (
        f"Hammersley–Chapman–Robbins, {how}",
        "theory.estimation.hcr_variance",
        *chi_square_theorems(noise),
    )


def mode_of_input(values: _Array, index: object, mode: object) -> tuple[int, ...]:
    """Where the value of a mode of an input lies among those of all modes of all inputs."""
    of_input = validate.place("index", index, values.shape[:1], remedy="count the inputs from 0")
    return of_input + validate.place("mode", mode, values.shape[1:], remedy="give a number for each axis, from 0")


def unbiased_assumptions(noise: Noise, feature_error: float) -> tuple[Assumption, ...]:
    """What bounds on unbiased estimators rest on."""
    text = "the estimator is right on average for every input, inside the data's range or not"
    return (Assumption(text=text, checked_by="caller"), *release_assumptions(noise, feature_error))


def release_assumptions(noise: Noise, feature_error: float) -> tuple[Assumption, ...]:
    """What every bound of this room rests on."""
    return (
        Assumption(text=f"the release is the features plus fresh noise {noise!r}, once", checked_by="caller"),
        *(Assumption(text=text, checked_by="caller") for text in noise.assumptions),
        Assumption(
            text="released numbers are rounded far above their low bits, which floating-point noise leaks through",
            checked_by="caller",
        ),
        Assumption(
            text=f"the release computes the features of the model in evaluation mode to a relative {feature_error:.2g} "
            "(as `Dithered` computes them: without TF32, autocast or fused attention; in float32 to about 1e-6)",
            checked_by="caller",
        ),
        Assumption(text="inputs are treated one by one, repeatably, with finite features", checked_by="code"),
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
    advance: Callable[[int], None] = lambda _: None,
) -> UnbiasedBounds:
    """Every mode as a test point, for all modes at once, from forward passes alone; the best of `steps` per mode.

    Gaussian noise only. Each step is taken forwards and backwards. Without `steps`, which are in units of the inputs,
    10⁻³ of the spread of an input's entries is used, for less exact features three larger ones too, which their errors
    spoil less. `memory` (bytes) limits the work: where the matrices of all test points do not fit, modes
    are taken in blocks, each with the block's own test points, which is as valid and less tight. `advance` hears how
    many inputs are done.

    With `seconds`, small blocks come first, then larger ones up to the largest that fits, then blocks of modes drawn
    afresh, until the time is spent or all modes have been in one block; each mode keeps its best bound. The first pass
    is always finished, and a block that has begun. Every result is a bound; how large it is depends on the time.
    `advance` then hears of the first pass.
    """
    checked_noise(noise)
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
                    return _multipoint(release, modes, noise, variance)
                best, vectors = variance[first : first + at_once], modes.vectors(group)
                for step in sizes:
                    found = _block_variance(release, noise, chosen, vectors, step[first : first + at_once])
                    best[:, group] = torch.maximum(best[:, group], found)
            if number == 0:
                advance(first + len(chosen))
    return _multipoint(release, modes, noise, variance)


def _block_variance(release: Release, noise: Noise, inputs: Tensor, vectors: Tensor, step: Tensor) -> Tensor:
    """Of the modes with these vectors, each a test point for all of them, at each input's own step.

    The better of two systems: the points on both sides, and of each mode the one that moves the features less, which
    wins at a kink.
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
    # Sides that differ by rounding alone are one: which of them is taken shall not depend on the machine.
    nearer = torch.where((back < far * (1 - 1e-6))[:, :, None], backwards, forwards)
    found = multipoint_variance(nearer, **options)
    del nearer
    return torch.maximum(found, two_sided_variance(forwards, backwards, **options))


def _multipoint(release: Release, modes: Basis, noise: Noise, variance: Tensor) -> UnbiasedBounds:
    return _result(release, modes, noise, as_array(variance), MULTIPOINT)


@at_least
def single_mode_bounds(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    steps: Sequence[float] | None = None,
    feature_error: float | None = None,
) -> UnbiasedBounds:
    """One mode at a time, for any noise: the change of that mode alone, at the best of `steps`, forwards or backwards.

    Without `steps`, which are in units of the inputs, four from 10⁻³ to 1 of the spread of an input's entries.
    """
    checked_noise(noise)
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
                found = hcr_variance(change, chi_square=_chi_square(release, noise, shifts, base))
                variance[row, start:stop] = np.maximum(variance[row, start:stop], found)
    return _result(release, modes, noise, variance, hcr_theorem(noise, "one mode at a time"))


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
    advance: Callable[[int], None] = lambda _: None,
) -> UnbiasedBounds:
    """The published procedure: Algorithm 1 from random starts, the greatest bound per mode over the restarts.

    Searches in float32 where the model is a module, certifies every perturbation with one float64 forward pass.
    Each start is noise times size/√n, as published. For most models and modes `multipoint_bounds` is far larger.
    `rows` examples times restarts are worked on at once. A model that hides its derivative everywhere, as rounding
    does, is refused.
    """
    checked_noise(noise)
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
        repeated = chosen.repeat_interleave(restarts, dim=0)
        base = release.features(chosen).repeat_interleave(restarts, dim=0)
        start = noise.sample(base.cpu(), generator).to(base.device) * (size / math.sqrt(base.shape[1]))
        found = perturbation(
            release.search,
            chosen.to(release.precision),
            start.to(release.precision).reshape(len(chosen), restarts, -1),
            repetitions=repetitions,
        )
        changed = changed or bool(found.any())
        moved = repeated + found.to(torch.float64).flatten(0, 1)
        chi_square = torch.tensor(_chi_square(release, noise, release.features(moved) - base, base)).to(base.device)
        lost = torch.tensor(mode_error(moved - repeated)).to(base.device)
        changes = modes.to_modes(moved - repeated).reshape(len(moved), -1).abs() - lost[:, None]
        by_start = (len(chosen), restarts, -1)
        change, divergence = _best_starts(changes.clamp(min=0).reshape(by_start), chi_square.reshape(by_start))
        variance[first : first + len(chosen)] = hcr_variance(as_array(change), chi_square=as_array(divergence))
        advance(first + len(chosen))
    if not changed:
        release.check_at_rest(release.inputs[:3])
    return _result(release, modes, noise, variance, hcr_theorem(noise, "Algorithm 1 of arXiv:2404.02866v3"))


def _best_starts(changes: Tensor, chi_square: Tensor) -> tuple[Tensor, Tensor]:
    """Of each input's starts, (inputs, starts, modes) and (inputs, starts, 1), the one that bounds each mode best."""
    quotients = (changes.square() / chi_square).nan_to_num(nan=0.0)  # 0/0: nothing changed
    best = quotients.argmax(dim=1, keepdim=True)
    return changes.gather(1, best)[:, 0], chi_square.expand_as(changes).gather(1, best)[:, 0]


def _moves(release: Release, inputs: Tensor, vectors: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """The features of every input, (b, n), and how far its step along every vector moves them, (b, m, n)."""
    directions = torch.cat([torch.zeros_like(vectors[:1]), vectors])
    points = torch.addcmul(inputs.reshape(len(inputs), 1, -1), step[:, None, None], directions)
    found = release.features(points, apart=True).reshape(len(inputs), len(directions), -1)
    return found[:, 0].clone(), found[:, 1:] - found[:, :1]  # a view would keep them all


def _chi_square(release: Release, noise: Noise, shifts: Tensor, base: Tensor) -> _Array:
    """The divergence of each shift, lengthened by what the error of the features allows."""
    return noise.chi_square(base, shifts, shift_error(release, shifts, base))


def shift_error(release: Release, shifts: Tensor, base: Tensor) -> Tensor:
    """How far each shift of the features may be from the released one, in norm."""
    return release.error * (2 * base.norm(dim=-1) + shifts.norm(dim=-1)) * (1 + 1e-9)


def mode_error(changes: Tensor) -> _Array:
    """How far a mode of each change may be from its exact value: by the basis, and by the sums over entries."""
    flat = changes.flatten(1)
    return (ROUNDING * math.sqrt(flat.shape[1]) + 2 * flat.shape[1] * UNIT) * as_array(flat.norm(dim=1))


def _input_error(inputs: Tensor, step: Tensor) -> Tensor:
    """How far a mode of θ + ε, rounded to float64, may be from where it should be."""
    return 2 * UNIT * (inputs.reshape(len(inputs), -1).norm(dim=1) + step) + ROUNDING * step


def _steps(steps: Sequence[float] | None, release: Release, shares: Sequence[float]) -> list[Tensor]:
    """Step by step its length for each input: as given, or these shares of the input's scale."""
    if steps is None:
        return [share * scales(release.inputs) for share in shares]
    if not isinstance(steps, Sequence) or isinstance(steps, str) or not steps:
        raise InputError("steps", steps, requirement="must be a non-empty list of numbers", remedy="leave it out")
    sizes = [validate.number("each of steps", step, above=0, remedy="use 1e-3") for step in steps]
    return [torch.full_like(scales(release.inputs), size) for size in sizes]


def _passes(modes: int, width: int, memory: object, *, timed: bool) -> Iterator[tuple[Tensor, int, int]]:
    """An order of the modes, how many of them a block takes, and how many inputs at once: `memory` bytes hold those.

    One pass; or, where time is limited, small blocks, larger ones, and without end the largest in random orders, unless
    that holds all modes.
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


def _result(release: Release, modes: Basis, noise: Noise, variance: _Array, theorem: tuple[str, ...]) -> UnbiasedBounds:
    infinite = np.isinf(variance)
    std = np.maximum(down(np.sqrt(np.where(infinite, 0.0, variance))), 0.0)
    return UnbiasedBounds(
        std=np.where(infinite, np.inf, std).reshape(tuple(release.inputs.shape)),
        inputs=as_array(release.inputs),
        noise=noise,
        basis=modes.name,
        theorem=theorem,
        feature_error=release.error,
    )
