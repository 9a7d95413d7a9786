"""From v, I and TV to what anyone can do: valid for every law drawn, and attained by the laws that the proofs name."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.theory import leakage

mp.mp.dps = 30
SLACK = 1e-9


class Law:
    """An output with finitely many values: chances in either class, and everything that follows, by enumeration."""

    def __init__(self, positive, negative):
        self.one, self.zero = np.asarray(positive, float), np.asarray(negative, float)
        total = self.one + self.zero
        self.bias = np.divide(self.one - self.zero, total, out=np.zeros_like(total), where=total > 0)
        self.squared = float((total * self.bias**2).sum() / 2)
        self.variation = float((total * abs(self.bias)).sum() / 2)
        self.information = float(sum(t / 2 * float(iota(abs(b))) for t, b in zip(total, self.bias, strict=True)))

    def curve(self):
        """FPR and TPR of the likelihood-ratio tests, from (0, 0) to (1, 1)."""
        order = np.argsort(-self.bias, kind="stable")
        return np.append(0, np.cumsum(self.zero[order])), np.append(0, np.cumsum(self.one[order]))

    @property
    def auc(self):
        false, true = self.curve()
        return float(((true[1:] + true[:-1]) / 2 * np.diff(false)).sum())

    def hockey_stick(self, ratio):
        return float(
            max(
                np.maximum(0, self.one - ratio * self.zero).sum(),
                np.maximum(0, self.zero - ratio * self.one).sum(),
            )
        )


def iota(e):
    e = mp.mpf(e)
    return ((1 + e) * mp.log(1 + e) + ((1 - e) * mp.log(1 - e) if e < 1 else 0)) / 2


def of_biases(bias, chance):
    """The law whose posterior has these values; they have to average to 0."""
    return Law(chance * (1 + bias), chance * (1 - bias))


masses = st.lists(st.floats(0, 1), min_size=2, max_size=6)
laws = st.tuples(masses, masses).map(
    lambda pair: Law(*(np.array(m[: min(map(len, pair))]) + 1e-3 for m in pair))  # as long as the shorter
)


def normal(law):
    return Law(law.one / law.one.sum(), law.zero / law.zero.sum())


@given(laws.map(normal))
def test_no_law_goes_beyond(law):
    v, tv = law.squared, law.variation
    assert tv <= leakage.advantage_upper(v) + SLACK
    assert law.information <= leakage.information_upper(v) + SLACK
    assert v <= leakage.squared_from_information(law.information) + SLACK
    false, true = law.curve()
    assert (true <= leakage.roc_upper(np.clip(false, 0, 1), squared=v, advantage=tv) + SLACK).all()
    assert (true <= leakage.roc_upper(np.clip(false, 0, 1), squared=v) + SLACK).all()
    assert law.auc <= leakage.auc_upper(squared=v) + SLACK
    assert law.auc <= leakage.auc_upper(advantage=tv) + SLACK
    for epsilon in (0.0, 0.1, 0.7, 1.5, 3.0):
        found = law.hockey_stick(math.exp(epsilon))
        assert found <= leakage.hockey_stick_upper(epsilon, squared=v) + SLACK
        assert found <= leakage.hockey_stick_upper(epsilon, squared=v, advantage=tv) + SLACK


@pytest.mark.parametrize("v", [1e-6, 0.01, 0.3, 0.9])
def test_conversions_are_attained(v):
    e = math.sqrt(v)
    constant = of_biases(np.array([e, -e]), np.array([0.5, 0.5]))
    assert leakage.advantage_upper(v) == pytest.approx(constant.variation, rel=1e-9)
    assert leakage.advantage_upper(v) >= e
    assert leakage.squared_from_information(constant.information) == pytest.approx(v, rel=1e-6)
    revealed = of_biases(np.array([1, 0, -1]), np.array([v / 2, 1 - v, v / 2]))
    assert revealed.squared == pytest.approx(v)
    assert leakage.information_upper(v) == pytest.approx(revealed.information, rel=1e-9)


@given(st.floats(0, 1), st.floats(0, 1))
def test_every_point_of_the_region_is_attained(first, second):
    """The output is the guess itself: its v is where the ellipse passes through the point."""
    false, true = sorted((first, second))
    law = Law([true, 1 - true], [false, 1 - false])
    if law.squared > 1e-12:
        bound = leakage.roc_upper(false, squared=law.squared)
        assert true <= bound + SLACK
        assert bound == pytest.approx(true, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("v", [0.001, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("advantage", [1.0, 0.05, 0.2])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0])
def test_the_hockey_stick_is_the_maximum_over_the_region(v, advantage, epsilon):
    false = np.concatenate([np.linspace(0, 1, 20001), np.geomspace(1e-9, 1, 20001)])
    true = leakage.roc_upper(false, squared=v, advantage=advantage)
    best = float((true - math.exp(epsilon) * false).max())
    assert leakage.hockey_stick_upper(epsilon, squared=v, advantage=advantage) == pytest.approx(best, rel=1e-4)
    assert leakage.hockey_stick_upper(epsilon, squared=v, advantage=advantage) >= best - SLACK


@pytest.mark.parametrize("v", [0.01, 0.2, 1 / 3, 0.5, 0.9])
def test_the_area_is_attained(v):
    """By a posterior that is uniform around 0, cut off at ±1."""
    z = (np.arange(4000) + 0.5) / 2000 - 1
    bias = z * math.sqrt(3 * v) if v <= 1 / 3 else np.clip(z / (1.5 * (1 - v)), -1, 1)
    law = of_biases(bias, np.full(len(z), 1 / len(z)))
    assert law.squared == pytest.approx(v, rel=1e-5)
    assert leakage.auc_upper(squared=v) == pytest.approx(law.auc, rel=1e-5)


def test_the_area_below_an_advantage_is_attained():
    a, parts = 0.3, 2000
    chance = (1 - a) / parts  # common to both, a ladder between what only one class shows
    law = Law([a, *[chance] * parts, 0], [0, *[chance] * parts, a])
    assert law.variation == pytest.approx(a)
    assert leakage.auc_upper(advantage=a) >= law.auc
    ladder = np.linspace(0, 1, 200001)
    area = float(np.minimum(1, ladder + a).mean())
    assert leakage.auc_upper(advantage=a) == pytest.approx(area, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_differential_privacy_implies_what_its_worst_pair_attains(epsilon, delta):
    e = math.tanh(epsilon / 2)
    law = of_biases(np.array([1, e, -e, -1]), np.array([delta, 1 - delta, 1 - delta, delta]) / 2)
    assert law.hockey_stick(math.exp(epsilon)) <= delta + SLACK
    pairs = [
        (leakage.private_advantage(epsilon, delta=delta), law.variation),
        (leakage.private_squared(epsilon, delta=delta), law.squared),
        (leakage.private_information(epsilon, delta=delta), law.information),
        (leakage.private_auc(epsilon, delta=delta), law.auc),
    ]
    false, true = (rates[2 if delta == 0 else 1 :] for rates in law.curve())  # (0, 0) is on no corner
    pairs += zip(leakage.private_roc(np.clip(false, 0, 1), epsilon=epsilon, delta=delta), true, strict=True)
    for bound, attained in pairs:
        assert attained - SLACK <= bound <= attained + 1e-7


@given(st.floats(1e-40, 1))
def test_a_coins_information_is_bracketed(bias):
    with mp.workdps(120):  # the two logarithms cancel
        exact = iota(bias)
    low, high = leakage.coin_information(bias, toward="down"), leakage.coin_information(bias)
    assert low <= exact <= high
    assert high - low <= 1e-9 * float(exact) + 1e-300


@pytest.mark.parametrize("v", [5e-324, 1e-300, 1e-45, 1e-31, 1e-28])
@pytest.mark.parametrize("epsilon", [0.0, 1e-16, 1e-9, 0.5])
def test_the_hockey_stick_of_next_to_nothing(v, epsilon):
    more = mp.expm1(mp.mpf(epsilon))  # e^ε − 1
    exact = v * (more + 2) ** 2 / (mp.sqrt(more**2 + v * (more + 2) ** 2) + more) / 2
    found = leakage.hockey_stick_upper(epsilon, squared=v)
    assert exact <= found
    if v >= 1e-300 and (more == 0 or more > 1e-10):  # e^ε rounded down to 1 gives more
        assert found <= exact * (1 + mp.mpf(1e-4))


def test_nothing_and_everything():
    assert leakage.advantage_upper(0.0) < 1e-300
    assert leakage.roc_upper([0.0, 0.3, 1.0], squared=0.0) == pytest.approx([0.0, 0.3, 1.0])
    assert leakage.roc_upper(0.0, squared=1.0) == 1
    assert leakage.auc_upper() == 1
    assert leakage.hockey_stick_upper(5.0) == 1
    assert leakage.hockey_stick_upper(5.0, squared=0.0) == 0
    assert leakage.squared_from_information(math.log(2)) == 1
