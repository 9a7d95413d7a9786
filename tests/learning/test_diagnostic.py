"""A data-dependent ε can be looked at, and nothing else."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

from tacit import NoTheoremError
from tacit.learning import data_dependent_epsilon

CLEAR = [[250, 0, 0]] * 100


def figure(diagnostic):
    return float(diagnostic.seen_by_owner().split()[3].rstrip(":"))


def test_it_is_small_where_votes_are_clear_and_never_above_the_data_independent_one():
    orders = np.arange(1.5, 200, 0.1)
    plain = np.min(100 * orders / 40**2 + math.log(1e5) / (orders - 1))
    clear = figure(data_dependent_epsilon(CLEAR, sigma=40, delta=1e-5))
    split = figure(data_dependent_epsilon([[125, 125, 0]] * 100, sigma=40, delta=1e-5))
    assert clear < 0.5 * split
    assert split == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize(
    "use",
    [
        lambda d: d < 1,
        lambda d: 1 > d,  # noqa: SIM300
        lambda d: d == 1,
        bool,
        float,
        int,
        round,
        abs,
        hash,
        math.exp,
        lambda d: d + 1,
        lambda d: 2 * d,
        lambda d: max(d, 1.0),
        lambda d: np.asarray(d, dtype=float),
        pickle.dumps,
        copy.copy,
        json.dumps,
        lambda d: d.to_dict(),
        lambda d: d.to_json(),
    ],
)
def test_it_refuses_every_use_of_its_value(use):
    diagnostic = data_dependent_epsilon(CLEAR, sigma=40, delta=1e-5)
    with pytest.raises((NoTheoremError, TypeError)):
        use(diagnostic)


def test_printing_it_shows_nothing():
    diagnostic = data_dependent_epsilon(CLEAR, sigma=40, delta=1e-5)
    for text in (str(diagnostic), repr(diagnostic), f"{diagnostic}", f"{diagnostic:>80}"):
        assert not any(character.isdigit() for character in text)
    assert "not for publication" in diagnostic.seen_by_owner()
