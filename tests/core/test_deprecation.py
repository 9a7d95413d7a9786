"""Old names go on working for one version, with a warning that points at the caller."""

import pytest

from tacit import Adversary, Attack
from tacit.audit import certify as certify_rows
from tacit.core.deprecation import renamed
from tacit.learning import PrivateClassifier


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


def test_an_estimator_takes_its_old_name_wherever_parameters_are_set():
    with pytest.warns(
        DeprecationWarning, match=r"set_params\(expected=…\) will be removed; use teacher_accuracy="
    ) as one:
        changed = PrivateClassifier().set_params(expected=0.8)
    assert one[0].filename == __file__
    assert changed.get_params()["teacher_accuracy"] == 0.8
    assert "expected" not in changed.get_params()
    with pytest.warns(DeprecationWarning, match="use teacher_accuracy="):
        assert PrivateClassifier(expected=0.8).teacher_accuracy == 0.8
    assert PrivateClassifier().set_params(teacher_accuracy=0.7).teacher_accuracy == 0.7


def test_the_largest_slope_has_one_name():
    secret, output = [0, 1] * 50, [0.1 * (place % 7) for place in range(100)]
    new = certify_rows(secret, output, assume_max_slope=0.5)
    assert new.method == "lipschitz"
    with pytest.warns(DeprecationWarning, match=r"certify\(lipschitz=…\) will be removed; use assume_max_slope="):
        assert certify_rows(secret, output, method="lipschitz", lipschitz=0.5).advantage == new.advantage
