"""A random part of a table that is read in batches, with as many rows of either class, for attacks and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Sample:
    """A uniform sample of rows of each class: those with the smallest random numbers."""

    def __init__(self, rows: int, seed: int) -> None:
        self._most, self._rng = rows // 2, np.random.default_rng([seed, rows])
        self._kept: dict[Any, tuple[NDArray[np.float64], list[NDArray[Any]]]] = {}

    @classmethod
    def of_all(cls, rows: int, seed: int) -> Sample:
        """A uniform sample of all rows, which `add` has to be given one label for."""
        return cls(2 * rows, seed)

    def add(self, secrets: NDArray[Any], columns: list[NDArray[Any]], counts: NDArray[np.int64] | None) -> None:
        """Offer the rows of a batch; `counts` says how many rows each stands for, one by default."""
        if not self._most:
            return
        places = np.arange(len(secrets)) if counts is None else np.repeat(np.arange(len(secrets)), counts)
        chances, labels = self._rng.random(len(places)), secrets[places]
        while len(labels):
            label = labels[0].item()
            here = labels == label
            before, kept = self._kept.get(label, (np.zeros(0), [one[:0] for one in columns]))
            ceiling = before.max() if len(before) == self._most else 1.0
            better = here & (chances < ceiling)
            keys = np.concatenate([before, chances[better]])
            rows = [np.concatenate([old, new[places[better]]]) for old, new in zip(kept, columns, strict=True)]
            if len(keys) > self._most:
                best = np.argpartition(keys, self._most)[: self._most]
                keys, rows = keys[best], [one[best] for one in rows]
            self._kept[label] = keys, rows
            places, chances, labels = places[~here], chances[~here], labels[~here]

    def table(self, share: float = 1.0) -> tuple[NDArray[Any], dict[int, NDArray[Any]]]:
        """Secrets and columns of the sample, or of a random share of it."""
        secrets, columns = [], []
        for label, (keys, rows) in self._kept.items():
            best = np.argsort(keys)[: max(1, round(share * len(keys)))]
            secrets.append(np.full(len(best), label))
            columns.append([one[best] for one in rows])
        joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        return np.concatenate(secrets), dict(enumerate(joined))

    @property
    def fewest(self) -> int:
        """Rows of the smaller class."""
        return min((len(keys) for keys, _ in self._kept.values()), default=0)

    @property
    def rows(self) -> int:
        """Rows of both classes together."""
        return sum(len(keys) for keys, _ in self._kept.values())
