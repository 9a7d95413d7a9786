"""`tacit bound --engine dask://…` on a real cluster: the numbers of a local run, whatever dies on the way."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest
import torch
from certificates import two_authorities
from commands import assert_one_line_error
from distributed import Client, LocalCluster, Security
from safetensors.torch import save_file
from teaching import reachable, wait_for
from torch import nn

from tacit import InputError
from tacit.reconstruction import bound_files
from tacit.runtime import clusters
from tacit.runtime.clusters import open_cluster

# A class of the file's own, which workers cannot import. Once a batch is done, it waits as long as a file says so: long
# enough to be killed in the middle.
MODEL = """
import time
from pathlib import Path
from torch import nn

class Network(nn.Sequential):
    def forward(self, x):
        while Path("FOLDER/hold").exists() and list(Path("FOLDER/out").glob("*.npy")):
            time.sleep(0.02)
        return super().forward(x)

def features():
    return Network(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))
"""
# With one thread, as Dask starts workers, sums are added in the same order here and there.
ALIKE = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as running:
        yield running


@pytest.fixture
def engine(cluster):
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))
    (tmp_path / "model.py").write_text(MODEL.replace("FOLDER", str(tmp_path)))
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    np.save(tmp_path / "data.npy", np.random.default_rng(0).uniform(size=(22, 4, 4)))
    return tmp_path


def command(*extra, out="out", method="multi-point", noise="gaussian:0.5"):
    return [
        *(sys.executable, "-m", "tacit", "bound", "model.py:features", "--weights", "weights.safetensors"),
        *("--data", "data.npy", "--noise", noise, "--method", method, "--out", out, "--quiet", *extra),
    ]


@pytest.fixture
def run_here(folder, here):
    return lambda *extra, **options: here(folder, *command(*extra, **options)[3:])


@pytest.fixture
def in_process(folder, monkeypatch):
    """`tacit bound` without a new process, and with one thread, as workers have."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.chdir(folder)

    def run_here(out, *, methods=("multi-point",), **options):
        files = {"weights": folder / "weights.safetensors", "data": folder / "data.npy", "out": folder / out}
        setting = {"noise": "gaussian:0.5", "basis": "dct", "feature_error": 1e-6, "method": ",".join(methods)}
        setting["pictures"] = False
        bound_files("model.py:features", **files, **{**setting, **options})
        return batches(folder / out)

    yield run_here
    torch.set_num_threads(before)


def batches(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def test_a_cluster_gives_the_numbers_of_a_local_run(folder, in_process, engine):
    options = {"limit": 5, "methods": ("multi-point", "two-point")}
    here, there = in_process("here", **options), in_process("there", engine=engine, **options)
    assert len(here) == 2 * 2 + 2  # two methods in two batches; of two-point, the pairs, too
    assert there.keys() == here.keys()
    for name in here:
        assert there[name] == here[name], name
    search = {"limit": 1, "methods": ("hcr",)}  # in float32 it may round otherwise; other starts differ by a hundredth
    here, there = in_process("searched", **search), in_process("searched there", engine=engine, **search)
    (name,) = here.keys() & there.keys()
    numbers = (np.load(folder / out / name) for out in ("searched", "searched there"))
    np.testing.assert_allclose(*numbers, rtol=1e-4)


def test_a_worker_may_die(folder, in_process, cluster, engine):
    whole = in_process("whole")
    (folder / "hold").touch()
    start = command("--engine", engine)
    with subprocess.Popen(start, cwd=folder, env=ALIKE, stderr=subprocess.PIPE, text=True) as running:
        wait_for(lambda: batches(folder / "out"))
        with Client(cluster, set_as_default=False) as client:
            victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        assert len(batches(folder / "out")) < 6
        (folder / "hold").unlink()
        _, complaint = running.communicate(timeout=600)
    assert (running.returncode, complaint) == (0, "")
    assert batches(folder / "out") == whole
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)


def test_a_run_that_was_killed_goes_on_there_or_here(folder, in_process, engine):
    whole = in_process("whole")
    (folder / "hold").touch()
    with subprocess.Popen(command("--engine", engine), cwd=folder, env=ALIKE) as running:
        wait_for(lambda: batches(folder / "out"))
        running.send_signal(signal.SIGKILL)
    (folder / "hold").unlink()
    done = {path: path.stat().st_mtime_ns for path in (folder / "out").glob("*.npy")}
    assert 0 < len(done) < 6
    assert in_process("out", engine=engine, resume=True) == whole
    assert {path: path.stat().st_mtime_ns for path in done} == done
    (folder / "out" / "multi-point-00003.npy").unlink()
    assert in_process("out", resume=True) == whole


def test_results_come_as_they_are_done_and_are_told_apart(tmp_path, cluster, engine):
    def late(arrived, number):
        patience = time.monotonic() + 60
        while number == 0 and not arrived.exists() and time.monotonic() < patience:
            time.sleep(0.02)
        return 10 * number

    cluster.wait_for_workers(2)  # the one that died above may still be on its way back
    arrived = tmp_path / "arrived"
    with open_cluster(engine) as outcomes:
        found = []
        for outcome in outcomes(late, arrived, [(number,) for number in range(200)]):
            found.append(outcome)
            arrived.touch()  # only now can the first job end
    assert sorted(found) == [(number, 10 * number) for number in range(200)]
    assert found[0][0] != 0
    with open_cluster("local") as outcomes:
        assert list(outcomes(late, arrived, [(0,), (1,)])) == [(0, 0), (1, 10)]


@pytest.mark.parametrize(
    "address", ["dask", "dask://", "dask://host", "dask://host:port", "dask://host:99999", "ray://host:1", "Local"]
)
def test_an_engine_of_another_kind_is_refused(address):
    with (
        pytest.raises(InputError, match="engine must be local or dask://HOST:PORT or tls://HOST:PORT"),
        open_cluster(address),
    ):
        pass


def test_a_scheduler_that_is_not_there_is_one_line_and_leaves_no_folder(folder, run_here, monkeypatch):
    assert clusters.TIMEOUT == 5
    monkeypatch.setattr(clusters, "TIMEOUT", 1.0)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        mute = f"dask://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(InputError, match="must name a Dask scheduler that answers within 1 seconds"),
            open_cluster(mute),
        ):
            pass
        assert time.monotonic() - began < 60  # on a slow machine; Dask itself would go on
    assert_one_line_error(run_here("--engine", "dask://127.0.0.1:1"), "must name a Dask scheduler that answers")
    assert not (folder / "out").exists()


def test_what_goes_wrong_on_a_worker_is_one_line(run_here, engine):
    assert_one_line_error(run_here("--engine", engine, noise="laplace:1"), "must have Gaussian noise")


def test_workers_that_lack_a_package_are_one_line(engine, tmp_path, monkeypatch):
    (tmp_path / "absent.py").write_text("def half(shared, number):\n    return number / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    from absent import half

    with (
        pytest.raises(InputError, match="must run the batches, got ModuleNotFoundError"),
        open_cluster(engine) as outcomes,
    ):
        list(outcomes(half, None, [(1,)]))


def test_a_scheduler_that_dies_is_one_line(tmp_path, caplog):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = str(free.getsockname()[1])
    start = [sys.executable, "-m", "dask", "scheduler", "--port", port, "--no-dashboard"]
    with subprocess.Popen(start, cwd=tmp_path, stderr=subprocess.DEVNULL) as scheduler:
        wait_for(lambda: reachable(int(port)))
        with open_cluster(f"dask://127.0.0.1:{port}") as outcomes:
            done = outcomes(max, 0, [(1,), (2,)])
            threading.Timer(1.0, scheduler.kill).start()
            with pytest.raises(InputError, match="must stay up until all batches are done"):
                next(done)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_without_dask_the_extra_is_named(run_here, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert_one_line_error(run_here("--engine", "dask://127.0.0.1:1"), "pip install 'tacit-privacy[dask]'")


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A scheduler and a worker that speak TLS alone, and a folder with ours.pem and theirs.pem, of two authorities."""
    folder = tmp_path_factory.mktemp("certificates")
    two_authorities(folder)
    roles = {
        f"tls_{role}_{part}": str(folder / f"ours.{suffix}")
        for role in ("scheduler", "worker", "client")
        for part, suffix in (("cert", "pem"), ("key", "key"))
    }
    security = Security(tls_ca_file=str(folder / "ours-ca.pem"), require_encryption=True, **roles)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(protocol="tls://", security=security, **options) as running:
        yield running.scheduler_address, folder


def tls(folder, name):
    """Dask's configuration of who connects."""
    files = {"ca-file": f"{name}-ca.pem", "client.cert": f"{name}.pem", "client.key": f"{name}.key"}
    return {f"distributed.comm.tls.{key}": str(folder / file) for key, file in files.items()}


def variables(configuration):
    """The same for a command that is started, whose environment holds it."""
    kept = {"-": "_", ".": "__"}
    return {f"DASK_{key.upper().translate(str.maketrans(kept))}": value for key, value in configuration.items()}


def test_a_cluster_behind_tls_gives_the_numbers_of_a_local_run(in_process, secured):
    engine, certificates = secured
    assert engine.startswith("tls://")
    found = dask.config.collect_env(variables(tls(certificates, "ours")))  # as Dask reads it when it is imported
    with dask.config.set(dask.config.merge(dask.config.config, found)):
        there = in_process("there", limit=5, engine=engine)
    assert there == in_process("here", limit=5)


def test_a_cluster_behind_tls_answers_none_but_its_own(secured):
    engine, certificates = secured
    with (
        dask.config.set(tls(certificates, "theirs")),
        pytest.raises(InputError, match="must name a Dask scheduler that answers"),
        open_cluster(engine),
    ):
        pass


def test_a_cluster_behind_tls_is_not_reached_without_certificates(secured):
    engine, _ = secured
    with (
        pytest.raises(InputError, match=r"must have files for ca-file, client\.cert and client\.key"),
        open_cluster(engine),
    ):
        pass
    plain = engine.replace("tls://", "dask://")
    with pytest.raises(InputError, match="must name a Dask scheduler that answers"), open_cluster(plain):
        pass


def test_plain_text_leaves_this_machine_only_when_told_to(run_here, monkeypatch):
    monkeypatch.setattr(clusters, "TIMEOUT", 0.5)  # nobody is there
    elsewhere = f"dask://{socket.gethostname()}:1"
    for address in (elsewhere, "dask://10.1.2.3:8786", "dask://[fe80::1]:8786", "dask://localhost.example.com:1"):
        assert_one_line_error(run_here("--engine", address), "--engine must be encrypted if it leaves this machine")
    assert_one_line_error(run_here("--engine", elsewhere, "--insecure"), "must name a Dask scheduler that answers")
    for address in ("dask://localhost:1", "dask://127.0.0.2:1", "dask://[::1]:1"):
        assert_one_line_error(run_here("--engine", address), "must name a Dask scheduler that answers")
