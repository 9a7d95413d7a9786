"""Two processes that serve one session: they agree on every answer, and the ledger counts each query once."""

import http.client
import threading
from collections import Counter

import numpy as np
from serving import CLASSES, SVT, Judge, Served, ask, rows

CLIENTS, EACH, POOL = 32, 6, 200


def test_two_processes_on_one_ledger_agree_and_count_each_query_once(warm, stored, database):
    run, address = stored
    token = (run / "token").read_text()
    served = [Served(run, "shared", SVT, ledger=address, warm=warm) for _ in range(2)]
    pool = rows(POOL, np.random.default_rng(5))
    heard, failures = [], []

    def client(number):
        choice = np.random.default_rng(number)
        connection = http.client.HTTPConnection("127.0.0.1", ports[number % 2], timeout=120)
        try:
            for _ in range(EACH):
                wanted = [pool[choice.integers(POOL)] for _ in range(3)]
                status, found = ask(connection, token, wanted)
                assert status == 200, found
                heard.extend((tuple(row), told) for row, told in zip(wanted, found["answers"], strict=True))
        except Exception as failure:
            failures.append(failure)
        finally:
            connection.close()

    try:
        ports = [one.port() for one in served]
        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for one in served:
            one.close()
    assert not failures
    assert len(heard) == 3 * CLIENTS * EACH
    judge = Judge(run, database.plain)
    decided, by_identity = judge.decisions("shared", SVT, pool, processes=2)
    on_record = {by_identity[identity]: answer for identity, answer in decided.items()}
    assert on_record.keys() == {row for row, _ in heard}
    for row, told in heard:
        answer = on_record[row]
        assert told["status"] == ("refused" if answer is None else "answered")
        assert told["label"] == (None if answer is None else CLASSES[answer])
    fresh = Counter(row for row, told in heard if not told["recorded"])
    # Whoever asked at the same moment for what was decided together with it is told that it was fresh, too.
    assert fresh.keys() == on_record.keys()
