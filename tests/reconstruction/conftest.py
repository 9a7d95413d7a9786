"""Small networks of every kind that the bounds must handle."""

import pytest
import torch
from torch import nn


def seeded(build):
    torch.manual_seed(3)
    return build().eval()


class Attention(nn.Module):
    """A transformer layer over four tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(4, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True, dropout=0.1)

    def forward(self, x):
        return self.layer(self.embedding(x.reshape(len(x), 4, 4))).flatten(1)


NETWORKS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 20)),
    "narrow": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 7)),
    "relu": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 24), nn.ReLU(inplace=True), nn.Linear(24, 18)),
    "inplace first": lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(16, 20)),
    "tanh": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.Tanh()),
    "pool": lambda: nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.MaxPool2d(2), nn.Flatten()),
    "batchnorm": lambda: nn.Sequential(nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten()),
    "layernorm": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.LayerNorm(20)),
    "upsample": lambda: nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(1, 2, 3, stride=2), nn.Flatten()
    ),
    "attention": Attention,
}


@pytest.fixture(params=list(NETWORKS))
def network(request):
    return seeded(NETWORKS[request.param])


@pytest.fixture
def images():
    return torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(1))
