"""Membership in a training set: a table of a classifier's scores on training records and on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ..core import validate
from ..core.errors import InputError
from .classifiers import probabilities, records_of
from .record_attacks import ATTACKS
from .retraining import Retrained, retrain

MOST_LOSS = 50.0
"""Losses are cut off here, as a label that the model rules out has an infinite loss."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """A table for `certify`, `attempts` and `audit`: who was in the training data, and the model's scores.

    Attributes
    ----------
    member
        Whether the record was trained on.
    scores
        Columns by name. "loss": −ln of the probability that the model gives to the record's label, at most 50.
        "confidence": the probability of the predicted class. "entropy": of all probabilities, in nats. "correct":
        whether the prediction is right. Where shadow models were trained, what whoever holds the record makes of them,
        larger for members: "lira", the log-likelihood ratio of the model's answer under models with and without the
        record; "lira-offline", which needs only those without it; "rmia", the share of records whose probability has
        risen less; "calibrated", the loss less the usual one; and "label", by the predicted class alone.
    """

    member: NDArray[np.bool_]
    scores: Mapping[str, NDArray[Any]]


def membership(
    model: Any,
    members: tuple[Any, Any],
    non_members: tuple[Any, Any],
    *,
    factory: Callable[[Any, Any], Any] | None = None,
    shadows: int = 16,
    engine: str = "local",
    draws: int | None = None,
    seed: int = 0,
) -> Membership:
    """Score a fitted classifier on the records it was trained on and on others.

    The adversary of a certificate sees the score alone. Whoever computes "lira" also holds the record and the shadow
    models: `audit_records` is about him.

    Parameters
    ----------
    model
        A fitted classifier of scikit-learn (with `predict_proba`), or a torch module that returns logits.
    members
        (X, y) of records that it was trained on, or a DataLoader of both that does not shuffle.
    non_members
        (X, y) of other records from the same source.
    factory
        A function that trains a model of the same kind, factory(X, y). With it shadow models are trained, each on a
        random half of all records, for attacks by whoever holds the record.
    shadows
        How many shadow models.
    engine
        Where they are trained: "local", or the address of a Dask or Ray cluster.
    draws
        How many rows of each class are drawn, with replacement. Given the model these are independent, and the
        certificate is about a random one of exactly these records. By default every record is one row; then it is an
        assumption of yours that rows are independent, although one model saw all members together.
    seed
        Of draws and shadow models.

    Raises
    ------
    InputError
        Where the model is no classifier, or records and labels do not fit it.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis and Tramèr 2022, *Membership inference attacks from first principles*.
    Zarifzadeh, Liu and Shokri 2024, *Low-cost high-power membership inference attacks*.
    """
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    rng = np.random.default_rng(seed)
    inside, outside = records_of("members", members), records_of("non_members", non_members)
    inputs, labels = (np.concatenate([one, other]) for one, other in zip(inside, outside, strict=True))
    member = np.arange(len(labels)) < len(inside[1])
    chances, places = _chances(model, inputs, labels)
    own = chances[np.arange(len(labels)), places]
    scores: dict[str, NDArray[Any]] = {
        "loss": np.minimum(MOST_LOSS, -np.log(np.maximum(own, 1e-300))),
        "confidence": chances.max(axis=1),
        "entropy": entr(chances).sum(axis=1),
        "correct": chances.argmax(axis=1) == places,
    }
    if factory is not None:
        count = validate.whole("shadows", shadows, at_least=4, remedy="train 16 or more")
        others = retrain(factory, inputs, labels, models=count, engine=engine, seed=seed)
        seen = Retrained(
            inside=member[None],
            chances=own[None],
            predicted=np.where(scores["correct"], others.labels, -1)[None],
            confidence=scores["confidence"][None],
            labels=others.labels,
        )
        scores |= {name: score(others, seen)[0] for name, (_, score) in ATTACKS.items() if name != "loss"}
    if draws is not None:
        rows = validate.whole("draws", draws, at_least=1, remedy="draw some thousands")
        picked = np.concatenate([rng.choice(np.flatnonzero(member == kind), rows) for kind in (True, False)])
        member, scores = member[picked], {name: one[picked] for name, one in scores.items()}
    return Membership(member=member, scores=MappingProxyType(scores))


def _chances(model: Any, inputs: NDArray[Any], labels: NDArray[Any]) -> tuple[_Floats, NDArray[np.int64]]:
    """The probability of every class for each record, and the place of its label among the classes."""
    chances, classes = probabilities(model, inputs)
    order = np.argsort(classes)
    places = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    found = order[places]
    if not (classes[found] == labels).all():
        raise InputError(
            "y",
            labels[classes[found] != labels][0].item(),
            requirement="must be classes that the model knows",
            remedy="leave out records of other classes",
        )
    return chances, found
