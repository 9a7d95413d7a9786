"""`make faults`: schemathesis sends a hundred thousand requests to a service, by its description at /v1/openapi.json.

    PYTHONPATH=tests/support python tests/long/description.py [--cases 100000] [--audits 20] [--seed 0]

Ends with an error at the first answer that the description does not allow.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from listening import listening
from serving import SVT, learned

from tacit.service.session import open_session
from tacit.service.tokens import Tokens

SUPPORT = Path(__file__).resolve().parents[1] / "support"
_PATHS = 8


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=100_000, help="in all")
    options.add_argument("--audits", type=int, default=20, help="for audits, which start a process each")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacit-description-") as folder:
        run = learned(Path(folder))
        token = Tokens(run).add("described", role="admin")
        with listening(open_session(run, session="described", every=0.005, **SVT), rate=1e6) as address:
            command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(SUPPORT / "schemathesis.toml")]
            command += ["run", f"{address}/v1/openapi.json", "--header", f"Authorization: Bearer {token}"]
            command += ["--seed", str(given.seed), "--no-shrink", "--suppress-health-check", "all"]
            for words in (
                # Most of what can be sent is a query.
                ["--include-path", "/v1/queries", "--max-examples", str(given.cases - given.cases // 10)],
                ["--exclude-path-regex", "queries|audits", "--max-examples", str(max(1, given.cases // 10 // _PATHS))],
                ["--include-path", "/v1/audits", "--max-examples", str(given.audits), "--phases", "fuzzing"],
            ):
                subprocess.run([*command, *words], check=True, cwd=folder)
    print("every answer is one that the description allows")


if __name__ == "__main__":
    main()
