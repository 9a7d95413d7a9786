"""Transform private records one by one, and find out that they were transformed before `fit` saw them.

In a `Pipeline`, a transformer before the classifier is fitted to private records, which no guarantee covers, and it
transforms `X` but not `X_public`. What is found depends on private records, and is told to their owner alone.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, PrivacyWarning

_EXACT = 1e-9
"""A mean of this many standard deviations or less is 0 because somebody subtracted it."""
_FACTOR = 10.0
"""Columns of honest records differ by less than this factor in scale, and lie closer than this many deviations."""
_REMEDY = (
    "fit the transformer to public records, as `features` does, or transform both beforehand by a rule that public "
    "records alone decide"
)


def check_width(private: NDArray[np.float64], public: object) -> None:
    """Refuse public records with another number of columns."""
    width = getattr(public, "shape", (0, 0))[1:2] or (None,)
    if width[0] is not None and width[0] != private.shape[1] and len(getattr(public, "shape", ())) == 2:
        raise InputError(
            "the number of columns of X_public",
            width[0],
            requirement=f"must be that of X, {private.shape[1]}; a Pipeline transforms X but not X_public",
            remedy=_REMEDY,
        )


def warn_of_transformer(private: NDArray[np.float64], public: NDArray[np.float64] | None) -> None:
    """Warn once if X looks as if private records had decided how to transform it, or as if X_public were not."""
    found = []
    if _centred(private):
        found.append("every column of X has mean 0, so a transformer was fitted to these private records")
    if public is not None and (apart := _apart(private, public)):
        found.append(
            f"{apart} of {private.shape[1]} columns of X lie elsewhere than those of X_public or are on another scale, "
            "as if only X had been transformed"
        )
    if found:
        warnings.warn(
            f"{', and '.join(found)}; the guarantee does not cover what a transformer before this classifier learned "
            f"from private records, in a Pipeline for example; {_REMEDY}",
            PrivacyWarning,
            stacklevel=3,
        )


def _centred(records: NDArray[np.float64]) -> bool:
    """Whether every column that varies, and holds more than whole numbers, has a mean of 0 up to rounding."""
    with np.errstate(all="ignore"):
        spread = records.std(axis=0)
        usable = (spread > 0) & np.isfinite(spread) & (records != np.round(records)).any(axis=0)
        off = np.abs(records.mean(axis=0)[usable])
    return bool(usable.any()) and len(records) > 2 and bool((off <= _EXACT * spread[usable]).all())


def _apart(private: NDArray[np.float64], public: NDArray[np.float64]) -> int:
    """How many columns differ in place or scale, if these are half of the columns or more; else 0."""
    with np.errstate(all="ignore"):
        ours, theirs = np.nanstd(private, axis=0), np.nanstd(public, axis=0)
        usable = (ours > 0) & (theirs > 0)
        shift = np.abs(np.nanmean(private, axis=0) - np.nanmean(public, axis=0))
        far = usable & (shift > _FACTOR / 2 * np.minimum(ours, theirs)) & (shift > np.maximum(ours, theirs))
        scaled = usable & (np.maximum(ours, theirs) > _FACTOR * np.minimum(ours, theirs))
        outside = usable & (
            (np.nanmin(private, axis=0) > np.nanmax(public, axis=0))
            | (np.nanmax(private, axis=0) < np.nanmin(public, axis=0))
        )
    different = int((far | scaled | outside).sum())
    return different if 2 * different >= max(1, int(usable.sum())) else 0


def each_alone(features: Any, records: NDArray[np.float64], *, like: NDArray[Any]) -> NDArray[Any]:
    """Private records as a fitted transformer turns them into features, each on its own, at one place of the memory.

    A product of matrices may add up in another order once it has a row more: in a batch, the last bits of a record's
    features would depend on the others, and with them more than one teacher, voter or summand. `like` are features of
    public records.
    """
    if features is None:
        return records
    one, found = np.empty((1, records.shape[1])), np.empty((len(records), like.shape[1]), dtype=like.dtype)
    for place, record in enumerate(records):
        one[0] = record
        found[place] = np.asarray(features.transform(one))[0]
    return found
