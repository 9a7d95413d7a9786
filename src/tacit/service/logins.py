"""Who has logged in on the page: a random name in a cookie stands for a token that was shown once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from .tokens import Token, Tokens

SECONDS = 8 * 3600.0
"""How long a login lasts."""
MOST = 50
"""Logins with one token at once; the oldest end first."""


class Logins:
    """The logins of one process, in its memory alone: they end with it.

    Parameters
    ----------
    tokens
        The tokens of the service. Whoever's token is taken back is logged out.
    clock
        The time in seconds.
    """

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens, self._clock = tokens, clock
        self._known: dict[str, tuple[str, float]] = {}

    def begin(self, token: Token) -> str:
        """Log in whoever has shown this token; the name of the login is a secret between them and this process."""
        same = [name for name, (digest, _) in self._known.items() if digest == token.digest]
        for name in same[: max(0, len(same) - MOST + 1)]:
            del self._known[name]
        name = secrets.token_urlsafe(32)
        self._known[name] = token.digest, self._clock() + SECONDS
        return name

    def find(self, name: str) -> Token | None:
        """The token behind a login; None if there is none, or no more."""
        digest, ends = self._known.get(name, ("", 0.0))
        if self._clock() >= ends:
            self._known.pop(name, None)
            return None
        return next((token for token in self._tokens.all() if token.digest == digest), None)

    def end(self, name: str) -> None:
        """Log out."""
        self._known.pop(name, None)
