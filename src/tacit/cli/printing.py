"""The only place that prints. Control characters from files, names and models never reach the terminal."""

from __future__ import annotations

import unicodedata

import typer


def say(text: str, *, err: bool = False) -> None:
    """Print text on stdout or stderr."""
    typer.echo(harmless(text), err=err)


def harmless(text: str) -> str:
    """Replace control characters, except ends of lines and tabs, by a visible mark."""
    return "".join("�" if _steers(character) else character for character in text)


def _steers(character: str) -> bool:
    """Whether this is a control character, such as the start of an ANSI escape or a change of text direction."""
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
