"""Attacks on secrets of several values and on secret numbers: learners fitted to some rows and measured on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.guarantee import Attack
from ..core.rounding import down, up
from ..theory.confidence import bounded_mean_lower, bounded_mean_upper, sampled_mean_lower, sampled_mean_upper
from .attempt import LEARNER_NAMES
from .columns import spelled_numbers
from .guess_counts import NumberCounts
from .guesses import ClassCertificate, GuessCertificate, NumberCertificate
from .learners import coarse_cells, coded_features

LEAST_ROWS = 60
"""With fewer, no part of the table is large enough to show anything."""

_OWN_STREAM = 0x6E55
_MOST_WEIGHT = 1.25  # of a class that is rarer among the test rows than in the table; the rest of it counts as wrong
_MOST_BOOSTED = 50  # classes: gradient boosting fits a tree for each

_Array = NDArray[Any]
_Floats = NDArray[np.float64]
_Guess = Callable[[list[_Array]], _Array]


@dataclass(frozen=True, kw_only=True)
class GuessAttack(Attack):
    """An attack that guesses a secret of several values, or a number, measured on rows that it was not fitted to.

    Attributes
    ----------
    learner
        What was fitted: "histogram" or "boosting".
    reached
        The share of right guesses, or R², on the test rows.
    """

    learner: str
    reached: float

    @property
    def name(self) -> str:
        """The learner in words."""
        return LEARNER_NAMES[self.learner]


def guess_attacks(
    secrets: _Array,
    columns: list[_Array],
    *,
    certificate: GuessCertificate,
    failure_probability: float,
    seed: int,
) -> tuple[GuessAttack, ...]:
    """Attack the output that a certificate is about; half of the rows fits, the other half tests.

    Parameters
    ----------
    secrets, columns
        Rows of the table, drawn at random.
    certificate
        What the attacks are compared with.
    failure_probability
        The chance that the interval of any attack is false.
    seed
        Of the parts of the table, and the learners.

    Returns
    -------
    The attacks, the best one first; none where there are too few rows.
    """
    if len(secrets) < LEAST_ROWS:
        return ()
    # An adversary who sees text that spells numbers sees the numbers as well.
    spelled = [spelled_numbers(one) if one.dtype.kind == "U" else None for one in columns]
    seen = [*columns, *(numbers for numbers in spelled if numbers is not None)]
    order = np.random.default_rng([seed, _OWN_STREAM]).permutation(len(secrets))
    fit, test = np.split(order, [len(order) // 2])
    measured: Callable[[_Array, _Array, float], tuple[float, float, float, float]]
    if isinstance(certificate, ClassCertificate):
        fitted, measured = _classifiers(certificate), partial(_named, certificate)
    elif isinstance(certificate, NumberCertificate):
        counts = NumberCounts(certificate.low, certificate.high)
        secrets = counts.scaled(secrets)
        fitted, measured = _regressors(), partial(_estimated, certificate)
    else:
        raise InputError("certificate", certificate, requirement="must be for guesses", remedy="certify first")
    found = []
    for learner, fitting in fitted.items():
        guess = fitting([one[fit] for one in seen], secrets[fit], seed)
        share = failure_probability / len(fitted)
        value, low, high, reached = measured(guess([one[test] for one in seen]), secrets[test], share)
        found.append(
            GuessAttack(
                quantity=certificate.quantity("advantage"),
                value=value,
                low=min(value, low),
                high=max(value, high),
                failure_probability=share,
                adversary=certificate.guarantee.adversary,
                method=f"{LEARNER_NAMES[learner]} (fitted to {len(fit)} rows, tested on {len(test)})",
                learner=learner,
                reached=reached,
            )
        )
    return tuple(sorted(found, key=lambda attack: -attack.low))


def _named(
    certificate: ClassCertificate, guesses: _Array, secrets: _Array, failure: float
) -> tuple[float, float, float, float]:
    """The advantage with its limits, and the share of right guesses, in the shares of the table.

    A class that is rarer, or more frequent, among the test rows than in the table counts more, or less.
    """
    rows = len(secrets)
    values, places = np.unique(secrets, return_inverse=True)
    wanted = np.array([certificate.shares[value] for value in values.tolist()])
    weights = np.minimum(_MOST_WEIGHT, wanted * rows / np.bincount(places))
    most = float(weights.max())
    missing = max(0.0, 1 - float((weights * np.bincount(places)).sum()) / rows)
    mean = min(1.0, float((weights[places] * (guesses == secrets)).mean()) / most)
    half = failure / 2
    low = down(
        most * bounded_mean_lower(down(mean, relative=1e-12), count=rows, failure_probability=half), relative=1e-12
    )
    high = up(
        most * bounded_mean_upper(min(1.0, up(mean, relative=1e-12)), count=rows, failure_probability=half) + missing,
        relative=1e-12,
    )
    blind = certificate.blind
    value, low, high = ((share - blind) / (1 - blind) for share in (most * mean, low, high))
    return value, down(low, relative=1e-12), up(high, relative=1e-12), most * mean


def _estimated(
    certificate: NumberCertificate, guesses: _Array, secrets: _Array, failure: float
) -> tuple[float, float, float, float]:
    """R² with its limits; secrets and guesses lie in [−1, 1], and the variance is that of the table.

    The limits take rows as independent pairs from one law, whose R² differs by chance from that of the table's numbers.
    """
    variance = (2 * certificate.deviation / (certificate.high - certificate.low)) ** 2
    losses = np.minimum(1.0, (np.clip(guesses, -1, 1) - secrets) ** 2 / 4)
    half = failure / 2
    most = up(4 * sampled_mean_upper(losses, failure_probability=half) / variance, relative=1e-9)
    least = down(4 * sampled_mean_lower(losses, failure_probability=half) / variance, relative=1e-9)
    value = 1 - 4 * float(losses.mean()) / variance
    return value, down(1 - most), up(1 - least), value


def _classifiers(certificate: ClassCertificate) -> dict[str, Callable[[list[_Array], _Array, int], _Guess]]:
    boosted = {"boosting": _boosted_classes} if certificate.values <= _MOST_BOOSTED else {}
    return {"histogram": _majority, **boosted}


def _regressors() -> dict[str, Callable[[list[_Array], _Array, int], _Guess]]:
    return {"histogram": _means, "boosting": _boosted_numbers}


def _majority(columns: list[_Array], secrets: _Array, _seed: int) -> _Guess:
    """The most frequent secret among rows with the same output; for an output not seen, that of all."""
    cells = coarse_cells(columns)
    values, classes = np.unique(secrets, return_inverse=True)
    counts: dict[Any, dict[int, int]] = {}
    for cell, place in zip(cells(columns), classes.tolist(), strict=True):
        inner = counts.setdefault(cell, {})
        inner[place] = inner.get(place, 0) + 1
    shares = np.bincount(classes)
    # A tie goes to the class that is more frequent in all.
    best = {cell: max(inner, key=lambda place: (inner[place], shares[place])) for cell, inner in counts.items()}
    usual = int(shares.argmax())
    return lambda seen: values[[best.get(cell, usual) for cell in cells(seen)]]


def _means(columns: list[_Array], secrets: _Array, _seed: int) -> _Guess:
    """The mean of rows with the same output, drawn towards that of all as if one more row had it."""
    cells = coarse_cells(columns)
    whole = float(secrets.mean())
    sums: dict[Any, list[float]] = {}
    for cell, number in zip(cells(columns), secrets.tolist(), strict=True):
        inner = sums.setdefault(cell, [whole, 1.0])
        inner[0] += number
        inner[1] += 1
    means = {cell: total / count for cell, (total, count) in sums.items()}
    return lambda seen: np.array([means.get(cell, whole) for cell in cells(seen)])


def _boosted_classes(columns: list[_Array], secrets: _Array, seed: int) -> _Guess:
    from sklearn.ensemble import HistGradientBoostingClassifier

    features, categorical = coded_features(columns)
    values, classes = np.unique(secrets, return_inverse=True)
    if len(values) < 2:
        return lambda seen: values[np.zeros(len(seen[0]), dtype=np.int64)]
    model = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=15, early_stopping=False, categorical_features=categorical, random_state=seed
    ).fit(features(columns), classes)
    return lambda seen: values[model.predict(features(seen))]


def _boosted_numbers(columns: list[_Array], secrets: _Array, seed: int) -> _Guess:
    from sklearn.ensemble import HistGradientBoostingRegressor

    features, categorical = coded_features(columns)
    model = HistGradientBoostingRegressor(
        max_iter=100, max_leaf_nodes=15, early_stopping=False, categorical_features=categorical, random_state=seed
    ).fit(features(columns), secrets)
    return lambda seen: np.asarray(model.predict(features(seen)), dtype=np.float64)
