"""Entries and notes: the links of a ledger's chain, each with the digest of the one before.

Link 0 is the budget. The others are entries, which cost something, and notes, which belong to an entry and cost
nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ..core import validate
from ..core.encoding import decoded, encoded, frozen
from ..core.errors import InputError
from .amounts import NOTHING, Amount, stored

SCHEMA = 2
FIELDS = (
    *("id", "entry", "number", "time", "what", "schema", "epsilon", "delta"),
    *("spent_epsilon", "spent_delta", "detail", "previous"),
)
"""The fields that a digest is taken of, in this order. Link 0 has some of them, the others all but `schema`."""
_KEY_BYTES = 32
_WHOLE = ("id", "entry", "number", "schema", "last")

NEIGHBOURS = "one record added or removed"
"""In what two data sets differ that an entry compares, unless its detail says otherwise under `neighbours`."""


@dataclass(frozen=True, kw_only=True)
class _Link:
    """A link of the chain: `digest` is the SHA-256 of all else in it, `previous` the digest of the one before."""

    id: int
    time: str
    detail: Mapping[str, Any] = field(hash=False)
    previous: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts as text, since JSON's numbers are not exact."""
        return {"schema": SCHEMA, **{item.name: _jsonable(getattr(self, item.name)) for item in fields(self)}}

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _restored, (type(self), {**vars(self), "detail": encoded(self.detail)})


@dataclass(frozen=True, kw_only=True)
class Entry(_Link):
    """One release and its cost.

    Attributes
    ----------
    id
        Its place in the chain, where notes have places, too.
    time
        When it was added, in UTC.
    what
        What was released.
    epsilon, delta
        What it cost.
    detail
        What else the caller said about it.
    spent, remaining
        What was spent in all with this entry, and what was left of the budget then.
    previous, digest
        The digest of the link before it, and its own.
    """

    what: str
    epsilon: Decimal
    delta: Decimal
    spent: Amount
    remaining: Amount

    @property
    def neighbours(self) -> str:
        """In what the two data sets differ that its ε and δ compare."""
        return neighbours_in(self.detail)


@dataclass(frozen=True, kw_only=True)
class Note(_Link):
    """A note that was added to an entry at no cost.

    Attributes
    ----------
    id
        Its place in the chain.
    time
        When it was added, in UTC.
    entry
        The id of the entry that it belongs to.
    number
        Its number; no two notes of an entry have the same one.
    detail
        What was noted.
    previous, digest
        The digest of the link before it, and its own.
    """

    entry: int
    number: int


def entry_of(link: Mapping[str, Any], budget: Amount) -> Entry:
    """A link with number 0, as an entry."""
    spent = spent_in(link)
    return Entry(
        id=link["id"],
        time=link["time"],
        what=link["what"],
        epsilon=Decimal(link["epsilon"]),
        delta=Decimal(link["delta"]),
        detail=frozen("detail", decoded(link["detail"])),
        spent=spent,
        remaining=budget - spent,
        previous=link["previous"],
        digest=link["digest"],
    )


def note_of(link: Mapping[str, Any]) -> Note:
    """Any other link, as a note."""
    names = ("id", "time", "entry", "number", "previous", "digest")
    return Note(**{name: link[name] for name in names}, detail=frozen("detail", decoded(link["detail"])))


def _restored(kind: type[Entry | Note], values: dict[str, Any]) -> Entry | Note:
    return kind(**{**values, "detail": frozen("detail", decoded(values["detail"]))})


def _jsonable(value: object) -> Any:
    if isinstance(value, Amount):
        return as_columns(value)
    return f"{value:f}" if isinstance(value, Decimal) else encoded(value)


def as_columns(amount: Amount, *, prefix: str = "") -> dict[str, str]:
    """An amount as a link holds it, and JSON."""
    return {f"{prefix}epsilon": f"{amount.epsilon:f}", f"{prefix}delta": f"{amount.delta:f}"}


def amount_in(link: Mapping[str, Any]) -> Amount:
    """The cost of a link, or the budget in the ledger's row."""
    return Amount(stored(link["epsilon"]), stored(link["delta"]))


def spent_in(link: Mapping[str, Any]) -> Amount:
    """What was spent in all with this link."""
    return Amount(stored(link["spent_epsilon"]), stored(link["spent_delta"]))


def neighbours_in(detail: Mapping[str, Any]) -> str:
    """The neighbours that an entry with this detail compares."""
    return str(detail.get("neighbours", NEIGHBOURS))


def by_neighbours(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[list[int], Amount]]:
    """Ids and summed costs of the entries, by the neighbours that they compare.

    A sum is a guarantee only if all entries compare the same neighbours.
    """
    found: dict[str, tuple[list[int], Amount]] = {}
    for entry in entries:
        kind = neighbours_in(entry["detail"])
        ids, total = found.setdefault(kind, ([], NOTHING))
        ids.append(entry["id"])
        found[kind] = ids, total + amount_in(entry)
    return found


def checked_what(value: object) -> str:
    """What is released, in one line."""
    found = validate.text("what", value, remedy="say what is released, e.g. 'GNMax, 500 answers'")
    if not found.isprintable():
        raise InputError("what", value, requirement="must be one printable line", remedy="put the rest into detail")
    return found


def checked_detail(value: object) -> dict[str, Any]:
    """Plain data that JSON can hold, as it will be read again."""
    if not isinstance(value, Mapping):
        raise InputError("detail", value, requirement="must be a dict", remedy="put it into a dict")
    try:
        plain: dict[str, Any] = json.loads(canonical(encoded(frozen("detail", value))))
    except (RecursionError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "detail", value, requirement="must be data that JSON can hold", remedy="leave out what is huge or nested"
        ) from None
    return plain


def checked_key(value: object) -> bytes:
    """The owner's key: bytes that nobody can guess."""
    if not isinstance(value, bytes) or len(value) < _KEY_BYTES:
        raise InputError(
            "the key",
            f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__,
            requirement=f"must be at least {_KEY_BYTES} bytes",
            remedy="make one with: openssl rand -hex 32",
        )
    return value


def canonical(value: object) -> str:
    """The one way to write data as JSON, for digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(link: Mapping[str, Any]) -> str:
    """The SHA-256 of all fields of a link but its digest, a line each.

    No field holds the end of a line, so no two different links have the same lines. An SQL server can compute it, too.
    """
    lines = (link[name] for name in FIELDS if name in link)
    text = "\n".join(str(line) if isinstance(line, str | int) else canonical(line) for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def seal_of(digest: str, key: bytes) -> str:
    """The seal of the link with this digest, and so of all before it, which only the owner of the key can compute."""
    return hmac.new(key, f"tacit ledger\n{digest}".encode(), "sha256").hexdigest()


def now() -> str:
    """The time in UTC, as links hold it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def went_back(found: Iterable[Mapping[str, Any]]) -> list[int]:
    """Ids of links with an earlier time than a link before them: a clock was set back, or is another one."""
    latest, early = "", []
    for link in found:
        if link["time"] < latest:
            early.append(int(link["id"]))
        latest = max(latest, link["time"])
    return early


def opening(state: Mapping[str, Any]) -> dict[str, Any]:
    """Link 0, which holds the budget: editing the budget breaks the chain."""
    names = ("schema", "time", "epsilon", "delta")
    link = {"id": 0, "what": "budget", **{name: state[name] for name in names}}
    return {**link, "digest": digest_of(link)}


def head(state: Mapping[str, Any], row: Mapping[str, Any] | None, *, ledger: str) -> None:
    """Raise unless the ledger's row agrees with its last link, or with link 0 if there is no other."""
    with _as_written(ledger) as place:
        place[0] = _typed(state)["last"]
        last = None if row is None else _link(row)
        spent = NOTHING if last is None else spent_in(last)
        ends = (0, opening(state)["digest"]) if last is None else (last["id"], last["digest"])
        if (state["last"], state["digest"]) != ends or spent_in(state) != spent or not amount_in(state).covers(spent):
            raise ValueError("a ledger that ends elsewhere")


def chain(
    state: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, ledger: str, first: int = 1
) -> list[dict[str, Any]]:
    """All links in order, after checking that they belong together and to the ledger's row, `state`.

    With another `first`, the links from that id on: the caller knows that link, and so all before it, to be true.
    """
    spent, links, entries = NOTHING, [], set()
    with _as_written(ledger) as place:
        budget, digest = amount_in(_typed(state)), opening(state)["digest"]
        for at, row in enumerate(rows, start=first):
            place[0] = at
            link = _link(row)
            if at == first > 1:
                digest, spent = link["previous"], spent_in(link) - amount_in(link)
            if (link["id"], link["previous"]) != (at, digest):
                raise ValueError("a digest that does not fit")
            if link["number"] == 0:
                entries.add(at)
            elif first == 1 and link["entry"] not in entries:
                raise ValueError("a note of no entry")
            spent += amount_in(link)
            if spent_in(link) != spent or not budget.covers(spent):
                raise ValueError("a sum that does not fit")
            digest = link["digest"]
            links.append(link)
        if (state["last"], state["digest"], spent_in(state)) != (first - 1 + len(links), digest, spent):
            raise ValueError("a ledger that ends elsewhere")
    return links


def _link(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a link, after checking what can be checked of it alone: types, amounts, digest."""
    link = {**_typed(row), "detail": json.loads(row["detail"])}
    if not isinstance(link["detail"], dict):
        raise ValueError("a detail that is no object")
    if link["digest"] != digest_of(link):
        raise ValueError("a digest that does not fit")
    if link["number"] < 0 or (link["number"] == 0) != (link["entry"] == link["id"]):
        raise ValueError("a link that is neither an entry nor a note")
    if amount_in(link) != NOTHING and link["number"]:
        raise ValueError("a note that costs something")
    return link


def _typed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row, after checking the types of its fields.

    SQLite keeps anything in any column, and the end of a line within a field could be taken for the end of the field.
    """
    for name, value in row.items():
        if type(value) is not (int if name in _WHOLE else str) or "\n" in str(value):
            raise ValueError(f"{name} that is no {'whole number' if name in _WHOLE else 'line of text'}")
    return row


@contextlib.contextmanager
def _as_written(ledger: str) -> Iterator[list[int]]:
    """Turn whatever cannot be read into one line about the link in hand, whose place the caller sets."""
    place = [0]
    try:
        yield place
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as failure:
        raise InputError(
            f"link {place[0]} of {ledger}",
            str(failure) or type(failure).__name__,
            requirement="must be as it was written",
            remedy="compare the ledger with a copy or an export, and spend nothing",
        ) from None
