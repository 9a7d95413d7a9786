"""Where a ledger is kept: a transaction in an SQLite file or a PostgreSQL database, durable once it is left."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError
from .amounts import NOTHING, Amount
from .records import SCHEMA, as_columns, canonical, now, opening

TIMEOUT = 60.0
"""Seconds that a call waits for its turn before it gives up."""

_MARK = 0x54616369  # "Taci" in the header of the SQLite file; in PostgreSQL, the lock of those who create


def place_of(where: object) -> str:
    """An absolute path, or an address for SQLAlchemy."""
    remedy = "pass a path for SQLite, or postgresql://USER:PASSWORD@HOST/DATABASE"
    if not isinstance(where, str | Path) or not str(where).strip() or "\0" in str(where):
        raise InputError("the ledger", where, requirement="must be a path or an address", remedy=remedy)
    if isinstance(where, str) and "://" in where:
        found = re.fullmatch(r"postgres(?:ql(?:\+psycopg)?)?://(.*)", where, flags=re.DOTALL)
        if found is None:
            raise InputError(
                "the ledger", name_of(where), requirement="must be a path or PostgreSQL's address", remedy=remedy
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


def name_of(where: str) -> str:
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
            name_of(where),
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
def transaction(where: str, *, write: bool) -> Iterator[Any]:
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
    except (sql.exc.SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as failure:  # the last of a damaged file's text
        raise InputError(
            f"the ledger {name_of(where)}",
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


def exists(where: str) -> bool:
    """Whether there is a file, or the ledger's table."""
    if "://" not in where:
        return Path(where).exists()
    with transaction(where, write=False) as connection:
        return bool(_sqlalchemy().inspect(connection).has_table(_tables()[0].name))


def create(where: str, budget: Amount) -> None:
    """The ledger comes into being whole; where two make it at once, one of them does."""
    if "://" in where:
        with transaction(where, write=True) as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MARK})")
            if not _sqlalchemy().inspect(connection).has_table(_tables()[0].name):
                _begin(connection, budget)
        return
    path = Path(where)
    partial = path.with_name(f".{path.name[:50]}-{secrets.token_hex(4)}")
    try:
        partial.touch(exist_ok=False)
        with transaction(str(partial), write=True) as connection:
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
    state: dict[str, Any] = {"schema": SCHEMA, "last": 0, "time": now(), **as_columns(budget)}
    state |= {**as_columns(NOTHING, prefix="spent_"), "digest": opening(state)["digest"]}
    states.metadata.create_all(connection)
    connection.execute(states.insert(), state)


def state_in(connection: Any, *, lock: bool = False) -> dict[str, Any]:
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


def rows_in(connection: Any) -> list[dict[str, Any]]:
    """The records in order, their detail still text."""
    table = _tables()[1]
    return [dict(row) for row in connection.execute(table.select().order_by(table.c.id)).mappings()]


def append(connection: Any, record: Mapping[str, Any]) -> None:
    """Add a record, and move the ledger's row on to it."""
    states, records = _tables()
    connection.execute(records.insert(), {**record, "detail": canonical(record["detail"])})
    moved = {name: record[name] for name in ("digest", "spent_epsilon", "spent_delta")}
    connection.execute(states.update(), {"last": record["id"], **moved})


def column_names() -> list[str]:
    """What a record holds, in order."""
    return list(_tables()[1].columns.keys())


def free_number(connection: Any, where: str, entry: int, number: int | None) -> int:
    """The number wanted, if no note of the entry has it, or the next."""
    sql, table = _sqlalchemy(), _tables()[1]
    last = connection.execute(sql.select(sql.func.max(table.c.number)).where(table.c.entry == entry)).scalar()
    if last is None:
        raise InputError(
            "entry", entry, requirement=f"must be an entry of {name_of(where)}", remedy="pass what spend() returned"
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
