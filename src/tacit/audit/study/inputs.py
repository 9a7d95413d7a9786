"""Read the table: counts of all its rows, and a random sample of them that fits into memory.

The file is read once, part by part; a CSV file twice, to see which columns are quoted throughout. Where bins or noise
depend on the number of rows, these are counted first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, NoTheoremError
from ...report.timing import Timed
from ...runtime import tables
from ..columns import several_values
from ..groups import OnePerGroup, Repeats, seed_of_groups
from ..plug_in import draws_for
from ..sample import Sample
from ..tally import Tally
from ..vectors import Seen
from .options import SHARES_BY_DRAWS, Task

_SECONDS, _SECONDS_PER_ROW, _SECONDS_PER_CELL = 8.0, 4e-5, 4e-6
"""What is left to do with a table that was read: the page, attacks on each row, and more for each of its columns."""
_SECONDS_PER_PAIR = 2.5e-8
"""Of a draw and a row, where more noisy columns than fit on a grid are certified by draws."""
MOST_VALUES = 5_000_000
"""Different outputs that are counted."""
_MOST_SLICES = 1_000
_KINDS = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text"}


@dataclass(kw_only=True)
class Read:
    """What is kept of the table: counts of all rows by slice, a random sample, and the type of each output.

    Of vectors, these are counts and a sample of their codes, and `seen` has the code and a sample of the vectors.
    """

    tallies: dict[Any, Tally]
    sample: Sample
    kinds: tuple[str, ...]
    seen: Seen | None = None
    own_rows: int = 0  # that fixed the code, and are not counted
    different: int = 0  # vectors
    menu: Sample | None = None  # of secrets, outputs, and the target if there is one
    copied: tuple[int, int] | None = None  # secrets and outputs, or vectors, as `copied` says
    in_groups: int | None = None  # rows of the file, where one of each group was drawn

    @property
    def rows(self) -> int:
        """Rows of the whole table."""
        return sum(sum(tally.rows) for tally in self.tallies.values())

    @property
    def whole(self) -> Tally:
        """The counts of all slices together."""
        first, *others = self.tallies.values()
        if not others:
            return first
        both = Tally(**first.settings)
        for tally in self.tallies.values():
            both.merge(tally)
        return both


def read(task: Task, advance: Timed) -> Read:
    """Count and sample the table, part by part; refuse what cannot be audited as soon as it is seen."""
    menu = Sample(task.menu_rows, task.seed)
    kept = Read(tallies={}, sample=Sample(task.attack_rows, task.seed), kinds=(), menu=menu)
    rows_expected = 0
    if task.lipschitz is not None or task.noise_added is not None:
        advance("counting rows")
        rows_expected = _rows(task, kept)
    advance("reading the table")
    repeats = Repeats()
    for number, (columns, counts, share) in enumerate(parts_of(task, task.columns, kept)):
        secrets, outputs = columns[task.secret], [columns[output] for output in task.outputs]
        repeats.add([secrets, *outputs], counts)
        kept.kinds = tuple(_KINDS[one.dtype.kind] for one in outputs)
        _check_numbers(task, outputs)
        for value, rows in sliced(columns, task.slices):
            tally = kept.tallies.setdefault(value, task.tally(rows_expected))
            seen = {output: one[rows] for output, one in zip(task.outputs, outputs, strict=True)}
            tally.add(
                secrets[rows],
                seen if len(seen) > 1 else seen[task.outputs[0]],
                weights=None if counts is None else counts[rows],
            )
        check_size(task, kept)
        kept.sample.add(secrets, outputs, counts)
        menu.add(secrets, [*outputs, *([] if task.target is None else [columns[task.target]])], counts)
        if not number:
            rest = (1 / share - 1) * advance.spent if share else 0.0
            rows = kept.rows / share if share else float(task.attack_rows)
            attacked = min(task.attack_rows, rows)
            attacks = attacked * (_SECONDS_PER_ROW + len(outputs) * _SECONDS_PER_CELL)
            advance.expect(rest + _SECONDS + attacks + _certifying(task, rows, attacked, slices=len(kept.tallies)))
        advance(f"{min(100, round(100 * share))} % of the table read")
    check_labels(task, kept)
    kept.copied = repeats.copied if task.group is None else None
    return kept


def check_labels(task: Task, kept: Read) -> None:
    """Refuse more than two secrets in different slices."""
    labels = {label for tally in kept.tallies.values() for label in tally.labels}
    if len(labels) > 2:  # in different slices
        raise several_values(f"column {task.secret!r}", len(labels))


def parts_of(
    task: Task, names: list[str], kept: Read
) -> Iterator[tuple[tables.Table, NDArray[np.int64] | None, float]]:
    """The table part by part; with groups, one row of each as a single part, once all is read."""
    numbers = [name for name in task.outputs if task.of_numbers and name in names]
    options: dict[str, Any] = {"name": "table", "numbers": numbers, "apart": task.monotone}
    if task.group is None:
        yield from tables.batches(task.table, names, **options)
        return
    held = tables.batches(task.table, [task.group], name="table", each=True)
    chosen = OnePerGroup(seed_of_groups(columns[str(task.group)] for columns, _, _ in held))
    for columns, _, _ in tables.batches(task.table, list(dict.fromkeys([*names, task.group])), each=True, **options):
        chosen.add(columns, columns[task.group], None)
    kept.in_groups = chosen.rows
    yield chosen.table(), None, 1.0


def _certifying(task: Task, rows: float, attacked: float, *, slices: int) -> float:
    """About how many seconds certificates by draws take: of the table, its slices, and the parts that are drawn."""
    if not task.by_draws:
        return 0.0
    sizes = [rows, *([rows / slices] * slices if task.slices is not None else [])]
    sizes += [share * attacked for share in SHARES_BY_DRAWS] if task.pictures else []
    return _SECONDS_PER_PAIR * sum(draws_for(max(1, int(size))) * size for size in sizes)


def _rows(task: Task, kept: Read) -> int:
    parts = parts_of(task, [task.secret], kept)
    return sum(len(columns[task.secret]) if counts is None else int(counts.sum()) for columns, counts, _ in parts)


def _check_numbers(task: Task, outputs: list[NDArray[Any]]) -> None:
    for output, one in zip(task.outputs, outputs, strict=True):
        if one.dtype.kind == "U" and task.of_numbers:
            raise InputError(
                f"column {output!r} of `table`",
                "text",
                requirement="must hold numbers where `noise`, `noise_added`, `code`, `assume_one_direction` or "
                "`assume_max_slope` is given",
                remedy="leave the option out for categories",
            )


def check_size(task: Task, kept: Read) -> None:
    """Refuse more slices or more different outputs than can be counted."""
    if len(kept.tallies) > _MOST_SLICES:
        raise InputError(
            f"column {task.slices!r}",
            f"{len(kept.tallies)} values or more",
            requirement=f"must take {_MOST_SLICES} values or fewer",
            remedy="group them: all slices share one failure probability",
        )
    if sum(tally.symbols for tally in kept.tallies.values()) > MOST_VALUES:
        raise NoTheoremError(
            f"{task.name} must take {MOST_VALUES} different values or fewer, got more; release it with Gaussian noise "
            "and give `noise`, round it before release, or audit fewer rows"
        )


def sliced(columns: tables.Table, name: str | None) -> list[tuple[Any, Any]]:
    """(value, rows) for each value of the slice column."""
    if name is None:
        return [(None, slice(None))]
    left = columns[name]
    if left.dtype.kind == "f":
        raise InputError(
            f"column {name!r}",
            "floats",
            requirement="must hold text, whole numbers or booleans, to make slices of",
            remedy="cut it into ranges first",
        )
    values, places = np.unique(left, return_inverse=True)
    return [(value, places == place) for place, value in enumerate(values.tolist()[: _MOST_SLICES + 1])]
