"""A line of progress on stderr, for calls from Python."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[str], None]


@contextlib.contextmanager
def shown(advance: Advance | None, *, progress: bool) -> Iterator[Advance]:
    """Yield what takes a line about each step: `advance`, or else one line on stderr, if a person is watching.

    Somebody is watching a terminal or a notebook; in logs and pipes nothing is printed. The line is erased at the end.
    """
    if advance is not None or not progress or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield advance or (lambda _: None)
        return

    def show(line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{line[:width].ljust(width)}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        show("")
        sys.stderr.write("\r")
