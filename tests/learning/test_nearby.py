"""Records that vote on public ones: one more changes one count on a few queries, to the last bit."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tacit import InputError
from tacit.learning import PrivateClassifier, VoteQuota, asking
from tacit.learning.nearby import Grid, NearbyVoters, nearby_choice
from tacit.ledger import Ledger
from tacit.theory.accounting import quota_delta, quota_sigma

KEY = bytes(32)
CLASSES = 3

# Few values, so that records repeat and lie exactly on a radius; some that no grid holds, and some that are no numbers.
values = st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1.0, 1e308, -1e308, 1e-320, np.nan, np.inf])
points = st.lists(st.tuples(values, values), min_size=0, max_size=6)
public_points = st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1e300])] * 2), min_size=2, max_size=6)


def counts(public, asked, records, labels, *, rank, quota, people=None):
    voters = NearbyVoters(public, rank=rank, quota=quota, classes=CLASSES)
    features = np.array(records, dtype=float).reshape(-1, public.shape[1])
    return voters.fit(features, np.array(labels, dtype=np.int64), people=people, key=KEY).counts(public[asked])


@given(st.data(), public_points, points, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=150)
def test_one_record_more_changes_one_count_on_as_many_queries_as_its_quota(data, public, records, rank, quota):
    """The very property that `quota_delta` needs, whatever is asked, in whatever order, wherever the record stands."""
    public = np.array(public)
    asked = data.draw(st.lists(st.integers(0, len(public) - 1), min_size=1, max_size=8))
    labels = data.draw(st.lists(st.integers(0, CLASSES - 1), min_size=len(records), max_size=len(records)))
    one, label = data.draw(st.tuples(values, values)), data.draw(st.integers(0, CLASSES - 1))
    place = data.draw(st.integers(0, len(records)))
    without = counts(public, asked, records, labels, rank=rank, quota=quota)
    with_it = counts(
        public,
        asked,
        [*records[:place], one, *records[place:]],
        [*labels[:place], label, *labels[place:]],
        rank=rank,
        quota=quota,
    )
    moved = with_it - without
    assert moved.min() >= 0
    assert moved.sum(axis=1).max() <= 1
    assert moved.sum() <= quota
    assert set(np.flatnonzero(moved.any(axis=0))) <= {label}
    if not np.isfinite(one).all():
        assert not moved.any()


@given(st.data(), public_points, points, points, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=150)
def test_one_person_more_is_one_vote_a_query_and_one_quota(data, public, records, theirs, rank, quota):
    public = np.array(public)
    asked = data.draw(st.lists(st.integers(0, len(public) - 1), min_size=1, max_size=8))
    every = [*records, *theirs]
    labels = data.draw(st.lists(st.integers(0, CLASSES - 1), min_size=len(every), max_size=len(every)))
    people = [data.draw(st.sampled_from([b"a", b"b"])) for _ in records] + [b"new"] * len(theirs)
    kept, mixed = len(records), data.draw(st.permutations(range(len(every))))
    options = {"rank": rank, "quota": quota}
    without = counts(public, asked, every[:kept], labels[:kept], people=people[:kept], **options)
    with_them = counts(
        public,
        asked,
        [every[row] for row in mixed],
        [labels[row] for row in mixed],
        people=[people[row] for row in mixed],
        **options,
    )
    moved = with_them - without
    assert moved.min() >= 0
    assert moved.sum(axis=1).max() <= 1
    assert moved.sum() <= quota


@given(st.data(), public_points, points, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=100)
def test_changed_labels_move_no_more_votes_than_two_quotas(data, public, records, rank, quota):
    """Also where a label is no class, and its record is left out: `changed=2` covers it."""
    public = np.array(public)
    asked = data.draw(st.lists(st.integers(0, len(public) - 1), min_size=1, max_size=8))
    people = [data.draw(st.sampled_from([b"a", b"b"])) for _ in records]

    def found(labels):
        kept = [row for row in range(len(records)) if labels[row] < CLASSES]
        chosen = [[each[row] for row in kept] for each in (records, labels, people)]
        return counts(public, asked, *chosen[:2], people=chosen[2], rank=rank, quota=quota)

    labels = data.draw(st.lists(st.integers(0, CLASSES), min_size=len(records), max_size=len(records)))
    other = [
        data.draw(st.integers(0, CLASSES)) if who == b"a" else old for who, old in zip(people, labels, strict=True)
    ]
    moved = found(other) - found(labels)
    assert np.abs(moved).max() <= 1
    assert np.abs(moved).sum() <= 2 * quota


def test_votes_on_the_edge_of_a_radius_do_not_depend_on_who_else_votes():
    """Standardised columns of few values: many records lie exactly as far as the radius, where the last bit decides."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (3000, 23)).astype(float)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    public, records, labels = table[:300], table[300:], rng.integers(0, CLASSES, 2700)
    options = {"rank": 7, "quota": 50}
    every = counts(public, np.arange(300), records, labels, **options)
    assert every.sum() > 3000
    for gone in (0, 1, 1350, 2699):
        left = np.delete(np.arange(2700), gone)
        moved = every - counts(public, np.arange(300), records[left], labels[left], **options)
        assert moved.min() >= 0
        assert moved.sum(axis=1).max() <= 1
    order = rng.permutation(2700)
    assert (counts(public, np.arange(300), records[order], labels[order], **options) == every).all()


def test_counts_are_those_of_the_rule_in_exact_arithmetic():
    """The naive twin: fractions, one record at a time."""
    rng = np.random.default_rng(1)
    public, records = rng.normal(size=(30, 4)), rng.normal(size=(60, 4))
    labels, asked = rng.integers(0, CLASSES, 60), rng.integers(0, 30, 50)
    people = [bytes([owner]) for owner in rng.integers(0, 20, 60)]
    grid = Grid(public)
    near, own = ([[Fraction(x) for x in row] for row in grid.places(rows).tolist()] for rows in (public, records))

    def apart(a, b):
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    for whose in (None, people):
        left, truth = dict.fromkeys(range(60) if whose is None else people, 4), np.zeros((50, CLASSES), dtype=int)
        for query, place in enumerate(asked):
            radius = sorted(apart(near[place], other) for other in near)[5]
            close: dict = {}
            for row in range(60):
                voter = row if whose is None else people[row]
                close.setdefault(voter, []).append((apart(near[place], own[row]), labels[row]))
            for voter, held in close.items():
                distance, label = min(held)
                if distance <= radius and left[voter]:
                    left[voter] -= 1
                    truth[query, label] += 1
        assert (counts(public, asked, records, labels, rank=5, quota=4, people=whose) == truth).all()
        assert truth.sum() > 50


def test_the_grid_keeps_distances_and_its_sums_are_exact():
    rng = np.random.default_rng(2)
    for width in (1, 64, 784):
        public = rng.normal(size=(50, width))
        grid = Grid(public)
        places = grid.places(public)
        assert width * np.abs(places).max() ** 2 <= 2**38
        kept = places / grid.levels * grid.width + grid.centre
        assert np.abs(kept - public).max() < 1e-2
        single = Grid(public.astype(np.float32)).places(public.astype(np.float32))  # as networks' features are
        assert single.dtype == np.float64
    assert (Grid(np.zeros((5, 2))).places(np.array([[0.0, 0.0]])) == 0).all()
    with pytest.raises(InputError, match="X_public must have finite features"):
        Grid(np.array([[0.0, np.nan]]))


# --- the release ---------------------------------------------------------------------------------------------------


def test_the_noise_is_that_of_the_quota_and_the_session_never_stops():
    mechanism = VoteQuota(epsilon=1.0, delta=1e-5, quota=4, rank=10)
    assert mechanism.sigma == quota_sigma(1.0, 1e-5, quota=4)
    assert mechanism.guarantee.detail["delta_spent"] == quota_delta(1.0, sigma=mechanism.sigma, quota=4) <= 1e-5
    session = mechanism.session()
    released = np.array([session.answer([100, 0]) for _ in range(2000)])
    assert not session.stopped
    # The deviation of 4000 draws, within six of its own standard deviations.
    assert abs((released - [100, 0]).std() / mechanism.sigma - 1) < 6 / np.sqrt(2 * 4000)
    assert isinstance(VoteQuota(epsilon=1.0, delta=1e-5, quota=4, rank=1, counts=False).session().answer([90, 0]), int)


def wins(first, second, sigma):
    """The chance that the first of two counts is the larger one with noise, or as large."""
    x = np.arange(-14, 15)
    p = np.exp(-(x**2) / (2 * sigma**2))
    p /= p.sum()
    return float(sum(p[a] * p[b] for a in range(29) for b in range(29) if first + x[a] >= second + x[b]))


@pytest.mark.parametrize("seed", range(6))
def test_no_adaptive_strategy_on_tiny_tables_beats_the_claim(seed):
    """Every transcript of five adaptive queries, with exact probabilities; four of them on places of the new record."""
    rng = np.random.default_rng(seed)
    mechanism = VoteQuota(epsilon=0.4, delta=1e-5, quota=2, rank=1, counts=False)
    sigma = 1.0  # so little that five answers tell something
    public, records, labels = np.array([[0.0], [1.0], [2.0]]), rng.integers(0, 3, (4, 1)).astype(float), [0, 1, 1, 0]
    table = public[:, 0]
    strategy = {past: int(rng.integers(3)) for size in range(5) for past in itertools.product((0, 1), repeat=size)}
    laws = []
    for planted in (False, True):
        held = np.vstack([records, [[1.0]]]) if planted else records
        told = [*labels, 0] if planted else labels
        law = {}
        for transcript in itertools.product((0, 1), repeat=5):
            asked = [strategy[transcript[:size]] for size in range(5)]
            voters = NearbyVoters(public, rank=mechanism.rank, quota=mechanism.quota, classes=2)
            found = voters.fit(held, np.array(told), people=None, key=KEY).counts(table[asked][:, None])
            chances = [wins(*row, sigma) for row in found]
            law[transcript] = np.prod([c if said == 0 else 1 - c for c, said in zip(chances, transcript, strict=True)])
        laws.append(np.array(list(law.values())))
    for p, q in (laws, laws[::-1]):
        for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
            assert np.maximum(0, p - np.exp(epsilon) * q).sum() <= quota_delta(epsilon, sigma=sigma, quota=2) + 1e-12


# --- the choice ----------------------------------------------------------------------------------------------------


def test_the_choice_asks_more_where_there_is_more_to_hear():
    public = np.random.default_rng(0).normal(size=(1000, 5))

    def chosen(voters, epsilon, queries=None):
        found = nearby_choice(
            public,
            lambda number: np.arange(number),
            voters=voters,
            epsilon=epsilon,
            delta=1e-5,
            queries=queries,
            changed=1,
        )
        return found.queries, found.mechanism.rank, found.mechanism.quota

    assert chosen(100_000, 1.0)[0] == 1000
    numbers = [chosen(voters, 0.5)[0] for voters in (100, 10_000, 30_000, 100_000)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 25 < numbers[-1]
    assert chosen(100_000, 1.0, queries=50)[0] == 50
    ranks = [chosen(voters, 1.0, queries=400)[1] for voters in (10**3, 10**4, 10**5)]
    assert ranks == sorted(ranks, reverse=True)
    assert max(ranks) == 20  # a fiftieth of the public records
    for queries in (25, 200, 1000):
        _, rank, quota = chosen(100, 1.0, queries=queries)  # about as often as a record is near a query
        assert 0.4 < quota / max(1.0, rank * queries / 1000) < 2.5


# --- fits ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return features[order] / 16, labels[order]


def classifier(**options):
    final = LogisticRegression(max_iter=300)
    return PrivateClassifier(
        final, mechanism="neighbours", **{"epsilon": 4.0, "classes": range(10), "random_state": 0} | options
    )


def test_a_classifier_of_neighbours(digits):
    features, labels = digits
    model = classifier().fit(features[:1000], labels[:1000], features[1000:1400])
    assert model.score(features[1400:], labels[1400:]) > 0.7
    assert not len(model.refused_)
    assert model.noisy_counts_ is not None
    assert "not model-agnostic" in model.choice_
    proven = model.guarantee_
    assert proven.value == 4
    assert "theory.accounting.quota_delta" in proven.theorem
    assert "teachers" not in proven.detail
    assert any(assumption.text.startswith("each voter") for assumption in proven.assumptions)
    assert not hasattr(model.published(), "teachers_")


def test_labels_alone_cost_two_counts(digits):
    features, labels = digits
    features, labels = features[:800], labels[:800]
    model = classifier(epsilon=8.0).fit(features, labels)
    assert model.guarantee_.detail["changed"] == 2
    assert model.guarantee_.quantity.startswith("privacy loss ε of one label")
    given = VoteQuota(epsilon=8.0, delta=1e-5, quota=2, rank=5)
    with pytest.raises(InputError, match=r"mechanism\.changed must be 2"):
        PrivateClassifier(mechanism=given, epsilon=8.0, classes=range(10)).fit(features, labels)


def test_people_and_a_mechanism_of_the_callers(digits):
    features, labels = digits
    given = VoteQuota(epsilon=3.0, delta=1e-5, quota=2, rank=8)
    model = PrivateClassifier(mechanism=given, epsilon=3.0, classes=range(10), queries=60, random_state=0)
    model.fit(features[:1200], labels[:1200], features[1200:1500], ids=[row // 2 for row in range(1200)])
    assert len(model.answered_) == 60
    assert model.guarantee_.detail["neighbours"] == "all records of one person added or removed"
    assert "epsilon_count" not in model.guarantee_.detail  # nothing depends on the number of records
    places = np.sort(model.answered_)
    found = model.teachers_.counts(features[1200:1500][places])
    assert found.sum() <= 600 * 2


def test_constants_of_the_caller_tell_nothing_about_the_number_of_records(digits, tmp_path):
    """Nobody paid for it, so what is published and the ledger's entry are those of one record less."""
    features, labels = digits
    given = VoteQuota(epsilon=3.0, delta=1e-5, quota=2, rank=8)
    ledger, told = Ledger.open(tmp_path / "ledger.sqlite", epsilon=6.0, delta=2e-5), []
    for records in (1088, 1089):  # whose roots, in whole numbers, differ as well
        model = PrivateClassifier(mechanism=given, epsilon=3.0, classes=range(10), queries=30, random_state=0)
        model.set_params(ledger=ledger).fit(features[:records], labels[:records], features[1200:1400])
        told.append((model.published().guarantee_json, model.choice_))
    assert told[0] == told[1]
    first, second = (entry.detail["task"] for entry in ledger.entries())
    assert first == second


class Rounding(TransformerMixin, BaseEstimator):
    """Features that depend on how many records there are, as the last bits of a product of matrices may."""

    def fit(self, points, _=None):
        self.n_features_in_ = points.shape[1]
        return self

    def transform(self, points):
        return np.array(points) * (1 + 0.02 * (len(points) % 7))


def test_a_transformer_sees_each_private_record_alone(digits):
    """Or one record more would move all others, some of them across a radius."""
    features, labels = digits
    given = VoteQuota(epsilon=3.0, delta=1e-5, quota=2, rank=8)
    found = []
    for records in (999, 1000):
        model = PrivateClassifier(
            mechanism=given, epsilon=3.0, classes=range(10), queries=30, features=Rounding(), random_state=0
        )
        model.fit(features[:records], labels[:records], features[1200:1400])
        found.append(model.teachers_.counts(Rounding().transform(features[1200:1400])[model.answered_]))
    assert found[0].sum() > 20
    assert np.abs(found[1] - found[0]).sum() <= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_teachers": 10}, "n_teachers must be left out for mechanism='neighbours'"),
        ({"refusals": 3}, "refusals must be left out for mechanism='neighbours'"),
        ({"error_share": 0.1}, "error_share must be 0 unless"),
    ],
)
def test_what_is_about_teachers_is_refused(digits, options, message):
    features, labels = digits
    with pytest.raises(InputError, match=message):
        classifier(**options).fit(features[:1000], labels[:1000], features[1000:])


def test_an_interrupted_fit_gives_nobody_a_second_quota(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_BLOCK", 60)  # answers that are noted at once
    features, labels = digits
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=4.0, delta=1e-5)
    split = {"X": features[:1100], "y": labels[:1100], "X_public": features[1100:1300]}

    def stop(line):
        if line.startswith("60 of"):
            raise KeyboardInterrupt

    first = classifier(ledger=ledger, queries="all")
    with pytest.raises(KeyboardInterrupt):
        first.fit(**split, folder=tmp_path / "private", advance=stop)
    (entry,) = [entry for entry in ledger.entries() if entry.what == "PrivateClassifier.fit"]
    noted = [answer for note in ledger.notes(entry) for answer in note.detail.get("answers", [])]
    assert len(noted) == 60
    with pytest.raises(InputError, match="must belong to the same task, which differs in records"):
        classifier(ledger=ledger, queries="all").fit(
            features[:1099], labels[:1099], features[1100:1300], folder=tmp_path / "private"
        )
    model = classifier(ledger=ledger, queries="all").fit(**split, folder=tmp_path / "private")
    assert (model.noisy_counts_[:60] == noted).all()
    assert ledger.spent.epsilon == 4
    quota, sigma = model.guarantee_.detail["quota"], model.guarantee_.detail["sigma"]
    true = model.teachers_.counts(features[1100:1300])
    assert true.sum() <= 1100 * quota
    # What was released is the counts of one run with one quota, and noise: in six of its standard deviations.
    assert np.abs(model.noisy_counts_ - true).max() < 6 * sigma
