"""Mechanisms that answer queries from the counts of teachers' votes, a class each.

A mechanism is a frozen description of what is run, and for which (ε, δ). Its property `guarantee` says what is proven,
`session()` begins one run, and the session's `answer(counts)` returns a class, or None for a refusal, until it stops.

- `SparseVector`: the paper's Algorithm 2. Stable queries are answered; the T-th refusal ends it.
- `AdaptiveVector`: the same, with noise that is chosen anew for each query by the answers before.
- `StableRelease`: the paper's Algorithm 1 on every query, by plain composition.
- `GNMax`: every query is answered by the class with the largest noisy count, or by all noisy counts.
- `ConfidentGNMax`: the same for queries whose largest noisy count passes a threshold.
- `Gate`, `Confirm`: answers are free while teachers agree; refusals cost.
- `VoteQuota`: every query is answered by noisy counts of voters that retire, not of teachers; queries are free.
"""

from .adaptive_vector import AdaptiveSession, AdaptiveVector
from .gate import Confirm, ConfirmSession, Gate
from .gnmax import ConfidentGNMax, GNMax
from .quota import VoteQuota
from .session import Answer, Mechanism, Noise, Session, SystemNoise
from .sparse_vector import SparseVector
from .stable_release import StableRelease

__all__ = [
    "AdaptiveSession",
    "AdaptiveVector",
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
    "VoteQuota",
]
