"""The price of a refusal against many digits, all rules and queries of short games, and one refusal's exact price."""

import itertools
import math
from functools import cache

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import InputError, NoTheoremError
from tacit.theory.adaptive_threshold import (
    FOR_LABELS,
    adaptive_threshold_budget,
    adaptive_threshold_delta,
    adaptive_threshold_votes,
    least_scale,
    refusal_price,
)
from tacit.theory.open_threshold import open_threshold_delta, open_threshold_scale, telling_chance

mp.mp.dps = 40

ORDERS = st.floats(0.05, 1e4)
TIMES = st.floats(1.001, 300)
"""Scales, as multiples of the least."""


def true_price(scale, order):
    theta = 1 / mp.mpf(scale)
    return -order * theta - mp.log(1 - order * mp.expm1(theta))


@settings(max_examples=300)
@given(ORDERS, TIMES)
def test_prices_against_many_digits(order, times):
    scale = times * least_scale(order)
    price, truth = refusal_price(scale, order=order), true_price(scale, order)
    assert truth <= price <= truth * (1 + mp.mpf("1e-4"))  # 1e-12 of room in 1/s, for scales up to 3e6


@settings(max_examples=300)
@given(ORDERS, TIMES, st.floats(-1, 1))
def test_the_price_is_the_worst_move(order, times, share):
    """No change of a clock's rate is worth more than the price, and the fastest is worth that."""
    scale = times * least_scale(order)
    r = mp.exp(share / mp.mpf(scale))
    worth = -order * mp.log(r) - mp.log(1 - order * (r - 1))
    assert worth <= refusal_price(scale, order=order) * (1 + mp.mpf("1e-12"))


@settings(max_examples=200)
@given(st.floats(1e-3, 1e6))
def test_the_least_scale_is_that_of_one_refusal(order):
    scale = least_scale(order)
    assert order * mp.expm1(1 / mp.mpf(scale) + mp.mpf("1e-12")) <= 1
    assert order * mp.expm1(1 / (mp.mpf(scale) * (1 - 1e-5))) > 1
    with pytest.raises(NoTheoremError, match="must have a scale above"):
        refusal_price(max(1 / 500, scale * (1 - 1e-5)), order=order)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("order", [0.3, 2.0, 8.6, 60.0])
def test_one_refusal_is_exact(epsilon, order):
    """With nothing left for prices it is sparse vector with one refusal, whose price is known."""
    scale = least_scale(order)
    found = adaptive_threshold_delta(epsilon, order=order, budget=0.0, labels=0.0)
    truth = open_threshold_delta(epsilon, scale=scale, threshold=math.ceil(5 * scale) + 1, refusals=1)
    assert truth * (1 - 1e-6) - 1e-29 <= found <= truth * (1 + 1e-6) + 1e-29


def best_rule_and_queries(y, left, *, order, times, hazards, queries, last=False):
    """What the best queries gain at y if the noise is chosen for them, too: all of some scales, hazards and directions.

    A query's hazard is that of one data set, and the other's differs by the whole factor, by half of it, or not at all.
    """
    least = least_scale(order)

    @cache
    def value(y, left, last, queries):
        best = max(0.0, 1 - y)
        if not queries:
            return best
        for scale, ending in [*((t * least, False) for t in times), (least, True)]:
            price = 0.0 if ending else refusal_price(scale, order=order)
            if (last and not ending) or price > left:
                continue
            for hazard, turn in itertools.product(hazards, (-1.0, -0.5, 0.0, 0.5, 1.0)):
                p, q = -math.expm1(-hazard), -math.expm1(-hazard * math.exp(turn / scale))
                refused = max(0.0, 1 - y * q / p) if ending else value(y * q / p, left - price, last, queries - 1)
                passed = value(y * (1 - q) / (1 - p), left, last or ending, queries - 1)
                best = max(best, p * refused + (1 - p) * passed)
        return best

    return value(y, left, last, queries)


@pytest.mark.parametrize("order", [0.6, 3.0, 12.0])
@pytest.mark.parametrize("x", [-0.4, 0.0, 0.15, 0.6])
def test_no_short_game_of_any_rule_gains_more(order, x):
    """Every rule that chooses noise and every strategy of three queries, of a menu, keeps to the theorem."""
    for budget in (0.0, 0.2, 1.5):
        gained = best_rule_and_queries(
            math.exp(x), budget, order=order, times=(1.02, 1.3, 3.0), hazards=(0.05, 0.5, 3.0), queries=3
        )
        claimed = math.exp(budget - order * x) / (1 + 2 * order)
        if x >= 0:
            claimed = adaptive_threshold_delta(x, order=order, budget=budget, labels=0.0)
        assert gained <= claimed


@pytest.mark.parametrize(
    ("order", "times", "refusals", "epsilon"),
    [
        (20.0, 1.5, 40, 0.0),
        (100.0, 3.0, 10_000, 0.0),
        (100.0, 3.0, 9000, 0.05),
        (20.0, 3.0, 3000, 0.1),
        (5.0, 1.2, 20, 0.0),
    ],
)
def test_equal_refusals_cost_no_less_than_they_do(order, times, refusals, epsilon):
    """The price of so many equal refusals is attained, also far above the budgets that sessions have."""
    scale = times * least_scale(order)
    truth = open_threshold_delta(epsilon, scale=scale, threshold=math.ceil(5 * scale) + 1, refusals=refusals)
    budget = (refusals - 1) * refusal_price(scale, order=order)
    assert adaptive_threshold_delta(epsilon, order=order, budget=budget, labels=0.0) >= truth * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.25, 1e-9), (4.0, 1e-6), (30.0, 1e-3)])
@pytest.mark.parametrize("order", [20.0, 300.0])
def test_the_budget_is_the_largest(epsilon, delta, order):
    order = order / epsilon
    budget = adaptive_threshold_budget(epsilon, delta, order=order)
    spent = adaptive_threshold_delta(epsilon, order=order, budget=budget, labels=FOR_LABELS * delta)
    assert delta * (1 - 1e-6) <= spent <= delta
    more = adaptive_threshold_delta(epsilon, order=order, budget=budget * (1 + 1e-6), labels=FOR_LABELS * delta)
    assert more > delta


def test_an_order_that_leaves_nothing_has_no_budget():
    with pytest.raises(NoTheoremError, match="must leave something of delta"):
        adaptive_threshold_budget(1.0, 1e-5, order=5.0)


@pytest.mark.parametrize("refusals", [20, 100, 1000])
def test_many_equal_refusals_cost_hardly_more_than_the_exact_price(refusals):
    """The noise that a session of equal refusals needs is at most 15 % above that of sparse vector, and never below."""
    order = 15.5
    budget = adaptive_threshold_budget(1.0, 1e-5, order=order)
    exact = open_threshold_scale(1.0, 1e-5, refusals=refusals)
    assert (refusals - 1) * refusal_price(1.15 * exact, order=order) <= budget
    assert (refusals - 1) * refusal_price(exact, order=order) > budget


@settings(max_examples=200)
@given(st.floats(-28, -0.1), st.floats(0.01, 1e6))
def test_the_votes_are_the_least(log_chance, scale):
    chance = 10**log_chance
    votes = adaptive_threshold_votes(chance, scale=scale)
    assert math.exp(-min(69.0, math.exp(min(votes / scale, 700.0)))) <= chance * (1 + 1e-9)
    assert votes == 0 or telling_chance(votes - 1, scale=scale) > chance


def test_what_is_out_of_range_is_refused():
    with pytest.raises(InputError, match="chance"):
        adaptive_threshold_votes(1e-30, scale=3.0)
    with pytest.raises(InputError, match="order"):
        refusal_price(10.0, order=0.0)
