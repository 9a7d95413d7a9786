"""The attack by exact likelihoods: its laws are real sessions', it comes near honest claims and refutes half noise.

Noise is seeded, so nothing here fails by chance; with other seeds each right mechanism would be contradicted with
probability at most 1e-3.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from noises import SeededNoise, exact_law, hockey_stick

from tacit import Comparison
from tacit.learning import ConfidentGNMax, GNMax, SparseVector, StableRelease, distinguishing_attack, noise_attack
from tacit.learning.noise_attack import noisy_counts_loss, shown_by_laws
from tacit.theory import accounting

DELTA = 1e-5
EPSILONS = (0.25, 1.0, 4.0)


class HalfNoise(SeededNoise):
    """Draws half as much as it is asked for."""

    def laplace(self, scale):
        return super().laplace(scale / 2)

    def gaussian(self, scale, *, size):
        return super().gaussian(scale / 2, size=size)


def honest(epsilon):
    """Mechanisms with the share of ε that is to be shown.

    Winners alone lose less than what is charged for them, the loss of all counts, unless classes are stated.
    """
    budget = {"epsilon": epsilon, "delta": DELTA}
    yield GNMax(**budget, queries=4, counts=True), 0.95
    yield GNMax(**budget, queries=200, counts=True), 0.95
    yield GNMax(**budget, queries=4), 0.87
    yield GNMax(**budget, queries=200), 0.83
    yield GNMax(**budget, queries=20, classes=2), 0.88
    if epsilon == 1:
        yield GNMax(**budget, queries=20, classes=10), 0.85
    yield ConfidentGNMax(**budget, queries=30, answers=20, threshold=60, counts=True), 0.9
    yield ConfidentGNMax(**budget, queries=30, answers=20, threshold=60), 0.8
    yield StableRelease(**budget, queries=1), 0.9
    yield StableRelease(**budget, queries=100), 0.85
    yield SparseVector(**budget, refusals=1), 0.9


CASES = [case for epsilon in EPSILONS for case in honest(epsilon)]


def described(value):
    return str(value).replace("delta=1e-05, ", "") if not isinstance(value, float) else ""


@pytest.mark.parametrize(("mechanism", "share"), CASES, ids=described)
def test_honest_mechanisms_keep_their_claims_and_the_attack_comes_near(mechanism, share):
    attack = noise_attack.noise_attack(mechanism, noise=SeededNoise(1), runs=20_000)
    assert share * mechanism.epsilon <= attack.low <= mechanism.epsilon
    assert attack.low == attack.value < attack.high


@pytest.mark.parametrize(("mechanism", "share"), CASES, ids=described)
def test_half_the_noise_is_refuted(mechanism, share):  # noqa: ARG001
    attack = noise_attack.noise_attack(mechanism, noise=HalfNoise(1), runs=5_000)
    assert attack.low > 1.2 * mechanism.epsilon
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@dataclass(frozen=True, kw_only=True)
class HalfSigma(GNMax):
    """The code draws with half the σ that its guarantee is about."""

    def response(self, counts, session):
        noisy = counts + np.array(session.noise.gaussian(self.sigma / 2, size=len(counts)))
        return int(np.argmax(noisy))


@dataclass(frozen=True, kw_only=True)
class TwiceAsMany(GNMax):
    """Sessions give twice as many answers as are paid for."""

    def finished(self, session):
        return session.answered >= 2 * self.queries


@pytest.mark.parametrize("broken", [HalfSigma, TwiceAsMany], ids=lambda broken: broken.__name__)
def test_code_is_taken_for_what_it_does_and_not_for_what_it_says(broken):
    mechanism = broken(epsilon=1.0, delta=DELTA, queries=200)
    attack = distinguishing_attack(mechanism, runs=4_000, failure_probability=1e-6, noise=SeededNoise(0))
    assert "200 answers" in attack.method or "400 answers" in attack.method
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


class LoudTests(SeededNoise):
    """Draws fifty times the noise in tests of a threshold, which takes one number each."""

    def gaussian(self, scale, *, size):
        return super().gaussian(50 * scale if size == 1 else scale, size=size)


@pytest.mark.parametrize("counts", [False, True])
def test_refusals_are_no_answers(counts):
    """More noise in tests tells less, and refuses half of the queries: neither may count as answers without noise."""
    mechanism = ConfidentGNMax(epsilon=1.0, delta=DELTA, queries=30, answers=20, threshold=60, counts=counts)
    attack = noise_attack.noise_attack(mechanism, noise=LoudTests(1), runs=10_000)
    quiet = noise_attack.noise_attack(mechanism, noise=SeededNoise(1), runs=10_000)
    assert attack.low <= 1.01 * quiet.low <= mechanism.epsilon
    assert int(attack.method.split()[3]) <= mechanism.answers


def test_refusals_alone_show_nothing():
    class Silent(SeededNoise):
        def gaussian(self, scale, *, size):
            return [-(10**9)] * size if size == 1 else super().gaussian(scale, size=size)

    for counts in (False, True):
        mechanism = ConfidentGNMax(epsilon=1.0, delta=DELTA, queries=30, answers=20, threshold=60, counts=counts)
        attack = noise_attack.noise_attack(mechanism, noise=Silent(1), runs=200)
        assert (attack.low, attack.high) == (0, np.inf)


@pytest.mark.parametrize("sigma", [0.4, 0.6, 1.0, 3.0])
def test_sums_of_little_noise_are_added_up(sigma):
    x = np.arange(-40, 41)
    law = np.exp(-(x**2) / (2 * sigma**2))
    law /= law.sum()
    for draws in (2, 3, 6):
        whole = np.ones(1)
        for _ in range(draws):
            whole = np.convolve(whole, law)
        found = noise_attack._sum_law(sigma, draws)
        beyond = (len(whole) - len(found)) // 2
        inner = whole[beyond : beyond + len(found)]
        assert found[inner > 1e-30] == pytest.approx(inner[inner > 1e-30], rel=1e-9)


def test_few_answers_leave_no_upper_end():
    """Where no scale is too small, neither is any loss too large."""
    low, high = noisy_counts_loss([0, 0, 0], moved=2, delta=DELTA, failure_probability=0.01)
    assert low < high == np.inf


def test_what_nobody_knows_the_noise_of_is_not_attacked():
    class Other:
        delta = DELTA

    assert noise_attack.noise_attack(Other(), noise=SeededNoise(0)) is None


def stick(laws, epsilon):
    return max(np.maximum(p - np.exp(epsilon) * q, 0).sum() for p, q in (laws, laws[::-1]))


def test_laws_are_those_of_real_sessions():
    """Every value of all noise, against the formulas; tails are left out below about 1e-6."""
    two = GNMax(epsilon=4.0, delta=0.05, queries=2)
    chances = [noise_attack._difference_below(two.sigma, margin) for margin in (1, -1)]
    winners = [noise_attack._binomial(2, chance) for chance in chances]
    one = GNMax(epsilon=1.0, delta=0.1, queries=1, counts=True)
    stable = StableRelease(epsilon=2.0, delta=0.1, queries=2)
    middle = 2 * stable.threshold + 2
    releases = noise_attack._StableReleases(stable, SeededNoise(0)).laws(stable.scale, 2)(stable.scale)
    sparse = SparseVector(epsilon=8.0, delta=0.3, refusals=1)
    epochs = [noise_attack._epoch_law(sparse.scale, above) for above in ([1, 0], [0, 1])]
    rows = [[(2 * (sparse.threshold + place) + 2, 0) for place in above] for above in ([1, 0], [0, 1])]
    for mechanism, laws, left, right in (
        (two, winners, [(1, 0)] * 2, [(0, 1)] * 2),
        (one, noise_attack._sum_laws(one.sigma, 2), [(3, 1)], [(2, 2)]),
        (stable, releases, [(middle, 1)] * 2, [(middle + 1, 0)] * 2),
        (sparse, epochs, *rows),
    ):
        real = exact_law(mechanism, left), exact_law(mechanism, right)
        for epsilon in (0.0, 0.3, 1.0):
            assert stick(laws, epsilon) == pytest.approx(hockey_stick(*real, epsilon), abs=1e-5)


def test_composed_epochs_show_no_more_than_their_product():
    here, there = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.25, 0.35])
    product = [np.multiply.outer(law, law).ravel() for law in (here, there)]
    exact = shown_by_laws(*product, delta=DELTA)
    rounded = shown_by_laws(*noise_attack._composed((here, there), 2, width=1e-4), delta=DELTA)
    assert 0 <= exact - rounded < 1e-3


def test_the_printed_sparse_vector_loses_far_less_than_is_claimed():
    mechanism = SparseVector(epsilon=4.0, delta=DELTA, refusals=5, queries=200, variant="faithful")
    attack = noise_attack.noise_attack(mechanism, noise=SeededNoise(1), runs=20_000)
    assert 0.2 <= attack.low <= 1
    half = noise_attack.noise_attack(mechanism, noise=HalfNoise(1), runs=20_000)
    assert half.low > 1.7 * attack.low


def test_the_best_event_is_that_of_the_hockey_stick():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        shown = shown_by_laws(p, q, delta=0.01)
        assert np.maximum(p - np.exp(shown) * q, 0).sum() == pytest.approx(0.01)
        assert np.maximum(p - np.exp(shown + 1e-3) * q, 0).sum() < 0.01
    assert shown_by_laws(p, p, delta=0.01) == 0
    assert shown_by_laws(np.array([0.0, 1.0]), np.array([1.0, 0.0]), delta=0.01) == np.inf
    assert shown_by_laws(np.array([0.005]), np.array([0.001]), delta=0.01) == 0


def test_counts_show_what_is_charged_for_them():
    """The loss of counts at a known σ is that of gnmax_delta, exact to a thousandth; more noise shows less."""
    for sigma, moved in ((1.0, 2), (5.0, 2), (75.0, 400)):
        shown = shown_by_laws(*noise_attack._sum_laws(sigma, moved), delta=DELTA)
        charged = [
            accounting.gnmax_delta(share * shown, sigma=sigma, answers=moved // 2) / DELTA for share in (0.999, 1.002)
        ]
        assert charged[1] < 1 <= charged[0]


@pytest.mark.parametrize("mechanism", [GNMax(epsilon=1.0, delta=DELTA, queries=n) for n in (1, 20)], ids=str)
def test_more_noise_shows_less(mechanism):
    """What is computed at nine scales between the limits has no minimum of its own between them."""
    model = noise_attack._NoisyWinners(mechanism, SeededNoise(0))
    scales = np.geomspace(mechanism.sigma * 0.97, mechanism.sigma * 1.03, 41)
    laws = model.laws(scales[-1], mechanism.queries)
    losses = [shown_by_laws(*laws(scale), delta=DELTA) for scale in scales]
    ends = min(losses[0], losses[-1])
    assert min(losses) >= 0.998 * ends


def test_limits_miss_no_more_often_than_stated():
    """At most one in ten, of 300: more than 47 misses would be a chance of 1e-3."""
    rng, sigma, moved = np.random.default_rng(0), 6.0, 40
    truth = shown_by_laws(*noise_attack._sum_laws(sigma, moved), delta=DELTA)
    x = np.arange(-80, 81)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    found = [
        noisy_counts_loss(
            rng.choice(x, p=weights / weights.sum(), size=200), moved=moved, delta=DELTA, failure_probability=0.1
        )
        for _ in range(300)
    ]
    assert sum(not low <= truth <= high for low, high in found) <= 47
    assert np.mean([low for low, _ in found]) > 0.75 * truth


@pytest.mark.parametrize("form", ["stable", "sparse"])
def test_scales_miss_no_more_often_than_stated(form):
    """At most one in ten, of 300: more than 47 misses would be a chance of 1e-3.

    Where the true scale lies between the limits, code that states it is not contradicted.
    """
    rng, scale, gap = np.random.default_rng(0), 2.0, 5

    def chance(tried):
        if form == "stable":
            return float(noise_attack._laplace_above(tried, np.array(gap)))
        return 1 - float(noise_attack._epoch_law(tried, [-gap])[0])

    limits = [
        noise_attack._scales_of_chance(int(hits), 2_000, 0.1, chance, most=1e3)
        for hits in rng.binomial(2_000, chance(scale), size=300)
    ]
    assert sum(not low <= scale <= high for low, high in limits) <= 47
    laws = noise_attack._StableReleases(StableRelease(epsilon=1.0, delta=DELTA, queries=3), SeededNoise(0)).laws
    between = [each for each in limits if each[0] <= scale <= each[1]][:20]
    shown = [noise_attack._loss_between(each, lambda at: laws(at, 3), delta=DELTA, stated=scale)[0] for each in between]
    assert max(shown) <= shown_by_laws(*laws(scale, 3)(scale), delta=DELTA)


def test_noise_that_is_far_larger_than_stated_shows_nothing():
    class Loud(SeededNoise):
        def gaussian(self, scale, *, size):
            return super().gaussian(1000 * scale, size=size)

    attack = noise_attack.noise_attack(GNMax(epsilon=8.0, delta=DELTA, queries=1), noise=Loud(0), runs=400)
    assert (attack.low, attack.high) == (0, np.inf)
