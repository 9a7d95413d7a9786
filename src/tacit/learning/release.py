"""One fit of a private classifier as its guarantee describes it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..core.guarantee import Guarantee
from ..core.wording import text_above
from ..theory.accounting import replacement_delta
from .assumptions import CLASSES_PUBLIC, EACH_ALONE, LABELS_ALONE, PROPOSER_PUBLIC, comparing
from .held_out import ErrorEstimate
from .interrupted import UNSEEN
from .labels import FOUND_BY
from .mechanisms import Mechanism
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
    label_private
        Whether only labels are protected.
    overlapping
        Whether private records were allowed among public ones.
    proposed
        Whether a model may have proposed labels.
    named
        Whether somebody named the classes.
    transformed
        Whether a transformer computes features for the teachers.
    """

    shares: Shares
    compared: str
    label_private: bool
    overlapping: bool
    proposed: bool
    named: bool
    transformed: bool

    def guarantee_of(
        self, mechanism: Mechanism, *, teachers: int, error: ErrorEstimate | None, resumed: bool
    ) -> Guarantee:
        """The guarantee of the whole fit with this mechanism; `error` is the estimate that was paid for, if any."""
        proven, shares = mechanism.guarantee, self.shares
        epsilon, delta = shares.whole
        first = [comparing(self.compared), *[LABELS_ALONE] * self.label_private]
        first += [ALLOWED] * self.overlapping
        first += [CLASSES_PUBLIC] * self.named
        first += [EACH_ALONE] * self.transformed
        first += [PROPOSER_PUBLIC] * self.proposed  # also where it only had a say in the choice
        first += [UNSEEN] * resumed
        detail = {
            "neighbours": self.compared,
            **proven.detail,
            "epsilon_mechanism": mechanism.epsilon,
            "spread": float(mechanism.spread),
            "n_teachers": teachers,
        }
        theorem = list(proven.theorem)
        if not self.label_private:
            detail["replaced"] = {"epsilon": 2 * epsilon, "delta": replacement_delta(epsilon, delta)}
            theorem.append("theory.accounting.replacement_delta")
        if shares.counting:
            detail["epsilon_count"] = shares.count
            theorem.append("theory.accounting.laplace_scale")
        if shares.finding:
            theorem += FOUND_BY
            search = shares.search(label_private=self.label_private)
            detail |= {"epsilon_classes": search.epsilon, "delta_classes": search.delta, "found_from": search.threshold}
        if error is not None:
            detail |= {"epsilon_error": error.epsilon, "error": error.value}
            theorem.append("theory.accounting.laplace_scale")
        what = "privacy loss ε of one label" if self.label_private else "privacy loss ε"
        return dataclasses.replace(
            proven,
            quantity=f"{what} at δ = {text_above(delta)}",
            value=epsilon,
            theorem=tuple(theorem),
            assumptions=(*first, *proven.assumptions),
            detail=detail,
        )
