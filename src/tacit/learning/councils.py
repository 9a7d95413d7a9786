"""How many teachers to train: the more there are, the less one record counts, and the less each has learned.

The numbers here are a model, like that of `expectations`, and no proof. Of teachers with s records each, the winning
class leads by s/(s + 3c) of what it would lead by with many records, c the number of classes; and what most of them say
is not what one that learned from all records would say on a share 0.4/√s of the queries. Ridge classifiers of CIFAR-10
(features of a network), SST-2 (embeddings) and artificial classes were about like that, with 10 to 1000 records each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .mechanisms.cases import votes_ahead
from .mechanisms.expectations import Floats

LEAST = 10
"""The fewest records of a teacher."""
_NUMBERS = (10, 15, 20, 30, 50, 70, 90)
"""Numbers of teachers to try, and 10, 100 and 1000 times them: a noisy number of records changes which only where
it is near ten times one of them."""
_POWERS = 4
"""Powers of ten to try: at a tiny ε, the noisy number of records may be a billion where there are few."""
_RECORDS = 3.0
"""With so many records for each class, the winner leads by half of what it would with many."""
_UNLIKE = 0.4
"""What most of them say is not what one that learned from all records would say on such a share, divided by √s."""


@dataclass(frozen=True, kw_only=True)
class Council:
    """Teachers as they are thought to be.

    Attributes
    ----------
    teachers
        How many there are.
    settled
        The lead of the winning class, as a share of what it would be if teachers had many records.
    faithful
        The share of queries on which most teachers say what one that learned from all records would say.
    """

    teachers: int
    settled: float = 1.0
    faithful: float = 1.0

    def votes_ahead(self, shares: Floats) -> Floats:
        """The votes by which the winning class leads, for leads that teachers of many records would have."""
        return votes_ahead(self.settled * shares, self.teachers)


def councils(records: int, classes: int) -> list[Council]:
    """The councils to compare for a number of records, the largest first; for few records one of the root of them."""
    numbers = sorted((first * 10**power for power in range(_POWERS) for first in _NUMBERS), reverse=True)
    found = [number for number in numbers if number * LEAST <= records] or [max(1, math.isqrt(records))]
    return [_council(number, max(1, records // number), classes) for number in found]


def _council(teachers: int, size: int, classes: int) -> Council:
    return Council(
        teachers=teachers, settled=size / (size + _RECORDS * classes), faithful=1 - _UNLIKE / math.sqrt(max(1, size))
    )
