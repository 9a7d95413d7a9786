"""Run every method of the task, then report on all of them."""

from __future__ import annotations

import contextlib
import math
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ...core import validate
from ...core.errors import InputError, TacitError
from ...core.guarantee import Assumption, Comparison
from ...report import Figure, Report
from ...runtime import run_folder
from ...runtime.clusters import open_cluster
from .. import median_bounds
from ..attacks import nearest_candidate, posterior_mean
from ..bayes import bayes_bound
from ..identification import identification_bound
from ..noise import Noise, checked_noise
from ..priors import Gallery
from ..release import loaded
from ..repeated import checked_releases
from ..two_point import evidence_of
from .batches import BATCH, bounds_per_input, claim_folder
from .budget import SECONDS, Budget, OutOfTime
from .inputs import (
    basis_of,
    checked_inputs,
    checked_labels,
    device_of,
    error_of,
    inputs_of,
    labels_of,
    methods_of,
    model_of,
    noise_of,
    prior_of,
)
from .options import PER_INPUT, Data, Task, stated
from .own import SIZES, accuracy, noise_changes, positions, shows_images, slider_of
from .progress import Advance, shown
from .report import figures_of, hidden_figures, in_time, left_out, summary, useful_verdict, verdicts
from .unseen import Unseen, unseen

_Array = NDArray[np.float64]


def bound_files(
    model: str,
    *,
    data: Path | str,
    noise: Noise | str,
    out: Path | str,
    weights: Path | str | None = None,
    public: Path | str | None = None,
    prior: object = "auto",
    steps: int | None = None,
    seconds: float = SECONDS,
    method: str = "all",
    basis: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    labels: Path | str | None = None,
    head: str | None = None,
    head_weights: Path | str | None = None,
    engine: str = "local",
    device: str = "auto",
    resume: bool = False,
    pictures: bool = True,
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
        Public inputs, as `data`. The prior of the method bayes is fitted to them, and attackers of the real inputs
        learn from them.
    prior
        What the adversary of bayes knows about inputs: "gaussian" (the mean and covariance of `public`), "spectrum"
        (the power per frequency and colour of public images), "jittered:SIZE" (one of `public`, each entry moved by a
        Gaussian of this standard deviation), "generator:FILE" (what `Generator.save` wrote), or a `Mixture`,
        `Jittered`, `Spectrum` or `Generator`. "auto" is a Gaussian up to 4096 entries and a spectrum for larger images;
        without `public`, the adversary holds the inputs themselves.
    steps
        Of the chains of bayes, an even number; unless given, as many as there is time for.
    seconds
        About how long all of it may take. Methods that speak about real attackers come first; what there was no time
        for is named in the report, with the command that runs it. `steps` and `limit` are kept whatever the time.
    method
        identify, bayes, two-point, multi-point or hcr, several separated by commas, or "all" that have a theorem for
        the noise.
    basis
        "dct" (cosine modes of images), "pixel" (single entries) or "auto".
    limit
        How many inputs are bounded one by one; unless given, as many as there is time for.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones; without it, the type of the
        model's weights decides.
    releases
        How often the same input is released, at most, each time with fresh noise.
    labels
        A .npy or .npz file with the class number of each input; with `head`, the report says what accuracy the noise
        leaves.
    head, head_weights
        FILE.py:FUNCTION, where the function returns the module that turns features into class scores, and its
        state_dict.
    engine
        Where batches run: "local", or "tls://HOST:PORT" of a Dask cluster.
    device
        Where torch computes: "cpu", "cuda", or "auto", which takes a GPU of this machine if no cluster is used.
    resume
        Continue in a folder that an earlier run of the same task left behind.
    pictures
        Whether to draw the pictures for a page.
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
    place = device_of(device, engine)
    features = model_of(model, _path(weights), place)
    task = _task(
        features,
        gallery,
        noise,
        public=None if public is None else inputs_of(Path(public), "public"),
        prior=prior,
        steps=steps,
        seconds=seconds,
        method=method,
        basis=basis,
        limit=limit,
        seed=seed,
        feature_error=feature_error,
        releases=releases,
        labels=None if labels is None else labels_of(Path(labels)),
        head=None if head is None else model_of(head, _path(head_weights), place, "head"),
        names=("model", "data"),
    )
    untrained = weights is None and any(True for _ in features.parameters())
    given: dict[str, Any] = {"weights": weights, "data": data, "noise": noise, "public": public, "out": out}
    given |= {"labels": labels, "head": head, "head_weights": head_weights, "feature_error": feature_error}
    chosen = {"prior": prior, "basis": basis, "seed": seed, "releases": releases, "engine": engine, "device": device}
    given |= {name: value for name, value in chosen.items() if value not in ("auto", 0, "local")}
    if releases == 1:
        del given["releases"]
    words = [text for name, value in given.items() if value is not None for text in (_option(name), str(value))]
    command = shlex.join(["tacit", "bound", model, *words])
    task = replace(task, model=model, untrained=untrained, out=Path(out), resume=resume, engine=engine)
    task = replace(task, command=command, pictures=pictures)
    with shown(advance, progress=progress) as say:
        return _run(task, features, gallery, "data", say)


def bound(
    features: nn.Module,
    inputs: object,
    noise: Noise | str,
    *,
    public: object = None,
    prior: object = "auto",
    steps: int | None = None,
    seconds: float = SECONDS,
    method: str = "all",
    basis: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
    labels: object = None,
    head: nn.Module | None = None,
    advance: Advance | None = None,
    progress: bool = True,
) -> Report:
    """Bound how well anyone rebuilds the inputs of a module from its noisy features, attack it, and report.

    This is `tacit bound` for a module and arrays in memory; nothing is kept but the report. It takes about two minutes
    at most, unless told otherwise; `method="identify"` takes seconds.

    Parameters
    ----------
    features
        The torch module whose output is released.
    inputs
        An array, a tensor or a DataLoader, one input per row; the candidates that the adversary of identify holds.
    noise
        The noise added to the features: an object of `tacit.reconstruction`, or a text such as "gaussian:1.7".
    public
        Public inputs. The prior of the method bayes is fitted to them, and attackers of the real inputs learn from
        them.
    prior
        What the adversary of bayes knows about inputs: "gaussian" (the mean and covariance of `public`), "spectrum"
        (the power per frequency and colour of public images), "jittered:SIZE" (one of `public`, each entry moved by a
        Gaussian of this standard deviation), "generator:FILE" (what `Generator.save` wrote), or a `Mixture`,
        `Jittered`, `Spectrum` or `Generator`. "auto" is a Gaussian up to 4096 entries and a spectrum for larger images;
        without `public`, the adversary holds the inputs themselves.
    steps
        Of the chains of bayes, an even number; unless given, as many as there is time for.
    seconds
        About how long all of it may take. Methods that speak about real attackers come first; what there was no time
        for is named in the report, with the command that runs it. `steps` and `limit` are kept whatever the time.
    method
        identify, bayes, two-point, multi-point or hcr, several separated by commas, or "all" that have a theorem for
        the noise.
    basis
        "dct" (cosine modes of images), "pixel" (single entries) or "auto".
    limit
        How many inputs are bounded one by one; unless given, as many as there is time for.
    seed
        For searches, Monte Carlo and attacks.
    feature_error
        The share of their norm by which released features may differ from exact ones; without it, the type of the
        module's weights decides.
    releases
        How often the same input is released, at most, each time with fresh noise.
    labels
        The class number of each input; with `head`, the report says what accuracy the noise leaves.
    head
        The module that turns features into class scores.
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
        prior=prior,
        steps=steps,
        seconds=seconds,
        method=method,
        basis=basis,
        limit=limit,
        seed=seed,
        feature_error=feature_error,
        releases=releases,
        labels=labels,
        head=head,
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
    prior: object,
    steps: int | None,
    seconds: float,
    method: str,
    basis: str,
    limit: int | None,
    seed: int,
    feature_error: float | None,
    releases: int,
    labels: object,
    head: nn.Module | None,
    names: tuple[str, str],
) -> Task:
    if limit is not None:
        validate.whole("limit", limit, at_least=1, remedy="leave it out to bound all inputs")
    added = noise_of(noise) if isinstance(noise, str) else noise
    checked_noise(added)
    return Task(
        noise=added,
        methods=methods_of(method, added, prior=stated(public, prior)),
        basis=basis_of(basis, gallery),
        limit=limit,
        seed=validate.whole("seed", seed, at_least=0, remedy="use 0"),
        feature_error=error_of(features, gallery, feature_error, names=names),
        public=public,
        prior=prior,
        steps=steps,
        seconds=validate.number("seconds", seconds, above=0, remedy="leave it out for two minutes"),
        releases=checked_releases(releases),
        labels=checked_labels(labels, head, len(gallery), features, gallery),
        head=head,
    )


def _run(
    task: Task,
    features: nn.Module,
    gallery: _Array,
    name: str,
    advance: Advance,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Run what is left of the task, as far as there is time, and report on all of it."""
    prior = prior_of(task, gallery, name)
    data = Data(
        inputs=gallery[: task.limit],
        spread=median_bounds.prior_std(gallery),
        box=(float(gallery.min()), float(gallery.max())),
    )
    per_input = [method for method in task.methods if method in PER_INPUT]
    steps = len(per_input) * -(-len(data.inputs) // BATCH) + len(task.methods) - len(per_input)
    steps += len(SIZES) * ("identify" in task.methods) * (1 + shows_images(task, gallery))
    budget = Budget(task.seconds, steps=steps, advance=advance, clock=clock)
    hidden, sizes, missing = None, [], {}
    found: dict[str, Comparison] = {}
    with open_cluster(task.engine) as outcomes:
        if task.out is not None:
            claim_folder(task, task.out, data, features, prior.description if task.states_prior else None)
        try:
            if "identify" in task.methods:
                budget.begin("naming the input")
                found["identify"] = _naming(features, gallery, task)
            if "bayes" in task.methods:
                budget.begin("rebuilding the input")
                try:
                    if isinstance(prior, Gallery):
                        with budget.stopping(features) if found else contextlib.nullcontext():
                            found["bayes"] = _rebuilding(features, prior, task)
                    else:
                        hidden = unseen(features, prior, gallery, task, budget, must=not found)
                        found["bayes"] = hidden.comparison
                    if hidden is not None and hidden.hurried:
                        missing["bayes"] = math.inf
                except OutOfTime:
                    missing["bayes"] = math.inf
            if "identify" in found:
                sizes = positions(features, gallery, data, task, found["identify"], budget)
            bounds, late, pairs = bounds_per_input(task, features, data, outcomes, budget, must=not found)
            found |= {method: _median(method, values, data, task, pairs) for method, values in bounds.items()}
            missing |= late
        except TacitError:
            if task.out is not None:
                run_folder.unclaim(task.out)
            raise
    comparisons = {method: _about_weights(found[method], task) for method in task.methods if method in found}
    counts = {method: len(values) for method, values in bounds.items()}
    cards = verdicts(comparisons, hidden)
    changes = (*noise_changes(sizes, task, cards), *left_out(missing, counts, task))
    if (clean := accuracy(features, gallery, task, None)) is not None:
        cards = (*cards, useful_verdict(accuracy(features, gallery, task, task.noise) or 0.0, clean))
    opening, others = _figures(comparisons, hidden, bounds, data, task)
    return Report(
        command="bound",
        title="How well anyone can rebuild the inputs from these features",
        summary=(
            *summary(comparisons, data, task, candidates=len(gallery), counts=counts, hidden=hidden),
            *in_time(missing, counts),
        ),
        comparisons=tuple(comparisons.values()),
        verdicts=cards,
        sliders=slider_of(sizes, task),
        opening=opening,
        changes=changes,
        figures=others,
        detail={
            "inputs": list(data.inputs.shape),
            "noise": repr(task.noise),
            "releases": task.releases,
            "basis": task.basis,
            "prior_std": data.spread,
            "median": {method: found[method].guarantee.value for method in bounds},
            "feature_error": task.feature_error,
            "prior": None if hidden is None else hidden.detail,
            "weights": "as built" if task.untrained else "given",
            "folder": None if task.out is None else str(task.out),
            "finished": list(comparisons),
            "time": {"seconds": task.seconds, "bounded": counts, "left_out": sorted(missing)},
            "sizes": [
                {name: getattr(one, name) for name in ("size", "named_upper", "named", "accuracy")} for one in sizes
            ],
        },
    )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _path(given: Path | str | None) -> Path | None:
    return None if given is None else Path(given)


def _figures(
    comparisons: dict[str, Comparison], hidden: Unseen | None, bounds: dict[str, _Array], data: Data, task: Task
) -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
    """The picture that carries the verdict, with the rivals of inputs beside it where there are any; and the others."""
    if not task.pictures:
        return (), ()
    found = (*hidden_figures(comparisons, hidden, data), *figures_of(bounds, data, task))
    first = 2 if hidden is not None and any("likely" in figure.title for figure in found[1:2]) else 1
    return found[:first], found[first:]


def _about_weights(comparison: Comparison, task: Task) -> Comparison:
    """State whose weights the guarantee is about, where the module has parameters and no weights were given."""
    if not task.untrained:
        return comparison
    made = Path(task.model).name  # certificates are published, and paths on this machine are nobody's business
    text = f"the module is released as {made} builds it: no other weights are loaded into it"
    assumptions = (Assumption(text=text, checked_by="caller"), *comparison.guarantee.assumptions)
    return replace(comparison, guarantee=replace(comparison.guarantee, assumptions=assumptions))


def _median(method: str, values: _Array, data: Data, task: Task, pairs: _Array | None) -> Comparison:
    options: dict[str, Any] = {"spread": data.spread, "noise": task.noise, **_release(task)}
    options["evidence"] = evidence_of(pairs) if method == "two-point" else None
    return Comparison(guarantee=median_bounds.median_guarantee(method, values, **options))


def _release(task: Task) -> dict[str, Any]:
    """Return what every bound and attack is told about the release."""
    return {"feature_error": task.feature_error, "releases": task.releases}


def _naming(features: Any, gallery: _Array, task: Task) -> Comparison:
    """Bound and attack naming the input, for an adversary who holds all inputs."""
    options: dict[str, Any] = {"seed": task.seed, **_release(task)}
    guarantee = identification_bound(features, gallery, task.noise, **options)
    options["seed"] = task.seed + 1
    attack = nearest_candidate(features, gallery, task.noise, guarantee, **options)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _rebuilding(features: Any, gallery: Gallery, task: Task) -> Comparison:
    """Bound and attack rebuilding one of the inputs, for an adversary who holds all of them."""
    error = _release(task)
    guarantee = bayes_bound(features, gallery, task.noise, basis=task.basis, seed=task.seed, **error).guarantee
    attack = posterior_mean(features, gallery, task.noise, tries=4096, seed=task.seed + 1, **error)
    return Comparison(guarantee=guarantee, attacks=(attack,))
