"""Fits that are interrupted and go on: nothing is paid twice, drawn twice, or answered beyond what was paid for."""

import contextlib
import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from tacit import BudgetSpentError, InputError, NoTheoremError
from tacit.learning import Gate, GNMax, PrivateClassifier, SparseVector, asking, interrupted
from tacit.learning.interrupted import Notes
from tacit.ledger import Ledger

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(400, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = GENERATOR.normal(size=(60, 3))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.db", epsilon=5, delta=1e-5)


def model(ledger, **options):
    options = {"epsilon": 5.0, "n_teachers": 20, "mechanism": "gnmax", "queries": "all", "classes": [0, 1], **options}
    return PrivateClassifier(GaussianNB(), student=GaussianNB(), ledger=ledger, random_state=0, **options)


@pytest.fixture
def interrupt(monkeypatch):
    """Notes of ten answers; the run dies instead of writing a certain one."""
    monkeypatch.setattr(asking, "_BLOCK", 10)
    add = Notes.add

    def at(number):
        def dying(notes, detail):
            if len(notes.found) + 1 == number:
                raise KeyboardInterrupt
            add(notes, detail)

        monkeypatch.setattr(Notes, "add", dying)

    return at


def noted(ledger):
    (entry,) = ledger.entries()
    return Notes.left(ledger, entry)


def test_an_interrupted_fit_goes_on_after_the_answers_that_were_noted(ledger, tmp_path, interrupt):
    interrupt(4)
    with pytest.raises(KeyboardInterrupt):
        model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    before = noted(ledger).answers
    assert len(before) == 30
    interrupt(0)
    resumed = model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    after = noted(ledger)
    assert after.answers[:30] == before
    assert len(after.answers) == len({point for point, _ in after.answers}) == 60
    assert {point: resumed.labels_[point] for point, _ in after.answers} == dict(after.answers)
    assert any("interrupted" in text for text in resumed.guarantee_.assumed(checked_by="caller"))


def test_a_finished_fit_is_read_back_and_not_drawn_again(ledger, tmp_path):
    first = model(ledger, epsilon=0.01).fit(X, Y, PUBLIC, folder=tmp_path / "private")  # noise decides
    records = ledger.to_dict()["links"]
    again = model(ledger, epsilon=0.01).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    np.testing.assert_array_equal(first.labels_, again.labels_)
    assert ledger.to_dict()["links"] == records
    assert first.guarantee_ == again.guarantee_


def test_without_answers_noted_nothing_was_released_and_nothing_is_charged(ledger, tmp_path, interrupt):
    interrupt(1)
    with pytest.raises(KeyboardInterrupt):
        model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    interrupt(0)
    resumed = model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert noted(ledger).value("resumed") == 0
    assert len(ledger.entries()) == 1
    assert any("interrupted" in text for text in resumed.guarantee_.assumed(checked_by="caller"))


@pytest.mark.parametrize(
    ("refusals", "deaths", "charges", "answers"),
    [(1, (2,), [1], 10), (3, (2, 4, 6), [0, 0, 0], 60)],
    ids=["hidden threshold", "open threshold"],
)
def test_an_interruption_that_loses_a_threshold_s_noise_counts_as_a_refusal(
    refusals, deaths, charges, answers, ledger, tmp_path, interrupt
):
    """Where one refusal is paid for, that leaves nothing of it. An open threshold has no noise to lose."""
    sparse = SparseVector(epsilon=5.0, delta=1e-5, refusals=refusals)
    assert sparse.threshold < 40  # all teachers agree on one class, so that answers are sure
    private = tmp_path / "private"
    alike = np.zeros_like(Y)

    def fit():
        return model(ledger, mechanism=sparse, n_teachers=300).fit(X, alike, PUBLIC, folder=private)

    for number in deaths:  # 1: answers, 2: dies; then 2: resumed, 3: answers, 4: dies …
        interrupt(number)
        with pytest.raises(KeyboardInterrupt):
            fit()
    interrupt(0)
    last = fit()
    found = noted(ledger)
    assert [note["resumed"] for note in found.found if "resumed" in note] == charges
    assert len(found.answers) == len(last.answered_) == answers


def test_the_error_estimate_is_not_drawn_again(ledger, tmp_path, interrupt):
    options = {"mechanism": "svt", "error_share": 0.5, "queries": 20}
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        model(ledger, **options).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    interrupt(0)
    resumed = model(ledger, **options)
    with contextlib.suppress(InputError):  # so few teachers may answer nothing
        resumed.fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert dataclasses.asdict(resumed.error_) == dict(noted(ledger).found[0]["error"])


def test_of_two_runs_that_go_on_at_once_one_is_refused(ledger, tmp_path, interrupt):
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    interrupt(0)
    one, other = noted(ledger), noted(ledger)
    session = GNMax(epsilon=5.0, delta=1e-5, queries=60)
    one.resume(session.session())
    with pytest.raises(InputError, match="must be free"):
        other.resume(session.session())


@pytest.mark.parametrize(
    "other", [{"epsilon": 4.0}, {"mechanism": "confident-gnmax"}, {"queries": 30}, {"n_teachers": 19}]
)
def test_a_folder_belongs_to_one_release(ledger, tmp_path, other):
    model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    with pytest.raises(InputError, match=r"must belong to the same task|must have paid for the very task"):
        model(ledger, **other).fit(X, Y, PUBLIC, folder=tmp_path / "private")


def test_other_records_or_public_points_are_refused(ledger, tmp_path):
    model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    with pytest.raises(InputError, match="differs in records"):
        model(ledger).fit(X[1:], Y[1:], PUBLIC, folder=tmp_path / "private")
    with pytest.raises(InputError, match="differs in public"):
        model(ledger).fit(X, Y, PUBLIC + 1, folder=tmp_path / "private")


def test_another_ledger_is_refused_even_one_of_the_same_name(ledger, tmp_path):
    """Who deletes the ledger and goes on would draw the same answers again, with fresh noise."""
    model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    (tmp_path / "ledger.db").unlink()
    again = Ledger.open(tmp_path / "ledger.db", epsilon=5, delta=1e-5)
    with pytest.raises(InputError, match="must hold link 2 that the anchor"):
        model(again).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert again.entries() == ()


@pytest.mark.parametrize("reached", [0, 1, 3])
def test_an_earlier_ledger_is_refused_before_an_answer_is_drawn_again(ledger, tmp_path, interrupt, reached):
    """Answers that were published would be drawn again with fresh noise, while that ledger verifies by itself."""
    backup = tmp_path / "backup.db"
    if reached:
        interrupt(reached)
        with pytest.raises(KeyboardInterrupt):
            model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
        interrupt(0)
    shutil.copy(ledger.where, backup)
    latest = tmp_path / "latest.db"
    first = model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    shutil.copy(ledger.where, latest)
    shutil.copy(backup, ledger.where)
    again = Ledger.open(ledger.where)
    before = again.to_dict()
    with pytest.raises(InputError, match=r"must hold link .* that the anchor .* remembers"):
        model(again).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert again.to_dict() == before
    (tmp_path / "private" / "anchor.json").rename(tmp_path / "moved")
    with pytest.raises(InputError, match="must remember the ledger's last link once a run has paid"):
        model(again).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert again.to_dict() == before
    Path(tmp_path / "moved").rename(tmp_path / "private" / "anchor.json")
    shutil.copy(latest, ledger.where)
    resumed = model(Ledger.open(ledger.where)).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    np.testing.assert_array_equal(first.labels_, resumed.labels_)


def test_a_folder_that_cannot_be_written_is_refused(ledger, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder that can be written"):
        model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "file")


def test_a_spent_budget_is_refused_before_teachers_are_trained(ledger, tmp_path):
    model(ledger).fit(X, Y, PUBLIC)
    told = []
    with pytest.raises(BudgetSpentError, match="must cover ε = 5"):
        model(ledger).fit(X, Y, PUBLIC, folder=tmp_path / "private", advance=told.append)
    assert told == []


def test_a_session_is_replayed_before_its_first_query_or_not_at_all():
    session = GNMax(epsilon=1.0, delta=1e-5, queries=3).session()
    session.answer([5, 1])
    with pytest.raises(BudgetSpentError, match="before the first"):
        session.replay([1], charged=0)


def test_a_gate_keeps_nothing_between_queries_and_is_not_charged(ledger, tmp_path, interrupt):
    gate = Gate(epsilon=4.0, delta=1e-5, refusals=1)
    options = {"epsilon": 4.0, "mechanism": gate, "n_teachers": 300}
    alike = np.zeros_like(Y)
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        model(ledger, **options).fit(X, alike, PUBLIC, folder=tmp_path / "private")
    interrupt(0)
    resumed = model(ledger, **options).fit(X, alike, PUBLIC, folder=tmp_path / "private")
    assert noted(ledger).value("resumed") == 0
    # 300 teachers agree: a query is refused with a chance below 1e-9.
    assert len(resumed.answered_) == 60


def test_an_entry_that_paid_for_something_else_is_not_gone_on_with(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=100, delta=1e-4)
    private = tmp_path / "private"
    model(ledger, epsilon=0.5).fit(X, Y, PUBLIC, folder=private)
    (private / "task.json").unlink()
    with pytest.raises(InputError, match="must have paid for the very task"):
        model(ledger, epsilon=50.0).fit(X, Y, PUBLIC, folder=private)
    assert len(ledger.entries()) == 1


def test_a_forged_entry_pays_for_nothing(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=100, delta=1e-4)
    private = tmp_path / "private"
    release = interrupted.run(private, None).release
    ledger.spend("PrivateClassifier.fit", epsilon=1e-9, detail={"release": release})
    with pytest.raises(InputError, match="must have paid for the very task"):
        model(ledger, epsilon=40.0).fit(X, Y, PUBLIC, folder=private)


def test_a_run_without_a_random_state_asks_the_same_points_again(ledger, tmp_path, interrupt):
    interrupt(2)
    with pytest.raises(KeyboardInterrupt):
        model(ledger, queries=25).set_params(random_state=None).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    interrupt(0)
    resumed = model(ledger, queries=25).set_params(random_state=None).fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert len(resumed.answered_) == 25


def test_constants_without_a_theorem_are_refused_before_an_answer_is_drawn(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db", epsilon=60, delta=0.3)
    loose = model(ledger, epsilon=60.0, delta=0.3, mechanism="svt-faithful", error_share=0.1)
    with pytest.raises(NoTheoremError):
        loose.fit(X, Y, PUBLIC, folder=tmp_path / "private")
    assert not ledger.entries()  # the rehearsal has met it
