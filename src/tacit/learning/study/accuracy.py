"""The accuracy of a classifier on a table of test records."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime import tables
from ...theory.confidence import binomial_lower, binomial_upper
from ..columns import texts


def accuracy(predictor: Any, test: tuple[tables.Table, list[str]] | None) -> dict[str, float] | None:
    """The accuracy on the test records with 95 % confidence limits, and that of naming the most frequent class."""
    if test is None:
        return None
    table, truth = test
    named = texts(np.asarray(predictor.predict(table)))
    right, trials = sum(one == other for one, other in zip(named, truth, strict=True)), len(truth)
    return {
        "records": trials,
        "accuracy": right / trials,
        "low": float(binomial_lower(right, trials=trials, failure_probability=0.025)),
        "high": float(binomial_upper(right, trials=trials, failure_probability=0.025)),
        "one_class": max(truth.count(text) for text in set(truth)) / trials,
    }
