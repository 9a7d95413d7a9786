"""Orthonormal coordinates of an input: its pixels, its cosine modes, or any that the caller gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core import validate
from ..core.errors import InputError

ROUNDING = 1e-12
"""How far a basis may be from orthonormal; the bounds allow for it."""

BasisLike = Any  # "pixel", "dct", an orthonormal matrix, or a pair of callables (to modes, from modes)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """Coordinates: `to_modes` and `from_modes` map (rows, *shape) to (rows, *shape), linearly and preserving norms."""

    name: str
    to_modes: Callable[[Tensor], Tensor]
    from_modes: Callable[[Tensor], Tensor]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of modes."""
        return math.prod(self.shape)

    def vectors(self, modes: Tensor) -> Tensor:
        """Return the inputs whose only mode is the given one, one per row, flattened."""
        units = torch.zeros(len(modes), self.size, dtype=torch.float64, device=modes.device)
        units[torch.arange(len(modes), device=modes.device), modes] = 1.0
        return self.from_modes(units.reshape(-1, *self.shape)).reshape(len(modes), self.size)


def usual_basis(shape: tuple[int, ...]) -> str:
    """Return what "auto" means: cosine modes for images, single entries for vectors."""
    return "dct" if len(shape) > 1 else "pixel"


def basis_of(basis: BasisLike, shape: tuple[int, ...], device: torch.device) -> Basis:
    """Return the basis that the caller asked for, for inputs of this shape."""
    if isinstance(basis, str):
        remedy = "or pass an orthonormal matrix, or a pair of callables"
        basis = validate.choice("basis", basis, ("auto", "pixel", "dct"), remedy=remedy)
        basis = usual_basis(shape) if basis == "auto" else basis
        return _pixel(shape) if basis == "pixel" else _cosine(shape, device)
    if isinstance(basis, tuple) and len(basis) == 2 and all(callable(part) for part in basis):
        found = Basis(name="given", to_modes=basis[0], from_modes=basis[1], shape=shape)
        try:
            _check_orthonormal(found, device)
        except InputError:
            raise
        except Exception as failure:  # the caller's own code may raise anything
            raise InputError(
                "basis",
                f"{type(failure).__name__}: {failure}",
                requirement="must map tensors of shape (rows, *shape of an input) to such tensors",
                remedy="check both callables on zeros",
            ) from None
        return found
    matrix = torch.tensor(
        validate.array("basis", basis, dimensions=2, remedy="pass one mode per row"),
        dtype=torch.float64,
        device=device,
    )
    size = math.prod(shape)
    if matrix.shape != (size, size):
        raise InputError(
            "the shape of basis",
            tuple(matrix.shape),
            requirement=f"must be ({size}, {size})",
            remedy="pass one mode per row",
        )
    found = Basis(
        name="given",
        to_modes=lambda rows: (rows.reshape(len(rows), size) @ matrix.T).reshape(rows.shape),
        from_modes=lambda rows: (rows.reshape(len(rows), size) @ matrix).reshape(rows.shape),
        shape=shape,
    )
    _check_orthonormal(found, device)
    return found


def _pixel(shape: tuple[int, ...]) -> Basis:
    return Basis(name="pixel", to_modes=lambda rows: rows, from_modes=lambda rows: rows, shape=shape)


def _cosine(shape: tuple[int, ...], device: torch.device) -> Basis:
    if len(shape) < 2:
        raise InputError(
            "the shape of an input",
            shape,
            requirement="must have two axes or more for basis='dct'",
            remedy="use basis='pixel', or reshape the inputs",
        )
    high, wide = (cosines(size, device) for size in shape[-2:])
    return Basis(
        name="dct",
        to_modes=lambda rows: high @ rows @ wide.T,
        from_modes=lambda rows: high.T @ rows @ wide,
        shape=shape,
    )


def cosines(size: int, device: torch.device) -> Tensor:
    """Return the orthonormal type-II cosine transform of one axis, one mode per row."""
    k, n = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    matrix = torch.cos(math.pi * (2 * n + 1).double() * k / (2 * size)) * math.sqrt(2 / size)
    matrix[0] /= math.sqrt(2)
    return matrix.to(device)


def _check_orthonormal(basis: Basis, device: torch.device) -> None:
    """Check that modes have length 1 and right angles and return from `to_modes`; all, or some of very many."""
    if basis.size <= 4096:
        modes = torch.arange(basis.size, device=device)
    else:
        modes = torch.randperm(basis.size, generator=torch.Generator().manual_seed(0))[:1024].to(device)
    vectors = basis.vectors(modes)
    gram = vectors @ vectors.T - torch.eye(len(modes), dtype=torch.float64, device=device)
    back = basis.to_modes(vectors.reshape(-1, *basis.shape)).reshape(len(modes), -1)
    units = torch.nn.functional.one_hot(modes, basis.size).double()
    worst = max(float(gram.abs().max()), float((back - units).abs().max()), _nonlinearity(basis, modes, vectors))
    if not worst <= ROUNDING:
        raise InputError(
            "basis",
            f"an error of {worst:.2g}",
            requirement=f"must be linear and orthonormal to {ROUNDING:g}; a second callable must invert the first",
            remedy="orthonormalise it in float64, e.g. with a QR decomposition",
        )


def _nonlinearity(basis: Basis, modes: Tensor, vectors: Tensor) -> float:
    """Return how far both maps are from linear, on sums of these modes of two very different lengths."""
    generator = torch.Generator().manual_seed(0)
    shares = torch.randn(2, len(modes), generator=generator, dtype=torch.float64).to(vectors.device)
    shares = shares / shares.norm(dim=1, keepdim=True) * torch.tensor([[1.0], [1e-3]]).to(shares)
    units = torch.zeros(2, basis.size, dtype=torch.float64, device=vectors.device)
    units[:, modes] = shares
    summed = shares @ vectors
    back = basis.to_modes(summed.reshape(2, *basis.shape)).reshape(2, -1) - units
    there = basis.from_modes(units.reshape(2, *basis.shape)).reshape(2, -1) - summed
    wrong = torch.stack([back.norm(dim=1), there.norm(dim=1)]) / shares.norm(dim=1)
    return float(wrong.max()) / math.sqrt(len(modes))
