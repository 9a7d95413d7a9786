"""The choice of a mechanism, the number of queries and of refusals, by votes that are public or made up.

Nothing here sees a private vote. Candidates are compared by a score: the expected number of answers that name the
class with the most votes, minus four for every expected answer that names another class. If no score is positive, the
share of the former among all answers decides. A class that wins the vote and is wrong counts against no mechanism. For
confirmations, the score of the proposals alone is subtracted, as they were known before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core import validate
from ..core.errors import InputError
from ..core.wording import counted
from .mechanisms import Mechanism
from .mechanisms.candidates import Wanted
from .mechanisms.expectations import Votes, wrong_shares
from .mechanisms.gnmax import GNMaxKind
from .mechanisms.registry import KINDS
from .votes import checked_counts, leads

Margins = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mechanism with its constants, the number of queries to ask, and the reason for both.

    Attributes
    ----------
    mechanism
        The mechanism.
    queries
        The number of queries to ask.
    expected_answers, expected_right
        The expected number of answers, and of those that name the class with the most votes.
    reason
        Why this was chosen, in words.
    """

    mechanism: Mechanism
    queries: int
    expected_answers: float
    expected_right: float
    reason: str


def margins(teacher_accuracy: object) -> Margins:
    """The expected leads of the winning class over the next one, as shares of all votes.

    Parameters
    ----------
    teacher_accuracy
        The share of teachers expected to be right on average, from which `wrong_shares` models the votes; or counts of
        public or made-up votes, a row for each query.
    """
    if np.ndim(teacher_accuracy) == 2:  # type: ignore[arg-type]  # whatever it is, it is checked next
        counts = checked_counts(teacher_accuracy)  # type: ignore[arg-type]
        return tuple((leads(counts) / np.maximum(1, counts.sum(axis=1))).tolist())
    share = validate.number(
        "teacher_accuracy",
        teacher_accuracy,
        above=0.5,
        at_most=1,
        remedy="give the share of teachers that are right, or public counts",
    )
    return tuple(np.abs(1 - 2 * wrong_shares(1 - share)).tolist())


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
    """The best candidate of this name, or of all kinds that "auto" compares.

    `queries` and `refusals` may be fixed. Confirmations are compared only if `proposer_error`, the expected share of
    wrong proposals, is given.
    """
    proposals = proposer_error is not None
    if name == "auto":
        kinds = [
            kind for kind in KINDS.values() if kind.compared and kind.available(epsilon, delta, proposals=proposals)
        ]
    else:
        kinds = [KINDS[validate.choice("mechanism", name, tuple(KINDS), remedy="use 'auto'")]]
    votes = Votes(
        lead=teachers - 2 * np.rint(teachers * (1 - np.array(lead)) / 2),
        teachers=teachers,
        classes=classes,
        proposer_error=proposer_error or 0.0,
    )
    wanted = Wanted(
        epsilon=epsilon, delta=delta, points=points, queries=queries, refusals=refusals, counts=counts, votes=votes
    )
    found = {kind.name: max(kind.candidates(wanted), key=lambda item: item.worth) for kind in kinds}
    chosen = max(found, key=lambda kind: found[kind].worth)
    if found[chosen].worth[0] == 0 and GNMaxKind.name in found:
        chosen = GNMaxKind.name  # nothing is worth its budget: this leaves answers, however doubtful, to learn from
    best = found[chosen]
    worths = ", ".join(f"{kind} {item.worth[0]:.3g}" for kind, item in found.items())
    constants = {"refusals": best.refusals, "answers": best.answers}
    shown = ", ".join(f"{key} = {value}" for key, value in constants.items() if value)
    return Choice(
        mechanism=best.made(),
        queries=best.queries,
        expected_answers=best.expected[0],
        expected_right=best.expected[1],
        reason=f"{chosen}, queries = {best.queries}{', ' * bool(shown)}{shown}, for {counted(teachers, 'teacher')} and "
        f"{counted(points, 'record')} to ask about. Scores: {worths} (expected answers that name the class with the "
        "most votes, minus four for each that names another). No private vote was used for this",
    )


def callers_choice(mechanism: Mechanism, *, queries: int, classes: int) -> Choice:
    """The mechanism that the caller has made, for this many queries, or as many as it was made for."""
    if isinstance(most := getattr(mechanism, "classes", None), int) and classes > most:
        raise InputError(
            "mechanism",
            mechanism,
            requirement=f"must be for all {classes} classes",
            remedy="leave classes out of it",
        )
    planned = getattr(mechanism, "queries", None)
    return Choice(
        mechanism=mechanism,
        queries=queries if planned is None else min(queries, planned),
        expected_answers=math.nan,
        expected_right=math.nan,
        reason="given by the caller",
    )
