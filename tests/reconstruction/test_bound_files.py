"""`tacit bound` as people run it: real files, real kills."""

import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from commands import assert_one_line_error
from safetensors.torch import save_file
from torch import nn

from tacit import Comparison, InputError, bound
from tacit.reconstruction.study.inputs import inputs_of
from tacit.runtime import run_folder

MODEL = """
import torch
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 48), nn.ReLU(), nn.Linear(48, 40))

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
    network = nn.Sequential(nn.Flatten(), nn.Linear(100, 48), nn.ReLU(), nn.Linear(48, 40))
    (tmp_path / "model.py").write_text(MODEL)
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    np.savez(tmp_path / "data.npz", inputs=np.random.default_rng(0).uniform(size=(10, 1, 10, 10)))
    return tmp_path


def command(*extra, model="model.py:features", weights="weights.safetensors", data="data.npz", noise=None):
    return [
        *(sys.executable, "-m", "tacit", "bound", model, *(("--weights", weights) if weights else ()), "--data", data),
        *("--noise", noise or "gaussian:0.5", *(() if "--out" in extra else ("--out", "out")), *extra),
    ]


def run(folder, *extra, **options):
    return subprocess.run(command(*extra, **options), cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def run_here(folder, here):
    return lambda *extra, **options: here(folder, *command(*extra, **options)[3:])


def test_all_methods_on_one_command(folder):
    finished = run(folder, "--json", "out.json", "--report", "out.html")
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
    assert page.count("data:image/svg+xml") == 3
    assert len(list((folder / "out").glob("multi-point-*.npy"))) == 3


@pytest.mark.parametrize(
    ("noise", "first"),
    [
        ("gaussian:0.01", "Most inputs are given away. Somebody who holds these 10 inputs names"),
        ("quantized:50:gaussian:0.01", "It is not ruled out that most inputs are given away. Somebody"),
        ("gaussian:5", "Somebody who holds these 10 inputs names the one released with probability at most 0."),
    ],
)
def test_the_report_begins_with_what_attackers_do_and_says_when_it_is_weak(run_here, noise, first):
    finished = run_here("--limit", "1", "--method", "multi-point, identify", noise=noise)
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split("=\n\n")[1].split())
    assert said.startswith(first)
    assert "guessing reaches 0.100. Do not decide by this: for half of all modes, unbiased estimates" in said


def test_all_is_what_the_noise_allows_and_the_rest_is_said_to_be_left_out(run_here):
    finished = run_here("--limit", "1", noise="laplace:0.5")
    assert finished.returncode == 0, finished.stderr
    assert "Not computed: how often somebody who holds a list of inputs can name the one released" in " ".join(
        finished.stdout.split()
    )


@pytest.mark.parametrize("noise", ["gaussian:1", "laplace:1"])
def test_public_inputs_say_what_somebody_knows_who_does_not_hold_the_data(folder, run_here, noise):
    np.save(folder / "public.npy", np.random.default_rng(1).uniform(size=(40, 1, 10, 10)))
    given = {"noise": noise}
    finished = run_here("--public", "public.npy", "--limit", "1", "--json", "p.json", **given)
    assert finished.returncode == 0, finished.stderr
    words = " ".join(finished.stdout.split())
    assert "For inputs drawn from a Gaussian with the mean and covariance of the public ones, anyone" in words
    assert "This bound is about draws from that Gaussian, not about the real inputs" in words
    assert "refuted" not in words
    data = json.loads((folder / "p.json").read_text())
    (rebuilt,) = (item for item in data["comparisons"] if "rebuilt" in item["guarantee"]["quantity"])
    rebuilt = Comparison.from_dict(rebuilt)
    assert "a Gaussian fitted to 40 public inputs" in str(rebuilt.guarantee.adversary)
    # 40 features of 100 entries: three fifths of the prior are out of sight but for what its covariance tells of them.
    assert 0.3 < rebuilt.guarantee.value <= rebuilt.nearest.low
    assert not rebuilt.contradicted


@pytest.mark.parametrize(
    ("held", "noise", "word"),
    [
        (slice(1000, None), "gaussian:0.02", "refuted"),
        (slice(1000, None), "laplace:0.02", "refuted"),
        (slice(1000, None), "uniform:0.2", "refuted"),
        (slice(0, 40), "gaussian:0.02", "in doubt"),
    ],
)
def test_a_prior_that_real_inputs_refute_is_said_to_be_refuted_first(folder, run_here, held, noise, word):
    """A hundred pictures, a little blurred: no Gaussian, and whoever holds some of the kind rebuilds the others."""
    rng = np.random.default_rng(3)
    kinds = rng.uniform(size=(100, 1, 10, 10))
    blurred = kinds[rng.integers(100, size=1900)] + 0.01 * rng.normal(size=(1900, 1, 10, 10))
    np.save(folder / "public.npy", blurred[:1000])
    np.save(folder / "kind.npy", blurred[held])
    given = {"noise": noise, "data": "kind.npy"}
    finished = run_here("--public", "public.npy", "--method", "bayes", "--json", "p.json", **given)
    said = " ".join(finished.stdout.split("=\n\n")[1].split())
    assert said.startswith(f"The prior is {word}: an attack with the public inputs rebuilt the real ones with an error")
    data = json.loads((folder / "p.json").read_text())
    (rebuilt,) = (Comparison.from_dict(item) for item in data["comparisons"])
    assert rebuilt.contradicted == (word == "refuted") == (finished.returncode == 1)
    assert [attack.method.endswith("on the real inputs") for attack in rebuilt.attacks] == [False, True]
    assert data["detail"]["on_data"]["value"] < 0.5 * rebuilt.guarantee.value


def test_too_few_inputs_to_try_an_attack_on_are_said_to_be_too_few(folder, run_here):
    rows = np.random.default_rng(1).uniform(size=(60, 1, 10, 10))
    np.save(folder / "public.npy", rows[:40])
    np.save(folder / "few.npy", rows[40:])
    finished = run_here("--public", "public.npy", "--method", "bayes", data="few.npy")
    assert finished.returncode == 0, finished.stderr
    assert "No attack was tried on the real inputs: there are fewer than 30" in " ".join(finished.stdout.split())


def test_equal_inputs_are_one_candidate_in_the_command_too(folder, run_here):
    np.save(folder / "equal.npy", np.repeat(np.random.default_rng(0).uniform(size=(2, 1, 10, 10)), 50, axis=0))
    given = {"noise": "gaussian:0.01", "data": "equal.npy"}
    finished = run_here("--method", "identify,bayes", "--json", "e.json", **given)
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "Somebody who holds these 100 inputs (2 different ones) names the one released" in said
    assert "guessing reaches 0.5." in said
    naming = Comparison.from_dict(json.loads((folder / "e.json").read_text())["comparisons"][0])
    assert naming.guarantee.value == 1.0
    assert naming.nearest.value == 1.0


def test_unusable_public_inputs_are_one_line(folder, run_here):
    np.save(folder / "wide.npy", np.random.default_rng(0).uniform(size=(4, 1, 7, 7)))
    assert_one_line_error(run_here("--public", "nowhere.npy"), "--public must be a file that exists, got 'nowhere.npy'")
    assert_one_line_error(run_here("--public", "wide.npy"), "the shape of an input in --public must be that in --data")
    assert_one_line_error(
        run_here("--public", "data.npz", "--method", "hcr"),
        "--method must include bayes, the only one that uses --public",
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
    for number, image in enumerate(np.random.default_rng(0).integers(0, 256, size=(5, 10, 10), dtype=np.uint8)):
        Image.fromarray(image).save(folder / "images" / f"{number}.png")
    finished = run_here("--method", "multi-point,identify", "--limit", "2", weights="weights.pt", data="images")
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "5 inputs of shape (1, 10, 10), released as features with noise Gaussian(0.5), 2 of them bounded" in said
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
    assert "What this means for an image" in page


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


def test_a_run_killed_at_random_moments_and_resumed_gives_identical_results(folder, run_here):
    methods = ("--method", "multi-point,hcr,two-point", "--quiet")
    whole = run_here(*methods, "--out", "whole", "--json", "whole.json")
    assert whole.returncode == 0, whole.stderr
    dice = random.Random(os.urandom(8))  # noqa: S311 — any moment will do, and a new one every time
    for _ in range(2):
        with subprocess.Popen(command(*methods, "--resume", "--json", "parts.json"), cwd=folder) as running:
            time.sleep(dice.uniform(1.5, 4.0))
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
    assert finished.stderr.splitlines() == [
        "0 of 2 steps done, multi-point, inputs 1 to 4 of 8",
        "1 of 2 steps done, multi-point, inputs 5 to 8 of 8",
    ]
    assert run_here(*quick, "--resume", "--quiet").stderr == ""


def test_finished_batches_are_not_repeated(folder, run_here):
    assert run_here("--method", "multi-point").returncode == 0
    marked = folder / "out" / "multi-point-00001.npy"
    buffer = io.BytesIO()
    np.save(buffer, np.full((4, 1, 10, 10), 123.0))
    run_folder.write(marked, buffer.getvalue())
    finished = run_here("--method", "multi-point", "--resume")
    assert finished.returncode == 0
    assert np.load(marked).max() == 123.0


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
        ({"model": "nowhere.py:features"}, "MODEL must be FILE.py:FUNCTION"),
        (
            {"model": "model.py:missing"},
            "MODEL must name a function of model.py, got 'model.py:missing'; it has features, broken",
        ),
        ({"model": "model.py:broken"}, "RuntimeError: no such"),
        ({"model": "model.py:number"}, "must return a torch module"),
        ({"model": "model.py"}, "MODEL must be FILE.py:FUNCTION"),
        ({"weights": "nowhere.safetensors"}, "--weights must be a file that exists, got 'nowhere.safetensors'"),
        ({"weights": "data.npz"}, "--weights"),
        ({"weights": "evil.pt"}, "--weights"),
        ({"weights": "other.safetensors"}, "--weights must fit the model"),
        ({"data": "nowhere.npy"}, "--data must be a file that exists, got 'nowhere.npy'"),
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
        ({"noise": "gaussian:-1"}, "sigma must be a finite number > 0"),
        ({"noise": "quantized:0.5"}, "--noise must be gaussian:SIGMA"),
        ({"noise": "quantized:1e-9:gaussian:1"}, "step must be a finite number"),
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
    assert lines == [
        "0 of 3 steps done, multi-point, inputs 1 to 4 of 6",
        "1 of 3 steps done, multi-point, inputs 5 to 6 of 6",
        "2 of 3 steps done, naming the input",
    ]
    heard = []
    assert written(progress=False) == written(stream=io.StringIO()) == written(advance=heard.append) == ""
    assert heard == lines
