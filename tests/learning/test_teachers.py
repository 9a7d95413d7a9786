"""Teachers: one record, one chunk; nothing is ever unpickled."""
# ruff: noqa: N803, N806 — scikit-learn calls them X

import hmac
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from teaching import IMPORTABLE, KEY, Poison, data, queries

from tacit import InputError, MissingExtraError
from tacit.learning import ABSTAIN, Teachers, vote_counts, winners
from tacit.learning.chunks import chunks
from tacit.runtime import run_folder

# One record, one chunk.

RECORD = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from("abc"))


@settings(max_examples=25)
@given(st.lists(RECORD, min_size=1, max_size=40), st.data(), st.booleans(), st.floats(-9, 9))
def test_one_record_more_changes_one_teacher_whatever_the_order(records, draw, named, fraction):
    added = draw.draw(RECORD, label="added")
    more = draw.draw(st.permutations([*enumerate(records), (len(records), (added[0] + fraction, *added[1:]))]))

    def votes(rows):
        teachers = Teachers(DecisionTreeClassifier(max_features=1), 5, KEY, classes=["c", "b", "a"])
        ids = [f"record {number}" for number, _ in rows] if named else None
        teachers.fit([row[:2] for _, row in rows], [row[2] for _, row in rows], ids=ids)
        return teachers.votes([[left, right] for left in range(-4, 5) for right in range(-4, 5)])

    before, after = votes(list(enumerate(records))), votes(more)
    assert (before != after).any(axis=0).sum() <= 1


def naive_chunks(X, y, ids, key, n_chunks):
    """One record at a time: the statement written down."""
    owners = []
    for row in range(len(X)):
        content = hmac_of(hmac_of(key, b"record"), np.array([y[row], *X[row]], dtype="<f8").tobytes())
        owner = content if ids is None else hmac_of(hmac_of(key, b"id"), b"i" + str(ids[row]).encode())
        owners.append((owner, content, row))
    rows = [[] for _ in range(n_chunks)]
    for owner, _, row in sorted(owners):
        rows[int.from_bytes(owner[:8]) % n_chunks].append(row)
    return rows


def hmac_of(key, content):
    return hmac.new(key, content, "sha256").digest()


@pytest.mark.usefixtures("all_cores")
@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, np.float64, object])
@pytest.mark.parametrize("ids", [None, [7 * row % 900 for row in range(2500)]])
def test_chunks_are_those_of_their_naive_twin(kind, ids):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 9, size=(2500, 3)).astype(kind), random.integers(3, size=2500)  # many records repeat
    rows, digest = chunks(X, y, ids=ids, key=KEY, n_chunks=7)
    assert [chunk.tolist() for chunk in rows] == naive_chunks(X, y, ids, KEY, 7)
    order = random.permutation(2500)
    moved = None if ids is None else [ids[row] for row in order]
    assert chunks(X[order], y[order], ids=moved, key=KEY, n_chunks=7)[1] == digest
    X[0, 0] += 1
    assert chunks(X, y, ids=ids, key=KEY, n_chunks=7)[1] != digest


def test_one_record_of_double_precision_does_not_change_how_others_are_computed():
    X, y = data()
    single = X.astype(np.float32)
    longer = [*single, np.full(3, 0.1)]  # which makes an array of float64 of all of them
    few = Teachers(LogisticRegression(C=1e4), 12, KEY, classes=range(3)).fit(single, y)
    more = Teachers(LogisticRegression(C=1e4), 12, KEY, classes=range(3)).fit(longer, [*y, 0])
    assert (few.votes(queries()) != more.votes(queries())).any(axis=0).sum() <= 1


def test_one_word_does_not_move_other_records():
    X, y = data(60)
    plain = Teachers(GaussianNB(), 4, KEY, classes=range(3)).fit(X, y).votes(queries())
    mixed = np.vstack([X.astype(object), [["one", None, 2]]])
    teachers = Teachers(make_pipeline(Words(), GaussianNB()), 4, KEY, classes=range(3)).fit(mixed, [*y, 0])
    assert ((teachers.votes(queries()) != plain).any(axis=0)).sum() <= 1


class Words(BaseEstimator):
    """Reads whatever is no number as 0."""

    def fit(self, X, y=None):  # noqa: ARG002
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.array([[value if isinstance(value, float) else 0 for value in row] for row in X], dtype=float)


def test_the_order_of_the_file_does_not_matter_even_to_a_learner_that_minds():
    X, y = data()
    order = np.random.default_rng(2).permutation(len(X))
    estimator = SGDClassifier(max_iter=5, tol=None)
    once = Teachers(estimator, 7, KEY, classes=range(3)).fit(X, y)
    again = Teachers(estimator, 7, KEY, classes=range(3)).fit(X[order], y[order])
    assert (once.votes(queries()) == again.votes(queries())).all()


def test_records_of_one_person_fall_into_one_chunk():
    X, y = data(40)
    teachers = Teachers(GaussianNB(), 9, KEY, classes=range(3)).fit(X, y, ids=["Ada"] * 40)
    assert ((teachers.votes(queries()) != ABSTAIN).any(axis=0)).sum() == 1


def test_the_type_of_an_array_does_not_move_records():
    X = np.random.default_rng(0).integers(0, 256, size=(90, 4))
    y, kinds = X[:, 0] % 2, (np.uint8, np.int64, np.float32, np.float64, object)
    found = [Teachers(GaussianNB(), 5, KEY, classes=[0, 1]).fit(X.astype(kind), y).votes(X) for kind in kinds]
    assert all((votes == found[0]).all() for votes in found)


def test_chunks_differ_with_the_key_and_a_fresh_key_is_drawn_each_time():
    X, y = data(100)

    def votes(key):
        return Teachers(GaussianNB(), 8, key, classes=range(3)).fit(X, y).votes(queries()).tobytes()

    assert len({votes(KEY), votes(KEY[::-1]), votes(None), votes(None)}) == 4
    assert votes(KEY) == votes(KEY)


def test_teachers_are_of_about_the_same_size_and_toss_coins_of_their_own():
    X, y = data(4000)
    teachers = Teachers(make_pipeline(StandardScaler(), SGDClassifier(random_state=7)), 10, KEY, classes=range(3)).fit(
        X, y
    )
    states = {estimator[-1].random_state for _, estimator in teachers._teachers}
    sizes = [int(estimator[0].n_samples_seen_) for _, estimator in teachers._teachers]
    assert len(states) == 10
    assert sum(sizes) == 4000
    assert max(abs(size - 400) for size in sizes) < 6 * 20  # standard deviation below 20


# Labels, chunks and features of every kind.


def test_counts_are_the_votes_counted_in_the_order_of_classes():
    X, y = data(3000)
    names = np.array(["cat", "dog", "eel"])
    teachers = Teachers(GaussianNB(), 11, KEY, classes=["eel", "cat", "fox", "dog"]).fit(X, names[y])
    votes, counts = teachers.votes(queries()), teachers.counts(queries())
    assert counts.shape == (50, 4)
    assert (counts.sum(axis=1) == 11).all()
    assert (counts[:, 2] == 0).all()
    assert (counts == vote_counts(votes, classes=4)).all()
    whole = GaussianNB().fit(X, names[y]).predict(queries())
    assert np.mean(np.array(teachers.classes)[winners(counts)] == whole) > 0.9


def test_more_teachers_than_records_abstain_or_vote_for_the_default():
    X, y = data(6)
    for default, vote in ((None, ABSTAIN), (2, 2)):
        teachers = Teachers(LogisticRegression(), 40, KEY, classes=range(3), default=default).fit(X, y)
        votes = teachers.votes(queries())
        assert ((votes == vote).all(axis=0)).sum() >= 34
        assert (teachers.counts(queries()).sum(axis=1) == (40 if default else (votes[0] != ABSTAIN).sum())).all()
    assert (Teachers(LogisticRegression(), 3, KEY, classes=[0]).fit(X[:0], []).votes(queries()) == ABSTAIN).all()


def test_one_class_in_a_chunk_or_in_all_of_them():
    X, _ = data(100)
    alone = Teachers(LogisticRegression(), 4, KEY, classes=["no", "yes"]).fit(X, ["yes"] * 100)
    assert (alone.counts(queries()) == [0, 4]).all()
    rare = Teachers(LogisticRegression(), 4, KEY, classes=[1, 0]).fit(X, np.arange(100) == 17)
    assert ((rare.votes(queries()) == 1).all(axis=0)).sum() >= 3


class Gapless(GaussianNB):
    """Refuses classes that are not 0, 1, 2, …, as XGBoost does."""

    def fit(self, X, y):
        assert (np.unique(y) == np.arange(y.max() + 1)).all()
        return super().fit(X, y)


def test_a_class_absent_from_a_chunk_is_never_voted_for_there():
    X, y = data(120, classes=3)
    keep = Teachers(Gapless(), 3, KEY, classes=list("abc"))
    ids = np.arange(len(y))
    owner = np.array([int(np.argmax(chunk)) for chunk in membership(keep, X, y, ids)])
    y = np.where((owner == 1) & (y == 0), 2, y)  # teacher 1 sees no "a"
    votes = keep.fit(X, np.array(list("abc"))[y], ids=ids).votes(3 * queries())
    assert set(votes[:, 1]) == {1, 2}
    assert set(votes[:, 0]) == {0, 1, 2}


def membership(teachers, X, y, ids):
    rows, _ = chunks(X, y, ids=list(ids), key=teachers.key, n_chunks=teachers.n_teachers)
    return np.array([np.isin(np.arange(len(X)), chunk) for chunk in rows]).T


def test_a_teacher_has_one_vote_whether_it_saw_many_records_or_two():
    X, y = data(300)
    ids = np.where(np.arange(300) < 290, "most", [f"person {row % 5}" for row in range(300)])
    teachers = Teachers(GaussianNB(), 4, KEY, classes=range(3)).fit(X, y, ids=ids)
    rows, _ = chunks(X, y, ids=list(ids), key=KEY, n_chunks=4)
    sizes = sorted(len(chunk) for chunk in rows)
    assert sizes[-1] >= 290
    assert 0 < sizes[-2] <= 10
    votes, counts = teachers.votes(queries()), teachers.counts(queries())
    assert (counts.sum(axis=1) == (votes != ABSTAIN).sum(axis=1)).all()
    most = int(np.argmax([len(chunk) for chunk in rows]))
    present, estimator = teachers._teachers[most]
    assert (votes[:, most] == present[estimator.predict(queries())]).all()
    assert (winners(counts) != votes[:, most]).any()  # the others outvote it somewhere


def test_teachers_in_a_tie_elect_the_first_class():
    X = np.array([[0.0], [1.0]])
    ids, key = ["a", "b"], next(bytes([n]) * 32 for n in range(256) if _apart(bytes([n]) * 32))
    counts = Teachers(GaussianNB(), 2, key, classes=["no", "yes"]).fit(X, ["yes", "no"], ids=ids).counts([[0.5]])
    assert counts.tolist() == [[1, 1]]
    assert winners(counts).tolist() == [0]


def _apart(key):
    rows, _ = chunks(np.array([[0.0], [1.0]]), np.array([1, 0]), ids=["a", "b"], key=key, n_chunks=2)
    return len(rows[0]) == 1


def test_nan_is_the_estimators_own_affair():
    X, y = data(120)
    X[5, 1] = np.nan
    strange = queries()
    strange[0] = np.nan
    votes = Teachers(HistGradientBoostingClassifier(max_iter=2), 2, KEY, classes=range(3)).fit(X, y).votes(strange)
    assert votes.min() >= 0
    with pytest.raises(
        InputError, match=r"the training of teacher \d must succeed on its chunk, got 'ValueError'"
    ) as error:
        Teachers(LogisticRegression(), 2, KEY, classes=range(3)).fit(X, y)
    assert "nan" not in str(error.value).lower()
    assert error.value.__context__ is None
    with pytest.raises(InputError, match="the votes of teachers 0 to 0 must be classes of their chunks"):
        Teachers(LogisticRegression(), 2, KEY, classes=range(3)).fit(*data(120)).votes(strange)


@pytest.mark.usefixtures("all_cores")
def test_a_failure_among_many_is_one_line_and_no_warning():
    X, y = data(400)
    X[::7, 1] = np.inf
    with pytest.raises(InputError, match=r"the training of teacher \d+ must succeed on its chunk, got 'ValueError'"):
        Teachers(LogisticRegression(), 40, KEY, classes=range(3)).fit(X, y)


def test_words_tables_and_pictures():
    texts = np.array(["good film", "bad film", "good", "bad", "so bad", "so good"] * 10)
    labels = ["+" if "good" in text else "-" for text in texts]
    found = Teachers(make_pipeline(CountVectorizer(), LogisticRegression()), 3, KEY, classes=["-", "+"])
    assert list(winners(found.fit(texts, labels, ids=range(60)).counts(["good", "bad"]))) == [1, 0]
    table = [[("red", "blue")[i % 2], i % 3] for i in range(60)]
    encoder = OneHotEncoder(handle_unknown="ignore")
    found = Teachers(make_pipeline(encoder, LogisticRegression()), 3, KEY, classes=[0, 1])
    assert list(winners(found.fit(table, [i % 2 for i in range(60)], ids=range(60)).counts(table[:2]))) == [0, 1]
    pictures = np.random.default_rng(0).normal(size=(60, 4, 4))
    flat = Teachers(make_pipeline(Flat(), GaussianNB()), 3, KEY, classes=[0, 1])
    assert flat.fit(pictures, pictures[:, 0, 0] > 0).counts(pictures).shape == (60, 2)


class Flat(BaseEstimator):
    """Pictures as rows."""

    def fit(self, X, y=None):  # noqa: ARG002
        self.fitted_ = True
        return self

    def transform(self, X):
        return X.reshape(len(X), -1)


class Stray(GaussianNB):
    """Predicts what it was never shown."""

    def predict(self, X):
        return super().predict(X) + 5


def test_votes_outside_the_classes_are_refused():
    with pytest.raises(InputError, match="must be classes of their chunks, one for each query, got 'LookupError'"):
        Teachers(Stray(), 2, KEY, classes=range(3)).fit(*data()).counts(queries())


X3, Y3 = data(12)
BAD = {
    "classes must be listed, from public knowledge": lambda: Teachers(GaussianNB(), 2),
    "classes must be one or more distinct": lambda: Teachers(GaussianNB(), 2, classes=[0, 1, True]),
    "estimator must be a classifier": lambda: Teachers(GaussianNB, 2, classes=[0, 1]),
    "class_weight must be None or 'balanced'": lambda: Teachers(
        LogisticRegression(class_weight={0: 2}), 2, classes=[0, 1]
    ),
    "n_teachers must be a whole number": lambda: Teachers(GaussianNB(), 0, classes=[0, 1]),
    "key must be 32 bytes, got '5 bytes'": lambda: Teachers(GaussianNB(), 2, b"short", classes=[0, 1]),
    "default must be one of classes": lambda: Teachers(GaussianNB(), 2, classes=[0, 1], default=2),
    "trusted must be a list": lambda: Teachers(GaussianNB(), 2, classes=[0, 1], trusted="sklearn"),
    "y must hold labels among classes, got": lambda: Teachers(GaussianNB(), 2, classes=[0, 1]).fit(X3, Y3),
    "y must hold one label for each": lambda: Teachers(GaussianNB(), 2, classes=[0, 1]).fit(X3, Y3[:, None]),
    "the length of y must be that of X, 12": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit(X3, Y3[1:]),
    "the length of ids must be that": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit(X3, Y3, ids=[1]),
    "ids must hold strings": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit(X3, Y3, ids=[0.5] * 12),
    "X, of shape": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit(X3[:, 0], Y3),
    "X must be an array of numbers": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit([[1], [2, 3]], [0, 1]),
    "must be trained to vote": lambda: Teachers(GaussianNB(), 2, classes=range(3)).votes(X3),
    "the shape of a query": lambda: Teachers(GaussianNB(), 2, classes=range(3)).fit(X3, Y3).votes(X3[:, :2]),
    "engine must be local or dask://HOST:PORT or tls://HOST:PORT or ray://HOST:PORT": lambda: Teachers(
        GaussianNB(), 2, classes=range(3)
    ).fit(X3, Y3, engine="spark://host:1"),
}


@pytest.mark.parametrize("message", BAD)
def test_what_cannot_be_used_is_one_line(message):
    with pytest.raises(InputError) as error:
        BAD[message]()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# Stored teachers.


def test_a_folder_keeps_its_key_to_itself_and_belongs_to_one_task(tmp_path):
    (X, y), folder = data(), tmp_path / "kept"

    def teachers(estimator=None, n=4, key=None):
        return Teachers(estimator or GaussianNB(), n, key, classes=range(3))

    votes = teachers().fit(X, y, folder=folder).votes(queries())
    assert folder.stat().st_mode & 0o077 == 0
    assert (teachers().fit(X[::-1], y[::-1], folder=folder).votes(queries()) == votes).all()
    for other, differing, records in (
        (teachers(key=KEY), "key, records", X),
        (teachers(n=5), "n_teachers", X),
        (teachers(LogisticRegression()), "estimator, parameters", X),
        (teachers(), "records", X + 1),
    ):
        with pytest.raises(InputError, match=f"folder must belong to the same task, which differs in {differing},"):
            other.fit(records, y, folder=folder)
    named = tmp_path / "named"
    teachers(key=KEY).fit(X, y, folder=named)
    assert KEY.hex() not in "".join(path.read_text() for path in named.glob("*.json"))
    with pytest.raises(InputError, match="which differs in key"):
        teachers().fit(X, y, folder=named)
    assert not (named / "key.json").exists()


def test_poisoned_files_are_refused_and_run_nothing(tmp_path):
    import skops.io

    folder, mark = tmp_path / "kept", tmp_path / "poisoned"
    teachers = Teachers(GaussianNB(), 3, KEY, classes=range(3))
    teachers.fit(*data(), folder=folder)
    victim = folder / "teacher-00001.skops"
    good = victim.read_bytes()
    another = (folder / "teacher-00002.skops").read_bytes()
    for content in (pickle.dumps(Poison(mark)), good[:-40], b"", skops.io.dumps(GaussianNB()), another):
        victim.write_bytes(content)
        with pytest.raises(InputError, match="must be a GaussianNB that skops stored"):
            teachers.fit(*data(), folder=folder)
    run_folder.write(victim, skops.io.dumps(LogisticRegression()))
    with pytest.raises(InputError, match="must be a GaussianNB that skops stored"):
        teachers.fit(*data(), folder=folder)
    run_folder.write(victim, skops.io.dumps(Stray()))  # by someone who can make seals
    with pytest.raises(InputError, match=r"which holds test_teachers\.Stray, must hold no types but"):
        teachers.fit(*data(), folder=folder)
    assert not mark.exists()
    victim.unlink()
    teachers.fit(*data(), folder=folder)
    assert victim.exists()


def test_types_that_skops_does_not_trust_must_be_listed(tmp_path):
    forest, tree = RandomForestClassifier(2), "sklearn.tree._tree.Tree"
    with pytest.raises(InputError, match=rf"the estimator, which holds {tree}, must hold no types"):
        Teachers(forest, 2, KEY, classes=range(3)).fit(*data(), folder=tmp_path)
    assert not list(tmp_path.glob("*.skops"))
    teachers = Teachers(forest, 2, KEY, classes=range(3), trusted=[tree])
    before = teachers.fit(*data(), folder=tmp_path).votes(queries())
    assert (teachers.fit(*data(), folder=tmp_path).votes(queries()) == before).all()


def test_without_skops_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-privacy\[learning\]'"):
        Teachers(GaussianNB(), 2, classes=range(3)).fit(*data(), folder=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


WORKER = """
import sys, numpy
from mortal import Mortal
from tacit.learning.teachers import _fitted
from tacit.learning.votes import cast_votes
records, labels = numpy.arange(4.0)[:, None], numpy.arange(4) // 2
teacher = _fitted(Mortal(), (records, None, labels))
print(cast_votes(records, [(numpy.arange(2), teacher)], True)[:, 0].tolist(), "sklearn" in sys.modules)
"""


def test_a_worker_loads_scikit_learn_only_for_a_learner_that_needs_it():
    """It takes longer than most trainings."""
    environment = dict(os.environ, PYTHONPATH=IMPORTABLE)
    said = subprocess.check_output([sys.executable, "-c", WORKER], env=environment, text=True)
    assert said.strip() == "[0, 0, 1, 1] False"
