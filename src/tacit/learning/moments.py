"""A classifier from one noisy release, without teachers: sums of features by class, and the public covariance.

It is not model-agnostic: the classifier is linear in public features. Where these are good, it needs a far smaller ε
than answers of teachers do.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import validate
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.wording import text_above
from ..runtime import private_files
from ..theory import accounting
from .assumptions import CLASSES_PUBLIC, EACH_ALONE, comparing, neighbours
from .labels import FOUND_BY, UNNAMED, column, named, numbered
from .mechanisms import Noise
from .mechanisms.registry import MOMENTS
from .mechanisms.session import check_budget, with_noise
from .overlap import ALLOWED, REMEDY, require_other_rows
from .shares import Shares
from .transformed import each_alone

_LENGTH = 2**15
"""Of a record's features as whole numbers, at most: what rounding takes away is far below the noise."""

_RIDGE = 0.1
"""The ridge unless another is given."""
_LARGEST_SHARE, _LARGEST_NOISE = 0.25, 0.1
"""What "auto" asks of public features, and of the noise of fitted values, to take sums."""

SUMMED = "summed"
"""The folder, in that of a fit, which remembers whose records were summed up."""
LEAST_EPSILON = 1e-5
"""Below, whatever δ, sums of any number of records would be lost in the noise, which may no longer be whole numbers."""

_ASSUMED = (
    Assumption(
        text="one fit is made; each further one is a release of its own, with its own cost", checked_by="caller"
    ),
    Assumption(
        text="nobody can foresee the noise: it comes from a cryptographic generator that the operating system seeds",
        checked_by="caller",
    ),
)


@dataclass(frozen=True, kw_only=True)
class NoisySums:
    """One release of the sums of features by class, with noise on every number.

    The sums must be those of `sums_by_class`, which bounds what one record, or one person, adds to them.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of the release.
    changed
        The number of sums that one record may change: 1 if records are protected, 2 if only labels are, as a changed
        label takes a record from one sum and adds it to another.
    """

    epsilon: float
    delta: float
    changed: int = 1

    reason: ClassVar[str] = (
        f"{MOMENTS}, sums of features by class, released once with noise. It is not model-agnostic: the classifier is "
        "linear in the stated public features. Nothing private was used for this that was not paid for"
    )

    def __post_init__(self) -> None:
        check_budget(self)
        validate.whole("changed", self.changed, at_least=1, remedy="use 1, or 2 if only labels are protected")

    @property
    def sensitivity(self) -> float:
        """How far one record, or one person, moves all sums together, at most."""
        return accounting.sums_sensitivity(_LENGTH, changed=self.changed)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every number's noise."""
        return accounting.lattice_sigma(self.epsilon, self.delta, sensitivity=self.sensitivity)

    @property
    def spread(self) -> float:
        """The noise on every sum, in records."""
        return self.sigma / _LENGTH

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of the release."""
        return Guarantee(
            quantity=f"privacy loss ε at δ = {text_above(self.delta)}",
            side="at_most",
            value=self.epsilon,
            adversary=Adversary.ANY,
            theorem=(
                "sums with discrete Gaussian noise",
                "theory.accounting.lattice_delta",
                "theory.accounting.sums_sensitivity",
            ),
            assumptions=_ASSUMED,
            detail={
                "mechanism": type(self).__name__,
                "delta": self.delta,
                "delta_spent": accounting.lattice_delta(self.epsilon, sigma=self.sigma, sensitivity=self.sensitivity),
                "changed": self.changed,
                "sigma": self.sigma,
                "sensitivity": self.sensitivity,
            },
        )

    def release(self, sums: NDArray[np.int64], noise: Noise | None = None) -> NDArray[np.int64]:
        """The sums with fresh noise; `noise` is another source for tests and attacks."""
        return with_noise(sums, self.sigma, noise)


def suits(seen: NDArray[Any], mechanism: NoisySums, *, voters: int, classes: int) -> bool:
    """Whether "auto" takes sums for so many records or people, where a linear classifier is asked for in any case.

    It does for two classes, as least squares may hide one of several behind others; if no public feature holds more
    than a quarter of the squared lengths of public records, as features of different scales would; and if the noise
    moves fitted values, which differ by 1 between classes told apart for certain, by a tenth at most.
    """
    if classes != 2 or not np.isfinite(seen).all():
        return False
    with np.errstate(over="ignore"):
        squares = np.square(seen.astype(np.float64, copy=False)).sum(axis=0)
        whole = squares.sum()
    if not 0 < squares.max() <= _LARGEST_SHARE * whole < np.inf:  # of larger ones, nothing would be left
        return False
    rows = unit_rows(seen)
    covariance, system = _system(rows, _RIDGE)
    inverse = np.linalg.inv(system)
    moved = mechanism.spread / voters * math.sqrt(2 * float(np.trace(inverse @ covariance @ inverse)))
    return moved <= _LARGEST_NOISE


def sums_by_class(
    rows: NDArray[np.float64], numbers: NDArray[np.int64], people: list[bytes] | None, *, classes: int
) -> NDArray[np.int64]:
    """The sum of the rows of each class, as whole numbers. Private: only for `NoisySums`.

    Every row counts as what `_whole` makes of it. Where there are people, it is divided by the number of its person's
    rows, those without a class included, and rounded towards zero: labels decide in which sum a row is, never how much
    of it (docs/proofs/accounting.md, `sums_sensitivity`).
    """
    whole = _whole(rows)
    if people is not None:
        times = Counter(people)
        share = np.array([times[person] for person in people], dtype=np.int64).reshape(-1, 1)
        whole = np.sign(whole) * (np.abs(whole) // share)
    sums = np.zeros((classes, rows.shape[1]), dtype=np.int64)
    known = numbers != UNNAMED
    np.add.at(sums, numbers[known], whole[known])
    return sums


class MomentClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Ridge regression on public features whose only private part, the sums of features by class, is noisy.

    `fit(X, y, X_public)` scales every record's features to a length of at most 1, rounds them to whole numbers, adds
    them up by class, and adds discrete Gaussian noise to each sum. The rest is computed from public records.

    Parameters
    ----------
    epsilon, delta
        The whole cost of one `fit`. Fitting again costs again.
    features
        A transformer, fitted to the public records alone; the points as they are unless given.
    ridge
        Added to the covariance of the public features, as a multiple of its mean eigenvalue.
    classes
        All labels that may occur, from public knowledge; None finds those that enough records hold, as for
        `PrivateClassifier`.

    Attributes
    ----------
    guarantee_
        What is proven.
    classes_
        The classes.
    weights_
        The weights of the features for each class.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        features: Any = None,
        ridge: float = _RIDGE,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.features = features
        self.ridge = ridge
        self.classes = classes

    def fit(self, X: Any, y: Any, X_public: Any, *, allow_overlap: bool = False) -> MomentClassifier:  # noqa: N803 — scikit-learn's name
        """Spend the budget once.

        Parameters
        ----------
        X, y
            The private records and their labels.
        X_public
            The public records.
        allow_overlap
            Accept public records that are private ones. Such records are not protected.

        Returns
        -------
        This classifier, fitted.
        """
        ridge = validate.number("ridge", self.ridge, above=0, remedy="use about 0.1")
        finding = self.classes is None
        shares = Shares(epsilon=self.epsilon, delta=self.delta, finding=finding, least=LEAST_EPSILON)
        epsilon, delta = shares.left
        mechanism = NoisySums(epsilon=epsilon, delta=delta)
        proven = mechanism.guarantee
        X, y = validate_data(self, validate.unmasked("X", X), column("y", y), dtype=np.float64)  # noqa: N806
        public = validate_data(self, validate.unmasked("X_public", X_public), dtype=np.float64, reset=False)
        if not allow_overlap:
            require_other_rows("X_public", public, X, called="X", remedy=REMEDY)
        self.features_ = None if self.features is None else clone(self.features).fit(public)
        with private_files.enclosed():
            seen = public if self.features_ is None else np.asarray(self.features_.transform(public[:1]))
            rows = unit_rows(each_alone(self.features_, X, like=seen))
        if finding:
            search = shares.search(labels_only=False)
            self.classes_ = search.classes(search.labels(y))
            numbers = numbered(y, self.classes_)
        else:
            self.classes_, numbers = named(y, self.classes)
        sums = sums_by_class(rows, numbers, None, classes=len(self.classes_))
        self.weights_ = self._weights(mechanism.release(sums), public, ridge)
        detail = {
            "delta": accounting.basic_composition([proven.detail["delta_spent"], shares.classes[1]]),
            "sigma": mechanism.sigma,
            "sensitivity": mechanism.sensitivity,
            "released": sums.size,
        }
        if finding:
            detail |= {"epsilon_classes": search.epsilon, "delta_classes": search.delta, "found_from": search.threshold}
        self.guarantee_ = Guarantee(
            quantity=f"privacy loss ε at δ = {text_above(shares.delta)}",
            side="at_most",
            value=shares.epsilon,
            adversary=Adversary.ANY,
            theorem=(
                "sums with discrete Gaussian noise",
                *["theory.accounting.basic_composition"] * finding,
                "theory.accounting.lattice_delta",
                "theory.accounting.sums_sensitivity",
                *FOUND_BY * finding,
            ),
            assumptions=(
                comparing(neighbours(labels_only=False, ids=False)),
                *[ALLOWED] * allow_overlap,
                *_ASSUMED,
                *[CLASSES_PUBLIC] * (not finding),
                *[EACH_ALONE] * (self.features is not None),
            ),
            detail=detail,
        )
        return self

    @classmethod
    def of_sums(
        cls,
        noisy: NDArray[np.int64],
        public: NDArray[np.float64],
        *,
        epsilon: float,
        delta: float,
        features: Any = None,
        fitted: Any = None,
    ) -> MomentClassifier:
        """The classifier of class numbers that follows from sums which were released for this budget.

        `features` is the transformer, and `fitted` its clone that was fitted to the public records.
        """
        model = cls(epsilon=epsilon, delta=delta, features=features, classes=list(range(len(noisy))))
        model.classes_, model.features_, model.n_features_in_ = np.arange(len(noisy)), fitted, public.shape[1]
        model.weights_ = model._weights(noisy, public, model.ridge)
        return model

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The class whose fitted value is largest."""
        classes: NDArray[Any] = self.classes_[np.argmax(self._values(X), axis=1)]
        return classes

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The fitted value of each class; of two classes, by how much the second one's is larger."""
        values = self._values(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def _values(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self)
        X = validate_data(self, validate.unmasked("X", X), dtype=np.float64, reset=False)  # noqa: N806
        values: NDArray[np.float64] = self._rows(X) @ self.weights_
        return values

    def _weights(self, noisy: NDArray[np.int64], public: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
        """Ridge regression by noisy sums, and by the covariance of public features."""
        _, system = _system(self._rows(public), ridge)
        return np.asarray(np.linalg.solve(system, noisy.T.astype(np.float64) / _LENGTH), dtype=np.float64)

    def _rows(self, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
        """Features with a constant beside them, each row of length 1."""
        return unit_rows(X if self.features_ is None else np.asarray(self.features_.transform(X)))


def _system(rows: NDArray[np.float64], ridge: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The second moments of public rows, and the same with a ridge."""
    covariance = rows.T @ rows / len(rows)
    penalty = ridge * np.trace(covariance) / len(covariance)
    system: NDArray[np.float64] = covariance + penalty * np.eye(len(covariance))
    return covariance, system


def unit_rows(features: NDArray[Any]) -> NDArray[np.float64]:
    """Features with a constant beside them, each row of length 1.

    A row depends on its own record, to the last bit: squares are added up column by column, as a sum along rows may be
    taken in an order that depends on how many there are.
    """
    features = features.astype(np.float64, copy=False)
    squares = np.zeros(len(features))
    with np.errstate(over="ignore", invalid="ignore"):
        for values in features.T:
            squares += values * values
        length = np.sqrt(squares)[:, None]
        unit = features / np.where(length > 0, length, 1.0)
    rows: NDArray[np.float64] = np.hstack([unit, np.ones((len(unit), 1))]) / np.sqrt(2)
    return rows


def _whole(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows as whole numbers, rounded towards zero; one that is too long for the guarantee, or no number, is left out.

    Entries are looked at as floats first: what does not fit would become some whole number, whose square may wrap.
    """
    usable = np.all(np.abs(rows) <= 1, axis=1, keepdims=True)  # nan is not
    found: NDArray[np.int64] = np.trunc(np.where(usable, rows, 0.0) * _LENGTH).astype(np.int64)
    too_long = (found**2).sum(axis=1) > _LENGTH**2
    found[too_long] = 0
    return found
