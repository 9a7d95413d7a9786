"""`tacit bound`: the bounds of a model on files, batch by batch, and the report about them.

Every finished batch is a file of the output folder, written whole or not at all. A run that was killed goes on where it
stopped, and gives the same numbers as one that was not.
"""

from .inputs import methods_of
from .options import Task
from .run import bound, steps

__all__ = ["Task", "bound", "methods_of", "steps"]
