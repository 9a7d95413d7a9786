"""Where labels alone are private, the order of the records must not tell them: a file sorted by its label is common.

Keys are fixed and noise is seeded, so that all that is published can be compared byte by byte.
"""

import copy
import csv

import numpy as np
import pytest
from noises import SeededNoise
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from tacit.learning import KernelRidgeClassifier, PrivateClassifier, Propagated, stored
from tacit.learning.mechanisms import session
from tacit.ledger import Ledger
from tacit.runtime import run_folder

KEY = bytes(range(32))
GENERATOR = np.random.default_rng(5)
Y = GENERATOR.integers(0, 2, 300)
X = np.round(GENERATOR.normal(size=(300, 2)) + 2 * Y[:, None], 1)
X[200:] = X[:100]  # equal features, of which every third has another label
Y[200:] = np.where(np.arange(100) % 3 == 0, 1 - Y[:100], Y[:100])
ORDERS = {
    "reversed": np.arange(300)[::-1],
    "shuffled": np.random.default_rng(1).permutation(300),
    "sorted by label": np.argsort(Y, kind="stable"),
}


@pytest.fixture
def seeded(monkeypatch):
    monkeypatch.setattr(session, "SystemNoise", lambda: SeededNoise(0))


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    "student",
    [
        KNeighborsClassifier(3),
        Propagated(KNeighborsClassifier(1), neighbors=4),
        LabelSpreading(kernel="knn", n_neighbors=4),
        KernelRidgeClassifier(),
    ],
    ids=lambda student: type(student).__name__,
)
def test_what_is_published_does_not_depend_on_the_order_of_the_records(student, tmp_path):
    """By clusters, by a stopping rule, and by all that students keep of their points."""
    for options in ({"mechanism": "gnmax", "queries": 20}, {"mechanism": "svt", "refusals": 3, "queries": "all"}):
        seen = []
        for place, order in enumerate([np.arange(300), *ORDERS.values()]):
            ledger = Ledger.open(tmp_path / f"{options['mechanism']}{place}.db", epsilon=300, delta=1e-5)
            model = PrivateClassifier(KNeighborsClassifier(1), epsilon=300.0, n_teachers=10, student=student, key=KEY)
            model.set_params(ledger=ledger, **options).fit(X[order], Y[order])
            stored.publish(tmp_path / "student.skops", model.published())
            answers = model.labels_.tolist(), [note.to_dict()["detail"] for note in ledger.notes()]
            points = X[order][model.public_].tolist()
            seen.append(((tmp_path / "student.skops").read_bytes(), *answers, points, model.choice_))
        assert all(one == seen[0] for one in seen)


def written(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["size", "word", "sort"], *rows])


def rows_of_the_file():
    """Equal numbers that are written in two ways, and words that are too many to be columns of their own."""
    for place, (point, label) in enumerate(zip(X, Y, strict=True)):
        size = f"{point[0]:.1f}" if place % 2 else f"{point[0]:.2f}"
        yield [size, f"w{place % 230:03d}", "ab"[label]]


@pytest.mark.usefixtures("seeded")
def test_the_command_publishes_the_same_bytes_whatever_the_order_of_the_file(tmp_path, here):
    rows = list(rows_of_the_file())
    published = []
    for place, order in enumerate((range(300), *ORDERS.values())):
        folder = tmp_path / str(place)
        (folder / "out" / "private").mkdir(parents=True)
        release = {"key": KEY.hex(), "release": "0" * 32}
        run_folder.record(folder / "out" / "private" / "release.json", lambda release=release: release, claimed=False)
        written(folder / "private.csv", [rows[row] for row in order])
        budget = ("--epsilon", "30", "--delta", "1e-5", "--mechanism", "gnmax", "--queries", "30")
        nearest = ("--student", "sklearn.neighbors:KNeighborsClassifier")
        done = here(
            folder, "learn", "private.csv", "--labels-only", "--label", "sort", *budget, *nearest, "--out", "out"
        )
        assert done.returncode == 0, done.stderr
        published.append({path.name: path.read_bytes() for path in (folder / "out" / "publish").iterdir()})
    assert set(published[0]) == {"labelled.csv", "report.html", "results.json", "student.skops"}
    for name, others in zip(ORDERS, published[1:], strict=True):
        for file in published[0]:
            assert published[0][file] == others[file], (name, file)


def test_places_in_what_is_published_do_not_tell_labels(tmp_path, here):
    """A file sorted by its label, at ε = 0.1. Who guesses by place is right as often as by a coin, to 5.5 standard
    deviations: a false alarm has a probability below 1e-7. In the order of the file they were right on 97 %.
    """
    rng = np.random.default_rng(2)
    numbers, labels = rng.normal(size=1500).tolist(), np.sort(rng.integers(0, 2, 1500))
    written(tmp_path / "private.csv", [[repr(n), "w", "ab"[label]] for n, label in zip(numbers, labels, strict=True)])
    budget = ("--epsilon", "0.1", "--delta", "1e-5", "--teachers", "20", "--mechanism", "gnmax", "--queries", "all")
    done = here(
        tmp_path,
        "learn",
        "private.csv",
        "--labels-only",
        "--label",
        "sort",
        "--classes",
        "a,b",
        *budget,
        "--out",
        "out",
    )
    assert done.returncode == 0, done.stderr
    truth = {repr(n): label for n, label in zip(numbers, labels, strict=True)}
    with (tmp_path / "out" / "publish" / "labelled.csv").open() as file:
        found = np.array([truth[row["size"]] for row in csv.DictReader(file)])
    guessed = np.arange(len(found)) >= np.sum(found == 0)
    assert abs(np.mean(guessed == found) - 0.5) < 5.5 * 0.5 / np.sqrt(len(found))


def test_a_label_inside_an_array_that_is_published_is_refused(tmp_path, here):
    """Of an npz, X is copied whole: a label that is one of its columns would be published as it is."""
    features = np.column_stack([X, Y])
    np.savez(tmp_path / "private.npz", X=features)
    budget = ("--epsilon", "30", "--delta", "1e-5", "--mechanism", "gnmax", "--queries", "30", "--out", "out")
    done = here(tmp_path, "learn", "private.npz", "--labels-only", "--label", "x2", *budget)
    assert done.returncode != 0
    assert "column 'x2' of PRIVATE must be an array of its own" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("numbers", [range(300), range(900, 0, -3)])
def test_a_number_of_the_row_is_refused(tmp_path, here, numbers):
    """In a file sorted by its label, the number that is published says on which side of a threshold a record lies."""
    labels = np.sort(Y)
    rows = [
        [number, f"w{place % 7}", "ab"[label]]
        for place, (number, label) in enumerate(zip(numbers, labels, strict=True))
    ]
    written(tmp_path / "private.csv", rows)
    run = (
        "learn",
        "private.csv",
        "--labels-only",
        "--label",
        "sort",
        "--epsilon",
        "30",
        "--delta",
        "1e-5",
        "--out",
        "out",
    )
    done = here(tmp_path, *run)
    assert done.returncode == 2
    assert "column 'size' of PRIVATE must not number the records" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_places_in_the_callers_array_stay_with_the_caller():
    model = PrivateClassifier(epsilon=50.0, key=KEY).fit(X, Y)
    assert len(model.public_) == len(model.labels_)
    assert not hasattr(copy.deepcopy(model), "public_")
