"""`tacit learn`: a table of private records in, a classifier out that may be published.

The output folder has two rooms. `publish/` holds what may leave: the student, the public records with the answers, the
report. `private/` holds the teachers, their key, and a page for the owner; it is as private as the records. Between
them stands the ledger, unless it stands elsewhere: what was paid, and every answer that was released.
"""

from .run import learn_files

__all__ = ["learn_files"]
