"""Rows that belong together: one row of every group, drawn by a digest of the groups; and rows that were copied."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.guarantee import Assumption
from .certificate import Certificate
from .columns import column, multiplicities, output_columns
from .guesses import GuessCertificate

_OWN_STREAM = 0x6209
_MOST_DIFFERENT = 200_000  # rows whose copies are counted
_AT_ONCE = 2**16
_MOST_COPIES = 10_000  # of a row, up to which their numbers are compared
_ALARM, _FEWEST = 4.0, 10
"""Standard deviations, and numbers of rows, by which chance may move how many rows occur so often."""

_SHARED = {
    *(
        "id",
        "uid",
        "uuid",
        "ssn",
        "patient",
        "person",
        "people",
        "subject",
        "participant",
        "user",
        "customer",
        "client",
    ),
    *("household", "family", "device", "account", "session", "speaker", "author", "student", "employee"),
}
_FEWEST_SHARED, _SHARED_ROWS = 30, 0.1  # different values, and the share of rows whose value stands in another row, too

_Array = NDArray[Any]
_Certified = TypeVar("_Certified", bound=Certificate | GuessCertificate)


def one_per_group(groups: object, *, weights: object = None) -> NDArray[np.int64]:
    """Draw one row of every group, all rows of a group being equally likely.

    The seed of the draw is a digest of the groups, so that there is none to choose. Groups that are renamed, or rows in
    another order, are drawn anew: whoever does that until a draw pleases has a false certificate.

    Parameters
    ----------
    groups
        A column: rows with the same value belong together, e.g. those of a patient.
    weights
        Multiplicities of rows, whole numbers.

    Returns
    -------
    The positions of the rows drawn, in ascending order of their groups.

    Raises
    ------
    InputError
        Where the column cannot be used.
    """
    values = column("groups", groups)
    kept = OnePerGroup(seed_of_groups([values]))
    kept.add({"row": np.arange(len(values))}, values, None if weights is None else multiplicities(weights, len(values)))
    return np.asarray(kept.table()["row"], dtype=np.int64)


def seed_of_groups(parts: Iterable[_Array]) -> int:
    """The seed of the draw: 64 bits of the SHA-256 of the column of groups, of which these are the parts in order."""
    digest = hashlib.sha256()
    for groups in parts:
        names = _one_spelling(groups.astype(str)).tolist()
        digest.update("".join(f"{len(name)}:{name}" for name in names).encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest()[:8], "big")


class OnePerGroup:
    """The row of every group with the smallest random number, kept while a table is read part by part."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, _OWN_STREAM])
        self._groups: _Array | None = None
        self._chances: NDArray[np.float64] = np.zeros(0)
        self._columns: dict[str, _Array] = {}
        self.rows = 0

    def add(self, columns: dict[str, _Array], groups: _Array, counts: NDArray[np.int64] | None) -> None:
        """Offer the rows of a part; `counts` says how many rows each stands for, one by default."""
        chances, groups = self._rng.random(len(groups)), _one_spelling(groups)
        if counts is not None:
            there = counts > 0
            # The smallest one of as many numbers.
            chances = -np.expm1(np.log1p(-chances[there]) / counts[there])
            columns, groups = {name: one[there] for name, one in columns.items()}, groups[there]
        self.rows += len(groups) if counts is None else int(counts.sum())
        if self._groups is not None:
            if (self._groups.dtype.kind == "U") != (groups.dtype.kind == "U"):
                raise InputError(
                    "groups", "text and numbers", requirement="must be of one type", remedy="convert the column"
                )
            groups = np.concatenate([self._groups, groups])
            columns = {name: np.concatenate([self._columns[name], one]) for name, one in columns.items()}
            chances = np.concatenate([self._chances, chances])
        order = np.lexsort((chances, groups))
        sorted_groups = groups[order]
        first = order[np.concatenate([[True], sorted_groups[1:] != sorted_groups[:-1]])[: len(order)]]
        self._groups, self._chances = groups[first], chances[first]
        self._columns = {name: one[first] for name, one in columns.items()}

    def table(self) -> dict[str, _Array]:
        """The columns of the rows drawn."""
        return self._columns


def _one_spelling(groups: _Array) -> _Array:
    """Names of groups without quotes and spaces around them, and 17.0 as 17: rows that belong together stay so."""
    if groups.dtype.kind != "U":
        return groups
    names, places = np.unique(groups, return_inverse=True)
    bare = [re.sub(r"(?<=\d)\.0+$", "", name.strip().strip('"').strip()) for name in names.tolist()]
    return np.array(bare, dtype=str)[places] if bare else groups


def grouped(certificate: _Certified, *, rows: int) -> _Certified:
    """The certificate of one row of every group, with what it rests on then; `rows` are those of the table."""
    words = (
        f"groups are independent draws from one law; rows of a group may depend on one another in any way: one row of "
        f"each was drawn at random ({rows} rows in all), by a digest of the column of groups, which was not chosen by "
        "what was drawn, and the claim is about a random row of a random group"
    )
    independent = [one for one in certificate.assumptions if one.text.startswith("rows are independent")]
    changed = tuple(
        Assumption(text=words, checked_by="caller") if one in independent else one for one in certificate.assumptions
    )
    return dataclasses.replace(certificate, assumptions=changed)


def drawn(secret: object, output: object, group: object, *, weights: object) -> tuple[_Array, dict[int, _Array], int]:
    """The secrets and outputs of one row of every group, and how many rows the table has."""
    secrets = column("secret", secret)
    columns = output_columns(output, rows=len(secrets))
    if len(column("group", group)) != len(secrets):
        raise InputError(
            "group",
            "another length",
            requirement="must have as many rows as secret",
            remedy="pass columns of one table",
        )
    rows = one_per_group(group, weights=weights)
    return (
        secrets[rows],
        dict(enumerate(one[rows] for one in columns)),
        int(multiplicities(weights, len(secrets)).sum()),
    )


def shared_name(name: str) -> bool:
    """Whether a column's name is that of persons or things that may have several rows, such as patient or user_id."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return any(word.removesuffix("s") in _SHARED for word in words) and "name" not in words


def shared(values: _Array) -> int | None:
    """How many different values a column has, if rows share them in many small groups; else None."""
    times = np.unique(values, return_counts=True)[1]
    many = len(times) >= _FEWEST_SHARED and int(times[times > 1].sum()) >= _SHARED_ROWS * len(values)
    return len(times) if many else None


class Repeats:
    """How often rows of a table occur, wherever copies stand; of many different ones, some that their content chooses.

    To look at the first rows alone would miss a table that was appended to itself.
    """

    def __init__(self) -> None:
        self._last = np.uint64(2**64 - 1)
        self._prints, self._times = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)

    def add(self, columns: Sequence[_Array], counts: NDArray[np.int64] | None) -> Self:
        """Count rows, each so many times; None: once."""
        prints = _row_prints(columns)
        times = np.ones(len(prints), dtype=np.int64) if counts is None else counts
        kept = (prints <= self._last) & (times > 0)
        self._prints, places = np.unique(np.concatenate([self._prints, prints[kept]]), return_inverse=True)
        sums = np.zeros(len(self._prints), dtype=np.int64)
        np.add.at(sums, places, np.concatenate([self._times, times[kept]]))
        self._times = sums
        while len(self._prints) > _MOST_DIFFERENT:
            self._last >>= np.uint64(1)
            left = int(np.searchsorted(self._prints, self._last, side="right"))
            self._prints, self._times = self._prints[:left], self._times[:left]
        return self

    @property
    def copied(self) -> tuple[int, int] | None:
        """What `copied` says of them."""
        return copied(self._times)


def _row_prints(columns: Sequence[_Array]) -> NDArray[np.uint64]:
    """Numbers that are equal for equal rows, and for others almost never."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for number, one in enumerate(columns):
        cells: _Array
        if one.dtype.kind == "U":  # a text's characters, which short ones have zeros after
            cells = np.ascontiguousarray(one).view(np.uint32).reshape(len(one), one.dtype.itemsize // 4)
        else:
            plain = one.astype(np.float64) + 0.0 if one.dtype.kind == "f" else one.astype(np.int64)  # −0.0 is 0.0
            cells = plain.view(np.uint64)[:, None]
        factors = np.random.default_rng(number).integers(0, 2**63, cells.shape[1], dtype=np.uint64) * 2 + 1
        for start in range(0, len(cells), _AT_ONCE):
            bits = cells[start : start + _AT_ONCE].astype(np.uint64)
            found[start : start + _AT_ONCE] += (bits ^ (bits >> np.uint64(32))) @ factors
    return found


def copied(times: NDArray[np.int64]) -> tuple[int, int] | None:
    """Whether rows were copied, from how often each different row occurs.

    Returns
    -------
    (r, f): f different rows occur r times each, which independent rows hardly do; None where nothing is unusual.
    """
    found = np.append(np.bincount(times[times <= _MOST_COPIES + 1], minlength=3), 0.0)
    often = np.arange(2, min(len(found) - 1, _MOST_COPIES + 1))
    # Chance moves each number by about its root; both neighbours get their upper ends.
    high = found + _ALARM * np.sqrt(found) + _FEWEST
    here = found[often]
    alarms = here - _ALARM * np.sqrt(here) > np.sqrt((1 + 1 / often) * high[often - 1] * high[often + 1])
    if not alarms.any():
        return None
    first = int(often[int(np.argmax(alarms))])
    return first, int(found[first])
