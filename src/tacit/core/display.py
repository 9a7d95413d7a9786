"""What is shown of a result: a headline, and words beside words; HTML in notebooks, lines elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape

Rows = Iterable[tuple[str, str | tuple[str, ...]]]


class Carded(ABC):
    """A result too large to be printed number by number: it shows its card instead."""

    @abstractmethod
    def _card(self) -> tuple[str, Rows]:
        """The headline, and words beside words."""

    def _repr_html_(self) -> str:
        return card(*self._card())

    def __repr__(self) -> str:
        headline, rows = self._card()
        lines = [f"{name}: {words if isinstance(words, str) else '; '.join(words)}" for name, words in rows if words]
        return "\n  ".join([_sentence(headline), *lines])


def card(headline: str, rows: Rows) -> str:
    """HTML; several words beside one are a list. It has no colours: the notebook's are used."""
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
