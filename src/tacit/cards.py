"""What a notebook shows of a result: a headline, and words beside words. It has no colours: the notebook's are used."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def card(headline: str, rows: Iterable[tuple[str, str | tuple[str, ...]]]) -> str:
    """HTML; several words beside one are a list."""
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{_cell(words)}</td></tr>'
        for name, words in rows
        if words
    )
    return f"<div><p><strong>{escape(headline[:1].upper() + headline[1:])}</strong></p><table>{cells}</table></div>"


def _cell(words: str | tuple[str, ...]) -> str:
    if isinstance(words, str):
        return escape(words)
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in words)}</ul>"
