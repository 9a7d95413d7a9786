"""A distinguishing attack on a mechanism: votes that differ in one teacher, many runs, and a lower limit on ε.

(ε, δ)-DP says P(E) ≤ exp(ε) Q(E) + δ for every event E. The attack plays games. A game is a sequence of queries with
their counts under two neighbouring data sets. The attack searches for the game and the event that tell the two apart
best, then runs that game afresh and bounds P(E) from below and Q(E) from above (Clopper–Pearson). So ε ≥ ln((P − δ)/Q),
whatever was searched.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Adversary, Attack
from ..runtime import entropy
from ..theory.confidence import binomial_lower, binomial_upper
from ..theory.gate import ONE
from .answer_sums import AnswerSums
from .canary import canary_attack, canary_counts
from .mechanisms import AdaptiveVector, Mechanism, Noise, SparseVector, VoteQuota
from .mechanisms.gate import Tabled
from .moments import NoisySums
from .noise_attack import noise_attack
from .votes import checked_counts
from .worst_case import worst_case_attack

_BLOCK = 4096

Row = tuple[int, ...]


class StoredNoise:
    """`SystemNoise` drawn in blocks, as an attack needs millions of draws. Not for releases: a fork would repeat it."""

    def __init__(self) -> None:
        self._laplace: dict[float, list[int]] = {}
        self._gaussian: dict[float, list[int]] = {}
        self._coins: dict[Fraction, list[bool]] = {}

    def laplace(self, scale: float) -> int:
        """One discrete Laplace number, used once."""
        stock = self._laplace.setdefault(scale, [])
        if not stock:
            stock.extend(entropy.discrete_laplace(scale, size=_BLOCK).tolist())
        return stock.pop()

    def gaussian(self, scale: float, *, size: int) -> list[int]:
        """Independent discrete Gaussian numbers, each used once."""
        stock = self._gaussian.setdefault(scale, [])
        while len(stock) < size:
            stock.extend(entropy.discrete_gaussian(scale, size=_BLOCK).tolist())
        return [stock.pop() for _ in range(size)]

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """True with probability chance/of, used once."""
        exact = Fraction(chance, of)
        stock = self._coins.setdefault(exact, [])
        if not stock:
            stock.extend(entropy.bernoulli(exact, size=_BLOCK).tolist())
        return stock.pop()


@dataclass(frozen=True, kw_only=True)
class Game:
    """A sequence of queries, with their counts under two neighbouring data sets.

    A game starts again after every refusal. It ends when all its queries were answered in a row, or the mechanism
    stops.

    Attributes
    ----------
    name
        What the game tries.
    left, right
        The counts of each query under either data set, which differ in at most one vote.
    """

    name: str
    left: Sequence[Row]
    right: Sequence[Row]

    def __post_init__(self) -> None:
        validate.text("name", self.name, remedy="say what the game tries")
        left, right = checked_counts(self.left), checked_counts(self.right)
        if left.shape != right.shape:
            raise InputError(
                "right", right.shape, requirement=f"must have the shape {left.shape} of left", remedy="pair the queries"
            )
        moved = right - left
        if np.abs(moved).max() > 1 or (moved > 0).sum(axis=1).max() > 1 or (moved < 0).sum(axis=1).max() > 1:
            raise InputError(
                "right",
                moved[np.argmax(np.abs(moved).sum(axis=1))].tolist(),
                requirement="must differ from left by one vote a query at most",
                remedy="move one vote from one class to another",
            )
        object.__setattr__(self, "left", tuple(tuple(row) for row in left.tolist()))
        object.__setattr__(self, "right", tuple(tuple(row) for row in right.tolist()))


def games(mechanism: Mechanism, *, length: int, seed: int) -> list[Game]:
    """Games to attack a mechanism with: known worst cases, and a random one.

    Parameters
    ----------
    mechanism
        The mechanism.
    length
        The most queries between refusals.
    seed
        The seed of the random game.

    Returns
    -------
    The games.
    """
    length = validate.whole("length", length, at_least=2, remedy="say how many queries a game may ask in a row")
    validate.whole("seed", seed, at_least=0, remedy="use any whole number")
    if isinstance(mechanism, VoteQuota):  # any other votes would exceed the quota
        here, there = canary_counts(mechanism)
        level = mechanism.undecided[1]
        rows = ([tuple(row) for row in (counts + level).tolist()] for counts in (here, there))
        return [Game(name="a canary until it retires", left=next(rows), right=next(rows))]
    top, second = mechanism.undecided
    found = [_flips(top + second, length)]
    wide = max(1, round(mechanism.spread))
    for first, last in dict.fromkeys([(0, 0), (1, 0), (1, -1), (wide, 0), (2 * wide, -wide)]):
        found += _moves((top, second), length, first, last)
    return [*found, _random(mechanism, length, seed)]


def _flips(votes: int, length: int) -> Game:
    """The winner changes: an answer tells everything."""
    half = max(1, votes // 2)
    return Game(name="winners that differ", left=[(half + 1, half)] * length, right=[(half, half + 1)] * length)


def _moves(centre: tuple[int, int], length: int, first: int, last: int) -> Iterator[Game]:
    """Queries `first` votes from the centre with one unlike them at the end, and queries of both kinds in turn.

    Answers at first show that the threshold's noise is low, which the right side makes less likely; the refusal at the
    end is less likely on the right as well.
    """

    def row(offset: int) -> tuple[int, int]:
        lead = max(centre[0] - centre[1] + 2 * offset, 0)
        return max(1, centre[1]) + lead, max(1, centre[1])

    (high, low), (end_high, end_low) = row(first), row(last)
    where = f"{first:+d} and {last:+d} votes from undecided"
    left = [(high, low)] * (length - 1) + [(end_high, end_low)]
    closer = [(high - 1, low + 1)] * (length - 1) + [(end_high + 1, end_low - 1)]
    yield Game(name=f"closer, then farther, {where}", left=left, right=closer)
    if first == last:
        alike = [(high, low)] * length
        yield Game(name=f"closer, {where}", left=alike, right=[(high - 1, low + 1)] * length)
        turns = [(high - 1, low + 1) if index % 2 else (high + 1, low - 1) for index in range(length)]
        yield Game(name=f"both ways in turn, {where}", left=alike, right=turns)


def _random(mechanism: Mechanism, length: int, seed: int) -> Game:
    rng = np.random.default_rng(seed)
    base = np.array([*mechanism.undecided, 0])[: getattr(mechanism, "classes", None)]
    left, right = [], []
    for _ in range(length):
        row = rng.integers(0, 3, size=len(base)) + base
        row[0] = max(1, row[0])  # somebody votes
        moved = row.copy()
        giver = int(rng.choice(np.flatnonzero(row)))
        moved[giver] -= 1
        moved[rng.integers(len(base))] += 1
        left.append(tuple(row.tolist()))
        right.append(tuple(moved.tolist()))
    return Game(name="random votes", left=left, right=right)


def distinguishing_attack(
    mechanism: Mechanism | NoisySums | AnswerSums,
    *,
    runs: int = 20_000,
    length: int = 4,
    failure_probability: float = 1e-3,
    seed: int = 0,
    tried: Sequence[Game] | None = None,
    noise: Noise | None = None,
) -> Attack:
    """Attack a mechanism: the privacy loss that the best game shows, in the unit of the guarantee.

    Against tables of probabilities (`Gate`, `Confirm`) the worst adversary of their certificate is played as well
    (`worst_case`), and against other mechanisms the exact likelihoods of all answers of a session are computed, with
    noise as large as real answers show it (`noise_attack`). The attack that shows more is returned. Against counts of
    voters with a quota (`VoteQuota`) a canary is asked about until it retires (`canary`), with a tenth of the runs;
    against sums (`NoisySums`, `AnswerSums`) there is one game, a canary that is summed up, or taught, or not.

    Parameters
    ----------
    mechanism
        The mechanism.
    runs
        The number of runs on either side that measure the best game. A tenth of it searches each game.
    length
        The most queries of a game between refusals.
    failure_probability
        The probability with which the interval may miss the truth.
    seed
        The seed of the random game.
    tried
        The games to try; those of `games` unless given.
    noise
        A source of noise for tests. Leave it out to attack what will be released.

    Returns
    -------
    The attack, with its confidence interval.
    """
    runs = validate.whole("runs", runs, at_least=100, remedy="run at least a few thousand")
    alpha = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.001")
    source = StoredNoise() if noise is None else noise
    if isinstance(mechanism, NoisySums | AnswerSums):
        if tried is not None:
            raise InputError(
                "tried",
                f"{len(tried)} games of votes",
                requirement="must be left out for sums, on which nobody votes",
                remedy="leave it out",
            )
        return canary_attack(mechanism, runs=runs // 10, failure_probability=alpha, noise=source)
    if tried is None and isinstance(mechanism, VoteQuota) and mechanism.counts:
        return canary_attack(mechanism, runs=runs // 10, failure_probability=alpha, noise=source)
    other, share = None, alpha
    played = games(mechanism, length=length, seed=seed) if tried is None else tried
    if tried is None:
        share = alpha / 2
        if isinstance(mechanism, Tabled | AdaptiveVector) or (
            isinstance(mechanism, SparseVector) and not mechanism.keeps_noise
        ):
            other = worst_case_attack(mechanism, runs=min(100, runs // 10), failure_probability=share, seed=seed)
        else:
            other = noise_attack(mechanism, noise=source, runs=2 * runs, failure_probability=share)
    delta = mechanism.delta
    best: tuple[float, Game, bool, frozenset[Hashable]] | None = None
    for game in played:
        left = _outcomes(mechanism, game, game.left, runs // 10, source)
        right = _outcomes(mechanism, game, game.right, runs // 10, source)
        for swapped, (likely, unlikely) in enumerate(((left, right), (right, left))):
            loss, event = _best_event(likely, unlikely, delta, share)
            if best is None or loss > best[0]:
                best = loss, game, bool(swapped), event
    if best is None:
        raise InputError(
            "tried", tried, requirement="must hold at least one game", remedy="leave it out for all of them"
        )
    _, game, turned, event = best
    likely_rows, unlikely_rows = (game.right, game.left) if turned else (game.left, game.right)
    hits = sum(count for key, count in _outcomes(mechanism, game, likely_rows, runs, source).items() if key in event)
    misses = sum(
        count for key, count in _outcomes(mechanism, game, unlikely_rows, runs, source).items() if key in event
    )
    value, low, high = shown_loss(hits, misses, runs=runs, delta=delta, failure_probability=share)
    if other is not None and other.low > low:
        # Of either: the one that shows more is chosen by what it shows.
        return replace(other, failure_probability=alpha)
    return Attack(
        quantity=mechanism.guarantee.quantity,
        value=value,
        low=low,
        high=high,
        failure_probability=alpha,
        adversary=Adversary.ANY,
        method=f"distinguishing attack ({game.name}; {runs} runs on either side)",
    )


def shown_loss(
    hits: int, misses: int, *, runs: int, delta: float, failure_probability: float
) -> tuple[float, float, float]:
    """The ε that an event shows, and its limits, from how often it occurred on the likely and on the unlikely side."""
    alpha = failure_probability / 4
    (likely_low, likely_high), (unlikely_low, unlikely_high) = (
        (
            binomial_lower(count, trials=runs, failure_probability=alpha),
            binomial_upper(count, trials=runs, failure_probability=alpha),
        )
        for count in (hits, misses)
    )
    return (
        _loss(hits / runs, misses / runs, delta),
        _loss(likely_low, unlikely_high, delta),
        _loss(likely_high, unlikely_low, delta),
    )


def _outcomes(mechanism: Mechanism, game: Game, rows: Sequence[Row], runs: int, noise: Noise) -> Counter[Hashable]:
    """How often each summary of a transcript occurred. A summary counts the answers for every kind of query.

    For noisy counts it is their sum along the votes that moved, which loses no information.
    """
    kinds = list(zip(game.left, game.right, strict=True))
    index = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    numbers = [index[kind] for kind in kinds]
    moves = [tuple(after - before for before, after in zip(*kind, strict=True)) for kind in kinds]
    arrays = [np.array(row, dtype=np.int64) for row in rows]
    width = mechanism.spread * math.sqrt(2 * len(arrays)) / 4
    found: Counter[Hashable] = Counter()
    for _ in range(runs):
        session = mechanism.session(noise)
        transcript: Counter[Hashable] = Counter()
        place = along = 0
        while place < len(arrays) and not session.stopped:
            answer = session.answer(arrays[place])
            if isinstance(answer, tuple):
                along += sum(move * count for move, count in zip(moves[place], answer, strict=True))
                answer = -1
            transcript[numbers[place], answer] += 1
            place = 0 if answer is None else place + 1
        found[frozenset(transcript.items()), round(along / width)] += 1
    return found


def _best_event(
    likely: Counter[Hashable], unlikely: Counter[Hashable], delta: float, alpha: float
) -> tuple[float, frozenset[Hashable]]:
    """The event with the best limit on these runs, among those made of the summaries with the largest ratios."""
    runs = likely.total()
    keys = sorted(likely, key=lambda key: (likely[key] + 0.5) / (unlikely[key] + 0.5), reverse=True)
    hits = np.cumsum([likely[key] for key in keys])
    misses = np.cumsum([unlikely[key] for key in keys])
    low = special.betaincinv(hits, runs - hits + 1, alpha / 4)
    high = np.where(misses < runs, special.betaincinv(misses + 1, np.maximum(runs - misses, 1), 1 - alpha / 4), 1.0)
    losses = np.log(np.maximum(low - delta, 1e-300)) - np.log(high)
    best = int(np.argmax(losses))
    return float(losses[best]), frozenset(keys[: best + 1])


def _loss(likely: float, unlikely: float, delta: float) -> float:
    """ln((P − δ)/Q), at least 0."""
    if likely <= delta:
        return 0.0
    return math.inf if unlikely == 0 else max(0.0, math.log((likely - delta) / unlikely))
