import math

import numpy as np
import pytest
from scipy import integrate, stats

from tacit import InputError
from tacit.theory import kernels
from tacit.theory.confidence import binomial_upper
from tacit.theory.kernels import FEWEST_PAIRS, MOST_COLUMNS, variation_kernel


def normal(pairs, columns, *, seed, moved=0.0):
    source = np.random.default_rng(seed)
    ones, zeros = source.normal(size=(2, pairs, columns))
    ones[:, 0] += moved
    return ones, zeros


def fixed(ones, zeros, noise, failure):
    """The kernel, λ and l of these pairs, and the pairs that are left."""
    own = len(ones) // 5
    kernel = kernels._Kernel.fixed(np.concatenate([ones[:own], zeros[:own]]), noise)
    rates = kernel.choose([ones[:own], zeros[:own]], len(ones) - own, failure)
    return kernel, rates, ones[own:], zeros[own:]


def in_places(kernel, rows):
    return ((rows - kernel.first) / kernel.noise - kernel.mean) @ kernel.axes


def by_hand(ones, zeros, noise, failure):
    """The statement itself, with loops and all eigenvalues, and products in closed form."""
    kernel, (rate, slope), *rest = fixed(ones, zeros, noise, failure)
    wide = kernel.left + 0.5

    def product(t, u):
        away = (t + u) ** 2 / (8 * kernel.left) - (t - u) ** 2 / 4
        return float(np.prod(wide / np.sqrt(2 * kernel.left) * np.exp(away)))

    one, zero = (in_places(kernel, rows) for rows in rest)
    kept = [[product(t, t) <= math.exp(kernel.largest) * (1 + 1e-12) for t in rows] for rows in (one, zero)]
    m = len(one)
    gram = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            for sign, here, there, a, b in ((1, one, one, 0, 0), (1, zero, zero, 1, 1), (-1, one, zero, 0, 1)):
                gram[i, j] += sign * product(here[i], there[j]) * kept[a][i] * kept[b][j]
            gram[i, j] -= product(zero[i], one[j]) * kept[1][i] * kept[0][j]
    bound, log, s = math.exp(kernel.largest), math.log(4 / failure), m * (m - 1) / 2

    def ratio(u):
        return (-math.log1p(-u) - u) / u**2 if u > 1e-4 else 0.5

    total = paid = 0.0
    for j in range(m):
        x = gram[j, :j].sum()
        c = math.sqrt(2 * bound * max(0.0, gram[:j, :j].sum()))
        assert rate * c < 1
        total, paid = total + x, paid + ratio(rate * c) * rate**2 * x**2
    weights = np.arange(m - 1, -1, -1.0)
    largest = float(np.linalg.eigvalsh(gram * np.outer(weights, weights))[-1])
    a = (total + (log + paid) / rate) / s
    b = (log + ratio(slope * math.sqrt(2 * bound) * weights[0]) * slope**2 * largest) / (slope * s)
    hidden = sum(binomial_upper(m - sum(side), trials=m, failure_probability=failure / 4) for side in kept)
    return (b / 2 + math.sqrt(max(0.0, b**2 / 4 + a)) + hidden) / 2


@pytest.mark.parametrize(("noise", "failure", "moved"), [(2.0, 0.05, 0.0), (5.0, 1e-3, 0.0), (3.0, 0.1, 3.0)])
def test_the_limit_is_its_formula(noise, failure, moved):
    ones, zeros = normal(150, 2, seed=1, moved=moved)
    exact = by_hand(ones, zeros, noise, failure)
    found = variation_kernel(ones, zeros, noise=noise, failure_probability=failure)
    assert exact <= found <= exact * 1.005
    assert found < 1


def test_the_kernel_is_its_integral():
    """In one coordinate, by quadrature: φ(y−t)φ(y−t′)/ω(y), and ω is a density."""
    ones, zeros = normal(100, 1, seed=2, moved=0.7)
    kernel, _, *rest = fixed(ones, zeros, 0.8, 0.05)
    found, outside = kernel.products([rows[:4] for rows in rest])
    assert outside == [0, 0]
    (left,) = kernel.left
    spread = math.sqrt(left + 0.5)

    def difference(pair, y):
        return stats.norm.pdf(y - places[0][pair]) - stats.norm.pdf(y - places[1][pair])

    places = [in_places(kernel, rows[:4]).ravel() for rows in rest]
    for i in range(4):
        for j in range(4):
            exact, _ = integrate.quad(
                lambda y, i=i, j=j: difference(i, y) * difference(j, y) / stats.norm.pdf(y, scale=spread), -9, 9
            )
            assert found[i, j] == pytest.approx(exact, rel=1e-6, abs=1e-9)


def test_what_lies_outside_is_counted_and_left_out():
    ones, zeros = normal(200, 2, seed=3)
    kernel, _, one, zero = fixed(ones, zeros, 3.0, 0.05)
    one[[0, 5]], zero[7] = 1e200, np.nan
    found, outside = kernel.products([one, zero])
    plain, before = kernel.products(list(normal(160, 2, seed=3)))
    assert outside[0] >= 2
    assert outside[1] >= 1
    assert np.isfinite(found).all()
    assert np.isfinite(plain).all()
    assert sum(before) < sum(outside)


@pytest.mark.parametrize("moved", [0.0, 0.5, 2.0, 30.0])
def test_of_two_points_the_truth_lies_below_and_is_near(moved):
    """Each class is one point, so total variation is that of two Gaussians; no chance is left but the caller's."""
    truth = 2 * stats.norm.cdf(moved / 2) - 1
    ones, zeros = np.full((2000, 3), 5.0), np.full((2000, 3), 5.0)
    ones[:, 1] += moved
    found = variation_kernel(ones, zeros, noise=1.0, failure_probability=0.05)
    assert truth <= found
    if moved < 1:
        assert found < 1.3 * truth + 0.02  # Cauchy and Schwarz cost √(π/2) here


LAWS = {
    "nothing": (np.zeros(1), np.zeros(1)),
    "moved": (np.array([0.0, 1.0]), np.array([0.4, 1.4])),
    "one in twenty is told": (np.array([2.5, *[0.0] * 19]), np.zeros(20)),
    "one in three hundred lies far off": (np.array([9.0, *[0.0] * 299]), np.zeros(300)),
    "wider": (np.linspace(-2, 2, 9), np.linspace(-1, 1, 9)),
}


@pytest.mark.parametrize("law", LAWS)
def test_it_is_wrong_no_more_often_than_stated(law):
    """150 tables of 150 pairs; the test fails by chance with probability 1e-6 if it is wrong as often as stated."""
    failure, runs, source = 0.3, 150, np.random.default_rng(4)
    y = np.linspace(-12, 20, 4001)
    densities = [stats.norm.pdf(y[:, None], atoms).mean(axis=1) for atoms in LAWS[law]]
    truth = float(np.abs(densities[0] - densities[1]).sum()) / 2 * (y[1] - y[0])
    limits = []
    for _ in range(runs):
        ones, zeros = (source.choice(atoms, size=(150, 1)) for atoms in LAWS[law])
        limits.append(variation_kernel(ones, zeros, noise=1.0, failure_probability=failure))
    assert sum(limit < truth for limit in limits) <= stats.binom.isf(1e-6, runs, failure)
    assert np.median(limits) < 1


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((5, 5)),
        np.diag([3.0, 2.0, 1.0]),
        np.array([[2.0, -2.0], [-2.0, 2.0]]),  # its vector is orthogonal to the first one that is tried
        np.cov(np.random.default_rng(5).normal(size=(60, 80))),
    ],
)
def test_the_largest_eigenvalue_is_never_understated(matrix):
    found, exact = kernels._largest(matrix, np.ones(len(matrix))), float(np.linalg.eigvalsh(matrix)[-1])
    assert exact <= found <= max(1.1 * exact, float(np.linalg.norm(matrix)) * 1.001)


def test_units_and_origin_do_not_matter():
    ones, zeros = normal(400, 4, seed=6)
    options = {"noise": 4.0, "failure_probability": 0.05}
    found = variation_kernel(ones, zeros, **options)
    assert variation_kernel(zeros, ones, **options) == pytest.approx(found, rel=1e-6)
    assert variation_kernel(ones / 8, zeros / 8, noise=0.5, failure_probability=0.05) == pytest.approx(found, rel=1e-9)
    assert variation_kernel(ones + 1e6, zeros + 1e6, **options) == pytest.approx(found, rel=1e-6)
    assert found < 1


def test_columns_without_spread_and_copies_of_columns_do_no_harm():
    ones, zeros = normal(400, 2, seed=7)
    options = {"noise": 4.0, "failure_probability": 0.05}
    found = variation_kernel(ones, zeros, **options)
    flat = [np.column_stack([rows, np.full((400, 3), -2.5)]) for rows in (ones, zeros)]
    assert variation_kernel(*flat, **options) == pytest.approx(found, rel=1e-6)
    # A column twice is the same column with less noise.
    twice = [np.column_stack([rows, rows]) for rows in (ones, zeros)]
    less = variation_kernel(ones, zeros, noise=4.0 / math.sqrt(2), failure_probability=0.05)
    assert variation_kernel(*twice, **options) == pytest.approx(less, rel=1e-6)


def test_nothing_is_promised_where_there_is_nothing_to_promise_it_by():
    few, wide = np.zeros((FEWEST_PAIRS - 1, 4)), np.zeros((30, MOST_COLUMNS + 1))
    far = np.where(np.arange(100)[:, None] % 2 == 0, -1.7e308, 1.7e308) * np.ones(4)
    for ones in (few, wide, far, np.random.default_rng(8).normal(size=(60, 5)) * 100):
        assert variation_kernel(ones, ones[::-1], noise=1.0, failure_probability=0.05) == 1.0
    assert variation_kernel(np.ones((50, 4)), np.zeros((50, 4)), noise=1e-300, failure_probability=0.05) == 1.0


def test_more_pairs_and_less_certainty_mean_less():
    few, many = (
        variation_kernel(*normal(pairs, 4, seed=9), noise=4.0, failure_probability=0.05) for pairs in (200, 1600)
    )
    assert many < few / 2
    assert variation_kernel(*normal(200, 4, seed=9), noise=4.0, failure_probability=1e-6) > few


@pytest.mark.parametrize(
    ("ones", "zeros", "message"),
    [
        (np.zeros((30, 2)), np.zeros((29, 2)), r"must be of shape \(30, 2\)"),
        (np.zeros(30), np.zeros(30), "2 dimensions"),
        (np.full((30, 2), np.nan), np.zeros((30, 2)), "finite"),
    ],
)
def test_rows_that_are_no_pairs_are_refused(ones, zeros, message):
    with pytest.raises(InputError, match=message):
        variation_kernel(ones, zeros, noise=1.0, failure_probability=0.05)
