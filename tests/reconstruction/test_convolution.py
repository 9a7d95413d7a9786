"""Convolutions as matrix products against torch's own."""

import numpy as np
import pytest
import torch
from networks import drawn
from torch import nn

from tacit.reconstruction.convolution import AsProducts, convolution


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((3, 3), (1, 1), (1, 1), (1, 1)),
        ((7, 5), (2, 1), (3, 0), (1, 1)),
        ((3, 2), (1, 3), (1, 2), (2, 3)),
        ((1, 1), (1, 1), (0, 0), (1, 1)),
        ((1, 1), (2, 2), (0, 0), (1, 1)),
        ((14, 15), (1, 1), (0, 0), (1, 1)),
    ],
)
@pytest.mark.parametrize("most", [1.0, 1e5, 1e9], ids=["one row at a time", "some rows", "all rows"])
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_any_geometry(channels, kernel, stride, padding, dilation, most, memory):
    inputs, weight, bias = drawn(5, channels, 14, 15).to(memory_format=memory), drawn(6, channels, *kernel), drawn(6)
    for added in (None, bias):
        found = convolution(inputs, weight, added, stride=stride, padding=padding, dilation=dilation, most=most)
        expected = torch.conv2d(inputs, weight, added, stride, padding, dilation)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "weight"),
    [
        (drawn(3, 4, 1, 1), drawn(2, 4, 1, 1)),
        (drawn(1, 5, 1, 1)[:, 1:], drawn(2, 4, 1, 1)),
        (drawn(2, 5, 6, 7)[:, 1:], drawn(2, 4, 3, 3)),
        (drawn(2, 4, 6, 8)[..., ::2], drawn(2, 4, 3, 3)),
        (drawn(0, 4, 6, 6), drawn(2, 4, 3, 3)),
    ],
    ids=["one pixel", "one pixel from an odd place", "an odd place", "every second", "no images"],
)
def test_odd_places_and_sizes(inputs, weight):
    found = convolution(inputs, weight, None, stride=(1, 1), padding=(0, 0), dilation=(1, 1))
    torch.testing.assert_close(found, torch.conv2d(inputs, weight), rtol=1e-12, atol=1e-12)


class Counted:
    """Counts the convolutions that become products."""

    def __init__(self, monkeypatch):
        self.count = 0
        monkeypatch.setattr("tacit.reconstruction.convolution.convolution", self)

    def __call__(self, *args, **named):
        self.count += 1
        return convolution(*args, **named)


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        ({}, 1),
        ({"stride": 2, "padding": 1}, 1),
        ({"stride": [2], "padding": (1, 2), "dilation": torch.Size([2, 1])}, 1),
        ({"stride": np.int64(2)}, 1),
        ({"padding": "same"}, 0),
        ({"groups": 2}, 0),
    ],
)
def test_every_way_to_ask_torch(monkeypatch, options, counted):
    groups = options.get("groups", 1)
    inputs, weight, bias = drawn(2, 4, 9, 9), drawn(6, 4 // groups, 3, 3), drawn(6)
    expected = torch.conv2d(inputs, weight, bias, **options)
    products = Counted(monkeypatch)
    with torch.no_grad(), AsProducts():
        for found in (
            torch.conv2d(inputs, weight, bias, **options),
            torch.nn.functional.conv2d(input=inputs, weight=weight, bias=bias, **options),
        ):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert products.count == 2 * counted


def test_what_is_no_plain_product_is_left_to_torch(monkeypatch):
    products = Counted(monkeypatch)
    with torch.no_grad(), AsProducts():
        assert torch.conv2d(drawn(2, 3, 5, 5).float(), drawn(2, 3, 3, 3).float()).dtype == torch.float32
        assert torch.conv2d(drawn(3, 5, 5), drawn(2, 3, 3, 3)).shape == (2, 3, 3)
        with pytest.raises(RuntimeError, match="channels"):
            torch.conv2d(drawn(2, 3, 5, 5), drawn(2, 1, 3, 3))
    assert products.count == 0


def test_models_that_use_transforms_themselves():
    inputs, weight = drawn(3, 2, 5, 5), drawn(2, 2, 3, 3)

    def each(image):
        return torch.conv2d(image[None], weight).square().sum()

    def all_ways():
        slope = torch.func.jvp(each, (inputs[0],), (inputs[1],))[1]
        with torch.enable_grad():
            leaf = inputs[0].clone().requires_grad_()
            pulled = torch.autograd.grad(each(leaf), leaf)[0]
        return (
            torch.vmap(each)(inputs),
            torch.func.grad(each)(inputs[0]),
            torch.func.jacrev(each)(inputs[0]),
            slope,
            pulled,
        )

    with torch.no_grad():
        expected = all_ways()
        with AsProducts():
            found = all_ways()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


class Viewing(nn.Module):
    """As many published models end: `view`, which asks for memory with channels first."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 1)

    def forward(self, images):
        found = nn.functional.max_pool2d(torch.relu(self.first(images)), 2)
        weights = torch.sigmoid(self.second(found.mean((2, 3), keepdim=True)))
        return (weights * found).view(len(images), -1)


def test_models_that_view_what_was_convolved():
    torch.manual_seed(0)
    model, images = Viewing().double(), drawn(5, 1, 8, 8)
    with torch.no_grad():
        expected = model(images)
        with AsProducts():
            found = model(images)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_kernel_larger_than_the_image_is_refused():
    with pytest.raises(RuntimeError, match="Kernel size"):
        convolution(drawn(1, 2, 4, 4), drawn(2, 2, 5, 5), None, stride=(1, 1), padding=(0, 0), dilation=(1, 1))
