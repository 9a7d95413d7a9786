"""The candidates among which a mechanism is chosen: constants to run it with, and the answers to expect then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ...core.errors import InputError
from .expectations import Rows, Votes, alike
from .session import Mechanism

_FEW = 25
"""The smallest number of queries that is tried; it is then doubled."""
_LEAST_RIGHT = 0.6
"""The share of right answers below which a score is 0."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a candidate is wanted for: the budget, the public records and the votes that may be cast on them.

    `queries` and `refusals` may be fixed by the caller. `votes` has one entry for each case that is thought possible.
    """

    epsilon: float
    delta: float
    points: int
    queries: int | None
    refusals: int | None
    counts: bool
    votes: tuple[Votes, ...]

    @cached_property
    def alike(self) -> Rows:
        """Cases that are computed together."""
        return alike(self.votes)

    @property
    def most(self) -> int:
        """The number of queries for mechanisms that charge nothing for a query: all points, unless it is fixed."""
        return self.points if self.queries is None else self.queries

    @property
    def numbers(self) -> list[int]:
        """The numbers of queries to try for mechanisms that charge for each."""
        return steps(_FEW, self.points) if self.queries is None else [self.queries]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism that could be made, the number of queries to ask, and after what it stops."""

    made: Callable[[], Mechanism]
    queries: int
    refusals: int | None = None
    answers: int | None = None
    expected: tuple[tuple[float, float], ...]
    """In each case, the expected number of answers, and of the right ones among them."""
    known: float = 0.0
    """The score of a proposed answer before it is confirmed, which is subtracted for each answer."""

    @property
    def worth(self) -> tuple[float, ...]:
        """The score in each case, 0 if below 1: the flawless answers that tell a learner as much as these.

        It is 0, too, where so many are wrong that not every learner copes with them.
        """
        found = (
            flawless(answered, right) - self.known * answered if right >= _LEAST_RIGHT * answered else 0.0
            for answered, right in self.expected
        )
        return tuple(score if score >= 1 else 0.0 for score in found)

    @property
    def share(self) -> float:
        """The share of right answers, on average over the cases."""
        return sum(right / answered if answered >= 1 else 0.0 for answered, right in self.expected) / len(self.expected)


def flawless(answers: float, right: float) -> float:
    """The right answers that tell a learner as much as these: the square of right minus wrong ones, divided by all.

    Labels of two classes, each wrong with probability η, tell as much as (1 − 2η)² times as many right ones.
    """
    return max(0.0, 2 * right - answers) ** 2 / max(1.0, answers)


def steps(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … and last."""
    if last < 1:
        raise InputError("queries", last, requirement="must be at least 1", remedy="give public records")
    found = [first * 2**power for power in range(40) if first * 2**power < last]
    return [*found, last]
