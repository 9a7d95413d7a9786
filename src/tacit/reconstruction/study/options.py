"""The task of `tacit bound`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..noise import Noise, gaussian_of

METHODS = ("identify", "bayes", "two-point", "multi-point", "hcr")
"""In the order of the report: bounds for real attackers come first."""
PER_INPUT = ("two-point", "multi-point", "hcr")
"""Methods that bound one input at a time; the others use all inputs together."""


def has_theorem(method: str, noise: Noise, *, public: bool) -> bool:
    """Return whether the method can bound releases with this noise; `bayes` with public inputs takes any noise."""
    needs_gaussian = method in ("identify", "multi-point") or (method == "bayes" and not public)
    return gaussian_of(noise) is not None or not needs_gaussian


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to bound, and how.

    Attributes
    ----------
    noise
        The noise added to the features.
    methods
        Names from `METHODS`, in that order.
    basis
        "dct" or "pixel".
    limit
        How many inputs are bounded one by one; `identify` and `bayes` always use all of them as candidates.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones.
    public
        Public inputs. The prior of `bayes` is then a Gaussian with their mean and covariance.
    engine
        Where batches run: "local", or the address of a Dask cluster.
    model
        FILE.py:FUNCTION, where the module comes from a file.
    untrained
        Whether that module has parameters and no weights were loaded into it.
    out
        The folder for finished batches; None keeps nothing.
    resume
        Whether to continue in a folder that an earlier run of this task left behind.
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
    untrained: bool = False
    out: Path | None = None
    resume: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """The inputs that are bounded one by one.

    Attributes
    ----------
    inputs
        One input per row.
    spread
        The standard deviation of an entry over all inputs.
    box
        The least and the greatest entry of all inputs.
    """

    inputs: NDArray[np.float64]
    spread: float
    box: tuple[float, float]
