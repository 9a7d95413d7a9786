"""What the report says and shows beside the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...core.guarantee import Attack, Comparison, Guarantee
from ...core.wording import safe_text
from ...report import Figure, figures
from .. import median_bounds
from ..noise import Gaussian, Uniform, gaussian_of, unrounded
from ..twin_search import twins
from .options import PER_INPUT, Data, Task

_Array = NDArray[np.float64]

SHOWN = 4
LOWEST = 8


def summary(
    comparisons: Mapping[str, Comparison],
    data: Data,
    task: Task,
    *,
    candidates: int,
    on_data: Attack | None = None,
) -> tuple[str, ...]:
    """Put the results into words: first the bounds for real attackers, last those that say nothing about them."""
    mode = "mode (one cosine wave of the image)" if task.basis == "dct" else "mode (one entry of the input)"
    sentences = []
    if on_data is not None and on_data.value < comparisons["bayes"].guarantee.value:
        sentences.append(_refuted(comparisons["bayes"], on_data))
    if "identify" in comparisons:
        sentences.append(_naming(comparisons["identify"], candidates))
    if "bayes" in comparisons:
        rebuilt = comparisons["bayes"]
        sentences.append(
            _rebuilding(rebuilt, candidates) if task.public is None else _rebuilding_unseen(rebuilt, on_data)
        )
    silent = [method for method in PER_INPUT if method in comparisons and not comparisons[method].guarantee.value]
    if "two-point" in comparisons and "two-point" not in silent:
        sentences.append(
            f"For half of all modes, each input has a partner such that every estimate of the {mode} has a root mean "
            f"squared error of {comparisons['two-point'].guarantee.bound_text} on one of the two. On the other it may "
            "be exact, and the partner may look like nothing in the data."
        )
    unbiased = [
        f"{_scatter(comparisons[method].guarantee, data)}{how}"
        for method, how in (("multi-point", ""), ("hcr", " by the published search"))
        if method in comparisons and method not in silent
    ]
    if unbiased:
        sentences.append(
            f"Do not decide by this: for half of all modes, unbiased estimates of the {mode} have a standard deviation "
            f"of {', '.join(unbiased)}; the inputs' own is {data.spread:.2g}. Unbiased estimates use no knowledge of "
            "what inputs look like. Real attackers do."
        )
    for method in silent:
        vacuous = method == "hcr" and isinstance(unrounded(task.noise), Uniform)
        why = ": under uniform noise, a release can rule an input out" if vacuous else ""
        sentences.append(f"The {method} bounds are 0 for at least half of all modes and say nothing{why}.")
    if "identify" not in comparisons:
        gaussian = gaussian_of(task.noise) is not None
        how = "the method identify bounds that" if gaussian else "only Gaussian noise has a theorem for that"
        sentences.append(
            f"Not computed: how often somebody who holds a list of inputs can name the one released; {how}."
        )
    alone = f", {len(data.inputs)} of them bounded one by one" if set(comparisons) & set(PER_INPUT) else ""
    sentences.append(
        f"{candidates} inputs of shape {data.inputs.shape[1:]}, released as features with noise {task.noise!r}{alone}."
    )
    if task.untrained:
        sentences.append(
            f"No weights were given: everything here is about the module as {task.model} builds it. If other weights "
            "are released, run this again with them."
        )
    return tuple(sentences)


def _scatter(guarantee: Guarantee, data: Data) -> str:
    times = min(guarantee.value / (data.box[1] - data.box[0]), 1e9)
    return f"more than {int(times)} times the inputs' range" if times > 1 else guarantee.bound_text


def _naming(comparison: Comparison, candidates: int) -> str:
    guarantee, low, reached = _of(comparison)
    verdict = ""
    if low > 0.5:
        verdict = "Most inputs are given away. "
    elif guarantee.value > 0.5:
        verdict = "It is not ruled out that most inputs are given away. "
    different = int(guarantee.detail["candidates"])
    of_them = "" if different == candidates else f" ({different} different ones)"
    return (
        f"{verdict}Somebody who holds these {candidates} inputs{of_them} names the one released with probability "
        f"{guarantee.bound_text} ({guarantee.chance_text}). An attack reached {reached}; guessing reaches "
        f"{safe_text(float(guarantee.detail['guessing']), toward='nearest')}."
    )


def _rebuilding(comparison: Comparison, candidates: int) -> str:
    guarantee, _, reached = _of(comparison)
    return (
        f"{_hardly(guarantee)}Somebody who holds these {candidates} inputs rebuilds the one released with a mean "
        f"squared error of {guarantee.bound_text} of their variance ({guarantee.chance_text}): 0 means exactly, 1 no "
        f"better than the average of all. The best possible guess, their mean weighted by the release, left {reached}."
    )


def _refuted(comparison: Comparison, on_data: Attack) -> str:
    certain = on_data in comparison.contradicting
    return (
        f"The prior is {'refuted' if certain else 'in doubt'}: an attack with the public inputs rebuilt the real ones "
        f"with an error of {safe_text(on_data.value, toward='nearest')} of the prior's variance, and the bound for "
        f"that prior is {comparison.guarantee.bound_text}. The real inputs {'are not' if certain else 'may not be'} "
        f"draws from a Gaussian with the mean and covariance of the public ones"
        f"{', and the bound does not apply to them.' if certain else '; there are too few of them to be sure.'}"
    )


def _rebuilding_unseen(comparison: Comparison, on_data: Attack | None) -> str:
    guarantee, _, reached = _of(comparison)
    tried = "No attack was tried on the real inputs: there are fewer than 30, or they are all the same."
    if on_data is not None:
        value = safe_text(on_data.value, toward="nearest")
        tried = f"On the real inputs, the better of two attacks with the public ones left {value}."
    return (
        f"{_hardly(guarantee)}For inputs drawn from a Gaussian with the mean and covariance of the public ones, anyone "
        f"who rebuilds them has a mean squared error of {guarantee.bound_text} of their variance "
        f"({guarantee.chance_text}): 0 means exactly, 1 no better than the average; a linear decoder left {reached}. "
        "This bound is about draws from that Gaussian, not about the real inputs: these have more structure, and an "
        f"attacker who uses it may do better on them. {tried}"
    )


def _hardly(guarantee: Guarantee) -> str:
    return "Hardly anything is proven to stay hidden. " if guarantee.value < 0.1 else ""


def _of(comparison: Comparison) -> tuple[Guarantee, float, str]:
    """Return a guarantee, the lower end of the first attack on it, and that attack's value as text."""
    if not comparison.attacks:
        raise ValueError("only methods that are attacked are read like this")
    first = comparison.attacks[0]
    return comparison.guarantee, first.low, safe_text(first.value, toward="nearest")


def figures_of(features: Any, bounds: dict[str, _Array], data: Data, task: Task) -> tuple[Figure, ...]:
    """Return histograms of the bounds and, for images, pictures of what they mean."""
    made, inputs = [], data.inputs
    made += _histograms("Bounds over all modes and inputs", bounds, data.spread)
    if task.basis == "dct" and min(inputs.shape[-2:]) > LOWEST:
        lowest = {method: values[..., :LOWEST, :LOWEST] for method, values in bounds.items()}
        made += _histograms(f"The same for the {LOWEST} × {LOWEST} lowest modes", lowest, data.spread)
    unbiased = next((method for method in ("hcr", "multi-point") if method in bounds and bounds[method].any()), None)
    if unbiased is not None and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        moved = median_bounds.moved_by(bounds[unbiased][:SHOWN], inputs[:SHOWN], basis=task.basis, seed=task.seed)
        rows = {f"moved by the bound on unbiased estimates ({unbiased})": moved}
        if isinstance(task.noise, Gaussian):
            rows["twin: the noise hides the difference"] = _twins(features, data, task)
        made.append(_pictures_of(rows, data))
    return tuple(made)


def _histograms(title: str, bounds: dict[str, _Array], spread: float) -> list[Figure]:
    """Return one histogram, or none where every bound is 0 or infinite."""
    shown = {method: values[np.isfinite(values) & (values > 0)] for method, values in bounds.items()}
    shown = {method: values for method, values in shown.items() if values.size}
    if not shown:
        return []
    left = sum(values.size for values in bounds.values()) - sum(values.size for values in shown.values())
    return [
        Figure(
            title=title,
            caption="Lower bounds: on the standard deviation of unbiased estimates (multi-point, hcr), and on the "
            "root mean squared error of any estimate on the worse of two inputs (two-point). The dashed line is the "
            "inputs' own standard deviation." + f" Not shown: {left} bounds that are 0 or infinite." * bool(left),
            alternative="; ".join(
                f"{method}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
                for method, values in shown.items()
            ),
            svg=figures.histogram(shown, marked=(spread, "spread of the inputs"), x_label="bound of a mode"),
        )
    ]


def _twins(features: Any, data: Data, task: Task) -> _Array:
    chosen = torch.tensor(data.inputs[:SHOWN])
    found = twins(features, chosen, task.noise, box=data.box, seed=task.seed, feature_error=task.feature_error)
    return np.asarray(found.inputs)


def _pictures_of(rows: dict[str, _Array], data: Data) -> Figure:
    low, high = data.box

    def pictures(images: _Array) -> list[_Array]:
        scaled = np.clip((images - low) / (high - low), 0, 1)
        return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in scaled]

    named = {"original": data.inputs[:SHOWN], **rows}
    return Figure(
        title="What this means for an image",
        caption="Moved by the bound: every mode is moved up or down at random by the least standard deviation of an "
        "unbiased estimate. Twin: the most different valid image that a search found whose features lie within one "
        "standard deviation of the noise. All are clipped to the inputs' range.",
        alternative=f"Rows of images: {', '.join(named)}.",
        svg=figures.image_rows({name: pictures(images) for name, images in named.items()}),
    )
