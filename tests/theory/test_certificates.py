"""Limits for v, I and TV: their proofs' inequalities in 30 digits; exact coverage by enumeration, no false alarms."""

import math
from functools import partial
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit import InputError, NoTheoremError
from tacit.theory import certificates
from tacit.theory.certificates import (
    binning_root,
    characteristic_limit,
    hockey_stick_limit,
    lipschitz_excess,
    log_closed,
    log_sharp,
    printed_log_loss,
    printed_network_loss,
    printed_squared_loss,
    smoothing_root,
    smoothing_variation,
    squared_closed,
    squared_sharp,
    tanh_barron,
    variation_exact,
    variation_upper,
)

mp.mp.dps = 30
SLACK = 1e-6

sizes = st.integers(1, 10**6)
failures = st.floats(1e-9, 0.5)
plug_ins = st.floats(0, 0.98)


def kl(m, mu):
    return (m * mp.log(m / mu) if m else 0) + ((1 - m) * mp.log((1 - m) / (1 - mu)) if m < 1 else 0)


def phi(strength, u):
    """E[exp(−λX) | η² = u]."""
    e = mp.sqrt(u)
    return mp.exp(strength * u) * (mp.cosh(2 * strength * e) - e * mp.sinh(2 * strength * e))


def squared_rate(x, w):
    """Λ by maximising over λ, not by its closed form."""
    low, high = mp.mpf(0), mp.mpf(1) / 2

    def gain(strength):
        return -strength * x - mp.log(phi(strength, w))

    for _ in range(120):  # the gain is concave in λ
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if gain(first) < gain(second):
            low = first
        else:
            high = second
    return max(mp.mpf(0), gain(low))


def iota(e):
    return ((1 + e) * mp.log(1 + e) + (1 - e) * mp.log(1 - e)) / 2


def log_rate(x, e):
    k = (x - mp.log(1 - e)) / mp.log((1 + e) / (1 - e))
    return kl(k, (1 + e) / 2)


# The inequalities of the proofs


def test_the_moment_is_concave_in_the_squared_posterior():
    """φ″ < 0 on a grid of λ and u, by the derivative's own formula."""
    for strength in map(mp.mpf, np.linspace(0.01, 1, 25)):
        for u in map(mp.mpf, np.linspace(0.001, 0.999, 25)):
            assert mp.diff(partial(phi, strength), u, 2) < 0
        # and the slope at 0, which gives the closed form
        assert mp.diff(partial(phi, strength), mp.mpf("1e-9"), 1) == pytest.approx(
            float(-strength + 2 * strength**2), abs=1e-6
        )


def test_the_log_moment_is_concave_in_the_information():
    """b_k/a_k ascends, and the series is the moment."""
    for strength in (0.1, 0.5, 0.9):
        ratio, before = mp.mpf(1), mp.mpf(0)
        total, e = mp.mpf(0), mp.mpf("0.6")
        for k in range(1, 60):
            if k > 1:
                for j in (2 * k - 3, 2 * k - 2):
                    ratio *= 1 + mp.mpf(strength) / j
            assert ratio > before
            before = ratio
            total += ratio * e ** (2 * k) / (2 * k * (2 * k - 1))
        moment = ((1 + e) ** (1 - mp.mpf(strength)) + (1 - e) ** (1 - mp.mpf(strength))) / 2
        assert mp.almosteq(1 - strength * (1 - mp.mpf(strength)) * total, moment, 1e-12)


def intervals(function, low, high, pieces):
    """The upper ends of `function` over a partition, in interval arithmetic: a bound for every point between."""
    edges = [low + (high - low) * mp.mpf(i) / pieces for i in range(pieces + 1)]
    return [function(mp.iv.mpf([a, b])).b for a, b in pairwise(edges)]


def test_single_classes_cost_five_percent_for_the_squared_loss():
    """−(0.05 − r/3 + 7r²/12 + r³/4) < 0 on [0, 1], in interval arithmetic."""
    # Centred at 0.24, where it is least, so that intervals do not widen.
    centre = mp.iv.mpf("0.24")

    def negative(r):
        d = r - centre
        value = mp.iv.mpf("0.05") - centre / 3 + 7 * centre**2 / 12 + centre**3 / 4
        slope = -mp.iv.mpf(1) / 3 + 7 * centre / 6 + 3 * centre**2 / 4
        return -(value + slope * d + (mp.iv.mpf(7) / 12 + 3 * centre / 4) * d**2 + d**3 / 4)

    assert max(intervals(negative, mp.mpf(0), mp.mpf(1), 400)) < 0


def test_the_squared_inequality_of_single_classes_itself():
    price = certificates._SQUARED_PRICE
    for a in np.linspace(0, 1 / (2 * price), 60):
        eta = np.linspace(-1, 1, 801)
        left = (1 + eta) * np.exp(-a * (2 * eta - eta**2))
        right = 1 + (1 - 2 * a) * eta - a * (eta**2 - eta**3) + 2 * price * a**2 * eta**2
        assert (left <= right + 1e-14).all()


def test_single_classes_cost_twenty_percent_for_the_log_loss():
    """C²(e^(z/C) − 1 − z/C)e^(−z) < C·ι(1 − e^(−z)) for z from 0.6 to 24 in interval arithmetic; beyond by hand."""
    price = mp.iv.mpf("1.2")

    def excess(z):
        left = price * (mp.iv.exp(z / price) - 1 - z / price) * mp.iv.exp(-z)
        r = 1 - mp.iv.exp(-z)
        return left - ((1 + r) * mp.iv.log(1 + r) - z * mp.iv.exp(-z)) / 2  # ln(1 − r) = −z

    assert certificates._LOG_PRICE == 1.2
    assert max(intervals(excess, mp.mpf("0.59"), mp.mpf(6), 6000)) < 0
    assert max(intervals(excess, mp.mpf(6), mp.mpf(24), 4000)) < 0
    assert mp.mpf("1.44") * mp.exp(-mp.mpf(24) / 6) < mp.mpf("1.2") * (mp.log(2) - mp.mpf("1e-9"))
    assert certificates._LOG_PRICE + 1e-12 >= 1 / (1 - 0.6 / 3.6)  # and below 0.6 by the series


def test_the_log_inequality_of_single_classes_itself():
    price = certificates._LOG_PRICE
    eta = np.concatenate([np.linspace(-0.9999, 0.9999, 1501), -1 + np.geomspace(1e-12, 1e-4, 50)])
    information = ((1 + eta) * np.log1p(eta) + (1 - eta) * np.log1p(-eta)) / 2
    for a in np.linspace(0, 1 / price, 60):
        left = (1 + eta) ** (1 - a)
        right = 1 + eta - a * (1 + eta) * np.log1p(eta) + price * a**2 * information
        assert (left <= right + 1e-14).all()


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_rates_ascend(x, first, second):
    low, high = sorted((first, second))
    assert certificates._squared_rate(x, low) <= certificates._squared_rate(x, high) + 1e-9
    top = 1 - 2.0**-40
    assert (
        certificates._log_rate(min(x, 0.69), min(low, top))
        <= certificates._log_rate(min(x, 0.69), min(high, top)) + 1e-9
    )


@pytest.mark.parametrize("x", [0.0, 1e-4, 0.3])
@pytest.mark.parametrize("w", [1e-3, 0.4, 0.85, 0.999])
def test_the_closed_rate_is_the_maximum_over_strengths(x, w):
    if w > x:
        exact = float(squared_rate(mp.mpf(x), mp.mpf(w)))
        assert exact * (1 - 1e-8) - 1e-13 <= certificates._squared_rate(x, w) <= exact + 1e-18


# The limits are what their statements say


@given(plug_ins, sizes, failures)
def test_squared_limits_invert_their_rates(x, half, delta):
    log, n = mp.log(1 / mp.mpf(delta)), 2 * half
    options = {"positives": half, "negatives": half, "failure_probability": delta}
    closed, sharp = squared_closed(x, **options), squared_sharp(x, **options)
    root = mp.sqrt(2 * log / n) + mp.sqrt(x + 2 * log / n)
    assert min(1, root**2) <= closed <= min(1, root**2 * (1 + mp.mpf(SLACK)))
    assert x <= sharp <= closed
    if sharp < 1:
        e = mp.sqrt(sharp)
        if (mp.atanh(e) - mp.atanh((x + sharp) / (2 * e))) / (2 * e) < 0.5:
            assert n * kl((1 + (x + sharp) / (2 * e)) / 2, (1 + e) / 2) >= log
        less = mp.mpf(sharp) - (sharp - x) * mp.mpf(SLACK)
        assert n * squared_rate(mp.mpf(x), less) < log * (1 + mp.mpf(SLACK))


@given(st.floats(0, 0.68), sizes, failures)
def test_log_limits_invert_their_rates(x, half, delta):
    log, n = mp.log(1 / mp.mpf(delta)), 2 * half
    options = {"positives": half, "negatives": half, "failure_probability": delta}
    closed, sharp = log_closed(x, **options), log_sharp(x, **options)
    root = mp.sqrt(log / n) + mp.sqrt(x + log / n)
    assert min(mp.log(2), root**2) <= closed <= min(mp.log(2), root**2) * (1 + mp.mpf(SLACK))
    assert x <= sharp <= closed
    if sharp < 0.69:
        e = mp.findroot(lambda e: iota(e) - sharp, (mp.sqrt(2 * sharp) * 0.7, 1 - mp.mpf("1e-12")), solver="anderson")
        assert n * log_rate(mp.mpf(x), e) >= log * (1 - mp.mpf(SLACK))
        less = e * (1 - mp.mpf(SLACK))
        assert iota(less) <= x or n * log_rate(mp.mpf(x), less) <= log * (1 + mp.mpf(SLACK))


def test_log_limits_near_ln_2_are_never_below_their_rate():
    """Where ι(e) is the limit, n times the rate at e is L or more, in 50 digits; 21 of 300 such draws were not."""
    rng = np.random.default_rng(1)
    draws = [(5709959, 0.6931413569286041, 0.05)]
    for _ in range(150):
        gap, failure = 10 ** rng.uniform(-9, -0.3), rng.choice([0.05, 0.5, 1e-30, 1 - 1e-9])
        draws.append((2 * int(10 ** rng.uniform(0.3, 9)), max(0.0, math.log(2) - gap), float(failure)))
    checked = 0
    with mp.workdps(50):
        for n, x, delta in draws:
            half = (n + 1) // 2
            log, n = -mp.log(mp.mpf(delta)), 2 * half
            limit = log_sharp(x, positives=half, negatives=half, failure_probability=delta)
            if limit >= min(mp.log(2), (mp.sqrt(log / n) + mp.sqrt(x + log / n)) ** 2):
                continue
            low, high = mp.mpf(0), mp.mpf(1)
            for _ in range(170):
                middle = (low + high) / 2
                low, high = (low, middle) if iota(middle) > limit else (middle, high)
            assert n * log_rate(mp.mpf(x), high) >= log
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("delta", [1 - 1e-12, 1 - 2**-53, 5e-324])
def test_failure_probabilities_near_their_ends(delta):
    """ln(1/δ) by way of 1/δ errs by 1e-4 at 1 − 1e-12, and is infinite at 5e-324."""
    floor = 2 * -mp.log(mp.mpf(delta)) / 10**6
    exact = (mp.sqrt(floor) + mp.sqrt(floor + mp.mpf(0.25))) ** 2
    found = squared_closed(0.25, positives=500_000, negatives=500_000, failure_probability=delta)
    assert exact <= found <= exact * (1 + mp.mpf(1e-11))


@given(plug_ins, sizes, failures)
def test_variation_limits_invert_their_rates(x, half, delta):
    log, n = mp.log(1 / mp.mpf(delta)), 2 * half
    limit = variation_upper(x, positives=half, negatives=half, failure_probability=delta)
    wide = x + mp.sqrt(log / n * 2)
    assert limit <= min(1, wide * (1 + mp.mpf(SLACK)))
    if limit < 1:
        rate = n * kl((1 + mp.mpf(x)) / 2, (1 + mp.mpf(limit)) / 2)
        assert rate >= log * (1 - mp.mpf(SLACK)) or limit >= wide
        assert n * kl((1 + mp.mpf(x)) / 2, (1 + limit - (limit - x) * mp.mpf(1e-3)) / 2) < log
    paired = variation_upper(x, positives=half, negatives=half, failure_probability=delta, paired=True)
    assert limit <= paired <= limit * (1 + 1e-6) + 1e-6


@given(st.integers(1, 500), st.integers(1, 500), st.floats(1e-6, 0.5), plug_ins)
def test_unequal_classes_have_their_effective_numbers(one, zero, delta, x):
    log = math.log(1 / delta)
    options = {"positives": one, "negatives": zero, "failure_probability": delta}
    for limit, price, factor in ((squared_closed, 1.05, 2), (log_closed, 1.2, 1)):
        n = max(2 * min(one, zero), 4 * one * zero / (price * (one + zero))) if one != zero else 2 * one
        root = math.sqrt(factor * log / n) + math.sqrt(x + factor * log / n)
        top = 1 if factor == 2 else math.log(2)
        assert limit(x, **options) == pytest.approx(min(top, root**2), rel=1e-9)
    wide = x + math.sqrt(log / 2 * (1 / one + 1 / zero))
    assert variation_upper(x, **options) <= min(1, wide) * (1 + 1e-9)
    least = {"positives": min(one, zero), "negatives": min(one, zero), "failure_probability": delta}
    for limit in (squared_sharp, log_sharp, variation_upper):
        assert limit(x, **options) <= limit(x, **least) * (1 + 1e-12)


@given(st.integers(1, 200), st.data(), failures)
def test_the_exact_limit_is_clopper_pearson(half, data, delta):
    right = data.draw(st.integers(half, 2 * half))
    share = stats.beta.ppf(1 - delta, right + 1, 2 * half - right) if right < 2 * half else 1.0
    options = {"positives": half, "negatives": half, "failure_probability": delta}
    paired = variation_exact(right, paired=True, **options)
    assert paired == pytest.approx(min(1, max(0, 2 * share - 1)), abs=1e-7)
    by_class = variation_exact(right, **options)
    assert by_class == pytest.approx(min(1, max(2 * share - 1, (right + 1) / half - 1)), abs=1e-7)


@given(st.floats(0.5, 1), st.integers(1, 10**9), failures)
def test_theorem_2_as_printed(loss, count, delta):
    exact = max(0, mp.mpf(loss) - 2 * mp.sqrt(2 * mp.log(1 / mp.mpf(delta)) / count))
    limit = printed_squared_loss(loss, count=count, failure_probability=delta)
    assert exact * (1 - mp.mpf(SLACK)) - mp.mpf(1e-12) <= limit <= exact


@given(st.floats(0.3, math.log(2)), st.integers(1, 100), st.floats(1, 1e6), failures)
def test_theorem_3_as_printed(loss, alphabet, factor, delta):
    d, log = alphabet, mp.log(1 / mp.mpf(delta))
    count = math.ceil(4 * (2 * d + float(log)) * factor) + 1
    theta = mp.sqrt((2 * d + log) / count)
    exact = max(0, mp.mpf(loss) + theta * mp.log(theta) + (1 - theta) * mp.log(1 - theta))
    limit = printed_log_loss(loss, count=count, alphabet=d, failure_probability=delta)
    assert exact * (1 - mp.mpf(SLACK)) - mp.mpf(1e-9) <= limit <= exact
    few = math.ceil(4 * (2 * d + float(log))) - 1
    with pytest.raises(NoTheoremError, match="rows"):
        printed_log_loss(loss, count=few, alphabet=d, failure_probability=delta)


@pytest.mark.parametrize("mu", [0.01, 0.02, 0.04, 0.06, 0.08, 0.1])
def test_theorem_1_is_equation_51(mu):
    gap = 2 * (1 + 3 * mu) ** 2 * math.sqrt(2 * math.log(100) / 1e5) + (6 * mu) ** 2 / 1e3 + 24 * mu / math.sqrt(1e3)
    limit = printed_network_loss(0.995, count=10**5, neurons=10**3, barron=mu, diameter=6.0, failure_probability=0.01)
    assert limit <= 0.995 - gap
    assert limit == pytest.approx(0.995 - gap, rel=1e-9)


@pytest.mark.parametrize("a", [0.05, 1.0, 3.0])
def test_the_barron_constant_of_a_tanh(a):
    """Equation (7) by quadrature, with the transform of η′ = a·sech²(at), and the slope at 0."""
    step = 1e-3
    w = np.arange(step / 2, 60, step) * a
    transform = math.sqrt(math.pi / 2) * (w / a) / np.sinh(math.pi / 2 * w / a)  # of a·sech²(at)
    constant = 2 * transform.sum() * step * a / math.sqrt(2 * math.pi)
    assert tanh_barron([a]) >= a
    assert tanh_barron([a]) == pytest.approx(constant, rel=1e-4)
    assert tanh_barron([0.6 * a, 0.8 * a]) == pytest.approx(a)


def test_lipschitz_bins_hide_no_more_and_may_hide_that_much():
    """Two outputs a bin apart by its width, whose posteriors are ±Cw/2: the bin shows nothing."""
    c, w = 0.7, 0.4
    e = c * w / 2
    assert lipschitz_excess(c, width=w) >= e**2
    assert lipschitz_excess(c, width=w) == pytest.approx(e**2)
    assert lipschitz_excess(100.0, width=1.0) == 1
    rng = np.random.default_rng(0)
    for _ in range(200):
        eta, chance = rng.uniform(-1, 1, 7) * e + 0.1, rng.dirichlet(np.ones(7))
        hidden = (chance * eta**2).sum() - (chance * eta).sum() ** 2
        assert hidden <= lipschitz_excess(c, width=w)


@pytest.mark.parametrize("ratio", [1 / 64, 1 / 8, 0.5, 1.0])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_binning_is_bounded_by_its_chi_square(ratio, dimensions):
    """1 + χ² of a Gaussian at t against its two neighbours on the grid, exactly: E exp(DD′/γ²), in every coordinate."""
    worst = 0.0
    for f in np.linspace(0, 1, 101):
        steps, chances = np.array([-f, 1 - f]) * ratio, np.array([1 - f, f])
        one = float(chances @ np.expm1(np.outer(steps, steps)) @ chances)
        worst = max(worst, math.sqrt(math.expm1(dimensions * math.log1p(max(0.0, one)))))
    bound = binning_root(ratio, noise=1.0, dimensions=dimensions)
    assert worst <= bound
    assert bound <= worst * (1 + ratio**2 / 4 + 1e-6)


def radial(function, dimensions):
    """The integral of a function of the distance from 0, in so many dimensions."""
    sphere = 2 * mp.pi ** (mp.mpf(dimensions) / 2) / mp.gamma(mp.mpf(dimensions) / 2)
    return sphere * mp.quad(lambda r: function(r) * r ** (dimensions - 1), [0, 0.5, 1, 1.5, 2, 3, 5, 8, 20])


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.9])
def test_smoothing_hides_no_more_than_its_divergences(ratio, dimensions):
    """∫(p−q)²/(p+q) and ∫|p−q| of Gaussians before and after, by integration; both bounds are tight for small steps."""
    wider = 1 + mp.mpf(ratio) ** 2

    def density(r, variance):
        return mp.exp(-r * r / (2 * variance)) / (2 * mp.pi * variance) ** (mp.mpf(dimensions) / 2)

    def apart(r):
        p, q = density(r, 1), density(r, wider)
        return (p - q) ** 2 / (p + q)

    truth = mp.sqrt(radial(apart, dimensions))
    bound = smoothing_root(3 * ratio, noise=3.0, dimensions=dimensions)
    assert truth <= bound
    if ratio <= 0.05:
        assert bound < truth * 1.005
    cross = float(mp.sqrt(dimensions * wider * mp.log(wider) / (wider - 1)))
    sphere = 2 * mp.pi ** (mp.mpf(dimensions) / 2) / mp.gamma(mp.mpf(dimensions) / 2)
    signed = [
        abs(sphere * mp.quad(lambda r: (density(r, 1) - density(r, wider)) * r ** (dimensions - 1), [*ends]))
        for ends in ((0, cross / 2, cross), (cross, cross + 1, cross + 3, cross + 20))
    ]
    exact = sum(signed)
    limit = smoothing_variation(3 * ratio, noise=3.0, dimensions=dimensions)
    assert exact <= limit < exact * 1.005 + 1e-9


@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0])
def test_smoothing_loses_no_more_of_two_classes_than_is_stated(gap):
    """v, I, TV and hockey sticks of two mixtures with unit noise, against the same with more, by quadrature."""
    y = np.linspace(-14, 20, 40_001)
    step = y[1] - y[0]
    means = {1: [(-1.0, 0.3), (gap, 0.5), (6.0, 0.2)], 0: [(0.0, 0.9), (6.0 + gap, 0.1)]}

    def readings(noise):
        one, zero = (sum(w * stats.norm.pdf(y, m, noise) for m, w in means[label]) * step / 2 for label in (1, 0))
        v, nats, variation = plug_in(one, zero)
        sticks = [2 * np.maximum(0, one - k * zero).sum() for k in (1.0, 2.0, 8.0)]
        return math.sqrt(v), math.sqrt(nats), variation, sticks

    for ratio in (0.05, 0.2, 0.6):
        root = smoothing_root(ratio, noise=1.0, dimensions=1)
        hidden = smoothing_variation(ratio, noise=1.0, dimensions=1)
        before, after = readings(1.0), readings(math.hypot(1.0, ratio))
        assert before[0] <= after[0] + math.sqrt(2) * root + 1e-9
        assert before[1] <= after[1] + math.sqrt(2 * math.log(2)) * root + 1e-9
        assert before[2] <= after[2] + hidden + 1e-9
        for k, more, less in zip((1.0, 2.0, 8.0), before[3], after[3], strict=True):
            assert more <= less + (1 + k) * hidden / 2 + 1e-9


@given(st.floats(0.01, 5), st.floats(0.1, 3), sizes, failures)
def test_the_characteristic_limit_is_hoeffdings(frequency, noise, count, delta):
    exact = mp.exp(-((mp.mpf(noise) * frequency) ** 2) / 2) + 2 * mp.sqrt(mp.log(4 / mp.mpf(delta)) / count)
    limit = characteristic_limit(frequency, noise=noise, count=count, failure_probability=delta)
    assert exact <= limit <= exact * (1 + mp.mpf(SLACK))


@given(st.floats(0, 1), st.floats(0, 5), sizes, sizes, failures)
def test_the_hockey_stick_limit_is_hoeffdings(x, epsilon, one, zero, delta):
    wide = mp.sqrt(mp.log(1 / mp.mpf(delta)) / 2 * (mp.mpf(1) / one + mp.exp(2 * mp.mpf(epsilon)) / zero))
    exact = min(1, x + wide)
    limit = hockey_stick_limit(x, epsilon=epsilon, positives=one, negatives=zero, failure_probability=delta)
    assert exact <= limit <= exact * (1 + mp.mpf(SLACK))


# Exact coverage, by enumeration of every table


def pair_tables(one, zero):
    """Every table of an output with two values: counts of value 1 in either class."""
    return np.meshgrid(np.arange(one + 1), np.arange(zero + 1), indexing="ij")


def plug_in(mu1, mu0):
    total = np.maximum(mu1 + mu0, 1e-300)
    v = ((mu1 - mu0) ** 2 / total).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = sum(np.where(m > 0, m * np.log(2 * m / total), 0).sum(axis=0) for m in (mu1, mu0))
    return v, np.clip(nats, 0, None), np.abs(mu1 - mu0).sum(axis=0)


def truth(p, q):
    return plug_in(np.array([p, 1 - p]) / 2, np.array([q, 1 - q]) / 2)


RATES = [(0.5, 0.5), (0.3, 0.7), (0.05, 0.2), (0.0, 0.1), (0.0, 0.5), (0.01, 0.99), (0.0, 1.0), (0.9, 0.95)]


@pytest.mark.parametrize(("one", "zero"), [(3, 3), (12, 12), (4, 30), (30, 4), (25, 40)])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_exact_coverage_by_class(one, zero, delta):
    options = {"positives": one, "negatives": zero, "failure_probability": delta}
    a, b = pair_tables(one, zero)
    found = plug_in(np.array([a, one - a]) / (2 * one), np.array([b, zero - b]) / (2 * zero))
    limits = {
        name: np.vectorize(lambda x, f=limit: f(min(1.0, float(x)), **options))(found[place])
        for name, limit, place in (
            ("squared_closed", squared_closed, 0),
            ("squared_sharp", squared_sharp, 0),
            ("log_closed", log_closed, 1),
            ("log_sharp", log_sharp, 1),
            ("variation_upper", variation_upper, 2),
        )
    }
    if one == zero:
        right = np.maximum(a, b) + np.maximum(one - a, zero - b)
        limits["variation_exact"] = np.vectorize(lambda k: variation_exact(int(k), **options))(right)
    for p, q in RATES:
        chance = stats.binom.pmf(a, one, p) * stats.binom.pmf(b, zero, q)
        v, nats, variation = truth(p, q)
        for name, values in limits.items():
            value = {"s": v, "l": nats, "v": variation}[name[0]]
            assert chance[values < value - 1e-12].sum() <= delta, (name, p, q)


@pytest.mark.parametrize("n", [4, 25])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_exact_coverage_of_pairs(n, delta):
    """Rows are pairs with a fair secret: four kinds of row, every table of n of them."""
    tables = np.array(
        [(i, j, k, n - i - j - k) for i in range(n + 1) for j in range(n + 1 - i) for k in range(n + 1 - i - j)]
    )
    mu1, mu0 = tables[:, :2].T / n, tables[:, 2:].T / n
    found = plug_in(mu1, mu0)
    options = {"positives": (n + 1) // 2, "negatives": n // 2, "failure_probability": delta, "paired": True}

    def limit_of(function, place):
        known = {x: function(min(1.0, x), **options) for x in {*found[place]}}
        return np.array([known[x] for x in found[place]])

    right = np.maximum(tables[:, 0], tables[:, 2]) + np.maximum(tables[:, 1], tables[:, 3])
    limits = [
        (limit_of(squared_closed, 0), 0),
        (limit_of(squared_sharp, 0), 0),
        (limit_of(log_closed, 1), 1),
        (limit_of(log_sharp, 1), 1),
        (limit_of(variation_upper, 2), 2),
        (np.array([variation_exact(int(k), **options) for k in right]), 2),
    ]
    for p, q in RATES:
        law = stats.multinomial(n, [p / 2, (1 - p) / 2, q / 2, (1 - q) / 2])
        chance = law.pmf(tables)
        for values, place in limits:
            assert chance[values < truth(p, q)[place] - 1e-12].sum() <= delta


def test_printed_theorems_cover_exactly():
    n, delta = 40, 0.2
    a, b = pair_tables(n, n)
    for p, q in RATES:
        chance = stats.binom.pmf(a, n, p) * stats.binom.pmf(b, n, q)
        v, nats, _ = plug_in(np.array([a, n - a]) / (2 * n), np.array([b, n - b]) / (2 * n))
        losses = np.vectorize(lambda x: printed_squared_loss(max(0.0, 1 - x), count=2 * n, failure_probability=delta))(
            v
        )
        assert chance[losses > 1 - truth(p, q)[0] + 1e-12].sum() <= delta
        losses = np.vectorize(
            lambda x: printed_log_loss(max(0.0, math.log(2) - x), count=2 * n, alphabet=2, failure_probability=delta)
        )(nats)
        assert chance[losses > math.log(2) - truth(p, q)[1] + 1e-12].sum() <= delta


def test_hoeffdings_theorem_for_two_classes():
    """P(Bin(m, p) + Bin(m, q) ≤ c) ≤ P(Bin(2m, (p+q)/2) ≤ c) for c ≤ m(p+q) − 1."""
    m = 15
    for p, q in [*RATES, (0.6, 0.9), (0.2, 1.0)]:
        both = np.convolve(stats.binom.pmf(np.arange(m + 1), m, p), stats.binom.pmf(np.arange(m + 1), m, q))
        for c in range(math.floor(m * (p + q) - 1 + 1e-12) + 1):
            assert both[: c + 1].sum() <= stats.binom.cdf(c, 2 * m, (p + q) / 2) + 1e-12


def test_pretending_that_unequal_classes_are_equal_fails():
    """The effective number is no excess of caution: with n₁ + n₀ in its place the limit is wrong too often."""
    one, zero, delta, p = 50, 2000, 0.1, 0.02  # a symbol that only the small class shows, and rarely
    counts = np.arange(one + 1)
    chance = stats.binom.pmf(counts, one, p)
    value = truth(p, 0.0)[0]
    wrong = {"honest": 0.0, "pretended": 0.0}
    for k in counts:
        x = float(plug_in(np.array([k, one - k]) / (2 * one), np.array([0, zero]) / (2 * zero))[0])
        for name, (first, second) in {"honest": (one, zero), "pretended": (1025, 1025)}.items():
            wrong[name] += chance[k] * (
                squared_closed(x, positives=first, negatives=second, failure_probability=delta) < value
            )
    assert wrong["honest"] <= delta < 0.25 < wrong["pretended"]


def test_limits_grow_with_the_plug_in_and_fall_with_rows_and_delta():
    for limit in (squared_closed, squared_sharp, log_closed, log_sharp, variation_upper):
        base = {"positives": 40, "negatives": 60, "failure_probability": 0.05}
        values = [limit(x, **base) for x in np.linspace(0, 0.6, 31)]
        assert values == sorted(values)
        assert limit(0.1, **{**base, "positives": 80, "negatives": 120}) < limit(0.1, **base)
        assert limit(0.1, **{**base, "failure_probability": 0.01}) > limit(0.1, **base)


def test_exact_limits_are_refused_for_unequal_classes():
    with pytest.raises(NoTheoremError, match="one size"):
        variation_exact(5, positives=4, negatives=5, failure_probability=0.1)
    with pytest.raises(InputError, match="must not exceed"):
        variation_exact(10, positives=4, negatives=4, failure_probability=0.1)
