"""The section of a Hugging Face model card that a certificate fills: metadata in YAML, then Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape

from .claims import Contents
from .signatures import Opened

_SIGNED = {
    "valid": "The signature of the key {key_id} was valid when this section was made.",
    "not checked": "The certificate is signed, but nobody checked the signature when this section was made.",
    "none": "The certificate is not signed.",
}


def model_card(found: Opened, said: Contents, *, name: str) -> str:
    """Write the section for the card of the model that the certificate is about.

    Parameters
    ----------
    found
        The certificate as it was read.
    said
        What it says.
    name
        The name of its file.

    Returns
    -------
    YAML between two lines of three dashes, then Markdown. Texts of the certificate are escaped in both.
    """
    return "\n".join(["---", *_metadata(found, said), "---", "", *_section(found, said, name)]) + "\n"


def _metadata(found: Opened, said: Contents) -> Iterable[str]:
    yield from ("tags:", "- privacy", "- tacit", "privacy_certificate:")
    yield f"  predicate_type: {_quoted(said.predicate_type)}"
    yield f"  sha256: {_quoted(found.sha256)}"
    yield f"  signature: {_quoted(found.signature)}"
    yield "  subjects:" if said.subjects else "  subjects: []"
    for subject, digest in said.subjects:
        yield f"  - name: {_quoted(subject)}"
        yield f"    sha256: {_quoted(digest)}"
    yield "  claims:" if said.claims else "  claims: []"
    for claim in said.claims:
        yield f"  - statement: {_quoted(claim.words)}"
        yield f"    side: {_quoted(claim.side)}"
        yield f"    value: {'null' if claim.value is None else _yaml_float(claim.value)}"
        yield f"    failure_probability: {_yaml_float(claim.failure_probability)}"


def _section(found: Opened, said: Contents, name: str) -> Iterable[str]:
    yield "## What its certificate says that nobody can learn from this model"
    yield ""
    yield f"From the certificate `{_code(name)}`, made by Tacit {_escaped(said.made_by)}."
    yield f"The SHA-256 of its statement is `{found.sha256}`."
    yield _SIGNED[found.signature].format(key_id=f"`{found.key_id}`")
    yield "To check what it claims, without Tacit and without the data: `python -m tacit_check FILE`."
    yield "That checks the numbers. The sentences below are the certificate's own, and no program checks those."
    for number, claim in enumerate(said.claims, start=1):
        yield ""
        yield f"{number}. **{_escaped(claim.bound)}**: {_escaped(claim.words)}"
        yield from (f"    - assumed, {who}: {_escaped(text)}" for text, who in claim.assumptions)
    yield ""
    if said.subjects:
        yield from ("It is about these files:", "", "| file | SHA-256 |", "|---|---|")
        yield from (f"| {_escaped(subject)} | `{_code(digest)}` |" for subject, digest in said.subjects)
    else:
        yield "It names no file, so nothing in it ties it to this model."
    if said.not_revealed:
        yield ""
        yield "It does not reveal:"
        yield ""
        yield from (f"- {_escaped(text)}" for text in said.not_revealed)


def _quoted(text: str) -> str:
    """A double-quoted scalar of YAML, which JSON's texts are once no character in them is special to YAML."""
    return json.dumps(_printable(text), ensure_ascii=False)


def _yaml_float(value: float) -> str:
    """A float that every YAML reader takes for one: with a point, as YAML 1.1 asks for."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _escaped(text: str) -> str:
    """Text in which Markdown and HTML mean nothing, on one line: no links, no lists, no tags."""
    text = re.sub(r"([\\`*_{}\[\]#|!~$@:]|(?<=www)\.)", r"\\\1", _printable(text), flags=re.IGNORECASE)
    text = escape(text, quote=False)
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", text)


def _code(text: str) -> str:
    """Text for between backticks in a table, where a backslash escapes nothing."""
    return _printable(text).replace("`", "'").replace("|", "¦")


def _printable(text: str) -> str:
    text = " ".join(text.split())
    return "".join(character if character.isprintable() else "�" for character in text)
