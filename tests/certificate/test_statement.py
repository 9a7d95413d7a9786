"""Certificates as commands write them: what stands in them, what does not, and what `tacit verify` says."""

import json
import stat
from pathlib import Path

import certified_cases as cases
import numpy as np
import pytest
import tacit_check

from tacit import InputError
from tacit.certificate import certified, verify

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{number % 2},{rng.integers(5)}" for number in range(2000)]
    (tmp_path / "scores.csv").write_text("\n".join(["member,predicted", *rows]) + "\n")
    (tmp_path / "model.bin").write_bytes(b"weights")
    return tmp_path


AUDIT = ("audit", "scores.csv", "--secret", "member", "--output", "predicted", "--attack-rows", "0", "--quiet")


def test_an_audit_travels(here, folder):
    assert here(folder, *AUDIT, "--certificate", "a.json", "--subject", "model.bin").returncode == 0
    statement = json.loads((folder / "a.json").read_text())
    assert [one["name"] for one in statement["subject"]] == ["model.bin"]
    assert not (folder / "a.json.opening").exists()
    found = here(folder, "verify", "a.json", "--subject", "model.bin", "--replay", "scores.csv", "--all")
    assert found.returncode == 0
    assert "FOLLOWS" in found.stdout
    assert "The same run gave the same claims:" in found.stdout
    (folder / "model.bin").write_bytes(b"other weights")
    assert here(folder, "verify", "a.json", "--subject", "model.bin").returncode == 1
    with (folder / "scores.csv").open("a") as table:
        table.write("1,0\n" * 500)
    assert here(folder, "verify", "a.json", "--replay", "scores.csv").returncode == 1


def test_counts_that_are_kept_back_are_opened_by_their_owner_alone(here, folder):
    assert here(folder, *AUDIT, "--certificate", "a.json", "--commit-counts").returncode == 0
    text, opening = (folder / "a.json").read_text(), folder / "a.json.opening"
    counts = json.loads(opening.read_text())["opened"][0]["value"]
    assert sum(map(sum, counts)) == 2000
    assert json.loads(text)["predicate"]["claims"][0]["inputs"]["cells"].keys() == {"sha256"}
    assert stat.S_IMODE(opening.stat().st_mode) == 0o600
    assert here(folder, "verify", "a.json").returncode == 1
    assert here(folder, "verify", "a.json", "--opening", opening).returncode == 0
    counts[0][0] += 1
    changed = json.loads(opening.read_text())
    changed["opened"][0]["value"] = counts
    opening.write_text(json.dumps(changed))
    refused = here(folder, "verify", "a.json", "--opening", opening)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "options",
    [
        ("--subject", "model.bin"),
        ("--commit-counts",),
        ("--certificate", "a.json", "--subject", "none"),
        ("--certificate", "scores.csv"),
        ("--certificate", "a.json", "--json", "a.json"),
    ],
)
def test_options_that_cannot_be_met_are_one_line(here, folder, options):
    found = here(folder, *AUDIT, *options)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)


def test_a_certificate_runs_nothing_but_what_made_it(here, folder):
    here(folder, *AUDIT, "--certificate", "a.json")
    for replay in (
        {"command": "learn", "options": {}},
        {"command": "audit", "options": {"pictures": True}},
        {"command": "audit", "options": {"table": "/etc/passwd"}},
        [],
        None,
    ):
        statement = json.loads((folder / "a.json").read_text())
        statement["predicate"]["replay"] = replay
        (folder / "b.json").write_text(json.dumps(statement))
        found = here(folder, "verify", "b.json", "--replay", "scores.csv")
        assert (found.returncode, found.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["identification", "gallery", "posterior"])
def test_what_was_sampled_from_private_inputs_is_kept_back_unless_it_is_asked_for(name, tmp_path):
    made = certified([cases.guarantee(name)], title=name)
    [claim] = made.statement["predicate"]["claims"]
    lists = [value for value in claim["inputs"].values() if isinstance(value, list)]
    assert lists == []
    (tmp_path / "certificate.json").write_text(made.to_json())
    (tmp_path / "opening.json").write_text(made.opening_json())
    assert not verify(tmp_path / "certificate.json").met
    assert verify(tmp_path / "certificate.json", opening=tmp_path / "opening.json").met


def test_reports_do_not_hold_what_a_certificate_may():
    """Evidence is in neither JSON nor text of a guarantee: some of it is private."""
    guarantee = cases.guarantee("identification")
    value = guarantee.evidence.inputs()["values"][0]
    assert repr(value) not in guarantee.to_json()
    assert "evidence" not in guarantee.to_dict()
    assert guarantee.from_json(guarantee.to_json()) == guarantee


def test_a_guarantee_without_evidence_is_stated_and_not_checkable(tmp_path):
    guarantee = cases.guarantee("audit")
    bare = type(guarantee).from_dict(guarantee.to_dict())
    (tmp_path / "certificate.json").write_text(certified([bare, guarantee], title="both", reveal=True).to_json())
    found = verify(tmp_path / "certificate.json")
    assert [verdict for verdict, _ in found.verdicts] == ["not checkable here", "follows"]
    assert found.met
    assert not verify(tmp_path / "certificate.json", all_claims=True).met


def test_what_is_no_certificate_is_one_line(tmp_path):
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(InputError, match="must be one that the checker can read"):
        verify(tmp_path / "none.json")


def test_a_published_classifier_carries_its_constants(here, tmp_path):
    rng = np.random.default_rng(0)
    for name, rows in (("private", 2000), ("public", 30)):
        x = rng.normal(size=rows)
        lines = [f"{value:.4f},{'yes' if value > 0 else 'no'}" for value in x]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,bought", *lines]) + "\n")
    options = ("--label", "bought", "--public", "public.csv", "--epsilon", "20", "--delta", "1e-5", "--out", "out")
    ran = here(tmp_path, "learn", "private.csv", *options, "--mechanism", "gnmax", "--certificate", "c.json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    publish = tmp_path / "out" / "publish"
    found = here(tmp_path, "verify", "c.json", "--subject", publish / "student.skops", "--all")
    assert found.returncode == 0, found.stdout
    statement = json.loads((tmp_path / "c.json").read_text())
    assert [one["name"] for one in statement["subject"]] == ["student.skops", "labelled.csv"]
    assert set(statement["predicate"]["claims"][0]["inputs"]) == {"delta", "neighbours", "parts"}


def test_a_certificate_names_what_was_published_where_the_default_releases_sums(here, tmp_path):
    rng = np.random.default_rng(0)
    for name, rows in (("private", 3000), ("public", 100)):
        x = rng.normal(size=(rows, 8))
        lines = [",".join([*(f"{value:.4f}" for value in row), "yes" if row.sum() > 0 else "no"]) for row in x]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join([*"abcdefgh", "bought"]), *lines]) + "\n")
    options = ("--label", "bought", "--public", "public.csv", "--epsilon", "4", "--delta", "1e-5", "--out", "out")
    ran = here(tmp_path, "learn", "private.csv", *options, "--certificate", "c.json", "--json", "r.json", "--quiet")
    assert ran.returncode in (0, 1), ran.stderr
    assert "labelled" not in json.loads((tmp_path / "r.json").read_text())["detail"], "this case is for sums"
    statement = json.loads((tmp_path / "c.json").read_text())
    assert [one["name"] for one in statement["subject"]] == ["student.skops"]


def test_the_proofs_say_which_theorems_the_checker_covers():
    page = (ROOT / "docs" / "proofs" / "index.md").read_text()
    for rule, (_, proofs, _) in tacit_check.RULES.items():
        for name in proofs.split():
            [row] = [line for line in page.splitlines() if f".{name}` |" in line]
            assert rule in row
    stated = {line.split("|")[2].strip(" `").partition(".")[2] for line in page.splitlines() if line.startswith("| [`")}
    assert stated == {name for _, proofs, _ in tacit_check.RULES.values() for name in proofs.split()}
