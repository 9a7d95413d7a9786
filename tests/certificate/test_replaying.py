"""`tacit verify --replay` of bounds: the same run again gives the same claims, and any other run does not."""

import json
import re

import numpy as np
import pytest
import tacit_check
import torch
from commands import assert_one_line_error
from safetensors.torch import save_file
from torch import nn

pytestmark = pytest.mark.usefixtures("quick_attacks")

MODEL = """
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))

def other():
    return features()
"""
BOUND = (
    "bound",
    "model.py:features",
    "--weights",
    "weights.safetensors",
    "--data",
    "data.npz",
    "--noise",
    "gaussian:0.5",
)
REPLAY = ("--replay", "data.npz", "--model", "model.py:features", "--weights", "weights.safetensors")
TEXTS = ("bound", "encoder.py:embed", "--text", "letters.txt", "--public", "other.txt", "--noise", "gaussian:0.3")
ENCODER = """
import numpy as np

def embed():
    return lambda texts: np.array([[len(text), text.count("a"), text.count("e")] for text in texts], dtype=float)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))
    (folder / "model.py").write_text(MODEL)
    save_file(network.state_dict(), folder / "weights.safetensors")
    for name, rows in (("data", 30), ("public", 60)):
        np.savez(folder / f"{name}.npz", np.random.default_rng(rows).uniform(size=(rows, 1, 4, 4)))
    return folder


@pytest.fixture(scope="module", autouse=True)
def _claims_judged_once():
    """Most tests are about one claim of 20 000 values; what the checker said of the very same claim, it says again."""
    real, said = tacit_check.judged, {}

    def judged(claim):
        key = repr(claim)
        if key not in said:
            said[key] = real(claim)
        return said[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tacit_check, "judged", judged)
        yield


@pytest.fixture(scope="module")
def known():
    """The certificates made so far, and what opens them, by their options."""
    return {}


@pytest.fixture
def certificate(files, here, tmp_path, known):
    """A function that writes the certificate of a run, and returns its path."""

    def made(*options):
        path = tmp_path / "c.json"
        opening = path.with_name("c.json.opening")
        if options not in known:
            ran = here(files, *BOUND, "--out", tmp_path / "out", "--certificate", path, "--quiet", *options)
            assert ran.returncode == 0, ran.stderr
            known[options] = path.read_bytes(), opening.read_bytes() if opening.exists() else b""
        for file, content in zip((path, opening), known[options], strict=True):
            file.write_bytes(content)
        return path

    return made


def changed(path, change):
    """The certificate with some of its JSON changed."""
    statement = json.loads(path.read_text())
    change(statement["predicate"])
    path.write_text(json.dumps(statement))
    return path


def test_all_methods_as_far_as_there_was_time(certificate, files, here):
    """Time left out whatever it left out: the replay does what was done, and finds the same."""
    path = certificate("--seconds", "4")
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "The same run gave the same claims:" in found.stdout, found.stdout + found.stderr
    assert found.returncode == 0
    stated = json.loads(path.read_text())["predicate"]["replay"]
    assert set(stated["options"]["done"]) >= {"identify", "bayes"}
    assert set(stated["files"]) == {"replay", "model", "weights"}


PRIOR = ("--public", "public.npz", "--method", "bayes", "--steps", "2", "--prior", "jittered:0.1")


@pytest.mark.parametrize("options", [(), ("--reveal-draws",)], ids=["kept back", "revealed"])
def test_a_prior_from_public_inputs(certificate, files, here, options):
    path = certificate(*PRIOR, *options)
    text = path.read_text()
    opening = [] if options else ["--opening", f"{path}.opening"]
    found = here(files, "verify", path, *opening, *REPLAY, "--public", "public.npz")
    assert "The same run gave the same claims:" in found.stdout, found.stdout + found.stderr
    stated = json.loads(text)["predicate"]["replay"]
    assert stated["options"]["done"] == {"bayes": 2}
    assert set(stated["files"]["replay"]) == {"sha256" if options else "salted_sha256"}


IDENTIFY = ("--method", "identify", "--seconds", "0.1")


def drawn_again(predicate):
    """A seed that draws other values; the claim stays as it was."""
    predicate["replay"]["options"]["seed"] = 1


def larger(predicate):
    predicate["claims"][0]["claimed"]["value"] = "9/10"


def about_more(predicate):
    predicate["claims"][0]["adversary"] = "anyone at all"


@pytest.mark.parametrize("change", [drawn_again, larger, about_more])
def test_another_seed_or_claim_gives_other_claims(certificate, files, here, change):
    path = changed(certificate(*IDENTIFY, "--reveal-draws"), change)
    found = here(files, "verify", path, *REPLAY)
    assert "The same run gave OTHER CLAIMS:" in found.stdout, found.stdout + found.stderr
    assert found.returncode == 1


def test_values_that_are_kept_back_are_compared_with_their_commitments(certificate, files, here):
    """The three digits that are stated are the same with another seed; the values are not."""
    path = changed(certificate(*IDENTIFY), drawn_again)
    opened = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "The same run gave OTHER CLAIMS:" in opened.stdout, opened.stdout + opened.stderr
    assert opened.returncode == 1


@pytest.mark.parametrize("option", ["--replay", "--model", "--weights"])
def test_other_files_are_refused_before_anything_is_run(certificate, files, here, tmp_path, option):
    path = certificate(*IDENTIFY)
    given = dict(zip(REPLAY[::2], REPLAY[1::2], strict=True))
    name = given[option].partition(":")[0]
    (tmp_path / name).write_bytes((files / name).read_bytes() + b"\n")
    given[option] = str(tmp_path / given[option])
    options = [word for pair in given.items() for word in pair]
    found = here(files, "verify", path, "--opening", f"{path}.opening", *options)
    assert_one_line_error(found, f"{option} must be the file that the run read")


def about(path, change):
    """The certificate with its subjects changed."""
    statement = json.loads(path.read_text())
    statement["subject"] = change(statement["subject"])
    path.write_text(json.dumps(statement))
    return path


def test_the_subject_is_what_is_run(certificate, files, here):
    path = certificate(*IDENTIFY)
    [subject] = json.loads(path.read_text())["subject"]
    assert subject["name"] == "weights.safetensors"
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "'weights.safetensors': the file given has this SHA-256" in found.stdout, found.stdout + found.stderr
    assert found.returncode == 0


def test_an_auditor_chooses_the_seed_and_sees_it(certificate, files, here):
    path = certificate(*IDENTIFY, "--seed", "20261")
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "The same run gave the same claims:" in found.stdout, found.stdout + found.stderr
    assert "Its seed is 20261:" in found.stdout
    changed(path, lambda predicate: predicate["replay"]["options"].update(seed=0))
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "The same run gave OTHER CLAIMS:" in found.stdout
    assert "Its seed is 0:" in found.stdout


def test_a_theorem_of_another_version_is_named(certificate, files, here):
    path = certificate(*IDENTIFY)
    changed(path, lambda predicate: predicate["claims"][0]["theorem"][0].update(version=2))
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert "The same run gave OTHER CLAIMS:" in found.stdout
    said = " ".join(found.stdout.split())
    assert re.search(r"It was made with 'version 2 of tacit\.theory\.\S+, and here is version 1': numbers may", said)


@pytest.mark.parametrize(
    ("name", "option"), [("weights.safetensors", "--weights"), ("released.pt", "--weights"), ("model.py", "--model")]
)
def test_a_subject_with_another_hash_is_refused_before_anything_is_run(certificate, files, here, name, option):
    """The run is honest, and the certificate says that another file was released: under its name, or another."""
    other = {"name": name, "digest": {"sha256": "0" * 64}}
    path = about(certificate(*IDENTIFY), lambda found: [other] if option == "--weights" else [*found, other])
    found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
    assert_one_line_error(found, f"{option} must be the file that the certificate is about")


def test_a_certificate_without_subjects_or_with_others_is_run(certificate, files, here):
    other = {"name": "paper.pdf", "digest": {"sha256": "0" * 64}}
    for change in (lambda _: [], lambda found: [*found, other]):
        path = about(certificate(*IDENTIFY), change)
        found = here(files, "verify", path, "--opening", f"{path}.opening", *REPLAY)
        assert "The same run gave the same claims:" in found.stdout, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (REPLAY[:4], "--weights must be given: the run read such a file"),
        ((*REPLAY, "--public", "public.npz"), "--public must be left out: the run read no such file"),
        ((*REPLAY[:2], "--model", "model.py:other", *REPLAY[4:]), "the function of the run, 'features'"),
        (REPLAY[2:], "must come with --replay"),
    ],
)
def test_what_does_not_fit_the_run_is_one_line(certificate, files, here, options, said):
    assert_one_line_error(here(files, "verify", certificate(*IDENTIFY), *options), said)


def test_no_path_comes_from_a_certificate(certificate, files, here):
    paths = ({"data": "/etc/passwd"}, {"out": "/tmp/x"}, {"engine": "tls://elsewhere:1"})  # noqa: S108
    for options in (*paths, {"prior": "generator:/etc/hostname"}, {"prior": "generator"}):
        path = changed(certificate(*IDENTIFY), lambda found, more=options: found["replay"]["options"].update(more))
        assert_one_line_error(here(files, "verify", path, *REPLAY), "this run cannot be repeated")


def test_files_are_compared_whatever_the_certificate_keeps_back(certificate, files, here):
    said = "--opening must be given with --replay, whose SHA-256 the certificate keeps back"
    assert_one_line_error(here(files, "verify", certificate(*IDENTIFY), *REPLAY), said)
    salted = {"model": {"salted_sha256": "0" * 64}}
    path = changed(certificate(*IDENTIFY), lambda found: found["replay"]["files"].update(salted))
    assert_one_line_error(here(files, "verify", path, *REPLAY), "this run cannot be repeated")


@pytest.mark.parametrize("name", ["done", "noise", "prior", "basis", "seed", "feature_error", "releases", "device"])
@pytest.mark.parametrize("value", ["x", -1, [1], {"identify": "x"}], ids=str)
def test_strange_options_are_one_line(certificate, files, here, name, value):
    path = changed(certificate(*IDENTIFY), lambda found: found["replay"]["options"].update({name: value}))
    found = here(files, "verify", path, *REPLAY, "--opening", f"{path}.opening")
    if found.returncode != 0:  # what the method does not use may be anything
        assert_one_line_error(found)


def test_texts(here, tmp_path):
    words = ["the cat sat", "a dog ate", "the dog sat", "a cat ran", "the man ate", "a man ran"]
    (tmp_path / "encoder.py").write_text(ENCODER)
    (tmp_path / "letters.txt").write_text("\n".join(words) + "\n")
    (tmp_path / "other.txt").write_text("\n".join(words * 8) + "\n")
    ran = here(tmp_path, *TEXTS, "--limit", "5", "--certificate", "c.json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    options = ("--replay", "letters.txt", "--model", "encoder.py:embed", "--public", "other.txt")
    found = here(tmp_path, "verify", "c.json", "--opening", "c.json.opening", *options)
    assert "The same run gave the same claims:" in found.stdout, found.stdout + found.stderr
    assert found.returncode == 0  # the checker has no rule for texts, and the same run says more than it could
    (tmp_path / "harmless.txt").write_text("a cat ate\nthe dog ran\n")
    other = here(tmp_path, "verify", "c.json", "--opening", "c.json.opening", "--replay", "harmless.txt", *options[2:])
    assert_one_line_error(other, "--replay must be the file that the run read")
    with (tmp_path / "other.txt").open("a") as file:
        file.write("a dog ran\n")
    assert_one_line_error(here(tmp_path, "verify", "c.json", *options), "--public must be the file that the run read")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("learn", "as its noise comes from the operating system"),
        ("plan", "as it reads no data"),
        ("demo", "as it reads no files"),
        ("bound", "as it does not say how"),
    ],
)
def test_what_cannot_be_repeated_says_why(certificate, files, here, command, why):
    path = changed(certificate(*IDENTIFY), lambda found: found.update(command=command, replay=None))
    assert_one_line_error(here(files, "verify", path, *REPLAY), why)


def test_a_run_whose_attacks_time_stopped_says_so(certificate, files, here):
    """Here it ends before any attack by chains: whether real inputs refute the prior was judged without these."""
    path = certificate("--public", "public.npz", "--method", "bayes", "--prior", "jittered:0.1", "--seconds", "0.01")
    stated = json.loads(path.read_text())["predicate"]["replay"]
    assert stated["options"] is None
    found = here(files, "verify", path, *REPLAY, "--public", "public.npz")
    assert_one_line_error(found, "as time stopped its attacks on the real inputs")


def test_two_point_medians_carry_their_pairs_unless_an_earlier_version_left_none(files, here, tmp_path):
    run = (*BOUND, "--out", tmp_path / "out", "--method", "two-point", "--limit", "5", "--reveal-draws", "--quiet")
    assert here(files, *run, "--certificate", tmp_path / "a.json").returncode == 0
    assert here(files, *run, "--certificate", tmp_path / "b.json", "--resume").returncode == 0
    for path in (tmp_path / "out").glob("*-pairs.npy"):
        path.unlink()
    plain = [option for option in run if option != "--quiet"]
    said = here(files, *plain, "--certificate", tmp_path / "c.json", "--resume")
    assert said.returncode == 0
    assert "certificate: the checker cannot follow 1 of 1 claim, for which there is this library's word" in said.stderr
    first, resumed, bare = (json.loads((tmp_path / f"{name}.json").read_text())["predicate"] for name in "abc")
    assert first["claims"] == resumed["claims"]
    assert len(first["claims"][0]["inputs"]["modes"]) == 5 * 16
    assert bare["claims"] == [{**first["claims"][0], "rule": None, "inputs": None}]
    for name in "ac":  # the checker has no rule for them
        assert here(files, "verify", tmp_path / f"{name}.json").returncode == 1
    assert here(files, "verify", tmp_path / "a.json", *REPLAY).returncode == 0
    assert here(files, "verify", tmp_path / "c.json", *REPLAY).returncode == 0
