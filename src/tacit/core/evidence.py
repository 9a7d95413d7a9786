"""The exact inputs of a guarantee's theorem, from which somebody else can compute its number again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a certificate states of a guarantee, so that `checker/tacit_check.py` can check it.

    Reports never hold it: some inputs tell more about private data than the guarantee does.

    Attributes
    ----------
    rule
        The name of the checker's rule.
    inputs
        Returns the rule's inputs: whole numbers, floats, fractions, text, lists and dicts of these. It is called only
        when a certificate is written.
    private
        The names of inputs that tell more about private data than the guarantee itself.
    """

    rule: str
    inputs: Callable[[], Mapping[str, Any]]
    private: tuple[str, ...] = ()
