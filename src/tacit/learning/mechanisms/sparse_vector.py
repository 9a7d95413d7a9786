"""The paper's Algorithm 2, if it can with a threshold that anyone may know: refusals end it, and answers are free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import NoTheoremError
from ...core.guarantee import Guarantee
from ...theory import accounting, learnability, open_threshold
from ...theory.gate import ONE
from .candidates import Candidate, Wanted, steps
from .expectations import Floats
from .gate_design import Design, game
from .session import Answer, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants, Run, Setting
from .stability import Thresholded, ThresholdedKind

UNIT = 2**160
"""Chances of a refusal are whole numbers over this, so that they are drawn exactly."""

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
        "tight" has an open threshold, which needs no noise, beside a Gumbel law for the distances: its cost is known
        exactly, whatever the number of queries. Where the first refusal is the last, it has the paper's Laplace noise
        on threshold and distances, with the least constants. "faithful" has that noise always, and the constants that
        the paper prints.
    """

    refusals: int
    queries: int | None = None
    variant: str = "tight"

    unit: ClassVar[int] = UNIT
    """Chances are whole numbers over this."""
    labels: ClassVar[bool] = True
    first: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("refusals", self.refusals, at_least=1, remedy="say after how many refusals it stops")
        validate.choice("variant", self.variant, ("tight", "faithful"), remedy="use 'tight' unless you compare")
        if self.queries is not None or self._printed:
            validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked at most")

    @property
    def _printed(self) -> bool:
        return self.variant == "faithful"

    @property
    def keeps_noise(self) -> bool:
        """Whether noise hides the threshold. It is kept between queries, and an interruption loses it."""
        return _hidden(self.variant, self.refusals)

    @cached_property
    def scale(self) -> float:
        """The scale of the distance's noise; if the threshold has some, λ, that of its own, half of the distance's."""
        if self._printed:
            return accounting.printed_scale(self.epsilon, self.delta, refusals=self.refusals)
        return _scale(self.epsilon, self.delta, self.refusals, self.keeps_noise)

    @cached_property
    def threshold(self) -> int:
        """w, the number of votes to flip around which refusals end."""
        if self._printed and self.queries is not None:
            return accounting.printed_threshold(self.delta, scale=self.scale, queries=self.queries)
        least = accounting.sparse_vector_threshold if self.keeps_noise else open_threshold.open_threshold_votes
        return least(self.epsilon, self.delta, scale=self.scale, refusals=self.refusals)

    def distance(self, *, queries: int, failure_probability: float) -> int:
        """The votes to flip from which that many queries are all answered, but for the probability given."""
        noise: dict[str, Any] = {"scale": self.scale, "threshold": self.threshold}
        asked: dict[str, Any] = {"queries": queries, "failure_probability": failure_probability}
        if self.keeps_noise:
            return accounting.sparse_vector_distance(**noise, **asked, refusals=self.refusals)
        return open_threshold.open_threshold_distance(**noise, **asked)

    @cached_property
    def delta_spent(self) -> float:
        """δ of these constants, which printed ones may exceed."""
        cost = accounting.sparse_vector_delta if self.keeps_noise else open_threshold.open_threshold_delta
        return cost(self.epsilon, scale=self.scale, threshold=self.threshold, refusals=self.refusals)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        detail = {"refusals": self.refusals, "queries": self.queries, "variant": self.variant}
        noise = {"scale": self.scale, "threshold": self.threshold}
        theorem = ("sparse vector with an open threshold", "theory.open_threshold.open_threshold_delta")
        if self.keeps_noise:
            theorem = ("sparse vector over stability", "theory.accounting.sparse_vector_delta")

        def constants() -> dict[str, Any]:
            return {"mechanism": _stated(hidden=self.keeps_noise), "refusals": self.refusals, **noise}

        return loss_guarantee(self, self.delta_spent, theorem, {**detail, **noise}, constants=constants)

    def chance(self, distance: int) -> float:
        """The probability that a query with this many votes to flip is refused, where the threshold is open."""
        return self._refusing(distance) / self.unit

    def place(self, *, chance: float) -> int:
        """The votes to flip from which a query is refused with at most this probability."""
        return self.distance(queries=1, failure_probability=chance)

    @cached_property
    def table(self) -> tuple[int, ...]:
        """The chances of a refusal, of `unit`, by votes to flip, down to one in 10¹²: what an attack looks at."""
        return tuple(self._refusing(distance) for distance in range(self.place(chance=1e-12) + 1))

    @property
    def design(self) -> Design:
        """The game of the table, for an attack to play."""
        released = round(ONE * (1 - self.chance(0)))
        return game(self.epsilon, refusals=self.refusals, released=released, step=1 / self.scale)

    def _refusing(self, distance: int) -> int:
        """The chance of a refusal, of `unit`."""
        if self.keeps_noise:
            raise NoTheoremError(
                f"the threshold must be open for chances by distance alone, got {self.refusals} refusals with variant "
                f"{self.variant!r}; use variant='tight' with at least 2 refusals"
            )
        return refusing(distance, scale=self.scale, threshold=self.threshold)

    @property
    def spread(self) -> float:
        """The scale of the distance's noise."""
        return 2 * self.scale if self.keeps_noise else self.scale

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner if its noisy distance exceeds the threshold; if it is hidden, a refusal brings another one."""
        distance = one_distance(counts)
        if not self.keeps_noise:
            refused = session.noise.coin(self._refusing(distance), of=self.unit)
            return None if refused else int(counts.argmax())
        if session.memory is None:
            session.memory = session.noise.laplace(self.scale)
        if distance + session.noise.laplace(2 * self.scale) > self.threshold + session.memory:
            return int(counts.argmax())
        session.memory = None
        return None

    def finished(self, session: Session) -> bool:
        """At the T-th refusal, or after the last query where their number was given."""
        return session.refused >= self.refusals or (self.queries is not None and session.asked >= self.queries)


def refusing(distance: int, *, scale: float, threshold: int) -> int:
    """The chance 1 − exp(−H) of a refusal where the threshold is open, of `UNIT`.

    Floats err by less than a share of 10⁻¹³ of H, for which the theorem has room.
    """
    least, most = open_threshold.HAZARDS
    hazard = max(least, min(most, math.exp(min(700.0, (threshold - distance) / scale))))
    if hazard < 1:
        return int(-math.expm1(-hazard) * UNIT)
    return UNIT - int(math.exp(-hazard) * (1 - 1e-13) * UNIT)


def open_law(gap: Floats, scale: float) -> Floats:
    """P(Y > gap) for a Gumbel Y turned round, as `refusing` draws it."""
    found: Floats = np.exp(-np.exp(np.minimum(gap / scale, 700.0)))
    return found


def _hidden(variant: str, refusals: int | None) -> bool:
    """Whether noise hides the threshold. Where the first refusal is the last this mostly takes fewer votes."""
    return variant == "faithful" or refusals == 1


def _possible(variant: str, delta: float, refusals: int) -> bool:
    """Whether there is a design: of an open threshold not for the least δ."""
    return _hidden(variant, refusals) or delta >= open_threshold.LEAST_DELTA * refusals


def _stated(*, hidden: bool) -> str:
    """The name of the mechanism in a certificate."""
    return "sparse vector" if hidden else "open threshold"


@lru_cache(maxsize=2048)
def _scale(epsilon: float, delta: float, refusals: int, hidden: bool) -> float:
    """Every choice of a mechanism asks for those of many budgets, and often again."""
    least = accounting.sparse_vector_scale if hidden else open_threshold.open_threshold_scale
    return least(epsilon, delta, refusals=refusals)


class SparseVectorKind(ThresholdedKind):
    """With the least constants."""

    name = "svt"
    theorem = "theory.open_threshold.open_threshold_delta"
    promise = ("theory.open_threshold.open_threshold_distance",)
    informed = True
    variant: ClassVar[str] = "tight"

    def proof(self, refusals: int | None) -> tuple[str, tuple[str, ...]]:
        """Another one where noise hides the threshold."""
        if _hidden(self.variant, refusals):
            return "theory.accounting.sparse_vector_delta", ("theory.accounting.sparse_vector_distance",)
        return self.theorem, self.promise

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
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """As of the mechanism itself."""
        name = _stated(hidden=_hidden(self.variant, refusals))
        return {"mechanism": name, "scale": noise, "refusals": refusals, "threshold": threshold}

    def exceeds(self, gap: Floats, scale: float, refusals: int | None) -> Floats:
        """P(Y > gap) for a Gumbel Y turned round; if the threshold is hidden, P(Y − Z > gap) of `unstable_release`."""
        if not _hidden(self.variant, refusals):
            return open_law(gap, scale)
        b = math.exp(-1 / (2 * scale))
        w = np.where(gap >= 0, gap, -gap - 1)
        tail = (b ** (w + 1) * (1 + b) - b ** (2 * w + 3) / (1 + b * b)) / (1 + b + b * b)
        found: Floats = np.where(gap >= 0, tail, 1 - tail)
        return found

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """All points, and refusals by doubling."""
        asked = wanted.most
        possible = (stop for stop in steps(1, asked) if _possible(self.variant, wanted.delta, stop))
        for stop in possible if wanted.refusals is None else [wanted.refusals]:
            made = partial(self._mechanism, wanted, stop, asked)
            noise, threshold = made().scale, made().threshold
            found = self.in_each(wanted, queries=asked, noise=noise, threshold=threshold, refusals=stop)
            yield Candidate(made=made, queries=asked, refusals=stop, expected=found)

    def tried_refusals(self, setting: Setting) -> Sequence[int]:
        """From one to all queries."""
        tried = {max(1, round(t)) for t in np.geomspace(1, setting.queries, _REFUSAL_STEPS)}
        return sorted(stop for stop in tried if _possible(self.variant, setting.delta, stop))

    def possible(self, refusals: int, setting: Setting) -> bool:
        """For all but the least δ."""
        return _possible(self.variant, setting.delta, refusals)

    def _mechanism(self, budget: Setting | Wanted, refusals: int, queries: int) -> SparseVector:
        return _made(budget.epsilon, budget.delta, refusals, queries, self.variant)


class PrintedKind(SparseVectorKind):
    """With noise and constants as printed."""

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

    def theorems(self, setting: Setting, refusals: int | None) -> tuple[str, ...]:
        """With the k and the T of the paper."""
        *found, _ = super().theorems(setting, refusals)
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
