"""All kinds of mechanisms."""

from .gate import ConfirmKind, GateKind
from .gnmax import ConfidentKind, GNMaxKind
from .kind import Kind
from .sparse_vector import PrintedKind, SparseVectorKind
from .stable_release import StableKind

_ALL = (SparseVectorKind(), PrintedKind(), GNMaxKind(), ConfidentKind(), StableKind(), GateKind(), ConfirmKind())

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
"""By what users type."""
