"""The page for people who do not live in a terminal.

It is made on the server and can be read without JavaScript; the few lines of script move the plan while its slider is
dragged. Nothing comes from elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from .. import __version__
from ..core.errors import InputError, TacitError
from ..report.document import MARKS
from ..report.rendering import template
from . import audits, forms, heads, shown
from .app import LARGEST_TABLE, RefusedError, Service, body, while_connected
from .decisions import Decision
from .logins import SECONDS, Logins
from .rows import MOST_ROWS
from .tokens import Token

if TYPE_CHECKING:
    from .demonstration import Examples

MOST_INPUTS = 12
"""Columns up to which each has an input of its own."""
_MOST_PICTURES = 20
_TOLD = {
    "answered": "answered",
    "refused": "refused: too few teachers agree",
    "spent": "not asked: the session has ended",
    "quota": "not asked: your quota is used up",
}


def add_pages(app: FastAPI, service: Service, *, examples: Examples | None = None) -> None:
    """Add the page to the application.

    Parameters
    ----------
    app
        The application.
    service
        What it serves.
    examples
        Rows to begin with.
    """
    page = _Page(service, examples)
    for method, path, handler in (
        ("GET", "/", page.overview),
        ("POST", "/login", page.login),
        ("POST", "/logout", page.logout),
        ("POST", "/ask", page.ask),
        ("GET", "/plan", page.plan),
        ("GET", "/ledger", page.ledger),
        ("GET", "/ledger.json", page.ledger_file),
        ("GET", "/ledger-head.json", page.head_file),
        ("POST", "/audit", page.audit),
    ):
        app.add_api_route(path, page.answering(handler), methods=[method], include_in_schema=False)


class _Page:
    """The handlers of all addresses of the page."""

    def __init__(self, service: Service, examples: Examples | None) -> None:
        self._service, self._examples = service, examples
        self._logins = Logins(service.tokens)
        self._about = shown.about(service.session)
        self._planning = asyncio.Lock()

    def answering(
        self, handler: Callable[[Request, Token | None], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The handler, with errors shown as one line on the page."""

        async def answer(request: Request) -> Response:
            who = self._logins.find(_login(request))
            try:
                if request.method == "POST":
                    _from_here(request)
                return await handler(request, who)
            except RefusedError as refusal:
                return await self._shown(request, who, error=refusal.line, status=refusal.status)
            except InputError as error:
                return await self._shown(request, who, error=str(error), status=422)

        return answer

    async def overview(self, request: Request, who: Token | None) -> Response:
        """The page itself."""
        return await self._shown(request, who)

    async def login(self, request: Request, _: Token | None) -> Response:
        """Take a token, and give a cookie for it."""
        form = await self._form(request)
        token = self._service.tokens.find(form.texts.get("token", "").strip())
        if token is None:
            raise RefusedError(
                401, "the token must be one of this service, got none that is known; ask the owner for one"
            )
        self._logins.end(_login(request))
        response = RedirectResponse("/", 303)
        response.set_cookie(
            _cookie(request),
            self._logins.begin(token),
            max_age=int(SECONDS),
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def logout(self, request: Request, _: Token | None) -> Response:
        """Forget the login."""
        self._logins.end(_login(request))
        response = RedirectResponse("/", 303)
        response.delete_cookie(_cookie(request), path="/", secure=request.url.scheme == "https", httponly=True)
        return response

    async def ask(self, request: Request, who: Token | None) -> Response:
        """Ask about a row from the form, or rows from a file."""
        token = _must(who, "query")
        form = await self._form(request)
        known = self._service.rows
        asked: dict[str, Any] = {"texts": form.texts, "answers": None, "error": ""}
        try:
            if "file" in form.files:
                content = form.files["file"]
                if not content:
                    raise InputError("the file", "none", requirement="must be chosen", remedy="choose a CSV file")
                rows = forms.rows(_text(content), known)
            elif "rows" in form.texts:
                rows = forms.rows(form.texts["rows"], known)
            else:
                rows = [forms.values([form.texts.get(f"column-{i}", "") for i in range(len(known.names))], known)]
            decisions = await self._service.answers(rows, token)
        except (InputError, RefusedError) as error:
            status = error.status if isinstance(error, RefusedError) else 422
            return await self._shown(request, token, status=status, asked={**asked, "error": _line(error)})
        return await self._shown(request, token, asked={**asked, **self._answers(rows, decisions)})

    async def plan(self, request: Request, who: Token | None) -> Response:
        """What `tacit plan` says about the numbers in the form; the whole page, or that part of it alone."""
        token = _must(who, None)
        given = {name: request.query_params.get(name, default) for name, default in shown.PLAN.items()}
        found: dict[str, Any] = {"given": given, "report": None, "error": ""}
        try:
            # One at a time: a plan takes a processor for a second.
            async with self._planning:
                classes = len(self._service.session.served.classes)
                found["report"] = await asyncio.to_thread(shown.plan, given, classes=classes)
        except TacitError as error:
            found["error"] = _line(error)
        status = 422 if found["error"] else 200
        if "part" in request.query_params:
            return _html(template("plan.html.j2", room="service").render(**_words(), plan=found), status)
        return await self._shown(request, token, status=status, plan=found)

    async def ledger(self, request: Request, who: Token | None) -> Response:
        """The page with the whole ledger."""
        return await self._shown(request, _must(who, "auditor"), whole=True)

    async def ledger_file(self, _: Request, who: Token | None) -> Response:
        """The ledger as a file."""
        _must(who, "auditor")
        return _file(await self._read(self._service.session.ledger.to_dict), "ledger.json")

    async def head_file(self, _: Request, who: Token | None) -> Response:
        """The signed head as a file."""
        _must(who, "auditor")
        session, signer = self._service.session, self._service.signer
        return _file(await self._read(lambda: heads.head(session.ledger, signer)), "ledger-head.json")

    async def audit(self, request: Request, who: Token | None) -> Response:
        """Audit a table that somebody sends."""
        token = _must(who, "auditor")
        form = await self._form(request, LARGEST_TABLE)
        audited: dict[str, Any] = {"texts": form.texts, "error": "", "report": None}
        try:
            content = form.files.get("table", b"")
            if not content:
                raise InputError("the table", "none", requirement="must be chosen", remedy="choose a file")
            names = {name: form.texts.get(name, "").strip() for name in ("secret", "output")}
            for name, value in names.items():
                if not value:
                    raise InputError(
                        name, value, requirement="must name a column of the table", remedy="write its name"
                    )
            found = await while_connected(request, audits.audited(content, audits.asked(names)))
            audited |= {
                "report": found["report"],
                "report_address": _data("text/html", found["report"]),
                "certificate_address": _data("application/json", json.dumps(found["certificate"], indent=1)),
            }
        except InputError as error:
            audited["error"] = f"{_line(error)} (choose the file again: browsers forget it)"
        return await self._shown(request, token, status=422 if audited["error"] else 200, audited=audited)

    async def _shown(self, request: Request, who: Token | None, *, status: int = 200, **parts: Any) -> Response:
        """The whole page, with what was asked for in its parts."""
        may = {role: who is not None and who.may(role) for role in ("query", "auditor")}
        session, service = self._service.session, self._service
        context: dict[str, Any] = {
            "about": self._about,
            "who": who,
            "may": may,
            "error": "",
            "budget": service.budget(),
            "steps": shown.refusals(session) if who else None,
            "asked_by_you": session.decisions.asked_by[who.name] if who else 0,
            "most": session.mechanism.refusals,
            "columns": self._columns(),
            "most_rows": MOST_ROWS,
            "inputs": len(service.rows.names) <= MOST_INPUTS,
            "example": self._example(request),
            "asked": {"texts": {}, "answers": None, "error": ""},
            "plan": {"given": shown.PLAN, "report": None, "error": ""},
            "audited": {"texts": {}, "error": "", "report": None},
            "ledger": None,
            "nonce": secrets.token_urlsafe(16),
            **parts,
        }
        if may["auditor"]:
            try:
                context["ledger"] = await self._read(lambda: shown.ledger(session, whole=bool(parts.get("whole"))))
            except RefusedError as refusal:
                context["error"] = context["error"] or refusal.line
        text = template("page.html.j2", room="service").render(**_words(), **context)
        # The report of an audit is a page with styles of its own, in a frame that inherits this policy.
        styles = "'unsafe-inline'" if context["audited"]["report"] else f"'nonce-{context['nonce']}'"
        return _html(text, status, nonce=context["nonce"], styles=styles)

    async def _form(self, request: Request, largest: int | None = None) -> forms.Form:
        content = await body(request, largest or self._service.largest)
        return forms.read(content, request.headers.get("content-type", ""))

    async def _read(self, what: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return await asyncio.to_thread(what)
        except TacitError:  # its words are for the owner
            raise RefusedError(503, "the ledger must be readable, got an error; ask again later") from None

    def _columns(self) -> list[dict[str, Any]]:
        """Each column with its kind and an ordinary value, which depends on public records alone."""
        rule = self._service.rows.columns
        return [
            {"name": name, "number": True, "ordinary": f"{rule.numeric_[name][0]:g}", "words": []}
            if name in rule.numeric_
            else {"name": name, "number": False, "ordinary": "", "words": rule.categories_[name]}
            for name in self._service.rows.names
        ]

    def _example(self, request: Request) -> dict[str, Any] | None:
        """The example that was asked for, as the form takes it."""
        if self._examples is None:
            return None
        said = request.query_params.get("example", "0")
        number = int(said) % len(self._examples.rows) if said.isdecimal() and len(said) < 10 else 0
        row = [self._examples.rows[number][name] for name in self._service.rows.names]
        return {"number": number, "texts": [_short(value) for value in row]}

    def _answers(self, rows: list[list[Any]], decisions: list[Decision]) -> dict[str, Any]:
        """The answers as a table, and as a file."""
        said = [self._service.said(one) for one in decisions]
        buffer = io.StringIO(newline="")
        table = csv.writer(buffer)
        table.writerow(["row", self._service.session.served.label, "status", "recorded"])
        for number, one in enumerate(said, start=1):
            table.writerow([number, one["label"], one["status"], one["recorded"]])
        pictured = self._examples is not None and len(rows) <= _MOST_PICTURES
        answers = [
            {
                **one,
                "told": _TOLD[one["status"]],
                "row": [_short(value) for value in row],
                "picture": self._examples.picture(row) if pictured and self._examples is not None else None,
            }
            for row, one in zip(rows, said, strict=True)
        ]
        return {"answers": answers, "address": _data("text/csv", buffer.getvalue())}


def _must(who: Token | None, role: str | None) -> Token:
    """Whoever is logged in, if they may."""
    if who is None:
        raise RefusedError(401, "whoever asks for this must have logged in, got no login or one that has ended; log in")
    if role is not None and not who.may(role):
        raise RefusedError(403, f"the role of the token must be {role}, got {who.role}; ask the owner for another")
    return who


def _from_here(request: Request) -> None:
    """Refuse forms that other sites send.

    The cookie is SameSite=Strict, so browsers do not send it with them; that alone protects what a login may do. Where
    the browser says where a form comes from, it is compared as well, which also covers the login itself.
    """
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != host):
        raise RefusedError(
            403, "a form must be sent by this page, got one from elsewhere; open the page and send it there"
        )


def _cookie(request: Request) -> str:
    """The name of the cookie; browsers let no other host set one whose name begins with __Host-."""
    return "__Host-tacit" if request.url.scheme == "https" else "tacit"


def _login(request: Request) -> str:
    found: SimpleCookie = SimpleCookie()
    found.load(request.headers.get("cookie", ""))
    name = _cookie(request)
    return found[name].value if name in found else ""


def _html(text: str, status: int, *, nonce: str = "", styles: str = "'none'") -> Response:
    rules = (
        "default-src 'none'",
        f"script-src 'nonce-{nonce}'" if nonce else "script-src 'none'",
        f"style-src {styles}",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    headers = {"Content-Security-Policy": "; ".join(rules), "Referrer-Policy": "same-origin"}
    return HTMLResponse(text, status, headers=headers)


def _file(content: Mapping[str, Any], name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(json.dumps(content, indent=1) + "\n", media_type="application/json", headers=headers)


def _data(kind: str, text: str) -> str:
    """An address that holds the file itself, so that the server need not keep it."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _words() -> dict[str, Any]:
    """What templates of reports expect beside the report."""
    return {"marks": MARKS, "capital": lambda text: text[:1].upper() + text[1:], "linked": str, "version": __version__}


def _line(error: Exception) -> str:
    return error.line if isinstance(error, RefusedError) else str(error)


def _short(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputError(
            "the file", "other bytes", requirement="must be CSV in UTF-8", remedy="save the table as CSV in UTF-8"
        ) from None
