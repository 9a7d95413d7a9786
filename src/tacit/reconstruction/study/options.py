"""The task of `tacit bound`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..noise import Noise, gaussian_of
from .budget import SECONDS

METHODS = ("identify", "bayes", "two-point", "multi-point", "hcr")
"""In the order in which they run and are reported: bounds for real attackers come first, so that time leaves out last
what says least about them."""
PER_INPUT = ("two-point", "multi-point", "hcr")
"""Methods that bound one input at a time; the others use all inputs together."""


def has_theorem(method: str, noise: Noise, *, prior: bool) -> bool:
    """Return whether the method can bound releases with this noise; `bayes` with a stated prior takes any noise."""
    needs_gaussian = method in ("identify", "multi-point") or (method == "bayes" and not prior)
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
        How many inputs are bounded one by one; None for as many as there is time for. `identify` and `bayes` always use
        all of them as candidates.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones.
    releases
        How often the same input is released, at most, each time with fresh noise.
    public
        Public inputs, to which the prior of `bayes` is fitted, and with which real inputs are attacked.
    prior
        The prior of `bayes`: "auto", "gaussian", "spectrum", "jittered:SIZE", "generator:FILE", or a prior
        itself.
    steps
        Of the chains of `bayes`; None for as many as there is time for.
    seconds
        How long the run may take.
    labels, head
        The class number of each input, and the module that reads it from the features; None without accuracy.
    command
        A command that runs this task; what follows it are more options.
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
    pictures
        Whether to draw the pictures for a page.
    """

    noise: Noise
    methods: tuple[str, ...]
    basis: str
    limit: int | None
    seed: int
    feature_error: float
    public: NDArray[np.float64] | None
    prior: object = "auto"
    steps: int | None = None
    seconds: float = SECONDS
    labels: NDArray[np.int64] | None = None
    head: Any = None
    command: str = ""
    engine: str = "local"
    model: str = ""
    untrained: bool = False
    out: Path | None = None
    resume: bool = False
    releases: int = 1
    pictures: bool = True

    @property
    def states_prior(self) -> bool:
        """Whether the adversary of `bayes` knows a prior, rather than the inputs themselves."""
        return stated(self.public, self.prior)


def stated(public: object, prior: object) -> bool:
    """Return whether there is a prior other than the inputs themselves."""
    return public is not None or not (isinstance(prior, str) and prior == "auto")


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
