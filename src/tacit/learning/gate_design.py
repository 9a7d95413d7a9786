"""The search for tables of refusal chances and for the certificates that prove what they cost.

Nothing here is trusted: whatever it finds is put to `theory.gate`, which checks it by code of its own. It works on the
game's value V_j(y), y = exp(ε) times the likelihood ratio so far, on a grid that is even in ln y.

    1.  β, the chance that a label is released at distance 0, is a share of δ/T.
    2.  In the game with labels at β and one pair of chances (p, p·exp(−g)), in both orders, g is made as large as δ
        allows. p is chosen so that all moves lead from node to node, which leaves no error of interpolation.
    3.  For other chances the smallest neighbour is found that V allows: the corners.
    4.  The table walks along the corners, from 1 − β (or ½, both ways, where no label is released) to a floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..numerics import last_true
from ..theory.divergences import gaussian_delta
from ..theory.gate import ONE, Certificate, Corner

FLOOR = ONE // 10**12
"""The least chance of a refusal. Never 0: one query at 0 beside a positive chance, repeated, would tell everything."""

_INFLATION = 1e-12
"""Every query is taken to be worth this much more than it is: what rounding in the checks has to stay below."""

_CORNERS = 120
_NEAR = 24
_BISECTIONS = 13

_Floats = NDArray[np.float64]
Advance = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Design:
    """A table and its certificate, by the few numbers that both are made of."""

    refusals: int
    released: int
    """β of 2⁶³; 0 for tables that confirm or deny."""
    step: float
    """g, by which ln p falls from vote to vote in the tail."""
    parts: int
    """Nodes of the grid to a step."""
    reach: float
    """The largest ln y of the grid."""
    corners: tuple[Corner, ...]

    @cached_property
    def table(self) -> tuple[int, ...]:
        """The chances, of 2⁶³, from distance 0 on; the last serves beyond."""
        return tuple(_descent(ONE - self.released, self.corners))

    @cached_property
    def leads(self) -> tuple[int, tuple[int, ...]]:
        """The smallest lead that the table of confirmations knows, and the chances of denial from there on."""
        rise = _ascent(ONE // 2, self.corners)
        return -len(rise), (*reversed(rise), *_descent(ONE // 2, self.corners))

    def certificate(self) -> Certificate:
        """The game's value on the grid, solved again."""
        nodes, values = _values(
            self.released / ONE, self.step, parts=self.parts, refusals=self.refusals, reach=self.reach
        )
        return Certificate(nodes=nodes, values=np.ascontiguousarray(values.T), corners=self.corners)


def design(
    epsilon: float, delta: float, *, refusals: int, labels: bool, share: float | None = None, advance: Advance | None = None
) -> Design:
    """The best table found for a budget: seconds for a few refusals, a minute for two hundred."""
    tell = advance or (lambda _: None)
    parts = 96 if refusals <= 50 else 64
    if share is None:
        share = 0.6 if refusals == 1 else 0.4 if refusals == 2 else 0.2
    released = math.floor(share * delta / refusals * ONE) if labels else 0
    beta = released / ONE
    least = -math.expm1(refusals * math.log1p(-beta)) if labels else 0.0
    spread = last_true(lambda d: gaussian_delta(epsilon, distance=d) <= delta, holds=0.0, fails=1e3)
    reach = epsilon + 4 * spread
    start = math.exp(epsilon)
    guess = spread / math.sqrt(refusals + 2.9 * math.sqrt(refusals) + 2.5)

    def spent(step: float) -> float:
        nonlocal reach
        while True:
            nodes, values = _values(beta, step, parts=parts, refusals=refusals, reach=reach)
            if values[-1, -1] <= least * (1 + 1e-6) + 1e-4 * delta:
                return float(np.interp(start, nodes, values[-1]))
            reach *= 1.25

    low, high = guess, guess
    while spent(low) > delta * (1 - 1e-6):
        low, high = low / 1.2, low
    while low == high or spent(high) <= delta * (1 - 1e-6):
        low, high = high, high * 1.2
    for _ in range(_BISECTIONS):
        tell("how fast chances may fall")
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= delta * (1 - 1e-6) else (low, middle)
    corners = _corners(beta, low, parts=parts, refusals=refusals, reach=reach, tell=tell)
    return Design(refusals=refusals, released=released, step=low, parts=parts, reach=reach, corners=corners)


def _tail(step: float, parts: int) -> tuple[float, float]:
    """The pair (p, p·exp(−g)) at which a query that is not refused moves y by one node."""
    node = step / parts
    p = math.expm1(node) / (math.exp(node) - math.exp(-step))
    return p, p * math.exp(-step)


def _values(beta: float, step: float, *, parts: int, refusals: int, reach: float) -> tuple[_Floats, _Floats]:
    """The nodes, and the value of the game at them for 0 … T refusals left, by policy iteration.

    Three actions: a label at β; the tail's pair as (q, p), which moves y a node down or, refused, a step up; the same
    as (p, q), a node up or a step down. Below 1 values are mirrored: V(y) = 1 − y + y·V(1/y).
    """
    p, q = _tail(step, parts)
    last = max(2, math.ceil(reach / (step / parts)))
    nodes = np.exp(step / parts * np.arange(last + 1))
    grown = 1 + _INFLATION
    values = np.zeros((refusals + 1, last + 1))
    down = np.arange(last + 1) - parts
    mirrored, down = down < 0, np.minimum(np.abs(down), last)
    up = np.minimum(np.arange(last + 1) + parts, last)
    for level in range(1, refusals + 1):
        before = values[level - 1]
        after_down = np.where(mirrored, 1 - 1 / nodes[down] + before[down] / nodes[down], before[down])
        fixed = grown * np.stack([beta + (1 - beta) * before, q * before[up], p * after_down])
        values[level] = _fixed_point(fixed, grown * (1 - q), grown * (1 - p), float(nodes[1]))
    return nodes, values


def _fixed_point(fixed: _Floats, stay_down: float, stay_up: float, ratio: float) -> _Floats:
    """v = max(fixed₀, fixed₁ + stay_down·v(one down), fixed₂ + stay_up·v(one up)), the least solution."""
    size = fixed.shape[1]
    policy = np.ones(size, dtype=np.int64)
    policy[0] = 2
    while True:
        bands, right = np.zeros((3, size)), np.take_along_axis(fixed, policy[None], axis=0)[0]
        bands[1] = 1
        downward, upward = np.flatnonzero(policy == 1), np.flatnonzero(policy == 2)
        bands[2, downward[downward > 0] - 1] = -stay_down
        bands[0, upward[upward < size - 1] + 1] = -stay_up
        if policy[0] == 1:  # one down from 1 is 1/ratio, mirrored
            bands[0, 1] -= stay_down / ratio
            right[0] += stay_down * (1 - 1 / ratio)
        if policy[-1] == 2:  # flat beyond
            bands[1, -1] -= stay_up
        found: _Floats = linalg.solve_banded((1, 1), bands, right, check_finite=False)
        below = np.concatenate([[1 - 1 / ratio + found[1] / ratio], found[:-1]])
        above = np.append(found[1:], found[-1])
        options = np.stack([fixed[0], fixed[1] + stay_down * below, fixed[2] + stay_up * above])
        better = options.max(axis=0) > found * (1 + 1e-14)
        if not better.any():
            return found
        policy = np.where(better, options.argmax(axis=0), policy)


class _Grid:
    """Values on a grid even in ln y, moved by any ratio."""

    def __init__(self, nodes: _Floats, values: _Floats) -> None:
        self.node, self.size = math.log(nodes[1]), len(nodes)
        self.nodes, self.values = nodes, values

    def moved(self, levels: NDArray[np.int64], places: NDArray[np.int64], ratio: float) -> _Floats:
        """V at the nodes named times a ratio, linear between nodes."""
        offset = math.log(ratio) / self.node
        whole = math.floor(offset)
        share = math.expm1((offset - whole) * self.node) / math.expm1(self.node)
        return (1 - share) * self._at(levels, places + whole) + share * self._at(levels, places + whole + 1)

    def _at(self, levels: NDArray[np.int64], places: NDArray[np.int64]) -> _Floats:
        columns = np.minimum(np.abs(places), self.size - 1)
        found = self.values[levels][:, columns]
        below = places < 0
        if below.any():
            y = np.exp(self.node * places[below])
            found[:, below] = 1 - y + y * found[:, below]
        return found

    def allows(self, high: float, low: float, levels: NDArray[np.int64], places: NDArray[np.int64]) -> bool:
        """Whether V is worth a query of these chances, in both orders."""
        worth = self.values[levels][:, places]
        for p, q in ((low, high), (high, low)):
            refused = self.moved(levels - 1, places, q / p)
            passed = self.moved(levels, places, (1 - q) / (1 - p))
            if ((p * refused + (1 - p) * passed) * (1 + _INFLATION / 2) > worth).any():
                return False
        return True


def _corners(
    beta: float, step: float, *, parts: int, refusals: int, reach: float, tell: Advance
) -> tuple[Corner, ...]:
    """For some chances the smallest neighbour that the game's value allows, and the tail's pair at the end."""
    grid = _Grid(*_values(beta, step, parts=parts, refusals=refusals, reach=reach))
    every = np.arange(1, refusals + 1), np.arange(grid.size)
    some = (
        np.unique(np.rint(np.geomspace(1, refusals, 24)).astype(np.int64)),
        np.unique(np.linspace(0, grid.size - 1, 500).astype(np.int64)),
    )
    p, q = _tail(step, parts)
    found: list[Corner] = []
    for high in _highs(beta, step, p):
        tell("neighbouring chances")
        odds = math.log(high / ONE / ((ONE - high) / ONE))
        # The larger chance shrinks like a squared hyperbolic secant: twice its step is too far.
        holds, fails = 0.0, 40.0
        for _ in range(28):
            middle = (holds + fails) / 2
            low = 1 / (1 + math.exp(middle - odds))
            holds, fails = (middle, fails) if grid.allows(high / ONE, low, *some) else (holds, middle)
        while True:
            low = math.ceil(ONE / (1 + math.exp(holds - odds)))
            if grid.allows(high / ONE, low / ONE, *every):
                break
            holds *= 1 - 1e-4
        found.append((high, min(low, high - 1)))
    return (*found, (round(p * ONE), math.ceil(q * ONE)))


def _highs(beta: float, step: float, tail: float) -> list[int]:
    """Chances 1/cosh²u, even in u and closer together near 1."""
    top = max(math.sqrt(beta), 1e-6)
    last = math.acosh(1 / math.sqrt(tail))
    near = np.geomspace(top, max(step, 2 * top), _NEAR).tolist()
    spread = np.linspace(near[-1], last, min(_CORNERS, math.ceil(4 * last / step))).tolist()
    points = sorted({*near, *spread})
    highs = [ONE - round(ONE * math.tanh(u) ** 2) for u in points if u < last]
    highs[0] = ONE - (round(beta * ONE) if beta else round(ONE * 1e-12))
    return sorted(set(highs), reverse=True)


def _descent(start: int, corners: tuple[Corner, ...]) -> list[int]:
    """From a chance down to the floor, always to the smallest neighbour allowed."""
    line = ((ONE, ONE), *corners, (0, 0))
    walk, place = [start], 1
    while walk[-1] > FLOOR:
        while line[place][0] > walk[-1]:
            place += 1
        (a, b), (c, d) = line[place - 1], line[place]
        walk.append(max(FLOOR, d - (d - b) * (walk[-1] - c) // (a - c)))  # rounded up
    return walk


def _ascent(start: int, corners: tuple[Corner, ...]) -> list[int]:
    """From a chance up to within the floor of 1, always to the largest neighbour allowed; the start is left out."""
    line = ((ONE, ONE), *corners, (0, 0))
    walk = [start]
    while walk[-1] < ONE - FLOOR:
        place = next(index for index, (_, low) in enumerate(line) if low <= walk[-1])
        (a, b), (c, d) = line[place - 1], line[place]
        walk.append(min(ONE - FLOOR, c + (walk[-1] - d) * (a - c) // (b - d)))
    return walk[1:]
