"""The demo: three releases of handwritten digits, what nobody can learn from them, and what attackers got.

Runs on scikit-learn's bundled digits with the library's public functions. Nothing here is used by the rest of the
library.
"""

from .story import STEPS, demo

__all__ = ["STEPS", "demo"]
