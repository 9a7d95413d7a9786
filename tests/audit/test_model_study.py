"""`tacit audit-model`: the command, its page, and what it refuses."""

import json

import numpy as np
import pytest
from commands import assert_one_line_error
from sklearn.datasets import load_digits

from tacit import InputError
from tacit.audit import audit_model, audit_records

TRAIN = """
from sklearn.tree import DecisionTreeClassifier

def fit(X, y):
    return DecisionTreeClassifier(random_state=0).fit(X, y)

def others(X, y):
    return DecisionTreeClassifier(random_state=0).fit(X, y == 3)

def fails(X, y):
    raise RuntimeError("no luck")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("model")
    (place / "train.py").write_text(TRAIN)
    inputs, labels = load_digits(return_X_y=True)
    np.savez(place / "records.npz", X=inputs[:80], y=labels[:80])
    lines = [",".join([*(f"pixel{i}" for i in range(64)), "digit"])]
    lines += [
        ",".join([*(f"{x:g}" for x in row), f"d{label}"]) for row, label in zip(inputs[:80], labels, strict=False)
    ]
    (place / "records.csv").write_text("\n".join(lines) + "\n")
    return place


def test_the_command_reports_what_the_function_finds(folder, warm):
    """And that a ceiling is not met which nothing proves."""
    arguments = ["audit-model", "train.py:fit", "--data", "records.npz", "--models", "16"]
    ceiling = ("--require-advantage", "0.2", "--release", "class")
    said = warm.run(folder, *arguments, *ceiling, "--json", "a.json", "--report", "a.html")
    assert said.returncode == 1, said.stderr
    assert "This is about an adversary who holds the record" in " ".join(said.stdout.split())
    detail = json.loads((folder / "a.json").read_text())["detail"]
    with np.load(folder / "records.npz") as records:
        from sklearn.tree import DecisionTreeClassifier

        def fit(inputs, labels):
            return DecisionTreeClassifier(random_state=0).fit(inputs, labels)

        found = audit_records(fit, records["X"], records["y"], models=16)
    assert detail["require_advantage"] == 0.2
    assert detail["required_of"] == "the likeliest class for the record"
    assert not detail["met"]
    assert detail["epsilon_lower"] == found.epsilon
    np.testing.assert_array_equal(detail["exposure"], found.exposure)
    page = (folder / "a.html").read_text()
    assert "How many members each attack finds" in page
    assert "The most exposed records" in page
    assert not (folder / "__pycache__").exists()


def test_a_table_of_numbers_with_labels_in_words_is_read(folder):
    lines = []
    options = {"data": folder / "records.csv", "label": "digit", "pictures": False}
    report = audit_model(f"{folder}/train.py:fit", **options, seconds=1e-3, advance=lines.append)
    assert report.detail["models"] == 16
    assert report.detail["records"] == 80
    assert any("16 of 16 models trained" in line for line in lines)
    assert len(report.verdicts) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["train.py:fitt"], "TRAIN must name a function of train.py, got 'train.py:fitt'; did you mean 'fit'?"),
        (["train.py"], "TRAIN must be FILE.py:FUNCTION"),
        (["missing.py:fit"], "no such file"),
        (["train.py:fails"], "RuntimeError: no luck"),
        (["train.py:others"], "must know no classes but the labels of the records, such as 0, got 'the class False'"),
        (["train.py:fit", "--label", "digits"], "must name one of the 65 columns of --data, got 'digits'"),
        (["train.py:fit", "--models", "3"], "--models must be"),
        (["train.py:fit", "--delta", "-1"], "--delta must be"),
        (["train.py:fit", "--require-advantage", "0.1"], "--require-advantage must come with --release"),
        (["train.py:fit", "--release", "class"], "--release must come with --require-advantage"),
        (["train.py:fit", "--require-advantage", "0.1", "--release", "all"], "--release must be one of 'class'"),
        (["train.py:fit", "--require-advantage", "0", "--release", "class"], "--require-advantage must be"),
    ],
)
def test_bad_input_is_one_line(folder, here, options, said):
    found = here(folder, "audit-model", *options[:1], "--data", "records.npz", *options[1:])
    assert_one_line_error(found, said)


def test_a_ceiling_is_met_only_where_it_is_proven_for_the_release(folder):
    """Of one class for all records nothing can be told; a digit of a tree's probability tells as much as the class."""
    (folder / "constant.py").write_text(
        "from sklearn.dummy import DummyClassifier\n\n\n"
        "def fit(X, y):\n    return DummyClassifier(strategy='uniform').fit(X, y)\n"
    )
    options = {"data": folder / "records.npz", "models": 16, "pictures": False, "release": "class"}
    free = audit_model(f"{folder}/constant.py:fit", **options, require_advantage=1.0)
    limit = free.comparisons[0].guarantee.value
    assert limit < 1
    assert free.met  # though of all probabilities nothing is proven
    assert "ceiling" in free.verdicts[0].reason
    assert not any("ceiling" in verdict.reason for verdict in free.verdicts[1:])
    below = {"require_advantage": limit * 0.99}
    assert not audit_model(f"{folder}/constant.py:fit", **options, **below).met


def test_copies_are_left_out_and_counted(tmp_path, folder):
    lines = (folder / "records.csv").read_text().splitlines()
    (tmp_path / "copies.csv").write_text("\n".join([*lines, *lines[1:6], ""]))
    report = audit_model(
        f"{folder}/train.py:fit", data=tmp_path / "copies.csv", label="digit", models=16, pictures=False
    )
    assert report.detail["records"] == 80
    assert "5 copies of records were left out." in report.summary[1]
    assert list(report.detail["numbers"]) == list(range(1, 81))


def test_labels_that_spell_whole_numbers_are_numbers_and_files_keep_nothing(tmp_path):
    """A torch module numbers its classes; what a file draws when it is run is drawn for each model."""
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal()},{rng.normal()},{i % 2}" for i in range(60)]
    (tmp_path / "xy.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "net.py").write_text(
        "import torch, numpy, pathlib\n"
        f"pathlib.Path({str(tmp_path)!r}, f'run-{{numpy.random.default_rng().integers(2**60)}}').touch()\n"
        "def fit(X, y):\n"
        "    assert y.dtype.kind == 'i'\n"
        "    return torch.nn.Linear(2, 2)\n"
    )
    report = audit_model(f"{tmp_path}/net.py:fit", data=tmp_path / "xy.csv", models=16, pictures=False)
    assert report.detail["records"] == 60
    assert len(list(tmp_path.glob("run-*"))) == 17


def test_text_among_the_numbers_is_refused(tmp_path, folder):
    (tmp_path / "words.csv").write_text("a,y\n1,0\nb,1\n")
    with pytest.raises(InputError, match="column 'a' of `data` must hold a number for every record"):
        audit_model(f"{folder}/train.py:fit", data=tmp_path / "words.csv")
