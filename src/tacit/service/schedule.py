"""When answers leave: at fixed moments, so that the time to an answer does not tell what decided it.

Queries that wait are decided together, in a thread, while others may come. The answers leave at the next moment of the
schedule after they are on the disk. What takes longer than one period leaves one or more periods later, and that can
be seen; how long votes take does not depend on noise, but may depend on teachers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .decisions import AHEAD, Decision

EVERY = 0.05
"""Seconds between the moments at which answers leave."""
_SHARE = 10
"""The part of these seconds for which the first query waits for others."""


@dataclass(slots=True)
class _Waiting:
    """Rows that were asked about together."""

    rows: Sequence[object]
    asker: str
    told: asyncio.Future[list[Decision]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Schedule:
    """Collects queries, has them decided, and lets answers leave on time.

    Parameters
    ----------
    decide
        Decides about rows, each given with the name of whoever asks; runs in a thread, one call at a time.
    show
        Lets everybody see what is decided by now; called at those moments alone.
    every
        Seconds between the moments at which answers leave.
    """

    def __init__(
        self,
        decide: Callable[[list[tuple[object, str]]], list[Decision]],
        show: Callable[[], None],
        every: float,
    ) -> None:
        self._decide, self._show, self._every = decide, show, every
        self._waiting: list[_Waiting] = []
        self._some = asyncio.Event()
        self._began = time.monotonic()

    async def ask(self, rows: Sequence[object], asker: str) -> list[Decision]:
        """The decisions about rows, at most `AHEAD` of them, when they may leave."""
        waiting = _Waiting(rows, asker)
        self._waiting.append(waiting)
        self._some.set()
        return await waiting.told

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self._every / _SHARE)  # so that those who ask at the same moment share a note
            batch = self._taken()
            asked = [(row, one.asker) for one in batch for row in one.rows]
            failure: Exception | None = None
            try:
                decided = await asyncio.to_thread(self._decide, asked)
            except Exception as error:  # told to those who wait, on time
                failure = error
            await self.moment()
            self._show()
            start = 0
            for one in batch:
                end = start + len(one.rows)
                if not one.told.done():  # or else whoever asked has gone; what was decided stays on record
                    if failure is None:
                        one.told.set_result(decided[start:end])
                    else:
                        one.told.set_exception(failure)
                start = end

    async def moment(self) -> None:
        """Wait for the next moment of the schedule."""
        await asyncio.sleep(self._every - (time.monotonic() - self._began) % self._every)

    def _taken(self) -> list[_Waiting]:
        """Those that came first, as many as fit into one note."""
        taken, rows = 0, 0
        for one in self._waiting:
            if rows + len(one.rows) > AHEAD:
                break
            taken, rows = taken + 1, rows + len(one.rows)
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        if not self._waiting:
            self._some.clear()
        return batch
