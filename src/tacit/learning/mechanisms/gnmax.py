"""The largest noisy count, of every query or of those whose votes agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Guarantee
from ...theory import accounting
from .session import Answer, Noise, Session, check_budget, loss_guarantee


@dataclass(frozen=True, kw_only=True)
class GNMax:
    """Answers each query by the largest noisy count, or with `counts=True` by all noisy counts at the same cost."""

    epsilon: float
    delta: float
    queries: int
    counts: bool = False

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are answered")
        _flag("counts", self.counts)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every count's noise."""
        return accounting.gnmax_sigma(self.epsilon, self.delta, answers=self.queries)

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = accounting.gnmax_delta(self.epsilon, sigma=self.sigma, answers=self.queries)
        detail = {"queries": self.queries, "sigma": self.sigma, "counts": self.counts}
        return loss_guarantee(self, spent, ("noisy vote counts", "theory.accounting.gnmax_delta"), detail)

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
        check_budget(self)
        validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are tested")
        validate.whole("answers", self.answers, at_least=1, remedy="say how many queries are answered")
        if self.answers > self.queries:
            raise InputError(
                "answers",
                self.answers,
                requirement=f"must not exceed queries = {self.queries}",
                remedy="test at least as many queries as you answer",
            )
        validate.whole("threshold", self.threshold, at_least=0, remedy="give a number of votes, e.g. 0.6·teachers")
        validate.number("ratio", self.ratio, at_least=0.1, at_most=100, remedy="give σ₁/σ₂, e.g. 3")
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
        theorem = ("noisy vote counts behind a noisy threshold", "theory.accounting.gnmax_delta")
        return loss_guarantee(self, spent, theorem, {**detail, **noise})

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


def _noisy(counts: NDArray[np.int64], sigma: float, noise: Noise, *, whole: bool) -> int | tuple[int, ...]:
    added = noise.gaussian(sigma, size=len(counts))
    noisy = [int(count) + int(extra) for count, extra in zip(counts, added, strict=True)]
    return tuple(noisy) if whole else noisy.index(max(noisy))


def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(name, value, requirement="must be True or False", remedy="leave it out for labels")
