import math

import mpmath
import numpy as np
import pytest
from scipy import optimize, special, stats

from tacit import InputError
from tacit.theory import membership
from tacit.theory.divergences import gaussian_epsilon
from tacit.theory.membership import guessing_distance, guessing_epsilon, retrained_advantage


def reaching(right, trials, chance):
    """P(Bin(trials, chance) ≥ right), in many digits."""
    return mpmath.betainc(right, trials - right + 1, 0, chance, regularized=True)


@pytest.mark.parametrize(("right", "trials"), [(50, 50), (41, 50), (30, 50), (199, 240)])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
def test_without_delta_the_limit_is_its_formula(right, trials, alpha):
    found = guessing_epsilon(right, guesses=trials, coins=3 * trials, failure_probability=alpha)
    with mpmath.workdps(30):

        def excluded(epsilon):
            return reaching(right, trials, 1 / (1 + mpmath.exp(-epsilon))) <= alpha

        if found:
            assert excluded(found)
        assert not excluded(found * (1 + 1e-9) + 1e-9)


def private(epsilon, delta):
    """Straight lines (slope, height) whose minimum is the curve of (ε, δ)."""
    return [(math.exp(epsilon), delta), (math.exp(-epsilon), 1 - math.exp(-epsilon) * (1 - delta)), (0.0, 1.0)]


def gaussian(distance):
    """Tangents of Φ(Φ⁻¹(a) + μ), which lie above it."""
    points = np.linspace(-9, 9, 20_001)
    slopes = np.exp(-distance * points - distance**2 / 2)
    return list(zip(slopes, stats.norm.cdf(points + distance) - slopes * stats.norm.cdf(points), strict=True))


def likeliest(right, guesses, coins, lines):
    """The largest P(W ≥ right) of all laws that lemma 1 allows: a linear programme, by another solver."""
    numbers = np.arange(guesses + 1)
    rows = []
    for least in range(1, guesses + 1):
        hit = np.where(numbers >= least, numbers, 0) / coins
        missed = np.where(numbers >= least - 1, guesses - numbers, 0) / coins
        rows += [(hit - slope * missed, height) for slope, height in lines]
    found = optimize.linprog(
        -(numbers >= right).astype(float),
        A_ub=np.array([row for row, _ in rows]),
        b_ub=np.array([height for _, height in rows]),
        A_eq=np.ones((1, guesses + 1)),
        b_eq=[1.0],
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize(("right", "guesses", "coins"), [(6, 6, 6), (6, 6, 40), (5, 6, 12), (8, 9, 9), (9, 12, 60)])
def test_with_delta_the_limit_is_the_optimum_of_all_laws_that_are_allowed(right, guesses, coins):
    """Valid and tight: at the limit the largest probability is α, by a linear programme instead of the recursion."""
    for alpha in (0.1, 0.02):
        for delta in (1e-5, 1e-3):
            asked = {"guesses": guesses, "coins": coins, "failure_probability": alpha}
            found = guessing_epsilon(right, **asked, delta=delta)
            if found:
                assert likeliest(right, guesses, coins, private(found * 0.99, delta)) < alpha
            assert likeliest(right, guesses, coins, private(found * 1.001 + 1e-6, delta)) > alpha * (1 - 1e-6)
        found = guessing_distance(right, **asked)
        if found:  # tangents allow more than the curve, by less than the last digits here
            assert likeliest(right, guesses, coins, gaussian(found * 0.995)[::100]) < alpha
        assert likeliest(right, guesses, coins, gaussian(found * 1.005 + 1e-6)[::100]) > alpha * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (2.0, 0.05), (1.0, 0.3)])
def test_one_guess_is_as_good_as_it_may_be(epsilon, delta):
    """The best pair of laws is known: one coin is guessed with probability (e^ε + δ)/(1 + e^ε), and no more."""
    best = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    found = guessing_epsilon(1, guesses=1, coins=1, failure_probability=best, delta=delta)
    assert epsilon * (1 - 1e-5) < found <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0])
def test_a_gaussian_mechanism_is_not_refuted_too_often_and_shows_more_than_by_one_delta(distance):
    """Coins plus normal noise: the most certain are guessed, so that guesses depend on each other.

    400 runs at a failure probability of 0.1. False alarms of this test: with probability 1e-4 at most.
    """
    rng, coins, each, alpha, delta = np.random.default_rng(3), 2000, 50, 0.1, 1e-5
    asked = {"guesses": 2 * each, "coins": coins, "failure_probability": alpha}
    true = gaussian_epsilon(delta, distance=distance)
    wrong, by_curve, by_delta = [0, 0], [], []
    for _ in range(400):
        inside = rng.random(coins) < 0.5
        order = np.argsort(rng.normal(size=coins) + distance * inside)
        right = int(inside[order[-each:]].sum() + (~inside[order[:each]]).sum())
        by_curve.append(guessing_distance(right, **asked))
        by_delta.append(guessing_epsilon(right, **asked, delta=delta))
        wrong[0] += by_curve[-1] > distance
        wrong[1] += by_delta[-1] > true
    assert max(wrong) <= stats.binom.isf(1e-4, 400, alpha)
    usual = float(np.median(by_curve))
    assert gaussian_epsilon(delta, distance=usual) > np.median(by_delta)
    assert usual > 0.4 * distance


def test_normal_quantiles_are_as_exact_as_granted():
    with mpmath.workdps(40):
        for rate in [*np.geomspace(1e-300, 0.4, 60), *np.linspace(0.4, 1 - 1e-12, 60)]:
            exact = mpmath.findroot(lambda x, rate=rate: mpmath.ncdf(x) - mpmath.mpf(rate), special.ndtri(rate))
            assert abs(exact - special.ndtri(rate)) < membership._NORMAL / 100 * (1 + abs(exact))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomized_response_is_met_and_not_refuted(epsilon):
    """Each coin told, and right with probability e^ε/(1 + e^ε): the guesses are as good as they may be."""
    chance, trials, alpha = 1 / (1 + math.exp(-epsilon)), 4000, 0.1
    rights = np.arange(trials + 1)
    likely = stats.binom.pmf(rights, trials, chance)
    shown = np.array(
        [
            guessing_epsilon(int(right), guesses=trials, coins=trials, failure_probability=alpha) if p > 1e-12 else 0
            for right, p in zip(rights, likely, strict=True)
        ]
    )
    # Exactly: no simulation. The sum over outcomes leaves out less than 1e-8.
    assert 0.09 < likely[shown > epsilon].sum() <= alpha
    assert (shown @ likely) > epsilon - 0.12


def test_a_delta_that_gives_all_away_is_paid_for():
    """With probability δ a coin is told, else nothing: (0, δ)-private; the number of coins told is binomial."""
    coins, delta, alpha = 1000, 2e-3, 0.1
    told = np.arange(60)
    likely = stats.binom.pmf(told, coins, delta)
    # Whoever is told guesses those coins alone, and enough others to reach a number that was fixed before.
    wrong = 0.0
    for known, p in zip(told, likely, strict=True):
        rest = 60 - known
        lucky = stats.binom.pmf(np.arange(rest + 1), rest, 0.5)
        limits = [
            guessing_epsilon(int(known + k), guesses=60, coins=coins, failure_probability=alpha, delta=delta)
            for k in range(rest + 1)
        ]
        wrong += p * lucky[np.array(limits) > 0].sum()
    assert wrong <= alpha
    # Without the δ the same guesses would refute ε = 0 too often.
    unpaid = sum(
        p * stats.binom.sf(stats.binom.isf(0.05, 60, 0.5) - known, 60 - known, 0.5)
        for known, p in zip(told, likely, strict=True)
    )
    assert unpaid > wrong


def test_more_right_guesses_and_a_smaller_delta_show_more():
    shown = [guessing_epsilon(k, guesses=100, coins=1000, failure_probability=0.05) for k in range(101)]
    assert shown == sorted(shown)
    assert shown[50] == 0 < shown[70]
    by_delta = [
        guessing_epsilon(90, guesses=100, coins=1000, failure_probability=0.05, delta=delta)
        for delta in (0.0, 1e-9, 1e-6, 1e-4, 1e-2)
    ]
    assert by_delta == sorted(by_delta, reverse=True)
    assert by_delta[0] > by_delta[-1] == 0


@pytest.mark.parametrize(("plug_in", "models"), [(0.0, 64), (0.2, 64), (0.05, 2000), (0.9, 30), (1.0, 30)])
def test_the_advantage_limit_inverts_hoeffdings_rate(plug_in, models):
    limit = retrained_advantage(plug_in, models=models, failure_probability=0.01)
    assert plug_in <= limit <= 1
    if limit < 1:
        with mpmath.workdps(30):
            x, p = (1 + mpmath.mpf(plug_in)) / 2, (1 + mpmath.mpf(limit)) / 2
            rate = models * (x * mpmath.log(x / p) + (1 - x) * mpmath.log((1 - x) / (1 - p)))
            assert mpmath.log(100) <= rate <= mpmath.log(100) * (1 + mpmath.mpf(10) ** -6)


def plug_in(outputs, coins, values):
    """T̂V by the statement: models × records."""
    signs = np.where(coins, 1, -1)
    return sum(np.abs(np.where(outputs == t, signs, 0).sum(axis=0)).sum() for t in range(values)) / coins.size


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_no_limit_is_below_the_exact_advantage_too_often(leak, together):
    """Outputs tell the coin with probability `leak`, of each record by itself or of all records of a model at once."""
    rng, models, records, alpha, runs = np.random.default_rng(1), 40, 12, 0.1, 500
    missed = 0
    for _ in range(runs):
        coins = rng.random((models, records)) < 0.5
        telling = rng.random((models, 1 if together else records)) < leak
        outputs = np.where(telling, coins, 2 + (rng.random((models, records)) < 0.5))
        found = plug_in(outputs, coins, 4)
        missed += retrained_advantage(found, models=models, failure_probability=alpha) < leak
    # False alarms of this test: with probability 1e-4 at most.
    assert missed <= stats.binom.isf(1e-4, runs, alpha)


def test_bad_counts_are_told():
    with pytest.raises(InputError, match="guesses"):
        guessing_epsilon(0, guesses=0, coins=10, failure_probability=0.05)
    with pytest.raises(InputError, match="correct"):
        guessing_epsilon(11, guesses=10, coins=10, failure_probability=0.05)
    with pytest.raises(InputError, match="coins"):
        guessing_epsilon(5, guesses=10, coins=9, failure_probability=0.05)
    with pytest.raises(InputError, match="delta"):
        guessing_epsilon(5, guesses=10, coins=10, failure_probability=0.05, delta=-1)
    with pytest.raises(InputError, match="plug_in"):
        retrained_advantage(-0.1, models=10, failure_probability=0.05)
