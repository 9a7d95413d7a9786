"""One row of every group, and rows that were copied. False alarms of simulations: below 1e-6 each."""

import numpy as np
import pytest
from scipy import stats

from tacit import InputError
from tacit.audit import audit, audit_file, certify, certify_classes, groups, one_per_group
from tacit.audit.groups import OnePerGroup, Repeats, copied, seed_of_groups, shared_name
from tacit.runtime import tables

FAILURE = 0.1


def _drawn(groups, *, seed, counts=None):
    kept = OnePerGroup(seed)
    kept.add({"row": np.arange(len(groups))}, groups, counts)
    return kept.table()["row"]


def test_one_row_of_every_group_all_equally_likely():
    groups = np.repeat(["a", "b", "c"], [1, 2, 5])
    drawn = np.array([_drawn(groups, seed=seed) for seed in range(3000)])
    assert (drawn[:, 0] == 0).all()
    for place, rows in ((1, [1, 2]), (2, [3, 4, 5, 6, 7])):
        counts = [int((drawn[:, place] == row).sum()) for row in rows]
        assert sum(counts) == 3000
        assert stats.chisquare(counts).pvalue > 1e-6


def test_weights_are_rows():
    groups = np.array(["a", "a"])
    second = sum(int(_drawn(groups, counts=np.array([1, 3]), seed=seed)[0]) for seed in range(3000))
    assert stats.binomtest(second, 3000, 0.75).pvalue > 1e-6
    assert one_per_group(groups, weights=[0, 1]).tolist() == [1]


def test_parts_of_a_table_give_the_same_rows():
    groups = np.random.default_rng(0).integers(0, 50, 400)
    parts = np.array_split(groups, 7)
    assert seed_of_groups(parts) == seed_of_groups([groups]) == seed_of_groups([groups.astype(str)])
    whole, kept = one_per_group(groups), OnePerGroup(seed_of_groups([groups]))
    for part in np.array_split(np.arange(400), 9):
        kept.add({"row": part}, groups[part], None)
    assert kept.table()["row"].tolist() == whole.tolist()
    assert kept.rows == 400


def test_other_groups_are_drawn_by_another_seed():
    seeds = {seed_of_groups([np.array(one)]) for one in (["a", "b"], ["b", "a"], ["ab", ""], ["a", "b", "b"], ["1:a"])}
    assert len(seeds) == 5


def test_the_draw_does_not_look_at_secrets_or_outputs():
    """The rows drawn depend on the groups alone: no seed can be tried until one fits."""
    groups = np.random.default_rng(0).integers(0, 50, 400)
    rows = one_per_group(groups)
    secrets, outputs = np.arange(400) % 2, np.arange(400) % 7
    found = audit(secrets, outputs, group=groups, seed=3, attacks=[])
    assert found.high == audit(secrets, outputs, group=groups, seed=4, attacks=[]).high
    assert found.certificate.cells is not None
    assert found.certificate.variation == certify(secrets[rows], outputs[rows], seed=3).variation


def test_groups_make_dependent_rows_valid_and_nothing_else_does():
    """Every patient has 20 rows with one secret and one output: 30 patients look like 600 rows."""
    rng, runs, patients, each = np.random.default_rng(5), 150, 30, 20
    wrong = {"rows": 0, "groups": 0}
    truth = 0.4
    for run in range(runs):
        secret = rng.integers(0, 2, patients)
        output = np.where(rng.random(patients) < (1 + truth) / 2, secret, 1 - secret)
        if secret.min() == secret.max():
            continue
        groups = np.repeat(np.arange(patients), each)
        options = {"failure_probability": FAILURE, "attacks": [], "seed": run}
        wrong["rows"] += audit(secret[groups], output[groups], **options).high < truth
        wrong["groups"] += audit(secret[groups], output[groups], group=groups, **options).high < truth
    most = stats.binom.isf(1e-6, runs, FAILURE)
    assert wrong["groups"] <= most < wrong["rows"]


def test_what_a_certificate_of_groups_rests_on():
    groups = np.repeat(np.arange(100), 2)
    for secret in (np.arange(200) % 2, np.arange(200) % 3):
        found = audit(secret, np.zeros(200), group=groups, attacks=[])
        first = found.certificate.assumptions[0].text
        assert first.startswith("groups are independent draws from one law")
        assert "a random row of a random group" in first
        assert "(200 rows in all)" in first
        assert not any(one.text.startswith("rows are independent") for one in found.certificate.assumptions)


def test_groups_of_another_length_are_refused():
    with pytest.raises(InputError, match="group must have as many rows as secret"):
        audit([0, 1, 0, 1], [0, 0, 1, 1], group=[1, 2])


@pytest.fixture
def visits(tmp_path):
    rng = np.random.default_rng(2)
    patient = rng.integers(0, 400, 3000)
    disease, code = np.array(list("abc"))[rng.integers(0, 3, 3000)], rng.integers(0, 4, 3000)
    lines = [f"{p},{d},{c},{i}" for i, (p, d, c) in enumerate(zip(patient, disease, code, strict=True))]
    (tmp_path / "t.csv").write_text("patient,disease,code,visit\n" + "\n".join(lines) + "\n")
    (tmp_path / "copies.csv").write_text("patient,disease,code,visit\n" + "\n".join(np.repeat(lines, 2)) + "\n")
    return tmp_path, patient, disease, code


def test_the_file_draws_the_rows_of_the_function(visits):
    folder, patient, disease, code = visits
    rows = one_per_group(patient.astype(str))
    found = audit_file(
        folder / "t.csv",
        secret="disease",  # noqa: S106
        output="code",
        group="patient",
        seed=4,
        attack_rows=0,
        pictures=False,
    )
    assert found.detail["rows"] == len(np.unique(patient))
    assert found.detail["group"] == {"column": "patient", "rows": 3000}
    assert found.detail["high"] == certify_classes(disease[rows], code[rows].astype(str)).advantage
    assert any("a random row of a random group" in sentence for sentence in found.summary)


def test_rows_that_were_copied_are_noticed(visits):
    folder, *_ = visits
    options = {"secret": "disease", "output": "code", "attack_rows": 0, "pictures": False}
    assert audit_file(folder / "t.csv", **options).detail["copied"] is None
    found = audit_file(folder / "copies.csv", **options)
    assert found.detail["copied"] == {"times": 2, "rows": 3000}
    assert any("--group" in sentence for sentence in found.summary)
    assert all(verdict.level != "fine" for verdict in found.verdicts)
    assert found.met
    strict = audit_file(folder / "copies.csv", require_advantage=0.99, **options)
    assert not strict.met
    assert strict.summary[0].endswith("No ceiling counts as proven.")
    assert audit_file(folder / "t.csv", require_advantage=0.99, **options).met
    assert audit_file(folder / "copies.csv", group="patient", **options).detail["copied"] is None


def test_a_column_that_names_patients_is_pointed_out(visits, tmp_path):
    """Its rows differ otherwise, so that no row repeats; other columns, and one value a row, are none."""
    folder, patient, disease, code = visits
    options = {"secret": "disease", "output": "code", "attack_rows": 0, "pictures": False}
    said = f"Column 'patient' repeats: {len(np.unique(patient))} values in 3000 rows"
    assert audit_file(folder / "t.csv", **options).summary[1].startswith(said)
    assert not any("repeats" in one for one in audit_file(folder / "t.csv", group="patient", **options).summary)
    columns = zip(patient, disease, code, strict=True)
    lines = [f"{p},{d},{c},{i},{i % 2},{i % 70}" for i, (p, d, c) in enumerate(columns)]
    (tmp_path / "u.csv").write_text("city,disease,code,patient_id,device,age\n" + "\n".join(lines) + "\n")
    assert not any("repeats" in one for one in audit_file(tmp_path / "u.csv", **options).summary)
    gaps = [line.replace("7,", ",", 1) if line.startswith("7,") else line for line in lines]
    (tmp_path / "g.csv").write_text("user,disease,code,a,b,c\n" + "\n".join(gaps) + "\n")
    assert audit_file(tmp_path / "g.csv", **options).detail["copied"] is None


@pytest.mark.parametrize("name", ["patient", "Patient ID", "userId", "household_no", "customers", "id"])
def test_names_of_what_rows_may_share(name):
    assert shared_name(name)
    assert not any(map(shared_name, ["age", "identity", "city", "score", "width", "valid", "user name", "inside"]))


def test_a_group_has_one_spelling():
    assert len(one_per_group(["17", "17.0", ' "17"', "18", "p1 ", "p1", "p1.5"])) == 4


@pytest.mark.parametrize("times", [2, 51, 60, 9_000])
def test_copies_are_noticed_however_many(times):
    assert copied(np.full(100, times)) == (times, 100)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_parquet_files_are_looked_at_too(tmp_path, share):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    numbers = np.random.default_rng(0).random(4000)
    again = numbers[: round(share * 4000)]
    parquet.write_table(pa.table({"s": np.concatenate([numbers, again])}), tmp_path / "t.parquet")
    found = copied(tables.occurrences(tmp_path / "t.parquet", most=10**6, name="table"))
    assert found == (None if not share else (2, len(again)))
    column = pa.array([str(number) for number in np.concatenate([numbers, again])]).dictionary_encode()
    parquet.write_table(pa.table({"s": column}), tmp_path / "t.parquet", row_group_size=500)
    assert copied(tables.occurrences(tmp_path / "t.parquet", most=10**6, name="table")) == found


@pytest.mark.parametrize("law", ["few", "equal", "steep", "unique", "mixed"])
def test_independent_rows_are_no_copies(law):
    """2000 tables in all, none of which looks copied, whatever their law."""
    rng = np.random.default_rng(6)
    for _ in range(400):
        size = int(rng.integers(100, 5000))
        drawn = {
            "few": lambda size: rng.integers(0, 10, size),
            "equal": lambda size: rng.integers(0, 900, size),
            "steep": lambda size: rng.zipf(1.5, size),
            "unique": lambda size: rng.permutation(size),
            "mixed": lambda size: np.where(
                rng.random(size) < 0.5, rng.integers(0, 30, size), rng.integers(0, 10**6, size)
            ),
        }[law](size)
        assert copied(np.unique(drawn, return_counts=True)[1]) is None


def test_no_ceiling_counts_as_proven_by_vectors_that_stand_twice():
    rng = np.random.default_rng(6)
    secret, vectors = rng.integers(0, 2, 600), rng.normal(size=(600, 4))
    options = {"noise": 6.0, "require_advantage": 0.9, "attacks": []}
    alone = audit(secret, vectors, **options)
    twice = audit(np.repeat(secret, 2), np.repeat(vectors, 2, axis=0), **options)
    assert alone.met
    assert alone.copied is None
    assert not twice.met
    assert twice.copied == (2, 600)
    assert twice.verdict.startswith("Rows repeat: 600 different rows stand 2 times each in the table")
    assert "No ceiling counts as proven. If rows are independent all the same: met: " in twice.verdict
    in_groups = audit(
        np.repeat(secret, 2), np.repeat(vectors, 2, axis=0), group=np.repeat(np.arange(600), 2), **options
    )
    assert in_groups.met
    assert in_groups.copied is None


@pytest.mark.parametrize("values", [2, 50, 3000])
def test_outputs_of_few_values_do_not_look_copied(values):
    rng = np.random.default_rng(values)
    assert audit(rng.integers(0, 2, 3000), rng.integers(0, values, 3000), attacks=[]).copied is None


def test_copies_are_noticed_wherever_they_stand(monkeypatch):
    """A table that was appended to itself has no copies among its first rows."""
    monkeypatch.setattr(groups, "_MOST_DIFFERENT", 500)
    rng = np.random.default_rng(0)
    numbers, texts = rng.normal(size=4000), np.array([f"row {number}" for number in range(4000)])
    alone = Repeats().add([numbers, texts], None)
    assert alone.copied is None
    times, rows = alone.add([numbers, texts.astype("U30")], None).copied
    assert times == 2
    assert 200 < rows <= 500
    assert Repeats().add([numbers > 0, rng.integers(0, 900, 4000)], None).copied is None


def test_rows_that_differ_are_told_apart():
    columns = [np.array([0, 0, 1, 1]), np.array(["ab", "ba", "ab", "ab"]), np.array([0.0, -0.0, 1.0, 2.0])]
    assert len(np.unique(groups._row_prints(columns))) == 4
    assert len(np.unique(groups._row_prints([one[[0, 0]] for one in columns]))) == 1
    assert len(np.unique(groups._row_prints([np.array([0.0, -0.0])]))) == 1
    grid = np.stack(np.meshgrid(*[np.arange(40)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(groups._row_prints(list(grid.T)))) == 40**3


def test_weights_are_copies_too():
    rng = np.random.default_rng(1)
    secret, vectors = rng.integers(0, 2, 600), rng.normal(size=(600, 4))
    options = {"noise": 6.0, "require_advantage": 0.9, "attacks": []}
    ones, twos = (np.full(600, weight) for weight in (1, 2))
    assert audit(secret, vectors, weights=ones, **options).met
    assert audit(secret, vectors, weights=twos, **options).copied == (2, 600)
    again = audit(np.tile(secret, 2), np.tile(vectors, (2, 1)), weights=np.tile(ones, 2), **options)
    assert again.copied == (2, 600)
    assert not again.met


@pytest.mark.parametrize("secrets", [2, 3])
def test_a_number_for_each_row_does_not_hide_copies_in_a_file(tmp_path, secrets):
    """One question has one answer: `audit` looks at secrets and outputs alone."""
    rng = np.random.default_rng(2)
    secret, output = np.tile(rng.integers(0, secrets, 1500), 2), np.tile(rng.permutation(1500), 2)
    lines = [f"{row},{s},{o}" for row, (s, o) in enumerate(zip(secret, output, strict=True))]
    (tmp_path / "t.csv").write_text("row,disease,output\n" + "\n".join(lines) + "\n")
    options = {"secret": "disease", "output": "output", "attack_rows": 0, "pictures": False}
    report = audit_file(tmp_path / "t.csv", require_advantage=0.99, **options)
    assert report.detail["copied"] == {"times": 2, "rows": 1500}
    assert not report.met
    assert audit(secret, output, attacks=[], require_advantage=0.99).copied == (2, 1500)
