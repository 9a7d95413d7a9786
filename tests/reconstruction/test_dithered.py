"""The module that is deployed: its noise, its grid, and that the bounds apply to what it releases."""

import copy

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tacit import InputError
from tacit.reconstruction import Dithered, Gaussian, Laplace, Uniform, multipoint_bounds

RARE = 1e-7


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Gaussian(0.5), stats.norm(scale=0.5)),
        (Laplace(0.5), stats.laplace(scale=0.5)),
        (Uniform(2.0), stats.uniform(-1, 2)),
    ],
)
def test_the_noise_has_its_law(noise, law):
    """Kolmogorov–Smirnov on fresh entropy; fails by chance with probability 1e-7."""
    released = Dithered(nn.Identity(), noise, releases=100_000)(torch.zeros(100_000, 1)).numpy().ravel()
    assert stats.kstest(released, law.cdf).pvalue > RARE


def test_covariances_are_kept():
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    module = Dithered(nn.Identity(), Gaussian(covariance=covariance), releases=200_000)
    released = module(torch.zeros(200_000, 2)).numpy()
    assert np.abs(np.cov(released.T) - covariance).max() < 6 * 2 * np.sqrt(2 / 200_000)


def test_every_release_is_new_and_on_the_grid():
    module = Dithered(nn.Identity(), Gaussian(0.5), releases=6)
    inputs = torch.full((3, 4), 0.1234567)
    one, other = module(inputs), module(inputs)
    assert not torch.equal(one, other)
    cells = one / (0.5 / 2**16)
    assert torch.equal(cells, cells.round())
    assert one.dtype == torch.float64


def test_low_bits_do_not_tell_zero_features_from_others():
    """In full precision, σ times a float betrays a feature that is zero; on the grid both look alike."""
    sigma = 1.2948372
    module = Dithered(nn.Identity(), Gaussian(sigma), releases=20_000)

    def betrayed(values):
        z = values / sigma
        neighbours = np.stack([np.nextafter(z, -np.inf), z, np.nextafter(z, np.inf)])
        return np.mean(np.any(neighbours * sigma == values, axis=0))

    raw = np.random.default_rng(0).standard_normal(20_000) * sigma
    assert betrayed(raw) == 1.0
    assert betrayed(raw + 0.731) < 0.9
    rates = [betrayed(module(torch.full((20_000, 1), value)).numpy().ravel()) for value in (0.0, 0.731)]
    assert abs(rates[0] - rates[1]) < 0.03


def test_keep_limits_what_is_released_and_the_bounds_apply_to_it(images):
    torch.manual_seed(0)
    features = nn.Sequential(nn.Flatten(), nn.Linear(16, 40))
    noise = Gaussian(0.5)
    narrow = Dithered(features, noise, keep=20)
    assert narrow(images).shape == (3, 20)
    wide_bounds = multipoint_bounds(Dithered(features, noise).released, images, noise).std
    narrow_bounds = multipoint_bounds(narrow.released, images, noise).std
    assert np.all(narrow_bounds > wide_bounds)
    lost = multipoint_bounds(Dithered(features, noise, keep=8).released, images, noise).std
    assert np.median(lost) > 100  # eight numbers cannot hold sixteen pixels


def test_the_projection_is_public_and_the_same_everywhere(images):
    one, other = (Dithered(nn.Flatten(), Gaussian(0.5), keep=5).released(images) for _ in range(2))
    assert torch.equal(one, other)
    different = Dithered(nn.Flatten(), Gaussian(0.5), keep=5, projection_seed=1).released(images)
    assert not torch.allclose(one, different)


@pytest.fixture
def digits():
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16).reshape(-1, 1, 8, 8), labels


def test_learned_directions_keep_more_than_random_ones(digits):
    """Of what other inputs vary by, and of what a classifier can tell: learned on the first 800, tried on the rest."""
    from sklearn.neighbors import NearestCentroid

    images, labels = digits
    learned = Dithered(nn.Flatten(), Gaussian(0.5), keep=6, public=images[:800])
    random = Dithered(nn.Flatten(), Gaussian(0.5), keep=6)
    variances = [float(made.released(images[800:]).var(dim=0).sum()) for made in (learned, random)]
    assert variances[0] > 3 * variances[1]
    scores = []
    for made in (learned, random):
        released = made(images).numpy()
        scores.append(NearestCentroid().fit(released[:800], labels[:800]).score(released[800:], labels[800:]))
    assert scores[0] > scores[1] + 0.1
    directions = learned.released.learned
    torch.testing.assert_close(directions.T @ directions, torch.eye(6, dtype=torch.float64), atol=1e-12, rtol=0)
    flat = images[:800].flatten(1)
    values = torch.linalg.eigvalsh(torch.cov(flat.T)).flip(0)[:6]
    torch.testing.assert_close(torch.cov((flat @ directions).T), torch.diag(values), atol=1e-9, rtol=0)


def test_learned_directions_are_the_same_every_time_and_travel_with_the_state(digits):
    images, _ = digits
    torch.manual_seed(0)
    features = nn.Sequential(nn.Flatten(), nn.Linear(64, 20))
    one, other = (Dithered(features, Gaussian(0.5), keep=5, public=images[:100]) for _ in range(2))
    assert torch.equal(one.released.learned, other.released.learned)
    torch.manual_seed(1)
    fresh = nn.Sequential(nn.Flatten(), nn.Linear(64, 20))
    rows = images[:9].float()
    for public in (None, images[100:200]):
        deployed = Dithered(fresh, Gaussian(0.5), keep=5, public=public)
        assert not torch.allclose(deployed.released(rows), one.released(rows))
        deployed.load_state_dict(one.state_dict())
        assert torch.equal(deployed.released(rows), one.released(rows))
    with pytest.raises(RuntimeError, match="learned"):
        Dithered(fresh, Gaussian(0.5), keep=6).load_state_dict(one.state_dict())
    with pytest.raises(RuntimeError, match="learned"):
        one.load_state_dict(Dithered(fresh, Gaussian(0.5), keep=5).state_dict())


def test_the_bounds_apply_to_learned_directions(images):
    torch.manual_seed(0)
    features = nn.Sequential(nn.Flatten(), nn.Linear(16, 40))
    noise = Gaussian(0.5)
    learned = Dithered(features, noise, keep=14, public=torch.rand(50, 1, 4, 4))
    assert learned(images).shape == (3, 14)
    wide_bounds = multipoint_bounds(Dithered(features, noise).released, images, noise).std
    assert np.all(multipoint_bounds(learned.released, images, noise).std > wide_bounds)


class Jittery(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, training=self.training)


@pytest.mark.parametrize("layer", [nn.Dropout(), nn.BatchNorm1d(4), Jittery(), nn.Sequential(nn.Identity(), Jittery())])
def test_a_module_in_train_mode_is_refused_as_the_bounds_refuse_it(layer):
    rows = torch.rand(9, 4)
    made = Dithered(layer, Gaussian(1.0))
    for use in (lambda: made(rows), lambda: multipoint_bounds(made.released, rows, Gaussian(1.0), basis="pixel")):
        layer.train()
        with pytest.raises(InputError, match="must be in evaluation mode"):
            use()
        layer.eval()
        use()


def test_noise_is_finite_at_the_ends_of_the_uniform_numbers():
    ends = torch.tensor([-0.5, -0.5 + 2.0**-53, 0.0, 0.5 - 2.0**-53], dtype=torch.float64)
    shaped = Laplace(2.0).shaped(ends)
    assert bool(shaped.isfinite().all())
    assert bool((shaped.diff() > 0).all())
    assert shaped[0] == pytest.approx(-2 * 54 * np.log(2))


def test_bounds_speak_of_what_is_released(images):
    """A module in float32 releases float32: the features of its release lie within the error that the bound names."""
    torch.manual_seed(0)
    for kind, error in ((torch.float64, 1e-13), (torch.float32, 1e-6), (torch.bfloat16, 0.0625)):
        network = nn.Sequential(nn.Flatten(), nn.Linear(16, 40), nn.ReLU(), nn.Linear(40, 20)).to(kind).eval()
        made = Dithered(network, Gaussian(0.5))
        found = multipoint_bounds(made.released, images, Gaussian(0.5))
        assert found.feature_error == error
        exact = copy.deepcopy(network).double()(images.double()).detach()
        apart = (made.released(images.to(kind)).detach().double() - exact).norm(dim=1) / exact.norm(dim=1)
        assert float(apart.max()) <= error


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Dithered("model", Gaussian(1.0)), "features must be a module"),
        (lambda: Dithered(nn.Identity(), 0.5), "noise must be a noise"),
        (lambda: Dithered(nn.Identity(), Gaussian(1.0), keep=0), "keep must be a whole number"),
        (lambda: Dithered(nn.Identity(), Gaussian(1.0), keep=9)(torch.zeros(2, 4)), "keep must be at most 4"),
        (lambda: Dithered(nn.Flatten(), Gaussian(1.0), public=torch.rand(9, 4)), "keep must be given with public"),
        (lambda: Dithered(nn.Flatten(), Gaussian(1.0), keep=5, public=torch.rand(9, 4)), "at most 4, the features"),
        (lambda: Dithered(nn.Flatten(), Gaussian(1.0), keep=3, public=torch.rand(3, 4)), "at most 2, the directions"),
        (lambda: Dithered(nn.Flatten(), Gaussian(1.0), keep=1, public=torch.ones(3, 4)), "at most 0, the directions"),
        (lambda: Dithered(nn.Dropout(), Gaussian(1.0), keep=1, public=torch.rand(3, 4)), "must be in evaluation mode"),
    ],
)
def test_unusable_arguments_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


class Encoder(nn.Module):
    """A text encoder as usual: rows of zeros are padding. Without gradients torch takes a fused path of its own."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x):
        return self.encoder(x, src_key_padding_mask=(x == 0).all(dim=2))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_a_transformer_is_released_as_it_was_bounded_with_gradients_or_without(around):
    """The fused path sets padding to 0, which gives away how long a text is."""
    torch.manual_seed(0)
    encoder, texts = Encoder().eval(), torch.randn(15, 16, 8)
    for length in range(1, 16):
        texts[length - 1, length:] = 0
    noise = Gaussian(1e-3)
    exact = copy.deepcopy(encoder).double()(texts.double()).detach().flatten(1)
    with around():
        released = Dithered(encoder, noise)(texts)
    assert float((released - exact).abs().max()) < 6 * noise.sigma  # by chance in one of 200 000 runs


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_autocast_around_a_release_does_not_round_its_features(kind):
    """Fails by chance in one of 100 000 runs."""
    torch.manual_seed(0)
    layer, rows = nn.Linear(64, 16).eval(), torch.rand(64, 64)
    exact, noise = layer(rows).detach().double(), Gaussian(1e-5)
    with torch.autocast("cpu", dtype=kind):
        released = Dithered(layer, noise)(rows)
    assert float((released - exact).abs().max()) < 6.5 * noise.sigma


def test_settings_of_products_are_set_aside_while_features_are_computed_and_kept_after():
    """Whoever allows TF32 or bfloat16 inside products does so for all of a program."""
    backends = torch.backends
    if not hasattr(backends.cuda.matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has no such settings")
    parts = [backends.cuda.matmul, backends.cudnn.conv, backends.mkldnn.matmul, backends.mkldnn.conv]
    before, seen = [part.fp32_precision for part in parts], []

    def features(x):
        seen.append([part.fp32_precision for part in parts])
        return x

    try:
        for part in parts:
            part.fp32_precision = "tf32"
        Dithered(features, Gaussian(1.0))(torch.rand(2, 3))
        assert seen == [["ieee"] * 4]
        assert [part.fp32_precision for part in parts] == ["tf32"] * 4
    finally:
        for part, value in zip(parts, before, strict=True):
            part.fp32_precision = value
