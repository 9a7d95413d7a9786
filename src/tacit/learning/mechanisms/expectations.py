"""What to expect of a mechanism: one model of teachers' votes, and one reading of it, for plans and for the choice.

The share of teachers that are wrong on a query is Beta(e, 1 − e), e the error of one teacher, and they all name the
same wrong class. So two teachers are wrong together half-way between independence and always: the correlation of their
mistakes is 1/2. Measured on public data it was 0.48 to 0.64 for logistic regression (MNIST and Adult, 100 and 250
teachers), 0.29 to 0.36 for trees and nearest neighbours with errors below 25 %, 0.22 for trees that err on half of the
queries, and 0.08 to 0.25 where teachers saw less than sixty records. A Beta(10e, 10(1 − e)), whose correlation is 1/11,
finds the majority wrong on 1 to 4 % of the queries where it was on 13 to 16 %. That all wrong teachers agree is too
dark for many classes and large errors. None of this proves anything.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .gate_design import likely_answered

RATIO = 3.0
"""Of a confident mechanism's noise in the test to that of an answer."""
CONFIDENT = 0.6
"""The share of teachers that agree where a confident mechanism answers, unless more is proven."""
_NODES = 1001

Floats = NDArray[np.float64]


@cache
def wrong_shares(error: float) -> Floats:
    """Equally likely shares of teachers that are wrong on a query."""
    if error in (0.0, 1.0):
        return np.full(1, error)
    found: Floats = special.betaincinv(error, 1 - error, (np.arange(_NODES) + 0.5) / _NODES)
    return found


def expected(
    mechanism: str,
    lead: Floats,
    *,
    teachers: int,
    queries: int,
    noise: float,
    threshold: int | None,
    refusals: int | None = None,
    answers: int | None = None,
    classes: int = 2,
    proposer_error: float = 0.0,
) -> tuple[float, float]:
    """Queries answered, and answered rightly, of so many whose right class leads by one of these margins in votes.

    `refusals` end a sparse vector, a gate or confirmations, `answers` a confident GNMax. A gate's noise is the number
    of votes to flip by which refusals become rarer e times. All votes are for two classes. Of the labels proposed for
    confirmation a share is wrong, whatever the teachers think of a query.
    """
    if mechanism in ("gnmax", "confident-gnmax"):
        spread = math.sqrt(2) * noise
        others = (classes - 2) * special.ndtr(-(teachers + lead) / 2 / spread)
        right = np.maximum(0.0, special.ndtr(lead / spread) - others)
        answered = np.ones_like(right)
        if threshold is not None:
            answered = special.ndtr(((teachers + np.abs(lead)) / 2 - threshold) / (RATIO * noise))
        reached = _reached(queries, answers, float(answered.mean()))
    elif mechanism == "confirm":
        agreed, disputed = (
            likely_answered(np.floor(sign * lead / 2), step=1 / noise, labels=False) for sign in (1, -1)
        )
        answered = (1 - proposer_error) * agreed + proposer_error * disputed
        right = np.divide((1 - proposer_error) * agreed, answered, out=np.ones_like(agreed), where=answered > 0)
        reached = _reached(queries, refusals, 1 - float(answered.mean()))
    else:
        right = (lead > 0) + 0.5 * (lead == 0)
        distance = np.maximum(0.0, np.ceil(np.abs(lead) / 2) - 1)
        gap = (threshold or 0) - distance
        if mechanism == "gate":
            answered = likely_answered(distance, step=1 / noise, labels=True)
        else:
            answered = _exceeds_two(gap, noise) if mechanism.startswith("svt") else _exceeds_one(gap, noise)
        reached = _reached(queries, refusals, 1 - float(answered.mean()))
    return reached * float(answered.mean()), reached * float((answered * right).mean())


def _reached(queries: int, limit: int | None, rate: float) -> float:
    """How many queries are asked until something of this rate has happened so often."""
    return queries if limit is None or rate * queries <= limit else limit / rate


def _exceeds_one(gap: Floats, scale: float) -> Floats:
    """P(Y > gap) for a discrete Laplace Y."""
    b = math.exp(-1 / scale)
    found: Floats = np.where(gap >= 0, b ** (np.maximum(gap, 0) + 1) / (1 + b), 1 - b ** np.maximum(-gap, 0) / (1 + b))
    return found


def _exceeds_two(gap: Floats, scale: float) -> Floats:
    """P(Y − Z > gap), Y of scale 2λ and Z of scale λ; see `accounting.unstable_release`."""
    b = math.exp(-1 / (2 * scale))
    w = np.where(gap >= 0, gap, -gap - 1)
    tail = (b ** (w + 1) * (1 + b) - b ** (2 * w + 3) / (1 + b * b)) / (1 + b + b * b)
    found: Floats = np.where(gap >= 0, tail, 1 - tail)
    return found
