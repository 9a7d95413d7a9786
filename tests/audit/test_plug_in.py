"""Plug-ins against their naive twins: sums over tables, integrals of kernel estimates, searches over monotone rules."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.audit import Tally, plug_in


def naive(one, zero):
    """v̂, Î and T̂V of two masses that are 1 together, term by term."""
    v = i = tv = 0.0
    for a, b in zip(np.ravel(one), np.ravel(zero), strict=True):
        if a + b > 0:
            v += (a - b) ** 2 / (a + b)
            tv += abs(a - b)
            i += (a * math.log(2 * a / (a + b)) if a else 0) + (b * math.log(2 * b / (a + b)) if b else 0)
    return v, i, tv


def masses(secret, rows, *, paired):
    """Each row's mass in either class."""
    secret = np.asarray(secret)
    if paired:
        return np.where(secret, 1, 0) / rows, np.where(secret, 0, 1) / rows
    return np.where(secret, 1, 0) / (2 * secret.sum()), np.where(secret, 0, 1) / (2 * (1 - secret).sum())


def check(found, exact, *, rel=1e-9, absolute=1e-9):
    for bound, value in zip((found.squared, found.information, found.variation), exact, strict=True):
        assert value <= bound <= value * (1 + rel) + absolute


@pytest.mark.parametrize("paired", [True, False])
def test_discrete_plug_ins(paired):
    rng = np.random.default_rng(0)
    secret, output = rng.integers(0, 2, 500), rng.integers(0, 40, 500)
    one, zero = masses(secret, 500, paired=paired)
    exact = naive(*(np.bincount(output, weights=m, minlength=40) for m in (one, zero)))
    found = plug_in.discrete(Tally().add(secret, output), paired=paired)
    check(found, exact)
    if paired:
        assert found.correct == round(500 * (1 + exact[2]) / 2)


def test_plug_ins_are_not_centred():
    """Of an output that tells nothing, where classes differ in size: pairs count the share of the classes itself."""
    secret = [1] * 30 + [0] * 70
    found = plug_in.discrete(Tally().add(secret, ["x"] * 100), paired=True)
    assert found.squared == pytest.approx(0.4**2)
    assert plug_in.discrete(Tally().add(secret, ["x"] * 100), paired=False).squared == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("noise", [0.2, 1.5])
def test_smoothed_plug_ins_are_those_of_the_kernel_estimate(paired, noise):
    rng = np.random.default_rng(1)
    secret = np.arange(60) % 3 % 2
    output = np.concatenate([rng.normal(size=58), [40.0, -300.123]]) + 0.4 * secret  # and two far away
    one, zero = masses(secret, 60, paired=paired)
    step = noise / 50
    y = np.concatenate([np.arange(c - 14, c + 14, step) for c in (0.0, 40.0, -300.0)])
    kernels = stats.norm.pdf(y[:, None], output[None], noise) * step
    exact = naive(kernels @ one, kernels @ zero)
    found = plug_in.smoothed(Tally(noise=noise).add(secret, output), paired=paired)
    check(found, exact, rel=2e-3, absolute=1e-4)


@pytest.mark.parametrize("columns", [2, 3])
def test_smoothed_vectors(columns):
    rng = np.random.default_rng(2)
    secret = np.arange(30) % 2
    output = rng.normal(size=(30, columns)) * 0.4 + 0.3 * secret[:, None]
    step = {2: 0.1, 3: 0.2}[columns]
    axis = np.arange(-4, 4.6, step)
    one, zero = masses(secret, 30, paired=False)
    lines = [stats.norm.pdf(axis[:, None], output[:, i][None], 0.5) * step for i in range(columns)]
    letters = "abc"[:columns]
    formula = ",".join(f"{letter}n" for letter in letters) + f",n->{letters}"
    exact = naive(*(np.einsum(formula, *lines, m) for m in (one, zero)))
    found = plug_in.smoothed(Tally(noise=0.5).add(secret, output), paired=False)
    check(found, exact, rel=0.04, absolute=0.01)


def test_sampled_plug_ins_agree_with_the_grid():
    """Monte Carlo for vectors that lie in a plane: two of five coordinates move. Fails by chance below 1e-6."""
    rng = np.random.default_rng(4)
    secret = np.arange(400) % 2
    plane = rng.normal(size=(400, 2)) * 0.4 + 0.3 * secret[:, None]
    exact = plug_in.smoothed(Tally(noise=0.5).add(secret, plane), paired=False)
    five = np.column_stack([plane, np.ones((400, 3))])
    found = plug_in.sampled(Tally(noise=0.5).add(secret, five), paired=False, failure_probability=1e-6, seed=0)
    for name in ("squared", "information", "variation"):
        assert 0.98 * getattr(exact, name) - 0.01 < getattr(found, name)  # the grid's own allowance lies above
        assert getattr(found, name) < 1.2 * getattr(exact, name) + 0.003


def test_sampled_plug_ins_are_upper_limits():
    """Two points: v̂ is that of two Gaussians. At failure 0.3 an upper limit is wrong in at most 30 % of the runs
    (60 runs; more than 36 failures have a chance below 1e-6)."""
    tally = Tally(noise=1.0).add([0, 1], np.array([[0.0] * 4, [0.5] * 4]))
    y = np.linspace(-12, 12, 4001)
    exact = (np.tanh(0.5 * (y + 0.5)) ** 2 * stats.norm.pdf(y)).sum() * (y[1] - y[0])
    found = [plug_in.sampled(tally, paired=False, failure_probability=0.9, seed=seed).squared for seed in range(60)]
    assert sum(limit < exact for limit in found) <= 36
    assert np.mean(found) == pytest.approx(exact, rel=0.03)


def test_sampled_plug_ins_do_not_depend_on_the_origin():
    """1e15 and 1e15 + ⅛ are one number once divided by 0.1."""
    secret = np.arange(2000) % 2
    options = {"paired": False, "failure_probability": 0.01, "seed": 0}
    near, far = (
        plug_in.sampled(Tally(noise=0.1).add(secret, np.tile((c + 0.125 * secret)[:, None], 4)), **options)
        for c in (0.0, 1e15)
    )
    assert near == far
    assert far.squared > 0.6


def test_vectors_beyond_all_numbers_are_refused():
    for far, noise in ((1e300, 1e-10), (1.7e308, 1.0)):
        tally = Tally(noise=noise).add([0, 1, 1], np.array([[-far] * 4, [far] * 4, [0.0] * 4]))
        with pytest.raises(ValueError, match="none beyond 1e5 deviations"):
            plug_in.sampled(tally, paired=False, failure_probability=0.1, seed=0)


def test_vectors_far_apart_are_refused():
    with pytest.raises(ValueError, match=r"must span at most .*; release fewer coordinates"):
        plug_in.smoothed(Tally(noise=0.01).add([0, 1], np.array([[0.0, 0, 0], [50, 50, 50]])), paired=False)
    with pytest.raises(ValueError, match="none beyond 1e5 deviations"):
        plug_in.sampled(
            Tally(noise=1e-6).add([0, 1], np.array([[0.0] * 5, [50.0] * 5])),
            paired=False,
            failure_probability=0.1,
            seed=0,
        )


def monotone_twin(output, one, zero):
    """The best of all monotone rules, over every partition of the sorted outputs into blocks, up and down."""
    values = np.unique(output)
    a = np.array([one[output == v].sum() for v in values])
    b = np.array([zero[output == v].sum() for v in values])
    best = np.zeros(3)
    for x, y in ((a, b), (a[::-1], b[::-1])):
        for cuts in itertools.product([False, True], repeat=len(values) - 1):
            starts = [0, *(np.flatnonzero(cuts) + 1)]
            blocks = np.add.reduceat(x, starts), np.add.reduceat(y, starts)
            bias = (blocks[0] - blocks[1]) / (blocks[0] + blocks[1])
            if (np.diff(bias) >= 0).all():
                best = np.maximum(best, naive(*blocks))
        sums = np.concatenate([[0], np.cumsum(x - y)])
        best[2] = max(best[2], (sums[-1] - 2 * sums).max())
    return best


@pytest.mark.parametrize("seed", range(12))
def test_monotone_plug_ins_are_the_best_of_all_monotone_rules(seed):
    rng = np.random.default_rng(seed)
    n = 24
    secret = rng.permutation(np.arange(n) % 3 % 2)
    output = np.round(rng.normal(size=n) + 0.8 * secret * (-1) ** seed, 0 if seed % 3 else 1) + 0.0  # −0.0 is another
    output = np.clip(output, -2, 2) if seed % 3 == 0 else output
    output = np.where(np.isin(output, np.unique(output)[:9]), output, np.unique(output)[0])
    for paired in (True, False):
        found = plug_in.monotone(Tally().add(secret, output), paired=paired)
        check(found, monotone_twin(output, *masses(secret, n, paired=paired)), absolute=1e-12)


def test_monotone_rules_may_part_the_two_zeros():
    secret = np.arange(20) % 2
    tally = Tally().add(secret, np.where(secret == 1, 0.0, -0.0))
    assert plug_in.monotone(tally, paired=True).squared == pytest.approx(1)


def test_monotone_correct_guesses_are_those_of_the_best_threshold():
    secret, output = [0, 0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert plug_in.monotone(Tally().add(secret, output), paired=True).correct == 5
    assert plug_in.monotone(Tally().add(secret, [-x for x in output]), paired=True).correct == 5


@pytest.mark.parametrize("ratio", [1.0, 1.7])
def test_hockey_sticks(ratio):
    rng = np.random.default_rng(3)
    secret, output = rng.integers(0, 2, 300), rng.integers(0, 10, 300)
    p, q = (np.bincount(output[secret == s], minlength=10) / (secret == s).sum() for s in (1, 0))
    exact = np.maximum(0, p - ratio * q).sum(), np.maximum(0, q - ratio * p).sum()
    assert plug_in.hockey_sticks(Tally().add(secret, output), [ratio])[0] == pytest.approx(exact, rel=1e-9)
    noise, y = 0.7, np.arange(-8, 18, 0.01)
    f, g = (stats.norm.pdf(y[:, None], output[secret == s][None], noise).mean(axis=1) * 0.01 for s in (1, 0))
    exact = np.maximum(0, f - ratio * g).sum(), np.maximum(0, g - ratio * f).sum()
    (found,) = plug_in.hockey_sticks(Tally(noise=noise).add(secret, output), [ratio])
    for bound, value in zip(found, exact, strict=True):
        assert value <= bound <= value + 1e-3
