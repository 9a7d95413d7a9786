"""What the studies of private learning share: tasks, splits of the records, votes and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..learning import OrientedGradients, Teachers
from ..learning.columns import Columns
from ..learning.mechanisms import Mechanism
from ..runtime import run_folder
from .data import adult_tables, mnist_rows

_Array = NDArray[Any]

SPLITS = ("last", "first")
"""Which part of the test file is kept for testing; the rest is the public set."""


@dataclass(frozen=True, kw_only=True)
class CouncilTask:
    """What the tasks of both studies have in common.

    Attributes
    ----------
    name
        The data set, "mnist", "fashion" or "adult".
    out
        The output folder.
    data
        The data folder; by default the environment variable TACIT_DATA names it.
    epsilons
        The budgets.
    engine
        Where teachers are trained.
    resume
        Continue in a folder that an earlier run left behind.
    """

    name: str
    out: Path
    data: Path | None = None
    epsilons: tuple[float, ...]
    engine: str = "local"
    resume: bool = False

    def __post_init__(self) -> None:
        for epsilon in self.epsilons:
            validate.number("--epsilon", epsilon, at_least=1e-3, at_most=1e3, remedy="leave it out for the usual ones")


def mean_of(rows: Iterable[Mapping[str, Any]], key: str) -> float | None:
    """Return the mean of one entry over the rows that have it; None if none has."""
    values = [row[key] for row in rows if row.get(key) is not None]
    return float(np.mean(values)) if values else None


def percent(share: float | None) -> str:
    """Return a share as text."""
    return "–" if share is None else f"{100 * share:.1f} %"


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """One split of the records.

    Attributes
    ----------
    private, labels
        Private records and their labels.
    public, truth
        Public records and their true labels, which only evaluation sees.
    tested, tested_truth
        Records on which students are tested, and their labels.
    private_features, public_features, tested_features
        What teachers see of each.
    classes
        The number of classes.
    """

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
        """Return digests that tell these data from others."""
        return {
            "private": run_folder.digest(np.ascontiguousarray(self.private).tobytes()),
            "test": run_folder.digest(np.ascontiguousarray(self.public).tobytes()),
        }


def vote_counts(data: Data, estimator: Any, teachers: int, *, council: int, path: Path, engine: str) -> _Array:
    """Return how many teachers of one council vote for each class, for every public record; kept in a file."""

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


def released(path: Path, make: Callable[[], Mapping[str, Any]], mechanism: Mechanism) -> dict[str, Any]:
    """Return what was made of a mechanism's answers, kept in a file; one made with other constants is refused."""
    found = run_folder.record(path, make, mark=_constants(mechanism))  # type: ignore[arg-type]  # all of them are frozen
    return {key: value for key, value in found.items() if key != "task"}


@cache
def _constants(mechanism: Mechanism) -> dict[str, str]:
    return {"constants": f"{mechanism!r}: {mechanism.guarantee.detail}"}


def _splits(count: int, tested: int) -> dict[str, tuple[slice, slice]]:
    """Return the public part of a test file with this many records, and the part kept for testing."""
    return {
        "last": (slice(0, count - tested), slice(count - tested, count)),
        "first": (slice(tested, count), slice(0, tested)),
    }


def _mnist(folder: Path) -> dict[str, Data]:
    return _images(folder / "mnist", OrientedGradients())


def _fashion(folder: Path) -> dict[str, Data]:
    return _images(folder / "fashion-mnist", OrientedGradients(upright=False))


def _images(folder: Path, gradients: OrientedGradients) -> dict[str, Data]:
    private, labels, points, truth = mnist_rows(folder)
    gradients.fit(points)
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
    """Encode columns as numbers by the public part of the test file alone; the other half is tested."""
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


LOADERS: dict[str, Callable[[Path], dict[str, Data]]] = {"mnist": _mnist, "fashion": _fashion, "adult": _adult}
