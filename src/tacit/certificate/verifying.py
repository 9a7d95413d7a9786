"""`tacit verify`: the checker, the hashes of released files, and the same run again."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.encoding import SCHEMA
from ..core.errors import InputError
from ..core.guarantee import Guarantee
from ..runtime.files import existing
from .replaying import Replay, Rerun, same_claims
from .statement import digest, other_theorems


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What `tacit verify` found.

    Attributes
    ----------
    verdicts
        For each claim "follows", "does not follow" or "not checkable here", and the reason.
    failure_probability
        The chance with which one of the claims that follow may be false.
    subjects
        The name of each file that the certificate is about, and whether it was compared: "same", "other" or
        "not compared".
    replayed
        Whether the same run gave the same claims; None if it was not run again.
    seed
        The seed with which it was run again, as the certificate states it; None if it was not.
    found
        What the run found, in its own words.
    other_versions
        The packages and theorems that the numbers depend on, and of which this machine has another version.
    enveloped
        Whether the certificate stands in an envelope, whose signature nobody looked at.
    all_claims
        Whether a claim that cannot be checked fails the command.
    """

    verdicts: tuple[tuple[str, str], ...]
    failure_probability: Fraction
    subjects: tuple[tuple[str, str], ...]
    replayed: bool | None
    seed: int | None = None
    found: tuple[str, ...] = ()
    other_versions: tuple[str, ...] = ()
    enveloped: bool = False
    all_claims: bool = False

    @property
    def contradicted(self) -> bool:
        """Whether a claim does not follow, a file is another one, or the same run gave other claims."""
        return (
            self._count("does not follow") > 0
            or any(state == "other" for _, state in self.subjects)
            or self.replayed is False
        )

    @property
    def met(self) -> bool:
        """Whether the same run gave the same claims or, else, some claims follow, and all if all were asked for."""
        follow = self._count("follows")
        return bool(self.replayed) or (follow == len(self.verdicts) if self.all_claims else follow > 0)

    def _count(self, verdict: str) -> int:
        return sum(found == verdict for found, _ in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "schema": SCHEMA,
            "command": "verify",
            "claims": [{"verdict": verdict, "reason": reason} for verdict, reason in self.verdicts],
            "failure_probability": math.nextafter(float(self.failure_probability), math.inf),
            "subjects": dict(self.subjects),
            "replayed": self.replayed,
            "seed": self.seed,
            "found": list(self.found),
            "other_versions": list(self.other_versions),
            "signature": "not checked" if self.enveloped else "none",
            "verified": self.met and not self.contradicted,
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def to_html(self) -> str:
        """Return the text as a page."""
        from html import escape

        return f"<!doctype html><title>tacit verify</title><pre>{escape(self.to_text())}</pre>\n"

    def to_text(self) -> str:
        """Return text for a terminal, 80 columns wide."""
        lines: list[str] = []
        for place, (verdict, reason) in enumerate(self.verdicts, start=1):
            lines += textwrap.wrap(f"{place}. {verdict.upper()}: {reason}", 80, subsequent_indent="   ")
        for name, state in self.subjects:
            words = {
                "same": "the file given has this SHA-256",
                "other": "the file given has another SHA-256 than any that the certificate names",
                "not compared": "its SHA-256 was not compared; give it with --subject",
            }
            lines += textwrap.wrap(f"{name!a}: {words[state]}", 80, subsequent_indent="   ")
        if self.replayed is not None:
            lines.append("The same run gave " + ("the same claims:" if self.replayed else "OTHER CLAIMS:"))
            for found in self.found:
                lines += textwrap.wrap(f"- {found}", 80, subsequent_indent="  ")
            lines += textwrap.wrap(f"Its seed is {self.seed!a:.40}: whoever chose it may have tried others before.", 80)
        for version in self.other_versions if self.replayed is False else ():
            lines += textwrap.wrap(f"It was made with {version!a}: numbers may differ by that alone.", 80)
        if self.enveloped:
            lines += textwrap.wrap("Its signature was not checked: tacit certificate show --public-key does that.", 80)
        follow, fail = self._count("follows"), self._count("does not follow")
        rest = len(self.verdicts) - follow - fail
        lines.append(f"{follow} of {len(self.verdicts)} claims follow, {fail} do not, {rest} cannot be checked here.")
        return "\n".join(lines) + "\n"


def verify(
    certificate: Path | str,
    *,
    opening: Path | str | None = None,
    subjects: Sequence[Path | str] = (),
    replay: Mapping[str, Path | str] | None = None,
    rerun: Rerun | None = None,
    all_claims: bool = False,
) -> Verified:
    """Check a certificate from a stranger.

    Parameters
    ----------
    certificate
        The file, as `--certificate` writes it, or its signed envelope, whose signatures are not looked at.
    opening
        The file that opens the certificate's commitments.
    subjects
        Files that the certificate should be about.
    replay
        The files that the run read, to run it again: "replay" is the table of an audit, or the inputs of bound;
        "weights", "public" and "generator" are further files of bound, "model" and "attribute" its FILE.py:FUNCTION.
    rerun
        What runs it: takes the command, these files and the certificate's options, and returns the guarantees.
    all_claims
        Whether a claim that cannot be checked counts against the certificate.

    Raises
    ------
    InputError
        If a file is no certificate, or cannot be run again.
    """
    checker = load_checker()
    paths = [Path(path) for path in (certificate, opening) if path is not None]
    contents = []
    for path in paths:
        with existing(path, "certificate").open("rb") as file:
            contents.append(file.read(checker.LARGEST_FILE + 1))
    try:
        verdicts = checker.check(*contents)
        statement = checker.parsed(contents[0])
    except checker.BadFileError as failure:
        raise InputError(
            "certificate",
            Path(certificate).name,
            requirement=f"must be one that the checker can read: {failure}",
            remedy="ask its maker for the file as it was written",
        ) from None
    named = {one["digest"]["sha256"]: str(one["name"]) for one in statement["subject"]}
    given = {digest(Path(path)): Path(path).name for path in subjects}
    again, seed, found, others, ran = None, None, list[Guarantee](), tuple[str, ...](), set[str]()
    if replay and rerun is not None:
        opened = None if opening is None else checker.parsed(contents[1])
        run = Replay.stated(statement["predicate"])
        files = {name: str(path) for name, path in replay.items()}
        run.check_files(files, opened)
        ran = run.check_subjects(files, statement["subject"])
        claims = statement["predicate"]["claims"]
        found, others = list(rerun(run.command, files, run.options)), (*run.other_versions(), *other_theorems(claims))
        again, seed = same_claims(claims, found, opened), run.options["seed"]
    compared = [(name, "same" if sha256 in {*given, *ran} else "not compared") for sha256, name in named.items()]
    compared += [(name, "other") for sha256, name in given.items() if sha256 not in named]
    return Verified(
        verdicts=tuple((verdict, reason) for verdict, reason, _ in verdicts),
        failure_probability=min(Fraction(1), sum((chance for _, _, chance in verdicts), Fraction(0))),
        subjects=tuple(compared),
        replayed=again,
        seed=seed,
        found=tuple(str(one) for one in found),
        other_versions=others,
        enveloped="payloadType" in json.loads(contents[0]),
        all_claims=all_claims,
    )


def load_checker() -> ModuleType:
    """The checker: in a checkout the file of `checker/`, else the module that is installed beside Tacit."""
    path = Path(__file__).resolve().parents[3] / "checker" / "tacit_check.py"
    if "tacit_check" in sys.modules or not path.is_file():
        return importlib.import_module("tacit_check")
    spec = importlib.util.spec_from_file_location("tacit_check", path)
    assert spec is not None  # noqa: S101 — of a file that is there
    assert spec.loader is not None  # noqa: S101
    module = sys.modules["tacit_check"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
