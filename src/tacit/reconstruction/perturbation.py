"""Algorithm 1 of the paper, for many examples and starts at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import checked
from ..errors import InputError
from .lsqr import Product, Products, minimum_norm_solutions
from .release import plain_attention

_JACOBIAN_BYTES = {"cpu": 5e8, "cuda": 3.2e10}
_JACOBIAN_ROWS = {"cpu": 1024, "cuda": 8192}
_JACOBIAN_ENTRIES = 2**24
"""Of all tangents at once: networks keep some hundred numbers for each entry of a large image."""


def perturbation(features: Callable[[Any], Tensor], inputs: Tensor, start: Tensor, *, repetitions: int) -> Tensor:
    """Algorithm 1 as printed: a change of each input that moves its features little for its size.

    Each repetition solves min ‖J ε − z‖ by LSQR, z being the features' last shift scaled back to the length of the
    start. In exact arithmetic the first repetition gives ε = J⁺z and a shift JJ⁺z, from which the second finds the
    same direction again: repetitions change nothing but rounding, the early stop of LSQR, and what the model's
    curvature does. Examples are independent systems: each has its own LSQR, with its own stopping tests.

    `start` has the shape (inputs, features), or (inputs, starts, features) for several starts of each input; the result
    has the shape of the inputs, with the starts as a second axis where there are several. Products with J are
    derivatives of the model; J itself is made only where it fits into memory, which is faster.
    """
    checked.whole("repetitions", repetitions, at_least=1, remedy="use 10")
    if start.ndim not in (2, 3) or len(start) != len(inputs):
        raise InputError(
            "the shape of start",
            tuple(start.shape),
            requirement=f"must be ({len(inputs)}, features) or ({len(inputs)}, starts, features)",
            remedy="pass one row an input",
        )
    starts = start if start.ndim == 3 else start[:, None]
    size = inputs[0].numel() * starts.shape[2] * inputs.element_size()  # of one Jacobian
    kept = int(_JACOBIAN_BYTES[inputs.device.type] // size)
    groups = zip(inputs.split(kept or len(inputs)), starts.split(kept or len(inputs)), strict=True)
    found = torch.cat([_changes(features, *group, repetitions, keep_jacobians=kept > 0) for group in groups])
    count = () if start.ndim == 2 else starts.shape[1:2]
    return found.reshape(len(inputs), *count, *inputs.shape[1:])


def _changes(
    features: Callable[[Any], Tensor], inputs: Tensor, starts: Tensor, repetitions: int, *, keep_jacobians: bool
) -> Tensor:
    """The change of each input for each of its starts: (inputs, starts, entries)."""
    point, count = inputs.flatten(1), starts.shape[1]

    def flat(rows: Tensor) -> Tensor:
        return features(rows.reshape(len(rows), *inputs.shape[1:]).clone()).reshape(len(rows), -1)

    length = starts.norm(dim=2, keepdim=True)
    with plain_attention():
        with torch.no_grad():
            base = flat(point)
        products = _of_jacobians(_jacobians(flat, point)) if keep_jacobians else _matrix_free(flat, point, count)
        shift, change = starts, starts[..., :0]
        for _ in range(repetitions):
            scale = shift.norm(dim=2, keepdim=True)
            target = shift * (length / torch.where(scale == 0, torch.ones_like(scale), scale))
            change = minimum_norm_solutions(products, target)
            with torch.no_grad():
                moved = (point[:, None] + change).flatten(0, 1)
                shift = flat(moved).reshape(len(point), count, -1) - base[:, None]
    return change.detach()


def _matrix_free(flat: Product, point: Tensor, count: int) -> Products:
    """Products with the Jacobians at each point, `count` vectors for each, by forward and backward derivatives."""

    def products(chosen: Tensor) -> tuple[Product, Product]:
        points = point[chosen].repeat_interleave(count, dim=0)
        back = torch.func.vjp(flat, points)[1]

        def forward(v: Tensor) -> Tensor:
            return torch.func.jvp(flat, (points,), (v.flatten(0, 1),))[1].detach().reshape(*v.shape[:2], -1)

        def transposed(u: Tensor) -> Tensor:
            return back(u.flatten(0, 1))[0].detach().reshape(*u.shape[:2], -1)

        return forward, transposed

    return products


def _of_jacobians(jacobians: Tensor) -> Products:
    def products(chosen: Tensor) -> tuple[Product, Product]:
        kept = jacobians if len(chosen) == len(jacobians) else jacobians[chosen]
        return lambda v: v @ kept, lambda u: u @ kept.transpose(1, 2)

    return products


def _jacobians(flat: Product, point: Tensor) -> Tensor:
    """The transposed Jacobian at each point: (points, entries of an input, features)."""
    entries = point.shape[1]
    rows = min(_JACOBIAN_ROWS[point.device.type], _JACOBIAN_ENTRIES // entries)
    at_once = max(1, rows // len(point))
    found = []
    for chunk in torch.arange(entries, device=point.device).split(at_once):
        tangents = torch.nn.functional.one_hot(chunk, entries).to(point).repeat(len(point), 1)
        points = point.repeat_interleave(len(chunk), dim=0)
        rows = torch.func.jvp(flat, (points,), (tangents,))[1].detach()
        found.append(rows.reshape(len(point), len(chunk), -1))
    return torch.cat(found, dim=1)
