"""Bounds on unbiased estimators against what is known exactly, and against each other."""

import copy
import itertools
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

from tacit import Adversary, InputError, NoTheoremError
from tacit.reconstruction import (
    Gaussian,
    Laplace,
    Uniform,
    hcr_bounds,
    local_limit,
    multipoint_bounds,
    perturbation,
    single_mode_bounds,
    two_point_bounds,
)
from tacit.reconstruction.release import open_release, plain_attention
from tacit.theory.multipoint import multipoint_variance

NOISE = Gaussian(0.5)


def jacobian(network, image):
    double = copy.deepcopy(network).double()
    with plain_attention():
        found = torch.func.jacrev(lambda x: double(x[None].clone())[0])(image.double())
    return found.reshape(found.shape[0], -1).detach().numpy()


def cosine_modes(size):
    from scipy.fft import dct

    one = dct(np.eye(size), norm="ortho", axis=0)
    return np.kron(one, one)


def test_a_full_rank_linear_model_has_the_analytic_answer(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20)).double()
    images = images.double()
    for basis, modes in (("pixel", np.eye(16)), ("dct", cosine_modes(4))):
        j = jacobian(network, images[0]) @ modes.T
        truth = 0.5 * np.sqrt(np.diag(np.linalg.inv(j.T @ j)))
        found = multipoint_bounds(network, images[:1], NOISE, basis=basis).std.ravel()
        assert np.all(found <= truth * (1 + 1e-9))
        assert np.all(found > 0.999 * truth)
        limit = local_limit(network, images[:1], NOISE, basis=basis)
        np.testing.assert_allclose(limit.identifiable_std.ravel(), truth, rtol=1e-9)
        assert limit.rank.tolist() == [16]
        assert np.abs(limit.null_energy).max() < 1e-12


def test_one_mode_at_a_time_sees_that_mode_alone(images):
    """Of a linear model: σ/‖Je_k‖, reached by small steps and exceeded by none."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    truth = 0.5 / np.linalg.norm(jacobian(network, images[0]), axis=0)
    found = single_mode_bounds(network, images[:1], NOISE, basis="pixel").std.ravel()
    assert np.all(found <= truth * (1 + 1e-9))
    assert np.all(found > 0.999 * truth)


def test_with_one_entry_the_published_procedure_finds_the_limit():
    """Of a linear model of one number there is one direction to search: σ/‖J‖."""
    torch.manual_seed(0)
    network = nn.Linear(1, 5)
    truth = 0.5 / float(network.weight.detach().double().norm())
    found = hcr_bounds(network, torch.rand(2, 1), NOISE, basis="pixel", restarts=2, repetitions=2).std
    assert np.all(found <= truth * (1 + 1e-9))
    assert np.all(found > 0.999 * truth)


def test_least_squares_meets_the_bound_from_above(images):
    """The unbiased estimator of a linear model; its sampled deviations lie above the bound less six standard errors."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    j = jacobian(network, images[0])
    noise = 0.5 * np.random.default_rng(0).standard_normal((100_000, 20))
    achieved = (noise @ np.linalg.pinv(j).T).std(axis=0)
    found = multipoint_bounds(network, images[:1], NOISE, basis="pixel").std.ravel()
    assert np.all(achieved > found * (1 - 6 / np.sqrt(200_000)))
    assert np.all(achieved < found * 1.02)


@pytest.mark.parametrize("rank", [1, 5, 15])
def test_the_local_limit_is_exact_for_linear_models_of_any_rank(rank, images):
    rng = np.random.default_rng(rank)
    matrix = rng.normal(size=(20, rank)) @ rng.normal(size=(rank, 16))
    limit = local_limit(lambda x: x.reshape(len(x), -1) @ torch.tensor(matrix).T, images.double(), NOISE, basis="pixel")
    pseudo = np.linalg.pinv(matrix, rcond=1e-10)
    np.testing.assert_allclose(limit.identifiable_std[0].ravel(), 0.5 * np.sqrt(np.diag(pseudo @ pseudo.T)), rtol=1e-8)
    np.testing.assert_allclose(limit.null_energy[0].ravel(), 1 - np.diag(pseudo @ matrix), atol=1e-9)
    assert limit.rank.tolist() == [rank] * 3


def test_multipoint_is_no_less_than_the_others_on_every_mode_of_every_net(network, images):
    released = {"feature_error": 1e-13}  # in float32 a single large step may lose less than many small ones
    multi = multipoint_bounds(network, images, NOISE, steps=(1e-3, 1e-4), **released).std
    single = single_mode_bounds(network, images, NOISE, steps=(1e-3, 1e-4), **released).std
    published = hcr_bounds(network, images, NOISE, restarts=4, repetitions=2, **released).std
    assert np.all(multi >= single * (1 - 1e-3))
    assert np.all(multi >= published * (1 - 1e-3))
    assert np.all(published > 0)


def test_steps_both_ways_see_less_of_the_curvature_and_the_better_side_of_a_kink():
    """Curved features: steps one way alone see the bend. Zero at a kink: one side moves nothing at all."""
    torch.manual_seed(0)
    weights = torch.randn(16, 12, dtype=torch.float64)
    inputs = torch.rand(2, 16, dtype=torch.float64)

    def curved(x):
        return torch.sin(2 * x @ weights)

    both = multipoint_bounds(curved, inputs, NOISE, basis="pixel", steps=(0.05,)).std
    release = open_release(curved, inputs)
    moved = release.features((inputs[:, None] + 0.05 * torch.eye(16, dtype=torch.float64)).reshape(-1, 16))
    shifts = moved.reshape(2, 16, -1) - release.features(inputs)[:, None]
    one_way = multipoint_variance(
        shifts / 0.5,
        step=torch.full((2,), 0.05, dtype=torch.float64),
        feature_error=torch.full((2,), 1e-12, dtype=torch.float64),
        input_error=torch.full((2,), 1e-15, dtype=torch.float64),
        regularisation=1e-8,
    ).sqrt()
    assert np.median(both / one_way.numpy()) > 2
    still = multipoint_bounds(torch.relu, torch.zeros(1, 3, dtype=torch.float64), NOISE, basis="pixel").std
    assert np.all(still > 1e9)  # backwards nothing moves, and forwards alone would say 0.5


def test_bounds_of_an_input_do_not_depend_on_its_neighbours(network, images):
    together = multipoint_bounds(network, images, NOISE).std
    alone = np.concatenate([multipoint_bounds(network, image[None], NOISE).std for image in images])
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_not_even_by_rounding_where_that_alone_limits_them():
    """Fewer features than pixels: rounding, amplified by 1e8, is all that keeps bounds finite."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 40), nn.ReLU()).double()
    images = torch.randn(5, 1, 8, 8, dtype=torch.float64)
    together = multipoint_bounds(network, images, NOISE).std
    assert np.median(together) > 1e3
    alone = np.concatenate([multipoint_bounds(network, image[None], NOISE).std for image in images])
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_blocks_of_modes_are_valid_and_less_tight():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(400, 420))
    inputs = torch.rand(1, 1, 20, 20)
    whole = multipoint_bounds(network, inputs, NOISE).std
    parts = multipoint_bounds(network, inputs, NOISE, memory=4e6).std
    assert np.all(parts <= whole * (1 + 1e-9))
    assert np.all(parts > 0)
    assert parts.max() < whole.max()


@pytest.fixture
def clock(monkeypatch):
    """Every look at the clock takes a second: one at the start, then one for every block after the first pass."""
    ticks = itertools.count()
    monkeypatch.setattr("tacit.reconstruction.unbiased.monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_more_time_gives_larger_bounds_and_never_too_large_ones():
    """Of 400 modes, 100 fit: a pass of 64s, a pass of 100s (4 blocks), then random hundreds."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(400, 420))
    inputs = torch.rand(1, 1, 20, 20)
    j = jacobian(network, inputs[0]) @ cosine_modes(20).T
    truth = 0.5 * np.sqrt(np.diag(np.linalg.inv(j.T @ j))).reshape(1, 1, 20, 20)
    untimed = multipoint_bounds(network, inputs, NOISE, memory=5e6).std
    found = [multipoint_bounds(network, inputs, NOISE, memory=5e6, seconds=time).std for time in (0.5, 2.5, 5.5, 30)]
    for less, more in itertools.pairwise(found):
        assert np.all(more >= less)
        assert np.mean(more > less) > 0.2
    assert np.all(found[0] > 0)
    assert np.mean(found[0] < untimed) > 0.9
    assert np.all(found[2] >= untimed)
    assert np.all(found[-1] <= truth * (1 + 1e-9))
    assert np.median(found[-1] / found[0]) > 1.02


@pytest.mark.usefixtures("clock")
def test_time_is_not_spent_once_all_modes_have_been_in_one_block():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(100, 110))
    inputs = torch.rand(3, 1, 10, 10)
    heard = []
    found = multipoint_bounds(network, inputs, NOISE, seconds=1e9, advance=heard.append).std
    np.testing.assert_allclose(found, multipoint_bounds(network, inputs, NOISE).std, rtol=1e-9)
    assert heard == [3]
    with pytest.raises(InputError, match="seconds must be a finite number > 0"):
        multipoint_bounds(network, inputs, NOISE, seconds=0)


def test_at_a_pooling_tie_the_local_limit_is_too_low_and_the_certified_bound_is_right():
    """(max(x, y), x + y) at x = y: exchanging the two releases the same, so no unbiased estimate of x exists.

    The derivative of the maximum follows one of the two and claims that both can be estimated.
    """

    def features(x):
        pair = x.reshape(len(x), 1, 1, 2)
        return torch.cat([nn.functional.max_pool2d(pair, (1, 2)).flatten(1), x.sum(dim=1, keepdim=True)], dim=1)

    tie = torch.full((1, 2), 0.5, dtype=torch.float64)
    limit = local_limit(features, tie, NOISE, basis="pixel")
    assert limit.rank.tolist() == [2]
    assert np.allclose(np.sort(limit.identifiable_std.ravel()), [0.5, 0.5 * np.sqrt(2)])
    assert np.all(multipoint_bounds(features, tie, NOISE, basis="pixel").std > 1e6)


def test_at_a_zero_of_relu_the_local_limit_sees_nothing_and_the_certified_bound_is_right():
    """(relu(x), relu(−x), y) at x = 0: the first less the second is an unbiased estimate of x, of deviation σ√2."""

    def features(x):
        return torch.cat([x[:, :1].relu(), (-x[:, :1]).relu(), x[:, 1:]], dim=1)

    point = torch.tensor([[0.0, 0.3]], dtype=torch.float64)
    limit = local_limit(features, point, NOISE, basis="pixel")
    assert limit.null_energy.ravel().tolist() == [1, 0]  # "no unbiased estimator exists": wrong
    certified = multipoint_bounds(features, point, NOISE, basis="pixel", steps=(1e-3, 0.1)).std.ravel()
    assert 0.49 < certified[0] <= 0.5 * np.sqrt(2)
    assert 0.49 < certified[1] <= 0.5


def test_the_quotient_is_below_the_true_variance_of_an_unbiased_estimator_at_a_kink():
    """Features (|θ|, θ) at θ = 0: the second alone is unbiased, so no bound may exceed its deviation σ."""
    point = torch.zeros(1, 1, dtype=torch.float64)

    def features(x):
        return torch.cat([x.abs(), x], dim=1)

    found = multipoint_bounds(features, point, NOISE, basis="pixel", steps=(1e-4, 1e-2, 1.0)).std
    assert 0 < found.item() <= 0.5


@pytest.fixture(params=["jacobians kept", "matrix-free"])
def products(request, monkeypatch):
    """Both ways of multiplying by a Jacobian."""
    if request.param == "matrix-free":
        monkeypatch.setattr(import_module("tacit.reconstruction.algorithm1"), "_CPU_MEMORY", 0.0)


@pytest.mark.usefixtures("products")
def test_algorithm_1_agrees_with_its_dense_twin(network, images):
    """ε = J⁺z for the last shift, by dense least squares."""
    double = network.double()
    points = images.double()
    start = 1e-3 * torch.randn(3, double(points).shape[1], generator=torch.Generator().manual_seed(0)).double()
    found = perturbation(double, points, start, repetitions=1).reshape(3, -1)
    for row in range(3):
        j = jacobian(double, points[row])
        expected = np.linalg.pinv(j, rcond=1e-9) @ start[row].numpy()
        residual = j @ found[row].numpy() - start[row].numpy()
        best = j @ expected - start[row].numpy()
        assert np.linalg.norm(residual) <= np.linalg.norm(best) * (1 + 1e-4) + 1e-9
        # Of least norm: nothing in the null space of J.
        outside = found[row].numpy() - np.linalg.pinv(j, rcond=1e-9) @ (j @ found[row].numpy())
        assert np.linalg.norm(outside) <= 1e-5 * np.linalg.norm(found[row].numpy())


@pytest.mark.usefixtures("products")
def test_several_starts_of_an_input_do_not_see_one_another(images):
    """Some stop early and are set aside: an input whose features are all zero, and one of low rank."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.ReLU(), nn.Linear(20, 18)).double()
    points = torch.cat([images.double(), -images.double(), torch.zeros(1, 1, 4, 4).double()])
    start = 1e-3 * torch.randn(7, 4, 18, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start[6, 1] = 0
    together = perturbation(network, points, start, repetitions=3)
    assert together.shape == (7, 4, 1, 4, 4)
    for column in range(4):
        alone = perturbation(network, points, start[:, column], repetitions=3)
        torch.testing.assert_close(together[:, column], alone, rtol=1e-6, atol=1e-12)


def test_features_at_rest_change_nothing_but_the_work(images, monkeypatch):
    """Kept Jacobians leave out the ReLUs that rest, others for each input; matrix-free products do not."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 30), nn.ReLU()).double()
    points = torch.cat([images.double(), -images.double()])
    start = 1e-3 * torch.randn(len(points), 2, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def both_ways():
        yield perturbation(network, points, start, repetitions=3)
        with monkeypatch.context() as patched:
            patched.setattr(import_module("tacit.reconstruction.algorithm1"), "_CPU_MEMORY", 0.0)
            yield perturbation(network, points, start, repetitions=3)

    assert len(set((network(points) == 0).sum(dim=1).tolist())) > 1
    torch.testing.assert_close(*both_ways(), rtol=1e-7, atol=1e-15)
    with torch.no_grad():
        network[1].bias[:] = -1e3
    assert not any(found.any() for found in both_ways())


def test_a_model_without_a_derivative_at_a_point_is_searched_along_the_others():
    def features(x):
        return torch.cat([x.flatten(1).relu().sqrt(), x.flatten(1)], dim=1)

    point = torch.tensor([[0.0, 1.0, 2.0, -1.0]], dtype=torch.float64)
    found = hcr_bounds(features, point, NOISE, basis="pixel", restarts=3, repetitions=2).std
    assert (found > 0).all()
    assert (found <= NOISE.size).all()  # the features hold every entry, with this noise


def test_starts_that_do_not_fit_are_refused(images):
    with pytest.raises(InputError, match="the shape of start"):
        perturbation(nn.Flatten(), images, torch.zeros(2, 16), repetitions=1)


@pytest.mark.usefixtures("products")
def test_the_published_bound_is_the_same_for_an_example_alone(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20), nn.Tanh())
    start = 1e-3 * torch.randn(3, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = images.double()
    network = network.double()
    together = perturbation(network, points, start, repetitions=3)
    alone = torch.cat([perturbation(network, points[i : i + 1], start[i : i + 1], repetitions=3) for i in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-15)


def test_any_callable_will_do(images):
    matrix = np.random.default_rng(0).normal(size=(16, 20))
    arrays = multipoint_bounds(lambda x: np.tanh(x.reshape(len(x), -1) @ matrix), images.numpy(), NOISE).std
    tensors = multipoint_bounds(
        lambda x: torch.tanh(x.reshape(len(x), -1) @ torch.tensor(matrix)), images.double(), NOISE
    ).std
    np.testing.assert_allclose(arrays, tensors, rtol=1e-6)


def test_a_model_that_rounds_has_bounds_but_no_derivative(images):
    def rounding(x):
        return torch.round(x.reshape(len(x), -1) * 4) / 4

    with pytest.raises(InputError, match="the model rounds or is flat here"):
        local_limit(rounding, images.double(), NOISE)
    with pytest.raises(InputError, match="the model rounds or is flat here"):
        hcr_bounds(rounding, images.double(), NOISE, restarts=2)
    still = hcr_bounds(lambda x: 0 * x.flatten(1), images.double(), NOISE, restarts=2)
    assert np.all(still.std == 0)  # nothing to search along, and nothing hidden
    assert np.all(multipoint_bounds(rounding, images.double(), NOISE, steps=(0.5,)).std > 0)


def test_other_noise(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    laplace = single_mode_bounds(network, images, Laplace(0.5)).std
    assert np.all(laplace > 0)
    assert np.all(single_mode_bounds(network, images, Uniform(1.0)).std == 0)
    assert np.all(hcr_bounds(network, images, Laplace(0.5), restarts=2, repetitions=1).std > 0)
    with pytest.raises(NoTheoremError, match="must have Gaussian noise"):
        multipoint_bounds(network, images, Laplace(0.5))


def test_a_guarantee_speaks_of_unbiased_estimators(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    made = multipoint_bounds(network, images, NOISE)
    statement = made.guarantee_of(1, (0, 2, 3))
    assert statement.adversary == Adversary.UNBIASED
    assert statement.value == made.std[1, 0, 2, 3]
    assert "Gaussian(0.5)" in " ".join(statement.assumed(checked_by="caller"))


def test_less_exact_releases_have_smaller_bounds(images):
    """A release in float32 is within 1e-6 of these features; its bound is paid for, and still worth having."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    exact, rough = (multipoint_bounds(network, images, NOISE, feature_error=error).std for error in (1e-13, 1e-6))
    assert np.all(rough < exact)
    best = multipoint_bounds(network, images, NOISE, steps=(0.003, 0.01, 0.03), feature_error=1e-6).std
    assert np.all(best > 0.9 * exact)


def test_errors_of_features_are_paid_for_where_the_noise_is_smallest():
    """(1e6 + x, 0) may be released as (1e6 + x, 5e-8·y) within 1e-13; noise of 1e-9 there would betray y."""

    def features(x):
        return torch.stack([1e6 + x[:, 0], 0 * x[:, 1]], dim=1)

    noise = Gaussian(covariance=np.array([1e12, 1e-18]))
    found = multipoint_bounds(features, torch.zeros(1, 2, dtype=torch.float64), noise, basis="pixel").std
    assert found[0, 1] <= 0.02


@pytest.mark.parametrize(("sigma", "step"), [(1e155, 1e-3), (1.0, 1e-170), (1e-155, 1e-3), (1e100, 1e60)])
def test_extreme_scales_give_no_false_bound(sigma, step):
    found = multipoint_bounds(
        lambda x: x, torch.zeros(1, 3, dtype=torch.float64), Gaussian(sigma), basis="pixel", steps=(step,)
    ).std
    assert np.all(found <= sigma * (1 + 1e-9))


def test_progress_is_told(images):
    heard = []
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4))
    multipoint_bounds(network, images, NOISE, memory=1e6, advance=heard.append)
    assert heard[-1] == 3


@pytest.mark.parametrize(
    ("index", "mode", "match"),
    [
        (2, (0, 3, 3), "index must lie in 0 to 1"),
        (-1, (0, 3, 3), "index must lie in 0 to 1"),
        (True, (0, 3, 3), "index must lie in"),
        (0.0, (0, 3, 3), "index must lie in"),
        (0, (0, 3), "mode must lie in 0 to 0 × 0 to 3 × 0 to 3"),
        (0, (0, 3, 4), "mode must lie in 0 to 0 × 0 to 3 × 0 to 3"),
        (0, 5, "mode must lie in"),
    ],
)
def test_a_place_outside_is_refused_in_one_line(index, mode, match):
    network, images = nn.Flatten(), torch.rand(2, 1, 4, 4)
    for found in (single_mode_bounds(network, images, NOISE), two_point_bounds(network, images, NOISE)):
        assert found.guarantee_of(1, (0, 3, np.int64(3))).value > 0
        with pytest.raises(InputError, match=match):
            found.guarantee_of(index, mode)
