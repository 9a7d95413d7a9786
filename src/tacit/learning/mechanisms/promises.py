"""How many teachers keep a promise: the least fixed points of their error, refusals, noise and votes to flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...theory import accounting, learnability
from . import expectations, gate_design
from .constants import RAREST_REFUSAL, TABLES, Constants, constants
from .expectations import CONFIDENT

_PARTS = 4  # β is shared by teachers, hard queries, noise and the student
_REFUSAL_STEPS = 40  # of the search for a number of refusals where nothing is proven


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A plan's inputs as the search takes them; `rough` settles for noise that is right to a few per cent."""

    records: int
    queries: int
    epsilon: float
    delta: float
    beta: float
    curve: tuple[tuple[int, float], ...] | None
    vc_dimension: int | None
    best_error: float
    classes: int
    teachers: int | None
    modelled: bool
    proposer_error: float = 0.0
    rough: bool = False

    @property
    def share(self) -> float:
        """The part of β that each of the promises may fail with."""
        return self.beta / _PARTS

    def hard_queries(self, name: str, error: float, *, teachers: int, outvoted: int) -> int:
        """The most queries that a mechanism may lose: more are wrong than are outvoted, or the proposal is."""
        hard = learnability.hard_queries(
            error, teachers=teachers, outvoted=outvoted, queries=self.queries, failure_probability=self.share
        )
        return hard + (math.ceil(self.proposer_error * self.queries) if name == "confirm" else 0)

    def printed_refusals(self, error: float) -> int:
        """The T of the paper, no more than there are queries."""
        printed = learnability.printed_refusals(error, queries=self.queries, failure_probability=self.beta)
        return min(self.queries, printed)

    def error(self, teachers: int) -> float:
        """What one of so many teachers is known to err on at most; 1 where nothing is known."""
        size = self.records // teachers
        if self.vc_dimension is None:
            known = (error for records, error in self.curve or () if records <= size)
            return min(known, default=1.0)
        if size < 1:
            return 1.0
        find = learnability.realizable_error if self.best_error == 0 else learnability.agnostic_excess
        excess = find(size, vc_dimension=self.vc_dimension, failure_probability=self.share / teachers)
        return min(1.0, self.best_error + excess)

    @property
    def most(self) -> int:
        """The most teachers that can be trained: each needs a record of every class, and a place on the curve."""
        smallest = self.curve[0][0] if self.curve else 0
        return max(1, self.records // max(self.classes, smallest))


@dataclass(frozen=True, kw_only=True)
class Run:
    """So many teachers with a mechanism; all but `hard` queries are answered rightly, None if nothing is promised."""

    teachers: int
    error: float
    constants: Constants
    hard: int | None = None


def needed_teachers(name: str, setting: Setting) -> int | None:
    """The least fixed point of k → error → T → votes to flip → k, by iteration from k = 1; None where it has none.

    Every step is monotone, so the iteration climbs to the least number of teachers of whom a third may be wrong.
    Records are not a limit here: a number given as error is taken at its word for every size.
    """
    teachers = 1
    while teachers <= 2**52 // 100:
        error = setting.error(teachers)
        if 3 * error >= 1:
            return None
        if name == "svt-faithful":
            enough = _printed_teachers(error, setting)
        else:
            hard = setting.hard_queries(name, error, teachers=3, outvoted=0)
            refusals = min(setting.queries, hard + 1)
            if not _worth(hard, setting) or not _exists(name, refusals, setting):
                return None
            found = _constants(name, teachers, refusals, setting)
            enough = accounting.stable_teachers(found.distance, agreement=2 / 3)
        if enough <= teachers:
            return teachers
        teachers = enough
    return None


def promised(name: str, teachers: int, setting: Setting) -> Run | None:
    """The constants with which so many teachers keep a promise, None if there are none.

    The more refusals are allowed, the more noise, the more votes a query needs, the more queries are hard, the more
    refusals are needed: from T = 1 the iteration climbs to the least T that is enough.
    """
    error, refusals = setting.error(teachers), 1
    if name == "svt-faithful":
        if _printed_teachers(error, setting) > teachers:
            return None
        refusals = setting.printed_refusals(error)
    while _exists(name, refusals, setting):
        found = _constants(name, teachers, refusals, setting)
        outvoted = learnability.tolerated_votes(teachers, distance=found.distance)
        if outvoted < 0:
            return None
        hard = setting.hard_queries(name, error, teachers=teachers, outvoted=outvoted)
        if not _worth(hard, setting) or (found.delta_spent or 0.0) > setting.delta:
            return None
        enough = min(setting.queries, hard + 1)
        if found.refusals is None or found.refusals >= enough:
            return Run(teachers=teachers, error=error, constants=found, hard=hard)
        if name == "svt-faithful":
            return None
        refusals = enough
    return None


def hoped(name: str, teachers: int, setting: Setting) -> Run:
    """The constants to run with where nothing is promised: the number of refusals that the vote model likes best."""
    error = setting.error(teachers)
    grid: Sequence[int] = (1,)
    if name == "svt-faithful":
        grid = (setting.printed_refusals(error),)
    elif name == "svt":
        grid = sorted({max(1, round(t)) for t in np.geomspace(1, setting.queries, _REFUSAL_STEPS)})
    elif name in TABLES:
        grid = gate_design.STORED_REFUSALS
    runs = [Run(teachers=teachers, error=error, constants=_constants(name, teachers, t, setting)) for t in grid]
    if name == "confident-gnmax":
        runs = [replace(run, constants=replace(run.constants, threshold=round(CONFIDENT * teachers))) for run in runs]
    return max(runs, key=lambda run: (expected(name, run, setting) or (0.0, 0.0))[1])


def many_teachers(setting: Setting) -> int:
    """The most teachers whose error is known to stay below a third; 1 if not even one is known to."""
    low, high = 1, setting.most + 1
    while high - low > 1:
        teachers = (low + high) // 2
        low, high = (teachers, high) if 3 * setting.error(teachers) < 1 else (low, teachers)
    return low


def expected(name: str, run: Run, setting: Setting) -> tuple[float, float] | None:
    """Queries answered, and answered rightly, by the vote model."""
    if not setting.modelled or run.error >= 1:
        return None
    return expectations.expected(
        name,
        run.teachers - 2 * np.rint(run.teachers * expectations.wrong_shares(run.error)),
        teachers=run.teachers,
        queries=setting.queries,
        noise=run.constants.noise,
        threshold=run.constants.threshold,
        refusals=run.constants.refusals,
        classes=setting.classes,
        proposer_error=setting.proposer_error,
    )


def _worth(hard: int, setting: Setting) -> bool:
    """Whether a promise says more than a blind guess."""
    return hard < setting.queries * (1 - 1 / setting.classes)


def _exists(name: str, refusals: int, setting: Setting) -> bool:
    """Whether there may be constants at all: tables are searched for up to some refusals, and refuse easy queries."""
    if name not in TABLES:
        return True
    chance = setting.share / setting.queries
    possible = gate_design.manageable(setting.epsilon, setting.delta) and chance >= RAREST_REFUSAL
    return possible and refusals <= gate_design.MOST_REFUSALS


def _constants(name: str, teachers: int, refusals: int, setting: Setting) -> Constants:
    return constants(
        name,
        epsilon=setting.epsilon,
        delta=setting.delta,
        queries=setting.queries,
        refusals=refusals,
        teachers=teachers,
        classes=setting.classes,
        failure_probability=setting.share,
        rough=setting.rough,
    )


def _printed_teachers(error: float, setting: Setting) -> int:
    refusals = setting.printed_refusals(error)
    scale = accounting.printed_scale(setting.epsilon, setting.delta, refusals=refusals)
    return accounting.printed_teachers(
        setting.delta, scale=scale, refusals=refusals, queries=setting.queries, failure_probability=setting.beta
    )
