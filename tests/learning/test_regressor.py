"""Sums of clipped answers: what one record moves, the attack, and the regressor that learns from them."""

import io
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import skops.io
from noises import SeededNoise
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from tacit.core.errors import BudgetSpentError, InputError
from tacit.core.guarantee import Comparison
from tacit.learning import AnswerSums, PrivateRegressor, distinguishing_attack
from tacit.learning.answer_sums import Grid, summed_answers
from tacit.learning.owners import owners
from tacit.ledger import Ledger

KEY = bytes(range(32))
GRID = Grid(low=-1.0, high=3.0, reach=50)


def sums(records, values, queries, *, ids=None, teachers=4, estimator=None, grid=GRID):
    teacher = DecisionTreeRegressor(random_state=0) if estimator is None else estimator
    whose = owners(records, ids)
    return summed_answers(
        teacher, records, values.reshape(len(values), -1), queries, owners=whose, key=KEY, teachers=teachers, grid=grid
    )


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    records = rng.normal(size=(4000, 4))
    return records, 5 + 2 * records[:, 0] - records[:, 1] + rng.normal(size=4000)


def test_one_record_moves_each_sum_by_the_reach_at_most():
    rng = np.random.default_rng(1)
    records, values, queries = rng.normal(size=(40, 2)), rng.normal(size=40) * 9, rng.normal(size=(15, 2))
    before, moved = sums(records, values, queries), []
    for value in (-1e300, 1e300, 0.0, -0.0):
        for place in (0, 17, 40):  # the order of records does not matter
            more = np.insert(records, place, queries[0], axis=0)
            moved.append(np.abs(sums(more, np.insert(values, place, value), queries) - before).max())
    assert 0 < max(moved) <= GRID.reach


def test_one_person_moves_each_sum_by_the_reach_at_most():
    rng = np.random.default_rng(2)
    records, values, queries = rng.normal(size=(60, 2)), rng.normal(size=60) * 9, rng.normal(size=(15, 2))
    ids = rng.integers(0, 12, 60)
    every = sums(records, values, queries, ids=ids.tolist())
    for person in range(12):
        others = ids != person
        moved = np.abs(every - sums(records[others], values[others], queries, ids=ids[others].tolist()))
        assert moved.max() <= GRID.reach


def test_a_person_in_several_chunks_would_move_more():
    """Without ids, new records of one person fall to several teachers: the bound above is not vacuous."""
    rng = np.random.default_rng(2)
    records, theirs = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    more, values = np.concatenate([records, theirs]), np.repeat([-1.0, 3.0], 60)
    moved = sums(more, values, theirs) - sums(records, values[:60], theirs)
    assert moved.max() > GRID.reach


class Says(BaseEstimator):
    """Predicts what it was told to, whatever it learned."""

    def __init__(self, what=0.0):
        self.what = what

    def fit(self, _records, _values):
        return self

    def predict(self, records):
        return np.full(len(records), self.what)


@pytest.mark.parametrize(
    ("said", "step"),
    [(np.nan, 25), (np.inf, 50), (-np.inf, 0), (1e308, 50), (-1.0, 0), (3.0, 50), (1.02, 25), (5e-324, 12)],
)
def test_whatever_a_teacher_predicts_is_on_the_grid(said, step):
    records, values = np.arange(8.0).reshape(-1, 1), np.arange(8.0) % 3
    found = sums(records, values, records, teachers=1, estimator=Says(said))
    assert (found == step).all()


def test_a_teacher_without_records_says_the_middle_and_one_of_one_value_that_value():
    records = np.zeros((3, 1))
    assert (sums(records, np.full(3, 3.0), records, teachers=2) == 50 + 25).all()


def test_teachers_are_a_function_of_their_chunk_alone():
    """The naive twin: each chunk by itself gives the same answers, and they add up."""
    rng = np.random.default_rng(3)
    records, values, queries = rng.normal(size=(50, 2)), rng.normal(size=50), rng.normal(size=(9, 2))
    ids = (np.arange(50) // 5).tolist()
    together = sums(records, values, queries, ids=ids, estimator=LinearRegression())
    shuffled = rng.permutation(50)
    again = sums(
        records[shuffled], values[shuffled], queries, ids=[ids[row] for row in shuffled], estimator=LinearRegression()
    )
    assert (together == again).all()


# The attack. Noise is seeded, so nothing here fails by chance; with other seeds the right mechanism would be
# contradicted with probability at most 1e-6.


def attacked(mechanism):
    attack = distinguishing_attack(mechanism, runs=5_000, failure_probability=1e-6, noise=SeededNoise(0))
    return attack, Comparison(guarantee=mechanism.guarantee, attacks=[attack]).contradicted


@pytest.mark.parametrize(("epsilon", "reach"), [(0.5, 1024), (1.0, 1), (4.0, 1024)])
def test_the_canary_shows_most_of_what_is_claimed_and_no_more(epsilon, reach):
    attack, contradicted = attacked(AnswerSums(epsilon=epsilon, delta=1e-5, sums=5, reach=reach))
    assert 0.9 * epsilon <= attack.low <= epsilon
    assert not contradicted
    assert "canary" in attack.method


@dataclass(frozen=True, kw_only=True)
class QueriesForgotten(AnswerSums):
    """Takes all sums for one: noise for a single answer on each."""

    @cached_property
    def sigma(self):
        return AnswerSums(epsilon=self.epsilon, delta=self.delta, sums=1, reach=self.reach).sigma


@dataclass(frozen=True, kw_only=True)
class HalfTheReach(AnswerSums):
    """Believes that a teacher that changes its mind moves from the middle."""

    @cached_property
    def sigma(self):
        return AnswerSums(epsilon=self.epsilon, delta=self.delta, sums=self.sums, reach=self.reach // 2).sigma


@pytest.mark.parametrize("broken", [QueriesForgotten, HalfTheReach])
def test_what_breaks_the_claim_is_caught(broken):
    assert attacked(broken(epsilon=1.0, delta=1e-5, sums=5, reach=1024))[1]


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"delta": 1.0}, {"sums": 0}, {"reach": 0}])
def test_constants_without_a_meaning_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        AnswerSums(**{"epsilon": 1.0, "delta": 1e-5, "sums": 3} | wrong)


def test_more_sums_than_were_paid_for_are_not_released():
    mechanism = AnswerSums(epsilon=1.0, delta=1e-5, sums=3, reach=10)
    with pytest.raises(InputError, match="the number of sums must be what the noise was made for, 3"):
        mechanism.release(np.zeros((3, 2), dtype=np.int64))


@pytest.mark.parametrize("sums", [np.full(3, 0.123), np.array([0.5, 1, 2], dtype=object), np.zeros(3, dtype=np.uint64)])
def test_numbers_that_are_not_whole_are_not_released(sums):
    """What follows the point would leave without noise."""
    with pytest.raises(InputError, match="sums must be whole numbers"):
        AnswerSums(epsilon=1.0, delta=1e-5, sums=3, reach=10).release(sums)


# The regressor.


def regressor(**options):
    return PrivateRegressor(**{"label_range": (0, 10), "epsilon": 4.0, "n_teachers": 100} | options)


def test_a_regressor(numbers):
    records, values = numbers
    model = PrivateRegressor(label_range=(0, 10), epsilon=4.0)
    model.fit(records[:3000], values[:3000], records[3000:3500])
    assert model.score(records[3500:], values[3500:]) > 0.5
    proven = model.guarantee_
    assert proven.value == 4
    assert "theory.accounting.clipped_sums_delta" in proven.references
    assert proven.detail["sums"] == 500
    assert proven.detail["reach"] == 1024
    assert proven.detail["teachers"] == model.n_teachers_
    assert proven.detail["epsilon_mechanism"] + proven.detail["epsilon_count"] <= 4
    assert proven.evidence is None  # the checker has no rule for it
    assert any("range of the numbers" in assumption.text for assumption in proven.assumptions)
    assert model.predict(records * 1e6).min() >= 0
    assert model.predict(records * 1e6).max() <= 10


def test_the_noise_is_what_the_guarantee_says(numbers):
    """500 sums: by Laurent and Massart their mean square is off σ² by 50 % with probability below 1e-6."""
    records, values = numbers
    public = records[3000:3500]
    model = regressor(key=KEY, estimator=Ridge()).fit(records[:3000], values[:3000], public)
    true = summed_answers(
        Ridge(),
        records[:3000],
        np.clip(values[:3000], 0, 10).reshape(-1, 1),
        public,
        owners=owners(records[:3000], None),
        key=KEY,
        teachers=100,
        grid=Grid(low=0.0, high=10.0, reach=1024),
    )
    noise = (model.noisy_sums_ - true).astype(float)
    assert np.mean(noise**2) == pytest.approx(model.guarantee_.detail["sigma"] ** 2, rel=0.5)
    assert model.means_ == pytest.approx(10 * model.noisy_sums_ / 102400)


def test_what_is_published_predicts_the_same_and_holds_no_teacher(numbers):
    records, values = numbers
    model = regressor().fit(records[:3000], values[:3000], records[3000:3400])
    content = io.BytesIO(skops.io.dumps(model.published())).getvalue()
    unknown = skops.io.get_untrusted_types(data=content)
    assert unknown == ["tacit.learning.published_sums.PublishedRegressor"]
    loaded = skops.io.loads(content, trusted=unknown)
    assert (loaded.predict(records[:20]) == model.predict(records[:20])).all()
    assert loaded.guarantee_ == model.guarantee_
    with pytest.raises(InputError, match="must stay as it was released"):
        loaded.fit(records, values)


def test_people_are_protected_together(numbers):
    records, values = numbers
    ids = [row // 3 for row in range(3000)]
    model = regressor().fit(records[:3000], values[:3000], records[3000:3400], ids=ids, ids_column="who")
    assert model.guarantee_.detail["neighbours"].startswith("all records of one person added or removed")
    assert "'who'" in model.guarantee_.detail["neighbours"]


def test_a_fit_that_goes_on_reads_its_sums_back(numbers, tmp_path):
    records, values = numbers
    task = (records[:3000], values[:3000], records[3000:3400])
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-4)
    first = regressor(ledger=ledger).fit(*task, folder=tmp_path / "run")
    again = regressor(ledger=ledger, student=Ridge()).fit(*task, folder=tmp_path / "run")
    assert (first.noisy_sums_ == again.noisy_sums_).all()
    (entry,) = ledger.entries()
    assert entry.what == "PrivateRegressor.fit"
    assert float(ledger.spent.epsilon) == 4
    with pytest.raises(InputError, match="same task"):
        regressor(ledger=ledger, label_range=(0, 9)).fit(*task, folder=tmp_path / "run")
    with pytest.raises(InputError, match="same task"):  # other records would be another release
        regressor(ledger=ledger).fit(records[:2999], values[:2999], records[3000:3400], folder=tmp_path / "run")
    with pytest.raises(BudgetSpentError):
        regressor(ledger=ledger).fit(*task, folder=tmp_path / "other")


def test_a_fit_that_is_interrupted_before_the_note_pays_once(numbers, tmp_path, monkeypatch):
    records, values = numbers
    task = (records[:3000], values[:3000], records[3000:3400])
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=4, delta=1e-4)

    def interrupted(*_arguments, **_options):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(AnswerSums, "release", interrupted)
        with pytest.raises(RuntimeError):
            regressor(ledger=ledger).fit(*task, folder=tmp_path / "run")
    assert float(ledger.spent.epsilon) == 4
    model = regressor(ledger=ledger).fit(*task, folder=tmp_path / "run")
    assert len(ledger.entries()) == 1
    assert any("interrupted" in assumption.text for assumption in model.guarantee_.assumptions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_range": None}, "label_range must be given, from public knowledge"),
        ({"label_range": (5, 5)}, "the first well below the second"),
        ({"label_range": (0, np.inf)}, "label_range must be a finite number"),
        ({"label_range": (-1.7e308, 1.7e308)}, "the first well below the second"),
        ({"label_range": 7}, "label_range must be two numbers"),
        ({"n_teachers": 0}, "n_teachers must be"),
        ({"queries": 0}, "queries must be"),
        ({"epsilon": 1e-9}, "epsilon must be"),
        ({"epsilon": 1e-6, "n_teachers": "auto"}, "epsilon must be"),
        ({"ledger": "ledger.sqlite"}, "ledger must be a Ledger"),
        ({"estimator": object()}, "estimator must learn from a table of numbers"),
        ({"estimator": DummyRegressor(strategy="quantile", quantile=7)}, "estimator must learn"),
        ({"student": Says(np.ones(3))}, "the student must be a regressor"),
    ],
)
def test_options_without_a_meaning_are_refused_before_anything_is_spent(numbers, tmp_path, options, message):
    records, values = numbers
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-4)
    with pytest.raises(InputError, match=message):
        regressor(**{"ledger": ledger} | options).fit(records[:300], values[:300], records[3000:3400])
    assert not ledger.entries()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(numbers, wrong):
    records, values = numbers
    with pytest.raises(InputError, match="y must be"):
        regressor().fit(records[:300], np.where(np.arange(300) == 7, wrong, values[:300]), records[3000:3400])


def test_errors_quote_no_private_numbers(numbers):
    records, values = numbers
    private = values[:300].round(5)
    for wrong in (private.astype(str), private.reshape(-1, 1), private[:-1], np.ma.array(private, mask=private > 6)):
        with pytest.raises(InputError, match="y must be one finite number for each of the 300 records") as refused:
            regressor().fit(records[:300], wrong, records[3000:3400])
        assert not any(str(value) in str(refused.value) for value in private)


def test_private_records_among_public_ones_are_refused(numbers):
    records, values = numbers
    with pytest.raises(InputError, match="X_public must hold other records"):
        regressor().fit(records[:3000], values[:3000], records[:3000])


def test_fewer_queries_mean_less_noise_on_each(numbers):
    records, values = numbers
    task = (records[:3000], values[:3000], records[3000:3500])
    few, many = regressor(queries=50).fit(*task), regressor(queries="all").fit(*task)
    assert len(few.asked_) == 50
    assert many.guarantee_.detail["sigma"] == pytest.approx(10**0.5 * few.guarantee_.detail["sigma"], rel=1e-3)
