"""Check whether numbers can hold Gaussian noise: noise makes the means of e^(itY) small."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..theory.certificates import characteristic_limit

_FREQUENCIES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)  # per standard deviation of the noise
_COARSEST, _FINEST = 2.0, 1e-3  # of the decimal grids looked for, in standard deviations
_BLOCK = 2**16
FALSE_ALARM = 1e-6
"""The chance that numbers which do hold the noise are refused."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Waves:
    """Sums of e^(itY) for each column, frequency t and class, and the rows of each class."""

    noise: float
    sums: NDArray[np.complex128]
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls, columns: list[NDArray[Any]], classes: NDArray[np.int64], counts: NDArray[np.int64], noise: float
    ) -> Self:
        """The sums over rows; `counts` says how many rows each stands for."""
        frequencies = cls.frequencies(noise)
        sums = np.zeros((len(columns), len(frequencies), 2), dtype=np.complex128)
        for start in range(0, len(classes), _BLOCK):
            part = slice(start, start + _BLOCK)
            weights = np.stack([counts[part] * (classes[part] == label) for label in (0, 1)], axis=1).astype(np.float64)
            for place, one in enumerate(columns):
                with np.errstate(over="ignore", invalid="ignore"):
                    phases = np.outer(frequencies, one[part].astype(np.float64))
                    cosines, sines = np.cos(phases), np.sin(phases)
                known = np.isfinite(phases)
                if not known.all():
                    cosines, sines = np.where(known, cosines, 0), np.where(known, sines, 0)
                sums[place] += cosines @ weights + 1j * (sines @ weights)
        rows = np.array([counts[classes == label].sum() for label in (0, 1)], dtype=np.int64)
        return cls(noise=noise, sums=sums, rows=rows)

    @staticmethod
    def frequencies(noise: float) -> NDArray[np.float64]:
        """Frequencies around the noise's own, and those at which rounded numbers stand out, by the noise alone."""
        coarse, fine = (math.log10(noise * reach) for reach in (_COARSEST, _FINEST))
        decimals = [2 * math.pi / 10.0**power for power in range(math.ceil(fine), math.floor(coarse) + 1)]
        return np.array([*(frequency / noise for frequency in _FREQUENCIES), *decimals])

    def with_others(self, other: Waves) -> Waves:
        """The sums over both sets of rows."""
        return Waves(noise=self.noise, sums=self.sums + other.sums, rows=self.rows + other.rows)

    def placed(self, place: list[int]) -> Waves:
        """The same sums with the classes in another order."""
        sums, rows = np.zeros_like(self.sums), np.zeros_like(self.rows)
        sums[..., place], rows[place] = self.sums[..., : len(place)], self.rows[: len(place)]
        return Waves(noise=self.noise, sums=sums, rows=rows)

    @property
    def refuted(self) -> bool:
        """Whether the numbers of a class cannot hold the noise; wrong with probability `FALSE_ALARM` at most."""
        share = FALSE_ALARM / self.sums.size
        return self._beyond(
            self.sums.shape[1],
            lambda frequency, rows: characteristic_limit(
                frequency, noise=self.noise, count=rows, failure_probability=share
            ),
        )

    @property
    def likely(self) -> bool:
        """Whether the numbers look as if they held the noise: a rule of thumb, within three standard deviations."""
        return not self._beyond(
            len(_FREQUENCIES),
            lambda frequency, rows: math.exp(-((self.noise * frequency) ** 2) / 2) + 3 / math.sqrt(rows),
        )

    def _beyond(self, count: int, limit: Any) -> bool:
        """Whether a mean exceeds its limit at one of the first `count` frequencies."""
        for label in (0, 1):
            rows = int(self.rows[label])
            for place, frequency in enumerate(self.frequencies(self.noise)[:count].tolist()):
                if rows and (np.abs(self.sums[:, place, label]) / rows > limit(frequency, rows)).any():
                    return True
        return False
