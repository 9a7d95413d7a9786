"""Private answers from teachers' votes, and classifiers made of them: what they prove, and the attacks on them.

Modules are imported on first use: a process that trains teachers, or a command, waits for no more than it needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answer_sums import AnswerSums
    from .attack import Game, distinguishing_attack, games
    from .classifier import PrivateClassifier
    from .columns import Columns
    from .diagnostic import DataDependentEpsilon, data_dependent_epsilon
    from .encoders import ImageEncoder, TextEncoder
    from .held_out import ErrorEstimate, private_count, private_error
    from .mechanisms import (
        AdaptiveVector,
        ConfidentGNMax,
        Confirm,
        ConfirmSession,
        Gate,
        GNMax,
        Mechanism,
        Session,
        SparseVector,
        StableRelease,
        VoteQuota,
    )
    from .membership import membership_attack
    from .moments import MomentClassifier, NoisySums
    from .multi_label import PrivateMultiLabelClassifier
    from .planning import Plan, plan
    from .published import PublishedClassifier
    from .published_sums import PublishedMultiLabelClassifier, PublishedRegressor
    from .queries import medoids
    from .regressor import PrivateRegressor
    from .students import KernelRidgeClassifier, NetworkClassifier, OrientedGradients, Propagated, VoteRegression
    from .study import learn_files
    from .teachers import Teachers
    from .votes import ABSTAIN, vote_counts, votes_to_flip, winners

__all__ = [
    "ABSTAIN",
    "AdaptiveVector",
    "AnswerSums",
    "Columns",
    "ConfidentGNMax",
    "Confirm",
    "ConfirmSession",
    "DataDependentEpsilon",
    "ErrorEstimate",
    "GNMax",
    "Game",
    "Gate",
    "ImageEncoder",
    "KernelRidgeClassifier",
    "Mechanism",
    "MomentClassifier",
    "NetworkClassifier",
    "NoisySums",
    "OrientedGradients",
    "Plan",
    "PrivateClassifier",
    "PrivateMultiLabelClassifier",
    "PrivateRegressor",
    "Propagated",
    "PublishedClassifier",
    "PublishedMultiLabelClassifier",
    "PublishedRegressor",
    "Session",
    "SparseVector",
    "StableRelease",
    "Teachers",
    "TextEncoder",
    "VoteQuota",
    "VoteRegression",
    "data_dependent_epsilon",
    "distinguishing_attack",
    "games",
    "learn_files",
    "medoids",
    "membership_attack",
    "plan",
    "private_count",
    "private_error",
    "vote_counts",
    "votes_to_flip",
    "winners",
]

_MODULES = {
    "answer_sums": "AnswerSums",
    "attack": "Game distinguishing_attack games",
    "classifier": "PrivateClassifier",
    "columns": "Columns",
    "diagnostic": "DataDependentEpsilon data_dependent_epsilon",
    "encoders": "ImageEncoder TextEncoder",
    "held_out": "ErrorEstimate private_count private_error",
    "mechanisms": (
        "AdaptiveVector ConfidentGNMax Confirm ConfirmSession Gate GNMax Mechanism Session SparseVector StableRelease "
        "VoteQuota"
    ),
    "membership": "membership_attack",
    "moments": "MomentClassifier NoisySums",
    "multi_label": "PrivateMultiLabelClassifier",
    "planning": "Plan plan",
    "published": "PublishedClassifier",
    "published_sums": "PublishedMultiLabelClassifier PublishedRegressor",
    "queries": "medoids",
    "regressor": "PrivateRegressor",
    "students": "KernelRidgeClassifier NetworkClassifier OrientedGradients Propagated VoteRegression",
    "study": "learn_files",
    "teachers": "Teachers",
    "votes": "ABSTAIN vote_counts votes_to_flip winners",
}
"""Where the names of this package are defined."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Moved(ModuleType):
    """A module of `students` under the name that it had in tacit 0.1: published files name types by it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which those ask for who look at every module
            raise AttributeError(name)
        return getattr(import_module(self.__name__.replace(__name__, f"{__name__}.students")), name)


for _name in ("images", "kernels", "network"):
    sys.modules.setdefault(f"{__name__}.{_name}", _Moved(f"{__name__}.{_name}"))
