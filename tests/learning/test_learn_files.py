"""`tacit learn` as people run it: real tables, real kills, and nothing private in what is published."""

import base64
import csv
import json
import os
import random
import re
import shutil
import signal
import stat
import time
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import skops.io
from commands import PROGRESS, assert_one_line_error, run
from pages import Page, unfolded_words
from pyarrow import parquet
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tacit import Comparison, InputError, learn_files
from tacit.learning.dry_run import trusted_types, try_estimator
from tacit.learning.study.learners import proposer
from tacit.learning.study.places import _spent
from tacit.ledger import Ledger
from tacit.runtime import run_folder, tables

PLACE = "Ytterby"  # a place that one private record alone names
BUDGET = ("--epsilon", "8", "--delta", "1e-5")
QUICK = ("--teachers", "40", "--mechanism", "gnmax", "--queries", "30")


def mixed(generator, size):
    """Ages, colours, flags and incomes with gaps; who buys depends on the first two."""
    rows = []
    for _ in range(size):
        age, colour = int(generator.integers(18, 90)), str(generator.choice(["red", "green", "blue"]))
        income = "" if generator.random() < 0.05 else f"{generator.normal(50, 10):.2f}"
        bought = "yes" if age + 15 * (colour == "red") > 60 else "no"
        rows.append([age, colour, bool(generator.random() < 0.5), income, bought])
    return rows


def write_csv(path, rows, header):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


HEADER = ["age", "colour", "member", "income", "bought"]
MIXED = ("private.csv", "--label", "bought", "--public", "public.csv", *BUDGET, *QUICK)
FEW = (*QUICK, "--teachers", "10")
SMALL = (*MIXED, *FEW)
"""For tests that do not ask how right the answers are: the noise is as large as these votes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("learn")
    generator = np.random.default_rng(0)
    private = mixed(generator, 1500)
    private[700][1] = PLACE
    write_csv(place / "private.csv", private, HEADER)
    write_csv(place / "public.csv", [row[:-1] for row in mixed(generator, 300)], HEADER[:-1])
    write_csv(place / "test.csv", mixed(generator, 400), HEADER)
    return place


@pytest.fixture(scope="module")
def finished(folder, warm):
    done = warm.run(
        folder, "learn", *MIXED, "--test", "test.csv", "--out", "out", "--json", "copy.json", "--report", "copy.html"
    )
    assert done.returncode == 0, done.stderr
    return done


def results(folder, out="out"):
    return json.loads((folder / out / "publish" / "results.json").read_text())


def loaded(folder, out="out"):
    trusted = results(folder, out)["detail"]["student"]["trusted"]
    return skops.io.load(folder / out / "publish" / "student.skops", trusted=trusted)


def test_the_guarantee_comes_first_with_its_assumptions(folder, finished):
    assert "any conclusion that they draw has, with any one private record," in " ".join(
        finished.stdout.split("\n\n")[2].split()
    )
    (comparison,) = [Comparison.from_dict(item) for item in results(folder)["comparisons"]]
    assert comparison.guarantee.value == 8.0
    assumed = comparison.guarantee.assumed(checked_by="caller")
    assert not any("classes that were named" in text for text in assumed)
    assert any("accuracy on the test records may be known" in text for text in assumed)
    assert comparison.guarantee.detail["neighbours"] == "one record added or removed"
    said = " ".join(finished.stdout.split())
    assert "Protected: one record added or removed." in said
    # e⁸ = 2980.96. That a likelihood ratio exceeds e^ε with probability δ at most is more than (ε, δ) says.
    assert (
        "any conclusion that they draw has, with any one private record, at most 2990 times the probability that it "
        "would have without it (ε = 8), plus δ = 1e-05; and the other way round." in said
    )
    assert "except with probability" not in said
    assert "the promise is then weaker, ε = 16 and δ = 0.0299" in said
    assert "on average" not in said
    assert not {name for name in results(folder)["detail"] if "per_answer" in name}
    assert (folder / "copy.json").read_text() == (folder / "out" / "publish" / "results.json").read_text()
    page = Page((folder / "out" / "publish" / "report.html").read_text())
    assert page.tags.count("img") == 2
    assert "ε at most 8" in page.text
    assert [card["level"] for card in results(folder)["verdicts"]] == ["weak", "fine", "fine"]
    assert unfolded_words((folder / "out" / "publish" / "report.html").read_text()) <= 900


def test_the_private_room_is_closed_to_others_and_the_other_one_is_not(folder, finished):  # noqa: ARG001
    (folder / "plain").write_text("")
    usual = stat.S_IMODE((folder / "plain").stat().st_mode)
    private, public = (list((folder / "out" / name).rglob("*")) for name in ("private", "publish"))
    assert {path.name for path in private} >= {"README.txt", "owner.html", "owner.json", "release.json", "teachers"}
    for path in (folder / "out" / "private", *private):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert {stat.S_IMODE(path.stat().st_mode) for path in public} == {usual}


def test_the_student_comes_back_and_predicts_what_was_measured(folder, finished):  # noqa: ARG001
    test = tables.read(folder / "test.csv", name="--test")
    measured = results(folder)["detail"]["test"]
    predicted = loaded(folder).predict(test)
    assert measured["accuracy"] == np.mean(predicted == test["bought"])
    assert measured["low"] < measured["accuracy"] < measured["high"]
    assert measured["accuracy"] > 0.8 > measured["one_class"]
    assert loaded(folder).predict_proba(test).shape == (400, 2)


def test_every_untrusted_type_of_the_student_is_listed(folder, finished):  # noqa: ARG001
    listed = results(folder)["detail"]["student"]["trusted"]
    assert listed == sorted(skops.io.get_untrusted_types(file=folder / "out" / "publish" / "student.skops"))
    assert all(name.startswith("tacit.") for name in listed)


def chosen_student(folder, out, printed):
    found = results(folder, out)["detail"]["student"]
    said = " ".join(printed.split())
    assert f"The student is {found['chosen']}: {found['reason']}. This depends only on answers that were" in said
    return found, said


def test_few_answers_keep_the_learner(folder, finished):
    found, said = chosen_student(folder, "out", finished.stdout)
    assert (found["chosen"], found["answers"], found["agreement"]) == ("the learner", 0, {})
    assert "Students compared" not in said


def test_the_report_says_which_student_was_chosen_and_by_which_figures(folder, tmp_path, here):
    """A class that fewer than five of 200 answers name is out of reach of the noise."""
    options = ("--test", "test.csv", *BUDGET, "--classes", "no,yes", "--teachers", "30", "--mechanism", "gnmax")
    options += ("--learner", "sklearn.tree:DecisionTreeClassifier", "--queries", "200", "--out", tmp_path / "out")
    done = here(folder, "learn", *MIXED[:5], *options)
    assert done.returncode == 0, done.stderr
    found, said = chosen_student(tmp_path, "out", done.stdout)
    assert found["answers"] == 200
    assert set(found["agreement"]) == {"the learner", *found["errors"]}
    assert "Students compared" in said
    card = results(tmp_path)["verdicts"][1]["reason"]
    assert ("of answers left out" in card) == (found["chosen"] != "the learner")
    assert len(loaded(tmp_path).predict(tables.read(folder / "test.csv", name="--test"))) == 400


def test_public_records_have_answers_and_gaps(folder, finished):  # noqa: ARG001
    with (folder / "public.csv").open() as file:
        before = list(csv.reader(file))
    with (folder / "out" / "publish" / "labelled.csv").open() as file:
        after = list(csv.reader(file))
    assert after[0] == HEADER
    assert [row[:-1] for row in after] == before
    labels = [row[-1] for row in after[1:]]
    detail = results(folder)["detail"]
    assert sum(label in ("yes", "no") for label in labels) == detail["answered"] == 30
    assert set(labels) == {"yes", "no", ""}


def published(place):
    """Every file that may leave, and what lies inside those that are archives."""
    for path in sorted(place.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    yield from ((f"{path.name}/{name}", archive.read(name)) for name in archive.namelist())


def legible(content):
    """The content with its Base64 decoded and without its digests, where any four digits may stand by chance."""
    decoded = re.sub(rb"base64,([A-Za-z0-9+/=]+)", lambda found: base64.b64decode(found[1]), content)
    return re.sub(rb"[0-9a-f]{64}", b"", decoded)


def test_nothing_private_is_published(folder, finished):
    key = run_folder.record(folder / "out" / "private" / "release.json", dict, claimed=False)["key"]
    owner = json.loads((folder / "out" / "private" / "owner.json").read_text())["detail"]
    assert len(owner["leads"]) == 30
    assert owner["test_unprotected"]["accuracy"] > 0.9
    assert owner["unknown"]["colour"] == pytest.approx(1 / 1500)
    assert 0.03 < owner["unknown"]["income"] < 0.07
    assert owner["unknown"]["age"] == 0
    unprotected = repr(owner["test_unprotected"]["accuracy"])
    contents = dict(published(folder / "out" / "publish"))
    assert {name for name in contents if "/" not in name} == {
        *("labelled.csv", "report.html", "results.json", "student.skops")
    }
    contents["the ledger"] = (folder / "out" / "ledger.sqlite").read_bytes()
    contents["the terminal"] = (finished.stdout + finished.stderr).encode()
    records = [line.encode() for line in (folder / "private.csv").read_text().splitlines()[1:] if line[-4] != ","]
    for name, content in contents.items():
        for secret in (PLACE, key, unprotected, "teacher-0"):
            assert secret.encode() not in content, f"{secret} stands in {name}"
        # How many private records there are, as a number of its own: skops names parts by addresses, of 15 digits.
        assert not re.search(rb"(?<!\d)1500(?!\d)", legible(content)), f"1500 stands in {name}"
        if name != "labelled.csv":  # public records may be equal to private ones
            assert not any(record in content for record in records)
        if name == "results.json":
            assert "leads" not in content.decode()
    assert (folder / "out" / "private").stat().st_mode & 0o077 == 0
    assert "NOT TO BE PUBLISHED" in (folder / "out" / "private" / "owner.html").read_text()
    assert "not bounded" in Page((folder / "out" / "private" / "owner.html").read_text()).text


def test_a_finished_run_is_resumed_for_nothing_with_any_student(folder, finished, here):  # noqa: ARG001
    before = {name: content for name, content in published(folder / "out" / "publish") if name == "labelled.csv"}
    spent = Ledger.open(folder / "out" / "ledger.sqlite").to_dict()
    assert_one_line_error(here(folder, "learn", *MIXED, "--out", "out"))
    student = ("--student", "sklearn.tree:DecisionTreeClassifier", "--student-set", "max_depth=3")
    again = here(folder, "learn", *MIXED, "--out", "out", "--resume", *student)
    assert again.returncode == 0, again.stderr
    assert (folder / "out" / "publish" / "labelled.csv").read_bytes() == before["labelled.csv"]
    assert Ledger.open(folder / "out" / "ledger.sqlite").to_dict() == spent
    assert type(loaded(folder)[-1].student).__name__ == "DecisionTreeClassifier"


def test_a_spent_ledger_refuses_the_next_release(folder, finished, here):  # noqa: ARG001
    refused = here(folder, "learn", *MIXED, "--out", "second", "--ledger", "out/ledger.sqlite")
    assert_one_line_error(refused)
    assert "must cover ε = 8 and δ = 0.00001, got ε = 0 and δ = 0 remaining" in refused.stderr
    assert not (folder / "second" / "private" / "teachers").exists()


def test_a_ledger_with_room_takes_several_releases(folder, here):
    Ledger.open(folder / "large.db", epsilon=20, delta=1e-4)
    for out in ("one", "two"):
        done = here(folder, "learn", *SMALL, "--out", out, "--ledger", "large.db", "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert str(Ledger.open(folder / "large.db").remaining.epsilon) == "4"
    assert not (folder / "one" / "ledger.sqlite").exists()


def test_a_search_that_finds_no_classes_says_what_is_left_for_naming_them(folder, here):
    few = [line for line in (folder / "private.csv").read_text().splitlines() if PLACE not in line][:201]
    (folder / "few.csv").write_text("\n".join(few))
    task = ("learn", "few.csv", "--label", "bought", "--public", "public.csv", *FEW, "--out", "few", "--quiet")
    finished = here(folder, *task, "--epsilon", "1", "--delta", "1e-5")
    remedy = re.search(r"use at most (--epsilon \S+) and (--delta \S+)", finished.stderr)
    assert remedy is not None, finished.stderr
    again = here(folder, *task, "--classes", "no,yes", *remedy[1].split(), *remedy[2].split())
    assert "budget" not in again.stderr
    assert again.returncode == 0, again.stderr


def test_a_mistyped_ledger_is_refused_unless_it_is_to_be_new(folder, here):
    budget = ("--ledger", "lagre.db", "--anchor", "elsewhere.json")
    refused = here(folder, "learn", *SMALL, "--out", "mistyped", *budget)
    assert_one_line_error(refused)
    assert "--ledger must name a file that exists" in refused.stderr
    assert "--new-ledger" in refused.stderr
    assert not (folder / "lagre.db").exists()
    done = here(folder, "learn", *SMALL, "--out", "mistyped", *budget, "--new-ledger", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    last = Ledger.open(folder / "lagre.db").to_dict()["links"][-1]
    for anchor in (folder / "elsewhere.json", folder / "mistyped" / "private" / "anchor.json"):
        assert json.loads(anchor.read_text()) == {"id": last["id"], "digest": last["digest"]}


def test_a_mistyped_anchor_is_refused_unless_it_is_to_be_new(folder, here):
    Ledger.open(folder / "watched.db", epsilon=20, delta=1e-4, anchor=folder / "anchor.json")
    budget = ("--out", "watched", "--ledger", "watched.db", "--anchor")
    refused = here(folder, "learn", *SMALL, *budget, "anchro.json")
    assert_one_line_error(refused)
    assert "--new-anchor" in refused.stderr
    assert not (folder / "anchro.json").exists()
    assert Ledger.open(folder / "watched.db").entries() == ()
    done = here(folder, "learn", *SMALL, *budget, "second.json", "--new-anchor", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    last = Ledger.open(folder / "watched.db", anchor=folder / "anchor.json").to_dict()["links"][-1]
    assert json.loads((folder / "second.json").read_text()) == {"id": last["id"], "digest": last["digest"]}


@pytest.mark.parametrize("anchor", ["nowhere/anchor.json", "taken.json", "."])
def test_an_anchor_that_cannot_be_used_is_refused_before_anything_is_made(folder, here, anchor):
    """Else the ledger would be there without its anchor, and the mended command would be refused."""
    if not (folder / "taken.json").exists():
        Ledger.open(folder / "other.db", epsilon=1, delta=0, anchor=folder / "taken.json")
    refused = here(folder, "learn", *MIXED, "--out", "unanchored", "--anchor", anchor)
    assert_one_line_error(refused)
    assert "--anchor must" in refused.stderr
    assert "delete it" not in refused.stderr
    assert not (folder / "unanchored").exists()


def test_a_run_does_not_go_on_without_the_anchor_it_began_with(folder, here):
    done = here(folder, "learn", *SMALL, "--out", "outside", "--anchor", "outside.json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    refused = here(folder, "learn", *SMALL, "--out", "outside", "--resume")
    assert_one_line_error(refused)
    assert f"add --anchor {folder / 'outside.json'}" in refused.stderr
    done = here(folder, "learn", *SMALL, "--out", "outside", "--anchor", "outside.json", "--resume", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_that_ends_before_its_ledger_is_there_remembers_its_anchor(folder, here, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    run = ("learn", *SMALL, "--out", "early", "--ledger", "early.db", "--new-ledger")
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "open", interrupted)
        assert here(folder, *run, "--anchor", "early.json").returncode == 130
    refused = here(folder, *run, "--resume")
    assert_one_line_error(refused)
    assert f"add --anchor {folder / 'early.json'}" in refused.stderr


@pytest.mark.parametrize("wrong", [{"queries": 200}, {"classes": ["yes", "no"]}])
def test_what_a_command_writes_as_text_is_text_in_python_too(folder, wrong):
    budget = {"epsilon": 8, "delta": 1e-5, "out": folder / "typed"}
    with pytest.raises(InputError, match="must be text"):
        learn_files(folder / "private.csv", label="bought", public=folder / "public.csv", **budget, **wrong)
    assert not (folder / "typed").exists()


def test_what_others_spent_is_not_this_runs(tmp_path):
    (tmp_path / "private").mkdir()
    ledger = Ledger.open(tmp_path / "shared.db", epsilon=5, delta=1e-4)
    ledger.spend("somebody else", epsilon=3)
    assert _spent(ledger, tmp_path) == "nothing was spent"


@pytest.mark.parametrize(("word", "spent"), [("training teachers", False), ("writing what may", True)])
def test_an_interrupted_run_says_what_was_spent(folder, here, monkeypatch, word, spent):
    from tacit.learning.study import run

    written = run._run

    def interrupted(task, advance):
        def stops(said):
            if word in said:
                raise KeyboardInterrupt
            advance(said)

        return written(task, stops)

    out = ("--out", f"stopped-{spent}")
    with monkeypatch.context() as patch:
        patch.setattr(run, "_run", interrupted)
        stopped = here(folder, "learn", *SMALL, *out)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    amount = "this run has spent ε = 8 and δ = 0.00001, which it will not spend again"
    said = amount if spent else "nothing was spent"
    *before, last = stopped.stderr.splitlines()
    assert last == f"tacit: interrupted: {said}; the same run with --resume continues"
    assert all(PROGRESS.match(line) for line in before)
    done = here(folder, "learn", *SMALL, *out, "--resume", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(Ledger.open(folder / out[1] / "ledger.sqlite").spent.epsilon) == "8"


def test_a_run_does_not_overwrite_what_it_reads(folder, finished, here):  # noqa: ARG001
    before = (folder / "out" / "publish" / "labelled.csv").read_bytes()
    for public in ("out/publish/labelled.csv", "out/private/../publish/labelled.csv"):
        refused = here(folder, "learn", *MIXED, "--public", public, "--out", "out", "--resume")
        assert_one_line_error(refused)
        assert "--public must not lie in a folder that this run writes to" in refused.stderr
    assert (folder / "out" / "publish" / "labelled.csv").read_bytes() == before


def test_an_earlier_ledger_is_not_resumed(folder, here):
    done = here(folder, "learn", *SMALL, "--out", "rolled", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    ledger = folder / "rolled" / "ledger.sqlite"
    ledger.unlink()
    Ledger.open(ledger, epsilon=8, delta=1e-5)
    refused = here(folder, "learn", *SMALL, "--out", "rolled", "--resume")
    assert_one_line_error(refused)
    assert "that the anchor" in refused.stderr
    ledger.unlink()
    refused = here(folder, "learn", *SMALL, "--out", "rolled", "--resume")
    assert_one_line_error(refused)
    assert "must exist" in refused.stderr
    assert not ledger.exists()


def test_runs_killed_at_random_moments_pay_once_and_answer_once(folder, warm, here):
    """While teachers are trained, at any one of them, and while answers are written down."""
    options = ("--learner", "sklearn.ensemble:RandomForestClassifier", "--set", "n_estimators=3")
    start = ("learn", *SMALL, *options, "--out", "killed", "--resume", "--quiet")
    trained = random.Random(os.urandom(8)).randrange(1, 10)  # noqa: S311 — any moment will do, and a new one every time
    teachers, ledger = folder / "killed" / "private" / "teachers", folder / "killed" / "ledger.sqlite"

    def noted():
        return [note.detail for note in Ledger.open(ledger).notes()] if ledger.exists() else []

    seen = []
    for reached in (
        lambda: len(list(teachers.glob("teacher-*.skops"))) >= trained,
        lambda: len(list(teachers.glob("teacher-*.skops"))) == 10 and any("points" in detail for detail in noted()),
    ):
        warm.run(folder, *start, until=reached)
        seen.append(noted())
    assert seen[1]
    done = here(folder, *start)
    assert (done.returncode, done.stderr) == (0, "")
    ledger = Ledger.open(folder / "killed" / "ledger.sqlite")
    classes, entry = ledger.entries()
    assert classes.what == "PrivateClassifier.fit, the classes with noise"
    notes = [note.detail for note in ledger.notes()]
    for earlier in seen:
        assert notes[: len(earlier)] == earlier
    assert [note.detail["classes"] for note in ledger.notes(classes)] == [("no", "yes")]
    notes = [note.detail for note in ledger.notes(entry)]
    points = [point for note in notes if "points" in note for point in note["points"]]
    assert len(points) == len(set(points)) == 30
    assert results(folder, "killed")["detail"]["answered"] == 30
    assert len(list((folder / "killed" / "private" / "teachers").glob("teacher-*.skops"))) == 10


def test_parquet_in_parquet_out(tmp_path, here):
    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    frame = pa.table({name: data.data[:, place] for place, name in enumerate(names)})
    frame = frame.append_column("benign", pa.array(data.target, pa.int8()))
    parquet.write_table(frame.slice(0, 400), tmp_path / "private.parquet")
    parquet.write_table(frame.slice(400), tmp_path / "public.parquet")  # with the label, which is not used
    done = here(
        tmp_path,
        "learn",
        *("private.parquet", "--label", "benign", "--public", "public.parquet", "--out", "out", "--classes", "0,1"),
        *("--epsilon", "60", "--delta", "1e-5", "--teachers", "20", "--mechanism", "gnmax", "--queries", "all"),
    )
    assert done.returncode == 0, done.stderr
    assert "not used: benign." in " ".join(done.stdout.split())
    labelled = parquet.read_table(tmp_path / "out" / "publish" / "labelled.parquet")
    assert labelled.schema.field("benign").type == pa.int64()
    assert labelled.drop_columns(["benign"]).equals(frame.slice(400).drop_columns(["benign"]))
    # Noise of about two votes, which leaves the teachers' own errors: at ε = 8 one run in a hundred fell below.
    assert np.mean(labelled["benign"].to_numpy() == data.target[400:]) > 0.8
    assumed = results(tmp_path)["comparisons"][0]["guarantee"]["assumptions"]
    assert not any("which classes occur" in item["text"] for item in assumed)


def test_npz_of_images_and_numbers(tmp_path, here):
    data = load_digits()
    np.savez(tmp_path / "private.npz", X=data.images[:1400], y=data.target[:1400])
    np.savez(tmp_path / "public.npz", X=data.images[1400:])
    done = here(
        tmp_path,
        "learn",
        *("private.npz", "--label", "y", "--public", "public.npz", "--out", "out", "--learner"),
        *("sklearn.neighbors:KNeighborsClassifier", "--set", "n_neighbors=1", *BUDGET, "--teachers", "60"),
        *("--student", "tacit.learning:Propagated", "--mechanism", "gnmax", "--queries", "60"),
    )
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out" / "publish" / "labelled.npz") as archive:
        np.testing.assert_array_equal(archive["X"], data.images[1400:])
        answered = np.isfinite(archive["y"])
        assert answered.sum() == 60
        assert np.mean(archive["y"][answered] == data.target[1400:][answered]) > 0.6
    page = Page((tmp_path / "out" / "publish" / "report.html").read_text())
    assert "the counts that were released with noise" in page.text


def test_labels_of_two_columns_do_not_share_a_ledger(folder, here):
    """Each run publishes the other's labels as features: their costs add up to no promise about either."""
    Ledger.open(folder / "two.db", epsilon=100, delta=1e-3)
    run = ("learn", "private.csv", "--labels-only", *BUDGET, *FEW, "--ledger", "two.db")
    assert here(folder, *run, "--label", "bought", "--out", "bought").returncode == 0
    done = here(folder, *run, "--label", "member", "--out", "member")
    assert_one_line_error(done)
    assert (
        "must hold entries about what this run protects alone, one label changed (label column 'member')" in done.stderr
    )
    assert len(Ledger.open(folder / "two.db").entries()) == 2  # classes and answers of the first run


def test_publishing_private_records_takes_a_word_of_its_own(folder, here):
    """A forgotten --public must not publish the features of private records."""
    columns = ("learn", "private.csv", "--label", "bought", *BUDGET, *QUICK, "--out", "forgotten")
    refused = here(folder, *columns)
    assert_one_line_error(refused)
    assert "--public must name a file of public records, unless --labels-only" in refused.stderr
    refused = here(folder, *columns, "--public", "public.csv", "--labels-only")
    assert_one_line_error(refused)
    assert "--labels-only must not be combined with --public" in refused.stderr
    assert not (folder / "forgotten").exists()


def test_errors_in_python_name_parameters(folder):
    options = {"label": "bought", "epsilon": 2.0, "delta": 1e-5, "out": folder / "never"}
    with pytest.raises(InputError, match=r"^public must name a file of public records, unless `labels_only` says"):
        learn_files(folder / "private.csv", **options)
    options["public"] = folder / "public.csv"
    with pytest.raises(InputError, match=r"^epsilon must"):
        learn_files(folder / "private.csv", **options | {"epsilon": -1.0})
    with pytest.raises(
        InputError, match=r"^label must name .* columns of `private`, got 'bougt'; did you mean 'bought'\?$"
    ):
        learn_files(folder / "private.csv", **options | {"label": "bougt"})


def test_without_public_records_labels_alone_are_protected(folder, here):
    with (folder / "private.csv").open() as file:
        rows = list(csv.reader(file))
    with (folder / "owned.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*row, "who" if place == 0 else f"p{place}"] for place, row in enumerate(rows)])
    done = here(
        folder,
        "learn",
        "owned.csv",
        "--labels-only",
        "--label",
        "bought",
        "--ids",
        "who",
        *BUDGET,
        *FEW,
        "--out",
        "labels",
        "--test",
        "test.csv",
    )
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    compared = "all labels of one person changed (label column 'bought', people by column 'who')"
    assert f"Protected: {compared}." in text
    assert "with the labels of any one person, at most 2990 times" in text
    assert "would have with others in their place (ε = 8), plus δ = 1e-05" in text
    searched, entry = Ledger.open(folder / "labels" / "ledger.sqlite").entries()
    assert searched.neighbours == entry.neighbours
    assert entry.neighbours == compared
    assert "features of all records are treated as public" in text
    published = results(folder, "labels")
    (card,) = [
        card for card in published["verdicts"] if card["about"] == "What it gives away about one person's labels"
    ]
    assert "Which records there are is published; their labels alone are protected." in card["reason"]
    page = (folder / "labels" / "publish" / "report.html").read_text()
    assert "Somebody tests which of two the person&#39;s labels are" in page or "person's labels are" in page
    with (folder / "labels" / "publish" / "labelled.csv").open() as file:
        labelled = list(csv.reader(file))
    assert labelled[0] == HEADER  # whose records they are is left out
    known = {tuple(row[:-1]) for row in rows[1:]}
    assert 600 < len(labelled) - 1 < 900
    assert all(tuple(row[:-1]) in known for row in labelled[1:])
    assert sum(bool(row[-1]) for row in labelled[1:]) == 30


BAD = {
    "missing label": (("--label", "price"), "columns of PRIVATE, got"),
    "unknown learner": (("--learner", "sklearn.linear_model:Logistic"), "--learner must be MODULE:CLASS"),
    "no such package": (("--learner", "nowhere.models:Net"), "--learner must be MODULE:CLASS"),
    "no class": (("--learner", "sklearn.linear_model"), "--learner must be MODULE:CLASS"),
    "no classifier": (("--learner", "json:JSONDecoder"), "--learner must be"),
    "no classifier by what it names": (("--learner", "sklearn.linear_model:LinearRegression"), "must be a classifier"),
    "a wrong value": (("--set", "C=-1"), "InvalidParameterError: The 'C' parameter"),
    "a student that cannot learn": (
        ("--student", "sklearn.cluster:KMeans", "--student-set", "n_clusters=0"),
        "--student",
    ),
    "unknown setting": (("--set", "D=3"), "--set must be NAME=VALUE of LogisticRegression"),
    "no setting": (("--set", "C"), "--set must be NAME=VALUE"),
    "unknown student": (("--student", "sklearn:Nothing"), "--student must be MODULE:CLASS"),
    "wrong delta": (("--delta", "1.5"), "--delta must be a finite number"),
    "no delta": (("--delta", "0"), "--delta must be a finite number"),
    "wrong epsilon": (("--epsilon", "-1"), "--epsilon must be a finite number"),
    "unknown mechanism": (("--mechanism", "magic"), "--mechanism must be one of"),
    "confirm without a proposer": (
        ("--mechanism", "confirm"),
        "--labelled-public must be given for",
    ),
    "a proposer for gnmax": (
        ("--labelled-public", "test.csv"),
        "--labelled-public must be given for the mechanism confirm, and otherwise only for auto",
    ),
    "a private proposer": (
        ("--mechanism", "auto", "--labelled-public", "private.csv"),
        "--labelled-public must hold other records",
    ),
    "no teachers": (("--teachers", "0"), "--teachers must be a whole number"),
    "teachers of neighbours": (
        ("--mechanism", "neighbours"),
        "--teachers must be left out for the mechanism neighbours",
    ),
    "no queries": (("--queries", "0"), "--queries must be 'all' or a number"),
    "odd share": (("--teacher-accuracy", "0.3"), "--teacher-accuracy must be"),
    "one class told": (("--classes", "yes"), "must hold two classes or more"),
    "other classes": (("--classes", "yes,maybe"), "must hold no other labels than --classes"),
    "unknown ids": (("--ids", "who"), "--ids must name one of the"),
    "test is private": (("--test", "private.csv"), "--test must hold other records"),
    "test without label": (("--test", "public.csv"), "columns of --test, got"),
    "other labels": (("--test", "dotted.csv"), "must hold the classes of PRIVATE, got 'yes.'"),
    "other columns": (
        ("--public", "other.csv"),
        "must be those of the public records, and the label, got 'none called size'",
    ),
    "empty file": (("--public", "empty.csv"), "--public must be a readable table"),
    "no file": (("--public", "nowhere.csv"), "--public must name a file that exists"),
    "no table": (("--public", "mine.py"), "--public must end in .csv"),
    "no ledger": (("--ledger", "private.csv"), "must be a ledger"),
    "no folder": (("--out", "private.csv"), "--out must be a folder"),
    "no engine": (("--engine", "moon://1"), "engine must be"),
}


@pytest.mark.parametrize(("extra", "match"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_no_trace(folder, extra, match, here):
    (folder / "empty.csv").write_text("")
    (folder / "mine.py").write_text("class Model: pass\n")
    write_csv(folder / "dotted.csv", [[1, "red", True, 5, "yes."]], HEADER)
    write_csv(folder / "other.csv", [[1, "red", True, 5]], ["age", "colour", "member", "size"])
    out = () if "--out" in extra else ("--out", "bad")
    usual = MIXED
    if "--label" in extra:  # which may be given several times, and means several labels
        place = MIXED.index("--label")
        usual = (*MIXED[:place], *MIXED[place + 2 :])
    refused = here(folder, "learn", *usual, *out, *extra)
    assert_one_line_error(refused)
    assert match in refused.stderr
    assert not (folder / "bad" / "private" / "task.json").exists()


def test_a_file_of_this_folder_is_no_package(folder):
    (folder / "mine.py").write_text("raise SystemExit('run')\n")
    finished = run("learn", *MIXED, "--out", "bad", "--learner", "mine:Model", cwd=folder)
    assert_one_line_error(finished, "No module named 'mine'")
    assert "did you mean" not in finished.stderr


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([[1, "a"]] * 50, "must hold two classes or more"),
        ([[1, "a"], [2, ""]] * 30, "must hold a label for every record"),
        ([[n, f"label {n}"] for n in range(200)], "must name classes"),
    ],
)
def test_unusable_labels_are_one_line(tmp_path, rows, match, here):
    write_csv(tmp_path / "private.csv", rows, ["n", "y"])
    write_csv(tmp_path / "public.csv", [[1], [2]], ["n"])
    refused = here(tmp_path, "learn", "private.csv", "--label", "y", "--public", "public.csv", *BUDGET, "--out", "out")
    assert_one_line_error(refused)
    assert match in refused.stderr
    assert not (tmp_path / "out").exists()


def test_numbers_that_are_missing_or_mixed_with_text_do_no_harm(tmp_path, here):
    generator = np.random.default_rng(1)
    rows = [[f"{number:.3f}", "yes" if number > 0 else "no"] for number in generator.normal(size=800)]
    rows[3][0], rows[5][0], rows[7][0] = "NaN", "", "not a number"
    write_csv(tmp_path / "private.csv", rows, ["n", "y"])
    write_csv(tmp_path / "public.csv", [[""], *([f"{n:.3f}"] for n in generator.normal(size=100))], ["n"])
    done = here(
        tmp_path, "learn", "private.csv", "--label", "y", "--public", "public.csv", *BUDGET, *QUICK, "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    found = loaded(tmp_path).predict({"n": ["2", "-2", "nonsense"]})
    assert found[:2].tolist() == ["yes", "no"]


KNOWN = ("--epsilon", "4", "--delta", "1e-5", "--classes", "no,yes", "--teachers", "150")
"""A budget for which tables come with the package, all of it for answers: others are searched for in test_gates.py."""


def test_the_gate_by_the_command(folder, here):
    columns = ("private.csv", "--label", "bought", "--public", "public.csv")
    estimated = ("--epsilon", "4.120000000000001", "--queries", "60")  # an estimate costs 0.12, and leaves 4
    done = here(folder, "learn", *columns, *KNOWN, *estimated, "--mechanism", "gate", "--out", "gated")
    assert done.returncode == 0, done.stderr
    assert results(folder, "gated")["detail"]["answered"] > 0
    assert "the votes that can change without another class winning" in " ".join(done.stdout.split())  # it was paid for
    assert (folder / "gated" / "private" / "owner.html").exists()


def test_neighbours_by_the_command(folder, here):
    columns = ("private.csv", "--label", "bought", "--public", "public.csv", "--test", "test.csv")
    options = ("--epsilon", "2", "--delta", "1e-5", "--classes", "no,yes", "--mechanism", "neighbours", "--out", "near")
    done = here(folder, "learn", *columns, *options, "--certificate", "near.json")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split()).replace("- ", "-")  # words with a hyphen may end a line
    assert "This is not model-agnostic: it is a nearest-neighbour vote in the stated public features." in said
    assert "Teachers" not in said
    found = results(folder, "near")["detail"]
    assert found["answered"] == found["asked"] > 0 == found["refused"]
    assert found["test"]["accuracy"] > 0.8  # naming one class is right on about 55 %
    assert [entry.epsilon for entry in Ledger.open(folder / "near" / "ledger.sqlite").entries()] == [
        Decimal("0.02"),
        Decimal("1.98"),
    ]
    assert (folder / "near" / "private" / "owner.html").exists()
    claim = json.loads((folder / "near.json").read_text())["predicate"]["claims"][0]
    assert claim["rule"] is None
    assert "quota_delta" in claim["statement"]
    # Another student learns from the same answers, whether it takes counts or not.
    again = here(folder, "learn", *columns, *options, "--student", "sklearn.naive_bayes:GaussianNB", "--resume")
    assert again.returncode == 0, again.stderr
    assert results(folder, "near")["detail"]["asked"] == found["asked"]
    assert type(loaded(folder, "near").steps[-1][1].student).__name__ == "GaussianNB"
    # It has no teachers to be served.
    served = here(folder, "serve", "near", "--epsilon", "1", "--delta", "1e-5")
    assert_one_line_error(served)
    assert "must hold teachers, and this run has none" in served.stderr


def test_neighbours_of_people_and_of_labels_alone(folder, here):
    rows = list(csv.reader((folder / "private.csv").read_text().splitlines()))
    write_csv(folder / "people.csv", [[*row, number // 3] for number, row in enumerate(rows[1:])], [*HEADER, "who"])
    options = ("--epsilon", "4", "--delta", "1e-5", "--classes", "no,yes", "--mechanism", "neighbours")
    done = here(
        folder,
        "learn",
        "people.csv",
        "--label",
        "bought",
        "--public",
        "public.csv",
        "--ids",
        "who",
        *options,
        "--out",
        "who",
    )
    assert done.returncode == 0, done.stderr
    assert "each person at most" in " ".join(done.stdout.split())
    done = here(folder, "learn", "private.csv", "--label", "bought", "--labels-only", *options, "--out", "alone")
    assert done.returncode == 0, done.stderr
    assert results(folder, "alone")["comparisons"][0]["guarantee"]["detail"]["changed"] == 2


MOMENTS = ("--epsilon", "2", "--delta", "1e-5", "--mechanism", "moments")


def test_moments_by_the_command(folder, here):
    columns = ("private.csv", "--label", "bought", "--public", "public.csv", "--test", "test.csv")
    options = (*MOMENTS, "--classes", "no,yes", "--out", "sums")
    done = here(folder, "learn", *columns, *options, "--certificate", "sums.json")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "This is not model-agnostic: the classifier is linear in the stated public features." in said
    pages = said + Page((folder / "sums" / "private" / "owner.html").read_text()).text
    assert not re.findall("quer|eachers|refus|answer|vote", pages)
    found = results(folder, "sums")["detail"]
    assert found["test"]["accuracy"] > 0.8  # naming one class is right on about 55 %
    assert not {"asked", "answered", "refused", "labelled"} & set(found)
    assert all(name.startswith("tacit.") for name in found["student"]["trusted"])
    assert sorted(path.name for path in (folder / "sums" / "publish").iterdir()) == [
        "report.html",
        "results.json",
        "student.skops",
    ]
    (entry,) = Ledger.open(folder / "sums" / "ledger.sqlite").entries()
    assert entry.epsilon == 2
    claim = json.loads((folder / "sums.json").read_text())["predicate"]["claims"][0]
    assert claim["rule"] is None
    assert "lattice_delta" in claim["statement"]
    test = tables.read(folder / "test.csv", name="--test")
    assert np.mean(loaded(folder, "sums").predict(test) == test["bought"]) == found["test"]["accuracy"]
    served = here(folder, "serve", "sums", "--epsilon", "1", "--delta", "1e-5")
    assert_one_line_error(served)
    assert "must hold teachers, and this run has none" in served.stderr


def test_moments_that_are_killed_pay_once_and_release_once(folder, warm, here):
    """Once while anything may go on, and once as soon as the sums are noted; the classes are found with noise."""
    columns = ("private.csv", "--label", "bought", "--public", "public.csv")
    start = ("learn", *columns, *MOMENTS, "--out", "cut", "--resume", "--quiet")
    ledger, seen = folder / "cut" / "ledger.sqlite", []

    def noted(name):
        notes = [note.detail for note in Ledger.open(ledger).notes()] if ledger.exists() else []
        return [note[name] for note in notes if name in note]

    for reached in (ledger.exists, lambda: noted("sums")):
        warm.run(folder, *start, until=reached)
        seen.append(noted("sums"))
    assert len(seen[1]) == 1
    students = []
    for _ in range(2):
        done = here(folder, *start)
        assert (done.returncode, done.stderr) == (0, "")
        students.append((folder / "cut" / "publish" / "student.skops").read_bytes())
    assert students[0] == students[1]
    assert noted("sums") == seen[1]
    assert noted("classes") == [("no", "yes")]
    spent = Ledger.open(ledger).spent
    assert (spent.epsilon, spent.delta) == (2, Decimal("0.00001"))


def test_moments_of_people_and_of_labels_alone(folder, here):
    rows = list(csv.reader((folder / "private.csv").read_text().splitlines()))
    write_csv(folder / "owned.csv", [[*row, number // 3] for number, row in enumerate(rows[1:])], [*HEADER, "who"])
    columns = ("owned.csv", "--label", "bought", "--ids", "who", *MOMENTS, "--classes", "no,yes")
    done = here(folder, "learn", *columns, "--public", "public.csv", "--out", "means")
    assert done.returncode == 0, done.stderr
    assert "the mean of each person's records counts" in " ".join(done.stdout.split())
    done = here(folder, "learn", *columns, "--labels-only", "--out", "mine")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Protected: all labels of one person changed" in said
    assert "half of them, whose labels are not used, serve as the public records." in said
    assert results(folder, "mine")["comparisons"][0]["guarantee"]["detail"]["changed"] == 2
    assert not (folder / "mine" / "publish" / "labelled.csv").exists()


def test_moments_of_numbers_alone(tmp_path, here):
    """No value is unknown and no accuracy is measured, so that the owner's page has hardly anything to say."""
    source = np.random.default_rng(0)
    rows = [[round(float(x), 4), "high" if x > 0 else "low"] for x in source.normal(size=600)]
    write_csv(tmp_path / "private.csv", rows, ["size", "kind"])
    write_csv(tmp_path / "public.csv", [[round(float(x), 5)] for x in source.normal(size=100)], ["size"])
    columns = ("private.csv", "--label", "kind", "--public", "public.csv", "--classes", "low,high")
    done = here(tmp_path, "learn", *columns, *MOMENTS, "--out", "sums")
    assert done.returncode == 0, done.stderr
    assert "unknown values none" in Page((tmp_path / "sums" / "private" / "owner.html").read_text()).text


def test_private_records_are_not_taken_for_public_ones(folder, here):
    (folder / "again.csv").write_bytes((folder / "private.csv").read_bytes())
    for public in ("private.csv", "again.csv"):
        done = here(
            folder, "learn", "private.csv", "--label", "bought", "--public", public, *BUDGET, "--out", "mistaken"
        )
        assert_one_line_error(done)
        assert "--public must hold other records than PRIVATE" in done.stderr
        assert not (folder / "mistaken" / "publish").exists()
    proposer = ("--mechanism", "confirm", "--labelled-public", "again.csv")
    columns = ("private.csv", "--label", "bought", "--public", "public.csv")
    done = here(folder, "learn", *columns, *BUDGET, *proposer, "--out", "mistaken")
    assert "--labelled-public must hold other records than PRIVATE" in done.stderr


@pytest.mark.usefixtures("all_cores")
def test_what_learners_print_goes_nowhere(folder, warm):
    """Losses of teachers, from here and from the processes that train them."""
    learner = ("--learner", "sklearn.neural_network:MLPClassifier", "--set", "verbose=True", "--set", "max_iter=5")
    done = warm.run(folder, "learn", *MIXED, *learner, "--teachers", "6", "--out", "loud")
    assert done.returncode == 0, done.stderr
    assert "Iteration" not in done.stdout + done.stderr
    assert done.stdout.startswith("A classifier that may be published")


def test_a_learner_of_another_package_is_stored_too(folder, here):
    pytest.importorskip("lightgbm")
    learner = ("--learner", "lightgbm:LGBMClassifier", "--set", "n_estimators=5", "--set", "min_child_samples=2")
    done = here(folder, "learn", *MIXED, *learner, "--teachers", "6", "--out", "boosted")
    assert done.returncode == 0, done.stderr
    assert len(list((folder / "boosted" / "private" / "teachers").glob("*.skops"))) == 6


class Odd(DecisionTreeClassifier):
    """Holds something that comes neither from its package nor from scikit-learn."""

    def fit(self, records, labels):
        self.seen_ = Fraction(len(records), 2)
        return super().fit(records, labels)


def test_what_a_learner_holds_must_come_from_its_packages():
    held = try_estimator("--learner", Odd(), width=2, classes=2)
    with pytest.raises(InputError, match=r"^--learner must hold types of sklearn, test_learn_files alone .*Fraction"):
        trusted_types("--learner", Odd(), held)
    boosted = make_pipeline(StandardScaler(), pytest.importorskip("lightgbm").LGBMClassifier(verbose=-1))
    assert "lightgbm.basic.Booster" in trusted_types(
        "--learner", boosted, try_estimator("--learner", boosted, width=2, classes=2)
    )


def test_remarks_in_a_file_are_not_published(tmp_path, here):
    rows = mixed(np.random.default_rng(1), 600)
    columns = {name: pa.array([row[i] for row in rows]) for i, name in enumerate(HEADER)}
    table = pa.table(columns).replace_schema_metadata({"counts": "yes, 31 times"})
    parquet.write_table(table, tmp_path / "private.parquet")
    done = here(
        tmp_path, "learn", "private.parquet", "--labels-only", "--label", "bought", *BUDGET, *FEW, "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    published = tmp_path / "out" / "publish" / "labelled.parquet"
    assert b"31 times" not in published.read_bytes()
    assert parquet.read_table(published).column_names[-1] == "bought"


def test_labels_that_a_model_of_known_records_proposes_are_confirmed(folder, here):
    """The operating system's coins: 150 teachers that agree deny few of 300, and a student learns from the others."""
    budget = (*KNOWN, "--mechanism", "confirm", "--refusals", "20")
    columns = ("private.csv", "--label", "bought", "--public", "public.csv", "--test", "test.csv")
    write_csv(folder / "known.csv", mixed(np.random.default_rng(9), 60), HEADER)
    done = here(folder, "learn", *columns, *budget, "--labelled-public", "known.csv", "--out", "confirmed")
    assert done.returncode == 0, done.stderr
    found = results(folder, "confirmed")
    assert found["detail"]["answered"] > 100
    (comparison,) = [Comparison.from_dict(item) for item in found["comparisons"]]
    assert comparison.guarantee.detail["mechanism"] == "Confirm"
    assert any(
        "was made without the private records" in text for text in comparison.guarantee.assumed(checked_by="caller")
    )
    one_class = folder / "one.csv"
    write_csv(one_class, [row for row in mixed(np.random.default_rng(9), 60) if row[-1] == "yes"], HEADER)
    unnamed = (*BUDGET, "--mechanism", "confirm")  # of classes that nobody named
    refused = here(folder, "learn", *columns, *unnamed, "--labelled-public", "one.csv", "--out", "refused")
    assert "--labelled-public must hold two classes or more" in refused.stderr
    assert not (folder / "refused").exists()


LABELLED = ("--labelled-public", "known.csv")
TEN = ("--teachers", "30", "--refusals", "10")


class Faltering(LogisticRegression):
    """A student that learns so many times, and then no more."""

    left = 0

    def fit(self, X, y):  # noqa: N803
        Faltering.left -= 1
        if Faltering.left < 0:
            raise ArithmeticError("a record was 4711")
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("learns", "extra", "remedy"),
    [
        (3, FEW, "add --resume, which costs no privacy"),  # on made-up records, and on made-up answers twice
        (4, (*KNOWN, *TEN, "--mechanism", "confirm", *LABELLED), "costs privacy again"),
    ],
)
def test_a_student_that_fails_once_the_budget_is_spent_is_named(folder, learns, extra, remedy, tmp_path, here):
    write_csv(folder / "known.csv", mixed(np.random.default_rng(9), 60), HEADER)
    Faltering.left = learns
    columns = ("private.csv", "--label", "bought", "--public", "public.csv")
    student = ("--student", f"{__name__}:Faltering", "--out", tmp_path / "out")
    refused = here(folder, "learn", *columns, *BUDGET, *extra, *student)
    assert_one_line_error(refused)
    assert "the student must learn from public records and answers" in refused.stderr
    assert remedy in refused.stderr
    assert "4711" not in refused.stderr
    assert len(Ledger.open(tmp_path / "out" / "ledger.sqlite").notes()) > 0


class Speechless(LogisticRegression):
    """A student that has learned so many times, and then names nothing, or no more than so many records at once.

    Thirty neighbours do so where there are fewer answers.
    """

    left, most = 0, 0

    def fit(self, X, y):  # noqa: N803
        Speechless.left -= 1
        return super().fit(X, y)

    def predict(self, X):  # noqa: N803
        if Speechless.left < 0 and len(X) > Speechless.most:
            raise ArithmeticError("a record was 4711")
        return super().predict(X)


@pytest.mark.parametrize("most", [0, 1])
def test_a_student_that_fails_when_it_is_asked_is_exchanged_for_nothing(folder, most, tmp_path, here):
    Speechless.left, Speechless.most = 3, most  # on made-up records, and on made-up answers twice
    options = (*SMALL, "--test", "test.csv", "--out", tmp_path / "out")
    refused = here(folder, "learn", *options, "--student", f"{__name__}:Speechless")
    assert_one_line_error(refused)
    assert "choose another with --student and add --resume, which costs no privacy" in refused.stderr
    assert "4711" not in refused.stderr
    spent = Ledger.open(tmp_path / "out" / "ledger.sqlite").to_dict()["links"]
    again = here(folder, "learn", *options, "--resume")
    assert again.returncode == 0, again.stderr
    assert Ledger.open(tmp_path / "out" / "ledger.sqlite").to_dict()["links"] == spent


KILLED = """
import contextlib, signal
from tacit.runtime import files
real = files._written

@contextlib.contextmanager
def written(path, content):
    with real(path, content) as partial:
        if path.name == ".room":
            os.kill(os.getpid(), signal.SIGKILL)
        yield partial

files._written = written
"""


def test_a_killed_rehearsal_leaves_nothing_of_private_size_where_all_may_be_published(folder, warm, here):
    options = ("learn", *SMALL, "--out", "rehearsing", "--resume")
    killed = warm.run(folder, *options, before=KILLED)
    assert killed.returncode == -signal.SIGKILL
    publish = folder / "rehearsing" / "publish"
    assert [path.stat().st_size for path in publish.iterdir()] == [0]
    (publish / ".room").write_bytes(bytes(4711))  # of an earlier version
    done = here(folder, *options)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in publish.iterdir()) == [
        "labelled.csv",
        "report.html",
        "results.json",
        "student.skops",
    ]


def test_a_run_that_goes_on_proposes_the_same():
    """Else a forest's proposals would differ, and a run that was paid for and interrupted could not go on."""
    rng = np.random.default_rng(0)
    records, labels = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    fitted = [proposer(forest, records, labels) for _ in range(2)]
    public = rng.normal(size=(500, 3))
    assert np.array_equal(*(model.predict_proba(public) for model in fitted))


def test_a_label_that_one_record_holds_is_not_published(folder, here):
    """Without --classes: it is found with a chance below δ/10 = 1e-6, each of the others missed with one below 1e-40.

    Of digits for labels: had the lone label a say in what labels are, all would be text.
    """
    with (folder / "private.csv").open() as file:
        _, *rows = csv.reader(file)
    for row in rows:
        row[-1] = "1" if row[-1] == "yes" else "0"
    rows[3][-1] = "Falun syndrome"
    write_csv(folder / "lone.csv", rows, HEADER)
    run = ("lone.csv", "--label", "bought", "--public", "public.csv", *BUDGET, *FEW, "--out", "lone")
    done = here(folder, "learn", *run)
    assert done.returncode == 0
    assert results(folder, "lone")["detail"]["classes"] == [0, 1]
    said = " ".join(done.stdout.split())
    assert "The classes were not given. ε = 0.4 and δ = 1e-06 of this paid for finding them with noise" in said
    assert not any(b"Falun" in content for _, content in published(folder / "lone" / "publish"))
    entries = Ledger.open(folder / "lone" / "ledger.sqlite").entries()
    assert [entry.what for entry in entries] == [
        "PrivateClassifier.fit, the classes with noise",
        "PrivateClassifier.fit",
    ]
    assert sum(entry.epsilon for entry in entries) == 8
    assert not (folder / "lone" / "private" / "rehearsal").exists()


def test_columns_of_any_name_and_a_large_budget_can_be_published(tmp_path, here):
    """What np.savez takes for its own arguments, and an ε whose e^ε is no float."""
    rng = np.random.default_rng(0)
    arrays = {"file": rng.normal(size=300), "allow_pickle": rng.normal(size=300)}
    labels = (arrays["file"] > 0).astype(int)
    rehearsed = tables.whole._write_npz
    for name, rows, more in (("private", slice(200), {"y": labels[:200]}), ("public", slice(200, None), {})):
        with (tmp_path / f"{name}.npz").open("wb") as file:
            rehearsed(file, {key: array[rows] for key, array in arrays.items()} | more)
    run = ("private.npz", "--label", "y", "--public", "public.npz", "--epsilon", "9000", "--delta", "1e-5")
    assert here(tmp_path, "learn", *run, "--teachers", "5", "--out", "out").returncode == 0
    labelled = np.load(tmp_path / "out" / "publish" / "labelled.npz", allow_pickle=False)
    assert set(labelled.files) == {"file", "allow_pickle", "y"}
    assert {info.date_time[0] for info in labelled.zip.infolist()} == {1980}  # no time
    assert "at most e^9000 times" in (tmp_path / "out" / "publish" / "report.html").read_text()


class Wary(LogisticRegression):
    """A student that wants every class twice."""

    def fit(self, X, y):  # noqa: N803
        if np.bincount(y).min() < 2:
            raise ArithmeticError("a class with one member")
        return super().fit(X, y)


class Unstorable(LogisticRegression):
    """A student that skops cannot store once it has learned from a hundred records or more."""

    def fit(self, X, y):  # noqa: N803
        self.held_ = (part for part in ()) if len(X) > 100 else None
        return super().fit(X, y)


def blocked(out):
    (out / "publish" / "report.html").mkdir(parents=True)


@pytest.mark.parametrize(
    ("extra", "before", "match"),
    [
        (("--student", f"{__name__}:Wary"), None, "which raised ArithmeticError: a class with one member"),
        (("--student", f"{__name__}:Unstorable", "--queries", "all"), None, "must be one that skops can store"),
        ((), blocked, "report.html is a folder"),
    ],
)
def test_what_cannot_be_published_is_refused_before_anything_is_paid_for(folder, extra, before, match, tmp_path, here):
    out = tmp_path / "out"
    if before is not None:
        before(out)
    refused = here(folder, "learn", *SMALL, *extra, "--out", out)
    assert_one_line_error(refused)
    assert match in refused.stderr
    ledger = out / "ledger.sqlite"
    assert not ledger.exists() or not Ledger.open(ledger).entries()
    assert not (out / "private" / "rehearsal").exists()


def test_what_is_published_says_nothing_of_when_and_where(folder, finished, tmp_path, warm, here):  # noqa: ARG001
    """The same answers are the same bytes: from another process, at another time, in another folder."""
    found = []
    for number in range(2):
        time.sleep(2 * number)  # what archives know of time is two seconds
        shutil.copytree(folder / "out", tmp_path / str(number) / "out")
        for name in ("private.csv", "public.csv", "test.csv"):
            shutil.copy(folder / name, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number) / "out" / "publish")
        arguments = (*MIXED, "--test", "test.csv", "--out", "out", "--resume")
        place = tmp_path / str(number)
        again = (here if number else warm.run)(place, "learn", *arguments)
        assert again.returncode == 0, again.stderr
        found.append(dict(published(place / "out" / "publish")))
    assert len(found[0]) >= 4
    assert found[0] == found[1]


def test_a_function_is_no_learner_and_is_not_called(folder, here, monkeypatch):
    monkeypatch.setattr(os, "abort", lambda: pytest.fail("called"))
    for name in ("os:abort", "sklearn.pipeline:make_pipeline", "sklearn.preprocessing:StandardScaler"):
        refused = here(folder, "learn", *MIXED, "--learner", name, "--out", "unlearned")
        assert_one_line_error(refused)
        assert "--learner must be a class of classifiers in the style of scikit-learn" in refused.stderr
