"""Private records as voters on public ones: those within a public radius vote with their label, each a few times.

It is not model-agnostic: it is a nearest-neighbour vote in the stated public features. What a voter does depends on
its own records, on the queries and on public things, never on another voter, to the last bit: features are whole
numbers on a public grid, so small that distances are exact in whatever order they are summed up
(docs/proofs/accounting.md, "Votes with a quota").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.wording import counted
from ..theory import accounting
from .choice import Choice
from .mechanisms import VoteQuota
from .mechanisms.candidates import steps
from .mechanisms.registry import NEIGHBOURS
from .owners import remember

_Floats = NDArray[np.float64]

VOTERS = "voters"
"""The folder, in that of a fit, which remembers who votes."""
_EXACT = 2.0**38
"""Sums of products of coordinates stay below this, so that floats of 64 bits hold them, and squared distances, exactly.
"""
_WIDE = 64.0
"""The grid ends at this many times the usual size of a feature: few records lie outside, and are moved to its edge."""
_AT_ONCE = 2**24
"""The number of distances that are held in memory."""
_SIGNAL = 8.0
"""The expected votes on a query, in standard deviations of the noise, below which no more queries are asked."""
_NEAR = 50
"""One public record in this many is near: beyond, the classes of records say little about that of the query."""
_FEW = 10
"""Or this many, where there are few."""


class Grid:
    """A rule that turns features into whole numbers, each record on its own. Public records alone decide it.

    Parameters
    ----------
    public
        Features of the public records.
    """

    def __init__(self, public: NDArray[Any]) -> None:
        public = public.astype(np.float64, copy=False)
        if not np.isfinite(public).all():
            raise InputError(
                "X_public",
                "features that are no numbers",
                requirement="must have finite features, in which neighbours are close",
                remedy="fill in what is missing, or choose other features",
            )
        self.levels = math.floor(math.sqrt(_EXACT / public.shape[1]))
        self.centre = np.median(public, axis=0)
        with np.errstate(over="ignore"):
            away = np.abs(public - self.centre)
            usual = float(np.median(np.sqrt(np.mean(away**2, axis=1))))
        most = float(np.max(away))
        width = min(most, _WIDE * usual) if usual > 0 else most
        self.width = min(width, float(np.finfo(float).max)) if width > 0 else 1.0

    def places(self, features: NDArray[Any]) -> _Floats:
        """Whole numbers, as floats; nan in a row that has features which are no numbers."""
        features = features.astype(np.float64, copy=False)  # in 32 bits, sums of products would be rounded
        with np.errstate(over="ignore", invalid="ignore"):
            found: _Floats = np.rint(np.clip((features - self.centre) / self.width, -1, 1) * self.levels)
        found[~np.isfinite(features).all(axis=1)] = np.nan
        return found


class NearbyVoters:
    """Private records that vote on public ones near them.

    A record votes on a query if it is as near to it as the `rank` public records nearest to it, other than itself; a
    person, by the nearest of their records. Each votes on at most `quota` queries, the first in the order asked.

    Parameters
    ----------
    public
        Features of the public records; queries must be among them.
    rank, quota
        As of `VoteQuota`.
    classes
        The number of classes.
    """

    def __init__(self, public: NDArray[Any], *, rank: int, quota: int, classes: int) -> None:
        self.rank, self.quota, self.classes = rank, quota, classes
        self._grid = Grid(public)
        self._public = _Points(self._grid.places(public))

    def fit(
        self,
        features: NDArray[Any],
        numbers: NDArray[np.int64],
        *,
        people: list[bytes] | None,
        key: bytes,
        folder: Path | None = None,
    ) -> NearbyVoters:
        """Keep the voters: their features, the numbers of their classes, and whose each is if there are people.

        A `folder` remembers a keyed digest of them, so that a run that goes on there asks the same voters.
        """
        if folder is not None:
            remember(folder, features, numbers, people, key)
        places = self._grid.places(features)
        usable = np.isfinite(places).all(axis=1)
        self._voters, self._numbers = _Points(places[usable]), numbers[usable]
        self._people: NDArray[np.int64] | None = None
        if people is not None:
            number = {person: place for place, person in enumerate(dict.fromkeys(people))}
            self._people = np.array([number[person] for person in people], dtype=np.int64)[usable]
        return self

    def counts(self, queries: NDArray[Any]) -> NDArray[np.int64]:
        """The number of voters for each class, on these queries in this order. Private: only for a mechanism.

        Every call begins with all votes left: pass all queries of a release at once.
        """
        voters = len(self._voters.places) if self._people is None else int(self._people.max(initial=-1)) + 1
        left = np.full(voters, self.quota, dtype=np.int64)
        found = np.zeros((len(queries), self.classes), dtype=np.int64)
        for query, near, squares in self._near(queries, self._voters):
            voting, numbers = near, self._numbers[near]
            if self._people is not None:
                people = self._people[near]
                order = np.lexsort((numbers, squares, people))  # of a person's records, the nearest comes first
                voting, first = np.unique(people[order], return_index=True)
                numbers = numbers[order][first]
            able = left[voting] > 0
            left[voting[able]] -= 1
            found[query] = np.bincount(numbers[able], minlength=self.classes)
        return found

    def demand(self, queries: NDArray[Any]) -> NDArray[np.int64]:
        """The number of queries that each public record is near, itself left out: about that of a private one."""
        found = np.zeros(len(self._public.places), dtype=np.int64)
        for _, near, squares in self._near(queries, self._public):
            itself = near[int(np.argmin(squares))]
            found[near] += 1
            found[itself] -= 1
        return found

    def _near(self, queries: NDArray[Any], points: _Points) -> Iterator[tuple[int, NDArray[np.int64], _Floats]]:
        """For each query, the places of the points within its radius, and their squared distances."""
        block = max(1, _AT_ONCE // max(len(points.places), len(self._public.places)))
        rank = min(self.rank, len(self._public.places) - 1)
        for start in range(0, len(queries), block):
            asked = _Points(self._grid.places(queries[start : start + block]))
            # The nearest public record is the query itself.
            radius = np.partition(asked.squares_to(self._public), rank, axis=1)[:, rank]
            for query, squares in enumerate(asked.squares_to(points)):
                near = np.flatnonzero(squares <= radius[query])
                yield start + query, near, squares[near]


class _Points:
    """Points on the grid, with their squared lengths."""

    def __init__(self, places: _Floats) -> None:
        self.places = np.ascontiguousarray(places)
        self.squares = np.einsum("ij,ij->i", places, places)

    def squares_to(self, others: _Points) -> _Floats:
        """All squared distances: exact, as no sum of these whole numbers is rounded."""
        found: _Floats = self.places @ others.places.T
        found *= -2
        found += self.squares[:, None]
        found += others.squares
        return found


def nearby_choice(
    seen: NDArray[Any],
    places: Callable[[int], NDArray[np.int64]],
    *,
    voters: int,
    epsilon: float,
    delta: float,
    queries: int | None,
    changed: int,
) -> Choice:
    """The number of queries, the rank and the quota, by public records and the number of voters.

    As many queries are asked as leave enough votes for each among so near records, by an estimate that was made
    beforehand; the rank is the least that does. The quota is the one with the most votes for its noise, if private
    records lie where public ones do.

    Parameters
    ----------
    seen
        Features of the public records.
    places
        Returns which of them to ask about, for a number of queries.
    voters
        The number of records, or of people; with noise where it is private.
    epsilon, delta
        The budget.
    queries
        The number of queries, None to have it chosen.
    changed
        As of `VoteQuota`.
    """
    points = len(seen)
    unit = accounting.quota_sigma(epsilon, delta, quota=1, changed=changed)
    ranks = np.arange(1, max(1, min(points - 1, max(_FEW, points // _NEAR))) + 1)

    def signals(asked: int) -> _Floats:
        """About the votes on a query in standard deviations of the noise, for each rank."""
        found: _Floats = voters / points * ranks / (unit * np.sqrt(1 + 2 * ranks * asked / points))
        return found

    tried = steps(25, points) if queries is None else [queries]
    asked = max((number for number in tried if signals(number)[-1] >= _SIGNAL), default=tried[0])
    enough = np.flatnonzero(signals(asked) >= _SIGNAL)
    rank = int(ranks[enough[0] if len(enough) else -1])
    demand = NearbyVoters(seen, rank=rank, quota=1, classes=1).demand(seen[places(asked)])
    quotas = np.arange(1, max(1, int(demand.max())) + 1)
    # Votes on all queries against the noise of each, for a quota; sums of demands up to it, by their distribution.
    below = np.cumsum(np.cumsum(np.bincount(demand, minlength=len(quotas) + 1)[::-1])[::-1][1:])
    quota = int(quotas[np.argmax(below / np.sqrt(quotas))])
    mechanism = VoteQuota(epsilon=epsilon, delta=delta, quota=quota, rank=rank, changed=changed)
    return Choice(
        name=NEIGHBOURS,
        mechanism=mechanism,
        queries=asked,
        expected_answers=asked,
        expected_right=math.nan,
        kept=1.0,
        reason=f"{NEIGHBOURS}, queries = {asked}, rank = {rank}, quota = {quota}, for about {counted(voters, 'voter')} "
        f"and {counted(points, 'record')} to ask about: a private record votes on a query if it is as near to it "
        f"as the nearest {counted(rank, 'public record')}, and {counted(quota, 'time')} at most. It is not "
        "model-agnostic: it is a nearest-neighbour vote in the stated public features. No private vote was used for "
        "this",
    )


def expected_votes(mechanism: VoteQuota, *, voters: int, points: int) -> float:
    """About the number of votes on a query, if private records lie where public ones do."""
    return max(1.0, voters * min(mechanism.rank, points) / points)
