"""The demo told shorter, and what its first release must satisfy. `make shown` runs it as a newcomer does."""

import json

import numpy as np
import pytest
import torch

from tacit import Attack, Comparison, demo, reconstruction
from tacit.certificate import verify
from tacit.theory.confidence import binomial_lower


@pytest.fixture
def shorter(monkeypatch):
    """The story from fewer images, games, rows and sizes of noise."""
    monkeypatch.setattr(demo.features, "CANDIDATES", 150)
    monkeypatch.setattr(demo.features, "SIZES", (0.25, 1.0, 4.0))
    monkeypatch.setattr(demo.features, "BOUNDED", demo.features.SHOWN)
    monkeypatch.setattr(demo.features, "STEPS", 2)
    monkeypatch.setattr(demo.classifier, "EPSILONS", (0.5, 2.0))
    monkeypatch.setattr(demo.classifier, "GAMES", 100)
    monkeypatch.setattr(demo.scores, "ROWS", 2000)


@pytest.fixture(scope="module")
def release():
    """The demo's features of 500 private digits, with noise of their own size, and what is proven about naming them."""
    digits = demo.digits.drawn(0)
    layer, _ = demo.features.trained_network(digits, 0)
    candidates = torch.tensor(digits.private[0][: demo.features.CANDIDATES])
    with torch.no_grad():
        features = layer(candidates).numpy()
    noise = reconstruction.Gaussian(float(np.sqrt(np.mean(features**2))))
    return layer, candidates, features, noise, reconstruction.identification_bound(layer, candidates, noise)


def test_an_attacker_who_sees_less_noise_than_promised_is_caught(release):
    """The comparison must be able to fail: half the noise lets the same attack through the bound."""
    layer, candidates, _, noise, guarantee = release
    honest, cheat = (
        reconstruction.nearest_candidate(layer, candidates, reconstruction.Gaussian(sigma), guarantee)
        for sigma in (noise.sigma, noise.sigma / 2)
    )
    assert not Comparison(guarantee=guarantee, attacks=[honest]).contradicted
    assert Comparison(guarantee=guarantee, attacks=[cheat]).contradicted


def low_bit_attack(features, sigma, noisy):
    """Names the nearest candidate that the released floats allow: their low bits betray which sums are possible."""
    zero = features == 0
    named = []
    for x in noisy:
        remainder = x - features
        grid = np.minimum(np.spacing(features), np.spacing(np.abs(remainder)) / 2)
        finer = (grid > np.spacing(np.abs(x))) & ~zero
        multiples = np.where(finer, x, 0.0) / np.where(finer, grid, 1.0)
        impossible = np.any(multiples != np.round(multiples), axis=1)
        # A feature that is zero releases σ times a float and nothing else.
        z = x / sigma
        neighbours = np.stack([np.nextafter(z, -np.inf), z, np.nextafter(z, np.inf)])
        impossible |= (zero & ~np.any(neighbours * sigma == x, axis=0)).any(axis=1)
        distances = np.sum(features**2, axis=1) - 2 * features @ x
        named.append(np.argmin(np.where(impossible, np.inf, distances)))
    return np.array(named)


def test_low_bits_name_more_images_than_the_bound_allows_unless_the_release_is_rounded(release):
    """In full precision the attack contradicts the guarantee, which speaks of real numbers; rounded, it does not."""
    layer, candidates, features, noise, guarantee = release
    generator = np.random.default_rng(11)
    truth = generator.integers(demo.features.CANDIDATES, size=1500)

    def comparison(noisy):
        hits = int(np.sum(low_bit_attack(features, noise.sigma, noisy) == truth))
        attack = Attack(
            quantity=guarantee.quantity,
            value=hits / len(truth),
            low=binomial_lower(hits, trials=len(truth), failure_probability=1e-6),
            high=1.0,
            failure_probability=1e-6,
            adversary=guarantee.adversary,
            method="low bits",
        )
        return Comparison(guarantee=guarantee, attacks=[attack])

    assert comparison(features[truth] + noise.sigma * generator.standard_normal((len(truth), 64))).contradicted
    with torch.no_grad():
        released = reconstruction.Dithered(layer, noise, releases=len(truth))(candidates[truth]).numpy()
    assert not comparison(released).contradicted


@pytest.mark.usefixtures("quick_attacks", "shorter")
def test_the_command_tells_the_story(tmp_path, here):
    """Told shorter. One guarantee fails with 0.06, but is far from sharp, the other with 1e-6."""
    finished = here(tmp_path, "demo", "--json", "a.json", "--report", "a.html", "--certificate", "c.json")
    assert finished.returncode == 0, finished.stderr
    comparisons = [Comparison.from_dict(item) for item in json.loads((tmp_path / "a.json").read_text())["comparisons"]]
    assert not any(comparison.contradicted for comparison in comparisons)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("<article") == len(comparisons) == 8
    for part in ("Part 1", "Part 2", "Part 3"):
        assert part in page
        assert part in finished.stdout
    found = verify(tmp_path / "c.json")
    assert len(found.verdicts) == 8
    assert not found.contradicted
