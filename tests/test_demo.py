"""The demo as a newcomer runs it, once, and what its numbers must satisfy."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from tacit import Attack, Comparison, demo
from tacit.theory.confidence import binomial_lower


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "tacit", "demo", "--json", "out.json", "--report", "out.html"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return finished, json.loads((folder / "out.json").read_text()), (folder / "out.html").read_text()


@pytest.fixture(scope="module")
def comparisons(run):
    return [Comparison.from_dict(item) for item in run[1]["comparisons"]]


def test_it_ends_well_and_says_where_the_report_is(run):
    finished, data, page = run
    assert finished.returncode == 0, finished.stderr
    assert "out.html" in finished.stderr
    assert "Warning" not in finished.stderr
    assert data["command"] == "demo"
    assert page.count("<article") == len(data["comparisons"]) == 5
    assert page.count("data:image/svg+xml") == 2


def test_no_attack_contradicts_a_guarantee(comparisons):
    assert not any(comparison.contradicted for comparison in comparisons)
    assert sum(comparison.attack is not None for comparison in comparisons) == 4


def test_the_best_attacks_come_close_to_the_bounds(comparisons):
    naming, rebuilding, telling, worse, unbiased = comparisons
    assert naming.attack.value > 0.95 * naming.guarantee.value
    assert telling.attack.value > 0.98 * telling.guarantee.value
    assert worse.attack.value < 2 * worse.guarantee.value  # Le Cam loses at most a factor of two
    assert rebuilding.attack.value < rebuilding.guarantee.detail["variance_of_the_gallery"]
    assert unbiased.guarantee.value > 0


def test_an_attacker_who_sees_less_noise_than_promised_is_caught(comparisons):
    """The comparison must be able to fail: half the noise lets the same attack through the bound."""
    release = demo._trained(0)
    quiet = dataclasses.replace(release, sigma=release.sigma / 2)
    cheat = demo._identification(quiet, 0, np.random.default_rng(3)).attack
    assert isinstance(cheat, Attack)
    assert Comparison(guarantee=comparisons[0].guarantee, attack=cheat).contradicted


def low_bit_attack(release, noisy):
    """Names the nearest candidate that the released floats allow: their low bits betray which sums are possible."""
    features = release.features(release.gallery)
    zero = features == 0
    named = []
    for x in noisy:
        remainder = x - features
        grid = np.minimum(np.spacing(features), np.spacing(np.abs(remainder)) / 2)
        finer = (grid > np.spacing(np.abs(x))) & ~zero
        multiples = np.where(finer, x, 0.0) / np.where(finer, grid, 1.0)
        impossible = np.any(multiples != np.round(multiples), axis=1)
        # A feature that is zero releases σ times a float and nothing else.
        z = x / release.sigma
        neighbours = np.stack([np.nextafter(z, -np.inf), z, np.nextafter(z, np.inf)])
        impossible |= (zero & ~np.any(neighbours * release.sigma == x, axis=0)).any(axis=1)
        distances = np.sum(features**2, axis=1) - 2 * features @ x
        named.append(np.argmin(np.where(impossible, np.inf, distances)))
    return np.array(named)


def test_low_bits_name_more_images_than_the_bound_allows_unless_the_release_is_rounded(comparisons):
    """In full precision the attack contradicts the guarantee, which speaks of real numbers; rounded, it does not."""
    release, generator = demo._trained(0), np.random.default_rng(11)
    truth = generator.integers(demo.GALLERY, size=1500)
    features = release.features(release.gallery[truth])
    adversary = comparisons[0].guarantee.adversary

    def comparison(noisy):
        hits = int(np.sum(low_bit_attack(release, noisy) == truth))
        attack = Attack(
            quantity=comparisons[0].guarantee.quantity,
            value=hits / len(truth),
            low=binomial_lower(hits, trials=len(truth), failure_probability=1e-6),
            high=1.0,
            confidence=1 - 1e-6,
            adversary=adversary,
            method="low bits",
        )
        return Comparison(guarantee=comparisons[0].guarantee, attack=attack)

    assert comparison(features + release.sigma * generator.standard_normal(features.shape)).contradicted
    assert not comparison(release.noisy(features, generator)).contradicted


def test_another_seed_tells_the_same_story():
    heard = []
    made = demo.demo(seed=7, advance=heard.append)
    assert not made.contradicted
    assert len(heard) == demo.STEPS
