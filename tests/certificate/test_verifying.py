"""`tacit verify`, and what a certificate that keeps its inputs back tells nevertheless."""

import base64
import json
import random
import re

import pytest
import torch

from tacit.audit import audit_file
from tacit.certificate import certified, verify
from tacit.reconstruction.priors import Gallery, fingerprint

OPTIONS = {"secret": "0x1", "output": ["harmless"], "positive": None, "slices": None, "noise": None}
OPTIONS |= {"noise_added": None, "assume_one_direction": False, "assume_max_slope": None}
OPTIONS |= {"failure_probability": 0.05, "seed": 0}


def audited(table):
    return rerun("audit", {"replay": table}, OPTIONS)


def rerun(command, files, options):
    assert command == "audit"
    found = audit_file(files["replay"], attack_rows=0, pictures=False, **options)
    return [comparison.guarantee for comparison in found.comparisons]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose column `predicted` is the secret, and whose column `harmless` is not; the secret's name is odd."""
    path, source = tmp_path_factory.mktemp("table") / "scores.csv", random.Random(1)  # noqa: S311 — a table
    rows = [(source.randint(0, 1), source.choice("ab")) for _ in range(2000)]
    path.write_text("0x1,predicted,harmless\n" + "".join(f"{one},{one},{two}\n" for one, two in rows))
    return path


def made(table, *, reveal=True):
    replay = {"command": "audit", "options": OPTIONS}
    return certified(audited(table), command="audit", title="scores", reveal=reveal, replay=replay)


def written(folder, statement, name="certificate.json"):
    (folder / name).write_text(json.dumps(statement))
    return folder / name


def test_the_same_run_gives_the_same_claims_and_says_them(table, tmp_path):
    found = verify(written(tmp_path, made(table).statement), replay={"replay": table}, rerun=rerun)
    assert found.replayed
    assert "by column 'harmless'" in found.to_text()


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("statement", lambda text: text.replace("harmless", "predicted")),
        ("failure_probability", lambda _: "1/2"),
        ("assumptions", lambda _: []),
        ("adversary", lambda _: "anyone"),
    ],
)
def test_a_claim_that_says_something_else_is_another(table, tmp_path, key, change):
    statement = made(table).statement
    claim = statement["predicate"]["claims"][0]
    claim[key] = change(claim[key])
    found = verify(written(tmp_path, statement), replay={"replay": table}, rerun=rerun)
    assert found.replayed is False
    assert found.contradicted


def test_what_is_kept_back_can_be_run_again_and_opened(table, tmp_path):
    kept = made(table, reveal=False)
    opening = written(tmp_path, kept.opening, "opening")
    found = verify(written(tmp_path, kept.statement), opening=opening, replay={"replay": table}, rerun=rerun)
    assert found.replayed
    assert found.met


def test_a_certificate_that_keeps_counts_back_has_no_more_digits_than_its_sentence(table):
    claim = made(table, reveal=False).statement["predicate"]["claims"][0]
    assert {name for name, value in claim["inputs"].items() if isinstance(value, dict)} == {
        "cells",
        "squared",
        "variation",
        "rate",
    }
    value = float.fromhex(claim["claimed"]["value"])
    assert f"at most {value:.3g}" in claim["statement"]
    assert value >= float.fromhex(made(table).statement["predicate"]["claims"][0]["claimed"]["value"])


def test_no_digest_of_the_inputs_is_in_a_certificate(table):
    inputs = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    mark = fingerprint(inputs)
    assert mark in Gallery(inputs).description
    [guarantee] = audited(table)
    guarantee = guarantee.__class__(
        **{**vars(guarantee), "quantity": f"success on average over {Gallery(inputs).description}"}
    )
    statement = certified([guarantee], title="bounds", reveal=False).statement
    assert mark not in json.dumps(statement)
    assert not re.search(r"\([0-9a-f]{8}\)", json.dumps(statement))


def test_the_signature_of_an_envelope_is_said_to_be_unchecked(table, tmp_path):
    payload = base64.b64encode(made(table).to_json().encode()).decode()
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []}
    assert "Its signature was not checked" in verify(written(tmp_path, envelope)).to_text()
    assert "signature" not in verify(written(tmp_path, made(table).statement)).to_text()
