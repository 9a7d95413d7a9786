"""`tacit reproduce audit`: the experiment's truth, its bound and the certificates, against independent computation."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from test_cli import assert_one_line_error, run

from tacit.reproduction.finite import DELTA, MEANS, Mixture


@pytest.mark.parametrize("mean", [0.01, 0.1, 0.7])
def test_the_least_error_is_that_of_the_posterior(mean):
    """Five standard deviations of the simulation: fails by chance once in a million runs."""
    mixture = Mixture(mean=mean)
    secrets, outputs = mixture.draw(400_000, np.random.default_rng(0))
    assert np.abs(outputs).max() <= 3
    errors = (secrets - np.tanh(mean * outputs)) ** 2
    assert abs(errors.mean() - mixture.least_loss) < 5 * errors.std() / math.sqrt(len(errors))


def test_noise_makes_the_least_error_larger_and_little_noise_hardly():
    mixture = Mixture(mean=0.5)
    losses = [mixture.least_loss_with_noise(noise) for noise in (0.02, 0.1, 0.5)]
    assert mixture.least_loss < losses[0] < losses[1] < losses[2] < 1
    assert losses[0] == pytest.approx(mixture.least_loss, abs=2e-4)


def test_the_statistical_limit_is_a_median():
    """The exact limit for μ from the sum of S·T, in simulated tables, on either side of `limit` about equally often."""
    mixture, rows, rng = Mixture(mean=0.3), 2_000, np.random.default_rng(1)
    means = np.linspace(0.2, 0.5, 301)
    families = [stats.truncnorm(-3 - mean, 3 - mean, loc=mean) for mean in means]
    edges = np.array([one.mean() - stats.norm.ppf(1 - DELTA) * one.std() / math.sqrt(rows) for one in families])
    limit, worse = mixture.limit(rows), 0
    for _ in range(300):
        secrets, outputs = mixture.draw(rows, rng)
        kept = means[edges <= np.mean(secrets * outputs)].max()
        worse += Mixture(mean=float(kept)).least_loss < limit
    assert abs(worse - 150) < 5 * math.sqrt(75)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure1")
    small = ("--rows", "4000", "--neurons", "30", "--restarts", "1", "--tables", "3")
    done = run("reproduce", "audit", "figure1", "--out", "out", *small, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "out"


def test_a_small_run_writes_everything(finished):
    text, out = finished
    assert {path.name for path in out.iterdir()} == {
        "audit-figure1-losses.svg",
        "audit-figure1-shares.svg",
        "results.json",
        "results.md",
    }
    assert "4000 rows" in text
    assert "| 0.01 |" in (out / "results.md").read_text()


def test_certificates_lie_below_the_truth_and_the_bound_is_the_printed_one(finished):
    """Three certificates of three tables at six μ, δ = 0.01 each: by chance one lies above once in two runs at worst;
    the true rate is far lower, since Theorem B is not exact."""
    data = json.loads((finished[1] / "results.json").read_text())
    rows = data["detail"]["rows"]
    assert [row["mean"] for row in rows] == list(MEANS)
    for row in rows:
        mean, loss = row["mean"], row["empirical"]
        printed = loss - (
            2 * (1 + 3 * mean) ** 2 * math.sqrt(2 * math.log(100) / 4000)
            + (6 * mean) ** 2 / 30
            + 24 * mean / math.sqrt(30)
        )
        assert row["printed"] == pytest.approx(max(0, printed), abs=1e-9)
        for name in ("lipschitz", "noisy", "monotone"):
            assert row["printed_share"] < row[f"{name}_share"]
            assert 0.95 < row[f"{name}_lowest_share"] <= row[f"{name}_highest_share"] <= 1
        assert row["limit_share"] < 1
    assert not any(comparison["contradicted"] for comparison in data["comparisons"])


def test_another_experiment_is_refused(tmp_path, here):
    assert_one_line_error(here(tmp_path, "reproduce", "audit", "figure2", "--out", "out"))
