"""The private records of one fit, and which of them teach, test or lose their labels and become public.

Keyed hashes of whose records they are decide it, never labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .owners import order, parts

_HELD_OUT = 5
"""One record in this many is set aside for the error estimate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Divided:
    """Records by their part in a fit.

    Attributes
    ----------
    records, labels, owners
        All of them, whatever their part, and whose each is.
    by_id
        Whether owners are ids that were given, and what one of them has is protected together.
    places
        Where each was given.
    private
        Which keep their labels; the others become public.
    held_out
        Which of the private ones test teachers; the others teach.
    key
        The key of the hashes.
    """

    records: NDArray[np.float64]
    labels: NDArray[Any]
    owners: list[bytes]
    by_id: bool
    places: NDArray[np.int64]
    private: NDArray[np.bool_]
    held_out: NDArray[np.bool_]
    key: bytes

    @property
    def taught(self) -> NDArray[np.bool_]:
        """Which of them teach, or vote."""
        return self.private & ~self.held_out

    @property
    def voters(self) -> int:
        """The number of private records, or of people if there are ids."""
        return len(set(self.owned(self.private))) if self.by_id else int(self.private.sum())

    def owned(self, chosen: NDArray[np.bool_]) -> list[bytes]:
        """Whose each of some records is."""
        return [self.owners[row] for row in np.flatnonzero(chosen)]

    def people(self, chosen: NDArray[np.bool_]) -> list[bytes] | None:
        """The same; None without ids."""
        return self.owned(chosen) if self.by_id else None

    def testers(self, teachers: int) -> NDArray[np.int64]:
        """The number of the teacher that each held-out record tests."""
        return parts(self.owners, self.key, b"tacit tester", teachers)[self.held_out]


def divided(
    records: NDArray[np.float64],
    labels: NDArray[Any],
    owners: list[bytes],
    *,
    by_id: bool,
    key: bytes,
    publishing: bool,
    testing: bool,
) -> Divided:
    """Records by their part; `publishing` makes half of them public, `testing` sets some aside to test teachers."""
    places, private = np.arange(len(records)), np.ones(len(records), dtype=bool)
    if publishing:
        places = order(records, key)  # before anything else sees them: the order they came in may tell labels
        records, labels, owners = records[places], labels[places], [owners[row] for row in places]
        private = parts(owners, key, b"tacit public", 2) == 0
    held_out = np.zeros(len(records), dtype=bool)
    if testing:
        held_out = private & (parts(owners, key, b"tacit held out", _HELD_OUT) == 0)
    return Divided(
        records=records,
        labels=labels,
        owners=owners,
        by_id=by_id,
        places=places,
        private=private,
        held_out=held_out,
        key=key,
    )
