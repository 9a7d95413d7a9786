"""What is to be bounded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

METHODS = ("multi-point", "two-point", "hcr", "identify", "bayes")
PER_INPUT = ("multi-point", "two-point", "hcr")
"""Methods that bound input by input; the others take all inputs together."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to bound: a model, its inputs, the noise, and how.

    `limit` is how many inputs are bounded one by one; the methods over a gallery (identify, bayes) use all of them.
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
    feature_error: float
    engine: str = "local"


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """The inputs that are bounded one by one; of all inputs, how much they vary, and the least and greatest entry."""

    inputs: NDArray[np.float64]
    spread: float
    box: tuple[float, float]
