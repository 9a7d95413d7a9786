"""Chunks of records. A keyed hash of a record's id, or of the record itself, decides its chunk, and nothing else."""

from __future__ import annotations

import hmac
import numbers
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError

KEY_BYTES = 32

_BLOCK = 1024
_EXACT = 2**53
"""Whole numbers beyond this are not all floats."""
_FEATURES = "must be an array of numbers, of at least two dimensions, or of strings, numbers and None"


def checked_key(key: object) -> bytes | None:
    """A key that decides who teaches which records, or None for one to be drawn."""
    if key is None or (isinstance(key, bytes) and len(key) == KEY_BYTES):
        return key
    raise InputError(
        "key",
        f"{len(key)} bytes" if isinstance(key, bytes) else type(key),
        requirement=f"must be {KEY_BYTES} bytes",
        remedy=f"use secrets.token_bytes({KEY_BYTES}), or leave it out",
    )


def features(name: str, values: object) -> NDArray[Any]:
    """Records, one per row: real numbers as they are, strings and mixtures as objects; anything else is refused."""
    remedy = "pass a NumPy array, one row per record"
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, values, requirement=_FEATURES, remedy="fill in or leave out what is masked")
    try:
        found: NDArray[Any] = np.asarray(validate.detached(values), order="C")  # of data frames, too, row after row
        if found.dtype.kind in "US":
            found = np.asarray(values, dtype=object)
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        raise InputError(name, type(values), requirement=_FEATURES, remedy=remedy) from None
    kind, size = found.dtype.kind, found.dtype.itemsize
    if not ((kind in "biuf" and size <= 8 and found.ndim > 1) or (kind == "O" and found.ndim > 0)):
        raise InputError(f"{name}, of shape {found.shape},", found.dtype, requirement=_FEATURES, remedy=remedy)
    if kind in "iu" and found.size and max(abs(int(found.min())), abs(int(found.max()))) > _EXACT:
        raise InputError(
            name, found.dtype, requirement="must hold whole numbers up to 2**53 alone", remedy="pass them as strings"
        )
    return found


def used(values: NDArray[Any]) -> NDArray[Any]:
    """Features as an estimator gets them: a record of another type must not change the type of others."""
    numbers = values.dtype.kind in "biuf" or (values.dtype == object and all(map(_is_number, values.flat)))
    return values.astype(np.float64, copy=False) if numbers else values


def chunks(
    records: NDArray[Any], labels: NDArray[np.int64], *, ids: Sequence[object] | None, key: bytes, n_chunks: int
) -> tuple[list[NDArray[np.int64]], str]:
    """The rows of each chunk, in an order that depends on the chunk's records alone, and a digest of all of them."""
    record_key, id_key = _hash(key, b"record"), _hash(key, b"id")
    hashes = _hashes(len(records), lambda rows: _contents(records[rows], labels[rows]), record_key)
    if ids is not None:
        owners = _hashes(len(ids), lambda rows: map(packed_id, ids[rows]), id_key)
        hashes = np.concatenate([owners, hashes], axis=1)
    order = np.lexsort(hashes.T[::-1])  # by the owner, then by the content
    hashes = hashes[order]
    chunk = (hashes[:, 0] % np.uint64(n_chunks)).astype(np.int64)
    by_chunk = np.argsort(chunk, kind="stable")
    ends = np.cumsum(np.bincount(chunk, minlength=n_chunks))
    return np.split(order[by_chunk], ends[:-1]), _hash(record_key, hashes.tobytes()).hex()


def seed(key: bytes, *parts: int) -> int:
    """A seed that depends on the key and on these numbers, never on records."""
    return int.from_bytes(_hash(_hash(key, b"seed"), struct.pack(f"<{len(parts)}q", *parts))) % 2**31


def mark(key: bytes) -> str:
    """What tells one key from another without giving it away."""
    return _hash(key, b"mark").hex()


def _hash(key: bytes, content: Any) -> bytes:
    return hmac.digest(key, content, "sha256")


def _hashes(count: int, contents: Callable[[slice], Iterable[Any]], key: bytes) -> NDArray[np.uint64]:
    """The hash of each content, a row of four numbers. In threads: hashing and converting let others run."""

    def block(start: int) -> bytes:
        return b"".join([_hash(key, content) for content in contents(slice(start, start + _BLOCK))])

    with ThreadPoolExecutor(joblib.cpu_count()) as threads:
        found = b"".join(threads.map(block, range(0, count, _BLOCK)))
    return np.frombuffer(found, dtype=">u8").reshape(count, 4).astype(np.uint64)


def _contents(records: NDArray[Any], labels: NDArray[np.int64]) -> Iterator[Any]:
    """Each record as bytes, its label first: numbers by their value, whatever type the whole array has."""
    if records.dtype != object:
        yield from np.concatenate([labels[:, None], records.reshape(len(records), -1)], axis=1, dtype="<f8")
        return
    for row, label in zip(records, labels.tolist(), strict=True):
        values = np.ravel(np.array(row, dtype=object))
        plain = all(map(_is_number, values))
        content = values.astype("<f8").tobytes() if plain else b"".join(_packed("X", value) for value in values)
        yield struct.pack("<d", label) + content


def packed_id(value: object) -> bytes:
    """An id as bytes, the same for a string or a whole number of whatever type: these say who is one person."""
    return _packed("ids", value)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and (not isinstance(value, numbers.Integral) or abs(int(value)) <= _EXACT)


def _packed(name: str, value: object) -> bytes:
    if isinstance(value, str):
        content = value.encode("utf-8", "surrogatepass")
        return b"s" + struct.pack("<q", len(content)) + content
    if isinstance(value, bytes):
        return b"b" + struct.pack("<q", len(value)) + value
    if name == "ids":
        if isinstance(value, numbers.Integral):
            return b"i" + str(int(value)).encode()
    elif value is None:
        return b"0"
    elif _is_number(value):
        return b"n" + struct.pack("<d", value)
    wanted = "strings, bytes or whole numbers" if name == "ids" else "strings, bytes, numbers up to 2**53 or None"
    raise InputError(name, type(value), requirement=f"must hold {wanted} alone", remedy="write the others as strings")
