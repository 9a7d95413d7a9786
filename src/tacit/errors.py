"""The old name of `tacit.core.errors`, kept for one version."""

import warnings

from .core.errors import *  # noqa: F403

warnings.warn("tacit.errors is tacit.core.errors now", DeprecationWarning, stacklevel=2)
