"""Symmetric matrices at half the work: each pair of rows once, in blocks. torch has no such products of its own."""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 2048


def gram(vectors: Tensor, *, block: int = _BLOCK) -> Tensor:
    """All scalar products of the rows of (…, m, n)."""
    m = vectors.shape[-2]
    if m <= block:
        return vectors @ vectors.mT
    result = vectors.new_empty((*vectors.shape[:-1], m))
    for start in range(0, m, block):
        stop = min(start + block, m)
        products = vectors[..., start:, :] @ vectors[..., start:stop, :].mT
        result[..., start:, start:stop] = products
        result[..., start:stop, stop:] = products[..., stop - start :, :].mT
    return result


def quadratic(vectors: Tensor, matrix: Tensor, *, block: int = _BLOCK) -> Tensor:
    """cᵀRc for every row c of (…, k, m) and a symmetric R (…, m, m)."""
    total = vectors.new_zeros(vectors.shape[:-1])
    for start in range(0, matrix.shape[-1], block):
        own = slice(start, start + block)
        products = vectors[..., own] @ matrix[..., own, own]
        if start > 0:
            products += 2 * (vectors[..., :start] @ matrix[..., :start, own])
        total += (products * vectors[..., own]).sum(dim=-1)
    return total


def inverse(factor: Tensor, *, block: int = _BLOCK) -> Tensor:
    """(LLᵀ)⁻¹ from a lower triangular L, by the inverses of its leading part and of what that leaves (Schur)."""
    m = factor.shape[-1]
    if m <= block:
        return torch.cholesky_inverse(factor)
    first, second = slice(m // 2), slice(m // 2, m)
    leading = factor[..., first, first]
    across = torch.linalg.solve_triangular(leading, factor[..., second, first], upper=False, left=False)
    result = torch.empty_like(factor)
    result[..., second, second] = left = inverse(factor[..., second, second], block=block)
    result[..., second, first] = mixed = -left @ across
    result[..., first, second] = mixed.mT
    result[..., first, first] = inverse(leading, block=block) - across.mT @ mixed
    return result
