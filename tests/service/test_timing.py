"""An attack of our own: does the time to an answer tell whether votes were unanimous or close?"""

import http.client
import time

import numpy as np
from listening import listening
from serving import SVT, Judge, ask, rows

from tacit.service.session import open_session

QUERIES = 120
"""Of each kind."""
DEVIATIONS = 3.29
"""A guess without a leak is right this far from half of the time, in standard deviations, once in a thousand runs."""


def guesses(times, close):
    """How many of the second half are told by the best threshold of the first, and their number."""
    half = len(times) // 2
    cuts = np.quantile(times[:half], np.linspace(0.02, 0.98, 49))
    scores = np.array([((times[:half] > cut) == close[:half]).mean() for cut in cuts])
    best = np.abs(scores - 0.5).argmax()
    said = (times[half:] > cuts[best]) == (scores[best] >= 0.5)
    return (said == close[half:]).sum(), len(times) - half


def within(right, tries):
    return abs(right / tries - 0.5) <= DEVIATIONS * np.sqrt(0.25 / tries)


def test_the_time_to_an_answer_does_not_tell_close_votes(run):
    """False alarms: once in a thousand runs. The benchmark states a figure for more queries."""
    generator, judge = np.random.default_rng(6), Judge(run, run / "ledger.sqlite")
    far, near = [], []
    while min(len(far), len(near)) < QUERIES:
        wanted = rows(500, generator)
        votes = judge.votes(wanted)
        far += [row for row in wanted if max(votes[tuple(row)]) == 60]
        near += [row for row in wanted if sum(sorted(votes[tuple(row)])[-2:] * np.array([-1, 1])) <= 4]
    close = generator.permutation(2 * QUERIES) % 2 == 1
    sources, times, told = (iter(far), iter(near)), [], []
    with listening(open_session(run, session="timed", every=0.01, **SVT)) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        for one in close:
            began = time.perf_counter()
            status, found = ask(connection, (run / "token").read_text(), [next(sources[int(one)])])
            times.append(time.perf_counter() - began)
            assert status == 200
            told.append(found["answers"][0]["status"])
        connection.close()
    refused = np.array(told) == "refused"
    assert refused[close].mean() > 0.9  # the two kinds are as different as they can be
    assert refused[~close].mean() < 0.1
    assert within(*guesses(np.array(times), close))


def test_the_attack_finds_a_leak_where_there_is_one():
    generator = np.random.default_rng(0)
    close = generator.permutation(2 * QUERIES) % 2 == 1
    even = generator.uniform(0.02, 0.04, size=2 * QUERIES)
    assert within(*guesses(even, close))
    assert not within(*guesses(even + 0.01 * close, close))
