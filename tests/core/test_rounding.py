import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tacit import NoTheoremError
from tacit.core.rounding import LIBRARY, LOG_NDTR, SPECIAL, down, last_true, up

mp.mp.dps = 50
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_rounding_encloses_sums_products_and_quotients(a, b):
    for approximate, exact in (
        (a + b, Fraction(a) + Fraction(b)),
        (a * b, Fraction(a) * Fraction(b)),
        (a / b if b else 0.0, Fraction(a) / Fraction(b) if b else Fraction(0)),
    ):
        low, high = down(approximate), up(approximate)
        assert low == -math.inf or Fraction(low) <= exact
        assert high == math.inf or exact <= Fraction(high)


@given(finite)
def test_rounding_grants_the_relative_error_on_both_sides_of_zero(value):
    assert down(value, relative=0.25) <= value - abs(value) / 8
    assert up(value, relative=0.25) >= value + abs(value) / 8


def test_rounding_takes_arrays_and_infinities():
    values = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf])
    assert np.all(up(values) >= values)
    assert np.all(down(values) <= values)
    assert down(math.inf, relative=0.1) == np.finfo(float).max
    assert up(math.inf, relative=0.1) == math.inf
    assert [up(value) for value in values.tolist()] == up(values).tolist()


@given(finite, finite, finite, st.none() | st.floats())
def test_last_true_is_the_last_float_at_which_a_threshold_holds(threshold, one, other, near):
    """Wherever a guess has the search begin."""
    low, high = sorted((one, other))
    threshold = min(max(threshold, low), high)
    assert last_true(lambda x: x <= threshold, holds=low, fails=high, near=near) == threshold
    assert last_true(lambda x: x >= threshold, holds=high, fails=low, near=near) == threshold


def test_a_good_guess_saves_last_true_most_evaluations():
    asked = []

    def claim(x):
        asked.append(x)
        return x <= 1 / 3

    for units, most in ((0, 10), (-20, 10), (1000, 18), (-(10**6), 32)):
        asked.clear()
        assert last_true(claim, holds=0.0, fails=1.0, near=1 / 3 + units * 2.0**-54) == 1 / 3
        assert len(asked) <= most


@given(st.integers(0, 2**32), finite, finite, st.none() | st.floats())
def test_last_true_returns_a_point_at_which_the_claim_was_seen_to_hold(pattern, holds, fails, near):
    seen = {}

    def claim(x):  # jumps about, but holds at the start
        seen[x] = x == holds or hash((x, pattern)) % 3 == 0
        return seen[x]

    assert seen[last_true(claim, holds=holds, fails=fails, near=near)]
    assert len(seen) <= (66 if near is None else 80)


def test_last_true_refuses_to_start_where_the_claim_fails():
    with pytest.raises(NoTheoremError, match="must start where its claim holds"):
        last_true(lambda x: x > 1, holds=0.0, fails=5.0)


def relative_error(found, truth):
    return abs((mp.mpf(float(found)) - truth) / truth)


@pytest.mark.parametrize(
    ("function", "truth", "points"),
    [
        (np.expm1, mp.expm1, [*np.geomspace(1e-12, 700, 300), *-np.geomspace(1e-12, 30, 100)]),
        (np.exp, mp.exp, np.linspace(-700, 700, 301)),
        (np.log, mp.log, np.geomspace(1e-300, 1e300, 300)),
        (math.exp, mp.exp, np.linspace(-700, 700, 301)),
        (math.log, mp.log, np.geomspace(1e-300, 1e300, 300)),
    ],
)
def test_library_functions_err_far_less_than_granted(function, truth, points):
    assert max(relative_error(function(x), truth(mp.mpf(float(x)))) for x in points) < LIBRARY / 10


def test_special_functions_err_far_less_than_granted():
    points = np.geomspace(1e-8, 6, 200)
    assert max(relative_error(special.erf(x), mp.erf(float(x))) for x in points) < SPECIAL / 1000
    points = np.linspace(-40, 5, 200)
    assert max(relative_error(special.log_ndtr(x), mp.log(mp.ncdf(float(x)))) for x in points) < LOG_NDTR / 10
    counts = [(n, n + far * math.sqrt(n)) for n in (1, 2, 9, 100, 999, 9999) for far in (0.01, 0.5, 2, 5, 9, 14, 20)]
    truths = [mp.gammainc(n, mean, regularized=True) for n, mean in counts]  # P(N < n) for a Poisson N
    found = [special.gammaincc(*each) for each in counts]
    assert max(map(relative_error, found, truths)) < SPECIAL / 10


def binomial_tail(ks, n, p):
    """P(Bin(n, p) ∈ ks) in 50 digits, term by term from the first until the terms no longer count."""
    ks, p = list(ks), mp.mpf(p)
    term = mp.exp(
        mp.loggamma(n + 1)
        - mp.loggamma(ks[0] + 1)
        - mp.loggamma(n - ks[0] + 1)
        + ks[0] * mp.log(p)
        + (n - ks[0]) * mp.log1p(-p)
    )
    total = term
    for before, k in pairwise(ks):
        ratio = mp.mpf(n - before) / k * p / (1 - p) if k > before else mp.mpf(before) / (n - k) * (1 - p) / p
        term *= ratio
        total += term
        if ratio < 1 and term < total * mp.mpf("1e-25"):
            break
    return total


@pytest.mark.parametrize("n", [1, 10, 1000, 100_000, 10_000_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
def test_binomial_tails_err_far_less_than_granted(n, share):
    """Tails of three standard deviations and more, which is where confidence limits lie."""
    k = int(share * n)
    reach = 4 * math.sqrt(n * share * (1 - share)) + 4
    beyond = min((k + reach) / n, 0.99)
    if k < n * beyond:
        truth = binomial_tail(range(k, max(-1, k - 20_000), -1), n, beyond)
        assert relative_error(special.betaincc(k + 1, n - k, beyond), truth) < SPECIAL / 10
    short = (k - reach) / n
    if short > 0:
        truth = binomial_tail(range(k, min(n, k + 20_000) + 1), n, short)
        assert relative_error(special.betainc(k, n - k + 1, short), truth) < SPECIAL / 10
