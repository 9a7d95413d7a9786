"""The choice of a mechanism, the numbers of teachers, queries and refusals, by votes that are public or made up.

Nothing here sees a private vote. Candidates are compared by a score: the number of flawless answers that tell a learner
as much as those expected, which is the square of right minus wrong ones, divided by all. For confirmations, the score
of the proposals alone is subtracted, as they were known before. If no score reaches 1, the share of right answers
decides. Where somebody states how far teachers agree, the class with the most votes is taken to be right.

Where nobody says how far teachers agree, several cases are thought possible: the votes by which the right class leads
are all alike, or normal with some deviation and cut where all teachers agree, as those of ridge classifiers on
CIFAR-10, SST-2 and artificial classes were; or they are those of `expectations`. In each case a candidate keeps a share
of the best score that any candidate has there, and the one is taken that keeps most: the mean of the roots of these
shares counts, so that much in one case does not make up for nothing in another. One whose certificates can be checked
without the library is preferred to others that keep little more. Cases are about equally likely, unless an estimate of
the agreement was paid for. The number of teachers is chosen before, so that the least share of the best score that it
keeps in any case is large: which mechanism keeps it may then depend on the case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core import validate
from ..core.errors import InputError
from ..core.rounding import down
from ..core.wording import counted
from .councils import Council, councils
from .held_out import AgreementEstimate, low_distance
from .mechanisms import Mechanism
from .mechanisms.candidates import Candidate, Wanted
from .mechanisms.cases import Margins, likelihoods
from .mechanisms.expectations import Votes
from .mechanisms.gnmax import GNMaxKind
from .mechanisms.kind import Kind
from .mechanisms.registry import KINDS

_TENTH, _VOTES, _USEFUL = 10, 18, 10
"""An estimate of the agreement costs ε/10, or less if its noise is 1/18 of the teachers; it may not be above 1/10."""

_CHECKABLE = 0.9
"""A mechanism with certificates that can be checked without the library is taken if it keeps this share of the best."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mechanism with its constants, the number of queries to ask, and the reason for both.

    Attributes
    ----------
    name
        What users type for the mechanism; empty if the caller has made it.
    mechanism
        The mechanism.
    queries
        The number of queries to ask.
    expected_answers, expected_right
        The expected number of answers, and of the right ones among them; means over cases.
    kept
        The least share of the best score that is kept in any case.
    reason
        Why this was chosen, in words.
    """

    name: str
    mechanism: Mechanism
    queries: int
    expected_answers: float
    expected_right: float
    kept: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Option:
    """A candidate, and its score in each case."""

    kind: str
    candidate: Candidate
    worth: tuple[float, ...]


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
    estimate: AgreementEstimate | None = None,
) -> Choice:
    """The best candidate of this name, or of all kinds that "auto" compares.

    `queries` and `refusals` may be fixed. Confirmations are compared only if `proposer_error`, the expected share of
    wrong proposals, is given. With an `estimate`, a case counts by how well it agrees with it.
    """
    votes, found = _compared(
        name,
        epsilon=epsilon,
        delta=delta,
        teachers=teachers,
        points=points,
        queries=queries,
        lead=lead,
        refusals=refusals,
        classes=classes,
        counts=counts,
        proposer_error=proposer_error,
    )
    most = _most(found)
    if not any(most) and any(option.kind == GNMaxKind.name for option in found):
        # Nothing is worth its budget: this leaves answers, however doubtful, to learn from.
        found = [option for option in found if option.kind == GNMaxKind.name]
    weights = _weights(votes, estimate)
    merits = _merits(found, most, weights)
    best_in = {
        kind: max((place for place, option in enumerate(found) if option.kind == kind), key=lambda place: merits[place])
        for kind in dict.fromkeys(option.kind for option in found)
    }
    best_of = {kind: found[place] for kind, place in best_in.items()}
    shares = {kind: merits[place][0] ** 2 for kind, place in best_in.items()}
    first = max(best_in, key=lambda kind: merits[best_in[kind]])
    checkable = [
        kind
        for kind, option in best_of.items()
        if KINDS[kind].checkable(option.candidate.refusals) and shares[kind] >= _CHECKABLE * shares[first]
    ]
    chosen = max(checkable or [first], key=lambda kind: merits[best_in[kind]])
    best = best_of[chosen].candidate
    constants = {"refusals": best.refusals, "answers": best.answers}
    shown = ", ".join(f"{key} = {value}" for key, value in constants.items() if value)
    cases = "" if len(lead) == 1 else f", over {counted(len(lead), 'case')} of how far teachers agree"
    compared = ", ".join(f"{kind} {100 * share:.3g} %" for kind, share in shares.items())
    return Choice(
        name=chosen,
        mechanism=best.made(),
        queries=best.queries,
        expected_answers=_mean([answers for answers, _ in best.expected], weights),
        expected_right=_mean([right for _, right in best.expected], weights),
        kept=min((score / best for score, best in zip(best_of[chosen].worth, most, strict=True) if best), default=1.0),
        reason=f"{chosen}, queries = {best.queries}{', ' * bool(shown)}{shown}, for {counted(teachers, 'teacher')} and "
        f"{counted(points, 'record')} to ask about. "
        + f"Of what the best would tell a learner, each is expected to tell{cases}: {compared}. " * (len(shares) > 1)
        + f"Certificates of {first} cannot be checked without the library, so it would have to tell more. "
        * (first != chosen)
        + (
            "No private vote was used for this"
            if estimate is None
            else f"Of private votes, only how many can change without another class winning was used, on all but one "
            f"public record in twenty: {estimate.value}, a number with noise that was paid for"
            + ", which may make it negative"
            * (estimate.value < 0)
        ),
    )


@lru_cache(maxsize=64)
def _compared(
    name: str,
    *,
    epsilon: float,
    delta: float,
    teachers: int,
    points: int,
    queries: int | None,
    lead: Margins,
    refusals: int | None,
    classes: int,
    counts: bool,
    proposer_error: float | None,
) -> tuple[tuple[Votes, ...], Sequence[_Option]]:
    """The votes of all cases and the candidates, which an estimate does not change."""
    wanted = Wanted(
        epsilon=epsilon,
        delta=delta,
        points=points,
        queries=queries,
        refusals=refusals,
        counts=counts,
        votes=_votes(lead, Council(teachers=teachers), classes, proposer_error),
    )
    return wanted.votes, _options(name, wanted, proposals=proposer_error is not None)


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """What some teachers can be asked for, with the best candidate of each case.

    Attributes
    ----------
    teachers
        How many there are.
    scores
        The best score in each case.
    right
        The expected number of answers, with the best score, that name the class which one that learned from all records
        would name.
    """

    teachers: int
    scores: tuple[float, ...]
    right: tuple[float, ...]


@lru_cache(maxsize=256)
def prospects(
    name: str,
    *,
    epsilon: float,
    delta: float,
    records: int,
    points: int,
    queries: int | None,
    lead: Margins,
    refusals: int | None = None,
    classes: int = 2,
    proposer_error: float | None = None,
) -> tuple[Prospect, ...]:
    """What each number of teachers is good for, the largest first.

    `lead` is that of teachers with many records; of those with fewer, `Council` says what they lead by.
    """
    made = []
    for council in councils(records, classes):
        wanted = Wanted(
            epsilon=epsilon,
            delta=delta,
            points=points,
            queries=queries,
            refusals=refusals,
            counts=False,
            votes=_votes(lead, council, classes, proposer_error),
        )
        found = _options(name, wanted, proposals=proposer_error is not None)
        best = [max(found, key=lambda option: option.worth[case]) for case in range(len(lead))]
        scores = tuple(council.faithful * option.worth[case] for case, option in enumerate(best))
        right = tuple(council.faithful * option.candidate.expected[case][1] for case, option in enumerate(best))
        made.append(Prospect(teachers=council.teachers, scores=scores, right=right))
    return tuple(made)


def number_of_teachers(found: Sequence[Prospect]) -> int:
    """The number of teachers whose least share of the best score in any case is largest.

    Of equals it is the first, so the largest: where nothing is worth its budget, these lose least.
    """
    most = [max(scores) for scores in zip(*(prospect.scores for prospect in found), strict=True)]

    def merit(prospect: Prospect) -> tuple[float, float]:
        kept = [score / best for score, best in zip(prospect.scores, most, strict=True) if best]
        return min(kept, default=0.0), sum(kept)

    return max(found, key=merit).teachers


def estimate_cost(unpaid: Choice, *, epsilon: float, teachers: int) -> float:
    """The ε of an estimate of how far teachers agree; 0 if it would not pay.

    It pays if it is exact enough, and if what is lost without it in the worst case is more than its cost. That is taken
    to be twice its share of ε, as the number of noisy answers grows with the square of ε.
    """
    cost = min(epsilon / _TENTH, _VOTES / max(1, teachers))
    pays = cost * teachers >= _USEFUL and 1 - unpaid.kept > 2 * cost / epsilon
    return down(cost) if pays else 0.0


def _votes(lead: Margins, council: Council, classes: int, proposer_error: float | None) -> tuple[Votes, ...]:
    return tuple(
        Votes(
            lead=council.votes_ahead(np.array(shares)),
            teachers=council.teachers,
            classes=classes,
            proposer_error=proposer_error or 0.0,
        )
        for shares in lead
    )


def _options(name: str, wanted: Wanted, *, proposals: bool) -> list[_Option]:
    """All candidates of a name, or of all kinds that "auto" compares."""
    kinds: list[Kind]
    if name == "auto":
        kinds = [kind for kind in KINDS.values() if kind.considered(wanted, proposals=proposals)]
    else:
        kinds = [KINDS[validate.choice("mechanism", name, tuple(KINDS), remedy="use 'auto'")]]
    found = [
        _Option(kind=kind.name, candidate=candidate, worth=candidate.worth)
        for kind in kinds
        for candidate in kind.candidates(wanted)
    ]
    if not found:
        raise InputError("refusals", wanted.refusals, requirement=f"must be fewer for {name}", remedy="stop earlier")
    return found


def _most(options: Sequence[_Option]) -> list[float]:
    """The best score in each case."""
    return [max(scores) for scores in zip(*(option.worth for option in options), strict=True)]


def _weights(votes: Sequence[Votes], estimate: AgreementEstimate | None) -> list[float]:
    """How much each case counts: all alike before an estimate, but that every query leads by much counts more."""
    found = likelihoods(votes)
    if estimate is not None:
        found = [
            before * estimate.likelihood(low_distance(case.distance.tolist()))
            for before, case in zip(found, votes, strict=True)
        ]
    return [chance / sum(found) for chance in found]


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))


def _merits(options: Sequence[_Option], most: Sequence[float], weights: Sequence[float]) -> list[tuple[float, float]]:
    """Of each, the mean of the roots of the shares of the best score that it keeps, and the share of right answers."""
    worth, best, chances = (np.array(each) for each in ([option.worth for option in options], most, weights))
    kept = np.sqrt(np.divide(worth, best, out=np.zeros_like(worth), where=best > 0)) @ chances
    possible = float(chances[best > 0].sum()) or 1.0
    return [(share / possible, option.candidate.share) for share, option in zip(kept.tolist(), options, strict=True)]


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
        name="",
        mechanism=mechanism,
        queries=queries if planned is None else min(queries, planned),
        expected_answers=math.nan,
        expected_right=math.nan,
        kept=1.0,
        reason="given by the caller",
    )
