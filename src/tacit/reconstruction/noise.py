"""The noise of a release: what it hides, and how to draw it.

A noise says how far apart two releases are whose features differ by a shift z: their chi-square divergence and their
total variation, both rounded up. `other_noise` has more kinds.
"""

from __future__ import annotations

import copy
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import down, up
from ..core.wording import exact_text
from ..theory import divergences, quantized
from .release import as_array

_Array = NDArray[np.float64]

FINENESS = 2**16
"""Releases are rounded to the noise's size divided by this, unless the noise says otherwise."""


@runtime_checkable
class Noise(Protocol):
    """What the bounds need to know about a noise.

    Attributes
    ----------
    rounding
        The relative error of the length of a whitened shift.
    failure_probability
        The chance that any value it ever gives is wrong: 0 unless values come from random draws.
    assumptions
        What the caller states about the noise, apart from its distribution.
    standard
        What `shaped` turns into noise: "normal" numbers, or "uniform" ones between −½ and ½.
    """

    rounding: float
    failure_probability: float
    assumptions: tuple[str, ...]
    standard: str

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:
        """Return the chi-square divergence for each row, rounded up.

        It holds for all features within `error` of `base`, in norm, and all shifts within `error` of `shift`.
        """
        ...

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:
        """Return the total variation for each row, rounded up; `error` has the same meaning."""
        ...

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """Draw pseudo-random noise for features like these, for simulations."""
        ...

    @property
    def size(self) -> float:
        """The least scale of the noise in any feature."""
        ...

    @property
    def grid(self) -> float:
        """The step to which a release is rounded."""
        ...

    def shaped(self, standard: Tensor) -> Tensor:
        """Turn independent standard numbers, one per feature, into noise."""
        ...

    def whitened(self, shift: Tensor) -> Tensor:
        """Return rows whose inner products give the ratios of Gaussian densities; only Gaussian noise has them."""
        ...


class Gaussian:
    """Gaussian noise, N(0, σ²I) or N(0, covariance).

    Parameters
    ----------
    sigma
        The standard deviation in every feature.
    covariance
        Instead of sigma: a vector (its diagonal), a matrix, or a pair (factor, diagonal) for factor·factorᵀ + diagonal.
    """

    chi_square_theorems: tuple[str, ...] = ("theory.divergences.gaussian_chi_square",)
    total_variation_theorems: tuple[str, ...] = ("theory.divergences.gaussian_total_variation",)
    standard = "normal"
    failure_probability = 0.0
    assumptions: tuple[str, ...] = ()

    def __init__(self, sigma: float | None = None, *, covariance: Any = None) -> None:
        if (sigma is None) == (covariance is None):
            raise InputError(
                "sigma and covariance",
                (sigma, covariance),
                requirement="must be given one at a time",
                remedy="write Gaussian(0.5) or Gaussian(covariance=…)",
            )
        self.sigma = None
        self.rounding = 1e-15
        if sigma is not None:
            self.sigma = validate.number("sigma", sigma, above=0, remedy="give the standard deviation of the noise")
        elif isinstance(covariance, tuple):
            if len(covariance) != 2:
                raise InputError(
                    "the parts of covariance",
                    len(covariance),
                    requirement="must be 2",
                    remedy="pass (factor, diagonal), or one array",
                )
            self._set_factor(*covariance)
        else:
            values = validate.array("covariance", covariance, remedy="pass the diagonal, or the whole matrix")
            if values.ndim == 1:
                self._set_factor(np.zeros((len(values), 1)), values)
            else:
                self._set_matrix(values)

    def _set_factor(self, factor: Any, diagonal: Any) -> None:
        loads = validate.array("the factor of covariance", factor, dimensions=2, remedy="pass one feature per row")
        variances = validate.array("the diagonal of covariance", diagonal, dimensions=1, remedy="pass variances")
        if len(loads) != len(variances) or not np.all(variances > 0):
            raise InputError(
                "covariance",
                (loads.shape, variances.shape, float(variances.min())),
                requirement="must have a factor row and a positive variance for every feature",
                remedy="add a small variance to every feature",
            )
        self._root = torch.tensor(np.sqrt(variances))
        # Σ = D(I + VVᵀ)D with D = √diagonal. With V = QSRᵀ, (I + VVᵀ)^(±½) = I + Q((1 + S²)^(±½) − 1)Qᵀ.
        q, s, _ = np.linalg.svd(loads / np.sqrt(variances)[:, None], full_matrices=False)
        self._set_stretch(q, np.sqrt(1 + s * s))

    def _set_matrix(self, matrix: _Array) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or _skew(matrix) > 1e-10:
            raise InputError(
                "covariance", matrix.shape, requirement="must be a symmetric square matrix", remedy="symmetrise it"
            )
        values, vectors = np.linalg.eigh(matrix)
        if not values[0] > 0:
            raise InputError(
                "the least eigenvalue of covariance",
                float(values[0]),
                requirement="must be positive",
                remedy="add a multiple of the identity",
            )
        # A full matrix is the low-rank form at full rank: Σ = λ₁(I + (Σ − λ₁I)/λ₁), λ₁ half the least eigenvalue.
        least = values[0] / 2
        self._root = torch.full((len(matrix),), math.sqrt(least), dtype=torch.float64)
        self._set_stretch(vectors, np.sqrt(values / least))

    def _set_stretch(self, q: _Array, stretch: _Array) -> None:
        """Store the directions in which the scaled noise is longer than 1, and by how much."""
        self._q, self._stretch = torch.tensor(q), torch.tensor(stretch)
        # Decomposing an m × m matrix errs by a small multiple of m units in the last place of its norm; inversion
        # multiplies that by the condition number.
        self.rounding = 40 * len(q) * 2.0**-52 * float(stretch.max()) ** 2
        if self.rounding > 1e-3:
            raise InputError(
                "the greatest over the least variance of covariance",
                float(stretch.max()) ** 2,
                requirement="must be small enough to invert to three digits",
                remedy="add a multiple of the identity",
            )

    def __repr__(self) -> str:
        if self.sigma is not None:
            return f"Gaussian({exact_text(self.sigma)})"
        mark = hashlib.sha256(b"".join(part.numpy().tobytes() for part in (self._root, self._q, self._stretch)))
        return f"Gaussian(covariance of {len(self._root)} features, {mark.hexdigest()[:8]})"

    def whitened(self, shift: Tensor) -> Tensor:
        """Return rows y with ‖y‖² = zᵀΣ⁻¹z."""
        if self.sigma is not None:
            return shift / self.sigma
        self._check_width(shift)
        scaled = shift / self._root.to(shift.device)
        q = self._q.to(shift.device)
        return scaled + ((scaled @ q) * (1 / self._stretch.to(shift.device) - 1)) @ q.T

    def shaped(self, standard: Tensor) -> Tensor:
        if self.sigma is not None:
            return self.sigma * standard
        self._check_width(standard)
        q = self._q.to(standard)
        stretched = standard + ((standard @ q) * (self._stretch.to(standard) - 1)) @ q.T
        return stretched * self._root.to(standard)

    def log_likelihood(self, released: Tensor, clean: Tensor) -> Tensor:
        """Return the log-likelihood of each release (rows) for several features (columns), for attacks."""
        return -torch.cdist(self.whitened(released), self.whitened(clean)).square() / 2

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        return sample_of(self, features, generator)

    def averaged(self, releases: int) -> Gaussian:
        """Return the noise of the mean of several releases, rounded down."""
        found, scale = copy.copy(self), divergences.repeated_scale(releases)
        if self.sigma is not None:
            found.sigma = down(self.sigma * scale)
        else:
            found._root = torch.tensor(down(self._root.numpy() * scale))
        return found

    @property
    def size(self) -> float:
        return self._least_scale

    @property
    def grid(self) -> float:
        return self.size / FINENESS

    def distance(self, shift: Tensor, error: Tensor) -> _Array:
        """Return √(zᵀΣ⁻¹z) for each row, rounded up, for any shift z within `error` of the given one."""
        length = self.whitened(shift).norm(dim=-1) + error / self._least_scale
        return up(as_array(length), relative=self.rounding + 2 * shift.shape[-1] * 2.0**-52)

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return divergences.gaussian_chi_square(self.distance(shift, error))

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return divergences.gaussian_total_variation(self.distance(shift, error))

    @property
    def _least_scale(self) -> float:
        return self.sigma if self.sigma is not None else float(self._root.min())

    def _check_width(self, features: Tensor) -> None:
        if features.shape[-1] != len(self._root):
            raise InputError(
                "the number of features",
                features.shape[-1],
                requirement=f"must be {len(self._root)}, as in the covariance",
                remedy="build the noise for these features",
            )


class NotGaussian(ABC):
    """What all noise except Gaussian shares: it is made of uniform numbers and has no whitened shifts."""

    chi_square_theorems: tuple[str, ...] = ()
    total_variation_theorems: tuple[str, ...] = ()
    rounding = 0.0
    standard = "uniform"
    failure_probability = 0.0
    assumptions: tuple[str, ...] = ()

    @property
    @abstractmethod
    def size(self) -> float: ...

    @property
    def grid(self) -> float:
        return self.size / FINENESS

    def whitened(self, shift: Tensor) -> Tensor:
        raise NoTheoremError(
            f"many test points at once must have Gaussian noise, got {self!r} for {shift.shape[-1]} features; "
            "use hcr_bounds or two_point_bounds, or release with Gaussian noise"
        )

    @abstractmethod
    def shaped(self, standard: Tensor) -> Tensor: ...

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        return sample_of(self, features, generator)


class Laplace(NotGaussian):
    """Independent Laplace noise in every feature, with density exp(−|x|/scale)/(2·scale).

    Parameters
    ----------
    scale
        The scale of the density.
    """

    chi_square_theorems = ("theory.divergences.laplace_chi_square",)
    total_variation_theorems = ("theory.divergences.laplace_total_variation",)

    def __init__(self, scale: float) -> None:
        self.scale = validate.number("scale", scale, above=0, remedy="give the scale of the noise")

    def __repr__(self) -> str:
        return f"Laplace({exact_text(self.scale)})"

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return divergences.laplace_chi_square(_lengthened(shift, error), scale=self.scale)

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return divergences.laplace_total_variation(_lengthened(shift, error), scale=self.scale)

    def shaped(self, standard: Tensor) -> Tensor:
        # −½, which 53 random bits can give, stands for all numbers that round to it.
        return -self.scale * standard.sign() * torch.log1p(-2 * standard.abs()).clamp(min=-54 * math.log(2))

    def log_likelihood(self, released: Tensor, clean: Tensor) -> Tensor:
        return -torch.cdist(released, clean, p=1) / self.scale

    @property
    def size(self) -> float:
        return self.scale


class Uniform(NotGaussian):
    """Independent uniform noise on [−width/2, width/2] in every feature.

    Bounds on unbiased estimators are zero for it; two-point bounds are not.

    Parameters
    ----------
    width
        The width of the interval.
    """

    total_variation_theorems = ("theory.divergences.uniform_total_variation",)

    def __init__(self, width: float) -> None:
        self.width = validate.number("width", width, above=0, remedy="give the width of the noise")

    def __repr__(self) -> str:
        return f"Uniform({exact_text(self.width)})"

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        """Return inf wherever the release moves at all, because some outputs rule one input out."""
        return np.where(_lengthened(shift, error).any(axis=-1), np.inf, 0.0)

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:  # noqa: ARG002 — of rounded noise
        return divergences.uniform_total_variation(_lengthened(shift, error), width=self.width)

    def shaped(self, standard: Tensor) -> Tensor:
        return self.width * standard

    def log_likelihood(self, released: Tensor, clean: Tensor) -> Tensor:
        """Return 0 for all possible features, and for the others a penalty for how far they are from possible."""
        beyond = torch.cdist(released, clean, p=math.inf) - self.width / 2
        return -beyond.clamp(min=0) * (1e6 / self.width)

    @property
    def size(self) -> float:
        return self.width


class Quantized:
    """Another noise, after which every feature is rounded to the nearest multiple of `step`.

    What is proven for the noise holds after rounding too. For Gaussian(sigma), Laplace and Uniform noise the
    divergences are smaller, by as much as the bins hide.

    Parameters
    ----------
    noise
        The noise before rounding.
    step
        The distance between neighbouring values of a release.
    """

    def __init__(self, noise: Noise, step: float) -> None:
        if isinstance(noise, Quantized) or not hasattr(noise, "shaped"):
            raise InputError(
                "noise",
                noise,
                requirement="must be an unrounded noise of tacit.reconstruction",
                remedy="use Gaussian(sigma)",
            )
        self.noise = noise
        remedy = "give the step to which the release is rounded; a finer one leaks low bits"
        self.step = validate.number("step", step, at_least=noise.grid, remedy=remedy)
        self.rounding = noise.rounding
        self.standard = noise.standard
        self.failure_probability = noise.failure_probability
        unit = exact_text(self.step)
        rounded = f"the sum of features and noise is rounded to the nearest multiple of {unit}, counted from 0"
        self.assumptions = (*noise.assumptions, rounded)

    def __repr__(self) -> str:
        return f"Quantized({self.noise!r}, {exact_text(self.step)})"

    def chi_square(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:
        """Return the smaller of the noise's own value and that from the probabilities of the bins."""
        found = self.noise.chi_square(base, shift, error)
        return (
            found
            if self._law is None
            else np.minimum(found, self._binned(quantized.quantized_chi_square, base, shift, error))
        )

    def total_variation(self, base: Tensor, shift: Tensor, error: Tensor) -> _Array:
        """Return the smaller of the noise's own value and that from the probabilities of the bins."""
        found = self.noise.total_variation(base, shift, error)
        if self._law is None:
            return found
        return np.minimum(found, self._binned(quantized.quantized_total_variation, base, shift, error))

    @property
    def chi_square_theorems(self) -> tuple[str, ...]:
        """The theorems of the noise, and of the bins where their probabilities are known."""
        binned = () if self._law is None else ("theory.quantized.quantized_chi_square",)
        return (*chi_square_theorems(self.noise), *binned)

    @property
    def total_variation_theorems(self) -> tuple[str, ...]:
        """The theorems of the noise, and of the bins where their probabilities are known."""
        binned = () if self._law is None else ("theory.quantized.quantized_total_variation",)
        return (*total_variation_theorems(self.noise), *binned)

    def shaped(self, standard: Tensor) -> Tensor:
        """Return the noise before rounding, which needs the features."""
        return self.noise.shaped(standard)

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """Return the rounded release minus the features."""
        exact = features.to(torch.float64)
        noisy = exact + self.noise.sample(exact, generator)
        return (self.step * torch.round(noisy / self.step) - exact).to(features)

    @property
    def size(self) -> float:
        return self.noise.size

    @property
    def grid(self) -> float:
        return self.step

    def whitened(self, shift: Tensor) -> Tensor:
        return self.noise.whitened(shift)

    @property
    def _law(self) -> tuple[str, float] | None:
        """Kind and size of the noise, if the probabilities of bins are known."""
        noise = self.noise
        if isinstance(noise, Gaussian):
            return None if noise.sigma is None else ("gaussian", noise.sigma)
        kinds: dict[type, str] = {Laplace: "laplace", Uniform: "uniform"}
        return (kinds[type(noise)], noise.size) if type(noise) in kinds else None

    def _binned(self, theorem: Callable[..., _Array], base: Tensor, shift: Tensor, error: Tensor) -> _Array:
        kind, size = self._law or ("", 0.0)
        return theorem(as_array(base), as_array(shift), kind=kind, size=size, step=self.step, error=as_array(error))


def chi_square_theorems(noise: Noise) -> tuple[str, ...]:
    """Return the functions of `tacit.theory` behind the chi-square divergence, or words for a caller's own noise."""
    stated = (f"the chi-square divergence of {noise!r}, as its author states it",)
    return tuple(getattr(noise, "chi_square_theorems", stated))


def total_variation_theorems(noise: Noise) -> tuple[str, ...]:
    """Return the same for the total variation."""
    stated = (f"the total variation of {noise!r}, as its author states it",)
    return tuple(getattr(noise, "total_variation_theorems", stated))


def sample_of(noise: Gaussian | NotGaussian, features: Tensor, generator: torch.Generator) -> Tensor:
    """Draw noise for features like these from pseudo-random standard numbers."""
    draw = torch.randn if noise.standard == "normal" else torch.rand
    standard = draw(features.shape, generator=generator, dtype=torch.float64, device=generator.device)
    return noise.shaped(standard if noise.standard == "normal" else standard - 0.5).to(features)


def _lengthened(shift: Tensor, error: Tensor) -> _Array:
    """Return absolute shifts, each coordinate enlarged by the error: both divergences grow with every coordinate."""
    return as_array(shift.abs() + error[..., None])


def _skew(matrix: _Array) -> float:
    return float(np.abs(matrix - matrix.T).max() / max(np.abs(matrix).max(), 1e-300))


def checked_noise(noise: object) -> None:
    """Refuse what is neither a noise of this package nor does what the bounds ask of one."""
    if isinstance(noise, type) or not isinstance(noise, Noise):
        raise InputError(
            "noise", noise, requirement="must be a noise of tacit.reconstruction", remedy="use Gaussian(sigma)"
        )


def unrounded(noise: Noise) -> Noise:
    """Return the noise itself, or the one whose release is then rounded."""
    return noise.noise if isinstance(noise, Quantized) else noise


def gaussian_of(noise: Noise) -> Gaussian | None:
    """Return the Gaussian noise whose bounds hold for this one: itself, or the one that is then rounded; else None."""
    found = unrounded(noise)
    return found if isinstance(found, Gaussian) else None


def required_gaussian(noise: Noise, purpose: str) -> Gaussian:
    """Return the Gaussian noise of a release; refuse any other, for which no theorem covers the purpose."""
    checked_noise(noise)
    gaussian = gaussian_of(noise)
    if gaussian is not None:
        return gaussian
    raise NoTheoremError(
        f"{purpose} must have Gaussian noise, got {noise!r}; use two_point_bounds, or release with Gaussian noise"
    )
