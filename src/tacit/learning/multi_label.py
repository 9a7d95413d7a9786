"""A private classifier of several labels: teachers say yes or no to each, and a student learns their noisy counts."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from ..core import validate
from ..core.errors import InputError
from ..ledger import Ledger
from .answer_sums import Grid
from .published_sums import PublishedMultiLabelClassifier
from .summed_fit import SummedFit, learned


class PrivateMultiLabelClassifier(ClassifierMixin, SummedFit):  # type: ignore[misc]
    """A scikit-learn classifier of several yes-or-no labels that is (ε, δ)-differentially private for its records.

    `fit(X, y, X_public)` trains teachers on disjoint chunks of the private records. Each says yes or no to every label
    of public records; the counts of yes are released once with noise, and a student learns the shares. The guarantee
    compares data with and without one record, or one person's records with `ids`. `y` is a matrix of 0 and 1, a column
    for each label.

    Parameters
    ----------
    estimator
        The classifier that teachers are clones of, one for each label; logistic regression unless given.
    epsilon
        The whole cost of one `fit`. Fitting again costs again.
    delta
        About 1/n².
    n_teachers
        The number of teachers, as for `PrivateRegressor`; "auto" takes one for each 100 records, as classifiers need
        more of them.
    student
        Any regressor of as many columns as there are labels, which learns the shares; unless given, ridge regression
        whose penalty is found by leaving out one answer at a time. A label is predicted where its share exceeds 1/2.
    queries
        The number of public records to ask about, medoids of clusters; "all" unless given.
    ledger
        A `tacit.ledger.Ledger`. The cost is spent there before the counts are drawn, and they are noted there first.
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
        The noisy counts of yes that were released, a column for each label, and the shares that follow from them.
    n_teachers_
        The number of teachers.
    student_
        The fitted student.
    """

    records_each = 100

    def __init__(
        self,
        estimator: Any = None,
        *,
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
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.student = student
        self.queries = queries
        self.ledger = ledger
        self.key = key
        self.engine = engine
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """0 or 1 for each row of `X` and each label."""
        return (self._predicted(X) > 0.5).astype(np.int64)

    def predict_shares(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The share of teachers, from 0 to 1, that would say yes to each label."""
        return np.clip(self._predicted(X), 0.0, 1.0)

    def published(self) -> PublishedMultiLabelClassifier:
        """The part that may be published: the student and the guarantee. `skops.io.dump` stores it."""
        check_is_fitted(self, "student_")
        return PublishedMultiLabelClassifier(student=self.student_, guarantee_json=self.guarantee_.to_json())

    def _grid(self) -> Grid:
        return Grid(low=0.0, high=1.0, reach=1)

    def _values(self, y: Any, *, records: int) -> NDArray[np.float64]:
        what, remedy = "0 or 1, or False or True, for every label of", "pass an array, a column for each label"
        given = y
        if not isinstance(y, np.ma.MaskedArray):
            with contextlib.suppress(Exception):  # of ragged lists and foreign arrays, which are refused below
                given = np.asarray(validate.detached(y))
                if all(
                    isinstance(entry, int | float | np.bool_ | np.integer | np.floating)
                    for entry in given.ravel().tolist()
                ):
                    given = given.astype(np.float64)
        found = learned(given, dimensions=2, records=records, what=what, remedy=remedy)
        if not np.isin(found, (0.0, 1.0)).all():
            raise InputError("y", "other numbers", requirement=f"must be {what} each record", remedy=remedy)
        return found + 0.0

    def _estimator(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator
