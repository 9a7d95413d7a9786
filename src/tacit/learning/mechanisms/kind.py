"""What plans and the choice ask every kind of mechanism: its names, constants, expected answers, promises and doubts.

What most kinds do alike stands here; each kind stands beside its mechanism, and `registry` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ...theory import accounting, learnability
from .candidates import Candidate, Wanted
from .expectations import Floats, Votes, reached, wrong_shares
from .setting import Constants, Run, Setting


class Kind(ABC):
    """A kind of mechanism, before its constants are known."""

    name: ClassVar[str]
    """What users type."""
    title: ClassVar[str]
    """What people read."""
    compared: ClassVar[bool] = True
    """Whether "auto" considers it."""
    informed: ClassVar[bool] = False
    """Whether a private estimate of the teachers' error may set its refusals."""
    proposed: ClassVar[bool] = False
    """Whether it confirms proposed labels, and answers nothing else."""
    theorem: ClassVar[str] = ""
    """What the δ that a row of a plan spends is a value of; empty where it is proven only when it is run."""
    caveat: ClassVar[str] = ""
    """What is to be said beside a picture of plans."""

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Whether it can be run for such a budget, with proposals or without."""
        return proposals or not self.proposed

    @abstractmethod
    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """The constants for all queries of a setting, which together may fail with the probability `setting.share`.

        `refusals` only matters to kinds that stop after a number of refusals.
        """

    @abstractmethod
    def chances(self, votes: Votes, *, noise: float, threshold: int | None) -> tuple[Floats, Floats]:
        """For each margin, the chance of an answer, and that of one that was given to be right."""

    @abstractmethod
    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """All constants that are worth a comparison."""

    def printed_refusals(self, error: float, *, queries: int, failure_probability: float) -> int | None:
        """The T that the paper prints for teachers of this error; None for kinds that find their own."""
        return None

    def hard_queries(self, error: float, setting: Setting, *, teachers: int, outvoted: int) -> int:
        """The most queries that it may lose, as more teachers are wrong than are outvoted."""
        return learnability.hard_queries(
            error, teachers=teachers, outvoted=outvoted, queries=setting.queries, failure_probability=setting.share
        )

    def possible(self, refusals: int, setting: Setting) -> bool:
        """Whether there may be constants at all."""
        return True

    def expected(
        self,
        votes: Votes,
        *,
        queries: int,
        noise: float,
        threshold: int | None = None,
        refusals: int | None = None,
        answers: int | None = None,
    ) -> tuple[float, float]:
        """Queries answered, and answered rightly, until so many were refused, or answered."""
        answered, right = self.chances(votes, noise=noise, threshold=threshold)
        rate = float(answered.mean())
        asked = reached(queries, refusals, 1 - rate) if answers is None else reached(queries, answers, rate)
        return asked * rate, asked * float((answered * right).mean())

    def outlook(self, run: Run, setting: Setting) -> tuple[float, float] | None:
        """The answers that a plan expects of a run; None without an error to model votes by."""
        if not setting.modelled or run.error >= 1:
            return None
        votes = Votes(
            lead=run.teachers - 2 * np.rint(run.teachers * wrong_shares(run.error)),
            teachers=run.teachers,
            classes=setting.classes,
            proposer_error=setting.proposer_error,
        )
        found = run.constants
        return self.expected(
            votes, queries=setting.queries, noise=found.noise, threshold=found.threshold, refusals=found.refusals
        )

    def needed_teachers(self, setting: Setting) -> int | None:
        """The least fixed point of k → error → T → votes to flip → k, by iteration from k = 1; None where it has none.

        Every step is monotone, so the iteration climbs to the least number of teachers of whom a third may be wrong.
        Records are not a limit here: a number given as error is taken at its word for every size.
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
        """How many it takes with the constants that so many of this error have; None if it can promise nothing."""
        hard = self.hard_queries(error, setting, teachers=3, outvoted=0)
        refusals = min(setting.queries, hard + 1)
        if not setting.worth(hard) or not self.possible(refusals, setting):
            return None
        return accounting.stable_teachers(self.constants(teachers, refusals, setting).distance, agreement=2 / 3)

    def promised(self, teachers: int, setting: Setting) -> Run | None:
        """The constants with which so many teachers keep a promise, None if there are none.

        The more refusals are allowed, the more noise, the more votes a query needs, the more queries are hard, the more
        refusals are needed: from T = 1 the iteration climbs to the least T that is enough. A printed T stays.
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
        """The constants to run with where nothing is promised: with the refusals that the vote model likes best."""
        error = setting.error(teachers)
        printed = self.printed_refusals(error, queries=setting.queries, failure_probability=setting.failure_probability)
        tried = self.tried_refusals(setting) if printed is None else (printed,)
        runs = [Run(teachers=teachers, error=error, constants=self.constants(teachers, t, setting)) for t in tried]
        return max(runs, key=lambda run: (self.outlook(run, setting) or (0.0, 0.0))[1])

    def tried_refusals(self, setting: Setting) -> Sequence[int]:
        """The numbers of refusals to try where nothing is promised; one serves those that none end."""
        return (1,)

    def condition(self, setting: Setting) -> str:
        """What a promise rests on besides the teachers."""
        return ""

    def obstacle(self, run: Run, needed: int | None, setting: Setting) -> str:
        """Why nothing can be promised, where that is this kind's own; else empty."""
        return ""
