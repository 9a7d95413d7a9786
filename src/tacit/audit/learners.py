"""Adversaries that learn to tell the secret from the output.

Each learner takes columns, labels and a seed, and returns a score that is larger where the secret looks positive. All
scores but the threshold's are guesses of its probability where both classes are equally likely.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, MissingExtraError

_NEURONS, _RESTARTS, _STEPS, _BATCH = 64, 8, 400, 1024
_MOST_BINS = 64  # of a column of numbers in a histogram
_MOST_CATEGORIES = 250  # that gradient boosting takes; rarer ones become one
_MOST_LEVELS = 255  # of a column of numbers that gradient boosting tells apart
_MOST_INDICATORS = 32  # of a column of text in a network

_Floats = NDArray[np.float64]
_Score = Callable[[list[NDArray[Any]]], _Floats]
_Learner = Callable[[list[NDArray[Any]], NDArray[np.bool_], int], _Score]


def fitting(columns: list[NDArray[Any]]) -> tuple[str, ...]:
    """The names of the learners that fit the output, and whose packages are there."""
    numeric = any(one.dtype.kind != "U" for one in columns)
    torch = importlib.util.find_spec("torch") is not None
    return ("threshold",) * numeric + ("histogram", "boosting") + ("network",) * torch


def roc_counts(scores: _Floats, labels: NDArray[np.bool_]) -> tuple[_Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Thresholds in descending order, and how many positives and negatives reach each; equal scores stay together."""
    values, places = np.unique(scores, return_inverse=True)
    positives = np.bincount(places[labels], minlength=len(values))[::-1]
    negatives = np.bincount(places[~labels], minlength=len(values))[::-1]
    start = np.zeros(1, dtype=np.int64)
    return (
        np.concatenate([[np.inf], values[::-1]]),
        np.concatenate([start, np.cumsum(positives)]),
        np.concatenate([start, np.cumsum(negatives)]),
    )


def _threshold(columns: list[NDArray[Any]], labels: NDArray[np.bool_], _seed: int) -> _Score:
    """The column of numbers, and the direction, with the largest area under its ROC curve."""
    best = (-1.0, 0, 1.0)
    for place, one in enumerate(columns):
        if one.dtype.kind == "U":
            continue
        _, hits, alarms = roc_counts(_finite(one), labels)
        # Trapezoids: ties count half.
        area = float((np.diff(alarms) * (hits[1:] + hits[:-1])).sum() / (2 * hits[-1] * alarms[-1]))
        best = max(best, (area, place, 1.0), (1 - area, place, -1.0))
    if best[0] < 0:
        raise InputError(
            "learners",
            "threshold",
            requirement="must come with a column of numbers",
            remedy="use 'histogram' for categories",
        )
    _, place, sign = best
    return lambda seen: sign * _finite(seen[place])


def _histogram(columns: list[NDArray[Any]], labels: NDArray[np.bool_], _seed: int) -> _Score:
    """The share of positives among rows with the same output; numbers with many values are cut into bins first."""
    cells = coarse_cells(columns)
    counts: dict[tuple[Any, ...], list[int]] = {}
    for cell, label in zip(cells(columns), labels.tolist(), strict=True):
        counts.setdefault(cell, [0, 0])[label] += 1
    positives, negatives = int(labels.sum()), int((~labels).sum())
    guesses = {}
    for cell, (no, yes) in counts.items():
        likely, unlikely = (yes + 0.5) / (positives + 1), (no + 0.5) / (negatives + 1)
        guesses[cell] = likely / (likely + unlikely)
    return lambda seen: np.array([guesses.get(cell, 0.5) for cell in cells(seen)])


def coarse_cells(columns: list[NDArray[Any]]) -> Callable[[list[NDArray[Any]]], list[tuple[Any, ...]]]:
    """What turns rows into cells of a histogram; numbers with many values are cut into bins."""
    cuts = [_cuts(one, _MOST_BINS) if one.dtype.kind == "f" else None for one in columns]

    def cells(seen: list[NDArray[Any]]) -> list[tuple[Any, ...]]:
        coarse = [
            one if cut is None else np.searchsorted(cut, one, side="right") for one, cut in zip(seen, cuts, strict=True)
        ]
        return list(zip(*(one.tolist() for one in coarse), strict=True))

    return cells


def coded_features(columns: list[NDArray[Any]]) -> tuple[Callable[[list[NDArray[Any]]], _Floats], list[bool]]:
    """What turns rows into features for gradient boosting, and which of these are categories."""
    categories = [_common(one, _MOST_CATEGORIES) if one.dtype.kind == "U" else None for one in columns]
    # scikit-learn would cut weighted rows into the same number of bins, and take ten times as long as all the rest.
    cuts = [None if one.dtype.kind == "U" else _cuts(one, _MOST_LEVELS) for one in columns]

    def coded(one: NDArray[Any], known: NDArray[Any] | None, cut: _Floats | None) -> _Floats:
        if known is not None:
            return _codes(one, known)
        return _finite(one) if cut is None else np.searchsorted(cut, _finite(one), side="right").astype(np.float64)

    def features(seen: list[NDArray[Any]]) -> _Floats:
        return np.stack([coded(*each) for each in zip(seen, categories, cuts, strict=True)], axis=1)

    return features, [known is not None for known in categories]


def _finite(one: NDArray[Any]) -> _Floats:
    """As numbers, with infinite ones cut off so that arithmetic works."""
    return np.clip(one.astype(np.float64), -1e150, 1e150)


def _cuts(one: NDArray[Any], most: int) -> _Floats | None:
    """What cuts numbers into at most this many bins of as many rows each; None if there are no more values."""
    if len(np.unique(one)) <= most:
        return None
    return np.unique(np.quantile(_finite(one), np.linspace(0, 1, most + 1)[1:-1]))


def _boosting(columns: list[NDArray[Any]], labels: NDArray[np.bool_], seed: int) -> _Score:
    from sklearn.ensemble import HistGradientBoostingClassifier

    features, categorical = coded_features(columns)
    model = HistGradientBoostingClassifier(
        max_iter=100,
        max_leaf_nodes=15,
        learning_rate=0.1,
        early_stopping=len(labels) >= 200,
        class_weight="balanced",
        categorical_features=categorical,
        random_state=seed,
    ).fit(features(columns), labels)
    return lambda seen: np.asarray(model.predict_proba(features(seen))[:, 1], dtype=np.float64)


def _common(one: NDArray[Any], most: int) -> NDArray[Any]:
    values, counts = np.unique(one, return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:most]])


def _codes(one: NDArray[Any], known: NDArray[Any]) -> _Floats:
    """The position of each text among the known ones, and one more for all others."""
    places = np.minimum(np.searchsorted(known, one), len(known) - 1)
    return np.where(known[places] == one, places, len(known)).astype(np.float64)


def _network(columns: list[NDArray[Any]], labels: NDArray[np.bool_], seed: int) -> _Score:
    """The paper's adversary: Σ aⱼ tanh(wⱼ·x + bⱼ) + a₀ for E[S|T], by squared loss, the best of several starts."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "the attack by a network must have torch, got no such package; pip install 'tacit-privacy[torch]'"
        ) from None
    known = [_common(one, _MOST_INDICATORS) if one.dtype.kind == "U" else None for one in columns]
    spread = [(0.0, 1.0) if one.dtype.kind == "U" else _spread(one) for one in columns]

    def features(seen: list[NDArray[Any]]) -> Any:
        parts = []
        for one, words, (middle, scale) in zip(seen, known, spread, strict=True):
            if words is None:
                parts.append(np.clip((_finite(one)[:, None] - middle) / scale, -10, 10))
            else:
                parts.append((one[:, None] == words[None, :]).astype(np.float64))
        return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))

    inputs = features(columns)
    signs = torch.from_numpy(np.where(labels, 1.0, -1.0).astype(np.float32))
    weights = torch.from_numpy(np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum()).astype(np.float32))
    weights = weights * len(labels)
    generator = torch.Generator().manual_seed(seed)

    def start(*shape: int, scale: float) -> Any:
        return (scale * torch.randn(*shape, generator=generator)).requires_grad_()

    inner, offset = start(_RESTARTS, inputs.shape[1], _NEURONS, scale=2.0), start(_RESTARTS, 1, _NEURONS, scale=2.0)
    outer, level = start(_RESTARTS, _NEURONS, 1, scale=0.01), start(_RESTARTS, 1, 1, scale=0.01)
    parameters = [inner, offset, outer, level]
    distinct, places = torch.unique(inputs, dim=0, return_inverse=True)
    repeated = len(distinct) < min(_BATCH, len(labels))  # then each distinct output is computed once in every step

    def guesses(seen: Any) -> Any:
        return (torch.tanh(seen @ inner + offset) @ outer + level)[..., 0]

    def losses(rows: Any) -> Any:
        guessed = guesses(distinct).index_select(1, places[rows]) if repeated else guesses(inputs[rows])
        return (weights[rows] * (guessed - signs[rows]) ** 2).mean(dim=1)

    # Adam, in its usual setting; torch's own takes two seconds to load.
    moments = [(torch.zeros_like(one), torch.zeros_like(one)) for one in parameters]
    for step in range(_STEPS):
        rows = torch.randint(len(labels), (min(_BATCH, len(labels)),), generator=generator)
        slopes = torch.autograd.grad(losses(rows).sum(), parameters)
        rate, grown, settled = 0.01 * (1 - step / _STEPS), 1 - 0.9 ** (step + 1), 1 - 0.999 ** (step + 1)
        with torch.no_grad():
            for one, slope, (mean, square) in zip(parameters, slopes, moments, strict=True):
                mean.lerp_(slope, 0.1)
                square.lerp_(slope**2, 0.001)
                one -= rate * (mean / grown) / ((square / settled).sqrt() + 1e-8)
    with torch.no_grad():
        rows = torch.randperm(len(labels), generator=generator)[:20_000]
        best = int(losses(rows).argmin())
    kept = [one.detach()[best] for one in parameters]

    def score(seen: list[NDArray[Any]]) -> _Floats:
        with torch.no_grad():
            guess = torch.tanh(features(seen) @ kept[0] + kept[1]) @ kept[2] + kept[3]
        return np.clip((1 + np.asarray(guess[:, 0], dtype=np.float64)) / 2, 0, 1)

    return score


def _spread(one: NDArray[Any]) -> tuple[float, float]:
    values = _finite(one)
    return float(values.mean()), float(values.std()) or 1.0


LEARNERS: dict[str, _Learner] = {
    "threshold": _threshold,
    "histogram": _histogram,
    "boosting": _boosting,
    "network": _network,
}
