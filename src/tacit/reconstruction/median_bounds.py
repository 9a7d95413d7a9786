"""The median of many bounds as a guarantee, the inputs' own spread beside it, and a picture of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Guarantee
from ..core.wording import safe_text

_Array = NDArray[np.float64]


def prior_std(inputs: _Array) -> float:
    """Return the standard deviation of an entry over the inputs: the root mean square over all entries."""
    return float(np.sqrt(np.mean(np.var(inputs, axis=0))))


def median_guarantee(
    method: str,
    values: _Array,
    *,
    spread: float,
    noise: Any,
    feature_error: float,
    how: str = "",
    releases: int = 1,
    evidence: Evidence | None = None,
) -> Guarantee:
    """Return the bound that at least half of the modes of all inputs have.

    Parameters
    ----------
    method
        "two-point", "multi-point" or "hcr".
    values
        The bounds, one input per row.
    spread
        The inputs' own standard deviation, which the statement mentions.
    noise
        The noise of the release.
    feature_error
        The relative error of the features that the bounds allow for.
    how
        What to add to the name of the theorem.
    releases
        How often an input is released, at most.
    evidence
        What a certificate states.
    """
    from . import release_assumptions, unbiased_assumptions

    own = safe_text(spread, toward="nearest", digits=2)
    half = f"for at least half of the {values[0].size} modes of the {len(values)} inputs (whose own spread is {own})"
    kind = "standard deviation of an estimate"
    if method == "two-point":
        kind = "root mean squared error of an estimate, on the worse of two inputs in the data's range"
    return Guarantee(
        quantity=f"{kind}, {half}",
        side="at_least",
        # With an even number, the upper of the two middle values: half of all bounds are at least as large.
        value=float(np.sort(values.ravel())[values.size // 2]),
        adversary=Adversary.ANY if method == "two-point" else Adversary.UNBIASED,
        theorem=_theorem(method, noise, how, releases),
        assumptions=(release_assumptions if method == "two-point" else unbiased_assumptions)(
            noise, feature_error, releases
        ),
        evidence=evidence,
    )


def _theorem(method: str, noise: Any, how: str, releases: int) -> tuple[str, ...]:
    from .repeated import repeated_theorems
    from .two_point import two_point_theorem
    from .unbiased import MULTIPOINT, hcr_theorem

    if method == "hcr":
        return hcr_theorem(noise, f"the published search{how}", releases)
    points = (*MULTIPOINT, *repeated_theorems(noise, releases))
    words, *functions = points if method == "multi-point" else two_point_theorem(noise, releases)
    return (words + how, *functions)


def moved_by(std: _Array, inputs: _Array, *, basis: str, seed: int) -> _Array:
    """Return the inputs with every mode moved by its bound, up or down at random."""
    from scipy.fft import dctn, idctn

    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=inputs.shape)
    moves = signs * np.minimum(std, 1e3 * float(inputs.max() - inputs.min()))
    if basis == "pixel":
        return np.asarray(inputs + moves)
    modes = dctn(inputs, norm="ortho", axes=(-2, -1)) + moves
    return np.asarray(idctn(modes, norm="ortho", axes=(-2, -1)))
