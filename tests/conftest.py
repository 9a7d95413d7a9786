"""Settings for every test.

Hypothesis runs derandomised: a failure on one machine is a failure on every machine, and `make soundness` can tell
a mutant that dies from a test that was lucky.
"""

from hypothesis import settings

settings.register_profile("tacit", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("tacit")
