"""Algorithm 1 of the paper, for many examples and starts at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..core import validate
from ..core.errors import InputError
from .lsqr import Product, Products, minimum_norm_solutions
from .release import derivatives

_CPU_MEMORY = 1e9
_GPU_SHARE = 0.4
"""Memory for kept Jacobians: bytes on a CPU, a share of a GPU's free memory."""
_ROWS = {"cpu": 256, "cuda": 8192}
_ENTRIES = {"cpu": 2**20, "cuda": 2**22}
"""Inputs differentiated at once, and the entries of all of them: networks keep a thousand numbers for each entry."""
_LEAST_SINGULAR = {torch.float32: 1e-6, torch.float64: 1e-8}
"""The smallest singular values that count, as a share of the greatest."""


def perturbation(features: Callable[[Any], Tensor], inputs: Tensor, start: Tensor, *, repetitions: int) -> Tensor:
    """Run Algorithm 1 as printed: find a change of each input that moves its features little for its size.

    Each repetition solves min ‖J ε − z‖ by LSQR, where z is the features' last shift scaled back to the length of the
    start. In exact arithmetic the first repetition gives ε = J⁺z and a shift JJ⁺z, from which the second finds the same
    direction again: repetitions change only rounding, the early stop of LSQR, and what the model's curvature does. If J
    fits into memory it is computed once, with its pseudo-inverse, and the solution is what LSQR converges to. Otherwise
    LSQR runs on derivatives of the model.

    Parameters
    ----------
    features
        The model.
    inputs
        One input per row. They are independent.
    start
        Of shape (inputs, features), or (inputs, starts, features) for several starts of each input.
    repetitions
        Least-squares steps.

    Returns
    -------
    The changes, in the shape of the inputs, with the starts as a second axis if there are several.

    References
    ----------
    Algorithm 1 of arXiv:2404.02866v3.
    """
    validate.whole("repetitions", repetitions, at_least=1, remedy="use 10")
    if start.ndim not in (2, 3) or len(start) != len(inputs):
        raise InputError(
            "the shape of start",
            tuple(start.shape),
            requirement=f"must be ({len(inputs)}, features) or ({len(inputs)}, starts, features)",
            remedy="pass one row per input",
        )
    starts = start if start.ndim == 3 else start[:, None]

    def flat(rows: Tensor) -> Tensor:
        return features(rows.reshape(len(rows), *inputs.shape[1:]).clone()).reshape(len(rows), -1)

    point = inputs.flatten(1)
    with derivatives():
        moving = _moving(flat, point)
        kept = _kept(point, moving.shape[1])
        groups = zip(*(rows.split(kept or len(point)) for rows in (point, starts, moving)), strict=True)
        found = [
            _changes(flat, point, starts, moving, repetitions=repetitions, keep_jacobians=kept > 0)
            for point, starts, moving in groups
        ]
    count = () if start.ndim == 2 else starts.shape[1:2]
    return torch.cat(found).reshape(len(inputs), *count, *inputs.shape[1:])


def _moving(flat: Product, point: Tensor) -> Tensor:
    """Return the features of each point that react to its input, padded with others to the same number for all points.

    Most features of a network that ends in a ReLU do not react: their rows of J are zero. A random direction tells.
    """
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(point.shape, generator=generator, dtype=point.dtype).to(point.device)
    along = torch.func.jvp(flat, (point,), (direction,))[1].detach()
    moves = (along != 0) & along.isfinite()
    return moves.to(torch.uint8).argsort(dim=1, descending=True)[:, : int(moves.sum(dim=1).max())]


def _kept(point: Tensor, width: int) -> int:
    """Return how many Jacobians with this many rows fit into memory, each with its pseudo-inverse, which is no larger.

    While they are computed, Jacobian, Gram matrix, eigenvectors and their products are held in float64.
    """
    entries, rows = point.shape[1], max(1, width)
    size = 2 * entries * rows * point.element_size() + 8 * (2 * entries * rows + 3 * min(entries, rows) ** 2)
    on_gpu = point.device.type == "cuda"
    memory = _GPU_SHARE * torch.cuda.mem_get_info(point.device)[0] if on_gpu else _CPU_MEMORY
    return int(memory // size)


def _changes(
    flat: Product, point: Tensor, starts: Tensor, moving: Tensor, *, repetitions: int, keep_jacobians: bool
) -> Tensor:
    """Return the change of each point for each of its starts: (points, starts, entries)."""
    count = starts.shape[1]
    length = starts.norm(dim=2, keepdim=True)
    with torch.no_grad():
        base = flat(point)
    if keep_jacobians:
        solution = _PseudoInverse.of(_jacobians(flat, point, moving), moving).solution
    else:
        solution = partial(
            minimum_norm_solutions,
            _matrix_free(flat, point, count),
            tolerance=1e-6 if point.dtype == torch.float32 else 1e-12,
            iterations=2 * point.shape[1],  # SciPy's limit
        )
    shift, change = starts, starts[..., :0]
    for _ in range(repetitions):
        scale = shift.norm(dim=2, keepdim=True)
        change = solution(shift * (length / torch.where(scale == 0, torch.ones_like(scale), scale)))
        with torch.no_grad():
            moved = (point[:, None] + change).flatten(0, 1)
            shift = flat(moved).reshape(len(point), count, -1) - base[:, None]
    return change.detach()


def _matrix_free(flat: Product, point: Tensor, count: int) -> Products:
    """Return products with the Jacobians at each point, `count` vectors for each, by automatic differentiation."""

    def products(chosen: Tensor) -> tuple[Product, Product]:
        points = point[chosen].repeat_interleave(count, dim=0)
        back = torch.func.vjp(flat, points)[1]

        def forward(v: Tensor) -> Tensor:
            return torch.func.jvp(flat, (points,), (v.flatten(0, 1),))[1].detach().reshape(*v.shape[:2], -1)

        def transposed(u: Tensor) -> Tensor:
            return back(u.flatten(0, 1))[0].detach().reshape(*u.shape[:2], -1)

        return forward, transposed

    return products


def _jacobians(flat: Product, point: Tensor, moving: Tensor) -> Tensor:
    """Return the rows of the Jacobian at each point that belong to moving features: (points, features, entries).

    Where the model has no derivative they are zero, which misleads only the search, never a bound.
    """
    found = point.new_empty(len(point), moving.shape[1], point.shape[1])
    if moving.shape[1] < point.shape[1]:
        _fill_by_features(found, flat, point, moving)
    else:
        _fill_by_entries(found, flat, point, moving)
    return found.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


def _fill_by_features(found: Tensor, flat: Product, point: Tensor, moving: Tensor) -> None:
    """Fill in the Jacobians by backward derivatives of one feature after another."""
    width = moving.shape[1]
    points, at_once = _repeated(point, width)
    output, back = torch.func.vjp(flat, points)[:2]
    for first in range(0, width, at_once):
        last = min(first + at_once, width)
        one = output.new_zeros(len(point), at_once, output.shape[1])
        one[:, : last - first].scatter_(2, moving[:, first:last, None], 1.0)
        gradients = back(one.flatten(0, 1))[0].detach().reshape(len(point), at_once, -1)
        found[:, first:last] = gradients[:, : last - first]


def _fill_by_entries(found: Tensor, flat: Product, point: Tensor, moving: Tensor) -> None:
    """Fill in the Jacobians by forward derivatives along one entry after another."""
    entries = point.shape[1]
    points, at_once = _repeated(point, entries)
    for first in range(0, entries, at_once):
        last = min(first + at_once, entries)
        one = torch.eye(at_once, entries, dtype=point.dtype, device=point.device).roll(first, dims=1)
        along = torch.func.jvp(flat, (points,), (one.repeat(len(point), 1),))[1].detach()
        moves = along.reshape(len(point), at_once, -1)[:, : last - first]
        where = moving[:, None].expand(-1, last - first, -1)
        found[..., first:last] = moves.gather(2, where).transpose(1, 2)


def _repeated(point: Tensor, derivatives: int) -> tuple[Tensor, int]:
    """Repeat each point as often as derivatives are taken at once, and return how many these are."""
    kind, (count, entries) = point.device.type, point.shape
    at_once = max(1, min(derivatives, _ROWS[kind] // count, _ENTRIES[kind] // (count * entries)))
    return point.repeat_interleave(at_once, dim=0), at_once


@dataclass(frozen=True, kw_only=True, eq=False)
class _PseudoInverse:
    """The pseudo-inverse of each kept Jacobian, J = U s Vᵀ, as the factors Uᵀ and V/s."""

    moving: Tensor
    left: Tensor
    right: Tensor

    @classmethod
    def of(cls, jacobians: Tensor, moving: Tensor) -> _PseudoInverse:
        """Compute it from the eigenvectors of the smaller Gram matrix in float64, many times as fast as torch's SVD.

        That loses singular values below 1e-8 of the greatest; in float32 derivatives, those below 1e-6 are rounding
        anyway.
        """
        wide = jacobians.shape[1] <= jacobians.shape[2]
        short = (jacobians if wide else jacobians.mT).to(torch.float64)
        one = torch.linalg.eigh(short @ short.mT)[1]
        other = one.mT @ short
        values = other.norm(dim=2)
        least = _LEAST_SINGULAR[jacobians.dtype] * values.amax(dim=1, keepdim=True) if values.shape[1] else values
        inverse = torch.where(values > least, values.reciprocal(), 0.0)[..., None]
        other = inverse * other
        left, right = (one, inverse * other) if wide else (other.mT, inverse * one.mT)
        return cls(moving=moving, left=left.to(jacobians), right=right.to(jacobians))

    def solution(self, target: Tensor) -> Tensor:
        """Return the change of least norm that comes closest to each target: (points, targets, entries)."""
        rows = self.moving[:, None].expand(-1, target.shape[1], -1)
        return target.gather(2, rows) @ self.left @ self.right
