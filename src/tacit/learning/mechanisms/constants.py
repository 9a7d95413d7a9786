"""Each mechanism's constants at a budget: its noise, its threshold, and the votes from which it answers rightly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from ...core.rounding import last_true
from ...theory import accounting, learnability
from ...theory.divergences import gaussian_delta
from . import gate_design
from .expectations import RATIO
from .gate import Confirm, Gate

TABLES = ("gate", "confirm")
"""Mechanisms that are run with a table of chances."""

RAREST_REFUSAL = 1e-12
"""No table refuses with a smaller chance."""


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What a mechanism is run with, and the votes to flip from which it answers all queries rightly.

    `estimated` ones are about right, for a table that has yet to be searched for; the `delta_spent` of a table is
    proven when it is run: None.
    """

    noise: float
    threshold: int | None = None
    refusals: int | None = None
    distance: int
    delta_spent: float | None = None
    estimated: bool = False


def constants(
    name: str,
    *,
    epsilon: float,
    delta: float,
    queries: int,
    refusals: int,
    teachers: int,
    classes: int,
    failure_probability: float,
    rough: bool,
) -> Constants:
    """Those of a mechanism for so many queries, which may fail on any of them with this probability.

    `refusals` matter to those that they end. A rough answer settles for noise that is right to a few per cent.
    """
    m, share = queries, failure_probability
    if name in ("svt", "svt-faithful"):
        noise, threshold, spent = _sparse_vector(epsilon, delta, refusals, m if name == "svt-faithful" else None)
        distance = accounting.sparse_vector_distance(
            scale=noise, threshold=threshold, refusals=refusals, queries=m, failure_probability=share
        )
        return Constants(noise=noise, threshold=threshold, refusals=refusals, distance=distance, delta_spent=spent)
    if name == "composition":
        noise, threshold, spent = _stable_release(epsilon, delta, m)
        distance = learnability.stable_release_distance(
            scale=noise, threshold=threshold, queries=m, failure_probability=share
        )
        return Constants(noise=noise, threshold=threshold, distance=distance, delta_spent=spent)
    if name == "gnmax":
        noise, spent = _gaussian(epsilon, delta, m, 0, rough)
        distance = learnability.gnmax_distance(sigma=noise, classes=classes, queries=m, failure_probability=share)
        return Constants(noise=noise, distance=distance, delta_spent=spent)
    if name in TABLES:
        return _table(name, epsilon, delta, refusals, max(share / m, RAREST_REFUSAL))
    noise, spent = _gaussian(epsilon, delta, m, m, rough)
    distance = learnability.gnmax_distance(sigma=noise, classes=classes, queries=m, failure_probability=share / 2)
    slack = learnability.gnmax_test_margin(test_sigma=RATIO * noise, queries=m, failure_probability=share / 2)
    # The highest threshold that lets through every query on which no more are wrong than is tolerated.
    outvoted = max(0, learnability.tolerated_votes(teachers, distance=distance))
    threshold = max(0, teachers - outvoted - slack)
    return Constants(noise=noise, threshold=threshold, distance=distance, delta_spent=spent)


@cache
def _table(name: str, epsilon: float, delta: float, refusals: int, chance: float) -> Constants:
    """Its noise is the number of votes by which refusals become rarer e times; `chance` is that of a refusal."""
    labels = name == "gate"
    stored = gate_design.stored_refusals(epsilon, delta, at_least=refusals, labels=labels)
    if stored is None:
        step = gate_design.likely_step(epsilon, delta, refusals=refusals)
        distance = max(0, gate_design.likely_distance(chance, step=step, labels=labels))
        return Constants(noise=1 / step, refusals=refusals, distance=distance, estimated=True)
    if labels:
        gate = Gate(epsilon=epsilon, delta=delta, refusals=stored)
        return Constants(noise=1 / gate.design.step, refusals=stored, distance=gate.distance(chance=chance))
    confirm = Confirm(epsilon=epsilon, delta=delta, refusals=stored)
    return Constants(noise=1 / confirm.design.step, refusals=stored, distance=max(0, confirm.lead(chance=chance)))


@cache
def _sparse_vector(epsilon: float, delta: float, refusals: int, queries: int | None) -> tuple[float, int, float]:
    if queries is None:
        scale = accounting.sparse_vector_scale(epsilon, delta, refusals=refusals)
        threshold = accounting.sparse_vector_threshold(epsilon, delta, scale=scale, refusals=refusals)
    else:
        scale = accounting.printed_scale(epsilon, delta, refusals=refusals)
        threshold = accounting.printed_threshold(delta, scale=scale, queries=queries)
    spent = accounting.sparse_vector_delta(epsilon, scale=scale, threshold=threshold, refusals=refusals)
    return scale, threshold, spent


@cache
def _stable_release(epsilon: float, delta: float, queries: int) -> tuple[float, int, float]:
    scale = accounting.stable_release_scale(epsilon, delta, queries=queries)
    threshold = accounting.stable_release_threshold(epsilon, delta, scale=scale, queries=queries)
    spent = accounting.stable_release_delta(epsilon, scale=scale, threshold=threshold, queries=queries)
    return scale, threshold, spent


@cache
def _gaussian(epsilon: float, delta: float, answers: int, tests: int, rough: bool) -> tuple[float, float]:
    """A σ that was seen to be enough, within 0.1 % of the mechanism's own, which takes a second to find; and its δ.

    Continuous noise gives the first guess. A rough answer stops there.
    """
    most = last_true(
        lambda distance: gaussian_delta(epsilon, distance=distance) <= delta,
        holds=0.0,
        fails=2 * math.sqrt(2 * epsilon) + 40.0,
    )
    sigma = max(0.5, math.sqrt(2 * answers + tests / RATIO**2) / most)
    if rough:
        return sigma, delta
    slack = 1e-4
    while True:
        tried = sigma * (1 + slack)
        spent = accounting.gnmax_delta(epsilon, sigma=tried, answers=answers, test_sigma=RATIO * tried, tests=tests)
        if spent <= delta:
            return tried, spent
        slack *= 2
