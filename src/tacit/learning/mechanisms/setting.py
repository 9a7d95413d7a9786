"""What a plan asks of a mechanism, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass

from ...theory import learnability

_PARTS = 4
"""The failure probability is divided among teachers, hard queries, noise and the student."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A plan's inputs as the search takes them; `rough` settles for noise that is right to a few per cent."""

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

    @property
    def many(self) -> int:
        """The most teachers whose error is known to stay below a third; 1 if not even one is known to."""
        low, high = 1, self.most + 1
        while high - low > 1:
            teachers = (low + high) // 2
            low, high = (teachers, high) if 3 * self.error(teachers) < 1 else (low, teachers)
        return low

    def worth(self, hard: int) -> bool:
        """Whether a promise that leaves out so many queries says more than a blind guess."""
        return hard < self.queries * (1 - 1 / self.classes)


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What a mechanism is run with, and the votes to flip from which it answers all queries rightly.

    `estimated` ones are about right, for a table that has yet to be searched for; the `delta_spent` of a table is
    proven when it is run: None.
    """

    noise: float
    threshold: int | None = None
    refusals: int | None = None
    distance: int
    delta_spent: float | None = None
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """So many teachers with a mechanism; all but `hard` queries are answered rightly, None if nothing is promised."""

    teachers: int
    error: float
    constants: Constants
    hard: int | None = None
