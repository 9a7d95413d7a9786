"""Texts: their code is certified, attacks on them find a word that tells, and nothing merges or leaks on the way."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from commands import assert_one_line_error
from pyarrow import csv, parquet

from tacit import InputError
from tacit.audit import audit_file, audit_vectors, certify, load_code
from tacit.audit.codes import own_rows
from tacit.audit.terms import TERMS, Terms, chosen, text_prints, with_texts

pytestmark = pytest.mark.usefixtures("quick_attacks")
ROWS = 2_000
RNG = np.random.default_rng(5)
SECRET = np.arange(ROWS) % 2
WORDS = np.array(["".join(RNG.choice(list("aeioulmnrst"), RNG.integers(2, 7))) for _ in range(300)])
CALM = [" ".join(WORDS[RNG.integers(0, 300, RNG.integers(3, 25))]) for _ in range(ROWS)]
TOLD = RNG.random(ROWS) < 0.6
TELLING = [
    f'So, "indeed", {text}' if told and secret else text for text, told, secret in zip(CALM, TOLD, SECRET, strict=True)
]
NUMBERS = RNG.normal(size=ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    table = pa.table({"s": SECRET, "reply": TELLING, "score": NUMBERS, "calm": CALM})
    parquet.write_table(table, folder / "t.parquet", row_group_size=700)
    csv.write_csv(table, folder / "t.csv", csv.WriteOptions(quoting_style="needed"))
    return folder


def naive(text):
    """Every string of up to four letters, every word and every two words in a row, one by one."""
    words = "".join(letter if letter.isalnum() else " " for letter in text).split(" ")
    words = [word for word in words if word]
    strings = [text[start : start + size] for size in (1, 2, 3, 4) for start in range(len(text) - size + 1)]
    return [
        *(("letters", one) for one in strings),
        *(("word", one) for one in words),
        *pairwise(words),
    ]


def test_terms_are_those_of_the_definition():
    """Each of 16 texts is split from the others exactly where it ends, so its counts are those of it alone."""
    texts = ["", "a", "ab cd", "É\U0001f600 x1", "a\0b\0", "\ud800 z", "ab  cd, ab cd.\n", "7" * 300, *CALM[:8]]
    held = np.array([*texts, None], dtype=object)[:-1]
    every = Terms((np.arange(2**20),))
    found = every([held])
    alone = np.concatenate([every([held[place : place + 1]]) for place in range(len(texts))])
    assert (found == alone).all()
    assert found[:, 0].tolist() == [len(text) for text in texts]
    assert found[:, 2:].sum(axis=1).tolist() == [len(naive(text)) for text in texts]
    # Two texts have the same counts if and only if the definition's are the same: no term is lost or merged.
    buckets = {}
    for text, counts in zip(texts, found[:, 2:], strict=True):
        assert int((counts > 0).sum()) == len(set(naive(text)))
        buckets.setdefault(tuple(np.flatnonzero(counts)), set()).add(frozenset(naive(text)))
    assert all(len(one) == 1 for one in buckets.values())


@pytest.mark.parametrize("code", ["auto", "kmeans"])
def test_a_word_that_tells_is_found_and_calm_texts_tell_nothing(code):
    """The word is in six of ten positive texts and in no other. False alarms: 0.005."""
    found = audit_vectors(SECRET, TELLING, code=code)
    assert 0.4 < found.reached <= 0.62 + 0.05
    assert found.certificate.output.startswith("the code of the text (")
    assert "Whoever reads the text may learn more than both show" in found.left_out
    calm = audit_vectors(SECRET, CALM, code=code)
    assert calm.reached < 0.1
    assert not calm.beaten
    assert calm.verdict.startswith("The advantage of anyone who sees only the code of the text (")
    assert "Whoever reads the text may learn more" in calm.verdict


def test_the_certificate_is_that_of_the_code_on_the_other_rows():
    found = audit_vectors(SECRET, TELLING, code="tree", attack_rows=0)
    rest = np.setdiff1d(np.arange(ROWS), own_rows(ROWS, 0))
    cells = found.code([TELLING[place] for place in rest])
    assert found.certificate.advantage == certify(SECRET[rest], cells).advantage
    assert found.certificate.advantage >= 0.5


def test_terms_and_code_do_not_depend_on_the_rows_that_are_certified():
    own = set(own_rows(ROWS, 0).tolist())
    other = [text if place in own else f"{text} {place} secret" * 3 for place, text in enumerate(TELLING)]
    first, second = (audit_vectors(SECRET, texts, code="kmeans", attack_rows=0).code for texts in (TELLING, other))
    assert first.terms.buckets[0].tolist() == second.terms.buckets[0].tolist()
    assert (first(CALM) == second(CALM)).all()
    assert len(first.terms.buckets[0]) == TERMS


SHARED = {"code": "tree", "attack_rows": 1_000}


@pytest.fixture(scope="module", params=[["reply"], ["score", "reply"]], ids="-".join)
def said(request):
    """Columns, and what the library says of them; files say the same, however good the attacks are."""
    held = {"reply": TELLING, "score": NUMBERS}
    output = TELLING if request.param == ["reply"] else {name: held[name] for name in request.param}
    return request.param, audit_vectors(SECRET, output, **SHARED)


@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_files_say_the_same_as_the_library(folder, said, file):
    outputs, expected = said
    detail = audit_file(folder / file, **{"secret": "s", "output": outputs, "pictures": False} | SHARED).detail
    assert detail["readings"]["advantage"] == expected.certificate.advantage
    assert detail["code"]["vector_low"] == expected.reached > 0.3
    assert [one["kind"] for one in detail["outputs"]] == ["text" if one == "reply" else "numbers" for one in outputs]


def test_frames_of_others_are_read_alike():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = {"reply": TELLING, "score": NUMBERS}
    wanted = audit_vectors(SECRET, table, code="tree", attack_rows=0).certificate.advantage
    for frame in (pandas.DataFrame(table), polars.DataFrame(table), pa.table(table)):
        assert audit_vectors(SECRET, frame, code="tree", attack_rows=0).certificate.advantage == wanted
    alone = audit_vectors(SECRET, TELLING, code="tree", attack_rows=0).certificate.advantage
    columns = (pandas.Series(TELLING), polars.Series(TELLING), pa.chunked_array([TELLING]), np.array(TELLING))
    for column in columns:
        assert audit_vectors(SECRET, column, code="tree", attack_rows=0).certificate.advantage == alone


@pytest.mark.parametrize("kind", ["kmeans:8", "tree"])
def test_a_released_code_codes_texts(folder, tmp_path, here, kind):
    common = ("audit", folder / "t.csv", "--secret", "s", "--output", "score", "--output", "reply", "--code", kind)
    finished = here(tmp_path, *common, "--release-code", "book.json", "--json", "a.json", "--certificate", "c.json")
    assert finished.returncode == 0, finished.stderr
    words = " ".join(finished.stdout.split())
    assert "Of a text, the code sees no more than its length and how often" in words
    assert "--noise" not in words
    code = load_code(tmp_path / "book.json")
    rest = np.setdiff1d(np.arange(ROWS), own_rows(ROWS, 0))
    cells = code({"score": NUMBERS[rest], "reply": [TELLING[place] for place in rest]})
    readings = json.loads((tmp_path / "a.json").read_text())["detail"]["readings"]
    assert readings["advantage"] == certify(SECRET[rest], cells).advantage
    assert here(tmp_path, "verify", "c.json").returncode == 0
    refused = here(tmp_path, "verify", "c.json", "--replay", folder / "t.csv")
    assert_one_line_error(refused, "cannot be repeated, as its output was coded")
    with pytest.raises(InputError, match="must have the 2 columns"):
        code(CALM)
    with pytest.raises(InputError, match="must hold numbers, as where the code was made"):
        code({"reply": CALM, "score": NUMBERS})


def test_what_the_report_says_of_texts(folder, here):
    common = ("audit", "t.csv", "--secret", "s", "--output", "calm", "--code", "tree", "--require-advantage", "0.9")
    finished = here(folder, *common)
    words = " ".join(finished.stdout.split())
    assert finished.returncode == 1  # the code alone is certified
    assert "Whoever reads column 'calm' may learn more" in words
    assert "only the code can be proven to keep it" in words
    assert "What the code leaves out of a text is not certified." in words
    assert "--noise" not in words


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([*CALM[1:], None], "1 missing must have no missing entry|must have no missing entry"),
        ([*CALM[1:], float("nan")], "must have no missing entry"),
        ([*CALM[1:], 7], "must hold entries of one type"),
        (CALM[1:], "must have as many rows as secret"),
        ({"a": CALM, "b": NUMBERS[1:]}, "columns of different lengths"),
        ({"a": CALM, "b": [*NUMBERS[1:], np.inf]}, "missing or infinite numbers"),
        ("abc", "must be a matrix of finite numbers"),
    ],
)
def test_what_is_no_text_is_refused(texts, message):
    with pytest.raises(InputError, match=message):
        audit_vectors(SECRET, texts, code="tree", attack_rows=0)


@pytest.mark.parametrize("strange", ["", "\0", "\ud800", "long", "é\U0001f600 \u202e", "1e5", "nan"])
def test_strange_texts_are_texts(strange):
    every = 300 if strange == "long" else 3
    strange = "x y" * 100_000 if strange == "long" else strange
    texts = [strange if place % every == 0 else text for place, text in enumerate(TELLING)]
    found = audit_vectors(SECRET, texts, code="tree", attack_rows=0)
    assert found.code([strange, strange]).tolist() == found.code([strange]).tolist() * 2
    assert found.certificate.advantage >= 0.3


def test_texts_that_are_all_alike_have_one_cell():
    for texts in ([""] * ROWS, ["same"] * ROWS):
        assert audit_vectors(SECRET, texts, code="kmeans", attack_rows=0).code.cells == 1


def test_different_texts_have_different_prints():
    near = ["a", "a\0", "a\0\0", "A", "a ", " a", "é", "e\u0301", "1", "1.0", "\ud800", ""]
    assert len(set(text_prints(np.array([*near, None], dtype=object)[:-1]).tolist())) == len(near)
    doubled = audit_vectors(np.repeat(SECRET, 2), np.repeat(np.array(CALM), 2), code="tree", attack_rows=0)
    assert "2000 of 4000 rows repeat the text of an earlier row to the last letter" in doubled.caution


def test_a_column_of_a_csv_file_is_text_by_the_rows_that_fix_the_code(tmp_path):
    """A number among the certified rows changes nothing, and text among them is refused where others are numbers."""
    own = set(own_rows(ROWS, 0).tolist())
    first = next(place for place in range(ROWS) if place not in own)

    def audited(entries):
        lines = [f"{secret},{entry}" for secret, entry in zip(SECRET, entries, strict=True)]
        (tmp_path / "t.csv").write_text("s,x\n" + "\n".join(lines) + "\n")
        options = {"secret": "s", "output": "x", "code": "tree", "attack_rows": 0, "pictures": False}
        return audit_file(tmp_path / "t.csv", **options).detail["outputs"][0]["kind"]

    texts = [text if place in own else "17" for place, text in enumerate(CALM)]
    assert audited(texts) == "text"
    assert audited(NUMBERS.tolist()) == "numbers"
    numbers = [str(number) for number in NUMBERS]
    numbers[first] = "seventeen"
    with pytest.raises(InputError, match="an entry that is not a number"):
        audited(numbers)


def test_terms_in_the_same_texts_are_counted_once():
    labels = SECRET == 1
    held = np.array([f"{'xylophone ' * secret}{text}" for secret, text in zip(SECRET, CALM, strict=True)], dtype=object)
    rows = Terms(chosen(labels, [held]).buckets)([held])[:, 2:]
    alike = [place for place in range(rows.shape[1]) if ((rows[:, place] > 0) == labels).all()]
    assert len(alike) == 1


def test_numbers_alone_are_no_texts():
    assert with_texts("output", np.zeros((3, 2))) is None
    assert with_texts("output", [[1.0, 2.0]]) is None
    assert with_texts("output", {"a": [1.0, 2.0]}) is None
