"""Where batches run: here, one after another, or on a Dask cluster that runs already, in any order.

What goes to a cluster goes encrypted, as tls://HOST:PORT, unless the cluster is on this machine. `INSECURE` before an
address says that its whole network is trusted instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any

from ..core.errors import InputError, MissingExtraError, TacitError

TIMEOUT = 5.0
"""Seconds to wait for a scheduler's answer."""
RETRIES = 2
"""How often a batch that failed is tried again; a worker's death is mended by Dask itself, and does not count."""
AHEAD = 64
"""Batches, at the least, that a cluster is handed before the first is done; all of them may not fit its scheduler."""

INSECURE = "insecure+"
"""What stands before the address of a cluster that may be spoken to in plain text."""
_CERTIFICATES = ("ca-file", "client.cert", "client.key")
"""What Dask's configuration must say of its key distributed.comm.tls."""

Job = tuple[Any, ...]
Outcomes = Callable[[Callable[..., Any], Any, Sequence[Job]], Iterator[tuple[int, Any]]]
"""From a function, what all its jobs share, and the jobs: number and function(shared, *job) of each that is done."""


@contextlib.contextmanager
def open_cluster(engine: str) -> Iterator[Outcomes]:
    """What runs jobs on this engine, `local`, `tls://HOST:PORT` of a Dask cluster, or `dask://HOST:PORT` of one here.

    A cluster must answer before anything is run.
    """
    if engine == "local":
        yield _here
        return
    address(engine, kinds=("dask", "tls"))
    with client(engine) as connected:
        yield lambda function, shared, jobs: _there(engine, connected, function, shared, jobs)


def address(engine: str, *, kinds: Sequence[str], name: str = "--engine") -> tuple[str, str, int]:
    """Kind, host and port of KIND://HOST:PORT, where the kind is one of those given, and others cannot listen."""
    bare = engine.removeprefix(INSECURE)
    found = re.fullmatch(r"(\w+)://([^\s/:@\[\]]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", bare)
    if found is None or found[1] not in kinds or not 0 < int(found[3]) < 2**16:
        wanted = " or ".join(["local", *(f"{kind}://HOST:PORT" for kind in kinds)])
        raise InputError(name, engine, requirement=f"must be {wanted}", remedy="give the scheduler's address")
    kind, host, port = found[1], found[2].strip("[]"), int(found[3])
    if engine == bare and not _encrypted(kind) and not _loopback(host):
        raise InputError(
            name,
            engine,
            requirement="must be encrypted where it leaves this machine",
            remedy="give a Dask cluster certificates and write tls://HOST:PORT, set RAY_USE_TLS=1 for Ray; or, where "
            f"everyone on the network is trusted, add --insecure (in Python, write {INSECURE}{kind}://HOST:PORT)",
        )
    return kind, host, port


def _encrypted(kind: str) -> bool:
    """Whether others cannot read what is sent; Ray's own variables say so of Ray."""
    return kind == "tls" or (kind == "ray" and os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"))


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may lead anywhere
        return False


@contextlib.contextmanager
def client(engine: str, *, name: str = "--engine") -> Iterator[Any]:
    """A client of the Dask scheduler at tls://HOST:PORT or dask://HOST:PORT, which must answer."""
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingExtraError(
            f"{name} {engine} must have Dask, got no such package; pip install '.[dask]' in Tacit's checkout"
        ) from None
    where = engine.removeprefix(INSECURE).replace("dask://", "tcp://")
    missing = [key for key in _CERTIFICATES if not dask.config.get(f"distributed.comm.tls.{key}", None)]
    if where.startswith("tls://") and missing:
        raise InputError(
            f"{name} {engine}",
            f"none for {', '.join(missing)}",
            requirement="must have files for ca-file, client.cert and client.key of distributed.comm.tls",
            remedy="set them in Dask's configuration, or as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on",
        )
    _reach(engine, where, name)
    # What all jobs share is sent once, on purpose; Dask would warn of its size.
    with (
        silent("distributed.client"),
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}),
        distributed.Client(where, timeout=TIMEOUT, set_as_default=False) as connected,
    ):
        yield connected


def _reach(engine: str, address: str, name: str) -> None:
    """A client waits without end for a server that is no scheduler and says nothing; this does not."""
    from distributed.comm.core import connect
    from distributed.security import Security

    async def greeting() -> None:
        async with asyncio.timeout(TIMEOUT):
            connection = await connect(address, timeout=TIMEOUT, **Security().get_connection_args("client"))
        await connection.close()

    try:
        asyncio.run(greeting())
    except Exception:  # a server that is no scheduler may answer with anything
        raise InputError(
            name,
            engine,
            requirement=f"must name a Dask scheduler that answers within {TIMEOUT:g} seconds",
            remedy=f"start it with `dask scheduler`, see that certificates fit, or use {name} local",
        ) from None


@contextlib.contextmanager
def silent(logger_name: str) -> Iterator[None]:
    """What a cluster's client says at length is said here in a line."""
    logger = logging.getLogger(logger_name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _here(function: Callable[..., Any], shared: Any, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    return ((number, function(shared, *job)) for number, job in enumerate(jobs))


def _there(
    engine: str, client: Any, function: Callable[..., Any], shared: Any, jobs: Sequence[Job]
) -> Iterator[tuple[int, Any]]:
    from distributed import as_completed
    from distributed.protocol import pickle

    numbers: dict[Any, int] = {}

    # Sent by value, with bytes alone: a worker that cannot read a message dies of it, one that lacks a package while
    # it runs this says so. These bytes come from the driver, over the connection that carries its code anyway: no file
    # is ever unpickled.
    def run(shared: bytes, job: bytes) -> Any:
        from distributed.protocol import pickle

        function, arguments = pickle.loads(job)
        return function(pickle.loads(shared), *arguments)

    def submitted() -> Iterator[Any]:
        for number, job in enumerate(jobs):
            future = client.submit(run, held, pickle.dumps((function, job)), pure=False, retries=RETRIES)
            numbers[future] = number
            yield future

    try:
        # A task's result, which Dask makes again, not scattered data, which dies with the worker that holds it.
        held = client.submit(bytes, pickle.dumps(shared), pure=False, retries=RETRIES)
        ahead, more = max(AHEAD, 2 * sum(client.nthreads().values())), submitted()
        done = as_completed(islice(more, ahead), loop=client.loop)
        for future in done:
            yield numbers.pop(future), future.result()
            done.update(islice(more, 1))
    except TacitError:
        raise
    except CancelledError:
        raise InputError(
            "--engine",
            engine,
            requirement="must be there until all batches are done",
            remedy="start it again and go on with --resume",
        ) from None
    except Exception as failure:  # whatever the workers ran into
        raise InputError(
            f"--engine {engine}",
            failure,
            requirement="must run the batches",
            remedy="give its workers this tacit, torch and the model's packages, and go on with --resume",
        ) from None
