"""The worst pair of tables for votes with a quota, and for sums, played as an attack with a canary.

Two tables are given to the voters themselves: one with a canary, of one record or of several of one person, and one
without it, or with another label. The same place is asked about again and again, until the canary retires; sums are
released once. Wherever the two counts differ, an answer is taken from a session. Noise is drawn exactly and shifted
along the difference, by as much as makes the losses that matter frequent; each game then comes with the exact ratio of
its likelihoods, and with the weight that undoes the shift. The mean of weight · (1 − exp(ε)·Q/P)⁺ is at most δ(ε), so a
lower confidence limit on it that exceeds δ shows a loss above ε. The attack believes neither a quota nor a noise that
is stated: it observes both.

It assumes that an answer is the counts with the noise that was asked for. If a session is seen to do otherwise, the
game counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsRegressor

from ..core.guarantee import Adversary, Attack
from ..theory.confidence import sampled_mean_lower
from ..theory.gate import ONE
from .answer_sums import AnswerSums, Grid, summed_answers
from .mechanisms import Answer, Noise, VoteQuota
from .moments import NoisySums, sums_by_class, unit_rows
from .nearby import NearbyVoters

_RECORDS = 3
"""The records of a canary that is a person."""
_BEYOND = 3
"""Queries that it is asked about after it should have retired."""
_SHARES = (0.0, 0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 1.02, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 4.0)
"""The losses that are tried, as shares of the one claimed."""
_TRIALS = 4
"""Losses on which a lower limit is tried in the end, from the one that the search found downwards."""
_KEY = bytes(32)

_Counts = NDArray[np.int64]


def canary_counts(mechanism: VoteQuota) -> tuple[_Counts, _Counts]:
    """True counts with the canary and without it, on every query where they differ, of the pair that differs most."""
    pairs = [_counts(mechanism, people) for people in (None, [b"canary"] * _RECORDS)]
    return max(pairs, key=lambda pair: int(((pair[0] - pair[1]) ** 2).sum()))


def _counts(mechanism: VoteQuota, people: list[bytes] | None) -> tuple[_Counts, _Counts]:
    public = np.array([[0.0], [1.0]])
    records = np.zeros((1 if people is None else len(people), 1))
    asked = np.zeros((mechanism.quota + _BEYOND, 1))

    def counts(number: int | None) -> _Counts:
        voters = NearbyVoters(public, rank=mechanism.rank, quota=mechanism.quota, classes=2)
        kept = 0 if number is None else len(records)
        numbers = np.full(kept, number or 0, dtype=np.int64)
        voters.fit(records[:kept], numbers, people=None if people is None else people[:kept], key=_KEY)
        return voters.counts(asked)

    here, there = counts(0), counts(None if mechanism.changed == 1 else 1)
    differ = (here != there).any(axis=1)
    return here[differ], there[differ]


def canary_sums(mechanism: NoisySums) -> tuple[_Counts, _Counts]:
    """True sums with the canary and without it, or with another label, of the pair that differs most."""
    pairs = []
    for people in (None, [b"canary"] * _RECORDS):
        rows = unit_rows(np.ones((1 if people is None else len(people), 1)))
        first = np.zeros(len(rows), dtype=np.int64)
        here = sums_by_class(rows, first, people, classes=2)
        there = np.zeros_like(here)
        if mechanism.changed > 1:
            there = sums_by_class(rows, first + 1, people, classes=2)
        pairs.append((here.reshape(1, -1), there.reshape(1, -1)))
    return max(pairs, key=lambda pair: int(((pair[0] - pair[1]) ** 2).sum()))


def canary_answers(mechanism: AnswerSums) -> tuple[_Counts, _Counts]:
    """True sums of answers with the canary and without it: a teacher says what its nearest record says.

    Everything that is asked about lies where the canary does, which says the largest number; its neighbour, the least.
    """
    records, values = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    asked = np.ones((mechanism.sums, 1))
    grid = Grid(low=0.0, high=1.0, reach=mechanism.reach)

    def sums(kept: int) -> _Counts:
        owners = [row.tobytes() for row in records[:kept]]
        teacher = KNeighborsRegressor(n_neighbors=1)
        found = summed_answers(
            teacher, records[:kept], values[:kept], asked, owners=owners, key=_KEY, teachers=1, grid=grid
        )
        return found.reshape(1, -1)

    return sums(2), sums(1)


def canary_attack(
    mechanism: VoteQuota | NoisySums | AnswerSums, *, runs: int, failure_probability: float, noise: Noise
) -> Attack:
    """Attack a release of counts or sums: the privacy loss that the canary's games show, with a lower limit."""
    games = _Games(mechanism, noise)
    losses = [share * mechanism.epsilon for share in _SHARES]
    first, last = 0, len(losses)
    while last - first > 1:  # gains fall with the loss
        middle = (first + last) // 2
        gains, most = games.gains(losses[middle], games=max(50, runs // 10))
        likely = most * (gains.mean() - 2 * gains.std() / math.sqrt(len(gains)))
        first, last = (middle, last) if likely > mechanism.delta else (first, middle)
    shown, low, alpha = losses[first], 0.0, failure_probability / _TRIALS
    for loss in losses[first : max(0, first - _TRIALS) : -1]:
        gains, most = games.gains(loss, games=runs)
        if most * sampled_mean_lower(gains, failure_probability=alpha) > mechanism.delta:
            low = loss
            break
    return Attack(
        quantity=mechanism.guarantee.quantity,
        value=shown,
        low=low,
        high=math.inf,
        failure_probability=failure_probability,
        adversary=Adversary.ANY,
        method=f"{games.name} ({runs} games, their likelihoods exact)",
    )


class _Games:
    def __init__(self, mechanism: VoteQuota | NoisySums | AnswerSums, noise: Noise) -> None:
        self._mechanism, self._noise = mechanism, noise
        if isinstance(mechanism, NoisySums):
            self.name = "sums with a canary, against sums without it or with its label changed"
            self._here, self._there = canary_sums(mechanism)
        elif isinstance(mechanism, AnswerSums):
            self.name = "sums of answers with a canary among a teacher's records, against sums without it"
            self._here, self._there = canary_answers(mechanism)
        else:
            self.name = "a canary, asked about until it retires"
            self._here, self._there = canary_counts(mechanism)
        self._moved = self._here - self._there
        self._size = float((self._moved**2).sum())

    def gains(self, loss: float, *, games: int) -> tuple[NDArray[np.float64], float]:
        """What each of some games gains at this loss, as shares of the most that one can, and that most.

        The expectation of a gain is no more than δ at this loss.
        """
        if not self._size:
            return np.zeros(games), 0.0
        scale = self._scale()
        spread = self._size / scale**2  # μ²
        shift = max(0, round(loss / spread - 0.5))
        # A game that loses `loss` + u has the weight w·exp(−shift·u), and (1 − exp(−u))·exp(−shift·u) is largest where
        # exp(−u) = shift/(shift + 1). The last factor is for rounding.
        weight = math.exp(-shift * (loss - spread / 2) + shift**2 * spread / 2)
        most = weight * (shift / (shift + 1)) ** shift / (shift + 1) * (1 + 1e-9)
        found = [self._game(loss, shift, scale) for _ in range(games)]
        return np.clip(np.array(found) / most, 0, 1), most

    def _begun(self, source: _Shifted) -> Callable[[_Counts], Answer]:
        """A release that begins, which turns true numbers into what leaves."""
        mechanism = self._mechanism
        if isinstance(mechanism, NoisySums | AnswerSums):
            return lambda sums: tuple(mechanism.release(sums, source).tolist())
        return mechanism.session(source).answer

    def _scale(self) -> float:
        """The noise that a session asks for."""
        source = _Shifted(self._noise, np.zeros_like(self._moved[0]))
        self._begun(source)(self._here[0])
        return source.asked[0][0] if source.asked else math.inf

    def _game(self, loss: float, shift: int, scale: float) -> float:
        """The gain of one game, 0 if the session did what is not understood."""
        source = _Shifted(self._noise, self._moved[0])
        released = self._begun(source)
        along = 0.0
        for here, moved in zip(self._here, self._moved, strict=True):
            source.shift, source.asked = shift * moved, []
            answer = released(here)
            if [asked for asked, _ in source.asked] != [scale]:
                return 0.0
            drawn = source.asked[0][1]
            if not isinstance(answer, tuple) or [int(count) for count in here + drawn] != list(answer):
                return 0.0
            along += float(moved @ drawn) / scale**2
        size = self._size / scale**2
        lost = along + size / 2
        weight = math.exp(-shift * along + shift**2 * size / 2)
        return weight * max(0.0, -math.expm1(min(0.0, loss - lost)))


class _Shifted:
    """Noise that is shifted, and remembered as it was given."""

    def __init__(self, noise: Noise, shift: _Counts) -> None:
        self._noise, self.shift = noise, shift
        self.asked: list[tuple[float, _Counts]] = []

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number, as it is."""
        return self._noise.laplace(scale)

    def gaussian(self, scale: float, *, size: int) -> Sequence[int]:
        """Independent discrete Gaussian numbers, shifted."""
        drawn = np.array(self._noise.gaussian(scale, size=size), dtype=np.int64) + self.shift
        self.asked.append((scale, drawn))
        found: list[int] = drawn.tolist()
        return found

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """A coin, as it is."""
        return self._noise.coin(chance, of=of)
