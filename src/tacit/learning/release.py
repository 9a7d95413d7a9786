"""One fit of a private classifier as its guarantee describes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.evidence import Evidence
from ..core.guarantee import Guarantee
from ..core.wording import text_above
from ..theory.accounting import laplace_scale, replacement_delta
from .answer_sums import AnswerSums
from .assumptions import CLASSES_PUBLIC, EACH_ALONE, ENCODER_PUBLIC, LABELS_ALONE, PROPOSER_PUBLIC, comparing
from .held_out import AgreementEstimate, ErrorEstimate
from .interrupted import UNSEEN
from .labels import FOUND_BY, Search
from .mechanisms import Mechanism
from .moments import NoisySums
from .overlap import ALLOWED
from .shares import Shares


@dataclass(frozen=True, kw_only=True)
class Release:
    """What decides the guarantee of one fit, beyond the mechanism.

    Attributes
    ----------
    shares
        How the budget is divided.
    compared
        In what two data sets differ that the guarantee compares.
    labels_only
        Whether only labels are protected.
    overlapping
        Whether private records were allowed among public ones.
    proposed
        Whether a model may have proposed labels.
    named
        Whether somebody named the classes.
    transformed
        Whether a transformer computes features for the teachers.
    encoded
        Whether an encoder has turned texts or images into numbers.
    """

    shares: Shares
    compared: str
    labels_only: bool
    overlapping: bool
    proposed: bool
    named: bool
    transformed: bool
    encoded: bool = False

    @property
    def changed(self) -> int:
        """How many counts or sums by class one record may change: a changed label, one that it leaves and another."""
        return 2 if self.labels_only else 1

    @property
    def search(self) -> Search:
        """The search for classes that nobody named."""
        return self.shares.search(labels_only=self.labels_only)

    def guarantee_of(
        self,
        mechanism: Mechanism | NoisySums | AnswerSums,
        *,
        council: Mapping[str, float],
        estimate: ErrorEstimate | AgreementEstimate | None,
        resumed: bool,
    ) -> Guarantee:
        """The guarantee of the whole fit with this mechanism; `estimate` is what was paid for to choose it.

        `council` says how many may vote: `teachers`, or the `expected_votes` on a query; nothing where nobody votes.
        """
        proven, shares = mechanism.guarantee, self.shares
        epsilon, delta = shares.whole
        first = [comparing(self.compared), *[LABELS_ALONE] * self.labels_only]
        first += [ALLOWED] * self.overlapping
        first += [CLASSES_PUBLIC] * self.named
        first += [EACH_ALONE] * self.transformed
        first += [ENCODER_PUBLIC] * self.encoded
        first += [PROPOSER_PUBLIC] * self.proposed  # also where it only had a say in the choice
        first += [UNSEEN] * resumed
        detail = {
            "neighbours": self.compared,
            **proven.detail,
            "delta": delta,
            "epsilon_mechanism": mechanism.epsilon,
            "delta_mechanism": mechanism.delta,
            "spread": float(mechanism.spread),
            **council,
        }
        words = [entry for entry in proven.theorem if entry not in proven.references]
        theorem = list(proven.references)
        if not self.labels_only:
            detail["replaced"] = {"epsilon": 2 * epsilon, "delta": replacement_delta(epsilon, delta)}
            theorem.append("theory.accounting.replacement_delta")
        if shares.counting:
            detail["epsilon_count"] = shares.count
            theorem.append("theory.accounting.laplace_scale")
        if shares.finding:
            theorem += FOUND_BY
            search = self.search
            detail |= {"epsilon_classes": search.epsilon, "delta_classes": search.delta, "found_from": search.threshold}
        if estimate is not None:
            detail |= estimate.detail
            theorem.append("theory.accounting.laplace_scale")
        if shares.counting or shares.finding or estimate is not None:
            theorem.insert(0, "theory.accounting.basic_composition")  # which gives the number
        what = "privacy loss ε of one label" if self.labels_only else "privacy loss ε"
        return dataclasses.replace(
            proven,
            quantity=f"{what} at δ = {text_above(delta)}",
            value=epsilon,
            theorem=(*words, *theorem),
            assumptions=(*first, *proven.assumptions),
            detail=detail,
            evidence=self._evidence(proven, estimate),
        )

    def _evidence(self, proven: Guarantee, estimate: ErrorEstimate | AgreementEstimate | None) -> Evidence | None:
        """The mechanism's constants, and those of what else was released with noise."""
        mechanism, shares = proven.evidence, self.shares
        if mechanism is None:
            return None

        def inputs() -> dict[str, Any]:
            parts = list(mechanism.inputs()["parts"])
            if shares.counting:
                scale = laplace_scale(shares.count, sensitivity=1)
                parts.append(_laplace(shares.count, sensitivity=1, scale=scale))
            if shares.finding:
                search = self.search
                found = {"changed": search.changed, "scale": search.scale, "threshold": search.threshold}
                parts.append({"mechanism": "labels found", "epsilon": search.epsilon, "delta": search.delta, **found})
            if estimate is not None:
                parts.append(_laplace(estimate.epsilon, sensitivity=estimate.sensitivity, scale=estimate.scale))
            return {"delta": shares.whole[1], "neighbours": self.compared.partition(" (")[0], "parts": parts}

        return Evidence(rule="private answers", inputs=inputs)


def _laplace(epsilon: float, *, sensitivity: int, scale: float) -> dict[str, Any]:
    return {"mechanism": "laplace", "epsilon": epsilon, "delta": 0, "sensitivity": sensitivity, "scale": scale}
