"""What the page shows in plain words: what is proven, what is left of a session, what is recorded, and plans."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..core.errors import InputError
from ..core.guarantee import Guarantee
from ..core.wording import counted, safe_text, text_above
from ..learning.overlap import ALLOWED
from ..learning.study.plan import report as planned
from ..learning.study.publication import promise_verdict
from ..report import Report, Verdict
from ..report.checks import plain
from ..report.steps import Steps
from .session import ServiceSession

_LARGEST_EXPONENT = 700.0
_MOST_CLASSES, _MOST_ENTRIES = 30, 50
WHOLE = 5000
"""Links of a ledger up to which the page reads and checks all of it unasked."""


@dataclass(frozen=True, kw_only=True)
class _Protected:
    """What a promise is about.

    Attributes
    ----------
    whom
        In words that follow "one".
    with_it, without_it
        The two data sets that it compares.
    """

    whom: str
    with_it: str
    without_it: str


_PROTECTED = {
    "one record": _Protected(whom="record", with_it="any one private record", without_it="without it"),
    "one label": _Protected(whom="label", with_it="any one private label", without_it="with another in its place"),
    "all records": _Protected(
        whom="person's records", with_it="the records of any one person", without_it="without them"
    ),
    "all labels": _Protected(
        whom="person's labels", with_it="the labels of any one person", without_it="with others in their place"
    ),
}
"""By the first words of the neighbours."""


def _protected(proven: Guarantee) -> _Protected:
    return _PROTECTED[" ".join(str(proven.detail["neighbours"]).split()[:2])]


@dataclass(frozen=True, kw_only=True)
class About:
    """What everybody may know of a session.

    Attributes
    ----------
    served, proven
        What is served, and what it proves: a sentence each.
    verdict
        How good the promise is.
    facts
        Names and values.
    checks
        What only the reader can check, in plain words and in full.
    theorems
        The functions that prove it, by the names that `tacit proof` knows.
    """

    served: str
    proven: str
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, str], ...]
    theorems: tuple[str, ...]


def about(session: ServiceSession) -> About:
    """What everybody may know of a session."""
    served, proven = session.served, session.guarantee
    whom = _protected(proven)
    epsilon, delta = proven.value, float(proven.detail["delta"])
    factor = safe_text(math.exp(epsilon), toward="up") if epsilon < _LARGEST_EXPONENT else f"e^{text_above(epsilon)}"
    remarks = ["Which records there are is published; their labels alone are protected."] * ("label" in whom.whom)
    remarks += ["Private records that are also in public files are not protected."] * (ALLOWED in proven.assumptions)
    names = [str(one) for one in served.classes]
    listed = ", ".join(names[:_MOST_CLASSES]) + f" and {len(names) - _MOST_CLASSES} more" * (len(names) > _MOST_CLASSES)
    return About(
        served=f"Ask about a row of {counted(len(served.columns.names_), 'column')}: {proven.detail['teachers']} "
        f"teachers, each trained on its own share of private records, vote on “{served.label}”, and the service "
        "returns the class that wins, or refuses where too few agree.",
        proven="For anyone who sees all answers, however many they ask for and whatever else they know: any conclusion "
        f"has, with {whom.with_it}, at most {factor} times the probability that it would have {whom.without_it} "
        f"(ε = {text_above(epsilon)}), plus δ = {text_above(delta)}; and the other way round.",
        verdict=promise_verdict(
            proven, whom=whom.whom, remark=" ".join(remarks), all_protected=ALLOWED not in proven.assumptions
        ),
        facts=(
            ("Session", session.name),
            ("Predicts", served.label),
            ("Classes", listed),
            ("Protected", str(proven.detail["neighbours"])),
            ("Answers leave", f"at fixed moments, every {session.every:g} s"),
        ),
        checks=tuple((plain(text), text) for text in dict.fromkeys(proven.assumed(checked_by="caller"))),
        theorems=tuple(name.rpartition(".")[2] for name in proven.references),
    )


def refusals(session: ServiceSession) -> Steps:
    """The refusals of a session over time."""
    decisions = session.decisions
    return Steps(
        began=_time(decisions.began),
        now=datetime.now(UTC),
        times=[_time(text) for text in list(decisions.refusal_times)],
        most=session.mechanism.refusals,
        what="refusals",
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ledger(session: ServiceSession, *, whole: bool) -> dict[str, Any]:
    """The head of the ledger; if it is short, or `whole` says so, also its entries, after checking the chain."""
    last = session.ledger.last()
    found: dict[str, Any] = {"last": last, "checked": whole or last["id"] <= WHOLE}
    if found["checked"]:
        content = session.ledger.to_dict()
        links = content["links"][1:]
        entries = [link for link in links if link["number"] == 0]
        notes: dict[int, int] = {}
        for link in links:
            notes[link["entry"]] = max(notes.get(link["entry"], 0), link["number"])
        found |= {
            "last": {"id": len(links), "digest": content["digest"], "time": content["links"][-1]["time"]},
            "entries": [{**entry, "notes": notes[entry["id"]]} for entry in entries[-_MOST_ENTRIES:]],
            "left_out": max(0, len(entries) - _MOST_ENTRIES),
            "notes": len(links) - len(entries),
            "spent": content["spent"],
            "remaining": content["remaining"],
        }
    return found


PLAN = {"epsilon": "2", "delta": "1e-6", "records": "20000", "queries": "500", "error": "0.05"}
"""What the form for plans holds at first. None of it is about the records of this service."""


def plan(given: Mapping[str, str], *, classes: int) -> Report:
    """What `tacit plan` says about the numbers in a form."""
    numbers = {name: _number(name, given.get(name, "")) for name in PLAN}
    for name in ("records", "queries"):
        if not numbers[name].is_integer():
            raise InputError(name, given[name], requirement="must be a whole number", remedy="correct it")
    return _planned(tuple(numbers.values()), classes)


@functools.lru_cache(maxsize=64)
def _planned(numbers: tuple[float, ...], classes: int) -> Report:
    epsilon, delta, records, queries, error = numbers
    return planned(
        int(records), int(queries), epsilon=epsilon, delta=delta, error=(repr(error),), classes=max(2, classes)
    )


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(name, text, requirement="must be a number", remedy=f"write for example {PLAN[name]}")
    return found
