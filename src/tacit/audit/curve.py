"""Readings beside a certificate: δ(ε) measured directly, and what differential privacy would imply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import up
from ..theory import certificates, leakage
from . import plug_in
from .cells import STEPS
from .tally import Tally

EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class PrivacyCurve:
    """Upper bounds δ at a few ε, both directions and all ε together except with probability `failure_probability`."""

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    failure_probability: float

    @overload
    def hockey_stick(self, epsilon: float) -> float: ...

    @overload
    def hockey_stick(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...

    def hockey_stick(self, epsilon: ArrayLike) -> float | NDArray[np.float64]:
        """δ(ε) at any ε from the first on: on chords in e^ε between the points, as δ is convex and falls in e^ε."""
        wanted = validate.array(
            "epsilon", epsilon, at_least=self.epsilons[0], at_most=700, remedy="start where the curve starts"
        )
        ratios = np.exp(np.array(self.epsilons))
        found: NDArray[np.float64] = np.interp(np.exp(wanted), ratios, np.array(self.deltas))
        return np.minimum(1.0, up(found, relative=1e-12))


def privacy_curve(tally: Tally, *, delta: float, epsilons: tuple[float, ...] = EPSILONS) -> PrivacyCurve:
    """The δ(ε) that the two classes' outputs have, by a confidence limit at each ε, δ shared over all of them.

    Rows are independent draws of their class. The choice of `epsilons` comes before the data. For large ε the limits
    are wide: then `Certificate.hockey_stick` is the smaller one.
    """
    failure = validate.probability("delta", delta, remedy="use a small probability such as 0.05")
    if not isinstance(tally, Tally) or tally.width is not None or (tally.noise and tally.columns not in STEPS):
        raise InputError(
            "tally",
            tally,
            requirement="must be a Tally without width, and with at most 3 columns where there is noise",
            remedy="use Certificate.hockey_stick",
        )
    tally.check_noise()
    points = validate.array(
        "epsilons", epsilons, at_least=0, at_most=300, dimensions=1, remedy="use a few, e.g. 0, 1, 2"
    )
    if (np.diff(points) <= 0).any():
        raise InputError("epsilons", epsilons, requirement="must ascend", remedy="sort them")
    share = failure / (2 * len(points))
    sizes = (tally.positives, tally.negatives)
    deltas = []
    for epsilon in points.tolist():
        sides = plug_in.hockey_sticks(tally, math.exp(epsilon))
        deltas.append(
            max(
                certificates.hockey_stick_limit(
                    side, epsilon=epsilon, positives=first, negatives=second, failure_probability=share
                )
                for side, (first, second) in zip(sides, (sizes, sizes[::-1]), strict=True)
            )
        )
    # δ falls with ε: an earlier limit holds later as well.
    lowest = np.minimum.accumulate(deltas)
    return PrivacyCurve(epsilons=tuple(points.tolist()), deltas=tuple(lowest.tolist()), failure_probability=failure)


@dataclass(frozen=True, kw_only=True)
class ImpliedByDP:
    """What (ε, δ)-differential privacy of the release implies for everyone, whatever else they know.

    To be read beside a certificate: this one holds for the worst record and needs no table, but trusts the mechanism.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        leakage.private_advantage(self.epsilon, delta=self.delta)  # refuses what is no privacy loss

    @property
    def advantage(self) -> float:
        """At most this is TPR − FPR of any guess."""
        return leakage.private_advantage(self.epsilon, delta=self.delta)

    @property
    def balanced_accuracy(self) -> float:
        """At most this share of guesses is right where both secrets are equally likely."""
        return min(1.0, up((1 + self.advantage) / 2))

    @property
    def auc(self) -> float:
        """At most this is the area under the ROC curve of any score."""
        return leakage.private_auc(self.epsilon, delta=self.delta)

    @property
    def squared(self) -> float:
        """At most this is v, 1 less the least mean squared error."""
        return leakage.private_squared(self.epsilon, delta=self.delta)

    @property
    def bits(self) -> float:
        """At most so many bits does the output tell about the secret."""
        return min(1.0, up(leakage.private_information(self.epsilon, delta=self.delta) / math.log(2), relative=1e-14))

    @overload
    def tpr_at(self, false_positive_rate: float) -> float: ...

    @overload
    def tpr_at(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]: ...

    def tpr_at(self, false_positive_rate: ArrayLike) -> float | NDArray[np.float64]:
        """At most these are the true positive rates of any test with the rates given."""
        return leakage.private_roc(false_positive_rate, epsilon=self.epsilon, delta=self.delta)
