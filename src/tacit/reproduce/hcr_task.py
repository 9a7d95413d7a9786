"""What `tacit reproduce hcr` runs, as the paper treats each network, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
"""Images shown on the page."""
MULTI_POINT = "multi-point"
IN_FLOAT64 = "multi-point, float64"
"""The same bound for float64 features; all others are for float32, in which the networks compute."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How one network is treated; the defaults are the paper's for ImageNet networks.

    Attributes
    ----------
    title
        The network's name.
    scale
        σ as a multiple of the features' root mean square.
    images
        How many images are evaluated.
    sizes
        The two perturbation sizes, as reciprocals.
    lowest
        The side of the block of lowest modes that a figure shows.
    batch
        How many images make up one file in the output folder.
    accuracies
        The published accuracies without and with noise; None for networks that the paper does not treat.
    epochs
        How long the network is trained; 0 if its weights come from a file.
    weights
        The name of that file in the data folder, if it is looked for there.
    seconds, seconds_searched
        About how long the multi-point bound takes for an image on two cores, and a repetition of each start of the
        published search.
    """

    title: str
    scale: float
    images: int = 128
    sizes: tuple[int, int] = (500, 1000)
    lowest: int = 32
    batch: int = 4
    accuracies: tuple[float, float] | None = None
    epochs: int = 0
    weights: str = ""
    seconds: float = 600.0
    seconds_searched: float = 1.0


_SMALL: dict[str, Any] = {"lowest": 8, "batch": 500}

SETTINGS = {
    "mnist": Setting(
        title="MNIST",
        scale=1,
        images=10_000,
        sizes=(200, 1000),
        accuracies=(0.979, 0.951),
        epochs=6,
        seconds=2.0,
        seconds_searched=0.015,
        **_SMALL,
    ),
    "cifar10": Setting(
        title="CIFAR-10",
        scale=5,
        images=2500,
        accuracies=(0.70, 0.50),
        epochs=7,
        seconds=30.0,
        seconds_searched=0.1,
        **_SMALL,
    ),
    "resnet18": Setting(title="ResNet-18", scale=2, accuracies=(0.57, 0.54)),
    "swin-t": Setting(title="Swin-T", scale=3, accuracies=(0.64, 0.54)),
    "squeezenet": Setting(title="SqueezeNet 1.1", scale=2, weights="squeezenet1_1.safetensors"),
    "resnet50": Setting(title="ResNet-50", scale=2, weights="resnet50.safetensors"),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Which network, where its data and weights are, and how much of the experiment to run.

    Attributes
    ----------
    net
        A key of `SETTINGS`.
    out
        The output folder.
    data, weights
        The data folder, and a file of pretrained weights.
    images
        How many images are evaluated; by default the paper's number.
    search_images
        The published search, which is slow, runs on the first this many images; 0 leaves it out.
    restarts, repetitions
        Of the published search.
    chain_steps
        Steps of the chains that bound rebuilding an image drawn from a prior; 0 leaves them out.
    device
        "cpu", "cuda", or "auto", which takes a GPU if there is one.
    resume
        Continue in a folder that an earlier run left behind.
    seed
        For training, draws, searches and attacks.
    """

    net: str
    out: Path
    data: Path | None = None
    weights: Path | None = None
    images: int | None = None
    search_images: int | None = None
    restarts: int = 25
    repetitions: int = 10
    chain_steps: int = 100
    device: str = "auto"
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
        """The part of the network whose output is released."""
        return self.network.features

    @property
    def width(self) -> int:
        """The number of released features."""
        with exact():
            some = torch.tensor(self.data.images[:1], dtype=torch.float32, device=device_of(self.task))
            return int(self.features(some).numel())


def device_of(task: Task) -> torch.device:
    """Return where the task runs: as stated, or on a GPU if there is one."""
    validate.device("--device", task.device)
    if task.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if task.device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "--device", "cuda", requirement="must be available", remedy="use cpu, or install torch for CUDA"
        )
    return torch.device(task.device)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rebuilding:
    """What a decoder achieved on images it never saw, how many they were, and what it made of the first few."""

    attack: Attack
    images: int
    shown: _Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Accuracies, bounds by method, and what was found about naming and rebuilding images."""

    accuracy: dict[str, float]
    bounds: dict[str, _Array]
    naming: Comparison
    remaining: Comparison | None
    rebuilding: Rebuilding | None
