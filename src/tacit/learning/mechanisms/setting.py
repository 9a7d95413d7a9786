"""The inputs of a plan, and its results for one mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from ...theory import learnability

_PARTS = 4
"""The failure probability is divided among teachers, hard queries, noise and the student."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The inputs of a plan. With `rough`, noise need only be right to a few per cent, which is faster."""

    records: int
    queries: int
    epsilon: float
    delta: float
    failure_probability: float
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
        """The failure probability of each of the four promises that a plan combines."""
        return self.failure_probability / _PARTS

    def error(self, teachers: int) -> float:
        """The largest error that one of this many teachers may have; 1 if nothing is known."""
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
        """The most teachers that can be trained: each needs a record of every class, and a size on the curve."""
        smallest = self.curve[0][0] if self.curve else 0
        return max(1, self.records // max(self.classes, smallest))

    @property
    def many(self) -> int:
        """The most teachers whose error is known to stay below a third, at least 1."""
        low, high = 1, self.most + 1
        while high - low > 1:
            teachers = (low + high) // 2
            low, high = (teachers, high) if 3 * self.error(teachers) < 1 else (low, teachers)
        return low

    def worth(self, hard: int) -> bool:
        """Whether a promise that loses this many queries is better than a blind guess."""
        return hard < self.queries * (1 - 1 / self.classes)


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a mechanism, and the votes to flip (`distance`) from which it answers all queries correctly.

    If `estimated`, they are about right, for a table that has yet to be searched for. `delta_spent` is None for a
    table, whose δ is proven when it is run.
    """

    noise: float
    threshold: int | None = None
    refusals: int | None = None
    distance: int
    delta_spent: float | None = None
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """A mechanism with a number of teachers. All but `hard` queries are answered correctly; None promises nothing."""

    teachers: int
    error: float
    constants: Constants
    hard: int | None = None
