"""The cases of how far teachers agree that are thought possible, before anybody has asked them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from ...core import validate
from ..votes import checked_counts, leads
from .expectations import Floats, Votes, wrong_shares

Margins = tuple[tuple[float, ...], ...]
"""In each case that is thought possible, equally likely leads of the right class as shares of all votes, or below 0."""

ACCURACIES = (0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""The shares of right teachers by which their number is chosen, if nobody states one."""
_FEWER = 7
"""One in so many leads of their model is enough where there are many cases."""
_LEADS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SPREADS = (0.3, 0.6, 1.0, 1.7)
_NODES = 71
_DIVIDED = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99)
"""The cases among which a mechanism is chosen: mean leads, their deviations as shares of the mean, how many leads
there are of each; and shares of right teachers that agree on most queries and are divided on others."""
_CLEAR, _LIKELY = 0.59, 12.0
"""That every query leads by this share, as where classes are far apart, counts as much as so many other cases."""


def margins(teacher_accuracy: object) -> Margins:
    """The expected leads of the winning class over the next one, as shares of all votes, in each case.

    Parameters
    ----------
    teacher_accuracy
        The share of teachers expected to be right on average, from which `wrong_shares` models the votes; or counts of
        public or made-up votes, a row for each query; or None for `ACCURACIES`, each of which may be the case.
    """
    if teacher_accuracy is None:
        return tuple(_modelled(share, every=_FEWER) for share in ACCURACIES)
    if np.ndim(teacher_accuracy) == 2:  # type: ignore[arg-type]  # whatever it is, it is checked next
        counts = checked_counts(teacher_accuracy)  # type: ignore[arg-type]
        return (tuple((leads(counts) / np.maximum(1, counts.sum(axis=1))).tolist()),)
    share = validate.number(
        "teacher_accuracy",
        teacher_accuracy,
        above=0.5,
        at_most=1,
        remedy="give the share of teachers that are right, or public counts, or None if nothing is known",
    )
    return (_modelled(share),)


def possible_margins(teacher_accuracy: object) -> Margins:
    """The leads of all cases among which a mechanism is chosen for some teachers, who may have few records each.

    If something is stated, it is about these teachers.
    """
    if teacher_accuracy is not None:
        return margins(teacher_accuracy)
    normal = special.ndtri((np.arange(_NODES) + 0.5) / _NODES)
    cases = [np.clip(lead * (1 + spread * normal), -1, 1).tolist() for lead in _LEADS for spread in _SPREADS]
    return (
        *((lead,) for lead in _LEADS),
        *(tuple(case) for case in cases),
        *(_modelled(share, every=_FEWER) for share in _DIVIDED),
    )


def votes_ahead(shares: Floats, teachers: int) -> Floats:
    """The whole votes by which the winning class leads, for leads as shares of the teachers."""
    found: Floats = teachers - 2 * np.rint(teachers * (1 - shares) / 2)
    return found


def likelihoods(cases: Sequence[Votes]) -> list[float]:
    """How likely each case is beforehand, up to a factor: all alike, but that every query leads by much counts more."""
    return [_LIKELY if case.lead.min() >= _CLEAR * case.teachers else 1.0 for case in cases]


def _modelled(share: float, *, every: int = 1) -> tuple[float, ...]:
    """Equally likely leads by the model, or one of `every` so many."""
    found = tuple(np.abs(1 - 2 * wrong_shares(1 - share)).tolist())
    return found[every // 2 :: every] or found
