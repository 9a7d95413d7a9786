"""`tacit serve --demo`: teachers of the bundled digits, in a folder that goes with the process."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..learning.study.run import learn_files
from .session import ServiceSession, open_session


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Rows to try, which are pictures.

    Attributes
    ----------
    rows
        The rows, by column name.
    width
        Pixels in a line.
    most
        The value of the darkest pixel.
    """

    rows: Sequence[Mapping[str, Any]]
    width: int
    most: float

    def picture(self, row: Sequence[Any]) -> dict[str, Any]:
        """The size of the picture that a row is, and the place and darkness of each pixel that is not empty."""
        shades = [min(max((value or 0.0) / self.most, 0.0), 1.0) for value in row]
        dark = [(place % self.width, place // self.width, shade) for place, shade in enumerate(shades) if shade]
        return {"width": self.width, "height": -(-len(shades) // self.width), "dark": dark}


EPSILON, DELTA = 8.0, 1e-5
_RECORDS, _PUBLIC = 1500, 100
_TEACHERS, _REFUSALS = 100, 20


def demonstration(folder: Path, *, advance: Callable[[str], None] = lambda _: None) -> tuple[ServiceSession, Examples]:
    """Train teachers on digits, begin a session for them, and return rows to ask about.

    Parameters
    ----------
    folder
        An empty folder.
    advance
        Called with a line about what begins.

    Returns
    -------
    The session, and digits that no teacher has seen.
    """
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = [f"pixel {number}" for number in range(digits.data.shape[1])]
    order = np.random.default_rng(0).permutation(len(digits.data))
    parts = {"private.csv": order[:_RECORDS], "public.csv": order[_RECORDS : _RECORDS + _PUBLIC]}
    for name, chosen in parts.items():
        labelled = name == "private.csv"
        with (folder / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*names, *["digit"] * labelled])
            for place in chosen:
                table.writerow([*digits.data[place].astype(int), *[digits.target[place]] * labelled])
    advance(f"training {_TEACHERS} teachers on {_RECORDS} digits")
    # The ledger goes with the folder, and is none for the user's list. Small teachers are trained here: starting
    # processes for them takes longer.
    with _environment(XDG_STATE_HOME=str(folder / "state"), LOKY_MAX_CPU_COUNT="1"):
        learn_files(
            folder / "private.csv",
            label="digit",
            epsilon=1.0,
            delta=DELTA,
            budget_epsilon=1.0 + EPSILON,
            budget_delta=2 * DELTA,
            public=folder / "public.csv",
            out=folder / "run",
            learner="sklearn.neighbors:KNeighborsClassifier",
            settings=("n_neighbors=1",),
            student="sklearn.neighbors:KNeighborsClassifier",
            student_settings=("n_neighbors=1",),
            teachers=_TEACHERS,
            classes=",".join(map(str, range(10))),
            queries="20",
        )
    session = open_session(folder / "run", epsilon=EPSILON, delta=DELTA, refusals=_REFUSALS, advance=advance)
    rest = digits.data[order[_RECORDS + _PUBLIC :]]
    rows = [dict(zip(names, map(float, row), strict=True)) for row in rest]
    return session, Examples(rows=rows, width=8, most=16.0)


@contextlib.contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """Change variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
