"""Limits for secrets of several values and for numbers. False alarms of simulations: below 1e-6 for each test."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit import InputError
from tacit.theory.certificates import squared_sharp
from tacit.theory.guessing import accuracy_from_collisions, accuracy_upper, collision_upper, explained_upper

ALPHA = 0.1


def too_many(runs):
    return stats.binom.isf(1e-6, runs, ALPHA)


@pytest.mark.parametrize(("correct", "rows"), [(0, 5), (3, 10), (412, 1000), (999, 1000), (2_600, 10_000)])
def test_the_accuracy_is_clopper_pearson_or_one_row_more(correct, rows):
    limit = accuracy_upper(correct, rows=rows, failure_probability=0.05)
    exact = stats.beta.isf(0.05, correct + 1, rows - correct)
    assert limit == pytest.approx(max(exact, (correct + 1) / rows), rel=1e-9)
    assert limit >= exact * (1 - 1e-12)


def test_a_perfect_table_of_guesses_bounds_nothing():
    assert accuracy_upper(7, rows=7, failure_probability=0.05) == 1
    assert collision_upper(1.0, rows=2, failure_probability=0.05) == 1


def poisson_binomial(chances):
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    return law


def test_the_accuracy_covers_classes_of_fixed_sizes_exactly():
    """The right guesses of the best rule are a sum of unequal coins; the law of that sum, by convolution."""
    for sizes, chances in (
        ((30, 20, 10), (0.9, 0.2, 0.5)),
        ((5, 50), (1.0, 0.3)),
        ((8, 8, 8, 8), (0.1, 0.4, 0.6, 0.9)),
    ):
        rows = sum(sizes)
        truth = float(np.dot(sizes, chances)) / rows
        law = poisson_binomial(np.repeat(chances, sizes))
        wrong = [accuracy_upper(k, rows=rows, failure_probability=ALPHA) < truth * (1 - 1e-12) for k in range(rows + 1)]
        assert law[wrong].sum() <= ALPHA


def agreement(counts):
    """R of the statement."""
    counts = np.asarray(counts)
    sizes = counts.sum(axis=1)
    several = sizes > 1
    agreeing = (counts[several] * (counts[several] - 1)).sum(axis=1) / (sizes[several] - 1)
    return (agreeing.sum() + (sizes == 1).sum()) / sizes.sum()


def limit_of(counts, alpha):
    return collision_upper(agreement(counts), rows=int(np.sum(counts)), failure_probability=alpha)


def collisions_by_hand(counts, alpha):
    """The statement in 30 digits, λ by a fine grid and golden section around its best."""
    with mpmath.workdps(30):
        counts = [[mpmath.mpf(int(one)) for one in row] for row in counts]
        sizes = [sum(row) for row in counts]
        n = sum(sizes)
        total = sum(
            sum(one * (one - 1) for one in row) / (size - 1) if size > 1 else size
            for row, size in zip(counts, sizes, strict=True)
        )
        rate = total / n

        def exponent(r, strength):
            kappa = mpmath.mpf(2) / 3 * (1 - mpmath.exp(-1.5 * strength))
            return -strength * n * rate / 2 - n * mpmath.log(1 - r * (1 - mpmath.exp(-kappa / 2)))

        def best(r):
            grid = [mpmath.mpf(10) ** (mpmath.mpf(i) / 40) for i in range(-240, 37)]
            top = max(range(len(grid)), key=lambda i: exponent(r, grid[i]))
            low, high = grid[max(0, top - 1)], grid[min(len(grid) - 1, top + 1)]
            for _ in range(40):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                low, high = (a, high) if exponent(r, a) < exponent(r, b) else (low, b)
            return exponent(r, low)

        low, high = rate, mpmath.mpf(1)
        if best(high) < -mpmath.log(alpha):
            return 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if best(middle) >= -mpmath.log(alpha) else (middle, high)
        return float(high)


@pytest.mark.parametrize(
    "counts",
    [
        [[30, 30, 31], [28, 33, 27]],
        [[3, 1, 0], [1, 1, 1], [0, 0, 1], [2, 2, 2]] * 40,
        [[100, 0, 2, 1]] * 5 + [[1, 0, 0, 0]] * 20,
    ],
)
def test_collisions_agree_with_their_naive_twin(counts):
    limit, twin = limit_of(counts, 0.05), collisions_by_hand(counts, 0.05)
    assert twin * (1 - 1e-9) <= limit <= twin * (1 + 1e-3)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("law", [(0.5, 0.5), (0.9, 0.05, 0.05), (0.25, 0.25, 0.25, 0.25), (0.6, 0.4, 0.0)])
def test_pairs_of_one_output_lose_no_more_than_proven(size, law):
    """E exp(−λΣ/2) ≤ exp(−κ·size·r/2), by enumeration of all secrets of an output with so many rows."""
    collision = sum(p * p for p in law)
    for strength in (0.01, 0.3, 1.0, 3.0):
        kappa = 2 / 3 * -math.expm1(-1.5 * strength)
        total = 0.0
        for secrets in itertools.product(range(len(law)), repeat=size):
            counts = np.bincount(secrets, minlength=len(law))
            agreeing = float((counts * (counts - 1)).sum()) / (size - 1)
            total += math.prod(law[s] for s in secrets) * math.exp(-strength * agreeing / 2)
        assert total <= math.exp(-kappa * size * collision / 2) * (1 + 1e-12)


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_no_law_names_more_than_its_collisions_allow(classes, seed):
    rng = np.random.default_rng(seed)
    shares, laws = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(classes, rng.choice([0.2, 1.0, 5.0])), size=4)
    truth, collision = float(shares @ laws.max(axis=1)), float(shares @ (laws**2).sum(axis=1))
    assert truth <= accuracy_from_collisions(min(1.0, collision), classes=classes) * (1 + 1e-12)


@pytest.mark.parametrize(("share", "classes"), [(0.25, 4), (0.5, 3), (0.9, 10), (1.0, 5)])
def test_collisions_are_attained(share, classes):
    collision = share**2 + (1 - share) ** 2 / (classes - 1)
    assert accuracy_from_collisions(collision, classes=classes) == pytest.approx(share, abs=1e-6)
    assert accuracy_from_collisions(collision, classes=classes) >= share * (1 - 1e-12)


def test_of_two_fair_values_it_is_the_root_of_v():
    v = 0.09
    assert accuracy_from_collisions((1 + v) / 2, classes=2) == pytest.approx((1 + math.sqrt(v)) / 2, rel=1e-9)


def explained_by_hand(sizes, sums, squares, alpha):
    """The statement in 30 digits."""
    with mpmath.workdps(30):
        sizes, sums, squares = ([mpmath.mpf(float(one)) for one in each] for each in (sizes, sums, squares))
        n, limits = sum(sizes), []
        plug_in = sum(s * s / size for s, size in zip(sums, sizes, strict=True)) / n
        half = int(n) // 2
        sharp = squared_sharp(
            float(plug_in), positives=int(n) - half, negatives=half, failure_probability=alpha / 8, paired=True
        )
        limits.append(mpmath.mpf(sharp))
        for power in range(1, 8):
            strength = mpmath.mpf(1) / 2**power
            a = (-mpmath.log(1 - strength) - strength) / strength
            total = mpmath.mpf(0)
            for size, s, square in zip(sizes, sums, squares, strict=True):
                m, q = abs(s) / size, square / size
                room = 1 - 4 * a * q
                reach = min(1, 2 * m / (room - a)) if room > a else 1
                good = room > 0 and (4 * a * q + a * reach**2 <= 0.5 or m >= 0.25)
                total += size * (min(1 + a, m * m / (1 - 4 * a * q)) if good else 1 + a)
            limits.append((1 - mpmath.exp(-strength * total / n - mpmath.log(8 / mpmath.mpf(alpha)) / n)) / strength)
        return float(min(limits) / (sum(squares) / n))


def cells_of(numbers, outputs):
    """Sizes, sums and squares of centred numbers in units of their largest distance."""
    centred = numbers - numbers.mean()
    centred = centred / np.abs(centred).max()
    return [np.bincount(outputs, weights=centred**power) for power in range(3)]


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0])
@pytest.mark.parametrize(("rows", "values"), [(400, 3), (5000, 40)])
def test_the_explained_share_agrees_with_its_naive_twin(strength, rows, values):
    rng = np.random.default_rng(5)
    outputs = np.concatenate([np.arange(values), rng.integers(0, values, rows - values)])
    sums = cells_of(strength * outputs / values + rng.normal(size=rows), outputs)
    limit, twin = explained_upper(*sums, failure_probability=0.05), explained_by_hand(*sums, 0.05)
    assert min(1.0, twin) * (1 - 1e-9) <= limit <= twin * (1 + 1e-6)


def test_signs_are_numbers_too():
    """A secret of ±1 as a number: the limit is close to that for v at an eighth of the failure probability."""
    secrets, outputs = np.resize([1.0, -1.0], 4000), np.repeat(np.arange(10), 400)
    sums = cells_of(secrets, outputs)
    signs = squared_sharp(0.0, positives=2000, negatives=2000, failure_probability=0.05 / 8, paired=True)
    assert explained_upper(*sums, failure_probability=0.05) <= signs * (1 + 1e-6)


@given(st.integers(0, 10**6), st.sampled_from([0.5**power for power in range(1, 8)]))
def test_the_quartic_of_every_output_is_bounded(seed, strength):
    """Σ X + aX², X = 2ξg − g², over the rows of an output, for the best g of a fine grid, is at most its term of W."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-1, 1, rng.integers(1, 6)) * rng.choice([0.1, 0.5, 1.0])
    g = np.linspace(-1, 1, 2001)[:, None]
    gains = 2 * numbers * g - g**2
    a = (-math.log1p(-strength) - strength) / strength
    best = float((gains + a * gains**2).mean(axis=1).max())
    m, q = abs(numbers.mean()), (numbers**2).mean()
    room = 1 - 4 * a * q
    reach = min(1, 2 * m / (room - a)) if room > a else 1
    good = room > 0 and (4 * a * q + a * reach**2 <= 0.5 or m >= 0.25)
    assert best <= (min(1 + a, m * m / (1 - 4 * a * q)) if good else 1 + a) * (1 + 1e-9)


@given(st.floats(-3, 1), st.sampled_from([0.5**power for power in range(1, 8)]))
def test_the_exponent_of_a_bet(gain, strength):
    """exp(−λx − aλx²) ≤ 1 − λx for x ≤ 1."""
    a = (-math.log1p(-strength) - strength) / strength
    assert math.exp(-strength * gain - a * strength * gain**2) <= (1 - strength * gain) * (1 + 1e-12)


@pytest.mark.parametrize("law", ["independent", "a step", "a rare output tells all", "two numbers"])
def test_the_explained_share_misses_no_more_often_than_stated(law):
    """The truth is about the numbers of the table, and known from the laws of the output given a number."""
    rng, runs, rows = np.random.default_rng(8), 200, 300
    numbers = {"two numbers": np.resize([0.0, 1.0], rows)}.get(law, rng.beta(2, 5, rows))
    chances = {
        "independent": np.full((rows, 4), 0.25),
        "a step": np.where(numbers[:, None] > 0.3, [[0.7, 0.1, 0.1, 0.1]], [[0.1, 0.1, 0.1, 0.7]]),
        "a rare output tells all": np.where((numbers > 0.6)[:, None], [[0.0, 0, 0, 1]], [[0.5, 0.3, 0.2, 0]]),
        "two numbers": np.where((numbers > 0.5)[:, None], [[0.4, 0.3, 0.2, 0.1]], [[0.1, 0.2, 0.3, 0.4]]),
    }[law]
    means = (chances * numbers[:, None]).sum(axis=0) / chances.sum(axis=0)
    truth = float(chances.mean(axis=0) @ (means - numbers.mean()) ** 2 / numbers.var())
    failed = 0
    for _ in range(runs):
        outputs = (rng.random(rows)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
        _, outputs = np.unique(outputs, return_inverse=True)
        failed += explained_upper(*cells_of(numbers, outputs), failure_probability=ALPHA) < truth
    assert failed <= too_many(runs)


@given(st.integers(0, 10**6), st.floats(0.0, 0.5))
def test_numbers_are_no_worse_than_signs_with_their_mean(seed, strength):
    """E exp(−λ(2ξh − h²)) ≤ φ_λ(E h²) for numbers ξ in [−1, 1] with mean h given the output."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(5))
    values, laws = rng.uniform(-1, 1, size=(5, 4)), rng.dirichlet(np.ones(4), size=5)
    means = (values * laws).sum(axis=1)
    moment = float(
        shares @ (laws * np.exp(-strength * (2 * values * means[:, None] - means[:, None] ** 2))).sum(axis=1)
    )
    v = float(shares @ means**2)
    root = math.sqrt(v)
    signs = math.exp(strength * v) * (math.cosh(2 * strength * root) - root * math.sinh(2 * strength * root))
    assert moment <= signs * (1 + 1e-12)


@pytest.mark.parametrize("values", [1, 30, 300])
def test_collisions_miss_no_more_often_than_stated(values):
    rng, runs = np.random.default_rng(3), 200
    law = rng.dirichlet(np.full(4, 2.0), size=values)
    truth, failed = float((law**2).sum(axis=1).mean()), 0
    for _ in range(runs):
        sizes = rng.multinomial(600, np.full(values, 1 / values))
        counts = np.stack([rng.multinomial(size, one) for size, one in zip(sizes, law, strict=True)])
        failed += limit_of(counts, ALPHA) < truth
    assert failed <= too_many(runs)


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(InputError):
        collision_upper(1.5, rows=10, failure_probability=0.05)
    with pytest.raises(InputError):
        accuracy_upper(3, rows=2, failure_probability=0.05)
    with pytest.raises(InputError):
        explained_upper([3, 2], [1.0], [1.0, 1.0], failure_probability=0.05)
