import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit import InputError
from tacit.theory.pairs import CUTS, PRICES, Pairs, _spread, _tilted, squared_pairwise

TABLES = [
    ([3, 2, 0, 5], [1, 2, 1, 4]),
    ([10, 0], [0, 10]),
    ([14, 17, 15], [14, 15, 12]),
    ([30], [31]),
    ([1, 1, 0, 2, 7] * 40, [0, 1, 3, 2, 8] * 40),
]


def by_hand(positive, negative, alpha, rate):
    """The statement itself, in 40 digits, with binomial coefficients and without any shortcut."""
    with mpmath.workdps(40):
        cells = [(p, q) for p, q in zip(positive, negative, strict=True) if p + q]
        n = sum(p + q for p, q in cells)
        several = [(p - q, p + q) for p, q in cells if p + q > 1]
        total = max(mpmath.mpf(0), sum(mpmath.mpf(s * s - m) / (m - 1) for s, m in several))
        moment, slopes, rate, spreads = mpmath.mpf(0), [], mpmath.mpf(rate), []
        for m in {m for _, m in several}:
            times = sum(size == m for _, size in several)
            weights = [
                (2 * j - m, mpmath.binomial(m, j) * mpmath.exp(-rate * ((2 * j - m) ** 2 - m) / (m - 1)))
                for j in range(m + 1)
            ]
            whole = sum(weight for _, weight in weights)
            moment += times * mpmath.log(whole / mpmath.mpf(2) ** m)
            slopes.append((1 - sum(s * s * weight for s, weight in weights) / whole / m) / 2)
            terms = [(mpmath.mpf(s * s - m) / (m - 1), weight / whole) for s, weight in weights]
            mean = sum(x * weight for x, weight in terms)
            second, fourth = (sum((x - mean) ** power * weight for x, weight in terms) for power in (2, 4))
            spreads.append((times * second, second, second / (fourth / 12 + second**2 / 4)))
        ways = [(mpmath.mpf(1), mpmath.mpf(0))]
        for c in CUTS:
            whole, most, d = (of(each[i] for each in spreads) for i, of in enumerate((sum, max, min)))
            d, turn = mpmath.sqrt(d / c), 2 * mpmath.pi
            k = turn / d / (1 - mpmath.exp(-turn * rate / d)) / mpmath.sqrt(turn * (1 - 1 / mpmath.mpf(c)) * whole)
            ways += [(k, -mpmath.log(k) * most / (2 * whole * (1 - k**2)))] * (k < 1)
        limit = mpmath.mpf(1)
        for (k, bend), (cap, price) in itertools.product(ways, PRICES):
            slope = min(slopes) - bend
            paid = rate * total + moment + mpmath.log(k) + slope * (len(cells) - len(several))
            if slope > 0:
                found = mpmath.expm1(-(max(0, paid) + mpmath.log(price / alpha)) / n) / mpmath.expm1(-slope)
                if slope * mpmath.sqrt(n * found) <= cap:
                    limit = min(limit, found)
        return float(limit)


@pytest.mark.parametrize(("positive", "negative"), TABLES)
@pytest.mark.parametrize("alpha", [0.3, 1e-3])
def test_the_limit_is_its_formula_in_many_digits(positive, negative, alpha):
    least = 1.0
    for rate in np.geomspace(0.02, 3, 5):
        exact = by_hand(positive, negative, alpha, rate)
        found = squared_pairwise(positive, negative, failure_probability=alpha, rate=rate)
        assert exact <= found <= exact * (1 + 2e-6)
        least = min(least, exact)
    best = squared_pairwise(positive, negative, failure_probability=alpha)
    assert 0.6 * least < best <= least * (1 + 1e-3)
    assert best < 1 or sum(positive) < 50


@pytest.mark.parametrize(("positive", "negative"), TABLES[1:])
def test_what_is_excluded_stays_excluded_above(positive, negative):
    """Every value above a limit is excluded by λ itself, or by a share r of it as in the proof, at the same price."""
    counts = Pairs.of(positive, negative)
    for rate in (0.05, 0.5, 2.0):
        rates = np.array([rate])
        of_sizes = zip(*(_tilted(size, rates) for size in counts.sizes.tolist()), strict=True)
        moments, slopes, spreads, widths = (np.array(values)[:, 0] for values in of_sizes)
        whole = np.array([counts.counts @ spreads])
        ways = [(0.0, 0.0)]
        for cut in CUTS:
            log, bend = _spread(rates, whole, spreads.max(keepdims=True), widths.min(keepdims=True), cut=cut)
            ways.append((float(log[0]), float(bend[0])))
        limit = float(counts.limits(rates, 0.1)[0])
        for value in np.linspace(limit, 1, 200)[1:] if limit < 1 else ():
            excluded = []
            for (log, bend), (cap, price) in itertools.product(ways, PRICES):
                slope = slopes.min() - bend
                paid = rate * counts.total + counts.counts @ moments + log + slope * counts.singles
                share = min(1.0, cap / (slope * math.sqrt(counts.rows * value))) if slope > 0 else 0.0
                gained = -counts.rows * math.log1p(value * math.expm1(-share * slope))
                excluded.append(gained > share * max(0.0, paid) + math.log(price / 0.1))
            assert any(excluded)


@pytest.mark.parametrize("rate", [0.02, 0.3, 3.0])
def test_the_majorant_is_one(rate):
    """Lemma 3 for d = 2π: both forms of G agree, it is at least e^(−ax) from 0 on and never negative, as is its sum."""
    rate, ends = mpmath.mpf(rate), (0, 1, 10, mpmath.inf)

    def g(y):
        return y / mpmath.expm1(y) if y else mpmath.mpf(1)

    def b(t):
        return t + g(rate + t) - g(rate)

    def series(x):
        terms = sum(mpmath.exp(-j * rate) * (1 / (x - j) ** 2 - rate / (x - j)) for j in range(1, 1500))
        return (mpmath.sin(mpmath.pi * x) / mpmath.pi) ** 2 * (1 / x**2 + terms + g(rate) / x)

    for x in map(mpmath.mpf, (-7.3, -1.5, -0.2, 0.3, 0.9, 2.5, 6.7)):
        side = mpmath.quad(lambda t, x=x: mpmath.exp(-abs(x) * t) * b(mpmath.sign(-x) * t), ends)
        by_integral = (mpmath.sin(mpmath.pi * x) / mpmath.pi) ** 2 * side
        by_integral = by_integral if x < 0 else mpmath.exp(-rate * x) - by_integral
        assert float(series(x)) == pytest.approx(float(by_integral), abs=1e-9)
        assert by_integral >= (mpmath.exp(-rate * x) if x > 0 else 0)


@pytest.mark.parametrize("biases", [[0.0] * 60, [0.2] * 60, [0.9] * 4 + [0.0] * 56, [0.6, 0.1, 0.0] * 20])
@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.6])
def test_the_sum_of_pairs_is_small_no_more_often_than_stated(size, biases, rate):
    """Lemma 4 for 60 outputs of a size, against the exact law of Σ s²."""
    sums = np.arange(size + 1) * 2 - size
    law = np.ones(1)
    for bias in biases:
        term = np.bincount(sums**2, weights=stats.binom.pmf(np.arange(size + 1), size, (1 + bias) / 2))
        law = np.convolve(law, term)
    below, value = np.cumsum(law), (np.arange(len(law)) - 60 * size) / (size - 1)
    rates, gain = np.array([rate]), size * float(np.square(biases).sum())
    moment, slope, spread, width = (float(one[0]) for one in _tilted(size, rates))
    bounds = []
    for cut in CUTS:
        log, bend = _spread(rates, np.array([60 * spread]), np.array([spread]), np.array([width]), cut=cut)
        bounds.append(np.exp(float(log[0]) + rate * value + 60 * moment - (slope - float(bend[0])) * gain))
        assert (below <= bounds[-1] * (1 + 1e-9)).all()
    there = below > 1e-12
    least = np.min(bounds, axis=0)
    if not any(biases):
        assert (least[there] / below[there]).min() < 10


@pytest.mark.parametrize(("outputs", "most"), [(1000, 2.1), (10_000, 1.5), (100_000, 1.3)])
def test_little_of_the_factor_that_markov_gives_away_is_left(outputs, most):
    """For many outputs k is 1/(λ√(2πV)), as for a normal sum, up to a factor."""
    rates = np.array([math.sqrt(4.5 / outputs)])
    _, _, spread, width = _tilted(10, rates)
    whole = outputs * spread
    least = min(float(_spread(rates, whole, spread, width, cut=cut)[0][0]) for cut in CUTS)
    normal = -math.log(float(rates[0]) * math.sqrt(2 * math.pi * float(whole[0])))
    assert normal < least < normal + math.log(most)


@given(st.integers(2, 60), st.floats(1e-3, 4), st.floats(0, 0.999))
def test_moments_are_largest_where_nothing_leaks(size, rate, squared):
    """Lemma 1: ln E exp(−λ(s² − m)/(m − 1)) falls at least as fast as its tangent where signs are fair."""
    sums = np.arange(-size, size + 1, 2)
    values = np.exp(-rate * (sums.astype(float) ** 2 - size) / (size - 1))

    def law(mean):
        return stats.binom.pmf(np.arange(size + 1), size, (1 + mean) / 2)

    fair = values @ law(0.0)
    slope = (1 - (values * sums**2) @ law(0.0) / fair / size) / 2
    assert math.log(values @ law(math.sqrt(squared))) <= math.log(fair) - slope * size * squared + 1e-9


@pytest.mark.parametrize("size", [2, 3, 7, 12])
@pytest.mark.parametrize("rate", [0.05, 0.7, 3.0])
def test_the_polynomial_of_the_proof_has_real_negative_zeros(size, rate):
    with mpmath.workdps(60):
        terms = [
            mpmath.binomial(size, j) * mpmath.exp(-mpmath.mpf(rate) / (size - 1) * (2 * j - size) ** 2)
            for j in range(size + 1)
        ]
        zeros = mpmath.polyroots(terms, maxsteps=2000, extraprec=400)
    assert all(zero.real < 0 and abs(zero.imag) < 1e-20 * abs(zero.real) for zero in zeros)


@pytest.mark.parametrize("rows", [3, 40, 1000])
@pytest.mark.parametrize("squared", [0.004, 0.1, 0.6, 0.97])
def test_choosing_the_rate_by_the_outputs_costs_what_is_stated(rows, squared):
    """Lemma 2 where η² is 0 or 1, which is the worst case: a sum over all counts, with a fine grid of μ."""
    counts, caps = np.arange(rows + 1), np.array([cap for cap, _ in PRICES])
    spans = np.linspace(0, caps[-1], 4001)
    prices = np.array([price for _, price in PRICES])[np.searchsorted(caps, spans)]
    slopes = spans / math.sqrt(rows * squared)
    logs = -np.outer(counts, slopes) - rows * np.log1p(-squared * -np.expm1(-slopes)) - np.log(prices)
    mean = stats.binom.pmf(counts, rows, squared) @ np.exp(logs.max(axis=1))
    assert 0.68 < mean <= 1


def test_the_steps_of_the_price_add_up():
    """1/h(0) + 0.43 ∫ dx/h ≤ 1, and 0.43 is above half of the largest E|X − ν|/√ν of a Poisson variable X."""
    starts = [0.0, *(cap for cap, _ in PRICES)]
    total = 1 / PRICES[0][1] + sum(0.43 * (cap - start) / h for start, (cap, h) in zip(starts, PRICES, strict=False))
    assert 0.999 < total <= 1
    for mean in np.geomspace(1e-3, 1e3, 601):
        values = np.arange(int(mean + 40 * math.sqrt(mean) + 40))
        distance = stats.poisson.pmf(values, mean) @ np.abs(values - mean)
        assert distance / math.sqrt(mean) / 2 <= 0.4289 + 1e-9


def table(source, rows, masses, biases):
    outputs = source.choice(len(masses), rows, p=masses)
    signs = source.random(rows) < (1 + biases[outputs]) / 2
    count = {"minlength": len(masses)}
    return np.bincount(outputs[signs], **count), np.bincount(outputs[~signs], **count)


LAWS = {
    "nothing leaks, many outputs": (np.full(150, 1 / 150), np.zeros(150)),
    "a little everywhere": (np.full(100, 1 / 100), np.full(100, 0.25) * (-1) ** np.arange(100)),
    "all in one rare output": (np.array([0.02, *[0.98 / 60] * 60]), np.array([1.0, *[0.0] * 60])),
    "rare outputs that tell all": (np.full(400, 1 / 400), (np.arange(400) % 20 == 0) * 1.0),
    "two outputs": (np.array([0.5, 0.5]), np.array([0.4, -0.4])),
    "sizes of all kinds": (np.geomspace(1, 1e-3, 80) / np.geomspace(1, 1e-3, 80).sum(), np.linspace(-0.5, 0.5, 80)),
}


@pytest.mark.parametrize("law", LAWS)
def test_it_is_wrong_no_more_often_than_stated(law):
    """400 tables of 600 rows; the test fails by chance with probability 1e-6 if it is wrong as often as stated."""
    alpha, runs = 0.3, 400
    masses, biases = LAWS[law]
    truth = float(masses @ biases**2)
    source = np.random.default_rng(7)
    limits = [squared_pairwise(*table(source, 600, masses, biases), failure_probability=alpha) for _ in range(runs)]
    misses = sum(limit < truth for limit in limits)
    assert misses <= stats.binom.isf(1e-6, runs, alpha)
    assert np.median(limits) < 1


def test_more_rows_and_less_certainty_mean_less():
    few = squared_pairwise([50] * 20, [50] * 20, failure_probability=0.05)
    many = squared_pairwise([500] * 20, [500] * 20, failure_probability=0.05)
    assert many < few / 5
    assert squared_pairwise([50] * 20, [50] * 20, failure_probability=1e-6) > few


def test_outputs_that_occur_once_say_nothing():
    assert squared_pairwise([1] * 30 + [0] * 30, [0] * 30 + [1] * 30, failure_probability=0.05) == 1.0


def test_more_balance_than_chance_allows_is_no_reason_for_less():
    """The floor: tables that hold both secrets equally often in each output are no better than Q = 0."""
    even = squared_pairwise([10] * 100, [10] * 100, failure_probability=0.05)
    assert Pairs.of([10] * 100, [10] * 100).total == 0
    usual = min(by_hand([10] * 100, [10] * 100, 0.05, rate) for rate in np.geomspace(0.05, 0.5, 40))
    assert even == pytest.approx(usual, rel=1e-3)
    assert even > 0.005


@pytest.mark.parametrize(
    ("positive", "negative", "message"),
    [
        ([1, 2], [1], "must be 2 counts"),
        ([0], [0], "one row at least"),
        ([1.5], [1], "whole numbers"),
        ([-1], [1], "≥ 0"),
        ([math.nan], [1], "finite"),
        ([[1, 2]], [[1, 2]], "list of whole numbers"),
        ([2**31], [1], "≤"),
    ],
)
def test_counts_that_are_none_are_refused(positive, negative, message):
    with pytest.raises(InputError, match=message):
        squared_pairwise(positive, negative, failure_probability=0.05)
