"""Sparse vector with an open threshold whose noise is chosen anew for every query, by what was answered before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import BudgetSpentError, NoTheoremError
from ...core.guarantee import Guarantee
from ...theory import open_threshold
from ...theory.adaptive_threshold import adaptive_threshold_delta
from .adaptive_policy import UNIT, Constants, Policy, State, policy
from .candidates import Candidate, Wanted
from .expectations import Floats, Rows, Votes, alike
from .session import Answer, Noise, Session, check_budget, loss_guarantee, one_distance
from .setting import Constants as Planned
from .setting import Setting
from .sparse_vector import UNIT as CHANCES
from .sparse_vector import open_law, refusing
from .stability import ThresholdedKind

_LEAST_EPSILON, _MOST_EPSILON, _LEAST_DELTA = 1e-6, 1e3, 1e-20
"""For other budgets no constants were looked for."""
_LUCK = 0.9
"""The share of what is foreseen that is compared with other mechanisms: chances are followed there, and coins vary."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveVector:
    """Sparse vector that need not know beforehand how many queries it will refuse.

    It begins with noise that suits any number, and learns from answers and refusals how far teachers agree. Where few
    queries are refused it refuses fewer still, where many are it has refusals left for all. Each refusal costs by its
    noise, and answers are free, as in `SparseVector`.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    queries
        The number of queries after which the session stops; the noise is chosen for as many.
    teachers
        The number of teachers that are thought to vote, from which it is foreseen what noise they stand.
    """

    epsilon: float
    delta: float
    queries: int
    teachers: int

    keeps_noise: ClassVar[bool] = False
    """No noise is kept between queries, so an interrupted run loses none."""

    def __post_init__(self) -> None:
        check_budget(self)
        remedy = "use about 1, or another mechanism"
        validate.number("epsilon", self.epsilon, at_least=_LEAST_EPSILON, at_most=_MOST_EPSILON, remedy=remedy)
        validate.number("delta", self.delta, at_least=_LEAST_DELTA, below=1, remedy="use about 1/n²")
        validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked")
        validate.whole("teachers", self.teachers, at_least=1, remedy="say how many teachers vote")

    @property
    def policy(self) -> Policy:
        """The rule that chooses the noise."""
        return policy(self.epsilon, self.delta, self.teachers, self.queries)

    @property
    def constants(self) -> Constants:
        """Scales of noise that it chooses among, and what a refusal costs with each."""
        return self.policy.constants

    @property
    def delta_spent(self) -> float:
        """δ of these constants."""
        found = self.constants
        budget = found.budget / UNIT  # exact: a whole number of at most 53 bits over a power of two
        return adaptive_threshold_delta(self.epsilon, order=found.order, budget=budget, labels=found.labels)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session, with any number of adaptive queries."""
        found = self.constants

        def stated() -> dict[str, Any]:
            return {
                "mechanism": "adaptive threshold",
                "order": found.order,
                "budget": found.budget,
                "labels": found.labels,
                "scales": list(found.scales),
                "prices": list(found.prices),
                "thresholds": list(found.thresholds),
                "last_scale": found.last_scale,
                "last_threshold": found.last_threshold,
            }

        detail = {
            "queries": self.queries,
            "teachers_foreseen": self.teachers,
            "order": found.order,
            "budget": found.budget / UNIT,
            "scale_least": found.last_scale,
            "scale_most": found.scales[-1],
        }
        theorem = ("sparse vector with noise chosen anew", "theory.adaptive_threshold.adaptive_threshold_delta")
        return loss_guarantee(self, self.delta_spent, theorem, detail, constants=stated)

    @property
    def begins(self) -> tuple[float, int]:
        """The scale and the threshold of the noise that it begins with."""
        scale, threshold, _ = self.constants.options[self.policy.choice(self.policy.begin(1))]
        return scale, threshold

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts at the threshold of the noise that it begins with."""
        _, threshold = self.begins
        return 2 * threshold + 2, 0

    @property
    def spread(self) -> float:
        """The scale of the noise that it begins with."""
        scale, _ = self.begins
        return scale

    def session(self, noise: Noise | None = None) -> AdaptiveSession:
        """Begin one run."""
        return AdaptiveSession(self, noise)

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The winner, unless a coin refuses, whose chance depends on the votes to flip and on what was answered."""
        if not isinstance(session, AdaptiveSession):
            raise NoTheoremError("this mechanism must be asked by a session of its own, got another; use session()")
        scale, threshold, _ = session.option
        refused = session.noise.coin(refusing(one_distance(counts), scale=scale, threshold=threshold), of=CHANCES)
        session.count(refused=refused)
        return None if refused else int(counts.argmax())

    def finished(self, session: Session) -> bool:
        """At the refusal that is the last, or after the last query."""
        return bool(getattr(session, "ended", True)) or session.asked >= self.queries


class AdaptiveSession(Session):
    """One run of `AdaptiveVector`, which adds up what its refusals cost.

    Attributes
    ----------
    ended
        Whether the last refusal has been given.
    """

    mechanism: AdaptiveVector

    def __init__(self, mechanism: AdaptiveVector, noise: Noise | None = None) -> None:
        super().__init__(mechanism, noise)
        self.ended = False
        self._policy = mechanism.policy
        self._options = mechanism.constants.options
        self._state: State = self._policy.begin(1)
        self._chosen, self._queries = self._policy.choice(self._state), 1

    @property
    def option(self) -> tuple[float, int, int | None]:
        """The scale, the threshold and the price of a refusal of the next query; anyone can compute it from answers."""
        return self._options[self._chosen]

    @property
    def left(self) -> int:
        """What is left for the prices of refusals, of `UNIT`."""
        return int(self._state.left[0])

    @property
    def last(self) -> bool:
        """Whether the next refusal is the last."""
        return bool(self._state.last[0])

    @property
    def kept(self) -> dict[str, object]:
        """All three, for a run that goes on."""
        return {"left": self.left, "last": self.last, "ended": self.ended}

    def count(self, *, refused: bool) -> None:
        """Count a refusal or an answer of the option above."""
        _, _, price = self.option
        if self.ended or (price is not None and price > self.left):
            raise BudgetSpentError(
                f"a session must end with its budget, got one more {'refusal' if refused else 'answer'} with "
                f"{self.left} left; ask no more"
            )
        self.ended = refused and price is None
        answered, refusals = np.array([float(not refused)]), np.array([float(refused)])
        self._state = self._policy.after(self._state, np.array([self._chosen]), answered=answered, refusals=refusals)
        self._queries -= 1
        if refused or not self._queries:
            self._chosen = self._policy.choice(self._state)
            self._queries = max(1, int(self._policy.soon(self._state)[0]))

    def replay(self, answers: Sequence[Answer], *, charged: int) -> None:
        """Follow the answers that an interrupted run has released: every option was chosen by those before it."""
        super().replay(answers, charged=charged)
        for answer in answers:
            self.count(refused=answer is None)

    def go_on(self, *, answered: int, refused: int) -> None:
        """Refused: what refusals have cost depends on when they came."""
        raise NoTheoremError(
            f"a session whose noise is chosen anew must follow its answers one by one, got {answered} answers and "
            f"{refused} refusals; use replay"
        )


class AdaptiveKind(ThresholdedKind):
    """The same, before its constants are known."""

    name = "svt-adaptive"
    refuses_by_number = False
    unpromised = "its noise follows its answers, which nobody knows beforehand"

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Where constants are known to be found."""
        manageable = _LEAST_EPSILON <= epsilon <= _MOST_EPSILON and delta >= _LEAST_DELTA
        return super().available(epsilon, delta, proposals=proposals) and manageable

    def considered(self, wanted: Wanted, *, proposals: bool) -> bool:
        """Not where a number of refusals is wanted."""
        return wanted.refusals is None and super().considered(wanted, proposals=proposals)

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """One, which asks about all points."""
        asked, teachers = wanted.most, wanted.votes[0].teachers
        made = partial(AdaptiveVector, epsilon=wanted.epsilon, delta=wanted.delta, queries=asked, teachers=teachers)
        yield Candidate(made=made, queries=asked, expected=_foreseen(made(), wanted.alike))

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Planned:
        """Those that it begins with."""
        scale, threshold = _planned(setting, teachers).begins
        distance = open_threshold.open_threshold_distance(
            scale=scale, threshold=threshold, queries=setting.queries, failure_probability=setting.share
        )
        return Planned(noise=scale, threshold=threshold, distance=distance)

    def exceeds(self, gap: Floats, scale: float, refusals: int | None) -> Floats:
        """As in sparse vector with an open threshold, while the noise stays."""
        return open_law(gap, scale)

    def foreseen(self, votes: Votes, found: Planned, setting: Setting) -> tuple[float, float]:
        """What the choice expects, too."""
        (expected,) = _foreseen(_planned(setting, votes.teachers), alike([votes]))
        return expected

    def needed_teachers(self, setting: Setting) -> None:
        """None: nothing is promised."""

    def promised(self, teachers: int, setting: Setting) -> None:
        """None: nothing is promised."""

    def theorems(self, setting: Setting, refusals: int | None) -> tuple[str, ...]:
        """None: nothing is promised."""
        return ()


def _planned(setting: Setting, teachers: int) -> AdaptiveVector:
    return AdaptiveVector(epsilon=setting.epsilon, delta=setting.delta, queries=setting.queries, teachers=teachers)


def _foreseen(mechanism: AdaptiveVector, rows: Rows) -> tuple[tuple[float, float], ...]:
    """The expected answers and right answers in each case."""
    return tuple((_LUCK * answered, _LUCK * right) for answered, right in mechanism.policy.foreseen(rows))
