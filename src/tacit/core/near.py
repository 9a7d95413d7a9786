"""What somebody may have meant who misspelt a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 200
_SHOWN = 8
"""How many names a message lists."""


def did_you_mean(word: object, names: Iterable[object], otherwise: str, *, likeness: float = 0.6) -> str:
    """Return "did you mean 'name'?" for the name that is nearest to the word, or else the other text."""
    if not isinstance(word, str) or len(word) > _LONGEST:  # nothing that anybody misspelt
        return otherwise
    spelled = {str(name).casefold(): str(name) for name in names if str(name) != word}
    found = difflib.get_close_matches(word.strip().casefold(), spelled, n=1, cutoff=likeness)
    return f"did you mean {spelled[found[0]]!r}?" if found else otherwise


def listed(names: Iterable[object]) -> str:
    """The first few names, and how many more there are."""
    every = [str(name) for name in names]
    more = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
