"""The demo: three releases of handwritten digits, what nobody can learn from them, and what attackers got.

It uses scikit-learn's bundled digits and the library's public functions. The rest of the library does not use it.
"""

from .story import SECONDS, demo

__all__ = ["SECONDS", "demo"]
