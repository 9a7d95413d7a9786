"""The door of this room: a model and its inputs, checked and brought to float64.

The bounds hold for the function that is released, so what is handed on is that function itself: a copy of the
module in float64 and evaluation mode, or the callable as it is. Everything is released row by row; a model that
lets the rows of a batch see one another is refused, because the proofs speak of one input at a time.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import checked
from ..errors import InputError

_COUPLING = 1e-9
"""Relative difference allowed between the features of an input alone and in a batch, in float64."""


FEATURE_ERROR = 1e-13
"""The released features may differ from those computed here by this share of their norm; the bounds pay for it."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """Inputs (float64, one row each) and the function from rows of inputs to rows of features.

    `search` is the same function in `precision`, for looking for good perturbations; what is found is certified with
    `function`.
    """

    inputs: Tensor
    function: Callable[[Tensor], Tensor]
    search: Callable[[Tensor], Tensor]
    precision: torch.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])

    def features(self, inputs: Tensor, *, rows: int = 1024) -> Tensor:
        """Float64 features of any number of inputs, a chunk of rows at a time; halves the chunk if memory runs out."""
        flat = inputs.reshape(-1, *self.shape)
        while True:
            try:
                with exact():
                    chunks = [_rows(self.function(chunk), len(chunk)) for chunk in flat.split(rows)]
                return torch.cat(chunks)
            except torch.cuda.OutOfMemoryError:
                if rows == 1:
                    raise
                rows //= 2


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Attention as plain matrix products: the fused kernels have no forward derivative, and round as they like."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """No gradients, no TF32, plain attention."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        with torch.no_grad(), plain_attention():
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def opened(features: Callable[[Any], Any], inputs: object) -> Release:
    """What the bounds work with, once it is known to be fit for them."""
    if not callable(features):
        raise InputError("features", features, requirement="must be a module or a callable", remedy="pass the model")
    if isinstance(features, nn.Module):
        _check_modes(features)
        single, double = (
            copy.deepcopy(features).to(dtype).eval().requires_grad_(requires_grad=False)
            for dtype in (torch.float32, torch.float64)
        )
        device = next((tensor.device for tensor in double.state_dict().values()), _device(inputs))
        release = Release(
            inputs=_inputs(inputs, device),
            function=_of_copies(double),
            search=_of_copies(single),
            precision=torch.float32,
        )
    else:
        function = _of_copies(features if isinstance(inputs, Tensor) else _of_arrays(features))
        release = Release(
            inputs=_inputs(inputs, _device(inputs)), function=function, search=function, precision=torch.float64
        )
    _check_rows(release)
    return release


def _of_copies(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A model may change what it is given, as a first layer in place does; it is given a copy."""
    return lambda rows: function(rows.clone())


def _of_arrays(features: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    """A callable that takes and returns NumPy arrays, as one of tensors."""
    return lambda rows: torch.as_tensor(features(rows.numpy()))


def _device(inputs: object) -> torch.device:
    return inputs.device if isinstance(inputs, Tensor) else torch.device("cpu")


def _inputs(inputs: object, device: torch.device) -> Tensor:
    remedy = "pass one input a row, e.g. images[:8]"
    values = inputs.detach().cpu().numpy() if isinstance(inputs, Tensor) else inputs
    array = checked.array("inputs", values, remedy=remedy)
    if array.ndim < 2:
        raise InputError("the shape of inputs", array.shape, requirement="must have two axes or more", remedy=remedy)
    return torch.tensor(array, dtype=torch.float64, device=device)


def _rows(found: Tensor, count: int) -> Tensor:
    if not isinstance(found, Tensor) or found.ndim < 1 or len(found) != count or not found.is_floating_point():
        raise InputError(
            "features",
            type(found).__name__ if not isinstance(found, Tensor) else tuple(found.shape),
            requirement=f"must return one row of real numbers for each of {count} inputs",
            remedy="return the tensor of features alone",
        )
    return found.reshape(count, -1).to(torch.float64)


def _check_modes(module: nn.Module) -> None:
    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (part.training or part.running_mean is None):
            raise InputError(
                f"the batch normalisation {name or 'of features'}",
                "train mode" if part.training else "no running statistics",
                requirement="must use its running statistics, or the examples of a batch see one another",
                remedy="call features.eval(), and load weights that carry running statistics",
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise InputError(
                f"the dropout {name or 'of features'}",
                "train mode",
                requirement="must be switched off: the bounds speak of one fixed function",
                remedy="call features.eval()",
            )


def _check_rows(release: Release) -> None:
    """Finite, repeatable, and the same whether an input stands alone or beside others."""
    some = release.inputs[:3]
    batch = torch.cat([some, some.flip(0) + 0.5])
    try:
        together = release.features(batch)
        again = release.features(batch)
        alone = torch.cat([release.features(row[None]) for row in batch])
    except (RuntimeError, TypeError, ValueError) as failure:
        if isinstance(failure, InputError):
            raise
        raise InputError(
            "features",
            f"{type(failure).__name__}: {failure}",
            requirement="must accept a batch of float64 inputs of any number of rows",
            remedy="pass the module itself, or a callable that computes in float64",
        ) from None
    if not torch.isfinite(together).all():
        raise InputError(
            "features", "inf or nan", requirement="must return finite numbers", remedy="check weights and inputs"
        )
    scale = _COUPLING * (1 + float(together.abs().max()))
    if float((together - again).abs().max()) > scale:
        raise InputError(
            "features",
            f"a difference of {float((together - again).abs().max()):.2g} between two calls",
            requirement="must return the same features every time",
            remedy="switch off dropout and other randomness; the noise is added by tacit",
        )
    if float((together - alone).abs().max()) > scale:
        raise InputError(
            "features",
            f"a difference of {float((together - alone).abs().max()):.2g} between an input alone and in a batch",
            requirement="must treat every input by itself, in float64",
            remedy="use evaluation mode and running statistics, and compute in float64",
        )


def as_array(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """On the host, in float64."""
    return tensor.detach().to("cpu", torch.float64).numpy()
