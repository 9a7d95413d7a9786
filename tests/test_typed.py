"""What a user's type checker sees of the results that people compute with: mypy reads this file, and it runs."""

from importlib.resources import files
from typing import assert_type

import numpy as np
import torch
from numpy.typing import NDArray

from tacit import Attack, Comparison, Guarantee
from tacit.audit import Audit, Certificate, ImpliedByDP, PrivacyCurve, Tally, audit, certify, privacy_curve
from tacit.learning import Plan, plan
from tacit.reconstruction import Gaussian, identification_bound, nearest_candidate
from tacit.report import Figure
from tacit.theory.divergences import gaussian_delta

member = np.arange(2000) % 2 == 1
seen = np.random.default_rng(0).integers(0, 3, 2000)


def test_types_are_part_of_the_package() -> None:
    assert files("tacit").joinpath("py.typed").is_file()


def test_numbers_of_a_certificate() -> None:
    found = assert_type(certify(member, seen, failure_probability=0.05), Certificate)
    assert isinstance(assert_type(found.advantage, float), float)
    assert isinstance(assert_type(found.guarantee, Guarantee), Guarantee)
    assert isinstance(assert_type(found.plot(), Figure), Figure)
    verdict = assert_type(audit(member, seen, failure_probability=0.05), Audit)
    assert isinstance(assert_type(verdict.high, float), float)


def test_one_rate_gives_a_number_and_several_an_array() -> None:
    certificate = certify(member, seen, failure_probability=0.05)
    curve = assert_type(privacy_curve(Tally().add(member, seen), failure_probability=0.05), PrivacyCurve)
    private = ImpliedByDP(epsilon=1.0, delta=1e-5)
    numbers = (
        assert_type(certificate.tpr_at(0.01), float),
        assert_type(certificate.hockey_stick(1), float),
        assert_type(curve.hockey_stick(1.0), float),
        assert_type(private.tpr_at(0.01), float),
    )
    arrays = (
        assert_type(certificate.tpr_at([0.01, 0.1]), NDArray[np.float64]),
        assert_type(certificate.hockey_stick((0.5, 1.0)), NDArray[np.float64]),
        assert_type(curve.hockey_stick(np.array([1.0, 2.0])), NDArray[np.float64]),
        assert_type(private.tpr_at([0.01, 0.1]), NDArray[np.float64]),
    )
    assert all(isinstance(number, float) for number in numbers)
    assert all(isinstance(array, np.ndarray) and array.shape == (2,) for array in arrays)


def test_bounds_and_attacks_of_a_model() -> None:
    inputs, noise = torch.eye(4), Gaussian(0.5)
    named = assert_type(identification_bound(torch.nn.Identity(), inputs, noise), Guarantee)
    attack = assert_type(nearest_candidate(torch.nn.Identity(), inputs, noise, named), Attack)
    both = Comparison(guarantee=named, attacks=[attack])
    assert isinstance(assert_type(both.contradicted, bool), bool)


def test_plans_and_theorems() -> None:
    wanted = plan(records=6000, queries=10, epsilon=2.0, delta=1e-5, error=0.1)
    assert isinstance(assert_type(wanted, Plan), Plan)
    assert isinstance(assert_type(gaussian_delta(1.0, distance=0.5), float), float)
