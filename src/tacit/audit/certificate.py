"""What nobody who sees an output can learn about a secret: bounds that hold together, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.display import card
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import down, up
from ..core.wording import safe_text
from ..theory import leakage
from .conversions import conversions

if TYPE_CHECKING:
    from ..report import Figure
    from .attempt import Attempt

SCOPE = (
    "It covers exactly this output: who also sees the input, the label, other queries or other models is not covered.",
    "It speaks of the average record, not of the worst: v = 0.01 allows 1 % of the records to be fully exposed.",
    "It is not differential privacy.",
    "Rates and bits are for a secret that is a fair coin, whatever the shares of the classes in the table.",
)
"""What every reader has to be told."""

_LN2 = math.log(2)

READINGS = {
    "advantage": "advantage (TPR − FPR)",
    "balanced accuracy": "balanced accuracy",
    "auc": "area under the ROC curve",
    "bits": "information in bits",
    "squared loss": "least mean squared error of a guess of the secret, ±1",
    "log loss": "least log-loss in nats",
    "error": "least error rate",
}
"""What `Certificate.guarantee_of` takes, and how its quantity begins."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Upper bounds on what an output tells about a secret, valid together except with probability `delta`.

    squared        v = 1 − least mean squared error of a guess of the secret, coded ±1
    information    mutual information in nats
    variation      total variation: the largest advantage TPR − FPR

    All hold for everyone who sees the output and nothing else, whatever their method, and all readings follow.
    `plug_in` is the certified quantity on the table itself. `theorem` names the functions of `tacit.theory` that lead
    from the table to the bounds; `guarantee_of` adds those that lead on to a reading.
    """

    squared: float
    information: float
    variation: float
    plug_in: float
    delta: float
    loss: str
    method: str
    form: str
    sampling: str
    output: str
    positive: Any
    negative: Any
    positives: int
    negatives: int
    theorem: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    caution: str = ""
    """What the table itself makes doubtful; empty if nothing."""

    @property
    def condition(self) -> str:
        """What the claim rests on beside the way rows were drawn, and no table can show; empty if nothing."""
        stated = {"monotone": 1, "lipschitz": 1, "network": 3}.get(self.method, 0)
        return " and ".join(assumption.text for assumption in self.assumptions[:stated])

    @property
    def advantage(self) -> float:
        """At most this is TPR − FPR of any guess."""
        return self.variation

    @property
    def balanced_accuracy(self) -> float:
        """At most this share of guesses is right where both secrets are equally likely."""
        return min(1.0, up((1 + self.variation) / 2))

    @property
    def auc(self) -> float:
        """At most this is the area under the ROC curve of any score."""
        return leakage.auc_upper(squared=self.squared, advantage=self.variation)

    @property
    def bits(self) -> float:
        """At most so many bits does the output tell about the secret."""
        return min(1.0, up(self.information / _LN2, relative=1e-14))

    @property
    def squared_loss(self) -> float:
        """At least this is the mean squared error of any guess of the secret, coded ±1; 1 is no knowledge."""
        return max(0.0, down(1 - self.squared))

    @property
    def log_loss(self) -> float:
        """At least this is the log-loss of any guess, in nats; ln 2 is no knowledge."""
        return max(0.0, down(_LN2 - self.information))

    @property
    def error(self) -> float:
        """At least this share of guesses is wrong where both secrets are equally likely; ½ is no knowledge."""
        return max(0.0, down((1 - self.variation) / 2))

    @overload
    def tpr_at(self, false_positive_rate: float) -> float: ...

    @overload
    def tpr_at(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]: ...

    def tpr_at(self, false_positive_rate: ArrayLike) -> float | NDArray[np.float64]:
        """At most these are the true positive rates of any test, or family of tests, with the rates given."""
        return leakage.roc_upper(false_positive_rate, squared=self.squared, advantage=self.variation)

    @overload
    def hockey_stick(self, epsilon: float) -> float: ...

    @overload
    def hockey_stick(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...

    def hockey_stick(self, epsilon: ArrayLike) -> float | NDArray[np.float64]:
        """δ(ε): with it the two classes' outputs are (ε, δ)-indistinguishable, both ways, on average over records."""
        epsilons = validate.array("epsilon", epsilon, at_least=0, at_most=700, remedy="give the privacy loss, e.g. 1.0")
        found = [
            leakage.hockey_stick_upper(float(one), squared=self.squared, advantage=self.variation)
            for one in epsilons.ravel()
        ]
        return np.array(found).reshape(epsilons.shape)[()]

    def accuracy(self, prior: float) -> float:
        """At most this share of guesses is right where the positive secret has the prior probability given."""
        p = validate.probability("prior", prior, remedy="give the share of the positive class")
        rare = min(p, 1 - p)
        # δ(ε) falls: at 700, the largest ε that it is computed for, it is no smaller than beyond.
        epsilon = min(700.0, max(0.0, down(math.log((1 - rare) / rare), relative=1e-14)))
        return min(1.0, up(1 - rare + rare * float(self.hockey_stick(epsilon)), relative=1e-14))

    @property
    def guarantee(self) -> Guarantee:
        """The headline: the largest advantage of anyone."""
        return self.guarantee_of("advantage")

    def guarantee_of(self, reading: str) -> Guarantee:
        """One of `READINGS` as a guarantee, with all assumptions and the scope."""
        validate.choice("reading", reading, tuple(READINGS), remedy="use 'advantage' for the headline")
        value = float(getattr(self, reading.replace(" ", "_")))
        return Guarantee(
            quantity=self.quantity(reading),
            side="at_least" if reading in ("squared loss", "log loss", "error") else "at_most",
            value=value,
            adversary=Adversary.OUTPUT.scoped(self.output),
            theorem=(*self.theorem, *conversions(self.loss, self.method, reading)),
            assumptions=self.assumptions,
            failure_probability=self.delta,
            detail={
                "squared": self.squared,
                "information": self.information,
                "variation": self.variation,
                "plug_in": self.plug_in,
                "loss": self.loss,
                "method": self.method,
                "form": self.form,
                "sampling": self.sampling,
                "positives": self.positives,
                "negatives": self.negatives,
                "caution": self.caution,
                "scope": SCOPE,
            },
        )

    def quantity(self, reading: str) -> str:
        """The quantity of that guarantee; attacks that are compared with it have to name the same."""
        return f"{READINGS[reading]} in telling {self.positive!r} from {self.negative!r} by {self.output}"

    def plot(self, attempts: Sequence[Attempt] = ()) -> Figure:
        """The region that no ROC curve leaves, and those of `attempts` inside it; a notebook shows it."""
        from ..report import Figure, figures

        rates = (np.linspace(0, 1, 201) ** 2).tolist()
        return Figure(
            title=f"{self.positive!r} told from {self.negative!r} by {self.output}",
            caption=f"Nobody who sees only {self.output} leaves the shaded region, whatever the method"
            + (f", if {self.condition}" if self.condition else "")
            + ". The diagonal is guessing."
            + " Lines: attacks, on rows of their own, which may stray by chance." * bool(attempts),
            alternative="True against false positive rate: the region reaches "
            f"{safe_text(self.advantage, toward='up')} above the diagonal.",
            svg=figures.roc(
                rates, np.asarray(self.tpr_at(rates)).tolist(), {attempt.name: attempt.roc for attempt in attempts}
            ),
        )

    def _repr_html_(self) -> str:
        guarantees = (self.guarantee_of(reading) for reading in READINGS)
        readings = tuple(f"{READINGS[name]}: {one.bound_text}" for name, one in zip(READINGS, guarantees, strict=True))
        headline = f"What {self.output} tells about {self.positive!r} or {self.negative!r}"
        chance, scope = self.guarantee.chance_text, (*([self.caution] if self.caution else []), *SCOPE)
        return card(headline, [(f"proven, {chance}", readings), *self.guarantee.facts[1:], ("mind", scope)])

    def meets(self, *, advantage: float) -> bool:
        """Whether the certificate keeps every adversary's advantage at or below a ceiling."""
        ceiling = validate.number("advantage", advantage, at_least=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
        return self.advantage <= ceiling
