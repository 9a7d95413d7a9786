"""Sums of teachers' answers that are numbers: clipped, on a grid of whole numbers, and released once with noise."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Guarantee
from ..core.wording import text_above
from ..runtime import workers
from ..theory import accounting
from .chunks import chunks
from .mechanisms import Noise
from .mechanisms.session import check_budget, with_noise
from .teachers import untrained

_ASSUMED = (
    Assumption(
        text="data that differ in what is protected (one record, or one person's records) differ in the answers of "
        "one teacher",
        checked_by="caller",
    ),
    Assumption(
        text="one fit is made; each further one is a release of its own, with its own cost", checked_by="caller"
    ),
    Assumption(
        text="nobody can foresee the noise: it comes from a cryptographic generator that the operating system seeds",
        checked_by="caller",
    ),
)
_EACH = 60
"""The number of made-up records on which an estimator is tried."""


@dataclass(frozen=True, kw_only=True)
class AnswerSums:
    """One release of the sums of teachers' answers, with noise on every sum.

    The sums must be of whole numbers of which each teacher gives one from 0 to `reach`, as `summed_answers` gives them.

    Parameters
    ----------
    epsilon, delta
        The privacy loss of the release.
    sums
        The number of sums: one for each public record that is asked about, times the number of labels.
    reach
        The largest answer of a teacher; the least is 0.
    """

    epsilon: float
    delta: float
    sums: int
    reach: int = 1

    def __post_init__(self) -> None:
        check_budget(self)
        for name in ("sums", "reach"):
            validate.whole(name, getattr(self, name), at_least=1, remedy="count what is released")

    @cached_property
    def sigma(self) -> float:
        """The standard deviation parameter of every sum's noise."""
        return accounting.clipped_sums_sigma(self.epsilon, self.delta, sums=self.sums, reach=self.reach)

    @property
    def spread(self) -> float:
        """The noise on every sum, in teachers."""
        return self.sigma / self.reach

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of the release."""
        spent = accounting.clipped_sums_delta(self.epsilon, sigma=self.sigma, sums=self.sums, reach=self.reach)
        return Guarantee(
            quantity=f"privacy loss ε at δ = {text_above(self.delta)}",
            side="at_most",
            value=self.epsilon,
            adversary=Adversary.ANY,
            theorem=("sums of clipped answers with discrete Gaussian noise", "theory.accounting.clipped_sums_delta"),
            assumptions=_ASSUMED,
            detail={
                "mechanism": type(self).__name__,
                "delta": self.delta,
                "delta_spent": spent,
                "sigma": self.sigma,
                "sums": self.sums,
                "reach": self.reach,
            },
        )

    def release(self, sums: NDArray[np.int64], noise: Noise | None = None) -> NDArray[np.int64]:
        """The sums with fresh noise; `noise` is another source for tests and attacks."""
        if sums.size != self.sums:
            raise InputError(
                "the number of sums",
                sums.size,
                requirement=f"must be what the noise was made for, {self.sums}",
                remedy="count all that is released, every label of every public record",
            )
        return with_noise(sums, self.sigma, noise)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Whole numbers from 0 to `reach` for numbers from `low` to `high`."""

    low: float
    high: float
    reach: int

    def steps(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Each number as a whole one of the grid, whatever it is: what is none becomes the middle."""
        with np.errstate(all="ignore"):
            found = np.asarray(values, dtype=np.float64)
            found = np.where(np.isnan(found), self.low / 2 + self.high / 2, np.clip(found, self.low, self.high))
            share = (found - self.low) / (self.high - self.low)
        return np.clip(np.rint(share * self.reach), 0, self.reach).astype(np.int64)

    def means(self, sums: NDArray[np.int64], *, teachers: int) -> NDArray[np.float64]:
        """The mean answers that follow from sums; noise takes them beyond the range."""
        mean: NDArray[np.float64] = self.low + (self.high - self.low) * (sums / (teachers * self.reach))
        return mean


def summed_answers(
    estimator: Any,
    records: NDArray[np.float64],
    values: NDArray[np.float64],
    queries: NDArray[np.float64],
    *,
    owners: list[bytes],
    key: bytes,
    teachers: int,
    grid: Grid,
    engine: str = "local",
    advance: Callable[[str], None] = lambda _: None,
) -> NDArray[np.int64]:
    """Train a teacher on each chunk, and add up what all say to the queries. Private: only for `AnswerSums`.

    A teacher is a clone of the estimator for each column of `values`, or that value itself where its chunk holds one
    alone. One without records says the middle. Teachers are forgotten once they have answered.

    Parameters
    ----------
    estimator
        What teachers are clones of.
    records, values
        The private records and what is to be learned of them, a column for each answer.
    queries
        The public records that are asked about.
    owners
        Whose each record is; all of one owner fall into one chunk.
    key
        The key of the chunks, and of the seeds.
    teachers
        The number of teachers.
    grid
        The numbers that can be answered.
    engine
        Where to compute: "local", or the address of a Dask or Ray cluster.
    advance
        Called with a line about the progress.

    Returns
    -------
    An array (queries × columns) of whole numbers.
    """
    held = np.column_stack([records, values])
    rows, _ = chunks(held, np.zeros(len(held), dtype=np.int64), ids=owners, key=key, n_chunks=teachers)
    total = np.zeros((len(queries), values.shape[1]), dtype=np.int64)
    width = records.shape[1]
    with workers.open_workers(engine) as crowd:
        size = max(1, math.ceil(teachers / (8 * crowd.cores)))
        blocks = [range(start, min(teachers, start + size)) for start in range(0, teachers, size)]

        def job(number: int) -> tuple[Any, ...]:
            taught = [(untrained(estimator, key, member), held[rows[member]]) for member in blocks[number]]
            return taught, width, queries, grid

        done = 0
        with contextlib.closing(crowd.outcomes(_block, range(len(blocks)), job)) as outcomes:
            for number, outcome in outcomes:
                if isinstance(outcome, workers.Failure):
                    raise InputError(
                        f"the answers of teachers {blocks[number][0]} to {blocks[number][-1]}",
                        outcome.kind,
                        requirement="must be one number for each public record, learned from their chunks",
                        remedy="fit the estimator to some records to see why; its words are kept back, as they may "
                        "quote records",
                    )
                total += outcome
                done += len(blocks[number])
                advance(f"{done} of {teachers} teachers have answered")
    return total


def _block(
    taught: list[tuple[Any, NDArray[np.float64]]], width: int, queries: NDArray[np.float64], grid: Grid
) -> NDArray[np.int64]:
    """The sums of the answers of some teachers."""
    columns = taught[0][1].shape[1] - width
    total = np.zeros((len(queries), columns), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chunks that are small
        for estimator, chunk in taught:
            for place in range(columns):
                total[:, place] += grid.steps(_answers(estimator, chunk[:, :width], chunk[:, width + place], queries))
    return total


def _answers(
    estimator: Any, records: NDArray[np.float64], values: NDArray[np.float64], queries: NDArray[np.float64]
) -> NDArray[Any]:
    """What one teacher says to all queries, not yet clipped."""
    found = np.unique(values)
    if len(found) < 2:
        return np.full(len(queries), found[0] if len(found) else np.nan)
    said = np.asarray(clone(estimator).fit(records, values).predict(queries))
    if said.shape == (len(queries), 1):
        said = said[:, 0]
    if said.shape != (len(queries),):
        raise LookupError
    return said


def try_estimator(name: str, estimator: Any, *, width: int, grid: Grid) -> None:
    """Check that an estimator learns numbers of the grid from made-up records, before anything is paid for."""
    values = np.where(np.arange(_EACH) % 2 == 0, grid.low, grid.high).astype(np.float64)
    records = np.random.default_rng(0).normal(size=(_EACH, width)) + (np.arange(_EACH) % 2)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up records
        try:
            said = _answers(estimator, records, values, records).astype(np.float64)
            problem = None if np.isfinite(said).all() else "which predicts what is no number"
        except Exception as failure:  # what foreign code raises; it has seen nothing private
            problem = f"which raised {type(failure).__name__}: {failure}"
    if problem is not None:
        raise InputError(
            name,
            f"{type(estimator).__name__}, {problem}",
            requirement="must learn from a table of numbers, and predict one number for each row",
            remedy="pass an instance such as sklearn.linear_model.Ridge(); nothing was spent",
        )
