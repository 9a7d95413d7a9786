"""What is to be bounded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..noise import Noise, gaussian_of

METHODS = ("identify", "bayes", "two-point", "multi-point", "hcr")
"""In the order of the report: what speaks about real attackers comes first."""
PER_INPUT = ("two-point", "multi-point", "hcr")
"""Methods that bound input by input; the others take all inputs together."""


def has_theorem(method: str, noise: Noise, *, public: bool) -> bool:
    """Whether the method bounds releases with this noise; with public inputs `bayes` takes any."""
    needs_gaussian = method in ("identify", "multi-point") or (method == "bayes" and not public)
    return gaussian_of(noise) is not None or not needs_gaussian


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to bound, and how.

    `limit` is how many inputs are bounded one by one; the methods over a gallery (identify, bayes) use all of them.
    With `public` inputs, bayes is about someone who knows their mean and covariance, and does not hold the data.
    Batches are kept in the folder `out`, if there is one, which then belongs to the factory `model` of a file.
    """

    noise: Noise
    methods: tuple[str, ...]
    basis: str
    limit: int | None
    seed: int
    feature_error: float
    public: NDArray[np.float64] | None
    engine: str = "local"
    model: str = ""
    out: Path | None = None
    resume: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """The inputs that are bounded one by one; of all inputs, how much they vary, and the least and greatest entry."""

    inputs: NDArray[np.float64]
    spread: float
    box: tuple[float, float]
