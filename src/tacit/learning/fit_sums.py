"""The part of a fit in which nobody votes: sums of features by class are released once with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.guarantee import Guarantee
from .fit_records import Divided
from .fit_task import FitTask
from .mechanisms.registry import asks_nobody
from .moments import SUMMED, MomentClassifier, NoisySums, suits, sums_by_class, unit_rows
from .owners import remember
from .release import Release

_NOTED = "sums"
"""The name of the note that holds released sums."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Summed:
    """Noisy sums, a row for each class, what is proven about them, and the classifier that follows."""

    noisy: NDArray[np.int64]
    guarantee: Guarantee
    student: MomentClassifier


def may_sum(task: FitTask) -> bool:
    """Whether sums may be released: they were asked for, or everything about teachers is left to "auto"."""
    return asks_nobody(task.options.mechanism) or (task.options.undemanding and task.proposer is None)


def takes_sums(task: FitTask, *, voters: int) -> bool:
    """Whether they are, for so many records or people."""
    if asks_nobody(task.options.mechanism):
        return True
    return may_sum(task) and suits(task.seen, _mechanism(task.release), voters=voters, classes=len(task.classes))


def summed(task: FitTask, records: Divided, numbers: NDArray[np.int64]) -> Summed:
    """Pay for the sums, draw their noise once, note them, and only then learn from them.

    Sums that were drawn and not noted were seen by nobody; those that were noted are read back.
    """
    mechanism, private = _mechanism(task.release), records.private
    people = records.people(private)
    mark = task.claimed(mechanism, queries=0, teachers=0)
    if task.folder is not None:
        remember(task.folder / SUMMED, records.records[private], numbers[private], people, task.run.key)
    notes = task.paid(mark)
    noted = notes.value(_NOTED)
    if noted is None:
        if notes.earlier:
            notes.add({"resumed": 0})
        rows = unit_rows(task.viewed(records.records[private]))
        sums = sums_by_class(rows, numbers[private], people, classes=len(task.classes))
        noted = mechanism.release(sums).tolist()
        notes.add({_NOTED: noted})
    return _learned(task, np.array(noted, dtype=np.int64), resumed=notes.resumed)


def rehearsed(task: FitTask) -> Summed:
    """What follows from sums that are all zero, so that what would fail later fails before anything is paid."""
    width = unit_rows(task.seen[:1]).shape[1]
    return _learned(task, np.zeros((len(task.classes), width), dtype=np.int64), resumed=True)


def _mechanism(release: Release) -> NoisySums:
    epsilon, delta = release.shares.left
    return NoisySums(epsilon=epsilon, delta=delta, changed=release.changed)


def _learned(task: FitTask, noisy: NDArray[np.int64], *, resumed: bool) -> Summed:
    student = MomentClassifier.of_sums(
        noisy,
        task.public,
        epsilon=float(task.options.epsilon),
        delta=float(task.options.delta),
        features=task.options.features,
        fitted=task.features,
    )
    mechanism = _mechanism(task.release)
    guarantee = task.release.guarantee_of(mechanism, council={}, estimate=None, resumed=resumed)
    return Summed(noisy=noisy, guarantee=guarantee, student=student)
