"""The paper's Algorithm 1 on every query: plain composition."""

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
class StableRelease:
    """Algorithm 1 on each of a number of queries, composed: every query pays, whatever its answer."""

    epsilon: float
    delta: float
    queries: int = 1

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked")

    @cached_property
    def scale(self) -> float:
        """The scale of the distance's noise."""
        return accounting.stable_release_scale(self.epsilon, self.delta, queries=self.queries)

    @cached_property
    def threshold(self) -> int:
        """The number of votes to flip that the noisy distance has to exceed."""
        return accounting.stable_release_threshold(self.epsilon, self.delta, scale=self.scale, queries=self.queries)

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = accounting.stable_release_delta(
            self.epsilon, scale=self.scale, threshold=self.threshold, queries=self.queries
        )
        detail = {"queries": self.queries, "scale": self.scale, "threshold": self.threshold}
        theorem = ("stable release, composed", "theory.accounting.stable_release_delta")
        return loss_guarantee(self, spent, theorem, detail)

    def session(self, noise: Noise | None = None) -> Session:
        """One run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts at the threshold."""
        return 2 * self.threshold + 2, 0

    @property
    def spread(self) -> float:
        """The scale of the noise."""
        return self.scale

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner if its noisy distance exceeds the threshold."""
        distance = one_distance(counts)
        return int(np.argmax(counts)) if distance + session.noise.laplace(self.scale) > self.threshold else None

    def finished(self, session: Session) -> bool:
        """After the last query."""
        return session.asked >= self.queries
