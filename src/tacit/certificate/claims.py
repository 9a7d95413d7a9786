"""What a certificate claims, in words, for whoever reads it; the file may come from a stranger."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..core.errors import InputError
from ..core.wording import chance_text, safe_text

PREDICATE = "urn:tacit-privacy:certificate:v1"
_FRACTION = re.compile(r"\d{1,1000}(/\d{1,1000})?", re.ASCII)
_CHECKED_BY = {"tacit": "checked by Tacit", "you": "left to the owner to check", "nobody": "checked by nobody"}
"""Who checks an assumption, for a reader who is somebody else than the owner."""
_SIDES = {"at most": "up", "at least": "down"}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim of a certificate.

    Attributes
    ----------
    bound
        The number, with its side and the chance of being wrong: "at most 0.0261, except with probability 0.05".
    short
        The number with its side alone.
    words
        The sentence that the certificate has for readers. Nothing checks that it fits the number.
    side, value, failure_probability
        The same in numbers; the value is None where nothing is proven.
    assumptions
        What the claim rests on, and who checks it.
    """

    bound: str
    short: str
    words: str
    side: str
    value: float | None
    failure_probability: float
    assumptions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a certificate says.

    Attributes
    ----------
    title
        Its title; empty if it is not a certificate of Tacit's.
    command
        The command that found its claims.
    made_by
        The version of Tacit that wrote it.
    subjects
        The name and the SHA-256 of each file that it is about.
    claims
        What it claims; empty if it is not a certificate of Tacit's.
    not_revealed
        What it says that it keeps back.
    predicate_type
        What kind of statement it is.
    """

    title: str
    command: str
    made_by: str
    subjects: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]
    not_revealed: tuple[str, ...]
    predicate_type: str


def contents(statement: Mapping[str, Any]) -> Contents:
    """Read an in-toto statement.

    Raises
    ------
    InputError
        If it says that it is a certificate of Tacit's, and is not.
    """
    subjects = tuple((one["name"], one["digest"]["sha256"]) for one in statement["subject"])
    kind, predicate = statement["predicateType"], statement["predicate"]
    if kind != PREDICATE:
        return Contents(
            title="", command="", made_by="", subjects=subjects, claims=(), not_revealed=(), predicate_type=kind
        )
    try:
        return Contents(
            title=_text(predicate["title"]),
            command=_text(predicate["command"]),
            made_by=_text(predicate["made_by"]["tacit"]),
            subjects=subjects,
            claims=tuple(_claim(one) for one in predicate["claims"]),
            not_revealed=tuple(_text(one) for one in predicate["not_revealed"]),
            predicate_type=kind,
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError) as failure:
        raise InputError(
            "certificate",
            f"{type(failure).__name__} for {failure}",
            requirement=f"must have the fields of {PREDICATE}",
            remedy="ask for a certificate that Tacit wrote",
        ) from None


def _claim(one: Mapping[str, Any]) -> Claim:
    side, written = one["claimed"]["side"], one["claimed"]["value"]
    toward = _SIDES[side]
    value = None if written is None else _number(written)
    chance = 0.0 if one["failure_probability"] is None else _number(one["failure_probability"])
    if not 0 <= chance <= 1:
        raise ValueError("failure_probability")
    short = "nothing" if value is None else f"{side} {safe_text(value, toward=toward)}"  # type: ignore[arg-type]
    return Claim(
        bound=f"{short}, {chance_text(chance)}" if chance else short,
        short=short,
        words=_text(one["statement"]),
        side=side,
        value=value,
        failure_probability=chance,
        assumptions=tuple((_text(found["text"]), _CHECKED_BY[found["checked_by"]]) for found in one["assumptions"]),
    )


def _number(written: object) -> float:
    """A number that is written exactly: as a whole number, a fraction p/q, or a float in hexadecimal."""
    if isinstance(written, str) and "x" in written:
        value = float.fromhex(written)
    elif type(written) is int or (isinstance(written, str) and _FRACTION.fullmatch(written)):
        value = float(Fraction(written))
    else:
        raise TypeError("a number")
    if not math.isfinite(value):
        raise ValueError("a number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value
