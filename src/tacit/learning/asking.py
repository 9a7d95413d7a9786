"""Ask a mechanism about public records: each answer is noted before anything depends on it, and none is drawn twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from .interrupted import Answers, Notes
from .mechanisms import ConfirmSession, Mechanism
from .nearby import NearbyVoters
from .proposals import Proposer, confirmed
from .students import fitting
from .teachers import Teachers

_BLOCK = 500
"""Answers in one note of the ledger, as writing a note to the disk takes some milliseconds."""


def answers(
    mechanism: Mechanism,
    council: Teachers | NearbyVoters,
    public: NDArray[np.float64],
    asked: NDArray[np.int64],
    *,
    proposer: Proposer | None,
    notes: Notes,
    engine: str,
    advance: Callable[[str], None],
) -> Answers:
    """Ask about the public records at the places `asked`, and return each with its answer.

    Answers that `notes` hold come first. Once the session has stopped, the remaining records are not asked about.
    """
    session, done = mechanism.session(), notes.answers
    confirms, before = isinstance(session, ConfirmSession), [point for point, _ in done]
    if not set(before) <= set(asked.tolist()) if confirms else before != asked[: len(done)].tolist():
        raise InputError(
            "the queries",
            "others than were answered before",
            requirement="must be those of the run that was interrupted",
            remedy="pass the same random_state, and public records in the same order",
        )
    notes.resume(session)
    reached = len(done)

    def note(found: Answers) -> None:
        nonlocal reached
        if found:
            points, given = zip(*found, strict=True)
            notes.add({"points": list(points), "answers": list(given), **session.kept})
        reached += len(found)
        advance(f"{reached} of {len(asked)} queries asked")

    if session.stopped or len(done) == len(asked):
        return done
    if isinstance(session, ConfirmSession) and proposer is not None and isinstance(council, Teachers):
        votes = council.counts(public[asked], engine=engine, advance=advance)
        return confirmed(session, votes, asked, proposer.proposals, done=done, note=note)
    left = asked[len(done) :]
    if isinstance(council, NearbyVoters):  # what a voter has left depends on all queries before
        votes = council.counts(public[asked])[len(done) :]
    else:
        votes = council.counts(public[left], engine=engine, advance=advance)
    for start in range(0, len(left), _BLOCK):
        found: Answers = []
        for point, row in zip(left[start : start + _BLOCK].tolist(), votes[start : start + _BLOCK], strict=True):
            if session.stopped:
                break
            found.append((point, session.answer(row)))
        note(found)
        done += found
    return done


def labels_and_counts(found: Answers, *, points: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """A class number for every public record or −1, and the noisy counts, if released."""
    labels = np.full(points, fitting.UNLABELLED, dtype=np.int64)
    released: NDArray[np.int64] | None = None
    for point, answer in found:
        if isinstance(answer, tuple):
            if released is None:
                released = np.zeros((points, len(answer)), dtype=np.int64)
            released[point] = answer
            labels[point] = int(np.argmax(answer))
        elif answer is not None:
            labels[point] = answer
    return labels, released
