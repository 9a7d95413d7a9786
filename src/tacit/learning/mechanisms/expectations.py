"""A model of teachers' votes, by which plans and the choice compute what to expect of every mechanism.

The share of teachers that are wrong on a query is Beta(e, 1 − e), e the error of one teacher, and they all name the
same wrong class. So two teachers are wrong together half-way between independence and always: the correlation of their
mistakes is 1/2. Measured on public data it was 0.48 to 0.64 for logistic regression (MNIST and Adult, 100 and 250
teachers), 0.29 to 0.36 for trees and nearest neighbours with errors below 25 %, 0.22 for trees that err on half of the
queries, and 0.08 to 0.25 where teachers saw less than sixty records. A Beta(10e, 10(1 − e)), whose correlation is 1/11,
finds the majority wrong on 1 to 4 % of the queries where it was on 13 to 16 %. That all wrong teachers agree is too
dark for many classes and large errors. None of this is a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

_NODES = 1001

Floats = NDArray[np.float64]


@cache
def wrong_shares(error: float) -> Floats:
    """Equally likely values of the share of teachers that are wrong on a query."""
    if error in (0.0, 1.0):
        return np.full(1, error)
    found: Floats = special.betaincinv(error, 1 - error, (np.arange(_NODES) + 0.5) / _NODES)
    return found


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Expected votes, all for two classes: the right one leads by one of equally likely margins.

    `proposer_error` is the share of proposed labels that are wrong, independently of the votes.
    """

    lead: Floats
    teachers: int
    classes: int = 2
    proposer_error: float = 0.0

    @cached_property
    def distance(self) -> Floats:
        """The votes to flip."""
        found: Floats = np.maximum(0.0, np.ceil(np.abs(self.lead) / 2) - 1)
        return found

    @cached_property
    def right(self) -> Floats:
        """The probability that the winner is right."""
        found: Floats = (self.lead > 0) + 0.5 * (self.lead == 0)
        return found


Rows = list[tuple[Votes, list[int]]]
"""Cases with equally many leads, as rows of one; and the place of each."""


def alike(cases: Sequence[Votes]) -> Rows:
    """Cases that are computed together."""
    found = dict[tuple[object, ...], list[int]]()
    for place, case in enumerate(cases):
        key = case.lead.size, case.teachers, case.classes, case.proposer_error
        found.setdefault(key, []).append(place)
    return [
        (replace(cases[places[0]], lead=np.stack([cases[place].lead.ravel() for place in places])), places)
        for places in found.values()
    ]


def reached(queries: int, limit: int | None, rate: float) -> float:
    """The number of queries that are asked until something of this rate has happened `limit` times."""
    return queries if limit is None or rate * queries <= limit else limit / rate
