"""What a private regressor and a private classifier of several labels share: one fit from sums of teachers' answers."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import RidgeCV
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Assumption
from ..ledger import Ledger
from ..runtime import private_files, run_folder
from . import interrupted, repeated_fits
from .answer_sums import AnswerSums, Grid, summed_answers, try_estimator
from .assumptions import neighbours
from .drawn import Draws
from .fit_options import check_common
from .overlap import REMEDY, require_other_rows
from .owners import owners, remember
from .queries import medoids
from .release import Release
from .shares import ANSWERS, COUNT, Shares
from .transformed import check_width, warn_of_transformer

TAUGHT = "taught"
"""The folder, in that of a fit, which remembers whose records taught."""
LEAST_EPSILON = 1e-5
"""Below, sums of any number of teachers would be lost in the noise, which may no longer be whole numbers."""
_NOTED = "sums"
"""The name of the note that holds released sums."""
_OWNER = "PrivateClassifier"
"""Whose name entries of a ledger bear, until it is replaced."""


class SummedFit(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """One fit: teachers on disjoint chunks answer with numbers, their sums are released with noise, a student learns.

    Subclasses say what is learned.
    """

    records_each: ClassVar[int]
    """The records of each teacher, on average, if "auto" decides: noise is divided by the number of teachers."""

    estimator: Any
    epsilon: float
    delta: float
    n_teachers: int | str
    student: Any
    queries: int | str | None
    ledger: Ledger | None
    key: bytes | None
    engine: str
    random_state: Any

    def fit(
        self,
        X: Any,  # noqa: N803 — scikit-learn's name
        y: Any,
        X_public: Any,  # noqa: N803
        *,
        ids: Iterable[object] | None = None,
        ids_column: str | None = None,
        folder: Path | str | None = None,
        allow_overlap: bool = False,
        rehearse: Callable[[Any], object] = lambda _: None,
        advance: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Train teachers, spend the budget, release the sums of their answers with noise, and fit the student.

        Before anything is paid for, the estimator and the student learn from made-up numbers.

        Parameters
        ----------
        X, y
            The private records and what is to be learned.
        X_public
            The public records. If rows are equal to private ones beyond chance, they are refused.
        ids
            Whose each record is. A "record" of the guarantee is then all records of one id.
        ids_column
            The name of the column of `ids`, which the guarantee and the ledger's entry repeat.
        folder
            A folder that must be as private as the records. With a ledger a later call for the same task is the same
            release: nothing is paid twice, and sums that were noted are read back. Teachers are not stored.
        allow_overlap
            Accept public records that are private ones. Such records are not protected.
        rehearse
            Called with a stand-in that was fitted to made-up answers, before anything is paid for.
        advance
            Called with a line about the progress.

        Returns
        -------
        This estimator, fitted.

        Raises
        ------
        InputError
            The message may depend on private records: do not publish it.
        """
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        counting = self.n_teachers == "auto"
        shares = Shares(epsilon=self.epsilon, delta=self.delta, counting=counting, least=LEAST_EPSILON)
        self._check_options()
        grid = self._grid()
        X = validate_data(self, validate.unmasked("X", X), dtype=np.float64, ensure_min_samples=2)  # noqa: N806
        values = self._values(y, records=len(X))
        check_width(X, X_public)
        public = validate_data(self, validate.unmasked("X_public", X_public), dtype=np.float64, reset=False)
        whose, place = owners(X, ids), None if folder is None else Path(folder)
        people = None if ids is None else whose
        compared = neighbours(labels_only=False, ids=ids is not None, ids_column=ids_column)
        release = Release(
            shares=shares,
            compared=compared,
            labels_only=False,
            overlapping=allow_overlap,
            proposed=False,
            named=False,
            transformed=False,
        )
        costs = {
            cost.what: dataclasses.replace(cost, what=cost.what.replace(_OWNER, type(self).__name__))
            for cost in shares.costs(compared)
        }
        with private_files.enclosed(place):
            run = interrupted.run(None if place is None else private_files.closed(place), self.key)
            ledger = interrupted.anchored(self.ledger, place)
            if not allow_overlap:
                require_other_rows("X_public", public, X, called="X", remedy=REMEDY)
            if ledger is not None:  # before anything is done for nothing
                interrupted.require(ledger, run.release, list(costs.values()))
            asked = self._asked(public)
            epsilon, delta = shares.left
            mechanism = AnswerSums(epsilon=epsilon, delta=delta, sums=len(asked) * values.shape[1], reach=grid.reach)
            warn_of_transformer(X, public)
            try_estimator("estimator", self._estimator(), width=X.shape[1], grid=grid)
            everyone = len(X) if people is None else len(set(people))
            made = type(self)(**self.get_params(deep=False))
            for name in ("n_features_in_", "feature_names_in_", "asked_"):
                if hasattr(self, name):
                    setattr(made, name, getattr(self, name))
            guess = self._teachers(everyone) if counting else self._teachers(0)
            made._learn(self._made_up(len(asked), values.shape[1], guess, grid), public, guess, grid, tried=True)
            made._state(release, mechanism, guess, resumed=True)
            rehearse(made)
            once = run.release if ledger is not None and place is not None else None
            repeated_fits.count(X, epsilon=shares.epsilon, delta=shares.delta, release=once, limited=ledger is not None)
            draws = Draws(records=X, people=people, run=run, folder=place, ledger=ledger)
            teachers = self._teachers(draws.count(costs[COUNT]) if counting else 0)
            mark = self._mark(mechanism, public, release, teachers=teachers, grid=grid)
            if place is not None:
                run_folder.claim(place, mark, resume=True, name="folder")
                remember(
                    place / TAUGHT, np.column_stack([X, values]), np.zeros(len(X), dtype=np.int64), people, run.key
                )
            cost = costs[ANSWERS]
            sums = None
            if ledger is None or not interrupted.noted(ledger, run.release, cost, _NOTED):
                sums = summed_answers(
                    self._estimator(),
                    X,
                    values,
                    public[asked],
                    owners=whose,
                    key=run.key,
                    teachers=teachers,
                    grid=grid,
                    engine=self.engine,
                    advance=advance,
                )
            notes = interrupted.Notes()
            if ledger is not None:
                task = run_folder.digest(json.dumps(mark, sort_keys=True).encode())
                notes = interrupted.paid(
                    ledger, run.release, cost, task=task, detail={"mechanism": type(mechanism).__name__}
                )
            noted = notes.value(_NOTED)
            if noted is None:
                if sums is None:  # a note that was there a moment ago
                    raise InputError("ledger", "no sums", requirement="must keep its notes", remedy="restore it")
                if notes.earlier:
                    notes.add({"resumed": 0})
                noted = mechanism.release(sums).tolist()
                notes.add({_NOTED: noted})
            del sums
            self._state(release, mechanism, teachers, resumed=notes.resumed)
            self._learn(np.array(noted, dtype=np.int64), public, teachers, grid)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "student_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    @abstractmethod
    def _grid(self) -> Grid:
        """The numbers that teachers may answer."""

    @abstractmethod
    def _values(self, y: Any, *, records: int) -> NDArray[np.float64]:
        """What is to be learned, a column for each answer."""

    @abstractmethod
    def _estimator(self) -> Any:
        """What teachers are clones of."""

    def _student(self) -> Any:
        if self.student is not None:
            return self.student
        return RidgeCV(alphas=np.logspace(-1, 6, 29))  # by leaving out one answer at a time

    def _predicted(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self, "student_")
        points = validate_data(self, validate.unmasked("X", X), dtype=np.float64, reset=False)
        return predicted(self.student_, points)

    def _check_options(self) -> None:
        if self.n_teachers != "auto":
            validate.whole("n_teachers", self.n_teachers, at_least=1, remedy="use 'auto', or say how many")
        check_common(queries=self.queries, ledger=self.ledger, key=self.key)

    def _teachers(self, count: int) -> int:
        return int(self.n_teachers) if self.n_teachers != "auto" else max(1, count // self.records_each)

    def _asked(self, public: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of the public records that are asked about: all, unless a number was given."""
        wanted = len(public) if self.queries in (None, "all") else int(str(self.queries))
        self.asked_ = medoids(
            public, clusters=wanted, random_state=0 if self.random_state is None else self.random_state
        )
        return self.asked_

    def _made_up(self, queries: int, columns: int, teachers: int, grid: Grid) -> NDArray[np.int64]:
        """Sums of made-up answers: from none of all teachers to all of them, in turn."""
        shares = (np.arange(queries * columns) % 11 - 2) / 6  # noise takes true ones beyond both ends
        return np.rint(shares * teachers * grid.reach).astype(np.int64).reshape(queries, columns)

    def _state(self, release: Release, mechanism: AnswerSums, teachers: int, *, resumed: bool) -> None:
        proven = release.guarantee_of(mechanism, council={"teachers": teachers}, estimate=None, resumed=resumed)
        compared, *others = proven.assumptions
        self.guarantee_ = dataclasses.replace(proven, assumptions=(compared, *self._assumed(), *others))

    def _assumed(self) -> tuple[Assumption, ...]:
        """What the caller states beyond what every fit assumes."""
        return ()

    def _learn(
        self, noisy: NDArray[np.int64], public: NDArray[np.float64], teachers: int, grid: Grid, *, tried: bool = False
    ) -> None:
        """Set the attributes that follow from the sums."""
        self.noisy_sums_, self.n_teachers_ = noisy, teachers
        self.means_ = grid.means(noisy, teachers=teachers)
        student, points = clone(self._student()), public[self.asked_]
        with warnings.catch_warnings():
            if tried:
                warnings.simplefilter("ignore")  # of made-up answers
            try:
                student.fit(points, self.means_[:, 0] if self.means_.shape[1] == 1 else self.means_)
                said = predicted(student, public[:2])
                problem = None if said.shape[1] == self.means_.shape[1] else "which predicts another number of columns"
            except Exception as failure:  # what foreign code raises; it has seen nothing private
                problem = f"which raised {type(failure).__name__}: {failure}"
        if problem is not None:
            raise InputError(
                "the student",
                f"{type(student).__name__}, {problem}",
                requirement="must be a regressor that learns from public records and the means of answers",
                remedy="choose another; "
                + ("nothing was spent" if tried else "the answers are kept where a ledger is"),
            )
        self.student_ = student

    def _mark(
        self, mechanism: AnswerSums, public: NDArray[np.float64], release: Release, *, teachers: int, grid: Grid
    ) -> dict[str, object]:
        """The task of a folder: all that decides what is drawn, except the records."""
        epsilon, delta = release.shares.whole
        return {
            "task": type(self).__name__,
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": repr(mechanism),
            "constants": repr(mechanism.guarantee.detail),
            "grid": repr(grid),
            "asked": run_folder.digest(np.ascontiguousarray(self.asked_).tobytes()),
            "n_teachers": teachers,
            "neighbours": release.compared,
            "ledger": None if self.ledger is None else self.ledger.origin,
            "public": run_folder.digest(np.ascontiguousarray(public).tobytes()),
        }


def predicted(student: Any, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a student predicts, a column for each answer."""
    said = np.asarray(student.predict(points), dtype=np.float64)
    return said.reshape(len(points), -1)


def learned(y: Any, *, dimensions: int, records: int, what: str, remedy: str) -> NDArray[np.float64]:
    """What is to be learned as finite numbers, one row for each record. Errors do not quote any: they are private."""
    try:
        found = validate.array("y", y, dimensions=dimensions, remedy=remedy)
        if len(found) == records:
            return found
        got = f"{len(found)} rows"
    except InputError:
        got = f"other values, of shape {y.shape}" if hasattr(y, "shape") else "other values"
    raise InputError("y", got, requirement=f"must be {what} each of the {records} records", remedy=remedy) from None


def finite_range(name: str, value: Any) -> tuple[float, float]:
    """A range of two finite numbers, the first below the second, whose width is finite, too."""
    remedy = "give the least and the largest value that can occur, from public knowledge, e.g. (0, 500)"
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InputError(name, value, requirement="must be two numbers", remedy=remedy) from None
    low, high = (validate.number(name, end, remedy=remedy) for end in (low, high))
    if not (low < high and math.isfinite(high - low) and (high - low) > 1e-9 * max(abs(low), abs(high))):
        raise InputError(
            name, (low, high), requirement="must be two numbers, the first well below the second", remedy=remedy
        )
    return low, high
