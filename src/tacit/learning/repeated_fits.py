"""What several fits on the same private records cost together, in this process and in the workers that it starts.

Each fit adds a line to a file that belongs to the process which first imported this module; workers find it by an
environment variable. A line holds ε, δ and the least of the keyed numbers of the private rows, from which the share of
common rows is estimated. The file lies in the folder for temporary files, can be read by its owner alone, and is
removed when that process ends.

What this cannot see: fits in other sessions and on other machines, workers that ran before this module was imported,
and rows that a transformer changed for each fit in another way. A ledger counts all of these.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.errors import PrivacyWarning
from ..ledger import Amount
from .overlap import row_numbers

VARIABLE = "TACIT_FITS"
_KEPT = 256
"""How many of the least numbers are kept of each fit."""
_SAME = 0.05
"""Fits whose rows have this share in common are fits on the same records."""

_FIRST = 2
"""The fit that repeats another for the first time: it is told what to do instead, and later ones the sum alone."""

_uncounted = ContextVar("_uncounted", default=False)


@dataclass(frozen=True)
class _Fit:
    """The cost of a fit, its release where a ledger makes repeated calls one release, and its rows in short."""

    epsilon: float
    delta: float
    release: str | None
    rows: list[int]

    @property
    def cost(self) -> Amount:
        """The cost, as the ledger counts it: by the digits that were given."""
        return Amount(Decimal(repr(self.epsilon)), Decimal(repr(self.delta)))


def _begin() -> None:
    """Choose the file, unless this is a worker of a process that has chosen one."""
    key, _, place = os.environ.get(VARIABLE, "").partition(" ")
    if key.isdecimal() and place:
        return
    path = Path(tempfile.gettempdir(), f"tacit-fits-{secrets.token_hex(8)}.jsonl")
    os.environ[VARIABLE] = f"{secrets.randbits(63) | 1} {path}"
    owner = os.getpid()
    atexit.register(lambda: path.unlink(missing_ok=True) if os.getpid() == owner else None)


_begin()


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Count no fit within this block: for attacks, whose fits nobody publishes."""
    before = _uncounted.set(True)
    try:
        yield
    finally:
        _uncounted.reset(before)


def count(private: NDArray[np.float64], *, epsilon: float, delta: float, release: str | None, limited: bool) -> None:
    """Count a fit that is about to spend, and warn of what all fits on the same records cost together.

    Parameters
    ----------
    private
        The private records.
    epsilon, delta
        What the fit costs.
    release
        The name of the release, where a ledger makes repeated calls one release.
    limited
        Whether a ledger limits the cost: then there is no warning.
    """
    if _uncounted.get():
        return
    key, _, place = os.environ[VARIABLE].partition(" ")
    fit = _Fit(epsilon, delta, release, _sketch(private, int(key)))
    before = _earlier(Path(place))
    with contextlib.suppress(OSError):  # no room for a line: then this fit is not counted by others
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(json.dumps([epsilon, delta, release, fit.rows]).encode() + b"\n")
    same = _releases([*_connected(fit, before), fit])
    if len(same) > 1 and not limited:
        total = sum((one.cost for one in same[1:]), same[0].cost)
        advice = (
            f", and this one alone {fit.cost}; searches and cross-validation fit many times: choose settings on public "
            "or made-up records, or give a `ledger`, which refuses what exceeds its budget"
        )
        warnings.warn(
            f"fit number {len(same)} on the same private records: all of them together cost {total} by basic "
            f"composition{advice if len(same) == _FIRST else ''}",
            PrivacyWarning,
            stacklevel=3,
        )


def _sketch(private: NDArray[np.float64], key: int) -> list[int]:
    """The least of the rows' numbers after multiplication by the key: the same rows for everyone who has it."""
    numbers = row_numbers(private) * np.uint64(key)
    numbers ^= numbers >> np.uint64(32)
    return [int(number) for number in np.unique(numbers * np.uint64(key))[:_KEPT]]


def _earlier(place: Path) -> list[_Fit]:
    try:
        lines = place.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):  # a line that another process is writing
            found.append(_Fit(*json.loads(line)))
    return found


def _connected(fit: _Fit, fits: list[_Fit]) -> list[_Fit]:
    """The fits that share rows with this one, or with another that does."""
    # A search fits thousands of times, mostly on the same rows: only different ones that share a number are compared.
    kinds: dict[tuple[int, ...], int] = {}
    kind_of = [kinds.setdefault(tuple(other.rows), len(kinds)) for other in fits]
    rows = list(kinds)
    holders: dict[int, list[int]] = defaultdict(list)
    for kind, numbers in enumerate(rows):
        for number in numbers:
            holders[number].append(kind)
    left, new = set(kinds.values()), [tuple(fit.rows)]
    while new and left:
        one = new.pop()
        shared = {kind for number in one for kind in holders.get(number, ())}
        near = {kind for kind in shared & left if _common(rows[kind], one) >= _SAME}
        left, new = left - near, [*new, *(rows[kind] for kind in near)]
    return [other for other, kind in zip(fits, kind_of, strict=True) if kind not in left]


def _releases(fits: list[_Fit]) -> list[_Fit]:
    """Each release once, however often it went on."""
    return list({place if fit.release is None else fit.release: fit for place, fit in enumerate(fits)}.values())


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The share of rows that both have, of those that either has: estimated from the least numbers of both."""
    union = sorted({*one, *other})[: max(min(len(one), len(other)), 1)]
    both = {*one} & {*other}
    return len([number for number in union if number in both]) / len(union)
