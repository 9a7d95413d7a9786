"""LSQR for many independent least-squares problems at once (Paige and Saunders 1982)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_LARGEST_CONDITION = 1e8


def minimum_norm_solutions(
    forward: Callable[[Tensor], Tensor],
    transposed: Callable[[Tensor], Tensor],
    targets: Tensor,
) -> Tensor:
    """Row by row, the x of least norm that minimises ‖A x − b‖, A given by products with it and with its transpose.

    Every row has its own recurrence and its own stopping tests: the residual is small beside A and b, or orthogonal to
    the range of A, or rounding errors take over because A is too nearly singular. A row that has stopped keeps its x
    while the others go on, so no row depends on its neighbours.
    """
    b = targets
    tolerance = 1e-6 if b.dtype == torch.float32 else 1e-12
    beta = b.norm(dim=1, keepdim=True)
    u = b / _nonzero(beta)
    v = transposed(u)
    alpha = v.norm(dim=1, keepdim=True)
    v = v / _nonzero(alpha)
    x, w = torch.zeros_like(v), v.clone()
    phi_bar, rho_bar = beta.clone(), alpha.clone()
    frobenius, inverse = alpha.square(), torch.zeros_like(alpha)
    active = (alpha > 0) & (beta > 0)
    for _ in range(2 * min(b.shape[1], v.shape[1])):
        if not bool(active.any()):
            break
        u = forward(v) - alpha * u
        beta_next = u.norm(dim=1, keepdim=True)
        u = u / _nonzero(beta_next)
        frobenius = frobenius + beta_next.square()
        v = transposed(u) - beta_next * v
        alpha = v.norm(dim=1, keepdim=True)
        v = v / _nonzero(alpha)
        rho = (rho_bar.square() + beta_next.square()).sqrt()
        cosine, sine = rho_bar / _nonzero(rho), beta_next / _nonzero(rho)
        theta, rho_bar = sine * alpha, -cosine * alpha
        phi, phi_bar = cosine * phi_bar, sine * phi_bar
        x = torch.where(active, x + (phi / _nonzero(rho)) * w, x)
        inverse = inverse + (w.norm(dim=1, keepdim=True) / _nonzero(rho)).square()
        w = v - (theta / _nonzero(rho)) * w
        norm = frobenius.sqrt()
        solved = phi_bar <= tolerance * (beta + norm * x.norm(dim=1, keepdim=True))
        orthogonal = alpha * cosine.abs() <= tolerance * norm
        singular = norm * inverse.sqrt() >= _LARGEST_CONDITION
        active = active & ~solved & ~orthogonal & ~singular
        frobenius = frobenius + alpha.square()
    return x


def _nonzero(value: Tensor) -> Tensor:
    return torch.where(value == 0, torch.ones_like(value), value)
