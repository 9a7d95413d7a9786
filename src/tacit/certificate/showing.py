"""What the commands of `tacit certificate` do and say."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..core.encoding import SCHEMA
from ..core.errors import InputError
from .badge import badge as drawn
from .card import model_card
from .claims import Contents, contents
from .new_files import absent, write_absent
from .signatures import Opened, new_key, opened, sign

_WORDS = {
    "valid": "VALID. Whoever holds the private key of {key_id} signed exactly this statement. Whether the claims "
    "follow is for tacit verify to say.",
    "invalid": "INVALID. The key {key_id} did not sign this: the statement or the signature was changed, or another "
    "key signed it. Nothing of it is shown.",
    "not checked": "NOT CHECKED, as no public key was given. Anybody may have written this. To check it, get the "
    "signer's public key from a place that you trust, and show it again with that key.",
    "none": "NONE. Nobody signed this, and anybody may have written it.",
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a command of `tacit certificate` has to say.

    Attributes
    ----------
    command
        The command.
    title
        The heading.
    lines
        What was found, a paragraph each.
    detail
        The same for the JSON.
    met
        False if a signature that was asked for is not there, or is invalid.
    contradicted
        Always False.
    """

    command: str
    title: str
    lines: tuple[str, ...]
    detail: Mapping[str, Any]
    met: bool = True

    contradicted = False

    def to_json(self) -> str:
        """Return the detail as JSON."""
        return json.dumps({"schema": SCHEMA, "command": self.command, **self.detail}, indent=2) + "\n"

    def to_text(self) -> str:
        """Return text for a terminal, 80 columns wide."""
        wrapped = [line for text in self.lines for line in textwrap.wrap(text, 80, subsequent_indent="   ")]
        return "\n".join([self.title, "=" * len(self.title), "", *wrapped]) + "\n"

    def to_html(self) -> str:
        """Return the same as a page."""
        paragraphs = "\n".join(f"<p>{escape(text)}</p>" for text in self.lines)
        title = escape(self.title)
        return (
            f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
            f"<body><main><h1>{title}</h1>\n{paragraphs}\n</main></body>\n</html>\n"
        )


def keygen(key: Path, *, passphrase_file: Path | None = None) -> Told:
    """Make a key pair, and say what to do with it.

    Parameters
    ----------
    key
        The new file for the private key; the public key gets the same name with .pub.
    passphrase_file
        The file with the passphrase that encrypts the private key.
    """
    identifier = new_key(key, passphrase_file=passphrase_file)
    public = f"{key}.pub"
    locked = "encrypted with the passphrase" if passphrase_file else "not encrypted"
    return Told(
        command="certificate keygen",
        title="A new key pair",
        lines=(
            f"Private key: {key}, which only you can read, {locked}. Keep it: whoever has it can sign as you.",
            f"Public key: {public}. Hand it out where people trust that it is yours.",
            f"Identifier (SHA-256 of the public key in DER): {identifier}",
        ),
        detail={"private_key": str(key), "public_key": public, "key_id": identifier},
    )


def signing(certificate: Path, *, key: Path, out: Path, passphrase_file: Path | None = None) -> Told:
    """Sign a certificate, and say what was signed.

    Parameters
    ----------
    certificate
        The certificate.
    key
        The private key.
    out
        The new file for the signed certificate.
    passphrase_file
        The file with the passphrase of the key.
    """
    found = sign(certificate, key=key, out=out, passphrase_file=passphrase_file)
    return Told(
        command="certificate sign",
        title=f"Signed: {out}",
        lines=(
            f"Signed the statement in {certificate} (SHA-256 {found.sha256}) with the key {found.key_id}.",
            "The signature says that you stand by these bytes. It does not say that the claims follow.",
            "Run tacit verify before you sign. Whoever receives the file should do so, too.",
        ),
        detail={"certificate": str(certificate), "out": str(out), "key_id": found.key_id, "sha256": found.sha256},
    )


def show(
    certificate: Path,
    *,
    public_key: Path | None = None,
    card: Path | None = None,
    badge: Path | None = None,
) -> Told:
    """Show what a certificate claims, and whether its signature is valid.

    Parameters
    ----------
    certificate
        The certificate, signed or not.
    public_key
        The signer's public key. With it, a certificate that it did not sign is not met.
    card
        A new file for the section of a Hugging Face model card.
    badge
        A new file for the badge, an SVG.
    """
    for name, path in (("card", card), ("badge", badge)):
        if path is not None:
            absent(name, path)
    found = opened(certificate, public_key=public_key)
    said = None if found.statement is None else contents(found.statement)
    met = found.signature == "valid" or (public_key is None and found.signature != "invalid")
    if met and said is not None:
        _made(found, said, certificate, card, badge)
    signature = _WORDS[found.signature].format(key_id=found.key_id)
    if found.signature == "none" and public_key is not None:
        signature += " It must be signed with the key that was given."
    detail: dict[str, Any] = {
        "signature": found.signature,
        "key_id": found.key_id,
        "sha256": found.sha256,
        "subjects": [] if said is None else [{"name": name, "sha256": digest} for name, digest in said.subjects],
        "claims": []
        if said is None
        else [
            {
                "statement": claim.words,
                "side": claim.side,
                "value": claim.value,
                "failure_probability": claim.failure_probability,
            }
            for claim in said.claims
        ],
    }
    return Told(
        command="certificate show",
        title=f"Certificate {certificate.name}",
        lines=(f"Signature: {signature}", *(() if said is None else _told(said))),
        detail=detail,
        met=met,
    )


def _made(found: Opened, said: Contents, certificate: Path, card: Path | None, badge: Path | None) -> None:
    if not said.claims and (card is not None or badge is not None):
        raise InputError(
            "certificate",
            said.predicate_type,
            requirement="must be a certificate of Tacit's with a claim, for a card or a badge",
            remedy="name a certificate that Tacit wrote",
        )
    if card is not None:
        write_absent("card", card, model_card(found, said, name=certificate.name).encode())
    if badge is not None:
        write_absent("badge", badge, drawn(found, said).encode())


def _told(said: Contents) -> tuple[str, ...]:
    if not said.claims:
        kind = f"It is a statement of the kind {said.predicate_type}" if not said.title else said.title
        lines = [f"{kind}; it has no claims that Tacit can read."]
    else:
        lines = [f"{said.title} (tacit {said.command}, version {said.made_by})"]
    lines += [f"About the file {name}, SHA-256 {digest}" for name, digest in said.subjects]
    lines += ["About no file: nothing in it ties it to one."] * (not said.subjects)
    for number, claim in enumerate(said.claims, start=1):
        lines.append(f"{number}. {claim.bound}. In the certificate's words: {claim.words}")
        lines += [f"   assumed, {who}: {text}" for text, who in claim.assumptions]
    lines += [f"Not revealed: {text}" for text in said.not_revealed]
    return tuple(lines)
