r"""What the winner of two noisy counts costs, if nothing else is released: (ε, δ) of GNMax with two classes.

The winner shows the sign of a noisy margin, and an adversary chooses the margin before it is drawn. The least δ is the
value of a game, which is smaller than that of releasing both noisy counts (`accounting.gnmax_delta`). It is computed
from the last answer to the first, every step rounded up. Proofs: docs/proofs/winners.md.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import at_most, down, up
from .accounting import gnmax_sigma

_SIGMA = "give the standard deviation of the noise, e.g. 40"
_ANSWERS = "say how many queries are answered"

_MOST_ANSWERS = 2000
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

_CLOSE = 0.97
"""The share of δ at which a search for σ ends."""

_DIGITS, _TINY = Context(prec=60), Decimal("1e-50")
"""Decimal digits, and far more than rounding errors of them."""

_FEW = 130
"""With no more margins than this, all are corners."""

_SMOOTH = 4.0
"""The σ from which a difference of two is a discrete Gaussian but for far less than rounding."""

_STEPS, _LEAST = 12, 0.5
"""Steps of the search for a σ at most, and the least one."""

_Floats = NDArray[np.float64]


@at_most
def winner_delta(epsilon: float, *, sigma: float, answers: int) -> float:
    r"""δ(ε) of N answers that name the larger of two noisy counts.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    sigma
        The standard deviation σ of the noise on each count.
    answers
        The number N of answers.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ V_N(exp(ε)), where V_0(y) = (1 − y)⁺ and V_n(y) is the largest p·V_(n−1)(y·q/p) +
    (1 − p)·V_(n−1)(y·(1 − q)/(1 − p)) over p = F(m), q = F(m′), |m − m′| ≤ 2; F(m) = P(Y − X ≤ m) for two discrete
    Gaussians X, Y of σ.

    Assumptions. Two classes; one record changes at most one vote a query; fresh discrete Gaussian noise of σ on both
    counts of every answer; nothing but the class of the larger noisy count is released, of equals the first; at most N
    answers (caller).

    Direction. An upper bound, rounded up; about as much above V_N as 1 % more answers would be. It takes a second for
    200 answers, and some 15 for 2000.

    References
    ----------
    docs/proofs/winners.md.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=100, remedy="use about 1")
    sigma = validate.number("sigma", sigma, at_least=_LEAST, at_most=1e4, remedy=_SIGMA)
    n = validate.whole("answers", answers, at_least=1, remedy=_ANSWERS)
    if n > _MOST_ANSWERS:
        raise InputError("answers", n, requirement=f"must be at most {_MOST_ANSWERS}", remedy="use gnmax_delta")
    corners, outside = _corners(sigma)
    whole = math.sqrt(2 * n) / sigma
    step = min(_GRID * whole / math.sqrt(n), 0.1)
    # e^ε, or less, is a node; nodes are the powers of `ratio`. An ε far below their distance is charged as 0.
    start = math.ceil(epsilon / step) if epsilon >= _LEAST_SHARE * step else 0
    step = epsilon / start if start else step
    ratio = down(math.exp(step), relative=1e-12)
    nodes = start + math.ceil(_BEYOND * whole / step)
    value = float(_Game(ratio, nodes, corners).value(n)[start])
    return min(1.0, up(value + n * (2 * outside + 1e-300), relative=1e-15))


@at_most
def winner_sigma(epsilon: float, delta: float, *, answers: int) -> float:
    r"""A standard deviation of the noise at which N winners of two classes keep to a budget.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    delta
        The δ of (ε, δ)-differential privacy.
    answers
        The number N of answers.

    Returns
    -------
    float
        The standard deviation σ.

    Notes
    -----
    Statement. A σ of at least 0.5 with δ(ε) ≤ delta, δ(ε) of `winner_delta`.

    Assumptions. Those of `winner_delta`; epsilon > 0, delta in (0, 1) (checked).

    Direction. The σ returned was itself checked with `winner_delta`; δ(ε) is at least 0.97·delta there, unless the
    search ended at a limit.

    References
    ----------
    docs/proofs/winners.md.
    """
    enough = max(gnmax_sigma(epsilon, delta, answers=answers), _LEAST)
    low, high, best = _LEAST, enough, math.inf
    tried, known = max(0.82 * enough, _LEAST), list[tuple[float, float]]()
    for _ in range(_STEPS):
        spent = winner_delta(epsilon, sigma=tried, answers=answers)
        if spent <= delta:
            best = high = tried
            if spent >= _CLOSE * delta or tried == _LEAST:
                return best
        else:
            low = tried
        known.append((math.log(tried), math.log(max(spent, 1e-300))))
        tried = _next(known, math.log((1 + _CLOSE) / 2 * delta), low, high)
    if best == math.inf and winner_delta(epsilon, sigma=enough, answers=answers) <= delta:
        best = enough
    if best == math.inf:
        raise NoTheoremError(
            f"some noise must keep {answers} answers to epsilon = {epsilon:g} and delta = {delta:g}, got none in "
            f"{_STEPS} steps; use gnmax_sigma"
        )
    return best


def _next(known: list[tuple[float, float]], wanted: float, low: float, high: float) -> float:
    """By the line through the last two tries, or by one of slope −30; half-way if that leaves the bracket."""
    (x, y), slope = known[-1], -30.0
    if len(known) > 1 and known[-2][0] != x:
        slope = (y - known[-2][1]) / (x - known[-2][0]) or slope
    guess = math.exp(x + (wanted - y) / slope) if slope < 0 else 0.0
    return guess if low < guess < high else math.sqrt(low * high)


def _corners(sigma: float) -> tuple[list[tuple[float, float]], float]:
    """Pairs p ≥ q with p + q at most about 1: they, their mirror images and equal chances enclose all that are played.

    The second result bounds the chance of an answer at a margin that is not.
    """
    below = _chances_below(sigma)
    far = math.ceil(_FAR * math.sqrt(2) * sigma)
    zero = len(below) // 2
    p, q = below[zero - far : zero + 1], below[zero - far - 2 : zero - 1]  # F(m), F(m − 2) for m = −far … 0
    outside = float(below[zero - far - 1]) * (1 + _TABLE_ERROR)
    needed, given = p * (1 + _TABLE_ERROR), q * (1 - _TABLE_ERROR)
    if far <= _FEW:
        return list(zip((needed * (1 + 1e-15)).tolist(), given.tolist(), strict=True)), outside
    for slack in (1.2, 2.0, 5.0, 20.0):
        corners = _chain(math.sqrt(2) / sigma, slack)
        line = np.array([(0.0, 0.0), *corners])
        if (np.interp(needed, line[:, 0], line[:, 1]) * (1 + 1e-14) <= given).all() and needed[-1] <= line[-1, 0]:
            return corners, outside
    raise NoTheoremError(f"corners must enclose all pairs of chances, got none that do at sigma = {sigma:g}")


def _chain(shift: float, slack: float) -> list[tuple[float, float]]:
    """Corners a little beyond the pairs of a continuous Gaussian: by what chords between them would cut off."""
    fine, coarse = np.arange(0.0, _NEAR, _FINE), np.arange(_NEAR, _FAR + 2 * _COARSE, _COARSE)
    places = np.concatenate([fine, coarse])
    apart = np.where(places < _NEAR - _FINE / 2, _FINE, _COARSE)
    wider = shift * (1 + slack * (apart**2 / 8 + shift**2 / 8))
    found = np.stack([special.ndtr(wider / 2 - places), special.ndtr(-wider / 2 - places)], axis=1)[::-1]
    return [(float(high), float(low)) for high, low in found]


def _chances_below(sigma: float) -> _Floats:
    """F(m) for m = −reach … reach, within `_TABLE_ERROR` of itself up to m = 0; that of 0 is in the middle."""
    if sigma < _SMOOTH:
        reach = math.ceil(_REACH * sigma) + 4
        one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
        law = np.convolve(one, one)
    else:  # the difference is a discrete Gaussian of √2·σ, but for exp(−16π²) of itself
        reach = math.ceil(_REACH * math.sqrt(2) * sigma) + 4
        law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (4 * sigma * sigma))
    found: _Floats = np.cumsum(law) / law.sum()
    return found


class _Game:
    """Upper bounds on V_n at the powers of a ratio: positive weights, each rounded up, on bounds on V_(n−1)."""

    def __init__(self, ratio: float, nodes: int, corners: list[tuple[float, float]]) -> None:
        self.nodes, self._powers = nodes, _Powers(ratio)
        with localcontext(_DIGITS):
            moves = [self._move(*pair) for high, low in corners for pair in ((high, low), (low, high))]
            reach = 2 + max(abs(place) for move in moves for place, _, _ in move)
            mirrored = [self._powers.at(-place) for place in range(nodes + reach, 0, -1)]
            self._shares = np.array([_float_up(value) for value in mirrored])
            self._rests = np.array([_float_up(1 - value) for value in mirrored])
        self._moves, self._reach = moves, reach
        self._places = np.minimum(np.arange(nodes + reach, 0, -1), nodes)

    def value(self, answers: int) -> _Floats:
        """V_n at 1, ratio, ratio², …"""
        size = self.nodes + 1
        values, buffer, term = np.zeros(size), np.empty(size), np.empty(size)
        zero = self.nodes + self._reach
        for _ in range(answers):
            below = self._rests + self._shares * values[self._places]
            all_values = np.concatenate([below, values, np.full(self._reach, values[-1])])
            best = values.copy()
            for move in self._moves:
                term[:] = 0.0
                for place, first, second in move:
                    start = zero + place
                    np.multiply(all_values[start : start + size], first, out=buffer)
                    term += buffer
                    np.multiply(all_values[start + 1 : start + 1 + size], second, out=buffer)
                    term += buffer
                np.maximum(best, term, out=best)
            values = best * (1 + _STEP_ERROR)
        return values

    def _move(self, here: float, there: float) -> list[tuple[int, float, float]]:
        """Where either outcome leads: by how many nodes, and the weights of that node and of the next."""
        p, q = Decimal(here), Decimal(there)
        found = []
        for chance, other in ((p, q), (1 - p, 1 - q)):
            factor = other / chance
            place = self._powers.floor(factor)
            before, after = self._powers.at(place), self._powers.at(place + 1)
            share = (factor - before) / (after - before)
            share = min(max(share - _TINY, Decimal(0)), Decimal(1))  # nearer to 0, where V is larger
            found.append((place, _float_up(chance * (1 - share)), _float_up(chance * share)))
        return found


class _Powers:
    """Powers of a float in 60 digits."""

    def __init__(self, ratio: float) -> None:
        self._ratio, self._known = Decimal(ratio), dict[int, Decimal]()

    def at(self, exponent: int) -> Decimal:
        if exponent not in self._known:
            self._known[exponent] = self._ratio**exponent
        return self._known[exponent]

    def floor(self, value: Decimal) -> int:
        """The largest exponent whose power is at most the value."""
        place = math.floor(float(value.ln()) / float(self._ratio.ln()))
        while self.at(place) > value:
            place -= 1
        while self.at(place + 1) <= value:
            place += 1
        return place


def _float_up(value: Decimal) -> float:
    """A float above it, by one unit in the last place or two."""
    return math.nextafter(math.nextafter(float(value), math.inf), math.inf)
