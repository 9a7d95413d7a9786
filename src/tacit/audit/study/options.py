"""The task of `tacit audit`: its options, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...core import validate
from ...core.errors import InputError
from ...runtime.files import one_file
from ..cells import STEPS
from ..certifying import bin_width
from ..guesses import range_of
from ..menu import MENU_ROWS
from ..tally import Tally
from ..vectors import check_code

SHARES_BY_DRAWS = (1 / 64, 1 / 16, 1 / 4)
"""Parts of the sample whose certificates the page draws, where each of these takes seconds."""
MOST_NAMED = 4
"""Columns that a sentence names one by one."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to audit; the fields are the options of the command line, and whether to draw pictures for a page."""

    table: Path
    secret: str
    outputs: tuple[str, ...]
    noise: float | None
    noise_added: float | None
    monotone: bool
    lipschitz: float | None
    positive: str | None
    slices: str | None
    secret_range: tuple[float, float] | None
    group: str | None
    failure_probability: float
    require_advantage: float | None
    attack_rows: int
    seed: int
    pictures: bool
    code: str | None = None
    release_code: Path | None = None
    menu: bool = False
    target: str | None = None

    @property
    def menu_rows(self) -> int:
        """How many rows are kept for a menu of what could be released instead; 0 where none can be wanted."""
        return MENU_ROWS if self.menu or self.require_advantage is not None else 0

    @property
    def method(self) -> str:
        """The certificate's method; "auto" where nothing is assumed."""
        return "monotone" if self.monotone else "auto" if self.lipschitz is None else "lipschitz"

    @property
    def of_numbers(self) -> bool:
        """Whether the outputs are read as numbers; else each is a symbol, spelled as in the table."""
        return self.noise is not None or self.noise_added is not None or self.method != "auto"

    @property
    def by_draws(self) -> bool:
        """Whether there are more noisy outputs than fit on a grid, so that each certificate takes seconds."""
        noisy = self.noise is not None or self.noise_added is not None
        return noisy and (self.matrix or len(self.outputs) not in STEPS)

    @property
    def matrix(self) -> bool:
        """Whether the output is a matrix: of a table that is an npz file, or in a .npy file beside the table."""
        beside = len(self.outputs) == 1 and self.outputs[0].lower().endswith(".npy")
        return beside or self.table.suffix.lower() == ".npz"

    def tally(self, rows: int) -> Tally:
        """An empty tally for a table with this number of rows."""
        if self.noise_added is not None:
            return Tally(noise_added=self.noise_added, rows=rows)
        return Tally(noise=self.noise, width=self.width(rows))

    def width(self, rows: int) -> float | None:
        """The width of the bins for a Lipschitz posterior, which depends on the number of rows alone."""
        return None if self.lipschitz is None else bin_width(self.lipschitz, rows=rows)

    @property
    def columns(self) -> list[str]:
        """All columns that are read, the secret first."""
        others = [name for name in (self.slices, self.group, self.target) if name is not None]
        return [self.secret, *self.outputs, *others]

    @property
    def name(self) -> str:
        """What the adversary sees, in words that fit into a sentence; of many columns, the first and the last."""
        if self.matrix and len(self.outputs) == 1:
            return f"vector {self.outputs[0]!r}"
        if len(self.outputs) > MOST_NAMED:
            return f"the {len(self.outputs)} columns {self.outputs[0]!r} … {self.outputs[-1]!r}"
        return ("column " if len(self.outputs) == 1 else "columns ") + " and ".join(map(repr, self.outputs))


def check(task: Task) -> None:
    """Refuse options that are out of range or do not go together, before anything is read."""
    validate.probability("failure_probability", task.failure_probability, remedy="use a small probability such as 0.05")
    if task.noise is not None:
        validate.number("noise", task.noise, above=0, remedy="leave it out where no noise is added")
    if task.noise_added is not None:
        validate.number("noise_added", task.noise_added, above=0, remedy="leave it out where no noise was added")
        if task.noise is not None or task.monotone or task.lipschitz is not None:
            raise InputError(
                "noise_added",
                task.noise_added,
                requirement="must come without `noise`, `assume_one_direction` and `assume_max_slope`",
                remedy="use `noise` for noise that is added at release, `noise_added` for noise that the column holds",
            )
    if task.require_advantage is not None:
        validate.number(
            "require_advantage", task.require_advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1"
        )
    validate.whole("attack_rows", task.attack_rows, at_least=0, remedy="use 0 for no attacks")
    validate.whole("seed", task.seed, at_least=0, remedy="use 0")
    if not task.outputs:
        raise InputError("output", task.outputs, requirement="must be given", remedy="name what the adversary sees")
    if task.code is not None:
        check_code(task.code, release_code=task.release_code is not None)
        if task.of_numbers:
            raise InputError(
                "code",
                task.code,
                requirement="must come without `noise`, `noise_added`, `assume_one_direction` and `assume_max_slope`",
                remedy="leave `code` out: with `noise` the whole vector is certified",
            )
    if task.group is not None and (task.code is not None or task.matrix):
        raise InputError(
            "group",
            task.group,
            requirement="must come without `code`, and with outputs that are columns of the table",
            remedy="keep one row of each group, drawn at random, and audit those",
        )
    if task.code is None and task.release_code is not None:
        raise InputError(
            "release_code",
            str(task.release_code),
            requirement="must come with `code`",
            remedy="name the code that you release, `code='kmeans'` or `code='tree'`",
        )
    read = (task.table, *(Path(one) for one in task.outputs if task.matrix))
    if task.release_code is not None and any(one_file(task.release_code, one) for one in read):
        raise InputError(
            "release_code",
            str(task.release_code),
            requirement="must not be a file that is read",
            remedy="choose another name",
        )
    if task.target is not None and not task.menu_rows:
        raise InputError(
            "target",
            task.target,
            requirement="must come with `menu` or `require_advantage`",
            remedy="add `menu`: it prices what could be released instead",
        )
    if len(set(task.columns)) < len(task.columns):
        raise InputError(
            "`secret`, `output`, `slices`, `group` and `target`",
            ", ".join(task.columns),
            requirement="must name different columns",
            remedy="name each column once",
        )
    if task.monotone and (task.noise is not None or len(task.outputs) > 1):
        raise InputError(
            "assume_one_direction",
            ", ".join(task.outputs),
            requirement="must come with one output, and without `noise`",
            remedy="leave out `assume_one_direction`, or the rest",
        )
    if task.lipschitz is not None:
        validate.number("assume_max_slope", task.lipschitz, above=0, remedy="leave it out where nothing is known")
        if task.noise is not None or task.monotone:
            raise InputError(
                "assume_max_slope",
                task.lipschitz,
                requirement="must come without `noise` and `assume_one_direction`",
                remedy="keep one of them; `noise` needs no assumption about the output",
            )
    if task.secret_range is not None:
        range_of(task.secret_range)
        refuse_of_two(task)


def refuse_of_two(task: Task) -> None:
    """Refuse the options that mean something for a secret of two values alone."""
    given = {
        "noise": task.noise,
        "noise_added": task.noise_added,
        "assume_one_direction": task.monotone or None,
        "assume_max_slope": task.lipschitz,
        "positive": task.positive,
        "slices": task.slices,
        "output": task.outputs[0] if task.matrix else None,
        "code": task.code,
        "menu": task.menu or None,
        "target": task.target,
    }
    for name, value in given.items():
        if value is not None:
            raise InputError(
                name,
                value,
                requirement=f"must come with a secret of two values, and column {task.secret!r} has more",
                remedy="leave it out, or make a column with two values: one of them against the rest",
            )
