"""Private labels as class numbers, and the search for classes that nobody named.

Each label is read on its own. NumPy would choose one type for a whole list, so that a single record with the label
"none" would turn the whole numbers of all others into text, and with them what is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from ..ledger import Amount
from ..theory.accounting import label_threshold, laplace_scale
from .mechanisms import Noise, SystemNoise

UNNAMED = -1
"""The number of a label that is none of the classes."""

Label = bool | int | str

_KINDS: tuple[type, ...] = (bool, int, str)
_WHOLE = range(-(2**63), 2**63)
_LABELS = "must hold text, whole numbers or true and false, one for each record"
_STATED = "biufU"
"""Kinds of NumPy's types that an array states for all its labels, whatever they are."""


def column(name: str, values: Any) -> Any:
    """Labels as an array: of the type that an array, a column or a tensor states for all of them, else as they are.

    None, and arrays of several dimensions, are left to whoever reads them.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(name, "a masked array", requirement=_LABELS, remedy="fill in or leave out what is masked")
    if values is None:
        return None
    values = validate.detached(values)
    kind = getattr(values, "dtype", None)
    if not isinstance(kind, np.dtype):
        listed = next((getattr(values, each) for each in ("to_pylist", "to_list") if hasattr(values, each)), None)
        values = listed() if listed is not None else values if hasattr(values, "__array__") else list(values)
    if isinstance(values, list):
        return np.asarray(values, dtype=object)
    found = np.asarray(values)
    return found if found.dtype.kind in _STATED else np.asarray(values, dtype=object)


def distinct(name: str, labels: NDArray[Any]) -> tuple[list[Label], NDArray[np.int64]]:
    """The different labels of a column in order, and for each record the number of its own.

    1, 1.0 and NumPy's are one label; True is another, and so is "1".
    """
    if labels.dtype != object:
        values, places = np.unique(labels, return_inverse=True)
        each = [_label(name, value) for value in values.tolist()]
    else:
        known: dict[tuple[type, object], int] = {}
        each, found = [], []
        for value in labels.tolist():
            label = _label(name, value)
            key = type(label), label
            if key not in known:
                known[key] = len(each)
                each.append(label)
            found.append(known[key])
        places = np.array(found, dtype=np.int64)
    order = sorted(range(len(each)), key=lambda place: (_KINDS.index(type(each[place])), each[place]))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return [each[place] for place in order], ranks[places]


def _label(name: str, value: object) -> Label:
    """A label as Python has it: what one becomes does not depend on any other."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int) and int(value) in _WHOLE:
        return int(value)
    if isinstance(value, str) and _storable(value):
        return str(value)
    kind = "continuous" if isinstance(value, float) and value == value else "unknown"  # scikit-learn's words
    raise InputError(
        name,
        f"Unknown label type: {kind}",  # but not which, as labels are private
        requirement=_LABELS,
        remedy="write dates, bytes and other things as text; leave out records without a label",
    )


def _storable(text: str) -> bool:
    """Whether files and NumPy's arrays hold it as it is."""
    return not text.endswith("\0") and not any("\ud800" <= letter <= "\udfff" for letter in text)


def typed(classes: Sequence[Label]) -> NDArray[Any]:
    """Classes in an array whose type they alone decide; where they are of several kinds, as they are."""
    kinds = {type(label) for label in classes}
    if len(kinds) == 1:
        return np.array(classes, dtype={bool: np.bool_, int: np.int64, str: np.str_}[kinds.pop()])
    return np.array(classes, dtype=object)


def named(y: NDArray[Any], classes: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All classes in order, and the number of each label's; labels must be among them."""
    listed = listed_classes(classes)
    numbers = numbered(y, listed)
    if (numbers == UNNAMED).any():
        raise InputError(
            "y",
            "some label that is none of them",  # but not which, as labels are private
            requirement="must hold labels among classes alone",
            remedy="list every label that may occur",
        )
    return listed, numbers


def listed_classes(classes: Any) -> NDArray[Any]:
    """Classes that the caller named, in order."""
    found = np.empty(0) if isinstance(classes, str | bytes) else column("classes", classes)
    if found.ndim != 1 or not len(found):
        raise InputError("classes", classes, requirement="must not be empty", remedy="list every label that may occur")
    return typed(distinct("classes", found)[0])


def numbered(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The number of each label's class; `UNNAMED` where it has none."""
    present, places = distinct("y", y)
    listed = classes.tolist()
    same = {(type(label), label): number for number, label in enumerate(listed)}
    equal = {label: number for number, label in enumerate(listed)}  # True is 1 where no class is True
    numbers = [same.get((type(label), label), equal.get(label, UNNAMED)) for label in present]
    return np.array(numbers, dtype=np.int64)[places]


FOUND_BY = ("theory.accounting.laplace_scale", "theory.accounting.label_threshold")
"""The theorems by which a `Search` costs no more than it says."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """An (ε, δ)-DP search for the labels that enough records hold.

    One record or person changes `changed` counts by 1.
    """

    epsilon: float
    delta: float
    changed: int

    @property
    def scale(self) -> float:
        """The scale of the noise on each count."""
        return laplace_scale(self.epsilon, sensitivity=self.changed)

    @property
    def threshold(self) -> int:
        """The number that a noisy count has to reach."""
        return label_threshold(self.delta, scale=self.scale, changed=self.changed)

    def labels(self, y: NDArray[Any], people: list[bytes] | None = None, noise: Noise | None = None) -> list[Label]:
        """The labels found, in order. Each person counts once, for the label that most of their records hold."""
        source = SystemNoise() if noise is None else noise
        held, numbers = distinct("y", y)
        counts = np.bincount(numbers if people is None else _usual(numbers, people), minlength=len(held))
        scale, threshold = self.scale, self.threshold
        return [
            label
            for label, count in zip(held, counts.tolist(), strict=True)
            if count and count + source.laplace(scale) >= threshold
        ]

    def classes(self, found: object, *, left: Amount | None = None) -> NDArray[Any]:
        """The labels found as classes, of a type that depends on them alone; raises if there are fewer than two.

        The error says what is `left` of a ledger for the run that names them.
        """
        if not isinstance(found, list) or len(found) < 2:
            raise InputError(
                "the number of classes found among private labels",
                len(found) if isinstance(found, list) else found,
                requirement=f"must be two or more, each of about {self.threshold} records or people at this budget",
                remedy="name them in `classes`, which costs nothing, if they are public knowledge; what this search "
                "cost stays spent"
                + ("" if left is None else f", so use at most `epsilon={left.epsilon:f}` and `delta={left.delta:f}`"),
            )
        return typed(found)


def _usual(numbers: NDArray[np.int64], people: list[bytes]) -> NDArray[np.int64]:
    """For each person the number that they have most often; of equals, the least."""
    _, who = np.unique(np.array(people, dtype=object), return_inverse=True)
    pairs, times = np.unique(np.column_stack([who, numbers]), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -times, pairs[:, 0]))
    _, first = np.unique(pairs[order, 0], return_index=True)
    usual: NDArray[np.int64] = pairs[order[first], 1]
    return usual
