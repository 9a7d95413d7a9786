"""Attacks on tables: they find what is there, never more, and say what they realised."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from tacit import Attack, Comparison, InputError
from tacit.audit import Attempt, Audit, Rates, attempts, certify

ROWS = 20_000
SECRET = np.arange(ROWS) % 2 == 1


def tried(output, *, secret=SECRET, noise=None, loss="joint", method="auto", **options):
    certificate = certify(secret, output, failure_probability=0.05, noise=noise, loss=loss, method=method)
    found = attempts(secret, output, certificate=certificate, noise=noise, **options)
    return certificate, {attempt.learner: attempt for attempt in found}


def test_every_attack_finds_a_shift_and_none_finds_more_than_is_there():
    """By chance a low end passes the truth once in 200 runs. The table's seed is the attack's: draws must differ."""
    rng = np.random.default_rng(0)
    output = rng.normal(size=ROWS) + np.where(SECRET, 0.5, -0.5)
    certificate, found = tried(output, noise=0.5)
    truth = 2 * stats.norm.cdf(0.5 / math.hypot(1, 0.5)) - 1
    assert set(found) == {"threshold", "histogram", "boosting", "network"}
    for attempt in found.values():
        assert attempt.low <= truth <= certificate.advantage
        assert attempt.value == pytest.approx(truth, abs=0.03)
        assert attempt.rates.positives == attempt.rates.negatives == ROWS // 4
    assert not Audit(certificate=certificate, attacks=tuple(found.values())).contradicted


def test_what_a_threshold_cannot_see_the_others_do():
    rng = np.random.default_rng(1)
    output = np.round(rng.normal(size=ROWS) * np.where(SECRET, 2.0, 1.0), 1)
    certificate, found = tried(output)
    values = np.arange(-90, 91) / 10
    masses = [stats.norm.cdf((values + 0.05) / scale) - stats.norm.cdf((values - 0.05) / scale) for scale in (1, 2)]
    truth = np.abs(masses[0] - masses[1]).sum() / 2
    for name in ("histogram", "boosting", "network"):
        assert found[name].value == pytest.approx(truth, abs=0.05), name
        assert found[name].low <= truth <= certificate.advantage
    assert found["threshold"].value < truth - 0.1


def test_a_memorised_table_shows_nothing():
    """Every output is seen about once, and tells nothing: tested on rows it was fitted to, a histogram would win."""
    rng = np.random.default_rng(2)
    words = np.array([f"word {number}" for number in rng.integers(0, 10 * ROWS, ROWS)])
    _, found = tried(words, learners=["histogram", "boosting"])
    assert max(attempt.low for attempt in found.values()) <= 0  # by chance once in 200 runs


def test_the_limits_of_rates_hold_as_often_as_they_say():
    """Fails by chance once in a million runs."""
    rng = np.random.default_rng(3)
    trials, failure, rates = 400, 0.2, (0.3, 0.1)
    missed = loss = 0
    for hits, alarms in zip(rng.binomial(60, rates[0], trials), rng.binomial(80, rates[1], trials), strict=True):
        seen = Rates(
            true_positives=int(hits),
            positives=60,
            false_positives=int(alarms),
            negatives=80,
            failure_probability=failure,
        )
        value, low, high = seen.advantage
        assert value == pytest.approx(hits / 60 - alarms / 80)
        missed += not low <= rates[0] - rates[1] <= high
        loss += seen.epsilon_lower > math.log(rates[0] / rates[1])
    assert missed <= stats.binom.ppf(1 - 1e-6, trials, failure)
    assert loss <= stats.binom.ppf(1 - 1e-6, trials, failure / 2)
    assert missed > 0  # the intervals are not the whole line


def test_the_limits_of_rates_are_those_of_clopper_and_pearson():
    seen = Rates(true_positives=40, positives=100, false_positives=0, negatives=50, failure_probability=0.04)
    exact = stats.binomtest(40, 100).proportion_ci(0.98, "exact")
    assert seen.true_positive_limits == pytest.approx((exact.low, exact.high), abs=1e-9)
    none = 1 - 0.01 ** (1 / 50)
    assert seen.false_positive_limits == pytest.approx((0, none), abs=1e-9)
    assert seen.advantage == pytest.approx((0.4, exact.low - none, exact.high), abs=1e-9)
    assert seen.epsilon_lower == pytest.approx(math.log(exact.low / none), abs=1e-9)


@pytest.mark.parametrize("turned", [False, True])
def test_randomised_response_shows_its_epsilon(turned):
    rng = np.random.default_rng(4)
    told = rng.random(ROWS) < math.e / (1 + math.e)
    output = np.where(told ^ turned, SECRET, ~SECRET)
    _, found = tried(output, learners=["histogram"])
    assert 0.85 < found["histogram"].epsilon <= 1
    assert found["histogram"].value == pytest.approx(math.tanh(0.5), abs=0.03)


def test_ties_are_reported():
    """Outputs 0, 1, 2: no threshold has a false positive rate of 10 %, so another one is realised."""
    rng = np.random.default_rng(5)
    output = np.where(SECRET, rng.choice(3, ROWS, p=[0.3, 0.4, 0.3]), rng.choice(3, ROWS, p=[0.65, 0.3, 0.05]))
    _, found = tried(output, learners=["threshold"])
    realised = dict(found["threshold"].at_rates)
    assert realised[0.1].false_positive_rate == pytest.approx(0.05, abs=0.015)
    assert realised[0.1].true_positive_rate == pytest.approx(0.3, abs=0.03)
    assert realised[0.01].false_positive_rate == realised[0.01].true_positive_rate == 0
    assert "FPR 0." in found["threshold"].method


def test_a_leaking_symbol_among_many_is_found():
    rng = np.random.default_rng(6)
    output = rng.integers(0, 500, ROWS)
    output[SECRET & (rng.random(ROWS) < 0.05)] = 700
    certificate, found = tried(output, learners=["threshold", "histogram", "boosting"])
    best = max(found.values(), key=lambda attempt: attempt.epsilon)
    assert found["histogram"].low <= 0.05 <= certificate.advantage
    assert best.epsilon > 2
    groups = found["histogram"].calibration
    assert groups[-1][1] > groups[0][1]


def test_infinite_scores_are_scores():
    """A loss that is infinite for a fifth of the others, and for no member."""
    rng = np.random.default_rng(9)
    output = np.round(rng.exponential(size=ROWS), 1)
    output[~SECRET & (rng.random(ROWS) < 0.2)] = np.inf
    certificate, found = tried(output, learners=["threshold", "histogram", "boosting"])
    for attempt in found.values():
        assert attempt.low <= 0.2 <= certificate.advantage
        assert attempt.value == pytest.approx(0.2, abs=0.03)


def test_guesses_are_calibrated():
    """Groups of test rows: the share of positives lies within its limits of the guess, up to the fit's own error."""
    rng = np.random.default_rng(7)
    output = rng.integers(0, 5, ROWS)
    chance = (output + 1) / 6
    secret = rng.random(ROWS) < chance
    _, found = tried(output, secret=secret, learners=["histogram"])
    groups = found["histogram"].calibration
    assert len(groups) >= 4
    for guess, share, low, high in groups:
        assert low <= share <= high
        assert guess == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_no_attack_beats_its_certificate(seed):
    rng = np.random.default_rng(100 + seed)
    rows = 3_000
    secret = rng.random(rows) < rng.choice([0.5, 0.1])
    kind = seed % 3
    if kind == 0:
        output, noise = rng.integers(0, 8, rows) + secret * (rng.random(rows) < 0.3), None
    elif kind == 1:
        output, noise = rng.standard_cauchy(rows).clip(-50, 50) + secret, 1.0
    else:
        output, noise = (
            {"a": rng.integers(0, 4, rows), "b": np.where(secret & (rng.random(rows) < 0.4), "x", "y")},
            None,
        )
    certificate, found = tried(output, secret=secret, noise=noise, learners=["histogram", "boosting"])
    result = Audit(certificate=certificate, attacks=tuple(found.values()))
    assert not result.contradicted
    assert 0 <= result.low <= result.high


def test_an_attempt_is_an_attack():
    certificate, found = tried(SECRET & (np.arange(ROWS) % 3 > 0), learners=["threshold", "histogram"])
    made = Comparison(guarantee=certificate.guarantee, attacks=tuple(found.values()))
    assert Comparison.from_json(made.to_json()) == made
    assert [str(one) for one in made.attacks] == [str(one) for one in found.values()]
    for one in found.values():
        assert isinstance(one, Attack)
        assert Attempt.from_json(one.to_json()) == one
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        with pytest.warns(DeprecationWarning, match="an Attempt is an Attack"):
            assert one.attack is one
    with pytest.warns(DeprecationWarning, match="use learners="):
        attempts(SECRET, SECRET, certificate=certificate, methods=["histogram"])


def test_attacks_repeat_with_their_seed():
    output = np.random.default_rng(8).normal(size=ROWS)
    one, two = (tried(output, noise=0.3, learners=["boosting"], seed=5)[1]["boosting"] for _ in range(2))
    assert one == two


def test_what_cannot_be_attacked_is_refused():
    certificate = certify(SECRET, SECRET.astype(int), failure_probability=0.05)
    with pytest.raises(InputError, match="noise must be given where"):
        attempts(SECRET, SECRET.astype(int), certificate=certificate, noise=0.1)
    with pytest.raises(InputError, match="must be False or True, as in the certificate"):
        attempts(SECRET.astype(str), SECRET.astype(int), certificate=certificate)
    with pytest.raises(InputError, match="30 rows of each class"):
        attempts(SECRET[:50], SECRET[:50], certificate=certificate)
    with pytest.raises(InputError, match="must come with a column of numbers"):
        attempts(SECRET, np.full(ROWS, "a"), certificate=certificate, learners=["threshold"])
