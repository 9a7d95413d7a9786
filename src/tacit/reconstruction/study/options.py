"""What is to be bounded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

METHODS = ("identify", "bayes", "two-point", "multi-point", "hcr")
"""In the order of the report: what speaks about real attackers comes first."""
PER_INPUT = ("two-point", "multi-point", "hcr")
"""Methods that bound input by input; the others take all inputs together."""


def needs_gaussian(method: str, *, public: bool) -> bool:
    """Whether the method has a theorem for Gaussian noise alone; with public inputs `bayes` takes any."""
    return method in ("identify", "multi-point") or (method == "bayes" and not public)


def kind_of(noise: str) -> str:
    """The KIND of KIND:SIZE, before it is rounded."""
    return noise.rpartition(":")[0].rpartition(":")[2]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to bound: a model, its inputs, the noise, and how.

    `limit` is how many inputs are bounded one by one; the methods over a gallery (identify, bayes) use all of them.
    With `public` inputs, bayes is about someone who knows their mean and covariance, and does not hold the data.
    `basis` "auto" takes images in cosine modes and vectors entry by entry. Without `feature_error` the type of the
    model's weights decides.
    """

    model: str
    weights: Path | None
    data: Path
    noise: str
    methods: tuple[str, ...]
    basis: str
    out: Path
    resume: bool
    limit: int | None
    seed: int
    feature_error: float | None = None
    public: Path | None = None
    engine: str = "local"


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """The inputs that are bounded one by one; of all inputs, how much they vary, and the least and greatest entry."""

    inputs: NDArray[np.float64]
    spread: float
    box: tuple[float, float]
