"""Algorithm 1 of the paper, for many examples at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import checked
from .lsqr import minimum_norm_solutions
from .release import plain_attention


def perturbation(features: Callable[[Any], Tensor], inputs: Tensor, start: Tensor, *, repetitions: int) -> Tensor:
    """Algorithm 1 as printed: a change of each input that moves its features little for its size.

    Each repetition solves min ‖J ε − z‖ by LSQR, z being the features' last shift scaled back to the length of the
    start. In exact arithmetic the first repetition gives ε = J⁺z and a shift JJ⁺z, from which the second finds the
    same direction again: repetitions change nothing but rounding, the early stop of LSQR, and what the model's
    curvature does. Examples are independent systems: each has its own LSQR, with its own stopping tests.
    """
    checked.whole("repetitions", repetitions, at_least=1, remedy="use 10")
    shape = inputs.shape

    def flat(rows: Tensor) -> Tensor:
        return features(rows.reshape(shape).clone()).reshape(len(rows), -1)  # a first layer may work in place

    point = inputs.reshape(len(inputs), -1)
    length = start.norm(dim=1, keepdim=True)
    shift, change = start, torch.zeros_like(point)
    with plain_attention():
        base, transposed = torch.func.vjp(flat, point)[:2]
        for _ in range(repetitions):
            scale = shift.norm(dim=1, keepdim=True)
            target = shift * (length / torch.where(scale == 0, torch.ones_like(scale), scale))
            change = minimum_norm_solutions(
                lambda v: torch.func.jvp(flat, (point,), (v,))[1], lambda w: transposed(w)[0], target
            )
            with torch.no_grad():
                shift = flat(point + change) - base
    return change.detach().reshape(shape)
