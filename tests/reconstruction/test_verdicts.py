"""Cards are no greener than what is proven and what attacks did."""

import numpy as np
import pytest
from torch import nn

from tacit import Attack, Comparison, Guarantee
from tacit.core.guarantee import Adversary
from tacit.reconstruction import Gaussian, Mixture, bound, posterior_bound
from tacit.reconstruction.study.verdicts import naming_verdict, rare_naming, rebuilding_verdict
from tacit.report.wording import percent_down, percent_up


def guarantee(value, side="at_least", **detail):
    return Guarantee(
        quantity="share that stays hidden",
        side=side,
        value=value,
        adversary=Adversary.PRIOR.scoped("test"),
        theorem="none: a test",
        assumptions=(),
        detail=detail,
    )


def attack(value, width=0.01):
    return Attack(
        quantity="share that stays hidden",
        value=value,
        low=max(0.0, value - width),
        high=value + width,
        failure_probability=0.001,
        adversary=Adversary.PRIOR.scoped("test"),
        method="a test",
    )


@pytest.mark.parametrize(
    ("proven", "left", "judged", "level", "said"),
    [
        (0.6, 0.7, {}, "fine", "every input"),
        (0.6, 0.7, {"prior": "not refuted"}, "fine", "which is no proof"),
        (0.6, 0.7, {"prior": "not checked"}, "weak", "too few inputs"),
        (0.6, 0.7, {"prior": "in doubt"}, "weak", "in doubt"),
        (0.6, 0.5, {"prior": "refuted", "contradicted": True}, "broken", "refuted"),
        (0.6, 0.5, {"contradicted": True}, "broken", "an assumption does not hold"),
        (0.6, 0.5, {"prior": "not refuted", "contradicted": True}, "broken", "an assumption does not hold"),
        (0.6, 0.7, {"prior": "not refuted", "hurried": True}, "weak", "no time for the strongest attack"),
        (0.4, 0.7, {"prior": "not refuted"}, "weak", "Less than half"),
        (0.01, 0.02, {"prior": "not refuted"}, "broken", "almost exactly"),
    ],
)
def test_rebuilding_is_fine_only_if_nothing_speaks_against_it(proven, left, judged, level, said):
    found = rebuilding_verdict(guarantee(proven), attack(left), **judged)
    assert (found.level, said in found.reason) == (level, True)


def test_naming_one_of_two_is_not_fine_because_guessing_is_good_at_it():
    assert [rare_naming(guessing) for guessing in (0.001, 0.1, 0.5)] == [0.1, 0.2, 0.5]
    found = naming_verdict(Comparison(guarantee=guarantee(0.89, "at_most", guessing=0.5), attacks=(attack(0.8),)))
    assert found.level == "broken"


def test_percent_are_safe_and_no_further_off_than_need_be():
    assert (percent_up(0.07), percent_down(0.57), percent_up(0.0701)) == ("7 %", "57 %", "7.1 %")
    for share in np.random.default_rng(0).random(1000):
        assert float(percent_down(share)[:-2]) <= 100 * share <= float(percent_up(share)[:-2])


def test_as_many_steps_as_the_clock_chose_give_the_same_numbers():
    model, prior = nn.Linear(6, 4), Mixture.fitted(np.random.default_rng(0).normal(size=(200, 6)))
    timed = posterior_bound(model, prior, Gaussian(1.0), seconds=0.2, inputs=50)
    again = posterior_bound(model, prior, Gaussian(1.0), steps=timed.steps, inputs=50)
    assert (timed.remaining, timed.curve, timed.accepted) == (again.remaining, again.curve, again.accepted)


@pytest.mark.usefixtures("quick_attacks")
def test_advice_is_no_greener_than_the_cards():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40, 1, 4, 4))
    options = {"method": "identify,bayes", "public": inputs, "steps": 2, "progress": False}
    found = bound(nn.Flatten(), inputs, "gaussian:0.05", **options)
    assert "broken" in {card.level for card in found.verdicts}
    assert not any("less noise" in change.what for change in found.changes)
