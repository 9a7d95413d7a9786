"""Several labels by noisy counts of teachers that say yes, and the command that learns them, and numbers."""

import csv
import json

import numpy as np
import pytest
import skops.io
from sklearn.tree import DecisionTreeClassifier

from tacit.core.errors import InputError
from tacit.learning import PrivateMultiLabelClassifier
from tacit.learning.answer_sums import Grid, summed_answers
from tacit.learning.owners import owners
from tacit.ledger import Ledger


@pytest.fixture(scope="module")
def tags():
    rng = np.random.default_rng(0)
    records = rng.normal(size=(3000, 4))
    return records, (records[:, :3] + 0.3 * rng.normal(size=(3000, 3)) > 0).astype(int)


def test_one_record_moves_each_count_by_one_at_most():
    rng = np.random.default_rng(1)
    records, labels, queries = rng.normal(size=(40, 2)), rng.integers(0, 2, (40, 3)), rng.normal(size=(20, 2))

    def counts(kept):
        return summed_answers(
            DecisionTreeClassifier(random_state=0),
            records[kept],
            labels[kept].astype(float),
            queries,
            owners=owners(records[kept], None),
            key=bytes(32),
            teachers=3,
            grid=Grid(low=0.0, high=1.0, reach=1),
        )

    every = counts(np.ones(40, dtype=bool))
    moved = [np.abs(every - counts(np.arange(40) != row)) for row in range(0, 40, 5)]
    assert max(change.max() for change in moved) == 1
    assert max((change.sum(axis=1)).max() for change in moved) > 1  # several labels of one query, as is paid for


def test_a_classifier_of_several_labels(tags):
    records, labels = tags
    model = PrivateMultiLabelClassifier(epsilon=4.0, n_teachers=80)
    model.fit(records[:2000], labels[:2000], records[2000:2300])
    # Six fits gave 0.902 to 0.911, so that noise alone brings it below 0.85 never.
    assert (model.predict(records[2300:]) == labels[2300:]).mean() > 0.85
    detail = model.guarantee_.detail
    assert detail["sums"] == 3 * 300
    assert detail["reach"] == 1
    assert model.guarantee_.value == 4
    shares = model.predict_shares(records[:50])
    assert shares.min() >= 0
    assert shares.max() <= 1
    content = skops.io.dumps(model.published())
    loaded = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    assert (loaded.predict(records[:50]) == model.predict(records[:50])).all()


@pytest.mark.parametrize("wrong", [0.5, 2.0, -1.0, np.nan])
def test_labels_other_than_yes_and_no_are_refused(tags, wrong, tmp_path):
    records, labels = tags
    bad = labels[:300].astype(float)
    bad[7, 1] = wrong
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-4)
    with pytest.raises(InputError, match="y must be"):
        PrivateMultiLabelClassifier(ledger=ledger).fit(records[:300], bad, records[2000:2300])
    assert not ledger.entries()


@pytest.mark.parametrize(
    "written", [lambda tags: (tags > 0).tolist(), lambda tags: np.array([(one, two > 0) for one, two in tags], object)]
)
def test_yes_and_no_may_be_bools_and_numbers(written):
    tags = np.random.default_rng(0).integers(0, 2, (50, 2))
    assert (PrivateMultiLabelClassifier()._values(written(tags), records=50) == tags).all()


def test_masked_labels_are_refused():
    masked = np.ma.array(np.ones((50, 2)), mask=np.arange(100).reshape(50, 2) == 7)
    with pytest.raises(InputError, match="y must be 0 or 1"):
        PrivateMultiLabelClassifier()._values(masked, records=50)


# The command.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(5)
    for name, rows in (("private", 3000), ("public", 300), ("test", 300)):
        x, colour = rng.normal(size=(rows, 2)), rng.choice(["red", "blue"], rows)
        price = 200 + 70 * x[:, 0] + 40 * (colour == "red") + 10 * rng.normal(size=rows)
        for kind, learned in (("price", ["price"]), ("tags", ["warm", "large"])):
            with (place / f"{name}-{kind}.csv").open("w", newline="") as file:
                lines = csv.writer(file)
                lines.writerow(["a", "b", "colour", *(learned if name != "public" else [])])
                for row in range(rows):
                    tagged = ["yes" if colour[row] == "red" else "no", int(x[row, 0] > 0)]
                    said = [f"{price[row]:.2f}"] if kind == "price" else tagged
                    lines.writerow([*(f"{v:.6f}" for v in x[row]), colour[row], *(said if name != "public" else [])])
    return place


BUDGET = ("--epsilon", "4", "--delta", "1e-5", "--quiet")


def test_numbers_by_the_command(folder, here):
    options = ("--label", "price", "--label-range", "0", "400", "--public", "public-price.csv")
    done = here(folder, "learn", "private-price.csv", *options, "--test", "test-price.csv", *BUDGET, "--out", "price")
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "price/publish/results.json").read_text())
    assert results["detail"]["test"]["explained"] > 0.5
    assert results["detail"]["label_range"] == [0, 400]
    with (folder / "price/publish/labelled.csv").open() as file:
        means = [float(row["price"]) for row in csv.DictReader(file)]
    assert len(means) == 300
    again = here(
        folder, "learn", "private-price.csv", *options, "--student", "sklearn.linear_model:Ridge", *BUDGET, "--out",
        "price", "--resume",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    with (folder / "price/publish/labelled.csv").open() as file:
        assert means == [float(row["price"]) for row in csv.DictReader(file)]
    ledger = Ledger.open(folder / "price/ledger.sqlite")
    assert float(ledger.spent.epsilon) == 4
    assert {entry.what for entry in ledger.entries()} == {
        "PrivateRegressor.fit",
        "PrivateRegressor.fit, the number of records with noise",
    }
    served = here(folder, "serve", "price", "--epsilon", "1", "--delta", "1e-6")
    assert served.returncode != 0
    assert "numbers or several labels" in served.stderr


def test_test_records_beyond_the_range_count_as_they_are(folder, here):
    """Clipped to a range far below them, they would all be predicted well."""
    options = ("--label", "price", "--label-range", "0", "150", "--public", "public-price.csv", "--teachers", "30")
    done = here(folder, "learn", "private-price.csv", *options, "--test", "test-price.csv", *BUDGET, "--out", "low")
    assert done.returncode == 0, done.stderr
    measured = json.loads((folder / "low/publish/results.json").read_text())["detail"]["test"]
    with (folder / "test-price.csv").open() as file:
        truth = np.array([float(row["price"]) for row in csv.DictReader(file)])
    assert measured["error"] >= np.maximum(truth - 150, 0).mean()  # no prediction is above 150
    assert measured["error_of_mean"] == pytest.approx(np.abs(truth - truth.mean()).mean())


def test_several_labels_by_the_command(folder, here):
    options = ("--label", "warm", "--label", "large", "--public", "public-tags.csv", "--test", "test-tags.csv")
    done = here(folder, "learn", "private-tags.csv", *options, *BUDGET, "--out", "tags")
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "tags/publish/results.json").read_text())
    assert results["detail"]["test"]["right"] > 0.8
    assert results["detail"]["labels"] == ["warm", "large"]
    header = (folder / "tags/publish/labelled.csv").read_text().splitlines()[0]
    assert header == "a,b,colour,warm,large"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--label price --label-range 5 5", "--label-range must be two numbers, the first well below the second"),
        ("--label price --label-range 0 9 --labels-only", "--labels-only must be left out where numbers"),
        ("--label price --label-range 0 9 --public public-price.csv --mechanism gnmax", "--mechanism must be left out"),
        ("--label price --label-range 0 9 --public public-price.csv --classes 1,2", "--classes must be left out"),
        ("--label price --label price --public public-price.csv", "--label must name one column or several different"),
        ("--label price --label a --public public-price.csv", "must hold yes or no, 1 or 0 for every record"),
        ("--label price --label a --label-range 0 9 --public public-price.csv", "--label-range must come with one"),
        ("--label colour --label-range 0 9 --public public-price.csv", "must hold a number for every record"),
        ("--label price --public public-price.csv", "if it holds numbers to be learned, give --label-range"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(folder, here, options, message):
    done = here(folder, "learn", "private-price.csv", *options.split(), *BUDGET, "--out", "refused")
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
    assert not (folder / "refused").exists()
