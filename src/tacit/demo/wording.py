"""Numbers in sentences: limits rounded so that the sentence stays true."""

from __future__ import annotations

from ..core.wording import safe_text


def up(value: float) -> str:
    """An upper limit."""
    return safe_text(value, toward="up")
