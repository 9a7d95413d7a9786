"""`tacit reproduce mapl` and `mechanisms` in small: real records if any, both data sets, resumption, bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest
from published_data import write_adult, write_digits
from sklearn.base import clone

from tacit import InputError, cli
from tacit.reproduce import gather, mapl, mechanisms
from tacit.reproduce.mapl import MECHANISMS, SPLITS, Task, reproduce, steps

PRIVATE, TEST = 3000, 900


@pytest.fixture(scope="module")
def adult(tmp_path_factory):
    """A data folder with the first records of Adult."""
    return write_adult(tmp_path_factory.mktemp("data"), known=PRIVATE, tested=TEST)


@pytest.fixture(scope="module")
def finished(adult, tmp_path_factory):
    out, said = tmp_path_factory.mktemp("runs") / "adult", []
    task = Task(name="adult", out=out, data=adult, seeds=1, epsilons=(20.0,))
    return task, reproduce(task, advance=said.append), said


def test_a_small_run_reports_every_mechanism_on_both_splits(finished):
    task, report, said = finished
    rows = report.detail["rows"]
    assert {(row["split"], row["mechanism"]) for row in rows} == {(s, m) for s in SPLITS for m in MECHANISMS}
    assert len(said) == len(steps(task))
    by_name = {row["mechanism"]: row for row in report.detail["means"]}
    assert by_name["gnmax"]["answered"] == by_name["gnmax"]["asked"] > 0
    assert by_name["confident-gnmax"]["answered"] <= by_name["confident-gnmax"]["asked"]
    for name in ("gnmax", "recipe", "moments", "not private"):
        # Three quarters of the records earn less: a student that always says so is right on those.
        assert 0.7 < by_name[name]["least"] <= by_name[name]["accuracy"] < 0.9, name
    assert by_name["not private"]["epsilon"] == 0
    assert len(report.tables[0].rows) == len(MECHANISMS)
    assert "Published: PATE 2018" in " ".join(report.summary)
    assert report.comparisons[0].guarantee.value == 20


def test_results_are_files_that_a_page_can_be_made_of(finished, tmp_path):
    task, report, _ = finished
    assert json.loads((task.out / "results.json").read_text())["detail"]["setting"]["seeds"] == 1
    page = gather([task.out], tmp_path / "docs" / "learning.md", title="Learning").read_text()
    assert page.startswith("# Learning\n")
    assert "| GNMax | 20 |" in page
    assert (tmp_path / "docs" / "learning-adult-errors.svg").read_text() == report.opening[0].svg


def test_a_finished_release_is_never_drawn_again(finished, adult):
    task, report, _ = finished
    (task.out / "last-0-gnmax-20.json").unlink()
    again = reproduce(Task(name="adult", out=task.out, data=adult, seeds=1, epsilons=(20.0,), resume=True))
    left = [row for row in report.detail["rows"] if (row["split"], row["mechanism"]) != ("last", "gnmax")]
    assert [r for r in again.detail["rows"] if (r["split"], r["mechanism"]) != ("last", "gnmax")] == left


def test_a_run_does_not_go_on_with_constants_that_the_library_would_choose_no_more(finished, adult, monkeypatch):
    task, _, _ = finished
    less = mapl.margins(0.55)
    monkeypatch.setattr(mapl, "margins", lambda _: less)  # as if another version chose them for teachers who agree less
    with pytest.raises(InputError, match="must belong to the same task, which differs in constants"):
        reproduce(Task(name="adult", out=task.out, data=adult, seeds=1, epsilons=(20.0,), resume=True))


def test_digits_by_kernels_gradients_and_a_network(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    write_digits(data, known=2500, tested=2100)
    out = tmp_path / "out"
    options = ["--data", str(data), "--out", str(out), "--seeds", "1", "--epsilon", "40"]
    assert cli._run(["reproduce", "mapl", "mnist", *options, "--mechanism", "gnmax", "--mechanism", "recipe"]) == 0
    assert "At ε = 40 the recipe's student is right on" in capsys.readouterr().out.replace("\n", " ")
    simple, recipe = json.loads((out / "results.json").read_text())["detail"]["means"]
    assert recipe["asked"] == recipe["answered"] == 200
    # 500 teachers of five digits each; a guess is right on a tenth.
    assert simple["accuracy"] > 0.7
    assert recipe["accuracy"] > 0.5


def test_neighbours_need_no_teachers(tmp_path, monkeypatch):
    setting = mapl.SETTINGS["fashion"]()
    fewer = clone(setting.student).set_params(final__nystroem__n_components=300)  # than there are public digits
    monkeypatch.setitem(mapl.SETTINGS, "fashion", lambda: replace(setting, student=fewer, recipe=fewer))
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write_digits(data, known=4000, tested=1600)
    (data / "mnist").rename(data / "fashion-mnist")
    report = reproduce(Task(name="fashion", out=out, data=data, seeds=1, epsilons=(2.0,), mechanisms=("neighbours",)))
    assert not list(out.glob("votes-*"))
    assert "teachers" not in " ".join(report.summary)
    (mean,) = report.detail["means"]
    assert mean["answered"] == mean["asked"] > 0
    assert mean["accuracy"] > 0.6  # a guess is right on a tenth
    proven = report.comparisons[0].guarantee
    assert proven.value == 2
    assert "theory.accounting.quota_delta" in proven.theorem
    assert proven.detail["quota"] == report.detail["rows"][0]["quota"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("iris",), "DATA must be"),
        (("adult", "--data", "."), "the data must name a file that exists, got 'adult.tar.xz'"),
        (("mnist", "--data", "."), "the data must name a file that exists, got 'mnist/train-images-idx3-ubyte.gz'"),
        (("adult", "--seeds", "0"), "--seeds must be"),
        (("adult", "--epsilon", "0"), "--epsilon must be"),
        (("adult", "--mechanism", "magic"), "--mechanism must be"),
    ],
)
def test_bad_input_gets_one_line(arguments, said, adult, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_DATA", str(adult))
    assert cli._run(["reproduce", "mapl", *arguments, "--out", "out"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "out" / "results.json").exists()


def test_every_way_to_answer_on_the_same_votes(adult, tmp_path, capsys):
    out = tmp_path / "ways"
    options = ["--data", str(adult), "--out", str(out), "--councils", "1", "--teachers", "60", "--epsilon", "8"]
    assert cli._run(["reproduce", "mechanisms", "adult", *options]) == 0
    assert "60 teachers at ε = 8" in capsys.readouterr().out
    votes = np.load(out / "votes-60-0.npy")
    assert votes.sum(axis=1).tolist() == [60] * len(votes)
    rows = {row["mechanism"]: row for row in json.loads((out / "results.json").read_text())["detail"]["rows"]}
    assert set(rows) == set(mechanisms.COMPARED)
    noisy, gate = rows["gnmax"], rows["gate"]
    assert noisy["answered"] == noisy["asked"] > gate["answered"] > 0
    assert noisy["accuracy"] > 0.7
    # What the gate answers is the winner itself, and mostly where the teachers agree.
    assert gate["labels"] >= noisy["plurality"] - 0.1
    assert "| 60 | 8 |" in gather([out], tmp_path / "page.md", title="Ways").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("iris",), "DATA must be"),
        (("adult", "--councils", "0"), "--councils must be"),
        (("adult", "--teachers", "1"), "--teachers must be"),
        (("adult", "--epsilon", "0"), "--epsilon must be"),
    ],
)
def test_bad_input_of_the_ways_gets_one_line(arguments, said, adult, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_DATA", str(adult))
    assert cli._run(["reproduce", "mechanisms", *arguments, "--out", "out"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "out").exists()
