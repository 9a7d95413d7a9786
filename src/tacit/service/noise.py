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
from ..runtime import entropy
from ..theory.gate import ONE

Draw = tuple[int, ...]
"""The noise of one decision."""

_NONCE = 12
_DIGITS = 20
"""Characters of the longest number: noise has 64 bits and a sign."""


def drawn(mechanism: Gate | SparseVector, size: int) -> list[Draw]:
    """Fresh, exact noise for as many decisions.

    For a gate, a whole number that is uniform below 2⁶³. For a sparse vector, the noise of the distance, and that of a
    threshold, which is used if one begins with this decision.

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
    if isinstance(mechanism, Gate):
        return [(secrets.randbelow(ONE),) for _ in range(size)]
    distances = entropy.discrete_laplace(2 * mechanism.scale, size=size).tolist()
    thresholds = entropy.discrete_laplace(mechanism.scale, size=size).tolist()
    return list(zip(distances, thresholds, strict=True))


class NoiseAhead:
    """The noise of decisions in their order; it serves one session as its source of noise.

    Parameters
    ----------
    mechanism
        The mechanism that decides.
    """

    def __init__(self, mechanism: Gate | SparseVector) -> None:
        self._mechanism = mechanism
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

    def forget(self, before: int, *, but: int) -> None:
        """Drop the noise of decisions before this one, but for that of one whose threshold may be in force."""
        for number in [number for number in self._draws if number < before and number != but]:
            del self._draws[number]

    def threshold(self, number: int) -> int:
        """The noise of the threshold that began with this decision."""
        return self._draws[number][1]

    def coin(self, chance: int) -> bool:
        """True with probability chance · 2⁻⁶³."""
        return self._draws[self.at][0] < chance

    def laplace(self, scale: float) -> int:
        """The noise of a threshold, or of a distance, by its scale."""
        return self._draws[self.at][1 if scale == self._mechanism.scale else 0]  # type: ignore[union-attr]

    def gaussian(self, scale: float, *, size: int) -> Sequence[int]:
        """Refused: no mechanism that is served asks for it, and none is drawn ahead."""
        raise NoTheoremError(f"a service must draw no Gaussian noise, got {size} of scale {scale}; serve gate or svt")


def sealed(draws: Sequence[Draw], key: bytes, place: str) -> str:
    """Noise as text that only the key opens, and only as that of the same place."""
    nonce = secrets.token_bytes(_NONCE)
    # Spaces make every number as long as the longest: those who read the ledger see the length of what is encrypted.
    text = "[" + ",".join("[" + ",".join(f"{number:{_DIGITS}d}" for number in draw) + "]" for draw in draws) + "]"
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
    return [tuple(draw) for draw in json.loads(found)]


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtraError(
            "the service must have cryptography, got no such package; pip install 'tacit-privacy[service]'"
        ) from None
    return AESGCM(key)
