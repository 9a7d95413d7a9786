"""A membership attack with canaries: records that are planted in the training set or left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Adversary, Attack
from . import repeated_fits
from .attack import shown_loss
from .classifier import PrivateClassifier
from .labels import column, listed_classes

_NOTHING_SHOWN = -1.0
"""The score if the mechanism answered nothing, so that there is no student."""


def membership_attack(
    classifier: PrivateClassifier,
    X: ArrayLike,  # noqa: N803 — scikit-learn's name
    y: ArrayLike,
    X_public: ArrayLike,  # noqa: N803
    *,
    runs: int = 100,
    failure_probability: float = 1e-2,
    seed: int = 0,
) -> Attack:
    """Attack a classifier: the privacy loss that the published student shows about random canaries.

    A canary is a public record with a random label. Each run fits a clone of the classifier, with a canary among the
    records or without it, and scores the probability that the student gives to the canary's label. Half of the runs
    choose the threshold and the direction, the others measure. Every fit spends the budget of the guarantee afresh:
    attack only records whose privacy may be spent, and never with a ledger.

    Parameters
    ----------
    classifier
        The classifier, without a ledger and with `classes`.
    X, y
        Records and labels to train on.
    X_public
        Public records.
    runs
        The number of fits with a canary, and of fits without.
    failure_probability
        The probability with which the interval may miss the truth.
    seed
        The seed of the canaries.

    Returns
    -------
    The attack, with its confidence interval.
    """
    runs = validate.whole("runs", runs, at_least=20, remedy="run about a hundred")
    alpha = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.01")
    validate.whole("seed", seed, at_least=0, remedy="use any whole number")
    if classifier.ledger is not None or classifier.classes is None:
        raise InputError(
            "classifier",
            classifier,
            requirement="must have no ledger, and classes that are given, not found in records",
            remedy="set them: a canary must change nothing but the records",
        )
    rng = np.random.default_rng(seed)
    records, labels = np.asarray(X, dtype=np.float64), column("y", y).astype(object)  # a canary changes no other's type
    public = np.asarray(X_public, dtype=np.float64)
    classes, scores = listed_classes(classifier.classes), np.empty((2, runs))
    for planted in (0, 1):
        for run in range(runs):
            point, label = public[rng.integers(len(public))], rng.choice(classes)
            model = clone(classifier)
            shown = (np.vstack([records, point]), np.append(labels, label)) if planted else (records, labels)
            try:
                with repeated_fits.uncounted():
                    model.fit(*shown, public)
            except InputError:
                if len(getattr(model, "answered_", [0])):
                    raise
            guarantee = model.guarantee_
            scores[planted, run] = _score(model, point, label)
    half = runs // 2
    threshold, sign = _threshold(scores[:, :half])
    left_out, planted_hits = ((sign * scores[:, half:] >= sign * threshold).sum(axis=1)).tolist()
    likely, unlikely = (planted_hits, left_out) if sign > 0 else (left_out, planted_hits)
    delta = guarantee.detail["delta"]
    value, low, high = shown_loss(likely, unlikely, runs=runs - half, delta=delta, failure_probability=alpha)
    return Attack(
        quantity=guarantee.quantity,
        value=value,
        low=low,
        high=high,
        failure_probability=alpha,
        adversary=Adversary.ANY,
        method=f"canaries ({runs} fits with one and {runs} without, half of them to choose the threshold)",
    )


def _score(model: PrivateClassifier, point: NDArray[np.float64], label: object) -> float:
    """The chance that the student gives to the label, or whether it predicts it."""
    if not hasattr(model, "student_"):
        return _NOTHING_SHOWN
    if hasattr(model, "predict_proba"):
        (place,) = np.flatnonzero(model.classes_ == label)
        return float(model.predict_proba(point[None])[0, place])
    return float(model.predict(point[None])[0] == label)


def _threshold(scores: NDArray[np.float64]) -> tuple[float, int]:
    """Where, and in which direction, the scores of canaries left out (row 0) and planted (row 1) differ most."""
    best = -np.inf, 0.0, 1
    for threshold in np.unique(scores):
        for sign in (1, -1):
            rare, common = (sign * scores >= sign * threshold).sum(axis=1)[::sign]
            ratio = (
                np.log(common + 0.5) - np.log(rare + 0.5) - 1 / np.sqrt(common + 0.5)
            )  # less what rare events vary by
            best = max(best, (float(ratio), float(threshold), sign))
    return best[1], best[2]
