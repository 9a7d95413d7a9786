"""The noise for the next query, by what was answered so far: its constants, and the rule that chooses among them.

The rule is Bayes': how far teachers agree is one of the cases of `cases`, and answers and refusals make some likelier
than others. That noise is taken which, for some more queries, is expected to lose least of what each case is worth to
somebody who knows it. What is proven needs none of this: any rule would do that looks at answers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ...core.errors import NoTheoremError
from ...theory import adaptive_threshold
from .cases import likelihoods, possible_margins, votes_ahead
from .expectations import Floats, Rows, Votes, alike

UNIT = 2**40
"""Prices are whole numbers over this, so that they add up exactly."""

_TIMES = (1.2, 1.4, 1.8, 2.4)
"""Orders are so many times the least there is, which leaves all of δ to one refusal; few refusals cost least with a
small one, many with a large one."""
_DIGITS = 6
_APART = 1.25
"""Scales are so many times one another, and the first so many times that of the last refusal."""
_VOTES = 6
"""The largest is this part of the teachers: with more noise, hardly any query would be answered."""
_MOST_SCALES = 60
_UNLIKELY = 1e-4
"""A case that is less likely than this share of the likeliest is not looked at for the next queries."""
_CERTAIN = 4.2
"""The logarithm of the largest hazard that is drawn."""
_SOON, _FORESEEN = 4, 2
"""The noise is chosen for as many queries as a fourth of those so far; after them, or a refusal, it is chosen anew.
Where answers are only foreseen, it is looked at after as many as a half."""
_ROUNDED = 1e-12
"""Shares of the chance of labels are made smaller by this, more than their rounding."""


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a session.

    Attributes
    ----------
    order
        λ.
    budget
        What prices may add up to, of `UNIT`.
    labels
        The chance that labels tell.
    scales, prices, thresholds
        The scales of noise, the price of a refusal with each, of `UNIT`, and the votes around which refusals end.
    last_scale, last_threshold
        Those with which the next refusal is the last: a smaller scale, but no price that anything could be left for.
    """

    order: float
    budget: int
    labels: float
    scales: tuple[float, ...]
    prices: tuple[int, ...]
    thresholds: tuple[int, ...]
    last_scale: float
    last_threshold: int

    @cached_property
    def options(self) -> list[tuple[float, int, int | None]]:
        """The scale, threshold and price of each way to decide a query; the last one is that of the last refusal."""
        return [
            *zip(self.scales, self.thresholds, self.prices, strict=True),
            (self.last_scale, self.last_threshold, None),
        ]


def _constants(epsilon: float, delta: float, teachers: int, order: float) -> Constants:
    """Those for a budget, so many teachers, and an order."""
    labels, budget = _spent(epsilon, delta, order)
    found = list[tuple[float, int, int]]()
    while len(found) < _MOST_SCALES and (not found or found[-1][0] * _VOTES < teachers):
        way = _way(epsilon, delta, order, len(found))
        if way is None:
            break
        found.append(way)
    scales, prices, thresholds = zip(*found, strict=True)
    last = adaptive_threshold.least_scale(order)
    return Constants(
        order=order,
        budget=budget,
        labels=labels,
        scales=scales,
        prices=prices,
        thresholds=thresholds,
        last_scale=last,
        last_threshold=adaptive_threshold.adaptive_threshold_votes(labels / 2, scale=last),
    )


def _spent(epsilon: float, delta: float, order: float) -> tuple[float, int]:
    """The chance that labels tell, and what prices may add up to, of `UNIT`."""
    budget = adaptive_threshold.adaptive_threshold_budget(epsilon, delta, order=order)
    return adaptive_threshold.FOR_LABELS * delta, math.floor(UNIT * budget)


@lru_cache(maxsize=8192)
def _way(epsilon: float, delta: float, order: float, place: int) -> tuple[float, int, int] | None:
    """The scale, price and threshold at a place; None without a proven price, or if chances are too small to draw."""
    labels, budget = _spent(epsilon, delta, order)
    scale = _APART ** (place + 1) * adaptive_threshold.least_scale(order)
    if scale > adaptive_threshold.COARSEST:
        return None
    price = math.ceil(UNIT * adaptive_threshold.refusal_price(scale, order=order))
    chance = labels / 2 * min(1.0, price / budget) * (1 - _ROUNDED)
    if chance < adaptive_threshold.LEAST_CHANCE:
        return None
    return scale, price, adaptive_threshold.adaptive_threshold_votes(chance, scale=scale)


@lru_cache(maxsize=512)
def _orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Multiples of the least order, at which nothing is left for a second refusal, to six digits."""
    low, high = 1e-3, 5e7
    while high > (1 + 10.0**-_DIGITS) * low:
        middle = math.sqrt(low * high)
        try:
            adaptive_threshold.adaptive_threshold_budget(epsilon, delta, order=middle)
            high = middle
        except NoTheoremError:
            low = middle
    return tuple(float(f"{times * high:.{_DIGITS}g}") for times in _TIMES)


@dataclass
class State:
    """What a rule knows, in each of some sessions that it watches at once.

    Attributes
    ----------
    left
        What is left for prices, of `UNIT`.
    last
        Whether the next refusal is the last.
    asked
        The number of queries so far.
    log
        How likely each case has become, as logarithms up to a constant.
    """

    left: Floats
    last: NDArray[np.bool_]
    asked: Floats
    log: Floats

    def of(self, which: NDArray[np.bool_]) -> State:
        """That of some of the sessions."""
        return State(left=self.left[which], last=self.last[which], asked=self.asked[which], log=self.log[which])


@lru_cache(maxsize=64)
def _cases(teachers: int) -> tuple[Rows, list[float]]:
    """The cases that are thought possible, as rows of some, with their places; and how likely each is beforehand."""
    found = [Votes(lead=votes_ahead(np.array(case), teachers), teachers=teachers) for case in possible_margins(None)]
    return alike(found), likelihoods(found)


class Policy:
    """The rule, for a number of queries that so many teachers vote on."""

    def __init__(self, found: Constants, *, teachers: int, queries: int) -> None:
        self.constants = found
        self.queries, self._options = queries, found.options
        self._start, self._last = float(found.budget), len(found.prices)
        self._price = np.array([*found.prices, math.inf])
        rows, prior = _cases(teachers)
        self.prior = np.log(prior)
        self._refused, self._right = self._chances(rows)
        # What one query tells, so that flawless answers add up.
        self._told = np.maximum(0.0, 2 * self._right - (1 - self._refused)) ** 2 / (1 - self._refused)
        start = np.full((1, 1, len(prior)), self._start)
        self.best = np.maximum(
            1.0, self._possible(start, np.full_like(start, queries), self._refused, self._told)[0, 0]
        )

    def begin(self, sessions: int) -> State:
        """Before the first query."""
        zeros = np.zeros(sessions)
        return State(
            left=zeros + self._start,
            last=np.zeros(sessions, dtype=bool),
            asked=zeros,
            log=np.tile(self.prior, (sessions, 1)),
        )

    def soon(self, state: State, *, part: int = _SOON) -> Floats:
        """For how many queries the noise is chosen."""
        found: Floats = np.minimum(self.queries - state.asked, np.maximum(1.0, state.asked / part))
        return found

    def option(self, state: State) -> NDArray[np.intp]:
        """The number of the option to decide the next queries by, in each session."""
        chances = np.exp(state.log - state.log.max(axis=1, keepdims=True))
        cases = np.flatnonzero(chances.max(axis=0) > _UNLIKELY)
        chances, refused, told = chances[:, cases], self._refused[:, cases], self._told[:, cases]
        left, queries, soon = (
            part[:, None, None] for part in (state.left, self.queries - state.asked, self.soon(state))
        )
        spent = soon * refused[:-1] * self._price[:-1, None]
        asked = soon * np.minimum(1.0, left / np.maximum(spent, 1.0))
        gained = asked * told[:-1] + self._possible(np.maximum(0.0, left - spent), queries - asked, refused, told)
        last = np.broadcast_to(np.minimum(queries, 1 / refused[-1:]) * told[-1:], (len(left), 1, len(cases)))
        scores = np.einsum("noc,nc->no", np.concatenate([gained, last], axis=1), chances / self.best[cases])
        allowed = ~state.last[:, None] & (self._price <= state.left[:, None])
        allowed[:, self._last] = True
        found: NDArray[np.intp] = np.where(allowed, scores, -1.0).argmax(axis=1)
        return found

    def choice(self, state: State) -> int:
        """The same for one session, remembered: many sessions begin alike."""
        (left,), (last,), (asked,), (log,) = state.left.tolist(), state.last.tolist(), state.asked.tolist(), state.log
        return _choice(self, left, last, asked, log.tobytes())

    def after(self, state: State, option: NDArray[np.intp], *, answered: Floats, refusals: Floats) -> State:
        """The state after some more queries that were decided by these options; a price for each refusal."""
        refused, ends = self._refused[option], option == self._last
        return State(
            left=state.left - np.where(ends, 0.0, self._price[option]) * refusals,
            last=state.last | ends,
            asked=state.asked + answered + refusals,
            log=state.log + answered[:, None] * np.log1p(-refused) + refusals[:, None] * np.log(refused),
        )

    def foreseen(self, rows: Rows) -> tuple[tuple[float, float], ...]:
        """About the answers and right answers to expect in each case: chances are followed, not coins."""
        refused, right = self._chances(rows)
        each = np.arange(refused.shape[1])
        state, answered, good = self.begin(each.size), np.zeros(each.size), np.zeros(each.size)
        while each.size:  # the cases whose sessions go on
            option = self.option(state)
            rate, ends = refused[option, each], option == self._last
            room = np.where(ends, 1.0, state.left / self._price[option]) / rate  # until what is left is spent
            more = np.minimum(np.where(ends, self.queries - state.asked, self.soon(state, part=_FORESEEN)), room)
            answered[each] += more * (1 - rate)
            good[each] += more * right[option, each]
            state = self.after(state, option, answered=more * (1 - rate), refusals=more * rate)
            going = ~ends & (state.asked < self.queries - 0.5)
            state, each = state.of(going), each[going]
        return tuple(zip(answered.tolist(), good.tolist(), strict=True))

    def _chances(self, rows: Rows) -> tuple[Floats, Floats]:
        """For each option and case, the shares of queries that are refused, and answered rightly."""
        scale, threshold = (np.array([option[part] for option in self._options])[:, None, None] for part in (0, 1))
        refused, right = (np.empty((len(self._options), sum(len(places) for _, places in rows))) for _ in range(2))
        for votes, places in rows:
            found = -np.expm1(-np.exp(np.minimum((threshold - votes.distance) / scale, _CERTAIN)))
            refused[:, places] = found.mean(axis=2)
            right[:, places] = ((1 - found) * votes.right).mean(axis=2)
        return np.clip(refused, 1e-15, 1 - 1e-15), right

    def _possible(self, left: Floats, queries: Floats, refused: Floats, told: Floats) -> Floats:
        """What the best option, kept to the end, would tell in each case, for arrays of what is left."""
        found: Floats = np.minimum(queries, 1 / refused[-1]) * told[-1]
        for price, rate, each in zip(self._price[:-1], refused[:-1], told[:-1], strict=True):
            asked = np.minimum(queries, left * (1 / (price * rate)) + 1 / rate)
            np.maximum(found, asked * each * (left >= price), out=found)
        return found


@lru_cache(maxsize=2**14)
def _choice(rule: Policy, left: float, last: bool, asked: float, log: bytes) -> int:
    state = State(left=np.array([left]), last=np.array([last]), asked=np.array([asked]), log=np.frombuffer(log)[None])
    (found,) = rule.option(state).tolist()
    return int(found)


@lru_cache(maxsize=64)
def policy(epsilon: float, delta: float, teachers: int, queries: int) -> Policy:
    """The rule with constants of the order that keeps most of the best, over the cases, if noise is kept to the end."""
    found = [
        Policy(_constants(epsilon, delta, teachers, order), teachers=teachers, queries=queries)
        for order in _orders(epsilon, delta)
    ]
    most = np.max([rule.best for rule in found], axis=0)
    return max(found, key=lambda rule: float(np.sqrt(rule.best / most) @ np.exp(rule.prior)))
