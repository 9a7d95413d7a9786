"""The result of an audit: bounds on what an output tells about a secret, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.deprecation import renamed
from ..core.display import Carded, Rows
from ..core.evidence import Evidence
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.rounding import down, up
from ..core.wording import safe_text
from ..theory import certificates, leakage
from .conversions import theorem_of
from .limits import ByPairs, shares

if TYPE_CHECKING:
    from ..report import Figure
    from .attempt import Attempt

SCOPE = (
    "The certificate covers exactly this output, not people who also see the input, labels, other queries or models.",
    "It is about the average record: an advantage of 0.01 may also mean that 1 % of the records are fully exposed.",
    "It is not differential privacy.",
    "Rates and bits are for a secret whose two values are equally likely, whatever their shares in the table.",
)
"""What a certificate does not say; every report ends its summary with these sentences."""

_LN2 = math.log(2)
_LEAST_DRAWN = 1e-4  # false positive rate, with logarithmic axes

READINGS = {
    "advantage": "advantage (TPR − FPR)",
    "balanced accuracy": "balanced accuracy",
    "auc": "area under the ROC curve",
    "bits": "information in bits",
    "squared loss": "least mean squared error of a guess of the secret, ±1",
    "log loss": "least log-loss in nats",
    "error": "least error rate",
}
"""The readings that `Certificate.guarantee_of` takes, and how the quantity of each begins."""


@renamed(delta="failure_probability")
@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Carded):
    """Upper bounds on what an output tells about a secret, for everyone who sees the output and nothing else.

    All bounds hold together, except with probability `failure_probability`, whatever the adversary's method. All
    readings (`advantage`, `auc`, `bits`, `tpr_at`, …) follow from them.

    Attributes
    ----------
    squared
        Upper bound on v = 1 − the least mean squared error of a guess of the secret, coded ±1.
    information
        Upper bound on the mutual information of output and secret, in nats.
    variation
        Upper bound on total variation, which is the largest advantage TPR − FPR.
    plug_in
        The certified quantity as measured on the table itself.
    failure_probability
        The chance that the rows of the table were so unusual that a bound is false.
    loss, method, form, sampling
        How the certificate was made, as `certify` takes them. The method is "continuous" where nothing can be
        certified, and "none" for a slice with one class.
    output
        What the adversary sees, in words.
    positive, negative
        The two values of the secret.
    positives, negatives
        Rows of each.
    theorem
        The functions of `tacit.theory` that lead from the table to the bounds; `guarantee_of` appends those that lead
        to a reading.
    assumptions
        What the bounds rest on.
    caution
        A doubt that the table itself raises; empty if there is none.
    cells
        The rows of each output with the positive and the negative secret, sorted, if the bounds follow from these
        counts alone; else None.
    by_pairs
        The limit for v from pairs of rows, if there is one: its value, its λ, and the seed of the rows drawn.
    sticks
        At a few ε, the largest P₁(A) − e^ε P₀(A) on the table itself, and the same with the classes exchanged; `curve`
        has their limits.
    """

    squared: float
    information: float
    variation: float
    plug_in: float
    failure_probability: float
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
    cells: NDArray[np.int64] | None = field(default=None, compare=False)
    by_pairs: ByPairs | None = field(default=None, compare=False)
    sticks: tuple[tuple[float, float, float], ...] = ()

    @property
    def condition(self) -> str:
        """The assumptions beyond how rows were drawn that no table can confirm; empty if there are none."""
        if self.method == "noisy" and self.caution:
            return "the table holds the output without noise, although its numbers look as if they held it"
        stated = {"monotone": 1, "lipschitz": 1, "network": 3}.get(self.method, 0)
        return " and ".join(assumption.text for assumption in self.assumptions[:stated])

    @property
    def advantage(self) -> float:
        """Upper bound on TPR − FPR of any guess."""
        return self.variation

    @property
    def balanced_accuracy(self) -> float:
        """Upper bound on the share of right guesses where both secrets are equally likely."""
        return min(1.0, up((1 + self.variation) / 2))

    @property
    def auc(self) -> float:
        """Upper bound on the area under the ROC curve of any score."""
        return leakage.auc_upper(squared=self.squared, advantage=self.variation)

    @property
    def bits(self) -> float:
        """Upper bound on the information about the secret, in bits."""
        return min(1.0, up(self.information / _LN2, relative=1e-14))

    @property
    def squared_loss(self) -> float:
        """Lower bound on the mean squared error of any guess of the secret, coded ±1; 1 is no knowledge."""
        return max(0.0, down(1 - self.squared))

    @property
    def log_loss(self) -> float:
        """Lower bound on the log-loss of any guess, in nats; ln 2 is no knowledge."""
        return max(0.0, down(_LN2 - self.information))

    @property
    def error(self) -> float:
        """Lower bound on the share of wrong guesses where both secrets are equally likely; ½ is no knowledge."""
        return max(0.0, down((1 - self.variation) / 2))

    @overload
    def tpr_at(self, false_positive_rate: float) -> float: ...

    @overload
    def tpr_at(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]: ...

    def tpr_at(self, false_positive_rate: ArrayLike) -> float | NDArray[np.float64]:
        """Bound the true positive rate of any test, or family of tests, at a false positive rate.

        Parameters
        ----------
        false_positive_rate
            One rate or several, in [0, 1].

        Returns
        -------
        Upper bounds on the true positive rate, of the same shape.
        """
        least: NDArray[np.float64]
        least = leakage.roc_upper(false_positive_rate, squared=self.squared, advantage=self.variation)
        for epsilon, delta in self.curve:
            least = np.minimum(least, leakage.private_roc(false_positive_rate, epsilon=epsilon, delta=delta))
        return least

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Upper bounds on δ at a few ε, measured directly: they hold together with all other bounds, and both ways."""
        share = shares(self.loss, self.form, self.method).sticks * self.failure_probability
        rows, found, least = (self.positives, self.negatives), [], 1.0
        for epsilon, *sides in self.sticks:
            limits = [
                certificates.hockey_stick_limit(
                    side,
                    epsilon=epsilon,
                    positives=one,
                    negatives=other,
                    failure_probability=share / (2 * len(self.sticks)),
                )
                for side, (one, other) in zip(sides, (rows, rows[::-1]), strict=True)
            ]
            least = min(least, max(limits))  # δ falls with ε
            found.append((epsilon, least))
        return tuple(found)

    @overload
    def hockey_stick(self, epsilon: float) -> float: ...

    @overload
    def hockey_stick(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...

    def hockey_stick(self, epsilon: ArrayLike) -> float | NDArray[np.float64]:
        """Bound δ(ε): the two classes' outputs are (ε, δ)-indistinguishable, both ways, on average over records.

        Parameters
        ----------
        epsilon
            One ε or several, from 0 to 700.

        Returns
        -------
        Upper bounds on δ, of the same shape.
        """
        epsilons = validate.array("epsilon", epsilon, at_least=0, at_most=700, remedy="give the privacy loss, e.g. 1.0")
        found = [
            leakage.hockey_stick_upper(float(one), squared=self.squared, advantage=self.variation)
            for one in epsilons.ravel()
        ]
        # δ is convex and falls in e^ε, so chords between points of the curve are bounds; total variation is δ(0).
        points, deltas = zip((0.0, self.variation), *self.curve, strict=True)
        chords = np.minimum(1.0, up(np.interp(np.exp(epsilons), np.exp(points), deltas) + 1e-14, relative=1e-12))
        least: NDArray[np.float64] = np.minimum(np.array(found).reshape(epsilons.shape), chords)[()]
        return least

    def accuracy(self, prior: float) -> float:
        """Bound the share of right guesses where the two secrets are not equally likely.

        Parameters
        ----------
        prior
            The probability of the positive secret.

        Returns
        -------
        Upper bound on the share of right guesses; guessing alone reaches max(prior, 1 − prior).
        """
        p = validate.probability("prior", prior, remedy="give the share of the positive class")
        rare = min(p, 1 - p)
        # δ(ε) falls: at 700, the largest ε that it is computed for, it is no smaller than beyond.
        epsilon = min(700.0, max(0.0, down(math.log((1 - rare) / rare), relative=1e-14)))
        return min(1.0, up(1 - rare + rare * float(self.hockey_stick(epsilon)), relative=1e-14))

    @property
    def guarantee(self) -> Guarantee:
        """The main guarantee: nobody's advantage exceeds a bound."""
        return self.guarantee_of("advantage")

    def guarantee_of(self, reading: str) -> Guarantee:
        """Return one reading as a guarantee, with all assumptions and the scope.

        Parameters
        ----------
        reading
            A key of `READINGS`, e.g. "auc".
        """
        validate.choice("reading", reading, tuple(READINGS), remedy="use 'advantage' for the main one")
        value = float(getattr(self, reading.replace(" ", "_")))
        return Guarantee(
            quantity=self.quantity(reading),
            side="at_least" if reading in ("squared loss", "log loss", "error") else "at_most",
            value=value,
            adversary=Adversary.OUTPUT.scoped(self.output),
            theorem=theorem_of(
                self.theorem,
                reading,
                loss=self.loss,
                method=self.method,
                squared=self.squared,
                information=self.information,
                variation=self.variation,
            ),
            assumptions=self.assumptions,
            failure_probability=self.failure_probability,
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
            evidence=self._evidence(reading),
        )

    def _evidence(self, reading: str) -> Evidence | None:
        cells = self.cells
        if cells is None:
            return None
        return Evidence(
            rule="audit",
            inputs=lambda: {
                "reading": reading,
                "loss": self.loss,
                "sampling": self.sampling,
                "cells": cells.tolist(),
                "squared": self.squared,
                "variation": self.variation,
                "seed": None if self.by_pairs is None else self.by_pairs.seed,
                "rate": 0.0 if self.by_pairs is None else self.by_pairs.rate,
            },
            private=("cells", "squared", "variation", "rate"),
        )

    def quantity(self, reading: str) -> str:
        """Name the quantity of a reading's guarantee; attacks that are compared with it must name the same.

        Parameters
        ----------
        reading
            A key of `READINGS`.
        """
        return f"{READINGS[reading]} in telling {self.positive!r} from {self.negative!r} by {self.output}"

    def plot(self, attempts: Sequence[Attempt] = ()) -> Figure:
        """Draw the region that no ROC curve leaves, with the curves of attacks in it.

        Parameters
        ----------
        attempts
            Attacks on the same output, as `attempts` returns them.

        Returns
        -------
        A figure that a notebook shows.
        """
        from ..report import Figure, figures

        rates = np.unique([*np.linspace(0, 1, 201) ** 2, *np.geomspace(_LEAST_DRAWN, 1, 101)]).tolist()
        return Figure(
            title=f"Telling {self.positive!r} from {self.negative!r} by {self.output}",
            caption=f"Nobody who sees only {self.output} can leave the shaded region, whatever the method"
            + (f", if {self.condition}" if self.condition else "")
            + ". The diagonal is guessing. Below, the same with logarithmic axes, for low false positive rates."
            + " The lines are attacks, measured on rows of their own; by chance they may stray a little."
            * bool(attempts),
            alternative="True against false positive rate: the region reaches "
            f"{safe_text(self.advantage, toward='up')} above the diagonal.",
            svg=figures.roc(
                rates,
                np.asarray(self.tpr_at(rates)).tolist(),
                {attempt.name: attempt.roc for attempt in attempts},
                least=_LEAST_DRAWN,
            ),
        )

    def _card(self) -> tuple[str, Rows]:
        guarantees = (self.guarantee_of(reading) for reading in READINGS)
        readings = tuple(f"{READINGS[name]}: {one.bound_text}" for name, one in zip(READINGS, guarantees, strict=True))
        headline = f"What {self.output} tells about whether the secret is {self.positive!r} or {self.negative!r}"
        chance, scope = self.guarantee.chance_text, (*([self.caution] if self.caution else []), *SCOPE)
        return headline, [(f"proven, {chance}", readings), *self.guarantee.facts[1:], ("mind", scope)]

    def meets(self, *, advantage: float) -> bool:
        """Say whether the certificate proves that nobody's advantage exceeds a ceiling.

        A certificate that bounds nothing proves no ceiling, not even 1.

        Parameters
        ----------
        advantage
            The ceiling, in [0, 1].
        """
        ceiling = validate.number("advantage", advantage, at_least=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
        return self.loss != "none" and self.advantage <= ceiling
