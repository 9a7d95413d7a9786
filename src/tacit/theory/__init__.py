"""Theorems as functions: numbers in, numbers out; NumPy and SciPy alone.

Every public function here returns a bound. It is marked `at_least` (rounded down) or `at_most` (rounded up),
its docstring gives statement, assumptions and reference, docs/proofs/ the proof, and `make soundness` shows
that its tests notice if the result is made 1 % too optimistic.
"""
