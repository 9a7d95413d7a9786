"""One certificate for each part of a table, all of them valid together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import validate
from ..core.errors import InputError
from .certificate import Certificate
from .certifying import certify_tally, ordered
from .columns import column, multiplicities, output_columns, two_labels
from .limits import TRIVIAL
from .tally import Tally


def certify_slices(
    secret: object, output: object, slices: object, *, delta: float, **options: Any
) -> dict[Any, Certificate]:
    """A certificate for every value of the column `slices`, all valid together except with probability `delta`.

    Options are those of `certify`. Each slice gets an equal share of delta. A slice with one class alone has a
    certificate that bounds nothing, and says so.
    """
    parts, secrets = column("slices", slices), column("secret", secret)
    if len(parts) != len(secrets) or not len(parts):
        raise InputError(
            "slices",
            f"{len(parts)} rows",
            requirement=f"must be a column with as many rows as secret, {len(secrets)}",
            remedy="pass columns of one table",
        )
    kind = {name: options.pop(name, None) for name in ("noise", "width", "noise_added")}
    weights = options.pop("weights", None)
    counts = None if weights is None else multiplicities(weights, len(secrets))
    if kind["noise_added"] is not None:
        kind["rows"] = max(1, len(secrets) if counts is None else int(counts.sum()))
    columns = output_columns(output, rows=len(secrets))
    tallies = {}
    values, places = np.unique(parts, return_inverse=True)
    for place, value in enumerate(values.tolist()):
        rows = places == place
        kept = None if counts is None else counts[rows]
        seen = dict(enumerate(one[rows] for one in columns))
        tallies[value] = Tally(**kind).add(secrets[rows], seen, weights=kept)
    return certify_tallies(tallies, delta=delta, **options)


def certify_tallies(tallies: Mapping[Any, Tally], *, delta: float, **options: Any) -> dict[Any, Certificate]:
    """`certify_slices` from one tally for each slice; options are those of `certify_tally`."""
    delta = validate.probability("delta", delta, remedy="use a small probability such as 0.05")
    if not isinstance(tallies, Mapping) or not tallies:
        raise InputError(
            "tallies", tallies, requirement="must be a mapping of slices to tallies", remedy="make one for each slice"
        )
    name = options.pop("name", "the output")
    labels: list[Any] = []
    for tally in tallies.values():
        labels = two_labels(labels, tally.labels)
    labels = ordered(sorted(labels), options.get("positive"))
    found = {}
    for value, tally in tallies.items():
        part = f"{name} in slice {value!r}"
        if len(labels) == 2 and not all(tally.rows):
            found[value] = _nothing(tally, labels, delta / len(tallies), part)
        else:
            found[value] = certify_tally(tally, delta=delta / len(tallies), name=part, **options)
    return found


def _nothing(tally: Tally, labels: list[Any], delta: float, name: str) -> Certificate:
    """The certificate of a slice with one class: it bounds nothing."""
    rows = dict(zip(tally.labels, tally.rows, strict=False))
    return Certificate(
        **TRIVIAL._asdict(),
        plug_in=1.0,
        delta=delta,
        loss="none",
        method="none",
        form="none",
        sampling="none",
        output=name,
        positive=labels[1],
        negative=labels[0],
        positives=rows.get(labels[1], 0),
        negatives=rows.get(labels[0], 0),
        theorem=("none: only one class is in this slice, and nothing is bounded",),
        assumptions=(),
    )
