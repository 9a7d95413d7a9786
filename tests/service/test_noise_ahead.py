"""Noise that is drawn ahead: its law, and that only its key opens it, in its place."""

import collections
import math

import pytest

from tacit.core.errors import InputError, NoTheoremError
from tacit.learning.mechanisms import Gate, SparseVector
from tacit.service import noise
from tacit.theory.gate import ONE

KEY = bytes(range(32))
GATE = Gate(epsilon=1.0, delta=1e-5, refusals=5)
SPARSE = SparseVector(epsilon=1.0, delta=1e-5, refusals=5)


def within(found, chance, trials, alarm=1e-7):
    """Whether a count lies where it does but for this probability, by Hoeffding's inequality."""
    return abs(found - trials * chance) <= math.sqrt(trials * math.log(2 / alarm) / 2)


def test_coins_of_a_gate_fall_as_often_as_they_should():
    """False alarms: 3e-7."""
    trials = 40_000
    ahead = noise.NoiseAhead(GATE)
    ahead.add(noise.drawn(GATE, trials))
    for share in (0.5, 0.1, 0.003):
        heads = 0
        for ahead.at in range(trials):
            heads += ahead.coin(int(share * ONE))
        assert within(heads, share, trials)


def test_laplace_noise_has_the_scales_of_distance_and_threshold():
    """P(|x| ≤ r) = 1 − 2a^(r+1)/(1+a), a = exp(−1/scale). False alarms: 12e-7."""
    trials = 20_000
    ahead = noise.NoiseAhead(SPARSE)
    ahead.add(noise.drawn(SPARSE, trials))
    for scale in (SPARSE.scale, 2 * SPARSE.scale):
        sizes = collections.Counter()
        for ahead.at in range(trials):
            sizes[abs(ahead.laplace(scale))] += 1
        a = math.exp(-1 / scale)
        for radius in (0, int(scale), int(3 * scale)):
            chance = 1 - 2 * a ** (radius + 1) / (1 + a)
            assert within(sum(sizes[size] for size in range(radius + 1)), chance, trials)
            assert not within(sum(sizes[size] for size in range(radius + 1)), chance + 0.05, trials)


def test_only_the_key_opens_noise_and_only_in_its_place():
    draws = noise.drawn(SPARSE, 4)
    text = noise.sealed(draws, KEY, "ledger 3 512")
    assert noise.opened(text, KEY, "ledger 3 512") == draws
    assert text != noise.sealed(draws, KEY, "ledger 3 512")
    for key, place, content in (
        (bytes(32), "ledger 3 512", text),
        (KEY, "ledger 3 516", text),
        (KEY, "ledger 3 512", text[:-4] + "AAA="),
        (KEY, "ledger 3 512", "no base64!"),
    ):
        with pytest.raises(InputError, match="must be as the service wrote it"):
            noise.opened(content, key, place)


def test_no_gaussian_noise_is_served():
    with pytest.raises(NoTheoremError, match="serve gate or svt"):
        noise.NoiseAhead(GATE).gaussian(1.0, size=2)


def test_what_is_forgotten_is_gone_but_for_the_threshold_in_force():
    ahead = noise.NoiseAhead(SPARSE)
    draws = noise.drawn(SPARSE, 6)
    ahead.add(draws)
    ahead.forget(4, but=1)
    assert ahead.threshold(1) == draws[1][1]
    assert ahead.ahead == 6
    with pytest.raises(KeyError):
        ahead.threshold(0)
