"""What notebooks show of results: words that hold, well-formed, and pictures."""

import base64
import re
from html import escape
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from pages import comparison, report
from torch import nn

from tacit import Comparison
from tacit.audit import attempts, audit, certify
from tacit.core.errors import InputError
from tacit.core.wording import safe_text
from tacit.learning import plan
from tacit.learning.study.plan import report as plan_report
from tacit.reconstruction import Gallery, Gaussian, bayes_bound, calibrate, multipoint_bounds, twins, two_point_bounds


def shown(result):
    """The HTML of a result, parsed, and its text."""
    html = result._repr_html_()
    tree = ElementTree.fromstring(re.sub(r"(<img [^>]*)>", r"\1/>", html))  # noqa: S314 — our own
    return tree, " ".join(tree.itertext())


def picture(figure):
    """The picture that a notebook shows, with the words that replace it."""
    tree, _ = shown(figure)
    image = tree.find("img")
    svg = base64.b64decode(image.get("src").partition("base64,")[2]).decode()
    assert "prefers-color-scheme" not in svg  # a notebook has a scheme of its own
    ElementTree.fromstring(svg)  # noqa: S314
    return svg, image.get("alt")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    member = np.arange(4000) % 2 == 1
    return member, np.where(rng.random(4000) < 0.2, member, rng.integers(0, 10, 4000))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.ReLU(), nn.Linear(20, 14)), torch.rand(20, 1, 4, 4)


def test_a_guarantee_says_what_it_rests_on():
    made = comparison()
    _, text = shown(made.guarantee)
    for words in (
        made.guarantee.bound_text,
        made.guarantee.adversary.in_words,
        *made.guarantee.assumed(checked_by="caller"),
    ):
        assert words in text
    _, text = shown(made)
    assert made.nearest.value_text in text
    assert "contradicted no" in text
    assert "none was run" in shown(Comparison(guarantee=made.guarantee))[1]
    assert made.nearest.method in shown(made.nearest)[1]


def test_certificates_audits_and_plans_print_what_is_proven_and_by_what(table):
    certificate = certify(*table, failure_probability=0.05)
    printed = str(certificate)
    assert printed.startswith("What the output tells about whether the secret is ")
    assert f"- advantage (TPR − FPR): {certificate.guarantee.bound_text}\n" in printed
    assert certificate.guarantee.proof_text in printed
    found = audit(*table, failure_probability=0.05)
    assert str(found).startswith(found.verdict)
    assert found.guarantee.proof_text in str(found)
    made = plan(60_000, 1000, epsilon=2.0, delta=1e-5, error=0.05)
    assert f"gnmax: {made.row('gnmax').verdict}" in str(made)


def test_words_of_users_are_no_html(table):
    found = certify(*table, failure_probability=0.05, name='<script>alert("x")</script>')
    tree, text = shown(found)
    assert tree.find(".//script") is None
    assert '<script>alert("x")</script>' in text


def test_a_certificate_and_its_region(table):
    found = certify(*table, failure_probability=0.05, loss="joint", name="the class")
    tried = attempts(*table, certificate=found, learners=["histogram"])
    _, text = shown(found)
    assert f"advantage (TPR − FPR): {found.guarantee.bound_text}" in text
    assert "It is not differential privacy." in text
    alone, words = picture(found.plot())
    assert safe_text(found.advantage, toward="up") in words
    attacked, _ = picture(found.plot(tried))
    assert attacked.count("<path") > alone.count("<path")
    both = audit(
        *table, failure_probability=0.05, loss="joint", name="the class", attacks=tried, require_advantage=0.01
    )
    _, text = shown(both)
    assert both.verdict in text
    assert tried[0].value_text in text
    assert tried[0].value_text in shown(tried[0])[1]


def test_bounds(model):
    features, inputs = model
    unbiased = multipoint_bounds(features, inputs[:3], Gaussian(0.5))
    anyone = two_point_bounds(features, inputs[:3], Gaussian(0.5), box=(0, 1))
    for found, bounds, whom in ((unbiased, unbiased.std, "unbiased estimators only"), (anyone, anyone.rmse, "anyone")):
        _, text = shown(found)
        claimed = float(re.search(r"at least ([\d.]+)", text)[1])
        assert np.mean(bounds >= claimed) >= 0.5  # what the card says holds
        assert whom in text
        picture(found.plot())
    assert "spread of the inputs" in unbiased.plot().svg
    nothing = np.zeros_like(anyone.rmse)
    with pytest.raises(InputError, match="only 0 or inf"):
        type(anyone)(**{**vars(anyone), "rmse": nothing}).plot()


def test_what_remains_and_calibration(model):
    features, inputs = model
    remains = bayes_bound(features, Gallery(inputs), Gaussian(0.5), draws=500)
    assert shown(remains)[1] == shown(remains.guarantee)[1]
    head = nn.Linear(14, 3)
    chosen = calibrate(features, head, inputs, torch.arange(20) % 3, target={"identification": 0.2}, draws=500)
    assert str(chosen.identification) in shown(chosen)[1]
    picture(chosen.plot())


def test_a_plan():
    made = plan(60_000, 1000, epsilon=2.0, delta=1e-5, error=0.05, classes=10)
    _, text = shown(made)
    assert all(row.verdict in text for row in made.rows)
    drawn = plan_report(60_000, 1000, epsilon=2.0, delta=1e-5, error=["0.05"], classes=10).opening[0]
    assert made.plot() == drawn


def test_a_report_stands_in_a_frame_of_its_own():
    made = report(comparison())
    html = made._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert escape(made.to_html()) in html
    assert 'sandbox="allow-scripts allow-downloads"' in html


def test_results_of_many_numbers_print_their_card(model):
    network, images = model
    noise = Gaussian(0.5)
    bounds = multipoint_bounds(network, images[:3], noise)
    assert ": 16 dct modes of 3 inputs\n  half of the modes: at least " in repr(bounds)
    assert "against: anyone" in str(two_point_bounds(network, images[:2], noise))
    hidden = bayes_bound(network, Gallery(images), noise)
    assert hidden.guarantee.bound_text in repr(hidden)
    found = twins(network, images[:4], noise, steps=20)
    worst = max(found.guarantee_of(index).value for index in range(4))
    for text in (repr(found), shown(found)[1]):
        assert f"with probability at most {safe_text(worst, toward='up')}" in text
