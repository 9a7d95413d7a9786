"""How one fit divides its budget among the number of records, the classes and the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from ..core import validate
from ..core.rounding import down
from ..theory.accounting import basic_composition
from .interrupted import Cost
from .labels import Search
from .mechanisms import Mechanism

ANSWERS = "PrivateClassifier.fit"
COUNT = "PrivateClassifier.fit, the number of records with noise"
CLASSES = "PrivateClassifier.fit, the classes with noise"
"""What the entries of a ledger are called."""

_COUNT = 100
"""ε divided by this pays for the number of records, if that decides the number of teachers."""
_CLASSES_EPSILON, _CLASSES_DELTA = 20, 10
"""ε and δ divided by these pay for the classes, if nobody named them."""
LEAST = 1e-7
"""The smallest ε whose shares are of any use."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The parts of (ε, δ). A mechanism that the caller has made has a cost of its own.

    ε, at least `least`, and δ may be numbers of any type; they become floats before they are divided.
    """

    epsilon: float
    delta: float
    counting: bool = False
    finding: bool = False
    mechanism: Mechanism | None = None
    least: float = 1e-9

    def __post_init__(self) -> None:
        least, remedy = self.least, "use about 1"
        if (self.counting or self.finding) and least < LEAST:
            least, remedy = LEAST, "use about 1, or say n_teachers and classes"
        epsilon = validate.budget("epsilon", self.epsilon, at_least=least, at_most=1e4, remedy=remedy)
        delta = validate.budget(
            "delta", self.delta, above=0, below=1, remedy="use about 1/n², e.g. 1e-10 for 100000 records"
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @property
    def count(self) -> float:
        """The ε of the number of records."""
        return _part(self.epsilon, _COUNT) if self.counting else 0.0

    @property
    def classes(self) -> tuple[float, float]:
        """The ε and δ of the classes."""
        if not self.finding:
            return 0.0, 0.0
        return _part(self.epsilon, _CLASSES_EPSILON), _part(self.delta, _CLASSES_DELTA)

    def search(self, *, labels_only: bool) -> Search:
        """The search for classes. One more record changes one count, a changed label two."""
        epsilon, delta = self.classes
        return Search(epsilon=epsilon, delta=delta, changed=2 if labels_only else 1)

    @property
    def left(self) -> tuple[float, float]:
        """The ε and δ that are left for the error estimate and the mechanism."""
        epsilon, delta = self.classes
        return (
            down(down(self.epsilon - self.count) - epsilon) if self.counting or self.finding else self.epsilon,
            down(self.delta - delta) if self.finding else self.delta,
        )

    @property
    def whole(self) -> tuple[float, float]:
        """The whole cost of one fit."""
        if self.mechanism is None:
            return self.epsilon, self.delta
        epsilon, delta = self.classes
        return (
            basic_composition([float(self.mechanism.epsilon), self.count, epsilon]),
            basic_composition([float(self.mechanism.delta), delta]),
        )

    def costs(self, neighbours: str) -> list[Cost]:
        """The costs for the ledger, in order; the answers come last."""
        parts = list(self._read())
        answers = self if self.mechanism is None else self.mechanism
        epsilon, delta = _exact(answers.epsilon), _exact(answers.delta)
        if self.mechanism is None:
            epsilon -= sum((part[1] for part in parts), Decimal(0))
            delta -= sum((part[2] for part in parts), Decimal(0))
        parts.append((ANSWERS, epsilon, delta))
        return [Cost(what=what, epsilon=e, delta=d, neighbours=neighbours) for what, e, d in parts]

    def _read(self) -> Iterator[tuple[str, Decimal, Decimal]]:
        if self.counting:
            yield COUNT, _exact(self.count), Decimal(0)
        if self.finding:
            epsilon, delta = self.classes
            yield CLASSES, _exact(epsilon), _exact(delta)


def _part(amount: float, parts: int) -> float:
    """One of equal parts, by decimal division: a tenth of 1e-05 is 1e-06, which floats miss by a digit."""
    return float(_exact(amount) / parts)


def _exact(amount: float) -> Decimal:
    return Decimal(repr(float(amount)))
