"""What classifiers of any kind say about records."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError

_AT_ONCE = 4096

_Floats = NDArray[np.float64]


def records_of(name: str, pair: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and labels of records, checked."""
    requirement = "must be (X, y), as many inputs as labels and at least one"
    if validate.is_loader(pair):
        pair = validate.gathered(name, pair)
    try:
        given = tuple(pair)
    except Exception:  # no pair at all, or what raises what it likes
        given = ()
    for one in given:
        validate.unmasked(name, one)
    try:
        inputs, labels = (np.asarray(validate.detached(one), order="C") for one in given)
    except Exception:  # foreign __array__ methods raise what they like
        raise InputError(name, pair, requirement=requirement, remedy="pass arrays") from None
    if inputs.ndim < 2 or labels.ndim != 1 or len(inputs) != len(labels) or not len(labels):
        raise InputError(name, (inputs.shape, labels.shape), requirement=requirement, remedy="pass arrays")
    return inputs, labels


def probabilities(model: Any, inputs: NDArray[Any]) -> tuple[_Floats, NDArray[Any]]:
    """The probability of every class for each record, and the classes."""
    torch = sys.modules.get("torch")  # whoever holds a torch module has imported torch
    if torch is not None and isinstance(model, torch.nn.Module):
        chances = _softmax(model, inputs)
        return chances, np.arange(chances.shape[1])
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        return np.asarray(model.predict_proba(inputs), dtype=np.float64), np.asarray(model.classes_)
    raise InputError(
        "model",
        type(model).__name__,
        requirement="must be a fitted classifier with predict_proba, or a torch module that returns logits",
        remedy="fit it and return it, or wrap it in such a class",
    )


def chances_of(model: Any, inputs: NDArray[Any], labels: NDArray[Any]) -> _Floats:
    """The probability of each of the labels, of which there must not be fewer than classes that the model knows.

    A class that is no label would be an answer that nobody looks at.
    """
    chances, classes = probabilities(model, inputs)
    if chances.shape != (len(inputs), len(classes)) or not ((chances >= 0) & (chances <= 1 + 1e-6)).all():
        raise InputError(
            "model",
            "other numbers",
            requirement="must give a probability for every record and class",
            remedy="check its predict_proba",
        )
    known = [(type(label), label) for label in labels.tolist()]  # 1 and True are not the same
    found = np.zeros((len(inputs), len(labels)))
    for chance, one in zip(chances.T, classes.tolist(), strict=True):
        if (type(one), one) not in known:
            raise InputError(
                "model",
                f"the class {one!r}",
                requirement=f"must know no classes but the labels of the records, such as {known[0][1]!r}",
                remedy="fit it to the labels as they are; a torch module gives a logit for each of the labels 0, 1 …",
            )
        found[:, known.index((type(one), one))] = chance
    return found


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
