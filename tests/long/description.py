"""`make faults`: schemathesis sends a hundred thousand requests to a service, by its description at /v1/openapi.json.

    PYTHONPATH=tests/support python tests/long/description.py [--cases 100000] [--audits 40] [--seed 0]

Half of them are as the description asks for, half not. All but a few are queries: other addresses take nothing that
could vary, and an audit starts a process. Ends with an error at the first answer that the description does not allow.
A process per core generates and sends; most of the time goes into generating.
"""

import argparse
import contextlib
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from listening import listening
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from serving import SVT, learned

from tacit.service.session import open_session
from tacit.service.tokens import Tokens

SUPPORT = Path(__file__).resolve().parents[1] / "support"
QUERIES, AUDITS = "/v1/queries", "/v1/audits"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=100_000, help="in all")
    options.add_argument("--audits", type=int, default=40, help="of these for audits, which start a process each")
    options.add_argument("--seed", type=int, default=0)
    given_options = options.parse_args()
    began, workers = time.monotonic(), os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="tacit-description-") as folder:
        run = learned(Path(folder))
        token = Tokens(run).add("described", role="admin")
        with listening(open_session(run, session="described", every=0.005, **SVT), rate=1e6) as address:
            shares = [
                (
                    address,
                    token,
                    given_options.cases // workers,
                    given_options.audits // workers,
                    given_options.seed + i,
                )
                for i in range(workers)
            ]
            with multiprocessing.get_context("spawn").Pool(workers) as pool:
                found = sum(pool.starmap(tried, shares), Counter())
    for (path, status), count in sorted(found.items()):
        print(f"{path} {status}: {count}")
    print(f"{found.total()} answers in {time.monotonic() - began:.0f} s, each one that the description allows")


def tried(address, token, cases, audits, start):
    """Send cases to every address, and count the answers."""
    config = SchemathesisConfig.from_path(SUPPORT / "schemathesis.toml")
    schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json", config=config)
    operations = [result.ok() for result in schema.get_all_operations()]
    counts = {QUERIES: cases, AUDITS: audits}
    found = Counter()
    for operation in operations:
        for mode in GenerationMode:
            with contextlib.suppress(Unsatisfiable):  # where nothing is asked for, nothing can be wrong
                sent(operation, mode, counts.get(operation.path, 2) // 2, token, start, found)
    return found


def sent(operation, mode, count, token, start, found):
    @seed(start)
    @settings(  # without the phase that searches for slow answers, which repeats what was sent
        max_examples=max(1, count),
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(operation.as_strategy(generation_mode=mode))
    def send(case):
        answer = case.call_and_validate(headers={"Authorization": f"Bearer {token}"})
        found[operation.path, answer.status_code] += 1
        if found.total() % 1000 == 0:
            print(f"{found.total()} of one process are sent", flush=True)

    send()


if __name__ == "__main__":
    main()
