"""Where a ledger is kept: a transaction in an SQLite file or a PostgreSQL database, durable once it is left."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import InputError, MissingExtraError
from ..runtime.files import existing, sync_folder
from ..runtime.private_files import own_bytes
from . import postgresql
from .amounts import NOTHING, STORED, Amount
from .entries import SCHEMA, as_columns, canonical, now, opening

TIMEOUT = 60.0
"""Seconds that a call waits for its turn before it gives up."""

_MARK = 0x54616369  # "Taci" in the header of the SQLite file; in PostgreSQL, the lock of those who create


def place_of(where: object) -> str:
    """An absolute path, or an address for SQLAlchemy."""
    remedy = "pass a path for SQLite, or postgresql://USER@HOST/DATABASE"
    if not isinstance(where, str | Path) or not str(where).strip() or "\0" in str(where):
        where = name_of(where) if isinstance(where, str) else where
        raise InputError("the ledger", where, requirement="must be a path or an address", remedy=remedy)
    if isinstance(where, str) and "://" in where:
        found = re.fullmatch(r"postgres(?:ql(?:\+psycopg)?)?://(.*)", where, flags=re.DOTALL)
        if found is None:
            raise InputError(
                "the ledger",
                name_of(where),
                requirement="must be a path or an address that begins with postgresql://",
                remedy=remedy,
            )
        return f"postgresql+psycopg://{found[1]}"
    try:
        path = Path(where).resolve()
        usable = path.parent.is_dir() and (path.is_file() or not path.exists())
    except (OSError, RuntimeError, ValueError):  # over-long names, circles of links
        usable = False
    if not usable:
        name = name_of(str(where))
        raise InputError(
            "the ledger", name, requirement="must be a file in a folder that exists", remedy="check the path"
        )
    return str(path)


def name_of(where: str) -> str:
    """The place without password and options; also of an address that was mistyped, and so became a path."""
    if "://" in where:
        scheme, _, rest = where.partition("://")
        host = rest.rpartition("@")[2].partition("?")[0]
        return f"{scheme}://{re.sub(r':(?![0-9]+(/|$)).*', ':…', host)}"
    hidden = re.sub(r"(?i)(password\s*=\s*)('[^']*'|[^\s&]*)", r"\1…", where)
    return re.sub(r":.*@", ":…@", hidden, flags=re.DOTALL)


def has_password(where: str) -> bool:
    """Whether a password stands in an address."""
    account = where.partition("://")[2].rpartition("@")[0]
    return "://" in where and (bool(account.partition(":")[2]) or re.search(r"(?i)[?&]password=.", where) is not None)


def named_place(option: str, where: str | None, url_file: Path | None) -> str | None:
    """The ledger that a command names.

    Everyone on a machine can read the arguments of commands, so an address with a password must come from a file.

    Parameters
    ----------
    option
        The option that names the ledger, for error messages.
    where
        The path or address that was given.
    url_file
        A file with the address, instead of `where`.
    """
    if where is not None and (url_file is not None or has_password(where)):
        raise InputError(
            option,
            name_of(where),
            requirement="must hold no password, and not stand next to `ledger_url_file`",
            remedy="put the address into a file for `ledger_url_file`, or the password into PGPASSFILE",
        )
    return where if url_file is None else _address_in(url_file)


def _address_in(path: Path) -> str:
    """The one line of a file that only its owner can read: there an address may hold a password."""
    remedy = "write postgresql://USER:PASSWORD@HOST/DATABASE into it, then chmod 600"
    try:
        (line,) = own_bytes(path, "ledger_url_file", remedy=remedy).decode().split()
    except ValueError as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "ledger_url_file",
            f"{path}: not one word",
            requirement="must be a file with the address alone",
            remedy=remedy,
        ) from None
    return line


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError:
        raise MissingExtraError(
            "the ledger must have SQLAlchemy, got no such package; pip install 'tacit-privacy[ledger]'"
        ) from None
    return sqlalchemy


@functools.cache
def _tables() -> tuple[Any, Any, Any]:
    """The ledger's one row, which writers lock; the links; the owner's seals."""
    sql = _sqlalchemy()
    metadata, kinds = sql.MetaData(), {"id": sql.BigInteger, "entry": sql.BigInteger, "number": sql.BigInteger}

    def columns(*names: str) -> list[Any]:
        return [sql.Column(name, kinds.get(name, sql.Text), nullable=False) for name in names]

    def amount(name: str) -> list[Any]:
        """No amount is below zero, so that no entry gives back what was spent."""
        digits = f"typeof({name}) = 'text' AND {name} GLOB '[0-9]*' AND {name} NOT GLOB '*[^0-9.]*'"
        return [
            sql.CheckConstraint(f"{name} ~ '^{STORED}$'").ddl_if(dialect="postgresql"),
            sql.CheckConstraint(digits).ddl_if(dialect="sqlite"),
        ]

    costs = ("epsilon", "delta", "spent_epsilon", "spent_delta")
    return (
        sql.Table(
            "tacit_ledger",
            metadata,
            sql.Column("schema", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("last", sql.BigInteger, nullable=False),
            *columns("time", *costs, "digest"),
            *(check for name in costs for check in amount(name)),
        ),
        sql.Table(
            "tacit_records",
            metadata,
            sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
            *columns("entry", "number", "time", "what", *costs, "detail", "previous", "digest"),
            sql.UniqueConstraint("entry", "number"),
            sql.CheckConstraint("number >= 0 AND (number = 0) = (entry = id)"),
            sql.CheckConstraint("number = 0 OR (epsilon = '0' AND delta = '0')"),
            *(check for name in costs for check in amount(name)),
        ),
        sql.Table(
            "tacit_seals",
            metadata,
            sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
            *columns("seal"),
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
            "PostgreSQL ledgers must have psycopg, got no such package; pip install 'tacit-privacy[ledger]'"
        ) from None


def _sqlite(where: str) -> sqlite3.Connection:
    """A connection that makes no file and leaves transactions to us.

    One file with a rollback journal rather than a write-ahead log: a copy of the file is the whole ledger, and readers
    need no right to write.
    """
    return sqlite3.connect(f"{Path(where).as_uri()}?mode=rw", uri=True, timeout=TIMEOUT, isolation_level=None)


def _started(connection: Any, *, write: bool) -> None:
    """Begin a transaction of SQLite that returns from a commit once it is on the disk.

    EXTRA also syncs the folder from which the journal vanished; without it, a power failure may bring the journal back
    and undo a commit (sqlite.org/pragma.html#pragma_synchronous).
    """
    connection.exec_driver_sql("PRAGMA synchronous = EXTRA")
    connection.exec_driver_sql("PRAGMA fullfsync = ON")  # macOS answers a plain fsync before the disk does
    # A transaction that begins by reading cannot wait for its turn to write.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
    connection.exec_driver_sql("PRAGMA application_id")  # reads, and so takes the lock of a reader


@contextlib.contextmanager
def _turn(where: str) -> Iterator[None]:
    """The turn of one writer of a file, before SQLite is asked.

    SQLite alone is unfair: its pauses grow, so that a process that has waited long asks least often. Here they shrink.
    The lock is on the folder, goes when the process does, and only orders writers: SQLite's own lock keeps them apart.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.open(Path(where).parent, os.O_RDONLY)
        except OSError:  # a folder that may be entered and not listed: then the turns are SQLite's
            descriptor = None
        if descriptor is not None:
            stack.callback(os.close, descriptor)
        while descriptor is not None:
            if (waited := time.monotonic() - began) > TIMEOUT:
                raise sqlite3.OperationalError("a lock on its folder that others have held for too long")
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(random.uniform(0, max(0.002, 0.03 / (1 + 3 * waited))))  # noqa: S311 — not all at once
            except OSError:  # a file system without such locks
                break
        yield


def _code(failure: Any) -> int:
    """SQLite's number of an error."""
    return int(getattr(getattr(failure, "orig", failure), "sqlite_errorcode", 0))


@contextlib.contextmanager
def transaction(where: str, *, write: bool) -> Iterator[Any]:
    """One transaction, durable once it is left; waits for its turn; whatever fails in a database is an `InputError`."""
    sql = _sqlalchemy()
    try:
        with contextlib.ExitStack() as stack:
            if write and "://" not in where:
                stack.enter_context(_turn(where))
            connection = stack.enter_context(_connected(where))
            if "://" not in where:
                try:
                    _started(connection, write=write)
                except sql.exc.OperationalError as failure:
                    stuck = _code(failure) & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
                    if write or not stuck:
                        raise
                    copy = _copied(where, Path(stack.enter_context(tempfile.TemporaryDirectory())))
                    connection = stack.enter_context(_connected(copy))
                    _started(connection, write=False)
            else:
                # Writers lock a row and then read what is latest; readers see one moment.
                connection.execution_options(isolation_level="READ COMMITTED" if write else "REPEATABLE READ")
                connection.exec_driver_sql(
                    f"SET LOCAL lock_timeout = '{TIMEOUT:g}s'; SET LOCAL synchronous_commit = on"
                )
            yield connection
            connection.commit()
    except (sql.exc.SQLAlchemyError, sqlite3.Error, OSError, UnicodeError) as failure:  # the last of damaged text
        raise InputError(
            f"the ledger {name_of(where)}",
            " ".join(str(getattr(failure, "orig", None) or failure).split()),
            requirement="must be a ledger that can be read and written here",
            remedy="check that it is one, that its server runs, and your rights",
        ) from None


def _copied(where: str, folder: Path) -> str:
    """A copy with the journal that a crash left, which a reader without the right to write cannot tidy up in place.

    Should a writer come in between, the copy is of no one moment, and the chain does not verify.
    """
    path = Path(where)
    for suffix in ("-journal", "-wal", ""):
        if (source := path.with_name(path.name + suffix)).exists():
            shutil.copyfile(source, folder / source.name)
    return str(folder / path.name)


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


def exists(where: str | Path) -> bool:
    """Whether a ledger is there.

    Parameters
    ----------
    where
        The path of an SQLite file, or the address of a PostgreSQL database.
    """
    place = place_of(where)
    if "://" not in place:
        return Path(place).exists()
    with transaction(place, write=False) as connection:
        return bool(_sqlalchemy().inspect(connection).has_table(_tables()[0].name))


def require_ledger(where: str | Path, name: str, *, remedy: str | None = None) -> None:
    """Raise if there is no such ledger.

    Parameters
    ----------
    where
        The path of an SQLite file, or the address of a PostgreSQL database.
    name
        The parameter that names it.
    remedy
        What else to do about it.
    """
    place = str(where)
    if place.strip() and "://" not in place:
        existing(Path(place), name, shown=name_of(place), remedy=remedy)
    if not exists(where):
        raise InputError(
            name, name_of(place), requirement="must name a ledger that exists", remedy=remedy or "check its name"
        )


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
    sync_folder(path.parent)


def _begin(connection: Any, budget: Amount) -> None:
    states = _tables()[0]
    state: dict[str, Any] = {"schema": SCHEMA, "last": 0, "time": time_in(connection), **as_columns(budget)}
    state |= {**as_columns(NOTHING, prefix="spent_"), "digest": opening(state)["digest"]}
    states.metadata.create_all(connection)
    connection.execute(states.insert(), state)
    if connection.dialect.name == "postgresql":
        postgresql.create_functions(connection)


def time_in(connection: Any) -> str:
    """Now, by the clock of the server if there is one."""
    return postgresql.server_time(connection) if connection.dialect.name == "postgresql" else now()


def state_in(connection: Any, *, lock: bool = False) -> dict[str, Any]:
    """The ledger's row; with `lock`, nobody else can write until the transaction ends."""
    sql = _sqlalchemy()
    if connection.dialect.name == "sqlite":
        if connection.exec_driver_sql("PRAGMA application_id").scalar() != _MARK:
            raise sql.exc.NoSuchTableError("a file that is no ledger")
    elif connection.exec_driver_sql("SHOW fsync").scalar() != "on":
        raise sql.exc.InvalidRequestError("a server with fsync = off, which may lose what it has confirmed")
    query = _tables()[0].select()
    if lock and connection.dialect.name == "postgresql":
        query = sql.text(f"SELECT * FROM {postgresql.LOCK}()")  # noqa: S608 — a constant
    if (schema := connection.execute(sql.select(_tables()[0].c.schema)).scalar()) != SCHEMA:
        raise InputError(
            "the ledger",
            f"schema {schema}",
            requirement=f"must be of schema {SCHEMA}, whose costs cannot be negative",
            remedy="open a new ledger with the budget that is left in this one, which the tacit that made it shows",
        )
    return dict(connection.execute(query).mappings().one())


def rows_in(connection: Any, *, after: int = 0) -> list[dict[str, Any]]:
    """The links in order, their detail still as text; those with a larger id than `after`."""
    table = _tables()[1]
    query = table.select().where(table.c.id > after).order_by(table.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


def row_in(connection: Any, identity: int) -> dict[str, Any] | None:
    """One link, if it is there."""
    table = _tables()[1]
    found = connection.execute(table.select().where(table.c.id == identity)).mappings().first()
    return None if found is None else dict(found)


def append(connection: Any, link: Mapping[str, Any]) -> None:
    """Add a link, and move the ledger's row on to it."""
    sql, (states, links, _) = _sqlalchemy(), _tables()
    row = {**link, "detail": canonical(link["detail"])}
    if connection.dialect.name == "postgresql":
        fields = ", ".join(f"CAST(:{column.name} AS {column.type})" for column in links.columns)
        connection.execute(sql.text(f"SELECT {postgresql.APPEND}(ROW({fields})::tacit_records)"), row)
        return
    connection.execute(links.insert(), row)
    moved = {name: link[name] for name in ("digest", "spent_epsilon", "spent_delta")}
    connection.execute(states.update(), {"last": link["id"], **moved})


def seals_in(connection: Any) -> dict[int, str]:
    """The owner's seals, by the ids of the links that they seal."""
    table = _tables()[2]
    return {row.id: row.seal for row in connection.execute(table.select().order_by(table.c.id))}


def add_seal(connection: Any, identity: int, seal: str) -> None:
    """Add a seal; in PostgreSQL only the owner of the table may."""
    connection.execute(_tables()[2].insert(), {"id": identity, "seal": seal})


def column_names() -> list[str]:
    """The fields of a link, in order."""
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
