"""The paper's Algorithm 2: stable queries are answered, the T-th refusal ends it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.guarantee import Guarantee
from ...theory import accounting, learnability
from .candidates import Candidate, Wanted, steps
from .expectations import Floats
from .session import Answer, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants, Run, Setting
from .stability import Thresholded, ThresholdedKind

_REFUSAL_STEPS = 40  # of the search for a number of refusals where nothing is proven


@dataclass(frozen=True, kw_only=True)
class SparseVector(Thresholded):
    """The paper's Algorithm 2, corrected, for any number of classes: only refusals cost, and the T-th ends it.

    The distance is `votes_to_flip`, and the session stops *at* the last refusal.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    refusals
        T, the number of refusals after which the session stops.
    queries
        The most queries that are asked; None sets no limit. Required for `variant="faithful"`.
    variant
        "tight" takes the least noise and threshold that exact composition allows, whatever the number of queries;
        "faithful" takes the constants that the paper prints.
    """

    refusals: int
    queries: int | None = None
    variant: str = "tight"

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("refusals", self.refusals, at_least=1, remedy="say after how many refusals it stops")
        validate.choice("variant", self.variant, ("tight", "faithful"), remedy="use 'tight' unless you compare")
        if self.queries is not None or self.variant == "faithful":
            validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked at most")

    @property
    def _scales(self) -> tuple[float, float]:
        """The least λ by either bound."""
        return _scales(self.epsilon, self.delta, self.refusals)

    @property
    def shifted(self) -> bool:
        """Whether the guarantee is the one in which thresholds bear a part of what one record shifts."""
        return self.variant == "tight" and self._scales[1] < self._scales[0]

    @cached_property
    def scale(self) -> float:
        """λ, the scale of the threshold's noise; the distance's is twice as large."""
        if self.variant == "faithful":
            return accounting.printed_scale(self.epsilon, self.delta, refusals=self.refusals)
        return min(self._scales)

    @cached_property
    def threshold(self) -> int:
        """w, the number of votes to flip around which refusals end."""
        if self.variant == "faithful" and self.queries is not None:
            return accounting.printed_threshold(self.delta, scale=self.scale, queries=self.queries)
        return accounting.sparse_vector_threshold(
            self.epsilon, self.delta, scale=self.scale, refusals=self.refusals, shifted=self.shifted
        )

    def distance(self, *, queries: int, failure_probability: float) -> int:
        """The votes to flip from which that many queries are all answered, but for the probability given."""
        return accounting.sparse_vector_distance(
            scale=self.scale,
            threshold=self.threshold,
            refusals=self.refusals,
            queries=queries,
            failure_probability=failure_probability,
        )

    @cached_property
    def delta_spent(self) -> float:
        """δ of these constants, which printed ones may exceed."""
        return accounting.sparse_vector_delta(
            self.epsilon, scale=self.scale, threshold=self.threshold, refusals=self.refusals, shifted=self.shifted
        )

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        detail = {"refusals": self.refusals, "queries": self.queries, "variant": self.variant, "shifted": self.shifted}
        noise = {"scale": self.scale, "threshold": self.threshold}
        theorem = ("sparse vector over stability", "theory.accounting.sparse_vector_delta")

        def constants() -> dict[str, Any]:
            return {"mechanism": "sparse vector", "refusals": self.refusals, **noise}

        return loss_guarantee(self, self.delta_spent, theorem, {**detail, **noise}, constants=constants)

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
            return int(counts.argmax())
        session.memory = None
        return None

    def finished(self, session: Session) -> bool:
        """At the T-th refusal, or after the last query where their number was given."""
        return session.refused >= self.refusals or (self.queries is not None and session.asked >= self.queries)


@lru_cache(maxsize=2048)
def _scales(epsilon: float, delta: float, refusals: int) -> tuple[float, float]:
    """The least λ by either bound; every choice of a mechanism asks for those of many budgets, and often again."""
    pure, shifted = (
        accounting.sparse_vector_scale(epsilon, delta, refusals=refusals, shifted=shifted) for shifted in (False, True)
    )
    return pure, shifted


class SparseVectorKind(ThresholdedKind):
    """With tight constants."""

    name = "svt"
    theorem = "theory.accounting.sparse_vector_delta"
    promise = ("theory.accounting.sparse_vector_distance",)
    informed = True
    variant: ClassVar[str] = "tight"

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """Those of the mechanism itself."""
        made = self._mechanism(setting, refusals, setting.queries)
        return Constants(
            noise=made.scale,
            threshold=made.threshold,
            refusals=refusals,
            distance=made.distance(queries=setting.queries, failure_probability=setting.share),
            delta_spent=made.delta_spent,
        )

    def stated(
        self,
        *,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """As of the mechanism itself."""
        return {"mechanism": "sparse vector", "scale": noise, "refusals": refusals, "threshold": threshold}

    def exceeds(self, gap: Floats, scale: float) -> Floats:
        """P(Y − Z > gap), Y of scale 2λ and Z of scale λ; see `accounting.unstable_release`."""
        b = math.exp(-1 / (2 * scale))
        w = np.where(gap >= 0, gap, -gap - 1)
        tail = (b ** (w + 1) * (1 + b) - b ** (2 * w + 3) / (1 + b * b)) / (1 + b + b * b)
        found: Floats = np.where(gap >= 0, tail, 1 - tail)
        return found

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """All points, and refusals by doubling."""
        asked = wanted.most
        for stop in steps(1, asked) if wanted.refusals is None else [wanted.refusals]:
            made = partial(self._mechanism, wanted, stop, asked)
            noise, threshold = made().scale, made().threshold
            found = self.in_each(wanted, queries=asked, noise=noise, threshold=threshold, refusals=stop)
            yield Candidate(made=made, queries=asked, refusals=stop, expected=found)

    def tried_refusals(self, setting: Setting) -> Sequence[int]:
        """From one to all queries."""
        return sorted({max(1, round(t)) for t in np.geomspace(1, setting.queries, _REFUSAL_STEPS)})

    def _mechanism(self, budget: Setting | Wanted, refusals: int, queries: int) -> SparseVector:
        return _made(budget.epsilon, budget.delta, refusals, queries, self.variant)


class PrintedKind(SparseVectorKind):
    """With the printed constants."""

    name = "svt-faithful"
    compared = False
    variant = "faithful"

    def printed_refusals(self, error: float, *, queries: int, failure_probability: float) -> int:
        """The T of the paper, no more than there are queries."""
        printed = learnability.printed_refusals(error, queries=queries, failure_probability=failure_probability)
        return min(queries, printed)

    def enough_teachers(self, error: float, teachers: int, setting: Setting) -> int:
        """The k of the paper."""
        m, failure = setting.queries, setting.failure_probability
        refusals = self.printed_refusals(error, queries=m, failure_probability=failure)
        scale = accounting.printed_scale(setting.epsilon, setting.delta, refusals=refusals)
        return accounting.printed_teachers(
            setting.delta, scale=scale, refusals=refusals, queries=m, failure_probability=failure
        )

    def promised(self, teachers: int, setting: Setting) -> Run | None:
        """None with fewer teachers than are printed."""
        enough = self.enough_teachers(setting.error(teachers), teachers, setting)
        return super().promised(teachers, setting) if enough <= teachers else None

    def theorems(self, setting: Setting) -> tuple[str, ...]:
        """With the k and the T of the paper."""
        *found, _ = super().theorems(setting)
        return (*found, "theory.accounting.printed_teachers", "theory.learnability.printed_refusals")

    def obstacle(self, run: Run, needed: int | None, setting: Setting) -> str:
        """Too few teachers."""
        if needed is None or needed <= run.teachers:
            return ""
        return f"the constants that the paper prints need {needed} teachers, and there are at most {run.teachers}"


@cache
def _made(epsilon: float, delta: float, refusals: int, queries: int, variant: str) -> SparseVector:
    """One remembers its constants."""
    return SparseVector(epsilon=epsilon, delta=delta, refusals=refusals, queries=queries, variant=variant)
