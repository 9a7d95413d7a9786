"""What a fit reads off private records with noise before it asks teachers: their number, and the classes.

Each is paid for first, and drawn once for each folder and payment (`interrupted.drawn_once`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..ledger import Ledger
from .held_out import private_count
from .interrupted import Cost, Run, drawn_once
from .labels import Search
from .owners import digest
from .shares import CLASSES, COUNT


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Draws from the private records of one run; `people` says whose each record is, where there are ids."""

    records: NDArray[np.float64]
    people: list[bytes] | None
    run: Run
    folder: Path | None
    ledger: Ledger | None

    def count(self, cost: Cost) -> int:
        """The number of records, or of people, with noise."""
        count = len(self.records) if self.people is None else len(set(self.people))
        found = self._once("count", lambda: private_count(count, epsilon=float(cost.epsilon)), cost, task=COUNT)
        return validate.whole("the count in folder", found, at_least=1, remedy="choose another folder")

    def classes(self, y: NDArray[Any], search: Search, cost: Cost) -> NDArray[Any]:
        """The classes that enough records hold, where nobody named them."""
        found = self._once("classes", lambda: search.labels(y, self.people), cost, task=CLASSES)
        left = None if self.ledger is None else self.ledger.remaining
        return search.classes(list(found) if isinstance(found, tuple) else found, left=left)

    def _once(self, name: str, draw: Callable[[], Any], cost: Cost, *, task: str) -> Any:
        mark = {  # with another ε, or for other people, the draw would break the promise of a later run
            "epsilon": float(cost.epsilon),
            "delta": float(cost.delta),
            "neighbours": cost.neighbours,
            "ids": None if self.people is None else digest(self.records, self.people, self.run.key),
        }
        return drawn_once(
            name,
            draw,
            cost=cost,
            task=task,
            release=self.run.release,
            ledger=self.ledger,
            folder=self.folder,
            mark=mark,
        )
