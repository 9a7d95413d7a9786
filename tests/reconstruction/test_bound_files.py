"""`tacit bound` as people run it: real files, real kills."""

import io
import json
import os
import pickle
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from commands import assert_one_line_error
from pages import unfolded_words
from safetensors.torch import save_file
from torch import nn

from tacit import Comparison, InputError, bound
from tacit.reconstruction import Gaussian, Mixture, bound_files, train_generator
from tacit.reconstruction.study.budget import Budget
from tacit.reconstruction.study.inputs import inputs_of
from tacit.runtime import run_folder

pytestmark = pytest.mark.usefixtures("quick_attacks")

MODEL = """
import torch
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.ReLU(), nn.Linear(24, 20))

def broken():
    raise RuntimeError("no such\\nlayer")

def number():
    return 5

def unseeded():
    return features()

def brain():
    return features().bfloat16()

def flat():
    return nn.Linear(5, 4)

def identity():
    return nn.Identity()


def wide():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 48), nn.ReLU(), nn.Linear(48, 40))

def dead():
    network = nn.Sequential(features(), nn.ReLU())
    network[0][3].bias.data.fill_(-1000.0)
    return network

class Rounded(nn.Module):
    def forward(self, x):
        return (4 * x).round().flatten(1)

def rounded():
    return Rounded()

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(1), persistent=False)

    def forward(self, x):
        return self.scale * x.flatten(1)

def scaled():
    return Scaled()
"""


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.ReLU(), nn.Linear(24, 20))
    (tmp_path / "model.py").write_text(MODEL)
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    np.savez(tmp_path / "data.npz", inputs=np.random.default_rng(0).uniform(size=(10, 1, 6, 6)))
    return tmp_path


def command(*extra, model="model.py:features", weights="weights.safetensors", data="data.npz", noise=None):
    return [
        *(sys.executable, "-m", "tacit", "bound", model, *(("--weights", weights) if weights else ()), "--data", data),
        *("--noise", noise or "gaussian:0.5", *(() if "--out" in extra else ("--out", "out")), *extra),
    ]


@pytest.fixture
def run_here(folder, here):
    return lambda *extra, **options: here(folder, *command(*extra, **options)[3:])


def test_all_methods_on_one_command(folder, run_here):
    np.save(folder / "wide.npy", np.random.default_rng(0).uniform(size=(10, 1, 10, 10)))
    wide = {"model": "model.py:wide", "weights": None, "data": "wide.npy"}
    finished = run_here("--limit", "5", "--json", "out.json", "--report", "out.html", **wide)
    assert finished.returncode == 0, finished.stderr
    data = json.loads((folder / "out.json").read_text())
    comparisons = [Comparison.from_dict(item) for item in data["comparisons"]]
    assert [comparison.guarantee.adversary.kind for comparison in comparisons] == [
        "prior",
        "prior",
        "any",
        "unbiased",
        "unbiased",
    ]
    assert not any(comparison.contradicted for comparison in comparisons)
    naming, _, _, multi, published = comparisons
    assert multi.guarantee.value > published.guarantee.value > 0
    assert naming.nearest.value > 0.9 * naming.guarantee.value
    page = (folder / "out.html").read_text()
    assert page.count("data:image/svg+xml") == 8  # a slider of five positions, what stays hidden, and two histograms
    assert unfolded_words(page) <= 900
    assert data["detail"]["time"] == {
        "seconds": 120,
        "bounded": dict.fromkeys(("two-point", "multi-point", "hcr"), 5),
        "left_out": [],
    }
    assert len(list((folder / "out").glob("multi-point-*.npy"))) == 2


@pytest.mark.parametrize(
    ("noise", "first"),
    [
        ("gaussian:0.01", "Most inputs are given away. Somebody who holds these 10 inputs names"),
        ("quantized:50:gaussian:0.01", "It is not ruled out that most inputs are given away. Somebody"),
        ("gaussian:5", "Somebody who holds these 10 inputs names the one released with probability at most "),
    ],
)
def test_the_report_begins_with_what_attackers_do_and_says_when_it_is_weak(run_here, noise, first):
    finished = run_here("--limit", "1", "--method", "multi-point, identify", noise=noise)
    assert finished.returncode == 0, finished.stderr
    cards, said = (" ".join(part.split()) for part in finished.stdout.split("\n\n")[1:3])
    assert cards.split()[0] == {"M": "BROKEN", "I": "WEAK", "S": "FINE"}[first[0]]
    assert said.startswith(first)
    assert "guessing reaches 10 %. Do not decide by this: for half of all modes of 1 input, unbiased estimates" in said


def test_all_is_what_the_noise_allows_and_the_rest_is_said_to_be_left_out(run_here):
    finished = run_here("--limit", "1", noise="laplace:0.5")
    assert finished.returncode == 0, finished.stderr
    assert "Not computed: how often somebody who holds a list of inputs can name the one released" in " ".join(
        finished.stdout.split()
    )


def rebuilt_in(path):
    """The JSON's details, and the comparison of the method bayes."""
    data = json.loads(path.read_text())
    (rebuilt,) = (item for item in data["comparisons"] if "rebuilt" in item["guarantee"]["quantity"])
    return data["detail"], Comparison.from_dict(rebuilt)


@pytest.fixture(scope="module")
def correlated():
    """Images from one Gaussian, whose neighbouring entries are alike: the prior that is fitted holds."""
    across = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    factor = np.linalg.cholesky(np.kron(0.8**across, 0.8**across))
    return (np.random.default_rng(1).normal(size=(1400, 36)) @ factor.T).reshape(-1, 1, 6, 6)


def test_under_a_prior_that_holds_bound_and_attack_say_how_much_stays_hidden(folder, run_here, correlated):
    np.save(folder / "public.npy", correlated[:1000])
    np.save(folder / "kind.npy", correlated[1000:])
    quick = ("--public", "public.npy", "--method", "bayes", "--steps", "10", "--json", "p.json", "--report", "p.html")
    finished = run_here(*quick, noise="gaussian:1", data="kind.npy")
    assert finished.returncode == 0, finished.stderr
    detail, rebuilt = rebuilt_in(folder / "p.json")
    found = re.fullmatch(
        r"Between (\d+) % and (\d+) % of the variance stays hidden, whoever rebuilds it\. That is for an adversary "
        r"who knows this of an input: it is drawn from a Gaussian fitted to 1000 public inputs\. .* Real inputs do not "
        r"refute this: of them the best attack left (\d+) %\. .*",
        " ".join(finished.stdout.split("\n\n")[2].split()),
    )
    low, high, real = (float(share) / 100 for share in found.groups())
    # The first number is safe from below, the second from above.
    assert low <= rebuilt.guarantee.value < low + 0.01
    assert high >= min(attack.high for attack in rebuilt.attacks[:3])
    # The best of three attacks is chosen after looking: their intervals share the failure probability of its own.
    assert [attack.failure_probability for attack in rebuilt.attacks[:3]] == [pytest.approx(0.001 / 3)] * 3
    assert detail["prior"]["best_attack"]["failure_probability"] == pytest.approx(0.001)
    assert detail["prior"]["best_attack"]["high"] == min(attack.high for attack in rebuilt.attacks[:3])
    assert 0.8 < low / high < 1
    assert not rebuilt.contradicted
    assert rebuilt.guarantee.theorem[0] == "theory.posterior.posterior_mse"
    assert detail["prior"]["verdict"] == "not refuted"
    assert detail["prior"]["bound"] == rebuilt.guarantee.value < detail["prior"]["on_data"]["value"]
    assert detail["prior"]["on_data"]["value"] == pytest.approx(real, abs=0.005)
    assert [steps for steps, _ in detail["prior"]["curve"]] == [2, 10]
    page = (folder / "p.html").read_text()
    for title in ("How much stays hidden", "Given the release, these inputs are all equally likely", "more steps help"):
        assert title in page


@pytest.mark.parametrize(
    ("held", "noise", "word"),
    [
        (slice(800, None), "gaussian:0.02", "refuted"),
        (slice(800, None), "uniform:0.2", "refuted"),
        (slice(0, 40), "gaussian:0.02", "in doubt"),
    ],
)
def test_a_prior_that_real_inputs_refute_is_said_to_be_refuted_first(folder, run_here, held, noise, word):
    """A hundred pictures, a little blurred: no Gaussian, and whoever holds some of the kind rebuilds the others."""
    rng = np.random.default_rng(3)
    kinds = rng.uniform(size=(100, 1, 6, 6))
    blurred = kinds[rng.integers(100, size=1200)] + 0.01 * rng.normal(size=(1200, 1, 6, 6))
    np.save(folder / "public.npy", blurred[:800])
    np.save(folder / "kind.npy", blurred[held])
    given = {"noise": noise, "data": "kind.npy"}
    quick = ("--public", "public.npy", "--method", "bayes", "--steps", "4")
    finished = run_here(*quick, "--json", "p.json", **given)
    cards, said = (" ".join(part.split()) for part in finished.stdout.split("\n\n")[1:3])
    assert cards.startswith("BROKEN" if word == "refuted" else "WEAK")
    assert said.startswith(f"The prior is {word}: of the real inputs an attack left ")
    assert ("The bound protects no real input." in said) == (word == "refuted")
    assert "whoever rebuilds it" not in said
    detail, rebuilt = rebuilt_in(folder / "p.json")
    assert rebuilt.contradicted == (word == "refuted") == (finished.returncode == 1)
    assert "this guarantee is used for draws from the prior only" in rebuilt.guarantee.assumptions[0].text
    assert [attack.method.startswith("on the real inputs") for attack in rebuilt.attacks] == [False, False, False, True]
    assert detail["prior"]["verdict"] == word
    assert detail["prior"]["on_data"]["value"] < 0.5 * rebuilt.guarantee.value


def test_inputs_in_a_few_dimensions_refute_a_prior_of_many(small, monkeypatch):
    """Real inputs lie on a line through the prior's mean, where an attacker who knows it rebuilds them.

    Networks learn from more draws of these than in other tests, and from fewer than usual.
    """
    features, _ = small
    rng = np.random.default_rng(0)
    on_a_line = (rng.uniform(-1.7, 1.7, size=(1000, 1)) @ rng.normal(size=(1, 16))).reshape(-1, 1, 4, 4)
    prior = Mixture(np.zeros((1, 16)), 1.0, shape=(1, 4, 4), description="sixteen standard normal numbers")
    options = {"method": "bayes", "prior": prior, "steps": 2}
    with monkeypatch.context() as patch:
        patch.setattr("tacit.reconstruction.realism._KNOWN", 4000)
        patch.setattr("tacit.reconstruction.realism._TRAINED", 20_000)
        refuted = bound(features, on_a_line[:500], "gaussian:0.2", public=on_a_line[500:], **options)
    assert refuted.detail["prior"]["verdict"] == "refuted"
    assert refuted.summary[0].startswith("The prior is refuted")
    assert refuted.contradicted
    drawn = prior.sample(100, seed=5).numpy()
    held, again = (bound(features, drawn, "laplace:0.2", **options) for _ in range(2))
    assert held.detail["prior"]["verdict"] == "not refuted"
    assert held.summary[0].startswith("Between ")
    assert "the best of 3 attacks" in held.comparisons[0].attacks[-1].method
    assert not held.contradicted
    assert held.to_json() == again.to_json()


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        (("--prior", "gaussian"), "--public must be given for --prior gaussian"),
        (("--prior", "cauchy"), "must be auto, gaussian, spectrum, jittered:SIZE or generator:FILE, got 'cauchy'"),
        (("--prior", "jittered:0.1"), "--public must be given for --prior jittered:0.1"),
        (("--prior", "jittered:few", "--public", "data.npz"), "--prior must be jittered:SIZE"),
        (("--prior", "jittered:0", "--public", "data.npz"), "jitter must be"),
        (("--prior", "generator:nowhere.safetensors"), "--prior must name a file that exists"),
        (("--steps", "4"), "--steps must be left out: only chains take it, which need --public or --prior"),
        (("--public", "data.npz", "--steps", "3"), "must be even"),
        (("--public", "data.npz", "--seconds", "-1"), "--seconds must be"),
    ],
)
def test_unusable_priors_are_one_line(run_here, extra, match):
    assert_one_line_error(run_here("--method", "bayes", *extra), match)


def test_progress_tells_how_far_chains_are(run_here, monkeypatch):
    monkeypatch.setattr("tacit.cli.progress.LINE_EVERY", 0.0)
    chains = ("--public", "data.npz", "--prior", "jittered:0.3", "--method", "bayes", "--steps", "4")
    finished = run_here(*chains)
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "10 equally likely public inputs, each entry moved by a Gaussian of standard deviation 0.3" in said
    lines = finished.stderr.splitlines()
    assert re.fullmatch(r"0 % done, at most 2 minutes left: rebuilding the input", lines[0])
    shares = [int(line.split()[-2]) for line in lines if "chains from the true input" in line]
    assert shares == sorted(set(shares))
    assert shares[-1] == 100


def test_seconds_decide_how_many_steps_are_taken(small, correlated):
    features, _ = small
    images = correlated[:, :, :4, :4]
    options = {"method": "bayes", "public": images[:1000]}
    found = bound(features, images[1000:1100], "gaussian:1", seconds=1, **options)
    assert found.detail["prior"]["steps"] >= 2


def test_too_few_inputs_to_try_an_attack_on_are_said_to_be_too_few(folder, run_here):
    rows = np.random.default_rng(1).uniform(size=(60, 1, 6, 6))
    np.save(folder / "public.npy", rows[:40])
    np.save(folder / "few.npy", rows[40:])
    finished = run_here("--public", "public.npy", "--method", "bayes", "--steps", "2", data="few.npy")
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "Whether real inputs are like that was not checked: there are fewer than 30" in said


def test_equal_inputs_are_one_candidate_in_the_command_too(folder, run_here):
    np.save(folder / "equal.npy", np.repeat(np.random.default_rng(0).uniform(size=(2, 1, 6, 6)), 50, axis=0))
    given = {"noise": "gaussian:0.01", "data": "equal.npy"}
    finished = run_here("--method", "identify,bayes", "--json", "e.json", **given)
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "Somebody who holds these 100 inputs (2 different ones) names the one released" in said
    assert "guessing reaches 50 %." in said
    naming = Comparison.from_dict(json.loads((folder / "e.json").read_text())["comparisons"][0])
    assert naming.guarantee.value == 1.0
    assert naming.nearest.value == 1.0


def test_unusable_public_inputs_are_one_line(folder, run_here):
    np.save(folder / "wide.npy", np.random.default_rng(0).uniform(size=(4, 1, 7, 7)))
    assert_one_line_error(run_here("--public", "nowhere.npy"), "--public must name a file that exists")
    assert_one_line_error(run_here("--public", "wide.npy"), "the shape of an input in --public must be that in --data")
    assert_one_line_error(
        run_here("--public", "data.npz", "--method", "hcr"),
        "--method must include bayes, the only one that uses --public and --prior",
    )
    assert not (folder / "out").exists()


def test_vectors_are_bounded_entry_by_entry(folder, run_here):
    (folder / "model.py").write_text("from torch import nn\n\ndef features():\n    return nn.Identity()\n")
    save_file({}, folder / "nothing.safetensors")
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(20, 6)))
    options = {"weights": "nothing.safetensors", "data": "vectors.npy"}
    finished = run_here("--limit", "2", "--json", "v.json", "--report", "v.html", **options)
    assert finished.returncode == 0, finished.stderr
    assert json.loads((folder / "v.json").read_text())["detail"]["basis"] == "pixel"
    assert_one_line_error(run_here("--basis", "dct", **options), "--basis must be pixel for vectors")


def test_a_folder_in_which_nothing_was_finished_may_be_used_again(run_here):
    assert_one_line_error(run_here("--method", "hcr", "--seed", "-1"), "seed must be")
    assert run_here("--method", "multi-point", "--limit", "1").returncode == 0


def test_weights_of_torch_and_a_folder_of_images_will_do(folder, run_here):
    from PIL import Image

    (folder / "images").mkdir()
    for number, image in enumerate(np.random.default_rng(0).integers(0, 256, size=(5, 6, 6), dtype=np.uint8)):
        Image.fromarray(image).save(folder / "images" / f"{number}.png")
    finished = run_here("--method", "multi-point,identify", "--limit", "2", weights="weights.pt", data="images")
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "5 inputs of shape (1, 6, 6), released as features with noise Gaussian(0.5), 2 of them bounded" in said
    assert "over 5 equally likely inputs" in " ".join(finished.stdout.split())


def test_images_keep_their_16_bits(folder):
    from PIL import Image

    (folder / "deep").mkdir()
    entries = np.random.default_rng(0).integers(0, 2**16, size=(2, 5, 5), dtype=np.uint16)
    for number, image in enumerate(entries):
        Image.fromarray(image).save(folder / "deep" / f"{number}.png")
    np.testing.assert_allclose(inputs_of(folder / "deep")[:, 0], entries / 65535, rtol=1e-15)
    Image.fromarray(np.zeros((5, 5, 3), dtype=np.uint8)).save(folder / "deep" / "colour.png")
    with pytest.raises(InputError, match="all grey or all in colour"):
        inputs_of(folder / "deep")
    (folder / "deep" / "half.png").write_bytes((folder / "deep" / "0.png").read_bytes()[:60])
    with pytest.raises(InputError, match=r"half\.png"):
        inputs_of(folder / "deep")


def test_weights_in_bfloat16_will_do_where_their_error_is_allowed_for(run_here):
    brain = {"model": "model.py:brain", "weights": None}
    too_little = ("--feature-error", "1e-6")
    assert_one_line_error(
        run_here("--method", "identify", *too_little, **brain), "the measured error of this model in bfloat16"
    )
    for given in ((), ("--feature-error", "0.05"), ("--feature-error", "1e-13")):
        finished = run_here("--method", "identify", *given, "--out", f"out{len(given)}{given[-1:]}", **brain)
        assert finished.returncode == 0, finished.stderr
        assert f"to a relative error of {float(given[1]) if given else 0.0625:.2g}" in " ".join(finished.stdout.split())


def test_flat_inputs_have_every_method_in_pixels(folder, run_here):
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=(6, 5)))
    finished = run_here("--basis", "pixel", model="model.py:flat", weights=None, data="rows.npy")
    assert finished.returncode == 0, finished.stderr
    assert all(f"\n{number}. " in finished.stdout for number in range(1, 6))


@pytest.mark.parametrize("noise", ["laplace:1", "uniform:5"])
def test_of_all_methods_those_run_that_hold_for_the_noise(folder, run_here, noise):
    finished = run_here("--limit", "2", "--json", "l.json", "--report", "l.html", noise=noise)
    assert finished.returncode == 0, finished.stderr
    words = " ".join(finished.stdout.split())
    assert "only Gaussian noise has a theorem for that" in words
    assert ("The hcr bounds are 0 for at least half of all modes and say nothing: under uniform" in words) == (
        noise == "uniform:5"
    )
    assert len(json.loads((folder / "l.json").read_text())["comparisons"]) == 2


def test_bounds_that_are_all_infinite_or_0_are_told_and_not_drawn(folder, run_here):
    finished = run_here(
        "--method", "multi-point", "--limit", "2", "--report", "d.html", model="model.py:dead", weights=None
    )
    assert finished.returncode == 0, finished.stderr
    assert "no adversary of this class exists" in " ".join(finished.stdout.split())
    page = (folder / "d.html").read_text()
    assert "Bounds over all modes" not in page


def test_a_model_that_hides_its_derivative_is_refused_by_the_published_search(run_here):
    assert_one_line_error(
        run_here("--method", "hcr", model="model.py:rounded", weights=None), "the model rounds or is flat here"
    )


def test_one_input_alone_is_seen_against_all(folder, run_here):
    finished = run_here(
        "--method", "multi-point,two-point", "--limit", "1", "--report", "one.html", "--json", "one.json"
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads((folder / "one.json").read_text())["detail"]["prior_std"] > 0


def test_a_run_killed_at_a_random_moment_and_resumed_gives_identical_results(folder, run_here):
    methods = ("--method", "multi-point,hcr,two-point", "--quiet")
    whole = run_here(*methods, "--out", "whole", "--json", "whole.json")
    assert whole.returncode == 0, whole.stderr
    dice = random.Random(os.urandom(8))  # noqa: S311 — any moment will do, and a new one every time
    done = dice.randrange(9)  # of nine batches
    with subprocess.Popen(command(*methods, "--resume", "--json", "parts.json"), cwd=folder) as running:
        while running.poll() is None and len(list((folder / "out").glob("*.npy"))) < done:
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
    finished = run_here(*methods, "--resume", "--json", "parts.json")
    assert finished.returncode == 0, finished.stderr
    one, other = (json.loads((folder / name).read_text()) for name in ("whole.json", "parts.json"))
    assert one["comparisons"] == other["comparisons"]
    for path in (folder / "whole").glob("*.npy"):
        assert path.read_bytes() == (folder / "out" / path.name).read_bytes()


def test_a_release_in_float32_has_smaller_bounds_and_says_so(folder, run_here):
    medians = {}
    for error, given in (("1e-13", ("--feature-error", "1e-13")), ("1e-6", ())):  # models release float32 unless told
        quick = ("--method", "multi-point", "--limit", "2", "--out", error)
        finished = run_here(*quick, *given, "--json", "out.json")
        assert finished.returncode == 0, finished.stderr
        assert f"to a relative error of {float(error):.2g}" in " ".join(finished.stdout.split())
        medians[error] = json.loads((folder / "out.json").read_text())["detail"]["median"]["multi-point"]
    assert 0 < medians["1e-6"] < medians["1e-13"]


def test_a_log_hears_how_far_a_long_run_is(run_here, monkeypatch):
    quick = ("--method", "multi-point", "--limit", "8")
    assert run_here(*quick).stderr == ""
    monkeypatch.setattr("tacit.cli.progress.LINE_EVERY", 0.0)
    finished = run_here(*quick, "--resume")
    first, second = finished.stderr.splitlines()
    assert re.fullmatch(r"\d+ % done, at most .+ left: multi-point, inputs 1 to 4 of 8", first)
    assert re.fullmatch(r"5\d % done, at most .+ left: multi-point, inputs 5 to 8 of 8", second)
    assert run_here(*quick, "--resume", "--quiet").stderr == ""


def test_finished_batches_are_not_repeated(folder, run_here):
    assert run_here("--method", "multi-point").returncode == 0
    marked = folder / "out" / "multi-point-00001.npy"
    buffer = io.BytesIO()
    np.save(buffer, np.full((4, 1, 6, 6), 123.0))
    run_folder.write(marked, buffer.getvalue())
    finished = run_here("--method", "multi-point", "--resume")
    assert finished.returncode == 0
    assert np.load(marked).max() == 123.0


def test_the_command_for_the_rest_runs_and_writes_the_page_again(folder, here, run_here):
    assert run_here("--seconds", "0.01", "--report", "its page.html", "--json", "out.json").returncode == 0
    [command] = [change["command"] for change in json.loads((folder / "out.json").read_text())["changes"]]
    first = (folder / "its page.html").read_text()
    assert here(folder, *shlex.split(command)[1:]).returncode == 0
    assert (folder / "its page.html").read_text() != first


def test_batches_of_another_run_or_damaged_ones_are_refused(folder, run_here):
    """Ten times larger numbers once moved a guarantee from 0.998 to 9.98, and another noise's were taken for these."""
    quick = ("--method", "multi-point", "--limit", "4", "--quiet")
    assert run_here(*quick).returncode == 0
    assert run_here(*quick, "--out", "other", noise="gaussian:5").returncode == 0
    batch, foreign = (folder / name / "multi-point-00000.npy" for name in ("out", "other"))
    good = batch.read_bytes()
    batch.write_bytes(foreign.read_bytes())
    assert_one_line_error(run_here(*quick, "--resume"), "a kept file must be as this task wrote it")
    batch.unlink()
    np.save(batch, 10 * np.load(io.BytesIO(good)))
    assert_one_line_error(run_here(*quick, "--resume"), "a kept file must be as this task wrote it")
    batch.write_bytes(good)
    assert run_here(*quick, "--resume").returncode == 0
    (folder / "out" / "task.json").unlink()
    assert_one_line_error(run_here(*quick, "--resume"), "without the task.json that says what they belong to")
    assert not (folder / "out" / "task.json").exists()


def test_a_folder_of_another_run_is_refused(folder, run_here):
    quick = ("--method", "multi-point", "--limit", "4")
    assert run_here(*quick).returncode == 0
    assert_one_line_error(run_here(*quick), "--out must be new unless a run is resumed there")
    assert_one_line_error(run_here(*quick, "--resume", noise="gaussian:0.6"), "differs in noise")
    (folder / "out" / "multi-point-00000.npy").write_bytes(b"half a file")
    assert_one_line_error(run_here(*quick, "--resume"), "delete the file")


def test_a_run_is_not_resumed_with_another_covariance(folder):
    """Noises of one kind and size, which print the same numbers but for a fingerprint."""
    np.save(folder / "flat.npy", np.random.default_rng(0).normal(size=(2, 5)))
    slope = np.random.default_rng(1).normal(size=(4, 4))
    covariances = [np.eye(4) + 0.1 * slope @ slope.T]
    covariances += [covariances[0].copy(), covariances[0][::-1, ::-1].copy()]
    covariances[1][0, 0] *= 1 + 1e-12

    def run_with(covariance, **options):
        given = {"data": folder / "flat.npy", "out": folder / "out", "method": "multi-point", "progress": False}
        weights = {"weights": folder / "flat.pt"}
        return bound_files(
            f"{folder / 'model.py'}:flat", noise=Gaussian(covariance=covariance), **given, **weights, **options
        )

    torch.manual_seed(0)
    torch.save(nn.Linear(5, 4).state_dict(), folder / "flat.pt")
    run_with(covariances[0])
    for other in covariances[1:]:
        with pytest.raises(InputError, match="differs in noise"):
            run_with(other, resume=True)
    run_with(covariances[0], resume=True)


def test_a_run_is_not_resumed_with_another_prior(folder, run_here):
    public = np.random.default_rng(1).normal(size=(120, 3))
    np.save(folder / "public.npy", public)
    np.save(folder / "flat.npy", public[:5])
    for seed in (0, 1):
        train_generator(public, codes=2, steps=2, seed=seed).save(folder / f"{seed}.safetensors")

    def with_prior(*prior):
        # There is no time for the second method; the folder belongs to its prior all the same.
        quick = ("--method", "identify,bayes", "--limit", "1", "--seconds", "0.01", "--quiet", *prior)
        return run_here(*quick, model="model.py:identity", weights=None, data="flat.npy")

    assert with_prior("--prior", "generator:0.safetensors").returncode == 0
    for other in (("--prior", "generator:1.safetensors"), ("--prior", "gaussian", "--public", "public.npy")):
        again = with_prior(*other, "--resume")
        assert_one_line_error(again, "must belong to the same task, which differs in prior")


@pytest.mark.parametrize("factory", ["unseeded", "scaled"])
def test_a_model_that_is_another_every_time_is_not_resumed(run_here, factory):
    quick = ("--method", "multi-point", "--limit", "2")
    first = run_here(*quick, model=f"model.py:{factory}", weights=None)
    assert first.returncode == 0, first.stderr
    again = run_here(*quick, "--resume", model=f"model.py:{factory}", weights=None)
    assert_one_line_error(again, "differs in weights")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def test_rounded_noise_is_named_by_its_step(folder, run_here):
    run_here("--method", "multi-point", "--limit", "2", "--json", "r.json", noise="quantized:0.25:gaussian:0.5")
    assert json.loads((folder / "r.json").read_text())["detail"]["noise"] == "Quantized(Gaussian(0.5), 0.25)"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"model": "nowhere.py:features"}, "MODEL must name a file that exists, got"),
        (
            {"model": "model.py:missing"},
            "MODEL must name a function of model.py, got 'model.py:missing'; it has features, broken",
        ),
        ({"model": "model.py:broken"}, "RuntimeError: no such"),
        ({"model": "model.py:number"}, "must return a torch module"),
        ({"model": "model.py"}, "MODEL must be FILE.py:FUNCTION"),
        ({"weights": "nowhere.safetensors"}, "--weights must name a file that exists, got 'nowhere.safetensors'"),
        ({"weights": "data.npz"}, "--weights"),
        ({"weights": "evil.pt"}, "--weights"),
        ({"weights": "other.safetensors"}, "--weights must fit the model"),
        ({"data": "nowhere.npy"}, "--data must name a file that exists, got 'nowhere.npy'"),
        ({"data": "model.py"}, "--data must be a folder, .npy or .npz"),
        ({"data": "evil.npy"}, "--data must be a readable file"),
        ({"data": "two.npz"}, "must hold one array"),
        ({"data": "nan.npy"}, "finite real numbers"),
        ({"data": "one.npy"}, "two inputs or more"),
        ({"data": "flat.npy"}, "must not be the same number everywhere"),
        ({"data": "empty"}, "must hold images"),
        ({"data": "wide.npy"}, "MODEL must take a batch of --data, floats of shape (1, 7, 7)"),
        ({"noise": "gaussian"}, "--noise must be gaussian:SIGMA"),
        ({"noise": "cauchy:1"}, "--noise must be gaussian:SIGMA"),
        ({"noise": "gaussian:-1"}, "the size in --noise must be a finite number > 0"),
        ({"noise": "quantized:0.5"}, "--noise must be gaussian:SIGMA"),
        ({"noise": "quantized:1e-9:gaussian:1"}, "the size in --noise must be a finite number ≥ 1.52588e-05"),
    ],
)
def test_unusable_files_and_options_are_one_line(folder, run_here, options, match):
    (folder / "empty").mkdir()
    (folder / "evil.pt").write_bytes(pickle.dumps(Evil()))
    (folder / "evil.npy").write_bytes(pickle.dumps(Evil()))
    save_file({"a": torch.zeros(2)}, folder / "other.safetensors")
    np.savez(folder / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    np.save(folder / "nan.npy", np.full((2, 1, 6, 6), np.nan))
    np.save(folder / "one.npy", np.zeros((1, 1, 6, 6)))
    np.save(folder / "wide.npy", np.random.default_rng(0).uniform(size=(4, 1, 7, 7)))
    np.save(folder / "flat.npy", np.ones((4, 1, 6, 6)))
    assert_one_line_error(run_here("--method", "multi-point", **options), match)
    assert not (folder / "pwned").exists()


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        (("--method", "guess"), "--method must be one of"),
        (("--basis", "fourier"), "--basis must be one of"),
        (("--feature-error", "2"), "--feature-error must be"),
        (("--limit", "0"), "--limit must be a whole number"),
        (("--seed", "-1", "--method", "hcr"), "--seed must be a whole number"),
        (("--out", "model.py"), "--out must be a folder"),
        (("--method", "multi-point", "--noise", "laplace:1"), "--method multi-point must have Gaussian noise"),
        (("--method", "bayes", "--noise", "laplace:1"), "use two-point,hcr, or bayes with --public"),
    ],
)
def test_unusable_options_are_one_line(run_here, extra, match):
    assert_one_line_error(run_here(*extra), match)


def test_weights_that_nobody_gave_are_said_to_be_those_of_the_function(folder, run_here):
    quick = ("--method", "identify", "--json", "w.json")
    built = "the module is released as model.py:features builds it: no other weights are loaded into it"
    finished = run_here(*quick, weights=None)
    assert "No weights were given: everything here is about the module as model.py:features" in " ".join(
        finished.stdout.split()
    )
    (naming,) = json.loads((folder / "w.json").read_text())["comparisons"]
    assert naming["guarantee"]["assumptions"][0]["text"] == built
    assert "No weights were given" not in run_here(*quick, "--out", "given").stdout
    assert (
        "No weights were given"
        not in run_here(*quick, "--out", "rounded", model="model.py:rounded", weights=None).stdout
    )


OTHER = Mixture(np.zeros((1, 9)), 1.0, shape=(9,), description="nine numbers")


@pytest.fixture
def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8)), np.random.default_rng(0).uniform(size=(6, 1, 4, 4))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"public": np.ones((4, 1, 3, 3)) * np.arange(3)},
            "the shape of an input in `public` must be that in `inputs`",
        ),
        ({"public": np.ones((1, 1, 4, 4))}, "^public must hold two inputs"),
        (
            {"prior": nn.Identity()},
            "^prior must be auto, gaussian, spectrum, jittered:SIZE or generator:FILE, or a Mixture",
        ),
        ({"prior": OTHER}, "^the shape of an input of `prior` must be that in `inputs`"),
        ({"limit": 0}, "^limit must be"),
        ({"method": "guess"}, "^method must be one of"),
        ({"noise": "cauchy:1"}, "^noise must be gaussian:SIGMA"),
        ({"features": nn.Linear(3, 3)}, "^features must take a batch of `inputs`"),
    ],
)
def test_in_python_errors_name_parameters(small, options, match):
    features, inputs = small
    with pytest.raises(InputError, match=match):
        bound(**{"features": features, "inputs": inputs, "noise": "gaussian:1", **options})


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_python_a_terminal_sees_progress_unless_it_is_silenced(small, monkeypatch):
    def written(**options):
        monkeypatch.setattr(sys, "stderr", options.pop("stream", Terminal()))
        bound(*small, "gaussian:1", method="identify,multi-point", **options)
        return sys.stderr.getvalue()

    lines = [line.strip() for line in written().split("\r") if line.strip()]
    assert re.fullmatch(r"0 % done, at most 2 minutes left: naming the input", lines[0])
    assert [line.partition("left: ")[2] for line in lines] == [
        "naming the input",
        *(f"naming your inputs with {size} times the noise" for size in ("1", "2", "0.5", "4", "0.25")),
        "multi-point, inputs 1 to 4 of 6",
        "multi-point, inputs 5 to 6 of 6",
    ]
    heard = []
    assert written(progress=False) == written(stream=io.StringIO()) == written(advance=heard.append) == ""
    assert [line.partition("left: ")[2] for line in heard] == [line.partition("left: ")[2] for line in lines]


class Clock:
    """A clock that goes on by a second whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def timed(small, seconds, **options):
    """The report of a run by such a clock, and what it said."""
    from tacit.reconstruction.study import run

    features, inputs = small
    task = run._task(
        features,
        inputs,
        "gaussian:1",
        **{
            "public": None,
            "prior": "auto",
            "steps": None,
            "method": "all",
            "basis": "auto",
            "limit": None,
            "seed": 0,
            "feature_error": None,
            "releases": 1,
            "labels": None,
            "head": None,
            **options,
        },
        seconds=seconds,
        names=("features", "inputs"),
    )
    heard = []
    # No page is looked at, and its pictures take longer than all else.
    return run._run(replace(task, pictures=False), features, inputs, "inputs", heard.append, clock=Clock()), heard


def test_time_leaves_out_last_what_says_least_about_real_attackers(small):
    """However little time there is, the first method is done; the others are named with what runs them."""
    one, _ = timed(small, 1)
    assert one.detail["time"] == {
        "seconds": 1,
        "bounded": {},
        "left_out": ("bayes", "hcr", "multi-point", "two-point"),
    }
    assert [comparison.guarantee.quantity for comparison in one.comparisons] == [
        "probability of naming the released input"
    ]
    (change,) = [change for change in one.changes if "no time" in change.what]
    assert change.command == 'bound(…, method="bayes,two-point,multi-point,hcr", seconds=10)'
    assert "There was no time for all of bayes, two-point, multi-point, hcr." in one.summary
    done = [len(timed(small, seconds)[0].comparisons) for seconds in (20, 100, 1000, 100_000)]
    assert done == sorted(done)
    assert done[-1] == 5


def test_a_run_that_time_cut_short_is_repeated_exactly_by_its_numbers(small):
    whole, heard = timed(small, 1_000_000)
    assert not whole.detail["time"]["left_out"]
    assert whole.sliders
    assert [line.partition("left: ")[2].split(",")[0] for line in heard][:2] == [
        "naming the input",
        "rebuilding the input",
    ]
    low, high = 0, 5000
    while high - low > 1:
        seconds = (low + high) // 2
        cut, _ = timed(small, seconds)
        bounded = cut.detail["time"]["bounded"].get("two-point", 0)
        if bounded == 4:
            break
        low, high = (seconds, high) if bounded < 4 else (low, seconds)
    else:
        raise AssertionError("no time cuts the bounds after one batch")
    features, inputs = small
    again = bound(features, inputs, "gaussian:1", method="two-point", limit=4)
    (two_point,) = [item for item in cut.comparisons if "worse of two" in item.guarantee.quantity]
    assert two_point == again.comparisons[0]


def test_the_command_for_what_there_was_no_time_for_runs(folder, run_here, here):
    """With a prior, several releases and another seed: what it prints is what one may type."""
    given = ("--public", "data.npz", "--releases", "2", "--seed", "3", "--method", "identify,bayes,two-point")
    cut = run_here(*given, "--seconds", "0.01", "--json", "cut.json")
    assert cut.returncode == 0, cut.stderr
    (command,) = [change["command"] for change in json.loads((folder / "cut.json").read_text())["changes"]]
    words = shlex.split(command)
    assert {"--releases", "--seed", "--public", "--resume"} <= set(words)
    finished = here(folder, *words[1:], "--quiet")
    assert finished.returncode in (0, 1), finished.stderr


def test_steps_and_limits_are_kept_whatever_the_time(small):
    made, _ = timed(small, 1, method="multi-point", limit=5)
    assert made.detail["time"]["bounded"] == {"multi-point": 5}
    assert not made.detail["time"]["left_out"]


def test_labels_and_a_head_show_what_noise_costs(folder, run_here):
    head = "\ndef head():\n    torch.manual_seed(1)\n    return nn.Linear(40, 3)\n"
    (folder / "model.py").write_text(MODEL + head)
    images = np.random.default_rng(0).uniform(size=(40, 1, 10, 10))
    np.save(folder / "images.npy", images)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(100, 48), nn.ReLU(), nn.Linear(48, 40))
    torch.manual_seed(1)
    with torch.no_grad():
        labels = nn.Linear(40, 3)(network(torch.tensor(images).float())).argmax(dim=1).numpy()
    np.save(folder / "labels.npy", labels)
    wide = {"model": "model.py:wide", "weights": None}
    given = ("--labels", "labels.npy", "--head", "model.py:head", "--method", "identify")
    finished = run_here(*given, "--json", "h.json", "--report", "h.html", data="images.npy", **wide)
    assert finished.returncode == 0, finished.stderr
    data = json.loads((folder / "h.json").read_text())
    sizes = data["detail"]["sizes"]
    assert [one["size"] for one in sizes] == [0.25, 0.5, 1, 2, 4]
    assert sizes[0]["accuracy"] > sizes[-1]["accuracy"]
    assert sizes[0]["named_upper"] > sizes[-1]["named_upper"]
    assert data["verdicts"][-1]["about"] == "Use: inputs classified correctly"
    assert "Without noise it is 100 %" in data["verdicts"][-1]["reason"]
    page = (folder / "h.html").read_text()
    for words in ("All positions as a table", "What to change, and what it costs"):
        assert words in page
    assert any("accuracy" in change["price"] for change in data["changes"])
    assert page.count("data:image/svg+xml") == 10  # curve and images at five sizes of the noise
    assert unfolded_words(page) <= 900
    np.save(folder / "few.npy", labels[:5])
    np.save(folder / "far.npy", labels + 3)
    wrong = {
        ("--labels", "labels.npy"): "--head must be given",
        ("--head", "model.py:head"): "--labels must be given",
        ("--labels", "few.npy", "--head", "model.py:head"): "--labels must be 40 whole numbers",
        ("--labels", "far.npy", "--head", "model.py:head"): "--labels must be from 0 to 2",
        ("--labels", "labels.npy", "--head", "model.py:flat"): "--head must turn features into scores",
        ("--labels", "nowhere.npy", "--head", "model.py:head"): "--labels must name a file that exists",
    }
    for options, match in wrong.items():
        assert_one_line_error(run_here(*options, "--out", "wrong", data="images.npy", **wide), match)


def test_a_prior_that_too_few_inputs_check_is_no_reason_to_call_it_fine():
    rng = np.random.default_rng(0)
    options = {"method": "bayes", "public": rng.normal(size=(300, 1, 4, 4)), "steps": 4, "progress": False}
    (few,), (many,) = (
        bound(nn.Flatten(), rng.normal(size=(count, 1, 4, 4)), "gaussian:3", **options).verdicts for count in (20, 200)
    )
    assert (few.level, many.level) == ("weak", "fine")
    assert "too few inputs to check the prior" in few.reason


def test_numbers_for_every_size_of_the_noise_come_before_any_picture(monkeypatch):
    """Pictures take most of the time; where it ends among them, the slider still has all of its positions."""
    now = [0.0]
    monkeypatch.setattr(Budget, "spent", property(lambda _: now[0]))
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 8))
    images = np.random.default_rng(0).uniform(size=(20, 1, 4, 4))

    def advance(line):
        if "rebuilding your inputs with 2 times" in line:
            now[0] = 1000.0

    report = bound(network, images, "gaussian:1", method="identify", advance=advance)
    [slider] = report.sliders
    assert [len(step.pictures) for step in slider.steps] == [1, 1, 2, 1, 1]  # a curve each, and images with 1 × yours
    assert "there was no time for them" in slider.caption
