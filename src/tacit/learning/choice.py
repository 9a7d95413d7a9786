"""Which mechanism, how many queries and how many refusals: chosen by votes that are public or made up.

Nothing here sees a private vote. What is compared is the number of right labels that a student can expect, less four
for every wrong one; where that leaves nothing, by how much one answer beats a coin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import checked
from ..errors import InputError
from ..theory import accounting
from .mechanisms import ConfidentGNMax, GNMax, Mechanism, SparseVector, StableRelease
from .votes import checked_counts

NAMES = ("svt", "svt-faithful", "gnmax", "confident-gnmax", "stable")
COMPARED = ("svt", "gnmax", "confident-gnmax")

_SHARE = 0.6
"""Confident-GNMax answers where this share of the teachers agrees."""
_RATIO = 3.0
_CONCENTRATION = 10.0
_POINTS = 200

Margins = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mechanism with its constants, the number of queries to ask, and why."""

    mechanism: Mechanism
    queries: int
    worth: float
    reason: str


@dataclass(frozen=True)
class _Candidate:
    name: str
    queries: int
    refusals: int
    answers: int
    worth: tuple[float, float]


def margins(expected: object) -> Margins:
    """The lead of the right class over the next, in shares of all votes, that is expected on the queries.

    From a number a, the share of teachers expected to be right on average: shares are spread by a Beta distribution
    with parameters 10a and 10(1 − a), and all other votes go to one rival. Or from counts of public or made-up votes,
    one row a query: their winners are taken to be right.
    """
    if np.ndim(expected) == 2:  # type: ignore[arg-type]  # whatever it is, it is checked next
        counts = checked_counts(expected)  # type: ignore[arg-type]
        ordered = np.sort(np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), counts], axis=1), axis=1)
        return tuple(((ordered[:, -1] - ordered[:, -2]) / np.maximum(1, counts.sum(axis=1))).tolist())
    share = checked.number(
        "expected", expected, above=0.5, at_most=1, remedy="give the share of teachers that are right, or public counts"
    )
    if share == 1:
        return (1.0,)
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    shares = special.betaincinv(_CONCENTRATION * share, _CONCENTRATION * (1 - share), places)
    return tuple((2 * shares - 1).tolist())


@lru_cache(maxsize=256)
def choice(
    name: str,
    *,
    epsilon: float,
    delta: float,
    teachers: int,
    points: int,
    queries: int | None,
    lead: Margins,
    refusals: int | None = None,
    counts: bool = False,
) -> Choice:
    """The best candidate of this name, or of all `COMPARED` for "auto"; `queries` and `refusals` may be fixed."""
    names = COMPARED if name == "auto" else (checked.choice("mechanism", name, NAMES, remedy="use 'auto'"),)
    votes = np.array(lead) * teachers
    found = {
        kind: max(
            _candidates(kind, epsilon, delta, teachers, points, queries, votes, refusals), key=lambda item: item.worth
        )
        for kind in names
    }
    best = max(found.values(), key=lambda item: item.worth)
    worths = ", ".join(f"{kind} {item.worth[0]:.3g}" for kind, item in found.items())
    constants = {"refusals": best.refusals, "answers": best.answers}
    shown = ", ".join(f"{key} = {value}" for key, value in constants.items() if value)
    return Choice(
        mechanism=_mechanism(best, epsilon, delta, teachers, counts=counts),
        queries=best.queries,
        worth=best.worth[0],
        reason=f"{best.name}, queries = {best.queries}{', ' * bool(shown)}{shown}: with expected votes of {teachers} "
        f"teachers on {points} public points, right labels less four for a wrong one are {worths}; no private vote was "
        "looked at",
    )


def theorem_refusals(error: float, *, queries: int, failure_probability: float = 0.05) -> int:
    """T = 3(em + √(em·ln(m/β)/2)) of the paper's Theorem 3.2, e = γ + α, rounded up, from 1 to m."""
    expected = error * queries
    wanted = 3 * (expected + math.sqrt(expected * math.log(queries / failure_probability) / 2))
    return min(queries, max(1, math.ceil(wanted)))


def _candidates(
    name: str,
    epsilon: float,
    delta: float,
    teachers: int,
    points: int,
    queries: int | None,
    lead: NDArray[np.float64],
    refusals: int | None,
) -> Iterator[_Candidate]:
    distance = np.maximum(0, np.ceil(np.abs(lead) / 2) - 1)
    if name.startswith("svt"):
        asked = points if queries is None else queries
        for stop in _steps(1, asked) if refusals is None else [refusals]:
            mechanism = SparseVector(
                epsilon=epsilon,
                delta=delta,
                refusals=stop,
                queries=asked,
                variant="faithful" if name == "svt-faithful" else "tight",
            )
            refused = _refused(distance - mechanism.threshold, mechanism.scale)
            rate = float(np.mean(refused))
            reached = min(asked, stop / max(rate, 1e-12))
            yield _Candidate(name, asked, stop, 0, _worth(reached, 1 - refused, lead > 0))
        return
    unit = accounting.gnmax_sigma(epsilon, delta, answers=50) / 10
    for asked in _steps(25, points) if queries is None else [queries]:
        if name == "stable":
            release = StableRelease(epsilon=epsilon, delta=delta, queries=asked)
            given = _laplace_above(release.threshold - distance, release.scale)
            yield _Candidate(name, asked, 0, 0, _worth(asked, given, lead > 0))
        elif name == "gnmax":
            right = special.ndtr(lead / (unit * math.sqrt(4 * asked)))
            yield _Candidate(name, asked, 0, 0, _worth(asked, np.ones_like(right), right))
        else:
            largest = (teachers + np.abs(lead)) / 2
            confident = float(np.mean(largest >= _SHARE * teachers))
            answers = max(1, min(asked, math.ceil(1.1 * confident * asked)))
            sigma = unit * math.sqrt(2 * answers + asked / _RATIO**2)
            given = special.ndtr((largest - math.ceil(_SHARE * teachers)) / (_RATIO * sigma))
            reached = min(asked, answers / max(float(np.mean(given)), 1e-12))
            right = special.ndtr(lead / (sigma * math.sqrt(2)))
            yield _Candidate(name, asked, 0, answers, _worth(reached, given, right))


def _mechanism(best: _Candidate, epsilon: float, delta: float, teachers: int, *, counts: bool) -> Mechanism:
    if best.name.startswith("svt"):
        variant = "faithful" if best.name == "svt-faithful" else "tight"
        return SparseVector(epsilon=epsilon, delta=delta, refusals=best.refusals, queries=best.queries, variant=variant)
    if best.name == "stable":
        return StableRelease(epsilon=epsilon, delta=delta, queries=best.queries)
    if best.name == "gnmax":
        return GNMax(epsilon=epsilon, delta=delta, queries=best.queries, counts=counts)
    return ConfidentGNMax(
        epsilon=epsilon,
        delta=delta,
        queries=best.queries,
        answers=best.answers,
        threshold=math.ceil(_SHARE * teachers),
        ratio=_RATIO,
        counts=counts,
    )


def _steps(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … and last."""
    if last < 1:
        raise InputError("queries", last, requirement="must be at least 1", remedy="give public points")
    found = [first * 2**power for power in range(40) if first * 2**power < last]
    return [*found, last]


def _worth(
    asked: float, given: NDArray[np.float64], right: NDArray[np.float64] | NDArray[np.bool_]
) -> tuple[float, float]:
    """Right answers less four times the wrong ones, nothing below one; and how much better than a coin an answer is."""
    share = float(np.mean(given))
    if share <= 0:
        return 0.0, 0.0
    correct = float(np.mean(given * right)) / share
    answers = asked * share
    worth = answers * (5 * correct - 4)
    return worth if worth >= 1 else 0.0, min(1.0, answers) * (2 * correct - 1)


def _laplace_above(level: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The chance that Laplace noise exceeds a level."""
    tail = np.exp(-np.abs(level) / scale) / 2
    return np.where(level >= 0, tail, 1 - tail)


def _refused(lead: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The chance that lead + Laplace(2·scale) stays below Laplace(scale), by the closed form of their sum."""
    size = np.abs(lead) / scale
    beyond = (4 * np.exp(-size / 2) - np.exp(-size)) / 6
    return np.where(lead >= 0, beyond, 1 - beyond)
