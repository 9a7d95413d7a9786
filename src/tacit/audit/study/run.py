"""From a task to its report."""

from __future__ import annotations

from collections.abc import Callable

from ...report import Report
from .findings import findings
from .inputs import read
from .options import Task, check
from .pictures import pictures
from .report import page


def audit(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Read the table, certify it, attack it, and report both."""
    check(task)
    table = read(task, advance)
    found = findings(task, table, advance)
    if task.pictures:
        advance("drawing")
    return page(task, table, found, pictures(task, table, found) if task.pictures else ())
