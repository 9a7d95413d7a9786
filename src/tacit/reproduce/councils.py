"""What the studies of private learning share: records split into private, public and tested ones, votes, answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning import OrientedGradients, Teachers
from ..learning.columns import Columns
from ..learning.mechanisms import Mechanism
from ..runtime import run_folder
from .data import adult_tables, mnist_rows

_Array = NDArray[Any]

SPLITS = ("last", "first")
"""Which part of the test file is kept for testing; the rest of it is the public set."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """One split: private records, public records and tested records, and the features that teachers see."""

    private: _Array
    labels: _Array
    public: _Array
    truth: _Array
    tested: _Array
    tested_truth: _Array
    private_features: _Array
    public_features: _Array
    tested_features: _Array
    classes: int

    def mark(self) -> dict[str, str]:
        """What tells these data from others."""
        return {
            "private": run_folder.digest(np.ascontiguousarray(self.private).tobytes()),
            "test": run_folder.digest(np.ascontiguousarray(self.public).tobytes()),
        }


def vote_counts(data: Data, estimator: Any, teachers: int, *, council: int, path: Path, engine: str) -> _Array:
    """Counts of the votes of one council on every public record; kept in a file."""

    def counted() -> _Array:
        key = hashlib.blake2b(f"tacit reproduce mapl {council}".encode(), digest_size=32).digest()
        found = Teachers(estimator, teachers, key, classes=range(data.classes))
        found.fit(data.private_features, data.labels, engine=engine)
        return found.counts(data.public_features, engine=engine)

    return run_folder.array(path, (len(data.public), data.classes), counted)


def answers(mechanism: Mechanism, counts: _Array, places: Iterable[int]) -> dict[str, list[Any]]:
    """The public records that were asked about until the mechanism stopped, and its answers; None is a refusal."""
    mechanism.guarantee  # noqa: B018 — raises where no theorem covers it
    points: list[int] = []
    found: list[Any] = []
    session = mechanism.session()
    for place in places:
        if session.stopped:
            break
        points.append(place)
        found.append(session.answer(counts[place]))
    return {"points": points, "answers": found}


def _splits(count: int, tested: int) -> dict[str, tuple[slice, slice]]:
    """The public part of a test file of so many records, and the part kept for testing."""
    return {
        "last": (slice(0, count - tested), slice(count - tested, count)),
        "first": (slice(tested, count), slice(0, tested)),
    }


def _mnist(folder: Path) -> dict[str, Data]:
    private, labels, points, truth = mnist_rows(folder / "mnist")
    gradients = OrientedGradients().fit(points)
    private_features, features = gradients.transform(private), gradients.transform(points)
    return {
        split: Data(
            private=private,
            labels=labels,
            public=points[public],
            truth=truth[public],
            tested=points[tested],
            tested_truth=truth[tested],
            private_features=private_features,
            public_features=features[public],
            tested_features=features[tested],
            classes=10,
        )
        for split, (public, tested) in _splits(len(points), tested=1000).items()
    }


def _adult(folder: Path) -> dict[str, Data]:
    """Columns become numbers by the public part of the test file alone; the other half is tested."""
    (private, labels), (table, truth) = adult_tables(folder / "adult.tar.xz")
    found = {}
    for split, (public, tested) in _splits(len(truth), tested=len(truth) // 2).items():
        columns = Columns().fit({name: column[public] for name, column in table.items()})
        records, points = columns.transform(private), columns.transform(table)
        found[split] = Data(
            private=records,
            labels=labels,
            public=points[public],
            truth=truth[public],
            tested=points[tested],
            tested_truth=truth[tested],
            private_features=records,
            public_features=points[public],
            tested_features=points[tested],
            classes=2,
        )
    return found


LOADERS: dict[str, Callable[[Path], dict[str, Data]]] = {"mnist": _mnist, "adult": _adult}
