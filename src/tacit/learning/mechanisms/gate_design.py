"""The search for tables of refusal probabilities, and for the certificates that prove what they cost.

Nothing here is trusted: `theory.gate` checks every result with its own code. The search works on the value of a game,
V_j(y), where y is exp(ε) times the likelihood ratio so far, on a grid that is even in ln y.

1. β, the probability that a label is released at distance 0, is set to a share of δ/T.
2. In the game with labels at β and one pair of probabilities (p, p·exp(−g)), in both orders, g is made as large as δ
   allows. p is chosen so that all moves lead from node to node, which leaves no interpolation error.
3. For other probabilities, the smallest neighbour that V allows is found: the corners.
4. The table follows the corners, from 1 − β (or ½, in both directions, if no label is released) down to a floor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ...core import validate
from ...core.errors import InputError
from ...core.rounding import last_true
from ...theory.divergences import gaussian_delta
from ...theory.gate import ONE, Certificate, Corner

FLOOR = ONE // 10**12
"""The least chance of a refusal. Never 0: one query at 0 beside a positive chance, repeated, would tell everything."""

_INFLATION = 1e-10
"""Every query is taken to be worth this much more than it is: what rounding in the checks has to stay below."""

MOST_REFUSALS = 200
STORED_REFUSALS = (1, 2, 5, 10, 20, 50, 100)
"""Those of the designs that come with the package, for common ε and δ = 1e-5."""
_EPSILONS, _DELTAS = (0.01, 20.0), (1e-12, 0.1)

_SHARES = {1: 0.6, 2: 0.4}
"""β·T/δ where it is not 0.2, by refusals."""
_PARTS = {50: 96, 150: 64, MOST_REFUSALS: 48}
"""Nodes of a step, for up to this many refusals: finer grids are tighter and take longer."""
_COARSE_PARTS = 12
"""For games of more refusals, which are played, but never certified."""
_CORNERS = 120
_NEAR = 24
"""Corners at chances within a step of 1, where they are needed most."""
_LIKELY_SHIFT = {True: 1.25, False: -2 * math.acosh(math.sqrt(2))}
"""Where chances near 1/cosh²((g·d − shift)/2) begin to fall, with labels and without: these are 1/2 at a lead of 0."""
_BISECTIONS = 13
_STEPS = _BISECTIONS + _CORNERS + _NEAR
_HALVINGS = 28
_FILE = "gate_designs.npz"

_Floats = NDArray[np.float64]
_Budget = tuple[bool, float, float, int]
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

    def value(self) -> tuple[_Floats, _Floats]:
        """The grid's nodes, and the game's value there, a row for each number of refusals left; solved again."""
        return _values(self.released / ONE, self.step, parts=self.parts, refusals=self.refusals, reach=self.reach)

    def certificate(self) -> Certificate:
        """The game's value on the grid, for `theory.gate` to check."""
        nodes, values = self.value()
        return Certificate(nodes=nodes, values=np.ascontiguousarray(values.T), corners=self.corners)


def manageable(epsilon: float, delta: float) -> bool:
    """Whether the search was seen to manage such budgets."""
    return _EPSILONS[0] <= epsilon <= _EPSILONS[1] and _DELTAS[0] <= delta <= _DELTAS[1]


def checked_budget(epsilon: float, delta: float, refusals: int) -> None:
    """Refuses what the search was never seen to manage."""
    least, most = _EPSILONS
    validate.number("epsilon", epsilon, at_least=least, at_most=most, remedy="use about 1, or another mechanism")
    least, most = _DELTAS
    validate.number(
        "delta", delta, at_least=least, at_most=most, remedy="use about 1/n², e.g. 1e-10 for 100000 records"
    )
    if validate.whole("refusals", refusals, at_least=1, remedy="say after how many refusals it stops") > MOST_REFUSALS:
        raise InputError(
            "refusals", refusals, requirement=f"must be at most {MOST_REFUSALS}", remedy="stop earlier, or use GNMax"
        )


def find_design(epsilon: float, delta: float, *, refusals: int, labels: bool, advance: Advance | None = None) -> Design:
    """The design for a budget: stored, or found before in this process, or searched for; `advance` is told of steps."""
    budget = (labels, float(epsilon), float(delta), int(refusals))
    known = _stored().get(budget) or _searched.get(budget)
    if known is None:
        known = _searched[budget] = design(epsilon, delta, refusals=refusals, labels=labels, advance=advance)
    return known


_searched: dict[_Budget, Design] = {}


@cache
def _stored() -> dict[_Budget, Design]:
    """The designs that come with the package; what they cost is checked like that of any other."""
    with resources.files(__package__).joinpath(_FILE).open("rb") as file, np.load(file, allow_pickle=False) as data:
        budgets, corners = data["budgets"].tolist(), data["corners"].tolist()
        numbers = data["released"].tolist()
    designs, place = {}, 0
    for (labels, epsilon, delta, refusals, step, parts, reach, count), released in zip(budgets, numbers, strict=True):
        pairs = tuple((high, low) for high, low in corners[place : place + int(count)])
        place += int(count)
        designs[bool(labels), epsilon, delta, int(refusals)] = Design(
            refusals=int(refusals), released=released, step=step, parts=int(parts), reach=reach, corners=pairs
        )
    return designs


def store(path: Path, designs: Mapping[_Budget, Design]) -> None:
    """Write the designs that come with the package; `benchmarks/gate_tables.py` calls it."""
    np.savez_compressed(
        path,
        budgets=np.array(
            [(*budget, item.step, item.parts, item.reach, len(item.corners)) for budget, item in designs.items()]
        ),
        released=np.array([item.released for item in designs.values()], dtype=np.int64),
        corners=np.array([pair for item in designs.values() for pair in item.corners], dtype=np.int64),
    )


def design(epsilon: float, delta: float, *, refusals: int, labels: bool, advance: Advance | None = None) -> Design:
    """The best table found for a budget: a few seconds for twenty refusals, a minute for two hundred."""
    tell = _counted(advance or (lambda _: None))
    parts = next(parts for most, parts in _PARTS.items() if refusals <= most)
    share = _SHARES.get(refusals, 0.2)
    released = math.floor(share * delta / refusals * ONE) if labels else 0
    beta = released / ONE
    least = -math.expm1(refusals * math.log1p(-beta))
    low = high = likely_step(epsilon, delta, refusals=refusals)
    reach = epsilon + 4 * _spread(epsilon, delta)
    allowed = delta * (1 - 1e-6)

    def enough(step: float) -> bool:
        """Whether the value stays below δ; the grid grows until labels are all that is left at its end."""
        nonlocal reach
        while True:
            nodes, values = _values(beta, step, parts=parts, refusals=refusals, reach=reach)
            if values[-1, -1] <= least * (1 + 1e-6) + 1e-4 * delta:
                return bool(np.interp(math.exp(epsilon), nodes, values[-1]) <= allowed)
            reach *= 1.25

    while not enough(low):
        low /= 1.2
    while enough(high):
        high *= 1.2
    for _ in range(_BISECTIONS):
        tell()
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    corners = _corners(beta, low, parts=parts, refusals=refusals, reach=reach, tell=tell)
    return Design(refusals=refusals, released=released, step=low, parts=parts, reach=reach, corners=corners)


def game(epsilon: float, *, refusals: int, released: int, step: float) -> Design:
    """The game of a table that is known, for attacks to play: no table or certificate can be had of it."""
    parts = next((parts for most, parts in _PARTS.items() if refusals <= most), _COARSE_PARTS)
    reach = epsilon + 4 * step * math.sqrt(refusals) + 8 * step
    return Design(refusals=refusals, released=released, step=step, parts=parts, reach=reach, corners=())


def _counted(advance: Advance) -> Callable[[], None]:
    """Tells of every step, and of about how many there will be."""
    steps = itertools.count(1)
    return lambda: advance(f"searching for a table of chances: step {next(steps)} of at most {_STEPS}")


def stored_refusals(epsilon: float, delta: float, *, at_least: int, labels: bool) -> int | None:
    """The fewest refusals, no fewer than these, for which a design of this budget is stored; None if there is none."""
    counts = (count for count in STORED_REFUSALS if count >= at_least)
    return next((count for count in counts if (labels, epsilon, delta, count) in _stored()), None)


def likely_step(epsilon: float, delta: float, *, refusals: int) -> float:
    """About the g that the search ends with."""
    return _spread(epsilon, delta) / math.sqrt(refusals + 2.9 * math.sqrt(refusals) + 2.5)


def likely_answered(distance: _Floats, *, step: float, labels: bool) -> _Floats:
    """About the chances of an answer, or of a confirmation, at these distances: refusals are near 1/cosh²."""
    found: _Floats = np.tanh(np.maximum(0.0, step * distance - _LIKELY_SHIFT[labels]) / 2) ** 2
    return found


def likely_distance(chance: float, *, step: float, labels: bool) -> int:
    """About the distance, or the lead, from which a refusal has at most this chance."""
    return math.ceil((_LIKELY_SHIFT[labels] + 2 * math.acosh(1 / math.sqrt(chance))) / step)


@cache
def _spread(epsilon: float, delta: float) -> float:
    """The distance in standard deviations of two Gaussians that are as hard to tell apart."""
    return last_true(lambda distance: gaussian_delta(epsilon, distance=distance) <= delta, holds=0.0, fails=1e3)


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
    """Values on a grid even in ln y, one row per node and one column for each of some levels, moved by any ratio."""

    def __init__(self, nodes: _Floats, values: _Floats, levels: NDArray[np.int64]) -> None:
        self.node, self.size = math.log(nodes[1]), len(nodes)
        self.now, self.before = np.ascontiguousarray(values[levels].T), np.ascontiguousarray(values[levels - 1].T)

    def allows(self, high: int, low: int, places: NDArray[np.int64]) -> bool:
        """Whether V is worth a query of these chances at these nodes, in both orders."""
        worth = self.now[places]
        for here, there in ((low, high), (high, low)):
            query = here / ONE * self._moved(self.before, places, there / here)
            query += (ONE - here) / ONE * self._moved(self.now, places, (ONE - there) / (ONE - here))
            query *= 1 + _INFLATION / 2
            if (query > worth).any():
                return False
        return True

    def _moved(self, values: _Floats, places: NDArray[np.int64], ratio: float) -> _Floats:
        """The values at the nodes named times a ratio, linear between nodes."""
        offset = math.log(ratio) / self.node
        whole = math.floor(offset)
        share = math.expm1((offset - whole) * self.node) / math.expm1(self.node)
        return (1 - share) * self._at(values, places + whole) + share * self._at(values, places + whole + 1)

    def _at(self, values: _Floats, places: NDArray[np.int64]) -> _Floats:
        found: _Floats = values.take(np.minimum(np.abs(places), self.size - 1), axis=0)
        below = places < 0
        if below.any():
            y = np.exp(self.node * places[below])[:, None]
            found[below] = 1 - y + y * found[below]
        return found


def _corners(
    beta: float, step: float, *, parts: int, refusals: int, reach: float, tell: Callable[[], None]
) -> tuple[Corner, ...]:
    """For some chances the smallest neighbour that the game's value allows, and the tail's pair at the end."""
    nodes, values = _values(beta, step, parts=parts, refusals=refusals, reach=reach)
    some = _Grid(nodes, values, np.unique(np.rint(np.geomspace(1, refusals, 24)).astype(np.int64)))
    every = _Grid(nodes, values, np.arange(1, refusals + 1))
    few = np.unique(np.linspace(0, every.size - 1, 500).astype(np.int64))
    blocks = np.array_split(np.arange(every.size), 1 + every.size * refusals // 2**14)
    p, q = _tail(step, parts)
    found: list[Corner] = []
    for high in _highs(beta, step, p):
        tell()
        holds, fails = 0.0, 40.0  # steps of the log-odds
        for _ in range(_HALVINGS):
            middle = (holds + fails) / 2
            holds, fails = (middle, fails) if some.allows(high, _lower(high, middle), few) else (holds, middle)
        while not all(every.allows(high, _lower(high, holds), block) for block in blocks):
            holds *= 1 - 1e-4
        found.append((high, _lower(high, holds)))
    return (*found, (round(p * ONE), math.ceil(q * ONE)))


def _lower(high: int, step: float) -> int:
    """The chance whose log-odds are a step below those of another; its complement is what rounding must not touch."""
    odds = (ONE - high) / high * math.exp(step)
    return max(FLOOR, ONE - math.floor(ONE * (odds / (1 + odds))))


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
