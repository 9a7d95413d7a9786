"""The mutation check itself must be able to fail."""

from soundness import FAILED, PASSED, TESTS, outcome, own_tests, theorems


def test_a_mutant_that_no_test_looks_at_survives():
    other = TESTS / "theory" / "test_divergences.py"
    assert outcome(other, "tacit.theory.confidence", "binomial_lower")[0] == PASSED


def test_a_mutant_that_its_own_tests_look_at_dies():
    code, output = outcome(own_tests("tacit.theory.divergences"), "tacit.theory.divergences", "gaussian_chi_square")
    assert code == FAILED
    assert "test_chi_square" in output


def test_a_module_without_tests_is_no_success():
    assert outcome(own_tests("tacit.theory.nowhere"), "tacit.theory.nowhere")[0] not in (PASSED, FAILED)


def test_every_theorem_is_found():
    assert "gaussian_delta" in theorems()["tacit.theory.divergences"]
    assert "gaussian_delta" not in theorems()["tacit.theory.estimation"]
