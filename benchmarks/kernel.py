"""The limit for noisy vectors of more than three numbers beside one by a kernel, in the same run.

python benchmarks/kernel.py

The second is the kernel limit of docs/proofs/certificates.md, "More than three coordinates": a valid limit, up to
rounding, for total variation alone and with the whole failure probability, of which the first leaves a part to v.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse.linalg import eigsh

from tacit.audit import certify
from tacit.theory.confidence import binomial_upper

FAILURE = 0.05
OWN, KEPT, WIDER, MOST = 0.2, 0.998, 1.5, 0.7
"""Pairs that fix the kernel; of these, what lies inside; the kernel's spread over theirs; and the largest λ·range."""

_Floats = NDArray[np.float64]


class Kernel:
    """K(t, t′) = ∫ φ(y − t) φ(y − t′)/ω(y) dy for Gaussian noise φ and a Gaussian ω fitted to some outputs."""

    def __init__(self, outputs: _Floats, noise: float) -> None:
        self.mean, self.noise = outputs.mean(axis=0), noise
        spread, self.axes = np.linalg.eigh(np.cov((outputs - self.mean).T))
        wide = noise**2 + WIDER * np.maximum(0.0, spread)
        self.left = wide - noise**2 / 2
        self.log = float(np.log(wide / (math.sqrt(2) * noise * np.sqrt(self.left))).sum())
        own = self.sizes(self.places(outputs))
        self.largest = float(np.quantile(own, KEPT))

    def places(self, outputs: _Floats) -> _Floats:
        return (outputs - self.mean) @ self.axes

    def sizes(self, places: _Floats) -> _Floats:
        """ln K(t, t)."""
        return self.log + (places**2 / (2 * self.left)).sum(axis=1)

    def __call__(self, here: _Floats, there: _Floats) -> _Floats:
        narrow, wide = 1 / (4 * self.noise**2), 1 / (8 * self.left)
        ends = [(one**2 * (wide - narrow)).sum(axis=1) for one in (here, there)]
        found: _Floats = np.exp(self.log + ends[0][:, None] + ends[1] + (here * 2 * (wide + narrow)) @ there.T)
        return found

    def products(self, pairs: tuple[_Floats, _Floats]) -> tuple[_Floats, list[int]]:
        """⟨Z_i, Z_j⟩ of the differences of pairs, without what lies outside; and how many of each class do."""
        places = [self.places(one) for one in pairs]
        inside = [self.sizes(one) <= self.largest for one in places]
        found = np.zeros((len(places[0]),) * 2)
        for a, here in enumerate(places):
            for b, there in enumerate(places):
                found += (-1) ** (a + b) * self(here, there) * np.outer(inside[a], inside[b])
        return found, [int((~one).sum()) for one in inside]


def rate(products: _Floats) -> _Floats:
    """ψ/λ² for a product of λ and range: (−ln(1−u) − u)/u², of which ½ is the limit at 0."""
    u = np.maximum(products, 1e-4)
    found: _Floats = (-np.log1p(-u) - u) / u**2
    return found


def kernel_limit(ones: _Floats, zeros: _Floats, *, noise: float, failure: float, seed: int = 0) -> float:
    """The upper confidence limit for total variation."""
    source, pairs = np.random.default_rng(seed), min(len(ones), len(zeros))
    ones, zeros = (one[source.permutation(len(one))[:pairs]] for one in (ones, zeros))
    own = int(OWN * pairs)
    kernel = Kernel(np.concatenate([ones[:own], zeros[:own]]), noise)
    guess, _ = kernel.products((ones[:own], zeros[:own]))
    products, outside = kernel.products((ones[own:], zeros[own:]))
    left, log = len(products), math.log(4 / failure)
    longest = math.sqrt(2 * math.exp(kernel.largest))
    weights = np.arange(left - 1, -1, -1.0)
    whole = float(weights.sum())
    # λ and l by the rows that fix the kernel: the size of a difference, of a product of two, and of their mean.
    size, pairs_of_own = float(np.diag(guess).mean()), own * (own - 1)
    square = float((guess**2).sum() - (np.diag(guess) ** 2).sum()) / pairs_of_own
    mean = max(0.0, float(guess.sum() - np.trace(guess)) / pairs_of_own) + 2 * math.sqrt(square / pairs_of_own)
    steps, tried = np.arange(left), np.geomspace(1e-4, MOST, 400)
    lengths = steps * size + steps**2 * mean
    lambdas = tried / (longest * math.sqrt(lengths[-1]))
    forecast = steps * square + (steps * mean) ** 2
    costs = [(log + (rate(a * longest * np.sqrt(lengths)) * a**2 * forecast).sum()) / a for a in lambdas]
    chosen = float(lambdas[int(np.argmin(costs))])
    first = eigsh(guess, k=1, return_eigenvectors=False)[0] / own * float((weights**2).sum())
    slopes = tried / (longest * weights[0])
    slope = float(slopes[int(np.argmin((log + rate(tried) * slopes**2 * first) / slopes))])
    # The limit itself.
    gains = np.tril(products, -1).sum(axis=1)
    lengths = np.sqrt(np.maximum(0.0, np.cumsum(2 * gains + np.diag(products)) - 2 * gains - np.diag(products)))
    ranges = chosen * longest * lengths
    if ranges.max() >= 1:
        return 1.0
    along = float(gains.sum() + (log + (rate(ranges) * chosen**2 * gains**2).sum()) / chosen) / whole
    largest = float(eigsh(products * np.outer(weights, weights), k=1, return_eigenvectors=False)[0])
    across = float(log + rate(np.array(slope * longest * weights[0])) * slope**2 * largest) / slope / whole
    length = across / 2 + math.sqrt(max(0.0, across**2 / 4 + along))
    hidden = sum(binomial_upper(one, trials=left, failure_probability=failure / 4) for one in outside)
    return min(1.0, (length + hidden) / 2)


def main() -> None:
    print(f"certified advantage, outputs N(0, 1) in each coordinate, one of them moved; failure probability {FAILURE}")
    for rows, columns, noise, truth in (
        (4_000, 32, 2.0, 0.0),
        (6_000, 64, 2.0, 0.0),
        (4_000, 32, 4.0, 0.0),
        (4_000, 32, 8.0, 0.0),
        (4_000, 32, 16.0, 0.0),
        (10_000, 32, 4.0, 0.0),
        (4_000, 8, 1.0, 0.0),
        (4_000, 8, 2.0, 0.0),
        (4_000, 8, 4.0, 0.0),
        (500, 8, 4.0, 0.0),
        (4_000, 32, 8.0, 0.03),
        (4_000, 32, 8.0, 0.1),
        (4_000, 8, 4.0, 0.1),
    ):
        source, secret = np.random.default_rng(0), np.arange(rows) % 2
        outputs = source.normal(size=(rows, columns))
        outputs[:, 0] += 2 * stats.norm.ppf((1 + truth) / 2) * math.sqrt(1 + noise**2) * secret
        start = time.process_time()
        today = certify(secret, outputs, noise=noise, failure_probability=FAILURE).advantage
        middle = time.process_time()
        kernel = kernel_limit(outputs[secret == 1], outputs[secret == 0], noise=noise, failure=FAILURE)
        print(
            f"  {rows:6d} rows of {columns:2d}, noise {noise:4g}, truth {truth:4g}: {today:.4f}, by a kernel "
            f"{kernel:.4f}   ({middle - start:.0f} and {time.process_time() - middle:.0f} s of the processor)",
            flush=True,
        )


if __name__ == "__main__":
    main()
