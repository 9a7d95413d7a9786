"""What the paper's two algorithms share: both compare the votes to flip, with noise, with a threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.guarantee import Guarantee
from .expectations import Floats, Votes
from .kind import PlannedKind
from .session import Answer, Noise, Session


@dataclass(frozen=True, kw_only=True)
class Thresholded(ABC):
    """A mechanism that answers a query if its noisy votes to flip exceed a threshold."""

    epsilon: float
    delta: float

    @property
    @abstractmethod
    def threshold(self) -> int:
        """The number of votes to flip around which refusals end."""

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: where it is loaded, by another version perhaps, constants are computed anew."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    @abstractmethod
    def spread(self) -> float:
        """The scale of the noise of the votes to flip."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of one session."""

    @abstractmethod
    def response(self, counts: NDArray[np.int64], session: Session) -> Answer:
        """The answer to one query; only sessions call it."""

    @abstractmethod
    def finished(self, session: Session) -> bool:
        """Whether the session has stopped."""

    def session(self, noise: Noise | None = None) -> Session:
        """Begin one run."""
        return Session(self, noise)

    @property
    def undecided(self) -> tuple[int, int]:
        """Two top counts at the threshold."""
        return 2 * self.threshold + 2, 0


class ThresholdedKind(PlannedKind):
    """A kind of such mechanisms."""

    @abstractmethod
    def exceeds(self, gap: Floats, scale: float, refusals: int | None) -> Floats:
        """The probability that the noise exceeds each gap."""

    def chances(
        self, votes: Votes, *, noise: float, threshold: int | None, refusals: int | None
    ) -> tuple[Floats, Floats]:
        """The winner where the noisy votes to flip exceed the threshold."""
        return self.exceeds((threshold or 0) - votes.distance, noise, refusals), votes.right
