"""The ledger: a durable record of spent privacy, in an SQLite file or a PostgreSQL database.

    Ledger    a budget (ε, δ) and what was spent of it
    Entry     one release: what was run, what it cost, what was left
    Note      something recorded with an entry at no cost, e.g. one answer of a mechanism that was paid for up front

Spend first, release afterwards. An entry is on the disk before `spend` returns; if the process dies in between, budget
is lost, never privacy. What is recorded is stored in the clear: put nothing private into it.

**What holds.** Amounts are (ε, δ) for adding or removing one record of the data, unless an entry says otherwise in its
detail; the sum then speaks only of pairs of data that are neighbours in the sense of every entry. Entries compose
by addition. As a *filter* this is valid: all releases together are (ε, δ)-differentially private with the budget's ε
and δ, even if each release and its cost were chosen after seeing earlier answers (Rogers, Roth, Ullman and Vadhan 2016,
arXiv:1605.08294), and even if the answers of several mechanisms were asked for in turn (Haney et al. 2023,
arXiv:2309.05901). As an *odometer*, a claim about what was spent rather than about the budget, the sum is valid if the
costs and the moment to stop did not depend on answers, or if every δ is 0. docs/ledger.md proves this.

**Amounts** are decimal numbers with up to 60 places: costs are rounded up to them, budgets down, and sums are exact.
A float counts as the decimal number that it prints as, so that ten times 0.1 is 1; bounds of `tacit.theory` are
rounded up by more than this changes. `Fraction(x)` counts as the very value of a float `x`.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import json
import math
import numbers
import os
import random
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import checked
from .errors import BudgetSpentError, InputError, MissingExtraError
from .files import write_whole
from .guarantee import Adversary, Assumption, Comparison, Guarantee, decoded, encoded, frozen

if TYPE_CHECKING:
    from .report import Report

SCHEMA = 1
TIMEOUT = 60.0
"""Seconds that a call waits for its turn before it gives up."""
PLACES = 60
"""Decimal places of an amount."""

_LARGEST = 10**9
_UNIT = Decimal(1).scaleb(-PLACES)
_EXACT = Context(prec=4 * PLACES)
_MARK = 0x54616369  # "Taci" in the header of the SQLite file; in PostgreSQL, the lock of those who create
_RECENT = 20

Number = int | float | Fraction | Decimal


class Amount(NamedTuple):
    """An amount of privacy, exactly."""

    epsilon: Decimal
    delta: Decimal

    def __add__(self, other: Amount) -> Amount:  # type: ignore[override]  # the sum of amounts, not of tuples
        return Amount(*(_plain(_EXACT.add(a, b)) for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*(_plain(_EXACT.subtract(a, b)) for a, b in zip(self, other, strict=True)))

    def covers(self, other: Amount) -> bool:
        """Whether both parts are at least those of `other`."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def __str__(self) -> str:
        return f"ε = {self.epsilon:f} and δ = {self.delta:f}"


@dataclass(frozen=True, kw_only=True)
class _Record:
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
class Entry(_Record):
    """One release: what was run, what it cost, what was spent with it and what remained."""

    what: str
    epsilon: Decimal
    delta: Decimal
    spent: Amount
    remaining: Amount


@dataclass(frozen=True, kw_only=True)
class Note(_Record):
    """What was recorded with an entry at no cost; no two notes of an entry have the same number."""

    entry: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A budget and what was spent of it; made by `Ledger.open`.

    No connection outlives a call: a ledger may be used by many threads and processes, forked, and pickled.
    """

    where: str = field(repr=False)  # may hold a password
    budget: Amount

    @classmethod
    def open(cls, where: str | Path, *, epsilon: Number | None = None, delta: Number | None = None) -> Ledger:
        """The ledger in this SQLite file, or at this address `postgresql://USER:PASSWORD@HOST/DATABASE`.

        A new one is created with the budget given. One that exists keeps its budget: a different one is refused, and
        so is a ledger whose records are not as they were written.
        """
        place = _place(where)
        if (epsilon is None) != (delta is None):
            raise InputError(
                "the budget",
                {"epsilon": epsilon, "delta": delta},
                requirement="must have both epsilon and delta, or neither",
                remedy="pass delta=0 for pure differential privacy",
            )
        wanted = None if epsilon is None else _amount(epsilon, delta, of_budget=True)
        if not _exists(place):
            if wanted is None:
                raise InputError(
                    "the ledger",
                    _name(place),
                    requirement="must exist unless it is opened with a budget",
                    remedy="check its name, or pass epsilon and delta",
                )
            _create(place, wanted)
        state, _ = _verified(place)
        budget = _budget(state)
        if wanted is not None and wanted != budget:
            raise InputError(
                f"the budget of {_name(place)}",
                str(wanted),
                requirement=f"must stay {budget}",
                remedy="open it without a budget, or start another ledger for other data",
            )
        return cls(where=place, budget=budget)

    def require(self, *, epsilon: Number, delta: Number = 0) -> None:
        """Raise `BudgetSpentError` where `spend` would now; nothing is reserved."""
        self._covered(self.spent, _amount(epsilon, delta, of_budget=False))

    def spend(self, what: str, *, epsilon: Number, delta: Number = 0, detail: Mapping[str, Any] | None = None) -> Entry:
        """Record a release before it is made. Once this returns, the entry survives a crash; then release.

        Raises `BudgetSpentError`, and records nothing, if the budget does not cover the cost. After any other error the
        entry may or may not stand, and nothing may be released.
        """
        cost = _amount(epsilon, delta, of_budget=False)
        detail = {} if detail is None else detail
        record = self._appended(None, None, what=_line("what", what), cost=cost, detail=_data("detail", detail))
        return _entry(record, self.budget)

    def note(self, entry: Entry | int, detail: Mapping[str, Any], *, number: int | None = None) -> Note:
        """Record something with an entry at no cost, e.g. answer `number` before it leaves.

        A number is taken once: who is refused must not answer. Without one, the note takes the next.
        """
        place = entry.id if isinstance(entry, Entry) else entry
        place = checked.whole("entry", place, at_least=1, remedy="pass what spend() returned, or its id")
        if number is not None:
            number = checked.whole("number", number, at_least=1, remedy="count the answers from 1")
        record = self._appended(place, number, what="note", cost=_NOTHING, detail=_data("detail", detail))
        return _note(record)

    @property
    def spent(self) -> Amount:
        """The sum of all entries."""
        with _transaction(self.where, write=False) as connection:
            return _spent(_state(connection))

    @property
    def remaining(self) -> Amount:
        """What the budget still covers."""
        return self.budget - self.spent

    def entries(self) -> tuple[Entry, ...]:
        """All entries in order."""
        _, records = _verified(self.where)
        return tuple(_entry(record, self.budget) for record in records if record["number"] == 0)

    def notes(self, entry: Entry | int | None = None) -> tuple[Note, ...]:
        """The notes of an entry, or all of them, in order."""
        place = entry.id if isinstance(entry, Entry) else entry
        _, records = _verified(self.where)
        kept = (record for record in records if record["number"] and place in (None, record["entry"]))
        return tuple(map(_note, kept))

    def verify(self) -> str:
        """The digest of the last record, once the whole chain is found to be as it was written.

        Who can write to the database can forge a whole chain: a digest kept elsewhere shows that too, since it must be
        in every later chain.
        """
        state, _ = _verified(self.where)
        return str(state["digest"])

    @property
    def origin(self) -> str:
        """The digest of its first record, which tells it from every other ledger, also of the same budget."""
        with _transaction(self.where, write=False) as connection:
            return str(_opening(_state(connection))["digest"])

    def to_dict(self) -> dict[str, Any]:
        """Everything a reviewer needs, in plain JSON types; docs/ledger.md says how to check the digests."""
        state, records = _verified(self.where)
        spent = _spent(state)
        return {
            "schema": SCHEMA,
            "composition": "basic: costs are added",
            "neighbours": "one record added or removed, unless an entry says otherwise",
            "budget": _jsonable(self.budget),
            "spent": _jsonable(spent),
            "remaining": _jsonable(self.budget - spent),
            "digest": state["digest"],
            "records": [_opening(state), *records],
        }

    def export(self, path: str | Path) -> None:
        """Everything for a reviewer, as `.json` or as `.csv` with one line a record."""
        target = Path(path).resolve()
        if target.suffix not in (".json", ".csv"):
            raise InputError(
                "the export", str(path), requirement="must end in .json or .csv", remedy="say which you want"
            )
        if str(target) == self.where:
            raise InputError(
                "the export", str(path), requirement="must not be the ledger itself", remedy="choose another name"
            )
        content = self.to_dict()
        text = _table(content["records"]) if target.suffix == ".csv" else json.dumps(content, indent=2) + "\n"
        try:
            write_whole(target, text.encode())
        except OSError as failure:
            raise InputError(
                "the export",
                f"{path}: {failure.strerror or failure}",
                requirement="must be writable",
                remedy="choose a folder that exists and is yours to write to",
            ) from None

    def guarantee(self) -> Guarantee:
        """What the budget promises about everything that was or will be recorded here."""
        return Guarantee(
            quantity=f"privacy loss ε of all recorded releases together, at δ = {self.budget.delta:f}",
            side="at_most",
            value=_float_above(self.budget.epsilon),
            adversary=Adversary.ANY,
            theorem="basic composition as a privacy filter (docs/ledger.md; Rogers et al. 2016, arXiv:1605.08294)",
            assumptions=(
                Assumption(
                    text="each release is (ε, δ)-differentially private at the cost of its entry, when one record is "
                    "added or removed",
                    checked_by="caller",
                ),
                Assumption(text="nothing computed from the data was released without an entry", checked_by="caller"),
                Assumption(text="the costs together never exceed the budget", checked_by="code"),
            ),
            detail={"ledger": _name(self.where)},
        )

    def _covered(self, spent: Amount, cost: Amount) -> Amount:
        """What is spent with this cost, or `BudgetSpentError`."""
        if not self.budget.covers(spent + cost):
            raise BudgetSpentError(
                f"the budget of {_name(self.where)} must cover {cost}, "
                f"got {self.budget - spent} remaining; spend less, or stop here"
            )
        return spent + cost

    def _appended(
        self, entry: int | None, number: int | None, *, what: str, cost: Amount, detail: dict[str, Any]
    ) -> dict[str, Any]:
        """One transaction: whoever holds the ledger's one row is alone, and what it reads is the latest."""
        states, records = _tables()
        with _transaction(self.where, write=True) as connection:
            state = _state(connection, lock=True)
            spent = self._covered(_spent(state), cost)
            identity = int(state["last"]) + 1
            record: dict[str, Any] = {
                "id": identity,
                "entry": identity if entry is None else entry,
                "number": 0 if entry is None else _free_number(connection, self.where, entry, number),
                "time": _now(),
                "what": what,
                **_columns(cost, prefix=""),
                **_columns(spent, prefix="spent_"),
                "detail": detail,
                "previous": state["digest"],
            }
            record["digest"] = _digest(record)
            connection.execute(records.insert(), {**record, "detail": _canonical(detail)})
            changed = {"last": identity, "digest": record["digest"], **_columns(spent, prefix="spent_")}
            connection.execute(states.update(), changed)
        return record


def statement(where: str | Path) -> Report:
    """The report of `tacit ledger`: what was spent, what remains, and whether the records are as they were written."""
    from .report import Report

    ledger = Ledger.open(where)
    content = ledger.to_dict()
    records = content["records"]
    entries = [record for record in records if record.get("number") == 0]
    spent = _spent(entries[-1]) if entries else _NOTHING
    summary = [
        f"Entries: {len(entries)}. Spent: {spent}. Remaining: {ledger.budget - spent}.",
        f"All records, 0 to {len(records) - 1}, are as they were written; the last digest is {content['digest']}.",
    ]
    if len(entries) > _RECENT:
        summary.append(f"The last {_RECENT} entries (the JSON has all of them):")
    summary += [
        f"{entry['id']}. {entry['time'][:19]}Z, {entry['what']}: ε = {entry['epsilon']} and δ = {entry['delta']}."
        for entry in entries[-_RECENT:]
    ]
    return Report(
        command="ledger",
        title=f"The ledger {_name(ledger.where)}",
        summary=tuple(summary),
        comparisons=(Comparison(guarantee=ledger.guarantee(), attack=None),),
        detail={"ledger": decoded(content)},
    )


def _amount(epsilon: object, delta: object, *, of_budget: bool) -> Amount:
    up = not of_budget
    epsilon_part = _rounded("epsilon", epsilon, up=up, at_most=_LARGEST, remedy="privacy is worth having below 10")
    delta_part = _rounded("delta", delta, up=up, at_most=1, remedy="use about 1/n², e.g. 1e-10 for 100000 records")
    if of_budget and delta_part == 1:
        raise InputError("delta", delta, requirement="must be below 1", remedy="a budget of 1 protects nobody")
    return Amount(epsilon_part, delta_part)


def _rounded(name: str, value: object, *, up: bool, at_most: int, remedy: str) -> Decimal:
    refusal = InputError(name, value, requirement=f"must be a number ≥ 0 and ≤ {at_most:g}", remedy=remedy)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise refusal
    if isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if not 0 <= exact <= at_most:
            raise refusal
        units = (math.ceil if up else math.floor)(exact * 10**PLACES)
        return _plain(_EXACT.scaleb(Decimal(units), -PLACES))
    decimal = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not decimal.is_finite() or not 0 <= decimal <= at_most:
        raise refusal
    return _plain(decimal.quantize(_UNIT, rounding=ROUND_CEILING if up else ROUND_FLOOR, context=_EXACT))


def _plain(value: Decimal) -> Decimal:
    """The same number, written without exponent, trailing zeros or a sign of zero."""
    return Decimal(f"{_EXACT.normalize(value):f}") if value else Decimal(0)


_NOTHING = Amount(Decimal(0), Decimal(0))


def _float_above(value: Decimal) -> float:
    near = float(value)
    return near if Decimal(near) >= value else math.nextafter(near, math.inf)


def _columns(amount: Amount, *, prefix: str) -> dict[str, str]:
    return {f"{prefix}epsilon": f"{amount.epsilon:f}", f"{prefix}delta": f"{amount.delta:f}"}


def _budget(state: Mapping[str, Any]) -> Amount:
    return Amount(Decimal(state["epsilon"]), Decimal(state["delta"]))


def _spent(state: Mapping[str, Any]) -> Amount:
    return Amount(Decimal(state["spent_epsilon"]), Decimal(state["spent_delta"]))


def _line(name: str, value: object) -> str:
    found = checked.text(name, value, remedy="say what is released, e.g. 'GNMax, 500 answers'")
    if not found.isprintable():
        raise InputError(name, value, requirement="must be one printable line", remedy="put the rest into detail")
    return found


def _data(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(name, value, requirement="must be a dict", remedy="put it into a dict")
    try:
        plain: dict[str, Any] = json.loads(_canonical(encoded(frozen(name, value))))
    except (RecursionError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            name, value, requirement="must be data that JSON can hold", remedy="leave out what is huge or nested"
        ) from None
    return plain


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "digest"}
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _opening(state: Mapping[str, Any]) -> dict[str, Any]:
    """Record 0, which is the ledger itself: editing its budget breaks the chain."""
    names = ("schema", "time", "epsilon", "delta")
    record = {"id": 0, "what": "budget", **{name: state[name] for name in names}}
    return {**record, "digest": _digest(record)}


def _entry(record: Mapping[str, Any], budget: Amount) -> Entry:
    spent = _spent(record)
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


def _note(record: Mapping[str, Any]) -> Note:
    names = ("id", "time", "entry", "number", "previous", "digest")
    return Note(**{name: record[name] for name in names}, detail=frozen("detail", decoded(record["detail"])))


def _restored(kind: type[Entry | Note], values: dict[str, Any]) -> Entry | Note:
    return kind(**{**values, "detail": frozen("detail", decoded(values["detail"]))})


def _jsonable(value: object) -> Any:
    if isinstance(value, Amount):
        return _columns(value, prefix="")
    return f"{value:f}" if isinstance(value, Decimal) else encoded(value)


def _table(records: list[dict[str, Any]]) -> str:
    buffer = io.StringIO(newline="")
    table = csv.DictWriter(buffer, fieldnames=list(records[0] | dict.fromkeys(_tables()[1].columns.keys())))
    table.writeheader()
    for record in records:
        table.writerow({**record, "detail": _canonical(record["detail"]) if "detail" in record else ""})
    return buffer.getvalue()


def _verified(where: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The ledger's row and all records, read in one moment, once they are found to belong together."""
    _, table = _tables()
    with _transaction(where, write=False) as connection:
        state = _state(connection)
        rows = [dict(row) for row in connection.execute(table.select().order_by(table.c.id)).mappings()]
    at, spent = 0, _NOTHING
    try:
        budget, digest = _budget(state), _opening(state)["digest"]
        for at, record in enumerate(rows, start=1):
            record["detail"] = json.loads(record["detail"])
            spent += Amount(Decimal(record["epsilon"]), Decimal(record["delta"]))
            if (record["id"], record["previous"], record["digest"]) != (at, digest, _digest(record)):
                raise ValueError("a digest that does not fit")
            if _spent(record) != spent or not budget.covers(spent):
                raise ValueError("a sum that does not fit")
            digest = record["digest"]
        if (state["last"], state["digest"], _spent(state)) != (len(rows), digest, spent):
            raise ValueError("a ledger that ends elsewhere")
    except (ArithmeticError, TypeError, ValueError, RecursionError) as failure:
        raise InputError(
            f"record {at} of {_name(where)}",
            failure,
            requirement="must be as it was written",
            remedy="compare the ledger with a copy or an export, and spend nothing",
        ) from None
    return state, rows


def _place(where: object) -> str:
    """An absolute path, or an address for SQLAlchemy."""
    remedy = "pass a path for SQLite, or postgresql://USER:PASSWORD@HOST/DATABASE"
    if not isinstance(where, str | Path) or not str(where).strip() or "\0" in str(where):
        raise InputError("the ledger", where, requirement="must be a path or an address", remedy=remedy)
    if isinstance(where, str) and "://" in where:
        found = re.fullmatch(r"postgres(?:ql(?:\+psycopg)?)?://(.*)", where, flags=re.DOTALL)
        if found is None:
            raise InputError(
                "the ledger", _name(where), requirement="must be a path or PostgreSQL's address", remedy=remedy
            )
        return f"postgresql+psycopg://{found[1]}"
    try:
        path = Path(where).resolve()
        usable = path.parent.is_dir() and (path.is_file() or not path.exists())
    except (OSError, RuntimeError, ValueError):  # over-long names, circles of links
        usable = False
    if not usable:
        raise InputError("the ledger", str(where), requirement="must be a file in a folder that exists", remedy=remedy)
    return str(path)


def _name(where: str) -> str:
    """The place without password and options."""
    if "://" not in where:
        return where
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError:
        raise MissingExtraError(
            "the ledger must have SQLAlchemy, got no such package; pip install 'tacit[ledger]'"
        ) from None
    return sqlalchemy


@functools.cache
def _tables() -> tuple[Any, Any]:
    """The ledger's one row, which is also what writers lock, and the records."""
    sql = _sqlalchemy()
    metadata, kinds = sql.MetaData(), {"id": sql.BigInteger, "entry": sql.BigInteger, "number": sql.BigInteger}

    def columns(*names: str) -> list[Any]:
        return [sql.Column(name, kinds.get(name, sql.Text), nullable=False) for name in names]

    return (
        sql.Table(
            "tacit_ledger",
            metadata,
            sql.Column("schema", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("last", sql.BigInteger, nullable=False),
            *columns("time", "epsilon", "delta", "spent_epsilon", "spent_delta", "digest"),
        ),
        sql.Table(
            "tacit_records",
            metadata,
            sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
            *columns("entry", "number", "time", "what", "epsilon", "delta", "spent_epsilon", "spent_delta"),
            *columns("detail", "previous", "digest"),
            sql.UniqueConstraint("entry", "number"),
        ),
    )


@functools.lru_cache(maxsize=64)
def _engine(where: str) -> Any:
    sql = _sqlalchemy()
    if "://" not in where:
        return sql.create_engine("sqlite://", creator=lambda: _sqlite(where), poolclass=sql.pool.NullPool)
    try:
        return sql.create_engine(where, poolclass=sql.pool.NullPool, connect_args={"connect_timeout": 10})
    except ValueError:  # of a port that is no number
        raise InputError(
            "the ledger",
            _name(where),
            requirement="must be a whole address",
            remedy="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        ) from None
    except ImportError:
        raise MissingExtraError(
            "PostgreSQL ledgers must have psycopg, got no such package; pip install 'tacit[ledger]'"
        ) from None


def _sqlite(where: str) -> sqlite3.Connection:
    """A connection that makes no file, leaves transactions to us, and returns from a commit once it is on the disk.

    One file with a rollback journal rather than a write-ahead log: a copy of the file is the whole ledger, and readers
    need no right to write. EXTRA also syncs the folder from which the journal vanished; without it, a power
    failure may bring the journal back and undo a commit (sqlite.org/pragma.html#pragma_synchronous).
    """
    connection = sqlite3.connect(f"{Path(where).as_uri()}?mode=rw", uri=True, timeout=TIMEOUT, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # macOS answers a plain fsync before the disk does
    return connection


@contextlib.contextmanager
def _transaction(where: str, *, write: bool) -> Iterator[Any]:
    """One transaction, durable once it is left; waits for its turn; whatever fails in a database is an `InputError`."""
    sql = _sqlalchemy()
    try:
        with _connected(where) as connection:
            if connection.dialect.name == "sqlite":
                # A transaction that begins by reading cannot wait for its turn to write.
                connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
            else:
                # Writers lock a row and then read what is latest; readers see one moment.
                connection.execution_options(isolation_level="READ COMMITTED" if write else "REPEATABLE READ")
                connection.exec_driver_sql(
                    f"SET LOCAL lock_timeout = '{TIMEOUT:g}s'; SET LOCAL synchronous_commit = on"
                )
            yield connection
            connection.commit()
    except (sql.exc.SQLAlchemyError, sqlite3.Error) as failure:
        raise InputError(
            f"the ledger {_name(where)}",
            " ".join(str(getattr(failure, "orig", None) or failure).split()),
            requirement="must be a ledger that can be read and written here",
            remedy="check that it is one, that its server runs, and your rights",
        ) from None


def _connected(where: str) -> Any:
    """A connection; while the server has none to spare, the others' turn comes first."""
    sql, deadline = _sqlalchemy(), time.monotonic() + TIMEOUT
    while True:
        try:
            return _engine(where).connect()
        except sql.exc.OperationalError as failure:
            if not re.search("too many|connection slots", str(failure.orig)) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 — so that those who wait do not come back together


def _exists(where: str) -> bool:
    if "://" not in where:
        return Path(where).exists()
    with _transaction(where, write=False) as connection:
        return bool(_sqlalchemy().inspect(connection).has_table(_tables()[0].name))


def _create(where: str, budget: Amount) -> None:
    """The ledger comes into being whole; where two make it at once, one of them does."""
    if "://" in where:
        with _transaction(where, write=True) as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MARK})")
            if not _sqlalchemy().inspect(connection).has_table(_tables()[0].name):
                _begin(connection, budget)
        return
    path = Path(where)
    partial = path.with_name(f".{path.name[:50]}-{secrets.token_hex(4)}")
    try:
        partial.touch(exist_ok=False)
        with _transaction(str(partial), write=True) as connection:
            _begin(connection, budget)
            connection.exec_driver_sql(f"PRAGMA application_id = {_MARK}")
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)  # unlike a renaming, this replaces nothing
    except OSError as failure:
        raise InputError(
            "the ledger",
            f"{where}: {failure.strerror or failure}",
            requirement="must lie in a folder that can be written and knows hard links",
            remedy="choose another folder",
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """A new file's name is on the disk once its folder is; Windows cannot open folders, and writes them in order."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _begin(connection: Any, budget: Amount) -> None:
    states, _ = _tables()
    state: dict[str, Any] = {"schema": SCHEMA, "last": 0, "time": _now(), **_columns(budget, prefix="")}
    state |= {**_columns(_NOTHING, prefix="spent_"), "digest": _opening(state)["digest"]}
    states.metadata.create_all(connection)
    connection.execute(states.insert(), state)


def _state(connection: Any, *, lock: bool = False) -> dict[str, Any]:
    """The ledger's row; with `lock`, nobody else can write until the transaction ends."""
    sql = _sqlalchemy()
    if connection.dialect.name == "sqlite":
        if connection.exec_driver_sql("PRAGMA application_id").scalar() != _MARK:
            raise sql.exc.NoSuchTableError("a file that is no ledger")
    elif connection.exec_driver_sql("SHOW fsync").scalar() != "on":
        raise sql.exc.InvalidRequestError("a server with fsync = off, which may lose what it has confirmed")
    query = _tables()[0].select()
    state = dict(connection.execute(query.with_for_update() if lock else query).mappings().one())
    if state["schema"] != SCHEMA:
        raise sql.exc.InvalidRequestError(f"schema {state['schema']}, while this version of tacit knows {SCHEMA}")
    return state


def _free_number(connection: Any, where: str, entry: int, number: int | None) -> int:
    sql, table = _sqlalchemy(), _tables()[1]
    last = connection.execute(sql.select(sql.func.max(table.c.number)).where(table.c.entry == entry)).scalar()
    if last is None:
        raise InputError(
            "entry", entry, requirement=f"must be an entry of {_name(where)}", remedy="pass what spend() returned"
        )
    if number is None:
        return int(last) + 1
    taken = sql.select(table.c.id).where(table.c.entry == entry, table.c.number == number)
    if connection.execute(taken).first() is not None:
        raise InputError(
            f"number {number} of entry {entry}",
            "a note that has it",
            requirement="must be free",
            remedy="do not answer again: give the answer that was noted",
        )
    return number
