"""The candidates among which a mechanism is chosen: constants to run it with, and the answers to expect then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.errors import InputError
from .expectations import Votes
from .session import Mechanism

_FEW = 25
"""The smallest number of queries that is tried; it is then doubled."""


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
    """In each case, the expected number of answers, and of those that name the class with the most votes."""
    known: float = 0.0
    """The score of a proposed answer before it is confirmed, which is subtracted."""

    @property
    def worth(self) -> tuple[float, ...]:
        """The score in each case: right answers minus four times the wrong ones, 0 if below 1."""
        found = (5 * right - (4 + self.known) * answered for answered, right in self.expected)
        return tuple(score if score >= 1 else 0.0 for score in found)

    @property
    def share(self) -> float:
        """The share of answers that name the class with the most votes, on average over the cases."""
        return sum(right / answered if answered >= 1 else 0.0 for answered, right in self.expected) / len(self.expected)


def steps(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … and last."""
    if last < 1:
        raise InputError("queries", last, requirement="must be at least 1", remedy="give public records")
    found = [first * 2**power for power in range(40) if first * 2**power < last]
    return [*found, last]
