"""An attack by exact likelihoods: how much all answers of a session tell together, at the noise that answers show.

What δ = 1e-5 is about happens once in 100000 runs, so counting runs shows little of it. But a mechanism states the form
of its noise, fresh and independent for every answer, and of such noise the scale alone is unknown. Real answers of the
mechanism show it: counts that are far from a tie are asked about thousands of times, and how often the answer is the
unlikely one gives limits for the scale; noisy counts show it directly. With the scale, the laws of all answers of a
session under two neighbouring data sets are computed exactly, and so is the best event: ε ≥ ln((P − δ)/Q).

Nothing that a mechanism says of its scale is believed, nor how many answers a session gives; at the scale it states the
loss is computed, too, so that code which does as it says is not contradicted by mistake. Its threshold is believed, and
the form of its noise; the games of `attack` try mechanisms of which these are wrong. Proof: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..core import validate
from ..core.guarantee import Adversary, Attack
from ..theory.confidence import binomial_lower, binomial_upper, gaussian_scale_lower, gaussian_scale_upper
from .mechanisms import Answer, ConfidentGNMax, GNMax, Mechanism, Noise, Session, SparseVector, StableRelease
from .mechanisms.expectations import Floats

_POINTS = 9
"""Scales between both limits at which the loss is computed; the least and the largest count."""
_REACH = 14.0
"""Discrete Gaussians are tabulated to this many standard deviations."""
_OUTSIDE = 1e-40
"""More than a discrete Gaussian has there."""
_SMOOTH = 4.0
"""The scale from which sums and differences are discrete Gaussians but for exp(−16π²) of themselves."""
_LAPLACE_REACH = 40.0
_MARGINS = np.arange(-4.0, 4.25, 0.25)
"""Margins between two classes that are tried, in standard deviations of their difference."""
_INFORMATIVE = 1.5
"""The margin, in those, at which an unlikely winner shows the scale best."""
_LENGTHS = (1, 2, 4, 8, 16)
_FIRST, _LAST = (0.0, 0.5, 1.0, 3.0), (-1.0, 0.0, 1.0)
"""Games against sparse vector to begin with: queries of an epoch, and how many λ above the threshold its first and last
ones are."""
_MOVES = (1.0, 0.5, 0.25)
"""By how many λ one query is then moved at a time, as long as that helps."""
_COARSE, _COARSE_BINS = 4.0, 0.5
"""Values of the threshold's noise per λ that are looked at meanwhile, and the share of bins."""
_LONGEST, _ROUNDS, _LOOKED_AT = 12, 4, 5
"""Queries of an epoch, rounds of moves, and games that are computed without such shortcuts, at most."""
_BINS, _BINS_PER_EPOCH = 4000, 20
"""At least into so many the claimed ε is divided where losses are added up."""
_LARGEST = 10 * _BINS
"""The largest loss of one epoch, in those; a larger one counts as this."""
_SMALLEST, _FAR, _HALVINGS = 1e-2, 64.0, 50
"""The search for a scale: its least, its largest in multiples of a gap, and its steps."""

Laws = tuple[Floats, Floats]
"""The probabilities of the same outcomes under either data set."""
_Queries = tuple[tuple[int, int], ...]
"""Queries of an epoch: the votes above the threshold, and 1 where the other data set has one more, −1 for one less."""


def noise_attack(
    mechanism: Mechanism, *, noise: Noise, runs: int = 40_000, failure_probability: float = 1e-3
) -> Attack | None:
    """Attack a mechanism by exact likelihoods; None if the form of its noise is not known here.

    Parameters
    ----------
    mechanism
        The mechanism.
    noise
        The source of its noise.
    runs
        The number of answers from which its scale is measured.
    failure_probability
        The probability with which the interval may miss the truth.

    Returns
    -------
    The attack, with its confidence interval.
    """
    runs = validate.whole("runs", runs, at_least=100, remedy="ask for some ten thousand answers")
    alpha = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.001")
    model = _model(mechanism, noise)
    if model is None:
        return None
    length, scales = model.length(), model.scales(runs, alpha)
    if length:
        delta = mechanism.delta
        low, high = _loss_between(scales, lambda scale: model.laws(scale, length), delta=delta, stated=model.stated)
    else:  # a session that gave nothing but refusals, of which nothing is known here
        low, high = 0.0, math.inf
    return Attack(
        quantity=mechanism.guarantee.quantity,
        value=low,
        low=low,
        high=high,
        failure_probability=alpha,
        adversary=Adversary.ANY,
        method=f"exact likelihoods of {length} {model.counted} (noise as large as {runs} answers show it)",
    )


def noisy_counts_loss(
    residuals: ArrayLike, *, moved: int, delta: float, failure_probability: float
) -> tuple[float, float]:
    """Limits for the ε of counts with discrete Gaussian noise.

    Parameters
    ----------
    residuals
        Released counts less the true ones, from answers of the mechanism.
    moved
        The number of counts of a whole session that one record changes by 1.
    delta
        The δ at which ε is shown.
    failure_probability
        The probability with which the interval may miss the truth.

    Returns
    -------
    The least and the largest ε at scales between the limits that the residuals show.
    """
    scales = _scales_of_counts(np.asarray(residuals), failure_probability)
    return _loss_between(scales, lambda _: lambda scale: _sum_laws(scale, moved), delta=delta)


Scales = tuple[float, float]
"""A lower and an upper limit for the scale."""


def _loss_between(
    scales: Scales, chosen: Callable[[float], Callable[[float], Laws]], *, delta: float, stated: float | None = None
) -> tuple[float, float]:
    """The least and the largest loss at scales between the limits, the stated one among them if it is there.

    `chosen` returns the laws of the best game at a scale; that for the upper limit is played at every scale.
    """
    lowest, highest = scales
    if highest == math.inf:
        return 0.0, math.inf
    game, least = chosen(highest), max(lowest, _SMALLEST)
    points = [*np.geomspace(least, highest, _POINTS).tolist(), *[stated] * (stated is not None)]
    losses = [shown_by_laws(*game(scale), delta=delta) for scale in points if least <= scale <= highest]
    return min(losses), max(losses) if lowest > _SMALLEST else math.inf


def shown_by_laws(likely: Floats, unlikely: Floats, *, delta: float) -> float:
    """The largest ε with Σ(P − exp(ε)·Q)⁺ ≥ δ: the largest ln((P(E) − δ)/Q(E)) over events E; at least 0.

    Outcomes with the largest ratios P/Q make up the best event.
    """
    order = np.argsort(unlikely / np.maximum(likely, 1e-300))
    hits, misses = np.cumsum(likely[order]), np.cumsum(unlikely[order])
    shown = hits > delta
    if not shown.any():
        return 0.0
    with np.errstate(divide="ignore"):
        return max(0.0, float(np.max(np.log(hits[shown] - delta) - np.log(misses[shown]))))


def _model(mechanism: Mechanism, noise: Noise) -> _Model | None:
    if isinstance(mechanism, GNMax | ConfidentGNMax):
        return (_NoisyCounts if mechanism.counts else _NoisyWinners)(mechanism, noise)
    if isinstance(mechanism, StableRelease):
        return _StableReleases(mechanism, noise)
    if isinstance(mechanism, SparseVector) and mechanism.keeps_noise:
        return _Epochs(mechanism, noise)
    return None


class _Model(ABC):
    """The form of a mechanism's noise, of unknown scale."""

    counted = "answers"

    @property
    @abstractmethod
    def stated(self) -> float:
        """The scale that the mechanism states, which is not believed: the loss is computed there, too."""

    @abstractmethod
    def length(self) -> int:
        """The number of answers, or of refusals, that a session gives before it stops."""

    @abstractmethod
    def scales(self, runs: int, alpha: float) -> Scales:
        """The scale that answers show."""

    @abstractmethod
    def laws(self, scale: float, length: int) -> Callable[[float], Laws]:
        """The best game at a scale: the laws of its outcomes, at any scale."""


@dataclass(frozen=True)
class _Sessions:
    """Real sessions of a mechanism, asked one query again and again."""

    mechanism: Mechanism
    noise: Noise

    def answers(self, row: tuple[int, int], number: int, *, fresh: bool = False) -> Iterator[Answer]:
        """That many answers, refusals among them, from as many sessions as it takes, or one from each."""
        session, counts = self.mechanism.session(self.noise), np.array(row)
        for _ in range(number):
            if session.stopped or fresh:
                session = self.mechanism.session(self.noise)
            yield session.answer(counts)

    def whole(self, row: tuple[int, int], most: int) -> Session:
        """A session that has stopped, or has been asked `most` queries."""
        session, counts = self.mechanism.session(self.noise), np.array(row)
        while not session.stopped and session.asked < most:
            session.answer(counts)
        return session


class _NoisyWinners(_Model):
    """The winner of two classes: the sign of their margin, of which a vote that moves changes 2."""

    def __init__(self, mechanism: GNMax | ConfidentGNMax, noise: Noise) -> None:
        self.mechanism, self._sessions = mechanism, _Sessions(mechanism, noise)
        self._level, self._paid = 0, mechanism.queries
        if isinstance(mechanism, ConfidentGNMax):  # far above its threshold every query is answered, and answers tell
            self._level = mechanism.threshold + math.ceil(_REACH * mechanism.test_sigma)
            self._paid = mechanism.answers

    @property
    def stated(self) -> float:
        return self.mechanism.sigma

    def length(self) -> int:
        return self._sessions.whole((self._level, self._level), 2 * self._paid).answered

    def scales(self, runs: int, alpha: float) -> Scales:
        margin = max(1, round(_INFORMATIVE * math.sqrt(2) * self.mechanism.sigma))
        asked = self._sessions.answers((self._level + margin, self._level), runs)
        answers = [answer for answer in asked if answer is not None]  # tests have noise of their own
        return _scales_of_chance(
            sum(answer == 1 for answer in answers),
            len(answers),
            alpha,
            lambda sigma: 1 - _difference_below(sigma, margin),
            most=_FAR * margin,
        )

    def laws(self, scale: float, length: int) -> Callable[[float], Laws]:
        def game(margin: int, turned: bool) -> Callable[[float], Laws]:
            def at(sigma: float) -> Laws:
                chances = [_difference_below(sigma, margin), _difference_below(sigma, margin - 2)]
                if turned:
                    chances = [1 - chance for chance in chances[::-1]]
                return _binomial(length, chances[0]), _binomial(length, chances[1])

            return at

        margins = dict.fromkeys(round(share * math.sqrt(2) * scale) for share in _MARGINS)
        tried = [game(margin, turned) for margin in margins for turned in (False, True)]
        return max(tried, key=lambda laws: shown_by_laws(*laws(scale), delta=self.mechanism.delta))


class _NoisyCounts(_NoisyWinners):
    """All noisy counts: their sum along the moved votes tells everything."""

    def scales(self, runs: int, alpha: float) -> Scales:
        row = (self._level, self._level)
        released = [answer for answer in self._sessions.answers(row, runs) if isinstance(answer, tuple)]
        return _scales_of_counts(np.array(released) - np.array(row), alpha) if released else (0.0, math.inf)

    def laws(self, scale: float, length: int) -> Callable[[float], Laws]:  # noqa: ARG002 — one game serves all
        return lambda sigma: _sum_laws(sigma, 2 * length)


class _StableReleases(_Model):
    """Answers where noisy votes to flip exceed a threshold: there, one vote more is randomised response."""

    def __init__(self, mechanism: StableRelease, noise: Noise) -> None:
        self.mechanism, self._sessions = mechanism, _Sessions(mechanism, noise)

    @property
    def stated(self) -> float:
        return self.mechanism.scale

    def length(self) -> int:
        return self._sessions.whole(_row(self.mechanism.threshold), 2 * self.mechanism.queries).asked

    def scales(self, runs: int, alpha: float) -> Scales:
        gap = min(self.mechanism.threshold, round(2 * self.mechanism.scale))
        answers = self._sessions.answers(_row(self.mechanism.threshold - gap), runs)
        passed = sum(answer is not None for answer in answers)
        return _scales_of_chance(
            passed, runs, alpha, lambda scale: float(_laplace_above(scale, np.array(gap))), most=_FAR * (gap + 1)
        )

    def laws(self, scale: float, length: int) -> Callable[[float], Laws]:  # noqa: ARG002 — one game serves all
        def at(scale: float) -> Laws:
            return _binomial(length, special.expit(1 / scale)), _binomial(length, special.expit(-1 / scale))

        return at


class _Epochs(_Model):
    """Epochs of sparse vector: answers that show a low threshold, then a refusal, once for each refusal allowed."""

    counted = "refusals"

    def __init__(self, mechanism: SparseVector, noise: Noise) -> None:
        self.mechanism, self._sessions = mechanism, _Sessions(mechanism, noise)

    @property
    def stated(self) -> float:
        return self.mechanism.scale

    def length(self) -> int:
        return self._sessions.whole(_row(0), 2 * self.mechanism.refusals).refused  # hardly anything passes there

    def scales(self, runs: int, alpha: float) -> Scales:
        gap = min(self.mechanism.threshold, round(4 * self.mechanism.scale))
        answers = self._sessions.answers(_row(self.mechanism.threshold - gap), runs, fresh=True)
        passed = sum(answer is not None for answer in answers)
        return _scales_of_chance(
            passed, runs, alpha, lambda scale: 1 - float(_epoch_law(scale, [-gap])[0]), most=_FAR * (gap + 1)
        )

    def laws(self, scale: float, length: int) -> Callable[[float], Laws]:
        most = self.mechanism.queries

        def game(queries: _Queries, *, every: int = 1, bins: float = 1.0) -> Callable[[float], Laws]:
            # Between two epochs one more query, far below the threshold, ends an epoch that is still open.
            epochs = length if most is None else min(length, (most + 1) // (len(queries) + 1))

            def at(scale: float) -> Laws:
                width = self.mechanism.epsilon / max(_BINS, _BINS_PER_EPOCH * epochs) / bins
                return _composed(_epoch_laws(scale, queries, every=every), epochs, width=width)

            return at

        def shown(queries: _Queries) -> float:
            about = game(queries, every=max(1, round(scale / _COARSE)), bins=_COARSE_BINS)
            return shown_by_laws(*about(scale), delta=self.mechanism.delta)

        begun = [
            ((round(first * scale), -side),) * (number - 1) + ((round(last * scale), side),)
            for number in _LENGTHS
            for first in _FIRST
            for last in _LAST
            for side in (1, -1)
            if most is None or number <= most
        ]
        best, *others = sorted(begun, key=shown, reverse=True)[:_LOOKED_AT]
        others.append(best)  # which may look better from nearby than what was moved
        for _ in range(_ROUNDS):
            better = self._moved(best, scale, length)
            if shown(better) <= shown(best):
                break
            best = better
        games = [game(queries) for queries in dict.fromkeys([best, *others])]
        return max(games, key=lambda laws: shown_by_laws(*laws(scale), delta=self.mechanism.delta))

    def _moved(self, queries: _Queries, scale: float, length: int) -> _Queries:
        """Queries that were moved, turned and doubled one by one while the moment grew that decides what is shown."""
        every = max(1, round(scale / _COARSE))
        rare = -math.log(self.mechanism.delta)

        def moments(tried: _Queries, orders: Floats) -> Floats:
            likely, unlikely = _epoch_laws(scale, tried, every=every)
            seen = (likely > 0) & (unlikely > 0)
            chances, losses = np.log(likely[seen]), np.log(likely[seen] / unlikely[seen])
            found: Floats = np.logaddexp.reduce(orders[:, None] * losses + chances, axis=1)
            return found

        orders = np.geomspace(1, 1e4, 60) / max(self.mechanism.epsilon, 1e-300)
        best = int(np.argmin((length * moments(queries, orders) + rare) / orders))
        order = orders[best : best + 1]
        worth = float(moments(queries, order)[0])
        for share in _MOVES:
            step, grew = max(1, round(share * scale)), True
            while grew:
                grew = False
                for place in range(_LONGEST):
                    if place >= len(queries):
                        break
                    for tried in _neighbours(queries, place, step, most=self.mechanism.queries):
                        if (found := float(moments(tried, order)[0])) > worth + 1e-6 * abs(worth):
                            queries, worth, grew = tried, found, True
        return queries


def _neighbours(queries: _Queries, place: int, step: int, *, most: int | None) -> Iterator[_Queries]:
    """The same with one query moved, turned, asked again the other way, or left out."""
    before, (gap, side), after = queries[:place], queries[place], queries[place + 1 :]
    yield (*before, (gap + step, side), *after)
    yield (*before, (gap - step, side), *after)
    yield (*before, (gap, -side), *after)
    if len(queries) < min(_LONGEST, _LONGEST if most is None else most):
        yield (*before, (gap, side), (gap, -side), *after)
        yield (*before, (gap, -side), (gap, side), *after)
    if len(queries) > 1:
        yield (*before, *after)


def _row(distance: int) -> tuple[int, int]:
    """Counts with that many votes to flip."""
    return 2 * distance + 2, 0


def _scales_of_chance(hits: int, runs: int, alpha: float, chance: Callable[[float], float], *, most: float) -> Scales:
    """The scales at which an event has the chances that were seen, which rise with it; no limit above `most`."""
    if not runs:
        return 0.0, math.inf

    def inverse(wanted: float) -> float:
        low = high = _SMALLEST
        while chance(high) < wanted:
            low, high = high, 2 * high
            if high > most:
                return math.inf
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if chance(middle) < wanted else (low, middle)
        return high

    lowest = inverse(binomial_lower(hits, trials=runs, failure_probability=alpha / 2))
    highest = inverse(binomial_upper(hits, trials=runs, failure_probability=alpha / 2))
    return lowest, highest


def _scales_of_counts(residuals: NDArray[np.int64], alpha: float) -> Scales:
    squares, draws = sum(int(value) ** 2 for value in residuals.ravel()), residuals.size
    lowest = gaussian_scale_lower(squares, draws=draws, failure_probability=alpha / 2)
    highest = gaussian_scale_upper(squares, draws=draws, failure_probability=alpha / 2)
    return lowest, highest


def _gaussian(sigma: float) -> tuple[int, Floats]:
    """The law of a discrete Gaussian between −reach and reach."""
    reach = math.ceil(_REACH * sigma) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return reach, weights / weights.sum()


def _difference_below(sigma: float, margin: int) -> float:
    """P(Y − X ≤ margin) of two discrete Gaussians: the first class, ahead by the margin, wins; equals go to it."""
    if sigma < _SMOOTH:
        reach, law = _gaussian(sigma)
        law, reach = np.convolve(law, law), 2 * reach
    else:
        reach, law = _gaussian(math.sqrt(2) * sigma)  # but for exp(−π²·16) of itself
    return min(1.0, float(law[: max(0, reach + margin + 1)].sum()))


def _sum_laws(sigma: float, moved: int) -> Laws:
    """The sum of as many discrete Gaussians, and the same with each moved by 1; the latter likelier than true."""
    law = _sum_law(sigma, moved)
    return np.append(law, np.zeros(moved)), np.append(np.full(moved, _OUTSIDE), law)


def _sum_law(sigma: float, draws: int) -> Floats:
    """By Lemma 6 of docs/proofs/accounting.md that of one discrete Gaussian of √draws·σ; small scales are added up."""
    if draws == 1 or sigma >= _SMOOTH:
        return _gaussian(math.sqrt(draws) * sigma)[1]
    half = _sum_law(sigma, draws // 2)
    law = np.convolve(half, half)
    if draws % 2:
        law = np.convolve(law, _gaussian(sigma)[1])
    reach, middle = math.ceil(_REACH * math.sqrt(draws) * sigma) + 1, len(law) // 2
    return law[max(0, middle - reach) : middle + reach + 1]


def _binomial(trials: int, chance: float) -> Floats:
    counts = np.arange(trials + 1)
    logs = special.gammaln(trials + 1) - special.gammaln(counts + 1) - special.gammaln(trials - counts + 1)
    with np.errstate(divide="ignore", over="ignore"):
        found: Floats = np.exp(logs + special.xlogy(counts, chance) + special.xlog1py(trials - counts, -chance))
    return found


def _laplace_above(scale: float, gap: NDArray[np.int64]) -> Floats:
    """P(Y > gap) of a discrete Laplace Y."""
    b = math.exp(-1 / scale)
    found: Floats = np.where(
        gap >= 0, b ** (np.maximum(gap, 0) + 1.0) / (1 + b), 1 - b ** np.maximum(-gap, 0) / (1 + b)
    )
    return found


def _epoch_laws(scale: float, queries: _Queries, *, every: int = 1) -> Laws:
    """How many queries of an epoch are answered, here and where each is one vote farther or closer."""
    here, there = [gap for gap, _ in queries], [gap + side for gap, side in queries]
    return _epoch_law(scale, here, every=every), _epoch_law(scale, there, every=every)


def _epoch_law(scale: float, above: list[int], *, every: int = 1) -> Floats:
    """How many queries of an epoch, so many votes above the threshold, are answered before the first refusal.

    With `every` above 1 the threshold's noise takes only multiples of it, which is about the same and quicker.
    """
    alive = _thresholds(scale, every)[1]
    law = []
    for gap in above:
        passes = _passes(scale, every, gap)
        law.append(float(alive @ (1 - passes)))
        alive = alive * passes
    return np.array([*law, float(alive.sum())])


@lru_cache(maxsize=4)
def _thresholds(scale: float, every: int) -> tuple[NDArray[np.int64], Floats]:
    """The values of a threshold's noise, and their chances."""
    reach = math.ceil(_LAPLACE_REACH * scale / every) + 1
    values = every * np.arange(-reach, reach + 1)
    chances = np.exp(-np.abs(values) / scale)
    return values, chances / chances.sum()


@lru_cache(maxsize=64)
def _passes(scale: float, every: int, gap: int) -> Floats:
    """The chance that a query so many votes above the threshold is answered, for every value of the threshold's noise.

    Games that are tried one after the other have most of their queries in common.
    """
    return _laplace_above(2 * scale, _thresholds(scale, every)[0] - gap)


def _composed(one: Laws, times: int, *, width: float) -> Laws:
    """The law of the sum of losses, and the other one's, which is made likelier: each loss is rounded down."""
    likely, unlikely = one
    steps = np.floor(np.log(np.maximum(likely, 1e-300) / np.maximum(unlikely, 1e-300)) / width)
    kept = steps > -_LARGEST  # others may be left out, as they add nothing to an event
    places = np.minimum(steps[kept], _LARGEST).astype(np.int64)
    first = int(places.min())
    law = np.bincount(places - first, weights=likely[kept])
    size = times * (len(law) - 1) + 1
    total = np.fft.irfft(np.fft.rfft(law, 2 ** math.ceil(math.log2(size + 1))) ** times)[:size]
    total = np.maximum(total, 0.0)
    return total, total * np.exp(-width * (np.arange(size) + times * first))
