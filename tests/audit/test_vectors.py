"""Vectors: the code is certified, whole vectors are attacked, and the words never claim more than that."""

import json

import numpy as np
import pyarrow as pa
import pytest
from commands import assert_one_line_error
from pyarrow import csv, parquet
from scipy import stats
from sklearn.linear_model import LogisticRegression

from tacit import InputError
from tacit.audit import audit_file, audit_vectors, certify, load_code, membership
from tacit.audit.codes import Means, fixed, own_rows
from tacit.audit.vectors import fingerprints

pytestmark = pytest.mark.usefixtures("quick_attacks")
ROWS, COLUMNS, FEW = 4_000, 6, 1_000
RNG = np.random.default_rng(3)
SECRET = np.arange(ROWS) % 2
CALM = RNG.normal(size=(ROWS, COLUMNS))
LOUD = CALM + 1.5 * SECRET[:, None] * (np.arange(COLUMNS) == 5)
# The sign of a product tells the secret: no column, and hardly any of the nearest points, does.
TWISTED = np.where((SECRET * (RNG.random(ROWS) < 0.9))[:, None] > 0, np.abs(CALM), CALM * np.resize([1, -1], COLUMNS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    columns = {f"x{place}": LOUD[:, place] for place in range(COLUMNS)}
    group = np.array(["a", "b"])[np.arange(ROWS) // 2 % 2]
    parquet.write_table(pa.table({"s": SECRET, "group": group, **columns}), folder / "t.parquet", row_group_size=700)
    parquet.write_table(pa.table({"s": SECRET}), folder / "s.parquet")
    csv.write_csv(pa.table({"s": SECRET, **columns}), folder / "t.csv")
    np.savez(folder / "t.npz", s=SECRET, X=LOUD)
    np.save(folder / "x.npy", LOUD)
    parquet.write_table(pa.table({"s": SECRET[:FEW]}), folder / "few.parquet")
    np.savez(folder / "few.npz", s=SECRET[:FEW], X=LOUD[:FEW])
    np.save(folder / "few.npy", LOUD[:FEW])
    return folder


@pytest.mark.parametrize("code", ["kmeans:5", "tree", "attack"])
def test_the_certificate_is_that_of_the_code_on_the_other_rows(code):
    found = audit_vectors(SECRET, LOUD, code=code, seed=2, attack_rows=0)
    own = own_rows(ROWS, 2)
    assert len(own) == found.own_rows == ROWS // 4
    again = fixed(SECRET[own] == 1, LOUD[own], code=code, seed=2)
    rest = np.setdiff1d(np.arange(ROWS), own)
    expected = certify(SECRET[rest], again(LOUD[rest]), seed=2)
    assert found.certificate.advantage == expected.advantage
    assert found.certificate.positives + found.certificate.negatives == ROWS - len(own)
    assert 0 <= again(LOUD).min() <= again(LOUD).max() < again.cells


def test_the_code_does_not_depend_on_the_rows_that_it_certifies():
    """Those may be anything: the rows that fix the code are chosen by their number and the seed alone."""
    own, other = own_rows(ROWS, 0), LOUD.copy()
    rest = np.setdiff1d(np.arange(ROWS), own)
    other[rest] = 17.0
    first, second = (audit_vectors(SECRET, rows, code="tree", attack_rows=0).code for rows in (LOUD, other))
    assert (first(LOUD) == second(LOUD)).all()
    assert set(own.tolist()) != set(own_rows(ROWS, 1).tolist())


def test_a_codebook_can_hold_a_record_and_that_is_said():
    place = own_rows(ROWS, 0)[np.random.default_rng([0, 0xF17]).permutation(ROWS // 4)[0]]
    odd = LOUD.copy()
    odd[place] = [91.0, -82.0, 73.0, 64.0, -55.0, 46.0]
    found = audit_vectors(SECRET, odd, code="kmeans", release_code=True, attack_rows=0)
    assert np.isclose(found.code.centres * found.code.scales, odd[place]).all(axis=1).any()
    assert "a point of k-means can be one of these records" in found.of_codebook
    assert found.of_codebook in " ".join(str(found).split())
    assert not audit_vectors(SECRET, LOUD, code="kmeans", attack_rows=0).of_codebook


def test_auto_takes_what_shows_most():
    shown = {code: audit_vectors(SECRET, LOUD, code=code, attack_rows=0).code.shown for code in ("kmeans", "tree")}
    assert audit_vectors(SECRET, LOUD, attack_rows=0).code.shown >= max(shown.values()) > 0.3


def test_equal_vectors_have_equal_cells_whatever_stands_beside_them():
    for kind in ("kmeans", "tree"):
        code = audit_vectors(SECRET, LOUD, code=kind, attack_rows=0).code
        assert (np.concatenate([code(one[None]) for one in LOUD[:300]]) == code(LOUD)[:300]).all()


def test_vectors_half_way_between_two_points_have_one_cell_in_any_layout():
    """Such a vector's cell is decided by how sums are rounded, which must not differ from one record to many."""
    centres = np.random.default_rng(5).normal(size=(8, 6))
    code = Means(columns=6, cells=8, scales=np.ones(6), centres=centres)
    between = (np.repeat(centres, 8, axis=0) + np.tile(centres, (8, 1))) / 2
    alone = np.concatenate([code(one[None]) for one in between])
    assert (code(np.asfortranarray(between)) == alone).all()
    assert (code(between) == alone).all()


@pytest.mark.parametrize("kind", ["kmeans", "tree"])
def test_a_stored_code_is_the_same_code(tmp_path, kind):
    code = audit_vectors(SECRET, LOUD, code=kind, attack_rows=0, release_code=True).code
    code.save(tmp_path / "book.json")
    read = load_code(tmp_path / "book.json")
    assert (read(CALM) == code(CALM)).all()
    assert read.cells == code.cells
    with pytest.raises(InputError, match="must have the 6 columns"):
        read(CALM[:, 1:])


_OF_TEXTS = {"format": "tacit codebook 2", "texts": [[3, 7]]}
_POINTS = {**_OF_TEXTS, "kind": "kmeans", "scales": [1.0] * 4, "centres": [[0.0] * 4, [1.0] * 4]}
_NODES = {"features": [0, -1, -1], "thresholds": [1.0, 0.0, 0.0], "left": [1, 0, 1], "right": [2, -1, -1]}
_LEAVES = {**_OF_TEXTS, "kind": "tree", "columns": 4, **_NODES}


@pytest.mark.parametrize("book", [_POINTS, _LEAVES])
@pytest.mark.parametrize(
    "changed",
    [
        *({"texts": texts} for texts in ([[3, 2**20]], [[-1, 7]], [[3, 10**30]], [[7, 3]], [[3.5, 7]], [None] * 4, 3)),
        {"centres": [[float("nan")] * 4] * 2, "left": [-9, 0, 1]},
        {"scales": [float("inf")] * 4, "left": [0, 0, 1]},
        {"centres": [], "left": [1, 2, 2]},
        {"centres": 3, "columns": float("inf")},
        {"centres": [[10**400] * 4] * 2, "features": [10**30, -1, -1]},
        {"scales": [-1.0] * 4, "features": [4, -1, -1]},
        {"scales": [], "thresholds": [float("nan"), 0, 0]},
    ],
)
def test_a_codebook_that_was_changed_is_refused_before_it_codes(tmp_path, book, changed):
    (tmp_path / "book.json").write_text(json.dumps(book))
    assert load_code(tmp_path / "book.json")(["ab cd", "x"]).tolist() == [1, 0]
    (tmp_path / "book.json").write_text(json.dumps({**book, **changed}))
    with pytest.raises(InputError, match="must be a codebook"):
        load_code(tmp_path / "book.json")


@pytest.mark.parametrize("content", ["", "{}", '{"format": "tacit codebook 1", "kind": "tree"}', "[1]", "[" * 200_000])
def test_another_file_is_no_code(tmp_path, content):
    (tmp_path / "book.json").write_text(content)
    with pytest.raises(InputError, match="must be a codebook"):
        load_code(tmp_path / "book.json")


def test_an_attack_s_score_is_not_released():
    with pytest.raises(InputError, match="must be 'kmeans' or 'tree' where the code is what is released"):
        audit_vectors(SECRET, LOUD, code="attack", release_code=True)
    with pytest.raises(InputError, match="must be by 'kmeans' or 'tree' to be stored"):
        audit_vectors(SECRET, LOUD, code="attack", attack_rows=0).code.save("nowhere.json")


def test_a_ceiling_is_met_by_a_released_code_alone():
    calm = {"code": "kmeans:4", "require_advantage": 0.2, "attack_rows": 0}
    released = audit_vectors(SECRET, CALM, release_code=True, **calm)
    assert released.met
    assert released.verdict.startswith("Met: the largest advantage of anyone who sees only the code of the vector (4 ")
    kept = audit_vectors(SECRET, CALM, **calm)
    assert kept.certificate.advantage == released.certificate.advantage <= 0.2
    assert not kept.met
    assert kept.verdict.startswith("Not proven: the advantage of anyone who sees only the code of the vector")
    assert "Whoever sees the vector may learn more" in kept.verdict


def test_an_attack_on_the_vector_that_beats_the_code_is_said_first():
    found = audit_vectors(SECRET, TWISTED, code="kmeans:2")
    assert found.beaten
    assert found.reached > found.certificate.advantage
    assert found.verdict.startswith("Beaten: the largest advantage of anyone who sees the vector is ")
    assert "nothing is certified of the vector" in found.verdict
    assert found.met  # nothing was required
    stricter = audit_vectors(SECRET, TWISTED, code="kmeans:2", require_advantage=0.1)
    assert stricter.verdict.startswith("Broken: the largest advantage of anyone who sees the vector is ")
    assert not stricter.met


def test_the_code_s_limits_are_wrong_no_more_often_than_stated():
    """Vectors of forty kinds: the code's law, and so its truth, is known. 40 tables a law; false alarms: 1e-5.

    Limits that are wrong in half of the tables are noticed with a probability of 0.96.
    """
    source, runs, failure = np.random.default_rng(7), 40, 0.1
    kinds = source.normal(size=(40, 3))
    for strength in (0.0, 0.4):
        one = (1 + strength * np.sign(kinds[:, 0])) / 40
        laws = [(2 / 40 - one) / (2 / 40 - one).sum(), one / one.sum()]
        wrong = 0
        for run in range(runs):
            secret = np.arange(800) % 2
            places = np.concatenate([source.choice(40, 400, p=law) for law in laws])
            vectors = kinds[places.reshape(2, 400).T.ravel()]
            found = audit_vectors(
                secret,
                vectors,
                code=("kmeans:9", "tree")[run % 2],
                failure_probability=failure,
                attack_rows=0,
                seed=run,
            )
            cells = found.code(kinds)
            masses = [np.bincount(cells, weights=law, minlength=found.code.cells) for law in laws]
            wrong += found.certificate.advantage < np.abs(masses[0] - masses[1]).sum() / 2 - 1e-12
        assert wrong <= stats.binom.isf(1e-5, runs, failure)


def test_copies_are_counted_and_doubted():
    assert len(np.unique(fingerprints(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])))) == 2
    assert len(np.unique(fingerprints(LOUD))) == ROWS

    def doubt(rows):
        return audit_vectors(np.arange(len(rows)) % 2, rows, code="tree", attack_rows=0).caution

    assert "100 of 4100 rows repeat the vector of an earlier row" in doubt(np.concatenate([LOUD[:100], LOUD]))
    assert "4000 of 8000 rows repeat the vector of an earlier row" in doubt(np.repeat(LOUD, 2, axis=0))
    assert not doubt(LOUD)
    assert not doubt(np.rint(LOUD[:, :1]))  # of a few kinds


def test_no_ceiling_counts_as_proven_by_rows_that_repeat():
    """Every row twice, which independent rows hardly do; and rows that repeat as independent ones do. Certain."""
    options = {"code": "tree", "release_code": True, "attack_rows": 0, "require_advantage": 0.9}
    twice = audit_vectors(np.repeat(SECRET, 2), np.repeat(LOUD, 2, axis=0), **options)
    assert twice.audit.met
    assert not twice.met
    words = f"Rows repeat: {ROWS} different vectors stand 2 times each in the table, which independent rows hardly do. "
    assert twice.verdict.startswith(words + "No ceiling counts as proven. If rows are independent all the same: met: ")
    often = audit_vectors(SECRET, np.rint(4 * LOUD[:, :2]), **options)
    assert often.different < 0.9 * ROWS
    assert often.met
    assert often.verdict.startswith("Met: ")
    assert audit_vectors(np.repeat(SECRET, 2), np.repeat(LOUD, 2, axis=0), **options | {"require_advantage": None}).met


@pytest.mark.parametrize("what", ["audit_vectors", "code", "members", "labels"])
def test_masked_arrays_are_refused(what):
    """Others would read what is masked as if it were there."""
    masked = np.ma.masked_array(LOUD, mask=LOUD > 3)
    model = LogisticRegression().fit(LOUD, SECRET)
    ways = {
        "audit_vectors": lambda: audit_vectors(SECRET, masked),
        "code": lambda: audit_vectors(SECRET, LOUD, code="tree", attack_rows=0).code(masked),
        "members": lambda: membership(model, (masked, SECRET), (LOUD, SECRET)),
        "labels": lambda: membership(model, (LOUD, SECRET), (LOUD, np.ma.masked_equal(SECRET, 1))),
    }
    with pytest.raises(InputError, match="must be without masked entries"):
        ways[what]()


SHARED = {"code": "tree", "failure_probability": 0.1, "attack_rows": 2_000}


@pytest.fixture(scope="module")
def expected():
    """What the library says; files say it in the same words, however good the attacks are."""
    return audit_vectors(SECRET, LOUD, **SHARED)


@pytest.mark.parametrize(
    ("file", "output"), [("t.parquet", "x*"), ("t.csv", "x*"), ("t.npz", "X"), ("s.parquet", "x.npy")]
)
def test_files_say_the_same_as_the_library(folder, monkeypatch, expected, file, output):
    monkeypatch.chdir(folder)
    report = audit_file(file, **{"secret": "s", "output": output, "pictures": False} | SHARED)
    detail = report.detail
    assert detail["readings"]["advantage"] == expected.certificate.advantage
    assert detail["code"]["own_rows"] == 1000
    assert detail["rows"] == 3000
    assert detail["code"]["vector_low"] == expected.reached
    assert detail["code"]["beaten"] == expected.beaten
    assert report.verdicts[0].proven == "nothing is certified"


def test_the_command_writes_the_code_that_is_released(folder, here):
    common = ("audit", "t.parquet", "--secret", "s", "--output", "x*", "--attack-rows", "0", "--json", "a.json")
    finished = here(folder, *common, "--code", "kmeans:4", "--release-code", "book.json", "--require-advantage", "0.9")
    assert finished.returncode == 0, finished.stderr
    detail = json.loads((folder / "a.json").read_text())["detail"]
    code = load_code(folder / "book.json")
    rest = np.setdiff1d(np.arange(ROWS), own_rows(ROWS, 0))
    name = "the code of the 6 columns 'x0' … 'x5' (4 cells by k-means)"
    assert detail["readings"]["advantage"] == certify(SECRET[rest], code(LOUD[rest]), name=name).advantage
    assert detail["code"]["released"]
    words = " ".join(finished.stdout.split())
    assert "Publish it only if these rows may be public" in words
    assert here(folder, *common, "--code", "kmeans:4", "--require-advantage", "0.9").returncode == 1


def test_slices_of_codes_are_certified(folder):
    columns = {"secret": "s", "output": "x*", "slices": "group"}
    report = audit_file(folder / "t.parquet", **columns, code="tree", attack_rows=0, pictures=False)
    assert {part["value"] for part in report.detail["slices"]} == {"a", "b"}
    assert sum(part["positives"] + part["negatives"] for part in report.detail["slices"]) == 3000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--code", "best"), "--code must be one of auto, kmeans, tree, attack"),
        (("--code", "kmeans:1"), "number of cells from 2 to 4096"),
        (("--code", "tree", "--noise", "1"), "--code must come without --noise"),
        (("--release-code", "book.json"), "--release-code must come with --code"),
        (("--code", "auto", "--release-code", "book.json"), "must be 'kmeans' or 'tree'"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, here, options, message):
    common = ("audit", "t.parquet", "--secret", "s", "--output", "x*")
    assert_one_line_error(here(folder, *common, *options), message)


def test_vectors_that_are_no_numbers_are_refused(folder, here):
    np.save(folder / "short.npy", LOUD[1:])
    np.save(folder / "holes.npy", np.where(LOUD > 4, np.nan, LOUD))
    common = ("audit", "s.parquet", "--secret", "s", "--code", "tree", "--output")
    assert_one_line_error(here(folder, *common, "short.npy"), "must be a matrix with a row for each of the 4000 rows")
    assert_one_line_error(here(folder, *common, "holes.npy"), "rows with missing or infinite numbers")
    assert_one_line_error(here(folder, *common, "none.npy"), "none.npy")
    assert_one_line_error(here(folder, *common, "y*"), "must match a column's name")
    with pytest.raises(InputError, match="must have as many rows as secret, 4000"):
        audit_vectors(SECRET, LOUD[1:])
    with pytest.raises(InputError, match="must have 30 rows of each class there"):
        audit_vectors(SECRET[:200], LOUD[:200])
    with pytest.raises(InputError, match="must be a matrix of finite numbers"):
        audit_vectors(SECRET, LOUD[:, 0])


@pytest.fixture(scope="module")
def smoothed():
    return certify(SECRET[:FEW], LOUD[:FEW], noise=3.0)


@pytest.mark.parametrize(("file", "output"), [("few.npz", "X"), ("few.parquet", "few.npy")])
def test_whole_vectors_with_noise_are_certified_as_the_library_does(folder, monkeypatch, smoothed, file, output):
    monkeypatch.chdir(folder)
    columns = {"secret": "s", "output": output, "noise": 3.0}
    report = audit_file(file, **columns, require_advantage=0.9, attack_rows=1_000, pictures=False)
    assert report.detail["readings"]["advantage"] == smoothed.advantage < 0.9
    assert report.met
    assert report.detail["attacks"][0]["advantage"][1] <= smoothed.advantage


def test_a_replay_reads_no_file_that_a_certificate_names(folder, here):
    common = (
        "audit",
        "s.parquet",
        "--secret",
        "s",
        "--output",
        "x.npy",
        "--attack-rows",
        "0",
        "--certificate",
        "c.json",
    )
    assert here(folder, *common, "--code", "tree").returncode == 0
    assert here(folder, "verify", "c.json").returncode == 0
    refused = here(folder, "verify", "c.json", "--replay", "s.parquet")
    assert_one_line_error(refused, "cannot be repeated, as its output was coded or in a file of its own")
    table = (
        "audit",
        "t.parquet",
        "--secret",
        "s",
        "--output",
        "group",
        "--attack-rows",
        "0",
        "--certificate",
        "c.json",
    )
    assert here(folder, *table).returncode == 0
    assert here(folder, "verify", "c.json", "--replay", "t.parquet").returncode == 0
    stated = json.loads((folder / "c.json").read_text())
    stated["predicate"]["replay"]["options"]["output"] = ["x.npy"]
    (folder / "c.json").write_text(json.dumps(stated))
    refused = here(folder, "verify", "c.json", "--replay", "t.parquet")
    assert_one_line_error(refused, "must be of a run that read the table alone")


def test_numbers_beyond_1e150_stay_different(tmp_path):
    np.savez(tmp_path / "t.npz", s=SECRET, x=np.where(SECRET == 1, 1e200, 2e200))
    options = {"secret": "s", "output": "x", "attack_rows": 0, "pictures": False}
    assert audit_file(tmp_path / "t.npz", **options).detail["high"] == 1


@pytest.mark.parametrize(
    ("one", "zero"),
    [
        (np.int64(2**53), np.int64(2**53 + 1)),
        (np.uint64(2**63), np.uint64(2**63 + 1)),
        (np.longdouble(1), 1 + np.longdouble(2) ** -60),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_different_numbers_of_a_matrix_are_never_counted_as_one(tmp_path, one, zero, beside):
    """They tell the secret to the last bit, so that no such release is safe."""
    held = {"x": np.where(SECRET == 1, one, zero)} | ({"z": CALM[:, :1].round()} if beside else {})
    np.savez(tmp_path / "t.npz", s=SECRET, **held)
    options = {"secret": "s", "output": list(held), "attack_rows": 0, "pictures": False}
    with pytest.raises(InputError, match="numbers that float64 tells apart"):
        audit_file(tmp_path / "t.npz", **options)


def test_a_star_alone_stands_for_other_letters(tmp_path):
    parquet.write_table(pa.table({"s": SECRET, "p0x": SECRET, "p[0]x": SECRET * 0}), tmp_path / "t.parquet")
    found = audit_file(
        tmp_path / "t.parquet",
        secret="s",  # noqa: S106
        output="p[0]*",
        attack_rows=0,
        pictures=False,
    )
    assert [one["column"] for one in found.detail["outputs"]] == ["p[0]x"]


def test_what_is_said_of_slices_is_said_of_the_code(folder):
    options = {"secret": "s", "output": "x*", "slices": "group", "attack_rows": 0, "pictures": False}
    found = audit_file(folder / "t.parquet", code="kmeans:4", **options)
    (said,) = [sentence for sentence in found.summary if "the worst of 2 slices" in sentence]
    assert "nobody who sees only the code of" in said
    assert "by the code of" in found.verdicts[-1].about


@pytest.mark.parametrize("options", [{"code": "kmeans:4", "release_code": "code.json"}, {"noise": 2.0}])
def test_copies_in_a_matrix_prove_no_ceiling(tmp_path, options):
    """As those in a table do not."""
    rows = np.repeat(np.arange(1_000), 4)
    np.savez(tmp_path / "t.npz", s=SECRET[rows], X=CALM[rows])
    np.savez(tmp_path / "once.npz", s=SECRET, X=CALM)
    if "release_code" in options:
        options = {**options, "release_code": tmp_path / "code.json"}
    options = {**options, "secret": "s", "output": "X", "require_advantage": 0.9, "attack_rows": 0, "pictures": False}
    found = audit_file(tmp_path / "t.npz", **options)
    assert found.detail["copied"] == {"times": 4, "rows": 1_000}
    assert not found.met
    assert all(verdict.level != "fine" for verdict in found.verdicts)
    assert not any("--group" in sentence for sentence in found.summary)  # which is refused here
    assert audit_file(tmp_path / "once.npz", **options).met


@pytest.mark.parametrize("kept", ["t.npz", "x.npy"])
def test_a_code_does_not_replace_what_is_read(folder, here, kept):
    table = ["t.npz", "--output", "X"] if kept == "t.npz" else ["s.parquet", "--output", "x.npy"]
    before = (folder / kept).read_bytes()
    finished = here(folder, "audit", *table, "--secret", "s", "--code", "tree", "--release-code", kept)
    assert_one_line_error(finished, "--release-code must not be a file that is read")
    assert (folder / kept).read_bytes() == before


def test_a_matrix_needs_a_secret_of_two_values(tmp_path, here):
    np.savez(tmp_path / "t.npz", s=np.arange(ROWS) % 3, X=CALM)
    finished = here(tmp_path, "audit", "t.npz", "--secret", "s", "--output", "X")
    assert_one_line_error(finished, "must come with a secret of two values")


def test_of_several_secrets_the_picture_is_about_the_vector(folder):
    """Only the code is certified: of whoever sees the vector, nothing less than 1 is."""
    table = parquet.read_table(folder / "t.parquet")
    parquet.write_table(table.append_column("r", pa.array(RNG.integers(0, 2, ROWS))), folder / "two.parquet")
    options = {"secret": ["s", "r"], "output": "x*", "code": "kmeans:4", "attack_rows": 0}
    (picture,) = audit_file(folder / "two.parquet", **options).opening
    assert picture.alternative == "s: from 0 to 1; r: from 0 to 1."


def test_an_empty_matrix_is_refused(tmp_path, here):
    np.savez(tmp_path / "t.npz", s=SECRET[:0], X=CALM[:0])
    assert_one_line_error(here(tmp_path, "audit", "t.npz", "--secret", "s", "--output", "X"), "no record")
