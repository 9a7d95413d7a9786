"""Votes on queries that come singly, as those of a service do: by teachers that stay where they vote."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, TacitError
from ..runtime import workers
from .linear_votes import LinearVotes, is_linear
from .votes import Teacher, cast_votes, vote_counts

_Votes = Callable[[NDArray[np.float64]], NDArray[np.integer]]


class StandingVotes:
    """Teachers that stand ready: in this process, or on the workers of a cluster, to which they are sent once.

    A teacher abstains on a query that it fails on: an error that others see would tell, without noise, something about
    its records.

    Parameters
    ----------
    teachers
        All teachers.
    classes
        The number of all classes.
    empty
        The vote of a teacher without records.
    engine
        Where they vote: "local", or the address of a Dask or Ray cluster.
    """

    def __init__(self, teachers: Sequence[Teacher], *, classes: int, empty: int, engine: str = "local") -> None:
        self._classes, self._engine = classes, engine
        self._alone = np.array([found[0] if len(found) == 1 else empty for found, _ in teachers], dtype=np.int64)
        self._taught = [number for number, (found, _) in enumerate(teachers) if len(found) > 1]
        self._teachers = [teachers[number] for number in self._taught]
        self._open = contextlib.ExitStack()
        self._votes: _Votes | None = None
        if engine == "local" and all(is_linear(estimator) for _, estimator in self._teachers):
            linear = LinearVotes(teachers, classes=classes)
            self._votes = lambda queries: linear.votes(queries)[:, self._taught]
        elif engine == "local":
            self._votes = lambda queries: _cast(self._teachers, queries)

    def counts(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        """The number of teachers that vote for each class.

        Parameters
        ----------
        queries
            Finite numbers, one row per query.

        Returns
        -------
        An array (queries × classes) of counts. Private: only for a mechanism to answer from.
        """
        votes = np.repeat(self._alone[None], len(queries), axis=0)
        if self._taught:
            votes[:, self._taught] = self._cast(queries)
        return vote_counts(votes, classes=self._classes)

    def close(self) -> None:
        """Take leave of the cluster, if there is one."""
        if self._engine != "local":
            self._votes = None
            self._open.close()

    def _cast(self, queries: NDArray[np.float64]) -> NDArray[np.integer]:
        """Votes of those with estimators; a cluster that has lost them gets them once more."""
        known = self._votes
        try:
            if known is not None:
                return known(queries)
        except Exception:  # of the cluster: what a teacher raises does not arrive here
            self.close()
        try:
            self._votes = self._elsewhere()
            return self._votes(queries)
        except Exception as failure:
            self.close()
            if isinstance(failure, TacitError):
                raise
            raise InputError(
                "engine",
                f"{self._engine}, which raised {type(failure).__name__}",
                requirement="must let teachers vote",
                remedy="check that workers have enough memory, this tacit and the estimators' packages",
            ) from None

    def _elsewhere(self) -> _Votes:
        """Send the teachers to a cluster."""
        each = self._open.enter_context(workers.resident(self._engine, self._teachers))
        return lambda queries: np.concatenate(each(_cast, queries), axis=1)


def _cast(teachers: Sequence[Teacher], queries: NDArray[np.float64]) -> NDArray[np.int32]:
    return cast_votes(queries, teachers, finite=True, abstaining=True)
