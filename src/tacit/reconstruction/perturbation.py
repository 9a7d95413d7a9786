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
_DIFFERENTIATED = {"cpu": 2**20, "cuda": 2**22}
"""Entries of all inputs that are differentiated at once: networks keep up to a thousand numbers for each of them."""


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

    def flat(rows: Tensor) -> Tensor:
        return features(rows.reshape(len(rows), *inputs.shape[1:]).clone()).reshape(len(rows), -1)

    point = inputs.flatten(1)
    with plain_attention():
        moving = _moving(flat, point)
        size = point.shape[1] * (moving.shape[1] + 1) * point.element_size()  # of one Jacobian
        kept = int(_JACOBIAN_BYTES[point.device.type] // size)
        groups = zip(*(rows.split(kept or len(point)) for rows in (point, starts, moving)), strict=True)
        found = [
            _changes(flat, point, starts, moving, repetitions=repetitions, keep_jacobians=kept > 0)
            for point, starts, moving in groups
        ]
    count = () if start.ndim == 2 else starts.shape[1:2]
    return torch.cat(found).reshape(len(inputs), *count, *inputs.shape[1:])


def _moving(flat: Product, point: Tensor) -> Tensor:
    """The features of each point that move with its input, and others where fewer do than for its neighbours.

    Most features of a network that ends in a ReLU are at rest: their rows of J are zero. A random direction tells.
    """
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(point.shape, generator=generator, dtype=point.dtype).to(point.device)
    moves = torch.func.jvp(flat, (point,), (direction,))[1].detach() != 0
    return moves.to(torch.uint8).argsort(dim=1, descending=True)[:, : int(moves.sum(dim=1).max())]


def _changes(
    flat: Product, point: Tensor, starts: Tensor, moving: Tensor, *, repetitions: int, keep_jacobians: bool
) -> Tensor:
    """The change of each point for each of its starts: (points, starts, entries)."""
    count = starts.shape[1]
    length = starts.norm(dim=2, keepdim=True)
    with torch.no_grad():
        base = flat(point)
    products = _of_jacobians(_jacobians(flat, point, moving)) if keep_jacobians else _matrix_free(flat, point, count)
    shift, change = starts, starts[..., :0]
    for _ in range(repetitions):
        scale = shift.norm(dim=2, keepdim=True)
        target = shift * (length / torch.where(scale == 0, torch.ones_like(scale), scale))
        change = minimum_norm_solutions(products, _shortened(target, moving) if keep_jacobians else target)
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
        return lambda v: v @ kept.transpose(1, 2), lambda u: u @ kept

    return products


def _jacobians(flat: Product, point: Tensor, moving: Tensor) -> Tensor:
    """The rows of the Jacobian at each point that belong to moving features, and one of zeros for all others."""
    (count, entries), width = point.shape, moving.shape[1]
    at_once = max(1, min(width, _DIFFERENTIATED[point.device.type] // (count * entries)))
    output, back = torch.func.vjp(flat, point.repeat_interleave(at_once, dim=0))[:2]
    found = point.new_zeros(count, width + 1, entries)
    for first in range(0, width, at_once):
        last = min(first + at_once, width)
        one = output.new_zeros(count, at_once, output.shape[1])
        one[:, : last - first].scatter_(2, moving[:, first:last, None], 1.0)
        gradients = back(one.flatten(0, 1))[0].detach().reshape(count, at_once, entries)
        found[:, first:last] = gradients[:, : last - first]
    return found


def _shortened(target: Tensor, moving: Tensor) -> Tensor:
    """The target's entries in moving features, and the length of all others as one.

    No change of the input comes nearer to a target in features at rest, so LSQR needs to know but how much of it is
    there. That is a rotation of the features, and changes nothing but rounding.
    """
    where = moving[:, None].expand(-1, target.shape[1], -1)
    rest = target.scatter(2, where, 0.0).norm(dim=2, keepdim=True)
    return torch.cat([target.gather(2, where), rest], dim=2)
