"""The one place that prints: what comes from files, names and models is shown, and never steers the terminal."""

from __future__ import annotations

import unicodedata

import typer


def say(text: str, *, err: bool = False) -> None:
    """Print some lines, on stdout or stderr."""
    typer.echo(harmless(text), err=err)


def harmless(text: str) -> str:
    """The text with a mark in place of every character that is not shown but obeyed, but for ends of lines."""
    return "".join("�" if _steers(character) else character for character in text)


def _steers(character: str) -> bool:
    """Whether this is a control character, such as that which begins an ANSI escape, or turns the direction."""
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
