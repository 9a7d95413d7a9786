"""Noisy counts of voters that retire: the number of queries costs nothing, only how often one voter votes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.guarantee import Assumption, Guarantee
from ...theory import accounting
from .gnmax import NoisyVotes, check_counts, noisy
from .session import Answer, Session, check_budget, loss_guarantee


def _one_quota(changed: int) -> Assumption:
    differ = "which one of them has and the other has not" if changed == 1 else "in its records or labels"
    return Assumption(
        text="each voter, a record or a person, casts one vote on a query or none, by its own records, the queries and "
        "public things alone, and none once it has voted on as many queries as the quota says; data that differ in "
        f"what is protected differ in one voter, {differ}",
        checked_by="caller",
    )


@dataclass(frozen=True, kw_only=True)
class VoteQuota(NoisyVotes):
    """Answer every query by noisy counts of voters, each of which votes on a limited number of queries.

    The session never stops: what a query costs is paid by those who vote on it. The counts must come from voters that
    keep to the quota, such as the records near a query (`PrivateClassifier` with `mechanism="neighbours"`); votes of
    teachers, who vote on every query, do not.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session, of any number of queries.
    quota
        The number of queries on which one voter, a record or a person, may vote.
    rank
        A record votes on a query if it is as near to it as this many public records are, other than the query itself.
    changed
        The number of counts that one vote may change: 1 if records are protected, 2 if only labels are.
    counts
        Release all noisy counts instead of the largest one's class, at the same cost.
    """

    epsilon: float
    delta: float
    quota: int
    rank: int
    changed: int = 1
    counts: bool = True

    keeps_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("quota", self.quota, at_least=1, remedy="say on how many queries a record may vote")
        validate.whole("rank", self.rank, at_least=1, remedy="use about a hundredth of the public records")
        validate.whole("changed", self.changed, at_least=1, remedy="use 1, or 2 if only labels are protected")
        check_counts(self.counts)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every count's noise."""
        return accounting.quota_sigma(self.epsilon, self.delta, quota=self.quota, changed=self.changed)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = accounting.quota_delta(self.epsilon, sigma=self.sigma, quota=self.quota, changed=self.changed)
        detail = {
            "quota": self.quota,
            "rank": self.rank,
            "changed": self.changed,
            "sigma": self.sigma,
            "counts": self.counts,
        }
        theorem = ("noisy counts of voters with a quota", "theory.accounting.quota_delta")
        return loss_guarantee(self, spent, theorem, detail, voting=_one_quota(self.changed))

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """All noisy counts; or the class of the largest, of equals the first."""
        return noisy(counts, self.sigma, session.noise, whole=self.counts)

    def finished(self, session: Session) -> bool:
        """Never: voters retire, the session does not."""
        return False
