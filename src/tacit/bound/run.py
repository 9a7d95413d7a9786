"""The run: every method of the task, then the report on all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checked, readings
from ..engine import opened
from ..guarantee import Comparison
from ..report import Report
from .batches import BATCH, bounds_per_input, claim_folder, reconstruction
from .given import inputs_of, model_of, noise_of
from .page import figures_of, summary
from .task import METHODS, PER_INPUT, Data, Task

_Array = NDArray[np.float64]


def steps(task: Task) -> int:
    """How many steps of progress the task has."""
    if task.limit is not None:
        checked.whole("--limit", task.limit, at_least=1, remedy="leave it out to bound all inputs")
    count = len(inputs_of(task.data)[: task.limit])
    per_input = sum(method in PER_INPUT for method in task.methods)
    return per_input * -(-count // BATCH) + len(task.methods) - per_input


def bound(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it. `advance` hears what begins."""
    recon = reconstruction()
    noise = noise_of(task.noise, recon)
    for method in task.methods:
        checked.choice("--method", method, METHODS, remedy="or use all")
    checked.choice("--basis", task.basis, ("pixel", "dct"), remedy="use dct for images")
    gallery = inputs_of(task.data)
    data = Data(
        inputs=gallery[: task.limit],
        spread=readings.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    features = model_of(task.model, task.weights)
    with opened(task.engine) as outcomes:
        claim_folder(task, data, features)
        bounds = bounds_per_input(task, features, data, noise, outcomes, advance)
    comparisons: list[Comparison] = []
    for method in task.methods:
        if method in bounds:
            guarantee = readings.median_guarantee(
                method,
                bounds[method],
                spread=data.spread,
                noise=noise,
                feature_error=task.feature_error,
            )
            comparisons.append(Comparison(guarantee=guarantee))
        else:
            advance({"identify": "naming the input", "bayes": "rebuilding the input"}[method])
            comparisons.append(_gallery(recon, method, features, gallery, noise, task))
    return Report(
        command="bound",
        title="What nobody can rebuild from these features",
        summary=summary(bounds, comparisons, data, noise),
        comparisons=tuple(comparisons),
        figures=figures_of(recon, features, bounds, data, noise, task),
        detail={
            "inputs": list(data.inputs.shape),
            "noise": repr(noise),
            "basis": task.basis,
            "prior_std": data.spread,
            "median": {method: float(np.median(values)) for method, values in bounds.items()},
            "folder": str(task.out),
        },
    )


def _gallery(recon: Any, method: str, features: Any, inputs: _Array, noise: Any, task: Task) -> Comparison:
    import torch

    rows, seed = torch.tensor(inputs), task.seed
    options = {"seed": seed, "feature_error": task.feature_error}
    if method == "identify":
        guarantee = recon.identification_bound(features, rows, noise, **options)
        attack = recon.nearest_candidate(features, rows, noise, guarantee, seed=seed + 1)
    else:
        prior = recon.Gallery(rows)
        guarantee = recon.bayes_bound(features, prior, noise, **options).guarantee()
        attack = recon.linear_decoder(features, rows, prior, noise, tries=4096, seed=seed + 1)
    return Comparison(guarantee=guarantee, attack=attack)
