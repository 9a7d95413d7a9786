r"""What the gate costs: (ε, δ) of answers that are free while teachers agree, for any number of adaptive queries.

The gate refuses a query with a chance that depends only on its distance, releases the winner otherwise, and stops at
the T-th refusal. The least δ is the value of a game. A search elsewhere proposes a function; this module checks that it
lies above that value, with floats rounded outward and chances in whole multiples of 2⁻⁶³, and trusts nothing else of
the search. Proofs: docs/proofs/gate.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core import validate
from ..core.errors import InputError, NoTheoremError
from ..core.rounding import LIBRARY, at_most, down

ONE = 2**63
"""Chances are whole numbers over this, so that they are drawn exactly."""

_ROUNDING = 2.0**-48
"""More than all relative rounding errors of one evaluation below together: 32 units in the last place, 14 are made."""

_SMALLEST = 1e-250
"""Values below this might underflow, where errors are no longer relative."""

_BLOCK = 2**17
"""Values checked at once: what fits into a processor's cache."""

_Floats = NDArray[np.float64]

Corner = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a search claims: W_j(y) at the nodes y ≥ 1 for j = 0 … T refusals left, and the pairs of chances it allows.

    Between nodes W_j is linear, beyond the last it is flat, below 1 it is 1 − y + y·W_j(1/y).

    Attributes
    ----------
    nodes
        The points y, ascending from 1.
    values
        W_j(y), one row per node and one column per j.
    corners
        Pairs of (larger, smaller) chances in descending order; all pairs between them and equal chances are allowed.
    """

    nodes: _Floats
    values: _Floats
    corners: tuple[Corner, ...]

    def __post_init__(self) -> None:
        nodes = validate.array("nodes", self.nodes, at_least=1, dimensions=1, remedy="begin with 1")
        values = validate.array("values", self.values, at_least=0, at_most=1, dimensions=2, remedy="pass chances")
        if nodes[0] != 1 or len(nodes) < 2 or not (np.diff(nodes) > 0).all():
            raise InputError("nodes", nodes, requirement="must rise from 1, two at least", remedy="sort them")
        if len(values) != len(nodes) or values.shape[1] < 2:
            raise InputError(
                "values",
                values.shape,
                requirement="must have one row per node and at least two columns",
                remedy="pass j + 1",
            )
        if values[:, 0].any() or values[:, 1:].min() < _SMALLEST:
            raise InputError(
                "values", values, requirement="must be 0 in column 0 only", remedy="begin with no refusals left"
            )
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "corners", _corners(self.corners))


@at_most
def gate_delta(epsilon: float, *, table: Sequence[int], refusals: int, certificate: Certificate) -> float:
    r"""δ(ε) of the gate: any number of adaptive queries, stopped at T refusals.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    table
        The chance of a refusal at each distance 0, 1, …, in units of 2⁻⁶³.
    refusals
        The number T of refusals after which the mechanism stops.
    certificate
        The function W that a search found, to be checked.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ W_T(exp(ε)), if W ≥ BW: no query, with whatever answer follows, is worth more than W.

    Assumptions. One record changes at most one vote a query; the distance is `votes_to_flip`; a query at distance d is
    refused with the chance table[d]/2⁶³, drawn exactly, the last entry applies to larger distances; the winner is
    released otherwise; no answer after the T-th refusal (caller); W ≥ BW for every pair of neighbouring entries, in
    both orders, and for winners that differ (checked, or `NoTheoremError`).

    Direction. An upper bound, rounded up; as tight as the certificate.

    References
    ----------
    docs/proofs/gate.md.
    """
    chances = _table(table)
    return _certified(epsilon, chances, ONE - chances[0], refusals, certificate)


@at_most
def confirm_delta(epsilon: float, *, table: Sequence[int], refusals: int, certificate: Certificate) -> float:
    r"""δ(ε) of confirm or deny: any number of adaptive proposals, stopped at T denials.

    Parameters
    ----------
    epsilon
        The privacy loss ε.
    table
        The chance of a denial at each lead, from the smallest lead to the largest, in units of 2⁻⁶³.
    refusals
        The number T of denials after which the mechanism stops.
    certificate
        The function W that a search found, to be checked.

    Returns
    -------
    float
        An upper bound on δ(ε).

    Notes
    -----
    Statement. δ(ε) ≤ W_T(exp(ε)), if W ≥ BW for the game in which no label is ever released.

    Assumptions. One record changes at most one vote a query; the proposed label depends on private records through
    earlier answers alone; its lead s moves by at most 1 with one vote; it is denied with the chance that the table
    gives to s, entries in the order of s, the first and last applying beyond, drawn exactly; no answer after the T-th
    denial (caller); W ≥ BW for every pair of neighbouring entries, in both orders (checked, or `NoTheoremError`).

    Direction. An upper bound, rounded up; as tight as the certificate.

    References
    ----------
    docs/proofs/gate.md.
    """
    return _certified(epsilon, _table(table), 0, refusals, certificate)


def _certified(epsilon: object, table: list[int], released: int, refusals: object, certificate: object) -> float:
    """W_T(e^ε), rounded up, after all checks; `released` is β, the chance of a label at distance 0."""
    epsilon = validate.number("epsilon", epsilon, at_least=0, at_most=700, remedy="use about 1")
    levels = validate.whole("refusals", refusals, at_least=1, remedy="say after how many refusals it stops")
    if not isinstance(certificate, Certificate):
        raise InputError("certificate", certificate, requirement="must be a Certificate", remedy="search for one")
    if certificate.values.shape[1] != levels + 1:
        raise InputError(
            "refusals", refusals, requirement="must be what the certificate is for", remedy="search for another"
        )
    for first, second in itertools.pairwise(table):
        if not _allowed(max(first, second), min(first, second), certificate.corners):
            _refuse("allow every pair of neighbouring entries", f"{first}/2⁶³ beside {second}/2⁶³")
    kept, values = _convex(certificate.nodes, certificate.values)
    worth, ones = _Worth(certificate.nodes, values), np.ones((1, levels))
    around = np.concatenate([values[:, :-1], values[:, 1:], ones])
    # Winners that differ: a label that the other never gives with β, else a refusal that tells nothing. With β = 0:
    # W rises with j, which also covers queries that are the same for both.
    beta = released / ONE
    floor = (beta + (ONE - released) / ONE * values[:, :-1]) * (1 + _ROUNDING)
    if (kept[:, 1:] & ~(floor <= certificate.values[:, 1:])).any():
        _refuse("lie above a label released at distance 0", f"β = {beta:g}")
    block = max(1, _BLOCK // levels)
    for first in range(0, len(kept), block):
        rows = slice(first, first + block)
        nodes, bound = certificate.nodes[rows], np.where(kept[rows, 1:], certificate.values[rows, 1:], np.inf)
        for high, low in certificate.corners:
            for here, there in ((high, low), (low, high)):
                if not (_query(here, there, worth, nodes) @ around <= bound).all():
                    _refuse("lie above a query of each pair of corners", f"({here}, {there})/2⁶³")
    start = np.array([max(1.0, down(math.exp(epsilon), relative=LIBRARY))])
    return min(1.0, float(worth.at(start)[0, -1] * (1 + _ROUNDING)))


def _convex(nodes: _Floats, values: _Floats) -> tuple[NDArray[np.bool_], _Floats]:
    """Which nodes carry W, and upper bounds on W at all of them: between those kept W is linear, and surely convex.

    A node is kept if the slopes beside it differ by more than rounding; the ends always are. W may lie below the
    values claimed at other nodes, by about as much as rounding.
    """
    kept = np.ones(values.shape, dtype=np.bool_)
    upper = values.copy()
    for level in range(1, values.shape[1]):
        claimed = values[:, level]
        places = np.arange(len(nodes))
        while True:
            steep = (claimed[places[:-1]] - claimed[places[1:]]) / np.diff(nodes[places])
            straight = ~((steep[:-1] > steep[1:] * (1 + _ROUNDING)) | ((steep[:-1] == 0) & (steep[1:] == 0)))
            if not straight.any():
                break
            straight[1:] &= ~straight[:-1] | (np.arange(1, len(straight)) % 2 == 0)  # not all of a run at once
            places = np.delete(places, 1 + np.flatnonzero(straight))
        if steep[-1] < 0 or claimed[0] + 2 * steep[0] * (1 + _ROUNDING) > 1 - _ROUNDING:
            _refuse("be convex and fall, in 1/y as in y", f"W_{level}(1) = {claimed[0]}")
        kept[:, level] = False
        kept[places, level] = True
        if len(places) < len(nodes):
            between = _Worth(nodes[places], claimed[places, None]).at(nodes)[:, 0] * (1 + _ROUNDING)
            upper[:, level] = np.where(kept[:, level], claimed, between)
    return kept, upper


class _Worth:
    """W at any y, all levels at once. Sums and products of positive numbers alone: every error is relative."""

    def __init__(self, nodes: _Floats, values: _Floats) -> None:
        self.nodes, self.values = nodes, values

    def at(self, y: _Floats) -> _Floats:
        """One row for each y, within ten units in the last place."""
        constant, cell, rest, share = self.weights(y)
        found: _Floats = rest[:, None] * self.values[cell] + share[:, None] * self.values[cell + 1]
        return constant[:, None] + found

    def weights(self, y: _Floats) -> tuple[_Floats, NDArray[np.int64], _Floats, _Floats]:
        """For each y a constant, a node, its weight and that of the next: W(y) is their sum. The node is exact."""
        below = y < 1
        turned = np.where(below, 1 / np.where(below, y, 1.0) * (1 - 2.0**-51), y)  # W falls: down is safe
        turned = np.clip(turned, 1.0, self.nodes[-1])
        cell = np.clip(np.searchsorted(self.nodes, turned, side="right") - 1, 0, len(self.nodes) - 2)
        left, right = self.nodes[cell], self.nodes[cell + 1]
        share, rest = (turned - left) / (right - left), (right - turned) / (right - left)
        scale = np.where(below, y, 1.0)
        return np.where(below, 1 - y, 0.0), cell, scale * rest, scale * share


def _query(here: int, there: int, worth: _Worth, y: _Floats) -> sparse.csr_array:
    """No less than p·W_{j−1}(y·p′/p) + (1 − p)·W_j(y·(1 − p′)/(1 − p)) at every y given, for j = 1 … T.

    Weights, the same for every j: on W_{j−1} at all nodes, on W_j at all nodes, and on 1, five of them a row.
    """
    constant, places, weights = np.zeros(len(y)), list[NDArray[np.int64]](), list[_Floats]()
    for chance, other, first in ((here, there, 0), (ONE - here, ONE - there, len(worth.nodes))):
        fixed, cell, rest, share = worth.weights(y * (other / chance * (1 - 2.0**-49)))
        p = chance / ONE * (1 + _ROUNDING)
        constant += p * fixed
        places += [first + cell, first + cell + 1]
        weights += [p * rest, p * share]
    last = 2 * len(worth.nodes)
    places, weights = [*places, np.full(len(y), last)], [*weights, constant]
    rows = np.arange(0, 5 * len(y) + 1, 5)
    found = np.stack(weights, axis=1).ravel(), np.stack(places, axis=1).ravel(), rows
    return sparse.csr_array(found, shape=(len(y), last + 1))


def _allowed(high: int, low: int, corners: tuple[Corner, ...]) -> bool:
    """Whether (high, low) lies between equal chances and the line through (1, 1), the corners and (0, 0), exactly."""
    line = ((ONE, ONE), *corners, (0, 0))
    place = next(index for index, (first, _) in enumerate(line) if first <= high)
    (a, b), (c, d) = line[place - 1], line[place]
    return (low - d) * (a - c) >= (b - d) * (high - c)


def _corners(corners: object) -> tuple[Corner, ...]:
    found = [tuple(pair) for pair in corners if isinstance(pair, Sequence)] if isinstance(corners, Sequence) else []
    ordered = all(len(pair) == 2 and _chance("corners", pair[0]) >= _chance("corners", pair[1]) for pair in found)
    highs = [pair[0] for pair in found]
    if not found or not ordered or len(found) < len(corners) or sorted(set(highs), reverse=True) != highs:  # type: ignore[arg-type]
        raise InputError("corners", corners, requirement="must be (larger, smaller) and descend", remedy="sort them")
    return tuple((high, low) for high, low in found)


def _table(table: object) -> list[int]:
    if not isinstance(table, Sequence) or isinstance(table, str | bytes) or not table:
        raise InputError("table", table, requirement="must be a list of chances", remedy="design one")
    return [_chance("table", entry) for entry in table]


def _chance(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < ONE:
        # A chance of 0 beside a positive one, asked again and again, tells everything.
        raise InputError(
            f"a chance in {name}", value, requirement="must be a whole number above 0 and below 2**63", remedy="see ONE"
        )
    return value


def _refuse(claim: str, found: str) -> NoReturn:
    raise NoTheoremError(f"the certificate must {claim}, got one that does not at {found}; search for another")
