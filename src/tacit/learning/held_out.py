"""Numbers read off private records with noise: how many there are, and the teachers' error (the paper's Remark 1)."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..core import validate
from ..core.errors import InputError
from ..theory.accounting import laplace_scale
from .mechanisms import Noise, SystemNoise
from .mechanisms.session import one_distance
from .votes import checked_counts

_Number = TypeVar("_Number", int, float)

UNITS = 100
"""Parts of an error that are counted."""
_LOWEST = 20
"""On one query in so many, fewer votes may have to change than the estimate of the agreement says."""


@dataclass(frozen=True, kw_only=True)
class ErrorEstimate:
    """The mean error of a teacher, with noise.

    Attributes
    ----------
    value
        The estimate.
    epsilon
        What it cost; δ is 0.
    scale
        The scale of the noise, in whole percents of the sum over teachers.
    teachers
        The number of teachers.
    """

    value: float
    epsilon: float
    scale: float
    teachers: int

    sensitivity: ClassVar[int] = UNITS
    """How far one record moves the number that gets the noise."""

    @property
    def detail(self) -> dict[str, float]:
        """What a guarantee says about it."""
        return {"epsilon_error": self.epsilon, "error": self.value}


@dataclass(frozen=True, kw_only=True)
class AgreementEstimate:
    """How far teachers agree on public records, with noise.

    Attributes
    ----------
    value
        The number of votes that can change without another class winning, on all but one query in twenty, with noise.
    epsilon
        What it cost; δ is 0.
    scale
        The scale of the noise, in votes.
    teachers
        The number of teachers, whether or not they vote.
    """

    value: int
    epsilon: float
    scale: float
    teachers: int

    sensitivity: ClassVar[int] = 1
    """How far one record moves the number that gets the noise."""

    @property
    def detail(self) -> dict[str, float]:
        """What a guarantee says about it."""
        return {"epsilon_agreement": self.epsilon, "agreement": self.value}

    def likelihood(self, distance: float) -> float:
        """How likely the estimate is if it is this number without noise, up to a factor; never quite 0."""
        return math.exp(-abs(self.value - distance) / self.scale) + sys.float_info.min


def private_agreement(
    counts: ArrayLike, *, teachers: int, epsilon: float, noise: Noise | None = None
) -> AgreementEstimate:
    """How far teachers agree on some public records, (ε, 0)-DP.

    One record changes one teacher's votes, which moves the votes to flip of every query by at most 1, so the one that a
    twentieth of them do not exceed by at most 1: it gets discrete Laplace noise of scale 1/ε.

    Parameters
    ----------
    counts
        The votes for each class, a row for each query. Teachers may abstain.
    teachers
        The number of teachers, those that abstain included: how many voted is private.
    epsilon
        What it costs.
    noise
        A source of noise, for tests.

    Returns
    -------
    The estimate.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=1e-9, at_most=1e4, remedy="use a tenth of the budget")
    votes = checked_counts(counts)
    scale = laplace_scale(epsilon, sensitivity=AgreementEstimate.sensitivity)
    source = SystemNoise() if noise is None else noise
    value = low_distance([one_distance(row) for row in votes]) + source.laplace(scale)
    return AgreementEstimate(value=value, epsilon=epsilon, scale=scale, teachers=teachers)


def low_distance(distances: Sequence[_Number]) -> _Number:
    """The votes to flip that all queries but one in twenty reach, or exceed."""
    return sorted(distances)[(len(distances) - 1) // _LOWEST]


def private_count(count: int, *, epsilon: float, noise: Noise | None = None) -> int:
    """The number of records or people with noise, at least 1.

    It is (ε, 0)-DP if neighbouring data sets have one more or one less.

    Parameters
    ----------
    count
        The true number.
    epsilon
        What it costs.
    noise
        A source of noise, for tests.

    Returns
    -------
    The noisy number.
    """
    count = validate.whole("count", count, at_least=0, remedy="count records, or people")
    source = SystemNoise() if noise is None else noise
    return max(1, count + source.laplace(laplace_scale(epsilon, sensitivity=1)))


def private_error(wrong: ArrayLike, tested: ArrayLike, *, epsilon: float, noise: Noise | None = None) -> ErrorEstimate:
    """The mean error of teachers that were each tested on records of their own, (ε, 0)-DP.

    Each teacher's error is rounded down to whole percents, and is 50 if it had no record. One record trains or tests
    one teacher, so it moves one teacher's percents, by at most 100: the sum gets discrete Laplace noise of scale 100/ε.

    Parameters
    ----------
    wrong, tested
        The number of mistakes and of test records of each teacher.
    epsilon
        What it costs.
    noise
        A source of noise, for tests.

    Returns
    -------
    The estimate.
    """
    epsilon = validate.number("epsilon", epsilon, at_least=1e-9, at_most=1e4, remedy="use a tenth of the budget")
    mistakes, tests = checked_counts(wrong, dimensions=1), checked_counts(tested, dimensions=1)
    if mistakes.shape != tests.shape or (mistakes > tests).any():
        raise InputError(
            "wrong",
            mistakes.shape,
            requirement=f"must be as many as tested, {tests.shape}, and none larger than its own",
            remedy="pass both for each teacher",
        )
    percents = np.where(tests > 0, UNITS * mistakes // np.maximum(1, tests), UNITS // 2)
    scale = laplace_scale(epsilon, sensitivity=UNITS)
    source = SystemNoise() if noise is None else noise
    total = int(percents.sum()) + source.laplace(scale)
    value = min(1.0, max(0.0, total / (UNITS * len(tests))))
    return ErrorEstimate(value=value, epsilon=epsilon, scale=scale, teachers=len(tests))
