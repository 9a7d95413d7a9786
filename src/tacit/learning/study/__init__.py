"""`tacit learn`: from a table of private records to a classifier that may be published.

The output folder has two parts. `publish/` holds what may be published: the student, the public records with the
answers, and the report. `private/` holds the teachers, their key, and a page for the owner; it is as private as the
records. Beside them is the ledger, unless another was named: what was paid, and every answer that was released.
"""

from .run import learn_files

__all__ = ["learn_files"]
