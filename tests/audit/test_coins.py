"""Memberships that are no fair and independent coins are told from those that are."""

import numpy as np
import pytest
from scipy import stats

from tacit.audit.coins import _chance, contradiction


def coins(seed, models=64, records=200):
    return np.random.default_rng(seed).random((models, records)) < 0.5


@pytest.mark.parametrize("shape", [(16, 1), (16, 300), (64, 40), (200, 700)])
def test_fair_coins_are_not_refused(shape):
    """Each with probability 1e-6."""
    assert not any(contradiction(coins(seed, *shape)) for seed in range(20))


def exact_halves(seed, models=64, records=200):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(records) < records // 2 for _ in range(models)])


def in_pairs(seed):
    """Each model beside one that was trained on all other records."""
    half = coins(seed, 32)
    return np.concatenate([half, ~half])


def copied(seed):
    table = coins(seed)
    table[:, 7] = table[:, 3]
    return table


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (np.random.default_rng(1).random((64, 200)) < 0.3, "a model that was trained on"),
        (np.where(np.arange(200) == 5, True, coins(2)), "a record that was in the training data of 64 of 64 models"),
        (exact_halves(3), "64 of 64 models that were trained on exactly half of the records"),
        (exact_halves(4, 200, 64).T, "200 of 200 records that were in the training data of exactly half of the models"),
        (in_pairs(5), "200 records that were in the training data of exactly half"),
        (np.concatenate([coins(6), coins(6)[:1]]), "two models whose memberships are the same in 200 of 200 records"),
        (copied(7), "two records whose memberships are the same in 64 of 64 models"),
    ],
)
def test_what_no_coins_gave_is_said(table, said):
    assert said in contradiction(table)


def test_chances_are_two_sided():
    for tosses in (5, 16):
        for count in range(tosses + 1):
            assert _chance(count, tosses) == pytest.approx(stats.binomtest(count, tosses).pvalue)
