"""Numbers in sentences: shares in percent, and limits rounded so that the sentence stays true."""

from __future__ import annotations

from ..core.wording import safe_text


def up(value: float) -> str:
    """An upper limit."""
    return safe_text(value, toward="up")


def percent(share: float) -> str:
    """A measured share."""
    return f"{100 * share:.0f} %"


def percent_up(share: float) -> str:
    """A share that nobody exceeds."""
    return f"{safe_text(100 * share, toward='up', digits=2)} %"


def percent_down(share: float) -> str:
    """A share that nobody gets below."""
    return f"{safe_text(100 * share, toward='down', digits=2)} %"
