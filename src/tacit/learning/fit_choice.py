"""The choices of one fit: the number of teachers, and the mechanism before and after an estimate is paid for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

from sklearn.utils.validation import has_fit_parameter

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Guarantee
from ..core.rounding import down
from ..core.wording import counted
from .choice import (
    Choice,
    callers_choice,
    choice,
    estimate_cost,
    number_of_teachers,
    prospects,
)
from .fit_task import FitTask
from .held_out import AgreementEstimate, ErrorEstimate
from .mechanisms import VoteQuota
from .mechanisms.cases import Margins, margins, possible_margins
from .mechanisms.gate import Tabled
from .mechanisms.registry import KINDS, asks_nobody, asks_records
from .nearby import expected_votes, nearby_choice
from .proposals import Proposer

EXPECTED_ERROR = 0.2
"""The error that is assumed of teachers in dry runs, and of proposals, until something is known."""
_HOPE = 0.1
"""Answers to expect at least, with teachers who always agree."""
_FAILURE = 0.05
"""The failure probability for which Theorem 3.2 turns an estimate of the error into refusals."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Chooser:
    """Chooses a mechanism for a task.

    Attributes
    ----------
    task
        The task.
    teachers
        The number of teachers; 0 if records vote themselves.
    voters
        The number of records or people that may vote; None if it is private, and was not read with noise.
    proposer
        What proposes labels, if there is a model for it.
    """

    task: FitTask
    teachers: int
    voters: int | None
    proposer: Proposer | None

    @classmethod
    def of(cls, task: FitTask, *, voters: int) -> Self:
        """The chooser for so many records or people."""
        told = task.release.labels_only or task.release.shares.counting
        return cls(
            task=task,
            teachers=_teachers(task, voters),
            voters=voters if told else None,
            proposer=None
            if task.proposer is None
            else Proposer(task.proposer, task.public, task.classes, task.student),
        )

    def unpaid(self) -> tuple[Choice | None, float]:
        """The choice if no estimate is made; else None, and the ε of the estimate, which decides."""
        self._check_hope()
        if self.task.options.error_share:
            return None, down(self.task.release.shares.epsilon * float(self.task.options.error_share))
        chosen = self._expected()
        cost = self._agreement_cost(chosen)
        return (None, cost) if cost else (chosen, 0.0)

    def informed(self, estimate: ErrorEstimate | AgreementEstimate) -> Choice:
        """The choice by an estimate, with what it leaves of the budget."""
        epsilon, delta = self.task.release.shares.left
        budget = down(epsilon - estimate.epsilon), delta
        if isinstance(estimate, AgreementEstimate):
            lead, wrong = possible_margins(None), self._proposer_error
            return self._choice(lead, budget=budget, proposer_error=wrong, estimate=estimate)
        return self._by_error(estimate, budget)

    def size(self, chosen: Choice) -> dict[str, float]:
        """How many may vote, for the guarantee's detail: teachers, or about so many on a query, if that may be told."""
        if not isinstance(chosen.mechanism, VoteQuota):
            return {"teachers": self.teachers}
        if self.voters is None:
            return {}
        return {"expected_votes": expected_votes(chosen.mechanism, voters=self.voters, points=len(self.task.seen))}

    @property
    def _proposer_error(self) -> float | None:
        return None if self.proposer is None else self.proposer.error

    def _expected(self) -> Choice:
        """The choice by expected votes, or by public records near one another."""
        task = self.task
        if asks_records(task.options.mechanism) and task.options.made is None and self.voters is not None:
            epsilon, delta = task.release.shares.left
            return nearby_choice(
                task.seen,
                task.places,
                voters=self.voters,
                epsilon=epsilon,
                delta=delta,
                queries=task.options.wanted(len(task.public)),
                changed=task.release.changed,
            )
        lead = possible_margins(task.options.teacher_accuracy)
        return self._choice(lead, budget=task.release.shares.left, proposer_error=self._proposer_error)

    def _check_hope(self) -> None:
        """Refuse what would spend the budget on refusals alone: numbers of teachers are public, and so is the noise."""
        name, points = self.task.options.mechanism, len(self.task.public)
        if not isinstance(name, str) or asks_records(name):
            return
        best = self._choice(margins(1.0), budget=self.task.release.shares.left, proposer_error=self._proposer_error)
        if best.expected_answers < _HOPE:
            raise InputError(
                "the number of teachers",
                self.teachers,
                requirement=f"must be enough for an answer: even if all agreed on each of {counted(points, 'record')}, "
                f"{best.name} is expected to answer {best.expected_answers:.2g}",
                remedy="use more, a larger epsilon, or the mechanism gnmax, which always answers",
            )

    def _agreement_cost(self, unpaid: Choice) -> float:
        """What an estimate of the agreement costs; 0 where somebody has stated it, or where it would not help."""
        options = self.task.options
        if options.teacher_accuracy is not None or options.made is not None or asks_records(options.mechanism):
            return 0.0
        return estimate_cost(unpaid, epsilon=self.task.release.shares.left[0], teachers=self.teachers)

    def _by_error(self, error: ErrorEstimate, budget: tuple[float, float]) -> Choice:
        """T from the estimated error: by Theorem 3.2 for the printed constants, else by votes with that error."""
        options, points = self.task.options, len(self.task.public)
        kind = KINDS[str(options.mechanism)]  # an estimate was paid for by name
        queries = options.wanted(points) or points
        refusals = kind.printed_refusals(error.value, queries=queries, failure_probability=_FAILURE)
        lead = margins(min(1.0, max(0.51, 1 - error.value)))
        found = self._choice(lead, budget=budget, refusals=refusals)
        reason = f"{found.reason}, but for a private estimate of the teachers' error, {error.value:.3g}"
        return dataclasses.replace(found, reason=reason)

    def _choice(
        self,
        lead: Margins,
        *,
        budget: tuple[float, float],
        refusals: int | None = None,
        proposer_error: float | None = None,
        estimate: AgreementEstimate | None = None,
    ) -> Choice:
        options, points, classes = self.task.options, len(self.task.public), len(self.task.classes)
        queries = options.wanted(points)
        if not isinstance(options.mechanism, str):
            return callers_choice(options.mechanism, queries=points if queries is None else queries, classes=classes)
        return choice(
            options.mechanism,
            epsilon=budget[0],
            delta=budget[1],
            teachers=self.teachers,
            points=points,
            queries=queries,
            lead=lead,
            refusals=int(options.refusals) if refusals is None and options.refusals is not None else refusals,
            classes=classes,
            counts=has_fit_parameter(self.task.student, "counts"),
            proposer_error=proposer_error,
            estimate=estimate,
        )


def proven(chosen: Choice, advance: Callable[[str], None]) -> Guarantee:
    """What the mechanism proves; raises where no theorem covers it."""
    if isinstance(chosen.mechanism, Tabled):
        return chosen.mechanism.prove(advance)  # which may take a minute
    return chosen.mechanism.guarantee


def _teachers(task: FitTask, voters: int) -> int:
    """The number of teachers for so many records or people; 0 if these vote themselves."""
    options, points = task.options, len(task.public)
    if asks_records(options.mechanism) or asks_nobody(options.mechanism):
        return 0
    if options.n_teachers != "auto":
        remedy = "use 'auto' to have it chosen"
        return validate.whole("n_teachers", options.n_teachers, at_least=1, remedy=remedy)
    made = options.made
    epsilon, delta = task.release.shares.left if made is None else (made.epsilon, made.delta)
    found = prospects(
        "auto" if made is not None or KINDS.get(str(options.mechanism)) is None else str(options.mechanism),
        epsilon=epsilon,
        delta=delta,
        records=voters,
        points=points,
        queries=options.wanted(points),
        lead=margins(options.teacher_accuracy),
        refusals=None if options.refusals is None else int(options.refusals),
        classes=len(task.classes),
        proposer_error=None if task.proposer is None else EXPECTED_ERROR,
    )
    return number_of_teachers(found)
