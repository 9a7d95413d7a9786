"""`tacit.runtime.entropy`, by its earlier name, for one version more."""

import warnings

from .runtime.entropy import *  # noqa: F403

warnings.warn("tacit.entropy is tacit.runtime.entropy now", DeprecationWarning, stacklevel=2)
