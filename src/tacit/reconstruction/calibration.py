"""How much noise? The trade-off between what the features are still good for and what they give away."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import checked
from ..errors import InputError
from ..guarantee import Guarantee
from .anyone import identification_bound
from .noise import Gaussian
from .release import as_array, exact, opened

_Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """The noise chosen, its guarantee, and the whole curve: noise, accuracy, and the proven limit on naming an input.

    All limits of the curve hold together, except with the failure probability of the guarantee: choosing after
    looking has been paid for. Accuracies are measured, not proven.
    """

    noise: Gaussian
    guarantee: Guarantee
    accuracy: float
    sigmas: _Array
    accuracies: _Array
    limits: _Array


def calibrate(
    features: nn.Module,
    head: Callable[[Tensor], Tensor],
    inputs: Any,
    labels: Any,
    *,
    accuracy: float | None = None,
    identification: float | None = None,
    sigmas: Sequence[float] | None = None,
    draws: int = 10_000,
    failure_probability: float = 0.001,
    seed: int = 0,
) -> Calibration:
    """The most noise that keeps an `accuracy`, or the least that keeps everyone from naming an input.

    `head` turns features into class scores; `inputs` are the candidates that an adversary holds, with their `labels`.
    Give one target: `accuracy`, or `identification`, the greatest probability of naming the input that is allowed.
    Without `sigmas`, sixteen from 1/16 to 16 times the features' root mean square are tried.
    """
    if (accuracy is None) == (identification is None):
        raise InputError(
            "accuracy and identification",
            (accuracy, identification),
            requirement="must be given one at a time",
            remedy="write accuracy=0.9 or identification=0.1",
        )
    target = checked.probability(
        "accuracy" if identification is None else "identification",
        accuracy if identification is None else identification,
        remedy="use a share such as 0.9",
    )
    release = opened(features, inputs)
    clean = release.features(release.inputs)
    truth = _labels(labels, clean)
    if sigmas is None:
        size = float(clean.square().mean().sqrt())
        sigmas = (size * np.geomspace(1 / 16, 16, 16)).tolist()
    tried = sorted(checked.number("each of sigmas", sigma, above=0, remedy="use 1.0") for sigma in sigmas)
    if not tried:
        raise InputError("sigmas", sigmas, requirement="must not be empty", remedy="leave it out")
    scores = _in_float64(head)
    measured, guarantees = [], []
    for sigma in tried:
        measured.append(_accuracy(clean, scores, truth, Gaussian(sigma), draws, seed))
        guarantees.append(
            identification_bound(
                features,
                inputs,
                Gaussian(sigma),
                draws=draws,
                failure_probability=failure_probability / len(tried),
                seed=seed,
            )
        )
    limits = [guarantee.value for guarantee in guarantees]
    if identification is None:
        good = [index for index, value in enumerate(measured) if value >= target]
        best, limit = (good[-1] if good else None), max(measured)
    else:
        good = [index for index, value in enumerate(limits) if value <= target]
        best, limit = (good[0] if good else None), min(limits)
    if best is None:
        raise InputError(
            "accuracy" if identification is None else "identification",
            target,
            requirement=f"must be within reach: the best of the {len(tried)} noises tried gives {limit:.3g}",
            remedy="lower the accuracy, allow more identification, or try other sigmas",
        )
    return Calibration(
        noise=Gaussian(tried[best]),
        guarantee=dataclasses.replace(guarantees[best], failure_probability=failure_probability),
        accuracy=measured[best],
        sigmas=np.array(tried),
        accuracies=np.array(measured),
        limits=np.array(limits),
    )


def _labels(labels: Any, clean: Tensor) -> Tensor:
    found = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
    if found.shape != (len(clean),) or found.dtype.kind not in "iu":
        raise InputError(
            "labels",
            found.shape if found.dtype.kind in "iu" else found.dtype,
            requirement=f"must be {len(clean)} whole numbers, one an input",
            remedy="pass class numbers",
        )
    return torch.tensor(found.astype(np.int64), device=clean.device)


def _in_float64(head: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return copy.deepcopy(head).to(torch.float64).eval() if isinstance(head, nn.Module) else head


def _accuracy(
    clean: Tensor, head: Callable[[Tensor], Tensor], truth: Tensor, noise: Gaussian, draws: int, seed: int
) -> float:
    """The share of noisy releases that are still classified correctly."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(clean), (draws,), generator=generator).to(clean.device)
    noisy = clean[chosen] + noise.sample(clean[chosen].cpu(), generator).to(clean.device)
    with exact():
        guesses = head(noisy).argmax(dim=1)
    return float(np.mean(as_array(guesses == truth[chosen])))
