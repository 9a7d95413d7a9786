"""Membership in a training set: a table of a classifier's scores on training records and on others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ..core import validate
from ..core.errors import InputError

MOST_LOSS = 50.0
"""Losses are cut off here, as a label that the model rules out has an infinite loss."""

_LEAST_CHANCE = 1e-6  # for logits, which shadow models are compared by
_AT_ONCE = 4096

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
        whether the prediction is right. "lira", where shadow models were trained: the log-likelihood ratio of the
        model's answer under models that were trained on the record and models that were not.
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
    draws: int | None = None,
    seed: int = 0,
) -> Membership:
    """Score a fitted classifier on the records it was trained on and on others.

    The adversary of a certificate sees the score alone. Whoever computes "lira" also holds the record and the shadow
    models.

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
        random half of all records, for the likelihood-ratio attack (LiRA).
    shadows
        How many shadow models.
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
    """
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    rng = np.random.default_rng(seed)
    inside, outside = _records("members", members), _records("non_members", non_members)
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
        scores["lira"] = _lira(_logit(own), inputs, labels, factory, count, rng)
    if draws is not None:
        rows = validate.whole("draws", draws, at_least=1, remedy="draw some thousands")
        picked = np.concatenate([rng.choice(np.flatnonzero(member == kind), rows) for kind in (True, False)])
        member, scores = member[picked], {name: one[picked] for name, one in scores.items()}
    return Membership(member=member, scores=MappingProxyType(scores))


def _records(name: str, pair: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    requirement = "must be (X, y), as many inputs as labels and at least one"
    if validate.is_loader(pair):
        pair = validate.gathered(name, pair)
    try:
        inputs, labels = (np.asarray(validate.detached(one), order="C") for one in pair)
    except Exception:  # foreign __array__ methods raise what they like
        raise InputError(name, pair, requirement=requirement, remedy="pass arrays") from None
    if inputs.ndim < 2 or labels.ndim != 1 or len(inputs) != len(labels) or not len(labels):
        raise InputError(name, (inputs.shape, labels.shape), requirement=requirement, remedy="pass arrays")
    return inputs, labels


def _chances(model: Any, inputs: NDArray[Any], labels: NDArray[Any]) -> tuple[_Floats, NDArray[np.int64]]:
    """The probability of every class for each record, and the place of its label among the classes."""
    torch = sys.modules.get("torch")  # whoever holds a torch module has imported torch
    if torch is not None and isinstance(model, torch.nn.Module):
        chances = _softmax(model, inputs)
        classes = np.arange(chances.shape[1])
    elif hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        chances = np.asarray(model.predict_proba(inputs), dtype=np.float64)
        classes = np.asarray(model.classes_)
    else:
        raise InputError(
            "model",
            type(model).__name__,
            requirement="must be a fitted classifier with predict_proba, or a torch module that returns logits",
            remedy="fit it, or wrap it in such a class",
        )
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


def _softmax(model: Any, inputs: NDArray[Any]) -> _Floats:
    import torch

    training = model.training
    model.eval()
    try:
        weight = next(iter(model.parameters()), torch.zeros(()))
        parts = []
        with torch.no_grad():
            for start in range(0, len(inputs), _AT_ONCE):
                batch = torch.from_numpy(np.ascontiguousarray(inputs[start : start + _AT_ONCE]))
                logits = model(batch.to(device=weight.device, dtype=weight.dtype))
                parts.append(torch.softmax(logits.double(), dim=1).cpu().numpy())
    finally:
        model.train(training)
    return np.concatenate(parts)


def _lira(
    seen: _Floats,
    inputs: NDArray[Any],
    labels: NDArray[Any],
    factory: Callable[[Any, Any], Any],
    shadows: int,
    rng: np.random.Generator,
) -> _Floats:
    """The log-likelihood ratio of the logit under models with and without the record, normal with one variance each."""
    # Every record is in half of the shadow models.
    had = rng.permuted(np.arange(shadows)[:, None] < np.full(len(labels), shadows // 2), axis=0)
    logits = np.empty((shadows, len(labels)))
    for row, chosen in zip(logits, had, strict=True):
        chances, places = _chances(factory(inputs[chosen], labels[chosen]), inputs, labels)
        row[:] = _logit(chances[np.arange(len(labels)), places])
    ratio = np.zeros(len(labels))
    for side, sign in ((had, 1), (~had, -1)):
        kept = np.where(side, logits, np.nan)
        mean = np.nanmean(kept, axis=0)
        variance = float(np.nanmean((kept - mean) ** 2)) + 1e-12
        ratio += sign * (-((seen - mean) ** 2) / (2 * variance) - 0.5 * np.log(variance))
    return ratio


def _logit(chances: _Floats) -> _Floats:
    cut = np.clip(chances, _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    return np.log(cut) - np.log1p(-cut)
