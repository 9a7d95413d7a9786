"""`tacit bound`: the bounds of a model on files, batch by batch, and the report about them.

Every finished batch is a file of the output folder, written whole or not at all. A run that was killed goes on where it
stopped, and gives the same numbers as one that was not.
"""

from .run import bound, bound_files

__all__ = ["bound", "bound_files"]
