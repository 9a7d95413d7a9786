"""What the choice of a mechanism compares: constants to run one with, and the answers to be expected then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core.errors import InputError
from .expectations import Votes
from .session import Mechanism

_FEW = 25
"""Queries from which their number is doubled."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The budget, the public points, the votes expected on them, and what was fixed: `queries`, `refusals`."""

    epsilon: float
    delta: float
    points: int
    queries: int | None
    refusals: int | None
    counts: bool
    votes: Votes

    @property
    def most(self) -> int:
        """All points, unless their number is fixed: for mechanisms that queries cost nothing."""
        return self.points if self.queries is None else self.queries

    @property
    def numbers(self) -> list[int]:
        """Numbers of queries to try, where each of them costs."""
        return steps(_FEW, self.points) if self.queries is None else [self.queries]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism to be made, for so many queries, and what ends it."""

    made: Callable[[], Mechanism]
    queries: int
    refusals: int | None = None
    answers: int | None = None
    expected: tuple[float, float]
    """Queries answered, and answered by the teachers' winner."""
    known: float = 0.0
    """What a query's answer was worth beforehand, as it was proposed."""

    @property
    def worth(self) -> tuple[float, float]:
        """Right answers less four times the wrong ones, nothing below one; and the share of right ones, if any."""
        answered, right = self.expected
        worth = 5 * right - (4 + self.known) * answered
        return worth if worth >= 1 else 0.0, right / answered if answered >= 1 else 0.0


def steps(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … and last."""
    if last < 1:
        raise InputError("queries", last, requirement="must be at least 1", remedy="give public records")
    found = [first * 2**power for power in range(40) if first * 2**power < last]
    return [*found, last]
