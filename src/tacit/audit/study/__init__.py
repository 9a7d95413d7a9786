"""`tacit audit`: a table of secrets and outputs in, a report out: what nobody can learn, and what attacks did learn."""

from .options import Task
from .run import audit

__all__ = ["Task", "audit"]
