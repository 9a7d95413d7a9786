"""Where teachers are trained and vote, through joblib: local processes, a Dask cluster, or a Ray cluster.

A worker may die at any time: its unfinished jobs are done again. Of an exception that an estimator raises only the type
comes back, since its message may quote private records.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..core.errors import InputError, MissingExtraError
from . import clusters as engines

PATIENCE = 60.0
"""Seconds in which workers must be done with items that stay with them."""
RETRIES = 2
"""How often in a row an engine may fail without finishing a job."""


@dataclass(frozen=True)
class Failure:
    """The result of a job that raised an exception, with the name of its type."""

    kind: str


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Workers behind one of joblib's backends."""

    engine: str
    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cores(self) -> int:
        """How many jobs run at the same time."""
        import joblib

        with joblib.parallel_config(backend=self.backend, **self.options):
            return int(joblib.effective_n_jobs(-1))

    def outcomes(
        self, function: Callable[..., Any], numbers: Sequence[int], arguments: Callable[[int], tuple[Any, ...]]
    ) -> Generator[tuple[int, Any], None, None]:
        """Yield each number with function(*arguments(number)), or with a `Failure`, in the order of completion."""
        left, failures = dict.fromkeys(numbers), 0
        while left:
            with _closing(self._round(function, list(left), arguments)) as done:
                while True:
                    try:
                        number, outcome = next(done)
                    except StopIteration:
                        break
                    except Exception as failure:  # in the workers; exceptions of jobs are returned as `Failure`
                        failures += 1
                        if failures > RETRIES:
                            raise InputError(
                                "engine",
                                f"{self.engine}, which raised {type(failure).__name__}",
                                requirement="must run its jobs",
                                remedy="check that workers have enough memory, this tacit and the estimator's packages",
                            ) from None
                        break
                    del left[number]
                    failures = 0
                    yield number, outcome

    def _round(
        self, function: Callable[..., Any], numbers: Sequence[int], arguments: Callable[[int], tuple[Any, ...]]
    ) -> Generator[tuple[int, Any], None, None]:
        import joblib

        ray = self.backend == "ray"
        with joblib.parallel_config(backend=self.backend, **self.options):
            if self.backend == "dask":
                _never_here(joblib.parallel.get_active_backend()[0])
            parallel = joblib.Parallel(n_jobs=-1, batch_size=1, return_as="list" if ray else "generator_unordered")
        # Ray's backend returns nothing until all jobs are done, so it gets them in slices.
        size = 4 * self.cores if ray else len(numbers)
        with parallel:
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                yield from parallel(joblib.delayed(_run)(number, function, *arguments(number)) for number in part)


@contextlib.contextmanager
def _closing(outcomes: Generator[tuple[int, Any], None, None]) -> Iterator[Iterator[tuple[int, Any]]]:
    """Drop the jobs that are left, without joblib's warning."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _never_here(backend: Any) -> None:
    """Stop joblib from running jobs in this process, as it does while it sees one core only, e.g. during restarts."""
    cores = backend.effective_n_jobs
    backend.effective_n_jobs = lambda n_jobs: max(2, cores(n_jobs))


def _run(number: int, function: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    import joblib

    # One thread each: all cores are busy with jobs, and sums are added in the same order everywhere.
    with joblib.parallel_config(backend="sequential"), _thread_pools(len(sys.modules)).limit(limits=1):
        try:
            return number, function(*arguments)
        except Exception as failure:
            return number, Failure(type(failure).__name__)


@lru_cache(maxsize=1)
def _thread_pools(_modules: int) -> Any:
    """The thread pools of the libraries that are loaded. Finding them takes 10 ms: again only after further imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextlib.contextmanager
def open_workers(engine: str) -> Iterator[Workers]:
    """Open the workers of `local`, or of a cluster at tls://, dask:// or ray://HOST:PORT, which must respond first."""
    if not isinstance(engine, str):
        raise InputError("engine", engine, requirement="must be a string", remedy="use 'local'")
    if engine == "local":
        # New processes, not those that other code has started, so that their files are closed to other users too.
        yield Workers(engine=engine, backend="loky", options={"initializer": os.umask, "initargs": (0o077,)})
        return
    kind, host, port = engines.address(engine, kinds=("dask", "tls", "ray"), name="engine")
    if kind != "ray":
        with engines.client(engine, name="engine") as client:
            yield Workers(engine=engine, backend="dask", options={"client": client})
    else:
        with _ray(engine, host, port):
            yield Workers(engine=engine, backend="ray")


def packed(function: Callable[..., Any]) -> bytes:
    """A function with all that it holds, as processes of `local` get it."""
    from joblib.externals.loky.cloudpickle_wrapper import dumps  # where every version of joblib has it

    return bytes(dumps(function))


@contextlib.contextmanager
def resident(engine: str, items: Sequence[Any]) -> Iterator[Callable[..., list[Any]]]:
    """Send items to the workers of a cluster, in about as many parts as it has cores; they stay until this is closed.

    Yields
    ------
    `each(function, *arguments)`, which returns function(part, *arguments) for every part, in their order.
    """
    with open_workers(engine) as crowd:
        size = math.ceil(len(items) / max(1, crowd.cores))
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        call = _on_ray(parts) if crowd.backend == "ray" else _on_dask(parts, crowd.options["client"])

        def each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
            found = [outcome for _, outcome in call(function, *arguments)]
            failed = next((one.kind for one in found if isinstance(one, Failure)), None)
            if failed is not None:
                raise RuntimeError(failed)
            return found

        yield each


def _on_ray(parts: Sequence[Any]) -> Callable[..., list[tuple[int, Any]]]:
    import ray

    kept, run = [ray.put(part) for part in parts], ray.remote(_run)

    def call(function: Callable[..., Any], *arguments: Any) -> list[tuple[int, Any]]:
        jobs = [run.remote(number, function, part, *arguments) for number, part in enumerate(kept)]
        found: list[tuple[int, Any]] = ray.get(jobs, timeout=PATIENCE)
        return found

    return call


def _on_dask(parts: Sequence[Any], client: Any) -> Callable[..., list[tuple[int, Any]]]:
    from distributed.protocol import pickle

    # The results of tasks, which Dask can compute again; scattered data would die with its worker.
    kept = [client.submit(_unpacked, pickle.dumps(part), pure=False, retries=RETRIES) for part in parts]

    def call(function: Callable[..., Any], *arguments: Any) -> list[tuple[int, Any]]:
        jobs = [client.submit(_run, number, function, part, *arguments, pure=False) for number, part in enumerate(kept)]
        return [job.result(timeout=PATIENCE) for job in jobs]

    return call


def _unpacked(content: bytes) -> Any:
    """Bytes of this process, over the connection that carries its code anyway; no file is ever unpickled."""
    from distributed.protocol import pickle

    return pickle.loads(content)


@contextlib.contextmanager
def _ray(engine: str, host: str, port: int) -> Iterator[None]:
    try:
        import grpc  # noqa: F401 — needed by Ray's client
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingExtraError(
            f"`engine` {engine} must have Ray and its client, got no such packages; pip install 'tacit-privacy[ray]'"
        ) from None
    if ray.is_initialized():
        raise InputError(
            "engine",
            engine,
            requirement="must be the only Ray cluster that this process is connected to",
            remedy="call ray.shutdown() first",
        )
    with engines.silent("ray.client_builder"), engines.silent("ray.util.multiprocessing.pool"):
        try:
            socket.create_connection((host, port), timeout=engines.TIMEOUT).close()
            ray.init(engine.removeprefix(engines.INSECURE), log_to_driver=False)
        except Exception:  # not a Ray cluster, or another version of Ray
            raise InputError(
                "engine",
                engine,
                requirement="must name the client server of a Ray cluster with this version of Ray and Python",
                remedy="start it with `ray start --head`, or use `engine='local'`",
            ) from None
        try:
            register_ray()
            yield
        finally:
            ray.shutdown()
