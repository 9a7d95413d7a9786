"""Stars of reversible chains, against exact sums over chains with few states.

Seeds are fixed; failure probabilities of 1e-6 say how often other seeds would fail.
"""

import itertools

import numpy as np
import pytest

from tacit import InputError
from tacit.theory.confidence import sampled_mean_lower
from tacit.theory.posterior import attribute_success, posterior_mse, radius_success, restored_share

RARE = 1e-6


def metropolis(law, rng):
    """A reversible kernel for this law, with a random symmetric proposal."""
    proposal = rng.random((len(law), len(law)))
    proposal = (proposal + proposal.T) / (2 * len(law))
    kernel = proposal * np.minimum(1, law[None, :] / law[:, None])
    np.fill_diagonal(kernel, 0)
    return kernel + np.diag(1 - kernel.sum(axis=1))


def half_square(law, walk, values):
    """½E(g(X) − g(X′))² for X drawn from the law and X′ by the walk."""
    return float(np.sum(law[:, None] * walk * (values[:, None] - values[None, :]) ** 2) / 2)


def variance(law, values):
    return float(law @ values**2 - (law @ values) ** 2)


@pytest.mark.parametrize("seed", range(20))
def test_walks_of_an_even_number_of_steps_stay_below_the_variance_and_rise(seed):
    rng = np.random.default_rng(seed)
    law, values = rng.dirichlet(np.ones(6)), rng.normal(size=6)
    kernels = [metropolis(law, rng) for _ in range(5)]
    found = []
    for steps in range(1, 6):
        there = np.linalg.multi_dot([np.eye(6), *kernels[:steps]])
        back = np.linalg.multi_dot([np.eye(6), *reversed(kernels[:steps])])
        found.append(half_square(law, there @ back, values))
    assert np.all(np.diff(found) >= -1e-12)
    assert found[-1] <= variance(law, values) + 1e-12
    many = half_square(law, np.linalg.matrix_power(kernels[0], 400), values)
    assert many == pytest.approx(variance(law, values), rel=1e-6)


def test_an_odd_number_of_steps_proves_nothing():
    """A kernel that swaps two states: after one step the distance is twice what the variance allows."""
    law, values, swap = np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    assert half_square(law, swap, values) == 2 * variance(law, values)
    assert half_square(law, swap @ swap, values) == 0


def test_kernels_in_the_same_order_twice_prove_nothing():
    """Not reversed, two reversible kernels turn in a circle: they are no palindrome."""
    law, values = np.full(3, 1 / 3), np.array([-1.0, 0.0, 1.0])
    first = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    second = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert half_square(law, first @ second @ second @ first, values) <= variance(law, values)
    assert half_square(law, first @ second, values) > variance(law, values)


LAW, VALUES = np.array([0.5, 0.2, 0.2, 0.1]), np.array([-1.0, 0.0, 1.0, 3.0])
KERNEL = metropolis(LAW, np.random.default_rng(0))


def stars(count, ends, half, seed=0):
    """States of stars: the true one and its rivals, one star a row."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(np.linalg.matrix_power(KERNEL, half), axis=1)
    start = rng.choice(4, size=count, p=LAW)
    middle = (rng.random(count)[:, None] > walk[start]).sum(axis=1)
    rivals = (rng.random((count, ends))[:, :, None] > walk[middle][:, None, :]).sum(axis=2)
    return np.column_stack([start, rivals])


def exact_middles(half):
    """For every middle its probability and the law of the points around it."""
    walk = np.linalg.matrix_power(KERNEL, half)
    return LAW @ walk, walk


@pytest.mark.parametrize(("half", "tight"), [(1, 0.98), (60, 0.99)])
def test_the_bound_is_the_variance_given_the_middle(half, tight):
    middles, walk = exact_middles(half)
    truth = float(sum(p * variance(law, VALUES) for p, law in zip(middles, walk, strict=True)))
    values = VALUES[stars(400_000, 3, half)].var(axis=1, ddof=1)
    found = posterior_mse(values, most=16.0 / 3, radius=4.0, failure_probability=RARE)
    assert tight * truth < found <= truth <= variance(LAW, VALUES) * (1 + 1e-9)


def test_what_is_paid_for_is_what_the_statement_says():
    values = np.random.default_rng(0).exponential(size=1000)
    plain = 3 * sampled_mean_lower(np.minimum(values, 3) / 3, failure_probability=0.01)
    options = {"most": 3.0, "radius": 2.0, "failure_probability": 0.01}
    assert posterior_mse(values, **options) == pytest.approx(plain, rel=1e-12)
    assert posterior_mse(values, **options) <= plain
    paid = posterior_mse(values, release_variation=0.01, chain_variation=0.02, **options)
    assert paid == pytest.approx(plain - 3 * 0.02 - 4 * 4 * 0.01, rel=1e-12)
    assert posterior_mse(values, release_variation=0.5, **options) == 0


@pytest.mark.parametrize("shown", [0.01, 0.1, 0.5, 1.0])
def test_a_release_that_differs_from_the_computed_one_is_paid_for(shown):
    """Computed: nothing. Released: one of two inputs gives itself away with this probability."""
    hidden = 1 - shown / 2
    truth = hidden * 4 * (0.5 / hidden) * (0.5 * (1 - shown) / hidden)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(200_000, 2))
    values = (signs[:, 0] - signs[:, 1]) ** 2 / 2
    options = {"most": 2.0, "radius": 1.0, "failure_probability": RARE}
    assert posterior_mse(values, release_variation=shown, **options) <= truth
    assert posterior_mse(values, **options) > 0.98


@pytest.mark.parametrize("half", [1, 40])
@pytest.mark.parametrize("ends", [1, 3])
def test_naming_is_bounded_by_the_greatest_share_of_an_attribute(half, ends):
    attribute = np.array([0, 1, 1, 2])
    middles, walk = exact_middles(half)
    expected = 0.0
    for states in itertools.product(range(4), repeat=ends + 1):
        share = np.bincount(attribute[list(states)]).max() / (ends + 1)
        expected += share * float(middles @ np.prod(walk[:, list(states)], axis=1))
    found = attribute_success(attribute[stars(300_000, ends, half)], failure_probability=RARE)
    assert expected <= found < 1.009 * expected
    assert found >= 0.5  # that of the most likely attribute, which needs no release


def test_points_whose_release_is_not_known_well_count_for_everybody():
    labels = np.array([[0, 1, 2, 2]] * 1000)
    inside = np.array([[True, True, True, False]] * 1000)
    options = {"failure_probability": 0.001}
    assert attribute_success(labels, **options) == pytest.approx(0.5, abs=0.01)
    assert attribute_success(labels, inside=~inside, **options) == 1
    assert attribute_success(np.arange(4) + 0 * labels, inside=inside, **options) == pytest.approx(0.5, abs=0.01)
    paid = attribute_success(labels, release_variation=0.1, chain_variation=0.2, **options)
    assert paid == pytest.approx(attribute_success(labels, **options) + 0.3)


def test_coming_near_is_bounded_by_the_points_within_twice_the_radius():
    points = VALUES[stars(300_000, 2, 40)]
    distances = np.abs(points[:, :, None] - points[:, None, :])
    middles, walk = exact_middles(40)
    expected = best = 0.0
    for states in itertools.product(range(4), repeat=3):
        here = VALUES[list(states)]
        share = (np.abs(here[:, None] - here[None, :]) <= 1).sum(axis=1).max() / 3
        expected += share * float(middles @ np.prod(walk[:, list(states)], axis=1))
    found = radius_success(distances, radius=0.5, failure_probability=RARE)
    assert expected <= found < 1.009 * expected
    best = max(float(LAW[np.abs(VALUES - guess) <= 0.5].sum()) for guess in np.arange(-1, 3, 0.25))
    assert found >= best
    exactly = radius_success(distances, radius=0.0, failure_probability=RARE)
    assert 0.5 <= exactly < found


TEXTS = np.array([[0, 5, 9], [1, 5, 9], [1, 6, 9], [2, 7, 8]])
"""Four texts of three words, one for each state."""


@pytest.mark.parametrize("half", [1, 40])
def test_restored_words_are_bounded_by_the_words_that_most_points_share(half):
    middles, walk = exact_middles(half)
    expected = best = 0.0
    for states in itertools.product(range(4), repeat=3):
        shares = [np.unique(place, return_counts=True)[1].max() / 3 for place in TEXTS[list(states)].T]
        expected += np.mean(shares) * float(middles @ np.prod(walk[:, list(states)], axis=1))
    words = TEXTS[stars(300_000, 2, half)]
    found = restored_share(words, lengths=np.full(len(words), 3), failure_probability=RARE)
    assert expected <= found < 1.009 * expected
    best = np.mean([max(LAW[place == word].sum() for word in place) for place in TEXTS.T])
    assert found >= best
    # Of one word it is the chance of naming it.
    first = restored_share(words, lengths=np.ones(len(words)), failure_probability=RARE)
    assert first == attribute_success(words[:, :, 0], failure_probability=RARE)


def test_words_after_the_end_of_a_text_do_not_count_and_texts_count_alike():
    words = np.array([[[1, 2, 7], [1, 3, 7]], [[4, 7, 7], [4, 8, 7]]] * 500)
    lengths = np.array([2, 1] * 500)
    options = {"lengths": lengths, "failure_probability": 0.001}
    assert restored_share(words, **options) == pytest.approx((0.75 + 1) / 2, abs=0.02)
    assert restored_share(words, inside=np.zeros((1000, 2), dtype=bool), **options) == 1
    paid = restored_share(words, release_variation=0.01, chain_variation=0.02, **options)
    assert paid == pytest.approx(restored_share(words, **options) + 0.03)
    with pytest.raises(InputError, match="must be 1000 numbers of at most 3"):
        restored_share(words, lengths=lengths + 2, failure_probability=0.001)
    with pytest.raises(InputError, match="lengths"):
        restored_share(words, lengths=lengths[:5], failure_probability=0.001)


def test_limits_fail_no_more_often_than_stated():
    truth = variance(LAW, VALUES)
    attribute = np.array([0, 1, 1, 1])
    best_words = np.mean([max(LAW[place == word].sum() for word in place) for place in TEXTS.T])
    wrong = [0, 0, 0]
    for seed in range(200):
        states = stars(150, 2, 60, seed=seed)
        values = VALUES[states].var(axis=1, ddof=1)
        wrong[0] += posterior_mse(values, most=16.0 / 3, radius=4.0, failure_probability=0.05) > truth
        wrong[1] += attribute_success(attribute[states], failure_probability=0.05) < 0.5
        limit = restored_share(TEXTS[states], lengths=np.full(150, 3), failure_probability=0.05)
        wrong[2] += limit < best_words
    assert max(wrong) <= 0.05 * 200 + 3 * np.sqrt(0.05 * 0.95 * 200)


def test_what_makes_no_sense_is_refused():
    options = {"failure_probability": 0.01}
    with pytest.raises(InputError, match="values"):
        posterior_mse([-1.0], most=1.0, radius=1.0, **options)
    with pytest.raises(InputError, match="most"):
        posterior_mse([1.0], most=0.0, radius=1.0, **options)
    with pytest.raises(InputError, match="release_variation"):
        posterior_mse([1.0], most=1.0, radius=1.0, release_variation=2.0, **options)
    with pytest.raises(InputError, match="inside"):
        attribute_success([[1, 2]], inside=[[True]], **options)
    with pytest.raises(InputError, match="distances"):
        radius_success(np.zeros((3, 2, 4)), radius=1.0, **options)
