"""Kinds of mechanisms, as plans and the choice see them: names, constants, expected answers and promises.

This module has what most kinds share. Each kind is defined beside its mechanism, and `registry` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...theory import accounting, learnability
from .candidates import Candidate, Wanted
from .expectations import Floats, Votes, reached, wrong_shares
from .setting import Constants, Run, Setting


class Kind(ABC):
    """A kind of mechanism, before its constants are known, as the choice sees it."""

    name: ClassVar[str]
    """The name in options, reports and results."""
    compared: ClassVar[bool] = True
    """Whether "auto" considers it at all."""
    informed: ClassVar[bool] = False
    """Whether a private estimate of the teachers' error may set its refusals."""
    proposed: ClassVar[bool] = False
    """Whether it confirms proposed labels, and answers nothing else."""
    refuses_by_number: ClassVar[bool] = True
    """Whether it may be told how many refusals there will be."""

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Whether it can be run for such a budget, with proposals or without."""
        return proposals or not self.proposed

    def considered(self, wanted: Wanted, *, proposals: bool) -> bool:
        """Whether "auto" considers it for what is wanted."""
        return self.compared and self.available(wanted.epsilon, wanted.delta, proposals=proposals)

    def checkable(self, refusals: int | None) -> bool:
        """Whether certificates of so many refusals can be checked without the library, which "auto" prefers."""
        return True

    @abstractmethod
    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """The candidates to compare."""

    def printed_refusals(self, error: float, *, queries: int, failure_probability: float) -> int | None:
        """The T that the paper prints for teachers with this error; None for kinds that find their own."""
        return None


class PlannedKind(Kind):
    """A kind whose constants depend on the budget and a number of refusals alone: plans can promise something."""

    theorem: ClassVar[str] = ""
    """The theorem of the δ in a row of a plan; empty if the δ is proven only when the mechanism is run."""
    promise: ClassVar[tuple[str, ...]] = ()
    """The theorems of the distance from which queries are answered correctly."""
    unpromised: ClassVar[str] = ""
    """Why nothing can be promised before it is run, in words; empty if something may be."""
    later: ClassVar[str] = "No table is stored for this budget; one is searched for"
    """What is left to do, if a row is an estimate."""
    caveat: ClassVar[str] = ""
    """A sentence beside pictures of plans."""

    def proof(self, refusals: int | None) -> tuple[str, tuple[str, ...]]:
        """The theorem of the δ and those of the distance, where it stops after so many refusals."""
        return self.theorem, self.promise

    @abstractmethod
    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """The constants for all queries of a setting, which together may fail with the probability `setting.share`.

        `refusals` only matters to kinds that stop after a number of refusals.
        """

    def stated(
        self,
        *,
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """What a certificate states of these constants; nothing if the checker cannot follow their proof."""
        return {}

    @abstractmethod
    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """For each margin, the probability of an answer, and the probability that an answer is right."""

    def hard_queries(self, error: float, setting: Setting, *, teachers: int, outvoted: int) -> int:
        """The most queries that may be lost, because more teachers are wrong than can be outvoted."""
        return learnability.hard_queries(
            error, teachers=teachers, outvoted=outvoted, queries=setting.queries, failure_probability=setting.share
        )

    def possible(self, refusals: int, setting: Setting) -> bool:
        """Whether constants may exist."""
        return True

    def expected(self, votes: Votes, **constants: Any) -> tuple[float, float]:
        """The expected numbers of answers and of right answers, with constants of `_of_rows`."""
        (found,) = self._of_rows(replace(votes, lead=votes.lead.reshape(1, -1)), **constants)
        return found

    def in_each(self, wanted: Wanted, **constants: Any) -> tuple[tuple[float, float], ...]:
        """The same in each case."""
        found = dict[int, tuple[float, float]]()
        for rows, places in wanted.alike:
            found.update(zip(places, self._of_rows(rows, **constants), strict=True))
        return tuple(found[place] for place in range(len(wanted.votes)))

    def _of_rows(
        self,
        votes: Votes,
        *,
        queries: int,
        noise: float,
        threshold: int | None = None,
        refusals: int | None = None,
        answers: int | None = None,
    ) -> list[tuple[float, float]]:
        """The expected numbers for each row of leads, until `refusals` or `answers` is reached."""
        answered, right = self.chances(votes, noise=noise, threshold=threshold, refusals=refusals)
        found = []
        for rate, good in zip(answered.mean(axis=1).tolist(), (answered * right).mean(axis=1).tolist(), strict=True):
            asked = reached(queries, refusals, 1 - rate) if answers is None else reached(queries, answers, rate)
            found.append((asked * rate, asked * good))
        return found

    def outlook(self, run: Run, setting: Setting) -> tuple[float, float] | None:
        """The answers and right answers that a plan expects; None without an error to model votes by."""
        if not setting.modelled or run.error >= 1:
            return None
        votes = Votes(
            lead=run.teachers - 2 * np.rint(run.teachers * wrong_shares(run.error)),
            teachers=run.teachers,
            classes=setting.classes,
            proposer_error=setting.proposer_error,
        )
        return self.foreseen(votes, run.constants, setting)

    def foreseen(self, votes: Votes, found: Constants, setting: Setting) -> tuple[float, float]:
        """The same for such votes."""
        return self.expected(
            votes, queries=setting.queries, noise=found.noise, threshold=found.threshold, refusals=found.refusals
        )

    def needed_teachers(self, setting: Setting) -> int | None:
        """The smallest number of teachers for which something is promised; None if there is none.

        It is the least fixed point of k → error → T → votes to flip → k, by iteration from k = 1. Every step is
        monotone, so the iteration climbs to the least number of teachers of whom a third may be wrong. The number of
        records is no limit here: a number given as error is taken to hold for every size.
        """
        teachers = 1
        while teachers <= 2**52 // 100:
            error = setting.error(teachers)
            enough = self.enough_teachers(error, teachers, setting) if 3 * error < 1 else None
            if enough is None:
                return None
            if enough <= teachers:
                return teachers
            teachers = enough
        return None

    def enough_teachers(self, error: float, teachers: int, setting: Setting) -> int | None:
        """The teachers needed with the constants of this many teachers with this error; None if nothing is promised."""
        hard = self.hard_queries(error, setting, teachers=3, outvoted=0)
        refusals = min(setting.queries, hard + 1)
        if not setting.worth(hard) or not self.possible(refusals, setting):
            return None
        return accounting.stable_teachers(self.constants(teachers, refusals, setting).distance, agreement=2 / 3)

    def promised(self, teachers: int, setting: Setting) -> Run | None:
        """The constants with which this many teachers keep a promise; None if there are none.

        More refusals mean more noise, so a query needs more votes, more queries are hard, and more refusals are needed:
        from T = 1 the iteration climbs to the least T that is enough. A printed T is kept as it is.
        """
        error = setting.error(teachers)
        printed = self.printed_refusals(error, queries=setting.queries, failure_probability=setting.failure_probability)
        refusals = 1 if printed is None else printed
        while self.possible(refusals, setting):
            found = self.constants(teachers, refusals, setting)
            outvoted = learnability.tolerated_votes(teachers, distance=found.distance)
            if outvoted < 0:
                return None
            hard = self.hard_queries(error, setting, teachers=teachers, outvoted=outvoted)
            if not setting.worth(hard) or (found.delta_spent or 0.0) > setting.delta:
                return None
            enough = min(setting.queries, hard + 1)
            if found.refusals is None or found.refusals >= enough:
                return Run(teachers=teachers, error=error, constants=found, hard=hard)
            if printed is not None:
                return None
            refusals = enough
        return None

    def hoped(self, teachers: int, setting: Setting) -> Run:
        """The constants to run with if nothing is promised: the refusals with the most expected right answers."""
        error = setting.error(teachers)
        printed = self.printed_refusals(error, queries=setting.queries, failure_probability=setting.failure_probability)
        tried = self.tried_refusals(setting) if printed is None else (printed,)
        runs = [Run(teachers=teachers, error=error, constants=self.constants(teachers, t, setting)) for t in tried]
        return max(runs, key=lambda run: (self.outlook(run, setting) or (0.0, 0.0))[1])

    def tried_refusals(self, setting: Setting) -> Sequence[int]:
        """The numbers of refusals to try if nothing is promised; any one for kinds that refusals do not end."""
        return (1,)

    def theorems(self, setting: Setting, refusals: int | None) -> tuple[str, ...]:
        """The theorems of the answers that are promised and the teachers that are needed, the answers' first."""
        _, promise = self.proof(refusals)
        found = ["theory.learnability.hard_queries", "theory.learnability.tolerated_votes", *promise]
        if setting.vc_dimension is not None:
            learner = "realizable_error" if setting.best_error == 0 else "agnostic_excess"
            found += [f"theory.learnability.{learner}", "theory.learnability.student_error"]
        return (*found, "theory.accounting.stable_teachers")

    def condition(self, setting: Setting) -> str:
        """What a promise depends on besides the teachers, in words."""
        return ""

    def obstacle(self, run: Run, needed: int | None, setting: Setting) -> str:
        """Why this kind can promise nothing, in words; empty if the reason is a general one."""
        return ""
