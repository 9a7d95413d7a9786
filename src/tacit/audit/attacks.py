"""Attacks on a table: how well adversaries that learn from some of its rows tell the secret on the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from .attempt import Attempt
from .certificate import Certificate
from .columns import column, output_columns, spelled_numbers
from .learners import LEARNERS, fitting
from .measuring import measured

LEAST_ROWS = 30
"""Of each class: with fewer, no part of the table is large enough to show anything."""

_OWN_STREAM = 0x7AC17  # noise must not repeat the draws of a table that was simulated with the same seed
_FIT, _CHOICE = 1 / 3, 1 / 6  # of the rows; the other half tests


@renamed(methods="learners")
def attempts(
    secret: object,
    output: object,
    *,
    certificate: Certificate,
    noise: float | None = None,
    learners: Sequence[str] | None = None,
    failure_probability: float = 0.005,
    seed: int = 0,
) -> tuple[Attempt, ...]:
    """Attack the output that a certificate is about.

    A third of the rows fits an attack, a sixth chooses its threshold, and the other half tests it.

    Parameters
    ----------
    secret, output
        The table that was certified, or rows of its kind.
    certificate
        What the attacks are compared with.
    noise
        What the certificate was made with. It is drawn afresh and added, since the adversary sees the sum.
    learners
        Of "threshold", "histogram", "boosting" and "network"; by default all that fit the output, the network where
        torch is installed.
    failure_probability
        The chance that any interval of an advantage is false. The limits of `Attempt.at_rates` hold together with the
        same probability, and so do those of `Attempt.epsilon`.
    seed
        Of the noise, the parts of the table, and the learners.

    Returns
    -------
    The attempts, the best one first.

    Raises
    ------
    InputError
        Where a class has fewer than 30 rows, or the table is not of the certificate's kind.
    """
    failure = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.005")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    if not isinstance(certificate, Certificate):
        raise InputError("certificate", certificate, requirement="must be a Certificate", remedy="call certify first")
    if (noise is not None) != (certificate.method == "noisy"):
        raise InputError(
            "noise",
            noise,
            requirement="must be given where the certificate is of an output with noise, and only there",
            remedy="pass what certify was given",
        )
    secrets = column("secret", secret)
    columns = output_columns(output, rows=len(secrets))
    labels = secrets == certificate.positive
    if not bool((labels | (secrets == certificate.negative)).all()):
        raise InputError(
            "secret",
            "others",
            requirement=f"must be {certificate.negative!r} or {certificate.positive!r}, as in the certificate",
            remedy="pass the table that was certified, or rows of its kind",
        )
    for label, rows in ((True, int(labels.sum())), (False, int((~labels).sum()))):
        if rows < LEAST_ROWS:
            raise InputError(
                "secret",
                f"{rows} rows of {certificate.positive if label else certificate.negative!r}",
                requirement=f"must have {LEAST_ROWS} rows of each class or more for attacks",
                remedy="add rows, or do without attacks",
            )
    rng = np.random.default_rng([seed, _OWN_STREAM])
    if noise is not None:
        scale = validate.number("noise", noise, above=0, remedy="use None for no noise")
        columns = [one + scale * rng.standard_normal(len(one)) for one in columns]
    # An adversary who sees text that spells numbers sees the numbers as well; where most texts are unique, these alone.
    spelled = [spelled_numbers(one) if one.dtype.kind == "U" else None for one in columns]
    if certificate.method == "continuous":
        columns = [one for one, numbers in zip(columns, spelled, strict=True) if numbers is None]
    columns += [numbers for numbers in spelled if numbers is not None]
    chosen = fitting(columns) if learners is None else tuple(learners)
    for learner in chosen:
        validate.choice("each of learners", learner, tuple(LEARNERS), remedy="leave learners out for all that fit")
    fit, choice, test = _parts(labels, rng)
    found = []
    for learner in chosen:
        score = LEARNERS[learner]([one[fit] for one in columns], labels[fit], seed)
        scored = [(score([one[rows] for one in columns]), labels[rows]) for rows in (choice, test)]
        found.append(
            measured(learner, *scored, fitted=len(fit), certificate=certificate, failure=failure / len(chosen))
        )
    return tuple(sorted(found, key=lambda attempt: -attempt.low))


def _parts(labels: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Rows to fit on, to choose a rule on, and to test on, with both classes in each."""
    pieces: list[list[NDArray[np.int64]]] = [[], [], []]
    for label in (False, True):
        rows = rng.permutation(np.flatnonzero(labels == label))
        edges = [int(len(rows) * _FIT), int(len(rows) * (_FIT + _CHOICE))]
        for piece, held in zip(pieces, np.split(rows, edges), strict=True):
            piece.append(held)
    return tuple(np.concatenate(piece) for piece in pieces)
