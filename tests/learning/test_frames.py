"""Tables in `PrivateClassifier`: encoded as the command does, by public records alone."""

import datetime
import pickle

import numpy as np
import pandas
import polars
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier

from tacit.core.errors import InputError
from tacit.learning import Columns, PrivateClassifier, learn_files
from tacit.learning.frames import rule_for

N = 600


def frame(rows=N, seed=0):
    draws = np.random.default_rng(seed)
    age = draws.normal(40, 10, rows)
    colour = draws.choice(["red", "green", "blue"], rows)
    found = pandas.DataFrame(
        {
            "age": np.where(draws.random(rows) < 0.05, np.nan, age),
            "colour": pandas.Categorical(colour),
            "note": [None if draws.random() < 0.05 else word for word in draws.choice(["a", "b"], rows)],
            "member": draws.random(rows) < 0.5,
            "visits": pandas.array(
                [None if draws.random() < 0.05 else int(n) for n in draws.poisson(3, rows)], "Int64"
            ),
        }
    )
    return found, ((age > 40) ^ (colour == "red")).astype(int)


(PRIVATE, LABELS), (PUBLIC, _) = frame(), frame(400, 1)


def fitted(private=PRIVATE, labels=LABELS, public=PUBLIC, **options):
    return PrivateClassifier(epsilon=4, mechanism="gnmax", n_teachers=5, classes=[0, 1], queries=20, **options).fit(
        private, labels, public
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict", "arrow"])
def test_tables_of_text_and_gaps_are_encoded_as_the_command_does(kind):
    """By the rule of public records alone, to the same numbers."""
    turned = {
        "pandas": lambda table: table,
        "polars": lambda table: polars.DataFrame(
            {name: [None if pandas.isna(value) else value for value in table[name]] for name in table}
        ),
        "dict": lambda table: {name: table[name].tolist() for name in table},
        "arrow": lambda table: pytest.importorskip("pyarrow").Table.from_pandas(table, preserve_index=False),
    }[kind]
    rule = rule_for(None, turned(PRIVATE), turned(PUBLIC), takes_gaps=False)
    assert np.array_equal(rule.transform(turned(PRIVATE)), Columns().fit(PUBLIC).transform(PRIVATE))
    assert set(rule.categories_) == {"colour", "note", "member"}
    model = fitted(turned(PRIVATE), LABELS, turned(PUBLIC))
    assert model.predict(turned(PUBLIC)).shape == (400,)
    assert np.array_equal(model.predict(turned(PUBLIC)), model.published().predict(PUBLIC))


def test_a_frame_and_its_file_give_the_same_numbers(tmp_path):
    from tacit.learning.study import inputs, run

    seen = []
    read = inputs.read
    for name, table in (("private", PRIVATE.assign(y=LABELS)), ("public", PUBLIC)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(run.inputs, "read", lambda *task: seen.append(read(*task)) or seen[-1])
        learn_files(
            tmp_path / "private.csv",
            label="y",
            public=tmp_path / "public.csv",
            classes="0,1",
            epsilon=4,
            delta=1e-5,
            mechanism="moments",
            out=tmp_path / "out",
        )
    model = fitted()
    assert np.array_equal(seen[0].records, model.columns_.transform(PRIVATE))
    assert np.array_equal(seen[0].public, model.columns_.transform(PUBLIC))
    student = skops.io.load(
        tmp_path / "out" / "publish" / "student.skops",
        trusted=skops.io.get_untrusted_types(file=tmp_path / "out" / "publish" / "student.skops"),
    )
    assert len(student.predict(PUBLIC)) == 400  # what the command has published takes frames as well


def test_no_private_record_changes_what_becomes_of_another():
    whole = fitted().columns_.transform(PRIVATE)
    other = PRIVATE.copy()
    other["age"] = other["age"].astype(object)
    other.loc[0, ["age", "colour", "note"]] = ["forty", None, "z"]
    assert np.array_equal(fitted(other).columns_.transform(other)[1:], whole[1:])
    assert np.array_equal(fitted().columns_.transform(PRIVATE[5:6]), whole[5:6])


def test_the_order_of_records_whose_labels_alone_are_private_does_not_show_in_the_rule():
    """Not even in the last digits of a mean."""
    shuffled = PRIVATE.sample(frac=1, random_state=1)
    one, other = (rule_for(None, table, None, takes_gaps=False) for table in (PRIVATE, shuffled))
    assert one.numeric_ == other.numeric_
    assert one.categories_ == other.categories_
    model = PrivateClassifier(epsilon=4, mechanism="moments", classes=[0, 1]).fit(PRIVATE, LABELS)
    assert model.predict(PRIVATE).shape == (N,)


def test_frames_of_numbers_stay_arrays_with_names():
    private, public = PRIVATE[["age"]].fillna(0), PUBLIC[["age"]].fillna(0)
    model = fitted(private, public=public)
    assert model.columns_ is None
    assert model.feature_names_in_.tolist() == ["age"]
    assert np.array_equal(model.predict(public), model.student_.predict(public.to_numpy()))
    scaled = fitted(private, public=public, columns=Columns())  # unless somebody asks for the command's rule
    assert scaled.columns_.names_ == ["age"]
    assert rule_for(None, PRIVATE[["age"]], PUBLIC[["age"]], takes_gaps=True) is None
    assert rule_for(None, PRIVATE[["age"]], PUBLIC[["age"]], takes_gaps=False) is not None
    learner = HistGradientBoostingClassifier(max_iter=2)
    model = PrivateClassifier(learner, epsilon=4, mechanism="gnmax", n_teachers=5, classes=[0, 1], queries="all")
    assert model.fit(PRIVATE[["age"]], LABELS, PUBLIC[["age"]]).columns_ is None  # which takes gaps as they are


def test_private_records_are_refused_among_public_rows_of_a_table():
    with pytest.raises(InputError, match="X_public must hold other records than X"):
        fitted(public=pandas.concat([PUBLIC, PRIVATE[:200]]))


def test_published_classifiers_of_tables_are_stored_without_pickles(tmp_path):
    model = fitted()
    skops.io.dump(model.published(), tmp_path / "model.skops")
    trusted = ["tacit.learning.classifier.PublishedClassifier", "tacit.learning.columns.Columns"]
    loaded = skops.io.load(tmp_path / "model.skops", trusted=trusted)
    assert np.array_equal(loaded.predict(PUBLIC), model.predict(PUBLIC))
    assert np.array_equal(loaded.predict_proba(PUBLIC), model.predict_proba(PUBLIC))
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.array_equal(again.predict(PUBLIC), model.predict(PUBLIC))


def test_dates_and_truth_are_text_in_memory_as_in_a_file():
    days = pandas.Series([datetime.datetime(2020, 1, 1 + day) for day in (0, 1, 1)] + [None])
    rule = Columns().fit({"day": days, "flag": [True, False, None, True]})
    assert rule.transform({"day": days, "flag": [True, False, None, True]}).tolist() == [
        [1, 0, 0, 1],
        [0, 1, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("private", "public", "options", "said"),
    [
        (PRIVATE, PUBLIC.to_numpy(), {}, "X and X_public must both be tables, or both arrays"),
        (PRIVATE, PUBLIC.drop(columns="age"), {}, "the columns of X must be those of X_public.*got .age"),
        (PRIVATE.assign(more=1), PUBLIC, {}, "got .more"),
        (PRIVATE[["age"]], PUBLIC[["age"]].fillna(0), {}, "text or gaps where X_public has numbers"),
        (PRIVATE.set_axis(range(5), axis=1), PUBLIC.set_axis(range(5), axis=1), {}, "must be named by text"),
        (PRIVATE.assign(age=[[1]] * N), PUBLIC, {}, "must hold one value per record"),
        (np.zeros((20, 2)), np.ones((20, 2)), {"columns": Columns()}, "must be a table, as `columns` is given"),
        (PRIVATE, PUBLIC, {"columns": "all"}, "columns must be a Columns"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(private, public, options, said):
    with pytest.raises(InputError, match=said):
        fitted(private, LABELS[: len(private)], public, **options)


def test_a_classifier_of_tables_refuses_arrays():
    with pytest.raises(InputError, match="must be a dict of columns or a data frame"):
        fitted().predict(np.zeros((2, 8)))
