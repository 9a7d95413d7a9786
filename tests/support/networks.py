"""Small torch modules that tests train, in a file that worker processes can import."""

from torch import nn


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
