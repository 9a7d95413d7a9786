"""Attacks on a table: how well real adversaries tell the secret from the output, on rows they were not fitted to.

`attempts` runs all attacks that fit the output: each is fitted, its rule chosen, and tested on three parts of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Attack
from .attempt import METHODS, Attempt, Rates, rate_limits
from .certificate import Certificate
from .columns import column, output_columns, spelled_numbers
from .learners import LEARNERS, fitting, roc_counts

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)

LEAST_ROWS = 30
"""Of each class: with fewer, no part of the table is large enough to show anything."""

_MOST_POINTS = 200  # of a ROC curve that is drawn
_OWN_STREAM = 0x7AC17  # noise must not repeat the draws of a table that was simulated with the same seed
_FIT, _CHOICE = 1 / 3, 1 / 6  # of the rows; the other half tests

_Floats = NDArray[np.float64]


def attempts(
    secret: object,
    output: object,
    *,
    certificate: Certificate,
    noise: float | None = None,
    methods: Sequence[str] | None = None,
    failure_probability: float = 0.005,
    seed: int = 0,
) -> tuple[Attempt, ...]:
    """Attacks on the output that the certificate is about, best first.

    A third of the rows fits an attack, a sixth chooses its threshold, and the other half tests it. All intervals of
    advantages hold together except with probability `failure_probability`; those of `at_rates` and `epsilon` do so
    too, each kind on its own. `noise` is what the certificate was made with: it is drawn afresh and added, since the
    adversary sees the sum. Without `methods` all are tried that fit, the network where torch is installed.
    """
    failure = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.005")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    if not isinstance(certificate, Certificate):
        raise InputError("certificate", certificate, requirement="must be a Certificate", remedy="call certify first")
    if (noise is not None) != (certificate.method == "noisy"):
        raise InputError(
            "noise",
            noise,
            requirement="must be given where the certificate is of an output with noise, and only there",
            remedy="pass what certify was given",
        )
    secrets = column("secret", secret)
    columns = output_columns(output, rows=len(secrets))
    labels = secrets == certificate.positive
    if not bool((labels | (secrets == certificate.negative)).all()):
        raise InputError(
            "secret",
            "others",
            requirement=f"must be {certificate.negative!r} or {certificate.positive!r}, as in the certificate",
            remedy="pass the table that was certified, or rows of its kind",
        )
    for label, rows in ((True, int(labels.sum())), (False, int((~labels).sum()))):
        if rows < LEAST_ROWS:
            raise InputError(
                "secret",
                f"{rows} rows of {certificate.positive if label else certificate.negative!r}",
                requirement=f"must have {LEAST_ROWS} rows of each class or more for attacks",
                remedy="add rows, or leave attacks out",
            )
    rng = np.random.default_rng([seed, _OWN_STREAM])
    if noise is not None:
        scale = validate.number("noise", noise, above=0, remedy="use None for no noise")
        columns = [one + scale * rng.standard_normal(len(one)) for one in columns]
    # Who sees text that spells numbers sees the numbers as well.
    spelled = [spelled_numbers(one) for one in columns if one.dtype.kind == "U"]
    columns += [one for one in spelled if one is not None]
    chosen = fitting(columns) if methods is None else tuple(methods)
    for method in chosen:
        validate.choice("method", method, tuple(METHODS), remedy="leave methods out for all that fit")
    parts = _parts(labels, rng)
    found = [
        _attempt(method, columns, labels, parts, certificate, failure / max(1, len(chosen)), seed) for method in chosen
    ]
    return tuple(sorted(found, key=lambda attempt: -attempt.attack.low))


def _parts(labels: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Rows to fit on, to choose a rule on, and to test on, with both classes in each."""
    pieces: list[list[NDArray[np.int64]]] = [[], [], []]
    for label in (False, True):
        rows = rng.permutation(np.flatnonzero(labels == label))
        edges = [int(len(rows) * _FIT), int(len(rows) * (_FIT + _CHOICE))]
        for piece, held in zip(pieces, np.split(rows, edges), strict=True):
            piece.append(held)
    return tuple(np.concatenate(piece) for piece in pieces)


def _attempt(
    method: str,
    columns: list[NDArray[Any]],
    labels: NDArray[np.bool_],
    parts: tuple[NDArray[np.int64], ...],
    certificate: Certificate,
    failure: float,
    seed: int,
) -> Attempt:
    fit, choice, test = parts
    score = LEARNERS[method]([one[fit] for one in columns], labels[fit], seed)
    chosen, tested = (score([one[rows] for one in columns]) for rows in (choice, test))
    thresholds, hits, alarms = roc_counts(chosen, labels[choice])
    positives, negatives = int(hits[-1]), int(alarms[-1])

    def measured(place: int, share: float) -> Rates:
        said = tested >= thresholds[place]
        truth = labels[test]
        return Rates(
            true_positives=int((said & truth).sum()),
            positives=int(truth.sum()),
            false_positives=int((said & ~truth).sum()),
            negatives=int((~truth).sum()),
            failure_probability=share,
        )

    rates = measured(int(np.argmax(hits / positives - alarms / negatives)), failure)
    at_rates = []
    for aim in FALSE_POSITIVE_RATES:
        # The first point is a rule that never says "positive".
        place = int(np.searchsorted(alarms, aim * negatives + 1e-9, side="right")) - 1
        at_rates.append((aim, measured(place, failure / len(FALSE_POSITIVE_RATES))))
    loudest = measured(_loudest(hits, alarms, failure), failure)
    value, low, high = rates.advantage
    attack = Attack(
        quantity=certificate.quantity("advantage"),
        value=value,
        low=low,
        high=high,
        failure_probability=failure,
        adversary=certificate.guarantee.adversary,
        method=f"{METHODS[method]} (fitted to {len(fit)} rows, rule chosen on {len(choice)}, tested on {len(test)}: "
        f"TPR {rates.true_positive_rate:.4f}, FPR {rates.false_positive_rate:.4f})",
    )
    return Attempt(
        method=method,
        attack=attack,
        rates=rates,
        at_rates=tuple(at_rates),
        epsilon=loudest.epsilon_lower,
        roc=_roc(tested, labels[test]),
        calibration=() if method == "threshold" else _calibration(tested, labels[test], failure),
    )


def _loudest(hits: NDArray[np.int64], alarms: NDArray[np.int64], failure: float) -> int:
    """The threshold whose limit for ε is largest on the rows that choose."""
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
    """Ten groups of test rows, alike in size, by the guess; all limits together except with probability `failure`."""
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
