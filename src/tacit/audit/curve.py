"""Two readings beside a certificate: δ(ε) measured directly, and what differential privacy would imply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import up
from ..theory import certificates, leakage
from . import plug_in
from .cells import STEPS
from .certificate import SCOPE
from .certifying import assumptions_of, released
from .tally import Tally

EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class PrivacyCurve:
    """Upper bounds on δ at a few ε, which hold together and in both directions.

    Attributes
    ----------
    epsilons
        The privacy losses, ascending.
    deltas
        The upper bound on δ at each.
    failure_probability
        The chance that the table was so unusual that one of the bounds is false.
    output
        What the adversary sees, in words.
    positive, negative
        The two values of the secret.
    theorem
        The functions of `tacit.theory` that lead from the table to the bounds.
    assumptions
        What the bounds rest on.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    failure_probability: float
    output: str
    positive: Any
    negative: Any
    theorem: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    def guarantee_of(self, epsilon: float) -> Guarantee:
        """Return the bound on δ at one ε as a guarantee.

        Parameters
        ----------
        epsilon
            The privacy loss, from the first point of the curve on.
        """
        return Guarantee(
            quantity=f"δ at ε = {epsilon!r} between {self.positive!r} and {self.negative!r}, by {self.output}",
            side="at_most",
            value=float(self.hockey_stick(epsilon)),
            adversary=Adversary.OUTPUT.scoped(self.output),
            theorem=self.theorem,
            assumptions=self.assumptions,
            failure_probability=self.failure_probability,
            detail={"scope": SCOPE},
        )

    @overload
    def hockey_stick(self, epsilon: float) -> float: ...

    @overload
    def hockey_stick(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...

    def hockey_stick(self, epsilon: ArrayLike) -> float | NDArray[np.float64]:
        """Bound δ at any ε from the first point on.

        δ is convex and decreasing in e^ε, so chords between the points are upper bounds.

        Parameters
        ----------
        epsilon
            One ε or several.

        Returns
        -------
        Upper bounds on δ, of the same shape.
        """
        wanted = validate.array(
            "epsilon", epsilon, at_least=self.epsilons[0], at_most=700, remedy="start where the curve starts"
        )
        ratios = np.exp(np.array(self.epsilons))
        found: NDArray[np.float64] = np.interp(np.exp(wanted), ratios, np.array(self.deltas))
        return np.minimum(1.0, up(found, relative=1e-12))


@renamed(delta="failure_probability")
def privacy_curve(
    tally: Tally, *, failure_probability: float, epsilons: tuple[float, ...] = EPSILONS, name: str = "the output"
) -> PrivacyCurve:
    """Bound the δ(ε) of the two classes' outputs by a confidence limit at each ε.

    Rows must be independent draws of their class. For large ε the limits are wide, and `Certificate.hockey_stick` is
    the smaller bound.

    Parameters
    ----------
    tally
        The counts of the table, without bins; with noise, of at most 3 columns.
    failure_probability
        The chance that one of the bounds is false; each ε gets an equal share.
    epsilons
        Where to measure, ascending and chosen before the data was seen.
    name
        The output in words, for reports.

    Raises
    ------
    InputError
        Where the tally is of another kind, or a value is out of range.
    """
    failure = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    if not isinstance(tally, Tally) or tally.width is not None or (tally.noise and tally.columns not in STEPS):
        raise InputError(
            "tally",
            tally,
            requirement="must be a Tally without width, and with at most 3 columns where there is noise",
            remedy="use the hockey_stick of a Certificate instead",
        )
    output = validate.text("name", name, remedy="name what the adversary sees")
    tally.check_noise()
    points = validate.array(
        "epsilons", epsilons, at_least=0, at_most=300, dimensions=1, remedy="use a few, e.g. 0, 1, 2"
    )
    if (np.diff(points) <= 0).any():
        raise InputError("epsilons", epsilons, requirement="must ascend", remedy="sort them")
    share = failure / (2 * len(points))
    sizes = (tally.positives, tally.negatives)
    deltas = []
    measured = plug_in.hockey_sticks(tally, map(math.exp, points.tolist()))
    for epsilon, sides in zip(points.tolist(), measured, strict=True):
        deltas.append(
            max(
                certificates.hockey_stick_limit(
                    side, epsilon=epsilon, positives=first, negatives=second, failure_probability=share
                )
                for side, (first, second) in zip(sides, (sizes, sizes[::-1]), strict=True)
            )
        )
    # δ falls with ε, so an earlier limit holds later as well.
    lowest = np.minimum.accumulate(deltas)
    method = "noise added" if tally.noise_added is not None else "discrete" if tally.noise is None else "noisy"
    functions = ["binning_root"] * (method != "discrete") + ["smoothing_variation"] * (method == "noise added")
    return PrivacyCurve(
        epsilons=tuple(points.tolist()),
        deltas=tuple(lowest.tolist()),
        failure_probability=failure,
        output=released(tally, method, output),
        positive=tally.positive,
        negative=tally.negative,
        theorem=tuple(f"theory.certificates.{function}" for function in (*functions, "hockey_stick_limit")),
        assumptions=assumptions_of(tally, method, "by class"),
    )


@dataclass(frozen=True, kw_only=True)
class ImpliedByDP:
    """What (ε, δ)-differential privacy of a release implies for everyone, whatever else they know.

    Unlike a certificate it holds for every single record and needs no table, but it trusts the mechanism to be private.

    Attributes
    ----------
    epsilon
        The privacy loss.
    delta
        The δ of differential privacy.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        leakage.private_advantage(self.epsilon, delta=self.delta)  # refuses what is no privacy loss

    @property
    def advantage(self) -> float:
        """Upper bound on TPR − FPR of any guess."""
        return leakage.private_advantage(self.epsilon, delta=self.delta)

    @property
    def balanced_accuracy(self) -> float:
        """Upper bound on the share of right guesses where both secrets are equally likely."""
        return min(1.0, up((1 + self.advantage) / 2))

    @property
    def auc(self) -> float:
        """Upper bound on the area under the ROC curve of any score."""
        return leakage.private_auc(self.epsilon, delta=self.delta)

    @property
    def squared(self) -> float:
        """Upper bound on v = 1 − the least mean squared error of a guess of the secret, coded ±1."""
        return leakage.private_squared(self.epsilon, delta=self.delta)

    @property
    def bits(self) -> float:
        """Upper bound on the information about the secret, in bits."""
        return min(1.0, up(leakage.private_information(self.epsilon, delta=self.delta) / math.log(2), relative=1e-14))

    @overload
    def tpr_at(self, false_positive_rate: float) -> float: ...

    @overload
    def tpr_at(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]: ...

    def tpr_at(self, false_positive_rate: ArrayLike) -> float | NDArray[np.float64]:
        """Bound the true positive rate of any test at a false positive rate.

        Parameters
        ----------
        false_positive_rate
            One rate or several, in [0, 1].

        Returns
        -------
        Upper bounds on the true positive rate, of the same shape.
        """
        return leakage.private_roc(false_positive_rate, epsilon=self.epsilon, delta=self.delta)
