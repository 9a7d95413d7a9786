"""The old name of `tacit.core.guarantee`, kept for one version."""

import warnings

from .core.encoding import *  # noqa: F403
from .core.guarantee import *  # noqa: F403
from .core.wording import *  # noqa: F403

warnings.warn("tacit.guarantee is tacit.core.guarantee now", DeprecationWarning, stacklevel=2)
