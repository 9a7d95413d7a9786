"""The same input released several times: as much as is told together, and no more, for every noise."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tacit import Comparison, InputError, NoTheoremError
from tacit.reconstruction import (
    Density,
    Dithered,
    Gallery,
    Gaussian,
    Laplace,
    Mixture,
    Quantized,
    Sampled,
    Uniform,
    bayes_bound,
    bound,
    calibrate,
    dithered,
    evaluate_decoder,
    gradient_inversion,
    hcr_bounds,
    identification_bound,
    learned_decoder,
    linear_decoder,
    local_limit,
    multipoint_bounds,
    nearest_candidate,
    posterior_attack,
    posterior_bound,
    posterior_mean,
    single_mode_bounds,
    twins,
    two_point_bounds,
)
from tacit.reconstruction.median_bounds import median_guarantee

TIMES = 9
RNG = np.random.default_rng(0)
INPUTS = torch.tensor(RNG.normal(size=(6, 4)))
PUBLIC = RNG.normal(size=(200, 4)) @ np.diag([1.0, 0.8, 0.5, 0.3])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double().eval()


class Copied(nn.Module):
    """What several releases are one release of, written out."""

    def __init__(self, features, times):
        super().__init__()
        self.features, self.times = features, times

    def forward(self, inputs):
        return torch.cat([self.features(inputs)] * self.times, dim=1)


def prior():
    return Mixture.fitted(PUBLIC)


BOUNDS = {
    "naming": lambda f, noise, **n: identification_bound(f, INPUTS, noise, draws=500, **n).value,
    "gallery": lambda f, noise, **n: bayes_bound(f, Gallery(INPUTS), noise, draws=500, **n).remaining,
    "multi-point": lambda f, noise, **n: multipoint_bounds(f, INPUTS, noise, **n).std,
    "local": lambda f, noise, **n: local_limit(f, INPUTS, noise, **n).identifiable_std,
    "twins": lambda f, noise, **n: twins(f, INPUTS[:2], noise, steps=3, **n).distance,
}
FOR_ANY_NOISE = {
    "pairs": lambda f, noise, **n: bayes_bound(f, prior(), noise, draws=100, steps=0, **n).remaining,
    "chains": lambda f, noise, **n: posterior_bound(f, prior(), noise, steps=2, inputs=150, **n).remaining,
    "two-point": lambda f, noise, **n: two_point_bounds(f, INPUTS[:2], noise, **n).rmse,
    "single": lambda f, noise, **n: single_mode_bounds(f, INPUTS[:2], noise, steps=[0.1], **n).std,
}


@pytest.mark.parametrize("name", [*BOUNDS, *FOR_ANY_NOISE])
def test_gaussian_releases_tell_what_their_mean_tells(name):
    compute = {**BOUNDS, **FOR_ANY_NOISE}[name]
    np.testing.assert_allclose(
        compute(network(), Gaussian(0.9), releases=TIMES), compute(network(), Gaussian(0.3)), rtol=1e-6
    )
    covariance = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
    np.testing.assert_allclose(
        compute(network(), Gaussian(covariance=covariance), releases=TIMES),
        compute(network(), Gaussian(covariance=covariance / TIMES)),
        rtol=1e-6,
    )


def test_the_published_search_sees_the_mean_too():
    options = {"restarts": 3, "repetitions": 3}
    many = hcr_bounds(network(), INPUTS[:2], Gaussian(0.9), releases=TIMES, **options).std
    np.testing.assert_allclose(many, hcr_bounds(network(), INPUTS[:2], Gaussian(0.3), **options).std, rtol=1e-5)


@pytest.mark.parametrize("name", [*BOUNDS, "two-point", "single"])
def test_gaussian_releases_side_by_side_say_the_same(name):
    """The proof that the mean is sufficient, checked on numbers."""
    compute = {**BOUNDS, **FOR_ANY_NOISE}[name]
    together = compute(Copied(network(), TIMES), Gaussian(0.9))
    mean = compute(network(), Gaussian(0.9), releases=TIMES)
    if name in ("naming", "gallery"):  # by Monte Carlo, with other draws
        np.testing.assert_allclose(mean, together, atol=0.05)
    else:
        np.testing.assert_allclose(mean, together, rtol=1e-3)


OTHERS = [
    Laplace(0.5),
    Uniform(2.0),
    Density(stats.logistic(scale=1.0), slope=1.0, curvature=0.5),
    Quantized(Gaussian(0.5), 0.5),
    Quantized(Uniform(2.0), 0.5),
]


SLOW = [(name, noise) for name in ("pairs", "chains") for noise in (OTHERS[0], OTHERS[4])]
QUICK = [(name, noise) for name in ("two-point", "single") for noise in OTHERS]


@pytest.mark.parametrize(("name", "noise"), SLOW + QUICK, ids=repr)
def test_other_releases_are_one_of_copied_features(name, noise):
    """Features and noise are copied before a bound sees them: all noises with quick bounds, two with the others."""
    compute = FOR_ANY_NOISE[name]
    many = compute(network(), noise, releases=3)
    np.testing.assert_array_equal(many, compute(Copied(network(), 3), noise))
    once = compute(network(), noise)
    by_chance = 0.05 if name in ("pairs", "chains") else 0.0
    assert np.all(np.asarray(many) <= np.asarray(once) + by_chance)
    if np.max(once) > 0 and not by_chance:
        assert np.max(many) < np.max(once)


def test_a_callable_on_arrays_is_copied_too():
    weights = RNG.normal(size=(4, 3))
    arrays = two_point_bounds(lambda x: (np.asarray(x) @ weights).tolist(), INPUTS.numpy(), Laplace(0.5), releases=3)
    tensors = two_point_bounds(lambda x: x @ torch.tensor(weights), INPUTS, Laplace(0.5), releases=3)
    np.testing.assert_allclose(arrays.rmse, tensors.rmse, rtol=1e-9)
    flat = two_point_bounds(lambda x: x[:, 0], INPUTS, Uniform(2.0), releases=2).rmse  # one number an input
    assert flat.max() > 0


def test_copies_leave_the_type_and_the_checks_of_a_module_as_they_are():
    layer = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    with pytest.raises(InputError, match="must be in evaluation mode"):
        two_point_bounds(layer, INPUTS, Laplace(0.5), releases=3)
    layer.eval()
    once, many = (two_point_bounds(layer, INPUTS, Laplace(0.5), releases=times) for times in (1, 3))
    assert once.feature_error == many.feature_error == 1e-6
    with pytest.raises(InputError, match="must return one row"):
        two_point_bounds(lambda x: (x, x), INPUTS, Laplace(0.5), releases=3)
    with pytest.raises(InputError, match="features must be a module or a callable"):
        two_point_bounds("model", INPUTS, Laplace(0.5), releases=3)


def uniform_noise_error(times):
    """Of the middle between the least and the greatest of so many uniform numbers, exactly."""
    return (1 / (2 * (times + 1) * (times + 2))) ** 0.5


def test_for_uniform_noise_the_root_rule_is_false():
    """Who sees 16 releases leaves less than any bound for noise of a quarter of the width allows."""
    one = Mixture.fitted(RNG.normal(size=(500, 1)))
    variance = float(one.variances.mean())

    def features(x):
        return x

    attack = linear_decoder(features, one.sample(20_000, seed=1), one, Uniform(1.0), releases=16, tries=4000)
    assert attack.value == pytest.approx(uniform_noise_error(16) ** 2 / variance, rel=0.1)
    assert "mid-range of 16 releases" in attack.method
    right = posterior_bound(features, one, Uniform(1.0), steps=20, inputs=500, releases=16)
    wrong = posterior_bound(features, one, Uniform(1.0 / 4), steps=20, inputs=500)
    assert not Comparison(guarantee=right.guarantee, attacks=[attack]).contradicted
    assert attack.value < 0.5 * wrong.remaining  # of 4000 tries, known to 3 %
    assert 0.5 * attack.value < right.remaining < 1.1 * attack.value
    assert bayes_bound(features, one, Uniform(1.0), releases=16, steps=0).remaining < 1.1 * attack.value


def test_attackers_get_better_with_every_release_as_the_noise_lets_them():
    """Uniform: like 1/n. Gaussian: like 1/√n. Laplace: the median, better than the mean."""
    one = Mixture.fitted(100 * RNG.normal(size=(500, 1)))

    def error(noise, times):
        found = linear_decoder(lambda x: x, one.sample(5000, seed=1), one, noise, releases=times, tries=4000)
        return (found.value * float(one.variances.mean())) ** 0.5

    assert error(Uniform(1.0), 32) == pytest.approx(uniform_noise_error(32), rel=0.1)
    assert error(Uniform(1.0), 4) / error(Uniform(1.0), 32) > 5
    assert error(Gaussian(1.0), 16) == pytest.approx(1 / 4, rel=0.1)
    assert error(Laplace(1.0), 25) < 0.9 * (2 / 25) ** 0.5


def test_attacks_meet_the_bounds_for_as_many_releases():
    noise, one = Gaussian(0.9), prior()
    naming = identification_bound(network(), INPUTS, noise, releases=TIMES, draws=4000)
    attack = nearest_candidate(network(), INPUTS, noise, naming, releases=TIMES, draws=4000, seed=1)
    assert not Comparison(guarantee=naming, attacks=[attack]).contradicted
    assert attack.value == pytest.approx(naming.value, abs=0.06)
    alone = identification_bound(network(), INPUTS, noise, draws=4000)
    assert Comparison(guarantee=alone, attacks=[attack]).contradicted  # a bound for one release says nothing of nine
    gallery = bayes_bound(network(), Gallery(INPUTS), noise, releases=TIMES).guarantee
    rebuilt = posterior_mean(network(), Gallery(INPUTS), noise, releases=TIMES)
    assert not Comparison(guarantee=gallery, attacks=[rebuilt]).contradicted
    assert rebuilt.value == pytest.approx(gallery.value, abs=0.06)
    hidden = posterior_bound(network(), one, noise, steps=10, inputs=300, releases=TIMES)
    known = one.sample(3000, seed=1)
    options = {"releases": TIMES, "tries": 300}
    attacks = [
        posterior_attack(network(), one, noise, steps=20, tries=200, releases=TIMES),
        linear_decoder(network(), known, one, noise, **options),
        learned_decoder(network(), known, one, noise, epochs=2, width=32, **options),
        gradient_inversion(network(), one, one, noise, steps=30, **options),
        evaluate_decoder(lambda rows: torch.zeros(len(rows), 4), network(), known, one, noise, **options),
    ]
    assert not Comparison(guarantee=hidden.guarantee, attacks=attacks).contradicted
    assert attacks[0].value < posterior_attack(network(), one, noise, steps=20, tries=200).value


@pytest.mark.parametrize("noise", OTHERS[:2] + OTHERS[3:], ids=repr)
def test_posterior_means_use_all_releases(noise):
    once, many = (posterior_mean(network(), Gallery(INPUTS), noise, releases=times).value for times in (1, 5))
    assert many < once


def test_a_calibration_for_more_releases_needs_more_noise():
    options = {"target": {"identification": 0.5}, "draws": 500}
    labels = np.arange(6) % 3
    once, many = (
        calibrate(network(), nn.Identity(), INPUTS, labels, releases=times, **options).noise.sigma for times in (1, 4)
    )
    assert many == pytest.approx(2 * once, rel=0.3)


def test_guarantees_say_how_often_an_input_is_released():
    noise = Gaussian(0.9)

    def guarantees(times):
        yield identification_bound(network(), INPUTS, noise, draws=200, releases=times)
        yield bayes_bound(network(), prior(), noise, draws=200, steps=2, releases=times).guarantee
        yield posterior_bound(network(), prior(), noise, steps=2, inputs=30, releases=times).guarantee
        yield twins(network(), INPUTS[:1], noise, steps=1, releases=times).guarantee_of(0)
        yield multipoint_bounds(network(), INPUTS[:1], noise, releases=times).guarantee_of(0, (0,))
        yield two_point_bounds(network(), INPUTS[:1], noise, releases=times).guarantee_of(0, (0,))
        values = {"spread": 1.0, "noise": noise, "feature_error": 1e-6, "releases": times}
        for method in ("two-point", "multi-point", "hcr"):
            yield median_guarantee(method, np.ones((1, 4)), **values)

    for once, often in zip(guarantees(1), guarantees(3), strict=True):
        assert "fresh noise Gaussian(0.9), once" in str([part.text for part in once.assumptions])
        assert "released at most 3 times" in str([part.text for part in often.assumptions])
        assert "theory.divergences.repeated_scale" not in once.theorem
        assert "theory.divergences.repeated_scale" in often.theorem
    laplace = two_point_bounds(network(), INPUTS[:1], Laplace(0.5), releases=3).guarantee_of(0, (0,))
    assert "repeated releases" in laplace.theorem


def test_a_report_is_about_as_many_releases_as_stated():
    inputs = RNG.normal(size=(5, 4))
    options = {"method": "identify,two-point,multi-point,hcr", "limit": 1, "progress": False}
    found = bound(network(), inputs, "gaussian:0.9", releases=TIMES, **options)
    assert all("released at most 9 times" in str(one.guarantee.assumptions) for one in found.comparisons)
    assert "each at most 9 times" in " ".join(found.to_text().split())
    assert found.detail["releases"] == TIMES
    alone = bound(network(), inputs, "gaussian:0.3", releases=1, **options)
    for one, other in zip(found.comparisons, alone.comparisons, strict=True):
        assert one.guarantee.value == pytest.approx(other.guarantee.value, rel=1e-4)
    assert not any("released at most" in str(one.guarantee.assumptions) for one in alone.comparisons)
    with pytest.raises(InputError, match="releases must be a whole number"):
        bound(network(), inputs, "gaussian:0.9", releases=0, **options)


def test_the_words_of_a_guarantee_find_the_proof():
    from tacit.report import proofs

    (found,) = proofs(["repeated releases"]).theorems
    assert found.short == "repeated_scale"
    assert "n copies side by side" in found.proof[-1]


@pytest.mark.parametrize(
    ("noise", "releases", "match"),
    [
        (Gaussian(1.0), 0, "releases must be a whole number"),
        (Gaussian(1.0), 1.5, "releases must be a whole number"),
        (0.5, 3, "noise must be a noise"),
        (Quantized(Gaussian(covariance=np.ones(3)), 0.5), 3, "pass the noise before rounding"),
        (Sampled(lambda rows: rows.sum(axis=1), lambda *_: 0, slope=1.0), 3, "with their joint noise"),
    ],
)
def test_what_has_no_theorem_is_refused(noise, releases, match):
    for use in (two_point_bounds, single_mode_bounds, multipoint_bounds, local_limit):
        with pytest.raises((InputError, NoTheoremError), match=match):
            use(network(), INPUTS, noise, releases=releases)


def test_a_module_warns_once_when_it_releases_an_input_more_often_than_declared():
    module = Dithered(nn.Identity(), Gaussian(1.0), releases=2)
    rows = torch.rand(5, 3)
    module(rows)
    module(rows.double())  # equal numbers are one input
    module(torch.rand(5, 3))
    with pytest.warns(UserWarning, match="no more often than declared, 2, got 3 releases of one"):
        module(rows[3:4])
    module(rows)
    fresh = Dithered(nn.Identity(), Gaussian(1.0))
    with pytest.warns(UserWarning, match="declared, 1, got 2"):
        fresh(torch.tensor([[0.0], [1.0], [-0.0]]))


@pytest.mark.parametrize(
    ("features", "again"),
    [
        (lambda rows: rows, lambda rows: rows.float()),  # a type that cannot hold the digits of the other
        (lambda rows: rows.abs(), lambda rows: -rows),  # another input, which releases the same features
    ],
)
def test_an_input_in_another_type_and_the_same_features_are_no_new_release(features, again):
    module, rows = Dithered(features, Gaussian(1.0)), torch.rand(5, 3, dtype=torch.float64)
    module(rows)
    with pytest.warns(UserWarning, match="declared, 1, got 2"):
        module(again(rows))


def test_neither_inputs_nor_fingerprints_leave_with_a_copy():
    module = Dithered(nn.Identity(), Gaussian(1.0))
    module(torch.full((1, 64), 0.123456789))
    held = pickle.dumps(module._count)
    assert len(held) < 100
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):  # noqa: S301 — our own
        assert not other._count._times
        other(torch.full((1, 64), 0.123456789))
    assert "_count" not in str(module.state_dict())
    assert all(len(mark) == 16 for mark in module._count._times)


def test_only_the_latest_inputs_are_remembered(monkeypatch):
    monkeypatch.setattr(dithered, "_REMEMBERED", 10)
    module = Dithered(nn.Identity(), Gaussian(1.0))
    rows = torch.arange(100.0)[:, None]
    module(rows)
    assert len(module._count._times) == 20  # of the inputs and of their features
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module(rows[:5])
    with pytest.warns(UserWarning, match="got 2"):
        module(rows[:1])
