"""Private records in tables that are taken for public: shuffled, renamed, in another format, without their labels."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit import InputError
from tacit.learning import MomentClassifier, PrivateClassifier
from tacit.learning.overlap import require_other_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X[:, 0] > 0).astype(int)


def refused(rows, private):
    try:
        require_other_rows("rows", rows, private, called="private", remedy="take others")
    except InputError:
        return True
    return False


def test_copies_are_refused_in_any_order_and_precision():
    assert refused(X, X)
    assert refused(X[::-1], X)
    assert refused(X[100:150], X)
    assert refused(X.astype(np.float32), X)
    assert refused(np.concatenate([RNG.normal(size=(300, 3)), X[:15]]), X)
    assert not refused(RNG.normal(size=(400, 3)), X)
    assert not refused(np.concatenate([RNG.normal(size=(300, 3)), X[:1]]), X)  # of two people one may be in both


def test_tables_of_one_crowd_are_not_refused_however_coarse():
    """By the bound of the test itself a false alarm has a probability of about 1e-4 for each of 600 draws: 0.06."""
    alarms = 0
    for draw in range(200):
        rng = np.random.default_rng(draw)
        for values in (2, 10, 40):  # of eight kinds of rows in all, and of 64 000
            crowd = rng.integers(0, values, size=(2500, 3)).astype(float)
            size = (1250, 400, 2000)[draw % 3]
            alarms += refused(crowd[size:], crowd[:size])
    assert alarms <= 1  # more than one: below 0.002


def test_copies_among_coarse_rows_are_refused():
    coarse = RNG.integers(0, 12, size=(2000, 3)).astype(float)
    assert refused(coarse[RNG.permutation(2000)[:500]], coarse)
    assert refused(coarse[RNG.permutation(2000)], coarse)


def test_tables_that_were_rid_of_equal_rows_may_share_a_few():
    crowd = np.unique(RNG.integers(0, 60, size=(4000, 3)), axis=0).astype(float)
    RNG.shuffle(crowd)
    first, second = crowd[:2000], crowd[2000:3000]
    assert not refused(np.concatenate([second, first[:9]]), first)
    assert refused(np.concatenate([second, first[:30]]), first)


def test_copies_are_refused_however_often_and_among_however_many():
    for times in (3, 4, 5, 10):
        assert refused(np.repeat(X, times, axis=0), X)
    assert refused(np.repeat(X, 3, axis=0), np.repeat(X, 3, axis=0))
    assert refused(X[RNG.integers(0, 400, 4000)], X)
    assert refused(np.concatenate([X, RNG.normal(size=(50_000, 3))]), X)


def test_a_column_that_numbers_the_rows_or_names_the_file_hides_no_copy():
    table = {name: X[:, place] for place, name in enumerate("abc")}
    order = RNG.permutation(400)
    shuffled = {name: column[order] for name, column in table.items()}
    assert refused({**shuffled, "": np.arange(400)}, {**table, "": np.arange(400)})
    splits = [np.array([name] * 400, dtype=object) for name in ("public", "private")]
    assert refused({**shuffled, "split": splits[0]}, {**table, "split": splits[1]})
    assert refused(np.column_stack([X[order], np.arange(400)]), np.column_stack([X, np.arange(400)]))


def test_tables_of_few_categories_that_were_rid_of_equal_rows_are_not_refused():
    """Equal rows are what such tables hold: 50 by 50 categories, some far more frequent than others."""
    chances = 1 / np.arange(1, 2501)
    for draw in range(20):
        kinds = np.random.default_rng(draw).choice(2500, size=(2, 1000), p=chances / chances.sum())
        drawn, other = (np.column_stack([kind // 50, kind % 50]).astype(float) for kind in kinds)
        assert not refused(np.unique(drawn, axis=0), np.unique(other, axis=0))
        assert not refused(drawn, np.unique(other, axis=0))


def test_columns_by_another_name_are_recognised():
    words = np.array(["red", "green", "blue"], dtype=object)[RNG.integers(0, 3, 400)]
    private = {"size": X[:, 0], "weight": X[:, 1], "colour": words}
    order = RNG.permutation(400)
    renamed = {
        "weight": X[order, 0],
        "size": np.array([repr(x) for x in X[order, 1].tolist()], object),
        "colour": words[order],
    }
    assert refused(renamed, private)
    others = {"size": RNG.normal(size=400), "weight": RNG.normal(size=400), "colour": words}
    assert not refused(others, private)


@pytest.mark.parametrize(
    "model",
    [
        PrivateClassifier(epsilon=50.0, n_teachers=10, mechanism="gnmax", classes=[0, 1]),
        MomentClassifier(epsilon=9.0, classes=[0, 1]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_private_records_are_refused_as_public_ones_unless_that_is_allowed(model):
    shuffled = X[RNG.permutation(400)[:100]]
    with pytest.raises(InputError, match="X_public must hold other records than X, got '100 rows, of 100"):
        model.fit(X, Y, shuffled)
    assert not hasattr(model, "guarantee_")
    model.fit(X, Y, shuffled, allow_overlap=True)
    compared, first, *_ = model.guarantee_.assumptions
    assert compared.text.endswith("one record added or removed")
    assert first.text.startswith("private records that are also among public or test records")
    assert first.checked_by == "caller"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("overlap")
    for name, rows in (("private", 400), ("public", 150), ("test", 150)):
        points = X if name == "private" else np.random.default_rng(rows + len(name)).normal(size=(rows, 3))
        labels = (points[:, 0] > 0).astype(int)
        write(place / f"{name}.csv", np.column_stack([points, labels]), ["a", "b", "c", "label"])
    order = np.random.default_rng(3).permutation(400)
    write(place / "shuffled.csv", np.column_stack([X, Y])[order], ["a", "b", "c", "label"])
    write(place / "unlabelled.csv", X[order][:, [2, 0, 1]], ["c", "a", "b"])
    write(place / "exchanged.csv", X[order][:, [1, 2, 0]], ["a", "b", "c"])
    columns = {"b": X[order, 1], "a": X[order, 0].astype(np.float32), "c": X[order, 2], "label": Y[order]}
    parquet.write_table(pa.table(columns), place / "other.parquet")
    np.savez(place / "other.npz", **columns)
    return place


def write(path, rows, header):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *[[*map(repr, map(float, row[:3])), *map(int, row[3:])] for row in rows]])


RUN = ("learn", "private.csv", "--label", "label", "--epsilon", "50", "--delta", "1e-5", "--teachers", "10")
GNMAX = ("--mechanism", "gnmax", "--queries", "20")


@pytest.mark.parametrize(
    ("option", "file"),
    [
        *(
            ("--public", name)
            for name in ("shuffled.csv", "unlabelled.csv", "exchanged.csv", "other.parquet", "other.npz")
        ),
        *(("--test", name) for name in ("shuffled.csv", "other.parquet", "other.npz")),
        *(("--labelled-public", name) for name in ("shuffled.csv", "other.npz")),
    ],
)
def test_the_command_recognises_private_records(folder, option, file, here):
    given = {"--public": "public.csv", option: file}
    mechanism = ("--mechanism", "auto") if option == "--labelled-public" else GNMAX
    done = here(folder, *RUN, *mechanism, *(word for pair in given.items() for word in pair), "--out", "mistaken")
    assert done.returncode != 0
    assert f"{option} must hold other records than PRIVATE, got '400 rows, of 400" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "mistaken").exists()
    if option == "--test":  # where labels alone are private, too
        done = here(folder, *RUN, *GNMAX, "--labels-only", "--test", file, "--out", "mistaken")
        assert "--test must hold other records than PRIVATE" in done.stderr


def test_what_is_allowed_is_said_and_no_accuracy_on_private_records_is_published(folder, here):
    files = ("--public", "unlabelled.csv", "--test", "shuffled.csv")
    done = here(folder, *RUN, *GNMAX, *files, "--allow-overlap", "--out", "allowed")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "Private records that are also in --public, --test or --labelled-public are not protected" in said
    results = json.loads((folder / "allowed" / "publish" / "results.json").read_text())
    assert results["detail"]["allow_overlap"] is True
    assert results["detail"]["test"] is None
    assert any(
        "such records were allowed" in item["text"] for item in results["comparisons"][0]["guarantee"]["assumptions"]
    )
    assert "of the test records" not in said
    (card,) = [card for card in results["verdicts"] if card["about"].startswith("What it gives away")]
    assert card["level"] != "fine"
    assert "are not protected" in card["reason"]
    assert "accuracy, student" in (folder / "allowed" / "private" / "owner.html").read_text()


def test_other_records_pass(folder, here):
    done = here(folder, *RUN, *GNMAX, "--public", "public.csv", "--test", "test.csv", "--out", "apart")
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "apart" / "publish" / "results.json").read_text())
    assert results["detail"]["allow_overlap"] is False
    assert results["detail"]["test"]["records"] == 150
