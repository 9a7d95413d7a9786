"""Requests that are wrong in every way, to a real server: one clear line each, and others are served meanwhile."""

import contextlib
import http.client
import json
import re
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from listening import listening
from serving import SVT, Judge, Served, ask, links, rows

from tacit.service import app, connections
from tacit.service.session import open_session
from tacit.service.tokens import Tokens

ARROW = "application/vnd.apache.arrow.stream"
READABLE = ("/v1/ledger", "/v1/budget", "/v1/service", "/metrics")
ROW = [0.5, -0.25, 1.0, 0.125, "Oslo"]


@pytest.fixture(scope="module")
def doors(run):
    """A server with one token for each role."""
    tokens = Tokens(run)
    texts = {role: tokens.add(f"doors-{role}", role=role) for role in ("query", "auditor", "admin")}
    with listening(open_session(run, session="doors", every=0.01, **SVT), rate=100_000) as address:
        yield int(address.rpartition(":")[2]), texts


def sent(port, method, path, body=None, *, token=None, kind="application/json", **headers):
    """Status, body and headers of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers.setdefault("Content-Type", kind)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read(), dict(response.headers)
    finally:
        connection.close()


def line_of(found, status):
    """The one line of a refusal, after checking its form."""
    assert found[0] == status, found
    assert found[2]["cache-control"] == "no-store"
    said = json.loads(found[1])
    assert said.keys() == {"error"}
    line = said["error"]
    assert "\n" not in line
    assert len(line) < 600
    assert re.search(r" must .*, got .*; ", line), line
    return line


def raw(port, *parts, pause=0.0):
    """What a server says to bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(pause)
        found = b""
        try:
            while b"\r\n\r\n" not in found and (part := connection.recv(65536)):
                found += part
        except ConnectionResetError:
            pass
    return found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"rows"',
        b"{}",
        b'{"rows": [[1]], "more": 1}',
        b'{"rows": [[0,0,0,0,"Oslo"]], "rows": [[1,0,0,0,"Oslo"]]}',
        b'{"rows": [{"age": 1, "age": 2, "dose": 0, "weight": 0, "pulse": 0, "town": "Oslo"}]}',
        b'{"rows": [[NaN,0,0,0,"Oslo"]]}',
        b'{"rows": [[Infinity,0,0,0,"Oslo"]]}',
        b'{"rows": [[-Infinity,0,0,0,"Oslo"]]}',
        b'{"rows": [[' + b"9" * 5000 + b',0,0,0,"Oslo"]]}',
        b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"rows": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b"\xff\xfe\x00",
        b'{"rows": [[0,0,0,0,"Oslo"]]} trailing',
    ],
    ids=range(17),
)
def test_what_is_no_json_of_rows_gets_one_line(doors, body):
    port, tokens = doors
    assert "the body" in line_of(sent(port, "POST", "/v1/queries", body, token=tokens["query"]), 422)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "1 to 500 rows"),
        ([ROW] * 501, "501 rows"),
        ({"age": 1}, "list of 1 to 500 rows"),
        (None, "NoneType"),
        ([ROW[:4]], "must have 5 values"),
        ([[*ROW, 1]], "must have 5 values"),
        ([5], "rows[0]"),
        ([ROW, "row"], "rows[1]"),
        ([[1e999, *ROW[1:]]], "rows[0].age"),
        ([[10**400, *ROW[1:]]], "rows[0].age"),
        ([["1", *ROW[1:]]], "rows[0].age"),
        ([[True, *ROW[1:]]], "rows[0].age"),
        ([[[1], *ROW[1:]]], "rows[0].age"),
        ([[*ROW[:4], "x" * 1001]], "rows[0].town"),
        ([[*ROW[:4], {"a": 1}]], "rows[0].town"),
        ([dict(zip(["aeg", "dose", "weight", "pulse", "town"], ROW, strict=True))], "did you mean 'age'"),
        ([{"age": 1}], "no dose"),
        ([{"\ud800": 1}], "rows[0]"),
        ([{"x" * 100_000: 1}], "rows[0]"),
        ([[*ROW[:4], ["\udfff"]]], "rows[0].town"),
    ],
    ids=range(20),
)
def test_what_is_no_row_gets_one_line(doors, given, says):
    port, tokens = doors
    body = json.dumps({"rows": given}).replace("Infinity", "1e999")
    line = line_of(sent(port, "POST", "/v1/queries", body, token=tokens["query"]), 422)
    assert says in line


def test_numbers_and_text_of_any_size_that_fit_are_answered(doors):
    port, tokens = doors
    wanted = [
        [5e-324, -0.0, 1.7976931348623157e308, -(10**300), "Oslo"],
        [None, None, None, None, None],
        [0, 0, 0, 0, "nowhere \u0000 \ud800 \U0001f9ea"],
        [0, 0, 0, 0, 1.5],
    ]
    found = sent(port, "POST", "/v1/queries", json.dumps({"rows": wanted}), token=tokens["query"])
    assert found[0] == 200
    assert {one["status"] for one in json.loads(found[1])["answers"]} <= {"answered", "refused"}


def test_bodies_that_are_too_large_are_refused_before_they_are_read(doors):
    port, tokens = doors
    head = f"POST /v1/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens['query']}\r\n".encode()
    for length in (b"1048577", b"99999999999999999999"):
        assert b" 413 " in raw(port, head + b"Content-Length: " + length + b"\r\n\r\n").partition(b"\r\n")[0]
    for length in (b"9" * 5000, b"-1", b"1_0", b"one"):
        said = raw(port, head + b"Content-Length: " + length + b"\r\n\r\n")
        assert b" 400 " in said.partition(b"\r\n")[0]
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    said = raw(port, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 40, b"0\r\n\r\n")
    assert b" 413 " in said.partition(b"\r\n")[0]
    small = b'{"rows": [[0, 0, 0, 0, "Oslo"]]}'
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(small), small)
    said = raw(port, head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)
    assert b" 200 " in said.partition(b"\r\n")[0]


def test_what_is_no_http_is_refused(doors):
    port, _ = doors
    for nonsense in (b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00" * 50 + b"\r\n\r\n"):
        assert b" 400 " in raw(port, nonsense).partition(b"\r\n")[0]
    assert b" 400 " in raw(port, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 2**17 + b"\r\n\r\n").partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer tacit_wrong"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer \xff\xfe"},
        {"Authorization": "Bearer " + "x" * 10_000},
    ],
    ids=range(7),
)
def test_without_a_known_token_nothing_is_told(doors, headers):
    port, _ = doors
    for method, path in (
        *(("POST", "/v1/queries"), ("POST", "/v1/audits?secret=a&output=b")),
        *(("GET", "/v1/budget"), ("GET", "/v1/ledger"), ("GET", "/v1/ledger/head")),
    ):
        found = sent(port, method, path, b"{" if method == "POST" else None, **headers)
        assert "Bearer" in line_of(found, 401)
        assert found[2]["www-authenticate"] == "Bearer"


def test_roles_open_what_they_should(doors):
    port, tokens = doors
    body = json.dumps({"rows": [ROW]})
    for role, path, status in (
        *(("query", "/v1/ledger", 403), ("query", "/v1/ledger/head", 403), ("query", "/v1/budget", 200)),
        *(("auditor", "/v1/ledger", 200), ("auditor", "/v1/ledger/head", 200), ("auditor", "/v1/budget", 200)),
        *(("admin", "/v1/ledger", 200), ("admin", "/v1/budget", 200)),
    ):
        found = sent(port, "GET", path, token=tokens[role])
        assert found[0] == status, (role, path)
        if status == 403:
            assert "role" in line_of(found, 403)
    assert "role" in line_of(sent(port, "POST", "/v1/queries", body, token=tokens["auditor"]), 403)
    assert "role" in line_of(sent(port, "POST", "/v1/audits?secret=a&output=b", b"", token=tokens["query"]), 403)


def test_other_addresses_methods_and_kinds_get_one_line(doors):
    port, tokens = doors
    assert "openapi" in line_of(sent(port, "GET", "/v2/queries"), 404)
    assert "openapi" in line_of(sent(port, "GET", "/" + "x" * 5000), 404)
    assert "openapi" in line_of(sent(port, "GET", "/v1/queries"), 405)
    assert "openapi" in line_of(sent(port, "DELETE", "/v1/ledger"), 405)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x" * 5000):
        found = sent(port, "POST", "/v1/queries", json.dumps({"rows": [ROW]}), token=tokens["query"], kind=kind)
        assert "Content-Type" in line_of(found, 415)
    for query in ("", "?secret=a", "?secret=a&output=", "?secret=a&output=b&more=c"):
        line_of(sent(port, "POST", f"/v1/audits{query}", b"a,b\n", token=tokens["auditor"], kind="text/csv"), 422)


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def table(*wanted):
    names = ["age", "dose", "weight", "pulse", "town"]
    return pa.table({name: [row[place] for row in wanted] for place, name in enumerate(names)})


def test_rows_in_arrow_are_the_same_as_in_json(doors):
    port, tokens = doors
    wanted = rows(20, np.random.default_rng(8))
    first = sent(port, "POST", "/v1/queries", json.dumps({"rows": wanted}), token=tokens["query"])
    second = sent(port, "POST", "/v1/queries", stream(table(*wanted)), token=tokens["query"], kind=ARROW)
    assert first[0] == second[0] == 200
    told, again = (json.loads(one[1])["answers"] for one in (first, second))
    assert all(one["recorded"] for one in again)
    assert [one["label"] for one in again] == [one["label"] for one in told]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"rows": []}',
        stream(table(ROW))[:-30],
        stream(table(*[ROW] * 501)),
        stream(table(ROW), compression="zstd"),
        stream(table(ROW).set_column(4, "town", pa.array(["x" * 99]).dictionary_encode()), compression="lz4"),
        stream(table(ROW).drop_columns("town")),
        stream(table(ROW).set_column(0, "age", pa.array([[1.0]]))),
        stream(table(ROW).set_column(0, "age", pa.array([float("nan")]))),
        stream(pa.table({"age": pa.nulls(10**7)})),
        stream(pa.table([[1.0], [2.0]], names=["age", "age"])),
    ],
    ids=range(11),
)
def test_arrow_that_cannot_be_rows_gets_one_line(doors, body):
    port, tokens = doors
    line_of(sent(port, "POST", "/v1/queries", body, token=tokens["query"], kind=ARROW), 422)


def test_arrow_with_broken_bytes_breaks_nothing(doors):
    port, tokens = doors
    whole, random = stream(table(*rows(3, np.random.default_rng(9)))), np.random.default_rng(10)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {tokens['query']}", "Content-Type": ARROW}
    seen = set()
    for _ in range(300):
        body = bytearray(whole)
        for place in random.integers(len(body), size=random.integers(1, 5)):
            body[place] = random.integers(256)
        connection.request("POST", "/v1/queries", bytes(body), headers)
        response = connection.getresponse()
        assert response.status in (200, 422), response.read()
        seen.add(response.status)
        response.read()
    connection.close()
    assert seen == {200, 422}


def test_slow_clients_do_not_keep_others_waiting_and_are_sent_away(doors, monkeypatch):
    """Fifty send a byte at a time; somebody else is answered as ever."""
    port, tokens = doors
    monkeypatch.setattr(app, "PATIENCE", 1.0)
    head = (
        f"POST /v1/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens['query']}\r\nContent-Length: 99\r\n\r\n"
    )

    def taken():
        began = time.monotonic()
        status, _ = ask(good, tokens["query"], [ROW])
        assert status == 200
        return time.monotonic() - began

    good = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    alone = sorted(taken() for _ in range(40))[20]
    with ThreadPoolExecutor(50) as pool:
        slow = [pool.submit(raw, port, head.encode(), *[b" "] * 30, pause=0.1) for _ in range(50)]
        time.sleep(0.3)
        beside = sorted(taken() for _ in range(40))[20]
        said = [one.result() for one in slow]
    good.close()
    assert beside < 20 * alone + 0.5  # not the seconds that the others take
    assert all(b" 408 " in one.partition(b"\r\n")[0] for one in said)


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"])
@pytest.mark.parametrize("head", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_whoever_never_ends_its_headers_is_sent_away(doors, monkeypatch, before, head):
    """At first, and on a connection on which something was asked before; but not who asks nothing more for a while."""
    monkeypatch.setattr(connections, "PATIENCE", 0.5)
    ended = threading.Event()
    with socket.create_connection(("127.0.0.1", doors[0]), timeout=60) as connection:

        def go_on():
            with contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    connection.sendall(head[-1:])

        connection.sendall(before)
        if before:
            answer = b""
            while not answer.endswith(b"}"):  # it may come in parts
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 OK")
        connection.sendall(head)
        sending = threading.Thread(target=go_on)
        sending.start()
        try:
            if before and not head:
                connection.settimeout(2)
                with pytest.raises(TimeoutError):
                    connection.recv(65536)
            else:
                with contextlib.suppress(ConnectionResetError):
                    assert connection.recv(65536) == b""
        finally:
            ended.set()
            sending.join()


def test_an_audit_ends_with_the_connection_that_asked_for_it(doors, monkeypatch, tmp_path):
    """The command is one that would take ten minutes."""
    port, tokens = doors
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(endless))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def wait(present):
        deadline = time.monotonic() + 60
        while bool(list(tmp_path.glob("tacit-audit-*/table.csv"))) != present:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {tokens['auditor']}", "Content-Type": "text/csv"}
    for _ in range(2):  # the second is not kept waiting by the first
        connection.request("POST", "/v1/audits?secret=a&output=b", b"a,b\n1,2\n", headers)
        wait(present=True)
        connection.close()
        wait(present=False)


def test_a_table_that_cannot_be_audited_is_told_in_the_words_of_the_command(doors):
    port, tokens = doors
    table = b"a,b\n" + b"1,2\n0,1\n" * 20
    found = sent(port, "POST", "/v1/audits?secret=a&output=c", table, token=tokens["auditor"], kind="text/csv")
    line = line_of(found, 422)
    assert line.count(" must ") == line.count(", got ") == 1
    assert "'c'" in line
    assert "table.csv" not in line
    assert "tacit-audit-" not in line


def test_a_token_that_is_removed_opens_nothing_at_once(doors, run):
    port, _ = doors
    text = Tokens(run).add("doors-short-lived")
    body = json.dumps({"rows": [ROW]})
    assert sent(port, "POST", "/v1/queries", body, token=text)[0] == 200
    Tokens(run).remove("doors-short-lived")
    line_of(sent(port, "POST", "/v1/queries", body, token=text), 401)


def test_quotas_are_exact_however_many_ask_at_once(doors, run):
    port, _ = doors
    quota, each = 50, 10
    text = Tokens(run).add("doors-quota", quota=quota)

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        wanted = rows(each, np.random.default_rng(1000 + number))
        found = [ask(connection, text, [row]) for row in wanted]
        connection.close()
        assert all(status == 200 for status, _ in found)
        return [told["answers"][0]["status"] for _, told in found]

    with ThreadPoolExecutor(16) as pool:
        told = [status for statuses in pool.map(client, range(16)) for status in statuses]
    assert len(told) == 16 * each
    assert told.count("answered") + told.count("refused") == quota
    assert told.count("quota") == 16 * each - quota
    budget = json.loads(sent(port, "GET", "/v1/budget", token=text)[1])
    assert budget["token"] == {"asked": quota, "quota": quota}
    found, _ = links(run / "ledger.sqlite")
    assert sum(one[2] == "doors-quota" for link in found for one in link["detail"].get("decided", [])) == quota


def test_those_who_ask_too_fast_are_told_when_to_come_back(run):
    text = Tokens(run).add("doors-fast")
    with listening(open_session(run, session="doors-fast", every=0.01, **SVT), rate=20) as address:
        port = int(address.rpartition(":")[2])
        body = json.dumps({"rows": [ROW] * 20})
        assert sent(port, "POST", "/v1/queries", body, token=text)[0] == 200
        found = sent(port, "POST", "/v1/queries", body, token=text)
        assert "20 rows a second" in line_of(found, 429)
        time.sleep(int(found[2]["retry-after"]))
        assert sent(port, "POST", "/v1/queries", body, token=text)[0] == 200
        assert (
            sent(port, "POST", "/v1/queries", json.dumps({"rows": [ROW]}), token=(run / "token").read_text())[0] == 200
        )


def test_neither_logs_nor_answers_hold_values_or_votes(run, warm):
    """The log of a process, and all that it says, after rows with a mark, one answered and others refused."""
    auditor = Tokens(run).add("doors-reader", role="admin")
    served = Served(run, "doors-log", SVT, warm=warm)
    try:
        port = served.port()
        secret = 0.987654321987
        said = [sent(port, "POST", "/v1/queries", json.dumps({"rows": [[secret, *ROW[1:]]]}), token=auditor)]
        wrong = ([[secret, *ROW[1:4]]], [[secret, "wrong", *ROW[2:]]], [{"age": secret}], [[secret, *ROW[1:4], []]])
        said += [sent(port, "POST", "/v1/queries", json.dumps({"rows": one}), token=auditor) for one in wrong]
        raw(port, b"POST /v1/queries HTTP/1.1\r\nHost: 0.987654321987\r\nContent-Length: x\r\n\r\n{")
        said += [sent(port, "GET", path, token=auditor) for path in READABLE]
        log = served.log.read_text()
    finally:
        served.close()
    assert [one[0] for one in said[:5]] == [200, 422, 422, 422, 422]
    assert "0.98765" not in log
    assert auditor not in log
    assert not any(b"0.98765" in one[1] for one in said)
    first = json.loads(said[0][1])
    assert first["answers"][0].keys() == {"status", "label", "recorded"}
    (votes,) = Judge(run, run / "ledger.sqlite").votes([[secret, *ROW[1:]]]).values()
    assert not any(str(votes).encode() in one[1] for one in said)


def test_an_error_inside_is_one_line_without_its_words(run, caplog, monkeypatch):
    """Words of errors may quote a query; the log names the kind of error and the line of code alone."""
    text = Tokens(run).add("doors-broken")
    session = open_session(run, session="doors-broken", every=0.01, **SVT)
    monkeypatch.setattr(type(session.decisions), "decide", _broken)
    with listening(session) as address:
        port = int(address.rpartition(":")[2])
        with caplog.at_level("WARNING"):
            found = sent(port, "POST", "/v1/queries", json.dumps({"rows": [ROW]}), token=text)
    line = line_of(found, 500)
    assert "ZeroDivisionError" in line
    assert "0.125" not in line + caplog.text


def _broken(_, queries):
    raise ZeroDivisionError(f"0.125 {queries}")


def test_clients_that_leave_in_the_middle_break_nothing(doors):
    port, tokens = doors
    head = (
        f"POST /v1/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens['query']}\r\nContent-Length: 99\r\n\r\n"
    )
    body = json.dumps({"rows": [rows(1, np.random.default_rng(77))[0]]}).encode()
    whole = head.replace("99", str(len(body))).encode() + body

    def leaves(number):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(whole if number % 2 else head.encode() + b"{")

    threads = [threading.Thread(target=leaves, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sent(port, "POST", "/v1/queries", json.dumps({"rows": [ROW]}), token=tokens["query"])
    assert found[0] == 200
