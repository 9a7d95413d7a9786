"""Teachers: one estimator for each of many disjoint chunks of private records, and their votes on public queries."""

from __future__ import annotations

import contextlib
import importlib
import math
import operator
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import validate
from ..core.errors import InputError
from ..runtime import private_files, run_folder, workers
from . import stored
from .chunks import KEY_BYTES, checked_key, chunks, features, mark, seed, used
from .standing_votes import StandingVotes
from .votes import ABSTAIN, Teacher, cast_votes, vote_counts

_QUERIES_AT_ONCE = 10_000
_COUNCIL = "council.json"
"""The file, beside stored teachers, that says which classes each of them knows."""


class Teachers:
    """Clones of a classifier, each trained on its own chunk of the private records.

    A record's chunk is decided by a keyed hash of its id, or of its features and label where it has none, so that
    adding or removing one record changes one chunk. A teacher depends on the set of records in its chunk, the key and
    its own number: not on their order, nor on other chunks. Records with one id fall into one chunk, so with ids of
    people "one record" may be read as "one person"; without ids, equal records fall into one chunk.

    Teachers see the classes of their chunk, numbered from 0. The `random_state` of the estimator, and of its parts, is
    set from the key and the teacher's number. Errors while training may depend on private records: do not publish them.

    Parameters
    ----------
    estimator
        The classifier to clone.
    n_teachers
        The number of teachers.
    key
        32 bytes, from the operating system's generator unless given. Privacy does not rest on it, but somebody who
        knows it can aim records at a chunk.
    classes
        What can be voted for, in the order of the counts. It must come from public knowledge: which classes occur among
        private records is private.
    default
        The vote of a teacher whose chunk is empty; None abstains. A chunk with one class always votes for that class.
    trusted
        Names of types that stored teachers may hold beyond those that skops trusts.
    """

    def __init__(
        self,
        estimator: Any,
        n_teachers: int,
        key: bytes | None = None,
        *,
        classes: Iterable[object] | None = None,
        default: object = None,
        trusted: Sequence[str] = (),
    ) -> None:
        self.estimator = _estimator(estimator)
        self.n_teachers = validate.whole("n_teachers", n_teachers, at_least=1, remedy="say how many chunks")
        self.key = checked_key(key)
        self.classes = _classes(classes)
        self._numbers = {label: number for number, label in enumerate(self.classes)}
        if default is not None and default not in self._numbers:
            raise InputError("default", default, requirement="must be one of classes", remedy="use None to abstain")
        self.default = default
        if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
            raise InputError(
                "trusted", trusted, requirement="must be a list of names of types", remedy="use ['package.module.Type']"
            )
        self.trusted = tuple(trusted)
        self._teachers: list[Teacher] | None = None

    def fit(
        self,
        X: ArrayLike,  # noqa: N803 — scikit-learn's name
        y: Iterable[object],
        *,
        ids: Iterable[object] | None = None,
        engine: str = "local",
        folder: Path | str | None = None,
        advance: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Train one teacher for each chunk of the private records.

        Parameters
        ----------
        X, y
            The private records and their labels.
        ids
            Whose each record is; records with one id fall into one chunk.
        engine
            Where to train: "local", or the address of a Dask or Ray cluster.
        folder
            A folder that must be as private as the records. Each teacher is stored there as soon as it is trained, and
            a later call for the same task trains only those that are missing.
        advance
            Called with a line after each teacher.

        Returns
        -------
        The teachers.
        """
        records, labels = features("X", X), self._labels(y)
        names = None if ids is None else list(ids)
        for name, length in (("y", len(labels)), ("ids", len(labels if names is None else names))):
            if length != len(records):
                raise InputError(
                    f"the length of {name}",
                    length,
                    requirement=f"must be that of X, {len(records)}",
                    remedy="pass one for each record",
                )
        place = None if folder is None else Path(folder)
        if place is not None:
            stored.needed()
            private_files.closed(place)
        with private_files.enclosed(place):
            self._teachers = self._trained(records, labels, names, place, engine=engine, advance=advance)
        self._shape, self._place = records.shape[1:], place
        return self

    def votes(
        self,
        X: ArrayLike,  # noqa: N803 — scikit-learn's name
        *,
        engine: str = "local",
        advance: Callable[[str], None] = lambda _: None,
    ) -> NDArray[np.int32]:
        """The vote of every teacher on public queries.

        Parameters
        ----------
        X
            The queries.
        engine
            Where to compute: "local", or the address of a Dask or Ray cluster.
        advance
            Called with a line about the progress.

        Returns
        -------
        An array (queries × teachers) of class numbers, or `ABSTAIN`.
        """
        known = self._taught()
        queries = used(features("X", X))
        if queries.shape[1:] != self._shape:
            raise InputError(
                "the shape of a query",
                queries.shape[1:],
                requirement=f"must be that of a record, {self._shape}",
                remedy="pass the same features, one row per query",
            )
        votes = np.full((len(queries), self.n_teachers), self._empty, dtype=np.int32)
        for number, (found, _) in enumerate(known):
            if len(found) == 1:
                votes[:, number] = found[0]
        taught = [number for number, (found, _) in enumerate(known) if len(found) > 1]
        if not taught or not len(queries):
            return votes
        # Scikit-learn looks for infinities in every call; once is enough.
        finite = queries.dtype.kind == "f" and bool(np.isfinite(queries).all())
        with private_files.enclosed(self._place), workers.open_workers(engine) as crowd:
            size = math.ceil(len(taught) / (4 * crowd.cores))
            blocks = [taught[start : start + size] for start in range(0, len(taught), size)]
            done = self.n_teachers - len(taught)

            def job(number: int) -> tuple[Any, ...]:
                return queries, tuple(known[member] for member in blocks[number]), finite

            with contextlib.closing(crowd.outcomes(cast_votes, range(len(blocks)), job)) as outcomes:
                for number, outcome in outcomes:
                    if isinstance(outcome, workers.Failure):
                        raise InputError(
                            f"the votes of teachers {blocks[number][0]} to {blocks[number][-1]}",
                            outcome.kind,
                            requirement="must be classes of their chunks, one for each query",
                            remedy="see that predict takes these queries and returns labels that fit was given",
                        )
                    votes[:, blocks[number]] = outcome
                    done += len(blocks[number])
                    advance(f"{done} of {self.n_teachers} teachers have voted")
        return votes

    def counts(
        self,
        X: ArrayLike,  # noqa: N803 — scikit-learn's name
        *,
        engine: str = "local",
        advance: Callable[[str], None] = lambda _: None,
    ) -> NDArray[np.int64]:
        """The number of teachers that vote for each class. Private: only for a mechanism to answer from.

        Parameters
        ----------
        X
            The queries.
        engine
            Where to compute: "local", or the address of a Dask or Ray cluster.
        advance
            Called with a line about the progress.

        Returns
        -------
        An array (queries × classes) of counts.
        """
        votes = self.votes(X, engine=engine, advance=advance)
        parts = range(0, max(1, len(votes)), _QUERIES_AT_ONCE)
        counted = [vote_counts(votes[start : start + _QUERIES_AT_ONCE], classes=len(self.classes)) for start in parts]
        return np.concatenate(counted)

    def standing(self, *, engine: str = "local") -> StandingVotes:
        """These teachers, ready to vote on queries that come singly.

        Parameters
        ----------
        engine
            Where they vote: "local", or the address of a Dask or Ray cluster.
        """
        return StandingVotes(self._taught(), classes=len(self.classes), empty=self._empty, engine=engine)

    @property
    def _empty(self) -> int:
        """The vote of a teacher without records."""
        return ABSTAIN if self.default is None else self._numbers[self.default]

    def _taught(self) -> list[Teacher]:
        if self._teachers is None:
            raise InputError("teachers", "none", requirement="must be trained to vote", remedy="call fit first")
        return self._teachers

    def _trained(
        self,
        records: NDArray[Any],
        labels: NDArray[np.int64],
        names: list[object] | None,
        place: Path | None,
        *,
        engine: str,
        advance: Callable[[str], None],
    ) -> list[Teacher]:
        """One teacher for each chunk: read from the folder, or trained."""
        key = self._key(place)
        rows, digest = chunks(records, labels, ids=names, key=key, n_chunks=self.n_teachers)
        present = [np.unique(labels[chunk]) for chunk in rows]
        taught = [number for number, found in enumerate(present) if len(found) > 1]
        trained: dict[int, Any] = {}
        if place is not None:
            run_folder.claim(place, self._mark(key, digest), resume=True, name="folder")
            paths = {number: place / f"teacher-{number:05d}.skops" for number in taught}
            trained = {
                number: stored.read(path, type(self.estimator), trusted=self.trusted)
                for number, path in paths.items()
                if path.exists()
            }

        # Workers of this machine share one map of the records' memory; to others, each chunk is sent.
        shared = engine == "local" and records.dtype != object

        def job(number: int) -> tuple[Any, ...]:
            chunk = rows[number]
            found = np.searchsorted(present[number], labels[chunk])
            # In a tuple, which Dask sends with the job; on their own, arrays would die with the worker that holds them.
            return untrained(self.estimator, key, number), (records, chunk, found) if shared else (
                records[chunk],
                None,
                found,
            )

        left = [number for number in taught if number not in trained]
        done = self.n_teachers - len(left)  # a chunk with one class, or empty, needs no training
        if left:
            with (
                workers.open_workers(engine) as crowd,
                contextlib.closing(crowd.outcomes(_fitted, left, job)) as outcomes,
            ):
                for number, outcome in outcomes:
                    if isinstance(outcome, workers.Failure):
                        raise InputError(
                            f"the training of teacher {number}",
                            outcome.kind,
                            requirement="must succeed on its chunk",
                            remedy="fit the estimator on some records to see why; its words are kept back, "
                            "as they may quote records",
                        )
                    if place is not None:
                        stored.write(paths[number], outcome, trusted=self.trusted)
                    trained[number] = outcome
                    done += 1
                    advance(f"{done} of {self.n_teachers} teachers trained")
        if place is not None:
            run_folder.record(place / _COUNCIL, lambda: self._council(present, records.shape[1:]))
        return [(found, trained.get(number)) for number, found in enumerate(present)]

    def _council(self, present: list[NDArray[np.int64]], shape: tuple[int, ...]) -> dict[str, Any]:
        """What `load` needs beside the estimators: without it they vote for nobody knows what."""
        kind = type(self.estimator)
        return {
            "estimator": [kind.__module__, kind.__qualname__],
            "trusted": list(self.trusted),
            "shape": list(shape),
            "classes": len(self.classes),
            "present": [found.tolist() for found in present],
        }

    @classmethod
    def load(cls, folder: Path | str, *, classes: Iterable[object]) -> Teachers:
        """Read teachers that `fit` has stored, to let them vote; no records are needed.

        Parameters
        ----------
        folder
            The folder that `fit` was given. Whoever can write to it decides how teachers vote.
        classes
            What can be voted for, in the order of the counts.

        Returns
        -------
        The teachers.
        """
        place = Path(folder)
        if not (place / _COUNCIL).exists():
            raise InputError(
                "folder",
                str(place),
                requirement=f"must hold teachers and {_COUNCIL}, which tells what they vote for",
                remedy="let the run that made it finish; one of an earlier version writes the file when it is resumed",
            )
        found = run_folder.record(place / _COUNCIL, dict)
        kind = _kind(*found["estimator"])
        council = cls(kind(), len(found["present"]), classes=classes, trusted=found["trusted"])
        if len(council.classes) != found["classes"]:
            raise InputError(
                "classes",
                len(council.classes),
                requirement=f"must be the {found['classes']} that these teachers were trained for",
                remedy="pass them in the same order",
            )
        council._teachers = [
            (
                np.array(present, dtype=np.int64),
                stored.read(place / f"teacher-{number:05d}.skops", kind, trusted=council.trusted)
                if len(present) > 1
                else None,
            )
            for number, present in enumerate(found["present"])
        ]
        council._shape, council._place = tuple(found["shape"]), place
        return council

    def _labels(self, y: Iterable[object]) -> NDArray[np.int64]:
        found = np.asarray(validate.detached(y)).tolist() if hasattr(y, "__array__") else list(y)
        try:
            numbers = [self._numbers.get(label, -1) for label in found]
        except TypeError:
            raise InputError(
                "y",
                "one with several values",
                requirement="must hold one label for each record",
                remedy="flatten it",
            ) from None
        if -1 in numbers:
            raise InputError(
                "y",
                f"{numbers.count(-1)} labels that are none",  # but not which, as labels are private
                requirement="must hold labels among classes",
                remedy="list every class that may occur, known without looking at the records",
            )
        return np.array(numbers, dtype=np.int64)

    def _key(self, folder: Path | None) -> bytes:
        """The key given, else that of the folder, else a new one."""
        if self.key is not None or folder is None:
            return self.key or secrets.token_bytes(KEY_BYTES)
        path = folder / "key.json"
        if (folder / "task.json").exists() and not path.exists():
            return secrets.token_bytes(KEY_BYTES)  # the folder belongs to a task with a key of its own
        try:
            key = bytes.fromhex(
                run_folder.record(path, lambda: {"key": secrets.token_hex(KEY_BYTES)}, claimed=False)["key"]
            )
        except (KeyError, OSError, TypeError, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise InputError("folder", str(path), requirement="must hold a key", remedy="choose another folder")
        return key

    def _mark(self, key: bytes, records: str) -> dict[str, object]:
        parameters = self.estimator.get_params(deep=True)
        described = {name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)) for name, value in sorted(parameters.items())}
        return {
            "task": "teachers",
            "estimator": f"{type(self.estimator).__module__}.{type(self.estimator).__qualname__}",
            "parameters": described,
            "n_teachers": self.n_teachers,
            "classes": [repr(label) for label in self.classes],
            "key": mark(key),
            "records": records,
        }


def untrained(estimator: Any, key: bytes, number: int) -> Any:
    """A clone of the estimator for the teacher of this number, with seeds of its own."""
    from sklearn.base import clone

    fresh = clone(estimator)
    states = random_states(fresh)
    return fresh.set_params(**{name: seed(key, number, place) for place, name in enumerate(states)})


def random_states(estimator: Any) -> list[str]:
    """The parameters that seed an estimator, and what it holds, by their names in order."""
    return sorted(name for name in estimator.get_params(deep=True) if re.fullmatch(r"(.*__)?random_state", name))


def _fitted(estimator: Any, chunk: tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64]]) -> Any:
    records, rows, labels = chunk
    estimator.fit(used(records if rows is None else np.asarray(records[rows])), labels)
    return estimator


def _kind(module: str, name: str) -> type:
    """The class of stored teachers, which somebody has trained here with the same package."""
    try:
        kind = operator.attrgetter(name)(importlib.import_module(module))
    except (AttributeError, ImportError):
        kind = None
    if not isinstance(kind, type):
        raise InputError(
            "the type of the teachers",
            f"{module}.{name}",
            requirement="must be installed",
            remedy="install the package that they were trained with",
        )
    return kind


def _estimator(estimator: Any) -> Any:
    from sklearn.base import clone

    methods = ("get_params", "set_params", "fit", "predict")
    good = not isinstance(estimator, type) and all(callable(getattr(estimator, name, None)) for name in methods)
    try:
        if good:
            clone(estimator)
    except Exception:  # what a foreign constructor raises
        good = False
    if not good:
        raise InputError(
            "estimator",
            estimator,
            requirement="must be a classifier in the style of scikit-learn, which can be cloned",
            remedy="pass an instance, e.g. LogisticRegression()",
        )
    for name, value in estimator.get_params(deep=True).items():
        if name.endswith("class_weight") and not (value is None or isinstance(value, str)):
            raise InputError(
                name,
                value,
                requirement="must be None or 'balanced', as teachers see the classes of their chunk, numbered from 0",
                remedy="leave it out",
            )
    return estimator


def _classes(classes: Iterable[object] | None) -> tuple[object, ...]:
    if classes is None or isinstance(classes, str | bytes):
        raise InputError(
            "classes",
            classes,
            requirement="must be listed, from public knowledge: which of them occur among private records is private",
            remedy="list every label that may occur, e.g. classes=range(10)",
        )
    requirement, remedy = "must be one or more distinct strings or numbers", "list every label once"
    found = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    plain = all(isinstance(label, str | int | float | np.integer | np.floating | np.bool_) for label in found)
    if not found or not plain or any(label != label for label in found) or len(set(found)) < len(found):
        raise InputError("classes", found, requirement=requirement, remedy=remedy)
    return found
