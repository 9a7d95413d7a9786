"""How one fit splits its budget: for the number of records and for classes, where these are read, and for answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from ..core import validate
from ..core.rounding import down, up
from .interrupted import Cost
from .labels import Search
from .mechanisms import Mechanism

ANSWERS = "PrivateClassifier.fit"
COUNT = "PrivateClassifier.fit, the number of records with noise"
CLASSES = "PrivateClassifier.fit, the classes with noise"
"""What entries of a ledger pay for."""

_COUNT = 100
"""One part of so many of ε buys the number of records, where that says how many teachers there are."""
_CLASSES_EPSILON, _CLASSES_DELTA = 20, 10
"""One part of so many of ε, and of δ, buys the classes, where nobody named them."""
LEAST = 1e-7
"""The least ε of which a share still buys anything."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The parts of (ε, δ); a mechanism that the caller has made has a cost of its own.

    ε, from `least` on, and δ may be numbers of any type: they become floats before they are shared out.
    """

    epsilon: float
    delta: float
    counting: bool = False
    finding: bool = False
    mechanism: Mechanism | None = None
    least: float = 1e-9

    def __post_init__(self) -> None:
        least, remedy = self.least, "use about 1"
        if self.counting or (self.finding and least < LEAST):
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
        return self.epsilon / _COUNT if self.counting else 0.0

    @property
    def classes(self) -> tuple[float, float]:
        """The ε and δ of the classes."""
        return (self.epsilon / _CLASSES_EPSILON, self.delta / _CLASSES_DELTA) if self.finding else (0.0, 0.0)

    def search(self, *, label_private: bool) -> Search:
        """For classes: a record more changes one count, a label that is changed two."""
        epsilon, delta = self.classes
        return Search(epsilon=epsilon, delta=delta, changed=2 if label_private else 1)

    @property
    def left(self) -> tuple[float, float]:
        """The ε that is left for the error estimate and the mechanism, and the δ."""
        epsilon, delta = self.classes
        return (
            down(down(self.epsilon - self.count) - epsilon) if self.counting or self.finding else self.epsilon,
            down(self.delta - delta) if self.finding else self.delta,
        )

    @property
    def whole(self) -> tuple[float, float]:
        """All that one fit costs."""
        if self.mechanism is None:
            return self.epsilon, self.delta
        epsilon, delta = self.classes
        return _sum(self.mechanism.epsilon, self.count, epsilon), _sum(self.mechanism.delta, delta)

    def costs(self, neighbours: str) -> list[Cost]:
        """What a ledger is to pay, in order; the answers come last."""
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


def _sum(first: float, *others: float) -> float:
    """Rounded up; what is 0 changes nothing."""
    total = float(first)
    for amount in others:
        total = up(total + amount) if amount else total
    return total


def _exact(amount: float) -> Decimal:
    return Decimal(repr(float(amount)))
