"""Convolutions in float64, as matrix products.

cuDNN's float64 convolutions use a sixth of what an H200 can do, and matrix products most of it. Certified bounds at
ImageNet size consist of such convolutions. The sums are the same, in a different order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.nn.functional import pad
from torch.overrides import TorchFunctionMode

_PATCHES = 2.0**31
"""Bytes of patches held at once."""


class AsProducts(TorchFunctionMode):
    """A context in which plain `conv2d` in float64 is a matrix product, unless derivatives are wanted.

    The result has its channels last in memory.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.conv2d:
            return _convolved(*args, **kwargs)
        if function is torch.Tensor.view and not args[0].is_contiguous():
            return _viewed(*args, **kwargs)
        return function(*args, **kwargs)


def _convolved(
    input: Tensor,  # noqa: A002 (torch's names, by which callers may pass them)
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    double = input.dtype == weight.dtype == torch.float64
    plain = groups == 1 and not isinstance(padding, str) and input.ndim == 4 and input.shape[1] == weight.shape[1]
    if double and plain and not _differentiated(input, weight, bias):
        with contextlib.suppress(RuntimeError):  # under vmap, which does not support what follows
            return convolution(
                input, weight, bias, stride=_pair(stride), padding=_pair(padding), dilation=_pair(dilation)
            )
    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)


def _differentiated(*tensors: Tensor | None) -> bool:
    """Return whether a derivative is wanted; the matrix products below have none."""
    tangents = (unpack_dual(tensor).tangent for tensor in tensors if tensor is not None)
    return torch.is_grad_enabled() or any(tangent is not None for tangent in tangents)


def _pair(value: Any) -> tuple[int, int]:
    down, across = tuple(value) * (2 // len(value)) if isinstance(value, Sequence) else (int(value), int(value))
    return down, across


def _viewed(tensor: Tensor, *shape: Any, **named: Any) -> Tensor:
    """View the tensor as torch does, or as it would with its channels first."""
    try:
        return tensor.view(*shape, **named)
    except RuntimeError:
        return tensor.contiguous().view(*shape, **named)


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
    """Convolve (b, c, h, w) with (o, c, i, j); channels are last in memory, patches take at most `most` bytes."""
    count, channels, *size = inputs.shape
    outputs, _, *kernel = weight.shape
    height, width = (
        (size[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
        for axis in (0, 1)
    )
    if min(height, width) < 1:
        return torch.conv2d(inputs, weight, bias, stride, padding, dilation)  # raises torch's own error
    odd = channels % 2
    matrix = pad(weight, (0, 0, 0, 0, 0, odd)).permute(2, 3, 1, 0).flatten(0, 2)
    margins = (0, odd, padding[1], padding[1], padding[0], padding[0])
    result = inputs.new_empty(count, height, width, outputs)
    rows = max(1, int(most // (8 * height * width * len(matrix))))
    for part, to in zip(inputs.permute(0, 2, 3, 1).split(rows), result.split(rows), strict=True):
        padded = pad(part, margins) if any(margins) else part
        patches = _patches(padded, (height, width), kernel, stride, dilation)
        flat = to.view(len(patches), outputs)
        torch.mm(patches, matrix, out=flat) if bias is None else torch.addmm(bias, patches, matrix, out=flat)
    return result.permute(0, 3, 1, 2)


def _patches(
    inputs: Tensor, size: tuple[int, int], kernel: list[int], stride: tuple[int, int], dilation: tuple[int, int]
) -> Tensor:
    """Return what each output sees of (b, h, w, c), one output per row, in the order (i, j, c)."""
    count, height, width, channels = inputs.shape
    flat = inputs.reshape(-1)
    # Reading two numbers as one complex number makes copying twice as fast; it needs an even offset.
    pairs = (flat.clone() if flat.storage_offset() % 2 else flat).view(torch.complex128)
    across = channels // 2
    down = width * across
    seen = pairs.as_strided(
        (count, *size, *kernel, across),
        (height * down, down * stride[0], across * stride[1], down * dilation[0], across * dilation[1], 1),
        pairs.storage_offset(),
    )
    return seen.contiguous().view(torch.float64).view(count * size[0] * size[1], kernel[0] * kernel[1] * channels)
