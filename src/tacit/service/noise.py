"""Noise that is drawn ahead: it is on the disk, encrypted, before any decision that uses it is made.

So no decision is ever made twice with different noise, whenever a process dies: the next one finds the same noise for
the decision of the same number. Whoever holds the key can read it, and the key lies beside the teachers.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from typing import Any

from ..core.errors import InputError, MissingExtraError, NoTheoremError
from ..learning.mechanisms import Gate, SparseVector
from ..theory.gate import ONE

Draw = int
"""The noise of one decision."""

_NONCE = 12
_DIGITS = 49
"""Digits of the longest number, which has 160 bits."""


def drawn(mechanism: Gate | SparseVector, size: int) -> list[Draw]:
    """Fresh, exact noise for as many decisions.

    It is a whole number, uniform below the one over which the mechanism states its chances.

    Parameters
    ----------
    mechanism
        The mechanism that decides.
    size
        The number of decisions.

    Returns
    -------
    The noise of each.
    """
    return [secrets.randbelow(mechanism.unit) for _ in range(size)]


class NoiseAhead:
    """The noise of decisions in their order; it serves one session as its source of noise.

    Parameters
    ----------
    mechanism
        The mechanism that decides.
    """

    def __init__(self, mechanism: Gate | SparseVector) -> None:
        self._unit = mechanism.unit
        self._draws: dict[int, Draw] = {}
        self._drawn = 0
        self.at = 0
        """The number of the decision that is made."""

    @property
    def ahead(self) -> int:
        """The number of decisions, from the first, whose noise is on the disk."""
        return self._drawn

    def add(self, draws: Sequence[Draw]) -> None:
        """Append noise that is on the disk."""
        for draw in draws:
            self._draws[self._drawn] = draw
            self._drawn += 1

    def forget(self, before: int) -> None:
        """Drop the noise of decisions before this one."""
        for number in [number for number in self._draws if number < before]:
            del self._draws[number]

    def coin(self, chance: int, *, of: int = ONE) -> bool:
        """True with probability chance/of."""
        if of != self._unit:
            raise NoTheoremError(f"a service must toss coins of {self._unit}, got one of {of}; serve gate or svt")
        return self._draws[self.at] < chance

    def laplace(self, scale: float) -> int:
        """Refused: no mechanism that is served asks for it, and none is drawn ahead."""
        raise NoTheoremError(f"a service must draw no Laplace noise, got scale {scale}; serve gate or svt")

    def gaussian(self, scale: float, *, size: int) -> Sequence[int]:
        """Refused, as above."""
        raise NoTheoremError(f"a service must draw no Gaussian noise, got {size} of scale {scale}; serve gate or svt")


def sealed(draws: Sequence[Draw], key: bytes, place: str) -> str:
    """Noise as text that only the key opens, and only as that of the same place."""
    nonce = secrets.token_bytes(_NONCE)
    # Spaces make every number as long as the longest: those who read the ledger see the length of what is encrypted.
    text = "[" + ",".join(f"{draw:{_DIGITS}d}" for draw in draws) + "]"
    closed = _cipher(key).encrypt(nonce, text.encode(), place.encode())
    return base64.b64encode(nonce + closed).decode()


def opened(text: str, key: bytes, place: str) -> list[Draw]:
    """What `sealed` has closed."""
    try:
        content = base64.b64decode(text, validate=True)
        found = _cipher(key).decrypt(content[:_NONCE], content[_NONCE:], place.encode())
    except Exception:  # cryptography has an error of its own for each way to be wrong
        raise InputError(
            f"the noise {place}",
            "what this key does not open",
            requirement="must be as the service wrote it",
            remedy="restore the key of this folder, or begin another session, which costs privacy again",
        ) from None
    drawn: list[Draw] = json.loads(found)
    if any(type(draw) is not int for draw in drawn):
        raise InputError(
            f"the noise {place}",
            "that of an earlier version",
            requirement="must be whole numbers, one a decision",
            remedy="serve with the version that began the session, or begin another, which costs privacy again",
        )
    return drawn


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtraError(
            "the service must have cryptography, got no such package; pip install 'tacit-privacy[service]'"
        ) from None
    return AESGCM(key)
