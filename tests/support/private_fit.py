"""A fit on private records that bear a mark, in a module that other processes can import."""
# ruff: noqa: N803 — scikit-learn calls it X

import os
import time

import numpy as np
from sklearn.naive_bayes import GaussianNB

from tacit.learning import PrivateClassifier

MARK = 4711.08154711
"""A number of private records that is nowhere else."""


class Slow(GaussianNB):
    """Sleeps before it learns, for as long as the environment says."""

    def fit(self, X, y):
        time.sleep(float(os.environ["PAUSE"]))
        return super().fit(X, y)


def fit(folder):
    """In the folder, or in none if its name is empty."""
    rng = np.random.default_rng(0)
    X, public = rng.normal(size=(8000, 200)), rng.normal(size=(50, 200))  # noqa: N806 — joblib writes what exceeds 1 MB
    X[:, 0] = MARK
    y = (X[:, 1] > 0).astype(int)
    options = {"epsilon": 50.0, "n_teachers": 8, "mechanism": "gnmax", "classes": [0, 1]}
    model = PrivateClassifier(Slow(), student=GaussianNB(), **options)
    model.fit(X, y, public, folder=folder or None, trusted=["private_fit.Slow"])
