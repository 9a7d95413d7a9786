"""Theorems as functions: numbers in, numbers out, with NumPy and SciPy (and torch in `multipoint`) only.

Every public function here returns a bound. It is marked `at_least` (rounded down) or `at_most` (rounded up). Its
docstring has the parameters, the statement, the assumptions and the references, docs/proofs/ has the proof, and `make
soundness` shows that its tests fail if the result is made 1 % too optimistic.
"""
