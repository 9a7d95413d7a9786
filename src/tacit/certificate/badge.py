"""A badge for a README: the first claim of a certificate as an SVG. Anybody can draw one, so it proves nothing."""

from __future__ import annotations

from html import escape

from .claims import Contents
from .signatures import Opened

_SIGNED = {"valid": "signed", "not checked": "signature not checked", "none": "unsigned"}
_LONGEST = 60
_CHARACTER, _SPACE = 6.3, 8
"""The mean width of a character, and the space at each end, in pixels."""


def badge(found: Opened, said: Contents) -> str:
    """Draw the badge.

    Parameters
    ----------
    found
        The certificate as it was read.
    said
        What it says.

    Returns
    -------
    The SVG. Its title is the claim in full.
    """
    more = f" (1 of {len(said.claims)})" if len(said.claims) > 1 else ""
    short = said.claims[0].short if said.claims else "no claim"
    left, right = _fitting(f"tacit {said.command}"), _fitting(f"{short}{more} · {_SIGNED[found.signature]}")
    full = f"{left}: {right}" + (f". {said.claims[0].words}" if said.claims else "")
    title = escape("".join(character if character.isprintable() else " " for character in full))
    start, end = _width(left), _width(right)
    texts = [
        f'<text x="{place + _SPACE}" y="14" textLength="{width - 2 * _SPACE}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(text)}</text>"
        for place, width, text in ((0, start, left), (start, end, right))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{start + end}" height="20" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<clipPath id="round"><rect width="{start + end}" height="20" rx="3"/></clipPath>\n'
        f'<g clip-path="url(#round)"><rect width="{start}" height="20" fill="#3b3f46"/>'
        f'<rect x="{start}" width="{end}" height="20" fill="#1d5fa8"/></g>\n'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{"".join(texts)}</g>\n'
        "</svg>\n"
    )


def _fitting(text: str) -> str:
    text = "".join(character if character.isprintable() else "�" for character in " ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _width(text: str) -> int:
    return round(_CHARACTER * len(text)) + 2 * _SPACE
