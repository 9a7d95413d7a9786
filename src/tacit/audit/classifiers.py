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
        inputs, labels = (np.asarray(validate.detached(one), order="C") for one in pair)
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
        remedy="fit it, or wrap it in such a class",
    )


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
