"""All kinds of mechanisms, and the names of releases that need no teachers."""

from .adaptive_vector import AdaptiveKind
from .gate import ConfirmKind, GateKind
from .gnmax import ConfidentKind, GNMaxKind, WinnersKind
from .kind import PlannedKind
from .quota import VoteQuota
from .sparse_vector import PrintedKind, SparseVectorKind
from .stable_release import StableKind

_KINDS: tuple[PlannedKind, ...] = (
    SparseVectorKind(),
    PrintedKind(),
    AdaptiveKind(),
    GNMaxKind(),
    WinnersKind(),
    ConfidentKind(),
    StableKind(),
    GateKind(),
    ConfirmKind(),
)

KINDS: dict[str, PlannedKind] = {kind.name: kind for kind in _KINDS}
"""By what users type."""

NEIGHBOURS = "neighbours"
MOMENTS = "moments"
WITHOUT_TEACHERS = (NEIGHBOURS, MOMENTS)
"""What users type for a release that trains no teachers. They are not model-agnostic: plans leave them out, and "auto"
takes sums only where a linear classifier is asked for in any case."""
NAMES = ("auto", *KINDS, *WITHOUT_TEACHERS)
"""All that users may type."""


def asks_records(mechanism: object) -> bool:
    """Whether records vote, and there are no teachers."""
    return isinstance(mechanism, VoteQuota) or (isinstance(mechanism, str) and mechanism == NEIGHBOURS)


def asks_nobody(mechanism: object) -> bool:
    """Whether sums are released, and nobody votes."""
    return isinstance(mechanism, str) and mechanism == MOMENTS
