"""The service over HTTP: its addresses, who may use them, and how it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import ClientDisconnect

from .. import __version__
from ..core.errors import InputError, TacitError
from . import arrow, audits, heads
from .connections import PATIENCE
from .decisions import Decision, Query
from .documented import OPERATIONS, SECURITY, queries_operation
from .rows import Row, Rows
from .schedule import Schedule
from .session import ServiceSession
from .tokens import Token, Tokens

_log = logging.getLogger("uvicorn.error")
_Found = TypeVar("_Found")

LARGEST_TABLE = 2**26
"""Bytes of a table that is sent for an audit, which may be larger than other requests."""
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_REFRESH = 5.0
"""Seconds after which a process looks for what others have decided."""


class RefusedError(Exception):
    """A request that is refused, with its status and one line."""

    def __init__(self, status: int, line: str, **headers: str) -> None:
        super().__init__(line)
        self.status, self.line, self.headers = status, line, headers


class Service:
    """What all addresses share: the session, the tokens, the schedule and the counters.

    Parameters
    ----------
    session
        The session that is served.
    engine
        Where teachers vote: "local", or the address of a Dask or Ray cluster.
    rate
        Rows that one token may ask about in a second.
    largest
        Bytes of a request.
    """

    def __init__(self, session: ServiceSession, *, engine: str, rate: float, largest: int) -> None:
        self.session, self.rate, self.largest = session, rate, largest
        self.votes = session.served.teachers.standing(engine=engine)
        self.tokens = Tokens(session.served.folder)
        self.rows = Rows(session.served.columns)
        self.signer = heads.signer(session.served.folder)
        self.schedule: Schedule | None = None
        self.failed = ""
        self._left: dict[str, tuple[float, float]] = defaultdict(lambda: (rate, time.monotonic()))
        self.registry = CollectorRegistry()
        self.decided = Counter("tacit_decisions", "Queries by what was told", ["told"], registry=self.registry)
        self.refusals_left = Gauge("tacit_refusals_left", "Refusals until the end", registry=self.registry)
        self.seconds = Histogram("tacit_request_seconds", "Time to a response", ["path"], registry=self.registry)

    def decide(self, asked: list[tuple[object, str]]) -> list[Decision]:
        """Let teachers vote on rows, and decide; in a thread."""
        rows: list[Row] = [row for row, _ in asked]  # type: ignore[misc]
        counts = self.votes.counts(self.rows.numbers(rows))
        decisions, known = self.session.decisions, {token.name: token.quota for token in self.tokens.all()}
        # Whoever's token was taken back since the request began may ask nothing more.
        limits = known | {asker: 0 for _, asker in asked if asker not in known}
        decisions.quotas = {name: quota for name, quota in limits.items() if quota is not None}
        queries = [
            Query(decisions.identity(self.rows.content(row)), count, asker)
            for row, count, (_, asker) in zip(rows, counts, asked, strict=True)
        ]
        return decisions.decide(queries)

    async def answers(self, given: object, token: Token) -> list[Decision]:
        """Answers to rows: from the record at once, or else decided and on time."""
        rows = self.rows.read(given)
        self._pace(token, len(rows))
        decisions = self.session.decisions
        told = [decisions.known(decisions.identity(self.rows.content(row))) for row in rows]
        fresh = [row for row, known in zip(rows, told, strict=True) if known is None]
        if fresh:
            if self.schedule is None:
                raise RefusedError(503, "the service must have begun, got a query before; ask again in a second")
            try:
                decided = iter(await self.schedule.ask(fresh, token.name))
            except TacitError:  # of the ledger, or of a cluster; its words are for the owner
                self.failed = "queries cannot be decided and written"
                raise RefusedError(
                    503, "an answer must be decided and written before it leaves, got an error; ask again later"
                ) from None
            self.failed = ""
            told = [next(decided) if known is None else known for known in told]
        found = [one for one in told if one is not None]
        for one in found:
            self.decided.labels("recorded" if one.recorded else one.status).inc()
        return found

    def budget(self) -> dict[str, Any]:
        """What is left of the session."""
        decisions, mechanism = self.session.decisions, self.session.mechanism
        return {
            "epsilon": mechanism.epsilon,
            "delta": mechanism.delta,
            "answered": decisions.answered,
            "refused": decisions.refused,
            "refusals_left": mechanism.refusals - decisions.refused,
            "stopped": decisions.stopped,
        }

    def said(self, decision: Decision) -> dict[str, Any]:
        """A decision in JSON."""
        label = None if decision.answer is None else self.session.served.classes[decision.answer]
        return {"status": decision.status, "label": label, "recorded": decision.recorded}

    def token(self, request: Request, role: str) -> Token:
        """Whoever asks, if they may."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            found = self.tokens.find(text.strip()) if kind.lower() == "bearer" else None
        except InputError:  # which names a file of the owner's
            raise RefusedError(503, "the tokens must be readable, got an error; ask the owner") from None
        if found is None:
            raise RefusedError(
                401,
                "Authorization must be 'Bearer TOKEN' with a token of this service, got none that is known; "
                "ask the owner for one",
                **{"WWW-Authenticate": "Bearer"},
            )
        if not found.may(role):
            raise RefusedError(
                403, f"the role of the token must be {role}, got {found.role}; ask the owner for another"
            )
        return found

    def _pace(self, token: Token, rows: int) -> None:
        left, then = self._left[token.name]
        now = time.monotonic()
        left = min(max(self.rate, float(rows)), left + (now - then) * self.rate)
        if left < rows:
            wait = (rows - left) / self.rate
            raise RefusedError(
                429,
                f"a token must ask about at most {self.rate:g} rows a second, got more; ask again in {wait:.2f} s",
                **{"Retry-After": str(int(wait) + 1)},
            )
        self._left[token.name] = left - rows, now


async def body(request: Request, largest: int) -> bytes:
    """The body of a request, if it is not too large and arrives in as much time as its headers had."""
    refusal = RefusedError(413, f"a request must have {largest} bytes at most, got more; send it in parts")
    said = request.headers.get("content-length", "0")
    if not said.isdecimal() or int(said) > largest:
        raise refusal
    parts, size = [], 0
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    raise refusal
                parts.append(part)
    except TimeoutError:
        raise RefusedError(
            408, f"a request must arrive within {PATIENCE:g} s, got {size} bytes; send it again"
        ) from None
    return b"".join(parts)


async def while_connected(request: Request, work: Coroutine[Any, Any, _Found]) -> _Found:
    """What the work returns; it is stopped if whoever asked for it hangs up."""

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.create_task(work), asyncio.create_task(hung_up())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


def rows_in(content: bytes, kind: str) -> object:
    """The rows of a request in JSON or Arrow."""
    if kind == "application/vnd.apache.arrow.stream":
        return arrow.rows(content)
    if kind not in ("", "application/json"):
        raise RefusedError(
            415, f"Content-Type must be application/json or an Arrow stream, got {kind[:60]!r}; send JSON"
        )
    try:
        found = json.loads(content, parse_constant=_no_number, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError):
        raise RefusedError(
            422, 'the body must be JSON such as {"rows": [[1, 2]]}, with no key twice, got something else; correct it'
        ) from None
    if not isinstance(found, dict) or set(found) != {"rows"}:
        raise RefusedError(422, 'the body must be an object with the key "rows" alone, got something else; correct it')
    return found["rows"]


def _no_number(word: str) -> None:
    raise ValueError(word)


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def created(service: Service, *, page: Callable[[FastAPI, Service], None] | None = None) -> FastAPI:
    """The application.

    Parameters
    ----------
    service
        What it serves.
    page
        Adds the pages for people.

    Returns
    -------
    An application for any ASGI server.
    """

    @contextlib.asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.schedule = Schedule(service.decide, service.session.decisions.show, service.session.every)
        tasks = [asyncio.create_task(service.schedule.run()), asyncio.create_task(_refreshed(service))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.to_thread(service.votes.close)

    app = FastAPI(
        title="Tacit",
        version=__version__,
        summary="Private answers of teachers, and audits.",
        lifespan=running,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )

    @app.exception_handler(RefusedError)
    async def refused(_: Request, refusal: RefusedError) -> Response:
        return _refused(refusal.line, refusal.status, refusal.headers)

    @app.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> Response:
        return _refused(str(error), 422)

    @app.exception_handler(404)
    @app.exception_handler(405)
    async def nowhere(request: Request, error: Any) -> Response:
        line = f"an address must be one of /v1/openapi.json, got {request.method} {request.url.path[:80]}; see there"
        return _refused(line, error.status_code, error.headers)

    @app.post("/v1/queries", **queries_operation(service.rows.kinds))
    async def queries(request: Request) -> Response:
        token = service.token(request, "query")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        given = rows_in(await body(request, service.largest), kind)
        found = await service.answers(given, token)
        return JSONResponse({"answers": [service.said(one) for one in found], "budget": service.budget()})

    @app.get("/v1/service", **OPERATIONS["service"])
    async def about() -> Response:
        served, proven = service.session.served, service.session.guarantee
        return JSONResponse(
            {
                "session": service.session.name,
                "label": served.label,
                "classes": served.classes,
                "columns": [{"name": name, "kind": kind} for name, kind in service.rows.kinds.items()],
                "guarantee": proven.to_dict(),
                "answers_leave_every": service.session.every,
            }
        )

    @app.get("/v1/budget", **OPERATIONS["budget"])
    async def budget(request: Request) -> Response:
        token = service.token(request, "query") if not _audits(service, request) else None
        asked = service.session.decisions.asked_by
        yours = {} if token is None else {"asked": asked[token.name], "quota": token.quota}
        return JSONResponse({**service.budget(), "token": yours})

    @app.get("/v1/ledger", **OPERATIONS["ledger"])
    async def ledger(request: Request) -> Response:
        service.token(request, "auditor")
        return JSONResponse(await _read(lambda: heads.shown(service.session.ledger, service.signer)))

    @app.get("/v1/ledger/head", **OPERATIONS["head"])
    async def head(request: Request) -> Response:
        service.token(request, "auditor")
        return JSONResponse(await _read(lambda: heads.head(service.session.ledger, service.signer)))

    @app.post("/v1/audits", **OPERATIONS["audits"])
    async def audited(request: Request) -> Response:
        service.token(request, "auditor")
        asked = audits.asked(request.query_params)
        return JSONResponse(await while_connected(request, audits.audited(await body(request, LARGEST_TABLE), asked)))

    @app.get("/healthz", **OPERATIONS["health"])
    async def healthy() -> Response:
        return JSONResponse({"status": "alive"})

    @app.get("/readyz", **OPERATIONS["ready"])
    async def ready() -> Response:
        if service.failed:
            return _refused(service.failed, 503)
        return JSONResponse({"status": "stopped" if service.session.decisions.stopped else "ready"})

    @app.get("/metrics", **OPERATIONS["metrics"])
    async def metrics() -> Response:
        service.refusals_left.set(service.budget()["refusals_left"])
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    if page is not None:
        page(app, service)
    plain = app.openapi

    def described() -> dict[str, Any]:
        found = plain()
        found["components"] = SECURITY
        return found

    app.openapi = described  # type: ignore[method-assign]
    app.add_middleware(_Timed, service=service)
    return app


def _refused(line: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """One line; it may quote what somebody sent, which need not be text that can be encoded."""
    return JSONResponse({"error": line.encode(errors="replace").decode()}, status, headers=headers)


class _Timed:
    """Times requests, and has no answer stored or guessed at on the way; FastAPI's own middleware doubles the time.

    Errors end here: above, they would be logged with their words, which may quote a query or a record.
    """

    def __init__(self, app: Any, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        started = False

        async def sent(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except ClientDisconnect:
            return
        except Exception as error:
            _log.error("a request failed: %s at %s", type(error).__name__, _place(error))
            if not started:
                line = f"the service must not fail, got {type(error).__name__}; tell its owner"
                await _refused(line, 500)(scope, receive, sent)
        route = getattr(scope.get("route"), "path", "elsewhere")
        self._service.seconds.labels(route).observe(time.perf_counter() - began)


def _place(error: Exception) -> str:
    """The line of code that raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _audits(service: Service, request: Request) -> bool:
    """Whether an auditor asks, who may see the budget without asking queries."""
    with contextlib.suppress(RefusedError):
        return service.token(request, "auditor").role == "auditor"
    return False


async def _read(what: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return await asyncio.to_thread(what)
    except TacitError:
        raise RefusedError(503, "the ledger must be readable, got an error; ask again later") from None


async def _refreshed(service: Service) -> None:
    """Look for what other processes decide, so that their answers are recorded here as well."""
    while True:
        await asyncio.sleep(_REFRESH)
        try:
            await asyncio.to_thread(service.session.decisions.refresh)
            if service.schedule is not None:
                await service.schedule.moment()
            service.session.decisions.show()
            service.failed = ""
        except TacitError:
            service.failed = "the ledger cannot be read"
