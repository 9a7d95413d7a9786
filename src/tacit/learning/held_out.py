"""Numbers read off private records with noise: how many there are, and the teachers' error (the paper's Remark 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core import validate
from ..core.errors import InputError
from ..theory.accounting import laplace_scale
from .mechanisms import Noise, SystemNoise
from .votes import checked_counts

UNITS = 100


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
