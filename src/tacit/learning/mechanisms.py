"""Mechanisms that answer queries from the counts of teachers' votes.

A mechanism is a frozen description: what is run, and for which (ε, δ). `guarantee()` says what it proves, `session()`
begins one run of it, and the session's `answer(counts)` gives a class, or None for a refusal, until it has stopped.

    SparseVector      the paper's Algorithm 2: stable queries are answered, the T-th refusal ends it
    StableRelease     the paper's Algorithm 1 on every query: plain composition
    GNMax             every query is answered by the largest noisy count, or by all noisy counts
    ConfidentGNMax    the same for queries whose largest noisy count passes a threshold

`gate.py` beside this holds two more, which answer for free while teachers agree.

Noise is made of whole numbers drawn exactly (`tacit.entropy`), and nothing here
turns private counts into floats. Costs are proven in docs/proofs/accounting.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checked, entropy
from ..errors import BudgetSpentError, InputError, NoTheoremError
from ..guarantee import Adversary, Assumption, Guarantee, text_above
from ..theory import accounting
from .votes import checked_counts

Answer = int | tuple[int, ...] | None

_PROOFS = "docs/proofs/accounting.md"

_ASSUMED = (
    Assumption(
        text="data that differ in what is protected (one record, or one label) differ in at most one teacher's vote on "
        "each query",
        checked_by="caller",
    ),
    Assumption(
        text="queries depend on private records through earlier answers alone",
        checked_by="caller",
    ),
    Assumption(
        text="one session is run; each further one is a release of its own, with its own cost",
        checked_by="caller",
    ),
    Assumption(
        text="nobody can foresee the noise, which comes from cryptographic generators that the operating system seeds; "
        "the adversary sees answers, not how long they took",
        checked_by="caller",
    ),
    Assumption(text="the session answers nothing after it has stopped", checked_by="code"),
    Assumption(text="counts are whole numbers", checked_by="code"),
)


class Noise(Protocol):
    """Where a session's noise comes from."""

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number."""
        ...

    def gaussian(self, scale: float, *, size: int) -> Sequence[int]:
        """Independent discrete Gaussian numbers."""
        ...

    def coin(self, chance: int) -> bool:
        """True with a chance of so many times 2⁻⁶³."""
        ...


class SystemNoise:
    """Fresh noise for every call, exact, by `tacit.entropy`: the only one to release with."""

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number."""
        return int(entropy.discrete_laplace(scale, size=1)[0])

    def gaussian(self, scale: float, *, size: int) -> list[int]:
        """Independent discrete Gaussian numbers."""
        return [int(value) for value in entropy.discrete_gaussian(scale, size=size)]

    def coin(self, chance: int) -> bool:
        """True with a chance of so many times 2⁻⁶³."""
        return bool(entropy.bernoulli(Fraction(chance, 2**63), size=1)[0])


class Mechanism(Protocol):
    """What every mechanism offers; see the module's text."""

    @property
    def epsilon(self) -> float:
        """The privacy loss it is run for."""
        ...

    @property
    def delta(self) -> float:
        """The δ that belongs to it."""
        ...

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts between which its answer is about as likely as not: where an attack looks first."""
        ...

    @property
    def spread(self) -> float:
        """The size of its noise in votes."""
        ...

    def guarantee(self) -> Guarantee:
        """What it proves, or `NoTheoremError`."""
        ...

    def session(self, noise: Noise | None = None) -> Session:
        """One run of it."""
        ...

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The answer to one query; sessions call it, nobody else."""
        ...

    def finished(self, session: Session) -> bool:
        """Whether the session has stopped, by a rule fixed beforehand."""
        ...


class Session:
    """One run of a mechanism: asks nothing twice, counts what was spent, and stops for good.

    It cannot be copied, pickled, or used in a forked process: each copy would spend the same budget again.
    """

    def __init__(self, mechanism: Mechanism, noise: Noise | None = None) -> None:
        self.mechanism = mechanism
        self.noise: Noise = SystemNoise() if noise is None else noise
        self.asked = self.answered = self.refused = 0
        self.memory: int | None = None
        """What the mechanism keeps between queries, such as the noise of the current threshold. Private."""
        self._broken = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def stopped(self) -> bool:
        """Whether every further query is refused with an error."""
        return self._broken or self.mechanism.finished(self)

    def answer(self, counts: ArrayLike) -> Answer:
        """The class released for one query's counts, or None where the mechanism refuses to say."""
        row = checked_counts(counts, dimensions=1)
        if os.getpid() != self._process:
            raise NoTheoremError(
                f"a session must stay in the process that began it ({self._process}), got process {os.getpid()}; "
                "ask through one process, or begin another session with a budget of its own"
            )
        with self._lock:
            if self.stopped:
                raise BudgetSpentError(
                    f"a session that has stopped must answer nothing more, got query {self.asked + 1} after "
                    f"{self.answered} answers and {self.refused} refusals; its budget is spent"
                )
            self.asked += 1
            self._broken = True  # unless the answer is whole: an interrupted query may have been a refusal
            result = self.mechanism.response(row, self)
            if result is None:
                self.refused += 1
            else:
                self.answered += 1
            self._broken = False
            return result

    def replay(self, answers: Sequence[Answer], *, charged: int) -> None:
        """Count what an interrupted run of this session has released, and the interruptions charged as refusals."""
        with self._lock:
            if self.asked:
                raise BudgetSpentError(
                    f"a session must begin with what was released before, got {self.asked} queries already; "
                    "replay once, before the first"
                )
            self.asked = len(answers)
            self.answered = sum(answer is not None for answer in answers)
            self.refused = self.asked - self.answered + charged

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NoTheoremError(
            "a session must not be copied, got a copy or pickle of it; both would spend the same budget: "
            f"begin another with session() (protocol {protocol})"
        )


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
        _budget(self)
        checked.whole("refusals", self.refusals, at_least=1, remedy="say after how many refusals it stops")
        checked.choice("variant", self.variant, ("tight", "faithful"), remedy="use 'tight' unless you compare")
        if self.queries is not None or self.variant == "faithful":
            checked.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked at most")

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
        return loss_guarantee(
            self, spent, "sparse vector over stability", {**detail, "scale": self.scale, "threshold": self.threshold}
        )

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


@dataclass(frozen=True, kw_only=True)
class StableRelease:
    """Algorithm 1 on each of a number of queries, composed: every query pays, whatever its answer."""

    epsilon: float
    delta: float
    queries: int = 1

    def __post_init__(self) -> None:
        _budget(self)
        checked.whole("queries", self.queries, at_least=1, remedy="say how many queries are asked")

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
        return loss_guarantee(self, spent, "stable release, composed", detail)

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


@dataclass(frozen=True, kw_only=True)
class GNMax:
    """Answers each query by the largest noisy count, or with `counts=True` by all noisy counts at the same cost."""

    epsilon: float
    delta: float
    queries: int
    counts: bool = False

    def __post_init__(self) -> None:
        _budget(self)
        checked.whole("queries", self.queries, at_least=1, remedy="say how many queries are answered")
        _flag("counts", self.counts)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every count's noise."""
        return accounting.gnmax_sigma(self.epsilon, self.delta, answers=self.queries)

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = accounting.gnmax_delta(self.epsilon, sigma=self.sigma, answers=self.queries)
        detail = {"queries": self.queries, "sigma": self.sigma, "counts": self.counts}
        return loss_guarantee(self, spent, "noisy vote counts", detail)

    def session(self, noise: Noise | None = None) -> Session:
        """One run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """A tie, high enough for the noise."""
        level = 1 + int(4 * self.sigma)
        return level, level

    @property
    def spread(self) -> float:
        """The standard deviation of the noise."""
        return self.sigma

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The class of the largest noisy count, of equals the first; or all noisy counts."""
        return _noisy(counts, self.sigma, session.noise, whole=self.counts)

    def finished(self, session: Session) -> bool:
        """After the last query."""
        return session.answered >= self.queries


@dataclass(frozen=True, kw_only=True)
class ConfidentGNMax:
    """GNMax for the queries whose largest count, with noise, reaches `threshold` votes; the others are refused.

    At most `queries` are tested, at σ₁ = ratio·σ₂ each, and at most `answers` answered, at σ₂ each; both numbers are
    fixed beforehand and both are paid in full, so stopping tells nothing that was not paid for.
    """

    epsilon: float
    delta: float
    queries: int
    answers: int
    threshold: int
    ratio: float = 3.0
    counts: bool = False

    def __post_init__(self) -> None:
        _budget(self)
        checked.whole("queries", self.queries, at_least=1, remedy="say how many queries are tested")
        checked.whole("answers", self.answers, at_least=1, remedy="say how many queries are answered")
        if self.answers > self.queries:
            raise InputError(
                "answers",
                self.answers,
                requirement=f"must not exceed queries = {self.queries}",
                remedy="test at least as many queries as you answer",
            )
        checked.whole("threshold", self.threshold, at_least=0, remedy="give a number of votes, e.g. 0.6·teachers")
        checked.number("ratio", self.ratio, at_least=0.1, at_most=100, remedy="give σ₁/σ₂, e.g. 3")
        _flag("counts", self.counts)

    @cached_property
    def sigma(self) -> float:
        """σ₂, of every count's noise in an answer."""
        return accounting.gnmax_sigma(
            self.epsilon, self.delta, answers=self.answers, tests=self.queries, ratio=self.ratio
        )

    @property
    def test_sigma(self) -> float:
        """σ₁, of the noise on the largest count in a test."""
        return self.ratio * self.sigma

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = accounting.gnmax_delta(
            self.epsilon,
            sigma=self.sigma,
            answers=self.answers,
            test_sigma=self.test_sigma,
            tests=self.queries,
        )
        detail = {"queries": self.queries, "answers": self.answers, "threshold": self.threshold}
        noise = {"sigma": self.sigma, "test_sigma": self.test_sigma, "counts": self.counts}
        return loss_guarantee(self, spent, "noisy vote counts behind a noisy threshold", {**detail, **noise})

    def session(self, noise: Noise | None = None) -> Session:
        """One run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """A tie of counts at the threshold."""
        return self.threshold, self.threshold

    @property
    def spread(self) -> float:
        """The standard deviation of an answer's noise."""
        return self.sigma

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """GNMax's answer if the noisy largest count reaches the threshold; its noise is fresh."""
        (test,) = session.noise.gaussian(self.test_sigma, size=1)
        if int(counts.max()) + test < self.threshold:
            return None
        return _noisy(counts, self.sigma, session.noise, whole=self.counts)

    def finished(self, session: Session) -> bool:
        """When either number is reached."""
        return session.asked >= self.queries or session.answered >= self.answers


def one_distance(counts: NDArray[np.int64]) -> int:
    """`votes_to_flip` of one query, in Python's whole numbers."""
    second, first = sorted([0, *counts.tolist()])[-2:]
    return int(max(0, (first - second + 1) // 2 - 1))


def _noisy(counts: NDArray[np.int64], sigma: float, noise: Noise, *, whole: bool) -> int | tuple[int, ...]:
    added = noise.gaussian(sigma, size=len(counts))
    noisy = [int(count) + int(extra) for count, extra in zip(counts, added, strict=True)]
    return tuple(noisy) if whole else noisy.index(max(noisy))


def _budget(mechanism: Any) -> None:
    checked.number("epsilon", mechanism.epsilon, at_least=1e-9, at_most=1e4, remedy="use about 1")
    checked.probability("delta", mechanism.delta, remedy="use about 1/n², e.g. 1e-10 for 100000 records")


def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(name, value, requirement="must be True or False", remedy="leave it out for labels")


def loss_guarantee(
    mechanism: Mechanism,
    spent: float,
    name: str,
    detail: dict[str, Any],
    *,
    proofs: str = _PROOFS,
    assumed: tuple[Assumption, ...] = (),
) -> Guarantee:
    """The one shape of all: ε at most what was asked for, provided that its δ was seen to suffice."""
    if not spent <= mechanism.delta:
        raise NoTheoremError(
            f"the constants of {type(mechanism).__name__} must give a δ of at most {mechanism.delta:.10g}, got "
            f"{spent:g} at epsilon = {mechanism.epsilon:.10g}; use a smaller epsilon, or variant='tight'"
        )
    return Guarantee(
        quantity=f"privacy loss ε at δ = {text_above(mechanism.delta)}",
        side="at_most",
        value=mechanism.epsilon,
        adversary=Adversary.ANY,
        theorem=f"{name} ({proofs})",
        assumptions=(*assumed, *_ASSUMED),
        detail={"mechanism": type(mechanism).__name__, "delta": mechanism.delta, "delta_spent": spent, **detail},
    )
