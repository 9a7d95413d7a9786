"""Run every method of the task, then report on all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ...core import validate
from ...core.errors import InputError, TacitError
from ...core.guarantee import Assumption, Attack, Comparison, Guarantee
from ...report import Report
from ...runtime import run_folder
from ...runtime.clusters import open_cluster
from .. import median_bounds
from ..attacks import linear_decoder, nearest_candidate, posterior_mean
from ..bayes import bayes_bound
from ..identification import identification_bound
from ..noise import Noise, checked_noise
from ..priors import Gallery, Prior
from ..release import loaded
from .batches import BATCH, bounds_per_input, claim_folder
from .inputs import basis_of, checked_inputs, error_of, inputs_of, methods_of, model_of, noise_of, prior_of
from .options import PER_INPUT, Data, Task
from .progress import Advance, shown
from .report import figures_of, summary

_Array = NDArray[np.float64]

_KNOWN = 20_000
"""Draws from the prior to which the linear decoder is fitted."""
_LEAST_TRIED = 30
"""The fewest inputs on which an attack's error is worth reporting."""
_FAILURE = 0.001


def bound_files(
    model: str,
    *,
    data: Path | str,
    noise: Noise | str,
    out: Path | str,
    weights: Path | str | None = None,
    public: Path | str | None = None,
    method: str = "all",
    basis: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    feature_error: float | None = None,
    engine: str = "local",
    resume: bool = False,
    advance: Advance | None = None,
    progress: bool = True,
) -> Report:
    """Bound how well anyone rebuilds the inputs of a model from files, attack it, and report: what `tacit bound` does.

    Parameters
    ----------
    model
        FILE.py:FUNCTION, where the function returns the torch module whose output is released. The file is run.
    data
        The inputs: a .npy or .npz file with one input per row, or a folder of images of one size.
    noise
        The noise added to the features: an object of `tacit.reconstruction`, or a text such as "gaussian:1.7".
    out
        A folder for finished batches.
    weights
        The module's state_dict, .safetensors or torch's format. Without it, the module is bounded as the function built
        it, and the report says so.
    public
        Public inputs, as `data`. The prior of the method bayes is then a Gaussian with their mean and covariance.
    method
        identify, bayes, two-point, multi-point or hcr, several separated by commas, or "all" that have a theorem for
        the noise.
    basis
        "dct" (cosine modes of images), "pixel" (single entries) or "auto".
    limit
        How many inputs are bounded one by one.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones; without it, the type of the
        model's weights decides.
    engine
        Where batches run: "local", or "tls://HOST:PORT" of a Dask cluster.
    resume
        Continue in a folder that an earlier run of the same task left behind.
    advance
        Called with a line about each step as it begins.
    progress
        Without `advance`, show these lines on stderr if it is a terminal or a notebook.

    Returns
    -------
    The report, with `comparisons`, `to_text()`, `to_json()` and `to_html()`.

    Raises
    ------
    InputError
        If a file or a value cannot be used.
    NoTheoremError
        If a method that was asked for has no theorem for the noise.
    """
    gallery = inputs_of(Path(data))
    features = model_of(model, None if weights is None else Path(weights))
    task = _task(
        features,
        gallery,
        noise,
        public=None if public is None else inputs_of(Path(public), "public"),
        method=method,
        basis=basis,
        limit=limit,
        seed=seed,
        feature_error=feature_error,
        names=("model", "data"),
    )
    untrained = weights is None and any(True for _ in features.parameters())
    task = replace(task, model=model, untrained=untrained, out=Path(out), resume=resume, engine=engine)
    with shown(advance, progress=progress) as say:
        return _run(task, features, gallery, "data", say)


def bound(
    features: nn.Module,
    inputs: object,
    noise: Noise | str,
    *,
    public: object = None,
    method: str = "all",
    basis: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    feature_error: float | None = None,
    advance: Advance | None = None,
    progress: bool = True,
) -> Report:
    """Bound how well anyone rebuilds the inputs of a module from its noisy features, attack it, and report.

    This is `tacit bound` for a module and arrays in memory; nothing is kept but the report. It may take minutes: begin
    with `method="identify"`, which takes seconds.

    Parameters
    ----------
    features
        The torch module whose output is released.
    inputs
        An array, a tensor or a DataLoader, one input per row; the candidates that the adversary of identify holds.
    noise
        The noise added to the features: an object of `tacit.reconstruction`, or a text such as "gaussian:1.7".
    public
        Public inputs. The prior of the method bayes is then a Gaussian with their mean and covariance.
    method
        identify, bayes, two-point, multi-point or hcr, several separated by commas, or "all" that have a theorem for
        the noise.
    basis
        "dct" (cosine modes of images), "pixel" (single entries) or "auto".
    limit
        How many inputs are bounded one by one.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones; without it, the type of the
        module's weights decides.
    advance
        Called with a line about each step as it begins.
    progress
        Without `advance`, show these lines on stderr if it is a terminal or a notebook.

    Returns
    -------
    The report, with `comparisons`, `to_text()`, `to_json()` and `to_html()`.

    Raises
    ------
    InputError
        If the module or a value cannot be used.
    NoTheoremError
        If a method that was asked for has no theorem for the noise.
    """
    if not isinstance(features, nn.Module):
        remedy = "pass a module; the single bounds, such as identification_bound, take any function"
        raise InputError("features", type(features).__name__, requirement="must be a torch module", remedy=remedy)
    gallery = checked_inputs(loaded("inputs", inputs), "inputs")
    task = _task(
        features,
        gallery,
        noise,
        public=None if public is None else checked_inputs(loaded("public", public), "public"),
        method=method,
        basis=basis,
        limit=limit,
        seed=seed,
        feature_error=feature_error,
        names=("features", "inputs"),
    )
    with shown(advance, progress=progress) as say:
        return _run(task, features, gallery, "inputs", say)


def _task(
    features: nn.Module,
    gallery: _Array,
    noise: Noise | str,
    *,
    public: _Array | None,
    method: str,
    basis: str,
    limit: int | None,
    seed: int,
    feature_error: float | None,
    names: tuple[str, str],
) -> Task:
    if limit is not None:
        validate.whole("limit", limit, at_least=1, remedy="leave it out to bound all inputs")
    added = noise_of(noise) if isinstance(noise, str) else noise
    checked_noise(added)
    return Task(
        noise=added,
        methods=methods_of(method, added, public=public is not None),
        basis=basis_of(basis, gallery),
        limit=limit,
        seed=validate.whole("seed", seed, at_least=0, remedy="use 0"),
        feature_error=error_of(features, gallery, feature_error, names=names),
        public=public,
    )


def _run(task: Task, features: nn.Module, gallery: _Array, name: str, advance: Advance) -> Report:
    """Run what is left of the task, and report on all of it."""
    prior = prior_of(task, gallery, name)
    data = Data(
        inputs=gallery[: task.limit],
        spread=median_bounds.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    advance = _counted(task, len(data.inputs), advance)
    on_data = None
    with open_cluster(task.engine) as outcomes:
        if task.out is not None:
            claim_folder(task, task.out, data, features)
        try:
            bounds = bounds_per_input(task, features, data, outcomes, advance)
            found = {method: _median(method, values, data, task) for method, values in bounds.items()}
            if "identify" in task.methods:
                advance("naming the input")
                found["identify"] = _naming(features, gallery, task)
            if "bayes" in task.methods:
                advance("rebuilding the input")
                found["bayes"] = _rebuilding(features, prior, task)
                if task.public is not None:
                    on_data = _on_data(features, task.public, gallery, prior, found["bayes"].guarantee, task)
        except TacitError:
            if task.out is not None:
                run_folder.unclaim(task.out)
            raise
    # An attack on the real inputs that does better than the prior allows contradicts the bound.
    if on_data is not None:
        found["bayes"] = replace(found["bayes"], attacks=(*found["bayes"].attacks, on_data))
    comparisons = {method: _about_weights(found[method], task) for method in task.methods}
    return Report(
        command="bound",
        title="How well anyone can rebuild the inputs from these features",
        summary=summary(comparisons, data, task, candidates=len(gallery), on_data=on_data),
        comparisons=tuple(comparisons.values()),
        figures=figures_of(features, bounds, data, task),
        detail={
            "inputs": list(data.inputs.shape),
            "noise": repr(task.noise),
            "basis": task.basis,
            "prior_std": data.spread,
            "median": {method: float(np.median(values)) for method, values in bounds.items()},
            "feature_error": task.feature_error,
            "on_data": None if on_data is None else on_data.to_dict(),
            "weights": "as built" if task.untrained else "given",
            "folder": None if task.out is None else str(task.out),
        },
    )


def _about_weights(comparison: Comparison, task: Task) -> Comparison:
    """State whose weights the guarantee is about, where the module has parameters and no weights were given."""
    if not task.untrained:
        return comparison
    text = f"the module is released as {task.model} builds it: no other weights are loaded into it"
    assumptions = (Assumption(text=text, checked_by="caller"), *comparison.guarantee.assumptions)
    return replace(comparison, guarantee=replace(comparison.guarantee, assumptions=assumptions))


def _counted(task: Task, inputs: int, advance: Advance) -> Advance:
    """Prefix each line with how many steps are done, out of how many."""
    per_input = sum(method in PER_INPUT for method in task.methods)
    steps = per_input * -(-inputs // BATCH) + len(task.methods) - per_input
    begun = count()

    def counted(line: str) -> None:
        advance(f"{next(begun)} of {steps} steps done, {line}")

    return counted


def _median(method: str, values: _Array, data: Data, task: Task) -> Comparison:
    options: dict[str, Any] = {"spread": data.spread, "noise": task.noise, "feature_error": task.feature_error}
    return Comparison(guarantee=median_bounds.median_guarantee(method, values, **options))


def _naming(features: Any, gallery: _Array, task: Task) -> Comparison:
    """Bound and attack naming the input, for an adversary who holds all inputs."""
    options: dict[str, Any] = {"seed": task.seed, "feature_error": task.feature_error}
    guarantee = identification_bound(features, gallery, task.noise, **options)
    options["seed"] = task.seed + 1
    attack = nearest_candidate(features, gallery, task.noise, guarantee, **options)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _rebuilding(features: Any, prior: Prior, task: Task) -> Comparison:
    """Bound and attack rebuilding an input drawn from the prior."""
    error: dict[str, Any] = {"feature_error": task.feature_error}
    guarantee = bayes_bound(features, prior, task.noise, basis=task.basis, seed=task.seed, **error).guarantee
    if isinstance(prior, Gallery):
        attack = posterior_mean(features, prior, task.noise, tries=4096, seed=task.seed + 1, **error)
    else:
        known = prior.sample(_KNOWN, seed=task.seed + 1)
        attack = linear_decoder(features, known, prior, task.noise, seed=task.seed, **error)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _on_data(
    features: Any,
    public: _Array,
    inputs: _Array,
    prior: Any,
    guarantee: Guarantee,
    task: Task,
) -> Attack | None:
    """The better of two attacks with the public inputs on the real ones, as a share of the prior's variance.

    None if there are too few real inputs to try it on.
    """
    variance = float(inputs.reshape(len(inputs), -1).var(axis=0).mean())
    if len(inputs) < _LEAST_TRIED or not variance > 0:
        return None
    # The better of two counts, so each may fail with half of the probability.
    options: dict[str, Any] = {"failure_probability": _FAILURE / 2, "feature_error": task.feature_error}
    options["seed"] = task.seed
    tried = [
        linear_decoder(features, public, inputs, task.noise, **options),
        posterior_mean(features, Gallery(public), task.noise, held_out=inputs, **options),
    ]
    best: Attack = min(tried, key=lambda attack: float(attack.high))
    share = variance / float(prior.variances.mean())
    return replace(
        best,
        quantity=guarantee.quantity,
        adversary=guarantee.adversary,
        failure_probability=_FAILURE,
        method=f"{best.method}, on the real inputs",
        **{end: share * getattr(best, end) for end in ("value", "low", "high")},
    )
