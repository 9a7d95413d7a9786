"""What the report says and shows beside the comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import readings
from ..guarantee import Comparison, safe_text
from ..report import Figure, figures
from .task import Data, Task

_Array = NDArray[np.float64]

SHOWN = 4
LOWEST = 8


def summary(bounds: dict[str, _Array], comparisons: Sequence[Comparison], data: Data, noise: Any) -> tuple[str, ...]:
    """The reading in words."""
    inputs, extent = data.inputs, data.box[1] - data.box[0]
    sentences = [f"{len(inputs)} inputs of shape {inputs.shape[1:]}, released as features with noise {noise!r}."]
    if "multi-point" in bounds:
        median = float(np.median(bounds["multi-point"]))
        ratio = min(median / extent, 1e9)
        times = f"more than {int(ratio)} times the inputs' range" if ratio > 1 else "less than the inputs' range"
        sentences.append(
            f"Unbiased estimates of a mode scatter by {times} for half of the modes, where the inputs themselves vary "
            f"by {data.spread:.2g}. That says nothing of attackers with prior knowledge, who are biased."
        )
    for comparison in comparisons:
        if comparison.guarantee.adversary.kind == "prior":
            attack = "" if comparison.attack is None else f" An attack reached {comparison.attack.value_text}."
            sentences.append(f"The {comparison.guarantee}.{attack}")
    return tuple(sentences)


def figures_of(
    recon: Any, features: Any, bounds: dict[str, _Array], data: Data, noise: Any, task: Task
) -> tuple[Figure, ...]:
    """Histograms of the bounds, and for images what they mean."""
    made, inputs = [], data.inputs
    if bounds:
        made.append(_histogram("Bounds over all modes and inputs", bounds, data.spread))
        if task.basis == "dct" and min(inputs.shape[-2:]) > LOWEST:
            lowest = {method: values[..., :LOWEST, :LOWEST] for method, values in bounds.items()}
            made.append(_histogram(f"The same for the {LOWEST} × {LOWEST} lowest modes", lowest, data.spread))
    unbiased = next((bounds[method] for method in ("hcr", "multi-point") if method in bounds), None)
    if unbiased is not None and inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        moved = readings.moved_by(unbiased[:SHOWN], inputs[:SHOWN], basis=task.basis, seed=task.seed)
        rows = {"moved by the bound on unbiased estimates": moved}
        if isinstance(noise, recon.Gaussian):
            rows["twin: its release differs by less than the noise"] = _twins(recon, features, data, noise, task)
        made.append(_pictures_of(rows, data))
    return tuple(made)


def _histogram(title: str, bounds: dict[str, _Array], spread: float) -> Figure:
    return Figure(
        title=title,
        caption="Standard deviation of unbiased estimates (multi-point, hcr), root mean squared error of any estimate "
        "on the worse of two inputs (two-point). The dashed line is the inputs' own spread.",
        alternative="; ".join(
            f"{method}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
            for method, values in bounds.items()
        ),
        svg=figures.histogram(bounds, marked=(spread, "spread of the inputs"), x_label="bound, per mode"),
    )


def _twins(recon: Any, features: Any, data: Data, noise: Any, task: Task) -> _Array:
    import torch

    chosen = torch.tensor(data.inputs[:SHOWN])
    found = recon.twins(features, chosen, noise, box=data.box, seed=task.seed, feature_error=task.feature_error)
    return np.asarray(found.inputs)


def _pictures_of(rows: dict[str, _Array], data: Data) -> Figure:
    low, high = data.box

    def pictures(images: _Array) -> list[_Array]:
        scaled = np.clip((images - low) / (high - low), 0, 1)
        return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in scaled]

    named = {"original": data.inputs[:SHOWN], **rows}
    return Figure(
        title="What this means for an image",
        caption="Moved by the bound: every mode up or down by the toss of a coin, as far as an unbiased estimate of it "
        "must scatter. Twin: the farthest valid image that a search found whose features lie within one standard "
        "deviation of the noise. All are cut off at the inputs' range.",
        alternative=f"Rows of images: {', '.join(named)}.",
        svg=figures.image_rows({name: pictures(images) for name, images in named.items()}),
    )
