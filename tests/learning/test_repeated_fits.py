"""Fits that scikit-learn repeats, and pipelines that transform private records: what they cost is said."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tacit import BudgetSpentError, InputError, Ledger, PrivacyWarning, PrivateClassifier, learn_files
from tacit.learning import repeated_fits

RNG = np.random.default_rng(0)
POINTS = RNG.normal([40, -3], [12, 0.5], size=(600, 2))
LABELS = (POINTS[:, 0] > 40).astype(int)
PUBLIC = RNG.normal([40, -3], [12, 0.5], size=(120, 2))


def model(**options):
    settings = {"epsilon": 1.0, "delta": 1e-5, "n_teachers": 5, "classes": [0, 1], "mechanism": "gnmax", "queries": 10}
    return PrivateClassifier(LogisticRegression(), **{**settings, **options})


def heard(action):
    """The warnings about privacy, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning)]


def test_the_second_fit_and_every_further_one_say_what_all_cost():
    said = heard(lambda: [model().fit(POINTS, LABELS, PUBLIC) for _ in range(3)])
    assert len(said) == 2
    assert "fit number 2 on the same private records: all of them together cost ε = 2 and δ = 0.00002" in said[0]
    assert "fit number 3 on the same private records: all of them together cost ε = 3 and δ = 0.00003" in said[1]
    assert ["give a `ledger`" in one for one in said] == [True, False]  # what to do is said once
    other = RNG.normal([40, -3], [12, 0.5], size=(600, 2))
    assert heard(lambda: model().fit(other, LABELS, PUBLIC)) == []


def test_a_search_tells_what_it_spent_in_all():
    """Three folds of two settings, and the best again on all records: seven fits."""
    search = GridSearchCV(model(), {"queries": [5, 10]}, cv=3)
    said = heard(lambda: search.fit(POINTS, LABELS, X_public=PUBLIC))
    assert len(said) == 6
    assert "fit number 7 " in said[-1]
    assert "ε = 7 and δ = 0.00007" in said[-1]


def test_cross_validation_tells_what_it_spent_in_all():
    said = heard(lambda: cross_val_score(model(), POINTS, LABELS, cv=3, params={"X_public": PUBLIC}))
    assert [re.search(r"fit number (\d)", one)[1] for one in said] == ["2", "3"]


def test_disjoint_records_do_not_add_up_until_a_fit_joins_them():
    halves = [(POINTS[::2], LABELS[::2]), (POINTS[1::2], LABELS[1::2])]
    assert heard(lambda: [model().fit(*half, PUBLIC) for half in halves]) == []
    (joined,) = heard(lambda: model().fit(POINTS, LABELS, PUBLIC))
    assert "fit number 3" in joined


def test_a_ledger_refuses_what_exceeds_its_budget(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=2, delta=1e-4)
    search = GridSearchCV(model(ledger=ledger), {"queries": [5, 10]}, cv=3, error_score="raise")
    with pytest.raises(BudgetSpentError, match="must cover"):
        search.fit(POINTS, LABELS, X_public=PUBLIC)
    assert float(ledger.spent.epsilon) == 2


WORKERS = """
import sys
sys.path.insert(0, {tests!r})
from sklearn.model_selection import GridSearchCV
from test_repeated_fits import LABELS, POINTS, PUBLIC, model
from tacit import BudgetSpentError, Ledger

if __name__ == "__main__":
    settings = {{"queries": [5, 10]}}
    GridSearchCV(model(), settings, cv=3, n_jobs=2).fit(POINTS, LABELS, X_public=PUBLIC)
    ledger = Ledger.open(sys.argv[1], epsilon=3, delta=0.5)
    search = GridSearchCV(model(ledger=ledger), settings, cv=3, n_jobs=2, error_score="raise")
    try:
        search.fit(POINTS + 1, LABELS, X_public=PUBLIC)
    except BudgetSpentError as refusal:
        print(refusal, ledger.spent.epsilon)
"""


def test_workers_hide_nothing(tmp_path):
    """Six fits in two processes and one here: the last knows of all of them; a ledger stops them all."""
    script = tmp_path / "search.py"
    script.write_text(WORKERS.format(tests=str(Path(__file__).resolve().parent)))
    environment = {name: value for name, value in os.environ.items() if name != repeated_fits.VARIABLE}
    command = [sys.executable, str(script), str(tmp_path / "l.sqlite")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fit number 7 on the same private records: all of them together cost ε = 7" in done.stderr
    assert "must cover" in done.stdout
    assert done.stdout.strip().endswith(" 3")


def test_the_file_is_private_and_goes_with_its_process():
    script = (
        "from tacit.learning import repeated_fits as r\nimport numpy as np, os\n"
        "r.count(np.ones((9, 2)), epsilon=1.0, delta=0.0, release=None, limited=False)\n"
        "place = os.environ[r.VARIABLE].partition(' ')[2]\nprint(place, oct(os.stat(place).st_mode & 0o777))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != repeated_fits.VARIABLE}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    place, mode = done.stdout.split()
    assert mode == "0o600"
    assert not Path(place).exists()


def test_the_same_release_again_costs_nothing(tmp_path):
    """A call that goes on in its folder, with its ledger, is the same release."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=1, delta=1e-5)
    for _ in range(2):
        model(ledger=ledger).fit(POINTS, LABELS, PUBLIC, folder=tmp_path / "private")
    (said,) = heard(lambda: model().fit(POINTS, LABELS, PUBLIC))
    assert "fit number 2 on the same private records: all of them together cost ε = 2 and" in said


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_a_pipeline_that_transforms_private_records_alone_is_told(scaler):
    pipeline = make_pipeline(scaler, model())
    said = heard(lambda: pipeline.fit(POINTS, LABELS, privateclassifier__X_public=PUBLIC))
    assert len(said) == 1
    assert "columns of X lie elsewhere than those of X_public or are on another scale" in said[0]
    assert "in a Pipeline for example; fit the transformer to public records" in said[0]


def test_a_transformer_that_saw_private_records_is_told_though_it_transformed_both():
    scaler = StandardScaler().fit(POINTS)
    said = heard(lambda: model().fit(scaler.transform(POINTS), LABELS, scaler.transform(PUBLIC)))
    assert len(said) == 1
    assert said[0].startswith("every column of X has mean 0, so a transformer was fitted to these private records; the")


def test_a_transformer_of_public_records_is_not_told():
    scaler = StandardScaler().fit(PUBLIC)
    assert heard(lambda: model().fit(scaler.transform(POINTS), LABELS, scaler.transform(PUBLIC))) == []


def test_another_number_of_columns_is_one_line():
    with pytest.raises(
        InputError, match=r"the number of columns of X_public must be that of X, 2; a Pipeline transforms"
    ):
        model().fit(POINTS, LABELS, np.hstack([PUBLIC, PUBLIC]))


def test_honest_records_of_many_kinds_are_not_told():
    """Counts, balanced codes and columns that never vary have means of 0 without anybody's doing."""
    coded = np.column_stack([np.tile([-1.0, 1.0], 300), POINTS[:, 0], np.zeros(600)])
    public = np.column_stack([np.tile([-1.0, 1.0], 60), PUBLIC[:, 0], np.zeros(120)])
    assert heard(lambda: model().fit(coded, LABELS, public)) == []


@pytest.fixture
def table(tmp_path):
    """A file of private records, another of public ones, and three folders."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    rows = [f"{x:.6f},{y:.6f},{label}\n" for (x, y), label in zip(POINTS, LABELS, strict=True)]
    (tmp_path / "private.csv").write_text("x,y,z\n" + "".join(rows))
    (tmp_path / "public.csv").write_text("x,y\n" + "".join(f"{x:.6f},{y:.6f}\n" for x, y in PUBLIC))
    return tmp_path


def learned(here, folder, private, *more):
    options = "--label z --epsilon 1 --delta 1e-5 --classes 0,1 --teachers 5 --mechanism gnmax --queries 10 --quiet"
    return here(folder, "learn", private, "--public", "../public.csv", "--out", "out", *options.split(), *more)


def test_a_second_run_elsewhere_is_told_of_the_first_ledger(table, here, monkeypatch, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    assert learned(here, table / "a", "../private.csv").stderr == ""
    first = (table / "a" / "out" / "ledger.sqlite").resolve()
    second = learned(here, table / "b", "../private.csv")
    assert second.returncode == 0
    assert second.stderr == (
        f"tacit: warning: these private records have a ledger already, {first}, where ε = 1 and δ = 0.00001 was spent: "
        f"what is spent here comes on top; use --ledger {first} to keep one budget for them\n"
    )
    kept = list((state / "tacit" / "ledgers").iterdir())
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert (state / "tacit" / "ledgers").stat().st_mode & 0o777 == 0o700
    assert not any(b"private.csv" in path.read_bytes() or b"40." in path.read_bytes() for path in kept)


def test_copied_and_edited_records_are_recognised_and_one_budget_is_kept(table, here):
    assert learned(here, table / "a", "../private.csv").returncode == 0
    first = str((table / "a" / "out" / "ledger.sqlite").resolve())
    (table / "copy.csv").write_bytes((table / "private.csv").read_bytes())
    refused = learned(here, table / "b", "../copy.csv", "--ledger", first)
    assert refused.returncode == 2
    assert "must cover ε = 1" in refused.stderr
    assert "warning" not in refused.stderr
    assert "have a ledger already" in learned(here, table / "b", "../copy.csv").stderr
    shutil.rmtree(table / "b" / "out")
    again = learned(here, table / "c", "../copy.csv").stderr
    assert "had a ledger, " in again
    assert "which is gone: what it paid for was spent all the same" in again
    text = (table / "private.csv").read_text()
    (table / "private.csv").write_text(text + "1.5,2.5,1\n")
    with pytest.warns(PrivacyWarning, match="use `ledger` "):
        learn_files(
            table / "private.csv",
            label="z",
            epsilon=1,
            delta=1e-5,
            classes="0,1",
            teachers=5,
            mechanism="gnmax",
            public=table / "public.csv",
            out=table / "third",
        )


def test_other_records_are_no_warning_and_a_ledger_that_is_gone_is_one(table, here):
    assert learned(here, table / "a", "../private.csv").returncode == 0
    (table / "other.csv").write_text((table / "private.csv").read_text() + "1.5,2.5,1\n")
    assert learned(here, table / "b", "../other.csv").stderr == ""
    (table / "a" / "out" / "ledger.sqlite").unlink()
    assert "which is gone: what it paid for was spent" in learned(here, table / "c", "../private.csv").stderr


def test_a_state_folder_that_cannot_be_written_hinders_nothing(table, here, monkeypatch):
    (table / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(table / "file"))
    assert learned(here, table / "a", "../private.csv").returncode == 0
