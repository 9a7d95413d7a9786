"""What an adversary knows before the release: a stated prior, the same in a bound and in the attacks on it."""

from __future__ import annotations

import copy
import hashlib
import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from ..core.wording import exact_text
from .release import as_array, loaded

_Array = NDArray[np.float64]

REMAINING = "mean squared error of the rebuilt input, as a share of the prior's variance"
SHARE_OF_THEIRS = "mean squared error of rebuilt held-out inputs, as a share of their variance"

_MOST_ENTRIES = 8192
_LARGEST_LOG_ERROR = 1e-3
_UNIT = 2.0**-53


class Gallery:
    """A prior under which the input is one of the given ones, each as likely as it is frequent.

    Two inputs are equal if all their entries are equal in float64, whatever type they came in; −0 and 0 differ, because
    a model may tell them apart.

    Parameters
    ----------
    inputs
        An array, a tensor or a DataLoader, one input per row.

    Attributes
    ----------
    inputs
        The different inputs, in the order given.
    places
        For each given input, its position among the different ones.
    shape
        The shape of one input.
    """

    def __init__(self, inputs: object) -> None:
        values = loaded("inputs", inputs)
        given = public_inputs("inputs", values)
        self.shape = tuple(given.shape[1:])
        self._device = values.device if isinstance(values, Tensor) else None
        self.places, first = _distinct(given)
        self.inputs = given if len(first) == len(given) else given[first]
        if bool((given == given[:1]).all()):
            raise InputError("inputs", 0.0, requirement="must differ from one another", remedy="pass others")

    @property
    def weights(self) -> _Array:
        """How likely each of the different inputs is."""
        return np.bincount(self.places) / len(self.places)

    @property
    def variances(self) -> Tensor:
        """The variance of every entry."""
        weights, flat = torch.tensor(self.weights), self.inputs.flatten(1)
        return weights @ (flat - weights @ flat).square()

    @property
    def description(self) -> str:
        """What the adversary knows, in words."""
        weights, given = self.weights, len(self.places)
        if len(weights) == given:
            return f"{given} equally likely inputs that the adversary holds ({fingerprint(self.inputs)})"
        mark = fingerprint(self.inputs, torch.tensor(weights))
        return f"{given} equally likely inputs that the adversary holds, {len(weights)} of them different ({mark})"

    def __repr__(self) -> str:
        return f"Gallery of {len(self.inputs)} inputs of shape {self.shape}: {self.description}"

    def as_seen(self, kind: torch.dtype, clean: _Array, error: float) -> tuple[Gallery, NDArray[np.int64]]:
        """Merge the inputs that a model computing in this type cannot tell apart.

        Those are equal after rounding to the type, and so are their features (rows of `clean`), up to `error`. Returned
        with the merged gallery: for each input, the one it joins.
        """
        alike, _ = _distinct(self.inputs.to(kind).to(torch.float64) + 0.0)  # −0 + 0 is 0
        joined, sizes = np.arange(len(alike)), np.linalg.norm(clean, axis=1)
        kept: dict[int, list[int]] = {}
        for row in np.flatnonzero(np.bincount(alike)[alike] > 1):
            others = kept.setdefault(int(alike[row]), [])
            apart = np.linalg.norm(clean[others] - clean[row], axis=1)
            same = np.flatnonzero(apart <= error * (sizes[others] + sizes[row]))
            if len(same):
                joined[row] = others[same[0]]
            else:
                others.append(int(row))
        first, places = np.unique(joined, return_inverse=True)
        if len(first) < 2:
            raise InputError(
                "inputs",
                str(kind),
                requirement="must differ in the type in which the model computes",
                remedy="pass others",
            )
        seen = copy.copy(self)
        seen.inputs, seen.places = self.inputs[first], places[self.places]
        return seen, joined

    def as_given(self, rows: Tensor) -> Any:
        """Return rows as the gallery was given: arrays or tensors."""
        return as_array(rows) if self._device is None else rows.to(self._device)

    def drawn(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw from the prior, and return positions."""
        return torch.tensor(self.places)[torch.randint(len(self.places), (count,), generator=generator)]

    def sample(self, count: int, *, seed: int) -> Tensor:
        """Draw inputs from the prior, one per row."""
        return self.inputs[self.drawn(count, _generator(seed))]


class Mixture:
    """A prior under which the input has a Gaussian-mixture density.

    That is one Gaussian, several, or one around each of many inputs.

    Parameters
    ----------
    means
        One component per row.
    spread
        The standard deviation of all entries in every component, or a lower triangular factor L of the covariance LLᵀ,
        or one such factor for each component.
    weights
        The probability of each component; equal by default.
    shape
        The shape of one input.
    description
        Where the prior comes from, in words. Guarantees quote it.
    """

    def __init__(
        self, means: object, spread: Any, *, weights: object = None, shape: tuple[int, ...], description: str
    ) -> None:
        self.means = torch.tensor(validate.array("means", means, dimensions=2, remedy="pass one component per row"))
        if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
            raise InputError(
                "shape", shape, requirement="must be a tuple of whole numbers", remedy="pass an input's shape"
            )
        self.shape = shape
        words = validate.text("description", description, remedy="say where the prior comes from")
        count, entries = self.means.shape
        if math.prod(shape) != entries:
            raise InputError("shape", shape, requirement=f"must hold {entries} entries", remedy="pass an input's shape")
        given = np.full(count, 1 / count) if weights is None else weights
        shares = validate.array("weights", given, at_least=0, dimensions=1, remedy="leave them out")
        if len(shares) != count or abs(shares.sum() - 1) > 1e-9:
            raise InputError("weights", shares.sum(), requirement=f"must be {count} that sum to 1", remedy="scale them")
        self._log_weights = torch.log(torch.tensor(shares / shares.sum()))
        spread = validate.array("spread", spread, remedy="pass a number or triangular factors")
        self.description = f"{words} ({fingerprint(self.means, torch.tensor(spread), self._log_weights)})"
        self._jitter: float | None = None
        if np.ndim(spread) == 0:
            self._jitter = validate.number("spread", float(spread), above=0, remedy="give a standard deviation")
        else:
            self._set_factors(spread, count, entries)

    def _set_factors(self, spread: _Array, count: int, entries: int) -> None:
        factors = torch.tensor(spread)
        factors = factors[None] if factors.ndim == 2 else factors
        diagonal = torch.diagonal(factors, dim1=-2, dim2=-1)
        if factors.ndim != 3 or factors.shape[1:] != (entries, entries) or len(factors) not in (1, count):
            raise InputError(
                "the shape of spread",
                tuple(factors.shape),
                requirement=f"must be ({entries}, {entries}), or that for each of {count} components",
                remedy="pass Cholesky factors",
            )
        if bool((diagonal <= 0).any()) or bool((factors != factors.tril()).any()):
            raise InputError(
                "spread",
                float(diagonal.min()),
                requirement="must be lower triangular with a positive diagonal",
                remedy="pass Cholesky factors",
            )
        self._factors = factors
        self._log_volume = diagonal.log().sum(dim=1)
        self._condition = max(float(torch.linalg.cond(factor)) for factor in factors)

    @classmethod
    def fitted(cls, public: object, *, components: int = 1, shrinkage: float = 0.05, seed: int = 0) -> Mixture:
        """Fit a Gaussian, or a mixture of several, to public inputs.

        Real inputs are not draws from it: a bound for this prior says nothing about attackers who know more about real
        inputs.

        Parameters
        ----------
        public
            The inputs, one per row.
        components
            How many Gaussians. One has the inputs' mean and covariance; several are fitted by expectation maximisation.
        shrinkage
            How far every covariance is moved towards a multiple of the identity, so that it can be inverted.
        seed
            For expectation maximisation.
        """
        inputs = public_inputs("public", public)
        flat = as_array(inputs.flatten(1))
        share = validate.probability("shrinkage", shrinkage, remedy="use 0.05")
        number = validate.whole("components", components, at_least=1, remedy="use 1")
        if flat.shape[1] > _MOST_ENTRIES:
            raise InputError(
                "the entries of an input",
                flat.shape[1],
                requirement=f"must be at most {_MOST_ENTRIES} for a covariance",
                remedy="make the inputs smaller, or use Jittered(public, jitter=…)",
            )
        whole = float(flat.var(axis=0).mean())
        if not whole > 0:
            raise InputError("public", 0.0, requirement="must differ from one another", remedy="pass others")
        if number == 1:
            weights, means, covariances = (
                np.ones(1),
                flat.mean(axis=0)[None],
                np.atleast_2d(np.cov(flat.T, bias=True))[None],
            )
        else:
            from sklearn.mixture import GaussianMixture

            found = GaussianMixture(number, random_state=seed, reg_covar=share * flat.var(), tol=1e-2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about convergence: any mixture that is stated is a valid prior
                found.fit(flat)
            weights, means, covariances = found.weights_, found.means_, found.covariances_
        eye = np.eye(flat.shape[1])
        factors = [
            np.linalg.cholesky(
                (1 - share) * covariance + share * max(np.trace(covariance) / len(eye), 1e-9 * whole) * eye
            )
            for covariance in covariances
        ]
        kind = "a Gaussian" if number == 1 else f"a mixture of {number} Gaussians"
        return Mixture(
            means,
            np.stack(factors),
            weights=weights,
            shape=tuple(inputs.shape[1:]),
            description=f"{kind} fitted to {len(flat)} public inputs (shrinkage {share:g}, seed {seed})",
        )

    @classmethod
    def around(cls, gallery: object, *, jitter: float) -> Mixture:
        """Return `Jittered(gallery, jitter=jitter)`: its name before. It will be removed.

        Parameters
        ----------
        gallery
            The inputs, one per row.
        jitter
            The standard deviation around each of them.
        """
        warnings.warn(
            "Mixture.around(gallery, jitter=…) is Jittered(gallery, jitter=…) now", DeprecationWarning, stacklevel=2
        )
        return Jittered(gallery, jitter=jitter)

    def __repr__(self) -> str:
        parts = "1 Gaussian" if len(self.means) == 1 else f"{len(self.means)} Gaussians"
        return f"{type(self).__name__} of {parts}, inputs of shape {self.shape}: {self.description}"

    @property
    def variances(self) -> Tensor:
        """The variance of every entry."""
        inner: Tensor | float
        if self._jitter is not None:
            inner = self._jitter**2
        else:
            each = self._factors.square().sum(dim=2)
            inner = (self._weights[:, None] * each.expand(len(self.means), -1)).sum(dim=0)
        return inner + self._between().square().sum(dim=0)

    def covariances(self) -> list[Tensor]:
        """Return the covariance of the whole mixture and, for several components, the mean one inside a component."""
        if self._jitter is not None:
            inside = self._jitter**2 * torch.eye(self.means.shape[1], dtype=torch.float64)
        else:
            weights = self._weights if len(self._factors) > 1 else torch.ones(1, dtype=torch.float64)
            inside = sum(w * factor @ factor.T for w, factor in zip(weights, self._factors, strict=True))
        between = self._between()
        return [inside + between.T @ between, inside] if len(self.means) > 1 else [inside]

    def sample(self, count: int, *, seed: int) -> Tensor:
        """Draw inputs from the prior, one per row."""
        return self.drawn(count, _generator(seed))

    def drawn(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw the next inputs from a generator."""
        chosen = torch.multinomial(self._weights, count, replacement=True, generator=generator)
        standard = torch.randn(count, self.means.shape[1], generator=generator, dtype=torch.float64)
        if self._jitter is not None:
            moves = self._jitter * standard
        elif len(self._factors) == 1:
            moves = standard @ self._factors[0].T
        else:
            moves = torch.empty_like(standard)
            for component, factor in enumerate(self._factors):
                moves[chosen == component] = standard[chosen == component] @ factor.T
        return (self.means[chosen] + moves).reshape(count, *self.shape)

    def log_density(self, inputs: Tensor) -> Tensor:
        """Return the log-density of each row, up to one constant; differentiable."""
        return torch.logsumexp(self._log_parts(inputs.flatten(1))[0], dim=1)

    def log_odds(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Return log π(first) − log π(second) for each row, and a limit on its rounding error."""
        logs, error = [], torch.zeros(len(first), dtype=torch.float64, device=first.device)
        for rows in (first, second):
            parts, errors = self._log_parts(rows.flatten(1))
            logs.append(torch.logsumexp(parts, dim=1))
            # A log-sum-exp moves by its terms' errors, weighted by their shares; the factor 2 covers second order.
            error = error + 2 * (torch.softmax(parts, dim=1) * errors).sum(dim=1) + 1e-12
        if not bool((error < _LARGEST_LOG_ERROR).all()):
            raise InputError(
                "the rounding error of the prior's log-density",
                float(error.max()),
                requirement=f"must be below {_LARGEST_LOG_ERROR:g}",
                remedy="raise the jitter or the shrinkage",
            )
        return logs[0] - logs[1], error

    def _log_parts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return log(weight · density) for each row and component, up to one constant, and its error."""
        means, weights = self.means.to(rows.device), self._log_weights.to(rows.device)
        entries = rows.shape[1]
        if self._jitter is not None:
            centre = means.mean(dim=0)
            rows, means = (rows - centre) / self._jitter, (means - centre) / self._jitter
            sizes = rows.square().sum(dim=1)[:, None] + means.square().sum(dim=1)
            return weights - (sizes - 2 * rows @ means.T) / 2, 4 * (entries + 8) * _UNIT * sizes
        parts, squares = [], []
        for component, mean in enumerate(means):
            factor = self._factors[component % len(self._factors)].to(rows.device)
            solved = torch.linalg.solve_triangular(factor, (rows - mean).T, upper=False)
            squares.append(solved.square().sum(dim=0))
            parts.append(weights[component] - squares[-1] / 2 - self._log_volume[component % len(self._factors)])
        # A triangular solve errs by p·√p·u·κ times the solution's norm (Higham 2002, theorem 8.5), and the
        # subtraction before it by u·κ.
        relative = 4 * entries * math.sqrt(entries) * _UNIT * self._condition
        return torch.stack(parts, dim=1), relative * torch.stack(squares, dim=1)

    @property
    def _weights(self) -> Tensor:
        return self._log_weights.exp()

    def _between(self) -> Tensor:
        """Return rows whose Gram matrix is the covariance of the components' means."""
        return self._weights.sqrt()[:, None] * (self.means - self._weights @ self.means)


class Jittered(Mixture):
    """A prior under which the input is one of the public ones, equally likely, with every entry moved by a little.

    The moves are independent, from N(0, jitter²). A small jitter says that the input is nearly one of the public ones;
    a larger one, that it only looks like them.

    Parameters
    ----------
    public
        The public inputs, one per row.
    jitter
        The standard deviation of the moves, in the unit of an entry.
    """

    def __init__(self, public: object, *, jitter: float) -> None:
        inputs = public_inputs("public", public)
        size = validate.number("jitter", jitter, above=0, remedy="give a standard deviation")
        super().__init__(
            as_array(inputs.flatten(1)),
            size,
            shape=tuple(inputs.shape[1:]),
            description=f"{len(inputs)} equally likely public inputs, each entry moved by a Gaussian of standard "
            f"deviation {exact_text(size)}",
        )


Prior = Gallery | Mixture


def fingerprint(*parts: Tensor) -> str:
    """Return a short digest, so that a bound for one prior is never compared with an attack on another."""
    content = hashlib.sha256()
    for part in parts:
        content.update(np.ascontiguousarray(as_array(part)).tobytes())
    return content.hexdigest()[:8]


def _distinct(inputs: Tensor) -> tuple[NDArray[np.int64], list[int]]:
    """Return, for each row, the number of its first equal among the different ones, and where those stand."""
    rows = np.ascontiguousarray(as_array(inputs.flatten(1)))
    numbers: dict[bytes, int] = {}
    place, first = np.zeros(len(rows), dtype=np.int64), list[int]()
    for row, entries in enumerate(rows):
        place[row] = numbers.setdefault(hashlib.sha256(entries.tobytes()).digest(), len(numbers))
        if place[row] == len(first):
            first.append(row)
    return place, first


def public_inputs(name: str, inputs: object) -> Tensor:
    """Return two inputs or more in float64, one per row."""
    values = loaded(name, inputs)
    remedy = "pass two inputs or more, one per row"
    array = validate.array(name, values, remedy=remedy)
    if array.ndim < 2 or len(array) < 2:
        raise InputError(f"the shape of {name}", array.shape, requirement="must have two rows or more", remedy=remedy)
    return torch.tensor(array, dtype=torch.float64)


def _generator(seed: object) -> torch.Generator:
    return torch.Generator().manual_seed(validate.whole("seed", seed, at_least=0, remedy="use 0"))
