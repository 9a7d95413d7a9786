"""The largest noisy count, of every query or of those whose votes agree."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Guarantee
from ...core.rounding import last_true
from ...theory import accounting, label_moments, learnability, winners
from ...theory.divergences import gaussian_delta
from .candidates import Candidate, Wanted
from .expectations import Floats, Votes
from .kind import PlannedKind
from .session import Answer, Noise, Session, check_budget, loss_guarantee
from .setting import Constants, Run, Setting

TEST_RATIO = 3.0
"""The ratio of the noise in a test to that in an answer, σ₁ / σ₂."""
_LABELS = 0.89
"""About the share that labels need of the noise of counts."""
_MANY = 1.02
"""About how much more noise labels of many classes need than those of two, which is found in a tenth of the time."""
_MOST_TESTED = 100.0
"""The largest ε for which Confident-GNMax is considered."""
_MOST_COMPARED = 4.0
"""The largest ε for which "auto" considers winners of more than two classes: beyond it their noise takes minutes to
find."""
_QUICK = 500
"""The noise of winners of two classes is found in a second or two for so many queries; plans estimate it for more."""
_CONFIDENT = 0.6
"""The share of teachers that have to agree, unless a plan proves something with another threshold."""
_PARTS = 10
"""Of many cases, the shares of queries on which so many agree are tried in tenths."""


class NoisyVotes(ABC):
    """What mechanisms share that add noise to every count of every query."""

    @property
    @abstractmethod
    def sigma(self) -> float:
        """The standard deviation parameter of every count's noise."""

    def session(self: Any, noise: Noise | None = None) -> Session:
        """Begin one run."""
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


@dataclass(frozen=True, kw_only=True)
class GNMax(NoisyVotes):
    """Answer every query by the class with the largest noisy count.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    queries
        The number of queries after which the session stops.
    counts
        Release all noisy counts instead of the largest one's class; these need about an eighth more noise.
    classes
        The most classes that a query has: winners are then charged by a game, which takes a few percent less noise, for
        two classes a little less than for more, but whose certificates cannot be checked without the library; at most
        2000 queries, and for more than two classes as much noise as for counts if that is below 5, and 150 at most.
        None for any number of classes, and of queries.
    """

    epsilon: float
    delta: float
    queries: int
    counts: bool = False
    classes: int | None = None

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("queries", self.queries, at_least=1, remedy="say how many queries are answered")
        check_counts(self.counts)
        if self.classes is not None:
            validate.whole("classes", self.classes, at_least=2, remedy="leave it out for any number of classes")
            if self.queries > winners.MOST_ANSWERS:
                raise InputError(
                    "queries",
                    self.queries,
                    requirement=f"must be at most {winners.MOST_ANSWERS} where winners alone are charged for",
                    remedy="ask fewer, or leave classes out of GNMax",
                )
            if self.counts:
                raise InputError(
                    "classes",
                    self.classes,
                    requirement="must be None where all noisy counts are released",
                    remedy="leave it out, or release winners alone",
                )

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every count's noise."""
        if self.classes is not None:
            return _least_winners_sigma(self.epsilon, self.delta, self.queries, self.classes)
        least = _counts_sigma if self.counts else _labels_sigma
        return least(self.epsilon, self.delta, self.queries)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        detail = {"queries": self.queries, "sigma": self.sigma, "counts": self.counts}
        if self.classes is not None:
            spent = winners.winner_delta(self.epsilon, sigma=self.sigma, answers=self.queries, classes=self.classes)
            theorem = ("winners of noisy vote counts", "theory.winners.winner_delta")
            return loss_guarantee(self, spent, theorem, {**detail, "classes": self.classes}, constants=None)
        spent = _cost(self.counts)(self.epsilon, sigma=self.sigma, answers=self.queries)
        return loss_guarantee(
            self,
            spent,
            _theorem(self.counts, "noisy vote counts"),
            detail,
            constants=partial(_constants, self.sigma, self.queries, charged=None if self.counts else self.epsilon),
        )

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The class of the largest noisy count, of equals the first; or all noisy counts."""
        if self.classes is not None and len(counts) > self.classes:
            raise InputError(
                "the number of classes",
                len(counts),  # and not the votes, which are private
                requirement=f"must be at most {self.classes}, which the noise is for",
                remedy="leave classes out of GNMax",
            )
        return noisy(counts, self.sigma, session.noise, whole=self.counts)

    def finished(self, session: Session) -> bool:
        """After the last query."""
        return session.answered >= self.queries


@dataclass(frozen=True, kw_only=True)
class ConfidentGNMax(NoisyVotes):
    """GNMax for queries whose largest count, with noise, reaches a threshold; other queries are refused.

    Both numbers, `queries` and `answers`, are fixed beforehand and paid in full, so the moment when the session stops
    tells nothing that was not paid for.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of one session.
    queries
        The most queries that are tested, with noise σ₁ each.
    answers
        The most queries that are answered, with noise σ₂ each.
    threshold
        The number of votes that the largest count, with noise, has to reach.
    ratio
        σ₁ / σ₂.
    counts
        Release all noisy counts instead of the largest one's class; these need about an eighth more noise.
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
        ratio = validate.number("ratio", self.ratio, at_least=0.1, at_most=100, remedy="give σ₁/σ₂, e.g. 3")
        object.__setattr__(self, "ratio", ratio)  # a float, in which constants are computed
        check_counts(self.counts)

    @cached_property
    def sigma(self) -> float:
        """σ₂, of every count's noise in an answer."""
        least = _counts_sigma if self.counts else _labels_sigma
        return least(self.epsilon, self.delta, self.answers, self.queries, self.ratio)

    @property
    def test_sigma(self) -> float:
        """σ₁, of the noise on the largest count in a test."""
        return self.ratio * self.sigma

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""
        spent = _cost(self.counts)(
            self.epsilon, sigma=self.sigma, answers=self.answers, test_sigma=self.test_sigma, tests=self.queries
        )
        detail = {"queries": self.queries, "answers": self.answers, "threshold": self.threshold}
        noise = {"sigma": self.sigma, "test_sigma": self.test_sigma, "counts": self.counts}
        charged = None if self.counts else self.epsilon
        constants = partial(_constants, self.sigma, self.answers, self.queries, self.test_sigma, charged=charged)
        theorem = _theorem(self.counts, "noisy vote counts behind a noisy threshold")
        return loss_guarantee(self, spent, theorem, {**detail, **noise}, constants=constants)

    @property
    def undecided(self) -> tuple[int, int]:
        """A tie of counts at the threshold."""
        return self.threshold, self.threshold

    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """GNMax's answer if the noisy largest count reaches the threshold; its noise is fresh."""
        (test,) = session.noise.gaussian(self.test_sigma, size=1)
        if int(counts.max()) + test < self.threshold:
            return None
        return noisy(counts, self.sigma, session.noise, whole=self.counts)

    def finished(self, session: Session) -> bool:
        """When either number is reached."""
        return session.asked >= self.queries or session.answered >= self.answers


def _cost(counts: bool) -> Callable[..., float]:
    """δ of noisy counts, or of their labels alone."""
    return accounting.gnmax_delta if counts else label_moments.labels_delta


def _theorem(counts: bool, words: str) -> tuple[str, str]:
    if counts:
        return words, "theory.accounting.gnmax_delta"
    return f"labels of {words}", "theory.label_moments.labels_delta"


def _constants(
    sigma: float, answers: int, tests: int = 0, test_sigma: float = 0.0, *, charged: float | None
) -> dict[str, Any]:
    """What a certificate states; with `charged`, the ε of labels, the order of their moments where these cost less."""
    stated = {"sigma": sigma, "answers": answers, "tests": tests, "test_sigma": test_sigma}
    order = None
    if charged is not None:
        tested = {"test_sigma": test_sigma, "tests": tests} if tests else {}
        order = label_moments.labels_order(charged, sigma=sigma, answers=answers, **tested)
    return (
        {"mechanism": "gnmax", **stated} if order is None else {"mechanism": "gnmax labels", **stated, "order": order}
    )


def noisy(counts: NDArray[np.int64], sigma: float, noise: Noise, *, whole: bool) -> int | tuple[int, ...]:
    """The class of the largest count with noise, of equals the first; or all counts with noise."""
    added = noise.gaussian(sigma, size=len(counts))
    sums = [count + int(extra) for count, extra in zip(counts.tolist(), added, strict=True)]
    return tuple(sums) if whole else sums.index(max(sums))


def check_counts(value: object) -> None:
    """Check whether all counts are to be released."""
    if not isinstance(value, bool):
        raise InputError("counts", value, requirement="must be True or False", remedy="leave it out for labels")


class GNMaxKind(PlannedKind):
    """The largest noisy count of every query."""

    name = "gnmax"
    theorem = "theory.label_moments.labels_delta"
    promise: ClassVar[tuple[str, ...]] = ("theory.learnability.gnmax_distance",)

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """Those of the mechanism itself."""
        m = setting.queries
        sigma, spent = _sigma(setting.epsilon, setting.delta, m, 0, setting.rough)
        distance = learnability.gnmax_distance(
            sigma=sigma, classes=setting.classes, queries=m, failure_probability=setting.share
        )
        return Constants(noise=sigma, distance=distance, delta_spent=spent)

    def stated(
        self,
        *,
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """As of the mechanism itself, which answers all queries."""
        return _constants(noise, queries, charged=epsilon)

    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """An answer always, the right one where the noise lets it lead."""
        spread = math.sqrt(2) * noise
        others = (votes.classes - 2) * special.ndtr(-(votes.teachers + votes.lead) / 2 / spread)
        right: Floats = np.maximum(0.0, special.ndtr(votes.lead / spread) - others)
        return np.ones_like(right), right

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Queries by doubling."""
        unit = _unit(wanted.epsilon, wanted.delta, wanted.counts)
        for asked in wanted.numbers:
            found = self.in_each(wanted, queries=asked, noise=unit * math.sqrt(2 * asked))
            made = partial(GNMax, epsilon=wanted.epsilon, delta=wanted.delta, queries=asked, counts=wanted.counts)
            yield Candidate(made=made, queries=asked, expected=found)

    def needed_teachers(self, setting: Setting) -> int | None:
        """First with rough noise, which tells whether the search for the other is worth while."""
        rough = super().needed_teachers(replace(setting, rough=True))
        return rough if rough is None or setting.rough else super().needed_teachers(setting)


class ConfidentKind(GNMaxKind):
    """The same where votes agree."""

    name = "confident-gnmax"
    promise = ("theory.learnability.gnmax_distance", "theory.learnability.gnmax_test_margin")

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Where the noise of its tests is found; for a larger ε there is no use for tests."""
        return super().available(epsilon, delta, proposals=proposals) and epsilon <= _MOST_TESTED

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """With the highest threshold that lets through every query on which no more are wrong than is tolerated."""
        m, share = setting.queries, setting.share / 2
        sigma, spent = _sigma(setting.epsilon, setting.delta, m, m, setting.rough)
        distance = learnability.gnmax_distance(
            sigma=sigma, classes=setting.classes, queries=m, failure_probability=share
        )
        slack = learnability.gnmax_test_margin(test_sigma=TEST_RATIO * sigma, queries=m, failure_probability=share)
        outvoted = max(0, learnability.tolerated_votes(teachers, distance=distance))
        threshold = max(0, teachers - outvoted - slack)
        return Constants(noise=sigma, threshold=threshold, distance=distance, delta_spent=spent)

    def stated(
        self,
        *,
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """As of the mechanism itself, which tests and may answer all queries."""
        return _constants(noise, queries, tests=queries, test_sigma=TEST_RATIO * noise, charged=epsilon)

    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """The same where the largest count with noise reaches the threshold."""
        _, right = super().chances(votes, noise=noise, threshold=threshold, refusals=refusals)
        largest = (votes.teachers + np.abs(votes.lead)) / 2
        return special.ndtr((largest - (threshold or 0)) / (TEST_RATIO * noise)), right

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Queries by doubling, and a few answers more than will be confident in one of the cases."""
        unit, teachers = _unit(wanted.epsilon, wanted.delta, wanted.counts), wanted.votes[0].teachers
        threshold = math.ceil(_CONFIDENT * teachers)
        shares = (float(np.mean((teachers + votes.lead) / 2 >= _CONFIDENT * teachers)) for votes in wanted.votes)
        confident = {math.ceil(_PARTS * share) / _PARTS for share in shares} if len(wanted.votes) > 1 else set(shares)
        for asked, share in itertools.product(wanted.numbers, sorted(confident)):
            answers = max(1, min(asked, math.ceil(1.1 * share * asked)))
            sigma = unit * math.sqrt(2 * answers + asked / TEST_RATIO**2)
            made = partial(
                ConfidentGNMax,
                epsilon=wanted.epsilon,
                delta=wanted.delta,
                queries=asked,
                answers=answers,
                threshold=threshold,
                ratio=TEST_RATIO,
                counts=wanted.counts,
            )
            found = self.in_each(wanted, queries=asked, noise=sigma, threshold=threshold, answers=answers)
            yield Candidate(made=made, queries=asked, answers=answers, expected=found)

    def hoped(self, teachers: int, setting: Setting) -> Run:
        """With a threshold that votes reach."""
        run = super().hoped(teachers, setting)
        return replace(run, constants=replace(run.constants, threshold=round(_CONFIDENT * teachers)))


class WinnersKind(GNMaxKind):
    """The largest noisy count of every query, charged as what it is: a winner, and no counts."""

    name = "gnmax-winners"
    theorem = ""
    caveat = "The numbers for gnmax-winners are estimates, but for two classes and few queries."
    later = "Its noise is searched for"

    def checkable(self, refusals: int | None) -> bool:
        """Never: the game takes matrices."""
        return False

    def available(self, epsilon: float, delta: float, *, proposals: bool) -> bool:
        """Where the game is played."""
        return super().available(epsilon, delta, proposals=proposals) and epsilon <= winners.MOST_EPSILON

    def considered(self, wanted: Wanted, *, proposals: bool) -> bool:
        """Where winners alone are released, and there surely is noise for the fewest queries."""
        unit, classes, fewest = _unit(wanted.epsilon, wanted.delta, True), wanted.votes[0].classes, wanted.numbers[0]
        charged = fewest <= winners.MOST_ANSWERS and _surely_charged(unit, fewest, classes)
        soon = classes <= 2 or wanted.epsilon <= _MOST_COMPARED
        return super().considered(wanted, proposals=proposals) and charged and soon and not wanted.counts

    def possible(self, refusals: int, setting: Setting) -> bool:
        """Where the game is played."""
        return not self.obstacle_of(setting)

    def constants(self, teachers: int, refusals: int, setting: Setting) -> Constants:
        """With the mechanism's own noise where that is found at once, else with about that."""
        m, classes = setting.queries, setting.classes
        estimated = setting.rough or classes > 2 or m > _QUICK
        if estimated:
            sigma = _winners_sigma(_about_counts(setting.epsilon, setting.delta, m), m, classes)
        else:
            sigma = _least_winners_sigma(setting.epsilon, setting.delta, m, classes)
        distance = learnability.gnmax_distance(
            sigma=sigma, classes=classes, queries=m, failure_probability=setting.share
        )
        return Constants(noise=sigma, distance=distance, estimated=estimated)

    def stated(
        self,
        *,
        epsilon: float,
        queries: int,
        noise: float,
        threshold: int | None,
        refusals: int | None,
    ) -> dict[str, Any]:
        """Nothing."""
        return {}

    def candidates(self, wanted: Wanted) -> Iterator[Candidate]:
        """Queries by doubling, as far as winners are charged for."""
        if wanted.epsilon > winners.MOST_EPSILON:
            raise InputError(
                "epsilon",
                wanted.epsilon,
                requirement=f"must be at most {winners.MOST_EPSILON:g} for {self.name}",
                remedy="use about 1, or gnmax",
            )
        if wanted.queries is not None and wanted.queries > winners.MOST_ANSWERS:
            raise InputError(
                "queries",
                wanted.queries,
                requirement=f"must be at most {winners.MOST_ANSWERS} for {self.name}",
                remedy="ask fewer, or use gnmax",
            )
        unit, classes = _unit(wanted.epsilon, wanted.delta, True), max(2, wanted.votes[0].classes)
        for asked in dict.fromkeys(min(number, winners.MOST_ANSWERS) for number in wanted.numbers):
            if asked > wanted.numbers[0] and not _surely_charged(unit, asked, classes):
                break
            noise = _winners_sigma(unit * math.sqrt(2 * asked), asked, classes)
            found = self.in_each(wanted, queries=asked, noise=noise)
            made = partial(GNMax, epsilon=wanted.epsilon, delta=wanted.delta, queries=asked, classes=classes)
            yield Candidate(made=made, queries=asked, expected=found)

    def outlook(self, run: Run, setting: Setting) -> tuple[float, float] | None:
        """Nothing where it cannot be run."""
        return None if self.obstacle_of(setting) else super().outlook(run, setting)

    def obstacle(self, run: Run, needed: int | None, setting: Setting) -> str:
        """What winners are not charged for."""
        return self.obstacle_of(setting)

    def obstacle_of(self, setting: Setting) -> str:
        """The same, before there are constants."""
        if setting.queries > winners.MOST_ANSWERS:
            return f"winners are charged for up to {winners.MOST_ANSWERS} queries"
        counts = _about_counts(setting.epsilon, setting.delta, setting.queries)
        if _winners_sigma(counts, setting.queries, setting.classes) > _most_noise(setting.classes):
            which = "more than two" if setting.classes > 2 else "two"
            return f"winners of {which} classes are charged for up to a noise of {_most_noise(setting.classes):g}"
        return ""


@lru_cache(maxsize=2048)
def _counts_sigma(epsilon: float, delta: float, answers: int, tests: int = 0, ratio: float = 1.0) -> float:
    """The noise of counts; a process often asks for that of the same budget again."""
    return accounting.gnmax_sigma(epsilon, delta, answers=answers, tests=tests, ratio=ratio)


@lru_cache(maxsize=2048)
def _labels_sigma(epsilon: float, delta: float, answers: int, tests: int = 0, ratio: float = 1.0) -> float:
    """The noise of labels, which is at most that of counts."""
    return label_moments.labels_sigma(epsilon, delta, answers=answers, tests=tests, ratio=ratio)


@lru_cache(maxsize=2048)
def _least_winners_sigma(epsilon: float, delta: float, answers: int, classes: int) -> float:
    """The noise of winners; a plan asks for that of the same budget many times."""
    return winners.winner_sigma(epsilon, delta, answers=answers, classes=classes)


def _surely_charged(unit: float, queries: int, classes: int) -> bool:
    """Whether noise of winners is surely found: that of counts, known to a percent, is not too much for the game."""
    return unit * math.sqrt(2 * queries) <= 0.99 * _most_noise(classes)


def _most_noise(classes: int) -> float:
    return winners.MOST_NOISE if classes > 2 else winners.MOST_NOISE_OF_TWO


def _winners_sigma(counts: float, queries: int, classes: int) -> float:
    """About the noise of winners, where counts need this much."""
    numbers, shares = zip(*winners.SHARES[classes > 2], strict=True)
    found = counts * float(np.interp(math.log(queries), np.log(numbers), shares))
    return max(found, min(counts, winners.LEAST_NOISE)) if classes > 2 else max(found, 0.5)


@cache
def _unit(epsilon: float, delta: float, counts: bool) -> float:
    """About the noise of half an answer; it grows with the root of their number."""
    if counts:
        return accounting.gnmax_sigma(epsilon, delta, answers=50) / 10
    return _MANY * label_moments.labels_sigma(epsilon, delta, answers=50, classes=2) / 10


@cache
def _sigma(epsilon: float, delta: float, answers: int, tests: int, rough: bool) -> tuple[float, float]:
    """The mechanism's own σ, and its δ. A rough answer is about that: a share of the noise that counts need.

    Continuous noise gives the latter.
    """
    if rough:
        return _LABELS * _about_counts(epsilon, delta, answers, tests), delta
    sigma = _labels_sigma(epsilon, delta, answers, tests, TEST_RATIO)
    return sigma, label_moments.labels_delta(
        epsilon, sigma=sigma, answers=answers, test_sigma=TEST_RATIO * sigma, tests=tests
    )


@cache
def _about_counts(epsilon: float, delta: float, answers: int, tests: int = 0) -> float:
    """About the noise that counts need."""
    most = last_true(
        lambda distance: gaussian_delta(epsilon, distance=distance) <= delta,
        holds=0.0,
        fails=2 * math.sqrt(2 * epsilon) + 40.0,
    )
    return max(0.5, math.sqrt(2 * answers + tests / TEST_RATIO**2) / most)
