"""The run: every method of the task, then the report on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checked, kept, readings
from ..engine import opened
from ..errors import TacitError
from ..guarantee import Comparison
from ..report import Report
from .batches import BATCH, bounds_per_input, claim_folder, reconstruction
from .given import basis_of, check_fit, check_noise, inputs_of, model_of, noise_of, prior_of
from .page import figures_of, summary
from .task import PER_INPUT, Data, Task

_Array = NDArray[np.float64]

_KNOWN = 20_000
"""Inputs like the public ones, from which the decoder learns."""


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
    check_noise(task)
    gallery = inputs_of(task.data)
    prior = prior_of(task, gallery, recon)
    task = replace(task, basis=basis_of(task.basis, gallery))
    data = Data(
        inputs=gallery[: task.limit],
        spread=readings.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    features = model_of(task.model, task.weights)
    check_fit(features, gallery, task.feature_error)
    with opened(task.engine) as outcomes:
        claim_folder(task, data, features)
        try:
            bounds = bounds_per_input(task, features, data, noise, outcomes, advance)
            found = {method: _median(method, values, data, noise, task) for method, values in bounds.items()}
            if "identify" in task.methods:
                advance("naming the input")
                found["identify"] = _naming(recon, features, gallery, noise, task)
            if "bayes" in task.methods:
                advance("rebuilding the input")
                found["bayes"] = _rebuilding(recon, features, prior, noise, task)
        except TacitError:
            kept.unclaim(task.out)
            raise
    comparisons = {method: found[method] for method in task.methods}
    return Report(
        command="bound",
        title="How well anyone can rebuild the inputs from these features",
        summary=summary(comparisons, data, noise, task, candidates=len(gallery)),
        comparisons=tuple(comparisons.values()),
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


def _median(method: str, values: _Array, data: Data, noise: Any, task: Task) -> Comparison:
    error = task.feature_error
    guarantee = readings.median_guarantee(method, values, spread=data.spread, noise=noise, feature_error=error)
    return Comparison(guarantee=guarantee)


def _naming(recon: Any, features: Any, gallery: _Array, noise: Any, task: Task) -> Comparison:
    """Of those who hold the inputs."""
    options = {"seed": task.seed, "feature_error": task.feature_error}
    guarantee = recon.identification_bound(features, gallery, noise, **options)
    attack = recon.nearest_candidate(features, gallery, noise, guarantee, seed=task.seed + 1)
    return Comparison(guarantee=guarantee, attack=attack)


def _rebuilding(recon: Any, features: Any, prior: Any, noise: Any, task: Task) -> Comparison:
    """By those who hold the inputs, or only know what public ones look like."""
    options = {"basis": task.basis, "seed": task.seed, "feature_error": task.feature_error}
    guarantee = recon.bayes_bound(features, prior, noise, **options).guarantee()
    if task.public is None:
        attack = recon.posterior_mean(features, prior, noise, tries=4096, seed=task.seed + 1)
    else:
        known = prior.sample(_KNOWN, seed=task.seed + 1)
        attack = recon.linear_decoder(features, known, prior, noise, seed=task.seed)
    return Comparison(guarantee=guarantee, attack=attack)
