"""Attacks on membership by whoever holds the record: a score for every record, from models with and without it.

All scores are larger for records that the model was more likely trained on. A record has no score (nan), in any model,
if the attack is told whether it was used: nobody guesses what he is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .retraining import Retrained

_Floats = NDArray[np.float64]
_Score = Callable[[Retrained, Retrained], _Floats]

SHARED = 5.0
"""How many models the variance over all records counts for, beside those that estimate a record's own."""
_BETWEEN = 0.3
"""Between what a record's probability is on average without the record and 1: where RMIA supposes it to be with it."""
_TEMPERATURE = 2.0
_LEAST = 1e-12
_TOLD = 0x70D  # of the draw of records that an attack is told about, which is the same for all models
_MOST_ROWS, _MOST_COLUMNS = 1000, 64
"""Records that quantiles are fitted to, and columns of the records, those that vary most, that they may depend on."""


def likelihood_ratio(shadows: Retrained, target: Retrained) -> _Floats:
    """LiRA (Carlini and others 2022): with or without the record, by its logit in models of either kind.

    Each record has its own mean and variance. What is not known of them counts: the laws are Student's, and variances
    lean on that of all records.
    """
    logits, seen = _logits(shadows, target)
    return _student(seen, logits, shadows.inside) - _student(seen, logits, ~shadows.inside)


def without(shadows: Retrained, target: Retrained) -> _Floats:
    """LiRA offline: how far the logit lies above those of models without the record, in standard deviations."""
    logits, seen = _logits(shadows, target)
    mean, variance, _ = _moments(logits, ~shadows.inside)
    return (seen - mean) / np.sqrt(variance)


def relative(shadows: Retrained, target: Retrained) -> _Floats:
    """RMIA (Zarifzadeh, Liu and Shokri 2024): the share of other records whose probability has risen less.

    Risen, that is, above what it is on average over models with and without the record.
    """
    known, seen = shadows.softened, target.softened
    if known is None or seen is None:
        known, seen = _softened(shadows, target)
    usual = (_mean(known, shadows.inside) + _mean(known, ~shadows.inside)) / 2
    return _ranks(seen / np.maximum(usual, _LEAST))


def relative_without(shadows: Retrained, target: Retrained) -> _Floats:
    """RMIA offline: what it is with the record is supposed, not seen."""
    known, seen = _softened(shadows, target)
    outside = _mean(known, ~shadows.inside)
    return _ranks(seen / (((1 + _BETWEEN) * outside + (1 - _BETWEEN)) / 2))


def calibrated(shadows: Retrained, target: Retrained) -> _Floats:
    """How much smaller the loss is than that of models without the record (Watson and others 2022)."""
    least = least_chance(shadows)
    losses = -np.log(np.maximum(shadows.chances, least))
    return _mean(losses, ~shadows.inside) + np.log(np.maximum(target.chances, least))


def loss(_shadows: Retrained, target: Retrained) -> _Floats:
    """The loss itself, with one threshold for all records (Yeom and others 2018)."""
    return np.log(np.maximum(target.chances, _LEAST))


def by_label(shadows: Retrained, target: Retrained) -> _Floats:
    """Whether the prediction is right, weighed by how often models with and without the record are right on it."""
    found = 0.0
    for side, sign in ((shadows.inside, 1.0), (~shadows.inside, -1.0)):
        rate = ((shadows.right & side).sum(axis=0) + 0.5) / (side.sum(axis=0) + 1.0)
        found = found + sign * np.where(target.right, np.log(rate), np.log1p(-rate))
    return np.asarray(found, dtype=np.float64)


def by_quantiles(_shadows: Retrained, target: Retrained) -> _Floats:
    """QMIA (Bertran and others 2023): how far the logit lies above what is usual of such a record outside.

    What is usual, a median and a spread given the record itself, is fitted to records outside, which the adversary is
    told of one half of all records; he trains no models. Records of that half have no score.
    """
    if target.inputs is None:
        return np.full(target.inside.shape, np.nan)
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second to import

    rows = len(target.inputs)
    columns = np.argsort(-target.inputs.var(axis=0), kind="stable")[:_MOST_COLUMNS]
    features = np.column_stack([target.inputs[:, columns], target.labels])
    told = np.random.default_rng(_TOLD).permutation(rows) < rows // 2
    _, logits = _logits(target, target)
    scores = np.full(logits.shape, np.nan)
    for number, values in enumerate(logits):
        known = np.flatnonzero(told & ~target.inside[number])[:_MOST_ROWS]
        if not len(known):
            scores[number, ~told] = values[~told]
            continue
        usual, high = (
            HistGradientBoostingRegressor(
                loss="quantile", quantile=share, max_iter=50, max_leaf_nodes=8, max_bins=32, random_state=0
            )
            .fit(features[known], values[known])
            .predict(features[~told])
            for share in (0.5, 0.9)
        )
        spread = np.maximum(high - usual, 0.1 * np.std(values[known]) + _LEAST)
        scores[number, ~told] = (values[~told] - usual) / spread
    return scores


def by_counts(shadows: Retrained, target: Retrained) -> _Floats:
    """How often models with and without the record gave the same answer about it; each answer is seen once more."""
    found = np.zeros(target.predicted.shape)
    for side, sign in ((shadows.inside, 1.0), (~shadows.inside, -1.0)):
        for number, said in enumerate(target.predicted):
            same = ((shadows.predicted == said) & side).sum(axis=0)
            found[number] += sign * np.log((same + 0.5) / (side.sum(axis=0) + 1.0))
    return found


ATTACKS: dict[str, tuple[str, _Score]] = {
    "lira": ("likelihood ratio (LiRA)", likelihood_ratio),
    "lira-offline": ("likelihood without the record (LiRA, offline)", without),
    "rmia": ("relative probability (RMIA)", relative),
    "rmia-offline": ("relative to models without it (RMIA, offline)", relative_without),
    "qmia": ("quantiles given the record (QMIA)", by_quantiles),
    "calibrated": ("loss less the usual one", calibrated),
    "loss": ("loss", loss),
    "label": ("likeliest class alone", by_label),
    "counts": ("how often each answer was given", by_counts),
}
"""Names, what they mean, and the scores of records in each of the target's models."""
OF_PROBABILITIES = ("lira", "lira-offline", "rmia", "rmia-offline", "qmia", "calibrated", "loss")
"""Attacks on the probability of the record's own label."""
OF_NUMBERS = ("lira", "lira-offline", "calibrated", "loss")
"""Attacks on any number, once `as_chances` has made a probability of it."""
_STEEPEST = 25.0


def as_chances(outputs: NDArray[Any], inside: NDArray[np.bool_]) -> _Floats | None:
    """Numbers as probabilities, in the same order or in reverse, so that members have larger ones; None of others.

    Numbers in [0, 1] stay as they are; others become the logistic function of their distance to the median. Which way
    is up is told by the models that `inside` is about, the first ones.
    """
    try:
        values = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(values).all():
        return None
    if values.min() < 0 or values.max() > 1:
        with np.errstate(over="ignore"):
            distances = values - np.median(values)
        if not np.isfinite(distances).all():
            return None
        scale = max(float(np.median(np.abs(distances))), float(np.abs(distances).max()) / _STEEPEST, _LEAST)
        values = special.expit(distances / scale)
    first = values[: len(inside)]
    return values if first[inside].mean() >= first[~inside].mean() else 1 - values


def least_chance(models: Retrained) -> float:
    """What probabilities are cut off at before their logarithm is taken.

    Half of the smallest positive one of all p and 1 − p: a forest of 100 trees says nothing between 0 and 0.01, so 0 is
    about 0.005 and not 10⁻³⁰⁰, which would make one tree count for more than all others.
    """
    sides = np.concatenate([models.chances.ravel(), 1 - models.chances.ravel()])
    return float(max(_LEAST, np.min(sides[sides > 0], initial=0.5) / 2))


def exposure(models: Retrained) -> _Floats:
    """For each record, how well its logit tells models with it from others, estimated: TPR − FPR of two normal laws."""
    logits, _ = _logits(models, models)
    (inside, one, _), (outside, other, _) = (_moments(logits, side) for side in (models.inside, ~models.inside))
    distance = (inside - outside) / np.sqrt((one + other) / 2)
    return np.asarray(np.maximum(0.0, special.erf(distance / np.sqrt(8))), dtype=np.float64)


def exposure_by_counts(models: Retrained) -> _Floats:
    """The same for answers that are no numbers: TPR − FPR of their shares, each answer seen half a time more."""
    records = np.arange(models.inside.shape[1])
    cells = models.predicted * len(records) + records
    seen, places = np.unique(cells, return_inverse=True)
    shares = [
        (np.bincount(places.ravel()[side.ravel()], minlength=len(seen)) + 0.5)
        / (side.sum(axis=0)[seen % len(records)] + 1.0)
        for side in (models.inside, ~models.inside)
    ]
    gains = np.maximum(0.0, shares[0] - shares[1])
    return np.minimum(1.0, np.bincount(seen % len(records), weights=gains, minlength=len(records)))


def _logits(shadows: Retrained, target: Retrained) -> tuple[_Floats, _Floats]:
    least = least_chance(shadows)
    cut = (np.clip(one.chances, least, 1 - least) for one in (shadows, target))
    first, second = (np.log(one) - np.log1p(-one) for one in cut)
    return first, second


def _softened(shadows: Retrained, target: Retrained) -> tuple[_Floats, _Floats]:
    """About the probabilities at a temperature of 2: half the logit, as if all other classes were one."""
    first, second = _logits(shadows, target)
    return special.expit(first / _TEMPERATURE), special.expit(second / _TEMPERATURE)


def _ranks(ratios: _Floats) -> _Floats:
    return np.stack([np.searchsorted(np.sort(one), one, side="right") / len(one) for one in ratios])


def _moments(values: _Floats, side: NDArray[np.bool_]) -> tuple[_Floats, _Floats, _Floats]:
    """Mean, variance and number of the values on one side, for every record; the variance leans on that of all."""
    count = side.sum(axis=0).astype(np.float64)
    mean = _mean(values, side)
    squares = np.where(side, (values - mean) ** 2, 0.0).sum(axis=0)
    of_all = squares.sum() / max(1.0, np.maximum(count - 1, 0).sum())
    return mean, (squares + SHARED * of_all) / (np.maximum(count - 1, 0) + SHARED) + _LEAST, count


def _mean(values: _Floats, side: NDArray[np.bool_]) -> _Floats:
    """The mean of the values on one side, for every record; where there is none, the mean over all records."""
    count = side.sum(axis=0)
    total = np.where(side, values, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), total.sum() / max(1, count.sum())))


def _student(seen: _Floats, values: _Floats, side: NDArray[np.bool_]) -> _Floats:
    """The logarithm of the predictive density of a further value, up to a constant that is the same for both sides."""
    mean, variance, count = _moments(values, side)
    freedom = np.maximum(count - 1, 0) + SHARED
    scale = variance * (1 + 1 / np.maximum(count, 1))
    constant = special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2) - np.log(freedom * scale) / 2
    return np.asarray(constant - (freedom + 1) / 2 * np.log1p((seen - mean) ** 2 / (freedom * scale)))
