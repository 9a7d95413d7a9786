"""`tacit audit --record`: a table of what many models say about every record."""

import json

import numpy as np
import pytest
from commands import assert_one_line_error

from tacit import InputError
from tacit.audit import audit_file
from tacit.audit.record_audit import audited_outputs
from tacit.theory.membership import retrained_advantage

MODELS, RECORDS = 40, 60
OPTIONS = {"secret": "member", "output": "score", "record": "person", "model": "run", "pictures": False}
COMMAND = ["--secret", "member", "--output", "score", "--record", "person", "--model", "run"]


@pytest.fixture(scope="module")
def told():
    """Each record has its own level, and one unit more with the record: nothing to see for whoever has no record."""
    rng = np.random.default_rng(3)
    inside = rng.random((MODELS, RECORDS)) < 0.5
    scores = 5 * rng.normal(size=RECORDS) + inside + 0.4 * rng.normal(size=inside.shape)
    return inside, np.round(scores, 3)


def rows_of(told, *, member=("0", "1"), score="{:.3f}"):
    inside, scores = told
    return [
        f"m{m:02d},p{r:02d},{member[int(inside[m, r])]},{score.format(scores[m, r])},{'hi' if inside[m, r] else 'lo'}"
        for m in range(MODELS)
        for r in range(RECORDS)
    ]


def written(place, rows):
    place.write_text("\n".join(["run,person,member,score,word", *rows, ""]))
    return place


def test_a_table_has_the_answer_of_its_arrays_whatever_the_order_of_its_rows(told, tmp_path):
    inside, scores = told
    rows = rows_of(told)
    found = audit_file(written(tmp_path / "a.csv", rows), **OPTIONS)
    mixed = audit_file(
        written(tmp_path / "b.csv", np.random.default_rng(0).permutation(rows).tolist()),
        **OPTIONS,
        positive="1",
    )
    assert mixed.detail == found.detail
    texts = np.array([[f"{x:.3f}" for x in row] for row in scores])
    same = audited_outputs(texts, inside, name="column 'score'", delta=0.0, failure_probability=0.05)
    assert found.detail["epsilon_lower"] == same.epsilon > 1
    assert found.detail["mu_lower"] == same.mu > 0
    np.testing.assert_array_equal(found.detail["exposure"], same.exposure)
    assert found.comparisons[0].guarantee == same.comparisons[0].guarantee
    assert found.summary[0].startswith("This is about an adversary who holds the record")
    assert "each model was trained on a half of the records that a fair coin drew" in found.summary[1]


def test_whoever_holds_the_record_tells_what_the_score_alone_does_not(told, tmp_path):
    place = written(tmp_path / "a.csv", rows_of(told))
    found = audit_file(place, **OPTIONS)
    by_name = {one["name"]: one["value"] for one in found.detail["attacks"]}
    assert by_name["lira"] > 0.6
    assert by_name["loss"] < 0.3
    alone = {name: OPTIONS[name] for name in ("secret", "output", "pictures")}
    assert audit_file(place, **alone).detail["low"] < 0.3


def test_the_limit_is_that_of_the_counts(told, tmp_path):
    inside, _ = told
    rng = np.random.default_rng(8)
    words = np.where(rng.random(inside.shape) < 0.7, inside, ~inside).astype(int)
    rows = [f"{m},{r},{inside[m, r]},{'ab'[words[m, r]]},x" for m in range(MODELS) for r in range(RECORDS)]
    found = audit_file(written(tmp_path / "a.csv", rows), **OPTIONS, failure_probability=0.1)
    total = 0
    for r in range(RECORDS):
        for word in (0, 1):
            total += abs(sum(1 if inside[m, r] else -1 for m in range(MODELS) if words[m, r] == word))
    limit = retrained_advantage(total / inside.size, models=MODELS, failure_probability=0.05)
    assert limit <= found.comparisons[0].guarantee.value <= limit * (1 + 1e-12)
    assert [one["name"] for one in found.detail["attacks"]] == ["counts"]
    assert 0.2 < found.detail["attacks"][0]["value"] < 0.6


def test_zeros_of_either_sign_are_two_outputs(told, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    inside, _ = told
    models, records = np.indices(inside.shape)
    columns = {"run": models, "person": records, "member": inside, "score": np.where(inside, 0.0, -0.0)}
    table = arrow.table({name: values.ravel() for name, values in columns.items()})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert audit_file(tmp_path / "a.parquet", **OPTIONS).comparisons[0].guarantee.value == 1


def test_several_columns_name_a_record(told, tmp_path):
    rows = []
    for row in rows_of(told):
        model, person, *rest = row.split(",")
        rows.append(",".join([model, person[:2], person[2:], *rest]))
    place = tmp_path / "a.csv"
    place.write_text("\n".join(["run,tens,ones,member,score,word", *rows, ""]))
    found = audit_file(place, **OPTIONS | {"record": ["tens", "ones"]})
    assert found.detail["records"] == RECORDS
    assert list(found.detail["numbers"][:2]) == ["p0, 0", "p0, 1"]


def test_the_command_reports_refutes_and_keeps_a_ceiling(told, tmp_path, here):
    written(tmp_path / "a.csv", rows_of(told))
    said = here(tmp_path, "audit", "a.csv", *COMMAND, "--trained-with", "0.5", "1e-5", "--json", "a.json")
    assert said.returncode == 1, said.stderr
    assert json.loads((tmp_path / "a.json").read_text())["detail"]["refuted"]
    text = " ".join(said.stdout.split())
    first = text.index("Refuted: the training is not differentially private with ε = 0.5, δ = 1e-05")
    assert first < text.index("This is about an adversary who holds the record")
    assert "What the stated privacy allows, and what attacks reached" in said.stdout
    said = here(tmp_path, "audit", "a.csv", *COMMAND, "--require-advantage", "0.1", "-q")
    assert said.returncode == 1
    said = here(tmp_path, "audit", "a.csv", *COMMAND, "--report", "a.html", "-q")
    assert said.returncode == 0, said.stderr
    assert "How many members each attack finds" in (tmp_path / "a.html").read_text()


def test_what_is_not_refuted_is_not_confirmed(told, tmp_path):
    report = audit_file(written(tmp_path / "a.csv", rows_of(told)), **OPTIONS, trained_with=(30, 1e-5))
    assert report.met
    assert report.summary[0].endswith("no attack by whoever holds the record refutes that, which does not prove it.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (COMMAND[:-2], "--record must come with --model, one --secret and one --output"),
        ([*COMMAND[:4], "--model", "run"], "--record must come with --model"),
        ([*COMMAND, "--output", "word"], "--record must come with --model, one --secret and one --output"),
        ([*COMMAND, "--noise", "1"], "--noise must come without --record"),
        ([*COMMAND, "--secret", "word"], "--record must come with --model, one --secret"),
        ([*COMMAND, "--group", "word"], "--group must come without --record"),
        ([*COMMAND, "--slice", "word"], "--slice must come without --record"),
        ([*COMMAND, "--record", "run"], "must name different columns"),
        ([*COMMAND, "--positive", "yes"], "--positive must be a value of column 'member'"),
        ([*COMMAND, "--trained-with", "1", "2"], "the δ of --trained-with must be"),
        ([*COMMAND, "--certificate", "c.json"], "--certificate must come without --record"),
        (["--secret", "word", *COMMAND[2:6], "--model", "member"], "must name 16 models or more"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(told, tmp_path, here, options, said):
    written(tmp_path / "a.csv", rows_of(told))
    assert_one_line_error(here(tmp_path, "audit", "a.csv", *options), said)


def test_tables_that_do_not_fit_are_refused(told, tmp_path):
    rows = rows_of(told)

    def refused(rows, match):
        with pytest.raises(InputError, match=match):
            audit_file(written(tmp_path / "b.csv", rows), **OPTIONS)

    refused(rows[:-1], "one row for every record and every model")
    refused([*rows[:-1], rows[0].replace("hi", "x").replace("lo", "x")], "one row for every record and every model")
    refused([*rows, rows[0]], "one row for every record and every model")
    refused([row.replace(",1,", ",maybe,", row.startswith("m00,p0")) for row in rows], "exactly two values")
    always = [row.replace(",0,", ",1,") if ",p07," in row else row for row in rows]
    refused(always, r"must be drawn by a fair coin .*a record that was in the training data of 40 of 40 models")


def test_an_average_below_the_ceiling_does_not_make_exposed_records_fine(tmp_path):
    """One record of four is told with certainty; the average advantage is ¼."""
    inside = np.random.default_rng(9).random((400, 4)) < 0.5
    rows = [f"m{m:03d},p{r},{int(inside[m, r])},{int(inside[m, r] and not r)},x" for m in range(400) for r in range(4)]
    found = audit_file(written(tmp_path / "a.csv", rows), **OPTIONS, require_advantage=0.5)
    assert found.met
    assert found.verdicts[0].level == "weak"
    assert "some records are exposed far more" in found.verdicts[0].reason


def test_records_that_are_copies_of_each_other_are_refused(told, tmp_path):
    """A record that is also there under another name hides its own membership."""
    inside, scores = told
    copied = scores.copy()
    copied[:, 7] = copied[:, 3]
    with pytest.raises(InputError, match="got '1 that every model answers as it answers another one'"):
        audit_file(written(tmp_path / "a.csv", rows_of((inside, copied))), **OPTIONS)
    rough = np.zeros_like(scores)
    assert audit_file(written(tmp_path / "b.csv", rows_of((inside, rough))), **OPTIONS).detail["records"] == RECORDS
