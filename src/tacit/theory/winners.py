r"""What the winner of noisy counts costs, if nothing else is released: (ε, δ) of GNMax that names classes alone.

Of two classes the winner shows the sign of a noisy margin, and an adversary chooses the margin before it is drawn; of
more, it also shows whether one of the others was larger. The least δ is the value of a game, which is smaller than that
of releasing all noisy counts (`accounting.gnmax_delta`). It is computed from the last answer to the first, every step
rounded up. Proofs: docs/proofs/winners.md.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import at_most, down, up
from .accounting import gnmax_delta, gnmax_sigma

_SIGMA = "give the standard deviation of the noise, e.g. 40"
_ANSWERS = "say how many queries are answered"
_COUNTS = "charge for counts (gnmax_delta, or GNMax without classes)"

MOST_EPSILON = 100.0
"""Beyond, e^ε would soon be too large for the game."""

MOST_ANSWERS = 2000
"""Beyond, the game would be computed for minutes."""

_FAR = 9.5
"""Margins beyond this many standard deviations are not played but charged in full; they hold below 1e-20."""

_REACH = 14.0
"""Differences of two discrete Gaussians are tabulated to this many standard deviations."""

_TABLE_ERROR = 1e-10
"""More than the relative error of a sum of at most 300000 positive terms."""

_STEP_ERROR = 2.0**-48
"""More than the relative rounding of one step: ten units in the last place."""

_NEAR, _FINE, _COARSE = 4.0, 0.1, 0.25
"""Corners lie this far apart, in standard deviations, nearer to a tie than the first and beyond."""

_GRID = 0.107
"""Nodes lie this share of one answer's standard deviation apart, in ln y."""

_LEAST_SHARE = 0.1
"""Where ε is less than this share of their distance, nodes are not put closer for it."""

_BEYOND = 6.0
"""Nodes end this many standard deviations of the whole loss beyond ε."""

_CLOSE = 0.9
"""The share of δ at which a search for σ ends: there it is at most 1 % larger than it need be."""

SHARES = (
    ((1, 1.0), (2, 0.955), (4, 0.901), (20, 0.83), (100, 0.809), (600, 0.803), (2000, 0.801)),
    ((1, 1.0), (4, 0.955), (20, 0.845), (200, 0.82), (2000, 0.816)),
)
"""For numbers of answers, about the share that winners need of the noise of counts: of two classes, and of more. It
hardly depends on ε and δ. Nothing is proven of it: a search for σ begins there, and plans expect it."""

_DIGITS, _TINY = Context(prec=60), Decimal("1e-50")
"""Decimal digits, and far more than rounding errors of them."""

_FEW = 130
"""With no more margins than this, all are corners."""

_SMOOTH = 4.0
"""The σ from which a difference of two is a discrete Gaussian but for far less than rounding."""

_STEPS, _LEAST = 12, 0.5
"""Steps of the search for a σ at most, and the least one."""

LEAST_NOISE, MOST_NOISE = 5.0, 150.0
"""The least σ of the game of more classes, and the largest: the pairs of counts to look at grow with its square."""

MOST_NOISE_OF_TWO = 1e4
"""The largest σ of the game of two classes."""

_CELL, _OUT = 0.25, 9.3
"""Trios that are played lie this share of σ apart, and up to this multiple of σ from a tie."""

_WIDER = 1.1
"""They are wider than those they stand for by this multiple of what interpolation may cut off."""

_SURE = 1.5
"""From this multiple of σ on for both, others hardly matter, and two classes stand for all."""

_ROOM, _SKEWED = 0.004, 0.02
"""With others, corners of two classes are wider by this share, and by this multiple of the squared place."""

_SKEWED_TO = 3.0
"""No more than at this place."""

_MIXED = (0.0, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
"""Weights of two corners that may stand for an experiment together."""

_THIN = 5
"""Every so many of the corners are tried in mixtures, and more of those near a tie."""

_SUM_ERROR = 1e-9
"""More than the relative error of a chance of three classes, and of what is made of a few of them."""

_TOGETHER = 32_000
"""Moves are looked at together as long as they have no more values: they stay near the processor."""

_Floats = NDArray[np.float64]
_Move = list[tuple[int, float, float]]


@at_most
def winner_delta(epsilon: float, *, sigma: float, answers: int, classes: int = 2) -> float:
    r"""δ(ε) of N answers that name the largest of K noisy counts.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each count.
    answers
        The number N of answers.
    classes
        The number K of classes. All numbers above 2 cost the same.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ V_N(exp(ε)), where V_0(y) = (1 − y)⁺ and V_n(y) is the largest Σ P(o)·V_(n−1)(y·Q(o)/P(o)) over
    all pairs (P, Q) of laws of one answer. For two classes P is a coin of F(m), Q one of F(m′), |m − m′| ≤ 2, with
    F(m) = P(Y − X ≤ m) for two discrete Gaussians X, Y of σ. For more they are also laws of the largest of two noisy
    counts and a known number, of which one count falls and one rises.

    Assumptions. One record changes at most one vote a query; fresh discrete Gaussian noise of σ on all counts of every
    answer; nothing but the class of the largest noisy count is released, of equals the first; at most N answers
    (caller). At most 2000 answers, and σ ≤ 150 for more than two classes (checked).

    Where `gnmax_delta`, which charges for all noisy counts, is smaller, it is returned; so it is for more than two
    classes and σ < 5, and should any pair of laws not be seen to lie among those of the game that is played.

    Direction. An upper bound, rounded up; about as much above V_N as 1 % more answers would be for two classes, and 4 %
    for more. It takes a second for 200 answers of two classes and some 15 for 2000; for more classes ten times as long.

    References
    ----------
    docs/proofs/winners.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=MOST_EPSILON, remedy="use about 1")
    sigma = validate.number("sigma", sigma, at_least=_LEAST, at_most=MOST_NOISE_OF_TWO, remedy=_SIGMA)
    n = validate.whole("answers", answers, at_least=1, remedy=_ANSWERS)
    if n > MOST_ANSWERS:
        raise InputError("answers", n, requirement=f"must be at most {MOST_ANSWERS}", remedy=_COUNTS)
    many = validate.whole("classes", classes, at_least=2, remedy="say how many classes there are") > 2
    if many:
        validate.number("sigma", sigma, at_least=_LEAST, at_most=MOST_NOISE, remedy=_COUNTS)
    return _delta(epsilon, sigma, n, many)


@lru_cache(maxsize=256)
def _delta(epsilon: float, sigma: float, n: int, many: bool) -> float:
    counts = gnmax_delta(epsilon, sigma=sigma, answers=n)
    if many and sigma < LEAST_NOISE:
        return counts
    try:
        if not many:
            (corners, outside), trios, missed = _corners(sigma), np.empty((2, 3, 0)), 0.0
        else:
            corners, outside, trios, missed = _with_others(sigma)
    except NoTheoremError:  # some pair of laws was not seen to be enclosed
        return counts
    whole = math.sqrt(2 * n) / sigma
    step = min(_GRID * whole / math.sqrt(n), 0.1)
    # e^ε, or less, is a node; nodes are the powers of `ratio`. An ε far below their distance is charged as 0.
    start = math.ceil(epsilon / step) if epsilon >= _LEAST_SHARE * step else 0
    step = epsilon / start if start else step
    ratio = down(math.exp(step), relative=1e-12)
    nodes = start + math.ceil(_BEYOND * whole / step)
    value = float(_Game(ratio, nodes, corners, trios).value(n)[start])
    unlikely = 2 * outside + 1e-300 + missed * (1 + math.exp(epsilon))
    return min(up(value + n * unlikely, relative=1e-14), counts)


@at_most
def winner_sigma(epsilon: float, delta: float, *, answers: int, classes: int = 2) -> float:
    r"""A standard deviation of the noise at which N winners keep to a budget.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    answers
        The number N of answers.
    classes
        The number K of classes.

    Returns
    -------
    float
        The standard deviation σ.

    Notes
    -----
    Statement. A σ of at least 0.5 with δ(ε) ≤ delta, δ(ε) of `winner_delta`; for more than two classes it is below 5
    only if counts need no more.

    Assumptions. Those of `winner_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. The σ returned was itself checked with `winner_delta`; δ(ε) is at least 0.9·delta there, unless the
    search ended at a limit. It mostly takes two looks at δ(ε).

    References
    ----------
    docs/proofs/winners.md.
    """
    enough = max(gnmax_sigma(epsilon, delta, answers=answers), _LEAST)
    least, most = _LEAST, MOST_NOISE_OF_TWO
    many = validate.whole("classes", classes, at_least=2, remedy="say how many classes there are") > 2
    if many:
        least, most = min(enough, LEAST_NOISE), MOST_NOISE
    low, high, best = least, min(enough, most), math.inf
    tried, known = max(_share(answers, many) * enough, least), list[tuple[float, float]]()
    if tried > most:
        raise NoTheoremError(
            f"sigma of winners must be at most {most:g}, got about {tried:.3g} for answers = {answers}, "
            f"epsilon = {epsilon:g} and delta = {delta:g}; {_COUNTS}"
        )
    for _ in range(_STEPS):
        spent = winner_delta(epsilon, sigma=tried, answers=answers, classes=classes)
        if spent <= delta:
            best = high = tried
            if spent >= _CLOSE * delta or tried == least:
                return best
        else:
            low = tried
        known.append((math.log(tried), math.log(max(spent, 1e-300))))
        tried = _next(known, math.log((1 + _CLOSE) / 2 * delta), low, high)
    if best == math.inf and enough <= most:
        best = enough if winner_delta(epsilon, sigma=enough, answers=answers, classes=classes) <= delta else best
    if best == math.inf:
        raise NoTheoremError(
            f"some noise must keep {answers} answers to epsilon = {epsilon:g} and delta = {delta:g}, got none in "
            f"{_STEPS} steps up to sigma = {min(enough, most):g}; {_COUNTS}"
        )
    return best


def _share(answers: int, many: bool) -> float:
    """About the share of the noise of counts, by the logarithm of the number of answers."""
    numbers, shares = zip(*SHARES[many], strict=True)
    return float(np.interp(math.log(answers), np.log(numbers), shares))


def _next(known: list[tuple[float, float]], wanted: float, low: float, high: float) -> float:
    """By the line through the last two tries, or by a usual slope; half-way if that leaves the bracket."""
    (x, y), slope = known[-1], 1.4 * wanted
    if len(known) > 1 and known[-2][0] != x:
        slope = (y - known[-2][1]) / (x - known[-2][0]) or slope
    guess = math.exp(x + (wanted - y) / slope) if slope < 0 else 0.0
    return guess if low < guess < high else math.sqrt(low * high)


def _corners(sigma: float, *, others: bool = False) -> tuple[list[tuple[float, float]], float]:
    """Pairs p ≥ q with p + q at most about 1: they, their mirror images and equal chances enclose all that are played.

    The second result bounds the chance of an answer at a margin that is not. With others, one count against a known
    number is played as well, and corners have room for more.
    """
    needed, given, outside = _pairs(_chances_below(sigma), math.ceil(_FAR * math.sqrt(2) * sigma), 2)
    if others:
        law = _one(sigma)
        more, less, beyond = _pairs(np.cumsum(law) / law.sum(), math.ceil(_FAR * sigma), 1)
        needed, given = np.concatenate([needed, more]), np.concatenate([given, less])
        outside = max(outside, beyond)
    elif len(needed) <= _FEW + 1:
        return list(zip((needed * (1 + 1e-15)).tolist(), given.tolist(), strict=True)), outside
    for slack in (1.2, 2.0, 5.0, 20.0):
        corners = _chain(math.sqrt(2) / sigma, slack, others)
        line = np.array([(0.0, 0.0), *corners])
        if (np.interp(needed, line[:, 0], line[:, 1]) * (1 + 1e-14) <= given).all() and needed.max() <= line[-1, 0]:
            return corners, outside
    raise NoTheoremError(f"corners must enclose all pairs of chances, got none that do at sigma = {sigma:g}")


def _pairs(below: _Floats, far: int, apart: int) -> tuple[_Floats, _Floats, float]:
    """F(m) and F(m − apart) for m = −far … 0, rounded to the wide side, and what F is at most beyond."""
    zero = len(below) // 2
    p, q = below[zero - far : zero + 1], below[zero - far - apart : zero + 1 - apart]
    return p * (1 + _TABLE_ERROR), q * (1 - _TABLE_ERROR), float(below[zero - far - 1]) * (1 + _TABLE_ERROR)


def _chain(shift: float, slack: float, others: bool) -> list[tuple[float, float]]:
    """Corners a little beyond the pairs of a continuous Gaussian: by what chords between them would cut off."""
    fine, coarse = np.arange(0.0, _NEAR, _FINE), np.arange(_NEAR, _FAR + 2 * _COARSE, _COARSE)
    places = np.concatenate([fine, coarse])
    apart = np.where(places < _NEAR - _FINE / 2, _FINE, _COARSE)
    wider = shift * (1 + slack * (apart**2 / 8 + shift**2 / 8))
    if others:
        wider = wider + shift * (_ROOM + _SKEWED * np.minimum(places, _SKEWED_TO) ** 2)
    found = np.stack([special.ndtr(wider / 2 - places), special.ndtr(-wider / 2 - places)], axis=1)[::-1]
    return [(float(high), float(low)) for high, low in found]


def _one(sigma: float) -> _Floats:
    """Weights of a discrete Gaussian."""
    reach = math.ceil(_REACH * sigma) + 4
    weights: _Floats = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
    return weights


def _chances_below(sigma: float) -> _Floats:
    """F(m) for m = −reach … reach, within `_TABLE_ERROR` of itself up to m = 0; that of 0 is in the middle."""
    if sigma < _SMOOTH:
        law = np.convolve(_one(sigma), _one(sigma))
    else:  # the difference is a discrete Gaussian of √2·σ, but for exp(−16π²) of itself
        reach = math.ceil(_REACH * math.sqrt(2) * sigma) + 4
        law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (4 * sigma * sigma))
    found: _Floats = np.cumsum(law) / law.sum()
    return found


@lru_cache(maxsize=4)
def _with_others(sigma: float) -> tuple[list[tuple[float, float]], float, _Floats, float]:
    """Corners, the chance beyond them, trios that stand with them for all answers, and the chance of one too far off.

    A trio has the chances of three outcomes, under P and under Q: the first of two counts is the largest, or the
    second, or a known number. Those of a grid of counts are played. That every other one is worth no more than a
    mixture of these, or of corners, is looked at one by one.
    """
    corners, outside = _corners(sigma, others=True)
    step = max(1, math.floor(_CELL * sigma))
    cells = math.ceil(_OUT * sigma / step)
    most, sure = cells * step, math.ceil(_SURE * sigma)
    laws = _laws(sigma, most + 1)
    places = np.arange(-cells, cells + 1) * step + most + 1
    change, there, scale = _split(laws[:, places[:, None], places], laws[:, places[:, None] - 1, places + 1])
    wider = _WIDER * step**2 / (4 * sigma**2)
    grid = np.stack([(1 + wider) * change, there - wider / 2 * change, (1 + wider) * scale])
    line = np.array([(0.0, 0.0), *corners])
    line = np.concatenate([line, 1 - line[::-1, ::-1]])
    good, used = bool((grid[1] > 0).all() and (grid[0] + grid[1] > 0).all()), np.zeros(grid.shape[2:], dtype=bool)
    y = np.arange(-most, most + 1)
    column = np.minimum((y + most) // step, 2 * cells - 1)
    across = (y + most) / step - column
    for x in range(-most, most + 1):
        row = min((x + most) // step, 2 * cells - 1)
        down, near = (x + most) / step - row, np.minimum(x, y) < sure
        edge = grid[:, :, row] * (1 - down) + grid[:, :, row + 1] * down
        mixed = edge[:, :, column] * (1 - across) + edge[:, :, column + 1] * across
        used[row : row + 2, column[near]] = used[row : row + 2, column[near] + 1] = True
        one = _split(laws[:, x + most + 1, 1:-1], laws[:, x + most, 2:])
        good = good and bool(_enclosed(one[:, :, near], mixed[:, :, near]).all())
        good = good and bool(_enclosed(one[:, :, ~near], _on_line(one[:, :, ~near], line)).all())
    if not good:
        raise NoTheoremError(f"trios must enclose the answers of many classes, got none that do at sigma = {sigma:g}")
    kept = grid[:, :, used]
    kept = kept[:, :, _not_below(kept, np.array(corners))]
    law = _one(sigma)
    missed = float(law[len(law) // 2 + most :].sum() / law.sum()) * (1 + _TABLE_ERROR)
    return corners, outside, np.stack([kept[0] + kept[1], kept[1]]), missed


def _laws(sigma: float, most: int) -> _Floats:
    """The chances of the three outcomes for counts −most … most above the number; of equals the first wins."""
    top = max(2 * most, math.ceil(_REACH * sigma))  # to make up for a lead of 2·most takes noise of about `most`
    reach = 3 * most + top
    law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
    law /= law.sum()
    below, noise = np.cumsum(law), np.arange(-most, top + 1)
    laws = np.empty((3, 2 * most + 1, 2 * most + 1))
    for lead in range(-2 * most, 2 * most + 1):  # of a count over the other, which it beats if its noise is enough
        count = np.arange(max(-most, lead - most), min(most, lead + most) + 1)
        first, second = (
            np.cumsum((law[reach + noise] * below[reach + noise + lead - tie])[::-1])[::-1][most - count]
            for tie in (0, 1)
        )
        laws[0, count + most, count - lead + most] = first
        laws[1, count - lead + most, count + most] = second
    short = below[reach - most - 1 : reach + most][::-1]
    laws[2] = short[:, None] * short
    return laws


def _split(here: _Floats, there: _Floats) -> _Floats:
    """P − Q, Q, and what P − Q errs by a share of: for the likeliest outcome, which makes up for the others, theirs."""
    likeliest = here.argmax(axis=0) == np.arange(len(here)).reshape(-1, *[1] * (here.ndim - 1))
    change, scale = np.where(likeliest, 0.0, here - there), np.where(likeliest, 0.0, here + there)
    return np.stack(
        [np.where(likeliest, -change.sum(axis=0), change), there, np.where(likeliest, scale.sum(axis=0), scale)]
    )


def _gained(split: _Floats, ratios: tuple[_Floats, _Floats], side: int) -> _Floats:
    """Σ(P − yQ)⁺ at a ratio y = 1 − gap ≥ 1, Σ(yQ − P)⁺ below 1: from above (1) or below (−1), wherever y really is."""
    (change, there, scale), (gap, unsure) = split, ratios
    error = _SUM_ERROR * (scale + np.abs(gap) * there) + unsure * there
    terms = np.where(gap <= 0, 1.0, -1.0) * (change + gap * there) + side * error
    found: _Floats = np.maximum(terms, 0.0).sum(axis=0)
    return found


def _ratios(split: _Floats) -> tuple[_Floats, _Floats]:
    """1 − P/Q of each outcome, and by how much it may err."""
    change, there, scale = split
    gap = -change / there
    return gap, _SUM_ERROR * (scale / there + np.abs(gap))


def _enclosed(one: _Floats, other: _Floats) -> NDArray[np.bool_]:
    """Where the first experiment is worth no more than the second, whatever comes after."""
    found = np.ones(one.shape[2:], dtype=bool)
    for ratios in zip(*_ratios(other), strict=True):
        found &= _gained(one, ratios, 1) <= _gained(other, ratios, -1)
    return found


def _on_line(one: _Floats, line: _Floats) -> _Floats:
    """A pair of two classes on the line of corners: the rarer of them wins as often, of the answers that are theirs."""
    (first, second, _), line_high, line_low = one[0] + one[1], line[:, 0], line[:, 1]
    rare, falls = np.minimum(first, second) / (first + second), first < second
    high = np.where(falls, rare, np.interp(rare, line_low, line_high))
    low = np.where(falls, np.interp(rare, line_high, line_low), rare)
    there = np.where(falls, [low, 1 - low], [1 - high, high])
    return np.stack([[high - low, low - high], there, [high + low, high + low]])


def _not_below(trios: _Floats, corners: _Floats) -> NDArray[np.intp]:
    """The places of trios that no mixture of two corners is seen to enclose."""
    high, low = np.concatenate([corners[-1:-9:-2], corners[-9::-_THIN]]).T
    here, there = np.concatenate([high, low]), np.concatenate([low, high])
    number, scale = len(here), high + low
    pairs = np.stack([[here - there, there - here], [there, 1 - there], np.tile(scale, (2, 2))])
    gap, unsure = _ratios(pairs)
    ratios = np.concatenate(gap), np.concatenate(unsure)
    worth, needed = _gained(pairs[..., None], ratios, -1), _gained(trios[..., None], ratios, 1).T.copy()
    left, weight = np.arange(trios.shape[2]), np.array(_MIXED)
    for first in range(number):
        for second in range(first, number):
            kinks = [first, number + first, second, number + second]
            ends = worth[first, kinks, None], worth[second, kinks, None]
            mixed = (weight * ends[0] + (1 - weight) * ends[1]) * (1 - _SUM_ERROR)
            left = left[(needed[kinks][:, None, left] > mixed[..., None]).any(axis=0).all(axis=0)]
    return left


class _Game:
    """Upper bounds on V_n at the powers of a ratio: positive weights, each rounded up, on bounds on V_(n−1)."""

    def __init__(self, ratio: float, nodes: int, corners: list[tuple[float, float]], trios: _Floats) -> None:
        self.nodes, self._powers = nodes, _Powers(ratio)
        with localcontext(_DIGITS):
            moves = [self._move(_coin(*pair)) for high, low in corners for pair in ((high, low), (low, high))]
            moves += [
                self._move(_wide(*pair))
                for p, q in zip(*trios.transpose(0, 2, 1).tolist(), strict=True)
                for pair in ((p, q), (q, p))
            ]
            reach = 2 + max(abs(place) for move in moves for place, _, _ in move)
            mirrored = [self._powers.at(-place) for place in range(nodes + reach, 0, -1)]
            self._shares = np.array([_float_up(value) for value in mirrored])
            self._rests = np.array([_float_up(1 - value) for value in mirrored])
        self._moves, self._reach = _together(moves, max(1, _TOGETHER // (nodes + 1)), nodes + reach), reach
        self._places = np.minimum(np.arange(nodes + reach, 0, -1), nodes)

    def value(self, answers: int) -> _Floats:
        """V_n at 1, ratio, ratio², …"""
        size = self.nodes + 1
        values, most = np.zeros(size), max(len(first[0]) for first, *_ in self._moves)
        terms, others = np.empty((most, size)), np.empty((most, size))
        for _ in range(answers):
            below = self._rests + self._shares * values[self._places]
            all_values = np.concatenate([below, values, np.full(self._reach, values[-1])])
            from_each, best = np.lib.stride_tricks.sliding_window_view(all_values, size), values
            for (starts, weights), *rest in self._moves:
                term, other = terms[: len(starts)], others[: len(starts)]
                np.multiply(from_each[starts], weights, out=term)
                for starts, weights in rest:
                    np.multiply(from_each[starts], weights, out=other)
                    term += other
                best = np.maximum(best, term.max(axis=0))
            values = best * (1 + _STEP_ERROR)
        return values

    def _move(self, outcomes: list[tuple[Decimal, Decimal]]) -> _Move:
        """Where each outcome leads: by how many nodes, and the weights of that node and of the next."""
        found = []
        for chance, factor in outcomes:
            place = self._powers.floor(factor)
            before, after = self._powers.at(place), self._powers.at(place + 1)
            share = (factor - before) / (after - before)
            share = min(max(share - _TINY, Decimal(0)), Decimal(1))  # nearer to 0, where V is larger
            found.append((place, _float_up(chance * (1 - share)), _float_up(chance * share)))
        return found


def _together(moves: list[_Move], many: int, zero: int) -> list[list[tuple[NDArray[np.intp], _Floats]]]:
    """So many moves at a time, with equally many outcomes: of each term of their sums, where it begins, its weights."""
    found = list[list[tuple[NDArray[np.intp], _Floats]]]()
    for outcomes in sorted({len(move) for move in moves}):
        alike = [move for move in moves if len(move) == outcomes]
        parts = (np.array(alike[first : first + many]) for first in range(0, len(alike), many))
        found += [
            [
                (zero + place.astype(np.intp) + more, weights[:, None])
                for place, *both in part.transpose(1, 2, 0)  # of each outcome: places, first and second weights
                for more, weights in enumerate(both)
            ]
            for part in parts
        ]
    return found


def _coin(here: float, there: float) -> list[tuple[Decimal, Decimal]]:
    """The chances of both outcomes of a pair, and the factors of y."""
    p, q = Decimal(here), Decimal(there)
    return [(p, q / p), (1 - p, (1 - q) / (1 - p))]


def _wide(here: list[float], there: list[float]) -> list[tuple[Decimal, Decimal]]:
    """The same of a trio, whose chances are known but for an error: chances from above, factors from below."""
    error = Decimal(_SUM_ERROR)
    trio = [(Decimal(p), Decimal(q)) for p, q in zip(here, there, strict=True)]
    return [(p * (1 + error), q / p * (1 - 4 * error)) for p, q in trio]


class _Powers:
    """Powers of a float in 60 digits."""

    def __init__(self, ratio: float) -> None:
        self._ratio, self._log, self._known = Decimal(ratio), math.log(ratio), dict[int, Decimal]()

    def at(self, exponent: int) -> Decimal:
        if exponent not in self._known:
            self._known[exponent] = self._ratio**exponent
        return self._known[exponent]

    def floor(self, value: Decimal) -> int:
        """The largest exponent whose power is at most the value."""
        place = math.floor(math.log(value) / self._log)  # about, and then exactly
        while self.at(place) > value:
            place -= 1
        while self.at(place + 1) <= value:
            place += 1
        return place


def _float_up(value: Decimal) -> float:
    """A float above it, by one unit in the last place or two."""
    return math.nextafter(math.nextafter(float(value), math.inf), math.inf)
