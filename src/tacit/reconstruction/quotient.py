"""The multi-point quotient: the tightest unbiased bound that forward passes alone can certify.

For test points θ + ε_i with features shifted by z_i, and *any* coefficients c, the variance of an unbiased estimate of
one coordinate is at least (Σ c_i (ε_i)_k)² / (cᵀBc), B_ij = exp(⟨z_i, z_j⟩) − 1 for whitened shifts
(docs/proofs/quotient.md). The coefficients come from a regularised solve and may be as wrong as they like: the
quotient is then evaluated, with every rounding error bounded and paid for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..numerics import at_least
from .symmetric import gram, inverse, quadratic

UNIT = 2.0**-53
_LARGEST_EXPONENT = 700.0
_LEAST_NORM = 1e-120


@at_least
def multipoint_variance(
    shifts: Tensor, *, step: float, feature_error: Tensor, input_error: Tensor, regularisation: float
) -> Tensor:
    r"""Least variance of an unbiased estimate of each of m coordinates, from m test points, for b inputs at once.

    Statement.   Var_k ≥ (cᵀh)²/(cᵀBc) for any c, where h_i is the change of coordinate k at test point i. Here test
                 point i changes coordinate i by `step` and the others by nothing, up to input_error.
    Assumptions. Unbiased at all test points (caller); shifts are whitened by Gaussian noise (caller) and each lies
                 within feature_error of the true one in norm (caller); float64 (checked by the door).
    Direction.   Rounded down; the errors of the shifts, of the inputs and of every sum are bounded and paid for.
    Reference.   Barankin 1949; McAulay and Seidman 1969; docs/proofs/quotient.md.

    Shapes: shifts (b, m, n); feature_error and input_error (b,); the result (b, m).
    """
    # Points so far away that exp overflows, or so near that squares underflow, are left out.
    z = _moving(shifts)
    length = z.norm(dim=2)
    usable = (length.square() < _LARGEST_EXPONENT / 2) & ((length > _LEAST_NORM) | ~z.any(dim=2))
    z = torch.where(usable[:, :, None], z, 0.0)
    _, m, n = shifts.shape  # all features, so that the errors paid for do not depend on the batch
    norms = z.norm(dim=2)
    products = gram(z)
    kernel = torch.expm1(products)
    c = _coefficients(kernel, usable, regularisation)
    size = c.abs()

    def weighed(values: Tensor) -> Tensor:
        """Σ |c_i| values_i for every coordinate, rounded up."""
        return (size @ values[:, :, None])[:, :, 0] * (1 + 1e-9)

    # cᵀBc = ‖Σ c_i z_i‖² + cᵀRc with R = expm1(G) − G: the large first-order part is the norm of one vector, which
    # loses no digits to cancellation, and what is left is small where the shifts are.
    rest = torch.where(products.abs() < 0.01, _tail(products), kernel - products)
    vector = (c @ z).norm(dim=2) * (1 + (n + 8) * UNIT) + (m + 8) * UNIT * weighed(norms)
    rounding_of_sums = (4 * m + 1000) * UNIT * weighed(torch.diagonal(rest, dim1=1, dim2=2).sqrt()).square()
    steepness = torch.expm1(norms.square().amax(dim=1) * (1 + 1e-6))[:, None]
    rounding_of_gram = steepness * (n + 8) * UNIT * weighed(norms).square()
    second_order = quadratic(c, rest).clamp(min=0) + rounding_of_sums + rounding_of_gram
    # In the Hilbert space of the kernel, moving z_i by δ moves its image by at most δ·√(1 + r²)·exp(r²/2).
    reach = norms + feature_error[:, None]
    moved = weighed(feature_error[:, None] * (1 + reach.square()).sqrt() * torch.exp(reach.square() / 2))
    denominator = ((vector.square() + second_order).sqrt() + moved) * (1 + 1e-13)

    own = torch.diagonal(c, dim1=1, dim2=2)
    numerator = step * own - input_error[:, None] * size.sum(dim=2) * (1 + 1e-9)
    ratio = numerator.clamp(min=0) * (1 - 1e-13) / denominator
    variance = (ratio.nan_to_num(nan=0.0).square() * (1 - 1e-13)).clamp(max=torch.finfo(torch.float64).max)
    # A denominator of exactly zero: nothing moves and nothing is granted, so no unbiased estimate exists.
    return torch.where((denominator == 0) & (numerator > 0), torch.inf, variance)


def _moving(shifts: Tensor) -> Tensor:
    """The features that some test point moves: those at rest, most of them behind a ReLU, would add zeros to sums."""
    moving = shifts.any(dim=1).any(dim=0)
    return shifts if bool(moving.all()) else shifts[:, :, moving]


def _coefficients(kernel: Tensor, usable: Tensor, regularisation: float) -> Tensor:
    """Row k: about (B + τI)⁻¹ e_k over the usable points. Any coefficients are valid, good ones make a large bound."""
    scale = torch.diagonal(kernel, dim1=1, dim2=2).mean(dim=1).clamp(min=1e-300)
    ridge = torch.full_like(scale, regularisation)
    factor, failed = torch.linalg.cholesky_ex(_ridged(kernel, ridge * scale))
    while bool((failed > 0).any()):
        ridge = torch.where(failed > 0, (100 * ridge).clamp(min=1e-16), ridge)
        factor, failed = torch.linalg.cholesky_ex(_ridged(kernel, ridge * scale))
    found = inverse(factor) * scale[:, None, None]
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
