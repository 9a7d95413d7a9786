"""LSQR for many independent least-squares problems at once (Paige and Saunders 1982)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_LARGEST_CONDITION = 1e8
_BETWEEN_CHECKS = 16

Product = Callable[[Tensor], Tensor]
Products = Callable[[Tensor], tuple[Product, Product]]


def minimum_norm_solutions(products: Products, targets: Tensor) -> Tensor:
    """For every matrix A and each of its targets b, the x of least norm that minimises ‖A x − b‖.

    Targets have the shape (matrices, targets of each, entries). `products(chosen)` returns the products with the chosen
    matrices and with their transposes, of vectors shaped alike.

    Every target has its own recurrence and its own stopping tests: the residual is small beside A and b, or orthogonal
    to the range of A, or rounding errors take over because A is too nearly singular. One that has stopped keeps its x
    while the others go on, so none depends on its neighbours; matrices all of whose targets have stopped are set aside.
    """
    b = targets
    chosen = torch.arange(len(b), device=b.device)
    forward, transposed = products(chosen)
    tolerance = 1e-6 if b.dtype == torch.float32 else 1e-12
    beta = b.norm(dim=2, keepdim=True)
    u = b / _nonzero(beta)
    v = transposed(u)
    alpha = v.norm(dim=2, keepdim=True)
    v = v / _nonzero(alpha)
    x, w = torch.zeros_like(v), v.clone()
    solutions = x.clone()
    phi_bar, rho_bar = beta.clone(), alpha.clone()
    frobenius, inverse = alpha.square(), torch.zeros_like(alpha)
    active = (alpha > 0) & (beta > 0)
    for iteration in range(2 * v.shape[2]):  # as SciPy's: rounding can make it need more than the rank
        if iteration % _BETWEEN_CHECKS == 0:
            busy = active.any(dim=1).flatten()
            count = int(busy.sum())
            if count < len(chosen):
                solutions[chosen[~busy]] = x[~busy]
            if count == 0:
                break
            if count <= len(chosen) / 2:
                chosen = chosen[busy]
                forward, transposed = products(chosen)
                u, v, w, x, alpha, beta = (state[busy] for state in (u, v, w, x, alpha, beta))
                phi_bar, rho_bar, frobenius, inverse, active = (
                    state[busy] for state in (phi_bar, rho_bar, frobenius, inverse, active)
                )
        u = forward(v) - alpha * u
        beta_next = u.norm(dim=2, keepdim=True)
        u = u / _nonzero(beta_next)
        frobenius = frobenius + beta_next.square()
        v = transposed(u) - beta_next * v
        alpha = v.norm(dim=2, keepdim=True)
        v = v / _nonzero(alpha)
        rho = (rho_bar.square() + beta_next.square()).sqrt()
        cosine, sine = rho_bar / _nonzero(rho), beta_next / _nonzero(rho)
        theta, rho_bar = sine * alpha, -cosine * alpha
        phi, phi_bar = cosine * phi_bar, sine * phi_bar
        x = torch.where(active, x + (phi / _nonzero(rho)) * w, x)
        inverse = inverse + (w.norm(dim=2, keepdim=True) / _nonzero(rho)).square()
        w = v - (theta / _nonzero(rho)) * w
        norm = frobenius.sqrt()
        solved = phi_bar <= tolerance * (beta + norm * x.norm(dim=2, keepdim=True))
        orthogonal = alpha * cosine.abs() <= tolerance * norm
        singular = norm * inverse.sqrt() >= _LARGEST_CONDITION
        active = active & ~solved & ~orthogonal & ~singular
        frobenius = frobenius + alpha.square()
    else:
        solutions[chosen] = x
    return solutions


def _nonzero(value: Tensor) -> Tensor:
    return torch.where(value == 0, torch.ones_like(value), value)
