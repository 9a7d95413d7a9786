"""Owners of records, and the parts and order of records, which keyed hashes decide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..runtime import run_folder
from .chunks import mark, packed_id


def owners(records: NDArray[np.float64], ids: Iterable[object] | None) -> list[bytes]:
    """The owner of each record: its id, else its features. Never its label, so that changing one moves no record."""
    if ids is None:
        return [row.tobytes() for row in np.ascontiguousarray(records + 0.0)]  # −0.0 becomes 0.0
    given = list(ids)
    if len(given) != len(records):
        raise InputError(
            "ids",
            len(given),
            requirement=f"must be {len(records)} strings, bytes or whole numbers",
            remedy="pass one per record",
        )
    return [packed_id(value) for value in given]


def parts(owners: list[bytes], key: bytes, purpose: bytes, n_parts: int) -> NDArray[np.int64]:
    """The part that each owner's records fall into; parts differ from purpose to purpose."""
    digests = (hashlib.blake2b(owner, digest_size=16, key=key, person=purpose).digest() for owner in owners)
    return np.array([int.from_bytes(digest) % n_parts for digest in digests], dtype=np.int64)


def digest(records: NDArray[np.float64], owners: list[bytes], key: bytes) -> str:
    """A digest of whose each record is, whatever their order."""
    pairs = zip(np.ascontiguousarray(records + 0.0), owners, strict=True)
    hashes = sorted(hashlib.blake2b(row.tobytes() + owner, digest_size=16, key=key).digest() for row, owner in pairs)
    return hashlib.blake2b(b"".join(hashes), digest_size=16, key=key, person=b"tacit owners").hexdigest()


def remember(
    folder: Path, records: NDArray[np.float64], numbers: NDArray[np.int64], people: list[bytes] | None, key: bytes
) -> None:
    """Keep a keyed digest of records and their classes in a folder, and refuse others there."""
    held = digest(np.column_stack([records, numbers]), [b""] * len(records) if people is None else people, key)
    run_folder.claim(folder, {"task": folder.name, "key": mark(key), "records": held}, resume=True, name="folder")


def order(records: NDArray[np.float64], key: bytes) -> NDArray[np.int64]:
    """The places of the records in an order that depends on their features and the key; equal records keep theirs.

    If only labels are private, the order in which records were given may tell them.
    """
    rows = np.ascontiguousarray(records)
    hashes = [hashlib.blake2b(row.tobytes(), digest_size=16, key=key, person=b"tacit order").digest() for row in rows]
    return np.array(sorted(range(len(hashes)), key=hashes.__getitem__), dtype=np.int64)
