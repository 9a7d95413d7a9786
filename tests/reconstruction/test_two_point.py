"""Bounds for every estimator against estimators that know everything there is to know."""

import numpy as np
import pytest
import torch
from networks import linear
from torch import nn

from tacit import Adversary, InputError
from tacit.reconstruction import (
    Gaussian,
    Laplace,
    Uniform,
    multipoint_bounds,
    single_mode_bounds,
    two_point_bounds,
)

NOISE = Gaussian(0.5)


def test_along_a_line_the_best_two_points_reach_the_known_share_of_the_unbiased_deviation():
    """‖z‖ ∝ ‖ε‖: the greatest (ε²/4)·mmse(d²/4) is 0.692² of σ², at d = 2.456 (worked out by hand, see the notes)."""
    inputs = torch.zeros(1, 1, 1, dtype=torch.float64)
    found = two_point_bounds(linear(2.0), inputs, NOISE, basis="pixel")
    unbiased = 0.5 / 2.0
    assert found.rmse.item() == pytest.approx(0.692 * unbiased, rel=1e-3)
    assert abs(found.change.item()) * 2.0 / 0.5 == pytest.approx(2.456, abs=0.1)


def test_the_best_estimator_of_the_pair_stays_above_the_bound():
    """The posterior mean of a fair coin between the two, sampled; fails by chance with probability under 1e-8."""
    found = two_point_bounds(linear(1.0), torch.zeros(1, 1, 1, dtype=torch.float64), NOISE, basis="pixel")
    change, bound = found.change.item(), found.rmse.item()
    rng = np.random.default_rng(0)
    errors = []
    for truth in (0.0, change):
        x = truth + 0.5 * rng.standard_normal(200_000)
        estimate = change / (1 + np.exp((change**2 / 2 - change * x) / 0.25))
        errors.append((estimate - truth) ** 2)
    worse = max(errors, key=np.mean)
    assert worse.mean() + 6 * worse.std() / np.sqrt(len(worse)) >= bound**2
    assert worse.mean() < 1.02 * bound**2


def test_every_network_has_a_bound(network, images):
    assert np.all(two_point_bounds(network, images, NOISE).rmse > 0.01)


def test_for_a_linear_model_the_bound_is_that_of_the_line(images):
    """One mode at a time sees σ/‖Je_k‖, of which the best two points reach 0.692."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20)).double()
    single = single_mode_bounds(network, images, NOISE, steps=(1e-3,)).std
    np.testing.assert_allclose(two_point_bounds(network, images, NOISE).rmse, 0.692 * single, rtol=2e-3)


def test_changed_inputs_stay_inside_the_box(images):
    seen = []

    def features(x):
        seen.append((float(x.min()), float(x.max())))
        return x.flatten(1) * 3.0

    inputs = images.double()
    seen.clear()
    boxed = two_point_bounds(features, inputs, NOISE, box=(0.0, 1.0))
    checks = 9  # the door tries inputs of its own, raised by a half of their spread
    assert all(low >= 0.0 and high <= 1.0 for low, high in seen[checks:])
    free = two_point_bounds(features, inputs, NOISE)
    assert np.all(boxed.rmse <= free.rmse * (1 + 1e-3))  # the search is not exact
    assert np.all(boxed.rmse > 0)


@pytest.mark.parametrize("noise", [Laplace(0.5), Uniform(2.0)])
def test_other_noise_has_two_point_bounds(noise, images):
    found = two_point_bounds(linear(1.0), images.double(), noise, basis="pixel")
    assert np.all(found.rmse > 0.05)


def test_uniform_noise_has_the_bound_worked_out_by_hand():
    """(ε²/4)(1 − ε/w) is greatest at ε = 2w/3: w²/27."""
    found = two_point_bounds(linear(1.0), torch.zeros(1, 1, 1, dtype=torch.float64), Uniform(2.0), basis="pixel")
    assert 0.99 * 4 / 27 < found.rmse.item() ** 2 <= 4 / 27


@pytest.mark.parametrize("box", [(1.0,), (0.4, 0.6), (float("nan"), 1.0), "unit", (1.0, 0.0)])
def test_boxes_that_are_none_are_refused(box, images):
    with pytest.raises(InputError, match="box"):
        two_point_bounds(linear(1.0), images.double(), NOISE, box=box)


def test_bounds_grow_with_the_unit_of_the_inputs(images):
    """Pixels from 0 to 255 are pixels from 0 to 1 in another unit, for a model that divides by it."""
    torch.manual_seed(0)
    weights = torch.randn(16, 20, dtype=torch.float64)

    def found(bound, size):
        return bound(lambda x: torch.tanh(x.flatten(1) / size @ weights), size * images.double(), NOISE)

    for bound, field in ((two_point_bounds, "rmse"), (multipoint_bounds, "std"), (single_mode_bounds, "std")):
        unit = getattr(found(bound, 1.0), field)
        for size in (1e-9, 255.0, 1e9):
            np.testing.assert_allclose(getattr(found(bound, size), field), size * unit, rtol=1e-3)


def test_guarantees_name_their_adversary(images):
    made = two_point_bounds(linear(1.0), images.double(), NOISE)
    statement = made.guarantee_of(0, (0, 1, 1))
    assert statement.adversary == Adversary.ANY
    assert statement.value == made.rmse[0, 0, 1, 1]
