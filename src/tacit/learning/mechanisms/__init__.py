"""Mechanisms that answer queries from the counts of teachers' votes, a class each.

A mechanism is a frozen description: what is run, and for which (ε, δ). `guarantee()` says what it proves, `session()`
begins one run of it, and the session's `answer(counts)` gives a class, or None for a refusal, until it has stopped.

    SparseVector      the paper's Algorithm 2: stable queries are answered, the T-th refusal ends it
    StableRelease     the paper's Algorithm 1 on every query: plain composition
    GNMax             every query is answered by the largest noisy count, or by all noisy counts
    ConfidentGNMax    the same for queries whose largest noisy count passes a threshold
    Gate, Confirm     answer for free while teachers agree
"""

from .gate import Confirm, ConfirmSession, Gate
from .gnmax import ConfidentGNMax, GNMax
from .session import Answer, Mechanism, Noise, Session, SystemNoise
from .sparse_vector import SparseVector
from .stable_release import StableRelease

__all__ = [
    "Answer",
    "ConfidentGNMax",
    "Confirm",
    "ConfirmSession",
    "GNMax",
    "Gate",
    "Mechanism",
    "Noise",
    "Session",
    "SparseVector",
    "StableRelease",
    "SystemNoise",
]
