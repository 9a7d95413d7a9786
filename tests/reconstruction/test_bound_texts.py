"""Texts from files: what the report says, and what it refuses."""

import json
import time

import numpy as np
import pytest

from tacit import InputError
from tacit.reconstruction import bound_texts_files
from tacit.reconstruction.study.texts import _seconds_per_try, _Time, texts_of

MODEL = """
import numpy as np

TABLE = np.random.default_rng(5).normal(size=(8, 26, 6))


def encoder():
    def encode(texts):
        return np.array(
            [sum(TABLE[place, ord(word[0]) - 97] for place, word in enumerate(text.split())) for text in texts]
        )

    return encode


def easy():
    usual = encoder()
    return lambda texts: usual(texts) + [[40.0 * text.startswith("g") * place for place in range(6)] for text in texts]


def starts():
    return lambda texts: [text[0] for text in texts]


def number():
    return 3


def broken():
    return lambda texts: texts[0] + 1
"""
FAST = {"noise": "gaussian:2", "longest": 4, "draws": 60, "rivals": 3, "limit": 40, "progress": False}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "model.py").write_text(MODEL)
    lines = [" ".join(rng.choice(list("aaabbcdefg"), size=rng.integers(1, 6))) for _ in range(200)]
    (tmp_path / "public.txt").write_text("\n".join(lines[:150]) + "\n")
    (tmp_path / "real.txt").write_text("\n".join([*lines[150:], "zebra a", ""]) + "\n")
    return tmp_path


def run(folder, model="encoder", **options):
    files = {"text": folder / "real.txt", "public": folder / "public.txt"}
    return bound_texts_files(f"{folder / 'model.py'}:{model}", **{**files, **FAST, **options})


def test_a_report_on_texts(folder):
    lines = []
    report = run(folder, attribute=f"{folder / 'model.py'}:starts", advance=lines.append)
    words, whole, attribute = report.comparisons
    assert whole.guarantee.value < 1
    assert words.guarantee.value < 1 > attribute.guarantee.value
    assert not report.contradicted
    text = report.to_text()
    assert "anyone restores at most" in " ".join(text.split())
    assert "50 of 51 real texts have only words of the public ones in their first 4 words" in " ".join(text.split())
    cut = sum(len(line.split()) > 4 for line in (folder / "real.txt").read_text().splitlines())
    assert cut > 1
    assert f"{cut} of the real texts are longer and cut off after 4 words" in " ".join(text.split())
    assert "Texts that are equally likely, given one release" in text
    found = json.loads(report.to_json())
    assert found["detail"]["of_known_words"] == 50
    assert (found["detail"]["cut"], found["detail"]["longest"]) == (cut, 4)
    assert len(found["detail"]["rivals"][0]) == 4
    assert set(found["detail"]["on_data"]) == {"words", "whole", "attribute"}
    assert "What is restored" in report.to_html()
    assert "finding rivals" in lines
    [card] = report.verdicts
    assert card.level in ("fine", "weak", "broken")
    assert report.opening
    assert report.changes
    assert any("attacking the real texts" in line for line in lines)


def slow(texts):
    time.sleep(0.001 * len(texts))
    return [[0.0]] * len(texts)


def test_the_encoder_is_timed_on_texts_as_long_as_those_tried():
    taken = _seconds_per_try(slow, ["one two three four"] * 100, longest=3)
    assert taken >= 0.003  # a millisecond for a text, each of whose three words is tried


@pytest.mark.parametrize(
    ("seconds", "given", "draws", "limit"),
    [
        (1000.0, {}, 200, 200),
        (1e-6, {}, 30, 30),
        (200.0, {}, 90, 45),  # 180 seconds, half of them for the bound, and two attacks of a second on each text
        (200.0, {"limit": 7}, 90, 7),
        (1e-6, {"draws": 50, "limit": 200}, 50, 200),
    ],
)
def test_time_decides_how_many_texts_are_tried_unless_they_are_given(seconds, given, draws, limit):
    time = _Time(seconds, drawing=1.0, attacking=1.0, **{"draws": None, "limit": None, **given})
    assert (time.draws, time.limit) == (draws, limit)
    assert bool(time.left_out) == (min(draws, limit) < 200 and len(given) < 2)


def test_a_short_time_is_kept_to_and_said(folder):
    short = run(folder, draws=None, limit=None, seconds=1e-3)
    assert short.detail["time"] == {"seconds": 1e-3, "draws": 30, "limit": 30}
    assert any("There was time for 30 draws" in change.what for change in short.changes)
    again = run(folder, draws=30, limit=30)
    assert [one.to_dict() for one in again.comparisons] == [one.to_dict() for one in short.comparisons]


def test_real_texts_that_are_easier_than_the_prior_are_said_first(folder):
    (folder / "real.txt").write_text("g\ng\n" * 40)
    report = run(folder, "easy", limit=80)
    assert report.summary[0].startswith("The prior is refuted: an attack restored 100 % of the words")
    assert report.contradicted
    first = report.comparisons[0].guarantee.assumptions[0]  # what a certificate says
    assert "not for the real inputs: that these are draws from it is refuted" in first.text


def test_the_first_lines_of_a_file_do_not_decide(folder):
    """Of real texts that are sorted, some at random are attacked: here the easy ones come first, or last."""
    others, easy = (folder / "public.txt").read_text().splitlines(), ["g"] * 40
    for lines in ([*easy, *others], [*others, *easy]):
        (folder / "real.txt").write_text("\n".join(lines) + "\n")
        report = run(folder, "easy", limit=40)
        assert not report.contradicted
        assert not report.summary[0].startswith("The prior is")
    (folder / "real.txt").write_text("\n".join(easy) + "\n")
    assert run(folder, "easy", limit=40).contradicted


def test_rounding_alone_proves_nothing_and_is_attacked(folder):
    report = run(folder, noise="rounded:0.01")
    assert report.summary[0].startswith("Nothing is proven")
    assert report.comparisons[0].guarantee.value == 1
    assert report.comparisons[0].attacks[0].value > 0.85
    (folder / "real.txt").write_text((folder / "public.txt").read_text())
    assert "stand among the public ones" in " ".join(run(folder, noise="rounded:0.01").to_text().split())


def test_texts_come_from_lines_and_columns(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffone \u2028 line\r\n\n two\nNA\n".encode())
    assert texts_of(path, "texts", None) == ["one \u2028 line", " two", "NA"]
    path.write_bytes(b"one\rtwo\r\nthree\nfour\r")
    assert texts_of(path, "texts", None) == ["one", "two", "three", "four"]
    table = tmp_path / "texts.csv"
    table.write_text('note,label\n"a, ""b""",1\nNA,2\n"two\nlines",3\n007,4\n7,5\n')
    assert texts_of(table, "texts", "note") == ['a, "b"', "NA", "two\nlines", "007", "7"]
    tabs = tmp_path / "texts.tsv"
    tabs.write_text('note\tlabel\n"a\t1\n007\t2\n')
    assert texts_of(tabs, "texts", "note") == ['"a', "007"]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", b"one\ntwo\n", "note", "column must be left out"),
        ("a.txt", b"one\n", None, "two texts or more"),
        ("a.txt", b"\xff\xfe\n", None, "UTF-8"),
        ("a.pdf", b"one", None, "must end in .txt"),
        ("a.csv", b"x,y\n1,2\n3,4\n", None, "must be a column of `texts`.*it has x, y"),
        ("a.tsv", b"x\ty\n1\t2\n3\n", "x", "line 3"),
        ("a.tsv", b"", "x", "must be a column"),
        ("a.tsv", b"x\ty\tx\n1\t2\t3\n4\t5\t6\n", "x", "two columns called 'x'"),
        ("a.csv", b"x,y,x\n1,2,3\n4,5,6\n", "x", "two columns of the same name"),
    ],
)
def test_files_that_hold_no_texts_are_refused(tmp_path, name, content, column, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        texts_of(tmp_path / name, "texts", column)


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array(["a", "b"]), arrow.array(["c", "d"])]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["x", "x"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="must be a readable table"):
        texts_of(tmp_path / "a.parquet", "texts", "x")


def test_what_cannot_be_used_is_refused_in_one_line(folder):
    with pytest.raises(InputError, match="must name a file that exists"):
        run(folder, text=folder / "missing.txt")
    with pytest.raises(InputError, match="model must name a file that exists"):
        bound_texts_files("nothing.py:x", text=folder / "real.txt", public=folder / "public.txt", **FAST)
    with pytest.raises(InputError, match="function of a list of texts"):
        run(folder, "number")
    with pytest.raises(InputError, match=r"TypeError.*must take a list of texts|must take a list of texts.*TypeError"):
        run(folder, "broken")
    with pytest.raises(InputError, match="rounded:STEP"):
        run(folder, noise="rounded:fine")
    with pytest.raises(InputError, match="noise must be gaussian"):
        run(folder, noise="loud")
    (folder / "real.txt").write_text("zebra\nlion\n")
    with pytest.raises(InputError, match="only words of the prior"):
        run(folder)
