import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from tacit import InputError
from tacit.theory.membership import guessing_epsilon, retrained_advantage


def reaching(right, trials, chance):
    """P(Bin(trials, chance) ≥ right), in many digits."""
    return mpmath.betainc(right, trials - right + 1, 0, chance, regularized=True)


@pytest.mark.parametrize(("right", "trials"), [(50, 50), (41, 50), (30, 50), (199, 240)])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_the_limit_is_its_formula(right, trials, alpha, delta):
    coins = 3 * trials
    found = guessing_epsilon(right, guesses=trials, coins=coins, failure_probability=alpha, delta=delta)
    with mpmath.workdps(30):

        def excluded(epsilon):
            """Whether some j shows that ε is too small, by the statement itself."""
            chance = 1 / (1 + mpmath.exp(-epsilon))
            spared = range(right) if delta else (0,)
            return any(
                reaching(right - j, trials, chance) + coins * mpmath.mpf(delta) / (2 * (j + 1)) <= alpha for j in spared
            )

        if found:
            assert excluded(found)
        assert not excluded(found * 1.02 + 0.02)  # not every j is tried


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
