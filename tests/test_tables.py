"""Tables from files, and the rule that turns them into numbers: read off public records, applied to each one alone."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit import InputError, tables
from tacit.learning import Columns


def written(path, text):
    path.write_text(text)
    return path


def test_a_csv_stays_text(tmp_path):
    path = written(tmp_path / "a.csv", "code , n\n007,1\n,x y\n")
    found = tables.read(path, name="PRIVATE")
    assert {name: column.tolist() for name, column in found.items()} == {"code": ["007", ""], "n": ["1", "x y"]}


def test_parquet_keeps_numbers_and_makes_text_of_the_rest(tmp_path):
    day = datetime.date(2020, 1, 2)
    frame = pa.table(
        {
            "whole": pa.array([1, None], pa.int64()),
            "flag": [True, None],
            "day": [day, day],
            "kind": pa.array(["a", None]).dictionary_encode(),
            "empty": pa.nulls(2),
        }
    )
    parquet.write_table(frame, tmp_path / "a.parquet")
    found = tables.read(tmp_path / "a.parquet", name="PRIVATE")
    np.testing.assert_array_equal(found["whole"], [1.0, np.nan])
    assert found["flag"].tolist() == ["true", None]
    assert found["day"].tolist() == ["2020-01-02"] * 2
    assert found["kind"].tolist() == ["a", None]
    assert np.isnan(found["empty"]).all()


def test_an_npz_of_images_has_a_column_for_each_number(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(8).reshape(2, 2, 2), y=np.array(["a", "b"]))
    found = tables.read(tmp_path / "a.npz", name="PRIVATE")
    assert list(found) == ["x0", "x1", "x2", "x3", "y"]
    assert found["x3"].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.csv", "", "Empty CSV file"),
        ("a.csv", "a,b\n", "no record"),
        ("a.csv", "a,a\n1,2\n", "two columns of one name"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", "Expected 2 columns, got 3"),
        ("a.parquet", "no parquet", "ArrowInvalid"),
        ("a.npz", "no npz", "ValueError"),
        ("a.xlsx", "", "must end in .csv, .parquet, .npz"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, name, content, match):
    with pytest.raises(InputError, match=match):
        tables.read(written(tmp_path / name, content), name="PRIVATE")


def test_a_refusal_quotes_no_record(tmp_path):
    with pytest.raises(InputError) as caught:
        tables.read(written(tmp_path / "a.csv", "a,b\n1,2\nsecret,4,5\n"), name="PRIVATE")
    assert "secret" not in str(caught.value)


def test_unusable_arrays_are_refused(tmp_path):
    with pytest.raises(InputError, match="must be a readable table"):
        tables.read(tmp_path / "nowhere.npz", name="PRIVATE")
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="must be a readable table"):
        tables.read(tmp_path / "pickled.npz", name="PRIVATE")
    np.savez(tmp_path / "uneven.npz", a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(InputError, match="must be of one length"):
        tables.read(tmp_path / "uneven.npz", name="PRIVATE")
    np.savez(tmp_path / "flat.npz", a=np.zeros((2, 2)))
    with pytest.raises(InputError, match="must have one dimension"):
        tables.read(tmp_path / "flat.npz", name="PRIVATE")
    parquet.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "nested.parquet")
    with pytest.raises(InputError, match="must hold one value a record"):
        tables.read(tmp_path / "nested.parquet", name="PRIVATE")


def test_a_column_is_added_and_the_rest_stays(tmp_path):
    source = written(tmp_path / "a.csv", 'n,words\n1.50,"a, b"\n2,\n3,c\n')
    tables.write_with_column(tmp_path / "b.csv", source, "y", ["yes", None], rows=[0, 2])
    assert (tmp_path / "b.csv").read_text() == 'n,words,y\n1.50,"a, b",yes\n3,c,\n'
    parquet.write_table(pa.table({"n": pa.array([1, 2], pa.int8()), "y": ["x", "x"]}), tmp_path / "a.parquet")
    tables.write_with_column(tmp_path / "b.parquet", tmp_path / "a.parquet", "y", [None, 5])
    assert parquet.read_table(tmp_path / "b.parquet").to_pydict() == {"n": [1, 2], "y": [None, 5]}
    assert parquet.read_table(tmp_path / "b.parquet").schema.field("n").type == pa.int8()
    np.savez(tmp_path / "a.npz", X=np.eye(2), who=np.array(["a", "b"]))
    tables.write_with_column(tmp_path / "b.npz", tmp_path / "a.npz", "y", [None, 5], without="who")
    with np.load(tmp_path / "b.npz") as archive:
        assert sorted(archive.files) == ["X", "y"]
        np.testing.assert_array_equal(archive["y"], [np.nan, 5])


PUBLIC = "age,colour,code\n20,red,01\n40,blue,1\n,red,x\n"


def test_numbers_are_scaled_and_text_becomes_categories(tmp_path):
    table = tables.read(written(tmp_path / "public.csv", PUBLIC), name="--public")
    rule = Columns().fit(table)
    assert rule.get_feature_names_out().tolist() == ["age", "colour=blue", "colour=red", "code=01", "code=1", "code=x"]
    np.testing.assert_array_equal(rule.transform(table), [[-1, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]])
    odd = {"age": ["inf", "NaN", "1e400"], "colour": ["Red", None, " red "], "code": np.array([1.0, 1, 7])}
    np.testing.assert_array_equal(rule.transform(odd), [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]])


@pytest.mark.parametrize("odd", ["none,violet,abc", "1e300,,", "x,x,1.5"])
def test_a_private_record_changes_no_row_but_its_own(tmp_path, odd):
    """Types guessed from all records would read 01 as 1 until somebody writes abc: then one record moves all."""
    rule = Columns().fit(tables.read(written(tmp_path / "public.csv", PUBLIC), name="--public"))
    private = "age,colour,code\n30,red,01\n50,blue,1\n"
    without = tables.read(written(tmp_path / "without.csv", private), name="PRIVATE")
    with_it = tables.read(written(tmp_path / "with.csv", f"{private}{odd}\n"), name="PRIVATE")
    np.testing.assert_array_equal(rule.transform(without), rule.transform(with_it)[:2])


def test_only_the_most_frequent_categories_count():
    rule = Columns(most=1).fit({"a": np.array(["x", "y", "y"], dtype=object)})
    assert rule.transform({"a": ["x", "y"]}).tolist() == [[0.0], [1.0]]


def test_truth_is_one_text_whatever_wrote_it():
    rule = Columns().fit({"a": np.array(["True", "false"], dtype=object)})
    assert rule.transform({"a": np.array([True, False])}).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_table_that_lacks_a_column_is_refused():
    rule = Columns().fit({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(InputError, match="must have every column"):
        rule.transform({"a": [1]})


@pytest.mark.parametrize(
    "column", ["100000000000000000010\n100000000000000000011", "0.5\n9007199254740993", "9007199254740993\n0.5"]
)
def test_whole_numbers_that_floats_do_not_tell_apart_are_refused(tmp_path, column):
    path = written(tmp_path / "a.csv", f"id\n{column}\n")
    with pytest.raises(InputError, match="must hold numbers that float64 or int64 tells apart"):
        list(tables.batches(path, ["id"], name="TABLE"))


def test_large_floats_and_long_whole_numbers_are_read_as_they_are(tmp_path):
    path = written(tmp_path / "a.csv", "ratio, id\n1.5e300,9007199254740993\n-inf,9007199254740992\n")
    ((found, _, _),) = tables.batches(path, ["ratio", "id"], name="TABLE")
    assert found["ratio"].tolist() == [1.5e300, -np.inf]
    assert found["id"].tolist() == [9007199254740993, 9007199254740992]
