"""A private regressor: teachers answer with numbers of a stated range, and a student learns their noisy means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from ..core.errors import InputError
from ..core.guarantee import Assumption
from ..ledger import Ledger
from .answer_sums import Grid
from .published_sums import PublishedRegressor
from .summed_fit import SummedFit, finite_range, learned

_REACH = 2**10
"""Steps of the grid from one end of the range to the other: what rounding takes away is far below the noise."""
_RANGE = Assumption(
    text="the range of the numbers to be learned is public knowledge, whatever the private ones are",
    checked_by="caller",
)


class PrivateRegressor(RegressorMixin, SummedFit):  # type: ignore[misc]
    """A scikit-learn regressor that is (ε, δ)-differentially private for its training records.

    `fit(X, y, X_public)` trains teachers on disjoint chunks of the private records and asks each about public ones.
    Every answer is clipped to `label_range`; the sums over teachers are released once with noise, and a student learns
    from the means. The guarantee compares data with and without one record, or one person's records with `ids`.

    Parameters
    ----------
    label_range
        The least and the largest value that can occur, from public knowledge. What lies beyond is clipped; noise grows
        with the width.
    estimator
        The regressor that teachers are clones of; ridge regression unless given, for which columns should be scaled
        by a rule that public records alone decide (`Columns`).
    epsilon
        The whole cost of one `fit`. Fitting again costs again.
    delta
        About 1/n².
    n_teachers
        The number of teachers. The noise on a mean falls with it, so there should be many, as long as the records of
        each can teach something. "auto" takes one for each 50 records, or people if there are ids. That number is
        private, so it is read with noise, for a hundredth of ε.
    student
        Any regressor; unless given, ridge regression whose penalty is found by leaving out one answer at a time. It
        costs no privacy.
    queries
        The number of public records to ask about, medoids of clusters; "all" unless given. More of them cost nothing
        where the student has few parameters: the noise on each mean grows with the root of their number, and the
        student averages as many more of them.
    ledger
        A `tacit.ledger.Ledger`. The cost is spent there before the sums are drawn, and they are noted there first.
    key
        32 bytes for the hash, fresh unless given.
    engine
        Where teachers are trained, as for `Teachers`.
    random_state
        The seed of the clusters. Privacy noise takes no seed.

    Attributes
    ----------
    guarantee_
        What is proven about everything that may be published.
    asked_
        The places of the public records that were asked about.
    noisy_sums_, means_
        What was released of each of them, as whole numbers, and the mean answer that follows from it.
    n_teachers_
        The number of teachers.
    student_
        The fitted student.
    """

    records_each = 50

    def __init__(
        self,
        estimator: Any = None,
        *,
        label_range: tuple[float, float] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        n_teachers: int | str = "auto",
        student: Any = None,
        queries: int | str | None = None,
        ledger: Ledger | None = None,
        key: bytes | None = None,
        engine: str = "local",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.label_range = label_range
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.student = student
        self.queries = queries
        self.ledger = ledger
        self.key = key
        self.engine = engine
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Predict a number of the range for each row of `X`, by the student."""
        found: NDArray[np.float64] = np.clip(self._predicted(X)[:, 0], *finite_range("label_range", self.label_range))
        return found

    def published(self) -> PublishedRegressor:
        """The part that may be published: the student, the range and the guarantee. `skops.io.dump` stores it."""
        check_is_fitted(self, "student_")
        low, high = finite_range("label_range", self.label_range)
        return PublishedRegressor(
            student=self.student_, label_range=[low, high], guarantee_json=self.guarantee_.to_json()
        )

    def _grid(self) -> Grid:
        if self.label_range is None:
            raise InputError(
                "label_range",
                None,
                requirement="must be given, from public knowledge: the range of private numbers is private",
                remedy="give the least and the largest value that can occur, e.g. (0, 500)",
            )
        low, high = finite_range("label_range", self.label_range)
        return Grid(low=low, high=high, reach=_REACH)

    def _values(self, y: Any, *, records: int) -> NDArray[np.float64]:
        remedy = "pass an array of one dimension, without missing values"
        found = learned(y, dimensions=1, records=records, what="one finite number for", remedy=remedy)
        return np.clip(found, *finite_range("label_range", self.label_range)).reshape(-1, 1) + 0.0

    def _estimator(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    def _assumed(self) -> tuple[Assumption, ...]:
        return (_RANGE,)
