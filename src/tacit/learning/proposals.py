"""Propose labels for teachers to confirm: first by a given model, then by students of what was confirmed.

A proposal depends on public records, on a model that was made without the private records, and on answers that were
released already. So do the order of the questions and the rounds: what they cost is what the confirmations cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..core.errors import InputError
from .interrupted import Answers
from .mechanisms import ConfirmSession
from .students import fitting

_FIRST_ROUND = 32
"""The number of queries in the first round; every further round asks as many as all rounds before."""


class Proposer:
    """Proposes labels for public records: those of a model, and once some were confirmed, those of students.

    Attributes
    ----------
    labels
        The model's labels, as class numbers.
    error
        The expected share of wrong labels: 1 minus the model's mean probability of its labels, or a fifth if it gives
        no probabilities.
    """

    def __init__(self, model: Any, public: NDArray[np.float64], classes: NDArray[Any], student: Any) -> None:
        self._public, self._student, self._classes = public, student, len(classes)
        labels, chances = _opinion("proposer", model, public)
        numbers = {label: number for number, label in enumerate(classes.tolist())}
        found = [numbers.get(label) for label in labels.tolist()] if labels.shape == (len(public),) else [None]
        if None in found:
            raise InputError(
                "proposer",
                type(model).__name__,
                requirement=f"must name one of {len(classes)} classes for every public record",
                remedy="fit it to the same labels",
            )
        self.labels = np.array(found, dtype=np.int64)
        self._sure = np.zeros(len(public)) if chances is None else chances
        self.error = 0.2 if chances is None else float(np.clip(1 - chances.mean(), 0.0, 1.0))

    def proposals(self, done: Answers) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """For every public record a class number and how sure it is, once these points were confirmed or denied.

        A student learns from what was confirmed, and from the first proposals where nobody has asked yet.
        """
        if not done:
            return self.labels, self._sure
        known = self.labels.copy()
        for point, answer in done:
            known[point] = fitting.UNLABELLED if answer is None else answer
        student = fitting.fitted(clone(self._student), self._public, known)
        labels, chances = _opinion("the student", student, self._public)
        if not np.isin(labels, np.arange(self._classes)).all():
            # Before the round: a query that fails within it would tell that those before it had not ended the session.
            raise InputError(
                "the student",
                type(student).__name__,
                requirement=f"must propose one of {self._classes} classes, by its number, for every public record",
                remedy="choose another student, which costs no privacy",
            )
        return labels.astype(np.int64), np.zeros(len(labels)) if chances is None else chances


def confirmed(
    session: ConfirmSession,
    counts: NDArray[np.int64],
    points: NDArray[np.int64],
    propose: Callable[[Answers], tuple[NDArray[np.int64], NDArray[np.float64]]],
    *,
    done: Answers,
    note: Callable[[Answers], None],
) -> Answers:
    """Ask about points, the surest proposals first, until the session stops; return each with its answer.

    `counts` has a row for each of `points`, `done` is what an earlier run has noted; each round is noted as it ends.
    """
    found = list(done)
    rows = {int(point): row for point, row in zip(points, counts, strict=True)}
    while not session.stopped:
        left = np.setdiff1d(points, [point for point, _ in found])
        if not len(left):
            break
        proposed, sure = propose(found)
        answers: Answers = []
        for point in left[np.argsort(-sure[left], kind="stable")][: max(_FIRST_ROUND, len(found))].tolist():
            if session.stopped:
                break
            answers.append((point, session.answer(rows[point], proposed=int(proposed[point]))))
        note(answers)
        found += answers
    return found


def _opinion(name: str, model: Any, points: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """A label for each point and, if the model tells chances, that of the label."""
    try:
        labels = np.asarray(model.predict(points))
        chances = np.max(model.predict_proba(points), axis=1) if hasattr(model, "predict_proba") else None
    except Exception as failure:  # what foreign code raises; it has seen nothing private but released answers
        raise InputError(
            name,
            f"{type(failure).__name__}: {failure}",
            requirement="must be a fitted classifier of the public records",
            remedy="choose another, fitted to labels that are not private",
        ) from None
    return labels, chances
