"""Exact samplers against their exact probabilities.

Each chi-square test fails by chance with probability 1e-7; the noise is fresh every time, so it cannot be seeded away.
"""

import multiprocessing
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.runtime import entropy

FALSE_ALARM = 1e-7
DRAWS = 40_000


def p_value(sample, weights):
    """Chi-square test of integers against weights on −half … half, both tails pooled into the last cells."""
    half = len(weights) // 2
    probabilities = weights / weights.sum()
    clipped = np.clip(sample, -half, half)
    observed = np.bincount(clipped + half, minlength=len(weights))
    enough = probabilities * len(sample) >= 5
    observed = np.append(observed[enough], observed[~enough].sum())
    expected = np.append(probabilities[enough], probabilities[~enough].sum()) * len(sample)
    keep = expected > 0
    return stats.chisquare(observed[keep], expected[keep]).pvalue


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_discrete_laplace_has_its_distribution(scale):
    x = np.arange(-400, 401)
    assert p_value(entropy.discrete_laplace(scale, size=DRAWS), np.exp(-np.abs(x) / scale)) > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_discrete_gaussian_has_its_distribution(scale):
    x = np.arange(-400, 401)
    assert p_value(entropy.discrete_gaussian(scale, size=DRAWS), np.exp(-(x**2) / (2 * scale**2))) > FALSE_ALARM


def test_the_test_tells_neighbouring_distributions_apart():
    """A Laplace sampler 8 % too narrow, and one without negative values, must not pass."""
    x = np.arange(-400, 401)
    weights = np.exp(-np.abs(x) / 7.5)
    assert p_value(entropy.discrete_laplace(6.9, size=DRAWS), weights) < FALSE_ALARM
    assert p_value(np.abs(entropy.discrete_laplace(7.5, size=DRAWS)), weights) < FALSE_ALARM


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(999, 1000), Fraction(1, 2**70) + Fraction(1, 4)])
def test_bernoulli_has_its_probability(probability):
    successes = int(entropy.bernoulli(probability, size=DRAWS).sum())
    assert stats.binomtest(successes, DRAWS, float(probability)).pvalue > FALSE_ALARM


def test_certain_coins():
    assert not entropy.bernoulli(0, size=1000).any()
    assert entropy.bernoulli(Fraction(1), size=1000).all()


def test_a_tiny_probability_is_not_rounded_to_one_or_zero():
    """1 − 2⁻⁷⁰ is 1.0 in floating point; exactly drawn it stays a coin with two sides."""
    almost = 1 - Fraction(1, 2**70)
    assert float(almost) == 1.0
    assert Fraction(almost).denominator == 2**70
    assert entropy.bernoulli(almost, size=100).all()


def _draw(_):
    return entropy.discrete_gaussian(1e6, size=20).tolist()


def test_forked_processes_do_not_repeat_each_other():
    """Shared state of a generator, copied by fork, would give every worker the same noise."""
    _draw(0)  # the generator, if it keeps state, exists before the fork
    with multiprocessing.get_context("fork").Pool(3) as pool:
        draws = pool.map(_draw, range(6), chunksize=1)
        pool.close()
        pool.join()  # not by a signal: a handler that Ray has set may not run while a process waits for a lock
    assert len({tuple(draw) for draw in draws}) == 6


def test_without_opendp_the_error_says_what_to_install():
    script = (
        "import sys; sys.modules['opendp'] = None\n"
        "from tacit import MissingExtraError\nfrom tacit.runtime import entropy\n"
        "try:\n    entropy.discrete_laplace(1.0, size=1)\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "pip install 'tacit-privacy[learning]'" in output
