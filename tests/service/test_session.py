"""Sessions: what they cost, and with what they go on."""

import csv
import json
import shutil

import numpy as np
import pytest

from tacit.core.errors import BudgetSpentError, InputError
from tacit.learning.mechanisms import Gate
from tacit.learning.study import serving
from tacit.ledger import Ledger
from tacit.service.decisions import Query
from tacit.service.rows import Rows
from tacit.service.session import open_session

TERMS = {"epsilon": 8.0, "delta": 1e-5, "mechanism": "svt"}
"""A gate, which is what others are unless they say so, takes longer to prove."""


def test_a_session_is_paid_for_once_and_goes_on(folder):
    ledger = Ledger.open(folder / "ledger.sqlite")
    before = ledger.spent
    for _ in range(2):
        session = open_session(folder, epsilon=8.0, delta=1e-5)
    assert isinstance(session.mechanism, Gate)
    spent = ledger.spent - before
    assert (float(spent.epsilon), float(spent.delta)) == (8.0, 1e-5)
    proven = session.guarantee
    assert proven.value == 8.0
    assert any("moments that the schedule fixes" in one.text for one in proven.assumptions)
    open_session(folder, **{**TERMS, "epsilon": 2.0}, session="another")
    assert float((ledger.spent - before).epsilon) == 10.0


def test_a_session_does_not_go_on_with_other_constants(folder):
    open_session(folder, **TERMS)
    for changed in ({"epsilon": 7.0}, {"refusals": 19}, {"mechanism": "gate"}):
        with pytest.raises(InputError, match="must have paid for the very task"):
            open_session(folder, **{**TERMS, **changed})


def test_what_the_ledger_does_not_cover_is_not_served(folder):
    ledger = Ledger.open(folder / "ledger.sqlite")
    before = ledger.spent
    with pytest.raises(BudgetSpentError):
        open_session(folder, **{**TERMS, "epsilon": 1000.0})
    assert ledger.spent == before


def test_another_ledger_does_not_pay(folder, tmp_path):
    Ledger.open(tmp_path / "other.sqlite", epsilon=300, delta=1e-3)
    with pytest.raises(InputError, match="must be the one that has paid for the run"):
        open_session(folder, **TERMS, ledger=str(tmp_path / "other.sqlite"))


def test_a_ledger_that_was_brought_back_is_refused(folder, tmp_path):
    """The anchor of the folder remembers what came later."""
    shutil.copy(folder / "ledger.sqlite", tmp_path / "before.sqlite")
    open_session(folder, **TERMS)
    shutil.copy(tmp_path / "before.sqlite", folder / "ledger.sqlite")
    with pytest.raises(InputError, match="this is an earlier ledger"):
        open_session(folder, **TERMS)


@pytest.mark.parametrize("name", ["", "../x", "A", "a" * 41])
def test_names_of_sessions_are_plain(folder, name):
    with pytest.raises(InputError, match="must be a short name"):
        open_session(folder, **TERMS, session=name)


def test_a_folder_that_was_not_finished_is_refused(tmp_path):
    with pytest.raises(InputError, match="must hold the teachers of a finished run"):
        open_session(tmp_path, epsilon=1.0, delta=1e-5)


def test_stored_teachers_vote_as_they_did(learned, tmp_path):
    """Rows of the private table get the votes of estimators that the files hold, by the rule of public columns."""
    served = serving.load(shutil.copytree(learned, tmp_path / "run"))
    with (learned.parent / "private.csv").open() as file:
        rows = list(csv.DictReader(file))[:200]
    kinds = [row.pop("kind") for row in rows]
    read = Rows(served.columns).read(
        [{**row, "height": float(row["height"]), "weight": float(row["weight"])} for row in rows]
    )
    numbers = Rows(served.columns).numbers(read)
    counts = served.teachers.standing().counts(numbers)
    assert counts.sum(axis=1).tolist() == [served.teachers.n_teachers] * len(rows)
    assert (counts == served.teachers.counts(numbers)).all()
    right = [served.classes[place] == kind for place, kind in zip(counts.argmax(axis=1), kinds, strict=True)]
    assert np.mean(right) > 0.95


def test_the_kept_rule_is_plain_text_and_sealed(folder):
    kept = folder / "private" / "serving.json"
    whole = kept.read_text()
    assert json.loads(whole.rpartition("\nsha256")[0])["label"] == "kind"
    kept.write_text(whole.replace('"kind"', '"kin"'))
    with pytest.raises(InputError, match="must be as this task wrote it"):
        serving.load(folder)


def test_the_session_answers_as_its_teachers_do(session):
    rows = Rows(session.served.columns)
    read = rows.read([[3.0, 0.0, "red"], [-3.0, 0.0, None]])
    counts = session.served.teachers.standing().counts(rows.numbers(read))
    queries = [
        Query(session.decisions.identity(rows.content(row)), count, "ann")
        for row, count in zip(read, counts, strict=True)
    ]
    told = session.decisions.decide(queries)
    assert [session.served.classes[one.answer] for one in told if one.answer is not None] == [
        kind for kind, one in zip(("tall", "short"), told, strict=True) if one.answer is not None
    ]
