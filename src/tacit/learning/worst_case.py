"""The worst adversary of a table of probabilities, played as an attack.

The certificate's W_j(y) is the value of the game with j refusals left, where y is exp(ε) times how much likelier the
answers so far are for the other data set. In each state the attack asks the query that attains the maximum of the
recursion. It does not believe a mechanism how many refusals end a session, nor how rarely a label is released where
one vote decides: it observes both in sessions, and solves for the W of what it observed.

Two sessions, one for each of two neighbouring data sets, get the same queries and the same coins. Every probability
that they ask for is recorded, so each transcript comes with its two exact likelihoods. Refusals are made as frequent as
they matter by W, and weighted; for a table that is as tight as its certificate, nearly every game then counts the same.
The mean of (1 − exp(ε)·Q/P)⁺ over games of weight P is at most δ(ε), so a lower confidence limit on it that exceeds δ
shows a loss above ε. Probabilities are read, not estimated, so this takes hundreds of games instead of millions.

The attack assumes that a coin decides each refusal and that nothing else is random. If a session is seen to do
otherwise, the game counts for nothing.

Where noise is chosen anew for every query, the adversary follows the rule, which all can, and plays by the theorem's W.
It observes in a session whether the last refusal ends it, and how rarely labels tell at the beginning and at the end.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import NoTheoremError
from ..core.guarantee import Adversary, Attack
from ..theory.confidence import sampled_mean_lower
from ..theory.gate import ONE
from .mechanisms import AdaptiveSession, AdaptiveVector, Answer, Session, SparseVector
from .mechanisms.gate import Tabled
from .mechanisms.sparse_vector import UNIT as CHANCES
from .mechanisms.sparse_vector import refusing

Coined = Tabled | SparseVector | AdaptiveVector
"""What refuses by coins, whose chances can be read; a sparse vector if its threshold is open."""

_Row = tuple[int, int]

_CHANCE = 0.12
"""About that of refusals where it asks. Rarer ones gain a little more by far more queries."""
_OFTEN = 0.7
"""It asks for no more refusals than this where queries would end before the budget is spent: more tell less each."""
_RAREST = 0.05
_OTHERS = 4
"""Queries that it may ask besides, those worth most among refusals that are not rarer."""
_SHARES = (0.0, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 1.01, 1.03, 1.1, 1.25, 1.5, 2.0, 4.0)
"""The losses that are tried, as shares of the one claimed."""
_LONGEST = 10_000
"""Queries of one game at most: a broken session might never stop."""
_TRIES, _BEYOND = 3, 1.01
"""Losses that are tried at the end, with a part of the failure probability each: steps downwards, but from far above
the loss that is claimed to just above it."""
_PARTS = (1.0, 0.5, 0.25)
"""Of the order of a session, by which outcomes may be weighted."""


def worst_case_attack(
    mechanism: Coined, *, runs: int = 100, failure_probability: float = 1e-3, seed: int = 0
) -> Attack:
    """Attack a table: the privacy loss that the worst adversary's games show, with a lower confidence limit."""
    runs = validate.whole("runs", runs, at_least=10, remedy="play some hundred games")
    alpha = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.001")
    rng = np.random.default_rng(seed)
    adversary = _Follower(mechanism, rng) if isinstance(mechanism, AdaptiveVector) else _Adversary(mechanism, rng)
    room = adversary.room
    kept = room * sampled_mean_lower(np.full(runs, 1 / room), failure_probability=alpha / _TRIES)  # of the mean
    losses = [share * mechanism.epsilon for share in _SHARES]
    first, last, most = 0, len(losses), 1.0
    if adversary.told > mechanism.delta:  # labels alone refute any loss; their chances were read
        first, last = last - 1, last
    while last - first > 1:  # gains fall with the loss
        middle = (first + last) // 2
        gains = adversary.gains(losses[middle], games=adversary.pilot)
        limit = room * adversary.typical(gains)
        if 0.95 * kept * np.minimum(gains, limit).mean() > mechanism.delta:
            first, most = middle, limit
        else:
            last = middle
    shown, low = losses[first], 0.0
    tried = [first, first - 1, min(first - 2, _SHARES.index(_BEYOND))]
    if adversary.told > mechanism.delta:
        low, tried = shown, []
    for loss in (losses[place] for place in tried if place > 0):
        gains = np.minimum(adversary.gains(loss, games=runs), most)  # less than was gained, never more
        if most * sampled_mean_lower(gains / most, failure_probability=alpha / _TRIES) > mechanism.delta:
            shown = low = loss
            break
    return Attack(
        quantity=mechanism.guarantee.quantity,
        value=shown,
        low=low,
        high=math.inf,
        failure_probability=alpha,
        adversary=Adversary.ANY,
        method=f"worst adversary of the table ({runs} games, their likelihoods exact)",
    )


@dataclass(frozen=True)
class _Query:
    """Counts here and there, the chances of a refusal that were read for them, and whether labels differ."""

    here: tuple[int, int]
    there: tuple[int, int]
    refused: tuple[float, float]
    tells: bool


class _Adversary:
    pilot, room, told = 8, 2.0, 0.0
    """Games that search, and how often gains may exceed their median there: a broken table may make some huge."""

    def __init__(self, mechanism: Tabled | SparseVector, rng: np.random.Generator) -> None:
        self.mechanism, self.rng = mechanism, rng
        usual, others = _queries(mechanism)
        self._refusals = _refusals(mechanism, usual[0].here)
        released = max((1 - max(query.refused) for query in others if query.tells), default=0.0)
        seen = dataclasses.replace(mechanism.design, refusals=self._refusals, released=round(released * ONE))
        self._nodes, self._values = (part.tolist() for part in seen.value())
        others = [query for query in others if max(query.refused) >= _RAREST]
        self._queries = [*usual, *sorted(others, key=self._promise, reverse=True)[:_OTHERS]]

    def worth(self, left: int, y: float) -> float:
        """W with `left` refusals left."""
        if y < 1:
            return 1 - y + y * self.worth(left, 1 / y) if y > 0 else 1.0
        cell, values = bisect_right(self._nodes, y), self._values[left]
        if cell == len(self._nodes):
            return float(values[-1])
        before, after = self._nodes[cell - 1 : cell + 1]
        share = (y - before) / (after - before)
        return float((1 - share) * values[cell - 1] + share * values[cell])

    def gains(self, loss: float, *, games: int) -> NDArray[np.float64]:
        """What each of some games gains at this loss; its expectation is no more than δ there."""
        return np.array([self._game(math.exp(loss)) for _ in range(games)])

    def typical(self, gains: NDArray[np.float64]) -> float:
        """A gain that others hardly exceed."""
        return float(np.median(gains))

    def _game(self, y: float) -> float:
        sessions = [(self.mechanism.session(coin), coin) for coin in (_Coin(), _Coin())]
        weight = 1.0
        for _ in range(_LONGEST):
            refusals_left = self._refusals - sessions[0][0].refused
            if refusals_left < 1 or sessions[0][0].stopped or 1 - y >= 0.999 * self.worth(refusals_left, y):
                break
            query, often = self._choice(refusals_left, y)
            share, ratio = _both(sessions, (query.here, query.there), often, self.rng)
            weight, y = weight * share, y * ratio
            if weight == 0 or y == 0:
                break
        return weight * max(0.0, 1 - y)

    def _choice(self, left: int, y: float) -> tuple[_Query, float]:
        """The query that is worth most, and how often it is to be refused so that every game counts the same."""
        best, found, share = -1.0, self._queries[0], 0.0
        for query in self._queries:
            refused, answered = self._values_after(query, left, y)
            if refused + answered > best:
                best, found, share = refused + answered, query, refused / ((refused + answered) or 1.0)
        return found, share

    def _values_after(self, query: _Query, left: int, y: float) -> tuple[float, float]:
        """The two parts of a query's term in the recursion: after a refusal, after an answer."""
        p, q = query.refused
        refused = p * self.worth(left - 1, y * q / p) if p else 0.0
        if p == 1:
            return refused, 0.0
        return refused, (1 - p) * (1.0 if query.tells else self.worth(left, y * (1 - q) / (1 - p)))

    def _promise(self, query: _Query) -> float:
        """A query's worth as a share of W, where it is largest: 1 is what a certificate allows."""
        levels, losses = {1, self._refusals}, np.linspace(0, self.mechanism.epsilon, 5)
        states = [(left, math.exp(loss)) for left in levels for loss in losses]
        return max(sum(self._values_after(query, *state)) / self.worth(*state) for state in states)


class _Follower:
    """The adversary of noise that is chosen anew: it asks where a vote moves the next clock most.

    Outcomes are made as frequent as their likelihood's ratio matters by the theorem's W, of the mechanism's order or a
    part of it: where more may be refused than is paid for, rarer transcripts matter less.
    """

    pilot, room = 24, 4.0

    def __init__(self, mechanism: AdaptiveVector, rng: np.random.Generator) -> None:
        self.mechanism, self.rng = mechanism, rng
        self._read: dict[tuple[float, int, bool], tuple[float, float]] = {}
        self.told, self._ends = _told(mechanism)
        found = []
        for part in _PARTS:
            self._order = part * mechanism.constants.order
            found.append((float(np.sqrt(self.gains(0.9 * mechanism.epsilon, games=self.pilot)).mean()), self._order))
        _, self._order = max(found)

    def gains(self, loss: float, *, games: int) -> NDArray[np.float64]:
        """What each of some games gains at this loss; its expectation is no more than δ there."""
        return np.array([self._game(math.exp(loss)) for _ in range(games)])

    def typical(self, gains: NDArray[np.float64]) -> float:
        """A gain that others may exceed a few times: games differ, as prices are upper limits of what queries show."""
        return float(gains.mean())

    def _game(self, y: float) -> float:
        sessions = [(self.mechanism.session(coin), coin) for coin in (_Coin(), _Coin())]
        weight = 1.0
        for _ in range(_LONGEST):
            if sessions[0][0].stopped:
                break
            pair, often, query = self._choice(sessions[0][0], y)
            share, ratio = _both(sessions, pair, often, self.rng)
            weight, y = weight * share, y * ratio
            p, q = (coin.asked[0][1] if coin.asked else 0.0 for _, coin in sessions)
            self._read[query] = p, q
            if weight == 0 or y == 0:
                break
        return weight * max(0.0, 1 - y)

    def _choice(self, session: AdaptiveSession, y: float) -> tuple[tuple[_Row, _Row], float, tuple[float, int, bool]]:
        """Votes here and there, one nearer to a flip, how often the query is to be refused, and a name for it.

        What was read for it before is believed, and the mechanism's own word the first time alone.
        """
        scale, threshold, price = session.option
        queries, last = self.mechanism.queries - session.asked, price is None and self._ends
        refusals = 1.0 if price is None else 1 + session.left / price  # as many as are paid for before queries end
        often = min(_OFTEN, max(_CHANCE, refusals / queries)) if price is not None or last else _OFTEN
        place = max(0, math.ceil(threshold - scale * math.log(-math.log1p(-often))))
        near, far = (2 * place + 3, 2), (2 * place + 4, 1)
        query, places = (scale, place, y >= 1), (place + 1, place) if y >= 1 else (place, place + 1)
        pair = (far, near) if y >= 1 else (near, far)
        told = (refusing(each, scale=scale, threshold=threshold) / CHANCES for each in places)
        p, q = self._read.get(query) or tuple(told)
        if not 0 < min(p, q) <= max(p, q) < 1:
            return pair, 0.5, query
        each = _price(scale, self._order)  # infinite where a refusal of this order is the last
        left = 0.0
        if not last and each < math.inf:
            left = each * min(math.inf if price is None else session.left / price, often * queries)
        refused = self._worth(left - each, y * q / p) if each <= left else max(0.0, 1 - y * q / p)
        refused, passed = p * refused, (1 - p) * self._worth(left, y * (1 - q) / (1 - p))
        return pair, refused / ((refused + passed) or 1.0), query

    def _worth(self, left: float, y: float) -> float:
        """W of the order, with so much left."""
        if y < 1:
            return 1 - y + y * self._worth(left, 1 / y) if y > 0 else 1.0
        return math.exp(left - self._order * math.log(y)) / (1 + 2 * self._order)


def _told(mechanism: AdaptiveVector) -> tuple[float, bool]:
    """The chance of an answer that the other data set never gives, and whether the last refusal ends the session.

    Queries that one vote decides are refused, with the same chance under both, until the next refusal is the last.
    """
    coin = _Coin()
    session, reached, told = mechanism.session(coin), 1.0, 0.0
    while not session.stopped:
        _, _, price = session.option
        asked = _asked(session, coin, (2, 1), refused=True)
        answered, refused = coin.asked[0] if coin.asked else (float(asked.answer is not None), 0.0)
        told, reached = max(told, reached * answered), reached * refused
        if price is None or asked.answer is not None:
            return told, session.stopped
    return told, True


def _price(scale: float, order: float) -> float:
    """About what a refusal costs at this order; infinite where it is the last."""
    share = order * math.expm1(1 / scale)
    return -order / scale - math.log1p(-share) if share < 1 - 1e-9 else math.inf


class _Coin:
    """Falls as it is told to, and remembers the chances that it was asked for, of an answer and of a refusal."""

    def __init__(self) -> None:
        self.falls, self.asked = False, list[tuple[float, float]]()

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """What it was told."""
        self.asked.append(((of - chance) / of, chance / of))
        return self.falls

    def laplace(self, scale: float) -> int:
        """Refused: only coins are weighed here."""
        raise NoTheoremError(f"only coins must be drawn where chances are read, got Laplace noise of scale {scale:g}")

    def gaussian(self, scale: float, *, size: int) -> list[int]:
        """Refused, as above."""
        raise NoTheoremError(f"only coins must be drawn where chances are read, got {size} of scale {scale:g}")


def _both(
    sessions: Sequence[tuple[Session, _Coin]], votes: tuple[_Row, _Row], often: float, rng: np.random.Generator
) -> tuple[float, float]:
    """One query of both sessions: how much likelier the outcome is than it is played, and its likelihood's ratio.

    The first is 0 if a session does what is not understood, the second if one has an answer that the other never gives.
    """
    here = _asked(*sessions[0], votes[0], refused=bool(rng.random() < often))
    there = _asked(*sessions[1], votes[1], refused=here.answer is None)
    if here.chance == 0 or not (here.understood and there.understood):
        return 0.0, 1.0
    played = (often if here.answer is None else 1 - often) if here.tossed else 1.0
    return here.chance / played, there.chance / here.chance if here.answer == there.answer else 0.0


@dataclass(frozen=True)
class _Asked:
    """An answer, its chance, whether a coin was tossed for it, and whether the coin alone has decided."""

    answer: Answer
    chance: float
    tossed: bool
    understood: bool


def _asked(session: Session, coin: _Coin, counts: tuple[int, int], *, refused: bool) -> _Asked:
    """One query, answered as the coin is told to fall, or as it must be if no coin is tossed."""
    coin.falls, coin.asked = refused, []
    answer = session.answer(counts)
    if not coin.asked:
        return _Asked(answer, 1.0, tossed=False, understood=True)
    return _Asked(
        answer, coin.asked[0][refused], tossed=True, understood=len(coin.asked) == 1 and (answer is None) == refused
    )


def _queries(mechanism: Tabled | SparseVector) -> tuple[list[_Query], list[_Query]]:
    """Neighbouring votes in both orders, at the usual distance and at all others, with winners that differ."""
    gate, first, usual = mechanism.labels, mechanism.first, mechanism.place(chance=_CHANCE)
    found: dict[int, list[_Query]] = {}
    for place in range(first, first + len(mechanism.table)):
        low = 2 if gate else max(1, 1 - 2 * place)
        near, far = (low + 2 * place + gate, low), (low + 2 * place + 1 + gate, low - 1)
        found[place] = [_query(mechanism, near, far), _query(mechanism, far, near)]
    others = [query for place, both in found.items() if place != usual for query in both]
    return found[usual], [*others, _query(mechanism, (2, 1), (1, 2))]


def _refusals(mechanism: Tabled | SparseVector, counts: tuple[int, int]) -> int:
    """How many refusals a session gives before it stops, up to twice as many as it should."""
    coin = _Coin()
    session, given = mechanism.session(coin), 0
    while (
        given < 2 * mechanism.refusals
        and not session.stopped
        and _asked(session, coin, counts, refused=True).answer is None
    ):
        given += 1
    return max(1, given)


def _query(mechanism: Tabled | SparseVector, here: tuple[int, int], there: tuple[int, int]) -> _Query:
    """What sessions do on these counts, as their coins are read."""
    read = []
    for counts in (here, there):
        coin = _Coin()
        asked = _asked(mechanism.session(coin), coin, counts, refused=False)
        read.append((1 - asked.chance if asked.tossed else float(asked.answer is None), asked.answer))
    (p, one), (q, other) = read
    return _Query(here, there, (p, q), tells=one != other)
