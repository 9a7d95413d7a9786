"""Small torch modules that tests train, in a file that worker processes can import, and tensors for them."""

import torch
from torch import nn


def linear(slope):
    """Features that are the input, many times as large."""
    return lambda x: slope * x.flatten(1)


def drawn(*shape):
    """Normal numbers in float64, the same for every shape."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def perceptron(n_features, n_classes):
    """One hidden layer, with dropout."""
    return nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, n_classes))


def convolutions(n_features, n_classes):
    """Two small convolutions with batch normalisation, for 8 × 8 pictures."""
    assert n_features == 64
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, n_classes)),
    )
