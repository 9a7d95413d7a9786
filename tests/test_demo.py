"""The demo as a newcomer runs it, once, and what its numbers must satisfy."""

import dataclasses
import json
import subprocess
import sys

import pytest

from tacit import Attack, Comparison


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
    from tacit import demo

    release = demo._trained(0)
    quiet = dataclasses.replace(release, sigma=release.sigma / 2)
    generator = demo.np.random.default_rng(3)
    cheat = demo._identification(quiet, 0, generator).attack
    assert isinstance(cheat, Attack)
    assert Comparison(guarantee=comparisons[0].guarantee, attack=cheat).contradicted


def test_another_seed_tells_the_same_story():
    from tacit.demo import demo

    heard = []
    made = demo(seed=7, advance=heard.append)
    assert not made.contradicted
    from tacit import demo as module

    assert len(heard) == module.STEPS
