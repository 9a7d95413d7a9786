"""When answers leave, and to whom."""

import asyncio

from tacit.service.decisions import Decision
from tacit.service.schedule import Schedule


def test_each_gets_the_answers_to_its_own_rows_though_one_has_gone():
    """Somebody who leaves while the batch is decided must not shift the answers of others."""

    def decide(asked):
        return [Decision("answered", row) for row, _ in asked]

    async def ask():
        schedule = Schedule(decide, lambda: None, 0.05)
        working = asyncio.create_task(schedule.run())
        asked = [asyncio.create_task(schedule.ask(rows, "ann")) for rows in ([1, 2], [3, 4, 5], [6])]
        await asyncio.sleep(0.02)
        asked[1].cancel()
        found = await asyncio.gather(*asked, return_exceptions=True)
        working.cancel()
        return found

    first, gone, last = asyncio.run(ask())
    assert [one.answer for one in first] == [1, 2]
    assert isinstance(gone, asyncio.CancelledError)
    assert [one.answer for one in last] == [6]


def test_what_is_decided_is_shown_before_it_is_told_and_at_the_same_moment():
    shown = []

    async def ask():
        schedule = Schedule(lambda asked: [Decision("refused")] * len(asked), lambda: shown.append("now"), 0.02)
        working = asyncio.create_task(schedule.run())
        (told,) = await schedule.ask(["row"], "ann")
        working.cancel()
        return told

    assert asyncio.run(ask()).status == "refused"
    assert shown == ["now"]


def test_a_failure_is_told_on_time_and_the_schedule_goes_on():
    calls = []

    def decide(asked):
        calls.append(len(asked))
        if len(calls) == 1:
            raise OSError("no room")
        return [Decision("refused")] * len(asked)

    async def ask():
        schedule = Schedule(decide, lambda: None, 0.02)
        working = asyncio.create_task(schedule.run())
        first = await asyncio.gather(schedule.ask(["row"], "ann"), return_exceptions=True)
        second = await schedule.ask(["row"], "ann")
        working.cancel()
        return first[0], second[0]

    failure, told = asyncio.run(ask())
    assert isinstance(failure, OSError)
    assert told.status == "refused"
