"""What the Jacobian says about an input: a diagnostic, not a guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import validate
from .basis import Basis, BasisLike, basis_of
from .noise import Noise
from .release import Release, as_array, derivatives, open_release
from .repeated import repeated

_Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalLimit:
    """The Cramér–Rao limit at each input.

    It is wrong at kinks, such as pooling ties and zeros of ReLU, where real inputs often lie.

    Attributes
    ----------
    rank
        The rank of the Jacobian at each input.
    null_energy
        For each mode, the share to which the features do not react at all, to first order. Where it is positive, no
        unbiased estimator exists to first order.
    identifiable_std
        For each mode, the limit for the rest.
    """

    rank: NDArray[np.int64]
    null_energy: _Array
    identifiable_std: _Array


def local_limit(
    features: Callable[[Any], Any],
    inputs: object,
    noise: Noise,
    *,
    basis: BasisLike = "auto",
    rtol: float = 1e-8,
    feature_error: float | None = None,
    releases: int = 1,
) -> LocalLimit:
    """Compute rank, null energy and the identifiable part from the Jacobian; Gaussian noise only.

    Parameters
    ----------
    features
        The function whose output is released: a torch module in evaluation mode, or any callable that maps rows of
        inputs to rows of features.
    inputs
        An array, a tensor or a DataLoader, one input per row.
    noise
        The noise added to the features.
    basis
        The modes: "dct", "pixel", "auto" (the first for images, the second for vectors), an orthonormal matrix with one
        mode per row, or a pair of callables (to modes, from modes).
    rtol
        Singular values up to this share of the greatest count as zero.
    feature_error
        The share of their norm by which released features may differ from those computed here. By default the type of
        the model decides (1e-6 for float32), or twice its measured error where that is larger.
    releases
        How often the same input is released, at most, each time with fresh noise.

    Raises
    ------
    InputError
        If the model or a value cannot be used.
    """
    features, noise = repeated(features, noise, releases)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    rtol = validate.probability("rtol", rtol, remedy="use 1e-8")
    ranks, null, identifiable = [], [], []
    for point in release.inputs:
        jacobian = noise.whitened(_jacobian_rows(release, point, modes))  # one mode per row
        driver = "gesvd" if jacobian.is_cuda else None  # the default does not converge for many equal singular values
        left, values, _ = torch.linalg.svd(jacobian, full_matrices=False, driver=driver)
        kept = values > rtol * values[0]
        energy = left[:, kept].square()
        ranks.append(int(kept.sum()))
        null.append(as_array((1 - energy.sum(dim=1)).clamp(min=0)).reshape(release.shape))
        identifiable.append(as_array((energy / values[kept].square()).sum(dim=1).sqrt()).reshape(release.shape))
    return LocalLimit(rank=np.array(ranks), null_energy=np.stack(null), identifiable_std=np.stack(identifiable))


def _jacobian_rows(release: Release, point: Tensor, modes: Basis) -> Tensor:
    """Return how the features change with each mode, one mode per row; refuse a model without a derivative."""

    def flat(rows: Tensor) -> Tensor:
        return release.function(rows).reshape(len(rows), -1)

    found = []
    with derivatives():
        for start in range(0, modes.size, 256):
            chunk = torch.arange(start, min(start + 256, modes.size), device=point.device)
            tangents = modes.vectors(chunk).reshape(-1, *release.shape)
            points = point.expand(len(chunk), *release.shape).contiguous()
            found.append(torch.func.jvp(flat, (points,), (tangents,))[1].detach())
    rows = torch.cat(found)
    if not bool(rows.any()):
        release.check_at_rest(point[None])
    return rows
