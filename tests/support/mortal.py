"""A classifier that kills the process it runs in, in a module that workers import quickly: without scikit-learn."""
# ruff: noqa: N803 — scikit-learn calls it X

import os
import signal
import time
from pathlib import Path

import numpy as np


class Mortal:
    """The means of the classes; the first to be fitted, or to predict, kills its process."""

    def __init__(self, fatal_fit="", fatal_predict="", pause=0.0):
        self.fatal_fit = fatal_fit
        self.fatal_predict = fatal_predict
        self.pause = pause

    def get_params(self, deep=True):  # noqa: ARG002
        return {name: getattr(self, name) for name in ("fatal_fit", "fatal_predict", "pause")}

    def set_params(self, **parameters):
        vars(self).update(parameters)
        return self

    def fit(self, X, y):
        self.die(self.fatal_fit)
        time.sleep(self.pause)
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        self.die(self.fatal_predict)
        return self.classes_[((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]

    def die(self, mark):
        if mark == "always" or (mark and not Path(mark).exists()):
            if mark != "always":
                Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
