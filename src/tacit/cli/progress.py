"""Progress on stderr while a command runs."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

from ..report.timing import TAKES, WORTH_SAYING, takes
from .printing import harmless, say

LINE_EVERY = 20.0
"""Seconds between lines of progress if stderr is not a terminal."""


@contextlib.contextmanager
def progress(steps: int | None, *, quiet: bool, expected: float | None = None) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr, or a line now and then if stderr is not a terminal.

    The function yielded is called with a description of each step as it begins. If `steps` is None, the bar follows
    descriptions such as "30 % done, about 2 minutes left: training". How many seconds are expected at most is said when
    the first step begins, if that is more than a few; a description that says how long all takes is printed at once.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    description = TextColumn("{task.description}", markup=False)
    columns = [description, BarColumn(), TaskProgressColumn()]
    if steps is not None:  # else descriptions say it
        columns.append(TimeRemainingColumn(elapsed_when_finished=True))
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun, said = 0, time.monotonic()

        def advance(description: str) -> None:
            nonlocal begun, said
            if not begun and expected is not None and expected >= WORTH_SAYING and not quiet:
                say(takes(expected, at_most=True), err=True)
            description = harmless(description)
            if description.startswith(TAKES):
                if not quiet:
                    say(description, err=True)
                return
            if bar.disable and not quiet and time.monotonic() - said >= LINE_EVERY:
                said = time.monotonic()
                say(description if steps is None else f"{description} (step {begun + 1} of {steps})", err=True)
            done = re.match(r"(\d+) % done(?:, |: )(.*)", description) if steps is None else None
            if done:
                bar.update(task, description=done[2], completed=int(done[1]), total=100)
            else:
                bar.update(task, description=description, completed=begun, total=steps)
            begun += 1

        yield advance
