"""Errors as people read them: one line in the words of the place, with what was typed and what may have been meant."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from commands import assert_one_line_error
from sklearn.base import clone

import tacit
from tacit.core.near import did_you_mean
from tacit.ledger import Ledger

SOURCES = Path(tacit.__file__).parent
PYTHON = re.compile(r"`\w+`|\b\w+=(True|False|None|…|'|\")|\bNone\b|\bTrue\b|PosixPath|2\*\*|\{\w+:")
"""What belongs into Python alone: parameters and values as it writes them."""

MODEL = """
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5))

def embed():
    return lambda texts: [[float(len(text)), 1.0] for text in texts]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.random((8, 1, 4, 4)))
    (folder / "model.py").write_text(MODEL)
    (folder / "letters.txt").write_text("a b\nc d\n" * 3)
    (folder / "other.txt").write_text("e f\ng a b\n" * 30)
    private = "".join(f"{x:.5f},{y:.5f},{'yes' if x > 0 else 'no'}\n" for x, y in rng.normal(size=(400, 2)))
    (folder / "private.csv").write_text("a,b,bought\n" + private)
    (folder / "public.csv").write_text("a,b\n" + "".join(f"{x},{y}\n" for x, y in rng.normal(size=(200, 2))))
    (folder / "scores.csv").write_text("member,predicted\n" + "".join(f"{row % 2},{row % 3}\n" for row in range(300)))
    Ledger.open(folder / "spent.db", epsilon=1, delta=0)
    return folder


GOOD = {
    "bound": "model.py:features --data images.npy --noise gaussian:1 --out out",
    "bound texts": "model.py:embed --text letters.txt --public other.txt --noise gaussian:0.1",
    "learn": "private.csv --label bought --public public.csv --epsilon 1 --delta 1e-5 --out out",
    "audit": "scores.csv --secret member --output predicted --attack-rows 0",
    "plan": "--records 1000 --queries 10 --epsilon 1 --delta 1e-5",
    "ledger": "spent.db",
    "proof": "",
    "demo": "",
    "reproduce hcr": "mnist --out out",
    "reproduce mapl": "mnist --out out",
    "reproduce mechanisms": "adult --out out",
    "reproduce audit": "figure1 --out out",
}
NUMBERS = "--{option} must be a number, got 'x'; see tacit "
BAD = {
    "bound": {
        "--noise gausian:1": "got 'gausian:1'; did you mean 'gaussian'?",
        "--noise gaussian:x": "--noise must be gaussian:SIGMA",
        "--noise gaussian:-1": "the size in --noise must be a finite number > 0, got -1.0",
        "--data imges.npy": "got 'imges.npy'; no such file: did you mean 'images.npy'?",
        "--data nowhere/images.npy": "no such file",
        "--data scores.csv": "--data must be a folder, .npy or .npz",
        "--weights none.pt": "--weights must name a file that exists, got 'none.pt'; no such file",
        "--weights scores.csv": "--weights must hold only tensors",
        "--public image.npy": "--public must name a file that exists, got 'image.npy'; no such file: did you mean",
        "--prior gausian --public images.npy": "--prior must be auto, gaussian, spectrum, jittered:SIZE or",
        "--prior gaussian": "--public must be given for --prior gaussian, which is fitted",
        "--prior generator:none": "--prior must name a file that exists, got 'none'; no such file",
        "--steps 10": "only chains take it, which need --public or --prior",
        "--method bayess": "got 'bayess'; did you mean 'bayes'?",
        "--basis dtc": "did you mean 'dct'?",
        "--limit 0": "--limit must be a whole number ≥ 1, got 0",
        "--limit x": "--limit must be a whole number, got 'x'; see tacit bound --help",
        "--seed -1": "--seed must be",
        "--feature-error 1": "--feature-error must be",
        "--releases 0": "--releases must be",
        "--engine dask://h:1": "add --insecure",
        "--device gpu": "--device must be cpu, cuda or auto, got 'gpu'; use cuda for a GPU",
        "--column a": "--column must not be given without --text, got 'a'",
        "--out model.py": "--out must be a folder that can be written, got 'model.py: File exists'",
    },
    "bound texts": {
        "--text leters.txt": "no such file: did you mean 'letters.txt'?",
        "--public othr.txt": "no such file: did you mean 'other.txt'?",
        "--attribute modl.py:f": "no such file: did you mean 'model.py'?",
        "--attribute model.py:embde": "did you mean 'embed'?",
        "--text scores.csv --public scores.csv --column membr": "did you mean 'member'?",
        "--data images.npy": "--data must not be given with --text, got 'images.npy'",
        "--resume": "--resume must not be given with --text, got the flag",
        "--noise rounded:x": "--noise must be rounded:STEP",
    },
    "learn": {
        "--label bouhgt": "--label must name one of the 3 columns of PRIVATE, got 'bouhgt'; did you mean 'bought'?",
        "--label other": "--label must name one of the 3 columns of PRIVATE, got 'other'; check its name",
        "--epsilon 0": "--epsilon must be",
        "--epsilon x": "--epsilon must be a number, got 'x'; see tacit learn --help",
        "--delta 2": "--delta must be",
        "--public publc.csv": "no such file: did you mean 'public.csv'?",
        "--test tests.csv": "--test must name a file that exists, got 'tests.csv'; no such file",
        "--labelled-public known.csv": "--labelled-public must name a file that exists, got 'known.csv'; no such file",
        "--labels-only": "--labels-only must not be combined with --public",
        "--classes yes": "--classes must hold two classes or more",
        "--ids person": "--ids must name one of the 2 columns of PRIVATE",
        "--learner sklearn.linear_model:LogisticRegresion": "did you mean 'LogisticRegression'?",
        "--learner sklearn.linear_modl:LogisticRegression": "did you mean 'sklearn.linear_model'?",
        "--learner sklearm.svm:SVC": "--learner must be MODULE:CLASS of an installed package",
        "--student sklearn.svm:SVCC": "did you mean 'SVC'?",
        "--set max_itr=3": "did you mean 'max_iter'?",
        "--set C": "write C=VALUE",
        "--student-set C=1": "--student-set must come with --student",
        "--teachers 0": "--teachers must be",
        "--mechanism gnmx": "did you mean 'gnmax'?",
        "--mechanism confirm": "--labelled-public must be given for the mechanism confirm",
        "--mechanism neighbours --refusals 3": "--refusals must be left out for the mechanism neighbours",
        "--queries many": "--queries must be",
        "--refusals 0": "--refusals must be",
        "--teacher-accuracy 0.3": "--teacher-accuracy must be",
        "--ledger spend.db": "got 'spend.db'; no such file: did you mean 'spent.db'?",
        "--ledger other.db": "no such file: check its name, or add --new-ledger to make it",
        "--ledger-url-file url.txt": "--ledger-url-file must name a file that exists, got 'url.txt'; no such file",
        "--anchor here.json --ledger spent.db": "no such file: check its name, or restore it; --new-anchor",
        "--new-anchor": "--new-anchor must come with --anchor",
        "--engine ray://1.2.3.4:5": "add --insecure",
        "--device cuda": "--device must be left out for learners that have no parameter of this name, got 'cuda'",
        "--out scores.csv": "--out must be a folder that can be written",
    },
    "audit": {
        "--secret membr": "must be one of the file's columns, got '2 other columns'; did you mean 'member'?",
        "--output predictd": "did you mean 'predicted'?",
        "--slice predictid": "did you mean 'predicted'?",
        "--group membr": "did you mean 'member'?",
        "--secret-range 1 0": "--secret-range must be two numbers, the smaller one first",
        "--noise 0": "--noise must be",
        "--noise 1 --noise-added 1": "--noise-added must come without --noise, --assume-one-direction and --assume-max",
        "--assume-one-direction --noise 1": "--assume-one-direction must come with one output, and without --noise",
        "--assume-max-slope 0": "--assume-max-slope must be",
        "--positive 7": "--positive must be",
        "--failure-probability 0": "--failure-probability must be",
        "--require-advantage 3": "--require-advantage must be",
        "--attack-rows -1": "--attack-rows must be",
    },
    "plan": {
        "--records 0": "--records must be",
        "--error x": "write --error 0.05, or --error 240:0.05 --error 60:0.11",
        "--error 2": "--error must be",
        "--vc-dimension 3 --error 0.1": "--vc-dimension must be left out where --error is given",
        "--best-error 0.1": "--best-error must go with --vc-dimension",
        "--classes 1": "--classes must be",
        "--public-model-error 1": "--public-model-error must be",
        "--teachers 2000": "--teachers must not exceed --records = 1000",
        "--failure-probability 0": "--failure-probability must be",
    },
    "ledger": {
        "--anchor none.json": "--anchor must name a file that exists, unless it is to be new",
        "--anchor scores.csv": "--anchor must be a file that holds",
        "--key none.key": "--key must name a file that exists, got 'none.key'; no such file",
        "--sign": "--sign must come with --key, got nothing",
    },
    "proof": {"advantage_uper": "did you mean advantage_upper"},
    "demo": {
        "--report page": "--report must end in .html",
        "--json nowhere/out.json": "--json must name a file that can",
    },
    "reproduce hcr": {
        "--data nowhere": "--data must name a folder that exists, got 'nowhere'; no such folder",
        "--images 1 --data .": "--images must be",
    },
    "reproduce mapl": {"--mechanism gnmx": "did you mean 'gnmax'?", "--seeds 0": "--seeds must be"},
    "reproduce mechanisms": {"--councils 0": "--councils must be", "--teachers 1": "--teachers must be"},
    "reproduce audit": {"--rows 3": "--rows must be", "--records 3": "--records must be left out for figure1"},
}


@pytest.mark.parametrize(
    ("command", "bad", "said"),
    [
        pytest.param(command, bad, said, id=f"{command} {bad}")
        for command, rows in BAD.items()
        for bad, said in rows.items()
    ],
)
def test_a_bad_value_is_one_line_in_the_words_of_the_command(here, files, command, bad, said):
    """What, the value, the requirement and the remedy; no word of Python, and nothing made."""
    before = sorted(files.iterdir())
    finished = here(files, *command.removesuffix(" texts").split(), *GOOD[command].split(), *bad.split())
    assert_one_line_error(finished, said)
    last = finished.stderr.splitlines()[-1]
    assert re.search(r" (must|had) .*, got .+; .+", last), last
    assert not PYTHON.search(last), last
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "bound modl.py:features --data images.npy --noise gaussian:1 --out out",
            "no such file: did you mean 'model.py'?",
        ),
        ("bound model.py:featurs --data images.npy --noise gaussian:1 --out out", "did you mean 'features'?"),
        ("bound model.py --data images.npy --noise gaussian:1 --out out", "MODEL must be FILE.py:FUNCTION"),
        ("bound model.py:features --noise gaussian:1 --out out", "--data must be given without --text, got nothing"),
        (
            "bound model.py:features --data images.npy --out out",
            "--noise must be given, got nothing; see tacit bound --h",
        ),
        ("learn privat.csv --label a --epsilon 1 --delta 1e-5 --out out --labels-only", "did you mean 'private.csv'?"),
        (
            "learn private.csv --label a --epsilon 1 --delta 1e-5 --out out",
            "--public must name a file of public records",
        ),
        (
            "audit score.csv --secret a --output b",
            "TABLE must name a file that exists, got 'score.csv'; no such file: did",
        ),
        (
            "ledger spend.db",
            "WHERE must name a file that exists, got 'spend.db'; no such file: did you mean 'spent.db'?",
        ),
        ("ledger nowhere/spent.db", "WHERE must name a file that exists, got 'nowhere/spent.db'; no such file"),
        ("ledger", "WHERE must be given, got nothing; name the ledger, or use --ledger-url-file"),
        ("reproduce hcr mnits --out out", "NET must be one of"),
        ("reproduce hcr", "NET must be given, got nothing; see tacit reproduce hcr --help"),
        ("reproduce audit figure2 --out out", "did you mean 'figure1'?"),
        ("lern", "Did you mean 'learn'"),
        ("audit scores.csv --secrt member", "--secret"),
        ("learn private.csv --labels-only true --label a --epsilon 1 --delta 1e-5 --out out", "extra argument"),
    ],
)
def test_what_is_missing_or_misspelt_is_one_line(here, files, words, said):
    finished = here(files, *words.split())
    assert_one_line_error(finished, said)
    assert not PYTHON.search(finished.stderr)


def test_the_library_names_no_options():
    """Its errors name parameters, in backquotes in the middle of a sentence; commands put their options there."""
    raised = ("InputError", "NoTheoremError", "BudgetSpentError", "MissingExtraError")
    for path in sorted(SOURCES.rglob("*.py")):
        if path.relative_to(SOURCES).parts[0] in ("cli", "reproduce"):  # which commands alone call
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in raised:
                words = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant)]
                named = [word for word in words if isinstance(word, str) and re.search(r"(^|[\s(`'])--[a-z]", word)]
                assert [word for word in named if "ray start --head" not in word] == [], f"{path}:{call.lineno}"


def test_python_hears_of_its_own_parameters(files, monkeypatch):
    monkeypatch.chdir(files)
    options = {"data": "images.npy", "noise": "gaussian:1", "out": "out"}
    with pytest.raises(tacit.InputError, match=r"^public must be given for `prior` gaussian"):
        tacit.bound_files("model.py:features", **options, prior="gaussian")
    with pytest.raises(
        tacit.InputError, match=r"if everyone on the network is trusted, write `insecure\+dask://HOST:PORT`"
    ):
        tacit.bound_files("model.py:features", **options, engine="dask://h:1")
    with pytest.raises(tacit.InputError, match=r"check its name, or add `new_ledger=True` to make it"):
        tacit.learn_files(
            "private.csv", label="bought", public="public.csv", epsilon=1, delta=1e-5, out="o", ledger="none.db"
        )
    with pytest.raises(
        tacit.InputError, match=r"^assume_max_slope must come without `noise` and `assume_one_direction`"
    ):
        tacit.audit_file("scores.csv", secret="member", output="predicted", assume_max_slope=1, noise=1)  # noqa: S106


def test_old_keywords_go_on_working(files):
    table = files / "scores.csv"
    named = {"secret": "member", "output": "predicted", "attack_rows": 0, "pictures": False}
    with pytest.warns(
        DeprecationWarning, match=r"audit_file\(monotone=…\) will be removed; use assume_one_direction=…"
    ):
        before = tacit.audit_file(table, **named, monotone=True)
    assert before.to_json() == tacit.audit_file(table, **named, assume_one_direction=True).to_json()
    with pytest.warns(DeprecationWarning, match=r"plan\(proposer_error=…\) will be removed; use public_model_error=…"):
        made = tacit.plan(10**6, 10, epsilon=1, delta=1e-9, error=0.01, proposer_error=0.1)
    assert made == tacit.plan(10**6, 10, epsilon=1, delta=1e-9, error=0.01, public_model_error=0.1)
    with pytest.warns(DeprecationWarning, match="Plan.proposer_error will be removed"):
        assert made.proposer_error == 0.1
    with (
        pytest.warns(DeprecationWarning, match=r"learn_files\(expected=…\) will be removed; use teacher_accuracy=…"),
        pytest.raises(tacit.InputError, match="teacher_accuracy must be"),
    ):
        tacit.learn_files(
            files / "private.csv", label="bought", labels_only=True, epsilon=1, delta=1e-5, out="o", expected=0.1
        )
    with pytest.warns(DeprecationWarning, match=r"PrivateClassifier\(expected=…\) will be removed"):
        model = tacit.PrivateClassifier(expected=0.9)
    assert clone(model).teacher_accuracy == 0.9


def test_only_what_is_near_is_suggested():
    names = ["gaussian", "Laplace", "uniform"]
    assert did_you_mean("gausian", names, "no") == "did you mean 'gaussian'?"
    assert did_you_mean(" LAPLACE ", names, "no") == "did you mean 'Laplace'?"
    assert did_you_mean("cauchy", names, "no") == "no"
    assert did_you_mean(None, [], "no") == "no"
