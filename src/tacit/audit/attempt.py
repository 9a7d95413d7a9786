"""What one attack on a table reached: its advantage, the rates of its rule, and its ROC curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.guarantee import Attack
from ..core.rounding import down, up
from ..theory.confidence import binomial_lower, binomial_upper

METHODS = {
    "threshold": "threshold on one column",
    "histogram": "histogram of the output",
    "boosting": "gradient boosting",
    "network": "two-layer tanh network",
}


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How often a fixed rule said "positive" on rows of either class.

    All four limits (Clopper–Pearson) hold together except with probability `failure_probability`.
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
        """The share of negative rows for which it gave a false alarm, ties with the threshold among them."""
        return self.false_positives / self.negatives

    @property
    def true_positive_limits(self) -> tuple[float, float]:
        """A lower and an upper limit of its true positive rate."""
        return rate_limits(self.true_positives, self.positives, self.failure_probability / 4)

    @property
    def false_positive_limits(self) -> tuple[float, float]:
        """A lower and an upper limit of its false positive rate."""
        return rate_limits(self.false_positives, self.negatives, self.failure_probability / 4)

    @property
    def advantage(self) -> tuple[float, float, float]:
        """TPR − FPR as seen, and its limits."""
        (hit_low, hit_high), (alarm_low, alarm_high) = self.true_positive_limits, self.false_positive_limits
        seen = self.true_positive_rate - self.false_positive_rate
        return seen, min(seen, down(hit_low - alarm_high)), max(seen, up(hit_high - alarm_low))

    @property
    def epsilon_lower(self) -> float:
        """No release with a smaller ε, at δ = 0, has these rates: the best of ln TPR/FPR and ln TNR/FNR, both ways."""
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
class Attempt:
    """What one attack reached on rows that it was neither fitted to nor chosen on.

    attack         its advantage, comparable with the certificate's
    rates          those of the rule behind it
    at_rates       for each false positive rate aimed at, what was realised: ties make it differ
    epsilon        the largest ε that a rule, chosen for it, shows
    roc            false and true positive rates of all thresholds on the test rows, for pictures
    calibration    (guessed probability, its share of positives, lower, upper limit) for groups of test rows, both
                   classes weighted alike; empty where the attack guesses no probability
    """

    method: str
    attack: Attack
    rates: Rates
    at_rates: tuple[tuple[float, Rates], ...]
    epsilon: float
    roc: tuple[tuple[float, float], ...]
    calibration: tuple[tuple[float, float, float, float], ...]

    @property
    def name(self) -> str:
        """The method in words."""
        return METHODS[self.method]

    def _repr_html_(self) -> str:
        return self.attack._repr_html_()


def rate_limits(count: int, total: int, failure: float) -> tuple[float, float]:
    """Clopper–Pearson limits of a share, each wrong with probability `failure` at most."""
    return (
        binomial_lower(count, trials=total, failure_probability=failure),
        binomial_upper(count, trials=total, failure_probability=failure),
    )
