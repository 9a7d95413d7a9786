"""Which mechanism, how many queries and how many refusals: chosen by votes that are public or made up.

Nothing here sees a private vote. What is compared is the number of answers to be expected that name the teachers'
winner, less four for every other one; where that leaves nothing, the share of right ones among them. Where the
teachers' winner itself is wrong, no mechanism is to blame. Of confirmations, what the proposals alone would be worth by
the same measure is taken off: it was known before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core import validate
from .mechanisms import Mechanism
from .mechanisms.candidates import Wanted
from .mechanisms.expectations import Votes, wrong_shares
from .mechanisms.gnmax import GNMaxKind
from .mechanisms.registry import KINDS
from .votes import checked_counts, leads

Margins = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mechanism with its constants, the number of queries to ask, why, and how many answers name the winner then."""

    mechanism: Mechanism
    queries: int
    expected_answers: float
    expected_right: float
    reason: str


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
    """The best candidate of this name, or of all that are compared for "auto"; `queries` and `refusals` may be fixed.

    Confirmations are compared where `proposer_error`, the share of wrong proposals expected, says that there are any.
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
        reason=f"{chosen}, queries = {best.queries}{', ' * bool(shown)}{shown}: with expected votes of {teachers} "
        f"teachers on {points} public records, answers that name their winner less four for another are {worths}; no "
        "private vote was looked at",
    )


def callers_choice(mechanism: Mechanism, *, queries: int) -> Choice:
    """What the caller has chosen, for so many queries, or as many as it was made for."""
    planned = getattr(mechanism, "queries", None)
    return Choice(
        mechanism=mechanism,
        queries=queries if planned is None else min(queries, planned),
        expected_answers=math.nan,
        expected_right=math.nan,
        reason="given by the caller",
    )
