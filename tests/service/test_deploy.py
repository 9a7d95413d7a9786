"""What deploy/ holds: that each file is one of its kind, keeps secrets out, and starts commands that Tacit has.

No container is built here; the command of the systemd unit is run as it stands, but for its paths.
"""

import configparser
import csv
import os
import re
import shlex
import socket
import stat
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from typer.main import get_command

from tacit import cli
from tacit.learning.study.run import learn_files
from tacit.service.app import created
from tacit.service.run import PORT

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SAMPLES = {"TACIT_EPSILON": "1", "TACIT_DELTA": "1e-5", "TACIT_REFUSALS": "20", "TACIT_SESSION": "service"}
SECRET = re.compile(r"(?i)passw|secret|token|key|credential")


def filled(text):
    """A word with its variables replaced, as compose and systemd do."""
    return re.sub(r"\$\{(\w+)(?::[?-][^}]*)?\}", lambda found: SAMPLES[found[1]], text)


def arguments_of(words):
    """What `tacit` makes of a command line; raises if it has no such command, option or value."""
    command = get_command(cli.app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    return command.make_context(name, [filled(word) for word in words]).params


def addresses():
    """The addresses of the application, which are the same whatever it serves."""
    return {route.path for route in created(SimpleNamespace(rows=SimpleNamespace(kinds={}))).routes}


# The container.


def instructions():
    """The instructions of the container file, by the grammar of its reference: a word, and the rest."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


def last(word):
    return [rest for name, rest in instructions() if name == word][-1]


KNOWN = "FROM COPY RUN LABEL ENV USER WORKDIR VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD"


def test_the_container_file_has_instructions_that_exist():
    found = instructions()
    assert {name for name, _ in found} <= set(KNOWN.split())
    assert found[0][0] == "FROM"
    for name, rest in found:
        if name == "FROM":
            assert re.fullmatch(r"docker\.io/library/python:3\.\d+-slim( AS \w+)?", rest)
    supported = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    (version,) = {re.search(r"python:([\d.]+)", rest)[1] for name, rest in found if name == "FROM"}
    assert f"Programming Language :: Python :: {version}" in supported


def test_the_container_runs_as_nobody_special_and_holds_no_secret():
    names = [name for name, _ in instructions()]
    user = last("USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert f"--uid {user.partition(':')[0]} " in " ".join(rest for name, rest in instructions() if name == "RUN")
    for name, rest in instructions():
        assert name not in ("ARG", "ADD")
        if name == "ENV":
            assert not SECRET.search(rest)
        if name == "COPY":
            *sources, _ = [word for word in rest.split() if not word.startswith("--")]
            built = {"dist/tacit_privacy-*.whl", "/opt/tacit"}
            assert set(sources) <= built | {"requirements/service.txt", "deploy/healthy.py"}


def test_the_container_installs_what_the_service_needs_by_its_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"].replace("-", "_") == "tacit_privacy"
    (install,) = [rest for name, rest in instructions() if "pip install" in rest]
    assert "--require-hashes --requirement /install/service.txt" in " ".join(install.split())
    assert re.search(r"--no-deps /install/\*\.whl", install)
    needed = {Requirement(line) for line in project["dependencies"]}
    extras = ["service"]
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            found = Requirement(line)
            if found.name == project["name"]:
                extras += sorted(found.extras)
            else:
                needed.add(found)
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements" / "service.txt").read_text(), re.MULTILINE))
    assert len(needed) > 10
    for one in needed:
        assert one.specifier.contains(pinned[one.name]), one


def test_the_container_asks_for_an_address_that_exists():
    assert last("EXPOSE") == str(PORT)
    (url,) = re.findall(r'"(https?://\S+?)"', last("HEALTHCHECK"))
    path = url.partition(f"://127.0.0.1:{PORT}")[2]
    assert path in addresses()
    assert yaml.safe_load(last("ENTRYPOINT")) == ["tacit"]
    assert yaml.safe_load(last("VOLUME")) == ["/data"]


# Compose.

TOP = {"name", "services", "networks", "volumes", "secrets"}
SERVICE = (
    "build cap_drop command depends_on environment healthcheck image networks pids_limit ports profiles read_only "
    "restart secrets security_opt shm_size stop_grace_period tmpfs ulimits user volumes"
)
"""Keys of the Compose specification that are used; others may be misspelt."""


def composed():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_compose_has_keys_that_exist_and_names_that_are_defined():
    found = composed()
    assert set(found) == TOP
    for service in found["services"].values():
        assert set(service) <= set(SERVICE.split())
        for kind in ("networks", "secrets"):
            assert set(service[kind]) <= set(found[kind])
        for volume in service["volumes"]:
            if isinstance(volume, str):
                assert volume.partition(":")[0] in found["volumes"]
            else:
                assert set(volume) == {"type", "source", "target"}
        assert set(service.get("depends_on", {})) <= set(found["services"])
    assert (DEPLOY / found["services"]["serve"]["build"]["context"] / "deploy" / "Containerfile").exists()
    assert {name for service in found["services"].values() for name in service["secrets"]} == set(found["secrets"])


def served():
    return [service for service in composed()["services"].values() if "postgres" not in service["image"]]


@pytest.mark.parametrize("service", served(), ids=["first", "second"])
def test_compose_serves_by_a_command_that_tacit_has(service):
    given = arguments_of(service["command"])
    assert str(given["folder"]).startswith("/data/")
    assert (given["port"], given["host"]) == (PORT, "0.0.0.0")  # noqa: S104
    assert all(port.endswith(f":{PORT}") for port in service["ports"])
    assert not given["insecure"]
    secrets = {f"/run/secrets/{name}" for name in service["secrets"]}
    assert {str(given[name]) for name in ("ledger_url_file", "tls_certificate", "tls_key")} == secrets
    (outside,) = [volume["target"] for volume in service["volumes"] if isinstance(volume, dict)]
    assert Path(given["anchor"]).parent == Path(outside)


@pytest.mark.parametrize("service", served(), ids=["first", "second"])
def test_compose_takes_rights_away(service):
    assert service["user"] == last("USER")
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["ulimits"]["core"] == 0
    assert service["restart"] == "unless-stopped"


def test_the_commands_that_the_documentation_runs_in_the_container_exist():
    page = (ROOT / "docs" / "how-to" / "operate-the-service.md").read_text()
    shown = re.findall(r"^docker compose .* run --rm .*? ?serve (.*)$", page, flags=re.MULTILINE)
    assert {line.split()[0] for line in shown} == {"learn", "token"}
    first = arguments_of(composed()["services"]["serve"]["command"])
    for given in (arguments_of(shlex.split(line)) for line in shown):
        shared = {name: value for name, value in given.items() if name in ("ledger_url_file", "anchor")}
        assert all(str(value) == str(first[name]) for name, value in shared.items())
        assert str(given.get("out", given.get("folder"))) == str(first["folder"])


def test_compose_holds_no_secret():
    found = composed()
    for secret in found["secrets"].values():
        assert set(secret) == {"file"}
        assert secret["file"].startswith("./secrets/")
    for service in found["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not SECRET.search(name) or (name.endswith("_FILE") and value.startswith("/run/secrets/"))
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_ledger_of_compose_writes_to_the_disk_and_is_not_reached_from_outside():
    ledger = composed()["services"]["ledger"]
    assert int(re.search(r"postgres:(\d+)$", ledger["image"])[1]) >= 16
    assert {"fsync=on", "synchronous_commit=on", "full_page_writes=on"} <= set(ledger["command"])
    assert "ports" not in ledger
    assert all(composed()["networks"][name]["internal"] for name in ledger["networks"])


# systemd.

UNIT = {
    "Unit": "Description Documentation Wants After StartLimitIntervalSec",
    "Service": "Type EnvironmentFile Environment ExecStart Restart RestartSec TimeoutStopSec User Group DynamicUser "
    "UMask LimitCORE TasksMax ReadWritePaths ReadOnlyPaths ProtectSystem ProtectHome PrivateTmp PrivateDevices "
    "PrivateMounts ProtectProc ProtectClock ProtectControlGroups ProtectHostname ProtectKernelLogs "
    "ProtectKernelModules ProtectKernelTunables RemoveIPC NoNewPrivileges CapabilityBoundingSet AmbientCapabilities "
    "LockPersonality RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID "
    "SystemCallArchitectures SystemCallFilter SystemCallErrorNumber",
    "Install": "WantedBy",
}
"""Keys of systemd.unit, systemd.service, systemd.exec and systemd.resource-control that are used."""


def unit():
    found = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    found.optionxform = str
    found.read_string((DEPLOY / "tacit-serve.service").read_text())
    return found


def test_the_unit_has_keys_that_exist():
    found = unit()
    assert set(found.sections()) == set(UNIT)
    for section, keys in UNIT.items():
        assert set(found[section]) == set(keys.split())


def test_the_unit_takes_rights_away():
    service = unit()["Service"]
    assert service["User"] == service["Group"] == "tacit"
    assert service["DynamicUser"] == "no"
    assert service["UMask"] == "0077"
    assert service["LimitCORE"] == "0"
    assert service["ProtectSystem"] == "strict"
    assert service["Restart"] == "on-failure"
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    on = [name for name in service if name.startswith(("Protect", "Private", "RestrictSUID", "NoNew", "Lock"))]
    assert all(service[name] in ("yes", "strict", "invisible") for name in on)


def test_the_unit_may_write_where_its_command_writes():
    words = shlex.split(unit()["Service"]["ExecStart"])
    assert Path(words[0]).name == "tacit"
    given = arguments_of(words[1:])
    assert (given["port"], given["insecure"]) == (PORT, False)
    writable = [Path(path) for path in unit()["Service"]["ReadWritePaths"].split()]
    for path in (given["folder"], given["anchor"]):
        assert any(place in Path(path).parents for place in writable)
    for name in ("ledger_url_file", "tls_certificate", "tls_key"):
        assert str(given[name]).startswith(unit()["Service"]["ReadOnlyPaths"] + "/")
    assert not Path(given["anchor"]).is_relative_to(given["folder"])


# What they start.


def self_signed(folder):
    """A certificate for 127.0.0.1 and its key, in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "tls-certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    closed = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, closed)
    (folder / "tls-key.pem").touch(mode=0o400)
    (folder / "tls-key.pem").chmod(0o600)
    (folder / "tls-key.pem").write_bytes(secret)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run of `tacit learn` whose ledger can pay for a session, with what the unit has in /etc/tacit."""
    place = tmp_path_factory.mktemp("deployed")
    random = np.random.default_rng(0)
    for name, rows in (("private.csv", 400), ("public.csv", 40)):
        with (place / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["age", "dose", *["ill"] * (name == "private.csv")])
            for age, dose in random.normal(size=(rows, 2)):
                table.writerow([age, dose, *[int(age > dose)] * (name == "private.csv")])
    learn_files(
        place / "private.csv",
        label="ill",
        epsilon=1.0,
        delta=1e-5,
        budget_epsilon=2.0,
        budget_delta=2e-5,
        public=place / "public.csv",
        out=place / "run",
        teachers=20,
        classes="0,1",
        queries="5",
        anchor=place / "anchor.json",
    )
    self_signed(place)
    (place / "ledger-url").write_text(str(place / "run" / "ledger.sqlite"))
    (place / "ledger-url").chmod(0o600)
    return place


def test_the_command_of_the_unit_serves_and_its_health_is_seen(learned):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    paths = {
        "/var/lib/tacit/run": "run",
        "/var/lib/tacit-anchor/anchor.json": "anchor.json",
        "/etc/tacit/ledger-url": "ledger-url",
        "/etc/tacit/tls-certificate.pem": "tls-certificate.pem",
        "/etc/tacit/tls-key.pem": "tls-key.pem",
    }
    words = shlex.split(unit()["Service"]["ExecStart"])[1:]
    assert set(paths) <= set(words)
    words = [str(learned / paths[word]) if word in paths else filled(word) for word in words]
    words = [{str(PORT): str(port), "0.0.0.0": "127.0.0.1"}.get(word, word) for word in words]  # noqa: S104
    umask = int(unit()["Service"]["UMask"], 8)
    healthy = [sys.executable, str(DEPLOY / "healthy.py"), f"https://127.0.0.1:{port}/healthz"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "tacit", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, umask=umask) as process:
        try:
            assert process.stdout.readline().startswith("serving ")
            assert subprocess.run(healthy, check=False).returncode == 0
            missing = [*healthy[:-1], healthy[-1].replace("healthz", "nowhere")]
            assert subprocess.run(missing, check=False, capture_output=True).returncode == 1
        finally:
            process.terminate()
        process.communicate(timeout=30)
    assert subprocess.run(healthy, check=False, capture_output=True).returncode == 1
    kept = [path for path in (learned / "run" / "private").rglob("*") if path.is_file()]
    assert any(path.name == "session-service.json" for path in kept)
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in kept)
