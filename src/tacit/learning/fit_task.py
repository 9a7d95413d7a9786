"""One fit of a private classifier as all its parts see it: what was asked for, and what is public about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ledger import Ledger
from ..runtime import run_folder
from .fit_options import Options
from .interrupted import Notes, Run, paid
from .mechanisms import Mechanism
from .moments import NoisySums
from .release import Release
from .transformed import each_alone


@dataclass(frozen=True, kw_only=True, eq=False)
class FitTask:
    """What a fit is to do.

    Attributes
    ----------
    options
        The classifier's parameters.
    release
        What decides the guarantee beyond the mechanism.
    run, folder, ledger
        The key and the name of the release; where it is remembered, and paid for.
    classes
        The labels, in the order of their numbers.
    public
        The public records.
    features
        The transformer, fitted to them; None if there is none.
    seen
        The public records as teachers and voters see them.
    places
        Returns which of them to ask about, for a number of queries.
    estimator, student
        What teachers are clones of, and what learns from answers.
    proposer
        The model that proposes labels; None if there is none.
    """

    options: Options
    release: Release
    run: Run
    folder: Path | None
    ledger: Ledger | None
    classes: NDArray[Any]
    public: NDArray[np.float64]
    features: Any
    seen: NDArray[Any]
    places: Callable[[int], NDArray[np.int64]]
    estimator: Any
    student: Any
    proposer: Any

    def viewed(self, records: NDArray[np.float64]) -> NDArray[Any]:
        """Private records as teachers and voters see them, each computed on its own."""
        return each_alone(self.features, records, like=self.seen)

    def claimed(
        self, mechanism: Mechanism | NoisySums | None, *, queries: int | str, teachers: int, **more: object
    ) -> dict[str, object]:
        """The mark of the task, all that decides what is drawn, except the records and the teachers.

        The folder keeps it, and refuses another. The mechanism is None as long as an estimate is to choose it.
        """
        epsilon, delta = self.release.shares.whole
        mark = {
            "task": "private classifier",
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": str(self.options.mechanism) if mechanism is None else repr(mechanism),
            "constants": "" if mechanism is None else repr(mechanism.guarantee.detail),
            "queries": queries,
            "error_share": float(self.options.error_share),
            "n_teachers": teachers,
            "classes": self.classes.tolist(),
            "neighbours": self.release.compared,
            "features": repr(self.options.features),
            "ledger": None if self.options.ledger is None else self.options.ledger.origin,
            "public": run_folder.digest(np.ascontiguousarray(self.public).tobytes()),
            **more,
        }
        if self.folder is not None:
            run_folder.claim(self.folder, mark, resume=True, name="folder")
        return mark

    def paid(self, mark: dict[str, object]) -> Notes:
        """Pay for the answers in the ledger, once for each release, and return the notes of the entry."""
        if self.ledger is None:
            return Notes()
        mechanism = self.options.mechanism
        detail = {
            "mechanism": mechanism if isinstance(mechanism, str) else type(mechanism).__name__,
            "error_share": float(self.options.error_share),
        }
        *_, cost = self.release.shares.costs(self.release.compared)  # the answers come last
        task = run_folder.digest(json.dumps(mark, sort_keys=True).encode())
        return paid(self.ledger, self.run.release, cost, task=task, detail=detail)
