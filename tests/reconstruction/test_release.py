"""What the door lets in, and what it sends away with which remedy."""

import copy

import numpy as np
import pytest
import torch
from scipy.fft import dctn
from torch import nn

from tacit import InputError
from tacit.reconstruction import (
    Gallery,
    Gaussian,
    bayes_bound,
    hcr_bounds,
    identification_bound,
    linear_decoder,
    local_limit,
    multipoint_bounds,
    nearest_candidate,
    posterior_mean,
    single_mode_bounds,
    twins,
    two_point_bounds,
)
from tacit.reconstruction.basis import basis_of
from tacit.reconstruction.release import open_release


def refused(features, inputs, match):
    with pytest.raises(InputError, match=match) as refusal:
        open_release(features, inputs)
    assert "\n" not in str(refusal.value)


def test_networks_of_every_kind_are_let_in_and_left_as_they_were(network, images):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    release = open_release(network, images)
    assert release.features(release.inputs).dtype == torch.float64
    torch.testing.assert_close(
        release.features(release.inputs).float(), network(images).flatten(1), rtol=1e-4, atol=1e-5
    )
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert next(iter(network.parameters())).dtype == torch.float32


def test_batch_normalisation_in_train_mode_is_refused(images):
    refused(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).train(), images, r"call features.eval\(\)")


def test_batch_normalisation_without_running_statistics_is_refused(images):
    layer = nn.BatchNorm2d(1, track_running_stats=False).eval()
    refused(nn.Sequential(layer, nn.Flatten()), images, "no running statistics")


def test_dropout_in_train_mode_is_refused(images):
    refused(nn.Sequential(nn.Flatten(), nn.Dropout(0.5)).train(), images, "call features.eval")


def test_a_model_that_couples_examples_is_refused(images):
    refused(
        lambda x: x.flatten(1) - x.flatten(1).mean(dim=0), images.double(), "not depend on the other inputs of a batch"
    )


def test_a_model_with_its_own_randomness_is_refused(images):
    refused(lambda x: x.flatten(1) + torch.rand(len(x), 16), images.double(), "the same features every time")


class Moody(nn.Module):
    def forward(self, x):
        return x.flatten(1) * (1.0 if self.training else 1e-3)


@pytest.mark.parametrize("layer", [nn.RReLU(), nn.InstanceNorm2d(1, track_running_stats=True), Moody()])
def test_other_layers_that_care_about_train_mode_are_refused(layer, images):
    refused(nn.Sequential(layer, nn.Flatten()).train(), images, r"call features.eval\(\)")
    network = nn.Sequential(layer, nn.Flatten()).eval()
    open_release(network, images)
    layer.train()
    refused(network, images, r"call features.eval\(\)")


def test_models_that_couple_only_when_features_are_small_or_batches_large_are_refused(images):
    refused(lambda x: 1e-10 * x.flatten(1) / len(x), images.double(), "not depend on the other inputs of a batch")
    refused(lambda x: 1e-10 * torch.rand(len(x), 3), images.double(), "the same features every time")

    def crowded(x):
        return x.flatten(1) * (1.0 if len(x) <= 6 else 1e-3)

    with pytest.raises(InputError, match="not depend on the other inputs of a batch"):
        multipoint_bounds(crowded, images.double(), Gaussian(1.0))


def test_complex_weights_are_refused(images):
    class Fourier(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, dtype=torch.complex64))

        def forward(self, x):
            return torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=4).flatten(1)

    refused(Fourier().eval(), images, "must be real numbers")


def test_a_lazy_model_is_refused(images):
    refused(nn.Sequential(nn.Flatten(), nn.LazyLinear(3)).eval(), images, "run a lazy module once first")


def test_a_first_layer_in_place_changes_neither_inputs_nor_bounds():
    """(x, relu6(x)), the second computed in place on the input: x alone is unbiased with deviation σ."""

    class Skip(nn.Module):
        def forward(self, x):
            kept = x * 1.0
            return torch.cat([kept.flatten(1), nn.functional.relu6(x, inplace=True).flatten(1)], dim=1)

    inputs = torch.rand(4, 1, 2, 2)
    inputs[3, 0, 0, 0] = 7.0
    before = inputs.clone()
    found = single_mode_bounds(Skip().eval(), inputs, Gaussian(1.0), basis="pixel")
    assert found.std.max() <= 1.0
    assert torch.equal(inputs, before)
    assert found.inputs.max() == 7.0
    arrays = inputs.double().numpy()

    def in_place(x):
        x *= 2.0
        return x.reshape(len(x), -1)

    assert multipoint_bounds(in_place, arrays, Gaussian(1.0)).std.max() <= 0.5
    assert arrays.max() == 7.0


def test_non_finite_features_are_refused(images):
    refused(lambda x: torch.log(x.flatten(1) - 0.5), images.double(), "finite numbers")


def test_wrong_outputs_are_refused(images):
    refused(lambda x: x.sum(), images.double(), "one row of real numbers")
    refused(lambda x: (x, x), images.double(), "one row of real numbers")
    refused(lambda x: x.flatten(1).argmax(dim=1), images.double(), "one row of real numbers")


def test_a_model_that_cannot_take_the_inputs_is_refused_with_its_own_words(images):
    refused(nn.Linear(3, 3), images, "mat1 and mat2 shapes cannot be multiplied")
    closure = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    refused(lambda x: closure(x), images.double(), "a callable that computes in float64")


@pytest.mark.parametrize(
    "inputs",
    [None, [], "text", torch.zeros(3), torch.full((2, 4), float("nan")), torch.zeros(0, 4), [[1.0], [1.0, 2.0]]],
)
def test_unusable_inputs_are_refused(inputs):
    refused(nn.Flatten(), inputs, "inputs")


def test_no_model_is_refused(images):
    refused("resnet", images, "must be a module or a callable")


@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 5, 6)])
def test_the_cosine_basis_is_scipys(shape):
    basis = basis_of("dct", shape, torch.device("cpu"))
    rows = torch.rand(2, *shape, dtype=torch.float64)
    np.testing.assert_allclose(
        basis.to_modes(rows), dctn(rows.numpy(), type=2, norm="ortho", axes=(-2, -1)), atol=1e-13
    )
    torch.testing.assert_close(basis.from_modes(basis.to_modes(rows)), rows)


def test_given_bases(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 20))
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0]
    matrix = multipoint_bounds(network, images, Gaussian(1.0), basis=rotation).std
    turn = torch.tensor(rotation)
    pair = (
        lambda rows: (rows.flatten(1) @ turn.T).reshape(rows.shape),
        lambda rows: (rows.flatten(1) @ turn).reshape(rows.shape),
    )
    np.testing.assert_allclose(multipoint_bounds(network, images, Gaussian(1.0), basis=pair).std, matrix, rtol=1e-6)


ALMOST = np.eye(16)
ALMOST[5, 5] = 1 - 1e-9


@pytest.mark.parametrize(
    "basis", ["fourier", 3, np.eye(3), 2 * np.eye(16), (lambda rows: rows, lambda rows: 2 * rows), None, ALMOST]
)
def test_bases_that_are_none_are_refused(basis, images):
    with pytest.raises(InputError, match=r"basis"):
        multipoint_bounds(nn.Flatten(), images, Gaussian(1.0), basis=basis)


def test_flat_inputs_have_no_cosine_modes():
    with pytest.raises(InputError, match="use basis='pixel'"):
        multipoint_bounds(nn.Identity(), torch.rand(2, 5), Gaussian(1.0), basis="dct")
    assert multipoint_bounds(nn.Identity(), torch.rand(2, 5), Gaussian(1.0)).basis == "pixel"
    assert multipoint_bounds(nn.Flatten(), torch.rand(2, 5, 5), Gaussian(1.0)).basis == "dct"


@pytest.mark.parametrize("arrays", [True, False])
def test_features_in_less_than_float64_are_paid_for(arrays):
    """The identity: the release itself is unbiased with deviation σ, and no bound may exceed it."""
    inputs = torch.rand(3, 4, dtype=torch.float64)
    if arrays:  # a list of Python floats is float64, whatever torch would make of it
        found = multipoint_bounds(lambda x: x.tolist(), inputs.numpy(), Gaussian(0.5), basis="pixel")
        assert found.feature_error == 1e-13
    else:
        found = multipoint_bounds(lambda x: x.float(), inputs, Gaussian(0.5), basis="pixel")
        assert found.feature_error >= torch.finfo(torch.float32).eps
    assert 0.4 < found.std.max() <= 0.5


def test_without_a_word_the_type_of_what_is_released_decides(images):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 64), nn.Linear(64, 20)).eval()
    doubled = copy.deepcopy(network).double()
    cases = [
        (network, 1e-6),
        (doubled, 1e-13),
        (copy.deepcopy(network).to(torch.bfloat16), 0.0625),
        (copy.deepcopy(network).half(), 8 * 2.0**-10),
        (nn.Sequential(doubled, nn.Linear(20, 4)), 1e-6),  # the coarsest of its weights; cannot run, but can be bounded
        (nn.Flatten(), 1e-6),  # what torch computes in unless told otherwise
        (lambda x: network(x.float()), 1e-6),
        (lambda x: doubled(x), 1e-13),
        (lambda x: doubled(x).numpy().astype(np.float32), 1e-6),
    ]
    for features, error in cases:
        found = multipoint_bounds(features, images.double(), Gaussian(1.0))
        assert found.feature_error == error
        statement = found.guarantee_of(0, (0, 1, 1))
        assert f"to a relative error of {error:.2g}" in " ".join(statement.assumed(checked_by="caller"))
        stated = multipoint_bounds(features, images.double(), Gaussian(1.0), feature_error=error).std
        np.testing.assert_array_equal(found.std, stated)
    exact_ones = multipoint_bounds(network, images, Gaussian(1.0)).std
    single = multipoint_bounds(lambda x: network(x.float()), images.double(), Gaussian(1.0)).std
    np.testing.assert_allclose(single, exact_ones, rtol=1e-2)
    for error in (None, 1e-6):
        with pytest.raises(InputError, match="not depend on the other inputs of a batch"):
            open_release(lambda x: x.flatten(1) - 1e-3 * x.flatten(1).mean(dim=0), images.double(), feature_error=error)


def test_a_type_that_errs_by_more_is_paid_for_or_refused():
    """Features that nearly cancel: float32 is off by 1e-4 of them."""
    inputs = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    features = nn.Linear(3, 2)
    with torch.no_grad():
        features.weight.copy_(torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
        features.bias.zero_()
    wide = torch.cat([inputs[:, :1] + 1000, inputs[:, :1] + 1000 + 1e-3 * inputs[:, 1:2], inputs[:, 2:] + 1000], dim=1)
    found = open_release(features, wide.double() + 1e-5 * inputs.double())
    assert found.error > 4e-6
    with pytest.raises(InputError, match="the measured error of this model in float32"):
        open_release(features, wide.double() + 1e-5 * inputs.double(), feature_error=1e-6)
    assert (
        open_release(features, wide.double() + 1e-5 * inputs.double(), feature_error=1e-13).error < 1e-9
    )  # float64 is meant


def test_a_callable_of_arrays_gets_arrays_and_one_of_tensors_tensors():
    rows, matrix = np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=(3, 5))
    noise = Gaussian(1.0)
    for candidates, kind in ((rows, np.ndarray), (torch.tensor(rows), torch.Tensor)):

        def features(x, kind=kind):
            assert type(x) is kind
            return np.tanh(np.asarray(x) @ matrix)

        named = identification_bound(features, candidates, noise)
        assert nearest_candidate(features, candidates, noise, named).value <= named.value
        assert bayes_bound(features, Gallery(candidates), noise, basis="pixel").remaining > 0
        assert posterior_mean(features, Gallery(candidates), noise).value > 0


def test_a_module_that_overflows_in_its_own_type_is_refused():
    features = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)).half()
    with torch.no_grad():
        for layer in features:
            layer.weight.copy_(300 * torch.eye(3))
    with pytest.raises(InputError, match="inf or nan in float16"):
        open_release(features, torch.ones(4, 3) + torch.eye(4, 3))


def test_attacks_take_what_the_bounds_take():
    """A callable that is 1e-5 from itself, alone and in a batch."""
    matrix = torch.randn(16, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def rough(x):
        return (x.flatten(1) @ matrix) * (1.0 if len(x) == 1 else 1 + 1e-5)

    rows, noise, error = torch.rand(40, 1, 4, 4).double(), Gaussian(1.0), {"feature_error": 1e-4}
    named = identification_bound(rough, rows, noise, **error)
    assert nearest_candidate(rough, rows, noise, named, **error).value > 0
    assert posterior_mean(rough, Gallery(rows), noise, **error).value > 0
    assert linear_decoder(rough, rows, rows, noise, **error).value > 0
    with pytest.raises(InputError, match="not depend on the other inputs of a batch"):
        nearest_candidate(rough, rows, noise, named)


def test_differences_in_large_batches_that_are_not_paid_for_are_refused(images):
    def crowded(x):
        return x.flatten(1) * (1.0 if len(x) <= 6 else 1 + 1e-10)

    with pytest.raises(InputError, match="not depend on the other inputs of a batch"):
        multipoint_bounds(crowded, images.double(), Gaussian(1.0))
    multipoint_bounds(crowded, images.double(), Gaussian(1.0), feature_error=1e-10)


def test_models_that_know_only_the_candidates_will_do():
    names = {float(number): [float(number == other) for other in range(5)] for number in range(5)}
    candidates = np.arange(5.0)[:, None]

    def looked_up(rows):
        return np.array([names[float(row[0])] for row in rows])

    assert identification_bound(looked_up, candidates, Gaussian(0.1)).value == pytest.approx(1.0)
    assert bayes_bound(looked_up, Gallery(candidates), Gaussian(10.0), basis="pixel").remaining > 0.9
    refused(looked_up, candidates, "KeyError")


@pytest.mark.parametrize("bound", [multipoint_bounds, single_mode_bounds, hcr_bounds, two_point_bounds, local_limit])
@pytest.mark.parametrize("noise", [0.5, None, Gaussian])
def test_noise_that_is_none_is_refused(bound, noise, images):
    with pytest.raises(InputError, match=r"noise must be a noise of tacit\.reconstruction"):
        bound(nn.Flatten(), images, noise)


@pytest.mark.parametrize("search", [hcr_bounds, local_limit, twins])
def test_models_without_derivatives_are_refused_where_these_are_needed(search, images):
    with pytest.raises(InputError, match="the derivative of features must exist"):
        search(lambda x: np.tanh(x.reshape(len(x), -1)), images.double().numpy(), Gaussian(1.0))


@pytest.mark.parametrize(
    "basis",
    [
        (lambda rows: rows.sign() * rows.abs() ** (1 / 3), lambda rows: rows),  # would make small changes large
        (lambda rows: rows, lambda rows: rows**3),
        (lambda rows: rows.float().double(), lambda rows: rows),
        (lambda rows: rows[:, :, :2], lambda rows: rows),
        (print, print),
    ],
)
def test_callables_that_are_no_basis_are_refused(basis, images):
    with pytest.raises(InputError, match="basis must"):
        hcr_bounds(nn.Flatten(), images, Gaussian(1.0), basis=basis)


class Standardised(nn.Module):
    """Each input by its own mean and spread, then a layer: of blank ones, rounding alone is left."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(49, 10, bias=False)

    def forward(self, x):
        x = x - x.mean(dim=1, keepdim=True)
        return self.layer(x / (x.std(dim=1, keepdim=True) + 1e-5))


def test_inputs_of_which_the_type_leaves_rounding_alone_are_refused_wherever_they_stand():
    torch.manual_seed(0)
    model, blank = Standardised().eval(), (255 * torch.rand(100, 1)).expand(-1, 49)
    inputs = torch.cat([255 * torch.rand(16, 49), blank])
    for some in (inputs, inputs.flip(0), blank):
        with pytest.raises(
            InputError, match=r"the features of input \d+ must be larger than the rounding error of float32"
        ):
            open_release(model, some, only_these=True)
    assert open_release(copy.deepcopy(model).double(), inputs, only_these=True).error < 1e-9


def test_the_error_of_a_type_is_that_of_the_worst_input():
    """Of nearly equal entries little is left, and float32 takes much of that."""
    torch.manual_seed(0)
    model, inputs = Standardised().eval(), 255 * torch.rand(40, 49)
    inputs[30] = 200 + 0.01 * torch.rand(49)
    exact = copy.deepcopy(model).double()(inputs.double()).detach()
    apart = float((model(inputs).detach().double() - exact).norm(dim=1).div(exact.norm(dim=1)).max())
    assert apart > 1e-5
    assert open_release(model, inputs).error >= 1.9 * apart
    with pytest.raises(InputError, match="the measured error of this model in float32"):
        open_release(model, inputs, feature_error=1e-6)
