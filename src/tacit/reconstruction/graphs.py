"""A function of fixed shape, recorded once on a GPU and replayed, so that small operations do not wait for Python."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_WARM_UP = 3
_AGREE = 0.5
"""How far a replay may lie from what it was recorded from, relatively; TF32 moves forces by some percent."""


class Recorded:
    """A function of tensors whose first axis is their rows; every call is a replay with the same number of them."""

    def __init__(self, function: Callable[..., Tensor], examples: tuple[Tensor, ...], rows: int) -> None:
        self.rows = rows
        self._inputs = [_filled(given, rows) for given in examples]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                function(*self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._output = function(*self._inputs)

    @classmethod
    def of(cls, function: Callable[..., Tensor], examples: tuple[Tensor, ...], rows: int) -> Recorded | None:
        """The function recorded; None for one that cannot be, or whose replay differs from it."""
        try:
            found, expected = cls(function, examples, rows), function(*examples)
            apart = float((found(*examples) - expected).norm())
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:  # the caller's model may do anything that a graph cannot hold
            torch.cuda.synchronize()
            return None
        return found if apart <= _AGREE * float(expected.norm()) else None

    def __call__(self, *given: Tensor) -> Tensor:
        count, parts = len(given[0]), []
        for first in range(0, count, self.rows):
            some = min(self.rows, count - first)
            for kept, rows in zip(self._inputs, given, strict=True):
                kept[:some].copy_(rows[first : first + some])
            self._graph.replay()
            parts.append(self._output[:some].clone())
        return torch.cat(parts)


def _filled(given: Tensor, rows: int) -> Tensor:
    """The first rows of a tensor, repeated where there are fewer."""
    times = -(-rows // len(given))
    return given.repeat(times, *[1] * (given.ndim - 1))[:rows].clone()
