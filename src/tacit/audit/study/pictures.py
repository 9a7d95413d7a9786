"""The pictures of the report: ROC curves, calibration, and the certificate against the number of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.wording import safe_text
from ...report import Figure, figures
from ..attacks import LEAST_ROWS
from ..attempt import Attempt
from ..certificate import Certificate
from ..certifying import certify_tally
from ..tally import Tally
from .findings import Findings
from .inputs import Read
from .options import SHARES_BY_DRAWS, Task

_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Parts of the sample whose certificates are drawn."""


def pictures_of(task: Task, table: Read, found: Findings) -> tuple[Figure, ...]:
    """The pictures that fit what was found; no number of rows helps a continuous output."""
    guessing = [attempt for attempt in found.tried if attempt.calibration]
    return (
        _roc(found),
        *([_calibration(guessing[0], found.certificate)] if guessing else []),
        *([_growth(task, table, found)] if found.certificate.method != "continuous" else []),
    )


def _roc(found: Findings) -> Figure:
    low, high = safe_text(found.audit.low, toward="down"), safe_text(found.audit.high, toward="up")
    return replace(
        found.certificate.plot(found.tried),
        title="Where every attack's ROC curve has to stay"
        if found.vectors is None
        else "Where the ROC curve of anyone who sees the code has to stay",
        alternative=f"True against false positive rate: the region reaches {high} above the diagonal; attacks reach "
        f"{low} or more.",
    )


def _calibration(best: Attempt, certificate: Certificate) -> Figure:
    return Figure(
        title="Calibration of the best attack's guesses",
        caption=f"Across: the probability of {certificate.positive!r} that an attack ({best.name}) gives to test rows. "
        f"Up: the share of them that is {certificate.positive!r}, both classes weighted alike. If all points "
        "lie at 0.5, the attack learned nothing. The bars are confidence limits that hold together.",
        alternative="Guessed probabilities from "
        f"{best.calibration[0][0]:.3f} to {best.calibration[-1][0]:.3f}, with shares from "
        f"{best.calibration[0][1]:.3f} to {best.calibration[-1][1]:.3f}.",
        svg=figures.calibration(best.calibration),
    )


def _growth(task: Task, table: Read, found: Findings) -> Figure:
    """The certificates of parts of the sample and of the table, beside the least that any table gives."""
    certificate = found.certificate
    options: dict[str, Any] = {
        "failure_probability": certificate.failure_probability,
        "method": certificate.method,
        "assume_max_slope": task.lipschitz,
    }
    points = []
    if table.sample.fewest >= LEAST_ROWS:
        for share in SHARES_BY_DRAWS if task.by_draws else _SHARES:
            secrets, columns = table.sample.table(share)
            if len(secrets) < 2 * LEAST_ROWS:
                continue
            tally = task.tally(len(secrets)).add(secrets, columns if len(columns) > 1 else columns[0])
            points.append((len(secrets), certify_tally(tally, **options, seed=task.seed).advantage))
    points.append((table.rows, certificate.advantage))
    sizes = np.geomspace(min(100, points[0][0]), 10 * table.rows, 25).round().astype(int).tolist()
    # By a kernel less is possible than of a constant that is counted.
    least = [] if certificate.by_kernel else [(size, _least(size, task, certificate)) for size in sizes]
    low = found.audit.low
    levels = {f"reached by an attack: {safe_text(low, toward='down')}": low} if low > 0 else {}
    marked = {}
    if task.require_advantage is not None:
        levels[f"ceiling: {task.require_advantage:g}"] = task.require_advantage
        needed = found.rows_needed.get(task.require_advantage)
        marked = {f"{needed} rows, the least for {task.require_advantage:g}": needed} if needed else {}
    return Figure(
        title="The certificate against the number of rows",
        caption="Dots: certificates of random parts of the table, each valid by itself, and of the whole table (the "
        "last one)." + " Line: the certificate of as many rows, half of each class, where nothing leaks." * bool(least),
        alternative=f"The certified advantage falls from {points[0][1]:.3f} with {points[0][0]} rows to "
        f"{certificate.advantage:.3f} with {table.rows}.",
        svg=figures.growth(points, least, levels=levels, marked=marked),
    )


def _least(rows: int, task: Task, certificate: Certificate) -> float:
    """The certified advantage of a table with this many rows whose output is constant."""
    half = max(1, rows // 2)
    tally = Tally(width=task.width(2 * half)).add([False, True], [0, 0], weights=[half, half])
    options: dict[str, Any] = {"method": task.method, "assume_max_slope": task.lipschitz}
    return certify_tally(tally, failure_probability=certificate.failure_probability, **options).advantage
