"""One certificate for each part of a table, all valid together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from .certificate import Certificate
from .certifying import certify_tally, ordered, uncertified
from .columns import column, multiplicities, output_columns, two_labels
from .tally import Tally


@renamed(delta="failure_probability", lipschitz="assume_max_slope")
def certify_slices(
    secret: object, output: object, slices: object, *, failure_probability: float, **options: Any
) -> dict[Any, Certificate]:
    """Certify every part of a table, so that all certificates hold together.

    Parameters
    ----------
    secret, output
        As in `certify`.
    slices
        A column; each of its values is a slice.
    failure_probability
        The chance that any of the certificates is false; each slice gets an equal share.
    **options
        Those of `certify`.

    Returns
    -------
    A certificate for each value of `slices`. That of a slice with one class bounds nothing, and says so.

    Raises
    ------
    NoTheoremError, InputError
        As in `certify`.
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
    return certify_tallies(tallies, failure_probability=failure_probability, **options)


@renamed(delta="failure_probability", lipschitz="assume_max_slope")
def certify_tallies(
    tallies: Mapping[Any, Tally], *, failure_probability: float, **options: Any
) -> dict[Any, Certificate]:
    """Certify slices from their counts, so that all certificates hold together.

    Parameters
    ----------
    tallies
        The counts of each slice.
    failure_probability
        The chance that any of the certificates is false; each slice gets an equal share.
    **options
        Those of `certify_tally`.

    Returns
    -------
    A certificate for each slice, as `certify_slices` returns them.

    Raises
    ------
    NoTheoremError, InputError
        As in `certify`.
    """
    failure_probability = validate.probability(
        "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
    )
    if not isinstance(tallies, Mapping) or not tallies:
        raise InputError(
            "tallies", tallies, requirement="must be a mapping of slices to tallies", remedy="make one for each slice"
        )
    name = options.pop("name", "the output")
    labels: list[Any] = []
    for tally in tallies.values():
        labels = two_labels(labels, tally.labels)
    labels = ordered(sorted(labels), options.get("positive"))
    share, found = failure_probability / len(tallies), {}
    for value, tally in tallies.items():
        part = f"{name} in slice {value!r}"
        if len(labels) == 2 and not all(tally.rows):
            found[value] = uncertified(
                tally,
                labels,
                failure_probability=share,
                output=part,
                method="none",
                reason="this slice has rows of one class only, and nothing is bounded",
            )
        else:
            found[value] = certify_tally(tally, failure_probability=share, name=part, **options)
    return found
