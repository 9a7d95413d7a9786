"""The client and the commands against a real server."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest
from listening import listening

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
    rows = [[3.0, number / 100, "red"] for number in range(10)]
    with listening(open_session(folder, epsilon=8.0, delta=1e-5)) as address, Client(address, token) as client:
        before = client.ask(rows)
    with listening(open_session(folder, epsilon=8.0, delta=1e-5)) as address, Client(address, token) as client:
        after = client.ask(rows)
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


def test_the_commands_serve_ask_and_stop(folder, tmp_path):
    """A process of its own, until a signal."""
    command = [sys.executable, "-m", "tacit"]
    secret, table = tmp_path / "token.txt", tmp_path / "rows.csv"
    secret.write_text(subprocess.check_output([*command, "token", "add", str(folder), "ann"], text=True))
    secret.chmod(0o600)
    assert "ann  query  no quota" in subprocess.check_output([*command, "token", "list", str(folder)], text=True)
    table.write_text("height,weight,colour\n3,0,red\n-3,0,green\n")
    log = tmp_path / "log.txt"
    options = ["--epsilon", "8", "--delta", "1e-5", "--port", "0"]
    with log.open("w") as file:
        process = subprocess.Popen([*command, "serve", str(folder), *options], stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + 120
        while "serving" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = log.read_text().partition(" at ")[2].partition("/ ")[0]
        asked = [*command, "query", address, str(table), "--token-file", str(secret), "--out", str(tmp_path / "a.csv")]
        said = subprocess.check_output(asked, text=True)
        assert said.startswith("2 rows: ")
        assert "0 beyond your quota" in said
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "height" not in log.read_text()


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
    lines = ["member,score"] + [f"{row % 2},{row % 3}" for row in range(300)]
    header = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"}
    with listening(session) as address, httpx.Client(base_url=address, headers=header, timeout=120) as client:
        body = "\n".join(lines) + "\n"
        found = client.post("/v1/audits", params={"secret": "member", "output": "score"}, content=body).json()
        assert found["results"]["command"] == "audit"
        assert json.loads(json.dumps(found["certificate"]))["_type"] == "https://in-toto.io/Statement/v1"
        assert "<html" in found["report"]
        wrong = client.post("/v1/audits", params={"secret": "members", "output": "score"}, content=body)
        assert wrong.status_code == 422
        assert "members" in wrong.json()["error"]
        assert "tacit-audit-" not in wrong.json()["error"]
        assert client.post("/v1/audits", params={"secret": "member"}, content=body).status_code == 422
