"""Noise that is drawn ahead: its law, and that only its key opens it, in its place."""

import base64
import math

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.core.errors import InputError, NoTheoremError
from tacit.learning.mechanisms import Gate, SparseVector
from tacit.service import noise

KEY = bytes(range(32))
GATE = Gate(epsilon=1.0, delta=1e-5, refusals=5)
SPARSE = SparseVector(epsilon=1.0, delta=1e-5, refusals=5)


def within(found, chance, trials, alarm=1e-7):
    """Whether a count lies where it does but for this probability, by Hoeffding's inequality."""
    return abs(found - trials * chance) <= math.sqrt(trials * math.log(2 / alarm) / 2)


@pytest.mark.parametrize("mechanism", [GATE, SPARSE], ids=["gate", "svt"])
def test_coins_fall_as_often_as_they_should(mechanism):
    """False alarms: 3e-7 each."""
    trials = 40_000
    ahead = noise.NoiseAhead(mechanism)
    ahead.add(noise.drawn(mechanism, trials))
    for share in (0.5, 0.1, 0.003):
        heads = 0
        for ahead.at in range(trials):
            heads += ahead.coin(int(share * mechanism.unit), of=mechanism.unit)
        assert within(heads, share, trials)
        assert not within(heads, share + 0.05, trials)


@pytest.mark.parametrize("mechanism", [GATE, SPARSE], ids=["gate", "svt"])
def test_refusals_come_as_often_as_the_mechanism_says(mechanism):
    """At three distances, by sessions that are asked once. False alarms: 3e-7 each."""
    trials = 5_000
    for chance in (0.9, 0.4, 0.05):
        distance = mechanism.place(chance=chance)
        ahead = noise.NoiseAhead(mechanism)
        ahead.add(noise.drawn(mechanism, trials))
        refused = 0
        for ahead.at in range(trials):
            refused += mechanism.session(ahead).answer((2 * distance + 1, 0)) is None
        assert within(refused, mechanism.chance(distance), trials)
        assert abs(mechanism.chance(distance) - chance) < 0.05


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


def test_noise_of_an_earlier_version_is_not_mixed_with_this_one():
    """It drew pairs of Laplace numbers for "svt": a session that went on with other noise, neither would prove."""
    nonce = bytes(12)
    closed = AESGCM(KEY).encrypt(nonce, b"[[3,-5],[0,12]]", b"ledger 3 0")
    with pytest.raises(InputError, match=r"must be whole numbers, one a decision, got .*; serve with the version"):
        noise.opened(base64.b64encode(nonce + closed).decode(), KEY, "ledger 3 0")


def test_noise_that_is_not_drawn_ahead_is_not_served():
    ahead = noise.NoiseAhead(GATE)
    for asked in (
        lambda: ahead.gaussian(1.0, size=2),
        lambda: ahead.laplace(1.0),
        lambda: ahead.coin(1, of=SPARSE.unit),
    ):
        with pytest.raises(NoTheoremError, match="serve gate or svt"):
            asked()


def test_what_is_forgotten_is_gone():
    ahead = noise.NoiseAhead(GATE)
    ahead.add(noise.drawn(GATE, 6))
    ahead.forget(4)
    assert ahead.ahead == 6
    ahead.at = 4
    ahead.coin(1)
    ahead.at = 3
    with pytest.raises(KeyError):
        ahead.coin(1)
