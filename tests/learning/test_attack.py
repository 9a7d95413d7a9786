"""The attack catches mechanisms that are broken and stays below the claims of those that are not.

Noise is seeded, so nothing here fails by chance; with other seeds each right mechanism would be contradicted with
probability at most 1e-6.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from noises import SeededNoise

from tacit import Comparison, InputError
from tacit.learning import ConfidentGNMax, Game, GNMax, SparseVector, StableRelease, distinguishing_attack, games


@dataclass(frozen=True, kw_only=True)
class PrintedDistance(SparseVector):
    """The paper's distance, which one vote moves by 2, with noise for 1."""

    def response(self, counts, session):
        if session.memory is None:
            session.memory = session.noise.laplace(self.scale)
        second, first = sorted(counts.tolist())[-2:]
        if max(0, first - second - 1) + session.noise.laplace(2 * self.scale) > self.threshold + session.memory:
            return int(np.argmax(counts))
        session.memory = None
        return None

    @property
    def undecided(self):
        return self.threshold + 1, 0


@dataclass(frozen=True, kw_only=True)
class OneRefusalMore(SparseVector):
    """`while c ≤ T`, as printed."""

    def finished(self, session):
        return session.refused > self.refusals


@dataclass(frozen=True, kw_only=True)
class FloatNoiseReused(GNMax):
    """The same float noise for all queries of a session."""

    def response(self, counts, session):
        if session.memory is None:
            session.memory = np.array(session.noise.gaussian(self.sigma, size=len(counts))) + 0.25
        return int(np.argmax(counts + session.memory))


@dataclass(frozen=True, kw_only=True)
class OneDrawShared(GNMax):
    """One draw for all counts of a query: the largest stays the largest."""

    def response(self, counts, session):
        return int(np.argmax(counts + session.noise.gaussian(self.sigma, size=1)[0]))


BROKEN = [
    (PrintedDistance(epsilon=2.0, delta=1e-5, refusals=1), 20_000),
    (FloatNoiseReused(epsilon=1.0, delta=1e-5, queries=4), 8_000),
    (OneDrawShared(epsilon=1.0, delta=1e-5, queries=4), 2_000),
]


@pytest.mark.parametrize(("mechanism", "runs"), BROKEN, ids=lambda value: type(value).__name__)
def test_broken_mechanisms_are_caught(mechanism, runs):
    attack = distinguishing_attack(mechanism, runs=runs, failure_probability=1e-6, noise=SeededNoise(0))
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


def threshold_game(mechanism):
    """Three answers that show a low threshold, then a refusal."""
    (game,) = [game for game in games(mechanism, length=4, seed=0) if "+1 and +0" in game.name]
    return game


def test_one_refusal_more_is_caught_and_none_more_is_not():
    broken = OneRefusalMore(epsilon=4.0, delta=1e-5, refusals=1)
    right = SparseVector(epsilon=4.0, delta=1e-5, refusals=1)
    for mechanism, caught in ((broken, True), (right, False)):
        attack = distinguishing_attack(mechanism, runs=30_000, tried=[threshold_game(mechanism)], noise=SeededNoise(0))
        assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted is caught
        assert attack.low > 3  # and of the four that are claimed, most are real


@dataclass(frozen=True, kw_only=True)
class HalfScale(SparseVector):
    """Chances that fall twice as fast as they are charged for."""

    def _refusing(self, distance):
        return super()._refusing(max(0, 2 * distance - self.threshold))


@pytest.mark.parametrize("broken", [OneRefusalMore, HalfScale], ids=lambda broken: broken.__name__)
def test_what_an_open_threshold_does_not_pay_for_is_caught(broken):
    mechanism = broken(epsilon=4.0, delta=1e-5, refusals=2)
    attack = distinguishing_attack(mechanism, runs=1_000, noise=SeededNoise(0))
    assert Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


RIGHT = [
    (SparseVector(epsilon=4.0, delta=1e-5, refusals=1), 3.6),
    (SparseVector(epsilon=4.0, delta=1e-5, refusals=2), 3.8),
    (SparseVector(epsilon=4.0, delta=1e-5, refusals=1, queries=50, variant="faithful"), 0.3),
    (StableRelease(epsilon=1.0, delta=1e-5), 0.9),
    (GNMax(epsilon=1.0, delta=1e-2, queries=4), 0.7),
    (GNMax(epsilon=1.0, delta=1e-2, queries=4, counts=True), 0.9),
    (ConfidentGNMax(epsilon=1.0, delta=1e-2, queries=4, answers=4, threshold=60), 0.7),
]


@pytest.mark.parametrize(("mechanism", "at_least"), RIGHT, ids=lambda value: type(value).__name__)
def test_right_mechanisms_keep_their_claims_and_the_attack_comes_near(mechanism, at_least):
    attack = distinguishing_attack(mechanism, runs=8_000, failure_probability=1e-6, noise=SeededNoise(0))
    assert at_least <= attack.low <= mechanism.epsilon
    assert not Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


def test_the_attack_runs_on_the_noise_that_is_released_with():
    mechanism = StableRelease(epsilon=1.0, delta=1e-5)
    attack = distinguishing_attack(mechanism, runs=2_000, failure_probability=1e-9)
    assert attack.value > 0
    assert attack.low <= 1.0


def test_games_move_one_vote_a_query():
    for game in games(SparseVector(epsilon=1.0, delta=1e-5, refusals=1), length=3, seed=1):
        moved = np.array(game.right) - np.array(game.left)
        assert np.abs(moved).max() <= 1
        assert np.abs(moved).sum(axis=1).max() <= 2


@pytest.mark.parametrize("right", [[(3, 1)], [(1, 3)], [(0, 0)], [(2, 2), (2, 2)]])
def test_games_of_two_votes_are_refused(right):
    with pytest.raises(InputError, match="must"):
        Game(name="two votes", left=[(1, 1)], right=right)
    with pytest.raises(InputError, match="must hold at least one game"):
        distinguishing_attack(GNMax(epsilon=1.0, delta=1e-2, queries=4), tried=[])


def test_two_classes_are_attacked_with_two():
    mechanism = GNMax(epsilon=1.0, delta=1e-5, queries=4, classes=2)
    attack = distinguishing_attack(mechanism, runs=2_000, noise=SeededNoise(0))
    assert 0.8 < attack.low <= mechanism.epsilon


def test_a_threshold_of_no_votes_leaves_somebody_to_move_one():
    mechanism = ConfidentGNMax(epsilon=6.0, delta=0.3, queries=1, answers=1, threshold=0)
    assert all(
        sum(row) > 0 for seed in range(20) for game in games(mechanism, length=4, seed=seed) for row in game.left
    )
