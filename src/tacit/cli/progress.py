"""Progress on stderr while a command runs."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

from .printing import harmless, say

LINE_EVERY = 20.0
"""Seconds between lines of progress if stderr is not a terminal."""


@contextlib.contextmanager
def progress(steps: int | None, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr, or a line now and then if stderr is not a terminal.

    The function yielded is called with a description of each step as it begins. If `steps` is None, the bar follows
    descriptions such as "3 of 40 done".
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun, said = 0, time.monotonic()

        def advance(description: str) -> None:
            nonlocal begun, said
            description = harmless(description)
            if bar.disable and not quiet and time.monotonic() - said >= LINE_EVERY:
                said = time.monotonic()
                say(description if steps is None else f"{description} (step {begun + 1} of {steps})", err=True)
            counted = re.match(r"(\d+) of (\d+) ", description) if steps is None else None
            if counted:
                bar.update(task, description=description, completed=int(counted[1]), total=int(counted[2]))
            else:
                bar.update(task, description=description, completed=begun, total=steps)
            begun += 1

        yield advance
