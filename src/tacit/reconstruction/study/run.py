"""The run: every method of the task, then the report on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import TacitError
from ...core.guarantee import Attack, Comparison, Guarantee
from ...report import Report
from ...runtime import run_folder
from ...runtime.clusters import opened
from .. import median_bounds
from .batches import BATCH, bounds_per_input, claim_folder, reconstruction
from .inputs import basis_of, check_noise, error_of, inputs_of, model_of, noise_of, prior_of
from .options import PER_INPUT, Data, Task
from .report import figures_of, summary

_Array = NDArray[np.float64]

_KNOWN = 20_000
"""Inputs like the public ones, from which the decoder learns."""
_LEAST_TRIED = 30
"""Inputs that an attack must be tried on, for its error to be worth a number."""
_CONFIDENCE = 0.999


def steps(task: Task) -> int:
    """How many steps of progress the task has."""
    if task.limit is not None:
        validate.whole("--limit", task.limit, at_least=1, remedy="leave it out to bound all inputs")
    count = len(inputs_of(task.data)[: task.limit])
    per_input = sum(method in PER_INPUT for method in task.methods)
    return per_input * -(-count // BATCH) + len(task.methods) - per_input


def bound(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it. `advance` hears what begins."""
    recon = reconstruction()
    noise = noise_of(task.noise, recon)
    check_noise(task)
    gallery = inputs_of(task.data)
    prior, public = prior_of(task, gallery, recon)
    task = replace(task, basis=basis_of(task.basis, gallery))
    data = Data(
        inputs=gallery[: task.limit],
        spread=median_bounds.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    features = model_of(task.model, task.weights)
    error = error_of(features, gallery, task.feature_error)
    task = replace(task, feature_error=error)
    on_data = None
    with opened(task.engine) as outcomes:
        claim_folder(task, data, features)
        try:
            bounds = bounds_per_input(task, features, data, noise, outcomes, advance)
            found = {method: _median(method, values, data, noise, error) for method, values in bounds.items()}
            if "identify" in task.methods:
                advance("naming the input")
                found["identify"] = _naming(recon, features, gallery, noise, task)
            if "bayes" in task.methods:
                advance("rebuilding the input")
                found["bayes"] = _rebuilding(recon, features, prior, noise, task)
                if public is not None:
                    on_data = _on_data(recon, features, public, gallery, prior, noise, found["bayes"].guarantee, task)
        except TacitError:
            run_folder.unclaim(task.out)
            raise
    # What real inputs give away decides, where it is more than the prior allows.
    if on_data is not None:
        found["bayes"] = replace(found["bayes"], attacks=(*found["bayes"].attacks, on_data))
    comparisons = {method: found[method] for method in task.methods}
    return Report(
        command="bound",
        title="How well anyone can rebuild the inputs from these features",
        summary=summary(comparisons, data, noise, task, candidates=len(gallery), on_data=on_data),
        comparisons=tuple(comparisons.values()),
        figures=figures_of(recon, features, bounds, data, noise, task),
        detail={
            "inputs": list(data.inputs.shape),
            "noise": repr(noise),
            "basis": task.basis,
            "prior_std": data.spread,
            "median": {method: float(np.median(values)) for method, values in bounds.items()},
            "feature_error": task.feature_error,
            "on_data": None if on_data is None else on_data.to_dict(),
            "folder": str(task.out),
        },
    )


def _median(method: str, values: _Array, data: Data, noise: Any, error: float) -> Comparison:
    guarantee = median_bounds.median_guarantee(method, values, spread=data.spread, noise=noise, feature_error=error)
    return Comparison(guarantee=guarantee)


def _naming(recon: Any, features: Any, gallery: _Array, noise: Any, task: Task) -> Comparison:
    """Of those who hold the inputs."""
    options: dict[str, Any] = {"seed": task.seed, "feature_error": task.feature_error}
    guarantee = recon.identification_bound(features, gallery, noise, **options)
    options["seed"] = task.seed + 1
    attack = recon.nearest_candidate(features, gallery, noise, guarantee, **options)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _rebuilding(recon: Any, features: Any, prior: Any, noise: Any, task: Task) -> Comparison:
    """By those who hold the inputs, or only know the mean and covariance of public ones."""
    error: dict[str, Any] = {"feature_error": task.feature_error}
    guarantee = recon.bayes_bound(features, prior, noise, basis=task.basis, seed=task.seed, **error).guarantee()
    if task.public is None:
        attack = recon.posterior_mean(features, prior, noise, tries=4096, seed=task.seed + 1, **error)
    else:
        known = prior.sample(_KNOWN, seed=task.seed + 1)
        attack = recon.linear_decoder(features, known, prior, noise, seed=task.seed, **error)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _on_data(
    recon: Any,
    features: Any,
    public: _Array,
    inputs: _Array,
    prior: Any,
    noise: Any,
    guarantee: Guarantee,
    task: Task,
) -> Attack | None:
    """The best that somebody who holds the public inputs makes of releases of the real ones, in the prior's variance.

    None where these are too few to try it on.
    """
    variance = float(inputs.reshape(len(inputs), -1).var(axis=0).mean())
    if len(inputs) < _LEAST_TRIED or not variance > 0:
        return None
    # Two are tried, so each is half as unsure.
    options: dict[str, Any] = {"confidence": 1 - (1 - _CONFIDENCE) / 2, "feature_error": task.feature_error}
    options["seed"] = task.seed
    tried = [
        recon.linear_decoder(features, public, inputs, noise, **options),
        recon.posterior_mean(features, recon.Gallery(public), noise, held_out=inputs, **options),
    ]
    best: Attack = min(tried, key=lambda attack: float(attack.high))
    share = variance / float(prior.variances.mean())
    return replace(
        best,
        quantity=guarantee.quantity,
        adversary=guarantee.adversary,
        confidence=_CONFIDENCE,
        method=f"{best.method}, on the inputs of --data",
        **{end: share * getattr(best, end) for end in ("value", "low", "high")},
    )
