"""`tacit reproduce audit`: the experiment's truth, its bound and the certificates, against independent computation;
audits of real models in small."""

import functools
import json
import math
import warnings

import numpy as np
import pytest
from published_data import write_adult, write_digits
from scipy import stats
from sklearn.neural_network import MLPClassifier

from tacit import cli
from tacit.audit import certify
from tacit.reproduce import audit_mnist, audits, gather
from tacit.reproduce.data import adult_tables
from tacit.reproduce.finite import DELTA, MEANS, Mixture

pytestmark = pytest.mark.usefixtures("quick_attacks")


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
    least_loss = functools.cache(lambda mean: Mixture(mean=mean).least_loss)
    for _ in range(300):
        secrets, outputs = mixture.draw(rows, rng)
        kept = means[edges <= np.mean(secrets * outputs)].max()
        worse += least_loss(float(kept)) < limit
    assert abs(worse - 150) < 5 * math.sqrt(75)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, warm):
    folder = tmp_path_factory.mktemp("figure1")
    small = ("--rows", "4000", "--neurons", "30", "--restarts", "1", "--tables", "3")
    done = warm.run(folder, "reproduce", "audit", "figure1", "--out", "out", *small)
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


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with the first records of Adult and the first digits of MNIST."""
    folder = write_digits(tmp_path_factory.mktemp("data"), known=700, tested=400)
    return write_adult(folder, known=3000, tested=1500)


def finished_audit(data, tmp_path_factory, **options):
    out, said = tmp_path_factory.mktemp("audits") / "out", []
    task = audits.Task(out=out, data=data, **options)
    report = audits.reproduce(task, advance=said.append)
    assert len(said) == len(audits.steps(task))
    return task, report


@pytest.fixture(scope="module")
def adult(data, tmp_path_factory, quick_attacks):  # noqa: ARG001
    return finished_audit(data, tmp_path_factory, experiment="adult", records=2500)


@pytest.fixture(scope="module")
def digits(data, tmp_path_factory, quick_attacks):  # noqa: ARG001
    return finished_audit(data, tmp_path_factory, experiment="mnist", records=200, rows=4_000, shadows=4)


def by_name(report):
    return {(one["model"], one["secret"], one["output"]): one for one in report.detail["audits"]}


def test_the_audit_of_predictions_agrees_with_the_table(adult, data):
    """What income itself tells, from the file, and what each model does, between an attack and the certificate."""
    _, report = adult
    found = by_name(report)
    assert len(found) == 14
    (table, income), _ = adult_tables(data / "adult.tar.xz")
    chosen = np.sort(np.random.default_rng(0).permutation(len(income))[:2500])
    expected = certify(table["sex"][chosen], income[chosen], failure_probability=0.05 / 14, loss="joint")
    assert found["true income", "sex", "class"]["high"] == expected.advantage
    for one in found.values():
        assert 0 <= one["low"] <= one["high"] <= 1
        assert one["judged"] == ("met" if one["high"] <= 0.1 else "broken" if one["low"] > 0.1 else "not proven")
    # A man earns more than 50K three times as often: every model that is any good tells something about sex.
    assert found["all columns", "sex", "noisy score"]["low"] > 0.05
    assert not report.contradicted
    assert "2500 people are audited; the models learned from 1500 others" in report.summary[0]


def test_the_audit_of_membership_stands_beside_what_privacy_implies(digits):
    task, report = digits
    found = by_name(report)
    assert len(found) == 12
    table = np.load(task.out / "scores-by-heart.npy")
    member, right = table[0] == 1, table[1 + audit_mnist._SCORES.index("correct")]
    gap = right[member].mean() - right[~member].mean()
    assert right[member].mean() > 0.95
    assert found["learned by heart", "member", "right or wrong"]["low"] <= gap
    assert gap <= found["learned by heart", "member", "right or wrong"]["high"] < gap + 0.1
    for one in found.values():
        assert one["low"] <= one["high"]
        implied = {"learned by heart": None, "private, ε = 1": math.tanh(0.5), "hardly any noise": 1.0}[one["model"]]
        assert one["implied"] == (None if implied is None else pytest.approx(implied, abs=1e-4))
    assert "DP allows" in report.tables[0].columns
    assert not report.contradicted


def test_a_killed_audit_goes_on_and_draws_no_private_model_again(digits, monkeypatch, capsys):
    task, report = digits
    gone = task.out / "private-1-member-noisy-loss.json"
    gone.unlink()

    def never(*_):
        raise AssertionError("a model was trained again")

    monkeypatch.setattr(audit_mnist, "membership", never)
    options = ["--data", str(task.data), "--out", str(task.out), "--records", "200", "--rows", "4000"]
    assert cli._run(["reproduce", "audit", "mnist", *options, "--shadows", "4", "--resume"]) == 0
    assert "A ceiling of 0.1 is met by" in " ".join(capsys.readouterr().out.split())
    again = json.loads((task.out / "results.json").read_text())["detail"]["audits"]
    for old, new in zip(report.detail["audits"], again, strict=True):
        assert (old["low"], old["high"]) == (new["low"], new["high"])
    assert gone.exists()


def test_audits_become_one_page(adult, digits, tmp_path):
    page = gather([adult[0].out, digits[0].out], tmp_path / "audits.md", title="Audits of real models").read_text()
    assert page.startswith("# Audits of real models\n")
    assert "| private, ε = 1 | noisy loss |" in page
    for name in ("audit-adult-intervals.svg", "audit-adult-roc.svg", "audit-mnist-roc-private.svg"):
        assert f"]({name})" in page
        assert (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("figure2",), "EXPERIMENT must be one of 'figure1', 'adult', 'mnist', got 'figure2'"),
        (("figure1", "--records", "500"), "--records must be left out for figure1"),
        (("figure1", "--resume"), "--resume must be left out for figure1"),
        (("adult", "--neurons", "5"), "--neurons must be left out for adult"),
        (("adult", "--records", "99"), "--records must be"),
        (("adult", "--records", "3001"), "--records must be at most 3000"),
        (("mnist", "--records", "351"), "--records must be at most 350"),
        (("mnist", "--rows", "5"), "--rows must be"),
        (("mnist", "--shadows", "2"), "--shadows must be"),
        (("mnist", "--data", "."), "the data must name a file that exists, got 'mnist/train-images-idx3-ubyte.gz'"),
    ],
)
def test_what_an_audit_cannot_take_is_refused(arguments, said, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_DATA", str(data))
    assert cli._run(["reproduce", "audit", *arguments, "--out", "out"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "out").exists()


def test_an_interrupted_training_is_no_model(monkeypatch):
    """scikit-learn answers Ctrl-C during training with a warning and a half-trained network."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_update_no_improvement_count", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(KeyboardInterrupt):
            audit_mnist._by_heart(np.eye(20), np.arange(20) % 2, seed=0)
