"""The paper's Algorithm 2: stable queries are answered, the T-th refusal ends it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.guarantee import Guarantee
from ...theory import accounting
from .session import Answer, Noise, Session, check_budget, loss_guarantee, one_distance


@dataclass(frozen=True, kw_only=True)
class SparseVector:
    """Answers stable queries for free and stops at the T-th refusal: Algorithm 2, corrected, for any classes.

    The distance is `votes_to_flip` and it stops *at* `refusals`. `variant="faithful"` takes the printed constants and
    stops after `queries`; "tight" the least noise and threshold that exact composition allows, which do not depend on
    the number of queries: `queries=None` sets no limit.
    """

    epsilon: float
    delta: float
    refusals: int
    queries: int | None = None
    variant: str = "tight"

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("refusals", self.refusals, at_least=1, remedy="say after how many refusals it stops")
        validate.choice("variant", self.variant, ("tight", "faithful"), remedy="use 'tight' unless you compare")
        if self.queries is not None or self.variant == "faithful":
            validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked at most")

    @cached_property
    def scale(self) -> float:
        """λ, the scale of the threshold's noise; the distance's is twice as large."""
        scale = accounting.printed_scale if self.variant == "faithful" else accounting.sparse_vector_scale
        return scale(self.epsilon, self.delta, refusals=self.refusals)

    @cached_property
    def threshold(self) -> int:
        """w, the number of votes to flip around which refusals end."""
        if self.variant == "faithful" and self.queries is not None:
            return accounting.printed_threshold(self.delta, scale=self.scale, queries=self.queries)
        return accounting.sparse_vector_threshold(self.epsilon, self.delta, scale=self.scale, refusals=self.refusals)

    def distance(self, *, queries: int, failure_probability: float) -> int:
        """The votes to flip from which that many queries are all answered, but for the probability given."""
        return accounting.sparse_vector_distance(
            scale=self.scale,
            threshold=self.threshold,
            refusals=self.refusals,
            queries=queries,
            failure_probability=failure_probability,
        )

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        spent = accounting.sparse_vector_delta(
            self.epsilon, scale=self.scale, threshold=self.threshold, refusals=self.refusals
        )
        detail = {"refusals": self.refusals, "queries": self.queries, "variant": self.variant}
        theorem = ("sparse vector over stability", "theory.accounting.sparse_vector_delta")
        return loss_guarantee(self, spent, theorem, {**detail, "scale": self.scale, "threshold": self.threshold})

    def session(self, noise: Noise | None = None) -> Session:
        """One run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts at the threshold."""
        return 2 * self.threshold + 2, 0

    @property
    def spread(self) -> float:
        """The scale of the distance's noise."""
        return 2 * self.scale

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner if its noisy distance exceeds the noisy threshold; a refusal brings a new threshold."""
        if session.memory is None:
            session.memory = session.noise.laplace(self.scale)
        distance = one_distance(counts)
        if distance + session.noise.laplace(2 * self.scale) > self.threshold + session.memory:
            return int(np.argmax(counts))
        session.memory = None
        return None

    def finished(self, session: Session) -> bool:
        """At the T-th refusal, or after the last query where their number was given."""
        return session.refused >= self.refusals or (self.queries is not None and session.asked >= self.queries)
