"""Count outputs: each gets a key, and a count for either secret."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from .columns import EXACT

STEPS = {1: 64, 2: 16, 3: 8}
"""Grid cells per standard deviation of the noise, by the number of coordinates."""

FRACTION_BITS = {1: 20, 2: 15, 3: 10}
"""An output is split between neighbouring cells in fractions of 2**−bits, so that sums are exact."""

_FARTHEST = 2**30  # cells from 0, so that the position within a cell is still known to 2**−23
_FARTHEST_BIN = 2**21
_MOST_DENSE = 2**24
_BLOCK = 2**22  # rows at a time
_KEY_BITS = 20  # of each coordinate in a packed key, for two and three coordinates

_Array = NDArray[Any]
_Whole = NDArray[np.int64]


def counted(keys: _Array, classes: _Whole, counts: _Whole) -> tuple[_Array, _Whole]:
    """The different keys in ascending order, and the counts of both classes."""
    if not len(keys):
        return keys, np.zeros((0, 2), dtype=np.int64)
    if keys.dtype.kind == "i" and int(keys.max()) - int(keys.min()) <= min(_MOST_DENSE, 4 * len(keys)):
        low = int(keys.min())
        dense = _pairs(keys - low, classes, counts, int(keys.max()) - low + 1)
        seen = np.flatnonzero(dense.any(axis=1))
        return seen + low, dense[seen]
    different, places = np.unique(keys, return_inverse=True)
    return different, _pairs(places, classes, counts, len(different))


def _pairs(places: _Whole, classes: _Whole, counts: _Whole, size: int) -> _Whole:
    if float(counts.sum(dtype=np.float64)) < EXACT / 2:  # sums of whole numbers in float64 are exact, and faster
        summed = np.bincount(2 * places + classes, weights=counts, minlength=2 * size)
        return summed.astype(np.int64).reshape(-1, 2)
    whole = np.zeros(2 * size, dtype=np.int64)
    np.add.at(whole, 2 * places + classes, counts)
    return whole.reshape(-1, 2)


def symbols(values: _Array) -> _Array:
    """Keys that are equal only where outputs are equal to the last bit, and sort as the outputs do.

    −0.0 and 0.0 get different keys, as anyone who sees the output sees the sign.
    """
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind != "f":
        return values
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, ~(bits & np.iinfo(np.int64).max))


def tuples(columns: list[_Array], classes: _Whole, counts: _Whole) -> Any:
    """Pairs of a cell, the tuple of its columns' values, and the counts of both classes there."""
    places: _Whole = np.zeros(len(classes), dtype=np.int64)
    for one in columns:
        inner, position = np.unique(one, return_inverse=True)
        _, places = np.unique(places * len(inner) + position, return_inverse=True)
    _, first = np.unique(places, return_index=True)
    summed = _pairs(places, classes, counts, len(first))
    return zip(zip(*(one[first].tolist() for one in columns), strict=True), summed, strict=True)


def merged(keys: _Array, counts: _Whole, more: _Array, found: _Whole) -> tuple[_Array, _Whole]:
    """Two lists of keys and counts as one."""
    if not len(keys):
        return more, found
    if not len(more):
        return keys, counts
    different, places = np.unique(np.concatenate([keys, more]), return_inverse=True)
    total = np.zeros((len(different), 2), dtype=np.int64)
    np.add.at(total, places, np.concatenate([counts, found]))
    return different, total


def finite(values: _Array) -> NDArray[np.float64]:
    """As finite floats; refuses numbers that floats would merge or cannot hold."""
    numeric = values.astype(np.float64, copy=False)
    if values.dtype.kind == "i" and len(values) and not np.abs(numeric).max() < EXACT:
        raise InputError(
            "output",
            "a larger number",
            requirement="must be below 2**53 in size where noise or bins are given",
            remedy="subtract a constant that was fixed before the data was seen",
        )
    if not np.isfinite(numeric).all():
        raise InputError(
            "output",
            "an infinite number",
            requirement="must be finite where noise or bins are given",
            remedy="cut the output off before release",
        )
    return numeric


def binned(values: _Array, side: float) -> NDArray[np.float64]:
    """The number of each value's bin; bins are a little narrower than `side`, to make up for rounding."""
    with np.errstate(over="ignore"):
        bins = np.floor(finite(values) / (side * (1 - 1e-9)))
    if not np.abs(bins).max() <= _FARTHEST_BIN:
        raise InputError(
            "output",
            "one beyond",
            requirement=f"must lie within {_FARTHEST_BIN} bins of 0",
            remedy="use wider bins, or subtract a constant that was fixed before the data was seen",
        )
    return bins


def gridded(columns: list[_Array], classes: _Whole, counts: _Whole, noise: float) -> tuple[_Whole, _Whole]:
    """The grid's cells in ascending order, and each class's mass there; a row is split linearly between neighbours."""
    bits, per_noise = FRACTION_BITS[len(columns)], STEPS[len(columns)]
    reach = _FARTHEST if len(columns) == 1 else 2 ** (_KEY_BITS - 1) - 2
    keys: _Whole = np.zeros(0, dtype=np.int64)
    masses: _Whole = np.zeros((0, 2), dtype=np.int64)
    for start in range(0, len(classes), _BLOCK):
        rows = slice(start, start + _BLOCK)
        lows, fractions = [], []
        for one in columns:
            with np.errstate(over="ignore"):
                scaled = finite(one[rows]) * (per_noise / noise)
            if not np.abs(scaled).max() <= reach:
                raise InputError(
                    "output",
                    "one beyond",
                    requirement=f"must lie within {reach // per_noise} standard deviations of the noise around 0",
                    remedy="subtract a constant that was fixed before the data was seen, or cut the output off",
                )
            position = np.rint(np.ldexp(scaled, bits)).astype(np.int64)
            lows.append(position >> bits)
            fractions.append(position & ((1 << bits) - 1))
        for corner in np.ndindex(*(2,) * len(columns)):
            key: Any = 0
            mass: Any = counts[rows]
            for above, low, fraction in zip(corner, lows, fractions, strict=True):
                key = (key << _KEY_BITS) + low + above + (2 ** (_KEY_BITS - 1) if len(columns) > 1 else 0)
                mass = mass * (fraction if above else (1 << bits) - fraction)
            keys, masses = merged(keys, masses, *counted(key, classes[rows], mass))
    return keys, masses


def unpacked(keys: _Whole, dimensions: int) -> _Whole:
    """The coordinates of packed keys, a row for each cell."""
    mask = (1 << _KEY_BITS) - 1
    shifts = [_KEY_BITS * place for place in reversed(range(dimensions))]
    places: _Whole = np.stack([(keys >> shift) & mask for shift in shifts], axis=1)
    return places - np.int64(2 ** (_KEY_BITS - 1))
