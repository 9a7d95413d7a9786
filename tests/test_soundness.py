"""The mutation check itself must be able to fail."""

import pytest
from soundness import FAILED, PASSED, outcome, own_tests, theorems

DIVERGENCES = "tacit.theory.divergences"
TWO_TESTS = """
from tacit.theory.divergences import gaussian_chi_square, gaussian_total_variation

def test_variation():
    assert gaussian_total_variation(1.0) > 0.3829

def test_chi_square():
    assert gaussian_chi_square(1.0) > 1.7182
"""


@pytest.fixture
def two_tests(tmp_path):
    (tmp_path / "test_two.py").write_text(TWO_TESTS)
    return tmp_path / "test_two.py"


def test_a_mutant_that_no_test_looks_at_survives(two_tests):
    assert outcome(two_tests, DIVERGENCES, "gaussian_delta").code == PASSED


def test_a_mutant_meets_the_tests_that_call_it_first(two_tests):
    unharmed = outcome(two_tests, DIVERGENCES, noted=["gaussian_chi_square", "gaussian_total_variation"])
    assert unharmed.code == PASSED
    order = unharmed.notes.order("gaussian_chi_square")
    assert [test.rpartition("::")[2] for test in order] == ["test_chi_square", "test_variation"]
    died = outcome(two_tests, DIVERGENCES, "gaussian_chi_square", order=order)
    assert died.code == FAILED
    assert "1 failed in" in died.output


def test_a_mutant_dies_even_if_its_killer_comes_last(two_tests):
    died = outcome(two_tests, DIVERGENCES, "gaussian_chi_square")
    assert died.code == FAILED
    assert "1 failed, 1 passed" in died.output


def test_a_mutant_that_its_own_tests_look_at_dies():
    died = outcome(own_tests(DIVERGENCES), DIVERGENCES, "gaussian_chi_square")
    assert died.code == FAILED
    assert "test_chi_square" in died.output


def test_a_module_without_tests_is_no_success():
    assert outcome(own_tests("tacit.theory.nowhere"), "tacit.theory.nowhere").code not in (PASSED, FAILED)


def test_a_process_that_dies_is_no_success(tmp_path):
    (tmp_path / "test_dies.py").write_text("import os\n\ndef test_dies():\n    os._exit(1)\n")
    assert outcome(tmp_path / "test_dies.py", DIVERGENCES, "gaussian_delta").code not in (PASSED, FAILED)


def test_every_theorem_is_found():
    assert "gaussian_delta" in theorems()["tacit.theory.divergences"]
    assert "gaussian_delta" not in theorems()["tacit.theory.estimation"]
