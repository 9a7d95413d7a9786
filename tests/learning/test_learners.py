"""The learners that people have: XGBoost and LightGBM as teachers, stored ones, and as students."""

import io

import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_digits

from tacit.learning import PrivateClassifier, Teachers, vote_counts, winners

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

KEY = bytes(range(32))
X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 1200), slice(1200, None)

BOOSTED = {
    "xgboost": (
        xgboost.XGBClassifier(n_estimators=10, max_depth=3, tree_method="hist", n_jobs=1),
        ["xgboost.core.Booster", "xgboost.sklearn.XGBClassifier"],
    ),
    "lightgbm": (
        lightgbm.LGBMClassifier(n_estimators=10, num_leaves=7, min_child_samples=5, n_jobs=1, verbose=-1),
        ["collections.OrderedDict", "lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"],
    ),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_as_teachers_whose_chunks_lack_classes_and_which_are_stored(name, tmp_path):
    learner, trusted = BOOSTED[name]

    def teachers():
        return Teachers(learner, 4, KEY, classes=["zero", *range(1, 11)], trusted=trusted)

    labels = ["zero" if label == 0 else int(label) for label in Y[TRAIN]]
    once = teachers().fit(X[TRAIN], labels, folder=tmp_path).votes(X[TEST])
    heard = []
    again = teachers().fit(X[TRAIN], labels, folder=tmp_path, advance=heard.append).votes(X[TEST])
    assert not heard
    assert (once == again).all()
    assert np.mean(winners(vote_counts(once, classes=11)) == Y[TEST]) > 0.75  # seeded


@pytest.mark.parametrize("name", BOOSTED)
def test_as_the_student_that_is_published(name):
    learner, trusted = BOOSTED[name]
    model = PrivateClassifier(learner, epsilon=1e4, n_teachers=5, mechanism="gnmax", queries="all", classes=range(10))
    model.fit(X[:800], Y[:800], X[800:1200])
    assert model.score(X[TEST], Y[TEST]) > 0.6  # the noise is far below one vote
    stored = io.BytesIO()
    skops.io.dump(model.published(), stored)
    allowed = [*trusted, "tacit.learning.classifier.PublishedClassifier"]
    assert set(skops.io.get_untrusted_types(data=stored.getvalue())) <= set(allowed)
    loaded = skops.io.loads(stored.getvalue(), trusted=allowed)
    assert (loaded.predict_proba(X[TEST]) == model.predict_proba(X[TEST])).all()
