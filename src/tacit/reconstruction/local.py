"""What the Jacobian says about an input: a diagnostic, never a guarantee."""

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
from .noise import Noise, checked_noise
from .release import Release, as_array, derivatives, open_release

_Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalLimit:
    """The Cramér–Rao limit at each input. Real inputs sit on kinks (pooling ties, zeros of ReLU), where it is wrong.

    `rank` of the Jacobian; per mode `null_energy`, the share of the mode that the features do not feel at all to first
    order, and `identifiable_std`, the limit of the rest. Where the null energy is not zero, no unbiased estimator
    exists to first order.
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
) -> LocalLimit:
    """Rank, null energy and identifiable part from the Jacobian. Gaussian noise only.

    Singular values up to `rtol` of the greatest count as zero.
    """
    checked_noise(noise)
    release = open_release(features, inputs, feature_error=feature_error)
    modes = basis_of(basis, release.shape, release.inputs.device)
    rtol = validate.probability("rtol", rtol, remedy="use 1e-8")
    ranks, null, identifiable = [], [], []
    for point in release.inputs:
        jacobian = noise.whitened(_jacobian_rows(release, point, modes))  # one mode a row
        driver = "gesvd" if jacobian.is_cuda else None  # the default does not converge on many equal singular values
        left, values, _ = torch.linalg.svd(jacobian, full_matrices=False, driver=driver)
        kept = values > rtol * values[0]
        energy = left[:, kept].square()
        ranks.append(int(kept.sum()))
        null.append(as_array((1 - energy.sum(dim=1)).clamp(min=0)).reshape(release.shape))
        identifiable.append(as_array((energy / values[kept].square()).sum(dim=1).sqrt()).reshape(release.shape))
    return LocalLimit(rank=np.array(ranks), null_energy=np.stack(null), identifiable_std=np.stack(identifiable))


def _jacobian_rows(release: Release, point: Tensor, modes: Basis) -> Tensor:
    """How the features change with each mode, one mode a row; refused where the model hides its derivative."""

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
