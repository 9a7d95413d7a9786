"""Convolutions as matrix products against torch's own."""

import pytest
import torch

from tacit.reconstruction.convolution import AsProducts, convolution


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


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


def test_on_the_cpu_torch_convolves():
    inputs, weight = drawn(2, 4, 6, 6), drawn(4, 2, 3, 3)
    with AsProducts():
        found = torch.conv2d(inputs, weight, padding="same", groups=2)
    assert torch.equal(found, torch.conv2d(inputs, weight, padding="same", groups=2))


def test_a_kernel_larger_than_the_image_is_refused():
    with pytest.raises(RuntimeError, match="Kernel size"):
        convolution(drawn(1, 2, 4, 4), drawn(2, 2, 5, 5), None, stride=(1, 1), padding=(0, 0), dilation=(1, 1))
