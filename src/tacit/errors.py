"""`tacit.core.errors`, by its earlier name, for one version more."""

import warnings

from .core.errors import *  # noqa: F403

warnings.warn("tacit.errors is tacit.core.errors now", DeprecationWarning, stacklevel=2)
