"""Guarantees name the functions of `tacit.theory` whose values they are, and each has a proof that can be printed.

What is named is compared with what was called: every function of `tacit.theory` is replaced by one that notes its name,
and those that another one called do not count, as their proofs are part of its own.
"""

import contextlib
import dataclasses
import functools
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module

import numpy as np
import pytest
import torch
from commands import assert_one_line_error
from pages import Page
from soundness import theorems as marked
from test_architecture import ROOT, SOURCE

from tacit import Comparison, audit, learning, reconstruction
from tacit.audit.certificate import READINGS
from tacit.core.guarantee import REFERENCE
from tacit.learning.mechanisms import ConfidentGNMax, Confirm, Gate, GNMax, SparseVector, StableRelease
from tacit.learning.study import plan
from tacit.ledger import Ledger
from tacit.report import Report, Table, proofs, theorems

MARKED = {
    f"theory.{module.rpartition('.')[2]}.{name}": getattr(import_module(module), name)
    for module, names in marked().items()
    if module.startswith("tacit.theory.")
    for name in names
}


@contextlib.contextmanager
def noted():
    """The names of the functions of `tacit.theory` that are called from elsewhere meanwhile."""
    called, depth, undo = set(), [0], []

    def noting(name, original):
        @functools.wraps(original)
        def noted_call(*arguments, **options):
            if not depth[0]:
                called.add(name)
            depth[0] += 1
            try:
                return original(*arguments, **options)
            finally:
                depth[0] -= 1

        return noted_call

    tacit = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "tacit"]
    replaced = {id(original): noting(name, original) for name, original in MARKED.items()}
    for module in tacit:
        for key, value in list(vars(module).items()):
            if id(value) in replaced:
                setattr(module, key, replaced[id(value)])
                undo.append((module, key, value))
    try:
        yield called
    finally:
        for module, key, original in undo:
            setattr(module, key, original)


@functools.cache
def proofs_of(words):
    """The same few, again and again."""
    return proofs([words])


def assert_proven(guarantee):
    for name in guarantee.references:
        assert MARKED[name].side in ("at_least", "at_most")
        (theorem,) = proofs_of(name).theorems
        assert theorem.side == MARKED[name].side
        assert f"[`{theorem.short}`](../reference/" in theorem.proof[-1]
    assert guarantee.references or guarantee.theorem[0].startswith("none:")


def assert_found_by_words(guarantee):
    """`tacit proof` takes the words that a report prints beside the names, and finds one of the functions."""
    for words in set(guarantee.theorem) - set(guarantee.references):
        found = proofs_of(words)
        pages = {f"docs/proofs/{name.split('.')[1]}.md" for name in guarantee.references}
        assert {theorem.name for theorem in found.theorems} & set(guarantee.references) or pages & dict(
            found.pages
        ).keys(), words


INPUTS = np.random.default_rng(0).normal(size=(3, 1, 2, 2))


torch.manual_seed(0)
features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()


def noises():
    from scipy import stats

    def log_density(rows):
        return -np.sqrt(1 + rows**2).sum(axis=1)

    def draw(count, generator):
        return generator.laplace(size=(count, 3))

    yield reconstruction.Gaussian(0.5)
    yield reconstruction.Gaussian(covariance=np.array([0.3, 0.5, 0.7]))
    yield reconstruction.Laplace(0.5)
    yield reconstruction.Uniform(4.0)
    yield reconstruction.Quantized(reconstruction.Gaussian(0.5), 0.5)
    yield reconstruction.Quantized(reconstruction.Gaussian(covariance=np.array([0.3, 0.5, 0.7])), 0.5)
    yield reconstruction.Quantized(reconstruction.Laplace(0.5), 0.5)
    yield reconstruction.Density(stats.logistic(scale=2.0), slope=0.5, curvature=0.125)
    yield reconstruction.Sampled(log_density, draw, slope=2.0, draws=500)


NOISES = list(noises())


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_bounds_name_what_they_are_made_of_for_every_noise(noise):
    bounds = {
        "two-point": lambda: reconstruction.two_point_bounds(features, INPUTS[:1], noise),
        "single": lambda: reconstruction.single_mode_bounds(features, INPUTS[:1], noise, steps=[1e-3]),
    }
    for make in bounds.values():
        with noted() as called:
            found = make().guarantee_of(0, (0, 0, 0))
        assert_proven(found)
        assert_found_by_words(found)
        # Noise known by draws goes by its slope alone where a shift is too long for them.
        assert set(found.references) == called


def gallery():
    return reconstruction.Gallery(INPUTS)


def mixture():
    return reconstruction.Mixture.fitted(np.random.default_rng(1).normal(size=(40, 1, 2, 2)))


@pytest.mark.parametrize(
    "make",
    [
        lambda noise: reconstruction.multipoint_bounds(features, INPUTS, noise).guarantee_of(0, (0, 0, 0)),
        lambda noise: reconstruction.identification_bound(features, INPUTS, noise, draws=200),
        lambda noise: reconstruction.twins(features, INPUTS, noise, steps=2).guarantee_of(0),
        lambda noise: reconstruction.bayes_bound(features, gallery(), noise, draws=200).guarantee,
        lambda noise: reconstruction.bayes_bound(features, mixture(), noise, steps=0, draws=200).guarantee,
        lambda noise: reconstruction.posterior_bound(features, mixture(), noise, steps=2, inputs=30).guarantee,
    ],
    ids=["multi-point", "naming", "twins", "gallery", "mixture", "chains"],
)
@pytest.mark.parametrize("noise", [NOISES[0], NOISES[4]], ids=repr)
def test_bounds_for_gaussian_noise_name_what_they_are_made_of(make, noise):
    with noted() as called:
        found = make(noise)
    assert_proven(found)
    assert_found_by_words(found)
    assert set(found.references) == called


@pytest.mark.parametrize(
    "make",
    [
        lambda **n: reconstruction.two_point_bounds(features, INPUTS[:1], NOISES[0], **n).guarantee_of(0, (0, 0, 0)),
        lambda **n: reconstruction.multipoint_bounds(features, INPUTS, NOISES[0], **n).guarantee_of(0, (0, 0, 0)),
        lambda **n: reconstruction.identification_bound(features, INPUTS, NOISES[0], draws=200, **n),
        lambda **n: reconstruction.bayes_bound(features, gallery(), NOISES[0], draws=200, **n).guarantee,
        lambda **n: reconstruction.posterior_bound(features, mixture(), NOISES[0], steps=2, inputs=30, **n).guarantee,
    ],
    ids=["two-point", "multi-point", "naming", "gallery", "chains"],
)
def test_bounds_for_several_releases_name_that_theorem_too(make):
    with noted() as called:
        found = make(releases=3)
    assert_proven(found)
    assert_found_by_words(found)
    assert set(found.references) == called
    assert "theory.divergences.repeated_scale" in called


def test_bounds_on_modes_name_their_own_theorem():
    noise = reconstruction.Gaussian(0.5)
    bounds = reconstruction.bayes_bound(features, gallery(), noise, draws=200, mode_draws=100)
    assert "theory.estimation.gallery_coordinate_mse" in bounds.guarantee_of((0, 0, 0)).theorem
    assert "theory.estimation.gallery_coordinate_mse" not in bounds.guarantee.theorem
    assert_proven(bounds.guarantee_of((0, 0, 0)))


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2], NOISES[4]], ids=repr)
def test_bounds_on_texts_name_what_they_are_made_of(noise):
    prior = reconstruction.TextPrior.fitted(["a b", "b a b", "a"], least=1)

    def encode(texts):
        return np.array([[text.count("a"), text.count("b"), len(text)] for text in texts], dtype=float)

    with noted() as called:
        bounds = reconstruction.text_bounds(encode, prior, noise, texts=20, rivals=1)
    found = [bounds.guarantee_of(part) for part in ("words", "whole")]
    for one in found:
        assert_proven(one)
        assert_found_by_words(one)
    assert {name for one in found for name in one.references} == called


def test_medians_name_what_their_bounds_name():
    from tacit.reconstruction.median_bounds import median_guarantee

    for noise in (NOISES[0], NOISES[2], NOISES[4]):
        options = {"spread": 1.0, "noise": noise, "feature_error": 1e-6}
        two = reconstruction.two_point_bounds(features, INPUTS[:1], noise)
        assert median_guarantee("two-point", two.rmse, **options).theorem == two.guarantee_of(0, (0, 0, 0)).theorem
        single = reconstruction.single_mode_bounds(features, INPUTS[:1], noise, steps=[1e-3])
        hcr = median_guarantee("hcr", single.std, how=", size 3", **options)
        assert hcr.references == single.guarantee_of(0, (0, 0, 0)).references
        assert "size 3" in hcr.theorem_text
    points = reconstruction.multipoint_bounds(features, INPUTS, NOISES[0])
    options["noise"] = NOISES[0]
    assert median_guarantee("multi-point", points.std, **options).theorem == points.theorem


RNG = np.random.default_rng(2)
SECRET = np.repeat([0, 1], 300)
NUMBERS = SECRET * 0.3 + RNG.normal(size=600)
LETTERS = np.where(RNG.uniform(size=600) < 0.5 + 0.2 * SECRET, "a", "b")
OUTPUTS = {
    "discrete": {"output": LETTERS},
    "unequal classes": {"output": LETTERS[:500], "secret": SECRET[:500]},
    "noisy": {"output": NUMBERS, "noise": 1.0},
    "noisy, four columns": {"output": np.column_stack([NUMBERS] * 4)[::10], "noise": 1.0, "secret": SECRET[::10]},
    "noise added": {"output": NUMBERS, "noise_added": 1.0},
    "monotone": {"output": NUMBERS, "method": "monotone"},
    "lipschitz": {"output": NUMBERS, "assume_max_slope": 0.5, "loss": "squared"},
}
ONLY_REFUSES = {"theory.certificates.characteristic_limit"}
"""Looked at to refuse a column that cannot hold the noise stated; no number comes of it."""


@pytest.mark.parametrize("form", ["sharp", "closed"])
@pytest.mark.parametrize("loss", ["squared", "log", "zero-one", "joint"])
@pytest.mark.parametrize("kind", list(OUTPUTS))
def test_every_reading_of_a_certificate_names_what_it_is_made_of(kind, loss, form):
    options = {"secret": SECRET, "loss": loss, "form": form, "failure_probability": 0.05, **OUTPUTS[kind]}
    if kind == "lipschitz" and loss != "squared":
        pytest.skip("no theorem")
    with noted() as called:
        certificate = audit.certify(options.pop("secret"), options.pop("output"), **options)
    base = called - ONLY_REFUSES
    named = set()
    for reading in READINGS:
        with noted() as read:
            found = certificate.guarantee_of(reading)
        assert_proven(found)
        assert_found_by_words(found)
        assert read <= set(found.references) <= base | read
        named |= set(found.references)
    assert base <= named
    # The reading that was certified itself needs no conversion.
    if kind == "discrete" and loss != "joint":
        own = {"squared": "squared loss", "log": "bits", "zero-one": "advantage"}[loss]
        assert not any(name.startswith("theory.leakage.") for name in certificate.guarantee_of(own).references)


@pytest.mark.parametrize("outputs", [2, 700])
def test_certificates_of_guesses_name_what_they_are_made_of(outputs):
    rows = np.arange(1400)
    with noted() as called:
        classes = audit.certify_classes(rows % 10, rows * 7 % outputs)
        number = audit.certify_number(rows / 1400, rows % outputs, secret_range=(0, 1))
    for certificate in (classes, number):
        assert_proven(certificate.guarantee)
        assert_found_by_words(certificate.guarantee)
    assert {*classes.guarantee.references, *number.guarantee.references} == called


def test_printed_certificates_name_the_printed_theorems():
    for loss, alphabet, name in (("squared", None, "printed_squared_loss"), ("log", 2, "printed_log_loss")):
        options = {"sampling": "pairs", "form": "printed", "alphabet": alphabet, "failure_probability": 0.05}
        found = audit.certify(SECRET, LETTERS, loss=loss, **options).guarantee
        assert f"theory.certificates.{name}" in found.references
        assert_proven(found)
        assert_found_by_words(found)
    found = audit.certify_network(
        0.9, positives=300, negatives=300, neurons=10, barron=1.0, diameter=1.0, failure_probability=0.05
    ).guarantee
    assert_proven(found)
    assert "theory.certificates.printed_network_loss" in found.references


def test_a_slice_of_one_class_names_nothing():
    found = audit.certify_slices(SECRET, LETTERS, np.where(SECRET, "x", "y"), failure_probability=0.05)
    for certificate in found.values():
        for reading in READINGS:
            assert certificate.guarantee_of(reading).references == ()
            assert_proven(certificate.guarantee_of(reading))


MECHANISMS = [
    SparseVector(epsilon=1.0, delta=1e-5, refusals=3),
    SparseVector(epsilon=1.0, delta=1e-5, refusals=3, queries=10, variant="faithful"),
    StableRelease(epsilon=1.0, delta=1e-5, queries=10),
    GNMax(epsilon=1.0, delta=1e-5, queries=10),
    ConfidentGNMax(epsilon=1.0, delta=1e-5, queries=10, answers=5, threshold=20),
    Gate(epsilon=1.0, delta=1e-5, refusals=10),
    Confirm(epsilon=1.0, delta=1e-5, refusals=10),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanisms_name_what_their_loss_is_made_of(mechanism):
    with noted() as called:
        found = mechanism.guarantee
    assert_proven(found)
    assert_found_by_words(found)
    # Constants may be sought by other functions; that they suffice is what is named.
    sought = {name for name in called if name.rpartition("_")[2] in ("scale", "threshold", "votes", "sigma")}
    assert set(found.references) == called - sought


def test_private_classifiers_name_every_part_of_their_cost():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    points = rng.normal(size=(600, 2))
    labels, public = np.where(points[:, 0] > 0, "yes", "no"), rng.normal(size=(20, 2))
    model = learning.PrivateClassifier(
        LogisticRegression(), epsilon=8.0, delta=1e-4, n_teachers="auto", mechanism="svt", error_share=0.1
    )
    with noted() as called:
        model.fit(points, labels, X_public=public)
    found = model.guarantee_
    assert_proven(found)
    names = {name.rpartition(".")[2] for name in found.references}
    assert names == {
        *("open_threshold_delta", "laplace_scale", "label_threshold", "replacement_delta", "basic_composition")
    }
    # The parts are cut from the whole, so nothing has to be added up.
    assert set(found.references) <= called | {"theory.accounting.basic_composition"}
    moments = learning.MomentClassifier(epsilon=8.0, delta=1e-4).fit(points, labels, public).guarantee_
    assert_proven(moments)
    names = {name.rpartition(".")[2] for name in moments.references}
    assert names == {"lattice_delta", "sums_sensitivity", "laplace_scale", "label_threshold", "basic_composition"}
    for guarantee in (found, moments):
        assert_found_by_words(guarantee)


def test_plans_name_the_costs_of_their_rows():
    report = plan.report(10**6, 100, epsilon=2.0, delta=1e-5, error=("0.05",))
    (found,) = (comparison.guarantee for comparison in report.comparisons)
    assert_proven(found)
    assert {name.rpartition("_")[2] for name in found.references} == {"delta"}
    assert len(found.references) == 4  # sparse vector, as printed and with an open threshold, plain composition, GNMax


@pytest.mark.parametrize(
    "inputs",
    [{"error": 0.05}, {"vc_dimension": 3}, {"vc_dimension": 3, "best_error": 0.1, "teachers": 20}],
    ids=["an error", "a class", "a class without a perfect member"],
)
def test_rows_of_plans_name_what_their_promises_are_made_of(inputs):
    with noted() as called:
        made = learning.plan(10**7, 100, epsilon=2.0, delta=1e-5, public_model_error=0.01, **inputs)
    # Constants are sought by other functions, and what they cost is named by the guarantee.
    costs = {name for name in called if name.rpartition("_")[2] in ("delta", "scale", "sigma")}
    costs |= {f"theory.accounting.{name}_threshold" for name in ("printed", "sparse_vector", "stable_release")}
    costs |= {"theory.open_threshold.open_threshold_votes"}
    anew = ("adaptive_threshold_votes", "adaptive_threshold_budget", "refusal_price", "least_scale")
    costs |= {f"theory.adaptive_threshold.{name}" for name in anew}
    named = {name for row in made.rows for name in row.theorem}
    if any(row.feasible for row in made.rows) or "vc_dimension" not in inputs:
        assert called - costs == named
    else:
        assert called - costs - {"theory.open_threshold.open_threshold_distance"} <= named  # of T = 2, 3 …, in vain
    for row in made.rows:
        if row.mechanism == "svt-adaptive":
            assert row.theorem == ()  # nothing is promised
            continue
        assert row.theorem[0] == "theory.learnability.hard_queries"
        assert proofs(row.theorem).theorems


def test_the_proof_of_a_planned_promise_is_two_hops_away(here, tmp_path):
    text = plan.report(10**6, 100, epsilon=2.0, delta=1e-5, error=("0.05",)).to_text()
    headline, *verdicts = re.findall(r"tacit (proof(?:\s+\w+)+)", text.partition("queries, 2 classes")[0])
    assert len(verdicts) > 3
    printed = here(tmp_path, *headline.split()).stdout
    assert printed.startswith("theory.learnability.hard_queries\n")
    assert "∎" in printed


def test_the_proof_of_the_ledger_can_be_printed(tmp_path):
    found = Ledger.open(tmp_path / "ledger.sqlite", epsilon=1, delta=0).guarantee
    assert_proven(found)
    assert_found_by_words(found)
    for name in ("ledger", *found.references):
        (theorem,) = proofs([name]).theorems
        assert "By induction on the number of releases" in theorem.proof[-1]


def test_every_name_in_the_source_is_a_theorem():
    """Also in parts that no other test reaches."""
    quoted = {
        match.group()
        for path in SOURCE.rglob("*.py")
        for match in re.finditer(r"(?<=[\"'])theory\.\w+\.\w+(?=[\"'])", path.read_text())
    }
    assert len(quoted) > 30
    assert quoted <= set(MARKED)


def test_all_theorems_are_found_without_importing_them():
    assert set(theorems()) == set(MARKED)
    for name, theorem in theorems().items():
        assert REFERENCE.fullmatch(name)
        assert theorem.side == MARKED[name].side
        assert theorem.proof, f"{theorem.page} has no section about {name}"
        assert (ROOT / theorem.page).is_file()
        assert theorem.short.startswith("printed_") or "*Proof" in theorem.proof[-1], f"{name} is stated, not proven"
        assert [part for part, text in theorem.stated if text] == [
            "Statement",
            "Assumptions",
            "Direction",
            "References",
        ]
        assert [parameter for parameter, text in theorem.parameters if text] == list(
            inspect.signature(MARKED[name]).parameters
        )


def test_the_proof_is_two_hops_from_a_printed_number(here, tmp_path):
    """From text, JSON and page alike: what stands beside the number is what the command takes."""
    guarantee = audit.certify(SECRET, LETTERS, failure_probability=0.05).guarantee
    made = Report(command="audit", title="T", summary=("S.",), comparisons=(Comparison(guarantee=guarantee),))
    (command,) = re.findall(r"proof      tacit (proof(?:\s+\w+_\w+)+)", made.to_text())
    printed = here(tmp_path, *command.split()).stdout
    page = Page(made.to_html())
    for name in guarantee.references:
        theorem = theorems()[name]
        assert name in made.to_text()
        assert f"{name} " in page.text
        assert f"tacit proof {theorem.short}" in page.text
        assert f"#proof-{theorem.short}" in page.addresses
        assert dict(theorem.stated)["Statement"] in page.text
        assert " ".join(theorem.proof[-1].split()) in " ".join(page.text.split())
        assert " ".join(theorem.statement.split()) in " ".join(printed.split())
        assert f"Proof ({theorem.page})" in printed
    data = json.loads(made.to_json())["comparisons"][0]["guarantee"]
    assert data["proofs"] == {name: theorems()[name].page for name in guarantee.references}
    assert made.to_html().count('<details class="card theorem"') == len(guarantee.references) == 4


def test_names_in_sentences_and_tables_are_links_to_proofs_on_the_page():
    note, cells = "Proofs: tacit proof auc_upper private_roc, and more.", ("a", "roc_upper")
    table = Table(title="T", columns=("reading", "theorem"), rows=(cells,), note=note)
    comparison = Comparison(guarantee=audit.certify(SECRET, LETTERS, failure_probability=0.05).guarantee)
    summary = ("At most 3 (tacit proof gate_delta).", "roc_upper <b> in a sentence names nothing.")
    made = Report(command="audit", title="T", summary=summary, tables=(table,), comparisons=(comparison,))
    html = made.to_html()
    for name in ("auc_upper", "private_roc", "roc_upper", "gate_delta"):
        assert f'href="#proof-{name}"' in html
        assert f'<details class="card theorem" id="proof-{name}">' in html
    assert "roc_upper &lt;b&gt; in a sentence" in html
    assert all(f'id="{address[1:]}"' in html for address in Page(html).addresses if address.startswith("#"))


def test_a_name_that_nobody_knows_is_shown_and_no_page_fails():
    guarantee = dataclasses.replace(
        audit.certify(SECRET, LETTERS, failure_probability=0.05).guarantee, theorem="theory.of.everything"
    )
    made = Report(command="audit", title="T", summary=("S.",), comparisons=(Comparison(guarantee=guarantee),))
    assert "theory.of.everything" in Page(made.to_html()).text


def test_the_command_takes_names_with_and_without_modules(here, tmp_path):
    names = ("gate_delta", "gate.gate_delta", "theory.gate.gate_delta", "tacit.theory.gate.gate_delta")
    (printed,) = {here(tmp_path, "proof", name).stdout for name in names}
    assert printed.startswith("theory.gate.gate_delta\n====")
    assert "∎" in printed
    assert here(tmp_path, "proof", "gate").stdout.startswith("docs/proofs/gate.md\n===")
    several = here(tmp_path, "proof", "roc_upper", "auc_upper", "roc_upper").stdout
    assert several.count("# What leakage allows") == 1  # the opening of their page
    assert several.count("## `roc_upper`") == several.count("## `auc_upper`") == 1
    by_words = here(tmp_path, "proof", "Theorem B, sharp form").stdout
    assert by_words == here(tmp_path, "proof", "squared_sharp").stdout
    both = here(tmp_path, "proof", "two_point_error", "two_point_bayes_error").stdout
    assert both.count("## `two_point_error` and `two_point_bayes_error`\n") == 1
    assert "see above" in both


def test_the_command_lists_all_names_without_one(here, tmp_path):
    finished = here(tmp_path, "proof", "--json", "all.json", "--report", "all.html")
    listed = json.loads((tmp_path / "all.json").read_text())["theorems"]
    page = Page((tmp_path / "all.html").read_text())
    assert {theorem["name"] for theorem in listed} == set(MARKED)
    for name in MARKED:
        assert f"\n  {name.rpartition('.')[2]}: " in finished.stdout
        assert name in page.text


def test_the_command_writes_json_and_a_page(here, tmp_path):
    finished = here(tmp_path, "proof", "roc_upper", "--json", "one.json", "--report", "one.html", "--quiet")
    assert (finished.returncode, finished.stdout) == (0, "")
    data = json.loads((tmp_path / "one.json").read_text())
    (theorem,) = data["theorems"]
    assert (data["schema"], data["command"], theorem["name"]) == (2, "proof", "theory.leakage.roc_upper")
    assert (theorem["side"], theorem["page"]) == ("at_most", "docs/proofs/leakage.md")
    assert "(TPR − FPR)² ≤ v(TPR + FPR)(2 − TPR − FPR)" in theorem["proof"]
    assert "Let the guess be" in Page((tmp_path / "one.html").read_text()).text


@pytest.mark.parametrize(("wrong", "near"), [("two_pont_success", "two_point_success"), ("leak", "leakage"), ("", "")])
def test_a_wrong_name_is_one_line_with_near_ones(here, tmp_path, wrong, near):
    finished = here(tmp_path, "proof", wrong)
    assert_one_line_error(finished)
    assert near in finished.stderr
    assert "run tacit proof to see all names" in finished.stderr


def test_an_installed_package_has_its_proofs_with_it(tmp_path):
    """Files as a wheel would lay them out, and no checkout around them."""
    site = tmp_path / "site"
    shutil.copytree(SOURCE, site / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for here, there in wheel["force-include"].items():
        copy = shutil.copytree if (ROOT / here).is_dir() else shutil.copy
        copy(ROOT / here, site / there)
    for name in ("gate_delta", "ledger"):
        finished = subprocess.run(
            [sys.executable, "-m", "tacit", "proof", name],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "roof" in finished.stdout
    assert "By induction on the number of releases" in finished.stdout


def test_proofs_are_printed_without_heavy_packages():
    script = (
        "import sys; from tacit.report import proofs; proofs(['multipoint_variance']).to_text(); print(*sys.modules)"
    )
    loaded = {
        name.partition(".")[0] for name in subprocess.check_output([sys.executable, "-c", script], text=True).split()
    }
    assert not loaded & {"torch", "scipy", "sklearn", "matplotlib"}
