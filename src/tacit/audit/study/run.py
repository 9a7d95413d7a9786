"""From a task to its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...report import Report
from ..verdict import ATTACK_ROWS
from .findings import findings
from .inputs import read
from .options import Task, check
from .pictures import pictures_of
from .report import page


def audit_file(
    table: Path | str,
    *,
    secret: str,
    output: str | Sequence[str],
    noise: float | None = None,
    noise_added: float | None = None,
    monotone: bool = False,
    lipschitz: float | None = None,
    positive: str | None = None,
    slices: str | None = None,
    delta: float = 0.05,
    require_advantage: float | None = None,
    attack_rows: int = ATTACK_ROWS,
    seed: int = 0,
    pictures: bool = True,
    advance: Callable[[str], None] = lambda _: None,
) -> Report:
    """What `tacit audit` does: certify a CSV or Parquet file of any size, attack it, and report both.

    `secret`, `output` and `slices` name columns; the rest is as in `certify` and `audit`, which take columns in memory
    and give the same numbers. `advance` is called with a line about what begins.
    """
    task = Task(
        table=Path(table),
        secret=secret,
        outputs=(output,) if isinstance(output, str) else tuple(output),
        noise=noise,
        noise_added=noise_added,
        monotone=monotone,
        lipschitz=lipschitz,
        positive=positive,
        slices=slices,
        delta=delta,
        require_advantage=require_advantage,
        attack_rows=attack_rows,
        seed=seed,
        pictures=pictures,
    )
    check(task)
    kept = read(task, advance)
    found = findings(task, kept, advance)
    if task.pictures:
        advance("drawing")
    return page(task, kept, found, pictures_of(task, kept, found) if task.pictures else ())
