"""Noise of any distribution: known by its density in one feature, or by draws and a joint density."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import up
from ..core.wording import exact_text
from ..theory.densities import (
    Cells,
    DensityTable,
    bounded_ratio_total_variation,
    density_chi_square,
    density_total_variation,
    sampled_chi_square,
    sampled_total_variation,
)
from .noise import NotGaussian
from .release import as_array

_Array = NDArray[np.float64]

_FARTHEST = 1.0
"""In units of 1/slope: for longer shifts, a mean over draws is not trusted."""

_AT_ONCE = 2**22
"""Numbers held in memory at once while draws are shifted."""

_LOG_ERROR = 1e-12
"""Relative error allowed in the caller's log-density, per unit of 1 + |log p|."""


class Density(NotGaussian):
    """Independent noise in every feature, of any density that is positive everywhere, symmetric or not.

    No slope is large enough for tails like a Gaussian's; use `Gaussian` for those. A visible contradiction to what you
    state is refused. The first bound takes some seconds longer, because a table is computed.

    Parameters
    ----------
    distribution
        A frozen distribution of scipy.stats.
    slope
        An upper limit on |d/dx log p|, everywhere. You state it.
    curvature
        An upper limit on |d²/dx² log p|, away from the kinks. You state it.
    kinks
        Where the density has no derivative.
    """

    chi_square_theorems = ("theory.densities.density_chi_square",)
    total_variation_theorems = ("theory.densities.density_total_variation",)

    def __init__(self, distribution: Any, *, slope: float, curvature: float, kinks: Sequence[float] = ()) -> None:
        self._cells = Cells.of(distribution, slope=slope, curvature=curvature, kinks=kinks)
        self.distribution = distribution
        self.slope, self.curvature, self.kinks = self._cells.slope, self._cells.curvature, tuple(kinks)
        where = f" away from {', '.join(map(exact_text, self.kinks))}" if self.kinks else ""
        slope_text, curvature_text = exact_text(self.slope), exact_text(self.curvature)
        self.assumptions = (
            f"|d/dx log p| of the noise's density is at most {slope_text}, |d²/dx² log p| {curvature_text}{where}",
            "its logpdf is accurate to 1e-12, its cdf and sf to 1e-10",
        )

    def __repr__(self) -> str:
        law = getattr(getattr(self.distribution, "dist", None), "name", type(self.distribution).__name__)
        given = [exact_text(value) for value in getattr(self.distribution, "args", ())]
        given += [f"{name}={exact_text(value)}" for name, value in getattr(self.distribution, "kwds", {}).items()]
        limits = f"slope={exact_text(self.slope)}, curvature={exact_text(self.curvature)}"
        return f"Density({law}({', '.join(given)}), {limits})"

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return density_chi_square(as_array(shift), table=self._table, error=as_array(error))

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return density_total_variation(as_array(shift), table=self._table, error=as_array(error))

    def shaped(self, standard: Tensor) -> Tensor:
        # 0 and 1, which 53 random bits can give, have no finite quantile.
        share = np.clip(as_array(standard) + 0.5, 2.0**-54, 1 - 2.0**-53)
        return torch.as_tensor(self.distribution.ppf(share)).to(standard)

    @property
    def size(self) -> float:
        return 1 / self.slope

    @cached_property
    def _table(self) -> DensityTable:
        return self._cells.table()


class Sampled(NotGaussian):
    """Noise known only by draws and a joint log-density.

    Divergences are means over fresh draws, with an upper confidence limit. A copy of the object, or another one with
    the same seed, uses the same draws, and may fail where this one does.

    Parameters
    ----------
    log_density
        `log_density(rows)` returns the log-density of each row, up to a constant.
    draw
        `draw(count, generator)` returns that many rows, drawn with a NumPy generator.
    slope
        You state that |log p(x − z) − log p(x)| ≤ slope·‖z‖.
    draws
        How many draws each divergence is computed from.
    failure_probability
        The chance that any of the values that this object ever gives is wrong.
    seed
        For the draws.
    """

    chi_square_theorems = ("theory.densities.sampled_chi_square",)
    total_variation_theorems = (
        "theory.densities.bounded_ratio_total_variation",
        "theory.densities.sampled_total_variation",
    )

    def __init__(
        self,
        log_density: Callable[[_Array], Any],
        draw: Callable[[int, np.random.Generator], Any],
        *,
        slope: float,
        draws: int = 20_000,
        failure_probability: float = 0.001,
        seed: int = 0,
    ) -> None:
        for name, value in (("log_density", log_density), ("draw", draw)):
            if not callable(value):
                raise InputError(name, value, requirement="must be a function", remedy="pass a callable")
        self.log_density, self.draw = log_density, draw
        self.slope = validate.number("slope", slope, above=0, remedy="give the greatest ‖gradient of log p‖")
        self.draws = validate.whole("draws", draws, at_least=1, remedy="use 20000")
        remedy = "use a small probability such as 0.001"
        self.failure_probability = validate.probability("failure_probability", failure_probability, remedy=remedy)
        self._generator = np.random.default_rng(validate.whole("seed", seed, at_least=0, remedy="use 0"))
        self._evaluated = 0
        most = exact_text(self.slope)
        self.assumptions = (
            f"|log p(x − z) − log p(x)| of the noise's density is at most {most}·‖z‖; it is accurate to 1e-12",
            "draws of the noise have that density, and pseudo-random ones behave as independent",
        )

    def __repr__(self) -> str:
        return f"Sampled(slope={exact_text(self.slope)}, draws={self.draws})"

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        """Return upper limits; refused if a shift exceeds 1/slope, where a few draws would decide the mean."""
        most = self._most(shift, error)
        if most.max() > _FARTHEST:
            raise NoTheoremError(
                f"slope times the length of a shift of the features must be at most {_FARTHEST:g} for noise known by "
                f"draws, got {most.max():.4g}; use smaller steps, or Density for independent noise"
            )
        return self._limits(sampled_chi_square, as_array(shift), as_array(error), most)

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        """Return upper limits; for shifts beyond 1/slope, those that follow from the slope alone."""
        most = self._most(shift, error)
        found = np.atleast_1d(bounded_ratio_total_variation(most))
        near = most <= _FARTHEST
        allowed = np.broadcast_to(as_array(error), most.shape)
        found[near] = self._limits(sampled_total_variation, as_array(shift)[near], allowed[near], most[near])
        return found

    def shaped(self, standard: Tensor) -> Tensor:
        raise NoTheoremError(
            f"noise from the operating system's entropy must have a known transform, got {self!r} for "
            f"{standard.shape[-1]} features; draw it yourself from a secure source, or use Density"
        )

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        count, width = features.shape
        return torch.as_tensor(self._drawn(count, width, np.random.default_rng(seed))).to(features)

    @property
    def size(self) -> float:
        return 1 / self.slope

    def _most(self, shift: Tensor, error: Tensor) -> _Array:
        """Return slope·‖z‖ for each row, rounded up, for any shift z within `error`."""
        length = np.linalg.norm(as_array(shift), axis=-1) + as_array(error)
        return np.where(length == 0, 0.0, up(self.slope * length, relative=1e-12 + shift.shape[-1] * 2.0**-52))

    def _limits(self, theorem: Callable[..., float], shifts: _Array, errors: _Array, most: _Array) -> _Array:
        """Return one limit for each row; rows share fresh draws, since their shifts were chosen before."""
        found = np.zeros(len(shifts))
        errors = np.broadcast_to(errors, most.shape)
        for rows in _slices(len(shifts), self.draws):
            before, after = self._log_densities(shifts[rows])
            for index, logs in zip(range(rows.start, rows.stop), after, strict=True):
                if most[index] == 0:
                    continue
                self._evaluated += 1
                found[index] = theorem(
                    logs - before,
                    most=float(most[index]),
                    failure_probability=self.failure_probability * 6 / (math.pi * self._evaluated) ** 2 * (1 - 1e-12),
                    error=self.slope * errors[index] * (1 + 1e-12) + _LOG_ERROR * (2 + np.abs(before) + np.abs(logs)),
                )
        return found

    def _log_densities(self, shifts: _Array) -> tuple[_Array, _Array]:
        """Return log p of fresh draws, and of the draws minus each shift."""
        before, after = np.zeros(self.draws), np.zeros((len(shifts), self.draws))
        for part in _slices(self.draws, shifts.shape[1]):
            drawn = self._drawn(part.stop - part.start, shifts.shape[1], self._generator)
            before[part] = self._logs(drawn)
            for row, shift in zip(after, shifts, strict=True):
                row[part] = self._logs(drawn - shift)
        return before, after

    def _drawn(self, count: int, width: int, generator: np.random.Generator) -> _Array:
        rows = validate.array("what draw returns", self.draw(count, generator), remedy="return one row per draw")
        if rows.shape != (count, width):
            raise InputError(
                "the shape of what draw returns",
                rows.shape,
                requirement=f"must be {(count, width)}, one row per draw and one column per feature",
                remedy="draw noise for these features",
            )
        return rows

    def _logs(self, rows: _Array) -> _Array:
        values = validate.array(
            "what log_density returns", self.log_density(rows), remedy="return finite numbers, one per row"
        )
        if values.shape != (len(rows),):
            raise InputError(
                "the shape of what log_density returns",
                values.shape,
                requirement=f"must be {(len(rows),)}",
                remedy="return one value per row",
            )
        return values


def _slices(count: int, width: int) -> list[slice]:
    """Split rows of that width into parts that fit into memory."""
    at_once = max(1, _AT_ONCE // width)
    return [slice(first, min(first + at_once, count)) for first in range(0, count, at_once)]
