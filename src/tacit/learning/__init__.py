"""Private answers from teachers' votes, and classifiers made of them: what they prove, and the attacks on them."""

from .answer_sums import AnswerSums
from .attack import Game, distinguishing_attack, games
from .classifier import PrivateClassifier
from .columns import Columns
from .diagnostic import DataDependentEpsilon, data_dependent_epsilon
from .encoders import ImageEncoder, TextEncoder
from .held_out import ErrorEstimate, private_count, private_error
from .mechanisms import (
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
