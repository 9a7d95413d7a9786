"""The user's own inputs at several sizes of the noise: who names them, how they look rebuilt, what stays useful."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...core.guarantee import Comparison
from ...core.wording import safe_text
from ...report import FINE, Change, Slider, Verdict
from ...report.wording import percent, percent_up
from ..attacks import nearest_candidate, trained_decoder
from ..identification import identification_bound
from ..noise import Gaussian, Noise
from ..release import as_weights
from ..twin_search import twins
from .budget import Budget, OutOfTime
from .options import Data, Task
from .report import as_pictures, is_image
from .slider import Position, noise_slider
from .verdicts import rare_naming

_Array = NDArray[np.float64]

SIZES = (1.0, 2.0, 0.5, 4.0, 0.25)
"""Of the noise, relative to the user's; in the order in which they are tried, so that time leaves out the last."""
_SHOWN = 6
_EPOCHS, _WIDTH = 15, 256  # of the network that rebuilds the images shown
_DRAWS = 5000  # of the accuracy
_ROWS = 256  # of inputs that are computed together
RIVAL = "a rival: nearly the same release"


def positions(
    features: Any, gallery: _Array, data: Data, task: Task, naming: Comparison, budget: Budget
) -> list[Position]:
    """Return what each size of the noise means, from the least to the most, as far as there is time: numbers first."""
    if not _sigma(task):
        return []
    found: dict[float, Position] = {}
    with contextlib.suppress(OutOfTime), budget.stopping(features):
        for size in SIZES:
            budget.begin(f"naming your inputs with {size:g} times the noise")
            found[size] = _position(features, gallery, task, naming, size)
        for size in SIZES if shows_images(task, gallery) else ():  # which take longer than all numbers
            budget.begin(f"rebuilding your inputs with {size:g} times the noise")
            images = _images(features, gallery, data, task, Gaussian(size * _sigma(task)))
            found[size] = replace(found[size], images=images)
    return [found[size] for size in sorted(found)]


def _sigma(task: Task) -> float:
    """The standard deviation of the noise; 0 for noise of another kind or shape."""
    return float(task.noise.sigma or 0.0) if isinstance(task.noise, Gaussian) else 0.0


def _position(features: Any, gallery: _Array, task: Task, naming: Comparison, size: float) -> Position:
    options: dict[str, Any] = {"feature_error": task.feature_error, "releases": task.releases}
    noise = Gaussian(size * _sigma(task))
    if size == 1.0:
        guarantee, attack = naming.guarantee, naming.attacks[0]
    else:
        guarantee = identification_bound(features, gallery, noise, seed=task.seed, **options)
        attack = nearest_candidate(features, gallery, noise, guarantee, seed=task.seed + 1, **options)
    return Position(
        size=size,
        named_upper=guarantee.value,
        named=attack.value,
        guessing=float(guarantee.detail["guessing"]),
        accuracy=accuracy(features, gallery, task, noise),
        images={},
    )


def accuracy(features: Any, gallery: _Array, task: Task, noise: Noise | None) -> float | None:
    """Return the share of releases that the head still classifies correctly; None without labels."""
    if task.labels is None or task.head is None:
        return None
    generator = torch.Generator().manual_seed(task.seed)
    chosen = torch.randint(len(gallery), (_DRAWS,), generator=generator) if noise else torch.arange(len(gallery))
    with torch.no_grad():
        clean = _features(features, gallery)[chosen]
        released = clean if noise is None else clean + noise.sample(clean, generator)
        guesses = task.head(as_weights(released, task.head)).argmax(dim=1).cpu()
    return float(np.mean(np.asarray(guesses) == task.labels[np.asarray(chosen)]))


def _features(features: Any, inputs: _Array) -> torch.Tensor:
    with torch.no_grad():
        parts = [features(as_weights(rows, features)).double().cpu() for rows in torch.tensor(inputs).split(_ROWS)]
    return torch.cat(parts)


def shows_images(task: Task, gallery: _Array) -> bool:
    """Whether there is a page, and images to show on it."""
    return task.pictures and is_image(gallery.shape[1:]) and task.releases == 1 and len(gallery) >= 2 * _SHOWN


def _images(features: Any, gallery: _Array, data: Data, task: Task, noise: Gaussian) -> dict[str, Any]:
    """Return images, what an attacker makes of them, and rivals."""
    # Without public inputs the attacker learns from every second one, and rebuilds the others.
    known, shown = (gallery[1::2], gallery[::2][:_SHOWN]) if task.public is None else (task.public, gallery[:_SHOWN])
    options: dict[str, Any] = {"seed": task.seed, "feature_error": task.feature_error}
    decoder = trained_decoder(features, known, noise, epochs=_EPOCHS, width=_WIDTH, **options)
    clean = _features(features, shown)
    with torch.no_grad():
        made = decoder(clean + noise.sample(clean, torch.Generator().manual_seed(task.seed))).cpu()
    rebuilt: _Array = np.asarray(made).reshape(shown.shape)
    rows = {"your input": shown, "rebuilt by an attacker, from one release": rebuilt}
    rivals = twins(features, torch.tensor(shown), noise, box=data.box, **options)
    rows[RIVAL] = np.asarray(rivals.inputs)
    return {name: as_pictures(images, data.box) for name, images in rows.items()}


def slider_of(found: list[Position], task: Task) -> tuple[Slider, ...]:
    """Return the slider over the positions, if there are two or more."""
    if len(found) < 2:
        return ()
    learned = "public inputs" if task.public is not None else "every second input"
    pictures = (
        f" The attacker's network learned from {learned}. A rival is another valid input whose release differs by less "
        f"than the noise: nobody tells it from yours in more than {percent_up(_told())} of the cases."
        if any(one.images for one in found)
        else ""
    )
    if pictures and not all(one.images for one in found):
        pictures += " Where no images are shown, there was no time for them."
    return (
        noise_slider(
            found,
            chosen=[one.size for one in found].index(1.0),
            axis="noise ÷ your noise",
            unit="yours",
            things="inputs",
            note="What nobody exceeds is proven for each row, except with probability 0.001; attack and accuracy are "
            f"measured.{pictures}",
            pictures=task.pictures,
        ),
    )


def _told() -> float:
    """The probability with which anyone tells two inputs apart whose features differ by one standard deviation."""
    from ...theory.divergences import gaussian_total_variation
    from ...theory.estimation import two_point_success

    return float(two_point_success(gaussian_total_variation(1.0)))


def noise_changes(found: list[Position], task: Task, cards: Sequence[Verdict]) -> tuple[Change, ...]:
    """Return the least noise that was tried with which naming is rare, and what it costs; less only if all is fine."""
    here = next((one for one in found if one.size == 1.0), None)
    if here is None:
        return ()
    limit = rare_naming(here.guessing)
    rare = next((one for one in found if one.named_upper <= limit), None)
    fine = all(card.level == FINE for card in cards)

    def read(one: Position) -> str:
        if one.accuracy is None or here.accuracy is None:
            return "accuracy; give --labels and --head to see how much"
        if one is here:
            return f"accuracy is {percent(here.accuracy)}"
        return f"accuracy goes from {percent(here.accuracy)} to {percent(one.accuracy)}"

    def named(one: Position) -> str:
        sigma = float(safe_text(one.size * _sigma(task), toward="up", digits=4))
        return f"gaussian:{sigma:g}, {one.size:g} times yours"

    if rare is None:
        most = found[-1]
        less = f"With noise {named(most)}, anyone may still name {percent_up(most.named_upper)}."
        return (Change(what=f"{less} Release fewer numbers, or the answer alone.", price=f"{read(most)}."),)
    if rare.size > 1:
        what = f"Noise {named(rare)}: nobody names more than {percent_up(rare.named_upper)} of the inputs."
        return (Change(what=what, price=f"{read(rare)}."),)
    if rare.size < 1 and fine:
        what = f"You could do with less noise, {named(rare)}: nobody names more than {percent_up(rare.named_upper)}."
        return (Change(what=what, price=f"{read(rare)}; less stays hidden from those who rebuild inputs."),)
    if rare.size < 1 or found[0].size == 1:
        return ()
    less = f"Nothing: with noise {named(found[0])}, naming is not proven to be rare."
    return (Change(what=less, price=f"{read(here)}."),)
