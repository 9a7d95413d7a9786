"""Progress on stderr while a command runs."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..report.timing import TAKES, WORTH_SAYING, takes
from ..report.wording import duration
from .printing import harmless, say

if TYPE_CHECKING:
    from rich.table import Table

LINE_EVERY = 20.0
"""Seconds between lines of progress if stderr is not a terminal."""
_DONE = re.compile(r"(\d+) % done, (?:(?:about|at most) (\d+) (second|minute|hour)s? left|longer than \w+): ")
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


class Pace:
    """How far a run is, by the clock, between the lines that say it: one step may take a minute.

    Parameters
    ----------
    expected
        Seconds that the whole run takes, as far as that is known beforehand.
    clock
        The time in seconds.
    """

    def __init__(self, expected: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._rate = clock, 100 / expected if expected else 0.0
        self._told, self._when, self._shown = 0.0, clock(), 0.0

    def told(self, percent: float, left: float | None) -> None:
        """A line says how much is done, and how many seconds are left; None if it takes longer than expected."""
        self._told, self._when = percent, self._clock()
        self._rate = (100 - percent) / left if left else 0.0

    @property
    def percent(self) -> float:
        """How much is done by now; it never goes back, and the end is left to the run itself."""
        now = self._told + self._rate * (self._clock() - self._when)
        self._shown = max(self._shown, min(99.0, now))
        return self._shown

    @property
    def left(self) -> str:
        """How long the rest takes, in words; empty where nothing is known."""
        percent = self.percent
        if self._rate and percent < 99:
            return f"about {duration((100 - percent) / self._rate)} left"
        return "a little longer" if percent else ""


@contextlib.contextmanager
def progress(*, quiet: bool, expected: float | None = None) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr, or a line now and then if stderr is not a terminal.

    The function yielded is called with a description of each step as it begins; the bar follows those such as
    "30 % done, about 2 minutes left: training", and the clock between them. How many seconds are expected at most is
    said when the first step begins, if that is more than a few; a description that says how long all takes is printed
    at once.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    bar, now = console.is_terminal and not quiet, ""
    pace, said, begun = Pace(expected), time.monotonic(), False

    def drawn() -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        percent = pace.percent
        row = Table.grid(padding=(0, 1))
        row.add_row(
            ProgressBar(total=100, completed=percent, width=24), f"{percent:3.0f} %", pace.left, Text(now, no_wrap=True)
        )
        return row

    with Live(get_renderable=drawn, console=console, transient=True) if bar else contextlib.nullcontext():

        def advance(description: str) -> None:
            nonlocal begun, said, now
            if not begun and expected is not None and expected >= WORTH_SAYING and not quiet:
                say(takes(expected, at_most=True), err=True)
            begun, description = True, harmless(description)
            if description.startswith(TAKES):
                if not quiet:
                    say(description, err=True)
                return
            if not bar and not quiet and time.monotonic() - said >= LINE_EVERY:
                said = time.monotonic()
                say(description, err=True)
            done = _DONE.match(description)
            if done:
                pace.told(int(done[1]), int(done[2]) * _SECONDS[done[3]] if done[2] else None)
            now = _DONE.sub("", description)

        yield advance
