"""Which mechanism, how many queries and how many refusals: chosen by votes that are public or made up.

Nothing here sees a private vote. What is compared is the number of answers to be expected that name the teachers'
winner, less four for every other one; where that leaves nothing, the share of right ones among them. Where the
teachers' winner itself is wrong, no mechanism is to blame. Of confirmations, what the proposals alone would be worth by
the same measure is taken off: it was known before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from ..theory import accounting
from .mechanisms import (
    ConfidentGNMax,
    Confirm,
    Gate,
    GNMax,
    Mechanism,
    SparseVector,
    StableRelease,
    expectations,
    gate_design,
)
from .mechanisms.constants import TABLES
from .mechanisms.expectations import CONFIDENT, RATIO
from .votes import checked_counts, leads

NAMES = ("svt", "svt-faithful", "gnmax", "confident-gnmax", "stable", "gate", "confirm")
COMPARED = ("svt", "gnmax", "confident-gnmax", "gate", "confirm")

Margins = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mechanism with its constants, the number of queries to ask, why, and how many answers name the winner then."""

    mechanism: Mechanism
    queries: int
    expected_answers: float
    expected_right: float
    reason: str


@dataclass(frozen=True)
class _Candidate:
    name: str
    queries: int
    refusals: int
    answers: int
    expected: tuple[float, float]
    """Queries answered, and answered by the teachers' winner."""
    known: float = 0.0
    """What a query's answer was worth beforehand, as it was proposed."""

    @property
    def worth(self) -> tuple[float, float]:
        """Right answers less four times the wrong ones, nothing below one; and the share of right ones, if any."""
        answered, right = self.expected
        worth = 5 * right - (4 + self.known) * answered
        return worth if worth >= 1 else 0.0, right / answered if answered >= 1 else 0.0


def margins(expected: object) -> Margins:
    """The lead of the teachers' winner over the next class, in shares of all votes, that is expected on the queries.

    From a number, the share of teachers expected to be right on average, by the vote model of `expectations`. Or from
    counts of public or made-up votes, one row a query.
    """
    if np.ndim(expected) == 2:  # type: ignore[arg-type]  # whatever it is, it is checked next
        counts = checked_counts(expected)  # type: ignore[arg-type]
        return tuple((leads(counts) / np.maximum(1, counts.sum(axis=1))).tolist())
    share = validate.number(
        "expected", expected, above=0.5, at_most=1, remedy="give the share of teachers that are right, or public counts"
    )
    return tuple(np.abs(1 - 2 * expectations.wrong_shares(1 - share)).tolist())


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
    classes: int = 2,
    counts: bool = False,
    proposer_error: float | None = None,
) -> Choice:
    """The best candidate of this name, or of all `COMPARED` for "auto"; `queries` and `refusals` may be fixed.

    Confirmations are compared where `proposer_error`, the share of wrong proposals expected, says that there are any.
    """
    names = [validate.choice("mechanism", name, NAMES, remedy="use 'auto'")] if name != "auto" else list(COMPARED)
    if name == "auto" and not gate_design.manageable(epsilon, delta):
        names = [kind for kind in names if kind not in TABLES]
    elif name == "auto" and proposer_error is None:
        names.remove("confirm")
    votes = teachers - 2 * np.rint(teachers * (1 - np.array(lead)) / 2)
    found = {
        kind: max(
            _candidates(
                kind, epsilon, delta, teachers, points, queries, votes, refusals, classes, proposer_error or 0.0
            ),
            key=lambda item: item.worth,
        )
        for kind in names
    }
    best = max(found.values(), key=lambda item: item.worth)
    if best.worth[0] == 0 and "gnmax" in found:
        best = found["gnmax"]  # nothing is worth its budget: this one leaves answers, however doubtful, to learn from
    worths = ", ".join(f"{kind} {item.worth[0]:.3g}" for kind, item in found.items())
    constants = {"refusals": best.refusals, "answers": best.answers}
    shown = ", ".join(f"{key} = {value}" for key, value in constants.items() if value)
    return Choice(
        mechanism=_mechanism(best, epsilon, delta, teachers, counts=counts),
        queries=best.queries,
        expected_answers=best.expected[0],
        expected_right=best.expected[1],
        reason=f"{best.name}, queries = {best.queries}{', ' * bool(shown)}{shown}: with expected votes of {teachers} "
        f"teachers on {points} public records, answers that name their winner less four for another are {worths}; no "
        "private vote was looked at",
    )


def given(mechanism: Mechanism, *, queries: int) -> Choice:
    """What the caller has chosen, for so many queries, or as many as it was made for."""
    planned = getattr(mechanism, "queries", None)
    return Choice(
        mechanism=mechanism,
        queries=queries if planned is None else min(queries, planned),
        expected_answers=math.nan,
        expected_right=math.nan,
        reason="given by the caller",
    )


def _candidates(
    name: str,
    epsilon: float,
    delta: float,
    teachers: int,
    points: int,
    queries: int | None,
    lead: NDArray[np.float64],
    refusals: int | None,
    classes: int,
    proposer_error: float,
) -> Iterator[_Candidate]:
    read = partial(expectations.expected, name, lead, teachers=teachers, classes=classes, proposer_error=proposer_error)
    if name.startswith("svt"):
        asked = points if queries is None else queries
        variant = "faithful" if name == "svt-faithful" else "tight"
        for stop in _steps(1, asked) if refusals is None else [refusals]:
            vector = SparseVector(epsilon=epsilon, delta=delta, refusals=stop, queries=asked, variant=variant)
            found = read(queries=asked, noise=vector.scale, threshold=vector.threshold, refusals=stop)
            yield _Candidate(name, asked, stop, 0, found)
        return
    if name in TABLES:
        known = max(0.0, 1 - 5 * proposer_error) if name == "confirm" else 0.0
        asked = points if queries is None else queries
        common = [count for count in gate_design.STORED_REFUSALS if count <= asked]
        for stop in common if refusals is None else [refusals]:
            noise = 1 / gate_design.likely_step(epsilon, delta, refusals=stop)
            found = read(queries=asked, noise=noise, threshold=None, refusals=stop)
            yield _Candidate(name, asked, stop, 0, found, known)
        return
    unit = accounting.gnmax_sigma(epsilon, delta, answers=50) / 10
    for asked in _steps(25, points) if queries is None else [queries]:
        if name == "stable":
            release = StableRelease(epsilon=epsilon, delta=delta, queries=asked)
            found = read(queries=asked, noise=release.scale, threshold=release.threshold)
            yield _Candidate(name, asked, 0, 0, found)
        elif name == "gnmax":
            found = read(queries=asked, noise=unit * math.sqrt(2 * asked), threshold=None)
            yield _Candidate(name, asked, 0, 0, found)
        else:
            threshold = math.ceil(CONFIDENT * teachers)
            confident = float(np.mean((teachers + lead) / 2 >= CONFIDENT * teachers))
            answers = max(1, min(asked, math.ceil(1.1 * confident * asked)))
            sigma = unit * math.sqrt(2 * answers + asked / RATIO**2)
            found = read(queries=asked, noise=sigma, threshold=threshold, answers=answers)
            yield _Candidate(name, asked, 0, answers, found)


def _mechanism(best: _Candidate, epsilon: float, delta: float, teachers: int, *, counts: bool) -> Mechanism:
    if best.name.startswith("svt"):
        variant = "faithful" if best.name == "svt-faithful" else "tight"
        return SparseVector(epsilon=epsilon, delta=delta, refusals=best.refusals, queries=best.queries, variant=variant)
    if best.name == "gate":
        return Gate(epsilon=epsilon, delta=delta, refusals=best.refusals)
    if best.name == "confirm":
        return Confirm(epsilon=epsilon, delta=delta, refusals=best.refusals)
    if best.name == "stable":
        return StableRelease(epsilon=epsilon, delta=delta, queries=best.queries)
    if best.name == "gnmax":
        return GNMax(epsilon=epsilon, delta=delta, queries=best.queries, counts=counts)
    return ConfidentGNMax(
        epsilon=epsilon,
        delta=delta,
        queries=best.queries,
        answers=best.answers,
        threshold=math.ceil(CONFIDENT * teachers),
        ratio=RATIO,
        counts=counts,
    )


def _steps(first: int, last: int) -> list[int]:
    """first, 2·first, 4·first … and last."""
    if last < 1:
        raise InputError("queries", last, requirement="must be at least 1", remedy="give public records")
    found = [first * 2**power for power in range(40) if first * 2**power < last]
    return [*found, last]
