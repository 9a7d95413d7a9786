"""Tables from files, and the rule that turns them into numbers: read off public records, applied to each one alone."""

import csv
import datetime
import io
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit import InputError
from tacit.core.errors import InputWarning
from tacit.learning import Columns
from tacit.runtime import tables


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
    assert found["whole"].tolist() == [1, None]
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
        ("a.csv", "a,a\n1,2\n", "two columns of the same name"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", "Expected 2 columns, got 3"),
        ("a.parquet", "no parquet", "ArrowInvalid"),
        ("a.npz", "no npz", "BadZipFile"),
        ("a.xlsx", "", "must end in .csv, .parquet, .npz"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, name, content, match):
    with pytest.raises(InputError, match=match):
        tables.read(written(tmp_path / name, content), name="PRIVATE")


@pytest.mark.parametrize("size", [2**23, 60])
@pytest.mark.parametrize("place", [0, 500, 1000])
def test_no_record_takes_the_lines_of_others_into_its_own(tmp_path, monkeypatch, place, size):
    monkeypatch.setattr(tables.fields, "_BYTES_AT_ONCE", size)
    lines = [f"{row},{row % 2},note\n" for row in range(1000)]
    for line, match in (
        ('5,1,"oops\n', "a quote that is never closed"),
        ('5,1,"oops" x\n', "a quote inside a field"),
        ("5,1\n", "Expected 3 columns, got 2"),
        ("5,1,a,b\n", "Expected 3 columns, got 4"),
    ):
        path = written(tmp_path / "t.csv", "x,y,note\n" + "".join([*lines[:place], line, *lines[place:]]))
        with pytest.raises(InputError, match=match):
            tables.read(path, name="t")
    path = written(tmp_path / "t.csv", "x,y,note\n" + "".join([*lines[:place], '5,1,"two\nlines, ""one"" field"\n']))
    assert tables.read(path, name="t")["note"][-1] == 'two\nlines, "one" field'


def test_a_refusal_quotes_no_record(tmp_path):
    with pytest.raises(InputError) as caught:
        tables.read(written(tmp_path / "a.csv", "a,b\n1,2\nsecret,4,5\n"), name="PRIVATE")
    assert "secret" not in str(caught.value)


def test_unusable_arrays_are_refused(tmp_path):
    with pytest.raises(InputError, match="must name a file that exists"):
        tables.read(tmp_path / "nowhere.npz", name="PRIVATE")
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="must be a readable file"):
        tables.read(tmp_path / "pickled.npz", name="PRIVATE")
    np.savez(tmp_path / "uneven.npz", a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(InputError, match="must be of the same length"):
        tables.read(tmp_path / "uneven.npz", name="PRIVATE")
    np.savez(tmp_path / "flat.npz", a=np.zeros((2, 2)))
    with pytest.raises(InputError, match="must have one dimension"):
        tables.read(tmp_path / "flat.npz", name="PRIVATE")
    parquet.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "nested.parquet")
    with pytest.raises(InputError, match="must hold one value per record"):
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


def test_a_dictionary_is_copied_as_its_values(tmp_path):
    """Its entries stand in the order in which records came, and all of them, whichever rows are copied."""
    words = pa.array(["d", "b", "c", "a"]).dictionary_encode()
    parquet.write_table(pa.table({"word": words, "y": [1, 0, 1, 0]}), tmp_path / "t.parquet")
    tables.write_with_column(tmp_path / "copy.parquet", tmp_path / "t.parquet", "y", [None, 1], rows=[3, 1])
    copy = parquet.read_table(tmp_path / "copy.parquet")
    assert copy.schema.field("word").type == pa.string()
    assert copy["word"].to_pylist() == ["a", "b"]


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


def test_what_a_record_of_a_list_becomes_does_not_depend_on_the_others():
    """NumPy would read 1.0 as "1.0" beside text, True as 1 beside a number, and 2**60 + 1 as 2**60 beside a float."""
    rule = Columns().fit({"a": np.array(["1", "true", str(2**60 + 1), "x"], dtype=object)})
    for value in (1, 1.0, np.float32(1), True, np.True_, 2**60 + 1, "x"):
        alone = rule.transform({"a": [value]})
        assert alone.sum() == 1
        for other in ("text", 2, 0.5, None, True, b"bytes"):
            np.testing.assert_array_equal(rule.transform({"a": [value, other]})[:1], alone)
            np.testing.assert_array_equal(rule.transform({"a": (other, value)})[1:], alone)


def test_a_missing_number_changes_no_other_record(tmp_path):
    """As floats, 2**53 and 2**53 + 1 would be one category; they are two, whoever else leaves a gap."""
    codes = [2**53, 2**53 + 1, 7]
    rule = Columns().fit({"code": np.array(["x", *map(str, codes)], dtype=object)})
    for name, held in (("without", codes), ("with", [*codes, None])):
        parquet.write_table(pa.table({"code": pa.array(held, pa.int64())}), tmp_path / f"{name}.parquet")
    without, with_it = (
        rule.transform(tables.read(tmp_path / f"{name}.parquet", name="PRIVATE")) for name in ("without", "with")
    )
    np.testing.assert_array_equal(without, with_it[:3])
    assert without.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]
    assert with_it[3].tolist() == [0, 0, 0, 0]
    framed = rule.transform(pd.DataFrame({"code": pd.array([*codes, None], dtype="Int64")}))
    np.testing.assert_array_equal(framed, with_it)


def counted(path, *columns, **options):
    """How often each row comes, by `tables.batches`."""
    found = {}
    for values, counts, _ in tables.batches(path, columns, name="TABLE", **options):
        rows = zip(*(values[column].tolist() for column in columns), strict=True)
        numbers = [1] * len(values[columns[0]]) if counts is None else counts.tolist()
        for row, number in zip(rows, numbers, strict=True):
            found[row] = found.get(row, 0) + number
    return found


@pytest.mark.parametrize("size", [1, 7, 2**20])
def test_the_fields_of_a_csv_are_what_stands_there(tmp_path, monkeypatch, size):
    """Against a naive twin, on files of random fields, some quoted; lines end in LF or CRLF, also within fields."""
    monkeypatch.setattr(tables.fields, "_BYTES_AT_ONCE", size)
    rng = np.random.default_rng(size)
    for _ in range(12):
        rows = []
        for _ in range(rng.integers(1, 8)):
            texts = ["".join(rng.choice(["a", '"', ",", "\n", "\r\n", " ", "é"], rng.integers(1, 4))) for _ in range(2)]
            quoted = [bool(set(text) & set('",\r\n')) or rng.random() < 0.3 for text in texts]
            pairs = zip(texts, quoted, strict=True)
            rows.append([f'"{text.replace(chr(34), chr(34) * 2)}"' if quote else f"x{text}" for text, quote in pairs])
        end = rng.choice(["\n", "\r\n"])
        content = end.join(['"a b", o ', *map(",".join, rows)])
        (tmp_path / "a.csv").write_bytes((b"\xef\xbb\xbf" * int(rng.integers(2))) + content.encode())
        held = tables.fields.header(tmp_path / "a.csv", "TABLE")
        assert held == ['"a b"', " o "]
        parts = [part for part, _ in tables.fields.fields(tmp_path / "a.csv", held, "TABLE")]
        found = [list(row) for part in parts for row in zip(*(part[name].to_pylist() for name in held), strict=True)]
        assert found == rows
        meant = [list(row) for row in csv.reader(io.StringIO(content, newline=""))][1:]
        plain = pa.concat_tables(parts)
        assert [tables.fields.unquoted(plain[name]).to_pylist() for name in held] == [
            list(column) for column in zip(*meant, strict=True)
        ]


def test_quotes_are_left_away_where_the_whole_column_has_them(tmp_path):
    path = written(tmp_path / "a.csv", '"all",some,"none"\n"1 ""x""",a,1\n"2","a",2\n')
    assert counted(path, "all", "some", "none") == {('1 "x"', "a", "1"): 1, ("2", '"a"', "2"): 1}
    assert counted(path, "none", "all", numbers=["none"]) == {(1.0, '1 "x"'): 1, (2.0, "2"): 1}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b's,o\n1,a"b"\n', "a quote inside a field"),
        (b's,o\n1,"a"b\n', "a quote inside a field"),
        (b's,o\n1, "a"\n', "a quote inside a field"),
        (b's,o\n1,"a\n2,b\n', "a quote that is never closed"),
        (b"s,o\n1,\xff\n", "invalid UTF8"),
        (b"s,o\n1,a\0\n", "text that ends in NUL"),
        (b"s,o\n1, \n", "1 missing among the first 1 rows"),
        (b's,o\n1,""\n', "1 missing among the first 1 rows"),
        (b's,o\n1,"NA"\n', "1 missing among the first 1 rows"),
        (b"s,o, o\n1,2,3\n", "must be there once"),
        (b's,o,"o"\n1,2,3\n', "must be there once"),
        (b"s,o\n1," + b"a" * 201, "texts of 200 characters or fewer"),
    ],
)
def test_what_is_unclear_in_a_csv_is_refused(tmp_path, content, match):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=match):
        list(tables.batches(tmp_path / "a.csv", ["s", "o"], name="TABLE"))


def test_a_column_has_one_name(tmp_path):
    path = written(tmp_path / "a.csv", "s,o\n1,2\n")
    with pytest.raises(InputError, match="must be named once, in one spelling"):
        list(tables.batches(path, ["s", "o", " o"], name="TABLE"))


def test_two_texts_of_one_number_are_refused_where_they_must_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.fields, "_BYTES_AT_ONCE", 2)  # the two come in different parts
    for one, other in (("1", "1.0"), ("0", "1e-400"), ("9007199254740992", "9007199254740993"), ('"2"', "2")):
        path = written(tmp_path / "a.csv", f"s,o\n1,{one}\n0,{other}\n")
        assert len(counted(path, "o", numbers=["o"])) == 1
        with pytest.raises(InputError, match="must write every number in one way"):
            list(tables.batches(path, ["o"], name="TABLE", numbers=["o"], apart=True))


def test_the_number_of_missing_entries_is_that_of_rows(tmp_path):
    """NaNs of any bits, and nulls, in rows that are otherwise alike."""
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    parquet.write_table(pa.table({"o": pa.array([*bits.tolist() * 20, None, 1.5])}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="61 missing among the first 62 rows"):
        list(tables.batches(tmp_path / "a.parquet", ["o"], name="TABLE"))


def test_types_of_parquet_stay_apart_or_are_refused(tmp_path):
    instants = [0, 1, 3_600_000_000_000]
    kept = {
        "zoned": pa.array(instants, pa.timestamp("ns", tz="Europe/Berlin")),
        "time": pa.array(instants, pa.time64("ns")),
        "span": pa.array(instants, pa.duration("ns")),
        "bytes": pa.array([b"a", b"A", b"a "]),
        "floats": pa.array([0.0, -0.0, 1.5]).dictionary_encode(),
        "view": pa.array(["a", "b", "c"], pa.string_view()),
    }
    parquet.write_table(pa.table(kept), tmp_path / "a.parquet")
    for name in kept:
        ((values, _, _),) = tables.batches(tmp_path / "a.parquet", [name], name="TABLE")
        bits = values[name].view(np.int64) if values[name].dtype.kind == "f" else values[name]
        assert len(set(bits.tolist())) == 3, name
    lost = {
        "day": pa.array([0, 1], pa.int64()).view(pa.date64()),  # two times of one day
        "far": pa.array([0, 2**62], pa.timestamp("s")),
        "bytes": pa.array([b"a", b"\xff"]),
        "list": pa.array([[1], [2]]),
    }
    for name, values in lost.items():
        with pytest.raises(InputError, match="must hold"):  # some of these no file holds that pyarrow writes
            tables.parts._simplified(pa.table({name: values}), "TABLE")


@pytest.mark.parametrize(
    "values",
    [
        pa.array(np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(float)),
        pa.array(np.array([0x7FC00000, 0xFFC00000, 0x7FC00001], np.uint32).view(np.float32)),
        pa.array([0.0, -0.0, None]),
        pa.array([1, 2, 3], pa.time64("ns")),
        pa.array([1, 2, 3], pa.timestamp("ns")),
        pa.array([1, 2, 3], pa.timestamp("ns", tz="UTC")),
        pa.array([1, 2, 3], pa.duration("ns")),
        pa.array([1, 2, 3], pa.date32()),
        pa.array(["a", "b", None]),
        pa.array([b"a", b"b", None]),
        pa.array([True, False, None]),
    ],
    ids=lambda values: str(values.type),
)
def test_records_that_a_copy_writes_differently_have_different_contents(tmp_path, values):
    """Of records with equal contents the order of the file would decide, which may tell labels."""
    parquet.write_table(pa.table({"x": values, "y": [0, 1, 0]}), tmp_path / "t.parquet")
    held = tables.contents(tmp_path / "t.parquet", without={"y"}, name="t")
    assert len(set(held)) == 3
    parquet.write_table(pa.table({"x": values.take([2, 0, 1]), "y": [1, 1, 0]}), tmp_path / "t.parquet")
    assert tables.contents(tmp_path / "t.parquet", without={"y"}, name="t") == [held[2], held[0], held[1]]


def test_a_column_of_numbers_with_a_stray_word_is_told():
    ages = np.array([*map(str, range(100)), "age"], dtype=object)
    words = np.array([f"street {number}" for number in range(101)], dtype=object)
    with pytest.warns(InputWarning, match="the columns 'age' are read as text") as heard:
        rule = Columns().fit({"age": ages, "street": words})
    assert len(heard) == 1
    assert "age" in rule.categories_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Columns().fit({"age": ages[:100], "street": words[:100]})
