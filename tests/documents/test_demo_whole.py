"""The demo as a newcomer runs it, once, and what its numbers must satisfy."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from browsing import PHONE, WAYS, assert_accessible, assert_fits, browser, opened
from pages import unfolded_words
from test_demo import shorter

from tacit import Comparison, demo
from tacit.certificate import verify

__all__ = ["browser", "shorter"]  # fixtures


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def run(folder):
    command = [sys.executable, "-m", "tacit", "demo", "--json", "out.json", "--report", "out.html"]
    command += ["--certificate", "certificate.json"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert finished.returncode == 0, finished.stderr
    return finished, json.loads((folder / "out.json").read_text()), (folder / "out.html").read_text()


@pytest.fixture(scope="module")
def comparisons(run):
    return [Comparison.from_dict(item) for item in run[1]["comparisons"]]


def test_all_but_two_points_and_the_medians_can_be_checked_by_others(folder, run):
    """test_shares.py counts these among all pages."""
    found = verify(folder / "certificate.json")
    assert len(found.verdicts) == len(run[1]["comparisons"])
    assert not found.contradicted
    assert sum(verdict == "follows" for verdict, _ in found.verdicts) == 6


def test_it_ends_well_and_says_where_the_report_is(run):
    finished, data, page = run
    assert "out.html" in finished.stderr
    assert "Warning" not in finished.stderr
    assert data["command"] == "demo"
    assert page.count("<article") == len(data["comparisons"]) == 8
    for part in ("Part 1", "Part 2", "Part 3"):
        assert part in page
        assert part in finished.stdout
    for question in ("What is released", "What nobody can learn", "What an attacker got", "What to change"):
        assert page.count(f"<h3>{question}</h3>") == 3
    (seconds,) = re.findall(r"takes about (\d+) seconds\n", finished.stderr)
    assert 30 <= int(seconds) <= 120
    assert unfolded_words(page) <= 900
    assert [card["level"] for card in data["verdicts"]] == ["broken", "fine", "broken"]


def test_no_attack_contradicts_a_guarantee(comparisons):
    """Fresh noise is in two of them: one fails with 0.06, but is far from sharp, the other with 1e-6."""
    assert not any(comparison.contradicted for comparison in comparisons)
    assert sum(comparison.nearest is not None for comparison in comparisons) == 6


def test_attacks_come_close_where_they_can(comparisons):
    naming, rebuilding, unseen, anyone, unbiased, private, forest, student = comparisons
    assert naming.nearest.value > 0.9 * naming.guarantee.value
    assert rebuilding.nearest.value < 0.6  # 1 is knowing nothing
    assert unseen.guarantee.value > 0.8 * unseen.attacks[0].value
    assert unbiased.guarantee.value > 100 * anyone.guarantee.value > 0
    assert private.guarantee.value == demo.classifier.EPSILON
    assert forest.nearest.value > 0.95 * forest.guarantee.value > 0.5
    assert student.guarantee.value < 0.2 < forest.guarantee.value


def test_the_numbers_of_every_picture_are_in_the_json(run):
    detail = run[1]["detail"]
    features, classifier, scores = detail["features"], detail["classifier"], detail["scores"]
    for name in ("accuracy", "identification_upper", "identification_by_attack", "remaining_lower"):
        assert len(features[name]) == len(demo.features.SIZES)
    assert sorted(features["identification_upper"], reverse=True) == features["identification_upper"]
    assert np.shape(features["bounds"]["multi-point"]) == (demo.features.BOUNDED, 1, 8, 8)
    assert features["unseen"]["verdict"] == "not refuted"
    assert features["unseen"]["bound"] < min(features["unseen"]["best_attack"], features["unseen"]["on_data"])
    assert len(classifier["accuracies"]) == len(demo.classifier.EPSILONS)
    assert classifier["answers"] == demo.classifier.QUERIES
    assert len(scores["certificate_by_rows"]) == 8


def test_the_private_classifier_learned_something(run):
    """Ten classes: guessing is right on a tenth. Below 0.4 in fewer than one run of a thousand."""
    assert run[1]["detail"]["classifier"]["accuracy"]["value"] > 0.4


@pytest.mark.parametrize(("width", "scheme", "scripts"), WAYS[::3])
def test_the_page_fits_and_is_accessible(run, browser, folder, width, scheme, scripts):
    """Pages of this kind are looked at in all ways in test_pages.py."""
    assert run
    with opened(browser, folder / "out.html", width=width, scheme=scheme, scripts=scripts) as page:
        assert_fits(page)
    assert_accessible(browser, folder / "out.html", width=width, scheme=scheme, scripts=scripts)


def test_the_slider_of_the_page_shows_other_digits(run, browser, folder):
    assert run
    with opened(browser, folder / "out.html", width=PHONE) as page:
        before = page.locator(".step:visible p").inner_text()
        page.locator(".slider input").focus()
        page.keyboard.press("End")
        after = page.locator(".step:visible p").inner_text()
        assert before != after
        assert after.startswith(f"With noise of {demo.features.SIZES[-1]:g} times the features")
        assert page.locator("tr.current th").text_content() == f"{demo.features.SIZES[-1]:g} × the features"


@pytest.mark.usefixtures("quick_attacks", "shorter")
def test_another_seed_tells_the_same_story():
    heard = []
    made = demo.demo(seed=7, advance=heard.append)
    assert not made.contradicted
    assert len(heard) == len(demo.SECONDS)
