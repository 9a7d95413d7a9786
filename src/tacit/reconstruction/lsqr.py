"""LSQR for many independent least-squares problems at once (Paige and Saunders 1982)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_LARGEST_CONDITION = 1e8
_BETWEEN_CHECKS = 16

Product = Callable[[Tensor], Tensor]
Products = Callable[[Tensor], tuple[Product, Product]]


class _State(NamedTuple):
    """The recurrence of every target, in the paper's letters; `first` is ‖b‖, `active` says which targets still run."""

    u: Tensor
    v: Tensor
    w: Tensor
    x: Tensor
    alpha: Tensor
    first: Tensor
    phi_bar: Tensor
    rho_bar: Tensor
    frobenius: Tensor
    inverse: Tensor
    active: Tensor


def minimum_norm_solutions(products: Products, targets: Tensor, *, tolerance: float, iterations: int) -> Tensor:
    """Return, for every matrix A and each of its targets b, the x of least norm that minimises ‖A x − b‖.

    Every target has its own recurrence and its own stopping tests: the residual is small compared with A and b, or
    orthogonal to the range of A, or A is so nearly singular that rounding errors take over. A target that has stopped
    keeps its x while the others continue, so none depends on its neighbours. Matrices whose targets have all stopped
    are dropped.

    Parameters
    ----------
    products
        `products(chosen)` returns two functions: the products with the chosen matrices and with their transposes.
    targets
        Of shape (matrices, targets of each, entries).
    tolerance
        For the stopping tests, relative.
    iterations
        The most iterations.
    """
    chosen = torch.arange(len(targets), device=targets.device)
    forward, transposed = products(chosen)
    state = _started(transposed, targets)
    solutions = torch.zeros_like(state.x)
    for _ in range(0, iterations, _BETWEEN_CHECKS):
        busy = state.active.any(dim=1).flatten()
        count = int(busy.sum())
        if count < len(chosen):
            solutions[chosen[~busy]] = state.x[~busy]
        if count == 0:
            return solutions
        if count <= len(chosen) / 2:
            chosen, state = chosen[busy], _State(*(part[busy] for part in state))
            forward, transposed = products(chosen)
        state = _later(state, forward, transposed, tolerance)
    solutions[chosen] = state.x
    return solutions


def _started(transposed: Product, targets: Tensor) -> _State:
    beta = targets.norm(dim=2, keepdim=True)
    u = targets / _nonzero(beta)
    v = transposed(u)
    alpha = v.norm(dim=2, keepdim=True)
    v = v / _nonzero(alpha)
    return _State(
        u=u,
        v=v,
        w=v.clone(),
        x=torch.zeros_like(v),
        alpha=alpha,
        first=beta,
        phi_bar=beta.clone(),
        rho_bar=alpha.clone(),
        frobenius=alpha.square(),
        inverse=torch.zeros_like(alpha),
        active=(alpha > 0) & (beta > 0),
    )


def _later(state: _State, forward: Product, transposed: Product, tolerance: float) -> _State:
    """Return the state some iterations later."""
    u, v, w, x, alpha, first, phi_bar, rho_bar, frobenius, inverse, active = state
    for _ in range(_BETWEEN_CHECKS):
        u = forward(v) - alpha * u
        beta = u.norm(dim=2, keepdim=True)
        u = u / _nonzero(beta)
        frobenius = frobenius + beta.square()
        v = transposed(u) - beta * v
        alpha = v.norm(dim=2, keepdim=True)
        v = v / _nonzero(alpha)
        rho = (rho_bar.square() + beta.square()).sqrt()
        cosine, sine = rho_bar / _nonzero(rho), beta / _nonzero(rho)
        theta, rho_bar = sine * alpha, -cosine * alpha
        phi, phi_bar = cosine * phi_bar, sine * phi_bar
        x = torch.where(active, x + (phi / _nonzero(rho)) * w, x)
        inverse = inverse + (w.norm(dim=2, keepdim=True) / _nonzero(rho)).square()
        w = v - (theta / _nonzero(rho)) * w
        norm = frobenius.sqrt()
        solved = phi_bar <= tolerance * (first + norm * x.norm(dim=2, keepdim=True))
        orthogonal = alpha * cosine.abs() <= tolerance * norm
        singular = norm * inverse.sqrt() >= _LARGEST_CONDITION
        active = active & ~solved & ~orthogonal & ~singular
        frobenius = frobenius + alpha.square()
    return _State(u, v, w, x, alpha, first, phi_bar, rho_bar, frobenius, inverse, active)


def _nonzero(value: Tensor) -> Tensor:
    return torch.where(value == 0, torch.ones_like(value), value)
