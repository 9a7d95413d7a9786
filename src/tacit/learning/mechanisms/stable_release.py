"""The paper's Algorithm 1 on every query: plain composition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.guarantee import Guarantee
from ...theory import accounting, learnability
from .candidates import Candidate, Wanted
from .expectations import Floats
from .session import Answer, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants, Setting
from .stability import Thresholded, ThresholdedKind


@dataclass(frozen=True, kw_only=True)
class StableRelease(Thresholded):
    """The paper's Algorithm 1 on each of a number of queries, composed: every query costs, whatever its answer.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    queries
        The number of queries after which the session stops.
    """

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
        return loss_guarantee(
            self, self.delta_spent, theorem, detail, constants=lambda: {"mechanism": "stable release", **detail}
        )

    @property
    def spread(self) -> float:
        """The scale of the noise."""
        return self.scale

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner if its noisy distance exceeds the threshold."""
        distance = one_distance(counts)
        return int(counts.argmax()) if distance + session.noise.laplace(self.scale) > self.threshold else None

    def finished(self, session: Session) -> bool:
        """After the last query."""
        return session.asked >= self.queries


class StableKind(ThresholdedKind):
    """Plain composition."""

    name = "stable"
    theorem = "theory.accounting.stable_release_delta"
    promise = ("theory.learnability.stable_release_distance",)
    compared = False

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """Those of the mechanism itself."""
        made = _made(epsilon=setting.epsilon, delta=setting.delta, queries=setting.queries)
        distance = learnability.stable_release_distance(
            scale=made.scale, threshold=made.threshold, queries=setting.queries, failure_probability=setting.share
        )
        return Constants(noise=made.scale, threshold=made.threshold, distance=distance, delta_spent=made.delta_spent)

    def stated(
        self,
        *,
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """As of the mechanism itself."""
        return {"mechanism": "stable release", "scale": noise, "queries": queries, "threshold": threshold}

    def exceeds(self, gap: Floats, scale: float, refusals: int | None) -> Floats:
        """P(Y > gap) for a discrete Laplace Y."""
        b = math.exp(-1 / scale)
        found: Floats = np.where(
            gap >= 0, b ** (np.maximum(gap, 0) + 1) / (1 + b), 1 - b ** np.maximum(-gap, 0) / (1 + b)
        )
        return found

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Queries by doubling."""
        for asked in wanted.numbers:
            made = partial(_made, epsilon=wanted.epsilon, delta=wanted.delta, queries=asked)
            found = self.in_each(wanted, queries=asked, noise=made().scale, threshold=made().threshold)
            yield Candidate(made=made, queries=asked, expected=found)


_made = cache(StableRelease)  # which remembers its constants
