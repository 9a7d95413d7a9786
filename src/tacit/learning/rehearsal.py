"""A learner tried on made-up records, before any budget is spent on real ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ..errors import InputError
from . import stored

_EACH = 50
"""Made-up records of a class."""


def rehearsal(name: str, estimator: Any, *, width: int, classes: int) -> tuple[str, ...]:
    """Make sure that it learns and names classes; returns what it then holds that skops does not trust by itself.

    Of these types only those of its own package, or of scikit-learn: who names a learner trusts where it comes from.
    What it raises speaks of made-up records, so its words may be passed on.
    """
    labels = np.arange(_EACH * classes) % classes
    records = np.random.default_rng(0).normal(size=(len(labels), width)) + labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up records
        try:
            fitted = clone(estimator).fit(records, labels)
            good = bool(np.isin(np.asarray(fitted.predict(records)), labels).all())
        except Exception as failure:  # what foreign code raises
            raise InputError(
                name,
                f"{type(failure).__name__}: {failure}",
                requirement="must learn from a table of numbers",
                remedy="check its parameters, or choose another",
            ) from None
    if not good:
        raise InputError(
            name,
            type(estimator).__name__,
            requirement="must be a classifier, which names classes that it has seen",
            remedy="choose another",
        )
    skops = stored.needed()
    try:
        found = skops.get_untrusted_types(data=skops.dumps(fitted))
    except Exception:  # what cannot be stored is refused where it is to be
        return ()
    packages = {"sklearn", type(estimator).__module__.partition(".")[0]}
    return tuple(kind for kind in found if kind.partition(".")[0] in packages)
