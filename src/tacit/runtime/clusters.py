"""Where batches run: in this process, one after another, or on an existing Dask cluster, in any order.

Connections to a cluster are encrypted (tls://HOST:PORT), unless the cluster is on this machine. The prefix `INSECURE`
of an address states that everyone on its network is trusted instead.
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
"""Seconds to wait for a scheduler's response."""
RETRIES = 2
"""How often a failed batch is tried again; Dask itself handles the death of a worker, which does not count."""
AHEAD = 64
"""The least number of batches submitted ahead; all at once might be too many for the scheduler."""

INSECURE = "insecure+"
"""The prefix of an address that allows an unencrypted connection."""
_CERTIFICATES = ("ca-file", "client.cert", "client.key")
"""What Dask's configuration must set under distributed.comm.tls."""

Job = tuple[Any, ...]
Outcomes = Callable[[Callable[..., Any], Any, Sequence[Job]], Iterator[tuple[int, Any]]]
"""Takes a function, what all jobs share, and the jobs; yields the number and function(shared, *job) of each."""


@contextlib.contextmanager
def open_cluster(engine: str) -> Iterator[Outcomes]:
    """Open an engine: `local`, or a Dask cluster at `tls://HOST:PORT`, or at `dask://HOST:PORT` on this machine.

    A cluster must respond before anything is run.
    """
    if engine == "local":
        yield _here
        return
    address(engine, kinds=("dask", "tls"))
    with client(engine) as connected:
        yield lambda function, shared, jobs: _there(engine, connected, function, shared, jobs)


def address(engine: str, *, kinds: Sequence[str], name: str = "engine") -> tuple[str, str, int]:
    """Kind, host and port of KIND://HOST:PORT; refused if the kind is not allowed, or others could listen."""
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
            requirement="must be encrypted if it leaves this machine",
            remedy="give a Dask cluster certificates and write tls://HOST:PORT, set RAY_USE_TLS=1 for Ray; or, if "
            f"everyone on the network is trusted, write `{INSECURE}{kind}://HOST:PORT`",
        )
    return kind, host, port


def _encrypted(kind: str) -> bool:
    """Whether the connection is encrypted; for Ray, its own environment variable decides."""
    return kind == "tls" or (kind == "ray" and os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"))


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a host name, which may be anywhere
        return False


@contextlib.contextmanager
def client(engine: str, *, name: str = "engine") -> Iterator[Any]:
    """Connect to the Dask scheduler at tls://HOST:PORT or dask://HOST:PORT, which must respond."""
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingExtraError(
            f"`{name}` {engine} must have Dask, got no such package; pip install 'tacit-privacy[dask]'"
        ) from None
    where = engine.removeprefix(INSECURE).replace("dask://", "tcp://")
    missing = [key for key in _CERTIFICATES if not dask.config.get(f"distributed.comm.tls.{key}", None)]
    if where.startswith("tls://") and missing:
        raise InputError(
            f"`{name}` {engine}",
            f"none for {', '.join(missing)}",
            requirement="must have files for ca-file, client.cert and client.key of distributed.comm.tls",
            remedy="set them in Dask's configuration, or as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on",
        )
    _reach(engine, where, name)
    # What all jobs share is sent once, on purpose; Dask would warn about its size.
    with (
        silent("distributed.client"),
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}),
        distributed.Client(where, timeout=TIMEOUT, set_as_default=False) as connected,
    ):
        yield connected


def _reach(engine: str, address: str, name: str) -> None:
    """Check that a scheduler responds; a client would wait forever for a server that says nothing."""
    from distributed.comm.core import connect
    from distributed.security import Security

    async def greeting() -> None:
        async with asyncio.timeout(TIMEOUT):
            connection = await connect(address, timeout=TIMEOUT, **Security().get_connection_args("client"))
        await connection.close()

    try:
        asyncio.run(greeting())
    except Exception:  # another kind of server may respond with anything
        raise InputError(
            name,
            engine,
            requirement=f"must name a Dask scheduler that answers within {TIMEOUT:g} seconds",
            remedy=f"start it with `dask scheduler`, check that certificates match, or use `{name}='local'`",
        ) from None


@contextlib.contextmanager
def silent(logger_name: str) -> Iterator[None]:
    """Silence a logger: errors are reported here in one line."""
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

    # Sent by value, with bytes only: a worker that cannot unpickle a message dies, but one that lacks a package while
    # it runs this reports it. These bytes come from the driver, over the connection that carries its code anyway; no
    # file is ever unpickled.
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
        # The result of a task, which Dask can compute again; scattered data would die with its worker.
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
            "engine",
            engine,
            requirement="must stay up until all batches are done",
            remedy="start it again and continue with `resume=True`",
        ) from None
    except Exception as failure:  # anything that went wrong in the workers
        raise InputError(
            f"`engine` {engine}",
            failure,
            requirement="must run the batches",
            remedy="give its workers this tacit, torch and the model's packages, and continue with `resume=True`",
        ) from None
