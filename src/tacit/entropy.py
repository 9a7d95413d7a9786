"""The old name of `tacit.runtime.entropy`, kept for one version."""

import warnings

from .runtime.entropy import *  # noqa: F403

warnings.warn("tacit.entropy is tacit.runtime.entropy now", DeprecationWarning, stacklevel=2)
