"""`make faults`: kill a service, or its database, a thousand times under load, and check the whole ledger each time.

    PYTHONPATH=tests/support python tests/long/faults.py [--kills 1000] [--databases 250] [--seed 0]

Sessions follow one another as they stop: most of the sparse vector, some of a gate.
Ends with an error at the first answer that is lost, told in two ways, or not what votes and recorded noise give.
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from commands import SERVICE, Warm
from serving import GATE, SVT, Judge, PostgreSQL, killed, learned

from tacit.service.tokens import Tokens

EARLY = 0.15
"""The share of kills before the service listens, while it pays or reads."""
COLD = 0.05
"""The share of services that a new interpreter starts."""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=1000, help="in all")
    options.add_argument("--databases", type=int, default=250, help="of these, with a ledger in PostgreSQL")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    began, warm = time.monotonic(), Warm(*SERVICE)
    for kind, kills in (("file", given.kills - given.databases), ("database", given.databases)):
        if kills <= 0:
            continue
        with tempfile.TemporaryDirectory(prefix="tacit-faults-") as folder:
            place, where, address = Path(folder), None, None
            database = PostgreSQL() if kind == "database" else None
            if database is not None:
                address, where = place / "address", database.plain
                address.touch(mode=0o600)
                address.write_text(database.address)
            run = learned(place, ledger=address)
            (run / "token").write_text(Tokens(run).add("ann"))
            judge = Judge(run, where or run / "ledger.sqlite")
            total, session = Counter(), 0
            while (left := kills - total["services"] - total["databases"]) > 0:
                session += 1
                terms = GATE if session % 4 == 0 else SVT
                found = killed(
                    run,
                    judge,
                    session=f"s{session}",
                    terms=terms,
                    kills=left,
                    ledger=address,
                    database=database,
                    warm=warm,
                    seed=given.seed + session,
                    early=EARLY,
                    cold=COLD,
                )
                total.update(found)
                print(
                    f"{time.monotonic() - began:6.0f} s, ledger in a {kind}: {session} sessions, "
                    + ", ".join(f"{name} {total[name]}" for name in found),
                    flush=True,
                )
            if database is not None:
                database.close()
    warm.close()
    print("every answer is on record once, and is what votes and recorded noise give")


if __name__ == "__main__":
    main()
