"""What `tacit reproduce hcr` runs, as the paper treats each network, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Attack, Comparison
from ..reconstruction import Gaussian
from ..reconstruction.release import exact
from . import networks
from .data import Data

_Array = NDArray[np.float64]

SHOWN = 3
"""Images that the page shows."""
MULTI_POINT = "multi-point"
IN_FLOAT64 = "multi-point, float64"
"""The same bound for a release of what float64 computes; all others are for the network's own float32."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How the paper treats one network; for the two that it does not treat, as its ImageNet networks.

    `scale` times the root mean square of the features is σ; `sizes` are reciprocals; `accuracies` are the published
    ones without and with dithering; `batch` is how many images make a file of the output folder.
    """

    title: str
    images: int
    scale: float
    sizes: tuple[int, int]
    lowest: int
    batch: int
    accuracies: tuple[float, float] | None = None
    epochs: int = 0
    weights: str = ""


def _imagenet(title: str, *, scale: float, accuracies: tuple[float, float] | None = None, weights: str = "") -> Setting:
    return Setting(
        title=title,
        images=128,
        scale=scale,
        sizes=(500, 1000),
        lowest=32,
        batch=4,
        accuracies=accuracies,
        weights=weights,
    )


SETTINGS = {
    "mnist": Setting(
        title="MNIST",
        images=10_000,
        scale=1,
        sizes=(200, 1000),
        lowest=8,
        batch=500,
        accuracies=(0.979, 0.951),
        epochs=6,
    ),
    "cifar10": Setting(
        title="CIFAR-10",
        images=2500,
        scale=5,
        sizes=(500, 1000),
        lowest=8,
        batch=500,
        accuracies=(0.70, 0.50),
        epochs=7,
    ),
    "resnet18": _imagenet("ResNet-18", scale=2, accuracies=(0.57, 0.54)),
    "swin-t": _imagenet("Swin-T", scale=3, accuracies=(0.64, 0.54)),
    "squeezenet": _imagenet("SqueezeNet 1.1", scale=2, weights="squeezenet1_1.safetensors"),
    "resnet50": _imagenet("ResNet-50", scale=2, weights="resnet50.safetensors"),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Which network, where its data and weights are, and how much of the paper's experiment to run.

    `images` are evaluated (the paper's number unless given); the published search, which is slow, runs on the first
    `search_images` of them, and not at all where that is 0.
    """

    net: str
    out: Path
    data: Path | None = None
    weights: Path | None = None
    images: int | None = None
    search_images: int | None = None
    restarts: int = 25
    repetitions: int = 10
    device: str | None = None
    resume: bool = False
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A task with everything that its steps need; `feature_error` is that of the network's own type."""

    task: Task
    setting: Setting
    data: Data
    network: networks.Network
    noise: Gaussian
    feature_error: float

    @property
    def features(self) -> nn.Module:
        return self.network.features

    @property
    def width(self) -> int:
        """How many features are released."""
        with exact():
            some = torch.tensor(self.data.images[:1], dtype=torch.float32, device=device_of(self.task))
            return int(self.features(some).numel())


def device_of(task: Task) -> torch.device:
    """Where the task runs: as it says, or on a GPU where there is one."""
    if task.device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    validate.choice("--device", task.device, ("cpu", "cuda"), remedy="leave it out to use a GPU where there is one")
    if task.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "cuda", requirement="must be there", remedy="use cpu, or a torch built for CUDA")
    return torch.device(task.device)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rebuilding:
    """What a decoder achieved on images that it never saw, how many they were, and what it made of the first."""

    attack: Attack
    images: int
    shown: _Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Accuracies and on how many images, bounds by the method, and what was found about anyone."""

    accuracy: dict[str, float]
    bounds: dict[str, _Array]
    naming: Comparison
    remaining: Comparison | None
    rebuilding: Rebuilding | None
