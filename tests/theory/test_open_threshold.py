"""The open threshold's price against its integral in 40 digits, played strategies, and all those of short games."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import InputError, NoTheoremError
from tacit.learning.mechanisms import SparseVector
from tacit.learning.mechanisms.sparse_vector import UNIT, refusing
from tacit.theory import open_threshold
from tacit.theory.open_threshold import (
    HAZARDS,
    SLACK,
    open_threshold_delta,
    open_threshold_distance,
    open_threshold_scale,
    open_threshold_votes,
    telling_chance,
)

mp.mp.dps = 40


def price(epsilon, scale, refusals):
    """δ(ε) where labels cost e^(−69) a refusal, which is nothing."""
    return open_threshold_delta(epsilon, scale=scale, threshold=math.ceil(5 * scale) + 1, refusals=refusals)


def integral(epsilon, scale, refusals):
    """½·e^(ε/2)·∫ e^(−s/2)·P(N_s < T) ds over s ≥ ε, N_s of the generalized Poisson law."""
    theta = mp.mpf(1) / mp.mpf(scale)
    k = 1 / mp.expm1(theta)

    def below(s):
        terms = (
            mp.exp(-k * s - n * k * theta) * k**n * s * (s + n * theta) ** (n - 1) / mp.factorial(n)
            for n in range(refusals)
        )
        return mp.exp(-(s - epsilon) / 2) / 2 * mp.fsum(terms)

    middle = max(mp.mpf(epsilon), (refusals - 1) / k / (1 + theta))
    return mp.quad(below, [epsilon, middle + epsilon + 4, middle + epsilon + 40, mp.inf])


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 9.0])
@pytest.mark.parametrize(("scale", "refusals"), [(0.05, 3), (0.4, 1), (1.0, 4), (3.0, 2), (12.5, 20), (400.0, 7)])
def test_the_price_is_the_integral(epsilon, scale, refusals):
    truth = integral(epsilon, scale, refusals)
    assert truth <= price(epsilon, scale, refusals) <= truth * (1 + mp.mpf("1e-6")) + mp.mpf("1e-29") * refusals


def played(scale, refusals, *, parts, reach):
    """What a strategy of many queries of small hazards is worth at e^x: at x ≥ 0 one vote less, below one vote more.

    A pass moves x by a cell, so the places are a lattice; a refusal moves it by ±1/s but for a part of a cell, between
    whose ends its worth, a convex function, is taken from below by tangents.
    """
    theta = 1 / scale
    cell, c = theta / parts, math.exp(theta)
    places = cell * np.arange(-reach, reach + 1)
    before = np.maximum(0.0, -np.expm1(places))
    hazards = cell / (c - 1), c * cell / (c - 1)  # under P, where Q's is c times as large, and a cth of it
    p = [-math.expm1(-hazard) for hazard in hazards]
    moved = [math.log(-math.expm1(-hazards[1]) / p[0]), math.log(-math.expm1(-hazards[0]) / p[1])]
    for _ in range(refusals):
        refused = [chance * from_below(places, before, move) for chance, move in zip(p, moved, strict=True)]
        now = np.zeros_like(before)
        zero = reach  # the place of x = 0, where "one vote less" is asked; a cell below it, "one vote more"
        stay = (1 - p[0]) * (1 - p[1])
        now[zero] = (refused[0][zero] + (1 - p[0]) * refused[1][zero - 1]) / (1 - stay)
        for place in range(zero + 1, 2 * reach + 1):
            now[place] = refused[0][place] + (1 - p[0]) * now[place - 1]
        for place in range(zero - 1, -1, -1):
            now[place] = refused[1][place] + (1 - p[1]) * now[place + 1]
        before = np.maximum(now, np.maximum(0.0, -np.expm1(places)))
    return places, before


def from_below(places, values, move):
    """A function convex in e^x, at x + move: no chord between other points, prolonged, lies above it."""
    y, at = np.exp(places), np.exp(places + move)
    cell = np.clip(np.searchsorted(y, at, side="right") - 1, 1, len(y) - 3)
    chords = [
        values[i] + (at - y[i]) * (values[j] - values[i]) / (y[j] - y[i])
        for i, j in ((cell - 1, cell), (cell + 1, cell + 2))
    ]
    lowest = np.maximum(0.0, -np.expm1(places + move))  # who stops there has this
    return np.maximum(np.maximum(*chords), lowest)


@pytest.mark.parametrize(("scale", "refusals"), [(0.7, 1), (0.7, 3), (2.0, 2), (4.0, 12), (10.0, 5)])
def test_the_price_is_the_value_of_the_game(scale, refusals):
    """Strategies of small hazards reach it but for the size of a step, and exceed it nowhere."""
    places, worth = played(scale, refusals, parts=200, reach=200 * (refusals + 8))
    for x in np.linspace(0, 3 * math.sqrt(refusals) / scale, 7):
        nearest = int(np.argmin(np.abs(places - x)))
        claimed = price(float(places[nearest]), scale, refusals)
        assert claimed * 0.985 <= worth[nearest] <= claimed * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "threshold"), [(0.5, 1), (3.0, 7), (12.5, 30), (400.0, 1200), (2.0, 40)])
def test_the_chance_of_a_telling_label_is_that_of_sessions(scale, threshold):
    drawn = 1 - mp.mpf(refusing(0, scale=scale, threshold=threshold)) / UNIT
    assert drawn <= telling_chance(threshold, scale=scale) <= drawn * (1 + mp.mpf("1e-9"))


def level(y, scale, refusals):
    """W of the proof, at any y > 0."""
    if refusals == 0:
        return max(0.0, 1 - y)
    if y >= 1:
        return price(math.log(y), scale, refusals)
    return 1 - y + y * price(-math.log(y), scale, refusals)


@settings(max_examples=400)
@given(
    st.floats(0.05, 60),
    st.integers(1, 30),
    st.floats(-6, 6),
    st.floats(-30, 4.2),
    st.floats(-1, 1),
)
def test_no_query_gains_at_any_level(scale, refusals, x, log_hazard, ratio):
    y, hazard = math.exp(x), math.exp(log_hazard)
    other = hazard * math.exp(ratio / scale)
    p, q = -math.expm1(-hazard), -math.expm1(-other)
    if not 0 < q < 1 or y * math.exp(hazard - other) > 1e200:
        return
    refused, passed = y * q / p, y * math.exp(hazard - other)
    if max(abs(math.log(refused)), abs(math.log(max(passed, 1e-300)))) > 600:
        return
    gained = p * level(refused, scale, refusals - 1) + (1 - p) * level(passed, scale, refusals)
    assert gained <= level(y, scale, refusals) * (1 + 1e-7) + 1e-13


def best_of_all(epsilon, *, scale, threshold, refusals, queries):
    """The largest δ(ε) of adaptive strategies of so many queries, labels among them, by trying all."""
    distances = sorted({0, 1, max(0, threshold - 1), threshold, threshold + 1, threshold + math.ceil(2 * scale)})
    chances = {d: -math.expm1(-math.exp((threshold - d) / scale)) for near in distances for d in (near, near + 1)}
    pairs = [(chances[d], chances[d + 1]) for d in distances]
    pairs += [(b, a) for a, b in pairs]
    grow = math.exp(epsilon)

    def value(p, q, left, t):
        best = max(0.0, p - grow * q)
        if left == 0 or t == 0:
            return best
        told = chances[0]
        best = max(best, p * (1 - told) + value(p * told, q * told, left - 1, t - 1))
        for here, there in pairs:
            found = value(p * here, q * there, left - 1, t - 1) + value(p * (1 - here), q * (1 - there), left - 1, t)
            best = max(best, found)
        return best

    return value(1.0, 1.0, queries, refusals)


@pytest.mark.parametrize(("scale", "threshold", "refusals"), [(0.5, 0, 1), (0.8, 1, 2), (1.5, 2, 1), (2.0, 3, 2)])
def test_no_strategy_of_short_games_gains_more(scale, threshold, refusals):
    nearest = 0.0
    for epsilon in (0.0, 0.4, 1.0, 2.0, 6.0, 60.0):
        claimed = open_threshold_delta(epsilon, scale=scale, threshold=threshold, refusals=refusals)
        reached = best_of_all(epsilon, scale=scale, threshold=threshold, refusals=refusals, queries=4)
        assert reached <= claimed * (1 + 1e-9)
        nearest = max(nearest, reached / claimed)
    assert nearest > 0.95  # a label, at the largest ε


def test_a_sign_is_charged_once_a_refusal():
    """At an ε out of reach, what is left is T chances of a telling label."""
    chance = mp.exp(-mp.exp(mp.mpf(3) / 2))
    for refusals in (1, 4, 20_000):
        truth = 1 - (1 - chance) ** refusals
        claimed = open_threshold_delta(9000.0, scale=2.0, threshold=3, refusals=refusals)
        assert truth <= claimed <= truth * (1 + mp.mpf("1e-9"))


def test_beyond_ten_thousand_refusals_the_closed_form_is_little_larger():
    for epsilon, scale in ((1.0, 900.0), (0.3, 2500.0), (4.0, 270.0)):
        last, first = (price(epsilon, scale, refusals) for refusals in (10_000, 10_001))
        assert last < first < 20 * last
        assert integral(epsilon, scale, 3) < price(epsilon, scale, 10**8)


@pytest.mark.parametrize("refusals", [1, 2, 9, 60])
def test_the_closed_form_lies_above_the_sum(refusals, monkeypatch):
    points = [(epsilon, scale) for epsilon in (0.0, 0.5, 3.0) for scale in (0.5, 4.0, 30.0)]
    summed = [price(*point, refusals) for point in points]
    monkeypatch.setattr(open_threshold, "_SUMMED", 0)
    closed = [price(*point, refusals) for point in points]
    assert all(low <= high for low, high in zip(summed, closed, strict=True))
    assert all(high < 12 * low for low, high in zip(summed, closed, strict=True) if low > 1e-25)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
@pytest.mark.parametrize("refusals", [2, 3, 30, 50_000])
def test_drawn_chances_keep_to_the_factor(epsilon, delta, refusals):
    """At hazards of all sizes, where these are cut off, and where 1 − e^(−H) changes its form."""
    mechanism = SparseVector(epsilon=epsilon, delta=delta, refusals=refusals)
    unit, scale, w = mechanism.unit, mechanism.scale, mechanism.threshold
    edges = [w - scale * math.log(hazard) for hazard in (*HAZARDS, 1.0, 1e-3, 1e-9, 1e-20, 30.0)]
    distances = sorted({max(0, math.floor(edge) + more) for edge in (0, *edges) for more in range(-4, 5)})
    with mp.workdps(80):
        limit = mp.exp(1 / mp.mpf(scale) + mp.mpf(SLACK))

        def hazard(distance):
            return -mp.log1p(-mp.mpf(mechanism._refusing(distance)) / unit)

        for distance in distances:
            here, there = hazard(distance), hazard(distance + 1)
            assert there <= here <= there * limit
            true = min(mp.mpf(69), max(mp.mpf(2) ** -100, mp.exp((w - mp.mpf(distance)) / scale)))
            assert abs(here / true - 1) < mp.mpf("4e-13")
        assert hazard(0) >= min(mp.mpf(69), mp.exp(mp.mpf(w) / scale)) * (1 - mp.mpf("1e-13"))


@pytest.mark.parametrize(
    ("epsilon", "delta", "refusals"), [(0.5, 1e-5, 1), (1.0, 1e-5, 20), (2.0, 1e-9, 40), (30.0, 1e-6, 3)]
)
def test_designs_are_the_least(epsilon, delta, refusals):
    scale = open_threshold_scale(epsilon, delta, refusals=refusals)
    assert integral(epsilon, scale, refusals) <= 0.98 * delta < integral(epsilon, 0.999 * scale, refusals)
    w = open_threshold_votes(epsilon, delta, scale=scale, refusals=refusals)
    assert open_threshold_delta(epsilon, scale=scale, threshold=w, refusals=refusals) <= delta
    assert open_threshold_delta(epsilon, scale=scale, threshold=w - 1, refusals=refusals) > delta
    told = mp.exp(-mp.exp(mp.mpf(w) / mp.mpf(scale)))
    assert refusals * told <= delta - integral(epsilon, scale, refusals)


def test_designs_of_many_refusals_keep_to_their_budget():
    for refusals in (10_001, 10**6, 10**8):
        scale = open_threshold_scale(1.0, 1e-5, refusals=refusals)
        w = open_threshold_votes(1.0, 1e-5, scale=scale, refusals=refusals)
        assert open_threshold_delta(1.0, scale=scale, threshold=w, refusals=refusals) <= 1e-5
        # N(1, μ² = T/s²) is nearly what T refusals tell, and (1, 1e-5)-DP at μ = 0.268
        assert 1 / 0.269 < scale / math.sqrt(refusals) < 1.13 / 0.268


def test_too_little_noise_is_no_design():
    with pytest.raises(NoTheoremError, match="use more noise"):
        open_threshold_votes(1.0, 1e-5, scale=1.0, refusals=3)


def test_a_delta_that_labels_cannot_keep_to_is_refused():
    with pytest.raises(InputError, match="delta must be at least 1e-24 for 1000 refusals"):
        open_threshold_scale(1.0, 1e-25, refusals=1000)
    with pytest.raises(InputError, match="failure_probability must be at least"):
        open_threshold_distance(scale=2.0, threshold=10, queries=1000, failure_probability=1e-27)


@pytest.mark.parametrize(("scale", "threshold", "queries"), [(2.0, 10, 5), (0.3, 1, 1), (80.0, 240, 10_000)])
def test_a_distance_is_answered_with_the_probability_it_promises(scale, threshold, queries):
    d = open_threshold_distance(scale=scale, threshold=threshold, queries=queries, failure_probability=0.01)
    refused = [queries * -mp.expm1(-mp.exp((threshold - mp.mpf(at)) / scale)) for at in (d, d - 1)]
    assert refused[0] <= 0.01 < refused[1]
