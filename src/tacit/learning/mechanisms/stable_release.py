"""The paper's Algorithm 1 on every query: plain composition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.guarantee import Guarantee
from ...theory import accounting, learnability
from .candidates import Candidate, Wanted
from .expectations import Floats, Votes
from .kind import Kind
from .session import Answer, Noise, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants, Setting


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

    @cached_property
    def delta_spent(self) -> float:
        """δ of these constants."""
        return accounting.stable_release_delta(
            self.epsilon, scale=self.scale, threshold=self.threshold, queries=self.queries
        )

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        detail = {"queries": self.queries, "scale": self.scale, "threshold": self.threshold}
        theorem = ("stable release, composed", "theory.accounting.stable_release_delta")
        return loss_guarantee(self, self.delta_spent, theorem, detail)

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


class StableKind(Kind):
    """Plain composition."""

    name = "stable"
    title = "plain composition"
    theorem = "theory.accounting.stable_release_delta"
    compared = False

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """Those of the mechanism itself."""
        made = _made(epsilon=setting.epsilon, delta=setting.delta, queries=setting.queries)
        distance = learnability.stable_release_distance(
            scale=made.scale, threshold=made.threshold, queries=setting.queries, failure_probability=setting.share
        )
        return Constants(noise=made.scale, threshold=made.threshold, distance=distance, delta_spent=made.delta_spent)

    def chances(self, votes: Votes, *, noise: float, threshold: int | None) -> tuple[Floats, Floats]:
        """The winner where its distance with noise exceeds the threshold."""
        return _exceeds((threshold or 0) - votes.distance, noise), votes.right

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Queries by doubling."""
        for asked in wanted.numbers:
            made = partial(_made, epsilon=wanted.epsilon, delta=wanted.delta, queries=asked)
            found = self.expected(wanted.votes, queries=asked, noise=made().scale, threshold=made().threshold)
            yield Candidate(made=made, queries=asked, expected=found)


_made = cache(StableRelease)  # which remembers its constants


def _exceeds(gap: Floats, scale: float) -> Floats:
    """P(Y > gap) for a discrete Laplace Y."""
    b = math.exp(-1 / scale)
    found: Floats = np.where(gap >= 0, b ** (np.maximum(gap, 0) + 1) / (1 + b), 1 - b ** np.maximum(-gap, 0) / (1 + b))
    return found
