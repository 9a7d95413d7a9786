"""`tacit verify --replay`: what a certificate says of the run that made it, and whether it is the same run again."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.guarantee import Guarantee
from .statement import certified, commitment, digest

_OPTIONS = {
    "audit": (
        *("secret", "output", "positive", "slices", "noise", "noise_added", "assume_one_direction"),
        *("assume_max_slope", "failure_probability", "seed", "secret_range", "group"),
    ),
    "bound": ("functions", "done", "noise", "prior", "basis", "seed", "feature_error", "releases", "device"),
    "bound texts": ("functions", "noise", "column", "seed", "feature_error", "limit", "draws"),
}
"""The options that a certificate may set: none that writes anything, and no path."""

_LATER = ("secret_range", "group")
"""Options that certificates of earlier versions do not state, as there were none."""

_FLOATS = ("noise", "noise_added", "assume_max_slope", "failure_probability", "feature_error")

_WHY_NOT = {
    "learn": "as its noise comes from the operating system and is kept by nobody; the checker has computed its ε and δ "
    "again from the constants",
    "plan": "as it reads no data; the checker has computed its ε and δ again from the constants",
    "audit": "as its output was coded or in a file of its own, or it does not say how",
    "demo": "as it reads no files; `tacit demo` runs it again",
    "bound": "as time stopped its attacks on the real inputs, or its prior was a language model, which is no single "
    "file; a certificate of `tacit bound --steps` can be run again",
}

_NEEDED = {"audit": (), "bound": ("replay", "model"), "bound texts": ("replay", "model", "public")}
_CODE = ("model", "attribute")
_FILES = ("replay", "model", "weights", "public", "generator", "attribute")

Rerun = Callable[[str, Mapping[str, str], Mapping[str, Any]], Sequence[Guarantee]]
"""Takes the command of a certificate, the files by their options, and its options; returns what it found."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The run that made a certificate, as a stranger states it.

    Attributes
    ----------
    command
        "audit", "bound" or "bound texts".
    options
        The options that decide its numbers; what runs it checks their values.
    functions
        The functions of Python files that it called, by the options that name them.
    files
        The SHA-256 of each file that it read, or a salted one, by the options that name them.
    versions
        The packages that its numbers depend on.
    """

    command: str
    options: dict[str, Any]
    functions: dict[str, Any]
    files: dict[str, dict[str, str]]
    versions: dict[str, str]

    @classmethod
    def stated(cls, predicate: Mapping[str, Any]) -> Replay:
        """Read what a certificate says."""
        found = predicate["replay"] if isinstance(predicate["replay"], Mapping) else {}
        command, options = str(found.get("command")), found.get("options")
        files, versions = found.get("files", {}), found.get("versions", {})
        good = (
            isinstance(options, Mapping)
            and command in _OPTIONS
            and set(_OPTIONS[command]) - set(_LATER) <= set(options) <= set(_OPTIONS[command])
            and isinstance(versions, Mapping)
            and isinstance(files, Mapping)
            and set(_NEEDED[command]) <= set(files) <= set(_FILES)
            and all(_is_hash(one, salted=name == "replay") for name, one in files.items())
            and _names_its_prior(options, files)
        )
        if not isinstance(options, Mapping) or not good:
            stopped = predicate["command"] != "bound" or ("options" in found and options is None)
            why = _WHY_NOT.get(predicate["command"] if stopped else "", "as it does not say how")
            raise InputError(
                "replay",
                f"a certificate of {predicate['command']!a}",
                requirement=f"must be left out: this run cannot be repeated, {why}",
                remedy="leave it out",
            )
        options = {name: _plain(value) if name in _FLOATS else value for name, value in options.items()}
        if isinstance(options.get("secret_range"), list):
            options["secret_range"] = tuple(_plain(value) for value in options["secret_range"])
        called = options.pop("functions", {})
        return cls(
            command=command,
            options=options,
            functions=dict(called) if isinstance(called, Mapping) else {},
            files=dict(files),
            versions=dict(versions),
        )

    def check_files(self, given: Mapping[str, str], opening: object) -> None:
        """Refuse files other than those that the run read, before anything is run; code is given as FILE:FUNCTION."""
        salts = opening.get("files") if isinstance(opening, Mapping) else None
        for name in self.files if self.files else ("replay",):
            if name not in given:
                raise InputError(
                    name, None, requirement="must be given: the run read such a file", remedy=f"add `{name}`"
                )
        closed = list[str]()
        for name, path in given.items():
            if name not in (self.files or ("replay",)):
                raise InputError(
                    name, path, requirement="must be left out: the run read no such file", remedy="leave it out"
                )
            stated, salt, file = self.files.get(name, {}), _salt(salts, name), path
            if name in _CODE:
                file, _, function = path.rpartition(":")
                wanted = self.functions.get(name)
                if not file or function != wanted:
                    requirement = f"must be FILE.py:FUNCTION with the function of the run, {wanted!a:.60}"
                    raise InputError(name, path, requirement=requirement, remedy="name that function")
            found = digest(Path(file), name)
            if "salted_sha256" in stated and salt is not None:
                found = commitment(salt, found)
            elif "salted_sha256" in stated:
                closed.append(name)
                continue
            if stated and found != next(iter(stated.values())):
                raise InputError(
                    name,
                    path,
                    requirement="must be the file that the run read, and has another SHA-256",
                    remedy="give the file as it was",
                )

        if closed:
            raise InputError(
                "opening",
                None,
                requirement=f"must be given with `{closed[0]}`, whose SHA-256 the certificate keeps back",
                remedy="ask the certificate's maker for it",
            )

    def check_subjects(self, given: Mapping[str, str], subjects: Sequence[Mapping[str, Any]]) -> set[str]:
        """Refuse a file that the certificate is about by its name, or as the model's weights, and not by its SHA-256.

        Returns the SHA-256 of the files that are run.
        """
        found = set[str]()
        for option, path in given.items():
            file = Path(path.rpartition(":")[0] if option in _CODE else path)
            found.add(here := digest(file, option))
            named = {one["digest"]["sha256"] for one in subjects if one["name"] == file.name}
            about = named or {one["digest"]["sha256"] for one in subjects if option == "weights"}
            if about and here not in about:
                raise InputError(
                    option,
                    path,
                    requirement="must be the file that the certificate is about, and its subject has another SHA-256",
                    remedy="do not trust it: what was run is not what it says was released",
                )
        return found

    def other_versions(self) -> tuple[str, ...]:
        """The packages of which this machine has another version."""
        here = versions(*map(str, self.versions))
        return tuple(
            f"{name} {self.versions[name]!s:.40}, and here is {here.get(name, 'none')}"
            for name in self.versions
            if self.versions[name] != here.get(name)
        )


def versions(*packages: str) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except (importlib.metadata.PackageNotFoundError, ValueError):
            continue
    return found


def same_claims(stated: Sequence[Mapping[str, Any]], found: Sequence[Guarantee], opening: object) -> bool:
    """Whether these are the claims that a certificate would make, word for word, with all digits or a few.

    Inputs that it keeps back are compared if the opening, which fits its commitments, holds them.
    """
    few, all_digits = (
        certified(found, title="again", reveal=reveal).statement["predicate"]["claims"] for reveal in (False, True)
    )
    places = opening["opened"] if isinstance(opening, Mapping) else ()
    opened = {(place["claim"], place["input"]): place["value"] for place in places}
    return len(stated) == len(found) and all(
        any(_outside(claim, claim) == _outside(made[place], claim) for made in (few, all_digits))
        and (claim["inputs"] is None or set(_inputs(claim)) == set(_inputs(all_digits[place])))
        and all(
            _kept_back(known) or known == _inputs(all_digits[place])[name]
            for name, known in ((name, opened.get((place, name), value)) for name, value in _inputs(claim).items())
        )
        for place, claim in enumerate(stated)
    )


def _outside(claim: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """A claim without its inputs and, where none are stated, without the rule that they are for."""
    left_out = ("inputs", "rule") if stated["inputs"] is None else ("inputs",)
    return {name: value for name, value in claim.items() if name not in left_out}


def _inputs(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    return claim["inputs"] if isinstance(claim["inputs"], Mapping) else {}


def _kept_back(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {"sha256"}


def _names_its_prior(options: Mapping[str, Any], files: Mapping[str, Any]) -> bool:
    """Whether a prior is one of those that have a name, and whatever it is made of is among the files."""
    prior = options.get("prior", "auto")
    if not isinstance(prior, str) or not re.fullmatch(
        r"auto|gaussian|spectrum|generator|jittered:[0-9.e+-]{1,40}", prior
    ):
        return False
    return (prior == "generator") == ("generator" in files)


def _is_hash(value: object, *, salted: bool) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) == 1
        and set(value) <= {"sha256", *(["salted_sha256"] if salted else [])}
        and all(isinstance(one, str) for one in value.values())
    )


def _salt(salts: object, name: str) -> str | None:
    kept = salts.get(name) if isinstance(salts, Mapping) else None
    found = kept.get("salt") if isinstance(kept, Mapping) else None
    return found if isinstance(found, str) else None


def _plain(value: object) -> Any:
    """A float from its hexadecimal form; what is none stays as it is."""
    try:
        return float.fromhex(value) if isinstance(value, str) and value.lstrip("-").startswith("0x") else value
    except (ValueError, OverflowError):
        return value
