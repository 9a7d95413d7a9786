"""Choose a student among the learner and a few others, by answers that were left out.

It costs no privacy. A released answer is the output of a mechanism whose cost is paid; the choice is a function of such
outputs and of public records, and a function of what was released has the same guarantee (post-processing). To leave
answers out in turn, and to compare with those left out, looks at the same outputs again, never at a private record.

Answers hold noise, so the share of them that a student names is no accuracy: it may be right more often, or less. But
the answers are the same for all students, and were drawn before any of them learned.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from ..teachers import random_states
from .fitting import UNLABELLED, fitted
from .noisy_counts import Propagated, VoteRegression

LEARNER = "the learner"
"""The name of the student that is kept unless another is better."""
_FOLDS = 5
"""The number of parts of the answers, each of which is left out once."""
_LEAST, _LEAST_OF_A_CLASS, _MOST = 50, _FOLDS, 2000
"""The least numbers of answers, and of those that name a class, to compare students by; and the most that are used."""


@dataclass(frozen=True, kw_only=True)
class StudentChoice:
    """Which student learned from the answers, and by which figures it was chosen.

    Attributes
    ----------
    chosen
        Its name.
    reason
        Why it was chosen, in words.
    answers
        The number of answers by which students were compared, each left out once; 0 if they were not.
    agreement
        For each student that was compared, the share of these answers that it named. The learner comes first.
    errors
        For each of the others, the standard error of its difference to the learner.
    """

    chosen: str = LEARNER
    reason: str
    answers: int = 0
    agreement: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


MADE_UP = StudentChoice(
    reason="answers are made up",
    answers=_LEAST,
    agreement={LEARNER: 0.5, "logistic regression": 0.5},
    errors={"logistic regression": 0.1},
)
"""What a dry run says, where nothing is chosen yet."""


def fitted_student(
    learner: Any, public: NDArray[Any], labels: NDArray[np.int64], counts: NDArray[np.int64] | None, *, features: Any
) -> tuple[Any, StudentChoice]:
    """The learner, or another student that agrees better with answers left out, fitted to all answers.

    Parameters
    ----------
    learner
        The student that is kept if no other is ahead of it by more than one standard error.
    public
        All public records.
    labels
        For each of them the number of a class, −1 if there is no answer.
    counts
        The noisy counts, if they were released.
    features
        The transformer in whose space teachers learned, unfitted; None if they saw records as they are.

    Returns
    -------
    The fitted student, and why it was chosen. The same answers lead to the same choice.
    """
    _, frequency = np.unique(labels[labels != UNLABELLED], return_counts=True)
    if frequency.sum() < _LEAST or frequency.min() < _LEAST_OF_A_CLASS or len(frequency) == 1:
        reason = (
            f"to compare it with others would take {_LEAST} answers, and {_LEAST_OF_A_CLASS} for each of several "
            f"classes; there are {frequency.sum()}, and {frequency.min()} for the rarest of {len(frequency)}"
        )
        return fit(learner, public, labels, counts), StudentChoice(reason=reason)
    if np.isnan(public).any():
        reason = "public records have gaps, which it takes and others do not"
        return fit(learner, public, labels, counts), StudentChoice(reason=reason)
    others = _others(learner, features=features, counts=counts is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about students that are only tried
        choice = _choice({LEARNER: learner} | others, public, labels, counts)
        if choice.chosen != LEARNER:
            try:
                student = fit(others[choice.chosen], public, labels, counts)
                student.predict(public)
            except Exception:  # about records that were not among those compared
                choice = StudentChoice(reason=f"{choice.chosen}, which was ahead, fails on some public records")
            else:
                return student, choice
    return fit(learner, public, labels, counts), choice


def fit(student: Any, public: NDArray[Any], labels: NDArray[np.int64], counts: NDArray[np.int64] | None) -> Any:
    """A copy of the student, fitted to noisy counts if it takes them and they were released, else to labels."""
    return fitted(clone(student), public, labels, counts if has_fit_parameter(student, "counts") else None)


def _others(learner: Any, *, features: Any, counts: bool) -> dict[str, Any]:
    """Students to compare with the learner, by name.

    All have probabilities. A file of one holds types of scikit-learn's that skops trusts, and otherwise only those of
    `features`, of the learner if it spreads answers, and of students of noisy counts where these were released. So
    there are no trees, as a crafted file of them can crash whoever loads it.
    """
    seen = [] if features is None else [features]
    found: dict[str, Any] = {
        "logistic regression": make_pipeline(*seen, StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
        "discriminant analysis": make_pipeline(
            *seen, StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        ),
        "nearest neighbours": make_pipeline(*seen, KNeighborsClassifier(15, algorithm="brute")),
    }
    spreads = isinstance(learner, Propagated)
    if features is not None:
        found["the learner on features"] = make_pipeline(features, learner.final if spreads else learner)
    if spreads:
        found = {name: clone(learner).set_params(final=student) for name, student in found.items()}
    if counts:
        found["vote regression"] = VoteRegression()
        if not spreads:
            found["propagation"] = Propagated(found["logistic regression"], features=features)
    return found


def _choice(
    students: Mapping[str, Any], public: NDArray[Any], labels: NDArray[np.int64], counts: NDArray[np.int64] | None
) -> StudentChoice:
    """The student that names most of the answers left out, or the learner if that is within its standard error."""
    answered = np.flatnonzero(labels != UNLABELLED)
    if len(answered) > _MOST:
        answered = np.sort(np.random.default_rng(0).choice(answered, _MOST, replace=False))
        if np.bincount(labels[answered]).max() < _FOLDS:
            return StudentChoice(reason=f"{_MOST} answers are too few for so many classes to compare it by")
    parts = list(StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(answered, labels[answered]))
    named: dict[str, NDArray[np.bool_]] = {}
    for name, student in students.items():
        trial = _seeded(student)
        hits = np.zeros(len(answered), dtype=bool)
        try:
            for kept, left_out in parts:
                known = np.full_like(labels, UNLABELLED)
                known[answered[kept]] = labels[answered[kept]]
                learned = fit(trial, public, known, counts)
                hits[left_out] = learned.predict(public[answered[left_out]]) == labels[answered[left_out]]
        except Exception as failure:  # of one that cannot learn from these records, or from fewer answers
            if name == LEARNER:
                kind = type(failure).__name__
                return StudentChoice(reason=f"it raises {kind} if answers are left out, so that it cannot be compared")
            continue
        named[name] = hits
    agreement = {name: float(hits.mean()) for name, hits in named.items()}
    gains = {name: hits.astype(np.int64) - named[LEARNER] for name, hits in named.items() if name != LEARNER}
    errors = {name: float(gain.std(ddof=1)) / math.sqrt(len(answered)) for name, gain in gains.items()}
    if not errors:
        return StudentChoice(reason="no other student can learn from these records")
    best = max(errors, key=lambda name: agreement[name])
    better = agreement[best] - agreement[LEARNER] > errors[best]
    first, most, error = (f"{100 * share:.1f} %" for share in (agreement[LEARNER], agreement[best], errors[best]))
    return StudentChoice(
        chosen=best if better else LEARNER,
        reason=f"of {len(answered)} answers, each left out once, the learner named {first} and {best} {most}, which is "
        f"{'' if better else 'not '}ahead by more than the standard error of the difference, {error}",
        answers=len(answered),
        agreement=agreement,
        errors=errors,
    )


def _seeded(student: Any) -> Any:
    """A copy whose coins, where nobody seeded them, fall the same each time: a run that goes on chooses the same."""
    copy = clone(student)
    states = copy.get_params(deep=True)
    return copy.set_params(**{name: 0 for name in random_states(copy) if states[name] is None})
