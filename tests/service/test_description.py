"""The service does what its own description at /v1/openapi.json says, whatever is sent: schemathesis tries."""

import re
import subprocess
import sys
from pathlib import Path

from listening import listening
from serving import SVT

from tacit.service.session import open_session
from tacit.service.tokens import Tokens

CONFIG = Path(__file__).resolve().parents[1] / "support" / "schemathesis.toml"
CASES = 20
"""For each address; tests/long/description.py tries more."""


def test_the_service_does_what_its_description_says(run, tmp_path):
    """Audits start a process each, and are left to the long run."""
    token = Tokens(run).add("described", role="admin")
    with listening(open_session(run, session="described", every=0.005, **SVT), rate=1e6) as address:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
        command += [f"{address}/v1/openapi.json", "--header", f"Authorization: Bearer {token}"]
        command += ["--exclude-path", "/v1/audits", "--max-examples", str(CASES), "--seed", "22", "--no-shrink"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) generated", done.stdout)[1]) >= 100
