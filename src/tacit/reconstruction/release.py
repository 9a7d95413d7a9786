"""A model and its inputs, checked and converted to float64.

The bounds hold for the function that is released. What is passed on is that function itself: a copy of the module in
float64 and evaluation mode, or the callable unchanged. A model whose output for one input depends on the other inputs
of its batch is refused, because the proofs are about one input at a time.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..core import validate
from ..core.errors import InputError
from .convolution import AsProducts

_COUPLING = 1e-9
"""Relative difference allowed between the features of an input alone and in a batch, unless the caller allows more. The
bounds allow for it."""


_OF_FLOAT64 = 1e-9
"""A smaller error means that float64 features are released, whatever the module's own type."""


def type_error(kind: torch.dtype) -> float:
    """Return the share of their norm by which features computed in this type may differ from exact ones.

    Unless the caller says otherwise, released features may differ by this much from those computed here in float64, and
    the bounds allow for it: other hardware differs in float64, and smaller types round.
    """
    return {torch.float64: 1e-13, torch.float32: 1e-6}.get(kind, 8 * torch.finfo(kind).eps)


@dataclass(frozen=True, kw_only=True)
class Release:
    """Inputs and the function from rows of inputs to rows of features.

    Attributes
    ----------
    inputs
        In float64, one input per row.
    function
        The function that is bounded.
    search
        The same function in `precision`, used to look for good perturbations; what is found is certified with
        `function`.
    precision
        The type in which `search` computes.
    type
        The type in which features are released: the coarsest of the module's weights, or of what a callable returns.
    seen
        The type in which a module takes its inputs, that of its weights; callables take float64.
    error
        The share of their norm by which released features may differ from those computed here.
    """

    inputs: Tensor
    function: Callable[[Tensor], Tensor]
    search: Callable[[Tensor], Tensor]
    precision: torch.dtype
    type: torch.dtype = torch.float64
    seen: torch.dtype = torch.float64
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])

    def features(self, inputs: Tensor, *, rows: int = 1024, apart: bool = False) -> Tensor:
        """Return float64 features of any number of inputs, computed a chunk of rows at a time.

        If GPU memory runs out, the chunk is halved. With `apart`, no chunk mixes entries of the first axis, so that
        even rounding does not depend on the other inputs.
        """
        flat = inputs.reshape(-1, *self.shape)
        together = flat.split(len(flat) // len(inputs) if apart else len(flat))
        while True:
            try:
                with exact():
                    return self._checked([chunk for some in together for chunk in some.split(rows)])
            except torch.cuda.OutOfMemoryError:
                if rows == 1:
                    raise
                rows //= 2

    def check_at_rest(self, points: Tensor) -> None:
        """Refuse a model whose Jacobian vanishes at these points although its features change farther away."""
        size = scales(points).reshape(-1, *[1] * len(self.shape))
        around = torch.stack([self.features(points + step * size) for step in (0.0, 1.0, -1.0)])
        if bool((around != around[:1]).any()):
            raise InputError(
                "the Jacobian of features",
                0.0,
                requirement="must not vanish while the features change",
                remedy="the model rounds or is flat here; use multipoint_bounds, which needs no derivative",
            )

    def _checked(self, chunks: list[Tensor]) -> Tensor:
        """Return the features of all chunks, if they are finite and a row of each chunk has the same ones alone."""
        parts = [self._computed(chunk) for chunk in chunks]
        found = torch.cat(parts)
        if not torch.isfinite(found).all():
            raise InputError(
                "features", "inf or nan", requirement="must return finite numbers", remedy="check weights and inputs"
            )
        # All at once: checking after every chunk would make a GPU wait.
        middles = [(chunk, part, len(chunk) // 2) for chunk, part in zip(chunks, parts, strict=True) if len(chunk) > 8]
        if middles:
            alone = torch.cat([self._computed(chunk[middle : middle + 1]) for chunk, _, middle in middles])
            beside = torch.stack([part[middle] for _, part, middle in middles])
            _check_same(beside, alone, 2 * self.error)  # each may be off by the allowed error
        return found

    def _computed(self, chunk: Tensor) -> Tensor:
        """Compute features; on a GPU, many rows by matrix products and a single row as the model does it."""
        with AsProducts() if chunk.is_cuda and len(chunk) > 1 else contextlib.nullcontext():
            return _rows(self.function(chunk), len(chunk))


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Compute attention by plain matrix products: fused kernels round differently and lack forward derivatives."""
    before, kernels = torch.backends.mha.get_fastpath_enabled(), torch.backends.cuda
    fused = kernels.flash_sdp_enabled() or kernels.mem_efficient_sdp_enabled() or kernels.cudnn_sdp_enabled()
    if not before and not fused and kernels.math_sdp_enabled():  # to switch all takes longer than small features do
        yield
        return
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextlib.contextmanager
def derivatives(*, precise: bool = True) -> Iterator[None]:
    """Use plain attention and full products, and refuse a model that cannot be differentiated, quoting its error.

    Unless `precise`, products on a GPU are TF32's: faster, and right to three digits.
    """
    try:
        with plain_attention(), _products("ieee" if precise else "tf32"):
            yield
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as failure:
        raise InputError(
            "the derivative of features",
            f"{type(failure).__name__}: {failure}",
            requirement="must exist: they must be a torch module, or a function of tensors",
            remedy="use multipoint_bounds, which needs no derivative",
        ) from None


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """Compute as the bounds and `Dithered` do: no gradients, TF32, bfloat16 products, autocast or fused attention."""
    with (
        torch.no_grad(),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
        _products("ieee"),
        plain_attention(),
    ):
        yield


@contextlib.contextmanager
def _products(kind: str) -> Iterator[None]:
    """Multiply float32 numbers as stated, whatever the caller has allowed: "ieee" in float32, "tf32" as it says."""
    backends: Any = torch.backends
    name, parts = "allow_tf32", [backends.cuda.matmul, backends.cudnn]
    full: object = kind == "tf32"
    if hasattr(backends.cuda.matmul, "fp32_precision"):  # from torch 2.9 on, where the old names may raise
        name, full = "fp32_precision", kind
        parts = [part for place in (backends.cudnn, backends.mkldnn) for part in (place.conv, place.rnn)]
        parts += [backends.cuda.matmul, backends.mkldnn.matmul]
    before = [getattr(part, name) for part in parts]
    if all(value == full for value in before):
        yield
        return
    for part in parts:
        setattr(part, name, full)
    try:
        yield
    finally:
        for part, value in zip(parts, before, strict=True):
            setattr(part, name, value)


def open_release(
    features: Callable[[Any], Any],
    inputs: object,
    *,
    feature_error: float | None = None,
    only_these: bool = False,
    promised: bool = True,
) -> Release:
    """Check a model and its inputs, and return what the bounds work with.

    Parameters
    ----------
    features
        A module or a callable.
    inputs
        One input per row.
    feature_error
        The relative error of released features; by default that of the type in which they are released, or twice the
        error measured on these inputs where that is larger.
    only_these
        The model will see no other inputs, and may be undefined elsewhere, as for categories or texts.
    promised
        Whether a guarantee will rest on the release. Attacks promise nothing and skip measuring the error.
    """
    if feature_error is not None:
        validate.number("feature_error", feature_error, at_least=0, below=0.1, remedy="use 1e-6 for float32")
    if not callable(features):
        raise InputError("features", features, requirement="must be a module or a callable", remedy="pass the model")
    inputs = loaded("inputs", inputs)
    if isinstance(features, nn.Module):
        check_modes(features)
        single, double = (_frozen_copy(features, dtype).eval() for dtype in (torch.float32, torch.float64))
        device = next((tensor.device for tensor in double.state_dict().values()), _device(inputs))
        release = Release(
            inputs=_inputs(inputs, device),
            function=_of_copies(double),
            search=_of_copies(single),
            precision=torch.float32,
        )
    else:
        function = _of_copies(_of_tensors(features) if isinstance(inputs, Tensor) else _of_arrays(features))
        release = Release(
            inputs=_inputs(inputs, _device(inputs)), function=function, search=function, precision=torch.float64
        )
    returned = _returned_type(release)
    seen = weight_type(features) if isinstance(features, nn.Module) else torch.float64
    kind = min(returned, seen, key=_digits)
    error = type_error(kind) if feature_error is None else float(feature_error)
    release = dataclasses.replace(release, type=kind, seen=seen, error=error)
    measured = _check_rows(release, only_these=only_these)
    if returned != torch.float64:  # then it was rounded to that type
        measured = max(measured, torch.finfo(returned).eps / 4)
    if isinstance(features, nn.Module):
        if any(part.training for part in features.modules()):
            check_evaluation(_frozen_copy(features, torch.float64), double, release.inputs[:3])
        if promised and error > _OF_FLOAT64 and seen != torch.float64:
            own = _of_copies(single if seen == torch.float32 else _frozen_copy(features, seen).eval())
            moved = _moved_by_type(release, own)
            if feature_error is not None and moved > error:
                raise InputError(
                    "feature_error",
                    error,
                    requirement=f"must be {moved:.2g} or more, the measured error of this model in {_named(seen)}",
                    remedy="use a much larger value, or release float64 features and use 1e-13",
                )
            error = max(error, 2 * moved if feature_error is None else 0.0)
    return dataclasses.replace(release, error=max(error, 4 * measured))


def weight_type(module: nn.Module) -> torch.dtype:
    """Return the coarsest type of a module's weights, in which it computes; float32 if it has none."""
    weights = [tensor.dtype for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]
    return min(weights, key=_digits, default=torch.float32)


def as_weights(rows: Tensor, module: nn.Module) -> Tensor:
    """Return rows in the type of a module's weights, on their device."""
    place = next((tensor.device for tensor in (*module.parameters(), *module.buffers())), rows.device)
    return rows.to(place, weight_type(module))


def scales(inputs: Tensor) -> Tensor:
    """Return each input's scale: the range of its entries, or their size if they are all equal, or 1 if they are 0."""
    flat = inputs.flatten(1)
    size = flat.abs().amax(dim=1)
    spread = flat.amax(dim=1) - flat.amin(dim=1)
    return torch.where(spread > 0, spread, torch.where(size > 0, size, torch.ones_like(size)))


def _digits(kind: torch.dtype) -> float:
    return -torch.finfo(kind).eps


def _named(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")


def _moved_by_type(release: Release, own: Callable[[Tensor], Tensor]) -> float:
    """Return how far the model's own type moves features from float64 ones, relatively, over all inputs."""
    exact_ones, kind = release.features(release.inputs), _named(release.seen)
    try:
        with exact():
            parts = [own(some.to(release.seen)).reshape(len(some), -1) for some in release.inputs.split(256)]
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, NotImplementedError):  # some devices lack operations in small types
        return 0.0
    found = torch.cat(parts).to(torch.float64)
    if not found.isfinite().all():
        raise InputError(
            "features",
            f"inf or nan in {kind}",
            requirement="must be finite in the type in which the model computes",
            remedy="release float32 features: features.float()",
        )
    apart = (found - exact_ones).norm(dim=1)
    shares = torch.where(apart == 0, 0.0, apart / exact_ones.norm(dim=1))
    worst = int(shares.argmax())
    if not float(shares[worst]) < 1:
        raise InputError(
            f"the features of input {worst}",
            f"{float(found[worst].norm()):.2g} in {kind} and {float(exact_ones[worst].norm()):.2g} in float64, in norm",
            requirement=f"must be larger than the rounding error of {kind}",
            remedy="leave out such inputs, e.g. blank ones, or release float64 features: features.double()",
        )
    return float(shares[worst])


def _frozen_copy(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    try:
        return copy.deepcopy(module).to(dtype).requires_grad_(requires_grad=False)
    except (RuntimeError, TypeError, ValueError) as failure:
        raise InputError(
            "features",
            f"{type(failure).__name__}: {failure}",
            requirement="must be a module that can be copied",
            remedy="run a lazy module once first; pass a scripted one as it was before scripting",
        ) from None


def _of_copies(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Give a model copies of its inputs, which it may overwrite."""
    return lambda rows: function(rows.clone())


def _of_arrays(features: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    """Turn a callable on NumPy arrays, which may return lists, into one on tensors."""
    return lambda rows: torch.as_tensor(np.asarray(features(rows.numpy())))


def _of_tensors(features: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    """Let a callable on tensors return NumPy arrays."""

    def function(rows: Tensor) -> Tensor:
        found = features(rows)
        return torch.as_tensor(found) if isinstance(found, np.ndarray) else found

    return function


def loaded(name: str, inputs: object) -> object:
    """Return the inputs of a DataLoader, without labels; anything else unchanged."""
    return torch.from_numpy(validate.gathered(name, inputs)[0]) if validate.is_loader(inputs) else inputs


def _device(inputs: object) -> torch.device:
    return inputs.device if isinstance(inputs, Tensor) else torch.device("cpu")


def _inputs(inputs: object, device: torch.device) -> Tensor:
    remedy = "pass one input per row, e.g. images[:8]"
    array = validate.array("inputs", inputs, remedy=remedy)
    if array.ndim < 2:
        raise InputError("the shape of inputs", array.shape, requirement="must have two axes or more", remedy=remedy)
    return torch.tensor(array, dtype=torch.float64, device=device)


def _rows(found: Tensor, count: int) -> Tensor:
    if not isinstance(found, Tensor) or found.ndim < 1 or len(found) != count or not found.is_floating_point():
        raise InputError(
            "features",
            type(found).__name__ if not isinstance(found, Tensor) else tuple(found.shape),
            requirement=f"must return one row of real numbers for each of {count} inputs",
            remedy="return only the tensor of features; wrap a module that returns a tuple, a dict or an object",
        )
    return found.reshape(count, -1).to(torch.float64)


def check_modes(module: nn.Module) -> None:
    """Refuse layers that draw random numbers or see the rest of the batch because they are in train mode."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_complex():
            raise InputError(
                f"the weights {name}",
                str(tensor.dtype),
                requirement="must be real numbers",
                remedy="pass a callable that computes in complex128 instead of the module",
            )
    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._NormBase) and part.track_running_stats and part.training:
            raise _train_mode(f"the normalisation {name or 'of features'}")
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is None:
            raise InputError(
                f"the batch normalisation {name or 'of features'}",
                "no running statistics",
                requirement="must use running statistics, so that an output does not depend on the rest of the batch",
                remedy="load weights that carry running statistics",
            )
        if isinstance(part, nn.modules.dropout._DropoutNd | nn.RReLU) and part.training:
            raise _train_mode(f"the random layer {name or 'of features'}")


def _train_mode(what: str) -> InputError:
    return InputError(
        what,
        "train mode",
        requirement="must be in evaluation mode: the bounds are about one fixed function of one input",
        remedy="call features.eval()",
    )


def check_evaluation(as_it_is: nn.Module, evaluated: nn.Module, inputs: Tensor) -> None:
    """Refuse a module in train mode unless it computes the same as in evaluation mode."""
    with exact():
        if not torch.equal(as_it_is(inputs.clone()), evaluated(inputs.clone())):
            raise _train_mode("features")


@contextlib.contextmanager
def _callers_code() -> Iterator[None]:
    """Report whatever the caller's function raises in one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as failure:
        raise InputError(
            "features",
            f"{type(failure).__name__}: {failure}",
            requirement="must accept a batch of float64 inputs of any number of rows",
            remedy="pass the module itself, or a callable that computes in float64",
        ) from None


def _returned_type(release: Release) -> torch.dtype:
    """Return the type that the function returns for float64 inputs."""
    with _callers_code(), exact():
        one = release.inputs[:1]
        found = release.function(one)
        _rows(found, len(one))
        return found.dtype


def _check_rows(release: Release, *, only_these: bool) -> float:
    """Check that features are repeatable and do not depend on the batch; return their relative difference."""
    some = release.inputs[: 6 if only_these else 3]
    raised = 0.5 * scales(some).reshape(-1, *[1] * len(release.shape))
    batch = some if only_these else torch.cat([some, (some + raised).flip(0)])
    with _callers_code():
        together = release.features(batch)
        again = release.features(batch)
        alone = release.features(batch, apart=True)
    repeated = _difference(together, again)
    if repeated > max(_COUPLING, release.error):
        raise InputError(
            "features",
            f"a relative difference of {repeated:.2g} between two calls",
            requirement="must return the same features every time",
            remedy="switch off dropout and other randomness; Tacit adds the noise",
        )
    return max(repeated, _check_same(together, alone, max(_COUPLING, release.error)))


def _check_same(together: Tensor, alone: Tensor, most: float) -> float:
    difference = _difference(together, alone)
    if difference > most:
        raise InputError(
            "features",
            f"a relative difference of {difference:.2g} between an input alone and in a batch",
            requirement="must not depend on the other inputs of a batch",
            remedy="use evaluation mode and running statistics, and compute in float64, or state how exact "
            "the features are: feature_error=1e-6 for float32",
        )
    return difference


def _difference(one: Tensor, other: Tensor) -> float:
    """Return the greatest distance between two rows, as a share of the longer one."""
    length = torch.maximum(one.norm(dim=1), other.norm(dim=1))
    return float(((one - other).norm(dim=1) / torch.where(length == 0, torch.ones_like(length), length)).max())


def as_array(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a tensor as a float64 array on the host."""
    return tensor.detach().to("cpu", torch.float64).numpy()
