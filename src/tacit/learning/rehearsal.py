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
_PLAIN = frozenset({"collections.OrderedDict"})
"""Containers that skops does not trust by itself, though they do nothing; LightGBM's classifiers hold one."""


def rehearsal(name: str, estimator: Any, *, width: int, classes: int) -> tuple[str, ...]:
    """Make sure that it learns, names classes and can be stored; returns what skops does not trust of it by itself.

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
        return tuple(skops.get_untrusted_types(data=skops.dumps(fitted)))
    except Exception as failure:  # skops raises what it likes for what it cannot hold
        raise InputError(
            name,
            f"{type(fitted).__name__}: {type(failure).__name__}",
            requirement="must be one that skops can store",
            remedy="choose another",
        ) from None


def vouched(name: str, estimator: Any, held: tuple[str, ...]) -> tuple[str, ...]:
    """The types that it holds, if all come from where it or its parts come from, or from scikit-learn.

    Who names a learner trusts its packages, but not what else a stored file of it may hold.
    """
    parts = (estimator, *estimator.get_params(deep=True).values())
    packages = {"sklearn"} | {type(part).__module__.partition(".")[0] for part in parts} - {"builtins"}
    foreign = [kind for kind in held if kind.partition(".")[0] not in packages and kind not in _PLAIN]
    if foreign:
        raise InputError(
            name,
            ", ".join(foreign),
            requirement=f"must hold types of {', '.join(sorted(packages))} alone once it has learned",
            remedy="choose another",
        )
    return held
