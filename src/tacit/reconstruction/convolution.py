"""Convolutions in float64 on a GPU, as matrix products.

cuDNN's float64 convolutions use a sixth of what an H200 can do, and the certified bounds at ImageNet size are made of
them; products of matrices use most of it. The sums are the same, in another order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

_PATCHES = 2.0**31
"""Bytes of patches written out at once."""


class AsProducts(TorchFunctionMode):
    """Within this context, `conv2d` of float64 tensors on a GPU is a matrix product. No gradients."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.conv2d:
            return _convolved(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _convolved(
    input: Tensor,  # noqa: A002 (torch's names, by which callers may pass them)
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    double = input.is_cuda and input.dtype == weight.dtype == torch.float64
    plain = groups == 1 and not isinstance(padding, str) and input.ndim == 4 and input.shape[1] == weight.shape[1]
    if double and plain:
        return convolution(input, weight, bias, stride=_pair(stride), padding=_pair(padding), dilation=_pair(dilation))
    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)


def _pair(value: Any) -> tuple[int, int]:
    down, across = (value, value) if isinstance(value, int) else tuple(value) * (2 // len(value))
    return down, across


def convolution(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    most: float = _PATCHES,
) -> Tensor:
    """The convolution of (b, c, h, w) by (o, c, i, j), with channels last in memory; `most` bytes for the patches."""
    count, channels, *size = inputs.shape
    outputs, _, *kernel = weight.shape
    height, width = (
        (size[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
        for axis in (0, 1)
    )
    if min(height, width) < 1:
        return torch.conv2d(inputs, weight, bias, stride, padding, dilation)  # refuses it in torch's words
    # Two numbers at a time, read as one complex number, are copied twice as fast: the channels are made even.
    odd = channels % 2
    matrix = pad(weight, (0, 0, 0, 0, 0, odd)).permute(2, 3, 1, 0).reshape(-1, outputs)
    margins = (0, odd, padding[1], padding[1], padding[0], padding[0])
    result = inputs.new_empty(count, height, width, outputs)
    rows = max(1, int(most // (8 * height * width * len(matrix))))
    for part, to in zip(inputs.permute(0, 2, 3, 1).split(rows), result.split(rows), strict=True):
        padded = (pad(part, margins) if any(margins) else part).contiguous()
        patches = _patches(padded.view(torch.complex128), (height, width), kernel, stride, dilation)
        patches = patches.view(torch.float64).view(-1, len(matrix))
        flat = to.view(-1, outputs)
        torch.mm(patches, matrix, out=flat) if bias is None else torch.addmm(bias, patches, matrix, out=flat)
    return result.permute(0, 3, 1, 2)


def _patches(
    inputs: Tensor, size: tuple[int, int], kernel: list[int], stride: tuple[int, int], dilation: tuple[int, int]
) -> Tensor:
    """What each output sees, one after another: (b, h, w, i, j, c) of (b, h, w, c)."""
    row, down, across, one = inputs.stride()
    return inputs.as_strided(
        (len(inputs), *size, *kernel, inputs.shape[-1]),
        (row, down * stride[0], across * stride[1], down * dilation[0], across * dilation[1], one),
    ).contiguous()
