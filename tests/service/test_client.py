"""The client and the commands against a real server."""

import csv
import json
import os
import signal
import subprocess
import time

import httpx
import pytest
from commands import run
from listening import listening
from serving import Served

from tacit.core.errors import InputError
from tacit.service.client import Client, ServiceError, query_file
from tacit.service.run import server
from tacit.service.session import open_session
from tacit.service.tokens import Tokens


@pytest.fixture
def token(folder):
    return Tokens(folder).add("ann", role="admin")


def test_a_client_asks_and_asks_again(session, token):
    with listening(session) as address, Client(address, token) as client:
        about = client.about()
        assert about["label"] == "kind"
        assert [column["kind"] for column in about["columns"]] == ["number", "number", "text"]
        told = client.ask([[3.0, number / 100, "red"] for number in range(30)])
        assert {one["label"] for one in told} <= {"tall", None}
        again = client.ask([{"height": 3, "weight": number / 100, "colour": "red"} for number in range(30)])
        assert all(one["recorded"] for one in again)
        assert [one["label"] for one in again] == [one["label"] for one in told]
        budget = client.budget()
        assert budget["answered"] + budget["refused"] == 30
        assert budget["token"] == {"asked": 30, "quota": None}


def test_a_restart_keeps_what_was_told(folder, token):
    rows, terms = [[3.0, number / 100, "red"] for number in range(10)], {"epsilon": 200.0, "delta": 1e-5}
    told = []
    for _ in range(2):
        session = open_session(folder, mechanism="svt", every=0.01, **terms)
        with listening(session) as address, Client(address, token) as client:
            told.append(client.ask(rows))
    before, after = told
    assert [one["label"] for one in after] == [one["label"] for one in before]
    assert all(one["recorded"] for one in after)


def test_an_auditor_keeps_heads(session, folder, token, tmp_path):
    key = folder / "publish" / "ledger-head.pem.pub"
    with listening(session) as address, Client(address, token) as client:
        head = tmp_path / "head.json"
        assert client.check_head(head, key) == 0
        client.ask([[3.0, 0.0, "red"]])
        assert client.check_head(head, key) == 1
        assert client.check_head(head, key) == 0
        head.write_text(head.read_text().replace('"sig": "', '"sig": "AAAA'))
        with pytest.raises(InputError):
            client.check_head(head, key)


def test_an_old_head_that_is_shown_again_is_refused(session, folder, token, tmp_path, monkeypatch):
    """Whoever stands between may replay what the owner once signed; the head that is kept never goes back."""
    key, head = folder / "publish" / "ledger-head.pem.pub", tmp_path / "head.json"
    with listening(session) as address, Client(address, token) as client:
        early = client.ledger()
        client.ask([[3.0, 0.0, "red"]])
        client.check_head(head, key)
        kept = head.read_text()
        late = client.ledger()
        monkeypatch.setattr(client, "ledger", lambda: {**late, "head": early["head"]})
        with pytest.raises(InputError, match="must be its last link"):
            client.check_head(head, key)
        monkeypatch.setattr(client, "ledger", lambda: early)
        with pytest.raises(InputError, match="rolled back or edited"):
            client.check_head(head, key)
        assert head.read_text() == kept


def test_whoever_lost_the_token_while_sending_is_told_nothing(session, folder):
    text = Tokens(folder).add("eve", quota=5)

    def body():
        yield b'{"rows": [[3.0, 0.0, "red"], [3.0, 0.1, "red"]'
        time.sleep(0.5)  # the token was looked at by now
        Tokens(folder).remove("eve")
        yield b"]}"

    with listening(session) as address:
        sent = httpx.post(
            f"{address}/v1/queries", content=body(), headers={"Authorization": f"Bearer {text}"}, timeout=60
        )
    assert [one["status"] for one in sent.json()["answers"]] == ["quota", "quota"]


def test_tokens_do_not_travel_in_the_clear(token):
    with pytest.raises(InputError, match="must be https:// for another machine"):
        Client("http://example.org:8710", token)
    with Client("http://example.org:8710", token, insecure=True):
        pass


def test_a_table_is_asked_about_by_a_file(session, token, tmp_path):
    table, secret = tmp_path / "rows.csv", tmp_path / "token.txt"
    table.write_text("name,height,colour,weight\nx,3,red,0\ny,-3,green,\nz,oops,blue,1\n")
    secret.write_text(f"{token}\n")
    secret.chmod(0o600)
    with listening(session) as address:
        found = query_file(address, table, token_file=secret, out=tmp_path / "out.csv")
        assert found["rows"] == 3
        with pytest.raises(InputError, match=r"must end with \.csv"):
            query_file(address, table, token_file=secret, out=tmp_path / "out.parquet")
        secret.chmod(0o644)
        with pytest.raises(InputError, match="only you can read"):
            query_file(address, table, token_file=secret, out=tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["x", "y", "z"]
    assert {row["kind"] for row in rows} <= {"tall", "short", ""}


def test_what_the_service_refuses_is_one_line(session, token):
    with listening(session) as address:
        with Client(address, "wrong") as client, pytest.raises(ServiceError, match="ask the owner for one") as error:
            client.budget()
        assert error.value.status == 401
        with Client(address, token) as client, pytest.raises(ServiceError, match="must be a finite number"):
            client.ask([["tall", 0, "red"]])
    with Client(address, token) as client, pytest.raises(ServiceError, match="must be reachable"):
        client.budget()
    with pytest.raises(InputError, match="must begin with http"):
        Client("example.org", token)


def test_the_commands_serve_ask_and_stop(folder, tmp_path, warm):
    """A service of its own, until a signal; `tacit token` and `tacit query` by a new interpreter."""
    secret, table = tmp_path / "token.txt", tmp_path / "rows.csv"
    secret.write_text(run("token", "add", folder, "ann").stdout)
    secret.chmod(0o600)
    assert "ann  query  no quota" in warm.run(tmp_path, "token", "list", folder).stdout
    table.write_text("height,weight,colour\n3,0,red\n-3,0,green\n")
    served = Served(folder, "service", {"epsilon": 8, "delta": 1e-5}, warm=warm)
    try:
        address = f"http://127.0.0.1:{served.port()}"
        asked = run("query", address, table, "--token-file", secret, "--out", tmp_path / "a.csv")
        assert asked.stdout.startswith("2 rows: ")
        assert "0 beyond your quota" in asked.stdout
        os.kill(served.pid, signal.SIGTERM)
        assert warm.ended(served.pid, wait=True) in (0, -signal.SIGTERM)
        assert "height" not in served.log.read_text()
    finally:
        served.close()


def test_other_machines_need_tls(session):
    with pytest.raises(InputError, match="must be this machine unless the connection is encrypted"):
        server(session, host="0.0.0.0")  # noqa: S104


def test_tls_is_spoken(session, token, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "tls.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    os.chmod(key, 0o600)
    with listening(session, tls_certificate=certificate, tls_key=key) as address:
        assert address.startswith("https")
        with Client(address, token, authority=certificate) as client:
            assert client.budget()["refused"] == 0
        with Client(address, token) as client, pytest.raises(ServiceError, match="must be reachable"):
            client.budget()


def test_tables_are_audited_and_not_kept(session, token):
    lines = ["member,score"] + [f"{row % 2},{row % 3}" for row in range(50)]  # fewer than attacks need
    header = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"}
    with listening(session) as address, httpx.Client(base_url=address, headers=header, timeout=120) as client:
        body = "\n".join(lines) + "\n"
        found = client.post("/v1/audits", params={"secret": "member", "output": "score"}, content=body).json()
        assert found["results"]["command"] == "audit"
        assert json.loads(json.dumps(found["certificate"]))["_type"] == "https://in-toto.io/Statement/v1"
        assert "<html" in found["report"]
        assert client.post("/v1/audits", params={"secret": "member"}, content=body).status_code == 422
