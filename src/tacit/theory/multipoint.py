"""The multi-point quotient: the tightest unbiased bound that forward passes alone can certify.

For test points θ + ε_i with features shifted by z_i, and *any* coefficients c, the variance of an unbiased estimate of
one coordinate is at least (Σ c_i (ε_i)_k)² / (cᵀBc), B_ij = exp(⟨z_i, z_j⟩) − 1 for whitened shifts
(docs/proofs/multipoint.md). The coefficients come from a regularised solve and need not be accurate, as
any coefficients give a valid bound. The quotient is evaluated with every rounding error bounded and accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..core.rounding import at_least

UNIT = 2.0**-53
_LARGEST_EXPONENT = 700.0
_LEAST_NORM = 1e-120
_BLOCK = 2048


@at_least
def multipoint_variance(
    shifts: Tensor, *, step: Tensor, feature_error: Tensor, input_error: Tensor, regularisation: float
) -> Tensor:
    r"""Least variance of an unbiased estimate of each of m coordinates, from m test points, for b inputs at once.

    Parameters
    ----------
    shifts
        The whitened shift of the features at each test point, of shape (b, m, n).
    step
        The change h of its coordinate at each test point, of shape (b,).
    feature_error
        How far, in norm, each true shift may lie from the one given, of shape (b,).
    input_error
        How far each true change of an input may lie from the one stated, of shape (b,).
    regularisation
        What is added to the diagonal of B, relative to the mean of the diagonal, to solve for the coefficients; any
        value gives a valid bound.

    Returns
    -------
    Tensor
        A lower bound on the variance for each coordinate, of shape (b, m).

    Notes
    -----
    Statement. The multi-point Hammersley–Chapman–Robbins bound: Var_k ≥ (cᵀh)²/(cᵀBc) for any c, where h_i is the
    change of coordinate k at test point i. Here test point i changes coordinate i by `step` and the others by nothing,
    up to input_error.

    Assumptions. Unbiased at all test points (caller); shifts are whitened by Gaussian noise (caller) and each lies
    within feature_error of the true one in norm (caller); float64 (checked by the public functions).

    Direction. Rounded down; the errors of the shifts, of the inputs and of every sum are bounded and accounted for.

    References
    ----------
    Barankin 1949; McAulay and Seidman 1969; docs/proofs/multipoint.md.
    """
    errors = (feature_error, input_error)
    return _variance((shifts,), step=step, errors=errors, regularisation=regularisation)


@at_least
def two_sided_variance(
    forwards: Tensor,
    backwards: Tensor,
    *,
    step: Tensor,
    feature_error: Tensor,
    input_error: Tensor,
    regularisation: float,
) -> Tensor:
    r"""Least variance of an unbiased estimate of each of m coordinates, from 2m test points, for b inputs at once.

    Parameters
    ----------
    forwards
        The whitened shifts at the test points that add `step`, of shape (b, m, n).
    backwards
        The whitened shifts at the test points that subtract `step`, of shape (b, m, n).
    step
        The change h of its coordinate at each test point, of shape (b,).
    feature_error
        How far, in norm, each true shift may lie from the one given, of shape (b,).
    input_error
        How far each true change of an input may lie from the one stated, of shape (b,).
    regularisation
        What is added to the diagonal of B, relative to the mean of the diagonal, to solve for the coefficients; any
        value gives a valid bound.

    Returns
    -------
    Tensor
        A lower bound on the variance for each coordinate, of shape (b, m).

    Notes
    -----
    Statement. The multi-point Hammersley–Chapman–Robbins bound, as `multipoint_variance`, with two test points for each
    coordinate, which change it by `step` and by −`step`, and coefficients c for the first ones, −c for the others: what
    is even in the step, most of the model's curvature, falls out of the denominator.

    Assumptions. Those of `multipoint_variance`.

    Direction. Rounded down, as there.

    References
    ----------
    Barankin 1949; McAulay and Seidman 1969; docs/proofs/multipoint.md.
    """
    errors = (feature_error, input_error)
    return _variance((forwards, backwards), step=step, errors=errors, regularisation=regularisation)


def _variance(sides: Sequence[Tensor], *, step: Tensor, errors: tuple[Tensor, Tensor], regularisation: float) -> Tensor:
    """The bound from test points on one side of the input, or on both with opposite coefficients."""
    feature_error, input_error = errors
    _, m, n = sides[0].shape  # all features, so that the errors paid for do not depend on the batch
    points = len(sides) * m
    # Points so far away that exp overflows, or so near that squares underflow, are left out.
    sides = _moving(sides)
    usable = torch.stack([_usable(side) for side in sides]).all(dim=0)
    sides = [torch.where(usable[:, :, None], side, 0.0) for side in sides]
    kernel, rest = _kernels(sides)
    c = _coefficients(kernel, usable, regularisation)
    del kernel
    size = c.abs()
    norms = torch.stack([side.norm(dim=2) for side in sides])

    def weighed(values: Tensor) -> Tensor:
        """Σ |c_i| values_i over all points, for every coordinate, rounded up."""
        return (size @ values.sum(dim=0)[:, :, None])[:, :, 0] * (1 + 1e-9)

    # cᵀBc = ‖Σ c_i z_i‖² + cᵀRc with R = expm1(G) − G: the large first-order part is the norm of one vector, which
    # loses no digits to cancellation, and what is left is small where the shifts are.
    first_order = sides[0] if len(sides) == 1 else sides[0] - sides[1]
    vector = (c @ first_order).norm(dim=2) * (1 + (n + 8) * UNIT) + (points + 8) * UNIT * weighed(norms)
    own_rest = _rest(norms.square()) * (1 + 1e-6)
    rounding_of_sums = (4 * points + 1000) * UNIT * weighed(own_rest.sqrt()).square()
    steepness = torch.expm1(norms.square().amax(dim=(0, 2)) * (1 + 1e-6))[:, None]
    rounding_of_gram = steepness * (n + 8) * UNIT * weighed(norms).square()
    second_order = _quadratic(c, rest).clamp(min=0) + rounding_of_sums + rounding_of_gram
    # In the Hilbert space of the kernel, moving z_i by δ moves its image by at most δ·√(1 + r²)·exp(r²/2).
    reach = norms + feature_error[:, None]
    moved = weighed(feature_error[:, None] * (1 + reach.square()).sqrt() * torch.exp(reach.square() / 2))
    denominator = ((vector.square() + second_order).sqrt() + moved) * (1 + 1e-13)

    own = torch.diagonal(c, dim1=1, dim2=2)
    numerator = len(sides) * (step[:, None] * own - input_error[:, None] * size.sum(dim=2) * (1 + 1e-9))
    ratio = numerator.clamp(min=0) * (1 - 1e-13) / denominator
    variance = (ratio.nan_to_num(nan=0.0).square() * (1 - 1e-13)).clamp(max=torch.finfo(torch.float64).max)
    # A denominator of exactly zero: nothing moves and nothing is granted, so no unbiased estimate exists.
    return torch.where((denominator == 0) & (numerator > 0), torch.inf, variance)


def _moving(sides: Sequence[Tensor]) -> list[Tensor]:
    """Keep the features that some test point moves: the others, common behind a ReLU, would add zeros to sums."""
    moving = torch.stack([side.any(dim=1).any(dim=0) for side in sides]).any(dim=0)
    return list(sides) if bool(moving.all()) else [side[:, :, moving] for side in sides]


def _usable(shifts: Tensor) -> Tensor:
    length = shifts.norm(dim=2)
    return (length.square() < _LARGEST_EXPONENT / 2) & ((length > _LEAST_NORM) | ~shifts.any(dim=2))


def _kernels(sides: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """exp(G) − 1 and exp(G) − 1 − G for the Gram matrix of the points; of two sides, each with its sign, summed."""
    products = _gram(sides[0])
    kernel, rest = torch.expm1(products), _rest(products)
    if len(sides) == 2:
        products = _gram(sides[1])
        kernel += torch.expm1(products)
        rest += _rest(products)
        products = sides[0] @ sides[1].mT
        for total, part in ((kernel, torch.expm1(products)), (rest, _rest(products))):
            total -= part
            total -= part.mT
    return kernel, rest


def _rest(products: Tensor) -> Tensor:
    return torch.where(products.abs() < 0.01, _tail(products), torch.expm1(products) - products)


def _coefficients(kernel: Tensor, usable: Tensor, regularisation: float) -> Tensor:
    """Row k: about (B + τI)⁻¹ e_k over the usable points. Any coefficients are valid; good ones give a large bound."""
    scale = torch.diagonal(kernel, dim1=1, dim2=2).mean(dim=1).clamp(min=1e-300)
    ridge = torch.full_like(scale, regularisation)
    factor, failed = torch.linalg.cholesky_ex(_ridged(kernel, ridge * scale))
    while bool((failed > 0).any()):
        ridge = torch.where(failed > 0, (100 * ridge).clamp(min=1e-16), ridge)
        factor, failed = torch.linalg.cholesky_ex(_ridged(kernel, ridge * scale))
    found = _inverse(factor) * scale[:, None, None]
    return torch.where(usable[:, :, None] & usable[:, None, :], found, 0.0)


def _ridged(kernel: Tensor, amount: Tensor) -> Tensor:
    result = kernel.clone()
    torch.diagonal(result, dim1=1, dim2=2).add_(amount[:, None])
    return result


def _tail(x: Tensor) -> Tensor:
    """exp(x) − 1 − x for small x, without cancellation: seven terms leave 1e-19 of the first at |x| = 0.01."""
    result = one = torch.ones((), dtype=x.dtype, device=x.device)
    for k in range(8, 2, -1):
        result = torch.addcmul(one, result, x, value=1 / k)
    return result * x * x / 2


# Symmetric matrices at half the work: each pair of rows once, in blocks. torch has no such products of its own.


def _gram(vectors: Tensor, *, block: int = _BLOCK) -> Tensor:
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


def _quadratic(vectors: Tensor, matrix: Tensor, *, block: int = _BLOCK) -> Tensor:
    """cᵀRc for every row c of (…, k, m) and a symmetric R (…, m, m)."""
    total = vectors.new_zeros(vectors.shape[:-1])
    for start in range(0, matrix.shape[-1], block):
        own = slice(start, start + block)
        products = vectors[..., own] @ matrix[..., own, own]
        if start > 0:
            products += 2 * (vectors[..., :start] @ matrix[..., :start, own])
        total += (products * vectors[..., own]).sum(dim=-1)
    return total


def _inverse(factor: Tensor, *, block: int = _BLOCK) -> Tensor:
    """(LLᵀ)⁻¹ from a lower triangular L, by the inverses of its leading block and of the Schur complement."""
    m = factor.shape[-1]
    if m <= block:
        return torch.cholesky_inverse(factor)
    first, second = slice(m // 2), slice(m // 2, m)
    leading = factor[..., first, first]
    across = torch.linalg.solve_triangular(leading, factor[..., second, first], upper=False, left=False)
    result = torch.empty_like(factor)
    result[..., second, second] = left = _inverse(factor[..., second, second], block=block)
    result[..., second, first] = mixed = -left @ across
    result[..., first, second] = mixed.mT
    result[..., first, first] = _inverse(leading, block=block) - across.mT @ mixed
    return result
