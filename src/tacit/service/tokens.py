"""Who may ask: bearer tokens with a role and a quota, of which only digests are on the disk."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..core import validate
from ..core.errors import InputError
from ..core.near import did_you_mean
from ..runtime import private_files
from ..runtime.files import alone, write_whole

ROLES = ("query", "auditor", "admin")
"""Those who ask; those who read the ledger and have tables audited; those who may do all of it."""
_FILE = "tokens.json"
_PREFIX = "tacit_"


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as it is known to the service, which cannot tell what it was.

    Attributes
    ----------
    name
        Whose it is, as the ledger shows it.
    role
        What the token allows: "query", "auditor" or "admin".
    quota
        The most fresh queries, in all; None sets no limit.
    digest
        The SHA-256 of the token.
    created
        When it was made, in UTC.
    """

    name: str
    role: str
    quota: int | None
    digest: str
    created: str

    def may(self, role: str) -> bool:
        """Whether it opens what this role opens."""
        return self.role in (role, "admin")


class Tokens:
    """The tokens of a folder; changes by other processes are seen at once.

    Parameters
    ----------
    folder
        The folder that a run of `tacit learn` was given as `out`.
    """

    def __init__(self, folder: Path | str) -> None:
        self._path = Path(folder) / "private" / _FILE
        self._seen: tuple[int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def all(self) -> list[Token]:
        """All tokens, in the order in which they were made."""
        return list(self._read().values())

    def find(self, text: str) -> Token | None:
        """The token that somebody shows; None if there is no such one."""
        return self._read().get(_digest(text))

    def add(self, name: str, *, role: str = "query", quota: int | None = None) -> str:
        """Make a token.

        Parameters
        ----------
        name
            Whose it is; the ledger shows it beside each query.
        role
            "query", "auditor" or "admin".
        quota
            The most fresh queries, in all.

        Returns
        -------
        The token, which is told here and never again.
        """
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", str(name)) is None:
            raise InputError(
                "name", name, requirement="must be 1 to 64 letters, digits and . _ @ -", remedy="write for example ann"
            )
        validate.choice("role", role, ROLES, remedy="use query")
        if quota is not None:
            validate.whole("quota", quota, at_least=0, remedy="say how many fresh queries it may ask")
        text = _PREFIX + secrets.token_urlsafe(32)
        made = Token(
            name=name,
            role=role,
            quota=quota,
            digest=_digest(text),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with alone(self._path.parent):
            known = self.all()
            if any(token.name == name for token in known):
                raise InputError(
                    "name", name, requirement="must be new", remedy="remove the other one first, or choose another name"
                )
            self._write([*known, made])
        return text

    def remove(self, name: str) -> None:
        """Take back a token. What it has asked stays on record, and counts if the name is used again."""
        with alone(self._path.parent):
            known = self.all()
            left = [token for token in known if token.name != name]
            if len(left) == len(known):
                raise InputError(
                    "name",
                    name,
                    requirement="must be that of a token",
                    remedy=did_you_mean(name, [token.name for token in known], "tacit token list shows them"),
                )
            self._write(left)

    def _read(self) -> dict[str, Token]:
        try:
            held = self._path.stat()
        except FileNotFoundError:
            return {}
        mark = held.st_mtime_ns, held.st_ino
        if mark != self._seen:
            try:
                found = [Token(**one) for one in json.loads(self._path.read_text(encoding="utf-8"))]
            except (OSError, TypeError, ValueError):
                raise InputError(
                    "the tokens",
                    str(self._path),
                    requirement="must be as tacit token wrote them",
                    remedy="restore the file, or delete it and make new tokens",
                ) from None
            self._tokens, self._seen = {token.digest: token for token in found}, mark
        return self._tokens

    def _write(self, tokens: list[Token]) -> None:
        with private_files.enclosed(self._path.parent):
            write_whole(self._path, (json.dumps([asdict(token) for token in tokens], indent=1) + "\n").encode())


def _digest(text: str) -> str:
    """Tokens have 256 random bits, so one round of a plain hash is enough."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
