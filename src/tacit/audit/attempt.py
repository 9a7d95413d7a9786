"""What one attack on a table reached: its advantage, the rates of its rule, and its ROC curve."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from ..core.encoding import Encodable, decoded
from ..core.guarantee import Attack
from ..core.rounding import down, up
from ..theory.confidence import binomial_lower, binomial_upper

LEARNER_NAMES = {
    "threshold": "threshold on one column",
    "histogram": "histogram of the output",
    "boosting": "gradient boosting",
    "network": "two-layer tanh network",
}


@dataclass(frozen=True, kw_only=True)
class Rates(Encodable):
    """How often a fixed rule said "positive" on rows of either class.

    All four limits (Clopper–Pearson) hold together except with probability `failure_probability`.

    Attributes
    ----------
    true_positives, positives
        Positive rows that the rule found, and how many there were.
    false_positives, negatives
        Negative rows that the rule called positive, and how many there were.
    failure_probability
        The chance that one of the limits is false.
    """

    true_positives: int
    positives: int
    false_positives: int
    negatives: int
    failure_probability: float

    @property
    def true_positive_rate(self) -> float:
        """The share of positive rows that the rule found."""
        return self.true_positives / self.positives

    @property
    def false_positive_rate(self) -> float:
        """The share of negative rows that the rule called positive."""
        return self.false_positives / self.negatives

    @property
    def true_positive_limits(self) -> tuple[float, float]:
        """A lower and an upper limit of the true positive rate."""
        return rate_limits(self.true_positives, self.positives, self.failure_probability / 4)

    @property
    def false_positive_limits(self) -> tuple[float, float]:
        """A lower and an upper limit of the false positive rate."""
        return rate_limits(self.false_positives, self.negatives, self.failure_probability / 4)

    @property
    def advantage(self) -> tuple[float, float, float]:
        """TPR − FPR as measured, and its lower and upper limit."""
        (hit_low, hit_high), (alarm_low, alarm_high) = self.true_positive_limits, self.false_positive_limits
        seen = self.true_positive_rate - self.false_positive_rate
        return seen, min(seen, down(hit_low - alarm_high)), max(seen, up(hit_high - alarm_low))

    @property
    def epsilon_lower(self) -> float:
        """A lower limit of ε: no release with a smaller ε, at δ = 0, has these rates."""
        (hit_low, hit_high), (alarm_low, alarm_high) = self.true_positive_limits, self.false_positive_limits
        pairs = (
            (hit_low, alarm_high),
            (1 - alarm_high, 1 - hit_low),
            (alarm_low, hit_high),  # a rule that finds the negative class shows as much
            (1 - hit_high, 1 - alarm_low),
        )
        shown = [down(math.log(likely / unlikely), relative=1e-12) for likely, unlikely in pairs if likely > 0]
        return max(0.0, *shown)


@dataclass(frozen=True, kw_only=True)
class Attempt(Attack):
    """An attack on a table, measured on rows that it was neither fitted to nor chosen on.

    It is an `Attack` whose value is the advantage, comparable with the certificate's guarantee. A `Comparison` keeps
    what every attack states, and leaves the rest out.

    Attributes
    ----------
    learner
        What was fitted: "threshold", "histogram", "boosting" or "network".
    rates
        The rates of the rule behind the advantage.
    at_rates
        For each false positive rate that was aimed at, the rates that a rule chosen for it reached; ties may make its
        false positive rate differ from the aim.
    epsilon
        The largest ε that a rule chosen for it shows.
    roc
        False and true positive rates of all thresholds on the test rows, for pictures.
    calibration
        For groups of test rows: the guessed probability, the share of positives, and its lower and upper limit, both
        classes weighted alike; empty where the attack guesses no probability.
    """

    learner: str
    rates: Rates
    at_rates: tuple[tuple[float, Rates], ...]
    epsilon: float
    roc: tuple[tuple[float, float], ...]
    calibration: tuple[tuple[float, float, float, float], ...]

    @property
    def name(self) -> str:
        """The learner in words."""
        return LEARNER_NAMES[self.learner]

    @property
    def attack(self) -> Attempt:
        """The attempt itself, which is an `Attack`; this property will be removed."""
        warnings.warn("Attempt.attack will be removed; an Attempt is an Attack", DeprecationWarning, stacklevel=2)
        return self

    @classmethod
    def _field_from_dict(cls, name: str, value: object) -> Any:
        if name == "rates":
            return Rates.from_dict(value)
        if name == "at_rates" and isinstance(value, list):
            return tuple((decoded(aim), Rates.from_dict(rates)) for aim, rates in value)
        if name in ("roc", "calibration") and isinstance(value, list):
            return tuple(tuple(decoded(point)) for point in value)
        return super()._field_from_dict(name, value)


def rate_limits(count: int, total: int, failure: float) -> tuple[float, float]:
    """Clopper–Pearson limits of a share, each wrong with probability `failure` at most."""
    return (
        binomial_lower(count, trials=total, failure_probability=failure),
        binomial_upper(count, trials=total, failure_probability=failure),
    )
