r"""An upper confidence limit for the total variation of vectors that are released with Gaussian noise, by a kernel.

The plug-in of total variation compares each row with itself, too, and is too large where rows are few for their
dimension. Here only products of different rows count. Proofs: docs/proofs/kernels.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import LIBRARY, at_most, up
from .confidence import binomial_upper

FEWEST_PAIRS, MOST_COLUMNS = 20, 1000
"""Pairs below which, and columns beyond which, there is no limit but 1."""

_OWN = 0.2  # of the pairs: what fixes the kernel
_WIDER, _STEEPEST = 1.5, 0.9  # the kernel's spread over theirs, and the largest λ·range
_INSIDE = ((0.99, 0.0), (0.998, 0.0), (1.0, 0.0), (1.0, 0.25), (1.0, 0.5), (1.0, 1.0))
"""(share, more): D may reach as far as such a share of the rows that fix the kernel, and so much further."""

_LARGEST, _MOVED = 60.0, 1e-6  # ln K(t, t), beyond which no table has rows enough; what rounding may move
_LEAST_SIZE = 1e-6  # of a difference of two rows, as a share of the largest
_RATES, _LEAST_RATE = 100, 1e-4
_TURNS, _ABOVE, _TRIES = 60, 1.02, 3  # steps to the largest eigenvalue, what is tried above it, and how often
_AT_ONCE, _CELLS = 256, 2**14
_EPS = float(np.finfo(float).eps)
_ROWS = "pass as many rows of either class, in random order"

_Floats = NDArray[np.float64]


@at_most
def variation_kernel(ones: ArrayLike, zeros: ArrayLike, *, noise: float, failure_probability: float) -> float:
    r"""An upper confidence limit for total variation after Gaussian noise, from products of different rows.

    Parameters
    ----------
    ones
        Outputs of the first class before the noise, one in each row, in random order.
    zeros
        As many of the second.
    noise
        The standard deviation of the noise in each coordinate.
    failure_probability
        The failure probability α: the chance that the limit is wrong.

    Returns
    -------
    float
        The limit for total variation.

    Notes
    -----
    Statement. The first fifth of the pairs fixes a Gaussian density ω with more spread than the noise's density φ, a
    set D of outputs, and λ, l > 0. K(t, t′) = ∫ φ(y−t)φ(y−t′)/ω(y) dy is at most B on D. Of the other m pairs, Z_i is
    the difference of φ(·−T)/√ω of both rows, those outside D left out; G_ij = ⟨Z_i, Z_j⟩, X_j = Σ_(i<j) G_ij, c_j² =
    2BΣ_(i,k<j) G_ik, w_i = m − i, s = m(m−1)/2, r(u) = (−ln(1−u) − u)/u², Λ is the largest eigenvalue of w_i w_j G_ij,
    and L = ln(4/α). Where λc_j < 1 for all j and u = l√(2B)w_1 < 1, let a = (Σ X_j + (L + Σ r(λc_j)λ²X_j²)/λ)/s and
    b = (L + r(u)l²Λ)/(ls). The limit is half of b/2 + √(b²/4 + a) and of the two classes' upper limits for the share
    of rows outside D, each with failure probability α/4. P(limit < total variation) ≤ α.

    Assumptions. Rows are independent, those of a class from one law (caller); their order does not depend on them
    (caller); the noise is Gaussian and fresh (caller).

    Direction. Rounded up; at most 1.

    References
    ----------
    docs/proofs/kernels.md, `variation_kernel`.
    """
    scale = validate.number("noise", noise, above=0, remedy="give the noise's standard deviation")
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    given = (("ones", ones), ("zeros", zeros))
    pairs = [validate.array(name, rows, dimensions=2, remedy=_ROWS) for name, rows in given]
    if pairs[0].shape != pairs[1].shape:
        raise InputError("zeros", pairs[1].shape, requirement=f"must be of shape {pairs[0].shape}", remedy=_ROWS)
    own = int(_OWN * len(pairs[0]))
    if len(pairs[0]) < FEWEST_PAIRS or pairs[0].shape[1] > MOST_COLUMNS:
        return 1.0
    kernel = _Kernel.fixed(np.concatenate([rows[:own] for rows in pairs]), scale)
    if kernel is None:
        return 1.0
    left = len(pairs[0]) - own
    rates = kernel.choose([rows[:own] for rows in pairs], left, failure)
    if rates is None:
        return 1.0
    products, outside = kernel.products([rows[own:] for rows in pairs])
    length = _length(products, kernel, _log(failure), *rates)
    hidden = sum(binomial_upper(count, trials=left, failure_probability=failure / 4) for count in outside)
    return min(1.0, up((length + hidden) / 2 + kernel.moved, relative=LIBRARY))


def _log(failure: float) -> float:
    return up(math.log(4 / failure), relative=LIBRARY)


class _Kernel:
    """K for a Gaussian ω that was fitted to some outputs, in units of the noise, and a set D of outputs."""

    def __init__(self, first: _Floats, noise: float, mean: _Floats, axes: _Floats, spread: _Floats) -> None:
        self.first, self.noise, self.mean, self.axes = first, noise, mean, axes
        wide = 1 + _WIDER * np.maximum(0.0, spread)
        self.left = wide - 0.5
        self.log = float(np.log(wide / np.sqrt(2 * self.left)).sum())
        self.largest = 0.0

    @classmethod
    def fixed(cls, outputs: _Floats, noise: float) -> _Kernel | None:
        """The kernel by these outputs; None where they are too far apart for one."""
        with np.errstate(all="ignore"):
            scaled = (outputs - outputs[0]) / noise
            mean = scaled.mean(axis=0)
            covariance = np.atleast_2d(np.cov((scaled - mean).T))
        if not (np.isfinite(scaled).all() and np.isfinite(covariance).all()):
            return None
        spread, axes = np.linalg.eigh(covariance)
        found = cls(outputs[0], noise, mean, axes, spread)
        found.largest = float(found.sizes(found.places(outputs)).max())
        return found if found.largest <= _LARGEST and found.moved <= _MOVED else None

    def choose(self, pairs: list[_Floats], left: int, failure: float) -> tuple[float, float] | None:
        """Fix D, λ and l by the pairs that fixed the kernel, which lie in D; None where they promise nothing."""
        guess, _ = self.products(pairs)
        forecasts = _Forecasts.of(guess, left)
        sizes = np.sort(self.sizes(self.places(np.concatenate(pairs))))
        best: tuple[float, float, tuple[float, float]] | None = None
        for share, more in _INSIDE:
            far = float(np.quantile(sizes, share))
            self.largest = far + more * (far - self.log)
            outside = int(left * float((sizes > self.largest).mean())) + (more == 0)
            hidden = binomial_upper(min(outside, left), trials=left, failure_probability=failure / 4)
            length, rates = forecasts.rates(self.longest, _log(failure))
            if length / 2 + hidden < 1 and (best is None or length / 2 + hidden < best[0]):
                best = length / 2 + hidden, self.largest, rates
        if best is None:
            return None
        self.largest = best[1]
        return best[2] if self.largest <= _LARGEST and self.moved <= _MOVED else None

    def places(self, outputs: _Floats) -> _Floats:
        """Differences are taken before dividing: a place errs by a few units of its own distance."""
        with np.errstate(all="ignore"):
            found: _Floats = ((outputs - self.first) / self.noise - self.mean) @ self.axes
        return found

    def sizes(self, places: _Floats) -> _Floats:
        """ln K(t, t)."""
        with np.errstate(all="ignore"):
            found: _Floats = self.log + (places**2 / (2 * self.left)).sum(axis=1)
        return found

    @property
    def reach(self) -> float:
        """At least ‖t‖² for t in D."""
        return 2.001 * float(self.left.max()) * (self.largest - self.log + 1e-9)

    @property
    def error(self) -> float:
        """By how much a computed ln K is off in D, at most."""
        return LIBRARY * (len(self.mean) + 8) * (1 + self.log + self.reach)

    @property
    def moved(self) -> float:
        """By how much places in D are off, at most; and so total variation."""
        turned = float(np.linalg.norm(self.axes.T @ self.axes - np.eye(len(self.mean))))
        rounding = turned + LIBRARY * (len(self.mean) + 8) ** 2
        return rounding * 1.001 * (math.sqrt(self.reach) + float(np.linalg.norm(self.mean)))

    @property
    def bound(self) -> float:
        """At least B."""
        return up(math.exp(self.largest + self.error), relative=LIBRARY)

    @property
    def longest(self) -> float:
        """At least √(2B)."""
        return up(math.sqrt(2 * self.bound), relative=LIBRARY)

    @property
    def uncertain(self) -> float:
        """By how much a computed product of two differences is off, at most."""
        return up(4 * self.bound * (math.expm1(2 * self.error) + 8 * _EPS), relative=LIBRARY)

    def products(self, pairs: list[_Floats]) -> tuple[_Floats, list[int]]:
        """⟨Z_i, Z_j⟩ of the differences of pairs, without what lies outside; and how many of each class do."""
        narrow, wide = 0.25, 1 / (8 * self.left)
        places = [self.places(rows) for rows in pairs]
        inside = [self.sizes(rows) <= self.largest for rows in places]
        places = [np.where(kept[:, None], rows, 0.0) for rows, kept in zip(places, inside, strict=True)]
        ends = [(rows**2 * (wide - narrow)).sum(axis=1) for rows in places]
        count = len(places[0])
        found = np.zeros((count, count))
        for start in range(0, count, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            for a, here in enumerate(places):
                for b, there in enumerate(places):
                    block = (here[part] * 2 * (wide + narrow)) @ there.T
                    block += ends[a][part, None]
                    block += ends[b] + self.log
                    np.exp(block, out=block)
                    block *= inside[a][part, None]
                    block *= inside[b] if a == b else -1.0 * inside[b]
                    found[part] += block
        return found, [int((~kept).sum()) for kept in inside]


def _ratio(products: _Floats) -> _Floats:
    """r(u) = (−ln(1−u) − u)/u², which grows with u and is ½ at 0, rounded up."""
    u = np.maximum(products, _LEAST_RATE)
    ratio: _Floats = up((-np.log1p(-u) - u) / u**2, relative=1e-9)
    return ratio


@dataclass(frozen=True)
class _Forecasts:
    """By the products of rows that fix the kernel: the mean size of a difference, of a product, of their mean."""

    left: int
    diagonal: float
    square: float
    top: float
    mean: float

    @classmethod
    def of(cls, guess: _Floats, left: int) -> _Forecasts:
        own = len(guess)
        several, diagonal = own * (own - 1), np.diag(guess)
        square = max(0.0, float((guess**2).sum() - (diagonal**2).sum())) / several
        top = float(np.linalg.eigvalsh(guess)[-1]) / own
        mean = max(0.0, float(guess.sum() - np.trace(guess)) / several) + 2 * math.sqrt(square / several)
        mean += 4 * math.sqrt(top * mean * (1 / own + 1 / left))  # what chance may make of it, here and there
        return cls(left, float(diagonal.mean()), square, top, mean)

    def rates(self, longest: float, log: float) -> tuple[float, tuple[float, float]]:
        """What the limit for ‖μ‖ will be, about, and the best λ and l."""
        weights = np.arange(self.left - 1, -1, -1.0)
        whole = float(weights.sum())
        size = max(self.diagonal, _LEAST_SIZE * longest**2)
        steps, tried = np.arange(self.left), np.geomspace(_LEAST_RATE, _STEEPEST, _RATES)
        lengths = steps * size + steps**2 * self.mean
        forecast = steps * self.square + (steps * self.mean) ** 2
        lambdas = tried / (longest * math.sqrt(lengths[-1]))
        ranges, costs = np.sqrt(lengths), np.empty(_RATES)
        at_once = max(1, _CELLS // self.left)
        for start in range(0, _RATES, at_once):
            some = lambdas[start : start + at_once, None]
            paid = _ratio(some * longest * ranges) * some**2
            costs[start : start + at_once] = (log + (paid[:, None] @ forecast[:, None])[:, 0, 0]) / some[:, 0]
        slopes = tried / (longest * weights[0])
        first = self.top * float((weights**2).sum())
        across = (log + _ratio(tried) * slopes**2 * first) / slopes / whole
        best, slope = int(np.argmin(costs)), int(np.argmin(across))
        length = across[slope] / 2 + math.sqrt(across[slope] ** 2 / 4 + costs[best] / whole)
        return length, (float(lambdas[best]), float(slopes[slope]))


def _length(products: _Floats, kernel: _Kernel, log: float, rate: float, slope: float) -> float:
    """At least ‖μ‖, the length of the mean of differences, from their products; 2 where a range is exceeded."""
    count, longest, off = len(products), kernel.longest, kernel.uncertain
    steps, weights = np.arange(count), np.arange(count - 1, -1, -1.0)
    whole, sums = float(weights.sum()), 16 * (count + 8) * _EPS  # what sums of so many terms err by, at most
    gains = np.array([row[:place].sum() for place, row in enumerate(products)])
    errors = steps * off + sums * np.array([np.abs(row[:place]).sum() for place, row in enumerate(products)])
    terms, own = 2 * gains + np.diag(products), 2 * errors + off
    squares = np.cumsum(terms) + sums * np.cumsum(np.abs(terms)) + np.cumsum(own) * (1 + sums)
    lengths = np.sqrt(np.maximum(0.0, np.concatenate([[0.0], squares[:-1]])))
    ranges = up(rate * longest * lengths, relative=1e-12)
    if ranges.max() >= 1:
        return 2.0
    paid = float(_ratio(ranges) @ (np.abs(gains) + errors) ** 2) * rate**2
    along = (float(gains.sum()) + 2 * float(errors.sum()) + (log + paid) * (1 + 2 * sums) / rate) / whole
    largest = _largest(products, weights / weights[0]) + count * off
    all_at_once = np.array([up(slope * longest * weights[0], relative=LIBRARY)])
    paid = float(_ratio(all_at_once)[0]) * slope**2 * largest * weights[0] ** 2
    across = (log + paid) * (1 + 2 * sums) / slope / whole
    root = math.sqrt(max(0.0, across**2 / 4 + along) + 4 * _EPS * across**2)
    return float(up(across / 2 + root, relative=1e-12))


def _largest(products: _Floats, weights: _Floats) -> float:
    """At least the largest eigenvalue of the products times both weights, which are at most 1.

    A number above it by far more than rounding is one for which Cholesky's method comes to its end.
    """
    matrix = products * weights
    matrix *= weights[:, None]
    count = len(matrix)
    norm = float(np.linalg.norm(matrix)) * (1 + 1e-9)
    vector, value = np.ones(count), 0.0
    for _ in range(_TURNS):
        vector = matrix @ vector
        value = float(np.linalg.norm(vector))
        if not value:
            return norm
        vector /= value
    np.negative(matrix, out=matrix)
    places, diagonal = np.diag_indices(count), -np.diag(matrix)
    for _ in range(_TRIES):
        value *= _ABOVE
        if value >= norm:
            break
        matrix[places] = value - diagonal
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            continue
        return value * (1 + 8 * _EPS * count**2)
    return norm
