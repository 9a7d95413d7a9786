"""How results are displayed: a headline and rows of name and text, as HTML in notebooks and as lines elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape

Rows = Iterable[tuple[str, str | tuple[str, ...]]]


class Carded(ABC):
    """A result that prints, and shows in notebooks, as a headline with rows of name and text."""

    @abstractmethod
    def _card(self) -> tuple[str, Rows]:
        """The headline, and rows of name and text."""

    def _repr_html_(self) -> str:
        return card(*self._card())

    def __repr__(self) -> str:
        headline, rows = self._card()
        lines = []
        for name, words in rows:
            if isinstance(words, str):
                lines += [f"{name}: {words}"] * bool(words)
            elif words:
                lines += [f"{name}:", *(f"- {one}" for one in words)]
        return "\n  ".join([_sentence(headline), *lines])


def card(headline: str, rows: Rows) -> str:
    """HTML without colours, so that the notebook's own are used; a tuple of texts becomes a list."""
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{_cell(words)}</td></tr>'
        for name, words in rows
        if words
    )
    return f"<div><p><strong>{escape(_sentence(headline))}</strong></p><table>{cells}</table></div>"


def _sentence(headline: str) -> str:
    return headline[:1].upper() + headline[1:]


def _cell(words: str | tuple[str, ...]) -> str:
    if isinstance(words, str):
        return escape(words)
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in words)}</ul>"
