"""Old names go on working for one version, with a warning that points at the caller."""

import pytest

from tacit import Adversary, Attack
from tacit.core.deprecation import renamed


@renamed(delta="failure_probability")
def certify(rows, *, failure_probability=0.05):
    """Certify."""
    return rows, failure_probability


def test_a_function_takes_its_old_keyword_with_a_warning():
    with pytest.warns(DeprecationWarning, match="use failure_probability=") as caught:
        assert certify(3, delta=0.01) == (3, 0.01)
    assert caught[0].filename == __file__
    assert certify(3, failure_probability=0.02) == (3, 0.02)
    assert certify.__doc__ == "Certify."


def test_both_names_at_once_are_refused():
    both = pytest.raises(TypeError, match="both failure_probability and its old name")
    with pytest.warns(DeprecationWarning, match="will be removed"), both:
        certify(3, delta=0.01, failure_probability=0.01)


def test_an_attack_takes_and_shows_its_confidence_as_before():
    fields = {"quantity": "q", "value": 2, "low": 1, "high": 3, "adversary": Adversary.ANY, "method": "m"}
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        attack = Attack(confidence=0.75, **fields)
    assert attack == Attack(failure_probability=0.25, **fields)
    with pytest.warns(DeprecationWarning, match="Attack.confidence will be removed"):
        assert attack.confidence == 0.75
    assert "confidence" not in attack.to_dict()
