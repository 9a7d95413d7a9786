"""Teachers on every engine: the same votes, whatever dies; a run that was killed goes on."""

import contextlib
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pytest
import serving
from certificates import two_authorities
from distributed import LocalCluster
from listening import listening
from mortal import Mortal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from teaching import IMPORTABLE, KEY, data, mortal, queries, reachable, wait_for

from tacit import InputError, MissingExtraError
from tacit.learning import Teachers, vote_counts
from tacit.runtime.workers import open_workers
from tacit.service.session import open_session
from tacit.service.tokens import Tokens


@pytest.fixture
def two_cores(all_cores):  # noqa: ARG001
    if joblib.cpu_count() < 2:
        pytest.skip("with one core, joblib trains in this very process")


@pytest.fixture(scope="module")
def dask():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as running:
        yield running.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture(scope="module", autouse=True)
def ray_variables(tmp_path_factory):
    """Set before Ray is imported. Without a token of its own, Ray leaves one in the home directory."""
    folder = tmp_path_factory.mktemp("certificates")
    two_authorities(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        for name, value in ray_over_tls(folder, "ours").items():
            patch.setenv(name, value)
        yield folder


def ray_over_tls(folder, name):
    """Ray's variables of a cluster behind TLS, and of who connects to it."""
    files = {"SERVER_CERT": f"{name}.pem", "SERVER_KEY": f"{name}.key", "CA_CERT": f"{name}-ca.pem"}
    return {"RAY_USE_TLS": "1"} | {f"RAY_TLS_{key}": str(folder / file) for key, file in files.items()}


@pytest.fixture(scope="module")
def ray():
    """A head with two cores, behind TLS."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # gRPC's handlers may kill what Ray's client server forks. Ray's workers would yield to all other processes: on a
    # busy machine they would wait for ever.
    environment = dict(os.environ, GRPC_ENABLE_FORK_SUPPORT="0", RAY_worker_niceness="0", PYTHONPATH=IMPORTABLE)
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # sockets need a short path
        options = ["--num-cpus=2", "--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
        options += ["--include-dashboard=false", "--include-log-monitor=false", "--no-monitor"]  # nobody looks
        start = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--port=0", *options]
        start.append(f"--ray-client-server-port={port}")
        with subprocess.Popen(start, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as head:
            try:
                wait_for(lambda: reachable(port))
                yield f"ray://127.0.0.1:{port}"
            finally:
                head.terminate()


@pytest.fixture(scope="module")
def alone():
    """Votes of teachers trained one after another in this process, by estimator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")  # whatever the test that comes first has set
        return [task().fit(*data()).votes(queries()) for task in TASKS]


TASKS = [
    lambda: Teachers(make_pipeline(StandardScaler(), LogisticRegression()), 12, KEY, classes=range(3)),
    lambda: Teachers(RandomForestClassifier(5, n_jobs=2), 12, KEY, classes=range(3)),
    lambda: Teachers(Mortal(), 12, KEY, classes=range(3)),
]


@pytest.mark.usefixtures("all_cores")
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_every_engine_gives_the_same_votes(engine, alone, request):
    engine = engine if engine == "local" else request.getfixturevalue(engine)
    heard = []
    found = []
    for task in TASKS:
        teachers = task().fit(*data(), engine=engine, advance=heard.append)
        found.append(teachers.votes(queries(), engine=engine, advance=heard.append))
    assert all((here == there).all() for here, there in zip(alone, found, strict=True))
    assert heard.count("12 of 12 teachers trained") == heard.count("12 of 12 teachers have voted") == 3
    assert heard[:2] == ["1 of 12 teachers trained", "2 of 12 teachers trained"]


def test_progress_counts_teachers_that_need_no_training():
    """Some chunks hold one class at most: they count as done from the beginning."""
    heard = []
    records, labels = np.arange(20.0)[:, None], [0, 1] * 10
    teachers = Teachers(GaussianNB(), 10, KEY, classes=[0, 1]).fit(records, labels, advance=heard.append)
    trained = len(heard)
    assert 0 < trained < 10
    assert heard == [f"{number} of 10 teachers trained" for number in range(11 - trained, 11)]
    teachers.votes(records, advance=heard.append)
    assert heard[-1] == "10 of 10 teachers have voted"


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_worker_may_die_in_training_and_in_voting(engine, alone, request, tmp_path):
    engine = engine if engine == "local" else request.getfixturevalue(engine)
    marks = {name: str(tmp_path / name) for name in ("fatal_fit", "fatal_predict")}
    teachers = Teachers(Mortal(**marks), 12, KEY, classes=range(3)).fit(*data(), engine=engine)
    assert (teachers.votes(queries(), engine=engine) == alone[2]).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fatal_fit", "fatal_predict"]


def test_a_cluster_that_is_not_there_is_one_line():
    with pytest.raises(InputError, match="engine must name the client server of a Ray cluster"):
        Teachers(GaussianNB(), 2, classes=range(3)).fit(*data(12), engine="ray://127.0.0.1:1")


def test_a_worker_may_die_with_many_queries_in_its_memory(dask, tmp_path):
    many = np.random.default_rng(3).normal(size=(20000, 3))
    teachers = Teachers(Mortal(fatal_predict=str(tmp_path / "once")), 12, KEY, classes=range(3))
    teachers.fit(*data(), engine=dask)
    there = teachers.votes(many, engine=dask)
    assert (tmp_path / "once").exists()
    assert (there == teachers.votes(many)).all()


@pytest.mark.usefixtures("two_cores")
def test_workers_that_always_die_are_one_line():
    with pytest.raises(InputError, match="engine must run its jobs, got 'local, which raised TerminatedWorkerError'"):
        Teachers(Mortal(fatal_fit="always"), 2, KEY, classes=range(3)).fit(*data(60))


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'tacit-privacy\[ray\]'"),
        open_workers("ray://127.0.0.1:1"),
    ):
        pass


def test_ray_elsewhere_must_be_encrypted(monkeypatch):
    """Before anything is imported or sent."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("RAY_USE_TLS")
    with (
        pytest.raises(InputError, match="engine must be encrypted if it leaves this machine"),
        open_workers("ray://h:1"),
    ):
        pass
    with pytest.raises(MissingExtraError), open_workers("insecure+ray://h:1"):
        pass
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with pytest.raises(MissingExtraError), open_workers("ray://h:1"):
        pass


SCRIPT = """
from teaching import data, mortal
mortal(pause=0.2).fit(*data(), folder="kept")
"""


@pytest.mark.usefixtures("all_cores")
def test_a_killed_run_goes_on_and_repeats_nothing(tmp_path, alone, monkeypatch):
    """It goes on in this process: it is the killed one that needs processes of its own."""
    environment = dict(os.environ, PYTHONPATH=IMPORTABLE)
    folder = tmp_path / "kept"
    start = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(start, cwd=tmp_path, env=environment, start_new_session=True) as running:
        wait_for(lambda: len(list(folder.glob("*.skops"))) >= 2)
        os.killpg(running.pid, signal.SIGKILL)  # and the processes that it trains in, which would be left behind
    done = {path: path.stat().st_mtime_ns for path in folder.glob("teacher-*.skops")}
    assert 2 <= len(done) < 12
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    heard = []
    teachers = mortal(pause=0.2).fit(*data(), folder=folder, advance=heard.append)
    assert heard[0] == f"{len(done) + 1} of 12 teachers trained"
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list(folder.glob("teacher-*.skops"))) == 12
    assert (teachers.votes(queries()) == alone[2]).all()
    heard.clear()
    assert (mortal(pause=0.2).fit(*data(), folder=folder, advance=heard.append).votes(queries()) == alone[2]).all()
    assert not heard


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of `tacit learn`."""
    place = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        patch.setenv("TACIT_FITS", f"12345678901 {place / 'fits.jsonl'}")
        return serving.learned(place)


def assert_served(run, engine, name):
    """A service whose teachers vote on that engine decides as each of them by itself would have it."""
    token = Tokens(run).add(name)
    asked = serving.rows(15, np.random.default_rng(7))
    with listening(open_session(run, session=name, every=0.05, **serving.SVT), engine=engine) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=120)
        heard = []
        for part in (asked[:1], asked):
            status, told = serving.ask(connection, token, part)
            assert status == 200, told
            heard = told["answers"]
        connection.close()
    assert [one["recorded"] for one in heard] == [True] + [False] * 14
    judge = serving.Judge(run, run / "ledger.sqlite")
    decided, by_identity = judge.decisions(name, serving.SVT, asked)
    answers = {by_identity[identity]: answer for identity, answer in decided.items()}
    labels = [None if answers[tuple(row)] is None else serving.CLASSES[answers[tuple(row)]] for row in asked]
    assert [one["label"] for one in heard] == labels
    assert len(set(labels)) > 1


def test_a_service_has_its_teachers_vote_on_dask(run, dask):
    assert_served(run, dask, "dask")


def test_teachers_that_stay_on_a_cluster_survive_its_workers(dask, alone, tmp_path):
    mark = tmp_path / "once"
    teachers = mortal(fatal_predict=str(mark)).fit(*data())
    with contextlib.closing(teachers.standing(engine=dask)) as standing:
        for part in (slice(10), slice(10, 20)):
            assert (standing.counts(queries()[part]) == vote_counts(alone[2][part], classes=3)).all()
            mark.unlink()  # which whoever died has left; and another will die
    mark.touch()
    gone = teachers.standing(engine="dask://127.0.0.1:1")
    with pytest.raises(InputError, match="must name a Dask scheduler"):
        gone.counts(queries())


# Last, since an idle Ray cluster takes as much of the processor as some tests.


@pytest.fixture(scope="module")
def strangers(ray, ray_variables):
    """Who has no certificate of the cluster's authority, or none at all; Ray would try again for half a minute."""
    hasty = {"RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "2", "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "4"}
    start = [sys.executable, "-c", f"from tacit.runtime.workers import open_workers\nwith open_workers({ray!r}): pass"]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                subprocess.Popen(start, env={**os.environ, **hasty, **variables}, stderr=subprocess.PIPE, text=True)
            )
            for variables in (ray_over_tls(ray_variables, "theirs"), {"RAY_USE_TLS": "0"})
        ]


@pytest.mark.usefixtures("strangers")  # who wait meanwhile
def test_ray_trains_the_same_teachers_and_its_workers_may_die(ray, alone, tmp_path):
    """They vote here; on Ray they do so for a service."""
    heard = []
    teachers = Teachers(Mortal(fatal_fit=str(tmp_path / "once")), 12, KEY, classes=range(3))
    teachers.fit(*data(), engine=ray, advance=heard.append)
    assert (teachers.votes(queries()) == alone[2]).all()
    assert (tmp_path / "once").exists()
    assert (heard[0], heard[-1]) == ("1 of 12 teachers trained", "12 of 12 teachers trained")


def test_a_service_has_its_teachers_vote_on_ray(run, ray):
    assert_served(run, ray, "ray")


def test_ray_behind_tls_talks_to_none_but_its_own(strangers):
    said = [stranger.communicate()[1] for stranger in strangers]
    assert all("InputError: engine must name the client server of a Ray cluster" in words for words in said)
