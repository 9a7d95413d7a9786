"""From guarantees to a certificate: an in-toto statement that `checker/tacit_check.py` reads."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from .. import __version__
from ..core.errors import InputError
from ..core.guarantee import Guarantee
from ..runtime.files import existing

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:tacit-privacy:certificate:v1"
THEOREM_VERSIONS = {"theory.pairs.squared_pairwise": 2}
"""Of theorems that are not as they were first stated: one whose inputs or meaning change gets the next number."""

_CHECKED_BY = {"code": "tacit", "caller": "you"}
_MARK = re.compile(r" \([0-9a-f]{8}\)")
"""The digest by which reports tell priors apart: whoever guesses the inputs of one could confirm the guess by it."""
_DIGITS = 3
"""Of a claim whose inputs are kept back: all digits of it would tell them, where there are few possibilities."""
_BLOCK = 2**20


@dataclass(frozen=True, kw_only=True)
class Certified:
    """A certificate, and what opens its commitments.

    Attributes
    ----------
    statement
        The in-toto statement, in JSON's types.
    opening
        The private inputs and their salts, to be kept or handed to an auditor; None if everything was revealed.
    """

    statement: dict[str, Any]
    opening: dict[str, Any] | None

    def to_json(self) -> str:
        """Return the statement as text."""
        return _text(self.statement)

    def opening_json(self) -> str:
        """Return the opening as text."""
        return _text(self.opening)


def certified(
    guarantees: Sequence[Guarantee],
    *,
    command: str = "python",
    title: str,
    subjects: Iterable[Path | str] = (),
    reveal: bool = False,
    seed: int | None = None,
    replay: Mapping[str, Any] | None = None,
    files: Mapping[str, Path | str] | None = None,
    private: Sequence[str] = (),
) -> Certified:
    """Make a certificate of guarantees.

    Parameters
    ----------
    guarantees
        What is claimed. One without evidence is stated, too; the checker then says that it cannot check it.
    command
        The command that found them.
    title
        One line for readers.
    subjects
        The released files that the claims are about.
    reveal
        Whether inputs that tell more about private data than the claims stand in the certificate. Without it, the
        certificate holds a salted SHA-256 commitment to each, and `opening` what opens it.
    seed
        The seed of the draws, if there was one.
    replay
        What `tacit verify --replay` needs to run the command again: its name, and its options.
    files
        The files that the run read, each under the name of its option; with `replay`, stated by SHA-256.
    private
        The names of those of them that somebody could guess: unless `reveal`, their SHA-256 is salted, and `opening`
        holds the salt.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    opened: list[dict[str, Any]] = []
    claims = [_claim(place, one, reveal, opened) for place, one in enumerate(guarantees)]
    hidden = [
        f"claim {place['claim'] + 1}: {place['input']}, of which the file holds a commitment alone" for place in opened
    ]
    hashes = {name: digest(Path(path), name) for name, path in (files or {}).items()}
    salts = {name: secrets.token_hex(32) for name in hashes if name in private and not reveal}
    read = {
        name: {"salted_sha256": commitment(salts[name], found)} if name in salts else {"sha256": found}
        for name, found in hashes.items()
    }
    predicate = {
        "command": command,
        "title": title,
        "claims": claims,
        "not_revealed": [*hidden, "the data themselves, and everything computed from them that is not stated here"],
        "made_by": {"tacit": __version__, "python": platform.python_version(), "seed": seed},
        "replay": None if replay is None else _exact({**replay, **({"files": read} if read else {})}),
    }
    kept = {name: {"salt": salt, "sha256": hashes[name]} for name, salt in salts.items()}
    return Certified(
        statement={
            "_type": STATEMENT,
            "subject": [{"name": Path(path).name, "digest": {"sha256": digest(Path(path))}} for path in subjects],
            "predicateType": PREDICATE,
            "predicate": predicate,
        },
        opening={"opened": opened, **({"files": kept} if kept else {})} if opened or kept else None,
    )


def digest(path: Path, name: str = "subject") -> str:
    """Return the SHA-256 of a file or, of a folder, of the names and SHA-256 of its files."""
    found = hashlib.sha256()
    if existing(path, name).is_dir():
        for file in sorted(one for one in path.iterdir() if one.is_file()):
            # As JSON, in which no name looks like two of them.
            found.update(f"{digest(file, name)} {json.dumps(file.name)}\n".encode())
        return found.hexdigest()
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def commitment(salt: str, value: object) -> str:
    """SHA-256 of the salt, a line feed, and the value as JSON without spaces."""
    return hashlib.sha256(f"{salt}\n{json.dumps(value, separators=(',', ':'))}".encode()).hexdigest()


def other_theorems(claims: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The theorems that claims state in another version than the one here."""
    stated = {(str(one["name"]), int(one["version"])) for claim in claims for one in claim["theorem"]}
    here = {name: THEOREM_VERSIONS.get(name.removeprefix("tacit."), 1) for name, _ in stated}
    return tuple(
        f"version {version} of {name:.80}, and here is version {here[name]}"
        for name, version in sorted(stated)
        if version != here[name]
    )


def _claim(place: int, guarantee: Guarantee, reveal: bool, opened: list[dict[str, Any]]) -> dict[str, Any]:
    evidence = guarantee.evidence if math.isfinite(guarantee.value) else None
    inputs: dict[str, Any] | None = None
    value = guarantee.value if reveal else _rounded(guarantee.value, guarantee.side)
    if evidence is not None:
        inputs = _exact(evidence.inputs())
        for name in () if reveal else evidence.private:
            salt = secrets.token_hex(32)
            opened.append({"claim": place, "input": name, "salt": salt, "value": inputs[name]})
            inputs[name] = {"sha256": commitment(salt, inputs[name])}
    return {
        "statement": _unmarked(str(guarantee)),
        "rule": None if evidence is None else evidence.rule,
        "theorem": [
            {"name": f"tacit.{name}", "version": THEOREM_VERSIONS.get(name, 1)} for name in guarantee.references
        ],
        "inputs": inputs,
        "claimed": {"side": guarantee.side.replace("_", " "), "value": _number(value)},
        "failure_probability": _exact(guarantee.failure_probability) if guarantee.failure_probability else None,
        "adversary": _unmarked(guarantee.adversary.in_words),
        "assumptions": [
            {"text": _unmarked(one.text), "checked_by": _CHECKED_BY[one.checked_by]} for one in guarantee.assumptions
        ],
    }


def _unmarked(text: str) -> str:
    return _MARK.sub("", text)


def _rounded(value: float, side: str) -> float:
    """A few digits of a number, rounded to the side that keeps the claim true."""
    if not math.isfinite(value):
        return value
    way = ROUND_CEILING if side == "at_most" else ROUND_FLOOR
    return float(Context(prec=_DIGITS, rounding=way).create_decimal(Decimal(value)))


def _number(value: float) -> str | None:
    return value.hex() if math.isfinite(value) else None


def _exact(value: object) -> Any:
    """The same in JSON without rounding: floats in hexadecimal, decimal numbers as fractions."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Decimal | Fraction):
        return str(Fraction(value))
    if isinstance(value, Mapping):
        return {key: _exact(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(entry) for entry in value]
    raise InputError("an input of a theorem", value, requirement="must be numbers, text or lists", remedy="convert it")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
