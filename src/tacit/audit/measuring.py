"""What a fitted score reaches: rules are chosen on some rows and measured on others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .attempt import LEARNER_NAMES, Attempt, Rates, rate_limits
from .certificate import Certificate
from .learners import roc_counts

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
"""What rules aim at."""

_MOST_POINTS = 200  # of a ROC curve that is drawn

_Floats = NDArray[np.float64]
_Scored = tuple[_Floats, NDArray[np.bool_]]


def measured(
    learner: str, choice: _Scored, test: _Scored, *, fitted: int, certificate: Certificate, failure: float
) -> Attempt:
    """The attempt of a learner, from its scores and the labels of the rows that choose and of those that test.

    Each kind of limit (of the advantage, of `at_rates`, of ε) fails with probability `failure` at most.
    """
    scores, labels = test
    thresholds, hits, alarms = roc_counts(*choice)
    positives, negatives = int(hits[-1]), int(alarms[-1])

    def rates_at(place: int, share: float) -> Rates:
        said = scores >= thresholds[place]
        return Rates(
            true_positives=int((said & labels).sum()),
            positives=int(labels.sum()),
            false_positives=int((said & ~labels).sum()),
            negatives=int((~labels).sum()),
            failure_probability=share,
        )

    rates = rates_at(int(np.argmax(hits / positives - alarms / negatives)), failure)
    at_rates = []
    for aim in FALSE_POSITIVE_RATES:
        # The first point is a rule that never says "positive".
        place = int(np.searchsorted(alarms, aim * negatives + 1e-9, side="right")) - 1
        at_rates.append((aim, rates_at(place, failure / len(FALSE_POSITIVE_RATES))))
    value, low, high = rates.advantage
    return Attempt(
        quantity=certificate.quantity("advantage"),
        value=value,
        low=low,
        high=high,
        failure_probability=failure,
        adversary=certificate.guarantee.adversary,
        method=f"{LEARNER_NAMES[learner]} (fitted to {fitted} rows, rule chosen on {len(choice[1])}, tested on "
        f"{len(labels)}: TPR {rates.true_positive_rate:.4f}, FPR {rates.false_positive_rate:.4f})",
        learner=learner,
        rates=rates,
        at_rates=tuple(at_rates),
        epsilon=rates_at(_largest_epsilon(hits, alarms, failure), failure).epsilon_lower,
        roc=_roc(scores, labels),
        calibration=() if learner == "threshold" else _calibration(scores, labels, failure),
    )


def _largest_epsilon(hits: NDArray[np.int64], alarms: NDArray[np.int64], failure: float) -> int:
    """The place of the threshold with the largest lower limit for ε on the rows that choose."""
    positives, negatives = int(hits[-1]), int(alarms[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        hit_low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), positives - hits + 1, failure / 4), 0.0)
        alarm_high = np.where(
            alarms < negatives,
            special.betaincinv(alarms + 1, np.maximum(negatives - alarms, 1), 1 - failure / 4),
            1.0,
        )
        loss = np.maximum(np.log(hit_low / alarm_high), np.log((1 - alarm_high) / (1 - hit_low)))
    return int(np.argmax(np.where(np.isfinite(loss), loss, -np.inf)))


def _roc(scores: _Floats, labels: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    _, hits, alarms = roc_counts(scores, labels)
    places = np.unique(np.linspace(0, len(hits) - 1, _MOST_POINTS).astype(int))
    return tuple(zip((alarms[places] / alarms[-1]).tolist(), (hits[places] / hits[-1]).tolist(), strict=True))


def _calibration(
    guesses: _Floats, labels: NDArray[np.bool_], failure: float
) -> tuple[tuple[float, float, float, float], ...]:
    """Ten groups of test rows by their guess, of about equal size; all limits fail together with `failure` at most."""
    edges = np.unique(np.quantile(guesses, np.linspace(0, 1, 11)[1:-1]))
    groups = np.searchsorted(edges, guesses, side="right")
    kinds = np.unique(groups)
    found = []
    for group in kinds.tolist():
        inside = groups == group
        shares, limits = [], []
        for truth in (labels, ~labels):
            count, total = int((inside & truth).sum()), int(truth.sum())
            shares.append(count / total)
            limits.append(rate_limits(count, total, failure / (4 * len(kinds))))
        (low, high), (other_low, other_high) = limits
        found.append(
            (
                float(guesses[inside].mean()),
                shares[0] / (shares[0] + shares[1]),
                low / (low + other_high),
                high / (high + other_low),
            )
        )
    return tuple(found)
