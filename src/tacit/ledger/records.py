"""The records: entries and notes, a chain in which each carries the digest of the one before."""

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
"""What the digest of a record is taken of, in this order; record 0 has some of them, the others all but `schema`."""
_KEY_BYTES = 32
_WHOLE = ("id", "entry", "number", "schema", "last")

NEIGHBOURS = "one record added or removed"
"""In what data differ that an entry is about, unless its detail says otherwise under `neighbours`."""


@dataclass(frozen=True, kw_only=True)
class _Link:
    """One link of the chain: `digest` is the SHA-256 of everything else in it, `previous` the digest before."""

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
    """One release: what was run, what it cost, what was spent with it and what remained."""

    what: str
    epsilon: Decimal
    delta: Decimal
    spent: Amount
    remaining: Amount

    @property
    def neighbours(self) -> str:
        """In what two data sets differ that its ε and δ compare."""
        return neighbours_in(self.detail)


@dataclass(frozen=True, kw_only=True)
class Note(_Link):
    """What was recorded with an entry at no cost; no two notes of an entry have the same number."""

    entry: int
    number: int


def entry_of(record: Mapping[str, Any], budget: Amount) -> Entry:
    """A record with number 0 as an entry."""
    spent = spent_in(record)
    return Entry(
        id=record["id"],
        time=record["time"],
        what=record["what"],
        epsilon=Decimal(record["epsilon"]),
        delta=Decimal(record["delta"]),
        detail=frozen("detail", decoded(record["detail"])),
        spent=spent,
        remaining=budget - spent,
        previous=record["previous"],
        digest=record["digest"],
    )


def note_of(record: Mapping[str, Any]) -> Note:
    """Any other record as a note."""
    names = ("id", "time", "entry", "number", "previous", "digest")
    return Note(**{name: record[name] for name in names}, detail=frozen("detail", decoded(record["detail"])))


def _restored(kind: type[Entry | Note], values: dict[str, Any]) -> Entry | Note:
    return kind(**{**values, "detail": frozen("detail", decoded(values["detail"]))})


def _jsonable(value: object) -> Any:
    if isinstance(value, Amount):
        return as_columns(value)
    return f"{value:f}" if isinstance(value, Decimal) else encoded(value)


def as_columns(amount: Amount, *, prefix: str = "") -> dict[str, str]:
    """An amount as a record holds it, and JSON."""
    return {f"{prefix}epsilon": f"{amount.epsilon:f}", f"{prefix}delta": f"{amount.delta:f}"}


def amount_in(record: Mapping[str, Any]) -> Amount:
    """What a record costs; of the ledger's row, its budget."""
    return Amount(stored(record["epsilon"]), stored(record["delta"]))


def spent_in(record: Mapping[str, Any]) -> Amount:
    """What is spent with it and all before it."""
    return Amount(stored(record["spent_epsilon"]), stored(record["spent_delta"]))


def neighbours_in(detail: Mapping[str, Any]) -> str:
    """What an entry with this detail is about."""
    return str(detail.get("neighbours", NEIGHBOURS))


def by_neighbours(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[list[int], Amount]]:
    """Entries by what they are about: their ids, and their sum, which is a claim where all entries are of one kind."""
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


def digest_of(record: Mapping[str, Any]) -> str:
    """The SHA-256 of everything in a record but its digest, a line each.

    No field holds the end of a line, so that no two records have the same lines; and an SQL server, too, can take it.
    """
    lines = (record[name] for name in FIELDS if name in record)
    text = "\n".join(str(line) if isinstance(line, str | int) else canonical(line) for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def seal_of(digest: str, key: bytes) -> str:
    """What only who has the key can write: it vouches for the record with this digest, and so for all before it."""
    return hmac.new(key, f"tacit ledger\n{digest}".encode(), "sha256").hexdigest()


def now() -> str:
    """The time in UTC, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def went_back(found: Iterable[Mapping[str, Any]]) -> list[int]:
    """Records that are earlier than one before them: a clock was set back, or was another one."""
    latest, early = "", []
    for record in found:
        if record["time"] < latest:
            early.append(int(record["id"]))
        latest = max(latest, record["time"])
    return early


def opening(state: Mapping[str, Any]) -> dict[str, Any]:
    """Record 0, which is the ledger itself: editing its budget breaks the chain."""
    names = ("schema", "time", "epsilon", "delta")
    record = {"id": 0, "what": "budget", **{name: state[name] for name in names}}
    return {**record, "digest": digest_of(record)}


def head(state: Mapping[str, Any], row: Mapping[str, Any] | None, *, ledger: str) -> None:
    """Raise unless the ledger's row is where its last record, or else record 0, leaves it: what a spend builds on."""
    with _as_written(ledger) as place:
        place[0] = _typed(state)["last"]
        last = None if row is None else _record(row)
        spent = NOTHING if last is None else spent_in(last)
        ends = (0, opening(state)["digest"]) if last is None else (last["id"], last["digest"])
        if (state["last"], state["digest"]) != ends or spent_in(state) != spent or not amount_in(state).covers(spent):
            raise ValueError("a ledger that ends elsewhere")


def chain(state: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, ledger: str) -> list[dict[str, Any]]:
    """All records in order, once they are found to belong together and to the ledger's row, `state`."""
    spent, records, entries = NOTHING, [], set()
    with _as_written(ledger) as place:
        budget, digest = amount_in(_typed(state)), opening(state)["digest"]
        for at, row in enumerate(rows, start=1):
            place[0] = at
            record = _record(row)
            if (record["id"], record["previous"]) != (at, digest):
                raise ValueError("a digest that does not fit")
            if record["number"] == 0:
                entries.add(at)
            elif record["entry"] not in entries:
                raise ValueError("a note of no entry")
            spent += amount_in(record)
            if spent_in(record) != spent or not budget.covers(spent):
                raise ValueError("a sum that does not fit")
            digest = record["digest"]
            records.append(record)
        if (state["last"], state["digest"], spent_in(state)) != (len(records), digest, spent):
            raise ValueError("a ledger that ends elsewhere")
    return records


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a record that fits itself: kinds of fields, amounts, an entry or a note that costs nothing, digest."""
    record = {**_typed(row), "detail": json.loads(row["detail"])}
    if not isinstance(record["detail"], dict):
        raise ValueError("a detail that is no object")
    if record["digest"] != digest_of(record):
        raise ValueError("a digest that does not fit")
    if record["number"] < 0 or (record["number"] == 0) != (record["entry"] == record["id"]):
        raise ValueError("a record that is neither an entry nor a note")
    if amount_in(record) != NOTHING and record["number"]:
        raise ValueError("a note that costs something")
    return record


def _typed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """SQLite keeps anything in any column; and the end of a line in a field could be taken for that of the field."""
    for name, value in row.items():
        if type(value) is not (int if name in _WHOLE else str) or "\n" in str(value):
            raise ValueError(f"{name} that is no {'whole number' if name in _WHOLE else 'line of text'}")
    return row


@contextlib.contextmanager
def _as_written(ledger: str) -> Iterator[list[int]]:
    """Whatever cannot be read in here is one line about the record in hand, whose place the caller notes."""
    place = [0]
    try:
        yield place
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as failure:
        raise InputError(
            f"record {place[0]} of {ledger}",
            str(failure) or type(failure).__name__,
            requirement="must be as it was written",
            remedy="compare the ledger with a copy or an export, and spend nothing",
        ) from None
