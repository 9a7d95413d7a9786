"""The networks of the paper, cut where their features are released (arXiv:2404.02866v3, section 3).

The ImageNet networks take images of 91 × 91 pixels, normalised as torchvision's weights require, and upsample them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import MissingExtraError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Network(nn.Module):
    """A network in two parts: `features` is released, `head` turns the flat features into class scores."""

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features, self.head = features, head

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def mnist() -> Network:
    """Section 3.1: 784 features of 28 × 28 grey pixels."""
    features = nn.Sequential(nn.Flatten(), nn.Linear(784, 784), nn.ReLU(), nn.Linear(784, 784), nn.ReLU())
    return Network(features, nn.Linear(784, 10))


def cifar10() -> Network:
    """Section 3.2: 3072 features of 3 × 32 × 32 pixels."""
    features = nn.Sequential(
        *(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 1024, 5), nn.ReLU(), nn.MaxPool2d(3)),
        *(nn.Conv2d(1024, 3072, 3), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(3072, 3072), nn.ReLU()),
    )
    return Network(features, nn.Linear(3072, 10))


def resnet18(load: Callable[[nn.Module], None]) -> Network:
    """Section 3.3.1: 25 088 features, the last block's output before pooling."""
    return _residual(_loaded("resnet18", load), nn.Identity(), channels=512)


def resnet50(load: Callable[[nn.Module], None]) -> Network:
    """Not in the paper: 100 352 features, the last block's output before pooling, of a network trained with Keras.

    It differs from torchvision's in BatchNorm's eps, in which convolution of a block has the stride, and in its
    normalisation.
    """
    network = _loaded("resnet50", load, norm_layer=partial(nn.BatchNorm2d, eps=1e-3))
    for layer in (network.layer2, network.layer3, network.layer4):
        layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
    return _residual(network, _KerasPixels(), channels=2048)


def squeezenet(load: Callable[[nn.Module], None]) -> Network:
    """Not in the paper: 86 528 features, everything before the classifier."""
    network = _loaded("squeezenet1_1", load)
    head = nn.Sequential(nn.Unflatten(1, (512, 13, 13)), network.classifier, nn.Flatten())
    return Network(nn.Sequential(_upsampled(), network.features, nn.Flatten()), head)


def swin_t(load: Callable[[nn.Module], None]) -> Network:
    """Section 3.3.2: 37 632 features, all tokens after the last normalisation."""
    network = _loaded("swin_t", load)
    features = nn.Sequential(_upsampled(), network.features, network.norm, nn.Flatten())
    head = nn.Sequential(
        *(nn.Unflatten(1, (7, 7, 768)), network.permute, network.avgpool, network.flatten, network.head)
    )
    return Network(features, head)


class _KerasPixels(nn.Module):
    """Convert normalised RGB to BGR between 0 and 255, minus its mean."""

    scale: Tensor
    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
        centre = torch.tensor((123.68, 116.779, 103.939))[:, None, None]
        self.register_buffer("scale", 255 * std)
        self.register_buffer("shift", 255 * mean - centre)

    def forward(self, inputs: Tensor) -> Tensor:
        return (inputs * self.scale + self.shift).flip(1)


def _upsampled() -> nn.Module:
    return nn.Upsample(size=(224, 224), mode="bilinear")


def _residual(network: Any, pixels: nn.Module, *, channels: int) -> Network:
    names = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
    trunk = [getattr(network, name) for name in names]
    head = nn.Sequential(nn.Unflatten(1, (channels, 7, 7)), network.avgpool, nn.Flatten(), network.fc)
    return Network(nn.Sequential(_upsampled(), pixels, *trunk, nn.Flatten()), head)


def _loaded(name: str, load: Callable[[nn.Module], None], **options: object) -> Any:
    try:
        from torchvision import models
    except (ImportError, RuntimeError) as failure:  # a build for another torch raises RuntimeError
        raise MissingExtraError(
            f"this network must have a torchvision for torch {torch.__version__}, got {failure}; "
            "pip install 'tacit-privacy[vision]'"
        ) from None
    network = getattr(models, name)(weights=None, **options)
    load(network)
    return network
