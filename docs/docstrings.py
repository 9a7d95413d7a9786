"""Docstrings as the reference shows them: `mkdocs build` reads this, nothing else does.

Our docstrings line up names and meanings in columns, and theorems begin their parts with one word. As Markdown both
would run together, so columns become tables and parts become paragraphs.
"""

import re
from typing import Any

import griffe

_PART = re.compile(r"(Statement|Assumptions|Direction|Reference)\. +")
_ROW = re.compile(r"(\S+(?: \S+)*) {2,}(?=\S)")


class Columns(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(readable, obj.docstring.value.split("\n\n")))


def readable(paragraph: str) -> str:
    """The paragraph as Markdown: its parts, its rows, or itself."""
    lines = paragraph.split("\n")
    if _PART.match(lines[0]):
        return "\n\n".join(f"**{first.group(1)}.** {text}" for first, text in entries(lines, _PART))
    first = _ROW.match(lines[0])
    if first and all(begins(line, first.end()) for line in lines):
        rows = [
            f"| {name(match.group(1))} | {text.replace('|', chr(92) + '|')} |" for match, text in entries(lines, _ROW)
        ]
        return "\n".join(["| | |", "|---|---|", *rows])
    return paragraph


def begins(line: str, column: int) -> bool:
    """Whether the line has its text in this column, after a name or after nothing."""
    match = _ROW.match(line)
    return match.end() == column if match else not line[:column].strip()


def entries(lines: list[str], pattern: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    """What matched, and the text of its line and of those that go on with it."""
    found: list[tuple[re.Match[str], str]] = []
    for line in lines:
        match = pattern.match(line)
        if match:
            found.append((match, line[match.end() :].strip()))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def name(text: str) -> str:
    """Names in the style of code, words as they are."""
    return ", ".join(f"`{part}`" if re.fullmatch(r"[\w.()=…]+", part) else part for part in text.split(", "))
