"""`tacit serve`: open a session, and serve it until it is told to stop."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import validate
from ..core.errors import InputError, MissingExtraError
from ..runtime.files import existing
from ..runtime.private_files import own_bytes
from .session import ServiceSession

if TYPE_CHECKING:
    import uvicorn

    from .demonstration import Examples

HOST, PORT = "127.0.0.1", 8710
RATE, LARGEST_REQUEST = 1000.0, 2**20
LOCAL = ("127.0.0.1", "::1", "localhost")
"""Names of this machine, to which connections need not be encrypted."""


def server(
    session: ServiceSession,
    *,
    host: str = HOST,
    port: int = PORT,
    tls_certificate: Path | str | None = None,
    tls_key: Path | str | None = None,
    insecure: bool = False,
    engine: str = "local",
    rate: float = RATE,
    largest_request: int = LARGEST_REQUEST,
    examples: Examples | None = None,
    began: Callable[[int], None] = lambda _: None,
) -> uvicorn.Server:
    """A server for a session; `run()` serves until a signal.

    Parameters
    ----------
    session
        What `open_session` returned.
    host, port
        Where it listens.
    tls_certificate, tls_key
        Files in PEM, for HTTPS.
    insecure
        Allow HTTP for other machines, where tokens and queries can be read on the way.
    engine
        Where teachers vote: "local", or the address of a Dask or Ray cluster.
    rate
        Rows that one token may ask about in a second.
    largest_request
        Bytes of a request.
    examples
        Rows that the page shows to try.
    began
        Called with the port once it listens.

    Returns
    -------
    The server.
    """
    try:
        import uvicorn

        from .app import Service, created
        from .connections import Impatient
        from .page import add_pages
    except ImportError:
        raise MissingExtraError(
            "the service must have FastAPI and uvicorn, got no such packages; pip install 'tacit-privacy[service]'"
        ) from None
    if validate.whole("port", port, at_least=0, remedy="use 8710") > 65535:
        raise InputError("port", port, requirement="must be at most 65535", remedy="use 8710")
    if (tls_certificate is None) != (tls_key is None):
        raise InputError(
            "tls_key", tls_key, requirement="must be given together with the certificate", remedy="give both or neither"
        )
    if tls_certificate is None and host not in LOCAL and not insecure:
        raise InputError(
            "host",
            host,
            requirement="must be this machine unless the connection is encrypted",
            remedy="give `tls_certificate` and `tls_key`, or add `insecure=True` behind a proxy that encrypts",
        )
    if tls_certificate is not None and tls_key is not None:
        existing(Path(tls_certificate), "tls_certificate")
        own_bytes(Path(tls_key), "tls_key", remedy="chmod 600 it")
    rate = validate.number("rate", rate, above=0, remedy="use 1000")
    largest = validate.whole("largest_request", largest_request, at_least=1024, remedy="use 1048576")
    service = Service(session, engine=engine, rate=rate, largest=largest)

    class Announced(uvicorn.Server):
        """A server that says when it listens."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Begin to listen."""
            await super().startup(sockets)
            if self.started:
                began(self.servers[0].sockets[0].getsockname()[1])

    return Announced(
        uvicorn.Config(
            created(service, page=functools.partial(add_pages, examples=examples)),
            host=host,
            port=port,
            http=Impatient,
            ssl_certfile=tls_certificate,
            ssl_keyfile=tls_key,
            log_level="warning",
            access_log=False,  # addresses of requests may hold parameters
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,
            h11_max_incomplete_event_size=2**16,
        )
    )
