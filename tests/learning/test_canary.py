"""The attack on votes with a quota comes near the claim, and catches voters and noise that break it.

Noise is seeded, so nothing here fails by chance; with other seeds the right mechanism would be contradicted with
probability at most 1e-6.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from noises import SeededNoise

from tacit import Comparison, NoTheoremError
from tacit.learning import VoteQuota, canary, distinguishing_attack
from tacit.learning.mechanisms.gnmax import noisy
from tacit.learning.nearby import NearbyVoters

RIGHT = [
    VoteQuota(epsilon=0.25, delta=1e-5, quota=3, rank=10),
    VoteQuota(epsilon=1.0, delta=1e-5, quota=1, rank=1),
    VoteQuota(epsilon=1.0, delta=1e-5, quota=6, rank=4, changed=2),
    VoteQuota(epsilon=4.0, delta=1e-5, quota=2, rank=2),
]


def attacked(mechanism):
    attack = distinguishing_attack(mechanism, runs=5_000, failure_probability=1e-6, noise=SeededNoise(0))
    return attack, Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize("mechanism", RIGHT, ids=lambda value: f"{value.epsilon:g}-{value.quota}")
def test_the_canary_shows_nearly_all_that_is_claimed_and_no_more(mechanism):
    attack, contradicted = attacked(mechanism)
    assert 0.9 * mechanism.epsilon <= attack.low <= mechanism.epsilon
    assert not contradicted


def test_labels_are_attacked_with_the_same_canary():
    attack, contradicted = attacked(VoteQuota(epsilon=4.0, delta=1e-5, quota=2, rank=2, counts=False))
    assert 0.2 < attack.low <= 4
    assert not contradicted
    assert "canary" in attack.method


class OneVoteMore(NearbyVoters):
    """Retires one query late."""

    def __init__(self, public, *, rank, quota, classes):
        super().__init__(public, rank=rank, quota=quota + 1, classes=classes)


class RecordsForThemselves(NearbyVoters):
    """A person's records share no quota, and all vote on the same query."""

    def fit(self, features, numbers, *, people, key, folder=None):  # noqa: ARG002
        return super().fit(features, numbers, people=None, key=key, folder=folder)


@pytest.mark.parametrize("broken", [OneVoteMore, RecordsForThemselves])
def test_voters_that_exceed_a_quota_are_caught(monkeypatch, broken):
    monkeypatch.setattr(canary, "NearbyVoters", broken)
    for quota in (1, 4):
        assert attacked(VoteQuota(epsilon=1.0, delta=1e-5, quota=quota, rank=3))[1]


@dataclass(frozen=True, kw_only=True)
class HalfTheNoise(VoteQuota):
    """Draws half of what it states."""

    def response(self, counts, session):
        return noisy(counts, self.sigma / 2, session.noise, whole=True)


@dataclass(frozen=True, kw_only=True)
class QuotaOfOne(VoteQuota):
    """Draws the noise of a single vote, whatever the quota is."""

    def response(self, counts, session):
        return noisy(counts, self.sigma / np.sqrt(self.quota), session.noise, whole=True)


@pytest.mark.parametrize("broken", [HalfTheNoise, QuotaOfOne])
def test_too_little_noise_is_caught(broken):
    assert attacked(broken(epsilon=1.0, delta=1e-5, quota=3, rank=3))[1]


@dataclass(frozen=True, kw_only=True)
class StatesHalfTheNoise(VoteQuota):
    """Has no theorem."""

    @property
    def sigma(self):
        return VoteQuota(epsilon=self.epsilon, delta=self.delta, quota=self.quota, rank=self.rank).sigma / 2


def test_a_noise_that_is_stated_too_low_has_no_guarantee():
    with pytest.raises(NoTheoremError, match="the constants of StatesHalfTheNoise must give a δ of at most"):
        StatesHalfTheNoise(epsilon=1.0, delta=1e-5, quota=3, rank=3).guarantee  # noqa: B018


def test_a_session_that_is_not_understood_counts_for_nothing():
    @dataclass(frozen=True, kw_only=True)
    class Rounded(VoteQuota):
        def response(self, counts, session):
            return tuple(10 * round(count / 10) for count in super().response(counts, session))

    attack, contradicted = attacked(Rounded(epsilon=1.0, delta=1e-5, quota=2, rank=3))
    assert attack.low == 0
    assert not contradicted
