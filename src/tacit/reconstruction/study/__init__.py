"""`tacit bound`: bound a model on files, batch by batch, and report.

Every finished batch is a file in the output folder, written completely or not at all. A run that was killed continues
where it stopped and gives the same numbers as an uninterrupted one.
"""

from .run import bound, bound_files
from .texts import bound_texts_files

__all__ = ["bound", "bound_files", "bound_texts_files"]
